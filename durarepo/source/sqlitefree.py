"""The free pages of a copied database made zeros: what was deleted there is not kept.

A deleted value that filled overflow pages is cut by the header of each, so no scan of the bytes
sees it whole, and no cell holds it any more. SQLite never reads what a free page holds, so the
copy stays the same database, and every other page stays where and as it was.
Source: sqlite.org/fileformat2.html 1.5 (the freelist). Start at `clear_free_pages`.
"""

from collections.abc import Iterator
from typing import BinaryIO

from durarepo.core.limits import MIB
from durarepo.store.atomic import store_error

_HEADER_BYTES = 100
_GREATEST_PAGE_BYTES = 65536
_TRUNK_BYTES = 8
_NUMBER_BYTES = 4
_RUN_MOST = MIB


class FreelistError(Exception):
    """The list of free pages contradicts itself, so it is not certain which are free."""


def clear_free_pages(path: bytes) -> int:
    """Write zeros over what the free pages of a copy hold.

    The same database always becomes the same bytes.

    Args:
        path: a copy in the work folder that nobody has open.

    Returns:
        How many pages are free.

    Raises:
        FreelistError: the list of free pages is damaged; nothing was written.
        StoreError: the copy cannot be read or written.
    """
    try:
        with open(path, "r+b", buffering=0) as file:
            header = file.read(_HEADER_BYTES)
            page_bytes = int.from_bytes(header[16:18], "big")
            page_bytes = _GREATEST_PAGE_BYTES if page_bytes == 1 else page_bytes
            trunks, leaves = _free_pages(file, header, page_bytes)
            for start, stop in _runs(leaves):
                _clear(file, (start - 1) * page_bytes, (stop - 1) * page_bytes)
            for number, used in trunks.items():
                _clear(file, (number - 1) * page_bytes + used, number * page_bytes)
    except OSError as error:
        raise store_error(error, "clear the free pages of the database copy", path) from error
    return len(trunks) + len(leaves)


def _free_pages(file: BinaryIO, header: bytes, page_bytes: int) -> tuple[dict[int, int], set[int]]:
    """Return the pages that list free ones, with how much of each is used, and those listed."""
    trunks: dict[int, int] = {}
    leaves: set[int] = set()
    number = int.from_bytes(header[32:36], "big")
    count = int.from_bytes(header[36:40], "big")
    last = file.seek(0, 2) // page_bytes
    while number:
        if not 1 < number <= last or number in trunks or len(trunks) + len(leaves) >= count:
            raise FreelistError
        file.seek((number - 1) * page_bytes)
        page = file.read(page_bytes)
        length = int.from_bytes(page[4:8], "big")
        used = _TRUNK_BYTES + _NUMBER_BYTES * length
        if used > len(page):
            raise FreelistError
        listed = memoryview(page)[_TRUNK_BYTES:used]
        leaves.update(
            int.from_bytes(listed[at : at + _NUMBER_BYTES], "big")
            for at in range(0, len(listed), _NUMBER_BYTES)
        )
        trunks[number] = used
        number = int.from_bytes(page[:4], "big")
    is_sound = not trunks.keys() & leaves and len(trunks) + len(leaves) == count
    if not is_sound or (leaves and not (min(leaves) > 1 and max(leaves) <= last)):
        raise FreelistError
    return trunks, leaves


def _runs(numbers: set[int]) -> Iterator[tuple[int, int]]:
    """Yield runs of pages that follow each other, as the first and the one after the last."""
    start = stop = 0
    for number in sorted(numbers):
        if number != stop:
            if stop:
                yield start, stop
            start = number
        stop = number + 1
    if stop:
        yield start, stop


def _clear(file: BinaryIO, start: int, stop: int) -> None:
    file.seek(start)
    zeros = bytes(min(_RUN_MOST, stop - start))
    for at in range(start, stop, _RUN_MOST):
        data = memoryview(zeros)[: min(_RUN_MOST, stop - at)]
        while data:
            data = data[file.write(data) :]
