"""Content of one restored file: pieces and holes into an open descriptor, exactly as many bytes.

It neither opens nor names files and trusts no iterator: the byte after the last one is never
written. Source: spec/format.md 10. Start at `write_content`.
"""

import os
from collections.abc import Iterable


class WrongSizeError(Exception):
    """Another number of bytes came than the file has; ``came`` is how many at least."""

    def __init__(self, came: int) -> None:
        super().__init__(f"{came} bytes came")
        self.came = came


class WriteFailedError(Exception):
    """The system refused a write, for ``cause``; what an iterator raises is never this."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def write_content(fd: int, size: int, pieces: Iterable[bytes | int]) -> None:
    """Write ``pieces`` to the new, empty file ``fd``.

    Args:
        fd: open for writing, at offset 0.
        size: bytes that have to come.
        pieces: bytes, or the length of a hole of zeros, which takes no space.

    Raises:
        WrongSizeError: more or fewer than ``size`` bytes came.
        WriteFailedError: the disk is full or failed.
    """
    done = 0
    for piece in pieces:
        length = piece if isinstance(piece, int) else len(piece)
        if not 0 <= length <= size - done:
            raise WrongSizeError(done + length)
        done += length
        try:
            if isinstance(piece, int):
                _skip(fd, piece, is_last=done == size)
            else:
                write_all(fd, piece)
        except OSError as error:
            raise WriteFailedError(error) from error
    if done != size:
        raise WrongSizeError(done)


def write_all(fd: int, data: bytes) -> None:
    """Write all of ``data``, however few bytes a call takes."""
    done = os.write(fd, data) if data else 0
    while done < len(data):
        done += os.write(fd, memoryview(data)[done:])


def _skip(fd: int, length: int, *, is_last: bool) -> None:
    end = os.lseek(fd, length, os.SEEK_CUR)
    if is_last:
        os.ftruncate(fd, end)  # a hole at the end has no byte after it that would give it length
