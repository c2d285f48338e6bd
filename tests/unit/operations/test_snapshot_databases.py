"""SQLite databases in a snapshot: captured whole, noticed when changed, named as components."""

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from durarepo.core.entries import Consistency
from durarepo.repository import contents
from durarepo.source.sqlitestate import Damaged, capture_database
from tests.machines.stream import Stream, fill, omissions


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Give a fresh stream with an empty root."""
    return Stream(tmp_path)


@pytest.fixture(name="database")
def _database(stream: Stream) -> Iterator[sqlite3.Connection]:
    """Give an open connection in WAL mode to a database in a folder of the root."""
    (stream.root / "d").mkdir()
    with closing(_connected(stream.root / "d" / "agent.db")) as connection:
        yield connection


def _connected(path: Path, mode: str = "WAL") -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode={mode}")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    connection.execute("CREATE TABLE IF NOT EXISTS t (x)")
    connection.execute("INSERT INTO t VALUES ('first')")
    return connection


def _rows(path: Path) -> list[str]:
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
        return [row[0] for row in connection.execute("SELECT x FROM t ORDER BY rowid")]


def _components(stream: Stream, sequence: int = 0) -> dict[bytes, bytes]:
    return {one.name: one.integrity for one in stream.nested(sequence).components}


@pytest.mark.usefixtures("database")
def test_a_commit_that_is_only_in_the_log_is_kept(stream: Stream) -> None:
    """Copying the main file alone loses what was committed last."""
    result = stream.snapshot()

    back = stream.restored_root() / "d"
    assert sorted(os.listdir(back)) == ["agent.db"]
    assert _rows(back / "agent.db") == ["first"]
    assert (result.status, result.excluded, result.files) == ("ok", 2, 1)
    entry = stream.entries()[bytes(stream.root / "d" / "agent.db")]
    assert entry.consistency is Consistency.SQLITE_BACKUP
    name = b"sqlite:" + bytes(stream.root / "d" / "agent.db")
    digest = hashlib.sha256((back / "agent.db").read_bytes()).digest()
    assert _components(stream)[name] == digest == entry.sha256


def test_a_commit_without_a_change_of_the_main_file_is_noticed(
    stream: Stream, database: sqlite3.Connection
) -> None:
    """The main file looks the same for hours while the log takes every commit."""
    main = stream.root / "d" / "agent.db"
    stream.snapshot()
    before = main.stat()
    database.execute("INSERT INTO t VALUES ('second')")
    after = main.stat()
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)

    stream.snapshot()

    assert _rows(stream.restored_root() / "d" / "agent.db") == ["first", "second"]


@pytest.mark.usefixtures("database")
def test_an_unchanged_database_is_not_captured_again_and_keeps_its_component(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither beside unchanged files nor beside changed ones, nor below a changed folder."""
    fill(stream.root, {"d/beside": b"1", "other": b"1"})
    stream.snapshot()
    stream.snapshot()  # SQLite touched the log when it read it
    wanted = _components(stream, 2)
    calls: list[bytes] = []
    real = capture_database

    def counting(path: bytes, **given: object) -> object:
        calls.append(path)
        return real(path, **given)  # type: ignore[arg-type]  # as given

    monkeypatch.setattr(contents, "capture_database", counting)
    for change in ({}, {"d/beside": b"22"}, {"other": b"22"}):
        fill(stream.root, change)
        result = stream.snapshot()

        told = _components(stream)
        assert calls == []
        assert {name: told[name] for name in wanted if name != b"files"} == {
            name: digest for name, digest in wanted.items() if name != b"files"
        }
        assert len(told) == 2
        assert result.excluded == 2


def test_a_database_that_is_deleted_or_replaced_loses_its_component(
    stream: Stream, database: sqlite3.Connection
) -> None:
    """A component without its file fails every later restore of it."""
    path = stream.root / "d" / "agent.db"
    stream.snapshot()
    database.close()
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    stream.snapshot()
    assert list(_components(stream)) == [b"files"]
    path.write_bytes(b"plain text now")
    stream.snapshot()
    assert list(_components(stream)) == [b"files"]
    stream.check_restores()
    path.unlink()
    _connected(path, "DELETE").close()
    stream.snapshot()
    assert len(_components(stream)) == 2
    path.write_bytes(b"plain text again")
    result = stream.snapshot()
    assert list(_components(stream)) == [b"files"]
    assert result.status == "ok"
    stream.check_restores()


