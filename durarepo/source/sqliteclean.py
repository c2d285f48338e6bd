"""Logins taken out of a copy of a database, and what its cells say given to the scan.

Only ever works on a connection to a copy that belongs to the run: it deletes rows. Deleted rows
live on in free pages, so the copy is vacuumed before it is scanned. Cells are scanned apart from
the file: in a page a value follows the one before it without a gap, and no rule could tell
where a word begins.
Source: spec/exclusion.md 6; SQLite documentation (VACUUM, secure_delete). Start at `clean`.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from durarepo.policy.database_table import DATABASE_RULES
from durarepo.policy.decide import ContentPolicy, Judged
from durarepo.policy.names import folded, text_of, undecorated
from durarepo.policy.rules import DatabaseRule, Decision, Stage

_ROWS_AT_ONCE = 256
_HEADER_WAL = slice(18, 20)
_HEADER_ROLLBACK = b"\x01\x01"
_SEPARATOR = b"\n"
_CELL = b"cell.json"
"""The form of a cell: what holds prose is no JSON, and loses its values all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """What became of a copy: the decision, and how many rows or cells went by which rule."""

    judged: Judged
    rows: tuple[tuple[str, int], ...] = ()


def clean(connection: sqlite3.Connection, name: bytes, policy: ContentPolicy) -> Cleaned:
    """Take logins out of a copy by the rules that its schema and name fit, then scan its cells.

    Args:
        connection: to the copy; it is changed and committed.
        name: the name of the source, for the rules that ask.
        policy: judges what the cells hold.

    Returns:
        `Decision.INCLUDE` for an untouched copy, `Decision.REDACT` for one that was cleaned,
        `Decision.EXCLUDE` for a store of logins, or where a hit is left. A file whose pages
        cannot be read as a database is left out as well.
    """
    connection.text_factory = bytes
    try:
        return _cleaned(connection, name, policy)
    except sqlite3.Error:
        # Its text could quote a value, so only the fact is told.
        return Cleaned(judged=_left_out("sqlite-unreadable"))


def connect_memory(data: bytes) -> sqlite3.Connection:
    """Return a connection to a copy in memory of a database file of these bytes."""
    connection = sqlite3.connect(":memory:")
    copy = bytearray(data)
    copy[_HEADER_WAL] = _HEADER_ROLLBACK  # a copy in memory has no write-ahead log
    connection.deserialize(bytes(copy))
    return connection


def _cleaned(connection: sqlite3.Connection, name: bytes, policy: ContentPolicy) -> Cleaned:
    tables = _tables(connection)
    rules = [rule for rule in DATABASE_RULES if _fits(rule, name, tables)]
    for rule in rules:
        if rule.whole:
            return Cleaned(judged=_left_out(rule.id))
    connection.execute("PRAGMA secure_delete = ON")
    rows = tuple((rule.id, count) for rule in rules if (count := _apply(connection, rule, policy)))
    connection.commit()
    is_mixed = any("*" not in rule.names for rule in rules)
    if rows or (is_mixed and _has_free_pages(connection)):
        connection.execute("VACUUM")
    judged = _scan_cells(connection, tables, policy)
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


def _tables(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """Return the columns of every table that can be read row by row."""
    found: dict[str, tuple[str, ...]] = {}
    listed = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    ).fetchall()
    for (raw,) in listed:
        table = _text(raw)
        columns = connection.execute(f"PRAGMA table_info({_quoted(table)})").fetchall()
        found[table] = tuple(_text(column[1]) for column in columns)
    return found


def _fits(rule: DatabaseRule, name: bytes, tables: dict[str, tuple[str, ...]]) -> bool:
    readings = undecorated(folded(text_of(name)))
    if not any(fnmatchcase(one, pattern) for one in readings for pattern in rule.names):
        return False
    return set(rule.columns) <= set(tables.get(rule.table, ())) and rule.table in tables


def _has_free_pages(connection: sqlite3.Connection) -> bool:
    (count,) = connection.execute("PRAGMA freelist_count").fetchone()
    return bool(count)


def _apply(connection: sqlite3.Connection, rule: DatabaseRule, policy: ContentPolicy) -> int:
    table = _quoted(rule.table)
    if not rule.redact:
        cursor = connection.execute(f"DELETE FROM {table} WHERE {rule.where}")  # noqa: S608 - of the table of rules
        return cursor.rowcount
    column = _quoted(rule.redact)
    changed: list[tuple[object, int]] = []
    listed = connection.execute(f"SELECT rowid, {column}, typeof({column}) FROM {table}")  # noqa: S608 - as above
    for row_id, cell, kind in listed:
        if isinstance(cell, bytes):
            judged = policy.judge(_CELL, cell)
            if judged.decision is Decision.REDACT and judged.data is not None:
                text: object = judged.data if kind == b"blob" else _text(judged.data)
                changed.append((text, row_id))
    for text, row_id in changed:
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (text, row_id))  # noqa: S608 - as above
    return len(changed)


def _scan_cells(
    connection: sqlite3.Connection, tables: dict[str, tuple[str, ...]], policy: ContentPolicy
) -> Judged:
    scan = policy.start_scan()
    for table in tables:
        for piece in _cells(connection, table):
            scan.feed(piece)
    return policy.judge_scanned(b"database", scan.finish())


def _cells(connection: sqlite3.Connection, table: str) -> Iterator[bytes]:
    cursor = connection.execute(f"SELECT * FROM {_quoted(table)}")  # noqa: S608 - a name of the schema, quoted
    while rows := cursor.fetchmany(_ROWS_AT_ONCE):
        cells = [cell for row in rows for cell in row if isinstance(cell, bytes)]
        yield _SEPARATOR.join((*cells, b""))


def _text(raw: object) -> str:
    return raw.decode("utf-8", "surrogateescape") if isinstance(raw, bytes) else str(raw)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
