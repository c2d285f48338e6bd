"""A whole copy of a SQLite database that others may be writing, taken without touching it.

Copying the main file misses what was committed to the write-ahead log and may tear; so a
database goes through SQLite's own backup, in one step inside one read transaction, into a file
of the work folder. The sidecars (`-wal`, `-shm`, `-journal`) are never part of a backup.
SQLite would create or mend sidecars beside some sources even when told to read only; those are
read another way (see `_ways`): as immutable while nothing changes, or from a copy.
While a capture runs, no other code of this process may open and close the same database:
closing any descriptor of a file drops the locks that SQLite holds on it (fcntl(2)).
Source: sqlite.org/backup.html, wal.html, lockingv3.html. Start at `capture_database`.
"""

import io
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import NoReturn, Protocol

from durarepo.core.errors import StoreError
from durarepo.core.limits import MIB, READ_TRIES
from durarepo.source.sqlitefiles import (
    JOURNAL,
    SHM,
    WAL,
    DatabaseFiles,
    DatabaseState,
    MovedError,
    file_state,
)

SQLITE_MAGIC = b"SQLite format 3\x00"
BUSY_SECONDS = 10.0
"""How long a writer that holds its lock is waited for."""

_STEPS_AT_ONCE = 1_000
_CHECK_SECONDS = 20.0
_CHECK_BYTES_A_SECOND = 8 * MIB
_VALUE_LEAST, _VALUE_MOST = MIB, 16 * MIB
_UNCHECKED = {
    sqlite3.SQLITE_ERROR: "impossible",
    sqlite3.SQLITE_INTERRUPT: "unfinished",
    sqlite3.SQLITE_TOOBIG: "unfinished",
}
"""Why a check came to no end although nothing is wrong with the copy's pages."""

FULL_CHECKS = ("integrity", "quick")
"""The checks that come to an end: every page was looked at."""

INTEGRITY_MAX_BYTES = 128 * MIB
"""Up to here a copy gets the full check (about 4 s per GB), above it the quick one (0.8 s)."""

_SIDECAR_STARTS: dict[bytes, tuple[tuple[bytes, ...], bool]] = {
    b"-wal": ((b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"), False),
    b"-shm": ((bytes.fromhex("18e22d00"), bytes.fromhex("002de218")), True),
    b"-journal": ((bytes.fromhex("d9d505f920a163d7"),), True),
}
"""How each sidecar begins, and whether SQLite leaves one whose beginning is zeros."""

_HEADER_BYTES = 100
_GREATEST_PAGE_BYTES = 65536

_NEEDS_ANOTHER_WAY = frozenset(
    {
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PROTOCOL,
    }
)
_OUR_DISK = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_TRUNCATE,
    }
)
_REASONS = {
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_PROTOCOL: "locked",
    sqlite3.SQLITE_CORRUPT: "malformed",
    sqlite3.SQLITE_NOTADB: "not-a-database",
    sqlite3.SQLITE_IOERR: "unreadable",
    sqlite3.SQLITE_CANTOPEN: "unreadable",
    sqlite3.SQLITE_READONLY: "unreadable",
}


class WorkFolderProtocol(Protocol):
    """What a capture needs of the run's work folder."""

    def new_file(self, suffix: str) -> bytes:
        """Return the path of a new, empty file in a folder of this run alone."""

    def discard(self, path: bytes) -> None:
        """Remove a file of that folder; one that is gone already is fine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseCopy:
    """A copy in the work folder that passed its check; whoever stores it discards it.

    ``check`` is ``integrity`` or ``quick``, or ``impossible`` where this SQLite lacks what the
    schema needs (a collation, a function), ``unfinished`` where the schema makes it go on and
    on. ``stat`` is that of the source's main file.
    """

    path: bytes
    stat: os.stat_result
    size: int
    page_size: int
    page_count: int
    user_version: int
    check: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Damaged:
    """No copy can be vouched for: the caller keeps the raw bytes, which is an omission.

    ``reason``: locked, changing, malformed, not-a-database, check-failed, trailing-bytes,
    unreadable or refused.
    """

    reason: str


def is_sqlite(first_bytes: bytes) -> bool:
    """Return whether a file that begins with ``first_bytes`` (16 or more) is a database."""
    return first_bytes.startswith(SQLITE_MAGIC)


def sidecar_names(name: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the names of the files that SQLite keeps beside a database; never backed up."""
    return name + WAL, name + SHM, name + JOURNAL


