"""Directories: entries and chunk lists as bytes and as values, and where a large one is cut.

Entries are encoded by hand, since there is one for every file of a first snapshot.
Source: spec/format.md 6, spec/ingest.md 7. Start at `encode_entry` and `parse_tree`.
"""

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from durarepo.core.entries import ChunkList, Consistency, Entry, FileType, Run
from durarepo.core.errors import IntegrityError
from durarepo.core.limits import (
    CHUNK_MAX_BYTES,
    FILE_MAX_BYTES,
    LIST_MAX_DEPTH,
    NAME_MAX_BYTES,
    PATH_MAX_BYTES,
    TIME_MAX_SECONDS,
    TIME_MIN_SECONDS,
    TREE_LEAF_CUT_BITS,
    TREE_LEAF_MAX_ENTRIES,
    TREE_SPLIT_BYTES,
    XATTR_INLINE_BYTES,
    XATTRS_MAX_COUNT,
)
from durarepo.core.names import ChunkId, FileHash
from durarepo.format.canonical import (
    Value,
    decode,
    decode_array_head,
    decode_item,
    encode,
    encode_bytes,
    encode_head,
    encode_int,
)
from durarepo.format.fields import U32_MAX, U64_MAX, Fields
from durarepo.format.usual import read_usual

COMPONENT_ROOTS = b"/.durarepo/components/"
"""Below it lie the roots of components that are no files of the source."""

_NS = 1_000_000_000
_MODE_MAX = 0o7777
_ARRAY, _MAP = 4, 5
_PAIR = encode_head(_ARRAY, 2)
_LEAF_HEAD = _PAIR + encode_int(0)
_FIELDS_IN_ONE = 2
"""So many fields are encoded together with another one."""
_ENTRY_DEPTH = 2
"""An entry stands in the array of a leaf, which stands in the leaf's own."""
_HASH_BYTES = 32
_HASH_HEAD = encode_head(2, _HASH_BYTES)
_U16_MAX = 0xFFFF
_OF_U32 = 0x1A
_PAIR_OF_U32 = 0x821A
_USUAL_TIME = struct.Struct(">HIBI")
"""A pair of two numbers that take four bytes each."""
_ALWAYS = (1, 2, 3, 4, 5)
_COMMON = (6, 7, 8, 15, 16, 18)
_OWN: dict[FileType, tuple[tuple[int, ...], tuple[int, ...]]] = {
    FileType.FILE: ((9,), (10, 11, 17, 19)),
    FileType.DIRECTORY: ((12,), ()),
    FileType.SYMLINK: ((13,), ()),
    FileType.FIFO: ((), ()),
    FileType.SOCKET: ((), ()),
    FileType.CHAR_DEVICE: ((14,), ()),
    FileType.BLOCK_DEVICE: ((14,), ()),
}
_SHAPES = {
    (int(kind), is_root): (kind, (*_ALWAYS, *own, *(() if is_root else (0,))), (*_COMMON, *more))
    for kind, (own, more) in _OWN.items()
    for is_root in (False, True)
}
"""By type and whether it is a root's: the type, the fields that have to be there, and may be."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A directory, or a part of one: entries in order."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A large directory: (first name, id) of each leaf, in order."""

    leaves: tuple[tuple[bytes, ChunkId], ...]


def check_name(name: bytes) -> None:
    """Refuse what cannot be one name in a directory.

    Raises:
        IntegrityError: ``name``.
    """
    if (
        not 1 <= len(name) <= NAME_MAX_BYTES
        or b"/" in name
        or b"\0" in name
        or name in (b".", b"..")
    ):
        raise IntegrityError("name", f"name {name[:NAME_MAX_BYTES]!r} cannot stand in a directory")


def is_normal_path(path: bytes) -> bool:
    """Return whether ``path`` is absolute, in normal form and short enough."""
    if path == b"/":
        return True
    if not path.startswith(b"/") or len(path) > PATH_MAX_BYTES or b"\0" in path:
        return False
    return all(
        part not in (b"", b".", b"..") and len(part) <= NAME_MAX_BYTES
        for part in path[1:].split(b"/")
    )


