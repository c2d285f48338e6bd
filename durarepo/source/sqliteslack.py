"""What SQLite leaves unread within pages of a copied database made zeros.

A row that was deleted or made shorter lives on between the cells of its page, and what an overflow
page held before lives on behind the end of a value. No cell holds it, and it begins and ends
anywhere, so no scan is certain to see it. SQLite never reads it: the copy stays the same database,
and every cell stays where it was. Only good for a copy that passed its check, as what a page
says of its free bytes is believed.
Source: sqlite.org/fileformat2.html 1.6 and 1.7. Start at `clear_slack`.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Self

from durarepo.core.limits import READ_WINDOW_BYTES
from durarepo.source.sqlitepages import PageError, most_of_key, most_of_row, read_varint
from durarepo.store.atomic import store_error

_HEADER_BYTES = 100
_GREATEST_PAGE_BYTES = 65536
_ZEROS = bytes(_GREATEST_PAGE_BYTES)
_INDEX_INTERIOR, _TABLE_INTERIOR, _INDEX_LEAF, _TABLE_LEAF = 2, 5, 10, 13
_HEAD_BYTES = {_INDEX_INTERIOR: 12, _TABLE_INTERIOR: 12, _INDEX_LEAF: 8, _TABLE_LEAF: 8}
_HEAD, _BLOCK = struct.Struct(">BHHH"), struct.Struct(">HH")
_POINTER_BYTES, _NUMBER_BYTES = 2, 4
_PAGES_MOST = _INDEX_INTERIOR << 24
"""From here on the number with which an overflow page begins could look like a kind of page."""

_LOCK_AT = 1 << 30
_MAPPED_BYTES = 5
_LONG_VARINT = 1 << 14
"""Smaller numbers have two bytes or one."""


Span = tuple[int, int]
"""Where something lies: its first byte and the one behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """How a database is laid out; ``others`` are pages that belong to no tree and no value."""

    page_bytes: int
    pages: int
    free: int
    others: frozenset[int]

    @classmethod
    def of(cls, file: BinaryIO) -> Self | None:
        """Return that of a file, or None if its pages cannot be told apart by what they begin with.

        Nor if some bytes of each page are reserved: what keeps there a sum would find it wrong.
        """
        header = os.pread(file.fileno(), _HEADER_BYTES, 0)
        size = int.from_bytes(header[16:18], "big")
        size = _GREATEST_PAGE_BYTES if size == 1 else size
        pages = file.seek(0, os.SEEK_END) // size if size else 0
        if not 0 < pages < _PAGES_MOST or header[20]:
            return None
        free = int.from_bytes(header[36:40], "big")
        others = _others(size, pages, has_maps=any(header[52:56]))
        return cls(page_bytes=size, pages=pages, free=free, others=others)

    def windows(self, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
        """Yield all pages, some at once, with where they lie."""
        step = max(1, READ_WINDOW_BYTES // self.page_bytes) * self.page_bytes
        end = self.pages * self.page_bytes
        for offset in range(0, end, step):
            yield offset, os.pread(file.fileno(), min(step, end - offset), offset)

    def trees(self, data: bytes, offset: int) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield the pages of trees: where each lies in ``data``, and what its header says."""
        size = self.page_bytes
        rows = struct.Struct(f">BHHH{size - _HEAD.size}x").iter_unpack(data)
        for at, (kind, block, count, content) in zip(range(0, len(data), size), rows, strict=False):
            if kind in _HEAD_BYTES and (at + offset) // size + 1 not in self.others:
                yield at, kind, block, count, content or _GREATEST_PAGE_BYTES
        if offset == 0:
            kind, block, count, content = _HEAD.unpack_from(data, _HEADER_BYTES)
            yield 0, kind, block, count, content or _GREATEST_PAGE_BYTES


def _others(size: int, pages: int, *, has_maps: bool) -> frozenset[int]:
    """Return the pages that say where others belong, and the one in which locks lie."""
    lock = _LOCK_AT // size + 1
    step = size // _MAPPED_BYTES + 1
    maps = range(2, pages + 1, step) if has_maps else ()
    return frozenset((lock, *(one + (one == lock) for one in maps)))


@dataclass(frozen=True, slots=True)
class _Chain:
    """The overflow pages of one value: the first of them, and how many bytes of it they hold."""

    first: int
    length: int


def clear_slack(path: bytes) -> None:
    """Write zeros over what lies between the cells of pages and behind the ends of long values.

    The same database always becomes the same bytes. A page that contradicts itself stays as it
    is, and so does a database whose pages have reserved bytes.

    Args:
        path: a copy in the work folder that nobody has open, without free pages that hold more
            than zeros.

    Raises:
        StoreError: the copy cannot be read or written.
    """
    try:
        with open(path, "r+b", buffering=0) as file:
            shape = _Shape.of(file)
            if shape is None:
                return
            trees = sum(_clear_pages(file, shape, *one) for one in shape.windows(file))
            if trees + shape.free + len(shape.others) < shape.pages:
                for chain in _chains(file, shape):
                    _clear_behind(file, shape, chain)
    except OSError as error:
        raise store_error(error, "clear the pages of the database copy", path) from error


def _clear_pages(file: BinaryIO, shape: _Shape, offset: int, data: bytes) -> int:
    """Clear what no cell holds of some pages; return how many of them are of trees."""
    spans: list[Span] = []
    trees = 0
    for at, kind, block, count, content in shape.trees(data, offset):
        trees += 1
        start = at + _HEAD_BYTES[kind] + count * _POINTER_BYTES
        if at + offset == 0:
            start += _HEADER_BYTES
        if start <= at + content <= at + shape.page_bytes:
            blocks = _blocks(data, at, block, (content, shape.page_bytes)) if block else []
            if blocks is not None:
                spans += ((start, at + content), *blocks)
    filled = [(start, stop) for start, stop in spans if not _ZEROS.startswith(data[start:stop])]
    if filled:
        window = bytearray(data)
        for start, stop in filled:
            window[start:stop] = _ZEROS[: stop - start]
        _write(file, window, offset)
    return trees


def _blocks(data: bytes, at: int, block: int, bounds: Span) -> list[Span] | None:
    """Return what free blocks of a page hold, each behind its header; None if they lie wrong."""
    spans: list[Span] = []
    least, end = bounds
    while block:
        if not least <= block <= end - _BLOCK.size:
            return None
        after, length = _BLOCK.unpack_from(data, at + block)
        least = block + length
        if not block + _BLOCK.size <= least <= end:
            return None
        spans.append((at + block + _BLOCK.size, at + least))
        block = after
    return spans


def _chains(file: BinaryIO, shape: _Shape) -> Iterator[_Chain]:
    """Yield the chains of the cells that do not lie whole in a page."""
    size = shape.page_bytes
    for offset, data in shape.windows(file):
        for at, kind, _, count, _ in shape.trees(data, offset):
            if kind != _TABLE_INTERIOR:
                page = data[at : at + size]
                first = _HEAD_BYTES[kind] + (_HEADER_BYTES if at + offset == 0 else 0)
                if first + count * _POINTER_BYTES <= size:
                    yield from _chains_of(page, kind, struct.unpack_from(f">{count}H", page, first))


def _chains_of(page: bytes, kind: int, pointers: tuple[int, ...]) -> Iterator[_Chain]:
    size = len(page)
    most = most_of_row(size) if kind == _TABLE_LEAF else most_of_key(size)
    least = 0x80 | (most >> 7 if most < _LONG_VARINT else 0)
    before = _NUMBER_BYTES if kind == _INDEX_INTERIOR else 0
    page += bytes(before + 1)
    for cell in [before + one for one in pointers if one < size and page[before + one] >= least]:
        try:
            length, at = read_varint(page, cell)
            if kind == _TABLE_LEAF:
                _, at = read_varint(page, at)
        except PageError:
            continue
        if length > most:
            here = _local_bytes(length, most, size)
            number = int.from_bytes(page[at + here : at + here + _NUMBER_BYTES], "big")
            yield _Chain(number, length - here)


def _local_bytes(length: int, most: int, size: int) -> int:
    """Return how many bytes of a value that is longer than ``most`` lie in the page of its cell."""
    least = (size - 12) * 32 // 255 - 23
    here = least + (length - least) % (size - _NUMBER_BYTES)
    return here if here <= most else least


def _clear_behind(file: BinaryIO, shape: _Shape, chain: _Chain) -> None:
    """Clear what the last page of a chain holds behind the end of its value."""
    each = shape.page_bytes - _NUMBER_BYTES
    number, left = chain.first, chain.length
    while left > each:
        if not 1 < number <= shape.pages:
            return
        offset = (number - 1) * shape.page_bytes
        number = int.from_bytes(os.pread(file.fileno(), _NUMBER_BYTES, offset), "big")
        left -= each
    if not 1 < number <= shape.pages:
        return
    offset = (number - 1) * shape.page_bytes
    page = os.pread(file.fileno(), shape.page_bytes, offset)
    used = _NUMBER_BYTES + left
    if not any(page[:_NUMBER_BYTES]) and page[used:] != _ZEROS[: len(page) - used]:
        _write(file, bytes(len(page) - used), offset + used)


def _write(file: BinaryIO, data: bytes | bytearray, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(file.fileno(), rest, offset)
        rest, offset = rest[written:], offset + written
