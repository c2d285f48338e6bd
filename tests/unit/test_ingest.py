"""Ingest: one object broken in one way for each step, and the code of that step."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from durarepo.chunking.compression import deflate
from durarepo.core.errors import DurarepoError
from durarepo.core.names import ZERO_DIGEST, Digest
from durarepo.crypto import primitives
from durarepo.format.canonical import decode, encode
from durarepo.format.document import Document, encode_document, parse_document
from durarepo.format.layout import Compartment, Seal
from durarepo.format.manifest import encode_nested
from durarepo.ingest import (
    GENESIS,
    Anchor,
    Expected,
    HighWater,
    SignedManifest,
    VerifiedManifest,
    admit,
    check_mark,
    check_registry_time,
    check_restorable,
    last_milestone,
    nested_extra,
    open_manifest,
    open_nested,
    open_registry,
)
from durarepo.sealing import seal_box, signer_id
from tests.properties.actors import DAY, NOW, Pair, Stream, identities, nested_part, signers

LATER = NOW + 100


def code_of(action: Callable[..., object], *given: object, **named: object) -> str:
    """Return the code with which an action fails."""
    with pytest.raises(DurarepoError) as caught:
        action(*given, **named)
    return caught.value.code


def flipped(data: bytes, at: int) -> bytes:
    """Return ``data`` with one bit turned over."""
    at %= len(data)
    return data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]


def with_field(key: int, value: Any) -> Callable[[bytes], bytes]:  # value of any type
    """Return what sets a field of an encoded map."""

    def change(data: bytes) -> bytes:
        fields: Any = decode(data)
        return encode({**fields, key: value})

    return change


def signed_by_halves(classic: Pair, lattice: Pair, type_: str) -> Callable[[bytes], bytes]:
    """Return what signs a document with one half each of two signers."""

    def change(data: bytes) -> bytes:
        document = parse_document(data)
        name = type_.encode()
        message = b"DSSEv1 %d %s %d %s" % (
            len(name),
            name,
            len(document.statement),
            document.statement,
        )
        one = primitives.sign_both(classic.secret, message, name)[0]
        two = primitives.sign_both(lattice.secret, message, name)[1]
        return encode_document(
            Document(type=type_, statement=document.statement, signatures=(one, two))
        )

    return change


# --- registry ------------------------------------------------------------------------------

STREAM = Stream()
REGISTRY = STREAM.registry_object()


def opened_registry(
    data: bytes, *, version: int = 3, highest: int = 0, owner: bytes | None = None
) -> object:
    """Open a registry as a reader of `STREAM`."""
    digest = STREAM.owner_digest if owner is None else owner
    return open_registry(
        data, STREAM.locator, owner_digest=digest, version=version, highest=highest
    )


@pytest.mark.parametrize("count", [4, 8])
def test_a_registry_gives_what_the_owner_signed(count: int) -> None:
    """What a reader trusts is the owner's word, byte for byte (ingest 3)."""
    stream = Stream(count=count)
    found = stream.open_registry()

    assert found.record("notes") == stream.record
    assert found.record("notes").current.stanza_count == count
    assert code_of(found.record, "other") == "trust.stream"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: REGISTRY[:-1], "integrity.object-size"),
        (lambda: b"", "integrity.object-size"),
        (lambda: REGISTRY + bytes(2_621_440 - len(REGISTRY)), "integrity.object-size"),
        (lambda: b"\2" + REGISTRY[1:], "integrity.version"),
        (lambda: b"\0" + REGISTRY[1:], "integrity.version"),
        (lambda: flipped(REGISTRY, 1), "integrity.commitment"),
        (lambda: flipped(REGISTRY, 40), "integrity.commitment"),
        (lambda: flipped(REGISTRY, 65), "integrity.seal"),
        (lambda: flipped(REGISTRY, 77), "integrity.seal"),
        (lambda: flipped(REGISTRY, -1), "integrity.seal"),
        (lambda: STREAM.registry_object(document=lambda d: d[:-1]), "integrity.cbor-length"),
        (lambda: STREAM.registry_object(document=lambda _: encode([1])), "integrity.document"),
        (lambda: STREAM.registry_object(type_="durarepo/1/manifest"), "trust.type"),
        (lambda: STREAM.registry_object(type_=""), "trust.type"),
        (lambda: STREAM.registry_object(statement=lambda _: b"\x80"), "integrity.registry"),
        (lambda: STREAM.registry_object(statement=lambda _: b""), "integrity.cbor-length"),
        (lambda: STREAM.registry_object(owner=signers()[5]), "trust.signature"),
        (
            lambda: STREAM.registry_object(
                document=signed_by_halves(STREAM.owner, signers()[5], "durarepo/1/registry")
            ),
            "trust.signature",
        ),
        (
            lambda: STREAM.registry_object(
                document=signed_by_halves(signers()[5], STREAM.owner, "durarepo/1/registry")
            ),
            "trust.signature",
        ),
        (
            lambda: STREAM.registry_object(statement=with_field(2, signers()[5].public)),
            "trust.owner",
        ),
        (lambda: STREAM.registry_object(statement=with_field(9, 0)), "integrity.registry"),
        (lambda: STREAM.registry_object(version=4), "trust.registry-version"),
    ],
)
def test_a_registry_is_refused_with_the_code_of_the_step(
    make: Callable[[], bytes], code: str
) -> None:
    """One step, one code (spec/ingest.md 3)."""
    assert code_of(opened_registry, make()) == code


