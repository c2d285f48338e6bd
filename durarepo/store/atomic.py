"""Durable files: one appears under its name whole, or not at all; a line is whole or cut off.

Every file that durarepo keeps is created here, and besides `local/work.py` this is the only
module that may remove one: its own unfinished temporary, told by its exact name pattern.

The order is the guarantee: write, fsync the file, link it to its name, fsync the folder.
`link` never replaces; only small local state is replaced, by rename. Paths are bytes.
Longer than other modules on purpose: one place to review for all that touches a disk.
Source: spec/format.md 12 (laws 1 and 4); AICEP 10.5.4. Start at `UnfinishedFile`.
"""

import errno
import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Protocol, Self

from durarepo.core.errors import StoreError

_TEMPORARY = re.compile(rb"\.tmp-[0-9a-f]{32}\Z")
_NO_TMPFILE = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL})
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIKELY_BYTES = 64 * 1024
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TAIL_WINDOW = 64 * 1024


class HeldLock(Protocol):
    """The lock of a run; removal asks for proof that it is held."""

    @property
    def is_held(self) -> bool:
        """Whether this process holds the lock now."""
        ...


_HINTS = {
    "io": "look at the disk and the system log; what was stored before is whole",
    "full": "free space or raise the quota, then run the command again",
    "permission": "check the owner and mode of the folder and how it is mounted",
}


def shown(path: bytes) -> str:
    """Return ``path`` in single quotes with control characters escaped, fit for a message."""
    text = os.fsdecode(path)
    return "'" + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text) + "'"


def store_error(error: OSError, doing: str, path: bytes) -> StoreError:
    """Return the `StoreError` that says why ``doing`` something to ``path`` failed.

    Args:
        error: what the system answered.
        doing: the verb, such as ``write``.
        path: what it was done to.

    Returns:
        ``store.full``, ``store.permission`` or ``store.io``, to be raised from ``error``.
    """
    return refused_by_system(error, f"{doing} {shown(path)}", hints=_HINTS)


def refused_by_system(error: OSError, what: str, *, hints: Mapping[str, str]) -> StoreError:
    """Return the `StoreError` that says why a step failed, with a hint by its reason.

    Args:
        error: what the system answered.
        what: the step and its subject in quotes.
        hints: one for ``full``, ``permission`` and ``io`` each.
    """
    reason = "io"
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        reason = "full"
    elif error.errno in {errno.EACCES, errno.EROFS, errno.EPERM}:
        reason = "permission"
    said = os.strerror(error.errno).lower() if error.errno else "unknown error"
    return StoreError(reason, f"cannot {what}: {said}", hint=hints[reason])


def open_folder(path: bytes) -> int:
    """Return a descriptor of the folder at ``path``; its last component is no symlink.

    Raises:
        StoreError: ``absent`` where there is none; else as `store_error`.
    """
    try:
        return os.open(path, _FOLDER_FLAGS)
    except FileNotFoundError as error:
        raise StoreError("absent", f"there is no folder {shown(path)}") from error
    except OSError as error:
        raise store_error(error, "open the folder", path) from error


def make_folder(path: bytes) -> None:
    """Make the folder ``path`` and its missing parents, 0700, durable in their parents.

    An existing folder is made durable too: an earlier run may have died before it could.
    """
    parent = os.path.dirname(path)
    if parent and not os.path.isdir(parent):
        make_folder(parent)
    try:
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
        _sync_path(parent or b".")
    except OSError as error:
        raise store_error(error, "make the folder", path) from error


