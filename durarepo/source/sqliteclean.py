"""Logins taken out of a copy of a database, and what its cells say given to the scan.

Only ever works on a connection to a copy that belongs to the run: it deletes rows. Deleted rows
live on in free pages, so the copy is vacuumed before it is scanned. Cells are scanned apart from
the file: in a page a value follows the one before it without a gap, and no rule could tell
where a word begins.
Source: spec/exclusion.md 6; SQLite documentation (VACUUM, secure_delete). Start at `clean`.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from urllib.parse import quote

from durarepo.core.limits import MIB, READ_WINDOW_BYTES
from durarepo.policy.database_table import DATABASE_RULES
from durarepo.policy.decide import ContentPolicy, Judged
from durarepo.policy.names import folded, text_of, undecorated
from durarepo.policy.remembered import RememberedScan, ScanMemory
from durarepo.policy.rules import DatabaseRule, Decision, Stage
from durarepo.source.sqlitefree import FreelistError, clear_free_pages
from durarepo.source.sqlitepages import PageError, most_of_key, most_of_row, values_of_page
from durarepo.source.sqliteslack import clear_slack
from durarepo.source.sqlitestate import WorkFolderProtocol
from durarepo.store.atomic import store_error

_ROWS_AT_ONCE = 256
_HEADER_WAL = slice(18, 20)
_HEADER_ROLLBACK = b"\x01\x01"
_SEPARATOR = b"\n"
_CELL = b"cell.json"
"""The form of a cell: what holds prose is no JSON, and loses its values all the same."""

RULE_UNREADABLE = "sqlite-unreadable"
"""Not a rule of the table: the copy cannot be looked through, so it cannot be vouched for."""

_RESERVED_AT = 20
_SHAPE = (slice(16, 18), slice(_RESERVED_AT, _RESERVED_AT + 4), slice(56, 60))
"""Where the header says how pages are to be read: their size, what is used of them, the text."""
_SUMMED_MOST = 100
"""SQLite takes no expression that is much deeper."""
_ROW_HEADER_BYTES = 18
_VALUE_HEADER_BYTES = 17
"""Greatest length of a value's type, and of a number, whose digits may be fewer."""

_STEPS_AT_ONCE = 10_000
_LOOK_SECONDS = 120.0
_LOOK_BYTES_A_SECOND = 2 * MIB
_VALUE_MOST = 64 * MIB

Tables = dict[str, tuple[str, ...]]
"""The columns of every table that can be read row by row."""

Cells = Callable[[sqlite3.Connection, Tables], Iterator[bytes]]
"""Yields what the cells of tables say, each apart from the others."""