def is_sidecar(name: bytes, first_bytes: bytes, size: int) -> bool:
    """Return whether a file beside a database is what its name says SQLite keeps there.

    Args:
        name: ends in ``-wal``, ``-shm`` or ``-journal``.
        first_bytes: its first 16 bytes.
        size: its size in bytes; an empty one holds nothing.

    Source: sqlite.org/fileformat2.html 3 and 4, sqlite.org/walformat.html 2.1.
    """
    if size == 0:
        return True
    starts, may_be_zeroed = _SIDECAR_STARTS[name[name.rfind(b"-") :]]
    zeroed = may_be_zeroed and len(first_bytes) > 0 and not any(first_bytes)
    return zeroed or first_bytes.startswith(starts)


def database_state(
    main: os.stat_result, *, wal: os.stat_result | None, journal: os.stat_result | None
) -> DatabaseState:
    """Return what to compare with the state of the run before: equal means unchanged.

    A commit to the write-ahead log leaves the main file as it was, so the log counts too. An
    empty log or journal is none: SQLite makes and leaves such without a change of content.
    """
    return file_state(main), file_state(wal), file_state(journal)


def may_have_changed(before: DatabaseState | None, now: DatabaseState) -> bool:
    """Return whether a database has to be captured again."""
    return before is None or before != now


def capture_database(
    path: bytes, *, work: WorkFolderProtocol, busy_seconds: float = BUSY_SECONDS
) -> DatabaseCopy | Damaged:
    """Copy the database at ``path`` with all that was committed before the call.

    Equal content gives a copy of equal bytes. Neither the database nor its sidecars are
    changed, made or removed; a log that others have open is joined as one more reader.

    Args:
        path: absolute real path of the main file.
        work: where the copy is made; never the system's folder for temporary files.
        busy_seconds: how long a writer's lock is waited for.

    Raises:
        VanishedError: no such file any more.
        SourceError: no regular file any more, or its folder cannot be read.
        StoreError: the work folder cannot take the copy.
    """
    outcome: DatabaseCopy | Damaged = Damaged(reason="changing")
    for _ in range(READ_TRIES):
        outcome = _attempt(path, work=work, busy_seconds=busy_seconds)
        if outcome != Damaged(reason="changing"):
            break
    return outcome


def _attempt(
    path: bytes, *, work: WorkFolderProtocol, busy_seconds: float
) -> DatabaseCopy | Damaged:
    """Take and check one copy; leave no file behind unless it is good."""
    outcome: DatabaseCopy | Damaged | None = None
    with DatabaseFiles(path) as source:
        copy = work.new_file(".sqlite")
        try:
            outcome = _take(source, copy, work=work, busy_seconds=busy_seconds)
            if outcome is None:
                outcome = _checked(copy, source)
        finally:
            if not isinstance(outcome, DatabaseCopy):
                work.discard(copy)
    return outcome


_Way = Callable[[DatabaseFiles, bytes, WorkFolderProtocol, float], None]


def _take(
    source: DatabaseFiles, copy: bytes, *, work: WorkFolderProtocol, busy_seconds: float
) -> Damaged | None:
    """Fill ``copy`` by the first way that works; say why if none does."""
    problem = Damaged(reason="unreadable")
    for way in _ways(source):
        try:
            way(source, copy, work, busy_seconds)
            source.check_same()
        except MovedError:
            locked = problem.reason == "locked"
            return problem if locked else Damaged(reason="changing")
        except sqlite3.Error as error:
            problem = _problem(error, copy)
            if _primary(error) not in _NEEDS_ANOTHER_WAY:
                return problem
        else:
            return None
    return problem


