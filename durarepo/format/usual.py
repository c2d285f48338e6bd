"""The entry that nearly every entry is, read from its bytes in one step.

That is a file of at most one chunk, or a directory, with a name, a mode, times and an owner, and
with nothing else. What the pattern and the comparisons below let pass is what `decode` and
`parse_entry` let pass, and gives the same value; everything else goes that longer way, which
alone knows what is wrong with it. No error comes from here.
Source: spec/format.md 6.1. Start at `read_usual`.
"""

import re
from functools import cache

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
_BEHIND_THE_NAME = (
    rb"\x01([\x00\x01])\x02(%(uint)b)\x03\x82(%(uint)b)(%(uint)b)"
    rb"\x04(%(uint)b)\x05(%(uint)b)(?:\x06(%(short)b))?(?:\x07(%(short)b))?"
    rb"(?:\x08\x82(%(uint)b)(%(uint)b))?"
    rb"(?:\x09(%(uint)b)(?:\x0a\x58\x20(.{32}))?|\x0c\x58\x20(.{32}))"
) % {b"uint": _UINT, b"short": _SHORT}
"""Fields 1 to 12 in their one order and shortest forms; numbers of 32 bits, no content list."""


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
    kind, mode, time, rest, uid, gid, user, group, *own = found.groups()
    birth, birth_rest, size, sha256, tree = own
    length = 0 if size is None else int.from_bytes(size) - _HEADS[len(size)]
    bits, mtime_ns = int.from_bytes(mode) - _HEADS[len(mode)], _time(time, rest)
    birth_ns = 0 if birth is None else _time(birth, birth_rest)
    if (
        count != _ALWAYS + 4 - (user, group, birth, sha256).count(None)
        or (kind == b"\0") != (size is not None)
        or (length > 0) != (sha256 is not None)
        or length > CHUNK_MAX_BYTES
        or bits > _MODE_MAX
        or mtime_ns is None
        or birth_ns is None
    ):
        return None
    return Entry(
        name=name,
        type=FileType.DIRECTORY if size is None else FileType.FILE,
        mode=bits,
        mtime_ns=mtime_ns,
        uid=int.from_bytes(uid) - _HEADS[len(uid)],
        gid=int.from_bytes(gid) - _HEADS[len(gid)],
        birth_ns=None if birth is None else birth_ns,
        user=None if user is None else user[1:],
        group=None if group is None else group[1:],
        size=length,
        sha256=None if sha256 is None else FileHash(sha256),
        tree=None if tree is None else ChunkId(tree),
    )


def _time(seconds: bytes, rest: bytes) -> int | None:
    """Return a time in nanoseconds, or None if ``rest`` is a second or more."""
    below = int.from_bytes(rest) - _HEADS[len(rest)]
    if below >= _NS:
        return None
    return (int.from_bytes(seconds) - _HEADS[len(seconds)]) * _NS + below
