"""Signed documents: what both signatures cover, and the padding around."""

import pytest

from durarepo.core.errors import IntegrityError
from durarepo.format.canonical import Value, encode
from durarepo.format.document import pad_document, parse_document, signed_bytes, unpad_document


def test_the_signed_bytes_are_those_of_dsse() -> None:
    """Another tool that knows DSSE has to come to the same bytes."""
    assert signed_bytes("durarepo/1/manifest", b"abc") == (b"DSSEv1 19 durarepo/1/manifest 3 abc")
    assert signed_bytes("é", b"") == "DSSEv1 2 é 0 ".encode()


@pytest.mark.parametrize(
    "value",
    [
        [],
        ["t", b"s", bytes(64)],
        ["t", b"s", bytes(63), bytes(3309)],
        ["t", b"s", bytes(64), bytes(3308)],
        [b"t", b"s", bytes(64), bytes(3309)],
        ["t", "s", bytes(64), bytes(3309)],
        ["t", b"s", bytes(64), bytes(3309), None],
        {0: "t", 1: b"s", 2: bytes(64), 3: bytes(3309)},
        None,
        7,
    ],
)
def test_a_document_of_another_form_is_refused(value: Value) -> None:
    """Nothing is looked up or verified for what is no document (ingest 3.6, 4.8)."""
    with pytest.raises(IntegrityError) as caught:
        parse_document(encode(value))

    assert caught.value.code == "integrity.document"


@pytest.mark.parametrize(
    "padded",
    [
        b"",
        b"\0\0\0",
        b"\0\0\0\1",
        b"\0\0\0\2x",
        b"\xff\xff\xff\xffxx",
        b"\0\0\0\1x\1",
        b"\0\0\0\0\7",
    ],
)
def test_padding_that_is_not_zeros_of_the_declared_length_is_refused(padded: bytes) -> None:
    """Bytes that nobody reads could carry what nobody signed (ingest 3.5, 4.7)."""
    with pytest.raises(IntegrityError) as caught:
        unpad_document(padded)

    assert caught.value.code == "integrity.padding"


def test_a_document_may_take_all_the_room_that_there_is() -> None:
    """The largest that fits a size must come back from it."""
    for size in (7, 8, 9):
        assert unpad_document(pad_document(b"123", size)) == b"123"


def test_a_document_that_does_not_fit_is_a_mistake_of_the_caller() -> None:
    """A cut document would be sealed and found unreadable on the worst day."""
    with pytest.raises(ValueError, match="negative"):
        pad_document(b"12345", 8)
