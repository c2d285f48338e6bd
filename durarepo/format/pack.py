"""The pack's parts: header, index tables and trailer, as bytes and as values.

Nothing here encrypts. Source: spec/format.md 5. Start at `PackIndex`.
"""

import struct
from dataclasses import dataclass
from itertools import accumulate

from durarepo.core.errors import IntegrityError
from durarepo.core.limits import (
    CHUNK_MAX_BYTES,
    FRAME_MAX_BYTES,
    FRAMES_MAX_COUNT,
    KEY_BYTES,
    STANZA_BYTES,
    STANZA_COUNTS,
    TAG_BYTES,
)
from durarepo.core.names import ChunkId, Digest
from durarepo.format.layout import ChunkKind

HEADER_FIXED_BYTES = 1 + KEY_BYTES + KEY_BYTES
_FIXED = struct.Struct(">32sIII")
_FRAME_BYTES = 4 + 4 + 4 + 1 + 32
_CHUNK_BYTES = 4 + 1 + 32
_KINDS = bytes(ChunkKind)
_COMPRESSIONS = b"\x00\x01"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameInfo:
    """One frame of a pack: where it lies in the object and what it has to be.

    Offsets and lengths are bytes; ``first_chunk`` counts the pack's chunks.
    """

    position: int
    stored_length: int
    plain_length: int
    compression: int
    digest: Digest
    first_chunk: int
    chunk_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PackIndex:
    """What a pack holds. The three chunk tables have one item a chunk, in stored order."""

    header_digest: Digest
    header_length: int
    frames: tuple[FrameInfo, ...]
    lengths: tuple[int, ...]
    kinds: bytes
    ids: tuple[ChunkId, ...]

    @property
    def end(self) -> int:
        """Offset at which the last frame ends and the index begins."""
        last = self.frames[-1]
        return last.position + last.stored_length


def header_length(stanza_count: int) -> int:
    """Return the length of a header with so many stanzas, in bytes."""
    return HEADER_FIXED_BYTES + stanza_count * STANZA_BYTES


def split_header(header: bytes) -> tuple[bytes, list[bytes], bytes]:
    """Return (salt, stanzas, commitment) of a header of right length."""
    body = header[1 + KEY_BYTES : -KEY_BYTES]
    stanzas = [body[at : at + STANZA_BYTES] for at in range(0, len(body), STANZA_BYTES)]
    return header[1 : 1 + KEY_BYTES], stanzas, header[-KEY_BYTES:]


def encode_index(index: PackIndex) -> bytes:
    """Return the inflated tables of an index."""
    frames, count = index.frames, len(index.frames)
    numbers = f">{count}I"
    return b"".join(
        (
            _FIXED.pack(index.header_digest, index.header_length, count, len(index.ids)),
            struct.pack(numbers, *(frame.stored_length for frame in frames)),
            struct.pack(numbers, *(frame.plain_length for frame in frames)),
            struct.pack(numbers, *(frame.chunk_count for frame in frames)),
            bytes(frame.compression for frame in frames),
            b"".join(frame.digest for frame in frames),
            struct.pack(f">{len(index.lengths)}I", *index.lengths),
            index.kinds,
            b"".join(index.ids),
        )
    )


def parse_index(tables: bytes, *, end: int) -> PackIndex:
    """Return the index that inflated ``tables`` hold; its frames have to end at ``end``.

    Raises:
        IntegrityError: ``index-form``.
    """
    if len(tables) < _FIXED.size:
        raise _refused("are cut short")
    header_digest, length, frame_count, chunk_count = _FIXED.unpack_from(tables)
    if not 1 <= frame_count <= FRAMES_MAX_COUNT or length not in map(header_length, STANZA_COUNTS):
        raise _refused("name no frame, too many, or a header of another length")
    if len(tables) != _FIXED.size + frame_count * _FRAME_BYTES + chunk_count * _CHUNK_BYTES:
        raise _refused("are not as long as they say")
    columns = _Columns(tables, _FIXED.size)
    stored, plain, counts = (columns.numbers(frame_count) for _ in range(3))
    compressions, digests = columns.take(frame_count), columns.words(frame_count)
    lengths, kinds = columns.numbers(chunk_count), columns.take(chunk_count)
    index = PackIndex(
        header_digest=Digest(header_digest),
        header_length=length,
        frames=_frames(length, stored, plain, counts, compressions, digests),
        lengths=lengths,
        kinds=kinds,
        ids=tuple(map(ChunkId, columns.words(chunk_count))),
    )
    _check_sums(index, end)
    return index


class _Columns:
    """Reads one table after the other."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def take(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def numbers(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f">{count}I", self.take(4 * count))

    def words(self, count: int) -> list[bytes]:
        joined = self.take(32 * count)
        return [joined[at : at + 32] for at in range(0, len(joined), 32)]


def _frames(
    position: int,
    stored: tuple[int, ...],
    plain: tuple[int, ...],
    counts: tuple[int, ...],
    compressions: bytes,
    digests: list[bytes],
) -> tuple[FrameInfo, ...]:
    frames: list[FrameInfo] = []
    first = 0
    for row in zip(stored, plain, counts, compressions, digests, strict=True):
        frames.append(
            FrameInfo(
                position=position,
                stored_length=row[0],
                plain_length=row[1],
                compression=row[3],
                digest=Digest(row[4]),
                first_chunk=first,
                chunk_count=row[2],
            )
        )
        position += row[0]
        first += row[2]
    return tuple(frames)


def _check_sums(index: PackIndex, end: int) -> None:
    if index.end != end:
        raise _refused("name frames that do not end where the index begins")
    if index.kinds.strip(_KINDS) or not all(0 < n <= CHUNK_MAX_BYTES for n in index.lengths):
        raise _refused("have a chunk of unknown kind or length")
    ends = (0, *accumulate(index.lengths))
    for frame in index.frames:
        _check_frame(frame, ends)
    if index.frames[-1].first_chunk + index.frames[-1].chunk_count != len(index.ids):
        raise _refused("count other chunks than they list")


def _check_frame(frame: FrameInfo, ends: tuple[int, ...]) -> None:
    past = frame.first_chunk + frame.chunk_count
    if frame.chunk_count < 1 or past >= len(ends):
        raise _refused("count other chunks than they list")
    if ends[past] - ends[frame.first_chunk] != frame.plain_length:
        raise _refused("have a frame that is not the sum of its chunks")
    if frame.plain_length > FRAME_MAX_BYTES or frame.stored_length <= TAG_BYTES:
        raise _refused("have a frame out of bounds")
    if frame.compression not in _COMPRESSIONS:
        raise _refused("have a frame of unknown compression")


def _refused(why: str) -> IntegrityError:
    return IntegrityError("index-form", f"index tables {why}")
