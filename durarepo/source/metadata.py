"""All that a restore needs of one name besides content: an `Entry` without hash and content.

Nothing is opened and nothing followed: every call names the file in its directory's descriptor.
Extended attributes go through `/proc/self/fd`, because Python offers no call that takes a
directory and does not follow; the time of birth needs statx, which Python does not offer either.
Source: spec/format.md 6.3; statx(2), xattr(7). Start at `MetadataReader.describe`.
"""

import ctypes
import errno
import grp
import os
import pwd
import struct
from dataclasses import dataclass
from stat import S_IFMT
from typing import Final, NamedTuple

from durarepo.core.entries import Entry, FileType
from durarepo.core.errors import SourceError, VanishedError
from durarepo.core.limits import XATTRS_MAX_COUNT
from durarepo.core.names import FileHash
from durarepo.source.mounts import link_group

_TYPES: Final = {
    0o100000: FileType.FILE,
    0o040000: FileType.DIRECTORY,
    0o120000: FileType.SYMLINK,
    0o010000: FileType.FIFO,
    0o140000: FileType.SOCKET,
    0o020000: FileType.CHAR_DEVICE,
    0o060000: FileType.BLOCK_DEVICE,
}
_DEVICES: Final = (FileType.CHAR_DEVICE, FileType.BLOCK_DEVICE)

_STATX_BTIME = 0x800
_AT_SYMLINK_NOFOLLOW = 0x100
_STATX_BYTES = 256
_STATX_MASK = struct.Struct("=I")
_STATX_BTIME_FIELD = struct.Struct("=qI")
_STATX_BTIME_OFFSET = 80  # after mask, blksize, attributes, links, ids, mode, ino … and atime

