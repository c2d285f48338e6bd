"""The good path of every command, as text and as JSON, and what each refuses."""

import base64
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import NAMES, fill
from tests.cli.harness import Cli, Ran, checked, copied
from tests.cli.schema import check


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """A stream with two manifests, between which a file was added, one changed, one removed."""
    cli = Cli(tmp_path_factory.mktemp("kept") / "home")
    root = _root(cli)
    root.mkdir()
    fill(root)
    (root / "gone.txt").write_text("gone")
    (root / "link").symlink_to("a.txt")
    check("init", cli.run("init", "--stream", "notes", "--root", str(root), "--json").json())
    first = cli.run("snapshot", "--json").json()
    check("snapshot", first)
    (root / "gone.txt").unlink()
    (root / "new.txt").write_text("new")
    (root / "a.txt").write_text("changed")
    second = cli.run("snapshot", "--json").json()
    assert (first["sequence"], second["sequence"]) == (1, 2)
    return cli


def _root(cli: Cli) -> Path:
    return cli.home / "agent" / "notes"


def _bytes_of(message: dict[str, object]) -> bytes:
    whole = message.get("path_b64")
    return base64.b64decode(str(whole)) if whole else str(message["path"]).encode()


# --- init, snapshot -------------------------------------------------------------------------


def test_init_tells_what_is_still_open(cli: Cli) -> None:
    """Who stops after init must know that nothing is durable yet."""
    (cli.home / "agent" / "notes").mkdir()
    ran = cli.run("init", "--stream", "notes", "--root", "agent/notes", "--human", "me@host")

    assert ran.code == 0
    still_open = ran.out.partition("still open:\n")[2]
    words = [line.split(":")[0].strip() for line in still_open.splitlines()]
    assert words == ["remote", "escrow", "timer", "identity-on-this-machine"]


def test_a_put_only_machine_writes_and_never_reads(cli: Cli) -> None:
    """What a stolen machine cannot open, its thief cannot either."""
    root = _root(cli)
    root.mkdir()
    fill(root)
    out = cli.home / "owner"
    out.mkdir(mode=0o700)

    made = cli.run(
        *("init", "--stream", "notes", "--root", str(root), "--put-only", "--json"),
        *("--out", str(out)),
    )
    kept = cli.run("snapshot", "--json")

    assert made.code == kept.code == 0
    check("init", made.json())
    assert "identity-on-this-machine" not in list(made.json()["todo"])  # type: ignore[call-overload]
    assert cli.run("status", "--json").json()["put_only"] is True
    assert cli.run("keys", "list", "--json").json()["put_only"] is True
    assert cli.run("log", "--json").items()[0]["sequence"] == 1
    for call in (["ls", "1"], ["show", "1"], ["cat", "1", "a.txt"], ["checkout"], ["find", "*"]):
        ran = cli.run(*call, *([] if call[0] == "cat" else ["--json"]))
        assert ran.code == 12, call
        assert "identity-absent" in ran.out + ran.err


def test_a_snapshot_of_an_unchanged_tree_is_a_new_manifest(kept: Cli, tmp_path: Path) -> None:
    """By hand it always makes one; only a timer's is spared (spec/cli.md 4)."""
    cli = copied(kept, tmp_path)

    by_hand = cli.run("snapshot", "--json").json()
    by_timer = cli.run("snapshot", "--type", "auto", "--json").json()
    again = cli.run("snapshot", "--type", "auto", "--json").json()

    assert (by_hand["status"], by_hand["sequence"], by_hand["new_bytes"]) == ("ok", 3, 0)
    assert (by_timer["status"], by_timer["sequence"]) == ("ok", 4)
    assert (again["status"], again["sequence"]) == ("noop", None)
    check("snapshot", again)


