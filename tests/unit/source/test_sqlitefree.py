"""Free pages of a copy: nothing is left in them, and the database is the same without that."""
# ruff: noqa: S311 - seeds and statements of a test

import random
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import pytest

from durarepo.core.errors import StoreError
from durarepo.policy.decide import ContentPolicy
from durarepo.policy.rules import Decision
from durarepo.policy.scanner import open_engine
from durarepo.source.sqliteclean import clean_file
from durarepo.source.sqlitefree import FreelistError, clear_free_pages
from tests.doubles.workfolder import PlainWork
from tests.policy.fresh import prose, text

POLICY = ContentPolicy(open_engine())


def emptied(path: Path, *, page_bytes: int = 4096, vacuum: str = "NONE", value: str = "") -> None:
    """Make a database in which rows of several pages were deleted, and others were not."""
    draw = random.Random(path.name)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(f"PRAGMA page_size = {page_bytes}")
        connection.execute(f"PRAGMA auto_vacuum = {vacuum}")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)")
        connection.execute("CREATE INDEX by_a ON t (substr(a, 1, 40))")
        connection.execute("BEGIN")
        for number in range(200):
            said = value if value and number % 3 else prose(draw, draw.randint(1, 60))
            connection.execute("INSERT INTO t VALUES (?, ?)", (number, said))
        connection.execute("COMMIT")
        connection.execute("DELETE FROM t WHERE id % 3")


def rows_of(path: Path) -> list[tuple[object, ...]]:
    """Return what a database says, once it has passed its check."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return connection.execute("SELECT * FROM t ORDER BY id").fetchall()


@pytest.mark.parametrize("page_bytes", [512, 1024, 4096, 65536])
@pytest.mark.parametrize("vacuum", ["NONE", "INCREMENTAL"])
def test_a_database_is_the_same_without_what_its_free_pages_hold(
    tmp_path: Path, page_bytes: int, vacuum: str
) -> None:
    """A page too many would be somebody's work."""
    path = tmp_path / f"db {page_bytes}"
    emptied(path, page_bytes=page_bytes, vacuum=vacuum)
    before, size = rows_of(path), path.stat().st_size
    with closing(sqlite3.connect(path)) as connection:
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()

    assert clear_free_pages(bytes(path)) == free > 3
    once = path.read_bytes()
    clear_free_pages(bytes(path))

    assert path.read_bytes() == once
    assert len(once) == size
    assert rows_of(path) == before
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for number in range(1000, 1100):  # they are taken again
            connection.execute("INSERT INTO t VALUES (?, ?)", (number, "a" * 9000))
    assert len(rows_of(path)) == len(before) + 100


def test_no_part_of_a_deleted_value_that_pages_cut_is_kept(tmp_path: Path) -> None:
    """The header of each overflow page stands in the middle of the token (A2a)."""
    draw = random.Random("cut")
    token = "gh" + "p_" + text(draw, 36)
    filler = "word " * 2000
    parts = [token[:10].encode(), token[-10:].encode()]
    for length in range(5922, 5931, 3):  # where an overflow page of such a row ends
        path, copy = tmp_path / f"db{length}", tmp_path / f"copy{length}"
        emptied(path, value=filler[:length] + token + filler[length:])
        copy.write_bytes(path.read_bytes())
        assert token.encode() not in copy.read_bytes()
        assert all(part in copy.read_bytes() for part in parts)
        live = rows_of(path)

        done = clean_file(bytes(copy), b"chat.db", POLICY, work=PlainWork(tmp_path))

        kept = Path(done.path.decode())
        assert done.cleaned.judged.decision is Decision.INCLUDE
        assert not any(part in kept.read_bytes() for part in parts)
        assert rows_of(kept) == live


def _damaged(data: bytes, damage: str) -> bytes:
    """Return a database whose list of free pages contradicts itself."""
    (trunk,) = struct.unpack(">I", data[32:36])
    at = (trunk - 1) * 4096
    changes = {
        "a page that is not there": (at + 8, 10**6),
        "the first page": (at + 8, 1),
        "itself": (at, trunk),
        "more than a page holds": (at + 4, 5000),
        "another number": (36, 3),
        "a trunk that is not there": (32, 10**6),
    }
    place, number = changes[damage]
    return data[:place] + struct.pack(">I", number) + data[place + 4 :]


@pytest.mark.parametrize(
    "damage",
    [
        *("a page that is not there", "the first page", "itself", "more than a page holds"),
        *("another number", "a trunk that is not there"),
    ],
)
def test_a_damaged_list_of_free_pages_changes_nothing(tmp_path: Path, damage: str) -> None:
    """What such a list calls free may be work; a new copy of what lives is made instead."""
    path = tmp_path / "db"
    emptied(path)
    before = rows_of(path)
    data = _damaged(path.read_bytes(), damage)
    path.write_bytes(data)

    with pytest.raises(FreelistError):
        clear_free_pages(bytes(path))
    assert path.read_bytes() == data

    done = clean_file(bytes(path), b"chat.db", POLICY, work=PlainWork(tmp_path))

    kept = Path(done.path.decode())
    assert done.cleaned.judged.decision is Decision.INCLUDE
    assert done.size == kept.stat().st_size < len(data)
    assert rows_of(kept) == before


def test_a_copy_that_is_gone_is_a_failure_of_the_store(tmp_path: Path) -> None:
    """Source errors and store errors never change places."""
    with pytest.raises(StoreError):
        clear_free_pages(bytes(tmp_path / "none"))
