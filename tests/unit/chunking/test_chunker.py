"""Where content is cut: sizes, pages, and what a change moves."""

import hashlib

import pytest

from durarepo.chunking.chunker import average_for, cut_pages, cut_windows
from durarepo.core.limits import CHUNK_MAX_BYTES, KIB, MIB

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
DATA = hashlib.shake_256(b"content without any pattern").digest(3 * MIB)


def cut(data: bytes, *, average: int = 32 * KIB, key: bytes = KEY) -> list[bytes]:
    """Return the chunks of one window."""
    return [bytes(one) for one in cut_windows([data], average=average, cut_key=key)]


@pytest.mark.parametrize(
    ("size", "average"),
    [
        (0, 32 * KIB),
        (128 * MIB - 1, 32 * KIB),
        (128 * MIB, 128 * KIB),
        (4096 * MIB - 1, 128 * KIB),
        (4096 * MIB, 512 * KIB),
        (2**60, 512 * KIB),
    ],
)
def test_larger_files_have_larger_chunks(size: int, average: int) -> None:
    """A terabyte in small chunks would be more list than content."""
    assert average_for(size) == average
    assert 4 * average <= CHUNK_MAX_BYTES


def test_chunks_lie_between_a_quarter_and_fourfold_of_the_usual_size() -> None:
    """A chunk beyond the limit of the format could not be read (format 4)."""
    chunks = cut(DATA)

    assert all(8 * KIB <= len(one) <= 128 * KIB for one in chunks[:-1])
    assert 24 * KIB <= len(DATA) / len(chunks) <= 56 * KIB


@pytest.mark.parametrize("content", [bytes(2 * MIB), b"a" * (2 * MIB), b"ab" * MIB])
def test_content_without_any_cut_point_is_cut_at_the_greatest_size(content: bytes) -> None:
    """Zeros have no cut points of their own."""
    assert all(len(one) <= 128 * KIB for one in cut(content))


def test_an_insertion_moves_the_cuts_around_it_only() -> None:
    """Otherwise one new line at the top of a log would store all of it again."""
    before = set(cut(DATA))
    after = cut(DATA[:100_000] + b"one more line" + DATA[100_000:])

    assert len([one for one in after if one not in before]) <= 3


def test_another_key_cuts_elsewhere() -> None:
    """Where a public file is cut must not show that it was stored (threat model, T7)."""

    def ends(key: bytes) -> set[int]:
        total, found = 0, set()
        for one in cut(DATA, key=key):
            total += len(one)
            found.add(total)
        return found - {len(DATA)}

    assert ends(KEY) == ends(KEY)
    assert len(ends(KEY) & ends(OTHER_KEY)) <= 3


@pytest.mark.parametrize("page", [512, 4096, 8192, 16_384, 65_536])
def test_databases_are_cut_at_multiples_of_their_page_size(page: int) -> None:
    """A page that changes must change one chunk."""
    size = max(page, 8192)
    data = DATA[: 20 * 65_536 + page]
    chunks = [bytes(one) for one in cut_pages([data[:1000], data[1000:]], page_bytes=page)]

    assert b"".join(chunks) == data
    assert {len(one) for one in chunks[:-1]} == {size}
    assert len(chunks[-1]) <= size


def test_nothing_is_cut_into_nothing() -> None:
    """An empty chunk has no id (format 4)."""
    for windows in ([], [b""], [b"", b""]):
        assert list(cut_windows(windows, average=32 * KIB, cut_key=KEY)) == []
        assert list(cut_pages(windows, page_bytes=4096)) == []
