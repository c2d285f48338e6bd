"""Paths judged as the next snapshot of a stream would: with what its operator and owner wrote."""

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from durarepo.core.errors import PolicyRefusedError, SelectionError
from durarepo.format.manifest import OmissionClass
from durarepo.operations.allow import add_exclusion, allow
from durarepo.repository.streamtest import StreamTest
from durarepo.source import judging
from tests.machines.stream import Stream, fill


def judged(stream: Stream, paths: Sequence[Path]) -> list[judging.Tested]:
    """Judge paths in a stream."""
    today = datetime.fromtimestamp(stream.clock(), UTC).date()
    with stream.open() as repository:
        test = StreamTest(repository, home=None, today=today)
        return [test.judge(bytes(path)) for path in paths]


def test_a_path_is_judged_by_the_patterns_of_its_stream_as_a_snapshot_does(
    tmp_path: Path,
) -> None:
    """Who asks why a file is missing must hear of the pattern that leaves it out."""
    stream = Stream(tmp_path)
    fill(
        stream.root,
        {
            "a.log": b"1",
            "out/deep/b.txt": b"2",
            "drafts/.durarepoignore": b"old/\n",
            "drafts/old/c.txt": b"3",
            "drafts/d.txt": b"4",
            "env/pyvenv.cfg": b"",
            "env/lib/e.py": b"5",
        },
    )
    for pattern in ("*.log", "out"):
        with stream.open() as repository:
            add_exclusion(repository, pattern, root=None)
    names = ["a.log", "out/deep/b.txt", "drafts/old/c.txt", "drafts/d.txt", "env/lib/e.py"]

    told = judged(stream, [stream.root / name for name in names])

    assert [(str(one.decision), one.rule) for one in told] == [
        ("exclude", "operator"),
        ("exclude", "operator"),
        ("exclude", "durarepoignore"),
        ("include", ""),
        ("exclude", "mark-pyvenv"),
    ]
    root = bytes(stream.root)
    above = [None, root + b"/out", root + b"/drafts/old", None, root + b"/env"]
    assert [one.above for one in told] == above
    left_out = {one.path for one in stream.snapshot().left_out if one.rule}
    assert {one.above or one.path for one in told if one.rule} == left_out


def test_the_log_of_a_database_is_judged_as_a_snapshot_does(tmp_path: Path) -> None:
    """It is in the copy of the database; who asks must not hear that it is kept by itself."""
    stream = Stream(tmp_path)
    connection = sqlite3.connect(stream.root / "state.db")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    fill(stream.root, {"notes-wal": b"a file of mine", "other.db-wal": b"no database is beside it"})
    names = ["state.db", "state.db-wal", "state.db-shm", "notes-wal", "other.db-wal"]

    told = judged(stream, [stream.root / name for name in names])
    left_out = {one.path for one in stream.snapshot().left_out}
    connection.close()

    assert [one.rule for one in told] == ["", "sqlite-sidecar", "sqlite-sidecar", "", ""]
    assert {one.path for one in told if one.rule} == left_out


def test_a_path_in_a_folder_that_cannot_be_entered_is_left_out_by_its_folder(
    tmp_path: Path,
) -> None:
    """An error of reading says nothing of the rule that keeps the snapshot from reading it."""
    stream = Stream(tmp_path)
    fill(stream.root, {"out": b"a file where a folder is thought"})
    with stream.open() as repository:
        add_exclusion(repository, "out", root=None)

    (told,) = judged(stream, [stream.root / "out" / "inner.txt"])

    assert (told.rule, told.above) == ("operator", bytes(stream.root / "out"))


def test_a_file_that_an_entry_keeps_is_told_as_kept(tmp_path: Path) -> None:
    """After the review it is kept, whatever the header says."""
    stream = Stream(tmp_path)
    text = b"A key begins with " + b"-" * 5 + b"BEGIN OPENSSH PRIVATE " + b"KEY" + b"-" * 5
    fill(stream.root, {"manual.md": text})
    path = stream.root / "manual.md"
    today = datetime.fromtimestamp(stream.clock(), UTC).date()
    (before,) = judged(stream, [path])
    with stream.open() as repository:
        allow(repository, bytes(path), reason="a manual", today=today)

    (after,) = judged(stream, [path])

    assert (str(before.decision), before.is_waivable) == ("exclude", True)
    assert (str(after.decision), after.rule) == ("include", before.rule)
    kinds = {one.kind for one in stream.snapshot().left_out}
    assert OmissionClass.EXCLUSION not in kinds
    with stream.open() as repository, pytest.raises(PolicyRefusedError) as refusal:
        allow(repository, bytes(path), reason="again", today=today)
    assert refusal.value.code == "policy.not-needed"


def test_a_file_that_the_operator_leaves_out_needs_no_entry(tmp_path: Path) -> None:
    """An entry for it would keep nothing, and pass for one that does."""
    stream = Stream(tmp_path)
    text = b"A key begins with " + b"-" * 5 + b"BEGIN OPENSSH PRIVATE " + b"KEY" + b"-" * 5
    fill(stream.root, {"manual.md": text})
    with stream.open() as repository:
        add_exclusion(repository, "*.md", root=None)
    today = datetime.fromtimestamp(stream.clock(), UTC).date()

    with stream.open() as repository, pytest.raises(PolicyRefusedError) as refusal:
        allow(repository, bytes(stream.root / "manual.md"), reason="a manual", today=today)

    assert refusal.value.code == "policy.not-content"


def test_what_is_the_streams_own_is_left_out_as_its_own(tmp_path: Path) -> None:
    """A root above the repository is allowed, and nobody should wonder what became of it."""
    local = tmp_path / "notes" / "home" / ".local"
    local.mkdir(parents=True)
    stream = Stream(tmp_path, roots=(bytes(local),))
    own = Path(stream.places.configuration.decode())

    (told,) = judged(stream, [own])

    assert (told.rule, told.above) == ("own-state", bytes(own.parent))


def test_a_path_in_no_root_is_refused(tmp_path: Path) -> None:
    """It is in no snapshot, whatever the rules say of it."""
    stream = Stream(tmp_path)

    with pytest.raises(SelectionError) as refusal:
        judged(stream, [tmp_path / "elsewhere"])

    assert refusal.value.code == "select.outside"
