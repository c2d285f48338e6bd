"""Packs as they are stored, each read once and compared with its pin, by worker threads.

A pack is sound if the SHA-256 of all its bytes is its name and its index is the pinned one. Of a
pack that is not, header and frames are looked at one by one, so that what can still be read is
told from what is lost. Frames are decrypted only where the caller says so, each after its digest
was compared. What comes back is small: chunks as the first eight bytes of their ids.
Source: spec/format.md 5, spec/ingest.md 5 and 6. Start at `PackInspector.inspect_all`.
"""

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from enum import IntEnum

from durarepo.core.errors import IntegrityError, TrustError
from durarepo.core.limits import KEY_BYTES, TRAILER_BYTES
from durarepo.core.names import ChunkId
from durarepo.core.secret import Secret
from durarepo.crypto import primitives
from durarepo.format.manifest import Pin
from durarepo.format.pack import FrameInfo, PackIndex
from durarepo.repository.openpack import EpochKeys
from durarepo.repository.problems import ProblemKind, kind_of
from durarepo.repository.reader import CheckedFrames
from durarepo.repository.slots import read_object
from durarepo.sealing import (
    check_frame,
    check_index,
    check_pack_header,
    index_key,
    iter_chunks,
    open_frame,
    open_index,
    open_pack_key,
    open_trailer,
)
from durarepo.store.port import ObjectStore

WORKERS = 2
"""So many packs are in memory at once, each at most 32 MiB."""


def short_id(chunk: ChunkId) -> int:
    """Return the first eight bytes of a chunk's id as a number."""
    return int.from_bytes(chunk[:8])


class Depth(IntEnum):
    """How far a pack is looked into; each step includes those before it."""

    WHOLE = 0  # all bytes against the name, the index against the pin
    FRAMES = 1  # the digest of every frame
    CHUNKS = 2  # every frame decrypted, every chunk id derived again


class IdSet:
    """Chunks by the first eight bytes of their ids; eight bytes each in memory."""

    __slots__ = ("_sorted",)

    def __init__(self, parts: Iterable["array[int]"] = ()) -> None:
        joined: array[int] = array("Q")
        for part in parts:
            joined += part
        self._sorted = array("Q", sorted(joined))

    def __contains__(self, short: int) -> bool:
        at = bisect_left(self._sorted, short)
        return at < len(self._sorted) and self._sorted[at] == short

    def __len__(self) -> int:
        return len(self._sorted)


@dataclass(slots=True, kw_only=True)
class PackReport:
    """What was found of one pack.

    ``kind`` is None for a pack that is as pinned. ``good`` are chunks that a reader gets,
    ``lost`` those known not to be given; ``is_indexed`` is False where the index itself cannot
    be read, so that nobody can say what was lost. Bytes are those that were read.
    """

    pin: Pin
    kind: ProblemKind | None = None
    is_indexed: bool = False
    good: "array[int]" = field(default_factory=lambda: array("Q"))
    lost: "array[int]" = field(default_factory=lambda: array("Q"))
    frames: int = 0
    bytes: int = 0


class PackInspector:
    """Inspects packs of one store."""

    def __init__(
        self,
        store: ObjectStore,
        keys_of: Callable[[Pin], EpochKeys],
        *,
        identity: Secret | None = None,
        spared: CheckedFrames | None = None,
    ) -> None:
        """Prepare.

        Args:
            store: where the packs lie.
            keys_of: gives what opens a pack; asked from one thread.
            identity: opens packs where frames are decrypted.
            spared: frames that need not be decrypted here, since they were, and were good.
        """
        self._store = store
        self._keys_of = keys_of
        self._identity = identity
        self._spared = spared or CheckedFrames()

    def inspect_all(
        self, pins: Iterable[Pin], *, depth_of: Callable[[Pin], Depth]
    ) -> Iterator[PackReport]:
        """Yield a report of each pack.

        Args:
            pins: verified ones.
            depth_of: says how far each is looked into.

        Raises:
            StoreError: the store cannot be used.
        """
        waiting: deque[Future[PackReport]] = deque()
        with ThreadPoolExecutor(max_workers=WORKERS) as workers, closing(_Cancelling(waiting)):
            for pin in pins:
                try:
                    keys = self._keys_of(pin)
                except TrustError:  # its registry is not there, so no reader can open it
                    yield PackReport(pin=pin, kind=ProblemKind.CORRUPT)
                    continue
                waiting.append(workers.submit(self._inspect, pin, keys, depth_of(pin)))
                if len(waiting) > WORKERS:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _inspect(self, pin: Pin, keys: EpochKeys, depth: Depth) -> PackReport:
        report = PackReport(pin=pin)
        try:
            data = self._read(pin, report)
            if report.kind is not None:
                return report
            index = _open_index(data, pin, keys)
            report.is_indexed = True
        except IntegrityError as error:
            report.kind = kind_of(error)
            return report
        is_sound = primitives.sha256(data) == bytes.fromhex(pin.name)
        report.frames = len(index.frames)
        if is_sound and depth is Depth.WHOLE:
            report.good.extend(map(short_id, index.ids))
            return report
        self._check_frames(data, index, keys, report, opens=depth is Depth.CHUNKS)
        if report.lost or not is_sound:
            report.kind = ProblemKind.CORRUPT
        return report

    def _read(self, pin: Pin, report: PackReport) -> bytes:
        size = self._store.stat(pin.name)
        if size is None:
            report.kind = ProblemKind.MISSING
            return b""
        if size != pin.size:
            report.kind = ProblemKind.SHORT if size < pin.size else ProblemKind.CORRUPT
            return b""
        data = read_object(self._store, pin.name)
        report.bytes = len(data)
        return data

    def _check_frames(
        self, data: bytes, index: PackIndex, keys: EpochKeys, report: PackReport, *, opens: bool
    ) -> None:
        pack_key: bytes | None = None
        try:
            header = data[: index.header_length]
            check_pack_header(header, index)
            if opens and self._identity is not None:
                pack_key = open_pack_key(header, self._identity.reveal(), keys.place)
        except IntegrityError:
            report.lost.extend(map(short_id, index.ids))
            return
        spared = self._spared.of(report.pin)
        for ordinal, info in enumerate(index.frames):
            shorts = [short_id(one) for one in _ids(index, info)]
            try:
                ciphertext = data[info.position : info.position + info.stored_length]
                checked = check_frame(ciphertext, index, ordinal)
                if pack_key is not None and ordinal not in spared:
                    plain = open_frame(checked, index, pack_key)
                    for _ in iter_chunks(plain, index, info, keys.namer):
                        pass  # each id is derived again on the way
            except IntegrityError:
                report.lost.extend(shorts)
            else:
                report.good.extend(shorts)


class _Cancelling:
    """Takes back what has not begun when whoever asked for reports stops asking."""

    def __init__(self, waiting: deque[Future[PackReport]]) -> None:
        self._waiting = waiting

    def close(self) -> None:
        for future in self._waiting:
            future.cancel()


def _ids(index: PackIndex, info: FrameInfo) -> tuple[ChunkId, ...]:
    return index.ids[info.first_chunk : info.first_chunk + info.chunk_count]


def _open_index(data: bytes, pin: Pin, keys: EpochKeys) -> PackIndex:
    key = index_key(keys.index_subkey.reveal(), data[1 : 1 + KEY_BYTES])
    position = open_trailer(key, data[-TRAILER_BYTES:], size=len(data))  # ingest 5.3
    sealed = data[position:-TRAILER_BYTES]
    return open_index(check_index(sealed, position, pin.index_digest), key)  # 5.4 to 5.6
