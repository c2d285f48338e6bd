"""Which directories are mount points, of what kind, and what names a file system over reboots.

Reads the kernel's own list once; opens nothing else. Without `/proc` the table is empty and a
walk sees borders between file systems by device number alone.
Source: proc(5), `/proc/[pid]/mountinfo`. Start at `read_mounts`.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

MOUNTINFO = b"/proc/self/mountinfo"

PSEUDO_FILESYSTEMS = frozenset(
    {
        b"autofs",
        b"binfmt_misc",
        b"bpf",
        b"cgroup",
        b"cgroup2",
        b"configfs",
        b"debugfs",
        b"devpts",
        b"devtmpfs",
        b"fusectl",
        b"hugetlbfs",
        b"mqueue",
        b"nsfs",
        b"proc",
        b"pstore",
        b"rpc_pipefs",
        b"securityfs",
        b"sysfs",
        b"tracefs",
    }
)
"""File systems that show the kernel's state, not anybody's files."""

_OCTAL = re.compile(rb"\\([0-7]{3})")
_LEAST_FIELDS = 10
"""Six fields, no optional one, the dash, and three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One mounted file system: where, and of what type."""

    path: bytes
    fs_type: bytes

    @property
    def is_pseudo(self) -> bool:
        """Whether what is mounted shows the kernel's state instead of files."""
        return self.fs_type in PSEUDO_FILESYSTEMS


class MountTable:
    """The mounts of one moment, by path; of several on one path the last, which hides the rest."""

    __slots__ = ("_by_path",)

    def __init__(self, mounts: Iterable[Mount]) -> None:
        self._by_path = {mount.path: mount for mount in mounts}

    def at(self, path: bytes) -> Mount | None:
        """Return what is mounted on exactly ``path``."""
        return self._by_path.get(path)

    def is_mount_point(self, path: bytes) -> bool:
        """Return whether something is mounted on exactly ``path``."""
        return path in self._by_path

    def mount_of(self, path: bytes) -> Mount | None:
        """Return the mount that an absolute real ``path`` lies on; None if the table is empty."""
        while True:
            mount = self._by_path.get(path)
            if mount is not None or path in (b"/", b""):
                return mount
            path = path.rpartition(b"/")[0] or b"/"

    def mount_point_of(self, path: bytes) -> bytes:
        """Return the mount point that an absolute real ``path`` lies below; ``/`` if unknown."""
        mount = self.mount_of(path)
        return b"/" if mount is None else mount.path


def read_mounts(mountinfo: bytes = MOUNTINFO) -> MountTable:
    """Return the mounts of this process's name space; an empty table without `/proc`."""
    try:
        with open(mountinfo, "rb") as file:
            return MountTable(parse_mountinfo(file.read()))
    except OSError:
        return MountTable(())


def parse_mountinfo(text: bytes) -> list[Mount]:
    """Return the mounts that ``text`` lists, in its order; lines of another form are skipped.

    Source: proc(5): six fields, optional fields, a dash, then type, source and options.
    """
    mounts = []
    for line in text.split(b"\n"):
        fields = line.split(b" ")
        if len(fields) < _LEAST_FIELDS or b"-" not in fields[6:]:
            continue
        dash = fields.index(b"-", 6)
        if dash + 1 < len(fields):
            mounts.append(Mount(path=_unescaped(fields[4]), fs_type=fields[dash + 1]))
    return mounts


def link_group(inode: int, mount_point: bytes) -> int:
    """Return the number that all names of one inode share, also after a reboot.

    Args:
        inode: the inode's number within its file system.
        mount_point: where that file system is mounted; device numbers change with each boot.

    Returns:
        0 to 2**64 - 1: the first 8 bytes of SHA-256(mount point, NUL, decimal inode).
    """
    digest = hashlib.sha256(b"%s\x00%d" % (mount_point, inode)).digest()
    return int.from_bytes(digest[:8], "big")


def _unescaped(field: bytes) -> bytes:
    return _OCTAL.sub(lambda match: bytes([int(match[1], 8) & 0xFF]), field)
