"""The bytes of regular files, together with what is known about the moment they show.

A file may change while it is read, so each read says how far its bytes can be trusted
(`Consistency`). Nothing is followed and nothing but a regular file is read: a name that turned
into a symlink, a pipe or a device since it was listed is refused.
Source: spec/cli.md, omissions. Start at `read_small` for many small files, `capture` for the rest.
"""

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from stat import S_ISREG
from typing import Generic, NamedTuple, NoReturn, TypeVar

from durarepo.core.entries import Consistency
from durarepo.core.errors import SourceError, VanishedError
from durarepo.core.limits import MIB, READ_TRIES, READ_WINDOW_BYTES, WHOLE_FILE_MAX_BYTES
from durarepo.core.names import FileHash

LINE_SUFFIXES = (b".jsonl", b".ndjson", b".log", b".csv", b".txt", b".md")
"""Names of files whose content is lines, whatever the first bytes look like."""

UNSIZED_MAX_BYTES = 64 * MIB
"""How much is read of a file that says it is empty and is not (served by a program)."""

_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_SAMPLE_BYTES = 4096
_ZEROS = bytes(MIB)
_NOT_IN_TEXT = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + b"\x7f"

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of a file: bytes, or (``data`` is None) a hole that reads as zeros."""

    offset: int
    length: int
    data: bytes | None


class SmallRead(NamedTuple):
    """What one look at a small file gave; ``data`` is the whole content if ``quiet``."""

    data: bytes
    stat: os.stat_result
    quiet: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured(Generic[R]):
    """A file as it was kept: ``size`` bytes with this SHA-256, from the file of this ``stat``."""

    stat: os.stat_result
    size: int
    consistency: Consistency
    sha256: FileHash
    result: R


Consume = Callable[[Iterator[Segment]], tuple[FileHash, R]]
"""Takes a file's segments in order; returns the SHA-256 of what it saw (holes as zeros)."""


def read_small(
    dirfd: int, name: bytes, listed: os.stat_result, *, limit: int = WHOLE_FILE_MAX_BYTES
) -> SmallRead:
    """Return the whole content of the small file ``name``, if it stayed quiet.

    Args:
        dirfd: descriptor of the directory.
        name: the file's name in it.
        listed: what the listing said of it.
        limit: largest size in bytes that counts as small.

    Returns:
        ``quiet`` is true only if the file is the one listed, is at most ``limit`` long, and
        size, times and inode were equal before and after all of it was read. Otherwise
        ``data`` is worthless and the file is one for `capture`.

    Raises:
        VanishedError: no such name any more.
        SourceError: unreadable, or no regular file any more.
    """
    fd = _open_regular(dirfd, name)
    try:
        before = os.fstat(fd)
        if not S_ISREG(before.st_mode):
            _refuse_type(name)
        size = before.st_size
        if size > limit or before.st_ino != listed.st_ino or before.st_dev != listed.st_dev:
            return SmallRead(data=b"", stat=before, quiet=False)
        data = os.read(fd, size + 1)
        after = os.fstat(fd)
    except OSError as error:
        _refuse_unreadable(name, error)
    finally:
        os.close(fd)
    quiet = len(data) == size and _is_same_moment(before, after)
    return SmallRead(data=data, stat=before, quiet=quiet)


def capture(
    dirfd: int, name: bytes, consume: Consume[R], *, tries: int = READ_TRIES
) -> Captured[R]:
    """Read ``name`` through ``consume`` until what it saw can be vouched for.

    A file that only grew is kept up to the size it had when it was opened; one made of lines,
    up to the last line end before that. Any other change means another try on the file that
    has the name then. After the last try its bytes are kept as `Consistency.CHANGED`.

    Args:
        dirfd: descriptor of the directory.
        name: the file's name in it.
        consume: called once or twice a try; only what its last call returned counts.
        tries: how often at most, at least 1.

    Raises:
        VanishedError: no such name when first opened.
        SourceError: unreadable, or no regular file any more.
    """
    last: Captured[R] | None = None
    for _ in range(tries):
        try:
            file = SourceFile(dirfd, name)
        except VanishedError:
            if last is None:
                raise
            return last
        with file:
            last = _one_try(file, consume)
        if last.consistency is not Consistency.CHANGED:
            break
    if last is None:
        raise ValueError("a file is tried at least once")
    return last