def test_a_registry_with_other_padding_is_refused() -> None:
    """Bytes behind the document are signed by nobody (ingest 3.5)."""
    salt = REGISTRY[1:33]
    key = primitives.keyed_hash(primitives.derive_subkey(STREAM.locator, "registry-seal"), salt)
    body = primitives.open_bytes(key, REGISTRY[65:77], REGISTRY[77:])

    for bad in (body[:-1] + b"\1", b"\xff" + body[1:]):
        nonce = primitives.derive_nonce(key, 3, bad)
        data = REGISTRY[:65] + nonce + primitives.seal_bytes(key, nonce, bad)
        assert code_of(opened_registry, data) == "integrity.padding"


def test_an_owner_with_a_weak_key_signs_nothing() -> None:
    """A signature under a key of small order is anybody's (ingest 3.9)."""
    weak = Pair(STREAM.owner.secret, (1).to_bytes(32, "little") + STREAM.owner.public[32:])
    stream = Stream(owner=weak)

    code = code_of(
        open_registry,
        stream.registry_object(),
        stream.locator,
        owner_digest=stream.owner_digest,
        version=3,
    )
    assert code == "trust.weak-key"


def test_a_registry_below_the_high_water_or_under_another_locator_is_refused() -> None:
    """An older registry would bring a revoked signer back (ingest 3.11)."""
    assert code_of(opened_registry, REGISTRY, highest=4) == "trust.registry-version"
    assert code_of(opened_registry, REGISTRY, version=2) == "trust.registry-version"
    assert code_of(opened_registry, REGISTRY, owner=bytes(32)) == "trust.owner"
    other = Stream(locator=bytes(32)).registry_object()
    assert code_of(opened_registry, other) == "integrity.commitment"
    opened_registry(REGISTRY, highest=3)


def test_a_registry_is_read_from_ten_minutes_before_its_issue_to_its_expiry() -> None:
    """Each border to the second (ingest 3.12, 3.13)."""
    verified = STREAM.open_registry()
    issued, expires = NOW - DAY, NOW + 300 * DAY

    check_registry_time(verified, issued - 600)
    check_registry_time(verified, expires - 1)
    assert code_of(check_registry_time, verified, issued - 601) == "fresh.ahead"
    assert code_of(check_registry_time, verified, expires) == "fresh.registry-expired"


# --- one manifest --------------------------------------------------------------------------


def opened(
    stream: Stream,
    data: bytes,
    *,
    sequence: int = 1,
    who: bytes | None = None,
    epoch: int | None = None,
    naming: bytes | None = None,
) -> SignedManifest:
    """Open an envelope as a reader of a stream."""
    return open_manifest(
        data,
        stream.data[0].secret if who is None else who,
        expected=stream.expected(sequence, epoch),
        naming_key=naming,
    )


