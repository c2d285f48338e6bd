"""What a manifest lists, walked past whatever cannot be read: needs, set hashes, and losses.

`walk` of `trees` ends at the first thing that is wrong; this goes on beside it, so that every
file that suffers is named. A directory that occurs several times is walked once. No data are
read here. Source: spec/format.md 6 and 7.3, spec/ingest.md 7.1 to 7.6 and 7.8.
Start at `ListingWalk.walk`; `Needs` listens to it, and so does `Losses`.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from durarepo.core.entries import ChunkList, Entry, FileType
from durarepo.core.errors import IntegrityError
from durarepo.core.limits import PATH_MAX_BYTES, TREE_MAX_DEPTH
from durarepo.core.names import ChunkId
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import Nested
from durarepo.format.tree import SetHash, parse_list_chunk, set_value
from durarepo.repository.inspection import short_id
from durarepo.repository.reader import ChunkReader
from durarepo.repository.selection import FILES_KIND, sqlite_path
from durarepo.repository.trees import iter_directory, join_path


class Listener(Protocol):
    """Whoever wants to know what a listing holds. Each answers whether something is lost."""

    def entry(self, path: bytes, entry: Entry, /) -> bool:
        """Take note of an entry; of a directory, its own attributes alone.

        Raises:
            IntegrityError: it is not as it has to be.
        """
        ...

    def unreadable(self, path: bytes, tree: ChunkId, /) -> None:
        """Take note of a directory whose listing, or the rest of it, cannot be read."""
        ...

    def refused(self, path: bytes, /) -> None:
        """Take note of an entry that no restore would take."""
        ...

    def again(self, path: bytes, first: bytes, /) -> None:
        """Take note of a directory that was found lossy before, at the path ``first``."""
        ...


@dataclass(frozen=True, slots=True)
class _Known:
    """A directory that has been walked: how far it reaches down, and whether all was well."""

    path: bytes
    set_hash: bytes = b""
    is_whole: bool = False
    longest: int = 0
    height: int = 0


@dataclass(slots=True)
class _Folder:
    """A directory that a walk is in."""

    path: bytes
    entry: Entry
    tree: ChunkId
    entries: Iterator[Entry]
    sets: SetHash = field(default_factory=SetHash)
    is_whole: bool = True
    longest: int = 0
    height: int = 1


class ListingWalk:
    """Walks what one manifest lists. The reader needs no permit."""

    def __init__(self, reader: ChunkReader, nested: Nested, listener: Listener) -> None:
        self._reader = reader
        self._nested = nested
        self._listener = listener
        self._known: dict[ChunkId, _Known] = {}
        self._files: dict[bytes, bytes | None] = {
            path: None for path in map(sqlite_path, nested.components) if path is not None
        }
        self.is_whole = True

    def walk(self) -> None:
        """Walk all roots, then compare the integrity of components if all could be read.

        Raises:
            StoreError: the store cannot be used.
        """
        roots = SetHash()
        for root in self._nested.roots:
            known = self._walk_root(root.path, root.entry)
            roots.add_root(root.path, known.set_hash)
            self.is_whole = self.is_whole and known.is_whole
        if self.is_whole:
            self._check_components(roots.digest())

    def _walk_root(self, path: bytes, root: Entry) -> _Known:
        stack: list[_Folder] = []
        self._take(path, root, stack)
        while stack:
            here = stack[-1]
            try:
                entry = next(here.entries, None)
            except IntegrityError:
                self._listener.unreadable(here.path, here.tree)
                here.is_whole = False
                entry = None
            if entry is not None:
                self._take(join_path(here.path, entry.name), entry, stack)
                continue
            stack.pop()
            known = _Known(here.path, here.sets.digest(), here.is_whole, here.longest, here.height)
            self._known[here.tree] = known
            if stack:
                self._add(stack[-1], here.entry, known)
        return _Known(path) if root.tree is None else self._known.get(root.tree, _Known(path))

    def _take(self, path: bytes, entry: Entry, stack: list[_Folder]) -> None:
        is_lossy = True
        try:
            _check_length(len(path))
            is_lossy = self._listener.entry(path, entry)
            if entry.type is FileType.DIRECTORY and entry.tree is not None:
                self._enter(path, entry, entry.tree, stack)
            elif stack:
                stack[-1].sets.add(entry, set_value(entry))
                stack[-1].longest = max(stack[-1].longest, len(entry.name) + 1)
            if path in self._files:
                self._files[path] = entry.sha256
        except IntegrityError:
            is_lossy = True
            self._listener.refused(path)
        if is_lossy and stack:
            stack[-1].is_whole = False

    def _enter(self, path: bytes, entry: Entry, tree: ChunkId, stack: list[_Folder]) -> None:
        known = self._known.get(tree)
        if known is None:
            if any(folder.tree == tree for folder in stack):
                raise IntegrityError("tree-form", "directory holds itself")
            if len(stack) >= TREE_MAX_DEPTH:
                raise IntegrityError("path", f"directories lie deeper than {TREE_MAX_DEPTH}")
            stack.append(_Folder(path, entry, tree, iter_directory(self._reader, tree)))
            return
        _check_length(len(path) + known.longest)
        if len(stack) + known.height > TREE_MAX_DEPTH:
            raise IntegrityError("path", f"directories lie deeper than {TREE_MAX_DEPTH}")
        if not known.is_whole:
            self._listener.again(path, known.path)
        if stack:
            self._add(stack[-1], entry, known)

    @staticmethod
    def _add(parent: _Folder, entry: Entry, known: _Known) -> None:
        parent.sets.add(entry, known.set_hash)
        parent.is_whole = parent.is_whole and known.is_whole
        parent.longest = max(parent.longest, len(entry.name) + 1 + known.longest)
        parent.height = max(parent.height, 1 + known.height)

    def _check_components(self, files: bytes) -> None:
        for component in self._nested.components:
            if component.kind == FILES_KIND and component.integrity != files:
                for root in self._nested.roots:
                    self._listener.refused(root.path)
            path = sqlite_path(component)
            if path is not None and self._files[path] != component.integrity:
                self._listener.refused(path)


def _check_length(length: int) -> None:
    if length > PATH_MAX_BYTES:
        raise IntegrityError("path", f"a path is longer than {PATH_MAX_BYTES} bytes")


def iter_needed(reader: ChunkReader, content: ChunkList) -> Iterator[tuple[ChunkId, ChunkKind]]:
    """Yield the chunks of some content, each list before it is read.

    Raises:
        IntegrityError: ``content``, or why a list cannot be read.
    """
    if content.depth == 0:
        for run in content.runs:
            if run.chunk is not None:
                yield run.chunk, ChunkKind.DATA
        return
    for run in content.runs:
        if run.chunk is None:
            raise IntegrityError("content", "content list of lists has a hole")
        yield run.chunk, ChunkKind.LIST
        plain = reader.chunk(run.chunk, ChunkKind.LIST)
        below = parse_list_chunk(plain, total=run.length, depth=content.depth - 1)
        yield from iter_needed(reader, below)


def needed_by(reader: ChunkReader, entry: Entry) -> Iterator[ChunkId]:
    """Yield the chunks that an entry needs, but for the listing of a directory."""
    if entry.content is not None:
        for chunk, _ in iter_needed(reader, entry.content):
            yield chunk
    elif entry.size:
        yield reader.file_chunk(entry)
    for _, value in entry.xattrs:
        if isinstance(value, ChunkList):
            for chunk, _ in iter_needed(reader, value):
                yield chunk


class Needs:
    """Listens for what a manifest needs, and for the files that are more than one chunk."""

    def __init__(self, reader: ChunkReader) -> None:
        self._reader = reader
        self.chunks: array[int] = array("Q")
        self.large: list[tuple[bytes, Entry]] = []
        self.is_sound = True

    def entry(self, path: bytes, entry: Entry) -> bool:
        """Note the chunks of an entry."""
        self.chunks.extend(map(short_id, needed_by(self._reader, entry)))
        if entry.content is not None:
            self.large.append((path, entry))
        return False

    def unreadable(self, _path: bytes, _tree: ChunkId) -> None:
        """Note that not everything could be asked for."""
        self.is_sound = False

    def refused(self, _path: bytes) -> None:
        """Note that not everything is as it has to be."""
        self.is_sound = False

    def again(self, _path: bytes, _first: bytes) -> None:
        """Do nothing: it was noted the first time."""
