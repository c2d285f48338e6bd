"""One pack, opened for reading through its pin and through nothing else.

The order is that of ingest 5 and 6: size, trailer, index digest, index; then header, digest of
the frame, key, seal, length. No frame is decrypted whose stored bytes were not compared with a
pinned index before. Opening an index needs the naming key alone; frames need an identity.
Source: spec/format.md 5, spec/ingest.md 5 and 6. Start at `PackOpener.open`.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from durarepo.core.entries import Entry
from durarepo.core.errors import PUT_BACK, IntegrityError
from durarepo.core.limits import FORMAT_VERSION, KEY_BYTES, SLOT_ATTEMPTS, TRAILER_BYTES
from durarepo.core.names import ChunkId, ObjectName
from durarepo.core.secret import Secret
from durarepo.crypto import primitives
from durarepo.format.layout import Compartment, object_name, pack_slot_input
from durarepo.format.manifest import Pin
from durarepo.format.pack import PackIndex
from durarepo.repository.repository import Repository
from durarepo.repository.sealedto import check_recipient, read_registry
from durarepo.sealing import (
    ChunkNamer,
    check_chunk,
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

_SALT_END = 1 + KEY_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochKeys:
    """What opens the packs of one epoch: the naming key's parts, and what seals are bound to."""

    place: Compartment
    namer: ChunkNamer
    index_subkey: Secret
    slot_subkey: Secret


class OpenPack:
    """A pack whose index is the pinned one; its frames are read one at a time."""

    __slots__ = (
        "_check_recipient",
        "_firsts",
        "_numbers",
        "_pack_key",
        "_place",
        "_starts",
        "_store",
        "index",
        "keys",
        "pin",
    )

    def __init__(
        self,
        pin: Pin,
        index: PackIndex,
        *,
        place: ObjectName,
        keys: EpochKeys,
        opener: "PackOpener",
    ) -> None:
        """Hold a pack that lies at ``place``; only `PackOpener` makes one."""
        self.pin = pin
        self._place = place
        self.index = index
        self.keys = keys
        self._store = opener.store
        self._check_recipient = opener.check_recipient
        self._pack_key: Secret | None = None
        self._numbers = {chunk: number for number, chunk in enumerate(index.ids)}
        self._starts = array("Q", accumulate(index.lengths, initial=0))
        self._firsts = [frame.first_chunk for frame in index.frames]

    def number(self, chunk: ChunkId) -> int | None:
        """Return the number of a chunk within this pack, or None where it is not in it."""
        return self._numbers.get(chunk)

    def frame_of(self, number: int) -> int:
        """Return the ordinal of the frame in which a chunk lies."""
        return bisect_right(self._firsts, number) - 1

    def read_frame(self, ordinal: int, identity: Secret) -> bytes:
        """Return the plaintext of a frame (ingest 6.3 to 6.7).

        Raises:
            KeyMaterialError: ``not-recipient``: the pack is sealed to others.
            IntegrityError: the code of the first step that fails.
            StoreError: it cannot be read.
        """
        name, info = self._place, self.index.frames[ordinal]
        header = b""
        if self._pack_key is None:
            header = self._store.read(name, 0, self.index.header_length)
            check_pack_header(header, self.index)  # 6.3
        stored = self._store.read(name, info.position, info.stored_length)
        checked = check_frame(stored, self.index, ordinal)  # 6.4
        if self._pack_key is None:
            self._pack_key = self._open_key(header, identity)
        return open_frame(checked, self.index, self._pack_key.reveal())  # 6.6, 6.7

    def _open_key(self, header: bytes, identity: Secret) -> Secret:
        try:
            return Secret(open_pack_key(header, identity.reveal(), self.keys.place))  # 6.5
        except IntegrityError as error:
            if error.code == "integrity.stanza":
                self._check_recipient(self.pin, identity)
            raise

    def cut_chunk(self, frame: bytes, ordinal: int, number: int) -> bytes:
        """Return a chunk from the plaintext of its frame, its id derived again (ingest 6.8).

        Raises:
            IntegrityError: ``chunk-id``.
        """
        return check_chunk(
            self.cut_checked(frame, ordinal, number), self.index, number, self.keys.namer
        )

    def cut_file(self, frame: bytes, ordinal: int, number: int, entry: Entry) -> bytes:
        """Return the only chunk of a file, which was found by the id that the file's entry gives.

        That id was made with this pack's naming key from the file's length and SHA-256, so to
        compare those with the bytes is to derive it again.

        Raises:
            IntegrityError: ``chunk-id``.
        """
        chunk = self.cut_checked(frame, ordinal, number)
        if len(chunk) == entry.size and primitives.sha256(chunk) == entry.sha256:
            return chunk
        return check_chunk(chunk, self.index, number, self.keys.namer)

    def is_whole(self, frame: bytes, ordinal: int) -> bool:
        """Return whether each chunk of a frame is the one that its id names."""
        try:
            for _ in iter_chunks(frame, self.index, self.index.frames[ordinal], self.keys.namer):
                pass  # the id is derived again on the way
        except IntegrityError:
            return False
        return True

    def cut_checked(self, frame: bytes, ordinal: int, number: int) -> bytes:
        """Return a chunk from the plaintext of a frame that `is_whole`."""
        start = self._starts[number] - self._starts[self._firsts[ordinal]]
        return frame[start : start + self.index.lengths[number]]