def _sync_path(folder: bytes) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_temporary(name: bytes) -> bool:
    """Return whether ``name`` is exactly what this module calls an unfinished file."""
    return _TEMPORARY.match(name) is not None


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class UnfinishedFile:
    """A file that has no name yet, or only a temporary one, until `publish` gives it its name.

    Used as a context manager: leaving it unpublished leaves nothing behind. Where the file
    system has nameless files, not even a killed process leaves anything.
    """

    __slots__ = ("_descriptor", "_folder", "_path", "_temporary")

    def __init__(self, folder: int, path: bytes) -> None:
        """Begin a file of mode 0600.

        Args:
            folder: descriptor of the folder the temporary lies in; stays the caller's.
            path: that folder, for messages.

        Raises:
            StoreError: it cannot be begun.
        """
        self._folder = folder
        self._path = path
        self._temporary: bytes | None = None
        try:
            self._descriptor = self._begin()
        except OSError as error:
            raise store_error(error, "begin a file in", path) from error

    def _begin(self) -> int:
        try:
            flags = os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC
            descriptor = os.open(b".", flags, 0o600, dir_fd=self._folder)
        except OSError as error:
            if error.errno not in _NO_TMPFILE:
                raise
        else:
            if os.path.exists(b"/proc/self/fd/%d" % descriptor):
                return descriptor
            os.close(descriptor)
        self._temporary = b".tmp-" + os.urandom(16).hex().encode()
        return os.open(self._temporary, _NEW_FLAGS, 0o600, dir_fd=self._folder)

    def write(self, data: bytes) -> None:
        """Append ``data``.

        Raises:
            StoreError: the bytes cannot be written; the file stays unpublished.
        """
        try:
            _write_all(self._descriptor, data)
        except OSError as error:
            raise store_error(error, "write a file in", self._path) from error

    def publish(self, folder: int, name: bytes) -> bool:
        """Give the file its name, whole and durable.

        Args:
            folder: descriptor of the folder of that name, on the same file system.
            name: one component.

        Returns:
            True; or False where the name is taken, with nothing changed.

        Raises:
            StoreError: it cannot be made durable or linked.
        """
        try:
            os.fsync(self._descriptor)
            try:
                self._link(folder, name)
            except FileExistsError:
                return False
            self.discard_temporary()
            os.fsync(folder)
        except OSError as error:
            where = os.path.join(self._path, name)
            raise store_error(error, "publish", where) from error
        return True

    def _link(self, folder: int, name: bytes) -> None:
        if self._temporary is None:
            source = b"/proc/self/fd/%d" % self._descriptor
            os.link(source, name, dst_dir_fd=folder, follow_symlinks=True)
        else:
            os.link(
                self._temporary,
                name,
                src_dir_fd=self._folder,
                dst_dir_fd=folder,
                follow_symlinks=False,
            )

    def replace(self, name: bytes) -> None:
        """Put the file in the place of ``name`` in its own folder, for small local state only.

        Raises:
            StoreError: the old file is still there, whole.
        """
        try:
            os.fsync(self._descriptor)
            if self._temporary is None:
                temporary = b".tmp-" + os.urandom(16).hex().encode()
                self._link(self._folder, temporary)
                self._temporary = temporary
            os.rename(self._temporary, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._temporary = None
            os.fsync(self._folder)
        except OSError as error:
            where = os.path.join(self._path, name)
            raise store_error(error, "replace", where) from error

    def discard_temporary(self) -> None:
        """Remove the temporary name, if there is one."""
        if self._temporary is not None:
            os.unlink(self._temporary, dir_fd=self._folder)
            self._temporary = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)
        try:
            self.discard_temporary()
        except OSError as failure:
            if error is None:
                raise store_error(failure, "clean up in", self._path) from failure


def write_once(path: bytes, data: bytes) -> bool:
    """Create the file ``path`` with ``data``, mode 0600, whole and durable.

    Returns:
        True; or False where something of that name is there already, which stays.

    Raises:
        StoreError: nothing was created.
    """
    folder_path, name = os.path.split(path)
    folder = open_folder(folder_path)
    try:
        with UnfinishedFile(folder, folder_path) as file:
            file.write(data)
            return file.publish(folder, name)
    finally:
        os.close(folder)


def replace_small(path: bytes, data: bytes) -> None:
    """Put ``data`` in the place of the small local file ``path``; old or new, never a mixture.

    Raises:
        StoreError: the old file is still there, whole.
    """
    folder_path, name = os.path.split(path)
    folder = open_folder(folder_path)
    try:
        with UnfinishedFile(folder, folder_path) as file:
            file.write(data)
            file.replace(name)
    finally:
        os.close(folder)


