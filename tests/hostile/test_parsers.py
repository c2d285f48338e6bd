"""Foreign bytes give a value or a `DurarepoError`, in bounded time and memory, and nothing else.

A usual run makes 400 tries of every parser by mutated bytes and, where the input is encoded, 400
more by mutated values (fewer where a try costs a key exchange; see `Target.rounds`).
DURAREPO_HOSTILE_FACTOR multiplies them, DURAREPO_HOSTILE_SEED chooses others; both are for tests
only. A failure prints the seed and the input.
"""

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durarepo.core.errors import IntegrityError
from durarepo.core.limits import MIB, SIZE_CLASSES
from durarepo.format.canonical import Value, decode, encode
from tests.doubles.children import run_in_child
from tests.hostile.mutation import draws, mutated_bytes, mutated_value
from tests.hostile.target import Target, both_ways, check_answer
from tests.hostile.targets import ENCODED_NAMES, NAMES, targets

FACTOR = int(os.environ.get("DURAREPO_HOSTILE_FACTOR", "1"))
SEED = int(os.environ.get("DURAREPO_HOSTILE_SEED", "20261"))
HEAVY_BYTES = 8 * MIB if FACTOR > 1 else MIB
"""Length of heavy inputs: 8 MiB is the longest that a chunk may be."""
ROOM_BYTES = 128 * HEAVY_BYTES
"""A parser may take so much memory beside what the process has."""
CPU_SECONDS = 600
"""So long may all parsers together take for one input; a loop without end takes longer."""
FORGIVING = {
    "checked.json", "current", "verified.json", "lock", "made.jsonl", "parse_ignore",
    "parse_mountinfo", "is_sqlite", "remotes.json", "failed.json",
}  # fmt: skip
"""Damage counts as nothing here, and is never an error."""


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Target]:
    """Give all parsers by name; to make their inputs takes longer than to try some."""
    return {one.name: one for one in targets(tmp_path_factory.mktemp("targets"))}


@pytest.fixture
def target(request: pytest.FixtureRequest, every: dict[str, Target]) -> Target:
    """Give one parser by its name."""
    return every[request.param]


def test_every_parser_has_a_name_here(tmp_path: Path) -> None:
    """A target that no parameter names would never be tried."""
    every = targets(tmp_path)

    assert tuple(one.name for one in every) == NAMES
    assert tuple(one.name for one in every if one.is_encoded) == ENCODED_NAMES


@pytest.mark.parametrize("target", NAMES, indirect=True)
def test_what_is_good_is_taken(target: Target) -> None:
    """Mutations of something that is refused anyway would test little."""
    taken = [check_answer(target, seed, "unchanged") for seed in target.seeds]

    assert any(taken)


@pytest.mark.parametrize("target", NAMES, indirect=True)
def test_mutated_bytes_are_refused_in_our_own_words(target: Target) -> None:
    """An exception of another kind is exit code 70 at best, and a way in at worst."""
    rng = draws(f"{SEED} {target.name}")
    refused = 0

    for number in range(target.rounds * FACTOR):
        data = mutated_bytes(rng, target.seeds)
        refused += not check_answer(target, data, f"seed {SEED}, try {number}")

    assert refused > 0 or target.name in FORGIVING


@pytest.mark.parametrize("target", ENCODED_NAMES, indirect=True)
def test_mutated_values_are_refused_in_our_own_words(target: Target) -> None:
    """Well-formed encodings of wrong things reach past the decoder."""
    rng = draws(f"{SEED} values {target.name}")
    refused = 0

    for number in range(target.rounds * FACTOR):
        data = mutated_value(rng, target.seeds)
        refused += not check_answer(target, data, f"seed {SEED}, value {number}")

    assert refused > 0 or target.name == "decode"


@pytest.mark.parametrize("target", NAMES, indirect=True)
@pytest.mark.parametrize("length", [0, 1, 31, 33, 4096, SIZE_CLASSES[0]])
def test_zeros_and_noise_of_any_length_are_no_surprise(target: Target, length: int) -> None:
    """Empty and short inputs are where an index runs off its end."""
    rng = draws(f"{SEED} noise {length}")

    for data in (bytes(length), b"\xff" * length, rng.randbytes(length), b"\n" * length):
        check_answer(target, data, f"noise of {length}")


