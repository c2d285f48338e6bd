"""Packs as they are stored, each read once and compared with its pin, by worker threads.

A pack is sound if the SHA-256 of all its bytes is its name and its index is the pinned one. Of a
pack that is not, header and frames are looked at one by one, so that what can still be read is
told from what is lost. Frames are decrypted only where the caller says so, each after its digest
was compared. What comes back is small: chunks as the first eight bytes of their ids.
Source: spec/format.md 5, spec/ingest.md 5 and 6. Start at `PackInspector.inspect_all`.
"""

import hashlib
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from enum import IntEnum

from durarepo.core.errors import IntegrityError, TrustError
from durarepo.core.limits import KEY_BYTES, TRAILER_BYTES
from durarepo.core.names import ChunkId
from durarepo.core.secret import Secret
from durarepo.format.manifest import Pin
from durarepo.format.pack import PackIndex
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
"""So many packs are read at once, each frame by frame."""

_WINDOW_BYTES = 1 << 20


def short_id(chunk: ChunkId) -> int:
    """Return the first eight bytes of a chunk's id as a number."""
    return int.from_bytes(chunk[:8])


class Depth(IntEnum):
    """How far a pack is looked into; each step includes those before it."""

    WHOLE = 0  # all bytes against the name, the index against the pin
    FRAMES = 1  # the digest of every frame
    CHUNKS = 2  # every frame decrypted, every chunk id derived again


class IdSet:
    """Chunks by the first eight bytes of their ids; eight bytes each in memory.

    A few sorted arrays of unlike lengths; a new one takes in those that are not much longer.
    """

    __slots__ = ("_levels",)

    def __init__(self) -> None:
        self._levels: list[array[int]] = []

    def add(self, parts: Iterable["array[int]"]) -> None:
        """Add chunks."""
        joined: array[int] = array("Q")
        for part in parts:
            joined += part
        while self._levels and len(self._levels[-1]) <= 2 * len(joined):
            joined += self._levels.pop()
        self._levels.append(array("Q", sorted(joined)))

    def __contains__(self, short: int) -> bool:
        for level in self._levels:
            at = bisect_left(level, short)
            if at < len(level) and level[at] == short:
                return True
        return False


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
        pass_ = _Pass(self._store, report)
        try:
            report.kind = self._kind_of_size(pin)
            if report.kind is not None:
                return report
            index = pass_.open_index(keys)
            report.is_indexed = True
        except IntegrityError as error:
            report.kind = kind_of(error)
            return report
        report.frames = len(index.frames)
        if depth is Depth.WHOLE and pass_.is_sound():
            report.good.extend(map(short_id, index.ids))
            return report
        pack_key = self._pack_key(pass_, keys, opens=depth is Depth.CHUNKS)
        if pack_key is None:
            report.lost.extend(map(short_id, index.ids))
        else:
            self._check_frames(pass_, pack_key, keys)
        if report.lost or not pass_.is_sound():
            report.kind = ProblemKind.CORRUPT
        return report

    def _kind_of_size(self, pin: Pin) -> ProblemKind | None:
        size = self._store.stat(pin.name)
        if size is None:
            return ProblemKind.MISSING
        if size != pin.size:
            return ProblemKind.SHORT if size < pin.size else ProblemKind.CORRUPT
        return None

    def _pack_key(self, pass_: "_Pass", keys: EpochKeys, *, opens: bool) -> bytes | None:
        """Return the key of a pack, empty where no frame is opened; None where it has none."""
        try:
            header = pass_.header()
            check_pack_header(header, pass_.index)
            if opens and self._identity is not None:
                return open_pack_key(header, self._identity.reveal(), keys.place)
        except IntegrityError:
            return None
        return b""

    def _check_frames(self, pass_: "_Pass", pack_key: bytes, keys: EpochKeys) -> None:
        """Compare every frame; one that was good before is told apart only in a bad pack."""
        spared: list[int] = []
        good_before = self._spared.of(pass_.report.pin)
        for ordinal in range(len(pass_.index.frames)):
            if ordinal not in good_before:
                self._check_frame(pass_, ordinal, pack_key, keys)
            elif pass_.skip(ordinal):
                spared.append(ordinal)
            else:
                pass_.report.lost.extend(pass_.shorts(ordinal))
        is_sound = pass_.is_sound()
        for ordinal in spared:
            if is_sound:
                pass_.report.good.extend(pass_.shorts(ordinal))
            else:
                self._check_frame(pass_, ordinal, b"", keys)

    @staticmethod
    def _check_frame(pass_: "_Pass", ordinal: int, pack_key: bytes, keys: EpochKeys) -> None:
        index = pass_.index
        try:
            checked = check_frame(pass_.frame(ordinal), index, ordinal)
            if pack_key:
                plain = open_frame(checked, index, pack_key)
                for _ in iter_chunks(plain, index, index.frames[ordinal], keys.namer):
                    pass  # each id is derived again on the way
        except IntegrityError:
            pass_.report.lost.extend(pass_.shorts(ordinal))
        else:
            pass_.report.good.extend(pass_.shorts(ordinal))


