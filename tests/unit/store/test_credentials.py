"""The one line of a credentials file."""

import base64

import pytest

from durarepo.core.errors import KeyMaterialError
from durarepo.store.credentials import parse_credentials


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"bearer abc-DEF_123.~+/=", b"Bearer abc-DEF_123.~+/="),
        (b"bearer abc\n", b"Bearer abc"),
        (b"basic user:pass word:x\n", b"Basic " + base64.b64encode(b"user:pass word:x")),
    ],
)
def test_a_line_becomes_the_value_of_a_field(data: bytes, value: bytes) -> None:
    """What the operator wrote is what the server gets."""
    assert parse_credentials(data).reveal() == value


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\n", b"hunter2", b"bearer ", b"bearer hunter2\r\n", b"bearer hunter2\nX: y\n",
        b"bearer hun ter2", b"Bearer hunter2", b"basic hunter2", b"basic :hunter2",
        b"basic hun\nter2:x", b"bearer hunter2\n\n", b"bearer \xff", b"bearer " + b"a" * 5000,
    ],
)  # fmt: skip
def test_anything_else_is_refused_and_never_repeated(data: bytes) -> None:
    """A line break in a token would be a field of its own in the request."""
    with pytest.raises(KeyMaterialError) as caught:
        parse_credentials(data)

    assert caught.value.code == "keys.malformed"
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"