def move_small(path: bytes, name: bytes) -> bool:
    """Rename the small local file ``path`` to ``name`` in its folder, durable on return.

    Returns:
        True; or False where there is no such file.
    """
    folder_path, old = os.path.split(path)
    folder = open_folder(folder_path)
    try:
        os.rename(old, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise store_error(error, "rename", path) from error
    finally:
        os.close(folder)
    return True


def read_small(path: bytes, limit: int) -> bytes | None:
    """Return the bytes of a small local file, or None where there is none.

    Args:
        path: a regular file; a symlink in its place is an error.
        limit: greatest size in bytes.

    Raises:
        StoreError: it cannot be read; ``size`` where it is longer than ``limit``.
    """
    try:
        descriptor = os.open(path, _READ_FLAGS)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise store_error(error, "read", path) from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise StoreError("io", f"{shown(path)} is not a regular file")
        likely = max(found.st_size, _LIKELY_BYTES)  # memory is taken for all that is asked for
        data = read_up_to(descriptor, min(limit, likely) + 1, 0)
    except OSError as error:
        raise store_error(error, "read", path) from error
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise StoreError("size", f"{shown(path)} is longer than {limit} bytes")
    return data


def read_up_to(descriptor: int, length: int, offset: int) -> bytes:
    """Return ``length`` bytes from ``offset``, or fewer where the file ends."""
    data = os.pread(descriptor, length, offset)
    if not data or len(data) == length:
        return data
    pieces = [data]
    got = len(data)
    while got < length:
        piece = os.pread(descriptor, length - got, offset + got)
        if not piece:
            break
        pieces.append(piece)
        got += len(piece)
    return b"".join(pieces)


def iter_temporaries(folder: bytes) -> Iterator[bytes]:
    """Yield the names of the unfinished files in ``folder``; none where it is missing."""
    try:
        found = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    except OSError as error:
        raise store_error(error, "list", folder) from error
    yield from (name for name in found if is_temporary(name))


def remove_temporaries(folder: bytes, lock: HeldLock) -> int:
    """Remove the unfinished files that killed runs left in ``folder``; return how many.

    Args:
        folder: one folder of the repository or the state.
        lock: the lock of the repository, held: no other run is writing now.

    Raises:
        ValueError: the lock is not held.
        StoreError: one cannot be removed.
    """
    if not lock.is_held:
        raise ValueError("leftovers are removed only under the lock")
    removed = 0
    for name in iter_temporaries(folder):
        path = os.path.join(folder, name)
        try:
            if stat.S_ISREG(os.lstat(path).st_mode):
                os.unlink(path)
                removed += 1
        except OSError as error:
            raise store_error(error, "remove the leftover", path) from error
    return removed


class AppendFile:
    """A file that only grows; a failed append is cut off again, so what precedes stays whole.

    Holds an exclusive lock on the file while open: appends of two processes never mix.
    """

    __slots__ = ("_descriptor", "_path", "size")

    def __init__(self, path: bytes) -> None:
        """Open ``path``, creating it 0600 and durable where it is missing.

        Raises:
            StoreError: it cannot be opened, locked or made durable.
        """
        self._path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            self._descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise store_error(error, "open", path) from error
        try:
            self.size = self._lock()
        except OSError as error:
            os.close(self._descriptor)
            raise store_error(error, "open", path) from error
        except StoreError:
            os.close(self._descriptor)
            raise

    def _lock(self) -> int:
        """Lock the file, make its name durable, and return its size."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise StoreError("io", f"{shown(self._path)} is not a regular file")
        if status.st_size == 0:
            _sync_path(os.path.dirname(self._path) or b".")
        return status.st_size

    def read(self, offset: int, length: int) -> bytes:
        """Return the bytes of that range, fewer where the file ends."""
        try:
            return read_up_to(self._descriptor, length, offset)
        except OSError as error:
            raise store_error(error, "read", self._path) from error

    def append(self, data: bytes) -> None:
        """Add ``data`` at the end, durable on return, or leave the file as it was.

        Raises:
            StoreError: nothing was added.
        """
        try:
            os.lseek(self._descriptor, self.size, os.SEEK_SET)
            _write_all(self._descriptor, data)
            os.fsync(self._descriptor)
        except OSError as error:
            try:
                os.ftruncate(self._descriptor, self.size)
            except OSError as second:
                error.add_note(f"and the torn end stays: {second.strerror}")
            raise store_error(error, "append to", self._path) from error
        self.size += len(data)

    def cut(self, size: int) -> bytes:
        """Cut a torn tail off, so that the file is ``size`` bytes long; return the tail.

        Raises:
            ValueError: ``size`` is beyond the end.
            StoreError: it cannot be cut.
        """
        if not 0 <= size <= self.size:
            raise ValueError("a file is cut within its length")
        torn = self.read(size, min(self.size - size, _TAIL_WINDOW))
        if size < self.size:
            try:
                os.ftruncate(self._descriptor, size)
                os.fsync(self._descriptor)
            except OSError as error:
                raise store_error(error, "cut the torn end of", self._path) from error
            self.size = size
        return torn

    def close(self) -> None:
        """Give descriptor and lock back; closing twice is fine."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _end_of_last_newline(file: AppendFile, end: int) -> int:
    """Return the offset just behind the last newline before ``end``, or 0."""
    while end > 0:
        start = max(0, end - _TAIL_WINDOW)
        found = file.read(start, end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def append_after(path: bytes, compose: Callable[[bytes | None], bytes]) -> bytes:
    """Append one line that may depend on the last whole one; durable on return.

    A torn tail, left by a kill during an append, is cut off first: that append never returned.

    Args:
        path: a file of lines; created where it is missing.
        compose: gets the last whole line without its newline, or None; returns the new one.

    Returns:
        The torn tail that was cut off (at most 64 KiB of it); empty if there was none.

    Raises:
        ValueError: the line holds a newline.
        StoreError: nothing was added.
    """
    with AppendFile(path) as file:
        end = _end_of_last_newline(file, file.size)
        torn = file.cut(end)
        last = None
        if end > 0:
            start = _end_of_last_newline(file, end - 1)
            last = file.read(start, end - 1 - start)
        line = compose(last)
        if b"\n" in line:
            raise ValueError("a line holds no newline")
        file.append(line + b"\n")
    return torn


def append_line(path: bytes, line: bytes) -> bytes:
    """Append one line, durable on return; see `append_after`."""
    return append_after(path, lambda _: line)


def iter_lines(path: bytes) -> Iterator[bytes]:
    """Yield each whole line without its newline; a torn tail is no line.

    Yields nothing where the file is missing.

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        descriptor = os.open(path, _READ_FLAGS)
    except FileNotFoundError:
        return
    except OSError as error:
        raise store_error(error, "read", path) from error
    try:
        with open(descriptor, "rb") as stream:
            for line in stream:
                if line.endswith(b"\n"):
                    yield line[:-1]
    except OSError as error:
        raise store_error(error, "read", path) from error
