"""The one encoding: what is refused, with which code, and at what cost."""

import tracemalloc

import pytest

from durarepo.core.errors import IntegrityError
from durarepo.core.limits import CBOR_MAX_DEPTH
from durarepo.format.canonical import (
    decode,
    decode_array_head,
    encode,
    encode_head,
    encode_int,
)


def refusal(data: bytes) -> str:
    """Return the code with which some bytes are refused."""
    with pytest.raises(IntegrityError) as caught:
        decode(data)
    return caught.value.code


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (23, "17"),
        (24, "1818"),
        (255, "18ff"),
        (256, "190100"),
        (65_535, "19ffff"),
        (65_536, "1a00010000"),
        (2**32 - 1, "1affffffff"),
        (2**32, "1b0000000100000000"),
        (2**64 - 1, "1bffffffffffffffff"),
        (-1, "20"),
        (-24, "37"),
        (-25, "3818"),
        (-(2**63), "3b7fffffffffffffff"),
    ],
)
def test_integers_have_the_heads_of_rfc_8949(number: int, encoded: str) -> None:
    """Readers in other languages follow the RFC, not this module."""
    assert encode_int(number).hex() == encoded
    assert decode(bytes.fromhex(encoded)) == number


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ("", "cbor-length"),
        ("18", "cbor-length"),
        ("19ff", "cbor-length"),
        ("1bffffffffffffff", "cbor-length"),
        ("41", "cbor-length"),
        ("6261", "cbor-length"),
        ("5bffffffffffffffff00", "cbor-length"),
        ("7bffffffffffffffff00", "cbor-length"),
        ("9bffffffffffffffff00", "cbor-length"),
        ("bbffffffffffffffff00", "cbor-length"),
        ("82", "cbor-length"),
        ("8200", "cbor-length"),
        ("a1", "cbor-length"),
        ("a100", "cbor-length"),
        ("a2000001", "cbor-length"),
        ("0000", "cbor-length"),
        ("1817", "cbor-form"),
        ("1900ff", "cbor-form"),
        ("1a0000ffff", "cbor-form"),
        ("1b00000000ffffffff", "cbor-form"),
        ("1c", "cbor-form"),
        ("1f", "cbor-form"),
        ("5800", "cbor-form"),
        ("5fff", "cbor-form"),
        ("9fff", "cbor-form"),
        ("bfff", "cbor-form"),
        ("dc", "cbor-form"),
        ("c000", "cbor-type"),
        ("d82000", "cbor-type"),
        ("f7", "cbor-type"),
        ("f8ff", "cbor-type"),
        ("f93c00", "cbor-type"),
        ("fb3ff0000000000000", "cbor-type"),
        ("ff", "cbor-type"),
        ("3b8000000000000000", "cbor-type"),
        ("a2010001", "cbor-keys"),
        ("a2010000", "cbor-keys"),
        ("a201000100", "cbor-keys"),
        ("a11800", "cbor-keys"),
        ("a1181800", "cbor-keys"),
        ("a1410000", "cbor-keys"),
        ("a12000", "cbor-keys"),
        ("61ff", "cbor-text"),
        ("63eda080", "cbor-text"),
        ("62c080", "cbor-text"),
    ],
)
def test_what_is_not_canonical_is_refused_with_the_code_of_its_step(data: str, code: str) -> None:
    """Each step of spec/ingest.md 1 has one code, which vectors and scripts rely on."""
    assert refusal(bytes.fromhex(data)) == f"integrity.{code}"


def test_depth_is_bounded_at_the_format_s_limit() -> None:
    """One level more, and a hostile object decides how deep the stack goes (law 8)."""
    deepest = b"\x81" * CBOR_MAX_DEPTH + b"\x00"

    assert decode(deepest) is not None
    assert refusal(b"\x81" + deepest) == "integrity.cbor-depth"
    assert refusal(b"\xa1\x00" * (CBOR_MAX_DEPTH + 1) + b"\x00") == "integrity.cbor-depth"
    assert refusal(b"\x81" * 8_000_000) == "integrity.cbor-depth"


@pytest.mark.parametrize("head", ["9a00800000", "ba00800000", "5a00800000", "7a00800000"])
def test_no_memory_is_taken_for_a_length_that_is_only_declared(head: str) -> None:
    """What declares more than the input holds is not even begun with (law 8)."""
    data = bytes.fromhex(head) + b"\x80" * 200_000
    tracemalloc.start()
    try:
        assert refusal(data) == "integrity.cbor-length"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 1_000_000  # the lists alone would take 11 MB


def test_a_boolean_is_not_a_number() -> None:
    """In Python true equals 1; in the encoding they are two things."""
    assert encode([True]) != encode([1])
    assert decode(encode([True, 1, False, 0, None])) == [True, 1, False, 0, None]
    assert type(decode(encode(1))) is int


@pytest.mark.parametrize("count", [0, 1, 22, 23, 24, 255, 256, 65536])
def test_the_head_of_an_array_says_how_many_items_follow(count: int) -> None:
    """A leaf is read item by item behind its head; one misread head costs the quick way."""
    head = encode_head(4, count)

    assert decode_array_head(head, 0) == (count, len(head))


def test_maps_are_written_in_the_order_of_their_keys() -> None:
    """The order in which a program fills a map must not reach the bytes."""
    assert encode({3: 1, 0: 2}) == encode({0: 2, 3: 1}) == bytes.fromhex("a200020301")


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, [2**64], {24: 0}, {-1: 0}, "\ud800"])
def test_what_has_no_encoding_is_a_mistake_of_the_caller(value: object) -> None:
    """A value outside the format must not become bytes that no reader takes."""
    with pytest.raises(ValueError, match=r"."):
        encode(value)  # type: ignore[arg-type]  # some of these are no values at all


@pytest.mark.parametrize("number", [-1, -300, 2**64])
def test_a_head_holds_no_number_outside_its_range(number: int) -> None:
    """A wrong head would be another item."""
    with pytest.raises(ValueError, match="range"):
        encode_head(2, number)
