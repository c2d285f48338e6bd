"""Bounded compression: one frame of a stated size, and nothing else."""

import struct
import threading
import tracemalloc

import pytest
import zstandard

from durarepo.chunking.compression import InflateError, deflate, inflate, inflated_size
from durarepo.core.limits import FRAME_MAX_BYTES, MIB

TEXT = b"hello " * 100
SKIPPABLE = 0x184D2A50


def skippable(data: bytes) -> bytes:
    """Return a zstd frame that decoders pass over."""
    return struct.pack("<II", SKIPPABLE, len(data)) + data


def without_size() -> bytes:
    """Return a frame that does not state its size."""
    return zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)


def with_dictionary() -> bytes:
    """Return a frame that asks for a dictionary."""
    samples: list[bytes | bytearray | memoryview] = [
        b"%d hello world %d" % (n, n * 7) for n in range(2000)
    ]
    trained = zstandard.train_dictionary(4096, samples)
    return zstandard.ZstdCompressor(dict_data=trained).compress(TEXT)


def with_window(log: int) -> bytes:
    """Return a frame with a window of 2**log bytes that states its size."""
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=log)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj(size=32 * MIB)
    return compressor.compress(bytes(32 * MIB)) + compressor.flush()


def stating(size: int) -> bytes:
    """Return the frame of `TEXT` with another size in its header: 4 bytes, single segment."""
    frame = bytearray(zstandard.ZstdCompressor().compress(bytes(70_000)))
    assert frame[4] & 0xE0 == 0xA0
    frame[5:9] = size.to_bytes(4, "little")
    return bytes(frame)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        deflate(TEXT)[:4],
        deflate(TEXT)[:-1],
        deflate(TEXT) + b"x",
        deflate(TEXT) + deflate(TEXT),
        deflate(TEXT) + skippable(b""),
        skippable(b"") + deflate(TEXT),
        skippable(b"x" * 20),
        skippable(b""),
        deflate(b""),
        deflate(b"") + b"anything",
        without_size(),
        with_dictionary(),
        with_window(24),
        stating(69_999),
        stating(70_001),
        stating(2**32 - 1),
    ],
)
def test_anything_but_one_frame_of_its_stated_size_is_refused(data: bytes) -> None:
    """Two frames, a skipped one or bytes behind: a second encoding of one text (format 5.2)."""
    with pytest.raises(InflateError):
        inflate(data, most=32 * MIB)


def test_a_size_beyond_the_bound_is_refused_before_memory_is_taken() -> None:
    """A bomb of a few bytes must cost a few bytes (law 8)."""
    bomb = deflate(bytes(FRAME_MAX_BYTES))
    assert len(bomb) < 1000
    tracemalloc.start()
    try:
        with pytest.raises(InflateError):
            inflate(bomb, most=FRAME_MAX_BYTES - 1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 100_000
    assert inflate(bomb, most=FRAME_MAX_BYTES) == bytes(FRAME_MAX_BYTES)


def test_a_frame_states_its_size() -> None:
    """Readers refuse one that does not."""
    assert inflated_size(deflate(TEXT), most=len(TEXT)) == len(TEXT)
    assert inflate(deflate(TEXT), most=len(TEXT)) == TEXT


def test_equal_bytes_are_deflated_alike_in_every_thread() -> None:
    """A frame's key is derived from its chunks: one key must not meet two payloads."""
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(deflate(TEXT))) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert set(found) == {deflate(TEXT)}
