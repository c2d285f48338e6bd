"""What several readers of one run share: open packs, decrypted frames, and where chunks may lie.

A reader takes from it only what its own manifest pins: packs are held by their pins, and every
place is a guess that the pack's pinned index decides. Memory is bounded: frames by bytes, open
indexes by chunks, places by eight bytes a chunk. Not for several threads at once.
Source: spec/ingest.md 5 and 6. Start at `Shelf`.
"""

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping

from durarepo.core.errors import IntegrityError
from durarepo.core.limits import MIB
from durarepo.core.names import ChunkId, Digest, ObjectName
from durarepo.format.manifest import Pin
from durarepo.repository.openpack import OpenPack, PackOpener
from durarepo.repository.repository import Repository
from durarepo.store.port import ObjectStore

FRAMES_MAX_BYTES = 48 * MIB
"""So many bytes of decrypted frames are kept."""

OPEN_CHUNKS_MAX = 200_000
"""So many chunks the indexes that are kept open may name; at least one index is kept."""

_START_BYTES = 5
_PACK_BITS = 24
_PACK_MASK = (1 << _PACK_BITS) - 1


class Shelf:
    """Packs of one repository that are open, and their frames; see the module."""

    def __init__(self, repository: Repository, *, store: ObjectStore | None = None) -> None:
        """Prepare; ``store`` stands in for the repository's own objects."""
        self.opener = PackOpener(repository, store=store)
        self._packs: OrderedDict[Pin, OpenPack] = OrderedDict()
        self._open_chunks = 0
        self._frames: OrderedDict[tuple[ObjectName, Digest, int], bytes] = OrderedDict()
        self._frame_bytes = 0
        self._places = _Places()
        self._numbers: dict[Pin, int] = {}  # of each pack whose index `find` has asked
        self._read: list[Pin] = []
        self._refused: dict[Pin, IntegrityError] = {}

    def open(self, pin: Pin) -> OpenPack:
        """Return an open pack.

        Raises:
            IntegrityError, StoreError, KeyMaterialError: as `PackOpener.open`.
        """
        pack = self._packs.get(pin)
        if pack is not None:
            self._packs.move_to_end(pin)
            return pack
        pack = self._packs[pin] = self.opener.open(pin)
        self._open_chunks += len(pack.index.ids)
        while self._open_chunks > OPEN_CHUNKS_MAX and len(self._packs) > 1:
            self._open_chunks -= len(self._packs.popitem(last=False)[1].index.ids)
        return pack

    def holding(self, chunk: ChunkId) -> list[ObjectName]:
        """Return the names of the packs that are open and have a chunk."""
        return [pin.name for pin, pack in self._packs.items() if pack.number(chunk) is not None]

    def frame(self, pack: OpenPack, ordinal: int) -> bytes | None:
        """Return the plaintext of a frame if it is held."""
        key = (pack.pin.name, pack.pin.index_digest, ordinal)
        held = self._frames.get(key)
        if held is not None:
            self._frames.move_to_end(key)
        return held

    def keep_frame(self, pack: OpenPack, ordinal: int, plain: bytes) -> None:
        """Hold the plaintext of a frame for a while."""
        self._frames[pack.pin.name, pack.pin.index_digest, ordinal] = plain
        self._frame_bytes += len(plain)
        while self._frame_bytes > FRAMES_MAX_BYTES and len(self._frames) > 1:
            self._frame_bytes -= len(self._frames.popitem(last=False)[1])

    def find(self, chunk: ChunkId, pins: Mapping[ObjectName, Pin]) -> Iterator[ObjectName]:
        """Yield which of the packs may hold a chunk; reads further indexes only if asked on."""
        met = [self._read[number] for number in self._places.find(chunk)]
        found = [pin.name for pin in met if pins.get(pin.name) == pin]
        if len(found) > 1:
            found = [name for name in pins if name in found]
        yield from found
        for name, pin in pins.items():
            if pin not in self._numbers and chunk in self._load(pin):
                yield name

    def refusal(self, pins: Iterable[Pin]) -> tuple[ObjectName, IntegrityError] | None:
        """Return the first of the packs whose index could not be opened for `find`, and why."""
        for pin in pins:
            if pin in self._refused:
                return pin.name, self._refused[pin]
        return None

    def _load(self, pin: Pin) -> tuple[ChunkId, ...]:
        number = self._numbers[pin] = len(self._read)
        self._read.append(pin)
        try:
            ids = self.open(pin).index.ids
        except IntegrityError as error:
            self._refused[pin] = error
            return ()
        self._places.add(ids, number)
        return ids


class _Places:
    """Which packs may hold a chunk: sorted numbers, of an id's first bytes and of the pack.

    A few arrays of unlike lengths; a new one takes in those that are not much longer.
    """

    def __init__(self) -> None:
        self._levels: list[array[int]] = []

    def add(self, ids: Iterable[ChunkId], pack: int) -> None:
        """Note that a pack holds these chunks."""
        level = array("Q", sorted({_start(chunk) | pack for chunk in ids}))
        while self._levels and len(self._levels[-1]) <= 2 * len(level):
            level = array("Q", sorted(self._levels.pop() + level))
        self._levels.append(level)

    def find(self, chunk: ChunkId) -> Iterator[int]:
        """Yield the numbers of packs that may hold a chunk."""
        first = _start(chunk)
        for level in self._levels:
            at = bisect_left(level, first)
            while at < len(level) and level[at] <= first | _PACK_MASK:
                yield level[at] & _PACK_MASK
                at += 1


def _start(chunk: ChunkId) -> int:
    return int.from_bytes(chunk[:_START_BYTES]) << _PACK_BITS
