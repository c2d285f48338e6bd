"""Where content is cut: by its bytes, or at multiples of a database's page size.

The only importer of pyfastcdc. Cuts are no part of the format; they are chosen so that a small
change adds few bytes. The seed keeps cut points from showing which public file was stored
(spec/threat-model.md, T7). After FastCDC (Xia et al., IEEE TPDS 2020).
Start at `cut_windows`; spec/decisions/0003-cutting-and-compression.md says why these sizes.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from durarepo.core.limits import KIB, MIB

if TYPE_CHECKING:
    from pyfastcdc import FastCDC

_AVERAGES = ((128 * MIB, 32 * KIB), (4096 * MIB, 128 * KIB))
_LARGEST_AVERAGE = 512 * KIB
_PAGES_BYTES = 8 * KIB


def average_for(size: int) -> int:
    """Return the usual chunk size for a file of ``size`` bytes; a power of two, in bytes."""
    for limit, average in _AVERAGES:
        if size < limit:
            return average
    return _LARGEST_AVERAGE


@lru_cache(maxsize=4)
def _cutter(average: int, seed: int) -> "FastCDC":
    from pyfastcdc import FastCDC  # noqa: PLC0415

    return FastCDC(average, seed=seed)


def cut_windows(
    windows: Iterable[bytes], *, average: int, cut_key: bytes
) -> Iterator[memoryview | bytes]:
    """Yield the chunks of one stretch of content that comes in windows.

    Args:
        windows: consecutive pieces of any length; empty ones are fine.
        average: usual chunk size in bytes, a power of two; least a quarter, greatest fourfold.
        cut_key: the ``cut`` subkey; equal content is cut equally under one key only.

    Yields:
        Chunks in order; together they are the windows. Where windows end does not show.
    """
    cutter = _cutter(average, int.from_bytes(cut_key[:8]) >> 1)  # the package takes 63 bits
    rest: bytes = b""
    for window in windows:
        data = rest + window if rest else window
        start = 0
        view = memoryview(data)
        for chunk in cutter.cut_buf(data):
            start, end = chunk.offset, chunk.offset + chunk.length
            if end < len(data):
                yield view[start:end]
        rest = data[start:]
    if rest:
        yield rest


def page_step(page_bytes: int) -> int:
    """Return the length of every chunk but the last of a database with pages of this size."""
    return max(page_bytes, _PAGES_BYTES)


def cut_pages(windows: Iterable[bytes], *, page_bytes: int) -> Iterator[memoryview | bytes]:
    """Yield chunks of a database file, each a multiple of its page size (the last may be less)."""
    step = page_step(page_bytes)
    rest: bytes = b""
    for window in windows:
        data = rest + window if rest else window
        view = memoryview(data)
        whole = len(data) - len(data) % step
        for start in range(0, whole, step):
            yield view[start : start + step]
        rest = data[whole:]
    if rest:
        yield rest


Cut = Callable[[Iterable[bytes]], Iterator[memoryview | bytes]]
"""One way of cutting, with its parameters bound."""
