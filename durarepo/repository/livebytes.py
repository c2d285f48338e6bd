"""How many bytes of each pack the last complete manifest needs, by the catalogue alone.

Counted chunk by chunk: ids of small files and trees are derived again, those of larger files
stand in their chunk lists, which the catalogue keeps. So no identity is needed. What cannot be
located counts in every pack that its name needs, so a guess never makes a pack look emptier.
Source: spec/decisions/0006-rewriting.md. Start at `LiveBytes.add_dir`.
"""

from collections.abc import Iterator, Mapping

from durarepo.core.entries import ChunkList, Entry, FileType
from durarepo.core.errors import IntegrityError
from durarepo.core.names import ChunkId
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import Pin
from durarepo.format.tree import cut_leaves, encode_node, parse_list_chunk, read_entry
from durarepo.local.catalog import Catalog, DirRow
from durarepo.repository.chunks import ChunkSink
from durarepo.repository.listing import iter_lines
from durarepo.sealing import ChunkNamer


class LiveBytes:
    """Adds up what directories need; ``live`` is by row id, ``lists`` are the lists met."""

    def __init__(
        self, catalog: Catalog, sink: ChunkSink, *, namer: ChunkNamer, pins: Mapping[int, Pin]
    ) -> None:
        """Prepare.

        Args:
            catalog: tells where chunks lie.
            sink: tells which packs are behind owners.
            namer: gives ids.
            pins: the packs that are looked at; each begins with 0 bytes.
        """
        self._catalog = catalog
        self._sink = sink
        self._namer = namer
        self._counted: dict[int, bytearray] = {}
        self.live = dict.fromkeys(pins, 0)
        self.lists: set[ChunkId] = set()

    def add_dir(self, row: DirRow) -> None:
        """Count what a directory needs: its tree, and the content of its files."""
        names: list[bytes] = []
        encoded: list[bytes] = []
        for line in iter_lines(row):
            if not line.entry:
                continue
            names.append(line.name)
            encoded.append(line.entry)
            entry = read_entry(line.entry)
            if not self._add_entry(entry):
                self._add_everywhere(line.owners, entry.size)
        leaves: list[tuple[bytes, ChunkId]] = []
        for first, plaintext in cut_leaves(names, encoded):
            leaves.append((first, self._add_plain(ChunkKind.TREE, plaintext)))
        if len(leaves) > 1:
            self._add_plain(ChunkKind.TREE, encode_node(leaves))

    def _add_entry(self, entry: Entry) -> bool:
        """Count the chunks of an entry; return whether all could be located."""
        found = True
        if entry.type is FileType.FILE and entry.content is None and entry.sha256 is not None:
            found = self._add(
                self._namer.name(ChunkKind.DATA, entry.size, entry.sha256), entry.size
            )
        for one in _lists_of(entry):
            found = self._add_list(one) and found
        return found

    def _add_list(self, one: ChunkList) -> bool:
        found = True
        for run in one.runs:
            if run.chunk is None:
                continue
            if one.depth == 0:
                found = self._add(run.chunk, run.length) and found
            elif run.chunk not in self.lists:
                below = self._kept_list(run.chunk, total=run.length, depth=one.depth - 1)
                found = below is not None and self._add_list(below) and found
        return found

    def _kept_list(self, chunk: ChunkId, *, total: int, depth: int) -> ChunkList | None:
        plaintext = self._catalog.find_list(chunk)
        if plaintext is None:
            return None
        try:
            below = parse_list_chunk(plaintext, total=total, depth=depth)
        except IntegrityError:
            return None
        self.lists.add(chunk)
        self._add(chunk, len(plaintext))
        return below

    def _add_plain(self, kind: ChunkKind, plaintext: bytes) -> ChunkId:
        chunk = self._namer.name_of(kind, plaintext)
        self._add(chunk, len(plaintext))
        return chunk

    def _add(self, chunk: ChunkId, length: int) -> bool:
        """Count a chunk, once; return whether it lies in a pack that is looked at."""
        found = self._catalog.find_chunk(chunk)
        if found is None or found[0] not in self.live:
            return False
        row, number = found
        counted = self._counted.setdefault(row, bytearray())
        if number >= len(counted):
            counted.extend(bytes(number + 1 - len(counted)))
        if not counted[number]:
            counted[number] = 1
            self.live[row] += length
        return True

    def _add_everywhere(self, owners: tuple[int, ...], size: int) -> None:
        if self._sink.are_there(owners):
            for row in self._sink.packs_of(owners) & self.live.keys():
                self.live[row] += size


def _lists_of(entry: Entry) -> Iterator[ChunkList]:
    if entry.content is not None:
        yield entry.content
    for _, value in entry.xattrs:
        if isinstance(value, ChunkList):
            yield value
