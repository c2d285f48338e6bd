"""From plain chunks to durable packs: grouped into frames, compressed, sealed, put.

The caller adds chunks in order and learns the *serial* of the frame that each will be in. Frames
are compressed by worker threads, kept in order in one of two lanes (data, or trees and lists)
and sealed into a pack when a lane holds enough to fill one. A pack is announced before it gets
its name, and what it holds is reported when it is durable, never before. The first failure of
a worker ends the run.
Source: spec/format.md 5; spec/decisions/0003-cutting-and-compression.md. Start at `PackWriter`.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from durarepo.chunking.compression import inflate
from durarepo.core.errors import StoreError
from durarepo.core.limits import (
    FRAME_MAX_BYTES,
    FRAME_TARGET_BYTES,
    FRAMES_MAX_COUNT,
    INDEX_MAX_BYTES,
    NONCE_BYTES,
    PADDING_BYTES,
    PADDING_SHARE,
    SIZE_CLASSES,
    TAG_BYTES,
    TRAILER_BYTES,
)
from durarepo.core.names import ChunkId, Digest, ObjectName
from durarepo.crypto import primitives
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import Pin
from durarepo.format.pack import FrameInfo, PackIndex, header_length
from durarepo.sealing import DEFLATED, PackSealer, compress_frame
from durarepo.store.localdir import LocalDir

WORKERS = 2
_QUEUED_FRAMES = 6
_FRAME_ROW_BYTES = 45
_CHUNK_ROW_BYTES = 37
_INDEX_FIXED_BYTES = 44 + 4 + 64
_INDEX_SPARE_BYTES = 256 * 1024
_FRAME_CHUNKS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """A compressed frame that waits for its pack."""

    serial: int
    ids: tuple[ChunkId, ...]
    kinds: bytes
    lengths: tuple[int, ...]
    compression: int
    payload: bytes

    @property
    def cost(self) -> int:
        """Bytes that the frame takes of a pack, its rows in the index included."""
        rows = _FRAME_ROW_BYTES + len(self.ids) * _CHUNK_ROW_BYTES
        return len(self.payload) + TAG_BYTES + rows


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPack:
    """A pack that is durable: its pin, and the ids of its chunks in order.

    ``plain`` is how many bytes its chunks are; ``serials`` are the frames of which it holds
    something, ``whole`` those of which nothing is still to come in a later pack.
    """

    pin: Pin
    ids: tuple[ChunkId, ...]
    plain: int
    serials: frozenset[int]
    whole: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackTerms:
    """What all packs of a run have in common; ``object_limit`` in bytes."""

    registry_version: int
    stanza_count: int
    object_limit: int


class _Lane:
    """Chunks of one sort on their way into packs."""

    def __init__(self) -> None:
        self.parts: list[bytes | memoryview] = []
        self.ids: list[ChunkId] = []
        self.kinds = bytearray()
        self.plain_length = 0
        self.serial = -1
        self.queued: deque[Future[_Frame]] = deque()
        self.frames: list[_Frame] = []
        self.cost = 0

    def take(self, frame: _Frame) -> None:
        self.frames.append(frame)
        self.cost += frame.cost


class PackWriter:
    """Writes the chunks of one run into new packs of one store."""

    def __init__(
        self,
        store: LocalDir,
        *,
        new_sealer: Callable[[], PackSealer],
        terms: PackTerms,
        on_sealed: Callable[[Pin], None],
        on_pack: Callable[[NewPack], None],
    ) -> None:
        """Prepare; nothing is written before enough was added.

        Args:
            store: where packs go.
            new_sealer: makes the sealer, with a key of its own, of each pack.
            terms: what all packs of the run have in common.
            on_sealed: called with the pin of each pack before its object gets its name.
            on_pack: called with each pack once it is durable.
        """
        self._store = store
        self._new_sealer = new_sealer
        self._terms = terms
        self._classes = [size for size in SIZE_CLASSES if size <= terms.object_limit]
        self._overhead = (
            header_length(terms.stanza_count)
            + TRAILER_BYTES
            + NONCE_BYTES
            + TAG_BYTES
            + _INDEX_FIXED_BYTES
        )
        self._on_sealed, self._on_pack = on_sealed, on_pack
        self._data, self._trees = _Lane(), _Lane()
        self._next_serial = 0
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="seal")

    def add(self, kind: ChunkKind, chunk: ChunkId, plaintext: bytes | memoryview) -> int:
        """Take one chunk; return the serial of the frame that will hold it.

        Raises:
            StoreError: an earlier pack could not be stored.
        """
        lane = self._data if kind is ChunkKind.DATA else self._trees
        if lane.parts and (
            lane.plain_length + len(plaintext) > FRAME_TARGET_BYTES
            or len(lane.ids) >= _FRAME_CHUNKS
        ):
            self._close_frame(lane)
        if not lane.parts:
            lane.serial = self._next_serial
            self._next_serial += 1
        lane.parts.append(plaintext)
        lane.ids.append(chunk)
        lane.kinds.append(kind)
        lane.plain_length += len(plaintext)
        return lane.serial

    def finish(self) -> None:
        """Store all that was added; everything has been reported on return.

        Raises:
            StoreError: something could not be stored.
        """
        for lane in (self._data, self._trees):
            if lane.parts:
                self._close_frame(lane)
            self._collect(lane, leave=0)
        both = self._overhead + self._data.cost + self._trees.cost
        if self._data.frames and self._trees.frames and both <= self._classes[0]:
            for frame in self._trees.frames:
                self._data.take(frame)
            self._trees = _Lane()
        for lane in (self._data, self._trees):
            while lane.frames:
                self._put_pack(lane, self._final_size(lane))

    def close(self) -> None:
        """Stop the workers; what was not stored is forgotten."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _close_frame(self, lane: _Lane) -> None:
        plaintext = b"".join(lane.parts)
        lengths = tuple(map(len, lane.parts))
        job = (plaintext, lane.serial, tuple(lane.ids), bytes(lane.kinds), lengths)
        lane.queued.append(self._pool.submit(_compressed, *job))
        lane.parts, lane.ids, lane.kinds, lane.plain_length = [], [], bytearray(), 0
        self._collect(lane, leave=_QUEUED_FRAMES)

    def _collect(self, lane: _Lane, *, leave: int) -> None:
        while len(lane.queued) > leave:
            lane.take(lane.queued.popleft().result())
            largest = self._classes[-1]
            while lane.cost + self._overhead > largest or _is_index_full(lane):
                self._put_pack(lane, min(largest, self._final_size(lane)))

    def _final_size(self, lane: _Lane) -> int:
        """Return the size class for what is left, in bytes (format 5, decision 0003).

        Either one class takes all, or the next smaller one is filled and the rest goes on;
        chunks are not cut, so filling one may leave more room unused than it saves.
        """
        needed = lane.cost + self._overhead
        for size in self._classes:
            if needed <= size <= needed * (1 + PADDING_SHARE) + PADDING_BYTES:
                return size
        filled = [size for size in self._classes if size <= needed]
        if len(filled) in (0, len(self._classes)):
            return filled[-1] if filled else self._classes[0]
        chosen, rest = _fill(lane.frames, filled[-1] - self._overhead)
        used, left = (sum(frame.cost for frame in part) + self._overhead for part in (chosen, rest))
        after = next(size for size in self._classes if size >= min(left, self._classes[-1]))
        whole = self._classes[len(filled)]
        return whole if whole - needed <= filled[-1] - used + after - left else filled[-1]

    def _put_pack(self, lane: _Lane, size: int) -> None:
        """Fill a pack of ``size`` bytes, or the next class that takes a frame, from a lane."""
        chosen: list[_Frame] = []
        rest = lane.frames
        while not chosen:
            chosen, rest = _fill(lane.frames, size - self._overhead)
            if not chosen:
                size = self._next_class(size, lane.frames[0])
        lane.frames, lane.cost = rest, sum(frame.cost for frame in rest)
        pending = frozenset(frame.serial for frame in rest)
        self._on_pack(self._stored(chosen, size, pending))

    def _next_class(self, size: int, frame: _Frame) -> int:
        for larger in self._classes:
            if larger > size:
                return larger
        raise StoreError(
            "object-limit",
            f"a piece of {frame.cost} bytes fits into no object of {self._terms.object_limit}",
            hint="raise max_object_bytes in stream.toml, or split the largest folders",
        )

    def _stored(self, frames: list[_Frame], size: int, pending: frozenset[int]) -> NewPack:
        sealer = self._new_sealer()
        index_digest: list[bytes] = []
        ids = tuple(chunk for frame in frames for chunk in frame.ids)
        pieces = _pack_pieces(sealer, frames, ids, size, index_digest)

        def pin_of(name: ObjectName) -> Pin:
            return Pin(
                name=name,
                size=size,
                index_digest=Digest(index_digest[0]),
                registry_version=self._terms.registry_version,
            )

        name = self._store.put_pack(pieces, announce=lambda name: self._on_sealed(pin_of(name)))
        pin = pin_of(name)
        serials = frozenset(frame.serial for frame in frames)
        plain = sum(length for frame in frames for length in frame.lengths)
        return NewPack(pin=pin, ids=ids, plain=plain, serials=serials, whole=serials - pending)


