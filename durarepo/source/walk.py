"""The walk over a root: every directory once, in name order, its parents held by descriptor.

What policy leaves out is never opened. Nothing is followed: each directory is opened by name in
the descriptor of its parent, so a path that is swapped while the walk runs cannot lead it away.
Only the last `HELD_DIRECTORIES` of a deep path are held open; the others are found again
through `..` and must be the same directory (device and inode).
Source: spec/cli.md, omissions and exclusions; openat(2). Start at `walk`.
"""

import errno
import os
import resource
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from operator import itemgetter
from stat import S_IFDIR
from typing import TypeVar

from durarepo.core.errors import SourceError
from durarepo.core.limits import NAME_MAX_BYTES, PATH_MAX_BYTES, TREE_MAX_DEPTH
from durarepo.source.mounts import MountTable, read_mounts
from durarepo.source.opening import Identity, open_directory, open_root, root_error, stepped

HELD_DIRECTORIES = 128
"""Directories of one path held open at once; deeper paths let go of the outermost."""

RULE_OWN_STATE = "own-state"
RULE_PSEUDO_FILESYSTEM = "pseudo-filesystem"
RULE_OTHER_FILESYSTEM = "other-filesystem"

_TYPE_MASK = 0o170000
_ENCODING = sys.getfilesystemencoding()

_T = TypeVar("_T")

Listed = tuple[bytes, os.stat_result]
"""One name of a directory and what the listing says of it, without following a symlink."""

ExclusionRule = Callable[[bytes, bytes, os.stat_result], str | None]
"""(path of the directory, name, stat) -> id of the rule that leaves the name out, or None."""


