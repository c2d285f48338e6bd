"""Wrong calls: each is answered with one line, a hint, its code and its exit code."""

import os
from pathlib import Path

import pytest

from durarepo import __version__
from durarepo_cli.program import COMMANDS
from tests.cli.harness import Cli

WRONG = [
    [],
    ["sanpshot"],
    ["--no-such-option"],
    ["status", "--no-such-option"],
    ["status", "left over"],
    ["status", "--progress"],
    ["status", "--progress", "loud"],
    ["status", "--json=yes"],
    ["keys"],
    ["keys", "lst"],
    ["registry"],
    ["exclude"],
    ["exclude", "test"],
    ["exclude", "allow", "x"],
    ["held"],
    ["explain"],
    ["init"],
    ["init", "--stream"],
    ["init", "--stream", "notes", "--put-only=no"],
]


@pytest.mark.parametrize("call", WRONG, ids=" ".join)
def test_a_wrong_call_ends_with_2_and_one_error(cli: Cli, call: list[str]) -> None:
    """A script that mistypes must never be taken for one that succeeded."""
    ran = cli.run(*call)

    assert ran.code == 2
    assert ran.stdout == b""
    assert ran.err.startswith("durarepo: error: ")
    assert ran.err.splitlines()[0].endswith("[config.usage]")
    assert ran.err.splitlines()[1].startswith("durarepo: hint: see how it is called: durarepo ")
    assert len(ran.err.splitlines()) == 2


@pytest.mark.parametrize("call", WRONG, ids=" ".join)
@pytest.mark.parametrize("place", [0, -1], ids=["before", "after"])
def test_a_wrong_call_with_json_is_told_in_json_alone(
    cli: Cli, call: list[str], place: int
) -> None:
    """Who reads JSON reads nothing else, so an error outside of it would be lost."""
    whole = ["--json", *call] if place == 0 else [*call[:1], "--json", *call[1:]]

    ran = cli.run(*whole)

    assert ran.code == 2
    assert ran.stderr == b""
    assert ran.error()["code"] == "config.usage"
    assert ran.error()["hint"]


def test_json_behind_the_end_of_options_is_a_name(cli: Cli) -> None:
    """What follows ``--`` is never an option."""
    ran = cli.run("held", "--", "--json")

    assert ran.code == 2
    assert "[select.no-folder]" in ran.err


@pytest.mark.parametrize("call", [["status"], ["keys", "list"], ["registry", "show"]], ids=" ".join)
def test_without_a_repository_a_command_ends_with_10(cli: Cli, call: list[str]) -> None:
    """A wrong HOME must not look like an empty stream."""
    ran = cli.run(*call, "--json")

    assert ran.code == 10
    assert ran.error()["code"] == "repository.absent"


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_named_repository_that_is_not_there_ends_with_10(cli: Cli, place: str) -> None:
    """The place that was named is the one that is used, or none."""
    option = ["--repo", str(cli.home / "nowhere")]

    ran = cli.run(
        *(option if place == "before" else []), "status", *(option if place == "after" else [])
    )

    assert ran.code == 10
    assert "nowhere" in ran.err


def test_an_empty_repository_option_is_refused(fresh: Cli) -> None:
    """``--repo "$UNSET"`` must not fall back to whatever repository is there."""
    ran = fresh.run("status", "--repo", "")

    assert ran.code == 2
    assert "[config.usage]" in ran.err


def test_two_repositories_are_listed_and_none_is_chosen(fresh: Cli) -> None:
    """A guess between two streams would keep or show the wrong one."""
    second = fresh.home / "agent" / "second"
    second.mkdir()
    assert fresh.run("init", "--stream", "other", "--root", str(second)).code == 0

    ran = fresh.run("status", "--json")

    assert ran.code == 2
    assert ran.error()["code"] == "select.several"
    assert "/notes'" in str(ran.error()["message"])
    assert "/other'" in str(ran.error()["message"])
    assert fresh.run("status", DURAREPO_REPO=_inside(fresh, "other")).code == 0
    assert fresh.run("status", "--repo", _inside(fresh, "notes")).code == 0


def _inside(cli: Cli, stream: str) -> str:
    """Return a repository's path as the program sees it."""
    if os.geteuid() == 0:
        return f"/var/lib/durarepo/{stream}"
    return str(cli.repository(stream))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"stream = ", "config.invalid"),
        (b"\xff\xfe", "config.invalid"),
        (b'stream = "notes"\ncompartment = "notes"\nretries = 3\n', "config.unknown-key"),
        (b'stream = "notes"\ncompartment = "notes"\nretention_days = 0\n', "config.invalid"),
        (b'stream = "../x"\ncompartment = "notes"\n', "config.invalid"),
        (b"", "config.invalid"),
    ],
    ids=["toml", "utf8", "unknown", "bounds", "stream", "empty"],
)
def test_a_configuration_that_cannot_be_accepted_ends_with_2(
    fresh: Cli, text: bytes, code: str
) -> None:
    """A mistake in stream.toml must be named, not guessed around."""
    (fresh.repository() / "stream.toml").write_bytes(text)

    ran = fresh.run("status", "--json")

    assert ran.code == 2
    assert ran.error()["code"] == code