def test_an_unreadable_file_ends_with_1_and_is_named(fresh: Cli) -> None:
    """Whoever only sees 0 would believe that everything was kept."""
    fifo = _root(fresh) / "damaged.db"
    fifo.write_bytes(b"SQLite format 3\0" + bytes(5000))

    text = fresh.run("snapshot")
    told = fresh.run("snapshot", "--json")

    assert text.code == told.code == 1
    assert "damaged.db" in text.out
    assert told.json()["ok"] is True
    assert told.json()["status"] == "omissions"
    check("snapshot", told.json())
    status = fresh.run("status", "--json").json()
    assert status["omissions"] == 1
    assert status["omissions_since"] is not None
    ledger = fresh.run("show", "latest", "--ledger", "--json").items()
    assert [one["kind"] for one in ledger] == ["omission"]
    for one in ledger:
        check("ledger", one)


def test_a_spent_budget_ends_with_50_and_the_next_run_goes_on(fresh: Cli) -> None:
    """A run that is cut short must say so, and lose nothing."""
    ran = fresh.run("snapshot", "--budget", "0s", "--json")

    assert ran.code == 50
    assert ran.error()["code"] == "run.budget"
    assert ran.json()["sequence"] is None
    check("snapshot", ran.json())
    assert fresh.run("snapshot").code == 0


@pytest.mark.parametrize("budget", ["", "5", "1d", "-1s", "m", "1h30m"])
def test_a_budget_that_is_no_duration_is_refused(kept: Cli, budget: str) -> None:
    """A number without a unit means different things to different people."""
    ran = kept.run("snapshot", f"--budget={budget}", "--json")

    assert (ran.code, ran.error()["code"]) == (2, "config.duration")


def test_an_unknown_type_is_refused(kept: Cli) -> None:
    """A typing mistake must not become the type of a signed manifest."""
    assert kept.run("snapshot", "--type", "weekly", "--json").error()["code"] == "config.usage"
    assert kept.run("log", "--type", "weekly", "--json").error()["code"] == "config.type"


def test_a_missing_root_ends_with_13(fresh: Cli) -> None:
    """A disk that is not mounted must not become an empty snapshot."""
    _root(fresh).rename(fresh.home / "agent" / "elsewhere")

    ran = fresh.run("snapshot", "--json")

    assert (ran.code, ran.error()["code"]) == (13, "source.root-missing")
    assert fresh.run("log").stdout == b""


