"""Chunks of one verified manifest: found, checked, decrypted, and checked once more.

Where a chunk lies is a guess of the catalogue, or comes from the indexes of the pinned packs;
what it is, is decided by the pinned index alone. A reader without a permit gives trees, lists
and ledgers of any age; data come only from a reader whose operation lets the live time decide.
Memory is bounded: frames by bytes, open indexes by chunks, places by 16 bytes a chunk.
Source: spec/format.md 5 and 7.2, spec/ingest.md 5 and 6. Start at `ChunkReader.chunk`.
"""

import os
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from durarepo.core.entries import Entry
from durarepo.core.errors import PUT_BACK, IntegrityError, StoreError
from durarepo.core.limits import CHUNK_MAX_BYTES, MIB
from durarepo.core.names import ChunkId, ObjectName
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import Pin
from durarepo.ingest import VerifiedManifest
from durarepo.repository.openpack import EpochKeys, OpenPack, PackOpener
from durarepo.repository.repository import Repository
from durarepo.store.port import ObjectStore

FRAMES_MAX_BYTES = 48 * MIB
"""So many bytes of decrypted frames are kept."""

OPEN_CHUNKS_MAX = 200_000
"""So many chunks the indexes that are kept open may name; at least one index is kept."""

Permit = Callable[[], None]
"""Asks the live time whether data may be decrypted now; raises where not (ingest 6.1)."""


class CheckedFrames:
    """Which frames were decrypted and had the id of every chunk derived again."""

    __slots__ = ("_frames",)

    def __init__(self) -> None:
        self._frames: dict[Pin, set[int]] = {}

    def note(self, pin: Pin, ordinal: int) -> None:
        """Remember a frame."""
        self._frames.setdefault(pin, set()).add(ordinal)

    def of(self, pin: Pin) -> AbstractSet[int]:
        """Return the ordinals of a pack's frames that were checked."""
        return self._frames.get(pin, frozenset())


class ChunkReader:
    """Reads the chunks that one manifest pins. Not for several threads at once."""

    def __init__(
        self,
        repository: Repository,
        manifest: VerifiedManifest,
        *,
        store: ObjectStore | None = None,
        permit: Permit | None = None,
        newest: VerifiedManifest | None = None,
        thorough: CheckedFrames | None = None,
    ) -> None:
        """Prepare; nothing is read before the first chunk is asked for.

        Args:
            repository: where keys and hints come from.
            manifest: whose pins count.
            store: stands in for the repository's own objects.
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
        self.opener = PackOpener(repository, store=store)
        self._pins = _ranked_pins(manifest, newest or manifest)
        self._packs: OrderedDict[ObjectName, OpenPack] = OrderedDict()
        self._recent: OpenPack | None = None  # the last of the packs that are open
        self._open_chunks = 0
        self._frames: OrderedDict[tuple[ObjectName, int], bytes] = OrderedDict()
        self._frame_bytes = 0
        self._hints: Mapping[int, ObjectName] | None = None if thorough is None else {}
        self._places: _Places | None = None

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
        if refusal is None and self._places is not None:
            refusal = self._places.refusal
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
        return self.opener.keys(self.manifest.statement.epoch)

    def _frame(self, pack: OpenPack, ordinal: int) -> bytes:
        key = (pack.pin.name, ordinal)
        held = self._frames.get(key)
        if held is not None:
            self._frames.move_to_end(key)
            return held
        if self._permit is not None and not self._is_permitted:
            self._permit()  # ingest 6.1
            self._is_permitted = True
        plain = pack.read_frame(ordinal, self._repository.keys.need_identity())
        if self._thorough is not None and pack.is_whole(plain, ordinal):
            self._thorough.note(pack.pin, ordinal)
        self._frames[key] = plain
        self._frame_bytes += len(plain)
        while self._frame_bytes > FRAMES_MAX_BYTES and len(self._frames) > 1:
            self._frame_bytes -= len(self._frames.popitem(last=False)[1])
        return plain

    def _open(self, name: ObjectName) -> OpenPack:
        pack = self._packs.get(name)
        if pack is not None:
            self._packs.move_to_end(name)
            self._recent = pack
            return pack
        pack = self._recent = self._packs[name] = self.opener.open(self._pins[name])
        self._open_chunks += len(pack.index.ids)
        while self._open_chunks > OPEN_CHUNKS_MAX and len(self._packs) > 1:
            self._open_chunks -= len(self._packs.popitem(last=False)[1].index.ids)
        return pack

    def _candidates(self, chunk: ChunkId) -> Iterator[ObjectName]:
        """Yield the packs in which the chunk may lie besides the recent one, each once.

        Those that are open come before what the catalogue says, and that before all others.
        """
        recent = self._recent
        tried = set() if recent is None else {recent.pin.name}
        for name in [one for one, pack in self._packs.items() if pack.number(chunk) is not None]:
            if name not in tried:
                tried.add(name)
                yield name
        hint = self._hint(chunk)
        if hint is not None and hint not in tried:
            tried.add(hint)
            yield hint
        if self._places is None:
            self._places = _Places(list(self._pins), self._open)
        for name in self._places.find(chunk):
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


class _Places:
    """Which packs name a chunk, by their own indexes, which are opened as far as needed.

    Held in a private database in memory: the first eight bytes of an id and the rank of the pack.
    """

    def __init__(
        self, names: list[ObjectName], open_pack: Callable[[ObjectName], OpenPack]
    ) -> None:
        self._names = names
        self._open_pack = open_pack
        self._loaded = 0
        self.refusal: IntegrityError | None = None
        """Why the first index that could not be opened was refused."""
        self._rows = sqlite3.connect(":memory:", isolation_level=None)
        self._rows.execute(
            "CREATE TABLE places (start INTEGER, rank INTEGER, PRIMARY KEY (start, rank)) "
            "WITHOUT ROWID"
        )

    def find(self, chunk: ChunkId) -> Iterator[ObjectName]:
        """Yield each pack that may hold the chunk; opens further indexes only if asked on."""
        query = "SELECT rank FROM places WHERE start = ? ORDER BY rank"
        for (rank,) in self._rows.execute(query, (_start(chunk),)).fetchall():
            yield self._names[rank]
        while self._loaded < len(self._names):
            rank = self._loaded
            self._loaded += 1
            if chunk in self._load(rank):
                yield self._names[rank]

    def _load(self, rank: int) -> tuple[ChunkId, ...]:
        try:
            ids = self._open_pack(self._names[rank]).index.ids
        except IntegrityError as error:
            self.refusal = self.refusal or _in_pack(self._names[rank], error)
            return ()
        rows = ((start, rank) for start in sorted({_start(one) for one in ids}))
        self._rows.execute("BEGIN")
        self._rows.executemany("INSERT INTO places VALUES (?, ?)", rows)
        self._rows.execute("COMMIT")
        return ids


def _start(chunk: ChunkId) -> int:
    return int.from_bytes(chunk[:8], signed=True)
