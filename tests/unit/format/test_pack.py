"""The tables of a pack's index: every contradiction in them is refused."""

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from durarepo.core.errors import IntegrityError
from durarepo.core.limits import CHUNK_MAX_BYTES, FRAMES_MAX_COUNT
from durarepo.core.names import ChunkId, Digest
from durarepo.format.pack import (
    FrameInfo,
    PackIndex,
    encode_index,
    header_length,
    parse_index,
    split_header,
)

HEADER = header_length(4)


def frame(**changes: Any) -> FrameInfo:
    """Return the first frame of `INDEX`, changed."""
    first = FrameInfo(
        position=HEADER,
        stored_length=100,
        plain_length=30,
        compression=1,
        digest=Digest(b"d" * 32),
        first_chunk=0,
        chunk_count=2,
    )
    return replace(first, **changes)


INDEX = PackIndex(
    header_digest=Digest(b"h" * 32),
    header_length=HEADER,
    frames=(
        frame(),
        frame(
            position=HEADER + 100, stored_length=50, plain_length=5, first_chunk=2, chunk_count=1
        ),
    ),
    lengths=(10, 20, 5),
    kinds=b"\0\1\2",
    ids=tuple(ChunkId(bytes((n,)) * 32) for n in range(3)),
)


def test_an_index_knows_where_its_frames_end() -> None:
    """The index begins there; nothing else says where."""
    assert INDEX.end == HEADER + 150
    assert parse_index(encode_index(INDEX), end=INDEX.end) == INDEX


def test_a_header_has_one_of_the_lengths_that_there_are() -> None:
    """Behind a header of another length lie bytes that no digest covers."""
    moved = tuple(replace(one, position=one.position + 8) for one in INDEX.frames)
    index = replace(INDEX, header_length=HEADER + 8, frames=moved)

    with pytest.raises(IntegrityError):
        parse_index(encode_index(index), end=index.end)


def test_a_chunk_may_be_of_one_byte() -> None:
    """A file of one byte has such a chunk."""
    index = replace(INDEX, lengths=(1, 29, 5))

    assert parse_index(encode_index(index), end=INDEX.end) == index


def test_a_header_comes_apart_as_it_was_put_together() -> None:
    """Salt, stanzas and commitment have no lengths of their own."""
    stanzas = [bytes((n,)) * 1168 for n in range(8)]
    header = b"\x01" + b"s" * 32 + b"".join(stanzas) + b"c" * 32

    assert len(header) == header_length(8)
    assert split_header(header) == (b"s" * 32, stanzas, b"c" * 32)


@pytest.mark.parametrize(
    "broken",
    [
        replace(INDEX, header_length=HEADER + 1),
        replace(INDEX, header_length=header_length(8)),
        replace(INDEX, kinds=b"\0\4\2"),
        replace(INDEX, lengths=(10, 0, 25)),
        replace(INDEX, lengths=(10, 21, 4)),
        replace(INDEX, lengths=(10, CHUNK_MAX_BYTES + 1, 5)),
        replace(INDEX, frames=(INDEX.frames[0],)),
        replace(INDEX, lengths=(10, 20, 5, 7), kinds=bytes(4), ids=INDEX.ids + INDEX.ids[:1]),
        replace(INDEX, frames=(frame(plain_length=31), INDEX.frames[1])),
        replace(INDEX, frames=(frame(chunk_count=0), INDEX.frames[1])),
        replace(INDEX, frames=(frame(chunk_count=1), INDEX.frames[1])),
        replace(INDEX, frames=(frame(chunk_count=3), INDEX.frames[1])),
        replace(INDEX, frames=(frame(chunk_count=2**32 - 1), INDEX.frames[1])),
        replace(INDEX, frames=(frame(compression=2), INDEX.frames[1])),
        replace(
            INDEX, frames=(frame(stored_length=16), replace(INDEX.frames[1], stored_length=134))
        ),
        replace(INDEX, frames=(frame(stored_length=101), INDEX.frames[1])),
        replace(INDEX, frames=(frame(stored_length=2**32 - 1), INDEX.frames[1])),
    ],
)
def test_tables_that_contradict_themselves_are_refused(broken: PackIndex) -> None:
    """A frame could reach into another, or a chunk out of its frame (ingest 5.6)."""
    with pytest.raises(IntegrityError) as caught:
        parse_index(encode_index(broken), end=INDEX.end)

    assert caught.value.code == "integrity.index-form"


def test_a_frame_longer_than_the_limit_is_refused() -> None:
    """Two chunks within their bound make a frame beyond its own."""
    length = CHUNK_MAX_BYTES // 2 + 1
    index = replace(
        INDEX,
        frames=(frame(plain_length=2 * length),),
        lengths=(length, length),
        kinds=b"\0\0",
        ids=INDEX.ids[:2],
    )

    with pytest.raises(IntegrityError) as caught:
        parse_index(encode_index(index), end=index.end)

    assert caught.value.code == "integrity.index-form"


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:0],
        lambda data: data[:43],
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: data[:36] + struct.pack(">I", 0) + data[40:],
        lambda data: data[:36] + struct.pack(">I", FRAMES_MAX_COUNT + 1) + data[40:],
        lambda data: data[:36] + b"\xff" * 4 + data[40:],
        lambda data: data[:40] + b"\xff" * 4 + data[44:],
    ],
)
def test_tables_of_another_length_are_refused(change: Callable[[bytes], bytes]) -> None:
    """Counts are compared with what is there before a table is read (law 8)."""
    with pytest.raises(IntegrityError) as caught:
        parse_index(change(encode_index(INDEX)), end=INDEX.end)

    assert caught.value.code == "integrity.index-form"
