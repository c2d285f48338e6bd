"""What a directory listing says of one name: the values that source, format and restorer share.

An `Entry` is immutable and knows neither its parent nor how it is encoded.
Names and targets are bytes, times are whole nanoseconds since 1970 (any sign), sizes are bytes.
Source: spec/format.md 6.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from durarepo.core.names import ChunkId, FileHash


class FileType(IntEnum):
    """Type of an entry, by its number in the format."""

    FILE = 0
    DIRECTORY = 1
    SYMLINK = 2
    FIFO = 3
    SOCKET = 4
    CHAR_DEVICE = 5
    BLOCK_DEVICE = 6


class Consistency(IntEnum):
    """How trustworthy the moment is that a file's bytes show."""

    QUIET = 0  # nothing about the file changed while it was read
    GREW = 1  # only grew: kept up to the size seen at open
    LINE_PREFIX = 2  # grew, and is kept as a prefix that ends at a line
    SQLITE_BACKUP = 3  # captured through SQLite's online backup interface
    DAMAGED_DATABASE = 4  # a database that fails its check, kept as bytes; an omission
    CHANGED = 5  # changed in every try; the bytes of the last try; an omission


class Run(NamedTuple):
    """One stretch of a file: a chunk, or a hole of zeros that was never stored."""

    length: int
    chunk: ChunkId | None


@dataclass(frozen=True, slots=True)
class ChunkList:
    """Where content lies: runs in order; at depth 0 of data, above it of further lists."""

    depth: int
    runs: tuple[Run, ...]


class Entry(NamedTuple):
    """One name of a directory with all that a restore needs; made with its fields named.

    A tuple, since there is one for every name of a tree: a frozen dataclass of as many fields
    takes two to eight times as long to make, and five times as long to change.

    ``content`` is None for an empty file and for a file that is exactly one chunk, whose id
    follows from ``size`` and ``sha256``. ``xattrs`` are sorted by name.
    """

    name: bytes
    type: FileType
    mode: int
    mtime_ns: int
    uid: int
    gid: int
    birth_ns: int | None = None
    user: bytes | None = None
    group: bytes | None = None
    size: int = 0
    device: tuple[int, int] | None = None
    xattrs: tuple[tuple[bytes, bytes | ChunkList], ...] = ()
    link_group: int | None = None
    target: bytes | None = None
    content: ChunkList | None = None
    sha256: FileHash | None = None
    consistency: Consistency = Consistency.QUIET
    tree: ChunkId | None = None
    since: int | None = None
    redactions: tuple[str, ...] = ()
