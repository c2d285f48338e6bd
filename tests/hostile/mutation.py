"""Seeded mutation of bytes and of encoded values: what a fuzzer would try first.

`mutated_bytes` knows nothing of the format; `mutated_value` takes an encoded value apart, puts
something wrong in one or more places, and encodes it again, so that it gets past the decoder and
into the parser behind it. Every draw comes from one `random.Random`, so a seed tells everything.
"""

import random
from collections.abc import Sequence

from durarepo.core.errors import DurarepoError
from durarepo.format.canonical import Value, decode, encode

_LENGTHS = (b"\x00", b"\x7f", b"\xff", b"\xff" * 4, b"\xff" * 8, b"\x00" * 8, b"\x80\x00\x00\x00")
_HEADS = (
    b"\x9b\x7f\xff\xff\xff\xff\xff\xff\xff",  # an array of 2^63 items
    b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff",  # a map of 2^64 pairs
    b"\x5b\x00\x00\x00\xff\xff\xff\xff\xff",  # a string of a terabyte
    b"\x9f", b"\xbf", b"\x5f", b"\x7f\xff",  # indefinite lengths
    b"\xc2\x41\x01", b"\xf9\x7e\x00", b"\xf7",  # a tag, a float, undefined
    b"\x3b\xff\xff\xff\xff\xff\xff\xff\xff",  # below the lowest integer
    b"\x81" * 40,  # deep
)  # fmt: skip
_WRONG: tuple[Value, ...] = (
    None, True, False, 0, 1, -1, 2**63, 2**64 - 1, -(2**63), b"", b"\0", b"x" * 31, b"x" * 32,
    b"x" * 33, b"..", b"/", b"a/b", "", "x", "é" * 70_000, [], [[]], {}, {0: 0}, {23: None},
)  # fmt: skip


def draws(seed: str) -> random.Random:
    """Return the source of all draws of one test."""
    return random.Random(seed)  # noqa: S311  # it has to give the same again


def mutated_bytes(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Return one of ``seeds`` with one to four things done to it."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(data) + 1)
        if rng.random() < 0.25 and at < len(data):
            data[at] = rng.choice((data[at] ^ 1 << rng.randrange(8), rng.randrange(256)))
        else:
            _resize(rng, data, at, rng.choice(seeds))
    return bytes(data)


def _resize(rng: random.Random, data: bytearray, at: int, other: bytes) -> None:
    """Put in, take out, double or cut at a place; or go on there with another seed."""
    length = rng.choice((1, 1, 2, 4, 8, 32, 300))
    match rng.randrange(6):
        case 0:
            del data[at : at + length]
        case 1:
            data[at:at] = rng.randbytes(length)
        case 2:
            data[at:at] = data[at : at + length] * rng.choice((1, 2, 50))
        case 3:
            insert = rng.choice(_LENGTHS + _HEADS)
            data[at : at + len(insert)] = insert
        case 4:
            del data[at:]
        case _:
            data[at:] = other[at:]


def mutated_value(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Return the encoding of one of ``seeds``, decoded, with something wrong in it."""
    value = decode(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 2, 3))):
        value = _spoilt(rng, value)
    try:
        return encode(value)
    except (ValueError, DurarepoError):
        return encode(None)


def _spoilt(rng: random.Random, value: Value) -> Value:
    """Return the value with one place of it changed."""
    if isinstance(value, list | dict) and value and rng.random() < 0.85:
        return _spoilt_within(rng, value)
    near: list[Value] = [rng.choice(_WRONG)]
    if isinstance(value, dict):
        near.append({**value, rng.randrange(24): rng.choice(_WRONG)})
    elif isinstance(value, list):
        near += [[*value, rng.choice(_WRONG)], value * 2]
    elif isinstance(value, bytes):
        near.append(mutated_bytes(rng, [value]))
    elif type(value) is int:
        near += [value + step for step in (1, -1, 2**32)]
    return rng.choice(near)


def _spoilt_within(rng: random.Random, value: list[Value] | dict[int, Value]) -> Value:
    is_less = rng.random() < 0.15
    if isinstance(value, dict):
        key = rng.choice(list(value))
        rest = {one: inner for one, inner in value.items() if one != key}
        return rest if is_less else {**value, key: _spoilt(rng, value[key])}
    at = rng.randrange(len(value))
    return [*value[:at], *([] if is_less else [_spoilt(rng, value[at])]), *value[at + 1 :]]
