"""Diff: what changed between two manifests, or between one and the working tree.

Two manifests are compared by their listings alone: equal folders have equal ids and are not gone
into, and no data are read. The working tree is read where size or time tell nothing apart from
what was kept; nothing in it is followed or changed. Times alone are no change, and what a
snapshot leaves out is none either. Of a database only its own times and its log's are asked.
Source: spec/cli.md 4. Start at `diff`.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from durarepo.core.entries import Consistency, Entry, FileType
from durarepo.core.errors import SourceError
from durarepo.core.limits import MIB
from durarepo.core.names import ChunkId, FileHash
from durarepo.local.configuration import RootConfig
from durarepo.policy.decide import ContentPolicy
from durarepo.policy.rules import Decision
from durarepo.policy.scanner import open_engine
from durarepo.repository.contents import first_bytes
from durarepo.repository.listing import DATABASE_LOGS, sidecar_base
from durarepo.repository.reader import ChunkReader
from durarepo.repository.repository import Repository
from durarepo.repository.roots import Roots
from durarepo.repository.selection import View, open_view
from durarepo.repository.trees import iter_directory, join_path
from durarepo.source.judging import ContentTest
from durarepo.source.mounts import read_mounts
from durarepo.source.opening import open_root
from durarepo.source.pathjudge import PathJudge
from durarepo.source.sqlitestate import is_sqlite
from durarepo.source.walk import WalkRules, border_rule
from durarepo.store.atomic import shown

WORKING = "working"
ADDED, REMOVED, MODIFIED = "added", "removed", "modified"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_TYPES = {
    stat.S_IFREG: FileType.FILE,
    stat.S_IFDIR: FileType.DIRECTORY,
    stat.S_IFLNK: FileType.SYMLINK,
    stat.S_IFIFO: FileType.FIFO,
    stat.S_IFSOCK: FileType.SOCKET,
    stat.S_IFCHR: FileType.CHAR_DEVICE,
    stat.S_IFBLK: FileType.BLOCK_DEVICE,
}
_NOT_READ = ChunkId(bytes(32))
"""Stands for the listing of a working folder, which is asked of the system instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path that differs; what it is now, or was, if it was removed."""

    path: bytes
    change: str
    type: str
    size: int
    mtime_ns: int
    sha256: bytes | None


class _Side(Protocol):
    def root(self, path: bytes) -> Entry | None: ...

    def children(self, path: bytes, entry: Entry) -> Iterator[Entry]: ...

    def is_same_file(self, path: bytes, kept: Entry, found: Entry) -> bool: ...

    def is_change(self, change: "Change") -> bool: ...


def diff(
    repository: Repository, sequence: str, other: str = WORKING, *, now: int
) -> Iterator[Change]:
    """Yield what differs in ``other`` from ``sequence``, in order of paths below each root.

    Args:
        repository: open.
        sequence: SEQ.
        other: SEQ, or ``working`` for the folders as they are now.
        now: the live time.

    Raises:
        SelectionError: ``no-sequence``, ``sequence``.
        SourceError: ``root-missing`` and others of `open_root`; ``unreadable``: something of
            the working tree cannot be read.
        IntegrityError, TrustError, FreshnessError, KeyMaterialError, StoreError: as every
            reading of a manifest.
    """
    view = open_view(repository, sequence, now=now)
    old = _Kept(view)
    roots = set(old.paths)
    if other == WORKING:
        for path in repository.root_paths:
            os.close(open_root(path))  # what is not there was not removed file by file
        new: _Side = _Working(repository, issued=view.manifest.statement.issued)
        roots |= set(repository.root_paths)
    else:
        kept = _Kept(open_view(repository, other, now=now))
        new = kept
        roots |= set(kept.paths)
    return _changes(old, new, sorted(roots))


def _changes(old: _Side, new: _Side, roots: list[bytes]) -> Iterator[Change]:
    for path in roots:
        pairs = [iter([(path, old.root(path), new.root(path))])]
        while pairs:
            step = next(pairs[-1], None)
            if step is None:
                pairs.pop()
                continue
            place, one, two = step
            change = _change(new, place, one, two)
            if change is not None and not new.is_change(change):
                continue
            if change is not None:
                yield change
            if _is_worth_entering(one, two):
                pairs.append(_merged(place, _below(old, place, one), _below(new, place, two)))


def _below(side: _Side, path: bytes, entry: Entry | None) -> Iterator[Entry]:
    if entry is None or entry.type is not FileType.DIRECTORY:
        return iter(())
    return side.children(path, entry)


def _is_worth_entering(one: Entry | None, two: Entry | None) -> bool:
    trees = [entry.tree for entry in (one, two) if entry is not None and entry.tree is not None]
    return len(trees) == 1 or trees[:1] != trees[1:]


def _merged(
    path: bytes, old: Iterator[Entry], new: Iterator[Entry]
) -> Iterator[tuple[bytes, Entry | None, Entry | None]]:
    """Yield the names of two ascending listings once each, with what both sides have there."""
    one, two = next(old, None), next(new, None)
    while one is not None or two is not None:
        name = min(entry.name for entry in (one, two) if entry is not None)
        here = one if one is not None and one.name == name else None
        there = two if two is not None and two.name == name else None
        yield join_path(path, name), here, there
        one = next(old, None) if here is not None else one
        two = next(new, None) if there is not None else two


def _change(new: _Side, path: bytes, one: Entry | None, two: Entry | None) -> Change | None:
    if two is None:
        return None if one is None else _told(path, REMOVED, one)
    if one is None:
        return _told(path, ADDED, two)
    return None if _is_same(new, path, one, two) else _told(path, MODIFIED, two)


def _is_same(new: _Side, path: bytes, one: Entry, two: Entry) -> bool:
    if (one.type, one.mode, one.uid, one.gid) != (two.type, two.mode, two.uid, two.gid):
        return False
    if (one.target, one.device) != (two.target, two.device):
        return False
    return new.is_same_file(path, one, two)


def _told(path: bytes, change: str, entry: Entry) -> Change:
    return Change(
        path=path,
        change=change,
        type=entry.type.name.lower().replace("_", "-"),
        size=entry.size,
        mtime_ns=entry.mtime_ns,
        sha256=entry.sha256,
    )


class _Kept:
    """A manifest."""

    def __init__(self, view: View) -> None:
        self._reader: ChunkReader = view.reader
        self._roots = {root.path: root.entry for root in view.nested.roots}
        self.paths = list(self._roots)

    def root(self, path: bytes) -> Entry | None:
        return self._roots.get(path)

    def children(self, path: bytes, entry: Entry) -> Iterator[Entry]:  # noqa: ARG002 - a side's
        return iter(()) if entry.tree is None else iter_directory(self._reader, entry.tree)

    def is_same_file(self, path: bytes, kept: Entry, found: Entry) -> bool:  # noqa: ARG002
        return (kept.size, kept.sha256, kept.xattrs) == (found.size, found.sha256, found.xattrs)

    def is_change(self, change: Change) -> bool:  # noqa: ARG002 - a side's
        return True


class _Working:
    """The folders as they are now; attributes are not compared, and special files not opened."""

    def __init__(self, repository: Repository, *, issued: int) -> None:
        self._contents = ContentPolicy(open_engine())
        paths = [root.path for root in repository.configuration.roots]
        self._roots = Roots(repository, paths=PathJudge(paths, home=None, contents=self._contents))
        self._configs = {one.path: one for one in repository.configuration.roots}
        self._rules = WalkRules()
        self._mounts = read_mounts()
        self._issued_ns = issued * 1_000_000_000

    def root(self, path: bytes) -> Entry | None:
        self._rules = self._roots.rules(self._configs.get(path, RootConfig(path=path)))
        found = _status(path)
        return None if found is None else _described(b"", found, path)

    def children(self, path: bytes, entry: Entry) -> Iterator[Entry]:  # noqa: ARG002 - a side's
        try:
            folder = os.open(path, _READ | os.O_DIRECTORY)
            try:
                device = os.fstat(folder).st_dev
                names = sorted(os.fsencode(name) for name in os.listdir(folder))
            finally:
                os.close(folder)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _unreadable(path, error) from error
        for name in names:
            place = join_path(path, name)
            found = _status(place)
            if found is not None and not self._is_left_out(path, name, found, device):
                yield _described(name, found, place)

    def _is_left_out(self, path: bytes, name: bytes, found: os.stat_result, device: int) -> bool:
        rules, place = self._rules, join_path(path, name)
        if rules.is_excluded is not None and rules.is_excluded(path, name, found) is not None:
            return True
        if not stat.S_ISDIR(found.st_mode) and found.st_dev == device:
            return False
        rule = border_rule(place, found, rules=rules, mounts=self._mounts, device=device)
        return rule is not None

    def is_same_file(self, path: bytes, kept: Entry, found: Entry) -> bool:
        if kept.type is not FileType.FILE:
            return True
        if kept.redactions:  # what is kept of it is not what is there, by its size and hash
            return kept.mtime_ns == found.mtime_ns
        if kept.consistency is Consistency.SQLITE_BACKUP:
            if self._has_newer_log(path):
                return False
        elif kept.size != found.size:
            return False
        return kept.mtime_ns == found.mtime_ns or kept.sha256 == _hash_file(path)

    def _has_newer_log(self, path: bytes) -> bool:
        """Return whether a log beside a database may hold what came after the manifest."""
        logs = (_status(path + suffix) for suffix in DATABASE_LOGS)
        return any(log and log.st_size and log.st_mtime_ns >= self._issued_ns for log in logs)

    def is_change(self, change: Change) -> bool:
        """Return False for what is there and left out, on either side."""
        if change.change == REMOVED:
            return not os.path.lexists(change.path)
        if change.change != ADDED or change.type != "file":
            return True
        base = sidecar_base(change.path)
        if base is not None and is_sqlite(first_bytes(None, base)):
            return False
        return ContentTest(self._contents).judge(change.path).decision is not Decision.EXCLUDE


def _status(path: bytes) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error) from error


def _described(name: bytes, found: os.stat_result, path: bytes) -> Entry:
    kind = _TYPES[stat.S_IFMT(found.st_mode)]
    is_device = kind in (FileType.CHAR_DEVICE, FileType.BLOCK_DEVICE)
    return Entry(
        name=name,
        type=kind,
        mode=stat.S_IMODE(found.st_mode),
        mtime_ns=found.st_mtime_ns,
        uid=found.st_uid,
        gid=found.st_gid,
        size=found.st_size if kind is FileType.FILE else 0,
        device=(os.major(found.st_rdev), os.minor(found.st_rdev)) if is_device else None,
        target=os.readlink(path) if kind is FileType.SYMLINK else None,
        tree=_NOT_READ if kind is FileType.DIRECTORY else None,
    )


def _hash_file(path: bytes) -> FileHash | None:
    digest = hashlib.sha256()
    size = 0
    try:
        descriptor = os.open(path, _READ)
        with open(descriptor, "rb", buffering=0) as file:
            while data := file.read(MIB):
                digest.update(data)
                size += len(data)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error) from error
    return FileHash(digest.digest()) if size else None


def _unreadable(path: bytes, error: OSError) -> SourceError:
    return SourceError(
        "unreadable",
        f"cannot read {shown(path)}: {error.strerror}",
        hint="run the command as a user who may read it",
    )