def test_a_second_run_is_told_that_the_first_holds_the_lock(fresh: Cli) -> None:
    """Two writers at once would fork the chain."""
    with open(fresh.repository() / "lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ran = fresh.run("snapshot", "--json")
        reading = fresh.run("log", "--json")

    assert (ran.code, ran.error()["code"]) == (11, "run.locked")
    assert reading.code == 0


def test_a_full_disk_ends_a_snapshot_with_14(fresh: Cli, small_disk: Path) -> None:
    """A full disk is no missing source, and leaves no manifest."""
    (small_disk / "ballast").unlink()
    repository = small_disk / "repo"
    subprocess.run(["cp", "-a", str(fresh.repository()), str(repository)], check=True)
    (_root(fresh) / "big").write_bytes(os.urandom(200_000))

    ran = fresh.run("snapshot", "--json", DURAREPO_REPO=str(repository))

    assert ran.code == 14
    assert str(ran.error()["code"]) in ("store.full", "store.space")
    assert fresh.run("log", DURAREPO_REPO=str(repository)).stdout == b""


# --- reading -------------------------------------------------------------------------------


def test_log_lists_the_newest_first(kept: Cli) -> None:
    """The one that is looked for is nearly always the last."""
    rows = kept.run("log", "--json").items()

    assert [row["sequence"] for row in rows] == [2, 1]
    assert kept.run("log", "--limit", "1", "--json").items() == rows[:1]
    assert kept.run("log", "--type", "auto", "--json").items() == []
    assert len(kept.run("log").out.splitlines()) == 2
    for row in rows:
        check("log", row)
    assert kept.run("log", "--limit", "0").code == 2


def test_show_tells_all_of_a_manifest(kept: Cli) -> None:
    """What a manifest needs can be fetched by name only if it is named."""
    told = kept.run("show", "2", "--json").json()

    check("show", told)
    objects = told["objects"]
    assert isinstance(objects, list)
    for one in objects:
        name = one["name"]
        path = kept.repository() / "objects" / name[:2] / name
        assert path.stat().st_size == one["size"]
    assert "manifest 2, manual, complete" in kept.run("show", "latest").out
    assert kept.run("show", "2", "--ledger").stdout == b""


def test_ls_lists_every_name_with_its_bytes(kept: Cli) -> None:
    """A name that is not UTF-8 has to be found again as well."""
    root = os.fsencode(_root(kept))
    rows = kept.run("ls", "2", "--recursive", "--json").items()

    paths = [_bytes_of(row) for row in rows]
    want = {*NAMES, b"deep", b"deep/er", b"new.txt", b"link"}
    assert set(paths) == {root, *(root + b"/" + name for name in want)}
    for row in rows:
        check("path", row)
    text = kept.run("ls", "2", "--recursive")
    assert len(text.out.splitlines()) == len(rows)
    assert "\x1b" not in text.out
    (link,) = kept.run("ls", "2", "link", "--json").items()
    assert (link["type"], link["target"]) == ("symlink", "a.txt")
    (file,) = kept.run("ls", "2", "a.txt", "--json").items()
    assert file["sha256"] == hashlib.sha256(b"changed").hexdigest()


@pytest.mark.parametrize("name", NAMES)
def test_cat_prints_the_bytes_of_a_file(kept: Cli, name: bytes) -> None:
    """Byte for byte, whatever its name."""
    ran = kept.run("cat", "2", name)

    assert ran.code == 0
    assert ran.stdout == (_root(kept) / os.fsdecode(name)).read_bytes()
    assert ran.stderr == b""


def test_diff_tells_what_changed(kept: Cli) -> None:
    """Before a restore one wants to know what it would bring back."""
    rows = kept.run("diff", "1", "2", "--json").items()

    found = {(row["change"], Path(str(row["path"])).name) for row in rows}
    assert found == {("added", "new.txt"), ("removed", "gone.txt"), ("modified", "a.txt")}
    for row in rows:
        check("change", row)
    signs = {line[0] for line in kept.run("diff", "1", "2").out.splitlines()}
    assert signs == {"+", "-", "*"}
    assert kept.run("diff", "2").stdout == kept.run("diff", "2", "working").stdout == b""


def test_find_takes_a_pattern_on_the_whole_path(kept: Cli) -> None:
    """One file of a million, and one manifest of many."""
    rows = kept.run("find", "*/b.txt", "--json").items()

    assert [Path(str(row["path"])).name for row in rows] == ["b.txt"]
    assert kept.run("find", "*/B.TXT").stdout == b""
    assert kept.run("find", "*/gone.txt").stdout == b""
    assert len(kept.run("find", "*/gone.txt", "--at", "1").out.splitlines()) == 1
    for row in rows:
        check("path", row)


SEQUENCES = ["0", "3", "99999999999999999999", "-1", "latest~2", "latest~-1", "1999-01-01", "x", ""]


@pytest.mark.parametrize("wanted", SEQUENCES)
@pytest.mark.parametrize(
    "call", [["show"], ["ls"], ["diff"], ["find", "*", "--at"], ["checkout", "--at"]], ids=" ".join
)
def test_a_sequence_that_does_not_exist_ends_with_2(
    kept: Cli, call: list[str], wanted: str
) -> None:
    """Another manifest than the one asked for would be the wrong one."""
    end = ["--"] if call[-1] != "--at" else []
    value = [f"--at={wanted}"] if call[-1] == "--at" else [wanted]

    ran = kept.run(*[one for one in call if one != "--at"], "--json", *end, *value)

    assert ran.code == 2
    assert str(ran.error()["code"]) in ("select.no-sequence", "select.sequence")
    assert not (kept.home / "var" / "state" / "scratch").exists()


@pytest.mark.parametrize("wanted", ["2", "latest", "latest~0"])
def test_a_sequence_can_be_named_in_several_ways(kept: Cli, wanted: str) -> None:
    """People know the newest, scripts the number, and after a loss one knows the day."""
    today = time.strftime("%Y-%m-%d", time.gmtime())

    assert kept.run("show", wanted, "--json").json()["sequence"] == 2
    assert kept.run("show", "latest~1", "--json").json()["sequence"] == 1
    assert kept.run("show", today, "--json").json()["sequence"] == 2
    assert kept.run("show", f"{today}T23:59:59Z", "--json").json()["sequence"] == 2


@pytest.mark.parametrize(
    "call",
    [
        ["ls", "2", "nowhere"],
        ["ls", "2", "/nowhere"],
        ["ls", "2", "../notes"],
        ["ls", "2", ""],
        ["cat", "2", "nowhere"],
        ["cat", "2", "deep"],
        ["cat", "2", "link"],
        ["checkout", "--path", "nowhere"],
        ["checkout", "--component", "sqlite:/nowhere"],
        ["checkout", "--component", "nonsense"],
    ],
    ids=" ".join,
)
def test_a_path_or_component_that_does_not_exist_ends_with_2(kept: Cli, call: list[str]) -> None:
    """An empty answer would look like an empty folder."""
    ran = kept.run(*call)

    assert ran.code == 2
    assert ran.stdout == b""
    assert "[select." in ran.err
    assert not (kept.home / "var" / "state" / "scratch").exists()


@pytest.mark.parametrize("name", ["show", "ls", "cat", "diff", "find"])
def test_a_missing_argument_is_told(kept: Cli, name: str) -> None:
    """Every command that needs something says what."""
    ran = kept.run(name)

    assert ran.code == 2
    assert "missing argument" in ran.err


def test_cat_has_no_json(kept: Cli) -> None:
    """Bytes of a file are no JSON, and half of each would be neither."""
    ran = kept.run("cat", "2", "a.txt", "--json")

    assert (ran.code, ran.error()["code"]) == (2, "config.usage")


def test_a_reader_that_leaves_a_list_ends_it_with_0(kept: Cli) -> None:
    """``durarepo ls … | head`` is everyday use."""
    reader, writer = os.pipe()
    os.close(reader)

    done = subprocess.run(
        kept.command("ls", "2", "--recursive"),
        env=kept.environment,
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)

    assert (done.returncode, done.stderr) == (0, b"")


# --- checkout and held ----------------------------------------------------------------------


def test_checkout_restores_everything_and_holds_it(kept: Cli, tmp_path: Path) -> None:
    """The one thing that all the rest is for."""
    out = tmp_path / "out"

    ran = kept.run("checkout", "--scratch", str(out), "--json")

    assert ran.code == 0
    check("checkout", ran.json())
    restored = out / str(_root(kept)).lstrip("/")
    for name in NAMES:
        path = os.fsdecode(name)
        assert (restored / path).read_bytes() == (_root(kept) / path).read_bytes()
    held = kept.run("held", str(out), "--json")
    assert (held.code, held.json()["held"], held.json()["sequence"]) == (31, True, 2)
    check("held", held.json())


def test_everything_below_a_held_folder_is_held(kept: Cli, tmp_path: Path) -> None:
    """A launcher starts from the folder that it knows, deep inside of what was restored."""
    out = tmp_path / "out"
    assert kept.run("checkout", "--scratch", str(out)).code == 0
    inside = out / str(_root(kept)).lstrip("/")
    (tmp_path / "way").symlink_to(inside)

    assert kept.run("held", str(inside)).code == 31
    assert kept.run("held", str(tmp_path / "way")).code == 31


def test_a_folder_without_a_marker_is_free(cli: Cli) -> None:
    """A launcher must be able to start what was never restored."""
    ran = cli.run("held", str(cli.home), "--json")

    assert (ran.code, ran.json()) == (
        0,
        {"ok": True, "held": False, "since": None, "sequence": None},
    )
    check("held", ran.json())


@pytest.mark.parametrize("damage", ["empty", "garbage", "folder", "provenance", "link", "file"])
def test_a_marker_that_cannot_be_read_holds(cli: Cli, damage: str) -> None:
    """In doubt nothing starts: two agents of one memory are worse than none."""
    own = cli.home / ".durarepo"
    if damage == "link":
        own.symlink_to("nowhere")
    elif damage == "file":
        own.write_bytes(b"")
    else:
        own.mkdir()
    if damage == "empty":
        (own / "held.json").write_bytes(b"")
    if damage == "garbage":
        (own / "held.json").write_bytes(b"\xff" * 100)
    if damage == "folder":
        (own / "held.json").mkdir()
    if damage == "provenance":
        (own / "provenance.json").write_bytes(b"{}")

    ran = cli.run("held", str(cli.home), "--json")

    assert ran.code == 31
    check("held", ran.json())


def test_a_dry_run_lists_and_writes_nothing(kept: Cli, tmp_path: Path) -> None:
    """One wants to see before one waits."""
    out = tmp_path / "out"

    ran = kept.run("checkout", "--scratch", str(out), "--dry-run", "--path", "deep")
    told = kept.run("checkout", "--scratch", str(out), "--dry-run", "--path", "deep", "--json")

    assert ran.code == told.code == 0
    assert f"{_root(kept)}/deep/er/b.txt" in ran.out.splitlines()
    assert (told.json()["files"], told.json()["held"]) == (1, False)
    assert not out.exists()


@pytest.mark.parametrize("where", ["exists", "root", "repository", "keys"])
def test_a_destination_that_is_refused_ends_with_31(kept: Cli, tmp_path: Path, where: str) -> None:
    """A restore replaces nothing, and never lands in what is kept."""
    places = {
        "exists": tmp_path,
        "root": _root(kept) / "out",
        "repository": Path("/var/lib/durarepo/notes/out")
        if os.geteuid() == 0
        else kept.repository() / "out",
        "keys": kept.keys() / "out",
    }

    ran = kept.run("checkout", "--scratch", str(places[where]), "--json")
    dry = kept.run("checkout", "--scratch", str(places[where]), "--dry-run", "--json")

    assert ran.code == dry.code == 31
    assert str(ran.error()["code"]).startswith("policy.destination-")
    assert dry.error() == ran.error()


def test_a_destination_without_a_parent_ends_with_2(kept: Cli, tmp_path: Path) -> None:
    """A typing mistake in a path makes no row of folders."""
    ran = kept.run("checkout", "--scratch", str(tmp_path / "a" / "b"), "--json")

    dry = kept.run("checkout", "--scratch", str(tmp_path / "a" / "b"), "--dry-run", "--json")

    assert (ran.code, ran.error()["code"]) == (2, "config.destination")
    assert (dry.code, dry.error()["code"]) == (2, "config.destination")
    assert not (tmp_path / "a").exists()


def test_the_usual_destination_is_in_the_state_folder(kept: Cli, tmp_path: Path) -> None:
    """Without a name it goes where nothing is in the way."""
    cli = copied(kept, tmp_path)
    place = cli.home / "var" / "state" / "scratch" / "notes-2"

    dry = cli.run("checkout", "--dry-run", "--json")
    was_made = place.parent.exists()
    ran = cli.run("checkout", "--scratch", "--json")

    assert (dry.code, was_made) == (0, False)
    assert ran.json()["destination"] == str(place)
    assert cli.run("checkout", "--json").code == 31
    assert cli.run("checkout", "--dry-run", "--json").code == 31


# --- status, keys, registry, explain, quickstart --------------------------------------------


def test_status_is_one_screen(kept: Cli) -> None:
    """What one looks at every day must be short."""
    told = kept.run("status", "--json").json()

    check("status", told)
    assert (told["stream"], told["head"], told["overdue"]) == ("notes", 2, False)
    assert len(kept.run("status").out.splitlines()) <= 24


def test_status_before_the_first_snapshot_is_overdue(fresh: Cli) -> None:
    """A stream that was only made keeps nothing."""
    told = fresh.run("status", "--json").json()

    check("status", told)
    assert (told["head"], told["overdue"], told["last_success"]) == (None, True, None)


def test_status_tells_of_a_run_that_failed_until_one_succeeds(fresh: Cli) -> None:
    """A timer that fails each night must not look like one that works."""
    assert fresh.run("snapshot").code == 0
    root = _root(fresh)
    root.rename(root.with_name("away"))
    failed = fresh.run("snapshot", "--json")
    told, said = fresh.run("status", "--json"), fresh.run("status")
    root.with_name("away").rename(root)
    assert fresh.run("snapshot").code == 0
    after = fresh.run("status", "--json").json()

    check("status", told.json())
    assert told.code == 0
    assert told.json()["last_failure"]["code"] == failed.error()["code"]  # type: ignore[index]
    assert str(failed.error()["code"]) in said.out
    assert after["last_failure"] is None


def test_status_without_state_does_not_guess_when_it_was_last_kept(fresh: Cli) -> None:
    """After a loss the copy may be fresh or old; "never" is neither."""
    assert fresh.run("snapshot").code == 0
    shutil.rmtree(fresh.home / "var" / "state")

    told = fresh.run("status", "--json").json()

    check("status", told)
    assert (told["head"], told["overdue"], told["last_success"]) == (1, None, None)


def test_a_file_that_leaves_for_its_content_is_named(fresh: Cli) -> None:
    """A count alone is overlooked, and the work behind it is in no backup."""
    secret = "ghp_" + secrets.token_hex(18)
    assert fresh.run("snapshot").code == 0
    for number in range(5):
        (_root(fresh) / f"tool{number}.py").write_text(f'TOKEN = "{secret}"\n')

    ran = fresh.run("snapshot")

    assert ran.code == 0
    assert ran.err.count(str(_root(fresh) / "tool")) == 3
    assert "show latest --ledger" in ran.err
    assert secret not in ran.err + ran.out
    why = fresh.run("exclude", "explain", str(_root(fresh) / "tool0.py"))
    assert "take the secret out" in why.out
    (_root(fresh) / "tool9.py").write_text(f'TOKEN = "{secret}"\n')
    again = fresh.run("snapshot", "--json").json()
    check("snapshot", again)
    assert [_bytes_of(one) for one in again["newly_left"]] == [bytes(_root(fresh) / "tool9.py")]  # type: ignore[attr-defined]


def test_keys_and_registry_are_listed(kept: Cli) -> None:
    """Who may open and sign is public; the keys are not."""
    keys, registry = kept.run("keys", "list", "--json"), kept.run("registry", "show", "--json")

    check("keys", keys.json())
    check("registry", registry.json())
    listed = keys.json()["keys"]
    assert isinstance(listed, list)
    away = {one["kind"] for one in listed if one["belongs_elsewhere"] and one["present"]}
    assert away == {"owner", "card", "keys-file"}
    for name in ("keys", "registry"):
        text = kept.run(name, "list" if name == "keys" else "show")
        assert text.code == 0
        assert len(text.out.splitlines()) > 5


def test_explain_takes_a_code_as_it_is_printed(cli: Cli) -> None:
    """It is copied out of an error, brackets and all."""
    told = cli.run("explain", "[trust.rollback]", "--json").json()

    check("explain", told)
    assert (told["code"], told["exit"]) == ("trust.rollback", 21)
    assert cli.run("explain", "trust.rollback").out.startswith("trust.rollback, exit code 21\n")
    assert cli.run("explain", "trust.rolback", "--json").error()["code"] == "select.no-code"


def test_quickstart_goes_from_nothing_to_a_provencopied(cli: Cli) -> None:
    """The first command of the README is the first impression."""
    root = cli.home / "agent" / "My Notes!"
    root.mkdir()
    fill(root)

    text = cli.run("quickstart", str(root))
    told = cli.run("quickstart", str(root), "--json")

    assert text.code == told.code == 0
    check("quickstart", told.json())
    assert "made stream my-notes" in text.out
    assert (told.json()["stream"], told.json()["sequence"]) == ("my-notes", 2)
    assert told.json()["verified"] is True
    assert told.json()["compared"] == len(NAMES)


def test_quickstart_tells_what_it_left_out(cli: Cli) -> None:
    """Who reads that every byte was verified must also read which ones are not there."""
    root = cli.home / "agent" / "left"
    (root / "novel").mkdir(parents=True)
    (root / "a").write_bytes(b"a")
    (root / ".env").write_bytes(b"NAME=value\n")
    tag = b"Signature: 8a477f597d28d172789f06886806bc55"
    (root / "novel" / "CACHEDIR.TAG").write_bytes(tag)
    (root / "novel" / "chapter.md").write_bytes(b"text")

    text = cli.run("quickstart", str(root))
    told = cli.run("quickstart", str(root), "--json").json()

    assert told["excluded"] == 2
    assert "excluded  2" in text.out
    assert "novel" in text.out


def test_quickstart_refuses_what_it_cannot_keep(cli: Cli) -> None:
    """It makes nothing before it knows that it can."""
    assert cli.run("quickstart", "nowhere", "--json").code == 13
    assert cli.run("quickstart", "/etc/hostname", "--json").code == 13
    assert cli.run("quickstart", "agent", "--repo", "x", "--json").code == 2
    assert cli.run("quickstart").code == 2
    assert list((cli.home / "var").iterdir()) == []


def test_progress_goes_to_stderr_and_only_as_asked(kept: Cli, tmp_path: Path) -> None:
    """A bar in a log is noise, and on stdout it would be damage."""
    cli = copied(kept, tmp_path)

    plain = cli.run("snapshot")
    machine = cli.run("snapshot", "--progress", "json", "--json")

    assert plain.stderr == b""
    machine.json()
    lines = [json.loads(line) for line in machine.stderr.splitlines()]
    assert lines
    for line in lines:
        check("progress", line)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_snapshot_that_is_stopped_leaves_nothing_half_done(
    fresh: Cli, number: int, code: int
) -> None:
    """A shutdown in the middle of a run is everyday life."""
    for at in range(3000):
        (_root(fresh) / f"{at:04}").write_bytes(os.urandom(3000))
    process = subprocess.Popen(
        fresh.command("snapshot", "--progress", "json", "--json"),
        env=fresh.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    process.stderr.readline()
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    ran = checked(Ran(process.returncode, stdout, stderr))

    assert ran.code == code
    assert str(ran.error()["code"]) in ("run.terminated", "run.interrupted")
    assert fresh.run("log").stdout == b""
    assert fresh.run("snapshot", "--json").json()["sequence"] == 1
    assert fresh.run("verify", "--data").code == 0


def test_a_list_that_fails_ends_with_the_error_as_its_last_line(fresh: Cli) -> None:
    """Half a list must not be taken for a whole one."""
    for folder in range(40):
        (_root(fresh) / f"{folder:02}").mkdir()
        for at in range(100):
            (_root(fresh) / f"{folder:02}" / f"{at:03}-{'x' * 200}").touch()
    assert fresh.run("snapshot").code == 0
    told = fresh.run("show", "1", "--json").json()["objects"]
    assert isinstance(told, list)
    (name,) = [str(one["name"]) for one in told if one["kind"] == "pack"][:1]
    path = fresh.repository() / "objects" / name[:2] / name
    data = bytearray(path.read_bytes())
    for at in range(200, len(data), 4096):
        data[at] ^= 1
    path.chmod(0o600)
    path.write_bytes(data)

    ran = fresh.run("ls", "1", "--recursive", "--json")

    assert ran.code == 20
    assert str(ran.error()["code"]).startswith("integrity.")
    assert ran.stderr == b""


# --- exclude --------------------------------------------------------------------------------


def test_exclude_tells_what_would_be_left_out_without_a_repository(cli: Cli) -> None:
    """One asks before the first snapshot, not after it."""
    root = _root(cli)
    (root / ".ssh").mkdir(parents=True)
    (root / ".ssh" / "id_ed25519").write_text("not a key, but in its place")
    (root / "a.txt").write_text("plain")
    call = ["--root", str(root), "--json"]

    rows = cli.run("exclude", "test", "a.txt", ".ssh/id_ed25519", "nowhere.txt", *call).items()
    why = cli.run("exclude", "explain", ".ssh/id_ed25519", *call).json()

    assert [row["decision"] for row in rows] == ["include", "exclude", "include"]
    for row in rows:
        check("exclude", row)
    check("exclude-explain", why)
    assert (why["decision"], why["waivable"]) == ("exclude", False)


def test_exclude_asks_the_stream_in_which_a_path_lies(fresh: Cli) -> None:
    """Who asks why a file is missing must hear of the pattern that leaves it out."""
    path = _root(fresh) / "deep" / "er" / "notes.txt"
    assert fresh.run("exclude", "add", "deep").code == 0

    why = fresh.run("exclude", "explain", str(path), "--json").json()
    said = fresh.run("exclude", "explain", str(path)).out
    (row,) = fresh.run("exclude", "test", str(path), "--json").items()
    bare = fresh.run("exclude", "explain", str(path), "--root", str(_root(fresh)), "--json").json()
    outside = fresh.run("exclude", "test", "/etc", "--repo", str(fresh.repository()), "--json")

    check("exclude-explain", why)
    assert (why["rule"], why["above"]) == ("operator", str(_root(fresh) / "deep"))
    assert (row["decision"], row["rule"]) == ("exclude", "operator")
    assert "operator" in said
    assert (bare["decision"], bare["above"]) == ("include", None)
    assert (outside.code, outside.error()["code"]) == (2, "select.outside")


def test_exclude_add_and_allow_change_the_configuration(fresh: Cli) -> None:
    """What is added by command must be what a snapshot then does."""
    header = "-" * 5 + "BEGIN " + "OPENSSH PRIVATE KEY" + "-" * 5
    (_root(fresh) / "manual.md").write_text(f"A key begins with `{header}`.\n")

    added = fresh.run("exclude", "add", "deep", "--json")
    allowed = fresh.run(
        "exclude", "allow", str(_root(fresh) / "manual.md"), "--reason", "text", "--json"
    )

    assert added.code == allowed.code == 0
    check("exclude-add", added.json())
    check("exclude-allow", allowed.json())
    text = (fresh.repository() / "stream.toml").read_text()
    assert '"deep"' in text
    assert "[[allow]]" in text
    assert fresh.run("status").code == 0
    refused = fresh.run("exclude", "allow", str(_root(fresh) / "a.txt"), "--reason", "x", "--json")
    assert refused.code in (2, 31)


def test_paths_are_meant_from_the_folder_one_stands_in(fresh: Cli, tmp_path: Path) -> None:
    """All commands have to understand the path that one sees in the folder."""
    assert fresh.run("snapshot").code == 0
    here = _root(fresh) / "deep"
    path = str(here / "er" / "b.txt")

    for given in ("er/b.txt", "./er/b.txt", "../deep/er/b.txt", "deep/er/b.txt"):
        assert path in fresh.run("ls", "1", given, folder=here).out, given
        assert fresh.run("cat", "1", given, folder=here).code == 0, given
    for pattern in ("b.*", "er/*", "./er/b*"):
        assert path in fresh.run("find", pattern, folder=here).out, pattern
    out = tmp_path / "out"
    ran = fresh.run("checkout", "--path", "./er", "--scratch", str(out), folder=here)
    assert ran.code == 0
    assert (out / path.lstrip("/")).exists()
    assert fresh.run("ls", "1", "./a.txt", "--json").error()["code"] == "select.path"
