"""What a new user is told: where things lie, what a refusal means here, and how to go on."""

import re
import shlex
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.harness import Cli, run_at
from tests.cli.schema import check

_TWO_DAYS = 48 * 3600


def test_a_stream_without_a_snapshot_says_how_to_make_one(fresh: Cli) -> None:
    """An empty list looks like a loss."""
    log, show = fresh.run("log"), fresh.run("show", "latest", "--json")

    assert (log.code, log.stdout) == (0, b"")
    assert "durarepo snapshot" in log.err
    assert "durarepo snapshot" in str(show.error()["hint"])
    assert "durarepo snapshot" not in fresh.run("log", "--type", "auto").err


def test_a_snapshot_that_makes_none_says_what_stands(fresh: Cli) -> None:
    """A table of zeros looks like an empty backup."""
    fresh.run("snapshot", "--type", "auto")

    again = fresh.run("snapshot", "--type", "auto")
    spent = fresh.run("snapshot", "--budget", "0s")

    assert again.out == "no manifest was made: manifest 1 of today stands\n"
    assert spent.out == "no manifest was made: the time was over before anything was read\n"
    assert spent.code == 50


def test_hints_of_cat_name_the_path(fresh: Cli) -> None:
    """The next command is to be copied, not put together."""
    root = fresh.home / "agent" / "notes"
    (root / "a link").symlink_to("a.txt")
    fresh.run("snapshot")

    link = fresh.run("cat", "1", "a link")
    late = run_at(fresh, _TWO_DAYS, "cat", "1", "a.txt")

    assert link.err.endswith("durarepo ls 1 'a link'\n")
    assert late.err.endswith("durarepo checkout --archival --at 1 --path a.txt\n")


def test_status_says_until_when_a_restore_is_without_ceremony(fresh: Cli) -> None:
    """The 24 hours are no secret to be found out on the day of a loss."""
    fresh.run("snapshot")

    assert "; then with --archival" in fresh.run("status").out
    assert "restore       with --archival" in run_at(fresh, _TWO_DAYS, "status").out


def test_what_holds_a_folder_can_be_removed_as_the_hint_says(fresh: Cli, tmp_path: Path) -> None:
    """There is no command for it in this version, so that the words have to work."""
    fresh.run("snapshot")
    place = tmp_path / "it's back"
    assert fresh.run("checkout", "--scratch", str(place)).code == 0
    hint = str(fresh.run("held", str(place), "--json").error()["hint"])

    subprocess.run(shlex.split("rm " + hint.partition(": rm ")[2]), check=True)

    assert fresh.run("held", str(place)).code == 0


def test_quickstart_says_where_things_lie_and_how_to_go_on(cli: Cli) -> None:
    """Who has seen one restore wants the next, and to know what is left to do."""
    root = cli.home / "agent" / "notes"
    root.mkdir()
    (root / "a").write_text("a")
    (root / "link").symlink_to("a")

    told = cli.run("quickstart", str(root)).out

    assert f"keys        {cli.keys()}" in told
    assert f"card        {cli.keys()}/notes.card" in told
    assert "compared  1 file, byte for byte\n" in told
    assert "besides   1: links" in told
    assert "on this machine" in told
    assert "  escrow: " in told
    again = next(line for line in told.splitlines() if line.startswith("  durarepo checkout"))
    call = again.split()[1:-1]
    assert cli.run(*call, str(cli.home / "back")).code == 0


def test_quickstart_tells_omissions_and_databases_from_what_changed(cli: Cli) -> None:
    """A database that is not whole, called changed, would be missed when it is needed."""
    root = cli.home / "agent" / "notes"
    root.mkdir()
    with closing(sqlite3.connect(root / "good.db", isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE t (a)")
        database.execute("INSERT INTO t VALUES ('only in the log')")
        (root / "bad.db").write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 64)

        told = cli.run("quickstart", str(root))
        data = cli.run("quickstart", str(root), "--json")

    assert (told.code, data.code) == (1, 1)
    assert "  databases 1: kept as of one moment" in told.out
    assert "  left out  1 omission\n" in told.out
    assert re.search(r"  not kept: \S*bad\.db'? \(database-[a-z-]+\)\n", told.out)
    assert "changed meanwhile" not in told.out
    check("quickstart", data.json())
    counts = ("compared", "databases", "changed_meanwhile", "omissions")
    assert [data.json()[name] for name in counts] == [1, 1, 0, 1]


def test_what_was_not_restored_is_told_with_what_helps(fresh: Cli, tmp_path: Path) -> None:
    """A setuid program that comes back without the bit fails later, elsewhere."""
    program = fresh.home / "agent" / "notes" / "program"
    program.touch()
    program.chmod(0o4755)
    fresh.run("snapshot")

    ran = fresh.run("checkout", "--scratch", str(tmp_path / "out"))

    assert "not restored: the setuid bit of a file, 1 time\n" in ran.err
    assert "--keep-privileges" in ran.err


def test_a_second_checkout_into_the_usual_place_says_what_to_do(fresh: Cli) -> None:
    """The first one stands there."""
    fresh.run("snapshot")
    fresh.run("checkout")

    assert "--scratch DIR" in str(fresh.run("checkout", "--json").error()["hint"])


@pytest.mark.parametrize(
    ("word", "near"), [("restore", "checkout"), ("snapshto", "snapshot"), ("backup", "snapshot")]
)
def test_an_unknown_command_is_told_with_a_near_one(cli: Cli, word: str, near: str) -> None:
    """Other programs call it otherwise."""
    error = cli.run(word, "--json").error()

    assert error["code"] == "config.usage"
    assert str(error["message"]).endswith(f"perhaps '{near}'")


def test_the_short_option_for_help_is_known(cli: Cli) -> None:
    """It is what most people type first."""
    assert cli.run("-h").out == cli.run("--help").out
    assert cli.run("log", "-h").code == 0
    assert "DURAREPO_KEYS" in cli.run("-h").out


@pytest.mark.parametrize("word", ["human", "remote", "escrow", "timer", "identity-on-this-machine"])
def test_explain_knows_the_words_of_what_is_open(cli: Cli, word: str) -> None:
    """They are printed like codes and looked up like codes."""
    assert cli.run("explain", word).out.startswith(f"{word}, still open\n")
    assert cli.run("explain", word, "--json").json()["exit"] == 0


def test_explain_takes_capitals(cli: Cli) -> None:
    """A code at the beginning of a sentence has one."""
    assert cli.run("explain", "Fresh.Expired").code == 0
