"""What a manifest lists, walked past whatever cannot be read: needs, set hashes, and losses.

`walk` of `trees` ends at the first thing that is wrong; this goes on beside it, so that every
file that suffers is named. A directory that occurs several times is walked once, for
`Needs` also where it stands in several manifests. No data are read here.
Source: spec/format.md 6 and 7.3, spec/ingest.md 7.1 to 7.6 and 7.8.
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
from durarepo.repository.trees import find_name, iter_directory, join_path


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

    def enter(self, tree: ChunkId, /) -> None:
        """Take note that what follows lies in a directory that was not walked before."""
        ...

    def read(self, chunk: ChunkId, /) -> None:
        """Take note of a chunk of the listing of the directory that was entered last."""
        ...

    def leave(self, tree: ChunkId, /) -> None:
        """Take note that what follows lies in the directory above."""
        ...

    def met(self, tree: ChunkId, /) -> None:
        """Take note of a directory that was entered and left before, and is not entered now."""
        ...


@dataclass(frozen=True, slots=True)
class Known:
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

    def __init__(
        self,
        reader: ChunkReader,
        nested: Nested,
        listener: Listener,
        *,
        known: dict[ChunkId, Known] | None = None,
    ) -> None:
        """Prepare.

        Args:
            reader: of the manifest.
            nested: its nested part.
            listener: told of everything.
            known: directories that earlier walks with such a listener have left whole; this
                one's are added.
        """
        self._reader = reader
        self._nested = nested
        self._listener = listener
        self._known: dict[ChunkId, Known] = {} if known is None else known
        self._lossy: list[ChunkId] = []
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
        for tree in self._lossy:  # another manifest may pin what was missing here
            self._known.pop(tree, None)

    def _walk_root(self, path: bytes, root: Entry) -> Known:
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
            known = Known(here.path, here.sets.digest(), here.is_whole, here.longest, here.height)
            self._known[here.tree] = known
            if not here.is_whole:
                self._lossy.append(here.tree)
            self._listener.leave(here.tree)
            if stack:
                self._add(stack[-1], here.entry, known)
        return Known(path) if root.tree is None else self._known.get(root.tree, Known(path))

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
            entries = iter_directory(self._reader, tree, told=self._listener.read)
            stack.append(_Folder(path, entry, tree, entries))
            self._listener.enter(tree)
            return
        _check_length(len(path) + known.longest)
        if len(stack) + known.height > TREE_MAX_DEPTH:
            raise IntegrityError("path", f"directories lie deeper than {TREE_MAX_DEPTH}")
        if not known.is_whole:
            self._listener.again(path, known.path)
        self._listener.met(tree)
        if stack:
            self._add(stack[-1], entry, known)

    @staticmethod
    def _add(parent: _Folder, entry: Entry, known: Known) -> None:
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
            if path is not None and self._hash_of(path) != component.integrity:
                self._listener.refused(path)

    def _hash_of(self, path: bytes) -> bytes | None:
        """Return the SHA-256 of a file that is listed, found by its names from its root down."""
        for root in self._nested.roots:
            above = root.path.rstrip(b"/") + b"/"
            found: Entry | None = root.entry if path.startswith(above) else None
            for name in path[len(above) :].split(b"/"):
                if found is not None and found.tree is not None:
                    found = find_name(self._reader, found.tree, name)
                else:
                    found = None
            if found is not None:
                return found.sha256
        return None


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


class Branch:
    """What one directory needs itself, and the directories in it. Manifests share branches."""

    __slots__ = ("below", "chunks", "large")

    def __init__(self) -> None:
        self.chunks: array[int] = array("Q")
        self.large: list[tuple[bytes, Entry]] = []
        self.below: list[Branch] = []


@dataclass(slots=True)
class Walked:
    """What walks through earlier manifests of one epoch have left for later ones."""

    known: dict[ChunkId, Known] = field(default_factory=dict)
    branches: dict[ChunkId, Branch] = field(default_factory=dict)


class Needs:
    """Listens for what a manifest needs, and for the files that are more than one chunk.

    Chunks of listings are needed like those of files: who comes to a directory that another
    manifest has shown whole does not read them.
    """

    def __init__(self, reader: ChunkReader, walked: Walked) -> None:
        self._reader = reader
        self._branches = walked.branches
        self._top = Branch()
        self._stack = [self._top]
        self.is_sound = True

    def iter_branches(self) -> Iterator[Branch]:
        """Yield each branch once, directories before what is in them."""
        waiting, seen = [self._top], {self._top}
        while waiting:
            branch = waiting.pop()
            yield branch
            fresh = [one for one in dict.fromkeys(branch.below) if one not in seen]
            seen.update(fresh)
            waiting += reversed(fresh)

    def entry(self, path: bytes, entry: Entry) -> bool:
        """Note the chunks of an entry."""
        here = self._stack[-1]
        if entry.content is None and not entry.xattrs:  # as nearly all are
            if entry.size:
                here.chunks.append(short_id(self._reader.file_chunk(entry)))
            return False
        here.chunks.extend(map(short_id, needed_by(self._reader, entry)))
        if entry.content is not None:
            here.large.append((path, entry))
        return False

    def enter(self, _tree: ChunkId) -> None:
        """Begin a branch."""
        branch = Branch()
        self._stack[-1].below.append(branch)
        self._stack.append(branch)

    def read(self, chunk: ChunkId) -> None:
        """Note a chunk of the listing."""
        self._stack[-1].chunks.append(short_id(chunk))

    def leave(self, tree: ChunkId) -> None:
        """End a branch."""
        self._branches[tree] = self._stack.pop()

    def met(self, tree: ChunkId) -> None:
        """Take over a branch."""
        self._stack[-1].below.append(self._branches[tree])

    def unreadable(self, _path: bytes, _tree: ChunkId) -> None:
        """Note that not everything could be asked for."""
        self.is_sound = False

    def refused(self, _path: bytes) -> None:
        """Note that not everything is as it has to be."""
        self.is_sound = False

    def again(self, _path: bytes, _first: bytes) -> None:
        """Do nothing: it was noted the first time."""
