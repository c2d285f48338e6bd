"""Walking what a manifest lists: directories leaf by leaf, and where the content of a file lies.

It reads trees and lists, never data, and makes nothing. Whatever a hostile listing holds, one
leaf is in memory at a time, paths and depth are bounded, and names come in ascending order.
Source: spec/format.md 6, spec/ingest.md 7.1 to 7.6. Start at `iter_directory` and `walk`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from operator import attrgetter

from durarepo.core.entries import ChunkList, Entry, FileType
from durarepo.core.errors import IntegrityError
from durarepo.core.limits import PATH_MAX_BYTES, TREE_MAX_DEPTH, TREE_SPLIT_BYTES
from durarepo.core.names import ChunkId
from durarepo.format.layout import ChunkKind
from durarepo.format.tree import Leaf, Node, parse_list_chunk, parse_tree
from durarepo.repository.reader import ChunkReader

_LEAF_HEAD_MAX_BYTES = 7
_LEAF_OF_ONE = b"\x82\x00\x81"
_NODE = b"\x82\x01"


class Event(Enum):
    """What a walk has come to."""

    ENTER = auto()
    LEAVE = auto()
    ENTRY = auto()


@dataclass(frozen=True, slots=True)
class Visit:
    """One step of a walk. ENTRY is anything that is not entered, directories included."""

    event: Event
    path: bytes
    entry: Entry


def iter_directory(
    reader: ChunkReader, tree: ChunkId, *, told: Callable[[ChunkId], None] | None = None
) -> Iterator[Entry]:
    """Yield the entries of a directory in order.

    Args:
        reader: gives the trees.
        tree: the directory's.
        told: told of every chunk that was read for it.

    Raises:
        IntegrityError: ``tree-form``, ``entry``, ``name``, ``tree-order``, or why a chunk of it
            cannot be read.
    """
    for leaf in _leaves(reader, tree, told):
        yield from leaf.entries


def _leaves(
    reader: ChunkReader, tree: ChunkId, told: Callable[[ChunkId], None] | None
) -> Iterator[Leaf]:
    whole = _read_tree(reader, tree)
    if told is not None:
        told(tree)
    if isinstance(whole, Leaf):
        yield whole
        return
    last = b""
    for first, chunk in whole.leaves:
        leaf = _read_tree(reader, chunk)
        if not isinstance(leaf, Leaf) or not leaf.entries:
            raise IntegrityError("tree-form", "node of a directory names what is no leaf")
        if leaf.entries[0].name != first or first <= last:
            raise IntegrityError("tree-order", "leaves of a directory are not in ascending order")
        if told is not None:
            told(chunk)
        last = leaf.entries[-1].name
        yield leaf


def find_name(reader: ChunkReader, tree: ChunkId, name: bytes) -> Entry | None:
    """Return the entry of a name in a directory, or None; reads one leaf at most.

    Raises:
        IntegrityError: as `iter_directory`.
    """
    whole = _read_tree(reader, tree)
    if isinstance(whole, Node):
        at = bisect_right([first for first, _ in whole.leaves], name)
        whole = _read_tree(reader, whole.leaves[max(at - 1, 0)][1])
        if not isinstance(whole, Leaf):
            raise IntegrityError("tree-form", "node of a directory names what is no leaf")
    at = bisect_left(whole.entries, name, key=attrgetter("name"))
    if at < len(whole.entries) and whole.entries[at].name == name:
        return whole.entries[at]
    return None


def _read_tree(reader: ChunkReader, chunk: ChunkId) -> Leaf | Node:
    plain = reader.chunk(chunk, ChunkKind.TREE)
    is_large = len(plain) > TREE_SPLIT_BYTES + _LEAF_HEAD_MAX_BYTES
    if is_large and not plain.startswith((_LEAF_OF_ONE, _NODE)):  # before memory is allocated
        raise IntegrityError("tree-form", "leaf of a directory is longer than any writer makes it")
    return parse_tree(plain)


def iter_runs(reader: ChunkReader, entry: Entry) -> Iterator[tuple[int, ChunkId | None]]:
    """Yield the (length, chunk) of each run of a file, None for a hole; lists are read as met.

    Raises:
        IntegrityError: ``content``, or why a list cannot be read.
    """
    if entry.content is not None:
        yield from iter_content(reader, entry.content)
    elif entry.size:
        yield entry.size, reader.file_chunk(entry)


def iter_content(reader: ChunkReader, content: ChunkList) -> Iterator[tuple[int, ChunkId | None]]:
    """Yield the (length, chunk) of each run of some content; see `iter_runs`."""
    if content.depth == 0:
        for run in content.runs:
            yield run.length, run.chunk
        return
    for run in content.runs:
        if run.chunk is None:
            raise IntegrityError("content", "content list of lists has a hole")
        plain = reader.chunk(run.chunk, ChunkKind.LIST)
        below = parse_list_chunk(plain, total=run.length, depth=content.depth - 1)
        yield from iter_content(reader, below)


def read_content(reader: ChunkReader, content: ChunkList, *, kind: ChunkKind, most: int) -> bytes:
    """Return some content that is small enough to be held: an attribute's value, a ledger.

    Raises:
        IntegrityError: ``content``: it is longer than ``most`` bytes.
    """
    if sum(run.length for run in content.runs) > most:
        raise IntegrityError("content", f"content is longer than {most} bytes")
    pieces = []
    for length, chunk in iter_content(reader, content):
        piece = bytes(length) if chunk is None else reader.chunk(chunk, kind)
        if len(piece) != length:
            raise IntegrityError("content", "chunk has another length than its run")
        pieces.append(piece)
    return b"".join(pieces)


def join_path(folder: bytes, name: bytes) -> bytes:
    """Return the path of a name in a folder."""
    return folder + name if folder == b"/" else folder + b"/" + name


def walk(
    reader: ChunkReader,
    path: bytes,
    root: Entry,
    *,
    enters: Callable[[bytes, Entry], bool] | None = None,
) -> Iterator[Visit]:
    """Yield what lies below a directory, in order, each directory before what it holds.

    Args:
        reader: gives the trees.
        path: absolute path of the directory.
        root: its entry.
        enters: says whether a directory (path, entry) is gone into; None for all.

    Yields:
        ENTER and LEAVE for what is entered, the first one included, ENTRY for all else.

    Raises:
        IntegrityError: ``path``, ``tree-form``, or as `iter_directory`.
    """
    if enters is not None and not enters(path, root):
        yield Visit(Event.ENTRY, path, root)
        return
    yield Visit(Event.ENTER, path, root)
    levels = [_Level(reader, path, root)]
    above: set[ChunkId] = {levels[0].tree}
    while levels:
        here = levels[-1]
        entry = next(here.entries, None)
        if entry is None:
            levels.pop()
            above.discard(here.tree)
            yield Visit(Event.LEAVE, here.path, here.entry)
            continue
        below = _checked_path(here.path, entry.name)
        if entry.type is not FileType.DIRECTORY or not (enters is None or enters(below, entry)):
            yield Visit(Event.ENTRY, below, entry)
            continue
        _check_descent(entry, above, len(levels))
        yield Visit(Event.ENTER, below, entry)
        levels.append(_Level(reader, below, entry))
        above.add(levels[-1].tree)


class _Level:
    """One directory that a walk is in."""

    __slots__ = ("entries", "entry", "path", "tree")

    def __init__(self, reader: ChunkReader, path: bytes, entry: Entry) -> None:
        if entry.tree is None:
            raise ValueError("only a directory is entered")
        self.path, self.entry, self.tree = path, entry, entry.tree
        self.entries = iter_directory(reader, entry.tree)


def _checked_path(folder: bytes, name: bytes) -> bytes:
    path = join_path(folder, name)
    if len(path) > PATH_MAX_BYTES:
        raise IntegrityError("path", f"a path is longer than {PATH_MAX_BYTES} bytes")
    return path


def _check_descent(entry: Entry, above: set[ChunkId], depth: int) -> None:
    if entry.tree in above:
        raise IntegrityError("tree-form", "directory holds itself")
    if depth >= TREE_MAX_DEPTH:
        raise IntegrityError("path", f"directories lie deeper than {TREE_MAX_DEPTH}")
