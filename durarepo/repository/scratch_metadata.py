"""Metadata of restored files: owner, extended attributes, mode and times, in the order that holds.

Applies what an `Entry` says to something the scratch builder has just made, and counts what
could not or must not be restored. It creates no file, follows no symlink and reads no content.

The order is the guarantee: a change of owner clears capabilities and setuid, an ACL changes the
mode, and everything but the times changes nothing that the times show. Rights that a stranger
could gain (setuid, setgid, capabilities) are dropped unless asked for, and always where the
owner could not be restored: they would belong to somebody else.
Source: spec/format.md 6 and 10. Start at `MetadataWriter`.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from durarepo.core.entries import Entry, FileType

FILE_MODE = 0o777
DIRECTORY_MODE = 0o3777
"""A directory's setgid and sticky bits grant nothing by themselves."""

CAPABILITY = b"security.capability"
SHORT_TIMES_NS = (-(1 << 31) * 10**9, (1 << 31) * 10**9)
"""Times that every file system holds; those outside are read back to see what became of them."""

_SPECIAL_BITS = ((stat.S_ISUID, "setuid"), (stat.S_ISGID, "setgid"), (stat.S_ISVTX, "sticky"))
_REFUSED = frozenset(
    (errno.EPERM, errno.EACCES, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.EOVERFLOW)
)
_ATTRIBUTE_REFUSED = _REFUSED | {errno.E2BIG, errno.ERANGE, errno.ENOSPC, errno.ENODATA}
"""A file system says ENOSPC when an attribute does not fit beside its file."""


