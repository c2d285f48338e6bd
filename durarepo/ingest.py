"""Ingest: the ordered checks that turn untrusted bytes into what may be used.

`open_registry` gives a `VerifiedRegistry`, `open_manifest` a `SignedManifest`, and `admit` turns
signed manifests that hang together into `VerifiedManifest`s. A restore accepts nothing else, and
nothing but this module builds one. Pure: bytes, keys and `now` come in, values go out.
Each step cites its number. Source: spec/ingest.md 3 and 4.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from durarepo.chunking.compression import InflateError, inflate
from durarepo.core.errors import PUT_BACK, FreshnessError, IntegrityError, TrustError
from durarepo.core.limits import (
    ENVELOPE_MAX_BYTES,
    FORMAT_VERSION,
    KEY_BYTES,
    NESTED_MAX_BYTES,
    REGISTRY_MAX_BYTES,
)
from durarepo.core.names import ZERO_DIGEST, Digest, SignerId
from durarepo.crypto import primitives
from durarepo.format.document import (
    MANIFEST_TYPE,
    REGISTRY_TYPE,
    Document,
    parse_document,
    unpad_document,
)
from durarepo.format.layout import NOWHERE, Compartment, Seal, check_object_size, seal_info
from durarepo.format.registry import (
    Epoch,
    Registry,
    Role,
    Signer,
    StreamRecord,
    parse_registry,
    peek_owner,
)
from durarepo.policy import freshness
from durarepo.sealing import (
    MARK_BYTES,
    check_commitment,
    check_signatures,
    open_box,
    open_header,
    open_sealed,
    registry_key,
    signer_id,
)

if TYPE_CHECKING:
    from durarepo.format.manifest import Nested, Statement

_REGISTRY_HEADER_BYTES = 1 + KEY_BYTES + KEY_BYTES


def _check_version(data: bytes) -> None:
    if data[0] != FORMAT_VERSION:
        raise IntegrityError("version", "object is of a format version that is not known here")


def _check_type(document: Document, expected: str) -> None:
    if document.type != expected:
        raise TrustError("type", f"document is of another type than '{expected}'")


# --- registry ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VerifiedRegistry:
    """A registry that the owner signed, under a version not below the high-water."""

    registry: Registry
    digest: Digest

    def record(self, stream: str) -> StreamRecord:
        """Return the stream's record.

        Raises:
            TrustError: ``stream`` if the owner has not registered it.
        """
        found = self.registry.stream(stream)
        if found is None:
            raise TrustError("stream", f"registry does not name stream '{stream}'")
        return found


def open_registry(
    data: bytes, locator_key: bytes, *, owner_digest: bytes, version: int, highest: int = 0
) -> VerifiedRegistry:
    """Return the registry that an object holds, after ingest 3.1 to 3.11.

    Args:
        data: the object.
        locator_key: 32 bytes that open it.
        owner_digest: SHA-256 of the owner's public bytes, from the card or ``owner.pub``.
        version: the version looked for.
        highest: the highest version ever accepted.

    Raises:
        IntegrityError, TrustError: the code of the first step that fails.
    """
    registry = check_registry_document(registry_document(data, locator_key), owner_digest)
    if registry.version != version or version < highest:  # 3.11
        raise TrustError(
            "registry-version",
            f"registry is of version {registry.version}, expected {max(version, highest)}",
            hint="an older registry may have been put there; compare objects/ with a copy of it",
        )
    return VerifiedRegistry(registry, Digest(primitives.sha256(data)))


def registry_document(data: bytes, locator_key: bytes) -> Document:
    """Return the signed document of a registry object (ingest 3.1 to 3.6); nothing is believed.

    Raises:
        IntegrityError: the code of the first step that fails.
    """
    check_object_size(len(data), most=REGISTRY_MAX_BYTES)  # 3.1
    _check_version(data)  # 3.2
    salt = data[1 : 1 + KEY_BYTES]
    key = registry_key(locator_key, salt)
    info = seal_info(Seal.REGISTRY, NOWHERE, salt)
    check_commitment(key, info, data[1 + KEY_BYTES : _REGISTRY_HEADER_BYTES])  # 3.3
    padded = open_sealed(key, data[_REGISTRY_HEADER_BYTES:])  # 3.4
    return parse_document(unpad_document(padded))  # 3.5, 3.6


def check_registry_document(document: Document, owner_digest: bytes) -> Registry:
    """Return the registry that an owner signed, wherever it comes from (ingest 3.7 to 3.10).

    Raises:
        IntegrityError, TrustError: the code of the first step that fails.
    """
    _check_type(document, REGISTRY_TYPE)  # 3.7
    owner = peek_owner(document.statement)
    if not primitives.same(primitives.sha256(owner), owner_digest):  # 3.8
        raise TrustError("owner", "registry is signed by another owner")
    check_signatures(document, owner)  # 3.9
    return parse_registry(document.statement)  # 3.10


def check_registry_time(verified: VerifiedRegistry, now: int) -> None:
    """Refuse to read under a registry that is not valid at ``now`` (ingest 3.12, 3.13).

    Raises:
        FreshnessError: ``ahead`` or ``registry-expired``.
    """
    registry = verified.registry
    freshness.check_issued(registry.issued, now, what=f"registry {registry.version}")
    if now >= registry.expires:
        raise FreshnessError(
            "registry-expired",
            f"registry {registry.version} expired at {freshness.utc_text(registry.expires)}",
            hint="writing goes on, and reading with durarepo checkout --archival; "
            "the owner renews the registry: durarepo registry draft, sign, admit",
        )


# --- manifest ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a manifest that is looked for has to be."""

    registry: VerifiedRegistry
    stream: str
    epoch: int
    sequence: int

    @property
    def record(self) -> StreamRecord:
        """The stream's record in the registry."""
        return self.registry.record(self.stream)

    @property
    def place(self) -> Compartment:
        """What the envelope's seal is bound to."""
        return Compartment(
            stream=self.stream, epoch=self.epoch, compartment=self.record.compartment
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedManifest:
    """A manifest whose own bytes, signatures and registry entry are good (ingest 4.1 to 4.19).

    Whether it is the one that belongs into the chain is not known yet.
    """

    statement: "Statement"
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedManifest:
    """A manifest in its place in the chain. Only `admit` makes one."""

    statement: "Statement"
    digest: Digest


def check_mark(data: bytes, naming_key: bytes) -> None:
    """Refuse an envelope that no holder of the naming key made (ingest 4.1 to 4.3).

    Raises:
        IntegrityError: ``object-size``, ``version`` or ``mark``.
    """
    check_object_size(len(data), most=ENVELOPE_MAX_BYTES)  # 4.1
    _check_version(data)  # 4.2
    mark_key = primitives.derive_subkey(naming_key, "mark")
    if not primitives.same(
        primitives.keyed_hash(mark_key, data[:-MARK_BYTES]), data[-MARK_BYTES:]
    ):  # 4.3
        raise IntegrityError("mark", "envelope was torn, or made without the stream's naming key")


def open_manifest(
    data: bytes, identity: bytes, *, expected: Expected, naming_key: bytes | None
) -> SignedManifest:
    """Return the manifest that an envelope holds, after ingest 4.1 to 4.19 (but 4.17).

    Args:
        data: the object.
        identity: seed of a data or an audit identity.
        expected: what the manifest has to be.
        naming_key: the epoch's naming key where it is held; the mark is checked with it.

    Raises:
        IntegrityError, TrustError: the code of the first step that fails.
    """
    # Imported here, as below, because a command that only lists manifests opens none.
    from durarepo.format.manifest import parse_statement, peek_signer  # noqa: PLC0415

    check_object_size(len(data), most=ENVELOPE_MAX_BYTES)  # 4.1
    _check_version(data)  # 4.2
    if naming_key is not None:
        check_mark(data, naming_key)  # 4.3
    salt = data[1 : 1 + KEY_BYTES]
    info = seal_info(Seal.ENVELOPE, expected.place, salt)
    header = open_header(identity, data, 1 + KEY_BYTES, info)  # 4.4, 4.5
    padded = open_sealed(header.key, data[header.length : -MARK_BYTES])  # 4.6
    document = parse_document(unpad_document(padded))  # 4.7, 4.8
    _check_type(document, MANIFEST_TYPE)  # 4.9
    epoch = _epoch(expected)
    signer = _find_signer(epoch, peek_signer(document.statement))  # 4.10
    check_signatures(document, signer.public)  # 4.11
    statement = parse_statement(document.statement)  # 4.12
    if statement.header_digest != primitives.sha256(data[: header.length]):  # 4.13
        raise TrustError("header", "manifest was signed for another envelope")
    _check_identity(statement, expected)  # 4.14, 4.15
    if Role.MANIFEST not in signer.roles:  # 4.16
        raise TrustError("role", "signer may not sign manifests of this stream")
    _check_numbers(statement, expected)  # 4.18, 4.19
    return SignedManifest(statement=statement, digest=Digest(primitives.sha256(data)))


def _epoch(expected: Expected) -> Epoch:
    for epoch in expected.record.epochs:
        if epoch.number == expected.epoch:
            return epoch
    raise TrustError("epoch", f"registry has no epoch {expected.epoch}")


def _find_signer(epoch: Epoch, wanted: SignerId) -> Signer:
    for signer in epoch.signers:
        if signer_id(signer.public) == wanted:
            return signer
    raise TrustError("unknown-signer", "manifest is signed by a key that is not registered")


def _check_identity(statement: "Statement", expected: Expected) -> None:
    record = expected.record
    stated = (statement.stream, statement.compartment, statement.never_publish)
    if stated != (record.stream, record.compartment, record.never_publish):
        raise TrustError("stream", f"manifest is of another stream than '{record.stream}'")
    in_epoch = record.epoch_of(statement.sequence).number
    if not statement.epoch == expected.epoch == in_epoch:
        raise TrustError("epoch", f"manifest is of another epoch than {expected.epoch}")


def _check_numbers(statement: "Statement", expected: Expected) -> None:
    held = expected.registry.registry.version
    if statement.registry_version > held:
        raise TrustError(
            "registry-version",
            f"manifest was made under registry {statement.registry_version}, held is {held}",
            hint=PUT_BACK,
        )
    if statement.sequence != expected.sequence:
        raise TrustError(
            "sequence",
            f"found manifest {statement.sequence} where {expected.sequence} was looked for",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A point of the chain that is trusted for reasons of its own: card, state, or genesis."""

    sequence: int
    digest: Digest


GENESIS = Anchor(sequence=0, digest=ZERO_DIGEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class HighWater:
    """The highest sequence ever accepted, with its digest, and the latest confirmed time."""

    sequence: int = 0
    digest: Digest = ZERO_DIGEST
    clock: int = 0


def admit(
    chain: Mapping[int, SignedManifest],
    *,
    record: StreamRecord,
    anchor: Anchor,
    high: HighWater,
    now: int,
) -> dict[int, VerifiedManifest]:
    """Return the manifests of a chain, after ingest 4.17 and 4.20 to 4.27.

    Args:
        chain: signed manifests by sequence, from above the anchor up to the head; the
            anchor's own may be there, and is compared with it.
        record: the stream's record in the registry.
        anchor: where trust begins; its own envelope need not be there.
        high: the highest accepted sequence and time.
        now: the live time in seconds since 1970.

    Raises:
        IntegrityError, TrustError, FreshnessError: the code of the first step that fails.
    """
    head = max(chain, default=anchor.sequence)
    numbers = range(anchor.sequence + 1, head + 1)
    # Of what lies at or below the anchor, the anchor alone is trusted.
    digests = {number: one.digest for number, one in chain.items() if number in numbers}
    digests[anchor.sequence] = anchor.digest
    if anchor.sequence in chain and chain[anchor.sequence].digest != anchor.digest:
        raise _broken_link(anchor.sequence)
    for number in numbers:
        if number not in chain:  # 4.20
            raise IntegrityError(
                "gap",
                f"manifest {number} of stream '{record.stream}' is missing",
                hint=PUT_BACK,
            )
        statement = chain[number].statement
        _check_revocation(statement, record, digests)  # 4.17
        _check_link(statement, record, digests, anchor)  # 4.21
    _check_high_water(head, digests, high)  # 4.22, 4.23
    for number in numbers:
        _check_claims(chain[number].statement, record, now)  # 4.24 to 4.26
    freshness.check_clock(now, high.clock)  # 4.27
    return {
        number: VerifiedManifest(statement=chain[number].statement, digest=chain[number].digest)
        for number in numbers
    }


def _check_claims(statement: "Statement", record: StreamRecord, now: int) -> None:
    what = f"manifest {statement.sequence}"
    if statement.floor > record.floor:  # 4.24
        raise TrustError("floor", f"{what} states a floor above the registry's")
    freshness.check_lifetime(statement.issued, statement.expires)  # 4.25
    freshness.check_issued(statement.issued, now, what=what)  # 4.26


def _check_high_water(head: int, digests: Mapping[int, Digest], high: HighWater) -> None:
    if head < high.sequence:
        raise TrustError(
            "rollback",
            f"newest manifest is {head}, but {high.sequence} has been seen",
            hint=PUT_BACK,
        )
    if high.sequence and digests.get(high.sequence, high.digest) != high.digest:
        raise TrustError(
            "fork",
            f"manifest {high.sequence} is another one than the one that was seen",
            hint="two machines may share the stream's keys; compare their heads",
        )


def _check_revocation(
    statement: "Statement", record: StreamRecord, digests: Mapping[int, Digest]
) -> None:
    for epoch in record.epochs:
        for revoked in epoch.revocations:
            if revoked.signer != statement.signer:
                continue
            reached = digests.get(revoked.sequence) == revoked.digest
            if statement.sequence > revoked.sequence or not reached:
                raise FreshnessError(
                    "revoked",
                    f"manifest {statement.sequence} is signed by a revoked signer",
                    hint=f"its last good manifest is number {revoked.sequence}",
                )


def _check_link(
    statement: "Statement",
    record: StreamRecord,
    digests: Mapping[int, Digest],
    anchor: Anchor,
) -> None:
    number = statement.sequence
    epoch = record.epoch_of(number)
    broken = digests[number - 1] != statement.previous
    if number == epoch.first_sequence and epoch.number > 1:
        broken = broken or statement.previous != epoch.previous
    milestone = last_milestone(number, record)
    if milestone == 0:
        broken = broken or statement.milestone != ZERO_DIGEST
    elif milestone > anchor.sequence or milestone in digests:
        broken = broken or digests.get(milestone) != statement.milestone
    if broken:
        raise _broken_link(number)


def _broken_link(number: int) -> TrustError:
    return TrustError("link", f"manifest {number} does not follow from the ones that are trusted")


def last_milestone(sequence: int, record: StreamRecord) -> int:
    """Return the number of the last milestone below ``sequence``, 0 where there is none."""
    from durarepo.format.manifest import is_milestone  # noqa: PLC0415

    for number in range(sequence - 1, 0, -1):
        if is_milestone(number, record.epoch_of(number).first_sequence):
            return number
    return 0


def check_restorable(
    manifest: VerifiedManifest, *, record: StreamRecord, now: int, clock: int = 0
) -> None:
    """Refuse to restore a manifest at ``now`` (ingest 4.24 to 4.28); asked again at 6.1 and 7.9.

    Raises:
        TrustError: ``floor``.
        FreshnessError: ``ahead``, ``clock`` or ``expired``.
    """
    statement = manifest.statement
    check_floor(manifest, record)
    freshness.check_issued(statement.issued, now, what=f"manifest {statement.sequence}")
    freshness.check_clock(now, clock)
    freshness.check_not_expired(
        statement.expires, now, sequence=statement.sequence, stream=statement.stream
    )


def check_floor(manifest: VerifiedManifest, record: StreamRecord) -> None:
    """Refuse a manifest below the registry's floor (ingest 4.24).

    Raises:
        TrustError: ``floor``.
    """
    if manifest.statement.sequence < record.floor:
        raise TrustError(
            "floor",
            f"manifest {manifest.statement.sequence} lies below the floor {record.floor}",
            hint="what it held was retired on purpose",
        )


def nested_extra(sequence: int, previous: Digest) -> bytes:
    """Return what is appended to the info of a nested part's seal."""
    return sequence.to_bytes(8) + previous


def open_nested(manifest: VerifiedManifest, identity: bytes, place: Compartment) -> "Nested":
    """Return the nested part of a verified manifest (ingest 4.30 to 4.32).

    Raises:
        IntegrityError: ``nested``, ``nested-form``, ``component-index``.
    """
    from durarepo.format.manifest import component_index, parse_nested  # noqa: PLC0415

    statement = manifest.statement
    extra = nested_extra(statement.sequence, statement.previous)
    try:
        packed = open_box(statement.nested, identity, kind=Seal.NESTED, place=place, extra=extra)
        plain = inflate(packed, most=NESTED_MAX_BYTES)
    except (InflateError, IntegrityError):
        raise IntegrityError("nested", "nested part of the manifest does not open") from None
    nested, stated_index = parse_nested(plain)
    if component_index(nested.components) != stated_index:
        raise IntegrityError("component-index", "index of components is not that of the components")
    return nested
