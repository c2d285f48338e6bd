"""The note of a run that failed: told to people, believed for nothing."""

from pathlib import Path

import pytest

from durarepo.local.lastrun import FailedRun, LastRun


@pytest.fixture
def last(tmp_path: Path) -> LastRun:
    """Give the note of a stream that never failed."""
    return LastRun(bytes(tmp_path / "state"))


def test_a_failure_is_told_until_a_run_succeeds(last: LastRun) -> None:
    """A timer's failure that nobody saw must be seen the next day, and not for ever."""
    assert last.failure() is None

    last.note_failure("store.full", at=100)
    told = last.failure()
    last.note_success()

    assert told == FailedRun(at=100, code="store.full")
    assert last.failure() is None


def test_a_success_writes_nothing_where_nothing_failed(last: LastRun, tmp_path: Path) -> None:
    """A run that went well must cost no write, least of all on a disk that is nearly full."""
    last.note_success()

    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'{"at":"x","code":"store.full"}',
        b'{"at":1,"code":"\x1b[31m"}',
        b"1" * 5000,
    ],
)
def test_a_damaged_note_tells_nothing(last: LastRun, tmp_path: Path, data: bytes) -> None:
    """What lies in a file of the state must reach the terminal as a code or not at all."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "failed.json").write_bytes(data)

    assert last.failure() is None


def test_a_note_that_cannot_be_written_hides_no_error(last: LastRun, tmp_path: Path) -> None:
    """The disk that made the run fail takes no note of it either."""
    (tmp_path / "state").write_bytes(b"a file where the folder should be")

    last.note_failure("store.full", at=100)

    assert last.failure() is None