class PackOpener:
    """Opens packs of one repository; keeps the keys of each epoch that it has met."""

    def __init__(self, repository: Repository, *, store: ObjectStore | None = None) -> None:
        """Prepare; ``store`` stands in for the repository's own objects."""
        self._repository = repository
        self.store = repository.store if store is None else store
        self._epochs: dict[int, int] = {}
        self._keys: dict[int, EpochKeys] = {}

    def open(self, pin: Pin) -> OpenPack:
        """Return the pack of a verified pin, its index checked and read (ingest 5).

        Raises:
            IntegrityError: the code of the first step that fails.
            KeyMaterialError: ``identity-absent`` where only the registry has the naming key.
            StoreError: it cannot be read.
        """
        keys = self.keys(self.epoch_of(pin.registry_version))
        refusal: IntegrityError | None = None
        for place, size in self._iter_places(pin, keys):  # 5.1
            try:
                return self._open_at(pin, place, size=size, keys=keys)
            except IntegrityError as error:
                refusal = refusal or error
        raise refusal or IntegrityError(
            "pack-missing",
            f"pack {pin.name} is not there",
            hint=PUT_BACK,
        )

    def _iter_places(self, pin: Pin, keys: EpochKeys) -> Iterator[tuple[ObjectName, int]]:
        """Yield where the pack may lie, with the size of what is there: its name, then its slot."""
        size = self.store.stat(pin.name)
        if size is not None:
            yield pin.name, size
        for attempt in range(SLOT_ATTEMPTS):
            slot = pack_slot_input(pin.name, attempt)
            place = object_name(primitives.keyed_hash(keys.slot_subkey.reveal(), slot))
            size = self.store.stat(place)
            if size is None:
                return
            yield place, size

    def _open_at(self, pin: Pin, name: ObjectName, *, size: int, keys: EpochKeys) -> OpenPack:
        if size != pin.size:  # 5.2
            raise IntegrityError("object-size", f"pack {name} is {size} bytes, not {pin.size}")
        head = self.store.read(name, 0, _SALT_END)
        if head[0] != FORMAT_VERSION:  # 5.2
            raise IntegrityError("version", f"pack {name} is of a format version unknown here")
        key = index_key(keys.index_subkey.reveal(), head[1:])
        trailer = self.store.read(name, size - TRAILER_BYTES, TRAILER_BYTES)
        position = open_trailer(key, trailer, size=size)  # 5.3
        sealed = self.store.read(name, position, size - TRAILER_BYTES - position)
        index = open_index(check_index(sealed, position, pin.index_digest), key)  # 5.4 to 5.6
        return OpenPack(pin, index, place=name, keys=keys, opener=self)

    def check_recipient(self, pin: Pin, identity: Secret) -> None:
        """Refuse a pack that was sealed without an identity, which then did not open it.

        Raises:
            KeyMaterialError: ``not-recipient``.
        """
        check_recipient(self._repository, [pin], identity)

    def keys(self, epoch: int) -> EpochKeys:
        """Return what opens the packs of an epoch.

        Raises:
            KeyMaterialError: ``identity-absent``.
        """
        if epoch not in self._keys:
            naming = self._repository.naming_key(epoch).reveal()
            self._keys[epoch] = EpochKeys(
                place=self._repository.place(epoch),
                namer=ChunkNamer(naming),
                index_subkey=Secret(primitives.derive_subkey(naming, "index")),
                slot_subkey=Secret(primitives.derive_subkey(naming, "slot")),
            )
        return self._keys[epoch]

    def epoch_of(self, registry_version: int) -> int:
        """Return the epoch of packs sealed under a registry: the last one that it names.

        Raises:
            TrustError: ``registry-version``: that registry is not there.
            IntegrityError, TrustError: why it is refused (ingest 3.1 to 3.11).
        """
        repository = self._repository
        if len(repository.record.epochs) == 1:
            return repository.record.current.number
        if registry_version == repository.registry.registry.version:
            return repository.record.current.number
        if registry_version not in self._epochs:
            found = read_registry(repository, self.store, registry_version)
            self._epochs[registry_version] = found.record(repository.stream).current.number
        return self._epochs[registry_version]