class _Pass:
    """One pack, read piece by piece in order, and hashed on the way; it is never held whole.

    The index comes first and is hashed last: the very bytes that were opened.
    """

    def __init__(self, store: ObjectStore, report: PackReport) -> None:
        self.report = report
        self._store = store
        self._hash = hashlib.sha256()
        self._reached = 0
        self._tail = b""

    def open_index(self, keys: EpochKeys) -> PackIndex:
        """Return the index, if it is the pinned one.

        Raises:
            IntegrityError: the code of the first step that fails (ingest 5.3 to 5.6).
        """
        pin = self.report.pin
        end = pin.size - TRAILER_BYTES
        key = index_key(keys.index_subkey.reveal(), self._read(1, KEY_BYTES))
        trailer = self._read(end, TRAILER_BYTES)
        position = open_trailer(key, trailer, size=pin.size)
        sealed = self._read(position, end - position)
        self.index = open_index(check_index(sealed, position, pin.index_digest), key)
        self._tail = sealed + trailer
        self.report.bytes = len(self._tail)
        return self.index

    def header(self) -> bytes:
        """Return the header."""
        return self._piece(0, self.index.header_length)

    def frame(self, ordinal: int) -> bytes:
        """Return the stored bytes of a frame."""
        info = self.index.frames[ordinal]
        return self._piece(info.position, info.stored_length)

    def skip(self, ordinal: int) -> bool:
        """Go past a frame, and return whether it could be read.

        Whether all bytes are the right ones says nothing of it alone.
        """
        try:
            self.frame(ordinal)
        except IntegrityError:
            return False
        return True

    def shorts(self, ordinal: int) -> list[int]:
        """Return what chunks a frame holds."""
        info = self.index.frames[ordinal]
        ids = self.index.ids[info.first_chunk : info.first_chunk + info.chunk_count]
        return list(map(short_id, ids))

    def is_sound(self) -> bool:
        """Return whether the SHA-256 of all bytes is the pack's name; reads what is left."""
        with suppress(IntegrityError):
            while self._reached < self.index.end:
                self._piece(self._reached, min(_WINDOW_BYTES, self.index.end - self._reached))
        whole = self._hash.copy()
        whole.update(self._tail)
        return whole.digest() == bytes.fromhex(self.report.pin.name)

    def _piece(self, offset: int, length: int) -> bytes:
        data = self._read(offset, length)
        if offset == self._reached:
            self._hash.update(data)
            self._reached += length
            self.report.bytes += length
        return data

    def _read(self, offset: int, length: int) -> bytes:
        return read_object(self._store, self.report.pin.name, offset, length)


class _Cancelling:
    """Takes back what has not begun when whoever asked for reports stops asking."""

    def __init__(self, waiting: deque[Future[PackReport]]) -> None:
        self._waiting = waiting

    def close(self) -> None:
        for future in self._waiting:
            future.cancel()
