"""One file of the source turned into an entry and the chunks of its content.

Small files are one chunk, databases are captured through SQLite and cut at their pages, the
rest is cut by content. Nothing here knows about directories or what was kept before.
Source: spec/format.md 4 and 6.3, spec/cli.md (omissions). Start at `FileKeeper.keep`.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from durarepo.chunking.chunker import Cut, average_for, cut_pages, cut_windows
from durarepo.core.entries import ChunkList, Consistency, Entry, Run
from durarepo.core.errors import RunError, SourceError, VanishedError
from durarepo.core.limits import (
    LIST_MAX_DEPTH,
    MIB,
    READ_WINDOW_BYTES,
    WHOLE_FILE_MAX_BYTES,
    XATTR_INLINE_BYTES,
)
from durarepo.core.names import FileHash
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import Component
from durarepo.format.tree import encode_list
from durarepo.repository.chunks import ChunkSink
from durarepo.source.metadata import MetadataReader, Unread
from durarepo.source.reading import Segment, SmallRead, capture, read_small
from durarepo.source.sqlitestate import (
    Damaged,
    DatabaseCopy,
    WorkFolderProtocol,
    capture_database,
    is_sqlite,
)
from durarepo.store.atomic import store_error

_LIST_RUNS_MAX = 256
_LIST_CUT_LEAST, _LIST_CUT_GREATEST, _LIST_CUT_MASK = 32, 1024, 0x7F
_ZEROS = bytes(MIB)
_SAMPLE_BYTES = 16
_CHUNKS_IN_OBJECT = 8
"""A chunk is at most four times the average long, so that two fit into an object."""

SQLITE_KIND = "sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A file as it was kept.

    ``owners`` are what its content and attributes need; ``omission`` says why it counts as
    one, or is empty; ``database`` is the component that it makes, if it is one.
    """

    entry: Entry
    owners: tuple[int, ...]
    quiet: bool = True
    omission: str = ""
    database: Component | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    runs: list[Run]
    owners: set[int]


