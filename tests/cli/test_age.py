"""What is expired is refused, shown at any age, and comes back only past a human."""

import time

import pytest

from tests.cli.conftest import fill
from tests.cli.harness import Cli, in_terminal, run_at
from tests.cli.schema import check

_DAY = 24 * 3600


@pytest.fixture
def old(cli: Cli) -> Cli:
    """A stream whose only manifest was made two days ago."""
    return _made(cli, days=2)


def _made(cli: Cli, *, days: int) -> Cli:
    root = cli.home / "agent" / "notes"
    root.mkdir()
    fill(root)
    init = run_at(cli, -days * _DAY, "init", "--stream", "notes", "--root", str(root))
    assert init.code == 0
    assert run_at(cli, -days * _DAY, "snapshot").code == 0
    return cli


@pytest.mark.parametrize("call", [["checkout"], ["cat", "1", "a.txt"]], ids=" ".join)
def test_what_gives_out_data_refuses_an_expired_manifest(old: Cli, call: list[str]) -> None:
    """An old state that is taken for the new one does harm (A6c)."""
    ran = old.run(*call)

    assert ran.code == 22
    assert ran.stdout == b""
    assert "[fresh.expired]" in ran.err
    assert "durarepo checkout --archival --at 1" in ran.err
    assert not (old.state().parent / "scratch").exists()


@pytest.mark.parametrize(
    "call", [["log"], ["show", "1"], ["ls", "1"], ["diff", "1"], ["find", "*"]], ids=" ".join
)
def test_what_reads_listings_reads_any_age(old: Cli, call: list[str]) -> None:
    """To know what there is one need not restore it."""
    assert old.run(*call).code == 0
    assert old.run(*call, "--json").code == 0


def test_an_expired_head_alone_is_no_problem(old: Cli) -> None:
    """Bytes do not spoil with time; but data that may not be decrypted is not verified."""
    for level in ("--chain", "--packs"):
        told = old.run("verify", level, "--json")

        assert told.code == 0, level
        assert told.json()["expired"] is True
        check("verify", told.json())
    whole = old.run("verify", "--data", "--json")
    assert whole.code == 21
    assert [one["kind"] for one in list(whole.json()["problems"])] == ["expired"]  # type: ignore[call-overload]
    assert "a new snapshot" in str(whole.error()["hint"])
    assert old.run("status", "--json").json()["overdue"] is True
    assert "expired" in old.run("log").out


def test_a_human_brings_an_expired_manifest_back(old: Cli) -> None:
    """After a loss this is the usual way; the day in the answer is that of issue."""
    day = time.strftime("%Y-%m-%d", time.gmtime(time.time() - 2 * _DAY))
    out = old.home / "out"

    refused = in_terminal(
        *(old, "checkout", "--archival", "--scratch", str(out)),
        answers=[f"notes {time.strftime('%Y-%m-%d', time.gmtime())}".encode()] * 3,
    )
    assert not out.exists()
    done = in_terminal(
        *(old, "checkout", "--archival", "--scratch", str(out)), answers=[f"notes {day}".encode()]
    )

    assert (refused.code, done.code) == (31, 0)
    assert out.is_dir()
    assert old.run("held", str(out)).code == 31


def test_each_thing_set_aside_is_asked_for(cli: Cli) -> None:
    """One yes to all would hide what one agrees to."""
    _made(cli, days=500)
    shown = in_terminal(cli, "checkout", "--archival", answers=[])
    first = shown.err.split('type "')[1].split('"')[0]

    ran = in_terminal(cli, "checkout", "--archival", answers=[first.encode(), b"notes registry 1"])

    assert ran.code == 0
    assert ran.err.count("\n> ") == 2
    assert in_terminal(cli, "checkout", "--archival", answers=[first.encode()]).code == 31


def test_a_snapshot_under_an_expired_registry_stands_and_ends_with_22(cli: Cli) -> None:
    """Keeping goes on, and somebody has to learn of it."""
    _made(cli, days=500)

    told = cli.run("snapshot", "--json")
    text = cli.run("snapshot")

    assert told.code == text.code == 22
    assert told.error()["code"] == "fresh.registry-expired"
    assert told.json()["sequence"] == 2
    check("snapshot", told.json())
    assert "manifest 3: ok" in text.out
    assert len(cli.run("log").out.splitlines()) == 3


def test_a_clock_that_was_set_back_is_told(fresh: Cli) -> None:
    """A clock in the past would make everything fresh again."""
    assert fresh.run("snapshot").code == 0

    ran = run_at(fresh, -2 * _DAY, "checkout", "--json")

    assert (ran.code, str(ran.error()["code"])[:6]) == (22, "fresh.")