@pytest.mark.parametrize("count", [4, 8])
def test_a_manifest_opens_for_data_and_audit_recipients(count: int) -> None:
    """An auditor sees the statement, an owner the content too (format 7.1)."""
    stream = Stream(count=count)
    envelope = stream.manifest(1)

    for person in (*stream.data, *stream.audit):
        found = opened(stream, envelope, who=person.secret, naming=stream.naming)
        assert found.statement.sequence == 1
        assert found.digest == primitives.sha256(envelope)
    admitted = chain_of(stream, 1)[1]
    assert open_nested(admitted, stream.data[1].secret, stream.place()) == nested_part()
    audit = stream.audit[0].secret
    assert code_of(open_nested, admitted, audit, stream.place()) == "integrity.nested"


ENVELOPE = STREAM.manifest(1)
HEADER_LENGTH = 65 + 4 * 1168


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "integrity.object-size"),
        (ENVELOPE[:-1], "integrity.object-size"),
        (bytes(14_680_064), "integrity.object-size"),
        (b"\2" + ENVELOPE[1:], "integrity.version"),
        (flipped(ENVELOPE, 1), "integrity.mark"),
        (flipped(ENVELOPE, 40), "integrity.mark"),
        (flipped(ENVELOPE, 20_000), "integrity.mark"),
        (flipped(ENVELOPE, -1), "integrity.mark"),
    ],
)
def test_an_envelope_is_looked_at_from_outside_first(data: bytes, code: str) -> None:
    """A torn file is told from a forged one without any identity (ingest 4.1 to 4.3)."""
    assert code_of(check_mark, data, STREAM.naming) == code
    assert code_of(opened, STREAM, data, naming=STREAM.naming) == code


def test_an_auditor_without_the_naming_key_refuses_an_unknown_version_as_such() -> None:
    """What a newer writer made must be told from what somebody forged (ingest 4.2)."""
    assert code_of(opened, STREAM, b"\2" + ENVELOPE[1:]) == "integrity.version"


def marked(data: bytes) -> bytes:
    """Return an envelope with the mark that belongs to its bytes."""
    key = primitives.derive_subkey(STREAM.naming, "mark")
    return data[:-32] + primitives.keyed_hash(key, data[:-32])


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (flipped(ENVELOPE, 1), "integrity.stanza"),
        (ENVELOPE[:33] + bytes(4 * 1168) + ENVELOPE[33 + 4 * 1168 :], "integrity.stanza"),
        (flipped(ENVELOPE, HEADER_LENGTH - 1), "integrity.commitment"),
        (flipped(ENVELOPE, HEADER_LENGTH), "integrity.seal"),
        (flipped(ENVELOPE, HEADER_LENGTH + 12), "integrity.seal"),
        (flipped(ENVELOPE, -33), "integrity.seal"),
    ],
)
def test_an_altered_envelope_with_a_good_mark_is_refused(data: bytes, code: str) -> None:
    """Who holds the naming key may mark anything; the seal is another's (ingest 4.4 to 4.6)."""
    assert code_of(opened, STREAM, marked(data), naming=STREAM.naming) == code


def test_an_envelope_is_sealed_to_its_recipients_in_its_place() -> None:
    """Another stream's envelope does not even open (ingest 4.4)."""
    place = Compartment(stream="other", epoch=1, compartment="main")
    foreign = Stream().manifest(1, place=place)

    assert code_of(opened, STREAM, foreign) == "integrity.stanza"
    assert code_of(opened, STREAM, ENVELOPE, who=identities()[7].secret) == "integrity.stanza"