def test_a_configuration_that_is_no_file_ends_with_14(fresh: Cli) -> None:
    """What cannot be read is a matter of the store, not of the call."""
    (fresh.repository() / "stream.toml").unlink()
    (fresh.repository() / "stream.toml").mkdir()

    ran = fresh.run("status", "--json")

    assert ran.code == 14


@pytest.mark.parametrize(
    ("name", "mode", "code"),
    [
        ("signing.key", 0o644, "keys.mode"),
        ("naming.key", 0o640, "keys.mode"),
        ("identity.key", 0o604, "keys.mode"),
    ],
)
def test_a_key_that_others_may_read_ends_with_12(
    fresh: Cli, name: str, mode: int, code: str
) -> None:
    """A key that leaked is to be noticed before it is used (AICEP 10.5.5)."""
    (fresh.keys() / name).chmod(mode)

    ran = fresh.run("keys", "list", "--json")

    assert ran.code == 12
    assert ran.error()["code"] == code


@pytest.mark.parametrize("name", ["naming.key", "locator.key", "owner.pub"])
def test_a_missing_key_ends_with_12(fresh: Cli, name: str) -> None:
    """Without it nothing can be told apart, so nothing may be attempted."""
    (fresh.keys() / name).unlink()

    ran = fresh.run("status", "--json")

    assert ran.code == 12
    assert ran.error()["code"] == "keys.missing"


def test_keys_of_another_stream_are_refused(fresh: Cli) -> None:
    """Keys that were mixed up must not open or write anything."""
    second = fresh.home / "agent" / "second"
    second.mkdir()
    assert fresh.run("init", "--stream", "other", "--root", str(second)).code == 0
    for name in ("owner.pub", "locator.key"):
        (fresh.keys() / name).write_bytes((fresh.keys("other") / name).read_bytes())

    ran = fresh.run("status", "--repo", _inside(fresh, "notes"), "--json")

    assert ran.code in (20, 21)


@pytest.mark.parametrize(
    ("arguments", "exit_code", "code"),
    [
        (["--stream", "Notes", "--root", "."], 2, "config.stream"),
        (["--stream", "", "--root", "."], 2, "config.stream"),
        (["--stream", "../x", "--root", "."], 2, "config.stream"),
        (["--stream", "a" * 64, "--root", "."], 2, "config.stream"),
        (["--stream", "notes"], 2, "config.no-root"),
        (["--stream", "notes", "--root", "nowhere"], 13, "source.root-missing"),
        (["--stream", "notes", "--root", "/etc/hostname"], 13, "source.root-not-directory"),
        (["--stream", "notes", "--root", ".", "--put-only"], 2, "config.put-only"),
        (["--stream", "notes", "--root", ".", "--out", "x"], 2, "config.put-only"),
        (["--stream", "notes", "--root", ".", "--compartment", "B"], 2, "config.stream"),
        (["--stream", "notes", "--root", "agent", "--recipient", "nonsense"], 12, "keys.malformed"),
        (["--stream", "notes", "--root", ".", "--root", "agent"], 2, "config.roots-nested"),
        (["--stream", "notes", "--root", "."], 12, "keys.placement"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_init_that_is_refused_makes_nothing(
    cli: Cli, arguments: list[str], exit_code: int, code: str
) -> None:
    """Half a stream would stand in the way of the next try."""
    before = _names(cli.home)

    ran = cli.run("init", *arguments, "--json")

    assert (ran.code, ran.error()["code"]) == (exit_code, code)
    assert _names(cli.home) == before


def test_init_again_is_refused_and_changes_nothing(fresh: Cli) -> None:
    """A second init would replace the keys that open what is stored."""
    before = {path: path.read_bytes() for path in fresh.keys().iterdir()}

    ran = fresh.run("init", "--stream", "notes", "--root", str(fresh.home / "agent"), "--json")

    assert (ran.code, ran.error()["code"]) == (2, "config.exists")
    assert {path: path.read_bytes() for path in fresh.keys().iterdir()} == before


def _names(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


def test_init_on_a_full_disk_ends_with_14(cli: Cli, small_disk: Path) -> None:
    """A full disk is neither a wrong call nor a missing source."""
    ran = cli.run(
        "init",
        "--stream",
        "notes",
        "--root",
        "agent",
        "--json",
        DURAREPO_REPO=str(small_disk / "repo"),
    )

    assert (ran.code, ran.error()["code"]) == (14, "store.full")


def test_every_command_has_help_that_needs_nothing(cli: Cli) -> None:
    """Help is for those with whom nothing works yet."""
    for name, row in COMMANDS.items():
        ran = cli.run(name, "--help")

        assert ran.code == 0, name
        assert ran.out.startswith(f"Usage: durarepo {name}")
        assert ran.stderr == b""
        assert row.help in cli.run("--help").out


def test_version_is_printed_as_text_and_as_json(cli: Cli) -> None:
    """The first thing a report of a bug needs."""
    assert cli.run("--version").out == f"durarepo {__version__}\n"
    assert cli.run("--version", "--json").json() == {"ok": True, "version": __version__}
    assert cli.run("--json", "--version").json() == {"ok": True, "version": __version__}
