"""Which chunks are known, where, and what a run has added: naming, skipping, writing.

A chunk counts as known only in a pack that the head or the last complete manifest pins and that
is there with its size, or in one that this run wrote or took over (law 3), and only if the index
of that pack says so too: the catalogue alone is not believed. Packs that are being *rewritten* are
there and do not count: their chunks are put anew from the source. What an entry needs
is told as *owners*: minus the row id of a pack, or the number of a group. A group is what went
into one frame; it ends up in one pack, or in two if the frame was cut to fill a pack.
Source: spec/format.md 4, 9 and 12. Start at `ChunkSink.put`.
"""

from array import array
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING

from durarepo.core.names import ChunkId
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import Pin
from durarepo.local.catalog import Catalog
from durarepo.sealing import ChunkNamer

if TYPE_CHECKING:
    from durarepo.repository.writer import NewPack, PackWriter

Confirm = Callable[[Pin, int, ChunkId], bool]
"""Tells whether the index of a pack has a chunk at a number."""

_KEY_BYTES = 16
_REMEMBERED_MAX = 200_000


def encode_owners(owners: Iterable[int]) -> bytes:
    """Return owners as the catalogue keeps them: each once, ascending, 32 bits."""
    return array("i", sorted(set(owners))).tobytes()


def decode_owners(data: bytes) -> Sequence[int]:
    """Return the owners that `encode_owners` wrote."""
    owners = array("i")
    owners.frombytes(data)
    return owners


class ChunkSink:
    """Takes the chunks of one run; stores each that is not known yet."""

    def __init__(
        self, catalog: Catalog, *, namer: ChunkNamer, live: dict[int, Pin], confirm: Confirm
    ) -> None:
        """Prepare.

        Args:
            catalog: where chunks of live packs are looked up.
            namer: gives ids.
            live: row id -> pin of the packs that count, and may be pinned.
            confirm: asked before a chunk counts as known by the catalogue.
        """
        self._catalog = catalog
        self._namer = namer
        self._confirm = confirm
        self.packs = live
        self.rewriting: Container[int] = ()
        self.all_live = False
        self.new_packs: list[int] = []
        self.new_chunks = 0
        self.new_bytes = 0
        self.stored_bytes = 0
        self._asks = catalog.has_chunks()
        self._added: dict[bytes, int] = {}
        self._waiting: set[int] = set()
        self._first_group = catalog.last_group() + 1
        self._group_packs = catalog.groups()
        self._writer: PackWriter | None = None

    def write_to(self, writer: "PackWriter") -> None:
        """Set the writer; its packs are to be reported to `note_pack`."""
        self._writer = writer

    def put(
        self, kind: ChunkKind, plaintext: bytes | memoryview, digest: bytes | None = None
    ) -> tuple[ChunkId, int]:
        """Return (id, owner) of a chunk, stored unless it is known.

        Args:
            kind: what it is.
            plaintext: 1 byte to 8 MiB.
            digest: SHA-256 of it, where the caller has it.
        """
        length = len(plaintext)
        if digest is None:
            chunk = self._namer.name_of(kind, plaintext)
        else:
            chunk = self._namer.name(kind, length, digest)
        if kind is ChunkKind.LIST:
            self._catalog.keep_list(chunk, plaintext)
        owner = self._known(chunk)
        if owner is None:
            if self._writer is None:
                raise ValueError("a sink without a writer takes no chunk")
            owner = self._first_group + self._writer.add(kind, chunk, plaintext)
            self._waiting.add(owner)
            self._added[chunk[:_KEY_BYTES]] = owner
            self.new_chunks += 1
            self.new_bytes += length
        return chunk, owner

    def _known(self, chunk: ChunkId) -> int | None:
        owner = self._added.get(chunk[:_KEY_BYTES])
        if owner is None and self._asks:
            found = self._catalog.find_chunk(chunk)
            if found is not None and self._counts(found[0]):
                row, number = found
                owner = -row if self._confirm(self.packs[row], number, chunk) else None
        return owner

    def note_pack(self, new: "NewPack") -> int:
        """Keep a pack that became durable; return its row id."""
        live = new.plain if self.all_live else None
        row_id = self._catalog.add_pack(new.pin, new.ids, plain=new.plain, live=live)
        self.packs[row_id] = new.pin
        self.new_packs.append(row_id)
        self.stored_bytes += new.pin.size
        for serial in new.serials:
            group = self._first_group + serial
            self._group_packs.setdefault(group, []).append(row_id)
            self._catalog.add_group(group, row_id)
        self._waiting.difference_update(self._first_group + serial for serial in new.whole)
        if len(self._added) > _REMEMBERED_MAX:
            self._forget_stored()
        return row_id

    def _forget_stored(self) -> None:
        """Leave to the catalogue what it knows by now, so that memory stays bounded."""
        self._added = {key: one for key, one in self._added.items() if one in self._waiting}
        self._asks = True

    def is_durable(self, owners: Iterable[int]) -> bool:
        """Return whether all that is owned lies in durable packs."""
        return self._waiting.isdisjoint(owners)

    def packs_of(self, owners: Iterable[int]) -> set[int]:
        """Return the row ids of the packs behind owners that are durable."""
        packs: set[int] = set()
        for owner in owners:
            if owner < 0:
                packs.add(-owner)
            else:
                packs.update(self._group_packs[owner])
        return packs

    def are_live(self, owners: Iterable[int]) -> bool:
        """Return whether all packs behind owners, noted by an earlier run, still count."""
        for owner in owners:
            packs = (-owner,) if owner < 0 else self._group_packs.get(owner, (0,))
            if not all(map(self._counts, packs)):
                return False
        return True

    def are_there(self, owners: Iterable[int]) -> bool:
        """Return whether all packs behind owners may be pinned, rewritten ones too."""
        for owner in owners:
            packs = (-owner,) if owner < 0 else self._group_packs.get(owner, (0,))
            if not all(pack in self.packs for pack in packs):
                return False
        return True

    def _counts(self, pack: int) -> bool:
        return pack in self.packs and pack not in self.rewriting