STRANGER = signers()[5]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"document": lambda data: data + b"\0"}, "integrity.cbor-length"),
        ({"document": lambda _: encode([])}, "integrity.document"),
        ({"type_": "durarepo/1/registry"}, "trust.type"),
        ({"type_": "durarepo/1/evidence"}, "trust.type"),
        ({"statement": lambda _: encode({})}, "integrity.statement"),
        ({"statement": lambda _: b"\xff"}, "integrity.cbor-type"),
        ({"signer": signer_id(STRANGER.public), "signing": STRANGER}, "trust.unknown-signer"),
        ({"signing": STRANGER}, "trust.signature"),
        (
            {"document": signed_by_halves(signers()[2], STRANGER, "durarepo/1/manifest")},
            "trust.signature",
        ),
        (
            {"document": signed_by_halves(STRANGER, signers()[2], "durarepo/1/manifest")},
            "trust.signature",
        ),
        ({"statement": with_field(16, 0)}, "integrity.statement"),
        ({"statement": with_field(11, [0])}, "integrity.pins"),
        ({"header_digest": Digest(bytes(32))}, "trust.header"),
        ({"stream": "other"}, "trust.stream"),
        ({"compartment": "other"}, "trust.stream"),
        ({"never_publish": True}, "trust.stream"),
        ({"epoch": 2}, "trust.epoch"),
        (
            {"signer": signer_id(signers()[4].public), "signing": signers()[4]},
            "trust.role",
        ),
        ({"registry_version": 4}, "trust.registry-version"),
        ({"sequence": 2}, "trust.sequence"),
        ({"sequence": 2**64 - 1}, "trust.sequence"),
    ],
)
def test_a_manifest_is_refused_with_the_code_of_the_step(
    changes: dict[str, Any], code: str
) -> None:
    """One step, one code; all that stands before it is good (ingest 4.7 to 4.19)."""
    stream = Stream(signers=signers()[2:4])
    envelope = stream.manifest(1, **changes)

    assert code_of(opened, stream, envelope) == code
    assert code_of(opened, stream, envelope, naming=stream.naming) == code


def test_no_bit_of_the_signed_statement_can_be_changed() -> None:
    """The key of the envelope is known to all who read; the signatures are not (4.11)."""
    stream = Stream()
    length = len(parse_document(stream_document(stream)).statement)

    for at in range(0, length, 97):

        def change(data: bytes, at: int = at) -> bytes:
            document = parse_document(data)
            return encode_document(replace(document, statement=flipped(document.statement, at)))

        code = code_of(opened, stream, stream.manifest(1, document=change))
        assert code.startswith(("trust.", "integrity.cbor-", "integrity.statement"))


def stream_document(stream: Stream) -> bytes:
    """Return the document of a first manifest."""
    kept: list[bytes] = []

    def keep(data: bytes) -> bytes:
        kept.append(data)
        return data

    stream.manifest(1, document=keep)
    return kept[0]


def test_a_manifest_lies_in_the_epoch_of_its_number() -> None:
    """An old signer must not go on under a number of the new epoch (ingest 4.10, 4.15)."""
    stream = Stream()
    for number in (1, 2):
        stream.manifest(number)
    stream.begin_epoch(3)
    stream.manifest(3)

    assert opened(stream, stream.envelopes[3], sequence=3).statement.epoch == 2
    for number, epoch in ((3, 1), (2, 2)):
        code = code_of(opened, stream, stream.envelopes[number], sequence=number, epoch=epoch)
        assert code == "integrity.stanza"
    old = stream.manifest(3, signer=signer_id(stream.signers[0].public), signing=stream.signers[0])
    assert code_of(opened, stream, old, sequence=3) == "trust.unknown-signer"
    early = stream.manifest(3, sequence=2)
    assert code_of(opened, stream, early, sequence=3) == "trust.epoch"


def test_an_epoch_that_no_registry_knows_is_refused() -> None:
    """The place is known before the registry is asked (ingest 4.10)."""
    place = Compartment(stream="notes", epoch=9, compartment="main")
    envelope = Stream().manifest(1, place=place)

    assert code_of(opened, STREAM, envelope, epoch=9) == "trust.epoch"


def test_a_stream_that_no_registry_knows_is_refused() -> None:
    """Nothing is tried for a stream that the owner has not registered."""
    expected = Expected(registry=STREAM.open_registry(), stream="other", epoch=1, sequence=1)

    code = code_of(
        open_manifest, ENVELOPE, STREAM.data[0].secret, expected=expected, naming_key=None
    )
    assert code == "trust.stream"


# --- the chain -----------------------------------------------------------------------------


def signed(stream: Stream, *numbers: int) -> dict[int, SignedManifest]:
    """Return signed manifests of a stream, each opened on its own."""
    return {number: opened(stream, stream.envelopes[number], sequence=number) for number in numbers}


def made(count: int, stream: Stream | None = None, *, begin: int = 1) -> Stream:
    """Return a stream with manifests up to ``count``."""
    stream = stream or Stream()
    for number in range(begin, count + 1):
        stream.manifest(number)
    return stream


