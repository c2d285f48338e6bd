"""Time budgets: a run that is stopped loses nothing, and a partial manifest drops nothing."""

import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from durarepo.operations.snapshot import _Run
from durarepo.repository.contents import FileKeeper
from tests.machines.opens import opened_files
from tests.machines.stream import Stream, fill


class Stopwatch:
    """A clock of seconds that runs out after so many files were kept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, files: int) -> None:
        self._left, self._runs = files, False
        keep, roots = FileKeeper.keep, _Run._keep_roots

        def counting(keeper: FileKeeper, *given: object, **named: object) -> object:
            self._left -= 1
            return keep(keeper, *given, **named)  # type: ignore[arg-type]  # as given

        monkeypatch.setattr(FileKeeper, "keep", counting)

        def running(run: _Run, *given: object) -> object:
            self._runs = True
            return roots(run, *given)  # type: ignore[arg-type]  # as given

        monkeypatch.setattr(_Run, "_keep_roots", running)
        monkeypatch.setattr(
            time, "monotonic", lambda: 1000.0 if self._runs and self._left <= 0 else 0.0
        )


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Give a stream with some folders of files."""
    stream = Stream(tmp_path)
    fill(
        stream.root,
        {f"d{d}/e{e}/f{n}": os.urandom(300) for d in range(3) for e in range(3) for n in range(4)},
    )
    return stream


