"""The entry that nearly every entry is, read from its bytes in one step.

That is a file of at most one chunk, or a directory, with a name, a mode, times and an owner, and
with nothing else. What the pattern and the comparisons below let pass is what `decode` and
`parse_entry` let pass, and gives the same value; everything else goes that longer way, which
alone knows what is wrong with it. No error comes from here.
Source: spec/format.md 6.1. Start at `read_usual`.
"""

import re
import struct
from functools import cache, lru_cache

from durarepo.core.entries import Entry, FileType
from durarepo.core.limits import CHUNK_MAX_BYTES
from durarepo.core.names import ChunkId, FileHash

_NS = 1_000_000_000
_MODE_MAX = 0o7777
_MAP_HEAD, _BYTES_HEAD = 0xA0, 0x40
_INLINE_MAX, _ONE_BYTE_MORE = 23, 24
_NAME_AT = 3
_ALWAYS = 7
"""So many fields there always are: name, type, mode, time, user, group, and size or tree."""

_HEADS = (0, 0, 0x18 << 8, 0x19 << 16, 0, 0x1A << 32)
"""What the head of a number adds to its value, by how many bytes it is encoded in."""

_UINT = rb"(?:[\x00-\x17]|\x18[\x18-\xff]|\x19(?!\0)..|\x1a(?!\0\0)....)"
_SHORT = b"(?:%b)" % b"|".join(
    b"%c.{%d}" % (_BYTES_HEAD | length, length) for length in range(1, _INLINE_MAX + 1)
)
_PAIR = b"%b%b" % (_UINT, _UINT)
_OWNER = rb"\x04(?:%(uint)b)\x05(?:%(uint)b)(?:\x06(?:%(short)b))?(?:\x07(?:%(short)b))?" % {
    b"uint": _UINT,
    b"short": _SHORT,
}
_BEHIND_THE_NAME = (
    rb"\x01([\x00\x01])\x02(%(uint)b)\x03\x82(%(pair)b)(%(owner)b)(?:\x08\x82(%(pair)b))?"
    rb"(?:\x09(%(uint)b)(?:\x0a\x58\x20(.{32}))?|\x0c\x58\x20(.{32}))"
) % {b"uint": _UINT, b"pair": _PAIR, b"owner": _OWNER}
"""Fields 1 to 12 in their one order and shortest forms; numbers of 32 bits, no content list."""
_OWNER_PARTS = rb"\x04(%b)\x05(%b)(?:\x06(%b))?(?:\x07(%b))?" % (_UINT, _UINT, _SHORT, _SHORT)
_PAIR_PARTS = b"(%b)(%b)" % (_UINT, _UINT)
_LONG_PAIR = struct.Struct(">xIxI")
"""Two numbers that take four bytes each, as those of nearly every time do."""


@cache
def _pattern() -> re.Pattern[bytes]:
    """Compile the pattern when the first tree is read; most commands read none."""
    return re.compile(_BEHIND_THE_NAME, re.DOTALL)


def read_usual(data: bytes, at: int) -> tuple[Entry, int] | None:
    """Return the entry that begins at ``at`` and where it ends, or None if it is not a usual one.

    Args:
        data: the plaintext of a leaf.
        at: offset of the entry's first byte; nothing need be there.
    """
    begin = at + _NAME_AT
    if begin >= len(data) or data[at + 1]:
        return None
    length = data[at + 2] - _BYTES_HEAD
    if length == _ONE_BYTE_MORE and data[begin] > _INLINE_MAX:
        length, begin = data[begin], begin + 1
    elif not 0 < length <= _INLINE_MAX:
        return None
    name = data[begin : begin + length]
    found = _pattern().match(data, begin + length)
    if found is None or b"/" in name or b"\0" in name or name in (b".", b".."):
        return None
    entry = _entry(name, data[at] - _MAP_HEAD, found)
    return None if entry is None else (entry, found.end())


def _entry(name: bytes, count: int, found: re.Match[bytes]) -> Entry | None:
    """Return the entry of a match, if its numbers are in bounds and it has ``count`` fields."""
    kind, mode, time, owner, birth, size, sha256, tree = found.groups()
    bits = int.from_bytes(mode) - _HEADS[len(mode)]
    length = 0 if size is None else int.from_bytes(size) - _HEADS[len(size)]
    uid, gid, user, group = _owner(owner)
    mtime_ns, birth_ns = _time(time), None if birth is None else _time(birth)
    if (
        count != _ALWAYS + 4 - (user, group, birth, sha256).count(None)
        or (kind == b"\0") != (size is not None)
        or (length > 0) != (sha256 is not None)
        or length > CHUNK_MAX_BYTES
        or bits > _MODE_MAX
        or mtime_ns < 0
        or (birth_ns is not None and birth_ns < 0)
    ):
        return None
    if size is None:
        head = (name, FileType.DIRECTORY, bits, mtime_ns, uid, gid, birth_ns, user, group)
        return Entry(*head, tree=None if tree is None else ChunkId(tree))
    head = (name, FileType.FILE, bits, mtime_ns, uid, gid, birth_ns, user, group)
    return Entry(*head, length, sha256=None if sha256 is None else FileHash(sha256))


@lru_cache(maxsize=256)
def _owner(raw: bytes) -> tuple[int, int, bytes | None, bytes | None]:
    """Return user, group and their names, which nearly all entries have alike."""
    found = re.fullmatch(_OWNER_PARTS, raw, re.DOTALL)
    if found is None:
        raise ValueError("no owner")
    uid, gid, user, group = found.groups()
    return (
        int.from_bytes(uid) - _HEADS[len(uid)],
        int.from_bytes(gid) - _HEADS[len(gid)],
        None if user is None else user[1:],
        None if group is None else group[1:],
    )


def _time(pair: bytes) -> int:
    """Return a time in nanoseconds, or -1 if its second number is a second or more."""
    if len(pair) == _LONG_PAIR.size:
        seconds, rest = _LONG_PAIR.unpack(pair)
    else:
        found = re.fullmatch(_PAIR_PARTS, pair, re.DOTALL)
        if found is None:
            raise ValueError("no pair")
        seconds, rest = (int.from_bytes(one) - _HEADS[len(one)] for one in found.groups())
    return seconds * _NS + rest if rest < _NS else -1
