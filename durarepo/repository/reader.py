"""Chunks of one verified manifest: found, checked, decrypted, and checked once more.

Where a chunk lies is a guess of the catalogue, or comes from the indexes of the pinned packs;
what it is, is decided by the pinned index alone. A reader without a permit gives trees, lists
and ledgers of any age; data come only from a reader whose operation lets the live time decide.
What is open lies on a shelf, which readers of one run may share.
Source: spec/format.md 5 and 7.2, spec/ingest.md 5 and 6. Start at `ChunkReader.chunk`.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from durarepo.core.entries import Entry
from durarepo.core.errors import PUT_BACK, IntegrityError, StoreError
from durarepo.core.limits import CHUNK_MAX_BYTES
from durarepo.core.names import ChunkId, Digest, ObjectName
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import Pin
from durarepo.ingest import VerifiedManifest
from durarepo.repository.openpack import EpochKeys, OpenPack
from durarepo.repository.repository import Repository
from durarepo.repository.shelf import Shelf

Permit = Callable[[], None]
"""Asks the live time whether data may be decrypted now; raises where not (ingest 6.1)."""


class CheckedFrames:
    """Which frames were decrypted and had the id of every chunk derived again."""

    __slots__ = ("_frames",)

    def __init__(self) -> None:
        self._frames: dict[tuple[ObjectName, Digest], set[int]] = {}

    def note(self, pin: Pin, ordinal: int) -> None:
        """Remember a frame."""
        self._frames.setdefault((pin.name, pin.index_digest), set()).add(ordinal)

    def of(self, pin: Pin) -> AbstractSet[int]:
        """Return the ordinals of a pack's frames that were checked."""
        return self._frames.get((pin.name, pin.index_digest), frozenset())