class TroubleKind(StrEnum):
    """Why the walk could not hand over something; only `VANISHED` is no omission."""

    VANISHED = "vanished"
    UNREADABLE = "unreadable"
    TOO_LONG = "too-long"
    CHANGED_TYPE = "changed-type"
    LOOP = "loop"


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkRules:
    """What the walk leaves out; asked of every name before anything of it is opened."""

    is_excluded: ExclusionRule | None = None
    one_filesystem: bool = False
    own_state: frozenset[Identity] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Enter:
    """A directory that was opened and listed.

    ``fd`` is good until the next event is drawn; read the directory's files before that.
    ``names`` are sorted by bytes and hold neither what is ``excluded`` nor what had trouble.
    The consumer adds to ``skip`` the sub-directories that the walk need not enter.
    ``file_system`` is the path of the mount point, for hard-link groups.
    """

    path: bytes
    fd: int
    stat: os.stat_result
    names: list[Listed]
    excluded: tuple[tuple[bytes, str], ...]
    file_system: bytes
    skip: set[bytes] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """The end of a directory: all below it was handed over."""

    path: bytes
    stat: os.stat_result


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One path that could not be handed over, after the `Enter` of the directory it lies in.

    A directory's own trouble (its listing broke off) comes after its `Enter` too.
    """

    path: bytes
    kind: TroubleKind
    error: OSError | None = None


def walk(
    root: bytes, *, rules: WalkRules, mounts: MountTable | None = None
) -> Generator[Enter | Leave | Trouble, None, None]:
    """Yield what lies below ``root``: `Enter`, its sub-directories in name order, `Leave`.

    Close it when giving up early; what it holds open is closed then.

    Args:
        root: an absolute real path (no part of it a symlink) of a directory.
        rules: what is left out.
        mounts: the mounts of this run; read now if not given.

    Raises:
        SourceError: ``root`` itself is missing, not a directory, unreadable, or shows the
            kernel's state. Whatever happens below it is a `Trouble`.
    """
    walker = _Walker(rules, read_mounts() if mounts is None else mounts)
    try:
        yield from walker.events(root)
    finally:
        walker.close()


def border_rule(
    path: bytes, found: os.stat_result, *, rules: WalkRules, mounts: MountTable, device: int
) -> str | None:
    """Return the rule that stops the walk at a directory or another disk's file, or None.

    Args:
        path: where it lies.
        found: what the listing says of it.
        rules: what the walk leaves out.
        mounts: the mounts of this run.
        device: the disk of the directory that it lies in.
    """
    if (found.st_dev, found.st_ino) in rules.own_state:
        return RULE_OWN_STATE
    mount = mounts.at(path)
    if mount is not None and mount.is_pseudo:
        return RULE_PSEUDO_FILESYSTEM
    if rules.one_filesystem and found.st_dev != device:
        return RULE_OTHER_FILESYSTEM
    return None


@dataclass(slots=True)
class _Frame:
    """A directory on the path to where the walk is; ``fd`` is -1 while it is let go."""

    path: bytes
    name: bytes
    fd: int
    stat: os.stat_result
    file_system: bytes
    pending: list[Listed] = field(default_factory=list)
    skip: set[bytes] = field(default_factory=set)

    @property
    def identity(self) -> Identity:
        return self.stat.st_dev, self.stat.st_ino

    def path_of(self, name: bytes) -> bytes:
        return self.path + name if self.path == b"/" else b"%s/%s" % (self.path, name)

    def let_go(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class _Listing:
    """One directory listed and judged by the rules."""

    def __init__(self, frame: _Frame, rules: WalkRules, mounts: MountTable) -> None:
        self.names: list[Listed] = []
        self.excluded: list[tuple[bytes, str]] = []
        self.troubles: list[Trouble] = []
        self._frame = frame
        self._rules = rules
        self._mounts = mounts

    def take(self, entries: Iterator[os.DirEntry[str]]) -> None:
        """Stat and judge all of ``entries``; what the kernel refuses becomes a trouble."""
        found: list[Listed] = []
        try:
            for entry in entries:
                name = entry.name.encode(_ENCODING, "surrogateescape")
                try:
                    found.append((name, entry.stat(follow_symlinks=False)))
                except OSError as error:
                    self.troubles.append(_trouble(self._frame.path_of(name), error))
        except OSError as error:
            self.troubles.append(_trouble(self._frame.path, error))
        found.sort(key=itemgetter(0))
        self._judge(found)

    def _judge(self, found: list[Listed]) -> None:
        path, device = self._frame.path, self._frame.stat.st_dev
        room = min(NAME_MAX_BYTES, PATH_MAX_BYTES - len(self._frame.path_of(b"")))
        is_excluded = self._rules.is_excluded
        keep = self.names.append
        for listed in found:
            name, stat = listed
            rule = None if is_excluded is None else is_excluded(path, name, stat)
            if rule is None and (stat.st_dev != device or stat.st_mode & _TYPE_MASK == S_IFDIR):
                rule = border_rule(
                    self._frame.path_of(name),
                    stat,
                    rules=self._rules,
                    mounts=self._mounts,
                    device=device,
                )
            if rule is not None:
                self.excluded.append((name, rule))
            elif len(name) > room:
                self._note_too_long(name)
            else:
                keep(listed)

    def _note_too_long(self, name: bytes) -> None:
        path = self._frame.path_of(name)
        self.troubles.append(Trouble(path=path, kind=TroubleKind.TOO_LONG))


class _Walker:
    """The stack of one walk. The stack is explicit: depth costs memory, never recursion."""

    def __init__(self, rules: WalkRules, mounts: MountTable) -> None:
        self._rules = rules
        self._mounts = mounts
        self._frames: list[_Frame] = []
        self._ancestors: set[Identity] = set()
        self._outermost_held = 0
        self._held_limit = _held_limit()

    def close(self) -> None:
        """Close every directory still held."""
        for frame in self._frames:
            frame.let_go()
        self._frames.clear()

    def events(self, root: bytes) -> Iterator[Enter | Leave | Trouble]:
        """Yield the events of the whole walk."""
        yield from self._enter(self._root_frame(root))
        while self._frames:
            top = self._frames[-1]
            if not top.pending:
                yield self._leave()
                continue
            name, listed = top.pending.pop()
            if name in top.skip:
                continue
            opened = self._opened(top, name, listed)
            if isinstance(opened, Trouble):
                yield opened
            else:
                yield from self._enter(opened)

    def _root_frame(self, root: bytes) -> _Frame:
        mount = self._mounts.mount_of(root)
        if mount is not None and mount.is_pseudo:
            raise SourceError(
                "root-not-files",
                f"root {os.fsdecode(root)!r} lies on a {os.fsdecode(mount.fs_type)} file system",
                hint="name a root that holds files, not the kernel's state",
            )
        fd = open_root(root)
        try:
            return _Frame(root, root, fd, _status(fd), self._mounts.mount_point_of(root))
        except OSError as error:
            raise root_error(root, error) from error

    def _enter(self, frame: _Frame) -> Iterator[Enter | Trouble]:
        self._push(frame)
        listing = _Listing(frame, self._rules, self._mounts)
        try:
            with self._with_room(lambda: os.scandir(frame.fd)) as entries:
                listing.take(entries)
        except OSError as error:
            listing.troubles.append(_trouble(frame.path, error))
        frame.pending = [
            listed for listed in listing.names if listed[1].st_mode & _TYPE_MASK == S_IFDIR
        ]
        frame.pending.reverse()
        yield Enter(
            path=frame.path,
            fd=frame.fd,
            stat=frame.stat,
            names=listing.names,
            excluded=tuple(listing.excluded),
            file_system=frame.file_system,
            skip=frame.skip,
        )
        yield from listing.troubles

    def _leave(self) -> Leave:
        frame = self._frames.pop()
        self._ancestors.discard(frame.identity)
        if self._frames and self._frames[-1].fd < 0:
            self._find_again(frame.fd)
        frame.let_go()
        return Leave(path=frame.path, stat=frame.stat)

    def _opened(self, parent: _Frame, name: bytes, listed: os.stat_result) -> _Frame | Trouble:
        path = parent.path_of(name)
        if len(self._frames) >= TREE_MAX_DEPTH:
            return Trouble(path=path, kind=TroubleKind.TOO_LONG)
        if parent.fd < 0:
            return _trouble(path, OSError(errno.ESTALE, os.strerror(errno.ESTALE)))
        try:
            fd = self._with_room(lambda: open_directory(name, dirfd=parent.fd))
            frame = _Frame(path, name, fd, _status(fd), parent.file_system)
        except OSError as error:
            return _trouble(path, error)
        kind = self._objection(frame, listed)
        if kind is not None:
            frame.let_go()
            return Trouble(path=path, kind=kind)
        if frame.stat.st_dev != parent.stat.st_dev or self._mounts.is_mount_point(path):
            frame.file_system = path
        return frame

    def _objection(self, frame: _Frame, listed: os.stat_result) -> TroubleKind | None:
        if frame.identity in self._ancestors:
            return TroubleKind.LOOP
        if frame.stat.st_dev != listed.st_dev or frame.identity in self._rules.own_state:
            return TroubleKind.CHANGED_TYPE  # mounted over or swapped after it was judged
        return None

    def _push(self, frame: _Frame) -> None:
        self._frames.append(frame)
        self._ancestors.add(frame.identity)
        while len(self._frames) - self._outermost_held > self._held_limit:
            self._let_outermost_go()

    def _let_outermost_go(self) -> None:
        self._frames[self._outermost_held].let_go()
        self._outermost_held += 1

    def _with_room(self, call: Callable[[], _T]) -> _T:
        while True:
            try:
                return call()
            except OSError as error:
                held = len(self._frames) - self._outermost_held
                if error.errno != errno.EMFILE or held <= 1:
                    raise
                self._let_outermost_go()

    def _find_again(self, child_fd: int) -> None:
        """Open the innermost directory again, as the parent of ``child_fd`` or from the root."""
        frame = self._frames[-1]
        self._outermost_held = len(self._frames) - 1
        try:
            frame.fd = open_directory(b"..", dirfd=child_fd)
            _check_same(frame.fd, frame)
        except OSError:
            frame.let_go()
            frame.fd = self._found_from_root()

    def _found_from_root(self) -> int:
        fd = -1
        try:
            fd = open_root(self._frames[0].path)
            _check_same(fd, self._frames[0])
            for frame in self._frames[1:]:
                fd = stepped(fd, open_directory(frame.name, dirfd=fd))
                _check_same(fd, frame)
        except (OSError, SourceError):
            if fd >= 0:
                os.close(fd)
            return -1
        return fd


def _held_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return HELD_DIRECTORIES if soft < 0 else max(1, min(HELD_DIRECTORIES, soft // 4))


def _status(fd: int) -> os.stat_result:
    """Return the status of an open directory; one that cannot be told is closed."""
    try:
        return os.fstat(fd)
    except OSError:
        os.close(fd)
        raise


def _check_same(fd: int, frame: _Frame) -> None:
    stat = os.fstat(fd)
    if (stat.st_dev, stat.st_ino) != frame.identity:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def _trouble(path: bytes, error: OSError) -> Trouble:
    if error.errno == errno.ENOENT:
        kind = TroubleKind.VANISHED
    elif error.errno in (errno.ENOTDIR, errno.ELOOP):
        kind = TroubleKind.CHANGED_TYPE
    else:
        kind = TroubleKind.UNREADABLE
    return Trouble(path=path, kind=kind, error=error)