Compact = Callable[[sqlite3.Connection], None]
"""Leaves the deleted rows of a copy behind; free pages would still hold them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """What became of a copy: the decision, and how many rows or cells went by which rule."""

    judged: Judged
    rows: tuple[tuple[str, int], ...] = ()


def _vacuum(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("VACUUM")


def all_cells(connection: sqlite3.Connection, tables: Tables) -> Iterator[bytes]:
    """Yield every cell of every table."""
    for table in tables:
        yield from _joined_cells(connection.execute(f"SELECT * FROM {_quoted(table)}"))  # noqa: S608 - a name of the schema, quoted


def clean(
    connection: sqlite3.Connection,
    name: bytes,
    policy: ContentPolicy,
    *,
    compact: Compact = _vacuum,
    cells: Cells = all_cells,
) -> Cleaned:
    """Take logins out of a copy by the rules that its schema and name fit, then scan its cells.

    Args:
        connection: to the copy; it is changed and committed.
        name: the name of the source, for the rules that ask.
        policy: judges what the cells hold.
        compact: how the copy is compacted.
        cells: which cells are scanned; the pages of the rest have been.

    Returns:
        `Decision.INCLUDE` for an untouched copy, `Decision.REDACT` for one that was cleaned,
        `Decision.EXCLUDE` for a store of logins, or where a hit is left. A file whose pages
        cannot be read as a database is left out as well.
    """
    connection.text_factory = bytes
    try:
        return _cleaned(connection, name, policy, compact, cells)
    except (sqlite3.Error, MemoryError, UnicodeError):
        # Its text could quote a value, so only the fact is told.
        return Cleaned(judged=_left_out(RULE_UNREADABLE))


def connect_memory(data: bytes) -> sqlite3.Connection:
    """Return a connection to a copy in memory of a database file of these bytes."""
    connection = sqlite3.connect(":memory:")
    copy = bytearray(data)
    copy[_HEADER_WAL] = _HEADER_ROLLBACK  # a copy in memory has no write-ahead log
    connection.deserialize(bytes(copy))
    return connection


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedFile:
    """What became of a copy in the work folder; ``path`` is where its ``size`` bytes lie now."""

    cleaned: Cleaned
    path: bytes
    size: int


def clean_file(
    path: bytes,
    name: bytes,
    policy: ContentPolicy,
    *,
    work: WorkFolderProtocol,
    memory: ScanMemory | None = None,
    is_checked: bool = True,
) -> CleanedFile:
    """Clean a copy of the work folder and scan the bytes of what is left.

    A copy that nothing is taken out of keeps its bytes, but for those of free pages and those
    that SQLite leaves unread in other pages: they become zeros. Nothing is written anywhere but
    into the work folder, and no value is told.

    Args:
        path: the copy; it is changed, or replaced by another file of ``work``.
        name: the name of the source.
        policy: judges cells and bytes.
        work: where a compacted copy is made.
        memory: knows the pages of an earlier copy in which nothing was; what is found then has
            to be found again without it.
        is_checked: whether the copy passed a check of its pages; what the pages of another one
            leave unread stays.

    Returns:
        As `clean`; the caller discards the file. Bytes that only free pages hold are left
        behind with them; where a hit remains the copy is left out.

    Raises:
        StoreError: the work folder cannot be read or written.
    """
    copy = _Copy(path, work, policy, memory)
    mode = copy.set_header(_HEADER_ROLLBACK)
    try:
        with closing(_connect(path)) as connection:
            _bound(connection, copy.size())
            cleaned = clean(connection, name, policy, compact=copy.compact, cells=copy.cells)
            if cleaned.judged.decision is not Decision.EXCLUDE:
                cleaned = _without_hits_in_pages(cleaned, connection, copy)
            if cleaned.judged.decision is not Decision.EXCLUDE:
                copy.forget_free_pages(connection)
        if cleaned.judged.decision is not Decision.EXCLUDE and is_checked:
            clear_slack(copy.path)
    except sqlite3.Error:
        cleaned = Cleaned(judged=_left_out(RULE_UNREADABLE))
    copy.set_header(mode)
    return CleanedFile(cleaned=cleaned, path=copy.path, size=copy.size())


def _without_hits_in_pages(
    cleaned: Cleaned, connection: sqlite3.Connection, copy: "_Copy"
) -> Cleaned:
    judged = copy.judge_pages()
    if judged.decision is Decision.INCLUDE:
        return cleaned
    if not copy.is_compacted:
        try:
            copy.compact(connection)
        except sqlite3.Error:
            return Cleaned(judged=judged)
        if copy.judge_pages().decision is Decision.INCLUDE:
            rest = replace(
                judged, decision=Decision.REDACT, stage=Stage.STRUCTURED, count=1, data=None
            )
            return Cleaned(judged=rest, rows=((judged.rule, 1),))
    return Cleaned(judged=judged)


class _Copy:
    """A copy in the work folder, and the compacted one that takes its place."""

    def __init__(
        self,
        path: bytes,
        work: WorkFolderProtocol,
        policy: ContentPolicy,
        memory: ScanMemory | None = None,
    ) -> None:
        self.path = path
        self.is_compacted = False
        self._work = work
        self._policy = policy
        self._memory = memory or ScanMemory()
        self._looked: tuple[Judged, RememberedScan] | None = None

    def compact(self, connection: sqlite3.Connection) -> None:
        """Write the copy anew, into the work folder: a plain VACUUM writes to another place."""
        compacted = self._work.new_file(".compact")
        try:
            connection.execute("VACUUM INTO ?", (os.fsdecode(compacted),))
        except sqlite3.Error:
            self._work.discard(compacted)
            raise
        self._work.discard(self.path)
        self.path, self.is_compacted, self._looked = compacted, True, None

    def forget_free_pages(self, connection: sqlite3.Connection) -> None:
        """Leave nothing in free pages: what was deleted there is cut, and no scan sees it whole."""
        try:
            clear_free_pages(self.path)
        except FreelistError:
            self.compact(connection)

    def judge_pages(self) -> Judged:
        """Judge the bytes of the copy, once as long as they are the same."""
        return self._look()[0]

    def _look(self) -> tuple[Judged, RememberedScan]:
        if self._looked is None:
            shape = b"".join(self._read(one.start, one.stop - one.start) for one in _SHAPE)
            scan = self._memory.scan(self._policy.start_scan, shape=shape)
            try:
                with open(self.path, "rb", buffering=0) as file:
                    while data := file.read(READ_WINDOW_BYTES):
                        scan.feed(data)
            except OSError as error:
                raise store_error(error, "read the database copy", self.path) from error
            self._looked = self._policy.judge_scanned(b"database", scan.finish()), scan
        return self._looked

    def cells(self, connection: sqlite3.Connection, tables: Tables) -> Iterator[bytes]:
        """Yield the cells that a look at the pages alone does not settle.

        Those that do not lie whole in one page, and those of pages where an engine saw anything
        at all: where a cell begins and ends cannot be told from the bytes around it.
        """
        _, scan = self._look()
        (encoding,) = connection.execute("PRAGMA encoding").fetchone()
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        if scan.is_wide or encoding != b"UTF-8":
            yield from all_cells(connection, tables)
            return
        try:
            yield from self._seen_values(scan, page_bytes)
        except PageError:
            yield from all_cells(connection, tables)
            return
        for table in tables:
            long = _long_rows(connection, table, self._usable(page_bytes))
            yield from _joined_cells(long)

    def _usable(self, page_bytes: int) -> int:
        (reserved,) = self._read(_RESERVED_AT, 1)
        return page_bytes - reserved

    def _seen_values(self, scan: RememberedScan, page_bytes: int) -> Iterator[bytes]:
        usable, seen = self._usable(page_bytes), -1
        for start, stop in scan.seen:
            data, at = self._read(start, stop - start), 0
            while (sight := self._policy.first_sight(data, at)) is not None:
                number = (start + sight) // page_bytes
                at = (number + 1) * page_bytes - start
                if number != seen:
                    seen = number
                    page = self._read(number * page_bytes, page_bytes)
                    values = values_of_page(page, is_first=number == 0, usable=usable)
                    yield _SEPARATOR.join((*values, b""))

    def _read(self, offset: int, length: int) -> bytes:
        try:
            with open(self.path, "rb", buffering=0) as file:
                return os.pread(file.fileno(), length, offset)
        except OSError as error:
            raise store_error(error, "read the database copy", self.path) from error

    def size(self) -> int:
        """Return how many bytes it has now."""
        try:
            return os.stat(self.path).st_size
        except OSError as error:
            raise store_error(error, "read the database copy", self.path) from error

    def set_header(self, mode: bytes) -> bytes:
        """Set the journal mode in the header; return what stood there.

        A copy of a database with a write-ahead log would begin a log of its own when it is
        opened; it is put back before the copy is kept.
        """
        try:
            with open(self.path, "r+b", buffering=0) as file:
                file.seek(_HEADER_WAL.start)
                before = file.read(len(mode))
                if before != mode:
                    file.seek(_HEADER_WAL.start)
                    file.write(mode)
        except OSError as error:
            raise store_error(error, "write the database copy", self.path) from error
        return before


def _connect(path: bytes) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(path)}?mode=rw", uri=True, isolation_level=None)
    for pragma in ("journal_mode=OFF", "synchronous=OFF", "temp_store=MEMORY"):
        connection.execute(f"PRAGMA {pragma}")
    # What a schema may make SQLite evaluate is the database's owner's say, not ours.
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA cell_size_check=ON")
    return connection


def _bound(connection: sqlite3.Connection, size: int) -> None:
    """End a look that takes longer than any sound database of ``size`` bytes needs."""
    until = time.monotonic() + _LOOK_SECONDS + size / _LOOK_BYTES_A_SECOND
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_MOST)
    connection.set_progress_handler(lambda: int(time.monotonic() > until), _STEPS_AT_ONCE)


def _cleaned(
    connection: sqlite3.Connection,
    name: bytes,
    policy: ContentPolicy,
    compact: Compact,
    cells: Cells,
) -> Cleaned:
    tables = _tables(connection)
    rules = [rule for rule in DATABASE_RULES if _fits(rule, name, tables)]
    for rule in rules:
        if rule.whole:
            return Cleaned(judged=_left_out(rule.id))
    connection.execute("PRAGMA secure_delete = ON")
    try:
        rows = tuple((rule.id, n) for rule in rules if (n := _apply(connection, rule, policy)))
    except _UnsureError as error:
        return Cleaned(judged=_left_out(error.rule))
    connection.commit()
    is_mixed = any("*" not in rule.names for rule in rules)
    if rows or (is_mixed and _has_free_pages(connection)):
        compact(connection)
    judged = _scan_cells(connection, policy, cells(connection, tables))
    if judged.decision is Decision.EXCLUDE or not rows:
        return Cleaned(judged=judged, rows=rows)
    ids = tuple(sorted(rule for rule, _ in rows))
    count = sum(number for _, number in rows)
    return Cleaned(
        judged=Judged(
            decision=Decision.REDACT,
            rule=ids[0],
            stage=Stage.STRUCTURED,
            rules=ids,
            count=count,
        ),
        rows=rows,
    )


def _left_out(rule: str) -> Judged:
    return Judged(decision=Decision.EXCLUDE, rule=rule, stage=Stage.STRUCTURED, rules=(rule,))


def _tables(connection: sqlite3.Connection) -> Tables:
    found: Tables = {}
    listed = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    ).fetchall()
    for (raw,) in listed:
        table = _text(raw)
        columns = connection.execute(f"PRAGMA table_info({_quoted(table)})").fetchall()
        found[table] = tuple(_text(column[1]) for column in columns)
    return found


def _fits(rule: DatabaseRule, name: bytes, tables: Tables) -> bool:
    readings = undecorated(folded(text_of(name)))
    if not any(fnmatchcase(one, pattern) for one in readings for pattern in rule.names):
        return False
    columns = {table.lower(): {one.lower() for one in held} for table, held in tables.items()}
    held = columns.get(rule.table.lower())  # SQLite does not tell cases apart
    return held is not None and {one.lower() for one in rule.columns} <= held


def _has_free_pages(connection: sqlite3.Connection) -> bool:
    (count,) = connection.execute("PRAGMA freelist_count").fetchone()
    return bool(count)


class _UnsureError(Exception):
    """Rows are to be changed, and what else would change with them is not certain."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


