"""Rows of the catalogue made again from the packs themselves, each through its pin.

Needs the naming key only, so it works on a put-only machine and after catalog.db was deleted.
Where the state was lost too, no pin is known: then a pack counts if the SHA-256 of all its bytes
is its name. Source: spec/format.md 12 (law 5), spec/ingest.md 5.4.
Start at `ensure_packs`, `RowChecker` and `find_unpinned`.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from durarepo.core.errors import IntegrityError, KeyMaterialError, TrustError
from durarepo.core.limits import KEY_BYTES, SIZE_CLASSES, TRAILER_BYTES
from durarepo.core.names import ChunkId, Digest, ObjectName
from durarepo.crypto import primitives
from durarepo.format.manifest import Pin
from durarepo.format.pack import PackIndex
from durarepo.local.catalog import Catalog
from durarepo.repository.openpack import EpochKeys, PackOpener
from durarepo.repository.repository import Repository
from durarepo.sealing import check_index, index_key, open_index, open_trailer
from durarepo.store.port import ObjectStore

_INDEXES_KEPT = 8


def ensure_packs(repository: Repository, catalog: Catalog, pins: Iterable[Pin]) -> dict[int, Pin]:
    """Return the packs of ``pins`` by row id, with rows for those that the catalogue lacked.

    A pack whose index is not the pinned one is left out: its chunks count as unknown and are
    stored anew. The caller is in a transaction of the catalogue.

    Raises:
        StoreError: a pack cannot be read.
    """
    opener = PackOpener(repository)
    known: dict[ObjectName, int] = catalog.pack_ids()
    found: dict[int, Pin] = {}
    for pin in pins:
        row_id = known.get(pin.name)
        if row_id is None:
            try:
                index = opener.open(pin).index
                row_id = catalog.add_pack(pin, index.ids, plain=sum(index.lengths))
            except IntegrityError:
                continue
        found[row_id] = pin
    return found


class RowChecker:
    """Compares rows of the catalogue with the packs' own indexes; keeps the last few of these."""

    def __init__(self, repository: Repository) -> None:
        self._opener = PackOpener(repository)
        self._ids: OrderedDict[Pin, bytes] = OrderedDict()

    def confirm(self, pin: Pin, number: int, chunk: ChunkId) -> bool:
        """Return whether a pack's pinned index has a chunk at ``number``.

        A pack that cannot be opened confirms nothing.

        Raises:
            StoreError: it cannot be read.
        """
        ids = self._ids.get(pin)
        if ids is None:
            ids = self._ids[pin] = self._read(pin)
            if len(self._ids) > _INDEXES_KEPT:
                self._ids.popitem(last=False)
        else:
            self._ids.move_to_end(pin)
        at = number * len(chunk)
        return number >= 0 and ids[at : at + len(chunk)] == chunk

    def _read(self, pin: Pin) -> bytes:
        try:
            return b"".join(self._opener.open(pin).index.ids)
        except (IntegrityError, KeyMaterialError, TrustError):
            return b""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpinnedPack:
    """A pack of this stream that was found without a pin, and the epoch of its naming key."""

    name: ObjectName
    size: int
    index_digest: Digest
    index: PackIndex
    epoch: int


def find_unpinned(repository: Repository, store: ObjectStore) -> Iterator[UnpinnedPack]:
    """Yield every object that is a whole pack of this stream, in the order of names.

    What another stream stored here, envelopes, registries and damaged packs are passed over.

    Raises:
        StoreError: the store cannot be used.
    """
    keys = epoch_keys(repository)
    for name in store.iter_names():
        with suppress(IntegrityError):
            found = open_unpinned(store.read(name), name, keys)
            if found is not None:
                yield found


def epoch_keys(repository: Repository) -> dict[int, EpochKeys]:
    """Return what opens the packs of each epoch whose naming key is here, the newest first."""
    opener = PackOpener(repository)
    found: dict[int, EpochKeys] = {}
    for epoch in reversed(repository.record.epochs):
        with suppress(KeyMaterialError):
            found[epoch.number] = opener.keys(epoch.number)
    return found


def open_unpinned(data: bytes, name: ObjectName, keys: dict[int, EpochKeys]) -> UnpinnedPack | None:
    """Return the pack that an object is; None if nothing says that it is one of this stream's.

    Raises:
        IntegrityError: it is one, and ``object-name``: its bytes are not what its name says;
            ``index-seal``, ``index-form``: its index is not as it has to be.
    """
    if len(data) not in SIZE_CLASSES:
        return None
    for epoch, one in keys.items():
        key = index_key(one.index_subkey.reveal(), data[1 : 1 + KEY_BYTES])
        try:
            position = open_trailer(key, data[-TRAILER_BYTES:], size=len(data))  # ingest 5.3
        except IntegrityError:
            continue
        if primitives.sha256(data) != bytes.fromhex(name):  # 5.4
            raise IntegrityError("object-name", f"pack {name} holds other bytes than it should")
        sealed = data[position:-TRAILER_BYTES]
        digest = Digest(primitives.sha256(sealed))
        return UnpinnedPack(
            name=name,
            size=len(data),
            index_digest=digest,
            index=open_index(check_index(sealed, position, digest), key),  # 5.5, 5.6
            epoch=epoch,
        )
    return None
