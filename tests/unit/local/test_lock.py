"""One run at a time: a live holder is never displaced, a dead one is followed exactly once."""

import json
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from durarepo.core.errors import DurarepoError, RunError, StoreError
from durarepo.local.lock import RunLock, boot_id, process_start
from tests.doubles.children import UNPRIVILEGED, die_with_parent, run_in_child

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def lock_of(path: Path) -> RunLock:
    """Return the lock in the folder of a test."""
    return RunLock(bytes(path / "lock"), now=NOW)


def forked(work: Callable[[], object]) -> int:
    """Run ``work`` in a child, which then waits to be killed; return its pid once it is done."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            die_with_parent()
            os.close(reader)
            work()
            os.write(writer, b".")
        finally:
            signal.pause()
    os.close(writer)
    assert os.read(reader, 1) == b"."
    os.close(reader)
    return child


def kill(pid: int) -> None:
    """Kill a child for good and forget it."""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_lock_is_taken_given_back_and_taken_again(tmp_path: Path) -> None:
    """The file stays, and a clean end is no takeover."""
    for _ in range(2):
        with lock_of(tmp_path) as lock:
            assert lock.is_held
            assert lock.takeover is None
        assert not lock.is_held
        assert (tmp_path / "lock").exists()


def test_second_run_ends_at_once_and_is_told_who_and_since_when(tmp_path: Path) -> None:
    """Nobody waits; a person must be able to see which process it is."""
    child = forked(lambda: lock_of(tmp_path).__enter__())

    with pytest.raises(RunError) as caught:
        lock_of(tmp_path).__enter__()

    kill(child)
    assert caught.value.code == "run.locked"
    assert f"process {child}" in caught.value.message
    assert "2026-01-02T03:04:05Z" in caught.value.message


def test_lock_is_not_taken_twice_in_one_process(tmp_path: Path) -> None:
    """An operation inside another must not believe to be alone."""
    with lock_of(tmp_path) as lock:
        with pytest.raises(RunError):
            lock_of(tmp_path).__enter__()
        with pytest.raises(ValueError, match="held"):
            lock.__enter__()

        assert lock.is_held


def test_killed_holder_is_followed_once_and_it_is_said(tmp_path: Path) -> None:
    """A killed run must not need a human (A8a), and the audit log has to know."""
    child = forked(lambda: lock_of(tmp_path).__enter__())
    kill(child)

    with lock_of(tmp_path) as lock:
        assert lock.takeover is not None
        assert lock.takeover.why == "dead-process"
        assert lock.takeover.holder is not None
        assert lock.takeover.holder.pid == child
        assert lock.takeover.holder.since == "2026-01-02T03:04:05Z"
    with lock_of(tmp_path) as lock:
        assert lock.takeover is None


def test_of_two_contenders_for_a_dead_lock_one_wins(tmp_path: Path) -> None:
    """Two nights at once would both write manifest n (A8a)."""
    for _ in range(40):
        kill(forked(lambda: lock_of(tmp_path).__enter__()))
        go_reader, go_writer = os.pipe()
        done_reader, done_writer = os.pipe()
        contenders = []
        for _contender in range(2):
            child = os.fork()
            if child == 0:
                die_with_parent()
                os.close(go_writer)
                os.read(go_reader, 1)
                _contend(tmp_path, done_writer)
            contenders.append(child)
        os.close(go_writer)
        said = b"".join(os.read(done_reader, 1) for _ in contenders)
        for contender in contenders:
            kill(contender)
        for descriptor in (go_reader, done_reader, done_writer):
            os.close(descriptor)

        assert sorted(said) == sorted(b"TL")  # one takeover, one locked


def _contend(tmp_path: Path, done: int) -> None:
    answer = b"?"
    try:
        lock = lock_of(tmp_path).__enter__()
        answer = b"F" if lock.takeover is None else b"T"
    except RunError:
        answer = b"L"
    finally:
        os.write(done, answer)
        signal.pause()


def _record(path: Path, **changes: object) -> None:
    pid = os.getpid()
    record = {"boot": boot_id(), "pid": pid, "started": process_start(pid), "since": "then"}
    (path / "lock").write_text(json.dumps({**record, **changes}))


def test_record_of_another_boot_is_stale_even_if_the_pid_lives(tmp_path: Path) -> None:
    """After a reboot the same pid is almost always somebody."""
    _record(tmp_path, boot="00000000-0000-0000-0000-000000000000", pid=1)

    with lock_of(tmp_path) as lock:
        assert lock.takeover is not None
        assert lock.takeover.why == "other-boot"


def test_record_of_a_reused_pid_is_stale(tmp_path: Path) -> None:
    """A lock held for ever by an innocent process would end all backups."""
    child = forked(lambda: None)
    _record(tmp_path, pid=child, started=1)

    with lock_of(tmp_path) as lock:
        assert lock.takeover is not None
        assert lock.takeover.why == "reused-pid"
    kill(child)


def test_live_holder_is_not_displaced_even_if_its_os_lock_is_gone(tmp_path: Path) -> None:
    """Some file systems forget locks; the record of a live process still counts (A8a)."""
    child = forked(lambda: None)
    _record(tmp_path, pid=child, started=process_start(child))
    before = (tmp_path / "lock").read_bytes()

    with pytest.raises(RunError):
        lock_of(tmp_path).__enter__()

    kill(child)
    assert (tmp_path / "lock").read_bytes() == before


def test_child_that_outlives_the_holder_still_counts_as_the_run(tmp_path: Path) -> None:
    """It may be writing; and giving back in the child must not free the parent's lock."""

    def hold_and_fork() -> None:
        lock = lock_of(tmp_path).__enter__()
        grandchild = os.fork()
        if grandchild == 0:
            assert not lock.is_held
            signal.pause()
        (tmp_path / "grandchild").write_text(str(grandchild))

    child = forked(hold_and_fork)
    grandchild = int((tmp_path / "grandchild").read_text())
    kill(child)

    try:
        with pytest.raises(RunError) as caught:
            lock_of(tmp_path).__enter__()
    finally:
        os.kill(grandchild, signal.SIGKILL)

    assert "through a child" in caught.value.message