def _apply(connection: sqlite3.Connection, rule: DatabaseRule, policy: ContentPolicy) -> int:
    """Take out what a rule says and return how many rows; exactly those, or `_UnsureError`."""
    table, before = _quoted(rule.table), _row_count(connection, rule.table)
    changes = _redactions(connection, rule, policy) if rule.redact else []
    if rule.redact:
        count, left = len(changes), before
    else:
        listed = connection.execute(f"SELECT count(*) FROM {table} WHERE {rule.where}")  # noqa: S608 - of the table of rules
        (count,) = listed.fetchone()
        left = before - count
    if not count:
        return 0
    if not _stands_alone(connection, rule.table):
        raise _UnsureError(rule.id)
    if rule.redact:
        column = _quoted(rule.redact)
        for text, row_id in changes:
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (text, row_id))  # noqa: S608 - as above
    else:
        connection.execute(f"DELETE FROM {table} WHERE {rule.where}")  # noqa: S608 - as above
    if _row_count(connection, rule.table) != left:
        raise _UnsureError(rule.id)
    return int(count)


def _redactions(
    connection: sqlite3.Connection, rule: DatabaseRule, policy: ContentPolicy
) -> list[tuple[object, int]]:
    column = _quoted(rule.redact)
    changes: list[tuple[object, int]] = []
    listed = connection.execute(
        f"SELECT rowid, {column}, typeof({column}) FROM {_quoted(rule.table)}"  # noqa: S608 - as above
    )
    for row_id, cell, kind in listed:
        if isinstance(cell, bytes):
            judged = policy.judge(_CELL, cell)
            if judged.decision is Decision.REDACT and judged.data is not None:
                text: object = judged.data if kind == b"blob" else _text(judged.data)
                changes.append((text, row_id))
    return changes