def _time(ns: int) -> bytes:
    seconds, rest = divmod(ns, _NS)
    if _U16_MAX < seconds <= U32_MAX and rest > _U16_MAX:  # as nearly always
        return _USUAL_TIME.pack(_PAIR_OF_U32, seconds, _OF_U32, rest)
    return _PAIR + encode_int(seconds) + encode_int(rest)


def _list_value(content: ChunkList) -> Value:
    flat: list[Value] = []
    for run in content.runs:
        flat += (run.length, run.chunk)
    return [content.depth, flat]


def encode_list(content: ChunkList) -> bytes:
    """Return the encoding of a chunk list; also the plaintext of a list chunk."""
    return encode(_list_value(content))


def encode_entry(entry: Entry) -> bytes:
    """Return the encoding of an entry; a root's, without a name, has ``name`` empty."""
    fields = [b"\x00" + encode_bytes(entry.name)] if entry.name else []
    fields += (
        _type_and_mode(entry.type, entry.mode) + _time(entry.mtime_ns),
        *_owner(entry.uid, entry.gid, entry.user, entry.group),
    )
    _append_optional(fields, entry)
    return encode_head(_MAP, len(fields) + _FIELDS_IN_ONE) + b"".join(fields)


@lru_cache(maxsize=64)
def _type_and_mode(kind: FileType, mode: int) -> bytes:
    """Return fields 1 and 2, and the key of field 3."""
    return b"\x01" + encode_int(kind) + b"\x02" + encode_int(mode) + b"\x03"


@lru_cache(maxsize=64)
def _owner(uid: int, gid: int, user: bytes | None, group: bytes | None) -> tuple[bytes, ...]:
    """Return the fields that nearly all entries have alike."""
    fields = [b"\x04" + encode_int(uid), b"\x05" + encode_int(gid)]
    if user is not None:
        fields.append(b"\x06" + encode_bytes(user))
    if group is not None:
        fields.append(b"\x07" + encode_bytes(group))
    return tuple(fields)


def _append_optional(fields: list[bytes], entry: Entry) -> None:
    add = fields.append
    if entry.birth_ns is not None:
        add(b"\x08" + _time(entry.birth_ns))
    if entry.type is FileType.FILE:
        add(b"\x09" + encode_int(entry.size))
        if entry.sha256 is not None:
            add(b"\x0a" + _HASH_HEAD + entry.sha256)
        if entry.content is not None:
            add(b"\x0b" + encode_list(entry.content))
    elif entry.tree is not None:
        add(b"\x0c" + _HASH_HEAD + entry.tree)
    if (
        entry.type > FileType.DIRECTORY
        or entry.xattrs
        or entry.link_group is not None
        or entry.consistency is not Consistency.QUIET
        or entry.since is not None
        or entry.redactions
    ):
        _append_rare(add, entry)


def _append_rare(add: Callable[[bytes], None], entry: Entry) -> None:
    if entry.target is not None:
        add(b"\x0d" + encode_bytes(entry.target))
    if entry.device is not None:
        add(b"\x0e" + encode(list(entry.device)))
    if entry.xattrs:
        pairs: list[Value] = [
            [name, value if isinstance(value, bytes) else _list_value(value)]
            for name, value in entry.xattrs
        ]
        add(b"\x0f" + encode(pairs))
    _append_marks(add, entry)


def _append_marks(add: Callable[[bytes], None], entry: Entry) -> None:
    if entry.link_group is not None:
        add(b"\x10" + encode_int(entry.link_group))
    if entry.consistency is not Consistency.QUIET:
        add(b"\x11" + encode_int(entry.consistency))
    if entry.since is not None:
        add(b"\x12" + encode_int(entry.since))
    if entry.redactions:
        add(b"\x13" + encode(list(entry.redactions)))


