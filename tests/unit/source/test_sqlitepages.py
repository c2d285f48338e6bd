"""Cells that are looked at by their page, and those that are not: together they are all."""
# ruff: noqa: S311, S608 - seeds and statements of a test

import errno
import os
import random
import sqlite3
import string
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from durarepo.core.errors import StoreError
from durarepo.policy.decide import ContentPolicy
from durarepo.policy.rules import Decision
from durarepo.policy.scanner import open_engine
from durarepo.source import sqliteclean
from durarepo.source.sqliteclean import Tables, all_cells, clean_file
from durarepo.source.sqlitepages import PageError, values_of_page
from tests.doubles.workfolder import PlainWork
from tests.policy.fresh import text

POLICY = ContentPolicy(open_engine())
LENGTHS = (0, 1, 3, 90, 400, 900, 1100, 3900, 4080, 4200, 9000)
Value = str | bytes | int | float | None


def drawn(draw: random.Random) -> Value:
    """Return a value of any kind and length."""
    length = draw.choice(LENGTHS)
    prose = "".join(draw.choices(string.ascii_letters + "  é", k=length))
    return draw.choice([prose, prose.encode(), draw.getrandbits(62), draw.random(), None])


SHAPES = (
    "CREATE TABLE t (a, b, c)",
    "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b BLOB, c REAL)",
    "CREATE TABLE t (id TEXT PRIMARY KEY, a, b, c) WITHOUT ROWID",
    "CREATE TABLE t (a, b, c, d TEXT GENERATED ALWAYS AS (a || b) STORED)",
)


@contextmanager
def database(
    path: Path, shape: str, rows: Sequence[tuple[Value, ...]], *pragmas: str
) -> Iterator[sqlite3.Connection]:
    """Fill a database, and yield a connection that gives bytes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
        connection.execute(shape)
        connection.execute("BEGIN")
        for number, row in enumerate(rows):
            names = ("id", "a", "b", "c") if "(id" in shape else ("a", "b", "c")
            values = (number, *row) if "INTEGER PRIMARY" in shape else row
            values = (f"row {number}", *row) if "WITHOUT" in shape else values
            marks = ", ".join("?" * len(values))
            connection.execute(f"INSERT INTO t ({', '.join(names)}) VALUES ({marks})", values)
        connection.execute("COMMIT")
        connection.text_factory = bytes
        yield connection


def values_of_file(data: bytes, page_bytes: int) -> set[bytes]:
    """Return all values that lie whole in a page."""
    found: set[bytes] = set()
    for at in range(0, len(data), page_bytes):
        page = data[at : at + page_bytes]
        found.update(values_of_page(page, is_first=at == 0, usable=page_bytes))
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("page_bytes", [512, 4096, 65536])
@pytest.mark.parametrize("vacuum", ["NONE", "FULL"])
def test_every_cell_lies_whole_in_a_page_or_is_in_a_long_row(
    tmp_path: Path, shape: str, page_bytes: int, vacuum: str
) -> None:
    """A cell that is in neither would never be looked at."""
    draw = random.Random(shape + vacuum + str(page_bytes))
    rows = [(drawn(draw), drawn(draw), drawn(draw)) for _ in range(300)]
    path = tmp_path / "db"
    pragmas = f"page_size = {page_bytes}", f"auto_vacuum = {vacuum}"
    with database(path, shape, rows, *pragmas) as connection:
        long = connection.execute("SELECT * FROM t").fetchall()
        connection.execute("CREATE INDEX by_b ON t (b)")
        chosen = sqliteclean._long_rows(connection, "t", page_bytes).fetchall()

    cells = {cell for row in long for cell in row if isinstance(cell, bytes)}
    of_long = {cell for row in chosen for cell in row if isinstance(cell, bytes)}
    in_pages = values_of_file(path.read_bytes(), page_bytes)

    assert len(cells) > 250
    assert cells <= in_pages | of_long
    assert page_bytes == 512 or not of_long >= cells


def decision(path: Path, folder: Path, cells: Callable[..., Iterator[bytes]] | None) -> Decision:
    """Judge a copy of a database as a snapshot does."""
    folder.mkdir()
    copy = folder / "copy"
    copy.write_bytes(path.read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        if cells is not None:
            patch.setattr(sqliteclean._Copy, "cells", cells)
        done = clean_file(bytes(copy), b"chat.db", POLICY, work=PlainWork(folder))
    return done.cleaned.judged.decision


def test_a_copy_that_cannot_be_looked_at_is_a_failure_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails under the work folder must not look like a mistake in the program."""
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("CREATE TABLE t (x)")
    copy, real, calls = bytes(tmp_path / "a.db"), os.stat, list[object]()

    def failing(path: bytes, **named: bool) -> os.stat_result:
        if path == copy:
            calls.append(path)
            if len(calls) == turn:
                raise OSError(errno.EIO, "no")
        return real(path, **named)

    for turn in (1, 2):
        calls.clear()
        with monkeypatch.context() as patch:
            patch.setattr(os, "stat", failing)
            with pytest.raises(StoreError):
                clean_file(copy, b"a.db", POLICY, work=PlainWork(tmp_path))
        assert len(calls) == turn