def admitted(
    stream: Stream,
    chain: dict[int, SignedManifest],
    *,
    anchor: Anchor = GENESIS,
    high: HighWater | None = None,
    now: int = LATER,
) -> dict[int, VerifiedManifest]:
    """Admit a chain of a stream."""
    return admit(chain, record=stream.record, anchor=anchor, high=high or HighWater(), now=now)


def chain_of(stream: Stream, count: int) -> dict[int, VerifiedManifest]:
    """Return the admitted manifests of a stream up to ``count``."""
    return admitted(stream, signed(stream, *range(1, count + 1)))


def test_a_whole_chain_is_admitted() -> None:
    """What hangs together from the first manifest on is trusted (ingest 4.20 to 4.27)."""
    stream = made(3)

    assert sorted(chain_of(stream, 3)) == [1, 2, 3]
    assert admitted(stream, {}) == {}


@pytest.mark.parametrize(("missing", "code"), [(1, "gap"), (2, "gap")])
def test_a_missing_manifest_is_a_gap(missing: int, code: str) -> None:
    """A store that hides one in the middle is found (ingest 4.20)."""
    stream = made(3)
    chain = signed(stream, *({1, 2, 3} - {missing}))

    assert code_of(admitted, stream, chain) == f"integrity.{code}"
    # The gap comes first, whatever was seen before.
    high = HighWater(sequence=9, digest=Digest(bytes(32)))
    assert code_of(admitted, stream, chain, high=high) == f"integrity.{code}"


@pytest.mark.parametrize(
    ("number", "changes"),
    [
        (1, {"previous": Digest(b"x" * 32)}),
        (1, {"milestone": Digest(b"x" * 32)}),
        (2, {"previous": ZERO_DIGEST}),
        (2, {"milestone": ZERO_DIGEST}),
        (3, {"previous": Digest(b"x" * 32)}),
        (3, {"milestone": Digest(b"x" * 32)}),
    ],
)
def test_a_manifest_that_names_others_before_it_is_refused(
    number: int, changes: dict[str, Any]
) -> None:
    """One chain has one past (ingest 4.21)."""
    stream = made(number - 1)
    stream.manifest(number, **changes)

    assert code_of(chain_of, stream, number) == "trust.link"


def test_another_manifest_of_the_same_number_breaks_the_chain() -> None:
    """A fork below the head shows in the digest that the next one names (ingest 4.21)."""
    stream = made(3)
    chain = signed(stream, 1, 3)
    stream.manifest(2, shrunk=True)

    assert code_of(admitted, stream, chain | signed(stream, 2)) == "trust.link"


def test_an_older_head_is_a_rollback_and_another_one_is_a_fork() -> None:
    """What has been seen once is remembered (ingest 4.22, 4.23)."""
    stream = made(3)
    chain = signed(stream, 1, 2, 3)
    three = chain[3].digest

    admitted(stream, chain, high=HighWater(sequence=3, digest=three))
    admitted(stream, chain, high=HighWater(sequence=2, digest=chain[2].digest))
    older = {1: chain[1], 2: chain[2]}
    seen = HighWater(sequence=3, digest=three)
    assert code_of(admitted, stream, older, high=seen) == "trust.rollback"
    assert code_of(admitted, stream, {}, high=seen) == "trust.rollback"
    for number in (1, 2, 3):
        other = HighWater(sequence=number, digest=Digest(b"x" * 32))
        assert code_of(admitted, stream, chain, high=other) == "trust.fork"


def test_a_chain_is_admitted_above_an_anchor_that_it_continues() -> None:
    """The card's anchor stands for all that lies below it (format 10)."""
    stream = made(4)
    chain = signed(stream, 3, 4)
    anchor = Anchor(sequence=2, digest=stream.digest(2))

    assert sorted(admitted(stream, chain, anchor=anchor)) == [3, 4]
    wrong = Anchor(sequence=2, digest=Digest(b"x" * 32))
    assert code_of(admitted, stream, chain, anchor=wrong) == "trust.link"
    assert code_of(admitted, stream, {4: chain[4]}, anchor=anchor) == "integrity.gap"