def _is_index_full(lane: _Lane) -> bool:
    chunks = sum(len(frame.ids) for frame in lane.frames)
    rows = len(lane.frames) * _FRAME_ROW_BYTES + chunks * _CHUNK_ROW_BYTES
    return rows > INDEX_MAX_BYTES - _INDEX_SPARE_BYTES or len(lane.frames) >= FRAMES_MAX_COUNT


def _compressed(
    plaintext: bytes,
    serial: int,
    ids: tuple[ChunkId, ...],
    kinds: bytes,
    lengths: tuple[int, ...],
) -> _Frame:
    compression, payload = compress_frame(plaintext)
    return _Frame(
        serial=serial,
        ids=ids,
        kinds=kinds,
        lengths=lengths,
        compression=compression,
        payload=payload,
    )


def _fill(frames: list[_Frame], room: int) -> tuple[list[_Frame], list[_Frame]]:
    """Return (frames that fit into ``room`` bytes, the others); one frame may be cut in two."""
    chosen: list[_Frame] = []
    rest: list[_Frame] = []
    may_cut = True
    for frame in frames:
        if frame.cost <= room:
            chosen.append(frame)
            room -= frame.cost
        elif may_cut and (halves := _cut_to(frame, room)) is not None:
            chosen.append(halves[0])
            rest.append(halves[1])
            room -= halves[0].cost
            may_cut = False
        else:
            rest.append(frame)
    return chosen, rest