def every(_: object, connection: sqlite3.Connection, tables: Tables) -> Iterator[bytes]:
    """Yield every cell, by whatever page."""
    return all_cells(connection, tables)


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
@pytest.mark.parametrize("before", ["", "word", "word " * 190, "word " * 790, "word " * 900])
@pytest.mark.parametrize("kind", [str.encode, str, lambda one: one.encode("utf-16-le")])
def test_a_token_is_found_by_the_cells_that_are_looked_at(
    tmp_path: Path, encoding: str, before: str, kind: Callable[[str], Value]
) -> None:
    """A value follows another without a gap, or is cut by the end of a page."""
    draw = random.Random(before + encoding)
    token = "sk" + "-" + text(draw, 48)
    for shape in SHAPES:
        rows: list[tuple[Value, ...]] = [(drawn(draw), "name", "x") for _ in range(40)]
        rows.insert(20, ("a name", kind(before + token), "letters"))
        path = tmp_path / f"db{SHAPES.index(shape)}"
        with database(path, shape, rows, f"encoding = '{encoding}'"):
            pass
        expected = Decision.INCLUDE if before.endswith("word") else Decision.EXCLUDE
        found = decision(path, tmp_path / f"a{SHAPES.index(shape)}", None)

        assert found is decision(path, tmp_path / f"b{SHAPES.index(shape)}", every)
        assert found is expected


@pytest.mark.parametrize("shape", SHAPES)
def test_a_token_that_the_end_of_a_page_cuts_is_found(tmp_path: Path, shape: str) -> None:
    """What does not lie whole in a page goes on in another one, anywhere in the file."""
    token = "gh" + "p_" + text(random.Random(shape), 36)
    starts = range(470, 560, 30) if "WITHOUT" in shape else range(3900, 4200, 30)
    for length in starts:
        rows: list[tuple[Value, ...]] = [("a", "." * length + " " + token + " .", "c" * 5000)]
        path = tmp_path / f"db{length}"
        with database(path, shape, rows):
            pass
        assert decision(path, tmp_path / f"a{length}", None) is Decision.EXCLUDE


def test_a_database_without_anything_to_see_is_not_read_cell_by_cell(tmp_path: Path) -> None:
    """Reading and scanning everything twice is what the pages are asked first for."""
    rows: list[tuple[Value, ...]] = [("a", "b" * 300, "c") for _ in range(500)]
    path = tmp_path / "db"
    with database(path, SHAPES[0], rows):
        pass
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes())
    with closing(sqlite3.connect(copy)) as connection:
        connection.text_factory = bytes
        owner = sqliteclean._Copy(bytes(copy), PlainWork(tmp_path), POLICY)
        assert b"".join(owner.cells(connection, {"t": ("a", "b", "c")})) == b""


@pytest.mark.parametrize("damage", ["pointer", "length", "type"])
def test_a_damaged_page_is_told_from_one_without_rows(tmp_path: Path, damage: str) -> None:
    """What is not understood is looked at the long way, and not passed over."""
    path = tmp_path / "db"
    with database(path, SHAPES[0], [("a", "b" * 200, "c")] * 3):
        pass
    data = path.read_bytes()
    page = bytearray(data[4096:8192])
    cell = int.from_bytes(page[8:10], "big")
    if damage == "pointer":
        page[8:10] = (4095).to_bytes(2, "big")
    elif damage == "length":
        page[cell : cell + 2] = b"\x9f\x10"
    else:
        page[cell + 3 : cell + 5] = b"\xff\x7f"

    with pytest.raises(PageError):
        list(values_of_page(bytes(page), is_first=False, usable=4096))
    assert list(values_of_page(b"\0" * 4096, is_first=False, usable=4096)) == []
