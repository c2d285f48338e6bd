"""What a run of a snapshot works with: sink, writer, file keeper, and the journal they feed.

It begins by taking over what the head and an unfinished run left, and it notes, pack by pack,
which files need not be read again should this run be killed, or end with a partial manifest.
Source: spec/format.md 8, 9 and 12. Start at `Workbench`.
"""

from collections import deque
from collections.abc import Container

from durarepo.core.limits import MIB
from durarepo.core.names import Digest, ObjectName
from durarepo.crypto import primitives
from durarepo.format.manifest import Pin
from durarepo.local.catalog import Catalog
from durarepo.local.journal import Journal
from durarepo.local.work import WorkFolder
from durarepo.repository.chunks import ChunkSink
from durarepo.repository.contents import FileKeeper
from durarepo.repository.exclusion import Exclusion
from durarepo.repository.listing import Line
from durarepo.repository.rebuild import RowChecker, ensure_packs
from durarepo.repository.repository import Repository
from durarepo.repository.rewriting import choose_packs
from durarepo.repository.scanmemories import ScanMemories
from durarepo.repository.standing import (
    FileMark,
    Standing,
    carried_records,
    files_record,
    journal_header,
    loose_record,
    pack_record,
)
from durarepo.repository.treekeeper import Resumed
from durarepo.repository.writer import NewPack, PackTerms, PackWriter
from durarepo.sealing import ChunkNamer, PackSealer

DIRS_FACT = "dirs-of"
"""The catalogue's fact that names the complete manifest whose directories it has."""

_MARKS_AT_ONCE = 4096
_MARKS_BYTES = MIB
_MARKS_MAX_BYTES = 256 * MIB


