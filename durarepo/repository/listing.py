"""What the listing of a directory said, as bytes that tell whether anything changed since.

A *record* holds, for each name in order, what unchanged means: inode, size, times, mode. A name
whose times are too young to be believed, or whose read was not quiet, has a record that equals
none. The catalogue keeps the record with the encoded entries and their owners, side by side.
Source: spec/cli.md (unchanged), spec/decisions/0004-catalogue.md. Start at `record_of`.
"""

import hashlib
import os
import stat
import struct
from array import array
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from durarepo.core.limits import QUIET_SECONDS
from durarepo.local.catalog import DirRow

_STAT = struct.Struct(">QQqqII")
_NS = 1_000_000_000
_DAY_NS = 86_400 * _NS
_CONTENT_PART = struct.calcsize(">QQq")
NEVER_EQUAL = bytes(_STAT.size)
_IS_DIRECTORY = stat.S_IFDIR
_TYPE_MASK = 0o170000

SIDECARS = (b"-wal", b"-shm", b"-journal")
DATABASE_LOGS = (b"-wal", b"-journal")
"""The sidecars that hold content of their database; the third is an index of the first."""


def stat_record(found: os.stat_result) -> bytes:
    """Return what must be equal for a name to count as unchanged, 40 bytes."""
    mode = found.st_mode
    is_directory = mode & _TYPE_MASK == _IS_DIRECTORY
    try:
        return _STAT.pack(
            found.st_ino,
            0 if is_directory else found.st_size,
            found.st_mtime_ns,
            found.st_ctime_ns,
            mode,
            0 if is_directory else min(found.st_nlink, 2),
        )
    except struct.error:  # times beyond the year 2262
        told = repr((found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, mode))
        return hashlib.sha512(told.encode()).digest()[: _STAT.size]


def is_young(found: os.stat_result, started_ns: int) -> bool:
    """Return whether a change in the same tick of the clock could hide (QUIET_SECONDS)."""
    border = started_ns - QUIET_SECONDS * _NS
    return is_young_content(found, started_ns) or found.st_ctime_ns >= border


class Line(NamedTuple):
    """One name of a directory: record, encoded entry (empty: none) and owners.

    A tuple, like all that is made for every name of a run: a frozen dataclass takes four times
    as long to make.
    """

    name: bytes
    record: bytes
    entry: bytes = b""
    owners: tuple[int, ...] = ()


def record_of(lines: list[tuple[bytes, bytes]]) -> bytes:
    """Return the record of a directory from (name, stat record) in order."""
    return b"".join([len(name).to_bytes(2) + name + record for name, record in lines])


def encode_lines(lines: list[Line]) -> tuple[bytes, bytes, bytes]:
    """Return (record, entries, owners) as the catalogue keeps them; owners as in `chunks`."""
    owners = array("i")
    for line in lines:
        owners.append(len(line.owners))
        owners.extend(line.owners)
    return (
        record_of([(line.name, line.record) for line in lines]),
        b"".join([len(line.entry).to_bytes(4) + line.entry for line in lines]),
        owners.tobytes(),
    )


def iter_lines(row: DirRow) -> Iterator[Line]:
    """Yield the lines of a directory as the catalogue has them."""
    record, entries = row.record, row.entries
    owners = array("i")
    owners.frombytes(row.owners)
    at = entry_at = owner_at = 0
    while at < len(record):
        name_end = at + 2 + int.from_bytes(record[at : at + 2])
        record_end = name_end + _STAT.size
        entry_end = entry_at + 4 + int.from_bytes(entries[entry_at : entry_at + 4])
        owner_end = owner_at + 1 + owners[owner_at]
        yield Line(
            record[at + 2 : name_end],
            record[name_end:record_end],
            entries[entry_at + 4 : entry_end],
            tuple(owners[owner_at + 1 : owner_end]),
        )
        at, entry_at, owner_at = record_end, entry_end, owner_end


def sidecar_base(name: bytes) -> bytes | None:
    """Return the name of the database that ``name`` would be a sidecar of, or None."""
    for suffix in SIDECARS:
        if name.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return None


def is_reusable(
    name: bytes, record: bytes, known: Mapping[bytes, Line], listed: Mapping[bytes, bytes]
) -> bool:
    """Return whether what was kept of a name still holds; arguments as of `is_unchanged`."""
    return is_unchanged(name, record, known, listed) and bool(known[name].entry)


def is_unchanged(
    name: bytes, record: bytes, known: Mapping[bytes, Line], listed: Mapping[bytes, bytes]
) -> bool:
    """Return whether a name is what it was, kept or left out.

    Args:
        name: the name.
        record: its record now.
        known: the lines that were noted.
        listed: the records of all names now.

    A commit to a database's log leaves its main file as it was, so log and journal count too.
    """
    before = known.get(name)
    if before is None or before.record != record:
        return False
    return all(
        _content_part(listed.get(name + suffix)) == _content_part(_record_in(known, name + suffix))
        for suffix in DATABASE_LOGS
    )


def _record_in(known: Mapping[bytes, Line], name: bytes) -> bytes | None:
    return known[name].record if name in known else None


def _content_part(record: bytes | None) -> bytes:
    """Return inode, size and time of content: SQLite, run by root, sets a log's owner anew."""
    return b"" if record is None else record[:_CONTENT_PART]


def is_young_content(found: os.stat_result, started_ns: int) -> bool:
    """Return whether a change of content in the same tick of the clock could hide.

    A time more than a day ahead was set by somebody, and says nothing of when that was.
    """
    return started_ns - QUIET_SECONDS * _NS <= found.st_mtime_ns < started_ns + _DAY_NS