def test_sidecars_without_a_database_are_files_like_others(stream: Stream) -> None:
    """`notes-journal` and `build-wal` are names that people choose."""
    fill(stream.root, {"notes": b"text", "notes-journal": b"1", "build-wal": b"2", "-wal": b"3"})
    (stream.root / "lone.db-shm").mkdir()

    result = stream.snapshot()

    assert (result.files, result.excluded) == (4, 0)
    stream.check_restores()


def test_a_folder_named_like_a_sidecar_is_kept_and_so_is_the_database(stream: Stream) -> None:
    """SQLite cannot open it then, but neither its bytes nor the folder may be lost for that."""
    _connected(stream.root / "x.db", "DELETE").close()
    fill(stream.root, {"x.db-wal/inside": b"1"})

    result = stream.snapshot()

    assert (result.files, result.dirs, result.excluded, result.omissions) == (2, 2, 0, 1)
    stream.check_restores()


def test_a_damaged_database_is_kept_as_bytes_and_is_an_omission(stream: Stream) -> None:
    """What no check vouches for must still be there, and must be told every night."""
    path = stream.root / "bad.db"
    _connected(path, "DELETE").close()
    data = bytearray(path.read_bytes())
    data[4096 : 4096 + 200] = b"\xff" * 200
    path.write_bytes(data)
    for _ in range(2):
        result = stream.snapshot()

        assert (result.status, result.omissions) == ("omissions", 1)
        entry = stream.entries()[bytes(path)]
        assert entry.consistency is Consistency.DAMAGED_DATABASE
        assert list(_components(stream)) == [b"files"]
        assert (stream.restored_root() / "bad.db").read_bytes() == bytes(data)


@pytest.mark.usefixtures("database")
def test_a_database_that_cannot_be_read_whole_keeps_its_log_as_a_file(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raw bytes of the main file are worth little without the log beside it."""
    monkeypatch.setattr(contents, "capture_database", lambda *_, **__: Damaged(reason="locked"))

    result = stream.snapshot()

    assert (result.status, result.excluded) == ("omissions", 0)
    assert sorted(os.listdir(stream.restored_root() / "d")) == [
        "agent.db",
        "agent.db-shm",
        "agent.db-wal",
    ]


def test_a_small_database_is_captured_too(stream: Stream) -> None:
    """A database of two pages is below the size at which files are read in one go."""
    _connected(stream.root / "small.db", "DELETE").close()
    assert (stream.root / "small.db").stat().st_size < 65_536

    stream.snapshot()

    assert len(_components(stream)) == 2
    assert _rows(stream.restored_root() / "small.db") == ["first"]


def test_an_insert_stores_few_pages(stream: Stream) -> None:
    """A database is cut at its pages, so that a night's rows cost a night's rows."""
    connection = _connected(stream.root / "big.db")
    with closing(connection):
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO t VALUES (?)", [(os.urandom(500).hex(),) for _ in range(8000)]
        )
        connection.execute("COMMIT")
        first = stream.snapshot()
        connection.execute("INSERT INTO t VALUES ('one more')")

        second = stream.snapshot()

    assert first.new_bytes > 8_000_000
    assert second.new_bytes < 200_000


def test_work_that_is_named_like_a_sidecar_is_kept(tmp_path: Path) -> None:
    """A name alone proves nothing: notes beside a database of that name are work (A1d)."""
    stream = Stream(tmp_path)
    _make(stream.root / "notes")
    _make(stream.root / "notes-shm")
    fill(stream.root, {"notes-wal": b"a list of walls", "notes-journal": b"dear journal"})

    result = stream.snapshot()

    assert (result.status, result.excluded) == ("ok", 0)
    restored = stream.restored_root()
    assert (restored / "notes-wal").read_bytes() == b"a list of walls"
    assert (restored / "notes-journal").read_bytes() == b"dear journal"
    assert (restored / "notes-shm").exists()


@pytest.mark.parametrize("more", [b"x" * 100, b"x" * 4096])
def test_bytes_behind_the_pages_of_a_database_are_not_dropped(tmp_path: Path, more: bytes) -> None:
    """A copy through SQLite has the pages alone; what follows them is somebody's content."""
    stream = Stream(tmp_path)
    _make(stream.root / "trail.db")
    with (stream.root / "trail.db").open("ab") as file:
        file.write(more)
    whole = (stream.root / "trail.db").read_bytes()

    result = stream.snapshot()

    assert [line.rule for line in omissions(result)] == ["database-trailing-bytes"]
    assert (stream.restored_root() / "trail.db").read_bytes() == whole


def _make(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE t (a)")
        database.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(50)])
        database.commit()
