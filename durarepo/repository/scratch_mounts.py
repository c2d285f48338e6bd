"""Which part of which file system an open folder is, however many mounts show it.

A bind mount can show the inside of a folder at a path that passes none of its ancestors, so
identities along the path do not tell; the mount table does. It only reads `/proc`.
Source: proc(5). Start at `subtree_of`.
"""

import os
import re
from typing import Final

_ESCAPE: Final = re.compile(rb"\\([0-7]{3})")
_MOUNT_ID: Final = re.compile(rb"^mnt_id:\s*(\d+)$", re.MULTILINE)

Subtree = tuple[bytes, bytes]
"""Device as ``major:minor``, and the path within its file system."""


def subtree_of(fd: int) -> Subtree | None:
    """Return where the open folder ``fd`` lies on its file system; None where nobody can tell.

    Source: proc(5), fields 1, 3, 4 and 5 of mountinfo.
    """
    try:
        path = os.readlink(b"/proc/self/fd/%d" % fd)
        number = _MOUNT_ID.search(_read(b"/proc/self/fdinfo/%d" % fd))
        lines = _read(b"/proc/self/mountinfo").splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split(b" ")
        if number is not None and fields[0] == number[1]:
            top, point = _unescaped(fields[3]), _unescaped(fields[4])
            return fields[2], os.path.normpath(os.path.join(top, os.path.relpath(path, point)))
    return None


def lies_in(inner: Subtree, outer: Subtree) -> bool:
    """Return whether ``inner`` is ``outer`` or below it on the same file system."""
    below = outer[1].rstrip(b"/") + b"/"
    return inner[0] == outer[0] and (inner[1].rstrip(b"/") + b"/").startswith(below)


def _read(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _unescaped(field: bytes) -> bytes:
    return _ESCAPE.sub(lambda match: bytes([int(match[1], 8) & 0xFF]), field)