@pytest.mark.parametrize("files", [0, 1, 7, 20])
def test_a_spent_budget_makes_no_manifest_and_the_next_run_goes_on(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    """Half a tree must not look like a tree; and what was read must not be read again."""
    with monkeypatch.context() as patch:
        Stopwatch(patch, files=files)
        result = stream.snapshot(budget_seconds=10)

    assert (result.status, result.sequence, stream.statements()) == ("budget", None, {})
    with opened_files(bytes(stream.root)) as opens:
        again = stream.snapshot()
    assert len(set(opens)) == 36 - files
    assert (again.status, again.sequence, again.files) == ("ok", 1, 36)
    stream.check_restores()
    pinned = {pin.name for pin in stream.statements()[1].pins}
    stored = {path.name for path in stream.object_files()}
    known = pinned | set(stream.statements()[1].abandoned) | {again.manifest}
    assert len(stored - known) == 1  # the registry


def test_a_budget_is_looked_at_within_a_large_file(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of a terabyte must not take the run hours past its budget."""
    with open(stream.root / "a-large", "wb") as file:
        for _ in range(20):
            file.write(os.urandom(1 << 20))
    seconds = iter([0.0] * 24 + [1000.0] * 1000)
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: next(seconds))
        result = stream.snapshot(budget_seconds=10)

    assert result.status == "budget"
    assert 0 < result.new_bytes < 20 << 20
    assert stream.statements() == {}


@pytest.mark.parametrize("files", [0, 1, 2, 3, 5, 8, 13])
def test_a_partial_manifest_holds_all_that_the_last_complete_one_held(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    """Who restores a partial manifest must find yesterday's files where today's are missing."""
    path = stream.root / "d1" / "agent.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
    os.link(stream.root / "d0" / "e0" / "f0", stream.root / "d2" / "linked")
    full = stream.snapshot()
    before = stream.entries()
    fill(stream.root, {f"d{d}/e{e}/f{n}": b"new" for d in range(3) for e in (0, 2) for n in (1, 2)})
    fill(stream.root, {"d1/new/file": b"new", "d3/new/file": b"new"})

    with monkeypatch.context() as patch:
        Stopwatch(patch, files=files)
        partial = stream.snapshot(budget_seconds=10, partial=True)

    after = stream.entries()
    assert (partial.status, partial.sequence) == ("budget", 2)
    assert not stream.statements()[2].complete
    assert before.keys() <= after.keys()
    for name, entry in after.items():
        if entry.since is not None:
            assert entry.since == 1
            assert entry.sha256 == before[name].sha256
    assert sum(one.size == 3 and one.since is None for one in after.values()) == files
    assert partial.bytes == sum(
        {one.link_group or name: one.size for name, one in after.items()}.values()
    )
    assert (partial.files, partial.dirs) == (
        sum(one.type != 1 for one in after.values()),
        sum(one.type == 1 for one in after.values()),
    )
    names = [one.name for one in stream.nested(2).components]
    assert names == [b"files", b"sqlite:" + bytes(path)]
    stream.restore(2)

    again = stream.snapshot()

    assert (again.status, again.sequence, again.files) == ("ok", 3, full.files + 2)
    stream_root = stream.restored_root(3)
    assert (stream_root / "d1" / "new" / "file").read_bytes() == b"new"
    assert all(one.since is None for one in stream.entries(3).values())


def test_a_partial_manifest_is_not_made_where_the_last_one_is_not_known(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its catalogue gone, a run cannot say what it would drop: it makes none."""
    stream.snapshot()
    stream.lose(catalog=True)

    with monkeypatch.context() as patch:
        Stopwatch(patch, files=3)
        result = stream.snapshot(budget_seconds=10, partial=True)

    assert (result.status, result.sequence) == ("budget", None)
    assert list(stream.statements()) == [1]
    assert stream.snapshot().files == 36


def test_a_partial_manifest_does_not_pin_packs_that_are_gone(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is taken over must be there; a pin on a missing pack is a promise that is broken."""
    stream.snapshot()
    for pin in stream.statements()[1].pins:
        stream.object_path(pin.name).unlink()

    with monkeypatch.context() as patch:
        Stopwatch(patch, files=3)
        result = stream.snapshot(budget_seconds=10, partial=True)

    assert (result.status, result.sequence) == ("budget", None)
    assert stream.snapshot().files == 36
    stream.check_restores()


@pytest.mark.parametrize("files", [0, 5])
def test_a_first_partial_manifest_holds_what_was_reached(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    """Better some files today than none; the next run makes it whole."""
    with monkeypatch.context() as patch:
        Stopwatch(patch, files=files)
        result = stream.snapshot(budget_seconds=10, partial=True)

    assert (result.status, result.sequence, result.files) == ("budget", 1, files)
    stream.restore(1)
    again = stream.snapshot()
    assert (again.status, again.files) == ("ok", 36)
    stream.check_restores()


def test_partial_after_partial_keeps_the_last_complete(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second short night must still count from the last whole one."""
    stream.snapshot()
    fill(stream.root, {"d0/e0/f0": b"new", "d2/e2/f3": b"new"})
    for _ in range(2):
        with monkeypatch.context() as patch:
            Stopwatch(patch, files=0)
            result = stream.snapshot(budget_seconds=10, partial=True)
        assert result.files == 36
        top = [one for path, one in stream.entries().items() if path.count(b"/d") == 1]
        assert {one.since for one in top if one.name in (b"d0", b"d1", b"d2")} == {1}
    assert stream.snapshot().sequence == 4
    stream.check_restores()


@pytest.mark.parametrize("steps", [[7], [5, 9], [20, 3]])
def test_the_run_after_a_partial_manifest_goes_on_from_it(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, steps: list[int]
) -> None:
    """Short nights that each begin anew read the same first files for ever."""
    for files in steps:
        with monkeypatch.context() as patch:
            Stopwatch(patch, files=files)
            assert stream.snapshot(budget_seconds=10, partial=True).status == "budget"

    with opened_files(bytes(stream.root)) as opens:
        again = stream.snapshot()

    assert len(set(opens)) == 36 - sum(steps)
    assert (again.status, again.files) == ("ok", 36)
    stream.check_restores()
    _check_explained(stream)


def _cut_short_in_a_large_file(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Make a partial manifest that pins nothing of a large file; return its unpinned packs."""
    with open(stream.root / "a-large", "wb") as file:
        for _ in range(20):
            file.write(os.urandom(1 << 20))
    seconds = iter([0.0] * 24 + [1000.0] * 1000)
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: next(seconds))
        result = stream.snapshot(budget_seconds=10, partial=True)
    assert (result.status, result.sequence) == ("budget", 1)
    statement = stream.statements()[1]
    assert statement.abandoned == ()
    slots = {path.name for path in stream.object_files() if path.stat().st_size < 1 << 19}
    loose = {path.name for path in stream.object_files()} - slots
    loose -= {pin.name for pin in statement.pins}
    assert loose
    return loose


def test_what_a_partial_manifest_does_not_pin_is_not_stored_again(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hours of a large file must not be stored once more because a night was short."""
    loose = _cut_short_in_a_large_file(stream, monkeypatch)

    again = stream.snapshot()

    assert again.status == "ok"
    assert again.new_bytes < 20 << 20
    assert loose <= {pin.name for pin in stream.statements()[2].pins}
    stream.check_restores()
    _check_explained(stream)


def test_packs_left_by_a_partial_manifest_are_abandoned_behind_another_head(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was left for a head that is another one by now must be named, or it stays for ever."""
    loose = _cut_short_in_a_large_file(stream, monkeypatch)
    journal, aside = os.fsdecode(stream.places.journal), stream.base / "aside"
    os.rename(journal, aside)
    (stream.root / "a-large").unlink()
    stream.snapshot()
    assert not loose & set(stream.statements()[2].abandoned)
    shutil.rmtree(journal)
    os.rename(aside, journal)

    stream.snapshot()

    assert loose <= set(stream.statements()[3].abandoned)
    _check_explained(stream)


def _check_explained(stream: Stream) -> None:
    """Check that each object is pinned, abandoned, a manifest or the registry; none twice."""
    statements = stream.statements().values()
    pinned = {pin.name for one in statements for pin in one.pins}
    abandoned = {name for one in statements for name in one.abandoned}
    stored = {path.name for path in stream.object_files()}
    assert not pinned & abandoned
    assert len(stored - pinned - abandoned) == len(statements) + 1
