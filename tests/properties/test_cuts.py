"""Cut points and compression: covering, windowing, keys and bounds for any content."""

import hashlib
from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from durarepo.chunking.chunker import cut_pages, cut_windows
from durarepo.chunking.compression import InflateError, deflate, inflate
from durarepo.core.limits import KIB
from durarepo.sealing import DEFLATED, STORED, compress_frame

AVERAGE = 4 * KIB
KEYS = st.binary(min_size=32, max_size=32)


def noise(seed: int, length: int) -> bytes:
    """Return bytes without any pattern, alike in every run."""
    return hashlib.shake_256(seed.to_bytes(8)).digest(length)


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    """Content of up to 200 KB: random, repeated, or both by turns."""
    parts = []
    for _ in range(draw(st.integers(0, 4))):
        seed = draw(st.integers(0, 2**32))
        length = draw(st.integers(0, 50_000))
        if draw(st.booleans()):
            parts.append(noise(seed, length))
        else:
            parts.append((draw(st.binary(min_size=1, max_size=9)) * length)[:length])
    return b"".join(parts)


def windows_of(data: bytes, ends: list[int]) -> list[bytes]:
    """Return ``data`` in windows that end at some offsets, empty ones included."""
    places = [0, *sorted(min(end, len(data)) for end in ends), len(data)]
    return [data[one:two] for one, two in pairwise(places)]


ENDS = st.lists(st.integers(0, 200_000), max_size=6)


@given(contents(), ENDS, KEYS)
def test_chunks_cover_the_content_wherever_windows_end(
    data: bytes, ends: list[int], key: bytes
) -> None:
    """The length of a read must not show in what is stored, nor lose a byte."""
    whole = [bytes(one) for one in cut_windows([data], average=AVERAGE, cut_key=key)]
    parts = [
        bytes(one) for one in cut_windows(windows_of(data, ends), average=AVERAGE, cut_key=key)
    ]

    assert b"".join(whole) == data
    assert parts == whole
    assert all(KIB <= len(one) <= 4 * AVERAGE for one in whole[:-1])
    assert all(whole)


@given(contents(), ENDS, st.sampled_from((512, 4096, 16_384)))
def test_pages_cover_the_database_wherever_windows_end(
    data: bytes, ends: list[int], page: int
) -> None:
    """A database is put together from its pages in order."""
    whole = [bytes(one) for one in cut_pages([data], page_bytes=page)]
    parts = [bytes(one) for one in cut_pages(windows_of(data, ends), page_bytes=page)]

    assert b"".join(whole) == data
    assert parts == whole
    assert all(end % page == 0 for end in [*accumulate(map(len, whole))][:-1])


@given(st.integers(0, 2**32), KEYS, KEYS)
def test_one_key_cuts_alike_and_two_keys_do_not(seed: int, one: bytes, two: bytes) -> None:
    """Equal cuts under two keys would join what streams hold (threat model, T7)."""
    data = noise(seed, 150_000)

    def ends(key: bytes) -> set[int]:
        chunks = cut_windows([data], average=AVERAGE, cut_key=key)
        return set(accumulate(len(chunk) for chunk in chunks)) - {len(data)}

    assert ends(one) == ends(one)
    if one[:8] != two[:8]:
        assert len(ends(one) & ends(two)) <= len(ends(one)) // 2


@given(contents().filter(len), st.integers(-3, 3))
def test_what_was_deflated_is_inflated_within_its_bound_only(data: bytes, spare: int) -> None:
    """The bound is compared before memory is taken (law 8)."""
    most = len(data) + spare
    try:
        plain = inflate(deflate(data), most=most)
    except InflateError:
        assert spare < 0
    else:
        assert plain == data
        assert spare >= 0


@given(st.binary(max_size=200))
def test_any_bytes_inflate_or_are_refused(data: bytes) -> None:
    """The library's own exceptions must not leave it."""
    try:
        plain = inflate(data, most=100_000)
    except InflateError:
        return
    assert len(plain) <= 100_000


@given(contents().filter(len))
def test_a_frame_is_never_longer_than_its_content(data: bytes) -> None:
    """What does not compress is stored as it is (format 5.2)."""
    compression, payload = compress_frame(data)

    assert len(payload) <= len(data)
    if compression == STORED:
        assert payload == data
    else:
        assert compression == DEFLATED
        assert inflate(payload, most=len(data)) == data