_WITHOUT_XATTRS = (errno.ENOTSUP, errno.ENOSYS, errno.EOPNOTSUPP)
_NO_SUCH_VALUE = (errno.ENODATA, errno.ENOTSUP)
_PROC_FD = b"/proc/self/fd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """An extended attribute that is there and cannot be kept: an omission.

    ``name`` is empty when the attributes could not even be listed.
    """

    name: bytes
    reason: str


class Description(NamedTuple):
    """An entry, with attribute values whole whatever their length, and what was not readable.

    The caller stores values above `XATTR_INLINE_BYTES` as chunks.
    """

    entry: Entry
    unread: tuple[Unread, ...] = ()


class MetadataReader:
    """Describes files; remembers user and group names and which file systems know no attributes.

    One for each thread: it reuses the buffer that the kernel fills.
    """

    def __init__(self) -> None:
        self._users: dict[int, bytes | None] = {}
        self._groups: dict[int, bytes | None] = {}
        self._without_xattrs: set[int] = set()
        self._has_proc = os.path.isdir(_PROC_FD)
        self._statx = _Statx()

    def describe(
        self,
        dirfd: int,
        name: bytes,
        stat: os.stat_result,
        *,
        file_system: bytes = b"/",
        sha256: FileHash | None = None,
    ) -> Description:
        """Return the entry of ``name`` in ``dirfd``.

        Args:
            dirfd: descriptor of the directory.
            name: a name in it, or ``.`` for the directory itself.
            stat: what is known of it; of a file that was read, the stat of that read.
            file_system: mount point the directory lies on, for hard-link groups.
            sha256: of the content, where the caller knows it.

        Returns:
            The entry without tree and content; its size is that of ``stat`` for files.

        Raises:
            VanishedError: it is gone.
            SourceError: a symlink that became something else, or cannot be read.
        """
        kind = _TYPES[S_IFMT(stat.st_mode)]
        xattrs, unread = self._xattrs_of(dirfd, name, stat)
        is_file, is_linked = kind is FileType.FILE, stat.st_nlink > 1
        entry = Entry(
            name=name,
            type=kind,
            mode=stat.st_mode & 0o7777,
            mtime_ns=stat.st_mtime_ns,
            uid=stat.st_uid,
            gid=stat.st_gid,
            birth_ns=self._statx.birth_ns(dirfd, name),
            user=self._user(stat.st_uid),
            group=self._group(stat.st_gid),
            size=stat.st_size if is_file else 0,
            device=_device(stat) if kind in _DEVICES else None,
            xattrs=xattrs,
            link_group=link_group(stat.st_ino, file_system)
            if is_linked and kind is not FileType.DIRECTORY
            else None,
            target=_target(dirfd, name) if kind is FileType.SYMLINK else None,
            sha256=sha256,
        )
        return Description(entry=entry, unread=unread)

    def _user(self, uid: int) -> bytes | None:
        if uid not in self._users:
            try:
                self._users[uid] = os.fsencode(pwd.getpwuid(uid).pw_name)
            except (KeyError, OSError):
                self._users[uid] = None
        return self._users[uid]

    def _group(self, gid: int) -> bytes | None:
        if gid not in self._groups:
            try:
                self._groups[gid] = os.fsencode(grp.getgrgid(gid).gr_name)
            except (KeyError, OSError):
                self._groups[gid] = None
        return self._groups[gid]

    def _xattrs_of(
        self, dirfd: int, name: bytes, stat: os.stat_result
    ) -> tuple[tuple[tuple[bytes, bytes], ...], tuple[Unread, ...]]:
        if stat.st_dev in self._without_xattrs:
            return (), ()
        if not self._has_proc:
            return (), (Unread(name=b"", reason="no /proc to read attributes through"),)
        path = b"%s/%d/%s" % (_PROC_FD, dirfd, name)
        try:
            names = os.listxattr(path, follow_symlinks=False)
        except OSError as error:
            if error.errno in _WITHOUT_XATTRS:
                self._without_xattrs.add(stat.st_dev)
                return (), ()
            if error.errno == errno.ENOENT:
                raise _vanished(name) from error
            return (), (Unread(name=b"", reason=_reason(error)),)
        return _values(path, names) if names else ((), ())


class _Statx:
    """The kernel's statx through the C library; silent where either does not know it."""

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(_STATX_BYTES)
        self._call = getattr(ctypes.CDLL(None), "statx", None)
        if self._call is not None:
            self._call.argtypes = (
                ctypes.c_int,
                ctypes.c_char_p,
                ctypes.c_int,
                ctypes.c_uint,
                ctypes.c_char_p,
            )

    def birth_ns(self, dirfd: int, name: bytes) -> int | None:
        """Return when ``name`` was made, in nanoseconds since 1970; None where unknown."""
        if self._call is None:
            return None
        if self._call(dirfd, name, _AT_SYMLINK_NOFOLLOW, _STATX_BTIME, self._buffer) != 0:
            return None
        if not _STATX_MASK.unpack_from(self._buffer)[0] & _STATX_BTIME:
            return None
        seconds: int
        nanoseconds: int
        seconds, nanoseconds = _STATX_BTIME_FIELD.unpack_from(self._buffer, _STATX_BTIME_OFFSET)
        return seconds * 1_000_000_000 + nanoseconds


def _values(
    path: bytes, names: list[str]
) -> tuple[tuple[tuple[bytes, bytes], ...], tuple[Unread, ...]]:
    kept: list[tuple[bytes, bytes]] = []
    unread: list[Unread] = []
    for name in sorted(os.fsencode(one) for one in names):
        if len(kept) >= XATTRS_MAX_COUNT:
            unread.append(Unread(name=name, reason="too many attributes"))
            continue
        try:
            kept.append((name, os.getxattr(path, name, follow_symlinks=False)))
        except OSError as error:
            if error.errno not in _NO_SUCH_VALUE:  # else it went away since it was listed
                unread.append(Unread(name=name, reason=_reason(error)))
    return tuple(kept), tuple(unread)


def _device(stat: os.stat_result) -> tuple[int, int]:
    return os.major(stat.st_rdev), os.minor(stat.st_rdev)


def _target(dirfd: int, name: bytes) -> bytes:
    try:
        return os.readlink(name, dir_fd=dirfd)
    except FileNotFoundError as error:
        raise _vanished(name) from error
    except OSError as error:
        reason = "changed-type" if error.errno == errno.EINVAL else "unreadable"
        raise SourceError(
            reason,
            f"symlink {os.fsdecode(name)!r} cannot be read: {error.strerror}",
            hint="run again; if it stays, exclude it",
        ) from error


def _vanished(name: bytes) -> VanishedError:
    return VanishedError("vanished", f"name {os.fsdecode(name)!r} is gone since it was listed")


def _reason(error: OSError) -> str:
    return error.strerror or errno.errorcode.get(error.errno or 0, "unknown error")