def zeros(length: int) -> Iterator[bytes]:
    """Yield so many zeros in pieces."""
    for at in range(0, length, MIB):
        yield _ZEROS[: length - at]


def hashed(segments: Iterable[Segment], update: Callable[[bytes], None]) -> Iterator[Segment]:
    """Yield segments after giving their bytes, holes as zeros, to a hash."""
    for one in segments:
        if one.data is not None:
            update(one.data)
        else:
            for part in zeros(one.length):
                update(part)
        yield one


class SourceFile:
    """An open regular file and what it was when it was opened."""

    def __init__(self, dirfd: int, name: bytes) -> None:
        """Open ``name``.

        Raises:
            VanishedError: no such name.
            SourceError: unreadable, or not a regular file.
        """
        self.name = name
        self.bytes_seen = 0
        self._fd = _open_regular(dirfd, name)
        try:
            self.stat = os.fstat(self._fd)
        except OSError as error:
            os.close(self._fd)
            _refuse_unreadable(name, error)
        if not S_ISREG(self.stat.st_mode):
            os.close(self._fd)
            _refuse_type(name)

    def __enter__(self) -> "SourceFile":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    @property
    def limit(self) -> int:
        """How far the file is read: its size at open, or the bound for one that hides it."""
        return self.stat.st_size or UNSIZED_MAX_BYTES

    def segments(self, limit: int | None = None) -> Iterator[Segment]:
        """Yield data in windows and holes as such, from 0 to ``limit`` or an early end.

        ``bytes_seen`` is then how far it came. A file that shrinks meanwhile ends early.

        Raises:
            SourceError: unreadable.
        """
        end = self.limit if limit is None else limit
        self.bytes_seen = 0
        for start, stop, is_hole in self._extents(end):
            if is_hole:
                yield Segment(offset=start, length=stop - start, data=None)
                self.bytes_seen = stop
                continue
            for data in self._windows(start, stop):
                yield Segment(offset=self.bytes_seen, length=len(data), data=data)
                self.bytes_seen += len(data)
            if self.bytes_seen < stop:
                return

    def settle(self, sha256: FileHash) -> Consistency:
        """Say what the bytes read so far, with this SHA-256, are worth.

        Returns:
            `QUIET`, `GREW` (all that was read is still there unchanged, more came after it),
            or `CHANGED`.

        Raises:
            SourceError: unreadable.
        """
        after = self._stat()
        size = self.stat.st_size
        if _is_same_moment(self.stat, after):
            whole = self.bytes_seen == size or (size == 0 and self.bytes_seen < self.limit)
            return Consistency.QUIET if whole else Consistency.CHANGED
        if after.st_size <= size or size == 0 or self.bytes_seen != size:
            return Consistency.CHANGED
        return Consistency.GREW if self.sha256_of(size) == sha256 else Consistency.CHANGED

    def sha256_of(self, length: int) -> FileHash:
        """Return the SHA-256 of the first ``length`` bytes as they are now.

        Raises:
            SourceError: unreadable.
        """
        digest = hashlib.sha256()
        for data in self._windows(0, length):
            digest.update(data)
        return FileHash(digest.digest())

    def line_end(self, limit: int) -> int:
        """Return where the last line that ends within ``limit`` bytes ends; 0 if none does."""
        stop = limit
        while stop > 0:
            start = max(0, stop - READ_WINDOW_BYTES)
            found = self._read(stop - start, start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            stop = start
        return 0

    def is_lines(self) -> bool:
        """Whether the name says, or both ends of the content look as if, it is lines of text."""
        if self.name.endswith(LINE_SUFFIXES):
            return True
        size = self.stat.st_size
        first = self._read(min(size, _SAMPLE_BYTES), 0)
        last = self._read(min(size, _SAMPLE_BYTES), max(0, size - _SAMPLE_BYTES))
        return _looks_like_lines(first) and _looks_like_lines(last)

    def _windows(self, start: int, stop: int) -> Iterator[bytes]:
        while start < stop:
            data = self._read(min(READ_WINDOW_BYTES, stop - start), start)
            if not data:
                return
            yield data
            start += len(data)

    def _extents(self, end: int) -> Iterator[tuple[int, int, bool]]:
        """Yield (start, stop, is a hole) in order from 0 to ``end``."""
        if self.stat.st_blocks * 512 >= self.stat.st_size:
            yield 0, end, False
            return
        position = 0
        while position < end:
            data = min(end, self._seek(position, os.SEEK_DATA, end))
            if data > position:
                yield position, data, True
            position = data
            if position < end:
                hole = min(end, self._seek(position, os.SEEK_HOLE, end))
                yield position, hole, False
                position = hole

    def _seek(self, position: int, whence: int, end: int) -> int:
        try:
            return os.lseek(self._fd, position, whence)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole up to the end
                return end
            _refuse_unreadable(self.name, error)

    def _read(self, length: int, offset: int) -> bytes:
        try:
            return os.pread(self._fd, length, offset)
        except OSError as error:
            _refuse_unreadable(self.name, error)

    def _stat(self) -> os.stat_result:
        try:
            return os.fstat(self._fd)
        except OSError as error:
            _refuse_unreadable(self.name, error)


def _one_try(file: SourceFile, consume: Consume[R]) -> Captured[R]:
    sha256, result = consume(file.segments())
    size = file.bytes_seen
    consistency = file.settle(sha256)
    if consistency is Consistency.GREW and file.is_lines():
        shorter = file.line_end(size)
        if shorter == size:
            consistency = Consistency.LINE_PREFIX
        elif shorter > 0:
            return _line_prefix(file, consume, shorter)
    return Captured(
        stat=file.stat, size=size, consistency=consistency, sha256=sha256, result=result
    )


def _line_prefix(file: SourceFile, consume: Consume[R], length: int) -> Captured[R]:
    sha256, result = consume(file.segments(length))
    kept = file.bytes_seen == length and file.sha256_of(length) == sha256
    return Captured(
        stat=file.stat,
        size=file.bytes_seen,
        consistency=Consistency.LINE_PREFIX if kept else Consistency.CHANGED,
        sha256=sha256,
        result=result,
    )


def _open_regular(dirfd: int, name: bytes) -> int:
    try:
        return os.open(name, _OPEN_FILE | os.O_NOATIME, dir_fd=dirfd)
    except OSError as error:
        if error.errno != errno.EPERM:
            _refuse_open(name, error)
    try:
        return os.open(name, _OPEN_FILE, dir_fd=dirfd)
    except OSError as error:
        _refuse_open(name, error)


def _is_same_moment(before: os.stat_result, after: os.stat_result) -> bool:
    return (
        before.st_size == after.st_size
        and before.st_mtime_ns == after.st_mtime_ns
        and before.st_ctime_ns == after.st_ctime_ns
    )


def _looks_like_lines(sample: bytes) -> bool:
    return b"\n" in sample and len(sample.translate(None, _NOT_IN_TEXT)) == len(sample)


def _refuse_open(name: bytes, error: OSError) -> NoReturn:
    if error.errno == errno.ENOENT:
        raise VanishedError(
            "vanished", f"file {os.fsdecode(name)!r} is gone since it was listed"
        ) from error
    if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENODEV):
        _refuse_type(name)
    _refuse_unreadable(name, error)


def _refuse_type(name: bytes) -> NoReturn:
    raise SourceError(
        "changed-type",
        f"file {os.fsdecode(name)!r} is no regular file any more",
        hint="run again when nothing replaces it",
    )


def _refuse_unreadable(name: bytes, error: OSError) -> NoReturn:
    raise SourceError(
        "unreadable",
        f"file {os.fsdecode(name)!r} cannot be read: {error.strerror}",
        hint="give the user that runs durarepo the right to read it, or exclude it",
    ) from error
