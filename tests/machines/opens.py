"""Which files a piece of a test opens, seen by the interpreter's own audit events."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_watchers: list[tuple[bytes, list[bytes]]] = []
_installed: list[bool] = []


@contextmanager
def opened_files(below: bytes) -> Iterator[list[bytes]]:
    """Give the list to which every regular file opened below a folder is added, by its path.

    SQLite opens by itself and is not seen.
    """
    if not _installed:
        sys.addaudithook(_on_event)
        _installed.append(True)
    seen: list[bytes] = []
    _watchers.append((below.rstrip(b"/") + b"/", seen))
    real = os.open

    def watched(path: object, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        fd = real(path, flags, mode, dir_fd=dir_fd)  # type: ignore[arg-type]  # as given
        if not flags & (os.O_PATH | os.O_DIRECTORY) and stat.S_ISREG(os.fstat(fd).st_mode):
            _note(os.readlink(b"/proc/self/fd/%d" % fd))
        return fd

    os.open = watched  # put back below
    try:
        yield seen
    finally:
        os.open = real
        _watchers.pop()


def _note(path: bytes) -> None:
    for prefix, seen in _watchers:
        if path.startswith(prefix):
            seen.append(path)


def _on_event(event: str, arguments: tuple[object, ...]) -> None:
    """See `open`, which does not pass through `os.open`."""
    if event != "open" or not _watchers or not isinstance(arguments[0], str | bytes):
        return
    path = os.fsencode(arguments[0])
    if path.startswith(b"/"):
        _note(path)
