"""What an entry has to be before a restore creates anything from it.

Entries come from signed manifests, and a signature does not make a name harmless: every name,
path and number is checked here once more. Pure: values in, an error or nothing out.
Source: spec/format.md law 8. Start at `check_entry`.
"""

from collections.abc import Collection
from typing import Final

from durarepo.core.entries import Consistency, Entry, FileType
from durarepo.core.errors import IntegrityError
from durarepo.core.limits import NAME_MAX_BYTES, PATH_MAX_BYTES, XATTRS_MAX_COUNT
from durarepo.store.atomic import shown

MARKERS: Final = b".durarepo"
"""The only name that a restore adds to what was kept."""

ID_MAX: Final = (1 << 32) - 2
"""The number above it means "leave the owner alone" to the system."""
MAJOR_MAX: Final = (1 << 12) - 1
MINOR_MAX: Final = (1 << 20) - 1
MODE_MAX: Final = 0o7777
SIZE_MAX_BYTES: Final = (1 << 63) - 1
TARGET_MAX_BYTES: Final = PATH_MAX_BYTES - 1
XATTR_MAX_BYTES: Final = 65536
DEVICES: Final = (FileType.CHAR_DEVICE, FileType.BLOCK_DEVICE)
SIDECARS: Final = (b"-wal", b"-shm", b"-journal")
"""What SQLite would take for a part of the database beside it."""


def is_name(name: bytes) -> bool:
    """Return whether ``name`` may name one thing in a directory."""
    return (
        0 < len(name) <= NAME_MAX_BYTES
        and b"/" not in name
        and b"\0" not in name
        and name not in (b".", b"..")
    )


def split_root(path: bytes) -> list[bytes]:
    """Return the names along the absolute path of a root; none for ``/``.

    Raises:
        IntegrityError: ``path``: not absolute, not normal, too long, or the restore's own name.
    """
    if path == b"/":
        return []
    names = path.split(b"/")[1:]
    is_bad = not path.startswith(b"/") or len(path) > PATH_MAX_BYTES
    if is_bad or not all(is_name(name) for name in names) or names[0] == MARKERS:
        raise IntegrityError(
            "path",
            f"the root {shown(path[:PATH_MAX_BYTES])} is no path that can be restored",
            hint="a root is an absolute path without '.', '..' or empty names",
        )
    return names


def check_entry(entry: Entry, path: bytes, *, types: Collection[FileType]) -> None:
    """Check every number and byte string of ``entry`` but its name.

    Args:
        entry: what is to be made.
        path: its path or name, for messages.
        types: types that the caller makes.

    Raises:
        IntegrityError: ``entry``: something in it cannot exist.
        TypeError: an extended attribute still has to be read.
        ValueError: of another type.
    """
    if entry.type not in types:
        raise ValueError(
            f"{shown(path)} is of type {entry.type.name}, which is made in another way"
        )
    problem = _problem(entry)
    if problem:
        raise IntegrityError("entry", f"{shown(path)} cannot exist: {problem}")


def is_same_inode(first: Entry, second: Entry) -> bool:
    """Return whether two entries may be names of one inode: group, content, metadata (format 6)."""
    return _inode(first) == _inode(second)


def _inode(entry: Entry) -> Entry:
    return entry._replace(name=b"", since=None, redactions=(), consistency=Consistency.QUIET)


def _problem(entry: Entry) -> str:
    if not 0 <= entry.mode <= MODE_MAX:
        return "its mode is out of range"
    if not (0 <= entry.uid <= ID_MAX and 0 <= entry.gid <= ID_MAX):
        return "its owner is out of range"
    if not 0 <= entry.size <= SIZE_MAX_BYTES:
        return "its size is out of range"
    if entry.type is FileType.SYMLINK and not _is_target(entry.target):
        return "it is a symlink without a possible target"
    if entry.type in DEVICES and not _is_device(entry.device):
        return "it is a device without a possible number"
    return _xattr_problem(entry) if entry.xattrs else ""


def _is_target(target: bytes | None) -> bool:
    return target is not None and 0 < len(target) <= TARGET_MAX_BYTES and b"\0" not in target


def _is_device(device: tuple[int, int] | None) -> bool:
    return device is not None and 0 <= device[0] <= MAJOR_MAX and 0 <= device[1] <= MINOR_MAX


def _xattr_problem(entry: Entry) -> str:
    if len(entry.xattrs) > XATTRS_MAX_COUNT:
        return "it has too many extended attributes"
    for name, value in entry.xattrs:
        if not isinstance(value, bytes):
            raise TypeError("the values of extended attributes must be read before a restore")
        is_bad_name = not 0 < len(name) <= NAME_MAX_BYTES or b"\0" in name
        if is_bad_name or len(value) > XATTR_MAX_BYTES:
            return "an extended attribute is malformed"
    return ""
