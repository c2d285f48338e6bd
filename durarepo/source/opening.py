"""Opening directories so that no symlink in any part of their path is followed.

Source: openat(2). Start at `open_root`.
"""

import errno
import os

from durarepo.core.errors import SourceError

Identity = tuple[int, int]
"""Device and inode."""

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_root(root: bytes) -> int:
    """Return a descriptor of the directory ``root``, no part of whose path may be a symlink.

    Raises:
        SourceError: missing, not a directory (or reached through a symlink), or unreadable.
    """
    try:
        return open_real_path(root)
    except OSError as error:
        raise root_error(root, error) from error


def open_real_path(path: bytes) -> int:
    """Return a descriptor of the directory at absolute ``path``, opened part by part.

    Raises:
        OSError: as open(2) says; a symlink in any part is ELOOP or ENOTDIR.
    """
    if not path.startswith(b"/"):
        raise ValueError("an absolute path is needed")
    steps = [step for step in path.split(b"/") if step]
    fd = os.open(b"/", _OPEN_STEP)
    try:
        for step in steps[:-1]:
            fd = stepped(fd, os.open(step, _OPEN_STEP, dir_fd=fd))
        return open_directory(steps[-1] if steps else b".", dirfd=fd)
    finally:
        os.close(fd)


def open_directory(name: bytes, *, dirfd: int) -> int:
    """Return a descriptor of the directory ``name`` in ``dirfd``, never through a symlink.

    The access time is left alone where the owner's rights permit that.
    """
    try:
        return os.open(name, _OPEN_DIRECTORY | os.O_NOATIME, dir_fd=dirfd)
    except PermissionError as error:
        if error.errno != errno.EPERM:
            raise
        return os.open(name, _OPEN_DIRECTORY, dir_fd=dirfd)


def stepped(old_fd: int, new_fd: int) -> int:
    """Close ``old_fd`` and return ``new_fd``: one step down a path."""
    os.close(old_fd)
    return new_fd


def root_error(root: bytes, error: OSError) -> SourceError:
    """Return the error of a root that the system refuses with ``error``."""
    shown = repr(os.fsdecode(root))
    if error.errno == errno.ENOENT:
        return SourceError(
            "root-missing",
            f"root {shown} does not exist",
            hint="mount its disk or bring it back; if it is gone, take it out of stream.toml",
        )
    if error.errno in (errno.ENOTDIR, errno.ELOOP):
        return SourceError(
            "root-not-directory",
            f"root {shown} is not a directory, or is reached through a symlink",
            hint="name the real path of a directory as root",
        )
    return SourceError(
        "root-unreadable",
        f"root {shown} cannot be read: {error.strerror}",
        hint="give the user that runs durarepo the right to read it",
    )
