"""Patterns of `.durarepoignore` mean what gitignore says, and none of them runs away."""

import resource
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durarepo.policy.ignorefile import IGNORE_LINE_MAX_BYTES, is_ignored, parse_ignore
from tests.doubles.children import run_in_child

CPU_SECONDS = 60
"""So long may all patterns of one test take together; one that runs away takes for ever."""
WORDS = (b"*", b"?", b"a", b"b", b"ab", b"/", b"**/", b"/**", b"/**/")


def is_left_out(pattern: bytes, path: bytes) -> bool:
    """Ask a file of one pattern in the folder above the path."""
    return is_ignored([parse_ignore(pattern, b"/r")], b"/r/" + path, is_folder=True)


def fits(pattern: bytes, path: bytes) -> bool:
    """Say slowly what gitignore(5) says of patterns made of `WORDS`."""
    pattern = pattern.rstrip(b"/")
    is_anchored = b"/" in pattern
    parts = pattern.removeprefix(b"/").split(b"/")
    if parts == [b""]:
        return False
    wanted = parts if is_anchored else [b"**", *parts]
    return _fits(tuple(wanted), tuple(path.split(b"/")))


@cache
def _fits(wanted: tuple[bytes, ...], names: tuple[bytes, ...]) -> bool:
    if not wanted:
        return not names
    if wanted[0] == b"**" and len(wanted) > 1:
        return any(_fits(wanted[1:], names[at:]) for at in range(len(names) + 1))
    if wanted[0] == b"**":
        return bool(names)
    return bool(names) and _fits_name(wanted[0], names[0]) and _fits(wanted[1:], names[1:])


@cache
def _fits_name(wanted: bytes, name: bytes) -> bool:
    if not wanted:
        return not name
    if wanted[:1] == b"*":
        return any(_fits_name(wanted[1:], name[at:]) for at in range(len(name) + 1))
    return bool(name) and wanted[:1] in (b"?", name[:1]) and _fits_name(wanted[1:], name[1:])


@pytest.mark.parametrize("pattern", [b"**/**/*", b"**/**/a", b"/**/**/**/a", b"**/**/**"])
def test_two_stars_twice_mean_what_they_mean_once(pattern: bytes) -> None:
    """A file at the top must not slip past a pattern that names every folder twice."""
    assert is_left_out(pattern, b"a")


@given(
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=8),
    names=st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=6),
)
def test_a_pattern_means_what_git_says(words: list[bytes], names: list[str]) -> None:
    """What is matched only where it first fits must be matched wherever it may fit."""
    pattern, path = b"".join(words), "/".join(names).encode()
    if b"//" in pattern or b"***" in pattern or pattern.strip(b"/") == b"**":
        return  # git itself is not of one mind here

    assert is_left_out(pattern, path) == fits(pattern, path), (pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (b"*a" * 60 + b"b", b"a" * 255),
        (b"**/a/" * 60 + b"b", b"a/" * 2000 + b"a"),
        (b"**/*a*a*a/" * 40 + b"b", b"aaaaaa/" * 500 + b"a"),
        (b"*a" * 60 + b"/b", b"a/" * 2000),
        (b"x/**/" + b"*?" * 60 + b"b", b"x/" + b"a" * 4000),
        (b"[" * 1_000_000, b"a"),
        ((b"[" * (IGNORE_LINE_MAX_BYTES - 2) + b"\\]\n") * 60, b"a"),
    ],
    ids=["stars", "folders", "both", "below", "marks", "long", "open classes"],
)
def test_no_pattern_runs_away(pattern: bytes, path: bytes) -> None:
    """Who can write one line into a root must not be able to stop its backup."""

    def ask() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        assert not is_left_out(pattern, path)

    run_in_child(ask)


def test_a_line_longer_than_any_pattern_leaves_nothing_out() -> None:
    """A line that would take long to read must not be read, nor end what stands behind it."""
    longest = b"[a]" * (IGNORE_LINE_MAX_BYTES // 3)
    name = b"a" * (IGNORE_LINE_MAX_BYTES // 3)

    assert is_left_out(longest, name)
    assert not is_left_out(longest + b"[a]", name + b"a")
    assert is_left_out(longest + b"[a]\nb", b"b")
