"""Whether there is room, asked before anything is read rather than after hours of work.

It reserves nothing and promises nothing: a full disk later is still a clean error.
Source: spec/cli.md, exit code 14. Start at `check_space`.
"""

import os

from durarepo.core.errors import StoreError
from durarepo.core.limits import MIB
from durarepo.store.atomic import shown, store_error


def free_space(folder: bytes) -> tuple[int, int | None]:
    """Return free bytes and free inodes for this user at ``folder``, which need not exist.

    Args:
        folder: absolute; the nearest folder above it that exists is asked.

    Returns:
        Bytes, and inodes or None where the file system does not count them.

    Raises:
        StoreError: the file system cannot be asked.
    """
    at = os.path.abspath(folder)
    while not os.path.exists(at):
        at = os.path.dirname(at)
    try:
        status = os.statvfs(at)
    except OSError as error:
        raise store_error(error, "ask for the free space of", at) from error
    inodes = status.f_favail if status.f_files else None
    return status.f_bavail * status.f_frsize, inodes


def check_space(folder: bytes, needed_bytes: int, *, needed_files: int = 0, what: str) -> None:
    """Refuse to begin where the room for it is missing.

    Args:
        folder: where it will be written.
        needed_bytes: how much, in bytes.
        needed_files: how many files, where that is known.
        what: the noun for the message, such as ``the database copy``.

    Raises:
        StoreError: ``space``: there is less than needed; else it cannot be asked.
    """
    free, inodes = free_space(folder)
    if free < needed_bytes:
        raise StoreError(
            "space",
            f"{what} needs {needed_bytes} bytes at {shown(folder)}, {free} are free",
            hint=f"free {(needed_bytes - free + MIB - 1) // MIB} MiB there, then run it again",
        )
    if inodes is not None and inodes < needed_files:
        raise StoreError(
            "space",
            f"{what} needs {needed_files} inodes at {shown(folder)}, {inodes} are free",
            hint="remove unneeded small files there, then run it again",
        )