class ChunkReader:
    """Reads the chunks that one manifest pins. Not for several threads at once."""

    def __init__(
        self,
        repository: Repository,
        manifest: VerifiedManifest,
        *,
        shelf: Shelf | None = None,
        permit: Permit | None = None,
        newest: VerifiedManifest | None = None,
        thorough: CheckedFrames | None = None,
    ) -> None:
        """Prepare; nothing is read before the first chunk is asked for.

        Args:
            repository: where keys and hints come from.
            manifest: whose pins count.
            shelf: packs that other readers of this run have opened, and frames that they have
                read; one of its own where none is given.
            permit: asked once before the first frame; None for a reader that gives no data.
            newest: the newest verified manifest; its repairs count as well.
            thorough: takes note of frames: of each that is read all chunks are checked, whether
                they are asked for or not, and the catalogue is not asked where one lies.
        """
        self._repository = repository
        self.manifest = manifest
        self._permit = permit
        self._thorough = thorough
        self._is_permitted = False
        self._shelf = Shelf(repository) if shelf is None else shelf
        self._pins = _ranked_pins(manifest, newest or manifest)
        self._recent: OpenPack | None = None
        self._keys: EpochKeys | None = None
        self._hints: Mapping[int, ObjectName] | None = None if thorough is None else {}

    def chunk(self, chunk: ChunkId, kind: ChunkKind) -> bytes:
        """Return the plaintext of a chunk.

        Raises:
            IntegrityError: the code of the step that failed where the chunk should lie;
                ``chunk-missing``: no index of a pinned pack names it.
            FreshnessError, TrustError: what the permit raises.
            StoreError: the store cannot be used.
            ValueError: data were asked of a reader that has no permit.
        """
        return self._find(chunk, kind)

    def file_data(self, entry: Entry) -> bytes:
        """Return the content of a file that is one chunk.

        Raises:
            IntegrityError: ``content``: it is longer than a chunk may be; or as `chunk`.
            FreshnessError, TrustError, StoreError, ValueError: as `chunk`.
        """
        return self._find(self.file_chunk(entry), ChunkKind.DATA, of=entry)

    def file_chunk(self, entry: Entry) -> ChunkId:
        """Return the id of the only chunk of a file that has no content list.

        Raises:
            IntegrityError: ``content``: it is longer than a chunk may be.
        """
        if entry.sha256 is None or not 0 < entry.size <= CHUNK_MAX_BYTES:
            raise IntegrityError("content", "a file is too long to be one chunk, and has no list")
        return self._own_keys().namer.name(ChunkKind.DATA, entry.size, entry.sha256)

    def _find(self, chunk: ChunkId, kind: ChunkKind, *, of: Entry | None = None) -> bytes:
        """Return a chunk; ``of`` is the file whose only one it is, from which its id was made."""
        if kind is ChunkKind.DATA and self._permit is None:
            raise ValueError("a reader without a permit gives no data")
        refusal: IntegrityError | None = None
        recent = self._recent
        number = None if recent is None else recent.number(chunk)
        if recent is not None and number is not None:
            try:
                return self._read(recent, number, kind, of)
            except IntegrityError as error:
                refusal = _in_pack(recent.pin.name, error)
        for name in self._candidates(chunk):
            try:
                pack = self._open(name)
                number = pack.number(chunk)
                if number is not None:
                    return self._read(pack, number, kind, of)
            except IntegrityError as error:
                refusal = refusal or _in_pack(name, error)
        unread = None if refusal else self._shelf.refusal(self._pins.values())
        if unread is not None:
            refusal = _in_pack(*unread)
        raise refusal or IntegrityError(
            "chunk-missing",
            "no pinned pack holds a chunk that the manifest needs",
            hint=PUT_BACK,
        )

    def _read(self, pack: OpenPack, number: int, kind: ChunkKind, of: Entry | None) -> bytes:
        if pack.index.kinds[number] != kind:  # ingest 7.1, 7.6
            reason = "tree-form" if kind is ChunkKind.TREE else "content"
            raise IntegrityError(reason, "a chunk is of another kind than what names it says")
        ordinal = pack.frame_of(number)
        frame = self._frame(pack, ordinal)
        if self._thorough is not None and ordinal in self._thorough.of(pack.pin):
            return pack.cut_checked(frame, ordinal, number)
        if of is not None and pack.keys is self._own_keys():
            return pack.cut_file(frame, ordinal, number, of)
        return pack.cut_chunk(frame, ordinal, number)

    def _own_keys(self) -> EpochKeys:
        """Return the keys that the ids of this manifest's one-chunk files are made with."""
        if self._keys is None:
            self._keys = self._shelf.opener.keys(self.manifest.statement.epoch)
        return self._keys

    def _frame(self, pack: OpenPack, ordinal: int) -> bytes:
        if self._permit is not None and not self._is_permitted:
            self._permit()  # ingest 6.1
            self._is_permitted = True
        held = self._shelf.frame(pack, ordinal)
        if held is not None:
            return held
        plain = pack.read_frame(ordinal, self._repository.keys.need_identity())
        if self._thorough is not None and pack.is_whole(plain, ordinal):
            self._thorough.note(pack.pin, ordinal)
        self._shelf.keep_frame(pack, ordinal, plain)
        return plain

    def _open(self, name: ObjectName) -> OpenPack:
        pack = self._recent = self._shelf.open(self._pins[name])
        return pack

    def _candidates(self, chunk: ChunkId) -> Iterator[ObjectName]:
        """Yield the packs in which the chunk may lie besides the recent one, each once.

        Those that are open come before what the catalogue says, and that before all others.
        """
        recent = self._recent
        tried = set() if recent is None else {recent.pin.name}
        for name in self._shelf.holding(chunk):
            if name in self._pins and name not in tried:
                tried.add(name)
                yield name
        hint = self._hint(chunk)
        if hint is not None and hint not in tried:
            tried.add(hint)
            yield hint
        for name in self._shelf.find(chunk, self._pins):
            if name not in tried:
                yield name

    def _hint(self, chunk: ChunkId) -> ObjectName | None:
        if self._hints is None:
            self._hints = self._known_packs()
        if not self._hints:
            return None
        try:
            with self._repository.catalog.guarded():
                located = self._repository.catalog.find_chunk(chunk)
        except StoreError:
            self._hints = {}
            return None
        return None if located is None else self._hints.get(located[0])

    def _known_packs(self) -> dict[int, ObjectName]:
        """Return the pinned packs by their row in the catalogue; none where it has no use."""
        if not os.path.exists(self._repository.places.catalog):
            return {}
        try:
            catalog = self._repository.catalog
            with catalog.guarded():
                rows = catalog.pack_ids()
        except StoreError:
            return {}
        return {row: name for name, row in rows.items() if name in self._pins}


def _in_pack(name: ObjectName, error: IntegrityError) -> IntegrityError:
    """Return the same refusal with the pack that it is about."""
    message = error.message if name in error.message else f"{error.message} (pack {name})"
    return IntegrityError(error.code.partition(".")[2], message, hint=error.hint or PUT_BACK)


def _ranked_pins(manifest: VerifiedManifest, newest: VerifiedManifest) -> dict[ObjectName, Pin]:
    """Return the pins that count, packs that a repair calls bad last (format 7.2).

    A later manifest may repair packs of an earlier one; of its pins only replacements count.
    """
    pins = {pin.name: pin for pin in manifest.statement.pins}
    later = {pin.name: pin for pin in newest.statement.pins}
    bad: set[ObjectName] = set()
    for repair in (*manifest.statement.repairs, *newest.statement.repairs):
        if repair.bad in pins:
            bad.add(repair.bad)
            for name in repair.replacements:
                if name in later:
                    pins.setdefault(name, later[name])
    good = {name: pin for name, pin in pins.items() if name not in bad}
    return good | {name: pins[name] for name in pins if name in bad}