def _ways(source: DatabaseFiles) -> tuple[_Way, ...]:
    """Return the ways to read the source as its sidecars are now, best first.

    A log without its index (`-shm`) has no writer, and SQLite would make the index: copied. No
    log: SQLite would make one: immutable. A journal that a killed writer left needs a rollback,
    which SQLite refuses to a reader: copied, if the direct way fails. So is what SQLite cannot
    open at all, such as a path above 512 bytes.
    """
    wal, shm, journal = source.look(WAL), source.look(SHM), source.look(JOURNAL)
    if wal is not None and shm is not None:
        return (_beside_writers, _joined, _from_a_copy)
    if wal is not None and wal.st_size > 0:
        return (_from_a_copy,)
    if source.is_wal_mode():
        return (_at_rest, _from_a_copy) if journal is None else (_from_a_copy,)
    return (_joined, _from_a_copy)


def _beside_writers(
    source: DatabaseFiles, copy: bytes, _work: WorkFolderProtocol, busy_seconds: float
) -> None:
    _back_up(source, copy, "mode=ro&readonly_shm=1", busy_seconds=busy_seconds)


def _joined(
    source: DatabaseFiles, copy: bytes, _work: WorkFolderProtocol, busy_seconds: float
) -> None:
    _back_up(source, copy, "mode=ro", busy_seconds=busy_seconds)


def _at_rest(
    source: DatabaseFiles, copy: bytes, _work: WorkFolderProtocol, busy_seconds: float
) -> None:
    before = source.settled_state()
    _back_up(source, copy, "mode=ro&immutable=1", busy_seconds=busy_seconds)
    if source.state() != before:
        raise MovedError


def _from_a_copy(
    source: DatabaseFiles, copy: bytes, work: WorkFolderProtocol, busy_seconds: float
) -> None:
    """Copy the files as they lie while nothing changes, and let SQLite mend that copy."""
    before = source.settled_state()
    staged = work.new_file(".staged")
    try:
        for suffix, state in zip((b"", WAL, JOURNAL), before, strict=True):
            if state is not None:
                _copy_bytes(source, suffix, staged + suffix)
        if source.state() != before:
            raise MovedError
        _copy_pages(_uri(staged, "mode=rw"), copy, busy_seconds=busy_seconds)
    finally:
        for made in (staged, *sidecar_names(staged)):
            work.discard(made)


def _back_up(source: DatabaseFiles, copy: bytes, options: str, *, busy_seconds: float) -> None:
    _copy_pages(
        _uri(source.path, options), copy, busy_seconds=busy_seconds, opened=source.check_opened
    )


def _copy_pages(
    uri: str, copy: bytes, *, busy_seconds: float, opened: Callable[[], None] | None = None
) -> None:
    """Back up in one step inside a read transaction, so that no writer can start it over."""
    with closing(_connect(uri, busy_seconds)) as reader:
        reader.execute("BEGIN")
        reader.execute("PRAGMA schema_version").fetchone()  # takes the lock, or says busy
        if opened is not None:
            opened()
        with closing(_connect(_uri(copy, "mode=rw"), busy_seconds)) as writer:
            writer.execute("PRAGMA journal_mode=OFF")
            writer.execute("PRAGMA synchronous=OFF")
            reader.backup(writer, pages=-1, progress=_stop_if_busy)


def _stop_if_busy(status: int, _remaining: int, _total: int) -> None:
    """Stop a backup that Python would otherwise try again for ever."""
    if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        raise MovedError


