"""The words that every floor shares: names, errors and the progress nobody wants."""

import inspect
import re

import pytest

from durarepo.core import errors
from durarepo.core.errors import DurarepoError, IntegrityError
from durarepo.core.limits import PINS_MAX_COUNT, SIZE_CLASSES, TREE_SPLIT_BYTES
from durarepo.core.names import is_object_name, is_stream_id
from durarepo.core.progress import Progress, SilentProgress

CLASSES: list[type[DurarepoError]] = [
    one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, DurarepoError)
]


@pytest.mark.parametrize("text", ["a" * 64, "0123456789abcdef" * 4])
def test_64_lower_case_hex_digits_are_an_object_name(text: str) -> None:
    """Names are made in one way only (format 2)."""
    assert is_object_name(text)


@pytest.mark.parametrize(
    "text",
    ["", "a" * 63, "a" * 65, "A" * 64, "g" * 64, "a" * 64 + "\n", "\u0660" * 64, "../" + "a" * 61],
)
def test_anything_else_is_none(text: str) -> None:
    """A name becomes a path: nothing else may reach one."""
    assert not is_object_name(text)


@pytest.mark.parametrize("text", ["a", "0", "notes", "a-b-1", "a" * 63])
def test_lower_case_letters_digits_and_hyphens_name_a_stream(text: str) -> None:
    """The id of a stream is part of folders and of what seals are bound to."""
    assert is_stream_id(text)


@pytest.mark.parametrize("text", ["", "-a", "A", "a_b", "a/b", "a.b", "a" * 64, "a\n", "ä", "."])
def test_no_other_text_names_a_stream(text: str) -> None:
    """An id that leads out of its folder would mix streams."""
    assert not is_stream_id(text)


def test_an_error_has_a_code_of_its_family_and_shows_it() -> None:
    """Scripts read the code, people the message."""
    error = IntegrityError("frame-seal", "frame does not open", hint="fetch it again")

    assert error.code == "integrity.frame-seal"
    assert str(error) == "frame does not open [integrity.frame-seal]"
    assert (error.message, error.hint) == ("frame does not open", "fetch it again")
    assert IntegrityError("x", "y").hint == ""


def test_every_error_stands_in_the_drawn_tree_at_its_place() -> None:
    """The tree in the module's first words is what readers learn the classes from."""
    drawn = re.findall(r"^(\s*[│├└─ ]*)(\w+Error)\b", errors.__doc__ or "", re.MULTILINE)
    depth = {name: len(indent) for indent, name in drawn}

    assert {one.__name__ for one in CLASSES} == set(depth)
    for one in CLASSES:
        if one is not DurarepoError:
            assert depth[one.__name__] > depth[one.__bases__[0].__name__]


def test_a_source_error_is_no_store_error_and_no_families_are_shared_across() -> None:
    """Law 6: the two never change places."""
    assert not issubclass(errors.SourceError, errors.StoreError)
    assert not issubclass(errors.StoreError, errors.SourceError)
    for one in CLASSES:
        for two in CLASSES:
            if one.family == two.family:
                assert issubclass(one, two) or issubclass(two, one)


def test_size_classes_ascend_and_hold_what_the_limits_allow() -> None:
    """A limit beyond the largest class could never be reached."""
    assert list(SIZE_CLASSES) == sorted(set(SIZE_CLASSES))
    assert SIZE_CLASSES[5] > PINS_MAX_COUNT * 80
    assert SIZE_CLASSES[-1] > TREE_SPLIT_BYTES


def test_progress_that_nobody_wants_is_not_kept() -> None:
    """It stands in where no one looks, and must take what is told."""
    silent: Progress = SilentProgress()

    silent.update(1, 2, None)

    assert vars(silent) == {}
