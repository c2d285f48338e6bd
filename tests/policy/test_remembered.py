"""A scan that remembers: whatever is changed, what it passes over holds nothing."""
# ruff: noqa: S311 - seeds of a test

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durarepo.policy.decide import ContentPolicy
from durarepo.policy.remembered import PART_BYTES, RememberedScan, ScanMemory
from durarepo.policy.scanner import RE2, open_engine
from durarepo.policy.scanning import OVERLAP_BYTES, Scan
from tests.policy.fresh import begin, text

POLICY = ContentPolicy(open_engine(RE2))
PARTS = 12


def prose(draw: random.Random, size: int) -> bytes:
    """Return harmless lines, no two alike."""
    lines = (b"%d said %d\n" % (draw.getrandbits(40), number) for number in range(size // 8))
    return b"".join(lines)[:size]


def fed(scan: Scan | RememberedScan, data: bytes, step: int) -> bool:
    """Feed a content in steps; return whether nothing was found."""
    for at in range(0, len(data), step):
        scan.feed(data[at : at + step])
    return scan.finish().is_clean


def remembered(data: bytes, noted: bytes, step: int) -> tuple[bool, ScanMemory]:
    """Scan with a memory; return whether nothing was found, and the memory."""
    memory = ScanMemory(noted)
    return fed(memory.scan(POLICY.start_scan), data, step), memory


def token(draw: random.Random) -> bytes:
    """Return a fresh token of known form."""
    return b" gh" + b"p_" + text(draw, 36).encode() + b" "


@st.composite
def changes(draw: st.DrawFn) -> tuple[bytes, bytes, int]:
    """Draw a content that holds halves of tokens, the same after edits, and how it is read."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    before = prose(rng, PARTS * PART_BYTES + draw(st.integers(0, 99)))
    one = token(rng)
    half = draw(st.integers(1, len(one) - 1))
    spots = st.integers(0, len(before) - 1) | st.builds(
        lambda part, shift: max(0, part * PART_BYTES + shift),
        st.integers(0, PARTS),
        st.integers(-99, 99),
    )
    at, gap = draw(spots), draw(st.sampled_from((1, 7, 900, PART_BYTES, 3 * PART_BYTES)))
    stood = before[: at - half] + one[:half] + prose(rng, gap) + one[half:] + before[at:]
    after = stood
    for _ in range(draw(st.integers(0, 3))):
        where, length = draw(spots), draw(st.sampled_from((0, 1, 40, PART_BYTES, 2 * PART_BYTES)))
        new = prose(rng, draw(st.sampled_from((0, length, 3, PART_BYTES))))
        after = after[:where] + new + after[where + length :]
    place = after.find(one[:half]) + half
    if draw(st.booleans()):  # the halves come together
        after = after[:place] + after[place + gap :]
    elif draw(st.booleans()):
        after = after[:place] + one + after[place:]
    return stood, after, draw(st.sampled_from((PART_BYTES, 8 * PART_BYTES, 10_007)))


@settings(deadline=None, max_examples=150)
@given(change=changes())
def test_what_a_whole_scan_finds_is_found_by_one_that_remembers(
    change: tuple[bytes, bytes, int],
) -> None:
    """A token that an edit made, or joined, would be stored as having been looked at (A2a)."""
    before, after, step = change
    was_clean, memory = remembered(before, b"", step)
    assert was_clean == fed(POLICY.start_scan(), before, step)
    assert not memory.has_skipped
    if not was_clean:
        return

    is_clean, _ = remembered(after, memory.encode(), step)

    if is_clean:
        assert fed(POLICY.start_scan(), after, step)


@pytest.mark.parametrize("half", range(2, 24))
def test_a_token_that_comes_to_stand_across_two_parts_is_found(half: int) -> None:
    """Of two parts that follow each other anew, neither is new."""
    draw = random.Random(half)
    one = token(draw)
    parts = [prose(draw, PART_BYTES) for _ in range(9)]
    parts[2] = parts[2][:-half] + one[:half]
    parts[6] = one[half:] + parts[6][len(one) - half :]
    was_clean, memory = remembered(b"".join(parts), b"", PART_BYTES)
    del parts[3:6]

    is_clean, again = remembered(b"".join(parts), memory.encode(), PART_BYTES)

    assert (was_clean, is_clean, again.has_skipped) == (True, False, True)


def test_only_what_changed_is_scanned_again() -> None:
    """A database of gigabytes in which one row changes costs no scan of gigabytes."""
    draw = random.Random(1)
    parts = [prose(draw, PART_BYTES) for _ in range(40)]
    _, memory = remembered(b"".join(parts), b"", 8 * PART_BYTES)
    parts[20] = prose(draw, PART_BYTES)
    scans: list[Scan] = []
    sizes: list[int] = []

    class Counted(Scan):
        """A scan that tells how much it was fed."""

        def feed(self, data: bytes) -> None:
            sizes.append(len(data))
            super().feed(data)

    def start() -> Scan:
        scans.append(Counted(POLICY._rules, POLICY._engine))
        return scans[-1]

    again = ScanMemory(memory.encode())
    assert fed(again.scan(start), b"".join(parts), 8 * PART_BYTES)

    assert again.has_skipped
    assert PART_BYTES + 2 * OVERLAP_BYTES <= sum(sizes) <= 4 * PART_BYTES + 2 * OVERLAP_BYTES
    unchanged = ScanMemory(again.encode())
    assert fed(unchanged.scan(start), b"".join(parts), PART_BYTES)
    assert len(scans) == 1


def test_a_content_of_another_shape_is_scanned_whole() -> None:
    """The same bytes, read as pages of another size, hold other cells."""
    data = prose(random.Random(2), 3 * PART_BYTES)
    memory = ScanMemory()
    fed(memory.scan(POLICY.start_scan, shape=b"4096"), data, PART_BYTES)

    other = ScanMemory(memory.encode())
    fed(other.scan(POLICY.start_scan, shape=b"8192"), data, PART_BYTES)
    same = ScanMemory(memory.encode())
    fed(same.scan(POLICY.start_scan, shape=b"4096"), data, PART_BYTES)

    assert (other.has_skipped, same.has_skipped) == (False, True)


def test_a_content_with_wide_text_is_never_remembered() -> None:
    """Where text is wide, every cell is looked at; a memory would not know where it was."""
    wide = prose(random.Random(3), 900).decode().encode("utf-16-le")
    data = prose(random.Random(4), PART_BYTES) + wide

    _, memory = remembered(data, b"", PART_BYTES)

    assert memory.encode() == b""


def test_what_an_engine_saw_is_told_by_its_place_in_the_whole() -> None:
    """Cells are looked at by it; one taken from another place would be passed over."""
    draw = random.Random(5)
    data = prose(draw, 9 * PART_BYTES)
    _, memory = remembered(data, b"", PART_BYTES)
    at = 5 * PART_BYTES + 77
    data = data[:at] + begin("PRIVATE KEY").encode() + data[at + 40 :]

    scan = ScanMemory(memory.encode()).scan(POLICY.start_scan)
    assert not fed(scan, data, PART_BYTES)

    assert any(start <= at < stop for start, stop in scan.seen)
    assert all(start <= stop for start, stop in scan.seen)
    assert all(one[0] >= 4 * PART_BYTES - OVERLAP_BYTES for one, _ in pairwise(scan.seen))
