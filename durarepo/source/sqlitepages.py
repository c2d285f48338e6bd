"""Values as they lie in the pages of a database file, so that each can be looked at by itself.

In a page one value follows the other without a gap, and no rule could tell where a word begins.
Only pages that are asked for are read, only values that lie whole in one; a page that is no part
of a tree has none. Source: SQLite documentation, Database File Format, 1.6 and 2.1.
Start at `values_of_page`.
"""

from collections.abc import Iterator

_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR = 0x0D, 0x0A, 0x02
_FILE_HEADER_BYTES, _LEAF_HEADER_BYTES, _INTERIOR_HEADER_BYTES = 100, 8, 12
_CHILD_BYTES, _POINTER_BYTES = 4, 2
_VARINT_BYTES = 9
_FIRST_BLOB = 12
_INTEGER_BYTES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
"""Length of the serial types 0 to 9; all numbers, of which none holds text."""


class PageError(ValueError):
    """A page does not hold what its header says."""


def most_of_row(usable: int) -> int:
    """Return how long a row of a table may be, in bytes with its header, to lie in one page.

    Args:
        usable: bytes of a page that the database uses.
    """
    return usable - 35


def most_of_key(usable: int) -> int:
    """Return how long an entry of an index, or a row without a row id, may be."""
    return (usable - 12) * 64 // 255 - 23


def values_of_page(page: bytes, *, is_first: bool, usable: int) -> Iterator[bytes]:
    """Yield texts and blobs of the rows that lie whole in a page.

    Args:
        page: all of the page.
        is_first: whether it is the first one, which begins with the header of the file.
        usable: bytes of it that the database uses.

    Raises:
        PageError: it is damaged, or only looks like a page of rows.
    """
    start = _FILE_HEADER_BYTES if is_first else 0
    kind = page[start]
    if kind not in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR):
        return
    most = most_of_row(usable) if kind == _TABLE_LEAF else most_of_key(usable)
    is_interior = kind == _INDEX_INTERIOR
    first = start + (_INTERIOR_HEADER_BYTES if is_interior else _LEAF_HEADER_BYTES)
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    for at in range(first, first + count * _POINTER_BYTES, _POINTER_BYTES):
        cell = int.from_bytes(page[at : at + _POINTER_BYTES], "big")
        length, cell = read_varint(page, cell + (_CHILD_BYTES if is_interior else 0))
        if kind == _TABLE_LEAF:
            _, cell = read_varint(page, cell)
        if length <= most:
            yield from _values_of_record(page, cell, cell + length)


def _values_of_record(page: bytes, start: int, stop: int) -> Iterator[bytes]:
    header, at = read_varint(page, start)
    value = start + header
    if stop > len(page) or value > stop:
        raise PageError
    while at < start + header:
        kind, at = read_varint(page, at)
        if kind < _FIRST_BLOB:
            value += _INTEGER_BYTES[kind] if kind < len(_INTEGER_BYTES) else 0
            continue
        length = (kind - _FIRST_BLOB) // 2
        if value + length > stop:
            raise PageError
        yield page[value : value + length]
        value += length


def read_varint(page: bytes, at: int) -> tuple[int, int]:
    """Return a number of one to nine bytes, and where it ends."""
    value = 0
    for number in range(_VARINT_BYTES):
        if at >= len(page):
            raise PageError
        byte = page[at]
        at += 1
        if number == _VARINT_BYTES - 1:
            return value << 8 | byte, at
        value = value << 7 | byte & 0x7F
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that another byte follows
            return value, at
    return value, at
