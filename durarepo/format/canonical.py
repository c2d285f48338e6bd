"""The one deterministic encoding: a small part of CBOR, and a decoder that refuses all else.

`decode` never allocates for a length that the input does not hold, and never recurses deeper
than the format's limit. Values are int, bytes, str, bool, None, list and dict with int keys.
Source: spec/format.md 6.1, spec/ingest.md 1, RFC 8949 4.2.1. Start at `encode` and `decode`.
"""

from collections.abc import Callable
from typing import TypeAlias

from durarepo.core.errors import IntegrityError
from durarepo.core.limits import CBOR_MAX_DEPTH

Value: TypeAlias = int | bytes | str | bool | list["Value"] | dict[int, "Value"] | None

_INT_MIN = -(1 << 63)
_INT_MAX = (1 << 64) - 1
_KEY_MAX = 23
_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _TAG, _SIMPLE = range(8)
_SIMPLE_VALUES: dict[int, bool | None] = {20: False, 21: True, 22: None}
_SIMPLE_BYTES = {value: bytes(((7 << 5) | short,)) for short, value in _SIMPLE_VALUES.items()}
_INLINE_MAX = 23
_WIDTHS = {24: 1, 25: 2, 26: 4, 27: 8}
_LEAST = {24: 24, 25: 1 << 8, 26: 1 << 16, 27: 1 << 32}
_INLINE_HEADS = tuple(bytes((first,)) for first in range(256))
_TOO_LONG = (0, 0)
_FORMS = {
    bits: next((short, width) for short, width in _WIDTHS.items() if bits <= 8 * width)
    for bits in range(1, 65)
}
"""By the bits of a number above 23: the short form of its head, and how many bytes follow."""


def encode_head(major: int, number: int) -> bytes:
    """Return the shortest head of ``major`` type 0 to 7 and its argument, 0 to 2**64 - 1."""
    if 0 <= number <= _INLINE_MAX:
        return _INLINE_HEADS[(major << 5) | number]
    short, width = _FORMS.get(number.bit_length(), _TOO_LONG)
    if not width or number < 0:
        raise ValueError("number outside the format's range")
    return ((((major << 5) | short) << (8 * width)) | number).to_bytes(width + 1)


def encode_int(number: int) -> bytes:
    """Return the encoding of an integer from -2**63 to 2**64 - 1."""
    if not _INT_MIN <= number <= _INT_MAX:
        raise ValueError("integer outside the format's range")
    return encode_head(_UNSIGNED, number) if number >= 0 else encode_head(_NEGATIVE, -1 - number)


def encode_bytes(data: bytes) -> bytes:
    """Return the encoding of a byte string."""
    return encode_head(_BYTES, len(data)) + data


def encode(value: Value) -> bytes:
    """Return the one encoding of ``value``.

    Raises:
        ValueError: an integer or a map key is outside the format's range.
    """
    parts: list[bytes] = []
    _append(parts, value)
    return b"".join(parts)


def _append(parts: list[bytes], value: Value) -> None:
    if value is None or isinstance(value, bool):
        parts.append(_SIMPLE_BYTES[value])
    elif isinstance(value, int):
        parts.append(encode_int(value))
    elif isinstance(value, bytes):
        parts.append(encode_bytes(value))
    elif isinstance(value, str):
        text = value.encode()
        parts.append(encode_head(_TEXT, len(text)) + text)
    elif isinstance(value, list):
        parts.append(encode_head(_ARRAY, len(value)))
        for item in value:
            _append(parts, item)
    else:
        _append_map(parts, value)


def _append_map(parts: list[bytes], value: dict[int, Value]) -> None:
    parts.append(encode_head(_MAP, len(value)))
    for key in sorted(value):
        if not 0 <= key <= _KEY_MAX:
            raise ValueError("map key outside 0 to 23")
        parts.append(bytes((key,)))
        _append(parts, value[key])


def decode(data: bytes) -> Value:
    """Return the value that ``data`` encodes.

    Raises:
        IntegrityError: anything but one canonical item (``cbor-*``, ingest 1).
    """
    try:
        value, end = _item(data, 0, 0)
    except IndexError:  # the one way to read past the end is to look for a first byte there
        raise _refused("length", "encoded item is cut short") from None
    if end != len(data):
        raise _refused("length", "bytes follow the encoded item")
    return value