def _cut_to(frame: _Frame, room: int) -> tuple[_Frame, _Frame] | None:
    """Return the frame as two, of which the first fits into ``room``; None where none does."""
    count = _count_within(frame, room)
    if count < 1:
        return None
    plain = frame.payload
    if frame.compression == DEFLATED:
        plain = inflate(plain, most=FRAME_MAX_BYTES)
    while count >= 1:
        first = _part(frame, plain, 0, count)
        if first.cost <= room:
            return first, _part(frame, plain, count, len(frame.ids))
        count = count * 3 // 4
    return None


def _count_within(frame: _Frame, room: int) -> int:
    """Return how many of the first chunks are likely to fit, if they deflate like the whole."""
    ratio = len(frame.payload) / sum(frame.lengths)
    room -= _FRAME_ROW_BYTES + TAG_BYTES
    for count, length in enumerate(frame.lengths):
        room -= int(length * ratio) + _CHUNK_ROW_BYTES
        if room < 0:
            return count
    return len(frame.ids) - 1


def _part(frame: _Frame, plain: bytes, begin: int, end: int) -> _Frame:
    start = sum(frame.lengths[:begin])
    stop = start + sum(frame.lengths[begin:end])
    return _compressed(
        plain[start:stop],
        frame.serial,
        frame.ids[begin:end],
        frame.kinds[begin:end],
        frame.lengths[begin:end],
    )


def _pack_pieces(
    sealer: PackSealer,
    frames: Sequence[_Frame],
    ids: tuple[ChunkId, ...],
    size: int,
    index_digest: list[bytes],
) -> Iterator[bytes]:
    yield sealer.header
    position, first = len(sealer.header), 0
    infos: list[FrameInfo] = []
    for ordinal, frame in enumerate(frames):
        ciphertext, digest = sealer.seal_frame(ordinal, frame.ids, frame.compression, frame.payload)
        infos.append(
            FrameInfo(
                position=position,
                stored_length=len(ciphertext),
                plain_length=sum(frame.lengths),
                compression=frame.compression,
                digest=digest,
                first_chunk=first,
                chunk_count=len(frame.ids),
            )
        )
        position += len(ciphertext)
        first += len(frame.ids)
        yield ciphertext
    index = PackIndex(
        header_digest=Digest(primitives.sha256(sealer.header)),
        header_length=len(sealer.header),
        frames=tuple(infos),
        lengths=tuple(length for frame in frames for length in frame.lengths),
        kinds=b"".join(frame.kinds for frame in frames),
        ids=ids,
    )
    sealed, trailer = sealer.seal_index(index, size=size)
    index_digest.append(primitives.sha256(sealed))
    yield sealed
    yield trailer
