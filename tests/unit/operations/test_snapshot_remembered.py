"""A database that changes: only what changed is scanned, and nothing gets by for that."""
# ruff: noqa: S311 - seeds of a test

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from durarepo.local.catalog import Catalog
from durarepo.policy.decide import Judged
from durarepo.policy.remembered import ScanMemory
from durarepo.policy.rules import Decision, Stage
from durarepo.policy.scanning import Scan
from durarepo.repository import contents
from durarepo.repository.scanmemories import ScanMemories
from durarepo.source.sqliteclean import Cleaned, CleanedFile, clean_file
from tests.machines.stream import Stream
from tests.policy.fresh import prose, text

ROWS = 3000
DATABASE = "agent.db"


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Give a stream that holds one database, kept once."""
    stream = Stream(tmp_path)
    draw = random.Random(1)
    change(stream, "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
    with closing(sqlite3.connect(stream.root / DATABASE)) as connection, connection:
        rows = [(number, prose(draw)) for number in range(ROWS)]
        connection.executemany("INSERT INTO notes VALUES (?, ?)", rows)
    assert stream.snapshot().files == 1
    return stream


def change(stream: Stream, statement: str, *values: object) -> None:
    """Execute one statement."""
    with closing(sqlite3.connect(stream.root / DATABASE)) as connection, connection:
        connection.execute(statement, values)


@pytest.mark.parametrize("row", [0, ROWS // 2, ROWS - 1])
@pytest.mark.parametrize("padding", [0, 300, 9000])
def test_a_token_in_one_changed_row_leaves_the_database_out(
    stream: Stream, row: int, padding: int
) -> None:
    """What is new is scanned however little it is, and wherever it lies (A2a)."""
    token = "gh" + "p_" + text(random.Random(row), 36)
    change(stream, "UPDATE notes SET text = ? WHERE id = ?", "x " * padding + token, row)

    left_out = stream.snapshot()
    change(stream, "UPDATE notes SET text = 'nothing' WHERE id = ?", row)
    change(stream, "VACUUM")
    kept = stream.snapshot()

    assert (left_out.files, left_out.excluded) == (0, 1)
    assert (kept.files, kept.excluded) == (1, 0)


def test_a_changed_row_costs_no_scan_of_the_whole(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large database changes every day; to scan all of it would cost more than all else."""
    sizes: list[int] = []
    feed = Scan.feed

    def counted(scan: Scan, data: bytes) -> None:
        sizes.append(len(data))
        feed(scan, data)

    monkeypatch.setattr(Scan, "feed", counted)
    change(stream, "UPDATE notes SET text = 'other words' WHERE id = 77")

    assert stream.snapshot().files == 1

    assert 0 < sum(sizes) < (stream.root / DATABASE).stat().st_size // 3


def test_what_is_found_with_a_memory_is_looked_for_in_the_whole(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the edge of a part may stand the end of a word that is no token in the whole."""
    looked: list[bool] = []

    def seen_at_an_edge(
        path: bytes, name: bytes, *given: object, memory: ScanMemory, **more: object
    ) -> CleanedFile:
        done = clean_file(path, name, *given, memory=memory, **more)  # type: ignore[arg-type]  # passed on
        looked.append(memory.has_skipped)
        if not memory.has_skipped:
            return done
        hit = Judged(decision=Decision.EXCLUDE, rule="token-github", stage=Stage.CONTENT)
        return CleanedFile(cleaned=Cleaned(judged=hit), path=done.path, size=done.size)

    monkeypatch.setattr(contents, "clean_file", seen_at_an_edge)
    change(stream, "UPDATE notes SET text = 'other words' WHERE id = 77")

    result = stream.snapshot()

    assert looked == [True, False]
    assert (result.files, result.excluded) == (1, 0)


def test_a_memory_is_believed_by_its_policy_alone_and_goes_with_its_file(tmp_path: Path) -> None:
    """Another version has other rules; and what is gone must not be held for ever."""
    with closing(Catalog(bytes(tmp_path / "catalog.db"))) as catalog:
        memory = ScanMemory()
        scan = memory.scan(lambda: pytest.fail("nothing was fed"))
        for path in (b"/a/b", b"/a/b.db", b"/a/c/d", b"/a/c0"):
            ScanMemories(catalog, "1").keep(path, memory)
        del scan
        noted = catalog.scanned(b"/a/b")

        catalog.forget_dir(b"/a/c")
        catalog.forget_dir(b"/a/b")

        assert noted == b"1\0" + memory.encode()
        paths = (b"/a/b", b"/a/b.db", b"/a/c/d", b"/a/c0")
        held = [path for path in paths if catalog.scanned(path) is not None]
        assert held == [b"/a/b.db", b"/a/c0"]
        catalog.keep_scanned(b"/a/b.db", b"1\0" + bytes(48))
        assert ScanMemories(catalog, "1").find(b"/a/b.db")._before == bytes(48)
        assert ScanMemories(catalog, "2").find(b"/a/b.db")._before == b""
        assert ScanMemories(catalog, "1").find(b"/a")._before == b""