def test_no_stored_envelope_stands_for_the_anchor() -> None:
    """A forked past with the anchor's number once took the anchor's place."""
    stream = made(2)
    anchor = Anchor(sequence=2, digest=stream.digest(2))
    stream.manifest(2, shrunk=True)
    made(3, stream, begin=3)
    forked = signed(stream, 2, 3)

    assert code_of(admitted, stream, forked, anchor=anchor) == "trust.link"
    assert code_of(admitted, stream, {2: forked[2]}, anchor=anchor) == "trust.link"
    assert code_of(admitted, stream, {3: forked[3]}, anchor=anchor) == "trust.link"
    own = Anchor(sequence=2, digest=stream.digest(2))
    assert sorted(admitted(stream, forked, anchor=own)) == [3]


def test_what_lies_below_the_anchor_counts_for_nothing() -> None:
    """Milestones below it are unknown, and older envelopes must not stand in for them."""
    stream = made(3)
    chain = signed(stream, 3)
    anchor = Anchor(sequence=2, digest=stream.digest(2))
    stream.manifest(1, shrunk=True)

    assert sorted(admitted(stream, chain | signed(stream, 1), anchor=anchor)) == [3]


def test_milestones_link_across_64_and_128_and_the_start_of_an_epoch() -> None:
    """They are the way from the head to an anchor when what lies between is gone (7.2)."""
    stream = Stream()
    made(69, stream)
    stream.begin_epoch(70)
    made(130, stream, begin=70)
    record = stream.record

    assert [last_milestone(n, record) for n in (1, 2, 64, 65, 70, 71, 128, 129, 130)] == [
        0,
        1,
        1,
        64,
        64,
        70,
        70,
        128,
        128,
    ]
    chain = signed(stream, *range(1, 131))
    assert len(admitted(stream, chain)) == 130
    for number in (2, 65, 71, 129, 130):
        bad = replace(chain[number].statement, milestone=Digest(b"x" * 32))
        broken = chain | {number: replace(chain[number], statement=bad)}
        assert code_of(admitted, stream, broken) == "trust.link"


def test_an_epoch_continues_the_envelope_that_the_registry_names() -> None:
    """Whoever holds the new keys must not choose another past (format 8)."""
    stream = made(2)
    stream.begin_epoch(3)
    stream.manifest(3)
    good = signed(stream, 1, 2, 3)
    assert len(admitted(stream, good)) == 3

    stream.epochs[1] = replace(stream.epochs[1], previous=Digest(b"x" * 32))
    assert code_of(admitted, stream, good) == "trust.link"


def test_a_revocation_keeps_what_the_last_good_manifest_reaches() -> None:
    """History stays readable, whatever else that signer made is refused (ingest 4.17)."""
    stream = made(4)
    chain = signed(stream, 1, 2, 3, 4)
    stream.revoke(1, 4)
    assert len(admitted(stream, chain)) == 4

    stream.revoke(1, 3)
    assert code_of(admitted, stream, chain) == "fresh.revoked"
    assert len(admitted(stream, signed(stream, 1, 2, 3))) == 3
    stream.revoke(1, 3, Digest(b"x" * 32))
    assert code_of(admitted, stream, signed(stream, 1, 2, 3)) == "fresh.revoked"
    stream.revoke(1, 5, Digest(b"x" * 32))
    assert code_of(admitted, stream, chain) == "fresh.revoked"


def test_a_revoked_signer_is_refused_behind_its_last_good_manifest_only() -> None:
    """The next epoch begins there with another signer (format 8)."""
    stream = made(2)
    stream.begin_epoch(3)
    made(4, stream, begin=3)
    stream.revoke(1, 2)

    chain = signed(stream, 1, 2, 3, 4)
    assert len(admitted(stream, chain)) == 4
    stream.revoke(2, 3)
    assert code_of(admitted, stream, chain) == "fresh.revoked"


