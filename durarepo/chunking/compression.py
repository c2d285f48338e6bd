"""Bounded compression: the only importer of zstandard.

A frame says its own size, is one frame and nothing else, and asks for no window beyond 8 MiB;
`inflate` refuses all others before it allocates. Objects of the library are not safe to share,
so each thread has its own. Source: spec/format.md 5.2, RFC 8878. Start at `deflate`, `inflate`.
"""

import threading

import zstandard

from durarepo.core.limits import FRAME_MAX_BYTES

LEVEL = 3
"""Compression level; see spec/decisions/0003-cutting-and-compression.md."""


class InflateError(Exception):
    """Bytes are not one bounded zstd frame of the expected size. Never leaves the library."""


class _Tools(threading.local):
    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(
            level=LEVEL, write_content_size=True, write_checksum=False, write_dict_id=False
        )
        self.decompressor = zstandard.ZstdDecompressor(max_window_size=FRAME_MAX_BYTES)


_tools = _Tools()


def deflate(data: bytes) -> bytes:
    """Return ``data`` as one zstd frame that states its size."""
    return _tools.compressor.compress(data)


def inflated_size(data: bytes, *, most: int) -> int:
    """Return the size that a zstd frame states, in bytes, without inflating it.

    Raises:
        InflateError: no frame, no size, a dictionary, no byte, or more than ``most`` bytes.
    """
    try:
        header = zstandard.get_frame_parameters(data)
    except zstandard.ZstdError as error:
        raise InflateError from error
    size = int(header.content_size)
    if header.dict_id or header.window_size > FRAME_MAX_BYTES or not 0 < size <= most:
        raise InflateError  # of a frame that holds nothing, the library would not read the rest
    return size


def inflate(data: bytes, *, most: int) -> bytes:
    """Return what `deflate` made, at most ``most`` bytes of it.

    Raises:
        InflateError: anything but one whole frame of at most ``most`` bytes.
    """
    size = inflated_size(data, most=most)
    try:  # fails as well if the frame holds another number of bytes than it states
        return _tools.decompressor.decompress(data, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise InflateError from error
