"""The registry's statement: who may sign, read and publish which stream, under which keys.

Source: spec/format.md 8, spec/ingest.md 3.8 and 3.10. Start at `parse_registry`.
"""

from dataclasses import dataclass
from enum import IntFlag
from itertools import pairwise

from durarepo.core.errors import IntegrityError
from durarepo.core.limits import (
    RECIPIENT_BYTES,
    REGISTRY_TTL_MAX_SECONDS,
    SIGNER_PUBLIC_BYTES,
    STANZA_COUNTS,
)
from durarepo.core.names import Digest, SignerId, is_stream_id
from durarepo.format.canonical import Value, decode, encode
from durarepo.format.fields import U32_MAX, U64_MAX, Fields

_RECIPIENTS_MAX = 8
_SIGNERS_MAX = 64
_DIGEST = 32
_TIME_MAX = (1 << 62) - 1


class Role(IntFlag):
    """What a signer may sign."""

    MANIFEST = 1
    EVIDENCE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """One signer: 1984 public bytes and roles."""

    public: bytes
    roles: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """What ``signer`` signed is good only as far as the chain reaches back from this envelope."""

    signer: SignerId
    sequence: int
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """A stretch of a stream's life under one set of keys."""

    number: int
    first_sequence: int
    previous: Digest
    signers: tuple[Signer, ...]
    data_recipients: tuple[bytes, ...]
    audit_recipients: tuple[bytes, ...]
    stanza_count: int
    naming_key: bytes
    slot_key: bytes | None
    revocations: tuple[Revocation, ...]

    @property
    def manifest_signers(self) -> tuple[bytes, ...]:
        """The public bytes of those who may sign manifests."""
        return tuple(one.public for one in self.signers if Role.MANIFEST in one.roles)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What the store's lifecycle obeys; days and counts."""

    days: int
    keep_weekly: int
    keep_monthly: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRecord:
    """One stream of a registry; epochs ascending from 1, the last one in force."""

    stream: str
    compartment: str
    never_publish: bool
    epochs: tuple[Epoch, ...]
    floor: int
    retention: Retention
    foreign_drill: bool
    shrink_lifted: Digest | None

    @property
    def current(self) -> Epoch:
        """The epoch in force."""
        return self.epochs[-1]

    def epoch_of(self, sequence: int) -> Epoch:
        """Return the epoch that a sequence lies in; sequences begin at 1."""
        return next(e for e in reversed(self.epochs) if e.first_sequence <= sequence)

    def is_cut_off(self, epoch: int, sequence: int) -> bool:
        """Return whether the owner let a later epoch begin at or before a number of ``epoch``.

        What was seen there, a high-water mark among it, counts no more.
        """
        return sequence >= 1 and self.epoch_of(sequence).number > epoch

    def is_revoked(self, signer: SignerId) -> bool:
        """Return whether any epoch holds a revocation of ``signer``."""
        return any(one.signer == signer for epoch in self.epochs for one in epoch.revocations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """A registry's statement; times are seconds since 1970."""

    version: int
    issued: int
    expires: int
    owner: bytes
    streams: tuple[StreamRecord, ...]

    def stream(self, name: str) -> StreamRecord | None:
        """Return the record of a stream, or None."""
        return next((record for record in self.streams if record.stream == name), None)


def encode_registry(registry: Registry) -> bytes:
    """Return the statement's bytes."""
    return encode(
        {
            0: registry.version,
            1: {0: registry.issued, 1: registry.expires},
            2: registry.owner,
            3: [_stream_value(record) for record in registry.streams],
        }
    )


def _stream_value(record: StreamRecord) -> Value:
    return {
        0: record.stream,
        1: record.compartment,
        2: record.never_publish,
        3: [_epoch_value(epoch) for epoch in record.epochs],
        4: record.floor,
        5: [record.retention.days, record.retention.keep_weekly, record.retention.keep_monthly],
        6: record.foreign_drill,
        7: record.shrink_lifted,
    }


def _epoch_value(epoch: Epoch) -> Value:
    return {
        0: epoch.number,
        1: epoch.first_sequence,
        2: epoch.previous,
        3: [[signer.public, int(signer.roles)] for signer in epoch.signers],
        4: list(epoch.data_recipients),
        5: list(epoch.audit_recipients),
        6: epoch.stanza_count,
        7: epoch.naming_key,
        8: epoch.slot_key,
        9: [[one.signer, one.sequence, one.digest] for one in epoch.revocations],
    }


def _fields(value: Value, what: str, count: int) -> Fields:
    return Fields(value, reason="registry", what=what, required=range(count))


def peek_owner(statement: bytes) -> bytes:
    """Return the owner's public bytes of a statement whose signature is not checked yet.

    Raises:
        IntegrityError: ``cbor-*``, or ``registry`` if no owner stands there.
    """
    value = decode(statement)
    owner = value.get(2) if isinstance(value, dict) else None
    if not isinstance(owner, bytes) or len(owner) != SIGNER_PUBLIC_BYTES:
        raise IntegrityError("registry", "registry names no owner")
    return owner


def parse_registry(statement: bytes) -> Registry:
    """Return the registry that a statement holds.

    Raises:
        IntegrityError: ``registry`` or ``cbor-*``.
    """
    fields = _fields(decode(statement), "registry", 4)
    time = _fields(fields.raw(1), "registry's time", 2)
    issued, expires = time.uint(0, _TIME_MAX), time.uint(1, _TIME_MAX)
    if not issued < expires <= issued + REGISTRY_TTL_MAX_SECONDS:
        raise fields.refused("expires before it begins or too late")
    streams = tuple(_parse_stream(item) for item in fields.items(3))
    names = fields.ascending([record.stream.encode() for record in streams])
    if not names:
        raise fields.refused("names no stream")
    return Registry(
        version=fields.uint(0, U64_MAX, 1),
        issued=issued,
        expires=expires,
        owner=fields.blob(2, SIGNER_PUBLIC_BYTES),
        streams=streams,
    )


def _parse_stream(value: Value) -> StreamRecord:
    fields = _fields(value, "stream of the registry", 8)
    if not (is_stream_id(fields.text(0)) and is_stream_id(fields.text(1))):
        raise fields.refused("has an id of another form")
    days, weekly, monthly = (fields.number(n, U32_MAX) for n in fields.array(fields.raw(5), 3))
    epochs = tuple(_parse_epoch(item) for item in fields.items(3))
    _check_epochs(fields, epochs)
    lifted = fields.maybe_blob(7, _DIGEST)
    return StreamRecord(
        stream=fields.text(0),
        compartment=fields.text(1),
        never_publish=fields.flag(2),
        epochs=epochs,
        floor=fields.uint(4),
        retention=Retention(days=days, keep_weekly=weekly, keep_monthly=monthly),
        foreign_drill=fields.flag(6),
        shrink_lifted=None if lifted is None else Digest(lifted),
    )


def _check_epochs(fields: Fields, epochs: tuple[Epoch, ...]) -> None:
    if [epoch.number for epoch in epochs] != list(range(1, len(epochs) + 1)) or not epochs:
        raise fields.refused("has epochs that do not count from 1")
    firsts = [epoch.first_sequence for epoch in epochs]
    if firsts[0] != 1 or any(one >= two for one, two in pairwise(firsts)):
        raise fields.refused("has epochs whose first sequences do not rise from 1")
    if any(epochs[0].previous):
        raise fields.refused("has a first epoch with something before it")


def _parse_epoch(value: Value) -> Epoch:
    fields = _fields(value, "epoch of the registry", 10)
    data = tuple(fields.octets(item, RECIPIENT_BYTES) for item in fields.items(4, _RECIPIENTS_MAX))
    audit = tuple(fields.octets(item, RECIPIENT_BYTES) for item in fields.items(5, _RECIPIENTS_MAX))
    stanzas, slot_key = fields.uint(6), fields.maybe_blob(8)
    if not data or stanzas not in STANZA_COUNTS or len(data) + len(audit) > stanzas:
        raise fields.refused("has no recipient, or more than stanzas")
    if bool(audit) != (slot_key is not None):
        raise fields.refused("has a slot key without an audit recipient, or the other way round")
    signers = tuple(_parse_signer(fields, item) for item in fields.items(3, _SIGNERS_MAX))
    if not signers or len({signer.public for signer in signers}) != len(signers):
        raise fields.refused("has no signer, or one twice")
    return Epoch(
        number=fields.uint(0, U32_MAX, 1),
        first_sequence=fields.uint(1, U64_MAX, 1),
        previous=Digest(fields.blob(2, _DIGEST)),
        signers=signers,
        data_recipients=data,
        audit_recipients=audit,
        stanza_count=stanzas,
        naming_key=fields.octets(fields.raw(7)),
        slot_key=slot_key,
        revocations=tuple(_parse_revocation(fields, item) for item in fields.items(9)),
    )


def _parse_signer(fields: Fields, item: Value) -> Signer:
    public, roles = fields.array(item, 2)
    return Signer(
        public=fields.octets(public, SIGNER_PUBLIC_BYTES),
        roles=Role(fields.number(roles, int(Role.MANIFEST | Role.EVIDENCE), 1)),
    )


def _parse_revocation(fields: Fields, item: Value) -> Revocation:
    signer, sequence, digest = fields.array(item, 3)
    return Revocation(
        signer=SignerId(fields.octets(signer, _DIGEST)),
        sequence=fields.number(sequence),
        digest=Digest(fields.octets(digest, _DIGEST)),
    )
