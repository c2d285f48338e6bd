"""``durarepo verify``: what is wrong is named, and its exit code tells damage from distrust."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.harness import Cli
from tests.cli.schema import check


@pytest.fixture
def kept(fresh: Cli) -> Cli:
    """A stream with two manifests."""
    assert fresh.run("snapshot").code == 0
    (fresh.home / "agent" / "notes" / "more").write_bytes(b"more")
    assert fresh.run("snapshot").code == 0
    return fresh


def _objects(cli: Cli, sequence: int, kind: str) -> list[Path]:
    told = cli.run("show", str(sequence), "--json").json()["objects"]
    assert isinstance(told, list)
    names = [str(one["name"]) for one in told if one["kind"] == kind]
    return [cli.repository() / "objects" / name[:2] / name for name in names]


@pytest.mark.parametrize("option", [[], ["--chain"], ["--packs"], ["--data"], ["--data=50"]])
def test_a_whole_repository_verifies_at_every_level(kept: Cli, option: list[str]) -> None:
    """Each level includes those before, and all pass where nothing is wrong."""
    told = kept.run("verify", *option, "--json")

    assert told.code == 0
    check("verify", told.json())
    level = option[0][2:].partition("=")[0] if option else "packs"
    assert (told.json()["level"], told.json()["head"]) == (level, 2)
    share = ", 50 %" if option == ["--data=50"] else ""
    assert kept.run("verify", *option).out.startswith(f"verified: level {level}{share}, head 2\n")


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(data)


def _cut(path: Path) -> None:
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("harm", "kind"), [(Path.unlink, "missing"), (_flip, "corrupt"), (_cut, "short")]
)
def test_a_harmed_pack_ends_with_20_and_is_named(
    kept: Cli, harm: Callable[[Path], None], kind: str
) -> None:
    """What is wrong has to be found before it is needed."""
    pack = _objects(kept, 2, "pack")[0]
    harm(pack)

    text, told = kept.run("verify"), kept.run("verify", "--json")

    assert text.code == told.code == 20
    check("verify", told.json())
    assert told.error()["code"] == "integrity.verify"
    problems = told.json()["problems"]
    assert isinstance(problems, list)
    assert [(one["object"], one["kind"]) for one in problems] == [(pack.name, kind)]
    assert pack.name in text.out
    assert "[integrity.verify]" in text.err


def test_what_was_stored_again_concerns_the_old_manifest_only(fresh: Cli) -> None:
    """Who has made a new snapshot wants to know whether that was enough."""
    for name in ("one", "two"):
        assert fresh.run("snapshot").code == 0
        (fresh.home / "agent" / "notes" / name).write_bytes(name.encode())
    for pack in _objects(fresh, 2, "pack"):
        pack.unlink()
    damaged = fresh.run("verify")
    assert fresh.run("snapshot").code == 0

    text, told = fresh.run("verify"), fresh.run("verify", "--json")

    assert text.code == told.code == 20
    assert "    concerns manifests 1, 2, the newest\n" in damaged.out
    assert "    concerns manifests 1, 2; the newest is whole\n" in text.out
    assert "the newest manifest is whole" in text.err
    assert told.json()["newest_whole"] is True
    check("verify", told.json())


def test_status_tells_of_a_failure_until_a_verify_that_can_see_it_has_passed(kept: Cli) -> None:
    """A nightly verify fails unseen; whoever looks the next day must still be told."""
    never = kept.run("status", "--json").json()
    pack = _objects(kept, 2, "pack")[0]
    data = pack.read_bytes()
    _flip(pack)
    assert kept.run("verify").code == 20
    pack.write_bytes(data)
    assert kept.run("verify", "--chain").code == 0

    text, failed = kept.run("status"), kept.run("status", "--json").json()
    assert kept.run("verify").code == 0
    passed = kept.run("status", "--json").json()

    assert never["last_verify"] is None
    assert _short(failed) == ("packs", False, 1)
    assert _short(passed) == ("packs", True, 0)
    for told in (never, failed, passed):
        check("status", told)
    assert "level packs: failed, 1 problem\n" in text.out


def test_a_snapshot_warns_in_one_line_if_the_last_verify_failed(kept: Cli) -> None:
    """A nightly snapshot goes on well over a damaged repository."""
    pack = _objects(kept, 2, "pack")[0]
    data = pack.read_bytes()
    _flip(pack)
    assert kept.run("verify").code == 20

    warned, told = kept.run("snapshot"), kept.run("snapshot", "--json")
    pack.write_bytes(data)
    assert kept.run("verify").code == 0
    quiet = kept.run("snapshot")

    assert (warned.code, told.code, quiet.code) == (0, 0, 0)
    assert warned.err.count("the last verify failed") == 1
    assert told.err.count("the last verify failed") == 1
    check("snapshot", told.json())
    assert "verify" not in quiet.err


def _short(status: dict[str, object]) -> tuple[object, object, object]:
    last = status["last_verify"]
    assert isinstance(last, dict)
    return last["level"], last["ok"], last["problems"]


def test_a_manifest_that_was_taken_away_ends_with_21(kept: Cli) -> None:
    """An older state that is passed off as the newest is no damage but an attack."""
    _objects(kept, 2, "manifest")[0].unlink()

    told = kept.run("verify", "--chain", "--json")

    assert told.code == 21


def test_verify_changes_nothing(kept: Cli) -> None:
    """A check that repairs in passing hides what was wrong."""
    _flip(_objects(kept, 2, "pack")[0])

    def state() -> dict[str, bytes]:
        objects = kept.repository() / "objects"
        return {str(path): path.read_bytes() for path in objects.rglob("*") if path.is_file()}

    before = state()
    kept.run("verify", "--data")

    assert state() == before


@pytest.mark.parametrize(
    "call", [["--data=0"], ["--data=101"], ["--data=x"], ["--data=nan"], ["--chain", "--data"]]
)
def test_a_level_that_makes_no_sense_is_refused(kept: Cli, call: list[str]) -> None:
    """A share of nothing would pass."""
    ran = kept.run("verify", *call, "--json")

    assert (ran.code, ran.error()["code"]) == (2, "config.usage")


def test_without_a_snapshot_there_is_nothing_to_verify(fresh: Cli) -> None:
    """Nothing kept is no damage; status says that it is overdue."""
    told = fresh.run("verify", "--json")

    assert told.code == 0
    assert (told.json()["head"], told.json()["manifests"]) == (None, 0)
    check("verify", told.json())


def test_a_clock_that_runs_behind_ends_with_22(kept: Cli) -> None:
    """Whether something is expired cannot be told by a clock that is wrong."""
    marks = kept.state() / "high-water.json"
    program = (
        "import sys\n"
        "from durarepo.local.statefiles import StateFiles\n"
        "from dataclasses import replace\n"
        "files = StateFiles(sys.argv[1].encode())\n"
        "files.raise_high_water(replace(files.high_water(), clock_seconds=1 << 40))\n"
    )
    done = subprocess.run(
        [kept.command()[-3], "-c", program, str(marks.parent)],
        env=kept.environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    told = kept.run("verify", "--json")
    restore = kept.run("checkout", "--json")

    assert (told.code, told.error()["code"]) == (22, "fresh.clock")
    assert (restore.code, restore.error()["code"]) == (22, "fresh.clock")