@pytest.mark.parametrize(
    ("changes", "now", "code"),
    [
        ({"floor": 1}, LATER, "trust.floor"),
        ({"expires": NOW + DAY + 1}, LATER, "trust.lifetime"),
        ({"expires": NOW + DAY - 1}, LATER, "trust.lifetime"),
        ({"expires": 0}, LATER, "trust.lifetime"),
        ({"issued": 2**62 - 1, "expires": 2**62 - 1}, LATER, "trust.lifetime"),
        ({}, NOW - 601, "fresh.ahead"),
        ({}, NOW - 600, "fresh.clock"),
    ],
)
def test_what_a_manifest_claims_is_compared(changes: dict[str, Any], now: int, code: str) -> None:
    """Floor, lifetime and clock, each to the second (ingest 4.24 to 4.27)."""
    stream = Stream()
    stream.manifest(1, **changes)
    chain = signed(stream, 1)
    high = HighWater(clock=NOW - 599)

    assert code_of(admitted, stream, chain, high=high, now=now) == code


def test_a_floor_up_to_the_registry_s_is_taken() -> None:
    """The registry alone binds; a statement may say less (format 7.2)."""
    stream = Stream(floor=2)
    stream.manifest(1, floor=2)

    assert sorted(chain_of(stream, 1)) == [1]


def test_only_what_is_restored_must_not_have_expired() -> None:
    """Ancestors are always old (ingest 4.28); the question is asked again with a new now."""
    stream = made(2)
    later = NOW + 30 * DAY
    chain = admitted(stream, signed(stream, 1, 2), now=later)

    def restorable(**given: int) -> None:
        check_restorable(chain[1], record=stream.record, **given)

    restorable(now=NOW + DAY - 1)
    assert code_of(restorable, now=NOW + DAY) == "fresh.expired"
    assert code_of(restorable, now=NOW - 601) == "fresh.ahead"
    assert code_of(restorable, now=NOW, clock=NOW + 1) == "fresh.clock"
    stream.floor = 2
    assert code_of(restorable, now=NOW) == "trust.floor"
    stream.floor = 1
    restorable(now=NOW)


# --- the nested part -----------------------------------------------------------------------


def with_nested(content: bytes, **changes: Any) -> VerifiedManifest:
    """Return an admitted manifest around a nested part, sealed as its place wants it."""
    stream = Stream()
    given: dict[str, Any] = {
        "kind": Seal.NESTED,
        "place": stream.place(),
        "extra": nested_extra(1, ZERO_DIGEST),
        **changes,
    }
    box = seal_box(content, [one.public for one in stream.data], count=4, **given)
    stream.manifest(1, nested=box)
    return chain_of(stream, 1)[1]


NESTED: Any = decode(encode_nested(nested_part()))


@pytest.mark.parametrize(
    ("content", "changes", "code"),
    [
        (encode(NESTED), {}, "nested"),
        (b"", {}, "nested"),
        (deflate(bytes(8_388_609)), {}, "nested"),
        (deflate(encode(NESTED)) + b"x", {}, "nested"),
        (deflate(encode(NESTED)), {"extra": b""}, "nested"),
        (deflate(encode(NESTED)), {"extra": nested_extra(2, ZERO_DIGEST)}, "nested"),
        (deflate(encode(NESTED)), {"extra": nested_extra(1, Digest(b"x" * 32))}, "nested"),
        (deflate(encode(NESTED)), {"kind": Seal.NAMING_KEY}, "nested"),
        (deflate(b"\x80"), {}, "nested-form"),
        (deflate(b"\x81"), {}, "cbor-length"),
        (deflate(encode({**NESTED, 8: 0})), {}, "nested-form"),
        (deflate(encode({**NESTED, 2: bytes(32)})), {}, "component-index"),
        (deflate(encode({**NESTED, 1: []})), {}, "component-index"),
    ],
)
def test_a_nested_part_is_refused_with_the_code_of_the_step(
    content: bytes, changes: dict[str, Any], code: str
) -> None:
    """It is sealed for one place in one chain (ingest 4.30 to 4.32)."""
    manifest = with_nested(content, **changes)

    found = code_of(open_nested, manifest, STREAM.data[0].secret, STREAM.place())
    assert found == f"integrity.{code}"


@pytest.mark.parametrize("nested", [b"", bytes(32), bytes(1200), bytes(20_000)])
def test_a_nested_part_that_is_no_box_is_refused(nested: bytes) -> None:
    """The statement holds any bytes there."""
    stream = Stream()
    stream.manifest(1, nested=nested)
    manifest = chain_of(stream, 1)[1]

    code = code_of(open_nested, manifest, stream.data[0].secret, stream.place())
    assert code == "integrity.nested"