def _row_count(connection: sqlite3.Connection, table: str) -> int:
    (count,) = connection.execute(f"SELECT count(*) FROM {_quoted(table)}").fetchone()  # noqa: S608 - as above
    return int(count)


def _stands_alone(connection: sqlite3.Connection, table: str) -> bool:
    """Return whether a change of a table changes nothing else, and hits the rows it names.

    A trigger does as it likes, a full-text index keeps what its table held, a foreign key may
    delete more, and a column can have the name by which rows are told apart.
    """
    listed = connection.execute("SELECT type, tbl_name, coalesce(sql, '') FROM sqlite_master")
    for kind, owner, sql in listed.fetchall():
        if kind == b"trigger" and _text(owner).lower() == table.lower():
            return False
        words = _text(sql).lower()
        if words.startswith("create virtual") and table.lower() in words:
            return False
    columns = connection.execute(f"PRAGMA table_info({_quoted(table)})").fetchall()
    return not _ROW_ID_NAMES.intersection(_text(column[1]).lower() for column in columns)


_ROW_ID_NAMES = frozenset({"rowid", "oid", "_rowid_"})


def _scan_cells(
    connection: sqlite3.Connection, policy: ContentPolicy, cells: Iterator[bytes]
) -> Judged:
    scan = policy.start_scan()
    schema = connection.execute("SELECT name, sql FROM sqlite_master").fetchall()
    scan.feed(_SEPARATOR.join(one for row in schema for one in (*row, b"") if one is not None))
    for piece in cells:
        scan.feed(piece)
    return policy.judge_scanned(b"database", scan.finish())