def encode_leaf(entries: list[bytes]) -> bytes:
    """Return the plaintext of a leaf from its encoded entries."""
    return _LEAF_HEAD + encode_head(_ARRAY, len(entries)) + b"".join(entries)


def encode_node(leaves: list[tuple[bytes, ChunkId]]) -> bytes:
    """Return the plaintext of a node."""
    return encode([1, [[name, chunk] for name, chunk in leaves]])


def cut_leaves(names: list[bytes], entries: list[bytes]) -> list[tuple[bytes, bytes]]:
    """Return (first name, plaintext) of each leaf of a directory.

    Args:
        names: the entries' names, ascending.
        entries: their encodings, in the same order.

    Source: spec/format.md 6.2; where it is cut depends on the entries alone.
    """
    whole = encode_leaf(entries)
    if len(whole) <= TREE_SPLIT_BYTES:
        return [(names[0] if names else b"", whole)]
    leaves: list[tuple[bytes, bytes]] = []
    start = size = 0
    for at, (name, entry) in enumerate(zip(names, entries, strict=True)):
        if at > start and (
            _begins_leaf(name)
            or at - start == TREE_LEAF_MAX_ENTRIES
            or size + len(entry) > TREE_SPLIT_BYTES
        ):
            leaves.append((names[start], encode_leaf(entries[start:at])))
            start, size = at, 0
        size += len(entry)
    leaves.append((names[start], encode_leaf(entries[start:])))
    return leaves


def _begins_leaf(name: bytes) -> bool:
    return int.from_bytes(hashlib.sha256(name).digest()[:2]) >> (16 - TREE_LEAF_CUT_BITS) == 0


def parse_tree(plaintext: bytes) -> Leaf | Node:
    """Return the leaf or node that a tree chunk holds.

    Raises:
        IntegrityError: ``tree-form``, ``entry``, ``name``, ``tree-order``, ``content``, ``cbor-*``.
    """
    quick = _quick_leaf(plaintext)
    if quick is not None:
        return quick
    match decode(plaintext):
        case [False | True, _]:  # equal to 0 and 1 here, and not in the format
            pass
        case [0, list() as items]:
            return Leaf(entries=_in_order(tuple(parse_entry(item) for item in items)))
        case [1, list() as items] if len(items) > 1:
            leaves = tuple(_parse_leaf_reference(item) for item in items)
            _check_order([name for name, _ in leaves])
            return Node(leaves=leaves)
    raise IntegrityError("tree-form", "tree chunk is neither a leaf nor a node")


def _quick_leaf(plaintext: bytes) -> Leaf | None:
    """Return a leaf entry by entry, or None where something is wrong or it is a node."""
    if not plaintext.startswith(_LEAF_HEAD):
        return None
    try:
        count, at = decode_array_head(plaintext, len(_LEAF_HEAD))
        entries: list[Entry] = []
        for _ in range(count):
            found = read_usual(plaintext, at)
            if found is None:
                value, end = decode_item(plaintext, at, _ENTRY_DEPTH)
                found = parse_entry(value), end
            entries.append(found[0])
            at = found[1]
        _check_order([entry.name for entry in entries])
    except (IntegrityError, IndexError):
        return None  # the whole is read again, to say what is wrong first
    return Leaf(entries=tuple(entries)) if at == len(plaintext) else None


def _parse_leaf_reference(item: Value) -> tuple[bytes, ChunkId]:
    match item:
        case [bytes() as name, bytes() as chunk] if len(chunk) == _HASH_BYTES:
            check_name(name)
            return name, ChunkId(chunk)
    raise IntegrityError("tree-form", "tree node names a leaf in another form")


