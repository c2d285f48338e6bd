"""Kill a run at every file event of its work folder: the next run cleans up and harms nothing."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from durarepo.local.work import WorkFolder

EVENTS = frozenset({"open", "os.mkdir", "os.link", "os.rename", "os.remove", "os.rmdir"})
KILLED = 99


class _Lock:
    is_held = True


def _run_killed_at(number: int, work: Callable[[], object]) -> bool:
    child = os.fork()
    if child == 0:
        left = number

        def event(name: str, _facts: object) -> None:
            nonlocal left
            if name in EVENTS:
                if left == 0:
                    os._exit(KILLED)
                left -= 1

        try:
            sys.addaudithook(event)
            work()
        except BaseException:  # noqa: BLE001  # nothing may come back into pytest
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in {0, KILLED}, f"the child failed by itself before event {number}"
    return code == KILLED


def test_run_killed_anywhere_is_cleaned_up_and_nothing_else(tmp_path: Path) -> None:
    """Making, adopting and discarding each have moments between deed and record (P16)."""
    user = tmp_path / "user"
    (user / "inner").mkdir(parents=True)
    (user / "inner" / "file").write_bytes(b"mine")

    def run(base: Path) -> None:
        with WorkFolder(bytes(base / "work"), _Lock()) as work:
            work.new_file(".db")
            tree = Path(os.fsdecode(work.new_folder()))
            (tree / "a" / "b").mkdir(parents=True)
            (tree / "a" / "b" / "link").symlink_to(user)
            staging = base / "staging"
            staging.mkdir()
            work.adopt_staging(bytes(staging))
            (staging / "a" / "b").mkdir(parents=True)
            (staging / "a" / "link").symlink_to(user / "inner")
            work.discard(bytes(tree))
            work.discard(bytes(staging))

    for number in range(300):
        base = tmp_path / str(number)
        base.mkdir()
        killed = _run_killed_at(number, lambda base=base: run(base))  # type: ignore[misc]

        left = WorkFolder(bytes(base / "work"), _Lock()).clean_after_kill() if killed else []

        still = {path.name for path in base.iterdir()} - {"work"}
        # Between making the staging folder and adopting it nothing proves whose it is.
        assert left == []
        assert still == set() or list((base / "staging").iterdir()) == []
        if (base / "work").exists():
            assert {path.name for path in (base / "work").iterdir() if path.is_dir()} == set()
        assert (user / "inner" / "file").read_bytes() == b"mine"
        if not killed:
            assert number > 20
            return
    pytest.fail("the run never came to its end")


def test_cleaning_killed_anywhere_is_finished_by_the_next(tmp_path: Path) -> None:
    """The cleaner may be killed as well; what it had not removed must stay in the journal."""

    def make(base: Path) -> None:
        work = WorkFolder(bytes(base / "work"), _Lock())
        work.new_file(".db")
        (base / "staging").mkdir()
        work.adopt_staging(bytes(base / "staging"))
        (base / "staging" / "a").mkdir()
        (base / "staging" / "a" / "file").write_bytes(b"half")
        os._exit(KILLED)

    for number in range(200):
        base = tmp_path / str(number)
        base.mkdir()
        assert _run_killed_at(10_000, lambda base=base: make(base))  # type: ignore[misc]

        folder = WorkFolder(bytes(base / "work"), _Lock())
        killed = _run_killed_at(number, folder.clean_after_kill)
        left = folder.clean_after_kill()

        assert left == []
        assert not (base / "staging").exists()
        assert not [path for path in (base / "work").iterdir() if path.is_dir()]
        if not killed:
            assert number > 8
            return
    pytest.fail("the cleaning never came to its end")