VALUES: st.SearchStrategy[Value] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**63), max_value=2**64 - 1)
    | st.binary(max_size=70)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.integers(0, 23), inner, max_size=6)
    ),
    max_leaves=30,
)


@given(value=VALUES)
def test_every_value_is_decoded_to_itself_and_refused_by_the_rest(
    tmp_path_factory: pytest.TempPathFactory, value: Value
) -> None:
    """One encoding for one value, or two manifests could differ and have one digest."""
    data = encode(value)

    assert decode(data) == value
    assert encode(decode(data)) == data
    for target in ENCODED or _remember(tmp_path_factory):
        check_answer(target, data, "a value")


@given(data=st.binary(max_size=300))
def test_whatever_is_decoded_encodes_to_the_same_bytes(data: bytes) -> None:
    """A second spelling of one value would be a second name for one tree."""
    try:
        value = decode(data)
    except IntegrityError as error:
        assert error.code.startswith("integrity.cbor-")
    else:
        assert encode(value) == data


ENCODED: list[Target] = []


def _remember(factory: pytest.TempPathFactory) -> list[Target]:
    ENCODED.extend(one for one in targets(factory.mktemp("targets")) if one.is_encoded)
    return ENCODED


def bombs() -> dict[str, bytes]:
    """Return inputs that promise much or that are as heavy as an input may be."""
    most = HEAVY_BYTES
    many = b"\x9a" + (most - 16).to_bytes(4)
    return {
        "an array of 2^63 items": b"\x9b" + b"\x7f" * 8,
        "a string of 2^63 bytes": b"\x5b" + b"\x7f" * 8,
        "levels without number": b"\x81" * most + b"\x80",
        "levels of maps without number": b"\xa1\x00" * (most // 2) + b"\x80",
        "arrays of arrays that promise all the rest": b"\x99\xff\xff" * 20_000,
        "numbers all through": many + b"\x00" * (most - 16),
        "a leaf of numbers": b"\x82\x00" + many + b"\x00" * (most - 16),
        "a node of numbers": b"\x82\x01" + many + b"\x00" * (most - 16),
        "a table of frames that are not there": bytes(32) + b"\0\0\x12\x81" + b"\xff" * 8,
        "one line without an end": b"#" * most,
        "only line feeds": b"\n" * most,
        "only opening brackets": b"[" * most,
        "only opening braces": b'{"a":' * (most // 5),
    }


@pytest.mark.parametrize("name", list(bombs()))
def test_no_input_takes_more_memory_or_time_than_it_should(name: str, tmp_path: Path) -> None:
    """One manifest must not take a small machine down; the kernel ends a child that tries."""
    data = bombs()[name]
    every = targets(tmp_path)

    def try_all() -> None:
        sys.setrecursionlimit(1000)
        _limit(resource.RLIMIT_AS, _address_space() + ROOM_BYTES)
        _limit(resource.RLIMIT_CPU, CPU_SECONDS)
        for target in every:
            check_answer(target, data, name)

    run_in_child(try_all)


def _limit(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    resource.setrlimit(which, (most, hard))


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def test_the_suite_sees_a_parser_that_breaks() -> None:
    """A harness that swallows everything would be green for ever."""
    broken: Callable[[bytes], object] = lambda data: data[100]  # noqa: E731
    target = Target(name="broken", parse=broken, seeds=(b"x",))

    with pytest.raises(AssertionError, match="IndexError"):
        check_answer(target, b"x", "a try")


def test_the_suite_sees_a_parser_that_takes_too_much() -> None:
    """Two spellings of one value are two names for it, and no crash tells of them."""
    lax = Target(name="lax", parse=both_ways(bytes.strip, bytes), seeds=(b"x",))

    assert check_answer(lax, b"x", "a try")
    with pytest.raises(AssertionError, match="LawError"):
        check_answer(lax, b"x ", "a try")
