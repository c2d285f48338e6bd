"""Who takes part in a stream, with fresh keys, and the objects that they make in memory.

`Stream` makes registries and envelopes through the library's own seals; every part of an
envelope can be replaced, so that a test breaks one thing and nothing else. Nothing is stored.
Start at `Stream.manifest`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TypeVar

from durarepo.chunking.compression import deflate
from durarepo.core.entries import Entry, FileType
from durarepo.core.limits import SIZE_CLASSES
from durarepo.core.names import ZERO_DIGEST, ChunkId, Digest, Sequence
from durarepo.crypto import primitives
from durarepo.format.document import MANIFEST_TYPE, REGISTRY_TYPE
from durarepo.format.layout import Compartment, Seal, fitting_class
from durarepo.format.manifest import (
    Component,
    Nested,
    Root,
    SnapshotType,
    Statement,
    Totals,
    encode_nested,
    encode_statement,
)
from durarepo.format.registry import (
    Epoch,
    Registry,
    Retention,
    Revocation,
    Role,
    Signer,
    StreamRecord,
    encode_registry,
)
from durarepo.ingest import Expected, VerifiedRegistry, last_milestone, nested_extra, open_registry
from durarepo.sealing import (
    envelope_overhead,
    new_envelope_header,
    seal_box,
    seal_envelope,
    seal_registry,
    sign_document,
    signer_id,
)

NOW = 1_800_000_000
DAY = 86_400

T = TypeVar("T")


def same(value: T) -> T:
    """Change nothing."""
    return value


@dataclass(frozen=True)
class Pair:
    """A secret and what the public knows of it."""

    secret: bytes
    public: bytes


def new_signer() -> Pair:
    """Return a fresh signing pair."""
    secret = primitives.random_key() + primitives.random_key()
    return Pair(secret, primitives.signer_public(secret))


def new_identity() -> Pair:
    """Return a fresh identity with its recipient."""
    seed = primitives.random_key()
    return Pair(seed, primitives.recipient_of(seed))


@cache
def signers() -> list[Pair]:
    """Return signing pairs that are fresh in each run and alike within it."""
    return [new_signer() for _ in range(6)]


@cache
def identities() -> list[Pair]:
    """Return identities that are fresh in each run and alike within it."""
    return [new_identity() for _ in range(8)]


@cache
def secrets() -> list[bytes]:
    """Return secrets of 32 bytes that are fresh in each run and alike within it."""
    return [primitives.random_key() for _ in range(4)]


def directory(name: bytes = b"") -> Entry:
    """Return the entry of a directory."""
    return Entry(
        name=name,
        type=FileType.DIRECTORY,
        mode=0o755,
        mtime_ns=1,
        uid=1,
        gid=1,
        tree=ChunkId(b"t" * 32),
    )


def nested_part(**changes: object) -> Nested:
    """Return a small nested part."""
    nested = Nested(
        roots=(Root(path=b"/home/agent", entry=directory()),),
        components=(Component(kind="files", name=b"files", integrity=b"i" * 32),),
        ledger=b"",
        configuration=b'stream = "notes"\n',
        host=(("system", "Linux"),),
        epoch_facts=(("model", "m-1"), ("turn", 7)),
        policy="1",
    )
    return replace(nested, **changes)  # type: ignore[arg-type]  # a test names real fields


@dataclass
class Stream:
    """The stream ``notes``: its keys, its registry and the envelopes made so far."""

    count: int = 4
    naming: bytes = field(default_factory=lambda: secrets()[1])
    locator: bytes = field(default_factory=lambda: secrets()[2])
    owner: Pair = field(default_factory=lambda: signers()[1])
    signers: list[Pair] = field(default_factory=lambda: [signers()[2], signers()[3]])
    data: list[Pair] = field(default_factory=lambda: [identities()[1], identities()[2]])
    audit: list[Pair] = field(default_factory=lambda: [identities()[3]])
    stream: str = "notes"
    compartment: str = "main"
    version: int = 3
    floor: int = 0
    epochs: list[Epoch] = field(default_factory=list)
    envelopes: dict[int, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.epochs:
            self.epochs = [self.epoch(1, 1, ZERO_DIGEST)]

    def epoch(self, number: int, first: int, previous: Digest) -> Epoch:
        """Return an epoch in which the signer of its number may sign."""
        place = Compartment(stream=self.stream, epoch=number, compartment=self.compartment)
        data = [one.public for one in self.data]
        audit = [one.public for one in self.audit]
        slot = primitives.derive_subkey(self.naming, "slot")
        kind = Seal.NAMING_KEY
        return Epoch(
            number=number,
            first_sequence=first,
            previous=previous,
            signers=(
                Signer(public=self.signers[number - 1].public, roles=Role.MANIFEST | Role.EVIDENCE),
                Signer(public=signers()[4].public, roles=Role.EVIDENCE),
            ),
            data_recipients=tuple(data),
            audit_recipients=tuple(audit),
            stanza_count=self.count,
            naming_key=seal_box(self.naming, data, kind=kind, place=place, count=self.count),
            slot_key=seal_box(slot, audit, kind=Seal.SLOT_KEY, place=place, count=self.count)
            if audit
            else None,
            revocations=(),
        )

    def begin_epoch(self, first: int) -> None:
        """Begin the next epoch at a sequence whose predecessor has been made."""
        previous = self.digest(first - 1)
        self.epochs.append(self.epoch(len(self.epochs) + 1, first, previous))

    def revoke(self, number: int, sequence: int, digest: Digest | None = None) -> None:
        """Revoke the signer of an epoch behind its last good manifest."""
        revocation = Revocation(
            signer=signer_id(self.signers[number - 1].public),
            sequence=sequence,
            digest=self.digest(sequence) if digest is None else digest,
        )
        self.epochs[-1] = replace(self.epochs[-1], revocations=(revocation,))

    @property
    def record(self) -> StreamRecord:
        """The stream's record."""
        return StreamRecord(
            stream=self.stream,
            compartment=self.compartment,
            never_publish=False,
            epochs=tuple(self.epochs),
            floor=self.floor,
            retention=Retention(days=14, keep_weekly=0, keep_monthly=0),
            foreign_drill=False,
            shrink_lifted=None,
        )

    @property
    def owner_digest(self) -> bytes:
        """What card and owner.pub know of the owner."""
        return primitives.sha256(self.owner.public)

    def registry(self, **changes: object) -> Registry:
        """Return the registry's statement."""
        registry = Registry(
            version=self.version,
            issued=NOW - DAY,
            expires=NOW + 300 * DAY,
            owner=self.owner.public,
            streams=(self.record,),
        )
        return replace(registry, **changes)  # type: ignore[arg-type]  # a test names real fields

    def registry_object(
        self,
        *,
        statement: Callable[[bytes], bytes] = same,
        document: Callable[[bytes], bytes] = same,
        type_: str = REGISTRY_TYPE,
        owner: Pair | None = None,
        **changes: object,
    ) -> bytes:
        """Return a registry object; what is given is done to its parts before they are sealed."""
        plain = statement(encode_registry(self.registry(**changes)))
        signed = document(sign_document(type_, plain, (owner or self.owner).secret))
        return seal_registry(self.locator, signed, size=SIZE_CLASSES[1])

    def open_registry(self) -> VerifiedRegistry:
        """Return the registry as a reader has it."""
        return open_registry(
            self.registry_object(),
            self.locator,
            owner_digest=self.owner_digest,
            version=self.version,
        )

    def place(self, epoch: int = 1) -> Compartment:
        """Return what seals of an epoch are bound to."""
        return Compartment(stream=self.stream, epoch=epoch, compartment=self.compartment)

    def digest(self, sequence: int) -> Digest:
        """Return the digest of an envelope that was made, zeros where there is none."""
        if sequence not in self.envelopes:
            return ZERO_DIGEST
        return Digest(primitives.sha256(self.envelopes[sequence]))

    def expected(self, sequence: int, epoch: int | None = None) -> Expected:
        """Return what a reader looks for."""
        found = self.record.epoch_of(sequence).number if epoch is None else epoch
        return Expected(
            registry=self.open_registry(), stream=self.stream, epoch=found, sequence=sequence
        )

    def statement(self, sequence: int, header: bytes, /, **changes: object) -> Statement:
        """Return the statement of the next manifest."""
        epoch = self.record.epoch_of(sequence).number
        previous = self.digest(sequence - 1)
        nested = seal_box(
            deflate(encode_nested(nested_part())),
            [one.public for one in self.data],
            kind=Seal.NESTED,
            place=self.place(epoch),
            count=self.count,
            extra=nested_extra(Sequence(sequence), previous),
        )
        statement = Statement(
            stream=self.stream,
            epoch=epoch,
            compartment=self.compartment,
            never_publish=False,
            signer=signer_id(self.signers[epoch - 1].public),
            sequence=sequence,
            previous=previous,
            milestone=self.digest(last_milestone(sequence, self.record)),
            header_digest=Digest(primitives.sha256(header)),
            registry_version=self.version,
            issued=NOW,
            expires=NOW + DAY,
            type=SnapshotType.AUTO,
            complete=True,
            totals=Totals(files=1, dirs=1, bytes=6),
            shrunk=False,
            accepted=None,
            holds=(),
            audit_head=Digest(b"a" * 32),
            state_lost=False,
            pins=(),
            repairs=(),
            abandoned=(),
            floor=0,
            nested=nested,
        )
        return replace(statement, **changes)  # type: ignore[arg-type]  # a test names real fields

    def manifest(
        self,
        sequence: int,
        /,
        *,
        statement: Callable[[bytes], bytes] = same,
        document: Callable[[bytes], bytes] = same,
        type_: str = MANIFEST_TYPE,
        signing: Pair | None = None,
        place: Compartment | None = None,
        **changes: object,
    ) -> bytes:
        """Make an envelope, keep it as the one of its number, and return it.

        What is given is done to the parts before they are sealed; other names are fields of the
        statement.
        """
        epoch = self.record.epoch_of(sequence).number
        key, header = new_envelope_header(
            [one.public for one in (*self.data, *self.audit)],
            place=place or self.place(epoch),
            count=self.count,
        )
        plain = statement(encode_statement(self.statement(sequence, header, **changes)))
        signed = document(sign_document(type_, plain, (signing or self.signers[epoch - 1]).secret))
        size = fitting_class(envelope_overhead(header) + len(signed), most=SIZE_CLASSES[5])
        mark_key = primitives.derive_subkey(self.naming, "mark")
        envelope = seal_envelope(key, header, signed, size=size, mark_key=mark_key)
        self.envelopes[sequence] = envelope
        return envelope