def decode_array_head(data: bytes, at: int) -> tuple[int, int]:
    """Return how many items the array that begins at ``at`` states, and where they begin.

    Raises:
        IntegrityError: ``cbor-form``: it is no array, or its head is not the shortest.
        IndexError: the input ends before the head.
    """
    major, number = data[at] >> 5, data[at] & 0x1F
    if major != _ARRAY:
        raise _refused("form", "something else stands where an array belongs")
    return (number, at + 1) if number <= _INLINE_MAX else _argument(data, at + 1, number)


def decode_item(data: bytes, at: int, depth: int) -> tuple[Value, int]:
    """Return the item that begins at ``at``, in ``depth`` containers, and where it ends.

    Raises:
        IntegrityError: as `decode`.
        IndexError: the input ends before the item does.
    """
    return _item(data, at, depth)


def _refused(reason: str, message: str) -> IntegrityError:
    return IntegrityError(f"cbor-{reason}", message)


def _item(data: bytes, at: int, depth: int) -> tuple[Value, int]:
    """Return the item that begins at ``at``, and where it ends."""
    first = data[at]
    at += 1
    if first <= _INLINE_MAX:
        return first, at
    major, number = first >> 5, first & 0x1F
    if number > _INLINE_MAX and major != _SIMPLE:
        number, at = _argument(data, at, number)
    if major == _BYTES:  # most of a tree is bytes: one call less for each
        raw = data[at : at + number]
        if len(raw) != number:
            raise _refused("length", "string is longer than the input")
        return raw, at + number
    return _READERS[major](data, at, depth, number)


def _argument(data: bytes, at: int, short: int) -> tuple[int, int]:
    if short not in _WIDTHS:
        raise _refused("form", "indefinite length or reserved head")
    end = at + _WIDTHS[short]
    if end > len(data):
        raise _refused("length", "encoded item is cut short")
    number = int.from_bytes(data[at:end])
    if number < _LEAST[short]:
        raise _refused("form", "head is not in its shortest form")
    return number, end


def _unsigned(_data: bytes, at: int, _depth: int, number: int) -> tuple[Value, int]:
    return number, at


def _negative(_data: bytes, at: int, _depth: int, number: int) -> tuple[Value, int]:
    if number > -1 - _INT_MIN:
        raise _refused("type", "integer below -2^63")
    return -1 - number, at


def _text(data: bytes, at: int, _depth: int, length: int) -> tuple[Value, int]:
    raw = data[at : at + length]
    if len(raw) != length:
        raise _refused("length", "string is longer than the input")
    try:
        return raw.decode(), at + length
    except UnicodeDecodeError:
        raise _refused("text", "text is not UTF-8") from None


def _array(data: bytes, at: int, depth: int, count: int) -> tuple[Value, int]:
    _check_container(data, at, depth, count)
    items: list[Value] = []
    for _ in range(count):
        value, at = _item(data, at, depth + 1)
        items.append(value)
    return items, at


def _map(data: bytes, at: int, depth: int, count: int) -> tuple[Value, int]:
    _check_container(data, at, depth, count)
    fields: dict[int, Value] = {}
    last = -1
    for _ in range(count):
        key = data[at]
        if not last < key <= _KEY_MAX:
            raise _refused("keys", "map keys are not 0 to 23 in ascending order")
        last = key
        fields[key], at = _item(data, at + 1, depth + 1)
    return fields, at


def _check_container(data: bytes, at: int, depth: int, count: int) -> None:
    if depth >= CBOR_MAX_DEPTH:
        raise _refused("depth", f"deeper than {CBOR_MAX_DEPTH}")
    if count > len(data) - at:
        raise _refused("length", "container is longer than the input")


def _tag(_data: bytes, _at: int, _depth: int, _number: int) -> tuple[Value, int]:
    raise _refused("type", "tags are not part of the format")


def _simple(_data: bytes, at: int, _depth: int, number: int) -> tuple[Value, int]:
    if number not in _SIMPLE_VALUES:
        raise _refused("type", "simple value or float that the format does not know")
    return _SIMPLE_VALUES[number], at


_READERS: dict[int, Callable[[bytes, int, int, int], tuple[Value, int]]] = {
    _UNSIGNED: _unsigned,
    _NEGATIVE: _negative,
    _TEXT: _text,
    _ARRAY: _array,
    _MAP: _map,
    _TAG: _tag,
    _SIMPLE: _simple,
}
"""What reads an item behind its head, by major type: (data, at, depth, argument) in."""