class Workbench:
    """Holds the tools of one run; `close` stops the workers of its writer."""

    def __init__(
        self,
        repository: Repository,
        standing: Standing,
        *,
        exclusion: Exclusion,
        journal: Journal,
        work: WorkFolder,
    ) -> None:
        self.standing = standing
        self.journal = journal
        self.since = None if standing.complete is None else int(standing.complete.sequence)
        self.knows_last_complete = _knows_last_complete(repository.catalog, standing)
        self._pending: deque[tuple[bytes, Line]] = deque()
        self._noted_bytes = 0
        catalog, naming = repository.catalog, repository.keys.naming.reveal()
        namer = ChunkNamer(naming)
        live = ensure_packs(repository, catalog, standing.live.values())
        taken = ensure_packs(repository, catalog, standing.taken_over.values())
        self.taken_over = tuple(taken)
        self.sink = ChunkSink(
            catalog,
            namer=namer,
            live=live | taken,
            confirm=RowChecker(repository).confirm,
        )
        self.sink.all_live = standing.complete is None
        self.sink.rewriting = choose_packs(
            repository,
            standing.complete,
            self.sink,
            namer=namer,
            knows_dirs=self.knows_last_complete,
        )
        self.resumed = _resumed(standing, live | taken, self.sink)
        self.writer = self._new_writer(repository)
        self.sink.write_to(self.writer)
        self.keeper = FileKeeper(
            self.sink,
            cut_key=primitives.derive_subkey(naming, "cut"),
            work=work,
            object_limit=repository.configuration.object_limit,
            exclusion=exclusion,
            memories=ScanMemories(catalog, exclusion.version),
        )
        carried = [pack_record(pin) for pin in taken.values()]
        carried += [loose_record(standing.abandoned)] if standing.abandoned else []
        carried += [files_record(marks) for marks in _batches(standing.files)]
        journal.begin(journal_header(standing.head_digest), carried)

    def _new_writer(self, repository: Repository) -> PackWriter:
        epoch = repository.record.current
        place = repository.place(epoch.number)
        subkey = primitives.derive_subkey(repository.keys.naming.reveal(), "index")
        return PackWriter(
            repository.store,
            new_sealer=lambda: PackSealer(
                epoch.data_recipients, place=place, count=epoch.stanza_count, index_subkey=subkey
            ),
            terms=PackTerms(
                registry_version=repository.registry.registry.version,
                stanza_count=epoch.stanza_count,
                object_limit=repository.configuration.object_limit,
            ),
            on_sealed=lambda pin: self.journal.append(pack_record(pin)),
            on_pack=self._note_pack,
        )

    def abandoned(self, *, complete: bool) -> set[ObjectName]:
        """Return the packs that nobody needs unless the manifest pins them.

        Args:
            complete: whether the manifest is; after a partial one the next run goes on with
                what this run stored or took over, so that is not abandoned.
        """
        if not complete:
            return set(self.standing.abandoned)
        rows = (*self.sink.new_packs, *self.taken_over)
        return self.standing.abandoned | {self.sink.packs[row].name for row in rows}

    def go_on_from(self, head: Digest, pinned: Container[ObjectName]) -> None:
        """Leave the resume point to the run after a partial manifest, which is now the head.

        Args:
            head: digest of its envelope.
            pinned: the packs that it pins; they need no taking over.

        Raises:
            StoreError: the journal cannot be written; the packs are then abandoned as usual.
        """
        generation = self.journal.load()
        records = () if generation is None else generation.records
        self.journal.begin(journal_header(head), carried_records(records, pinned))

    def stop_rewriting(self) -> None:
        """Let all packs count again, so that a run that is short of time can end."""
        self.sink.rewriting = frozenset()

    def close(self) -> None:
        """Stop the workers."""
        self.writer.close()

    def note_file(self, path: bytes, line: Line) -> None:
        """Remember a file until all that it needs is durable."""
        self._pending.append((path, line))
        if len(self._pending) % _MARKS_AT_ONCE == 0:
            self._note_durable_files()

    def _note_pack(self, new: NewPack) -> None:
        self.sink.note_pack(new)
        self._note_durable_files()

    def _note_durable_files(self) -> None:
        marks: list[FileMark] = []
        while self._pending and self.sink.is_durable(self._pending[0][1].owners):
            path, line = self._pending.popleft()
            names = [self.sink.packs[row].name for row in self.sink.packs_of(line.owners)]
            marks.append(FileMark(path, line.record, line.entry, tuple(names)))
        for batch in _batches(marks):
            record = files_record(batch)
            self._noted_bytes += len(record)
            if self._noted_bytes <= _MARKS_MAX_BYTES:
                self.journal.append(record)


def _batches(marks: list[FileMark]) -> list[list[FileMark]]:
    """Return marks in groups, each short enough for one record of the journal."""
    batches: list[list[FileMark]] = []
    size = 0
    for mark in marks:
        if not batches or size > _MARKS_BYTES or len(batches[-1]) >= _MARKS_AT_ONCE:
            batches.append([])
            size = 0
        batches[-1].append(mark)
        size += len(mark.path) + len(mark.entry)
    return batches


def _knows_last_complete(catalog: Catalog, standing: Standing) -> bool:
    """Return whether the catalogue's directories are those of the last complete manifest.

    If not, they are good all the same to find what is unchanged since whenever they were noted.
    """
    if standing.complete is None:
        return not standing.state_lost
    return catalog.fact(DIRS_FACT) == standing.complete.digest


def _resumed(standing: Standing, packs: dict[int, Pin], sink: ChunkSink) -> dict[bytes, Resumed]:
    """Return the files that need not be read again; one in a pack that is rewritten has to be."""
    rows = {pin.name: row for row, pin in packs.items()}
    found: dict[bytes, Resumed] = {}
    for mark in standing.files:
        owners = tuple(-rows[name] for name in mark.packs if name in rows)
        if len(owners) == len(mark.packs) and sink.are_live(owners):
            found[mark.path] = Resumed(mark.record, mark.entry, owners)
    return found
