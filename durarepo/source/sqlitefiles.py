"""The files of one database as they lie: main file and sidecars, held so that a swap shows.

Only looks and reads; how a whole copy comes of them is `sqlitestate`. The main file is held
without being opened (O_PATH): closing any open descriptor of it would drop the locks that
SQLite holds in this process (fcntl(2)).
Source: sqlite.org/fileformat2.html 1.3. Start at `DatabaseFiles`.
"""

import os
import time
from collections.abc import Iterator
from stat import S_ISREG
from typing import NoReturn

from durarepo.core.errors import SourceError, VanishedError
from durarepo.core.limits import READ_WINDOW_BYTES
from durarepo.source.opening import Identity, open_real_path

WAL, SHM, JOURNAL = b"-wal", b"-shm", b"-journal"

_WRITE_VERSION_OFFSET = 18
_WAL_VERSION = 2
_TICK_SECONDS = 0.02
"""Longer than the step of the clock that file times are taken from."""

FileState = tuple[int, int, int, int, int]
"""Device, inode, size, time of change of content, and of anything, in nanoseconds."""

DatabaseState = tuple[FileState | None, FileState | None, FileState | None]
"""What the main file, the write-ahead log and the rollback journal looked like."""


class MovedError(Exception):
    """The source changed while it was read in a way that bears no change."""


def file_state(stat: os.stat_result | None) -> FileState | None:
    """Return what changes with a file's content; None for no file and for an empty one."""
    if stat is None or stat.st_size == 0:
        return None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


class DatabaseFiles:
    """The main file, held, and its folder; sidecars are looked up when asked for."""

    def __init__(self, path: bytes) -> None:
        """Hold what lies at ``path``, an absolute real path.

        Raises:
            VanishedError: nothing there.
            SourceError: no regular file, or its folder cannot be read.
        """
        self.path = path
        folder, _, self._name = path.rpartition(b"/")
        try:
            self._dirfd = open_real_path(folder or b"/")
        except OSError as error:
            _refuse(path, error)
        try:
            self._pin = os.open(
                self._name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._dirfd
            )
        except OSError as error:
            os.close(self._dirfd)
            _refuse(path, error)
        try:
            self.stat = os.fstat(self._pin)
        except OSError as error:
            self.close()
            _refuse(path, error)
        self._identity: Identity = (self.stat.st_dev, self.stat.st_ino)
        if not S_ISREG(self.stat.st_mode):
            self.close()
            raise SourceError(
                "changed-type",
                f"database {os.fsdecode(path)!r} is no regular file any more",
                hint="run again when nothing replaces it",
            )

    def __enter__(self) -> "DatabaseFiles":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of both."""
        os.close(self._pin)
        os.close(self._dirfd)

    def look(self, suffix: bytes = b"") -> os.stat_result | None:
        """Return the stat of the main file or a sidecar as it is now; None if there is none."""
        try:
            return os.stat(self._name + suffix, dir_fd=self._dirfd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            _refuse(self.path, error)

    def state(self) -> DatabaseState:
        """Return the state of main file, log and journal as they are now."""
        return file_state(self.look()), file_state(self.look(WAL)), file_state(self.look(JOURNAL))

    def settled_state(self) -> DatabaseState:
        """Return the state, once any later write is sure to give other times than these."""
        state = self.state()
        time.sleep(_TICK_SECONDS)
        return state

    def is_wal_mode(self) -> bool:
        """Return whether the main file says that its changes go to a write-ahead log."""
        for data in self.windows(b"", size=_WRITE_VERSION_OFFSET + 1):
            return data[_WRITE_VERSION_OFFSET:] == bytes([_WAL_VERSION])
        return False

    def windows(self, suffix: bytes, *, size: int = READ_WINDOW_BYTES) -> Iterator[bytes]:
        """Yield the bytes of the main file or a sidecar, at most ``size`` at a time.

        Raises:
            MovedError: there is none any more.
            SourceError: unreadable.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            fd = os.open(self._name + suffix, flags, dir_fd=self._dirfd)
        except FileNotFoundError as error:
            raise MovedError from error
        except OSError as error:
            _refuse(self.path, error)
        try:
            while data := os.read(fd, size):
                yield data
        except OSError as error:
            _refuse(self.path, error)
        finally:
            os.close(fd)

    def check_same(self) -> None:
        """Raise `MovedError` unless the name still means the file that is held."""
        now = self.look()
        if now is None or (now.st_dev, now.st_ino) != self._identity:
            raise MovedError

    def check_opened(self) -> None:
        """Raise `MovedError` unless this process has the held file open, as SQLite should now."""
        try:
            numbers = os.listdir("/proc/self/fd")
        except OSError:
            return  # without /proc the name is all there is to check
        if not any(self._is_held_file(int(number)) for number in numbers):
            raise MovedError

    def _is_held_file(self, fd: int) -> bool:
        if fd == self._pin:
            return False
        try:
            stat = os.fstat(fd)
        except OSError:
            return False
        return (stat.st_dev, stat.st_ino) == self._identity


def _refuse(path: bytes, error: OSError) -> NoReturn:
    shown = repr(os.fsdecode(path))
    if isinstance(error, FileNotFoundError):
        raise VanishedError("vanished", f"database {shown} is gone since it was listed") from error
    raise SourceError(
        "unreadable",
        f"database {shown} cannot be read: {error.strerror}",
        hint="give the user that runs durarepo the right to read it, or exclude it",
    ) from error