def _checked(copy: bytes, source: DatabaseFiles) -> DatabaseCopy | Damaged:
    try:
        size = os.stat(copy).st_size
        with open(copy, "rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        _refuse_work(copy, error.strerror, error)
    page_size = int.from_bytes(header[16:18], "big")
    page_size = _GREATEST_PAGE_BYTES if page_size == 1 else page_size
    if not is_sqlite(header) or page_size == 0:
        return Damaged(reason="not-a-database")
    if _has_more(source, size, page_size):
        return Damaged(reason="trailing-bytes")
    check = _check(copy, size)
    if check is None:
        return Damaged(reason="check-failed")
    return DatabaseCopy(
        path=copy,
        stat=source.stat,
        size=size,
        page_size=page_size,
        page_count=size // page_size,
        user_version=int.from_bytes(header[60:64], "big", signed=True),
        check=check,
    )


def _has_more(source: DatabaseFiles, size: int, page_size: int) -> bool:
    """Return whether the main file holds bytes behind its pages, which no copy would have."""
    main, log, journal = source.look(), source.look(WAL), source.look(JOURNAL)
    if main is None:
        return False
    sizes = (source.stat.st_size, main.st_size)
    at_rest = not any(one is not None and one.st_size for one in (log, journal))
    return all(one % page_size for one in sizes) or (at_rest and min(sizes) > size)


def _bound(reader: sqlite3.Connection, size: int) -> None:
    """End a check that takes longer than any sound database of ``size`` bytes needs.

    A schema may hold expressions that SQLite evaluates for every row; whoever wrote it must not
    keep the snapshot from its end.
    """
    until = time.monotonic() + _CHECK_SECONDS + size / _CHECK_BYTES_A_SECOND
    reader.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(max(size, _VALUE_LEAST), _VALUE_MOST))
    reader.set_progress_handler(lambda: int(time.monotonic() > until), _STEPS_AT_ONCE)


def _check(copy: bytes, size: int) -> str | None:
    """Return which check the copy passed; None if it failed."""
    with closing(_connect(_uri(copy, "mode=ro&immutable=1"), 0)) as reader:
        return _checked_by(reader, size)


def is_whole(copy: sqlite3.Connection, size: int) -> bool:
    """Return whether a copy in memory would be captured as a database, and not kept as bytes.

    Args:
        copy: holds the bytes of the main file alone.
        size: of that file in bytes.

    Raises:
        sqlite3.Error: it is no database.
    """
    (pages,) = copy.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = copy.execute("PRAGMA page_size").fetchone()
    if size > pages * page_bytes:
        return False
    check = _checked_by(copy, size)
    copy.set_progress_handler(None, 0)  # the bound was for the check alone
    return check is not None


def _checked_by(reader: sqlite3.Connection, size: int) -> str | None:
    kind = FULL_CHECKS[size > INTEGRITY_MAX_BYTES]
    try:
        reader.execute("PRAGMA temp_store=MEMORY")
        # What a schema may make SQLite evaluate is the database's owner's say, not ours.
        reader.execute("PRAGMA trusted_schema=OFF")
        reader.execute("PRAGMA ignore_check_constraints=ON")
        _bound(reader, size)
        found = reader.execute(f"PRAGMA {kind}_check(1)").fetchall()
    except sqlite3.Error as error:
        return _UNCHECKED.get(_primary(error))
    return kind if found == [("ok",)] else None


def _connect(uri: str, busy_seconds: float) -> sqlite3.Connection:
    return sqlite3.connect(
        uri, uri=True, timeout=busy_seconds, isolation_level=None, check_same_thread=False
    )


def _uri(path: bytes, options: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415 - few commands open a database

    return f"file:{quote(path)}?{options}"


def _copy_bytes(source: DatabaseFiles, suffix: bytes, target: bytes) -> None:
    with _new_target(target) as writer:
        for data in source.windows(suffix):
            _write_all(writer, data, target)


def _primary(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _problem(error: sqlite3.Error, copy: bytes) -> Damaged:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if code in _OUR_DISK:
        _refuse_work(copy, str(error), error)
    return Damaged(reason=_REASONS.get(_primary(error), "refused"))


def _write_all(writer: io.FileIO, data: bytes, target: bytes) -> None:
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[writer.write(rest) :]
    except OSError as error:
        _refuse_work(target, error.strerror, error)


def _new_target(path: bytes) -> io.FileIO:
    """Open a file of the work folder for writing: the empty one given, or a sidecar to be."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return io.FileIO(os.open(path, flags, 0o600), "wb")
    except OSError as error:
        _refuse_work(path, error.strerror, error)


def _refuse_work(path: bytes, why: str | None, error: Exception) -> NoReturn:
    raise StoreError(
        "work-unwritable",
        f"work file {os.fsdecode(path)!r} cannot be written: {why}",
        hint="make room where the state lies, or move the state",
    ) from error