def _joined_cells(cursor: sqlite3.Cursor) -> Iterator[bytes]:
    while rows := cursor.fetchmany(_ROWS_AT_ONCE):
        cells = [cell for row in rows for cell in row if isinstance(cell, bytes)]
        yield _SEPARATOR.join((*cells, b""))


def _long_rows(connection: sqlite3.Connection, table: str, usable: int) -> sqlite3.Cursor:
    """Return the rows of a table that may not lie whole in one page, and perhaps a few more."""
    columns = connection.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
    chosen = f"SELECT * FROM {_quoted(table)}"  # noqa: S608 - a name of the schema, quoted
    if len(columns) > _SUMMED_MOST:
        return connection.execute(chosen)
    (sql,) = connection.execute(
        "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)
    ).fetchone()
    most = most_of_key(usable) if b"without" in sql.lower() else most_of_row(usable)
    most -= _ROW_HEADER_BYTES + len(columns) * _VALUE_HEADER_BYTES
    lengths = (f"coalesce(length(CAST({_quoted(_text(one[1]))} AS BLOB)), 0)" for one in columns)
    return connection.execute(f"{chosen} WHERE {' + '.join(lengths)} > ?", (most,))


def _text(raw: object) -> str:
    return raw.decode("utf-8", "surrogateescape") if isinstance(raw, bytes) else str(raw)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
