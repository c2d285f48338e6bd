"""What SQLite leaves unread in a page is gone from the copy, and the database is the same."""
# ruff: noqa: S311 - seeds and statements of a test

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from durarepo.core.errors import StoreError
from durarepo.policy.decide import ContentPolicy
from durarepo.policy.rules import Decision
from durarepo.policy.scanner import open_engine
from durarepo.source.sqliteclean import clean_file
from durarepo.source.sqlitefree import clear_free_pages
from durarepo.source.sqliteslack import clear_slack
from tests.doubles.workfolder import PlainWork
from tests.policy.fresh import text

POLICY = ContentPolicy(open_engine())
PIECE, STEP = 8, 5
"""Every piece of as many bytes as both is seen; a fragment of a page has three."""


def worked(path: Path, *, page_bytes: int, vacuum: str = "NONE", index: bool = True) -> list[str]:
    """Make a database in which values were deleted, made shorter and replaced; return them."""
    draw = random.Random(path.name)
    most = (20, 300, 2 * page_bytes, min(9 * page_bytes, 150_000))
    last = 96 if page_bytes < 5000 else 24
    gone: list[str] = []
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for pragma in ("secure_delete = OFF", "synchronous = OFF", f"page_size = {page_bytes}"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute(f"PRAGMA auto_vacuum = {vacuum}")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)")
        connection.execute("CREATE TABLE w (a TEXT PRIMARY KEY, b TEXT) WITHOUT ROWID")
        if index:
            connection.execute("CREATE INDEX by_a ON t (a)")
        connection.execute("BEGIN")
        for number in range(last):
            said = text(draw, draw.randint(PIECE, most[number % len(most)]))
            connection.execute("INSERT INTO t VALUES (?, ?)", (number, said))
            connection.execute("INSERT INTO w VALUES (?, ?)", (said, number))
            if number % 3:
                gone.append(said)
        connection.execute("COMMIT")
        connection.execute("BEGIN")  # what is taken again in one go keeps what it held
        connection.execute("DELETE FROM w WHERE b % 3")
        connection.execute("DELETE FROM t WHERE id % 3 = 1")
        connection.execute("UPDATE t SET a = 'short ' || id WHERE id % 3 = 2")
        for number in range(1000, 1000 + last // 4):
            said = "new " * draw.randint(1, page_bytes)
            connection.execute("INSERT INTO t VALUES (?, ?)", (number, said))
        connection.execute("COMMIT")
    return gone


def left_of(gone: list[str], path: Path) -> int:
    """Return how many pieces of values are in a file."""
    data = path.read_bytes()
    starts = ((one.encode(), at) for one in gone for at in range(0, len(one) - PIECE + 1, STEP))
    asked = {one[at : at + PIECE] for one, at in starts}
    return len(asked.intersection(data[at : at + PIECE] for at in range(len(data))))


def rows_of(path: Path) -> list[tuple[object, ...]]:
    """Return what a database says, once it has passed its check."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = connection.execute("SELECT * FROM t ORDER BY id").fetchall()
        return rows + connection.execute("SELECT * FROM w ORDER BY a").fetchall()


@pytest.mark.parametrize("page_bytes", [512, 1024, 4096, 65536])
@pytest.mark.parametrize("vacuum", ["NONE", "INCREMENTAL"])
def test_nothing_of_a_value_that_no_cell_holds_is_left(
    tmp_path: Path, page_bytes: int, vacuum: str
) -> None:
    """A token behind a letter, or half of one, is seen by no scan and was kept (A2a)."""
    path = tmp_path / f"db {page_bytes}"
    gone = worked(path, page_bytes=page_bytes, vacuum=vacuum)
    before, size = rows_of(path), path.stat().st_size
    clear_free_pages(bytes(path))
    assert left_of(gone, path) > 100

    clear_slack(bytes(path))
    once = path.read_bytes()
    clear_slack(bytes(path))

    assert path.read_bytes() == once
    assert (len(once), left_of(gone, path)) == (size, 0)
    assert rows_of(path) == before
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for number in range(2000, 2100):  # what is free is taken again
            connection.execute("INSERT INTO t VALUES (?, ?)", (number, "a" * 900))
    assert len(rows_of(path)) == len(before) + 100


def test_the_pages_that_say_where_others_belong_stay(tmp_path: Path) -> None:
    """Each begins with a kind as well, and behind it nothing but what the database needs."""
    path = tmp_path / "db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA page_size = 2048")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)")
        connection.execute("CREATE TABLE w (a TEXT PRIMARY KEY) WITHOUT ROWID")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(n, "x" * 900) for n in range(1500)])
        connection.execute("COMMIT")
    page = path.read_bytes()[2048 * 411 : 2048 * 412]
    assert (page[0], page[5]) == (5, 5)

    clear_slack(bytes(path))

    assert path.read_bytes()[2048 * 411 : 2048 * 412] == page
    assert len(rows_of(path)) == 1500


def test_a_deleted_token_that_begins_in_the_middle_of_a_word_is_not_kept(tmp_path: Path) -> None:
    """In a page a value follows the one before it without a gap, and is no token there (A2a)."""
    path = tmp_path / "chat.db"
    token = "sk" + "-" + text(random.Random("word"), 48)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, role TEXT, a TEXT)")
        connection.execute("CREATE TABLE w (a TEXT PRIMARY KEY) WITHOUT ROWID")
        for number in range(3):
            connection.execute("INSERT INTO t VALUES (?, 'user', ?)", (number, token + "words"))
        connection.execute("DELETE FROM t WHERE id = 1")
        connection.execute("UPDATE t SET a = 'nothing'")
    assert token.encode() in path.read_bytes()

    done = clean_file(bytes(path), b"chat.db", POLICY, work=PlainWork(tmp_path))

    assert done.cleaned.judged.decision is Decision.INCLUDE
    assert left_of([token], Path(done.path.decode())) == 0


def test_only_pages_that_changed_change_in_the_copy(tmp_path: Path) -> None:
    """Pages that differ for no reason would be stored anew every day."""
    path, other = tmp_path / "db", tmp_path / "other"
    worked(path, page_bytes=4096)
    other.write_bytes(path.read_bytes())
    with closing(sqlite3.connect(other, isolation_level=None)) as connection:
        connection.execute("UPDATE t SET a = 'other' WHERE id = 6")
    changed = differing(path, other)

    for one in (path, other):
        clear_free_pages(bytes(one))
        clear_slack(bytes(one))

    assert differing(path, other) <= changed


def differing(one: Path, other: Path) -> set[int]:
    """Return the pages that are not the same in two files."""
    datas = one.read_bytes(), other.read_bytes()
    pages = [[data[at : at + 4096] for at in range(0, len(data), 4096)] for data in datas]
    return {number for number, (a, b) in enumerate(zip(*pages, strict=True)) if a != b}


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (20, b"\x08"),
        (4096 * 2 + 5, b"\0\5"),
        (4096 * 2 + 5, b"\x20\0"),
        (4096 * 2 + 1, b"\x0f\xfe"),
    ],
)
def test_a_page_that_contradicts_itself_or_has_reserved_bytes_stays(
    tmp_path: Path, place: int, says: bytes
) -> None:
    """What such a page calls free may be work, and sums over it would be wrong."""
    path = tmp_path / "db"
    worked(path, page_bytes=4096, index=False)
    data = path.read_bytes()
    data = data[:place] + says + data[place + len(says) :]
    path.write_bytes(data)

    clear_slack(bytes(path))

    page = slice(4096 * 2, 4096 * 3) if place > 100 else slice(None)
    assert path.read_bytes()[page] == data[page]


def test_a_copy_that_did_not_pass_its_check_keeps_what_it_leaves_unread(tmp_path: Path) -> None:
    """Where nothing vouches for the pages, what they call free may be work."""
    path = tmp_path / "db"
    gone = worked(path, page_bytes=4096)

    done = clean_file(bytes(path), b"a.db", POLICY, work=PlainWork(tmp_path), is_checked=False)

    assert left_of(gone, Path(done.path.decode())) > 100


def test_a_copy_that_is_gone_is_a_failure_of_the_store(tmp_path: Path) -> None:
    """Source errors and store errors never change places."""
    with pytest.raises(StoreError):
        clear_slack(bytes(tmp_path / "none"))
