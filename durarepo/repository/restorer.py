"""From a verified manifest to restored files: each checked before it keeps its name.

Walks the listing in order and hands entries and content to a `ScratchBuilder`, which alone makes
files. Any failure ends the whole restore, and nothing is published. After a whole restore the
integrity hashes of all components are computed anew and compared.
Source: spec/format.md 6.3 and 7.3, spec/ingest.md 7. Start at `restore`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from durarepo.core.entries import Entry, FileType
from durarepo.core.errors import PUT_BACK, IntegrityError
from durarepo.core.progress import Progress
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import Nested
from durarepo.format.tree import SetHash, set_value
from durarepo.repository.pieces import file_pieces
from durarepo.repository.reader import ChunkReader
from durarepo.repository.scratch import Linkable, ScratchBuilder
from durarepo.repository.scratch_checks import XATTR_MAX_BYTES
from durarepo.repository.selection import FILES_KIND, Selection, sqlite_path
from durarepo.repository.trees import Event, Visit, read_content, walk
from durarepo.store.atomic import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What came: every name but directories, and bytes, those once an inode."""

    files: int
    bytes: int


def iter_chosen(reader: ChunkReader, nested: Nested, selection: Selection) -> Iterator[Visit]:
    """Yield the steps of a restore in order: folders on the way, then what is chosen.

    Raises:
        IntegrityError: a listing cannot be read (ingest 7.1 to 7.5).
    """
    for root in nested.roots:
        if not selection.enters(root.path, root.entry):
            continue
        for visit in walk(reader, root.path, root.entry, enters=selection.enters):
            if visit.event is not Event.ENTRY or selection.takes(visit.path):
                yield visit


def restore(
    reader: ChunkReader,
    nested: Nested,
    builder: ScratchBuilder,
    *,
    selection: Selection,
    progress: Progress,
) -> Restored:
    """Build what is chosen; it is not finished and not published yet.

    Args:
        reader: of the verified manifest whose nested part this is, with a permit.
        nested: its roots and components.
        builder: an empty one.
        selection: what is chosen.
        progress: told of every file.

    Returns:
        What was made.

    Raises:
        IntegrityError: the first step that fails, with the path.
        StoreError: something cannot be read or written.
    """
    work = _Restore(reader, nested, builder, progress)
    for visit in iter_chosen(reader, nested, selection):
        work.step(visit)
    work.check_components(is_whole=selection.is_whole)
    return work.result()


class _Restore:
    def __init__(
        self, reader: ChunkReader, nested: Nested, builder: ScratchBuilder, progress: Progress
    ) -> None:
        self._reader = reader
        self._nested = nested
        self._builder = builder
        self._progress = progress
        self._links: dict[int, Linkable] = {}
        self._sets: list[SetHash] = []
        self._roots = SetHash()
        databases = {sqlite_path(one): one.integrity for one in nested.components}
        self._databases = {path: digest for path, digest in databases.items() if path is not None}
        self._files = self._bytes = 0
        self._total = reader.manifest.statement.totals.bytes

    def result(self) -> Restored:
        return Restored(files=self._files, bytes=self._bytes)

    def step(self, visit: Visit) -> None:
        try:
            if visit.event is Event.ENTER:
                self._enter(visit)
            elif visit.event is Event.LEAVE:
                self._leave(visit)
            else:
                self._add(visit)
        except IntegrityError as error:
            raise _naming(visit.path, error) from error

    def _enter(self, visit: Visit) -> None:
        entry = self._whole(visit.entry)
        if self._sets:
            self._builder.enter(entry)
        else:
            self._builder.enter_root(visit.path, entry)
        self._sets.append(SetHash())

    def _leave(self, visit: Visit) -> None:
        self._builder.leave()
        digest = self._sets.pop().digest()
        if self._sets:
            self._sets[-1].add(visit.entry, digest)
        else:
            self._roots.add_root(visit.path, digest)

    def _add(self, visit: Visit) -> None:
        entry = self._whole(visit.entry)
        if not self._is_linked(entry):
            if entry.type is FileType.FILE:
                pieces = file_pieces(self._reader, entry, visit.path)
                first = self._builder.add_file(entry, pieces)
                self._bytes += entry.size
            else:
                first = self._builder.add_special(entry)
            if first is not None and entry.link_group is not None:
                self._links.setdefault(entry.link_group, first)
        self._check_database(visit)
        self._sets[-1].add(entry, set_value(entry))
        self._files += 1
        self._progress.update(self._files, self._bytes, self._total)

    def _is_linked(self, entry: Entry) -> bool:
        """Give an inode that is there one more name, if all about the two agrees (format 6.3)."""
        first = None if entry.link_group is None else self._links.get(entry.link_group)
        return first is not None and first.agrees(entry) and self._builder.add_link(entry, first)

    def _whole(self, entry: Entry) -> Entry:
        """Return the entry with every attribute's value in place."""
        if not entry.xattrs or all(isinstance(value, bytes) for _, value in entry.xattrs):
            return entry
        read = [
            (name, value)
            if isinstance(value, bytes)
            else (
                name,
                read_content(self._reader, value, kind=ChunkKind.DATA, most=XATTR_MAX_BYTES),
            )
            for name, value in entry.xattrs
        ]
        return entry._replace(xattrs=tuple(read))

    def _check_database(self, visit: Visit) -> None:
        signed = self._databases.pop(visit.path, visit.entry.sha256)
        if signed != visit.entry.sha256:
            raise IntegrityError("component", "database is not the one of its component")

    def check_components(self, *, is_whole: bool) -> None:
        """Compare integrity hashes after everything was restored (ingest 7.8)."""
        if not is_whole:
            return
        for component in self._nested.components:
            if component.kind == FILES_KIND and component.integrity != self._roots.digest():
                raise IntegrityError(
                    "component",
                    "restored files are not the set that was signed",
                    hint="restore another manifest with --at",
                )
        for path in self._databases:
            raise IntegrityError("component", f"database {shown(path)} is not in the listing")


def _naming(path: bytes, error: IntegrityError) -> IntegrityError:
    """Return the same refusal with the path that it is about."""
    named = shown(path)
    message = error.message if named in error.message else f"{named}: {error.message}"
    return IntegrityError(error.code.partition(".")[2], message, hint=error.hint or PUT_BACK)