@dataclass(slots=True, kw_only=True)
class MetadataWriter:
    """Applies metadata and counts what was left out.

    Attributes:
        privileges: keep setuid, setgid, sticky and capabilities of files.
        made_as: user and group that new files get by themselves.
        is_root: whether a change of owner is tried at all.
        not_restored: kind of loss -> number of entries (of attributes for ``xattr``, ``acl``).
    """

    privileges: bool
    made_as: tuple[int, int]
    is_root: bool
    not_restored: dict[str, int] = field(default_factory=dict)

    def count(self, kind: str) -> None:
        """Note one more thing of ``kind`` that was not restored."""
        self.not_restored[kind] = self.not_restored.get(kind, 0) + 1

    def apply_open(self, fd: int, entry: Entry) -> None:
        """Apply all of ``entry`` to the open file or directory ``fd``.

        Raises:
            OSError: the disk failed; what the system merely refuses is counted instead.
        """
        is_owned = (entry.uid, entry.gid) == self.made_as or self._change_owner(
            lambda: os.fchown(fd, entry.uid, entry.gid)
        )
        if entry.xattrs:
            self._set_attributes(fd, entry, is_owned=is_owned)
        mode = self._safe_mode(entry, is_owned=is_owned)
        try:
            os.fchmod(fd, mode)
        except OSError as error:
            self._count_refused("mode", error)
        self._set_times(fd, entry.mtime_ns)
        if mode & 0o7000 and os.fstat(fd).st_mode & 0o7777 != mode:
            self.count("mode")

    def apply_named(self, folder_fd: int, name: bytes, entry: Entry) -> None:
        """Apply all of ``entry`` to a symlink or special file, without following or opening it.

        Raises:
            OSError: the disk failed; what the system merely refuses is counted instead.
        """
        is_owned = (entry.uid, entry.gid) == self.made_as or self._change_owner(
            lambda: os.chown(name, entry.uid, entry.gid, dir_fd=folder_fd, follow_symlinks=False)
        )
        if entry.xattrs:
            path = b"/proc/self/fd/%d/%s" % (folder_fd, name)
            self._set_attributes(path, entry, is_owned=is_owned)
        if entry.type is not FileType.SYMLINK:
            self._set_named_mode(folder_fd, name, self._safe_mode(entry, is_owned=is_owned))
        self._set_named_times(folder_fd, name, entry.mtime_ns)

    def _try(self, kind: str, step: Callable[[], None]) -> bool:
        try:
            step()
        except OSError as error:
            self._count_refused(kind, error)
            return False
        return True

    def _count_refused(self, kind: str, error: OSError) -> None:
        if error.errno not in _REFUSED:
            raise error
        self.count(kind)

    def _change_owner(self, step: Callable[[], None]) -> bool:
        if not self.is_root:
            self.count("owner")
            return False
        return self._try("owner", step)

    def _safe_mode(self, entry: Entry, *, is_owned: bool) -> int:
        if not entry.mode & 0o7000:
            return entry.mode
        allowed = DIRECTORY_MODE if entry.type is FileType.DIRECTORY else FILE_MODE
        if self.privileges and is_owned:
            allowed = 0o7777
        dropped = entry.mode & 0o7000 & ~allowed
        if dropped:
            for bit, kind in _SPECIAL_BITS:
                if dropped & bit:
                    self.count(kind)
        return entry.mode & allowed

    def _set_attributes(self, place: int | bytes, entry: Entry, *, is_owned: bool) -> None:
        for name, value in _attributes(entry):
            if name == CAPABILITY and not (self.privileges and is_owned):
                self.count("capabilities")
                continue
            try:
                os.setxattr(place, name, value, follow_symlinks=isinstance(place, int))
            except OSError as error:
                if error.errno not in _ATTRIBUTE_REFUSED:
                    raise
                self.count(_attribute_kind(name))

    def _set_named_mode(self, folder_fd: int, name: bytes, mode: int) -> None:
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder_fd)
        try:
            if stat.S_ISLNK(os.fstat(fd).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            self._try("mode", lambda: os.chmod(f"/proc/self/fd/{fd}", mode))
        finally:
            os.close(fd)

    def _set_times(self, fd: int, moment_ns: int) -> None:
        try:
            os.utime(fd, ns=(moment_ns, moment_ns))
        except (OSError, OverflowError) as error:
            self._count_time(error)
            return
        if not SHORT_TIMES_NS[0] <= moment_ns < SHORT_TIMES_NS[1]:
            self._compare_time(os.fstat(fd), moment_ns)

    def _set_named_times(self, folder_fd: int, name: bytes, moment_ns: int) -> None:
        try:
            os.utime(name, ns=(moment_ns, moment_ns), dir_fd=folder_fd, follow_symlinks=False)
        except (OSError, OverflowError) as error:
            self._count_time(error)
            return
        if not SHORT_TIMES_NS[0] <= moment_ns < SHORT_TIMES_NS[1]:
            self._compare_time(os.lstat(name, dir_fd=folder_fd), moment_ns)

    def _count_time(self, error: OSError | OverflowError) -> None:
        if isinstance(error, OSError) and error.errno not in _REFUSED:
            raise error
        self.count("times")

    def _compare_time(self, found: os.stat_result, moment_ns: int) -> None:
        if found.st_mtime_ns != moment_ns:
            self.count("times")


def clear_inherited(fd: int) -> None:
    """Take from the new folder ``fd`` what its parent handed down: ACLs and setgid.

    Raises:
        OSError: the disk failed.
    """
    for name in (b"system.posix_acl_default", b"system.posix_acl_access"):
        try:
            os.removexattr(fd, name)
        except OSError as error:
            if error.errno not in _ATTRIBUTE_REFUSED:
                raise
    os.fchmod(fd, 0o700)


def _attribute_kind(name: bytes) -> str:
    if name == CAPABILITY:
        return "capabilities"
    return "acl" if name.startswith(b"system.posix_acl_") else "xattr"


def _attributes(entry: Entry) -> Iterator[tuple[bytes, bytes]]:
    """Yield what `check_entry` let pass: values at hand, none still stored as chunks."""
    for name, value in entry.xattrs:
        if isinstance(value, bytes):
            yield name, value