def test_forked_child_does_not_give_back_what_its_parent_holds(tmp_path: Path) -> None:
    """Leaving the context in a child must not let a second run in."""
    with lock_of(tmp_path) as lock:
        child = os.fork()
        if child == 0:
            lock.__exit__(None, None, None)
            os._exit(0)
        os.waitpid(child, 0)

        with pytest.raises(RunError):
            lock_of(tmp_path).__enter__()
        assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()


@pytest.mark.parametrize(
    "torn",
    [
        b'{"boot": "',
        b"\0" * 512,
        b"[]",
        b"null",
        b"7",
        b'{"pid": 1}',
        b'{"boot":"b","pid":"x","started":1,"since":""}',
        b'{"boot":"b","pid":1e999,"started":1,"since":""}',
        b"\xff" * 2000,
        b"[" * 512,
    ],
)
def test_torn_lock_file_is_survived_and_reported(tmp_path: Path, torn: bytes) -> None:
    """A power failure while the record was written must not need a human."""
    (tmp_path / "lock").write_bytes(torn)

    with lock_of(tmp_path) as lock:
        assert lock.takeover is not None
        assert lock.takeover.why == "torn-record"
        assert lock.takeover.holder is None
    with lock_of(tmp_path) as lock:
        assert lock.takeover is None


def test_empty_lock_file_is_a_fresh_one(tmp_path: Path) -> None:
    """A kill right after its creation leaves it empty."""
    (tmp_path / "lock").write_bytes(b"")

    with lock_of(tmp_path) as lock:
        assert lock.takeover is None


def test_hostile_record_writes_nothing_on_a_terminal(tmp_path: Path) -> None:
    """The record is a file like any other; escapes in it must not reach a screen."""
    child = forked(lambda: None)
    _record(tmp_path, pid=child, started=process_start(child), since="\x1b[31mnow\n" * 9)

    with pytest.raises(RunError) as caught:
        lock_of(tmp_path).__enter__()

    kill(child)
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("kind", ["symlink", "fifo", "folder"])
def test_what_is_no_plain_file_is_not_locked(tmp_path: Path, kind: str) -> None:
    """Writing the record through a planted symlink would overwrite its target."""
    (tmp_path / "target").write_bytes(b"mine")
    if kind == "symlink":
        (tmp_path / "lock").symlink_to("target")
    elif kind == "fifo":
        os.mkfifo(tmp_path / "lock")
    else:
        (tmp_path / "lock").mkdir()

    with pytest.raises(StoreError):
        lock_of(tmp_path).__enter__()

    assert (tmp_path / "target").read_bytes() == b"mine"


def test_failing_run_gives_the_lock_back(tmp_path: Path) -> None:
    """An error must not look like a kill to the next run."""
    with pytest.raises(DurarepoError), lock_of(tmp_path):
        raise StoreError("full", "the disk is full")

    with lock_of(tmp_path) as lock:
        assert lock.takeover is None


def test_repository_that_cannot_be_written_is_a_store_matter(tmp_path: Path) -> None:
    """'Locked' would send a person after a process that does not exist."""

    def work() -> None:
        with pytest.raises(StoreError) as caught:
            lock_of(tmp_path).__enter__()
        assert caught.value.code == "store.permission"

    run_in_child(work, user=UNPRIVILEGED)
