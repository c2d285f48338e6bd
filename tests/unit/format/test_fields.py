"""Typed access to decoded values: what each getter gives, and what it refuses."""

from collections.abc import Callable

import pytest

from durarepo.core.errors import IntegrityError
from durarepo.format.canonical import Value
from durarepo.format.fields import Fields


def of(value: Value) -> Fields:
    """Return a map whose only field is ``value``."""
    return Fields({0: value}, reason="thing", what="thing", required=(0,), optional=(1,))


@pytest.mark.parametrize("value", [{}, {1: 0}, {0: 0, 2: 0}, [], None, 0, b"", "x", True])
def test_a_map_has_all_fields_that_it_must_and_none_that_it_may_not(value: Value) -> None:
    """An unknown field is something that a newer writer meant and this reader would miss."""
    with pytest.raises(IntegrityError) as caught:
        Fields(value, reason="thing", what="thing", required=(0,), optional=(1,))

    assert caught.value.code == "integrity.thing"


def test_an_optional_field_is_known_to_be_there_or_not() -> None:
    """A field that is absent must not be read as one that is there."""
    fields = Fields({0: 5, 1: 6}, reason="thing", what="thing", required=(0,), optional=(1, 2))

    assert [fields.has(key) for key in (0, 1, 2)] == [True, True, False]
    assert fields.raw(1) == 6


@pytest.mark.parametrize(
    ("get", "good"),
    [
        (lambda f: f.uint(0), 7),
        (lambda f: f.uint(0, 7, 7), 7),
        (lambda f: f.uint(0), 0),
        (lambda f: f.uint(0), 2**64 - 1),
        (lambda f: f.flag(0), False),
        (lambda f: f.blob(0), b""),
        (lambda f: f.blob(0, 2), b"ab"),
        (lambda f: f.blob(0, most=2), b"ab"),
        (lambda f: f.blob(0, most=2), b"a"),
        (lambda f: f.text(0), "ab"),
        (lambda f: f.maybe_blob(0, 2), b"ab"),
        (lambda f: f.maybe_blob(0, 2), None),
        (lambda f: f.items(0), [1, 2]),
        (lambda f: f.items(0, 2), [1, 2]),
        (lambda f: f.array(f.raw(0), 2), [1, 2]),
    ],
)
def test_a_getter_gives_what_has_its_type_and_bounds(
    get: Callable[[Fields], object], good: Value
) -> None:
    """A getter that refuses what is good makes a repository unreadable."""
    assert get(of(good)) == good


@pytest.mark.parametrize(
    ("get", "bad"),
    [
        (lambda f: f.uint(0), -1),
        (lambda f: f.uint(0), 2**64),
        (lambda f: f.uint(0), True),
        (lambda f: f.uint(0), None),
        (lambda f: f.uint(0), b"\x01"),
        (lambda f: f.uint(0, 6), 7),
        (lambda f: f.uint(0, 9, 8), 7),
        (lambda f: f.number(f.raw(0), 5, -5), -6),
        (lambda f: f.flag(0), 1),
        (lambda f: f.flag(0), None),
        (lambda f: f.blob(0), "ab"),
        (lambda f: f.blob(0, 2), b"abc"),
        (lambda f: f.blob(0, most=2), b""),
        (lambda f: f.blob(0, most=2), b"abc"),
        (lambda f: f.text(0), b"ab"),
        (lambda f: f.maybe_blob(0, 2), b"a"),
        (lambda f: f.maybe_blob(0, 2), False),
        (lambda f: f.items(0), {}),
        (lambda f: f.items(0), b"ab"),
        (lambda f: f.items(0, 1), [1, 2]),
        (lambda f: f.array(f.raw(0), 3), [1, 2]),
        (lambda f: f.ascending([b"a", b"a"]), 0),
        (lambda f: f.ascending([b"b", b"a"]), 0),
    ],
)
def test_a_getter_refuses_everything_else_with_the_reason_of_its_map(
    get: Callable[[Fields], object], bad: Value
) -> None:
    """Only a durarepo error may come of hostile bytes, and its code names the table."""
    with pytest.raises(IntegrityError) as caught:
        get(of(bad))

    assert caught.value.code == "integrity.thing"


def test_items_in_order_come_back_as_they_are() -> None:
    """Order is compared byte by byte, as the format says."""
    assert of(0).ascending([b"", b"\x00", b"a", b"a\x00", b"\xff"]) == [
        b"",
        b"\x00",
        b"a",
        b"a\x00",
        b"\xff",
    ]