def _in_order(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    _check_order([entry.name for entry in entries])
    return entries


def _check_order(names: list[bytes]) -> None:
    if any(one >= two for one, two in pairwise(names)):
        raise IntegrityError("tree-order", "names of a directory are not in ascending order")


def read_entry(data: bytes) -> Entry:
    """Return the entry that `encode_entry` gave these bytes.

    Raises:
        IntegrityError: as `parse_entry`, or ``cbor-*``.
    """
    found = read_usual(data, 0)
    if found is not None and found[1] == len(data):
        return found[0]
    return parse_entry(decode(data))


def parse_entry(value: Value, *, root: bool = False) -> Entry:
    """Return the entry that a decoded map holds.

    Raises:
        IntegrityError: ``entry``, ``name`` or ``content``.
    """
    number = value.get(1) if isinstance(value, dict) else None
    if type(number) is not int or (number, root) not in _SHAPES:
        raise IntegrityError("entry", "directory entry has no known type")
    kind, required, optional = _SHAPES[number, root]
    fields = Fields(
        value, reason="entry", what="directory entry", required=required, optional=optional
    )
    name = b""
    if not root:
        name = fields.octets(fields.raw(0))
        check_name(name)
    size = fields.uint(9, FILE_MAX_BYTES) if kind is FileType.FILE else 0
    _check_content_fields(fields, kind, size)
    return Entry(
        name=name,
        type=kind,
        mode=fields.uint(2, _MODE_MAX),
        mtime_ns=_parse_time(fields, 3),
        uid=fields.uint(4, U32_MAX),
        gid=fields.uint(5, U32_MAX),
        birth_ns=_parse_time(fields, 8) if fields.has(8) else None,
        user=_short(fields, 6),
        group=_short(fields, 7),
        size=size,
        device=_parse_device(fields) if fields.has(14) else None,
        xattrs=_parse_xattrs(fields) if fields.has(15) else (),
        link_group=fields.uint(16) if fields.has(16) else None,
        target=_parse_target(fields) if fields.has(13) else None,
        content=parse_list(fields.raw(11), total=size) if fields.has(11) else None,
        sha256=FileHash(fields.blob(10, _HASH_BYTES)) if fields.has(10) else None,
        consistency=Consistency(fields.uint(17, 5, 1)) if fields.has(17) else Consistency.QUIET,
        tree=ChunkId(fields.blob(12, _HASH_BYTES)) if fields.has(12) else None,
        since=fields.uint(18, U64_MAX, 1) if fields.has(18) else None,
        redactions=_parse_redactions(fields) if fields.has(19) else (),
    )


def _check_content_fields(fields: Fields, kind: FileType, size: int) -> None:
    if kind is FileType.FILE and fields.has(10) != (size > 0):
        raise fields.refused("has a hash without content, or content without a hash")
    if kind is FileType.FILE and fields.has(11) and size == 0:
        raise fields.refused("has content and no size")
    if size > CHUNK_MAX_BYTES and not fields.has(11):
        raise fields.refused("has a size that no single chunk has, and no content list")


def _parse_time(fields: Fields, key: int) -> int:
    seconds, rest = fields.array(fields.raw(key), 2)
    return fields.number(seconds, TIME_MAX_SECONDS, TIME_MIN_SECONDS) * _NS + fields.number(
        rest, _NS - 1
    )


def _short(fields: Fields, key: int) -> bytes | None:
    return fields.blob(key, most=NAME_MAX_BYTES) if fields.has(key) else None


def _parse_device(fields: Fields) -> tuple[int, int]:
    major, minor = fields.array(fields.raw(14), 2)
    return fields.number(major, U32_MAX), fields.number(minor, U32_MAX)


def _parse_target(fields: Fields) -> bytes:
    target = fields.blob(13, most=PATH_MAX_BYTES - 1)
    if b"\0" in target:
        raise fields.refused("has a NUL in its target")
    return target


def _parse_redactions(fields: Fields) -> tuple[str, ...]:
    rules = tuple(fields.words(rule) for rule in fields.items(19))
    if not rules:
        raise fields.refused("has an empty list of redactions")
    return rules


def _parse_xattrs(fields: Fields) -> tuple[tuple[bytes, bytes | ChunkList], ...]:
    pairs: list[tuple[bytes, bytes | ChunkList]] = []
    for item in fields.items(15, XATTRS_MAX_COUNT):
        raw_name, raw_value = fields.array(item, 2)
        name = fields.octets(raw_name, most=NAME_MAX_BYTES)
        if b"\0" in name:
            raise fields.refused("has a NUL in an attribute's name")
        if isinstance(raw_value, bytes):
            if len(raw_value) > XATTR_INLINE_BYTES:
                raise fields.refused("has an attribute that is too long in place")
            pairs.append((name, raw_value))
        else:
            pairs.append((name, parse_list(raw_value, total=None)))
    if not fields.ascending([name for name, _ in pairs]):
        raise fields.refused("has an empty list of attributes")
    return tuple(pairs)


def parse_list(value: Value, *, total: int | None, depth: int | None = None) -> ChunkList:
    """Return the chunk list that a decoded value holds.

    Args:
        value: what `decode` gave.
        total: bytes that the runs must add up to; None if any sum is right.
        depth: depth that it must have; None if any is right.

    Raises:
        IntegrityError: ``content``.
    """
    match value:
        case [int() as level, list() as flat] if (
            type(level) is int and 0 <= level <= LIST_MAX_DEPTH and flat and len(flat) % 2 == 0
        ):
            runs = _parse_runs(flat, of_data=level == 0)
        case _:
            raise IntegrityError("content", "content list has another form")
    if depth not in (None, level):
        raise IntegrityError("content", f"content list is of depth {level}, expected {depth}")
    if total is not None and sum(run.length for run in runs) != total:
        raise IntegrityError("content", "content list does not add up to its size")
    return ChunkList(depth=level, runs=runs)


def _parse_runs(flat: list[Value], *, of_data: bool) -> tuple[Run, ...]:
    runs: list[Run] = []
    most = CHUNK_MAX_BYTES if of_data else FILE_MAX_BYTES
    for length, chunk in zip(flat[::2], flat[1::2], strict=True):
        if type(length) is not int or not 1 <= length <= FILE_MAX_BYTES:
            raise IntegrityError("content", "content list has a run without length")
        if chunk is None and of_data and not (runs and runs[-1].chunk is None):
            runs.append(Run(length, None))
        elif isinstance(chunk, bytes) and len(chunk) == _HASH_BYTES and length <= most:
            runs.append(Run(length, ChunkId(chunk)))
        else:
            raise IntegrityError("content", "content list has a run of another form")
    return tuple(runs)


def parse_list_chunk(plaintext: bytes, *, total: int, depth: int) -> ChunkList:
    """Return the chunk list that a list chunk holds; see `parse_list`."""
    return parse_list(decode(plaintext), total=total, depth=depth)


class SetHash:
    """The set hash of one directory, or of the roots: fed in order, 32 bytes at the end."""

    __slots__ = ("_hash",)

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, entry: Entry, value: bytes) -> None:
        """Add one entry with its value (see `set_value`)."""
        size = entry.size if entry.type is FileType.FILE else 0
        self._hash.update(
            b"%s%s%c%s%s"
            % (len(entry.name).to_bytes(2), entry.name, entry.type, size.to_bytes(8), value)
        )

    def add_root(self, path: bytes, value: bytes) -> None:
        """Add one root with its directory's set hash; what holds a component has its own."""
        if not path.startswith(COMPONENT_ROOTS):
            self._hash.update(len(path).to_bytes(2) + path + value)

    def digest(self) -> bytes:
        """Return the hash of what was added."""
        return self._hash.digest()


def set_value(entry: Entry) -> bytes:
    """Return what stands for an entry, unless it is a directory, in its directory's set hash."""
    if entry.type is FileType.FILE and entry.sha256 is not None:
        return entry.sha256
    if entry.type is FileType.SYMLINK and entry.target is not None:
        return hashlib.sha256(entry.target).digest()
    return bytes(_HASH_BYTES)
