"""The power fails, or a process is killed, at any event: what was committed stands, work goes on.

The states come from recordings below the program (`trace.py`), laid out by a model that drops
and tears whatever was not synced (`disk.py`). A gate tries a share, by a seed that it prints;
`python -m tests.crash.long` tries as many as are asked for.
"""

import os
import random
import sys
from pathlib import Path

import pytest

from tests.crash import kills
from tests.crash.disk import KILL, LOST, TORN, Disk, lay_out, pictured
from tests.crash.recorded import RUNS, check_model, check_point, recorded
from tests.crash.trace import Call, parsed

POINTS = 14
ROUNDS = 50


def _chance() -> random.Random:
    seed = int(os.environ.get("DURAREPO_CRASH_SEED") or int.from_bytes(os.urandom(4)))
    sys.stdout.write(f"DURAREPO_CRASH_SEED={seed}\n")
    return random.Random(seed)  # noqa: S311  # no secret: which states are tried


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_power_failure_at_any_event_loses_nothing_that_was_committed(
    tmp_path: Path, name: str
) -> None:
    """What a disk keeps of an unsynced write is for it alone to say (A4a, A4d)."""
    chance = _chance()
    run = recorded(name, tmp_path.resolve())
    check_model(run)

    for point in run.points(chance, POINTS):
        check_point(run, point)

    assert len(run.distinct) >= POINTS // 4
    assert run.disk.events > 40


@pytest.mark.slow
def test_snapshots_killed_at_fifty_random_moments_are_made_good(tmp_path: Path) -> None:
    """SIGKILL asks nobody, and comes between any two instructions (A4a)."""
    died = kills.killed_rounds(tmp_path, _chance(), ROUNDS)

    assert died > ROUNDS // 4


# --- the model itself ---

_TOP = b"/top"


def _call(text: str) -> Call:
    (call,) = parsed(iter([text]))
    return call


def _hex(data: bytes) -> str:
    return '"' + "".join(f"\\x{byte:02x}" for byte in data) + '"'


def _written(*more: str) -> Disk:
    """Return a disk on which a file was made and written, then what ``more`` says."""
    disk = Disk(_TOP, {b"old": b"before"})
    new = f"openat(AT_FDCWD, {_hex(b'/top/new')}, O_WRONLY|O_CREAT|O_EXCL, 0600) = 5"
    lines = [new, f"write(5, {_hex(b'abcdef')}, 6) = 6", *more]
    disk.record([_call(line) for line in lines])
    return disk


def _states(disk: Disk, mode: str = TORN) -> set[bytes | None]:
    found = set()
    for seed in range(200):
        state = disk.crashed(disk.events, mode, random.Random(seed))  # noqa: S311  # no secret
        assert state[b"old"] == b"before"
        found.add(state.get(b"new", b"absent"))
    return found


def test_what_is_not_synced_may_be_missing_torn_or_zeros() -> None:
    """A model that keeps what a disk may lose would prove nothing."""
    found = _states(_written())

    assert {b"absent", b"", b"a", b"abc", b"abcdef", bytes(6)} <= found


def test_a_synced_file_without_a_synced_name_may_be_missing_but_not_torn() -> None:
    """The order of `UnfinishedFile.publish` rests on just this."""
    assert _states(_written("fsync(5) = 0")) == {b"absent", b"abcdef"}


def test_a_synced_file_in_a_synced_folder_stands() -> None:
    """What is durable must not be dropped, or every check would fail."""
    folder = [
        f"openat(AT_FDCWD, {_hex(_TOP)}, O_RDONLY|O_DIRECTORY) = 6",
        "fsync(6) = 0",
    ]

    assert _states(_written("fdatasync(5) = 0", *folder), LOST) == {b"abcdef"}
    assert _states(_written(*folder), LOST) == {b""}


def test_a_kill_keeps_what_was_done_and_tears_only_the_last_write() -> None:
    """A process that dies takes nothing with it that the kernel has."""
    disk = _written(f"pwrite64(5, {_hex(b'XY')}, 2, 4) = 2")

    for seed in range(50):
        chance = random.Random(seed)  # noqa: S311  # no secret
        assert disk.crashed(1, KILL, chance)[b"new"] == b""
        assert (disk.crashed(2, KILL, chance)[b"new"] or b"").strip(b"\0") in b"abcdef"
        assert disk.crashed(3, KILL, chance)[b"new"] == b"abcdXY"


def test_a_call_that_another_thread_cut_in_two_is_put_together() -> None:
    """Workers run beside the writer, so the log of a real run holds such lines."""
    lines = [
        "11 write(5,  <unfinished ...>",
        "12 close(7)                        = 0",
        f"11 <... write resumed>{_hex(b'ab')}, 2) = 2",
        "12 fsync(9) = -1 EIO (Input/output error)",
        "12 +++ exited with 0 +++",
    ]

    calls = list(parsed(iter(lines)))

    assert [(call.name, call.strings, call.result) for call in calls] == [
        ("close", (), 0),
        ("write", (b"ab",), 2),
    ]


def test_a_picture_laid_out_is_found_again(tmp_path: Path) -> None:
    """The states that are checked are the states that were meant."""
    picture = {b"a": None, b"a/b": b"data", b"a/c": None, b"d": b""}

    lay_out(tmp_path / "x", picture)

    assert pictured(tmp_path / "x") == picture
