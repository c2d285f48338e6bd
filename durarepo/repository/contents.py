"""One file of the source turned into an entry and the chunks of its content.

Small files are one chunk, databases are captured through SQLite and cut at their pages, the
rest is cut by content. Nothing is hashed, cut or put before the policy has judged the very
bytes. Nothing here knows about directories or what was kept before.
Source: spec/format.md 4 and 6.3, spec/exclusion.md, spec/cli.md (omissions).
Start at `FileKeeper.keep`.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from durarepo.chunking.chunker import average_for, cut_windows
from durarepo.core.entries import ChunkList, Consistency, Entry, FileType
from durarepo.core.errors import SourceError, VanishedError
from durarepo.core.limits import READ_WINDOW_BYTES, WHOLE_FILE_MAX_BYTES, XATTR_INLINE_BYTES
from durarepo.core.names import FileHash
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import Component
from durarepo.policy.decide import Judged
from durarepo.policy.remembered import ScanMemory
from durarepo.policy.rules import Decision, Stage
from durarepo.repository.chunks import ChunkSink
from durarepo.repository.exclusion import Exclusion
from durarepo.repository.knownparts import KnownParts
from durarepo.repository.largefiles import LargeFiles
from durarepo.repository.scanmemories import DatabaseMemory, ScanMemories
from durarepo.repository.storing import Content, Storing
from durarepo.source.metadata import MetadataReader, Unread
from durarepo.source.reading import Segment, SmallRead, read_small
from durarepo.source.sqliteclean import RULE_UNREADABLE, CleanedFile, clean_file
from durarepo.source.sqlitestate import (
    FULL_CHECKS,
    Damaged,
    DatabaseCopy,
    WorkFolderProtocol,
    capture_database,
    is_sqlite,
)
from durarepo.store.atomic import store_error

_SAMPLE_BYTES = 16
_CHUNKS_IN_OBJECT = 8
"""A chunk is at most four times the average long, so that two fit into an object."""

SQLITE_KIND = "sqlite"
_DATABASE = b"database"
"""The name under which the bytes of a damaged database are judged: of no certain form."""

RULE_UNSTABLE, RULE_UNSCANNABLE = "unstable", "unscannable"
"""Why a file that should have been kept was not: its bytes could not be scanned safely."""

_READ_STAGE = "read"
Redacted = tuple[tuple[str, int], ...]
"""Rules by which values were taken out, and how many by each."""


class Kept(NamedTuple):
    """A file as it was kept.

    ``owners`` are what its content and attributes need; ``omission`` says why it counts as
    one, or is empty; ``database`` is the component that it makes, if it is one; ``redacted``
    is what was taken out.
    """

    entry: Entry
    owners: tuple[int, ...]
    quiet: bool = True
    omission: str = ""
    database: Component | None = None
    redacted: Redacted = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """A name of which nothing is kept, and why.

    ``quiet`` says that the same file need not be judged again; ``is_omission`` that it should
    have been kept; ``is_database`` that what lies beside it may be its sidecars.
    """

    rule: str
    stage: str
    quiet: bool = False
    is_omission: bool = False
    is_database: bool = False

    @property
    def omission(self) -> str:
        """Why it counts as an omission; empty if it does not."""
        return self.rule if self.is_omission else ""


class FileKeeper:
    """Keeps files one after the other for one run."""

    def __init__(
        self,
        sink: ChunkSink,
        *,
        cut_key: bytes,
        work: WorkFolderProtocol,
        object_limit: int,
        exclusion: Exclusion,
        memories: ScanMemories,
    ) -> None:
        """Prepare.

        Args:
            sink: where chunks go.
            cut_key: the ``cut`` subkey.
            work: where database copies are made.
            object_limit: greatest size of a stored object in bytes; every chunk fits into half.
            exclusion: judges all content, attributes and targets of links.
            memories: know what of databases was scanned before.
        """
        self.exclusion = exclusion
        self._sink = sink
        self._storing = Storing(sink)
        self._large = LargeFiles(self._storing, exclusion, memories)
        self._average_most = 1 << (object_limit // _CHUNKS_IN_OBJECT).bit_length() - 1
        self._cut_key = cut_key
        self._work = work
        self._memories = memories
        self._judge = exclusion.judge
        self._metadata = MetadataReader()

    @property
    def is_spent(self) -> Callable[[], bool]:
        """Asked whether the time is over, also within a large file."""
        return self._storing.is_spent

    @is_spent.setter
    def is_spent(self, asked: Callable[[], bool]) -> None:
        self._storing.is_spent = asked

    def describe(
        self, dirfd: int, name: bytes, stat: os.stat_result, *, file_system: bytes
    ) -> Kept | Withheld:
        """Return the entry of anything but a file, without tree."""
        told = self._metadata.describe(dirfd, name, stat, file_system=file_system)
        target = told.entry.target
        if target is not None and self.exclusion.contents.holds_secret(target):
            judged = self._judge(b"target", target)
            return Withheld(rule=judged.rule, stage=Stage.CONTENT, quiet=True)
        return self._with_xattrs(told.entry, told.unread, set())

    def keep(
        self, dirfd: int, listed: tuple[bytes, os.stat_result], *, path: bytes, file_system: bytes
    ) -> Kept | Withheld:
        """Return a regular file as it was kept, or why nothing of it is.

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
                return self._keep_small(dirfd, path, read, file_system)
        if self._is_database(dirfd, name, stat):
            return self._keep_database(dirfd, listed, path, file_system)
        return self._keep_large(dirfd, listed, path, file_system)

    def _keep_small(
        self, dirfd: int, path: bytes, read: SmallRead, file_system: bytes
    ) -> Kept | Withheld:
        judged, data = self._judge(path, read.data), read.data
        if judged.decision is Decision.EXCLUDE:
            return _left_out(judged, quiet=True)
        if judged.data is not None:
            data = judged.data
        owners: set[int] = set()
        digest: FileHash | None = None
        if data:
            digest = FileHash(hashlib.sha256(data).digest())
            owners.add(self._sink.put(ChunkKind.DATA, data, digest)[1])
        told = self._metadata.describe(
            dirfd, path.rpartition(b"/")[2], read.stat, file_system=file_system, sha256=digest
        )
        entry = told.entry
        if data is not read.data:
            entry = _redacted(entry._replace(size=len(data)), judged.rules)
        kept = self._with_xattrs(entry, told.unread, owners)
        return kept if not judged.rule else _by_policy(kept, judged)

    def _is_database(self, dirfd: int, name: bytes, stat: os.stat_result) -> bool:
        if stat.st_size < _SAMPLE_BYTES:
            return False
        return is_sqlite(first_bytes(dirfd, name))

    # --- large files ---

    def _keep_large(
        self,
        dirfd: int,
        listed: tuple[bytes, os.stat_result],
        path: bytes,
        file_system: bytes,
    ) -> Kept | Withheld:
        """Keep a file that is judged under ``path``, which says its form."""
        name, stat = listed
        average = min(average_for(stat.st_size), self._average_most)
        cut = partial(cut_windows, average=average, cut_key=self._cut_key)
        captured = self._large.take(dirfd, listed, path, cut)
        if captured is None:
            return Withheld(rule=RULE_UNSTABLE, stage=_READ_STAGE, is_omission=True)
        stored, quiet = captured.result, captured.consistency is Consistency.QUIET
        if stored.judged.decision is Decision.EXCLUDE:
            return _left_out(stored.judged, quiet=quiet)
        told = self._metadata.describe(dirfd, name, captured.stat, file_system=file_system)
        entry = told.entry._replace(
            size=stored.size,
            sha256=stored.sha256 if stored.size else None,
            consistency=captured.consistency,
        )
        if stored.is_redacted:
            entry = _redacted(entry, stored.judged.rules)
        kept = self._with_content(entry, told.unread, stored.content)
        kept = kept._replace(
            quiet=quiet and kept.quiet,
            omission="changed" if captured.consistency is Consistency.CHANGED else kept.omission,
        )
        return _by_policy(kept, stored.judged) if stored.judged.rule else kept

    # --- databases ---

    def _keep_database(
        self,
        dirfd: int,
        listed: tuple[bytes, os.stat_result],
        path: bytes,
        file_system: bytes,
    ) -> Kept | Withheld:
        memory = self._memories.find(path)
        taken = self._cleaned(path, listed[0], memory)
        if isinstance(taken, Damaged):
            return self._keep_damaged(dirfd, listed, taken, file_system)
        copy, done, scanned = taken
        judged = done.cleaned.judged
        try:
            if judged.decision is Decision.EXCLUDE:
                return _left_out_database(judged)
            parts = KnownParts(memory.stored, self._sink)
            segments = self._storing.timed(_segments_of(copy.path, copy.size))
            digest, content = parts.put(segments, page_bytes=copy.page_size)
        finally:
            self._work.discard(copy.path)
        is_clean = judged.decision is Decision.INCLUDE
        self._memories.keep(path, scanned if is_clean else ScanMemory(), parts.stored)
        told = self._metadata.describe(dirfd, listed[0], copy.stat, file_system=file_system)
        entry = told.entry._replace(
            size=copy.size,
            sha256=digest,
            consistency=Consistency.SQLITE_BACKUP,
        )
        if judged.decision is Decision.REDACT:
            entry = _redacted(entry, judged.rules)
        kept = self._with_content(entry, told.unread, content)
        redacted = kept.redacted + done.cleaned.rows
        return kept._replace(database=_component(path, digest, copy), redacted=redacted)

    def _cleaned(
        self, path: bytes, name: bytes, memory: DatabaseMemory
    ) -> tuple[DatabaseCopy, CleanedFile, ScanMemory] | Damaged:
        """Return a copy of a database after it was cleaned, with the scan of that very copy.

        What is found with the help of a memory is looked for once more, in all of a new copy:
        what the first scan saw may have held a value that is gone since. The caller discards it.
        """
        copy = self._copied(path)
        if isinstance(copy, Damaged):
            return copy
        try:
            done = clean_file(
                copy.path,
                name,
                self.exclusion.contents,
                work=self._work,
                memory=memory.scanned,
                is_checked=copy.check in FULL_CHECKS,
            )
        except BaseException:
            self._work.discard(copy.path)
            raise
        if done.cleaned.judged.decision is not Decision.INCLUDE and memory.scanned.has_skipped:
            self._work.discard(done.path)
            return self._cleaned(path, name, DatabaseMemory())
        pages = done.size // copy.page_size
        copy = replace(copy, path=done.path, size=done.size, page_count=pages)
        return copy, done, memory.scanned

    def _keep_damaged(
        self,
        dirfd: int,
        listed: tuple[bytes, os.stat_result],
        damaged: Damaged,
        file_system: bytes,
    ) -> Kept | Withheld:
        kept = self._keep_large(dirfd, listed, _DATABASE, file_system)
        if isinstance(kept, Withheld):
            return replace(kept, is_database=True)
        entry = kept.entry._replace(consistency=Consistency.DAMAGED_DATABASE)
        return kept._replace(entry=entry, quiet=False, omission=f"database-{damaged.reason}")

    def _copied(self, path: bytes) -> DatabaseCopy | Damaged:
        try:
            return capture_database(path, work=self._work)
        except VanishedError:
            raise
        except SourceError:  # of a file beside it, perhaps: its own bytes may be readable
            return Damaged(reason="unreadable")

    def _with_content(self, entry: Entry, unread: tuple[Unread, ...], content: Content) -> Kept:
        runs, owners = content.runs, content.owners
        if len(runs) > 1 or (runs and runs[0].chunk is None):
            entry = entry._replace(content=self._storing.store_list(runs, owners))
        return self._with_xattrs(entry, unread, owners)

    def _with_xattrs(self, entry: Entry, unread: tuple[Unread, ...], owners: set[int]) -> Kept:
        redacted: Redacted = ()
        if entry.xattrs:
            entry, redacted = self._without_secrets(entry)
        if entry.xattrs and any(
            len(value) > XATTR_INLINE_BYTES for _, value in entry.xattrs if type(value) is bytes
        ):
            entry = entry._replace(
                xattrs=tuple(
                    (name, self._storing.outside(value, owners)) for name, value in entry.xattrs
                ),
            )
        omission = "" if not unread else f"xattr-{unread[0].reason}"
        return Kept(
            entry=entry,
            owners=tuple(owners),
            quiet=not unread,
            omission=omission,
            redacted=redacted,
        )

    def _without_secrets(self, entry: Entry) -> tuple[Entry, Redacted]:
        """Leave out each attribute whose name or value holds a secret."""
        policy = self.exclusion.contents
        kept: list[tuple[bytes, bytes | ChunkList]] = []
        rules: list[str] = []
        for name, value in entry.xattrs:
            data = name if isinstance(value, ChunkList) else b"%s\n%s" % (name, value)
            judged = policy.judge(b"attribute", data)
            if judged.decision is Decision.INCLUDE:
                kept.append((name, value))
            else:
                rules.append(judged.rule)
        if not rules:
            return entry, ()
        entry = entry._replace(xattrs=tuple(kept))
        if entry.type is FileType.FILE:
            entry = entry._replace(redactions=tuple(sorted({*entry.redactions, *rules})))
        return entry, tuple((rule, rules.count(rule)) for rule in sorted(set(rules)))


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


def _left_out(judged: Judged, *, quiet: bool) -> Withheld:
    return Withheld(rule=judged.rule, stage=str(judged.stage or Stage.CONTENT), quiet=quiet)


def _left_out_database(judged: Judged) -> Withheld:
    if judged.rule == RULE_UNREADABLE:
        return Withheld(
            rule=RULE_UNSCANNABLE, stage=_READ_STAGE, is_omission=True, is_database=True
        )
    return replace(_left_out(judged, quiet=True), is_database=True)


def _redacted(entry: Entry, rules: tuple[str, ...]) -> Entry:
    """Mark an entry; its other names may not be redacted alike, so it is a file of its own."""
    return entry._replace(redactions=rules, link_group=None)


def _by_policy(kept: Kept, judged: Judged) -> Kept:
    """Tell what the policy did: values were taken out, or a reviewed entry keeps a header."""
    if judged.decision is Decision.INCLUDE:
        return kept._replace(quiet=False)  # the entry ends some day, or may be taken back
    counts = judged.counts or ((judged.rule, max(judged.count, 1)),)
    return kept._replace(redacted=(*counts, *kept.redacted))
