"""The one deterministic encoding: a small part of CBOR, and a decoder that refuses all else.

`decode` never allocates for a length that the input does not hold, and never recurses deeper
than the format's limit. Values are int, bytes, str, bool, None, list and dict with int keys.
Source: spec/format.md 6.1, spec/ingest.md 1, RFC 8949 4.2.1. Start at `encode` and `decode`.
"""

from typing import TypeAlias

from durarepo.core.errors import IntegrityError
from durarepo.core.limits import CBOR_MAX_DEPTH

Value: TypeAlias = int | bytes | str | bool | list["Value"] | dict[int, "Value"] | None

_INT_MIN = -(1 << 63)
_INT_MAX = (1 << 64) - 1
_KEY_MAX = 23
_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _SIMPLE = 0, 1, 2, 3, 4, 5, 7
_SIMPLE_VALUES: dict[int, bool | None] = {20: False, 21: True, 22: None}
_SIMPLE_BYTES = {value: bytes(((7 << 5) | short,)) for short, value in _SIMPLE_VALUES.items()}
_INLINE_MAX = 23
_WIDTHS = {24: 1, 25: 2, 26: 4, 27: 8}


def encode_head(major: int, number: int) -> bytes:
    """Return the shortest head of ``major`` type 0 to 7 and its argument."""
    top = major << 5
    if number <= _INLINE_MAX:
        return bytes((top | number,))
    for short, width in _WIDTHS.items():
        if number >> (8 * width) == 0:
            return bytes((top | short,)) + number.to_bytes(width)
    raise ValueError("number outside the format's range")


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
    value, end = _Decoder(data).item(0, 0)
    if end != len(data):
        raise _refused("length", "bytes follow the encoded item")
    return value


def _refused(reason: str, message: str) -> IntegrityError:
    return IntegrityError(f"cbor-{reason}", message)


class _Decoder:
    """One pass over one input; positions are offsets into it."""

    __slots__ = ("_data", "_end")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._end = len(data)

    def item(self, at: int, depth: int) -> tuple[Value, int]:
        if at >= self._end:
            raise _refused("length", "encoded item is cut short")
        first = self._data[at]
        major, short = first >> 5, first & 0x1F
        if major == _SIMPLE:
            if short not in _SIMPLE_VALUES:
                raise _refused("type", "simple value or float that the format does not know")
            return _SIMPLE_VALUES[short], at + 1
        number, at = (short, at + 1) if short <= _INLINE_MAX else self._argument(at, short)
        if major == _UNSIGNED:
            return number, at
        if major == _NEGATIVE:
            if number > -1 - _INT_MIN:
                raise _refused("type", "integer below -2^63")
            return -1 - number, at
        if major in (_BYTES, _TEXT):
            return self._string(major, at, number)
        return self._container(major, at, number, depth)

    def _argument(self, at: int, short: int) -> tuple[int, int]:
        if short not in _WIDTHS:
            raise _refused("form", "indefinite length or reserved head")
        width = _WIDTHS[short]
        end = at + 1 + width
        if end > self._end:
            raise _refused("length", "encoded item is cut short")
        number = int.from_bytes(self._data[at + 1 : end])
        if number <= _INLINE_MAX or (width > 1 and number < 1 << (4 * width)):
            raise _refused("form", "head is not in its shortest form")
        return number, end

    def _string(self, major: int, at: int, length: int) -> tuple[Value, int]:
        end = at + length
        if end > self._end:
            raise _refused("length", "string is longer than the input")
        raw = self._data[at:end]
        if major == _BYTES:
            return raw, end
        try:
            return raw.decode(), end
        except UnicodeDecodeError:
            raise _refused("text", "text is not UTF-8") from None

    def _container(self, major: int, at: int, count: int, depth: int) -> tuple[Value, int]:
        if major not in (_ARRAY, _MAP):
            raise _refused("type", "tags are not part of the format")
        if depth >= CBOR_MAX_DEPTH:
            raise _refused("depth", f"deeper than {CBOR_MAX_DEPTH}")
        if count > self._end - at:
            raise _refused("length", "container is longer than the input")
        return self._array(at, count, depth) if major == _ARRAY else self._map(at, count, depth)

    def _array(self, at: int, count: int, depth: int) -> tuple[Value, int]:
        items: list[Value] = []
        for _ in range(count):
            value, at = self.item(at, depth + 1)
            items.append(value)
        return items, at

    def _map(self, at: int, count: int, depth: int) -> tuple[Value, int]:
        fields: dict[int, Value] = {}
        last = -1
        for _ in range(count):
            if at >= self._end:
                raise _refused("length", "map is cut short")
            key = self._data[at]
            if key > _KEY_MAX or key <= last:
                raise _refused("keys", "map keys are not 0 to 23 in ascending order")
            last = key
            fields[key], at = self.item(at + 1, depth + 1)
        return fields, at
