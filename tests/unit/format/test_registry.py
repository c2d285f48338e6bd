"""The registry's statement: who may do what, and every contradiction in it."""

from typing import Any

import pytest

from durarepo.core.errors import IntegrityError
from durarepo.core.limits import REGISTRY_TTL_MAX_SECONDS
from durarepo.format.canonical import Value, decode, encode
from durarepo.format.registry import Role, encode_registry, parse_registry, peek_owner
from tests.properties.actors import NOW, Stream

STREAM = Stream()
STREAM.envelopes[4] = b"the envelope before"
STREAM.begin_epoch(5)
REGISTRY: Any = decode(encode_registry(STREAM.registry()))
RECORD: Any = REGISTRY[3][0]
FIRST, SECOND = RECORD[3]
RECIPIENT = FIRST[4][0]
SIGNER = FIRST[3][0][0]
YES = True


def registry(key: int, value: Value) -> bytes:
    """Return a registry whose field is another."""
    return encode({**REGISTRY, key: value})


def record(key: int, value: Value) -> bytes:
    """Return a registry whose stream has another field."""
    return registry(3, [{**RECORD, key: value}])


def epoch(key: int, value: Value, **more: Value) -> bytes:
    """Return a registry whose second epoch has other fields."""
    changes = {key: value, **{int(name[1:]): one for name, one in more.items()}}
    return record(3, [FIRST, {**SECOND, **changes}])


@pytest.mark.parametrize(
    "data",
    [
        encode([]),
        registry(4, 0),
        registry(0, 0),
        registry(0, YES),
        registry(1, {0: 5, 1: 5}),
        registry(1, {0: 5, 1: 4}),
        registry(1, {0: NOW, 1: NOW + REGISTRY_TTL_MAX_SECONDS + 1}),
        registry(1, {0: -1, 1: 5}),
        registry(1, {0: 2**62, 1: 2**62 + 1}),
        registry(1, [0, 1]),
        registry(2, bytes(1983)),
        registry(3, []),
        registry(3, {}),
        registry(3, [RECORD, RECORD]),
        registry(3, [{**RECORD, 0: "z"}, {**RECORD, 0: "a"}]),
        registry(3, [7]),
        record(0, "Notes"),
        record(0, b"notes"),
        record(1, ""),
        record(2, 0),
        record(3, []),
        record(3, [SECOND]),
        record(3, [FIRST, FIRST]),
        record(3, [FIRST, {**SECOND, 0: 3}]),
        record(3, [FIRST, {**SECOND, 1: 1}]),
        record(3, [{**FIRST, 1: 2}]),
        record(3, [{**FIRST, 2: b"x" * 32}]),
        record(4, -1),
        record(5, [1, 2]),
        record(5, [1, 2, 2**32]),
        record(5, [1, 2, True]),
        record(6, None),
        record(7, bytes(31)),
        record(8, 0),
        epoch(0, YES),
        epoch(2, None),
        epoch(3, []),
        epoch(3, [[SIGNER, 0]]),
        epoch(3, [[SIGNER, 4]]),
        epoch(3, [[SIGNER, 1], [SIGNER, 2]]),
        epoch(3, [[SIGNER[:-1], 1]]),
        epoch(3, [[n.to_bytes(1984), 1] for n in range(65)]),
        epoch(4, []),
        epoch(4, [RECIPIENT[:-1]]),
        epoch(4, [RECIPIENT] * 4),
        epoch(4, [RECIPIENT] * 9, k6=8),
        epoch(5, []),
        epoch(5, [RECIPIENT[:-1]]),
        epoch(6, 5),
        epoch(6, 0),
        epoch(6, YES),
        epoch(7, None),
        epoch(8, None),
        epoch(8, 0),
        epoch(9, None),
        epoch(9, [[bytes(32), 1]]),
        epoch(9, [[bytes(31), 1, bytes(32)]]),
        epoch(9, [[bytes(32), -1, bytes(32)]]),
        epoch(9, [[bytes(32), 1, bytes(31)]]),
        epoch(10, 0),
    ],
)
def test_a_registry_that_contradicts_itself_is_refused(data: bytes) -> None:
    """It decides who may sign and read: nothing in it is left to a guess (ingest 3.10)."""
    with pytest.raises(IntegrityError) as caught:
        parse_registry(data)

    assert caught.value.code == "integrity.registry"


@pytest.mark.parametrize("value", [None, [], 7, {}, {2: None}, {2: bytes(1983)}, {2: "x" * 1984}])
def test_a_statement_without_an_owner_is_no_registry(value: Value) -> None:
    """The owner is looked at before any signature, by the encoding's rules alone (3.8)."""
    with pytest.raises(IntegrityError) as caught:
        peek_owner(encode(value))

    assert caught.value.code == "integrity.registry"


def test_a_sequence_lies_in_the_epoch_that_begins_last_before_it() -> None:
    """The wrong epoch has the wrong signers and keys."""
    parsed = parse_registry(encode_registry(STREAM.registry()))
    found = parsed.stream("notes")

    assert found is not None
    assert [found.epoch_of(n).number for n in (1, 4, 5, 2**64 - 1)] == [1, 1, 2, 2]
    assert found.current.number == 2
    assert parsed.stream("other") is None


def test_a_sequence_is_cut_off_once_a_later_epoch_begins_at_or_before_it() -> None:
    """What an epoch in force has written counts; a mark on what was cut off must not."""
    found = parse_registry(encode_registry(STREAM.registry())).streams[0]

    cut = [(n, e) for n in (0, 4, 5, 9) for e in (1, 2) if found.is_cut_off(e, n)]

    assert cut == [(5, 1), (9, 1)]


def test_roles_are_told_apart() -> None:
    """Who may sign evidence may not sign a manifest for that reason."""
    found = parse_registry(encode_registry(STREAM.registry())).streams[0]

    assert [one.roles for one in found.epochs[0].signers] == [
        Role.MANIFEST | Role.EVIDENCE,
        Role.EVIDENCE,
    ]


def test_a_registry_may_live_400_days_and_not_a_second_more() -> None:
    """A stolen machine must not be able to rely on one for ever (format 8)."""
    span: Value = {0: NOW, 1: NOW + REGISTRY_TTL_MAX_SECONDS}

    assert parse_registry(registry(1, span)).expires == NOW + 400 * 86_400