class FileKeeper:
    """Keeps files one after the other for one run."""

    def __init__(
        self, sink: ChunkSink, *, cut_key: bytes, work: WorkFolderProtocol, object_limit: int
    ) -> None:
        """Prepare.

        Args:
            sink: where chunks go.
            cut_key: the ``cut`` subkey.
            work: where database copies are made.
            object_limit: greatest size of a stored object in bytes; every chunk fits into half.
        """
        self.is_spent: Callable[[], bool] = lambda: False
        self._sink = sink
        self._average_most = 1 << (object_limit // _CHUNKS_IN_OBJECT).bit_length() - 1
        self._cut_key = cut_key
        self._work = work
        self._metadata = MetadataReader()

    def describe(
        self, dirfd: int, name: bytes, stat: os.stat_result, *, file_system: bytes
    ) -> Kept:
        """Return the entry of anything but a file, without tree."""
        told = self._metadata.describe(dirfd, name, stat, file_system=file_system)
        return self._with_xattrs(told.entry, told.unread, set())

    def keep(
        self, dirfd: int, listed: tuple[bytes, os.stat_result], *, path: bytes, file_system: bytes
    ) -> Kept:
        """Return a regular file as it was kept.

        Args:
            dirfd: descriptor of its directory.
            listed: its name and what the listing said of it.
            path: its absolute path.
            file_system: mount point, for hard-link groups.

        Raises:
            VanishedError: it is gone.
            SourceError: it cannot be read.
            RunError: ``budget``: `is_spent` said so while a large file was read.
            StoreError: a pack could not be stored, or the work folder is full.
        """
        name, stat = listed
        if stat.st_size <= WHOLE_FILE_MAX_BYTES:
            read = read_small(dirfd, name, stat)
            if read.quiet and not is_sqlite(read.data):
                return self._keep_small(dirfd, name, read, file_system)
        if self._is_database(dirfd, name, stat):
            return self._keep_database(dirfd, listed, path, file_system)
        return self._keep_large(dirfd, listed, file_system)

    def _keep_small(self, dirfd: int, name: bytes, read: SmallRead, file_system: bytes) -> Kept:
        owners: set[int] = set()
        digest: FileHash | None = None
        if read.data:
            digest = FileHash(hashlib.sha256(read.data).digest())
            owners.add(self._sink.put(ChunkKind.DATA, read.data, digest)[1])
        told = self._metadata.describe(
            dirfd, name, read.stat, file_system=file_system, sha256=digest
        )
        return self._with_xattrs(told.entry, told.unread, owners)

    def _is_database(self, dirfd: int, name: bytes, stat: os.stat_result) -> bool:
        if stat.st_size < _SAMPLE_BYTES:
            return False
        return is_sqlite(first_bytes(dirfd, name))

    def _keep_large(
        self, dirfd: int, listed: tuple[bytes, os.stat_result], file_system: bytes
    ) -> Kept:
        name, average = listed[0], min(average_for(listed[1].st_size), self._average_most)
        cut = partial(cut_windows, average=average, cut_key=self._cut_key)
        captured = capture(dirfd, name, partial(self._consume, cut))
        told = self._metadata.describe(dirfd, name, captured.stat, file_system=file_system)
        entry = replace(
            told.entry,
            size=captured.size,
            sha256=captured.sha256 if captured.size else None,
            consistency=captured.consistency,
        )
        changed = captured.consistency is Consistency.CHANGED
        kept = self._with_content(entry, told.unread, captured.result)
        return replace(
            kept,
            quiet=captured.consistency is Consistency.QUIET,
            omission="changed" if changed else kept.omission,
        )

    def _keep_database(
        self,
        dirfd: int,
        listed: tuple[bytes, os.stat_result],
        path: bytes,
        file_system: bytes,
    ) -> Kept:
        name = listed[0]
        copy = self._copied(path)
        if isinstance(copy, Damaged):
            kept = self._keep_large(dirfd, listed, file_system)
            entry = replace(kept.entry, consistency=Consistency.DAMAGED_DATABASE)
            return replace(kept, entry=entry, quiet=False, omission=f"database-{copy.reason}")
        try:
            cut = partial(cut_pages, page_bytes=copy.page_size)
            digest, content = self._consume(cut, _segments_of(copy.path, copy.size))
        finally:
            self._work.discard(copy.path)
        told = self._metadata.describe(dirfd, name, copy.stat, file_system=file_system)
        entry = replace(
            told.entry,
            size=copy.size,
            sha256=digest,
            consistency=Consistency.SQLITE_BACKUP,
        )
        kept = self._with_content(entry, told.unread, content)
        return replace(kept, database=_component(path, digest, copy))

    def _copied(self, path: bytes) -> DatabaseCopy | Damaged:
        try:
            return capture_database(path, work=self._work)
        except VanishedError:
            raise
        except SourceError:  # of a file beside it, perhaps: its own bytes may be readable
            return Damaged(reason="unreadable")

    def _consume(self, cut: Cut, segments: Iterable[Segment]) -> tuple[FileHash, _Content]:
        digest = hashlib.sha256()
        content = _Content(runs=[], owners=set())
        for is_hole, group in groupby(segments, key=lambda one: one.data is None):
            if is_hole:
                length = sum(_hashed_hole(one.length, digest.update) for one in group)
                content.runs.append(Run(length, None))
            else:
                for piece in cut(self._timed(_hashed(group, digest.update))):
                    chunk, owner = self._sink.put(ChunkKind.DATA, piece)
                    content.owners.add(owner)
                    content.runs.append(Run(len(piece), chunk))
        return FileHash(digest.digest()), content

    def _timed(self, windows: Iterator[bytes]) -> Iterator[bytes]:
        for window in windows:
            if self.is_spent():
                raise RunError("budget", "the time budget was spent within a large file")
            yield window

    def _with_content(self, entry: Entry, unread: tuple[Unread, ...], content: _Content) -> Kept:
        runs, owners = content.runs, content.owners
        if len(runs) > 1 or (runs and runs[0].chunk is None):
            entry = replace(entry, content=self.store_list(runs, owners))
        return self._with_xattrs(entry, unread, owners)

    def store_list(self, runs: list[Run], owners: set[int]) -> ChunkList:
        """Return a list of runs that is short enough to stand in an entry; add what it needs."""
        depth = 0
        while len(runs) > _LIST_RUNS_MAX and depth < LIST_MAX_DEPTH:
            above: list[Run] = []
            for part in _cut_runs(runs):
                plaintext = encode_list(ChunkList(depth, tuple(part)))
                chunk, owner = self._sink.put(ChunkKind.LIST, plaintext)
                owners.add(owner)
                above.append(Run(sum(run.length for run in part), chunk))
            runs, depth = above, depth + 1
        return ChunkList(depth, tuple(runs))

    def _with_xattrs(self, entry: Entry, unread: tuple[Unread, ...], owners: set[int]) -> Kept:
        if entry.xattrs and any(
            len(value) > XATTR_INLINE_BYTES for _, value in entry.xattrs if type(value) is bytes
        ):
            entry = replace(
                entry,
                xattrs=tuple((name, self._outside(value, owners)) for name, value in entry.xattrs),
            )
        omission = "" if not unread else f"xattr-{unread[0].reason}"
        return Kept(entry=entry, owners=tuple(owners), quiet=not unread, omission=omission)

    def _outside(self, value: bytes | ChunkList, owners: set[int]) -> bytes | ChunkList:
        if isinstance(value, ChunkList) or len(value) <= XATTR_INLINE_BYTES:
            return value
        chunk, owner = self._sink.put(ChunkKind.DATA, value)
        owners.add(owner)
        return ChunkList(0, (Run(len(value), chunk),))


def first_bytes(dirfd: int | None, name: bytes) -> bytes:
    """Return the first 16 bytes of a regular file, or none where they cannot be read.

    Args:
        dirfd: descriptor of its directory; None if ``name`` is an absolute path.
        name: its name.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        fd = os.open(name, flags, dir_fd=dirfd)
    except OSError:
        return b""  # whoever reads it next says what is wrong with it
    try:
        return os.pread(fd, _SAMPLE_BYTES, 0)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _component(path: bytes, digest: FileHash, copy: DatabaseCopy) -> Component:
    return Component(
        kind=SQLITE_KIND,
        name=b"sqlite:" + path,
        integrity=digest,
        consistency=int(Consistency.SQLITE_BACKUP),
        counts=(("pages", copy.page_count),),
        facts=(
            ("page-size", copy.page_size),
            ("user-version", copy.user_version & 0xFFFF_FFFF),
            ("check", copy.check),
        ),
    )


def _segments_of(path: bytes, size: int) -> Iterator[Segment]:
    try:
        with open(path, "rb", buffering=0) as file:
            for offset in range(0, size, READ_WINDOW_BYTES):
                data = file.read(min(READ_WINDOW_BYTES, size - offset))
                yield Segment(offset=offset, length=len(data), data=data)
    except OSError as error:
        raise store_error(error, "read the database copy", path) from error


def _hashed(segments: Iterable[Segment], update: Callable[[bytes], None]) -> Iterator[bytes]:
    for one in segments:
        if one.data is not None:
            update(one.data)
            yield one.data


def _hashed_hole(length: int, update: Callable[[bytes], None]) -> int:
    for at in range(0, length, MIB):
        update(_ZEROS[: length - at])
    return length


def _cut_runs(runs: list[Run]) -> Iterator[list[Run]]:
    """Yield runs in parts, cut where an id says so, so that a small change moves few cuts."""
    part: list[Run] = []
    for run in runs:
        part.append(run)
        ends = run.chunk is not None and run.chunk[0] & _LIST_CUT_MASK == 0
        if len(part) >= _LIST_CUT_GREATEST or (ends and len(part) >= _LIST_CUT_LEAST):
            yield part
            part = []
    if part:
        yield part
