"""The commit point: statement, both signatures, envelope, slot; then the bookkeeping.

Nothing before the envelope is put is visible to a reader. A slot that holds something torn is
passed over; one that holds an envelope with a good mark which is not ours means a twin.
Source: spec/format.md 7 and 9, law 1. Start at `publish`.
"""

from dataclasses import dataclass, replace

from durarepo.chunking.compression import deflate
from durarepo.core.errors import PUT_BACK, IntegrityError, StoreError, TrustError
from durarepo.core.limits import (
    ENVELOPE_MAX_BYTES,
    MANIFEST_TTL_SECONDS,
    SLOT_ATTEMPTS,
)
from durarepo.core.names import ZERO_DIGEST, Digest, ObjectName
from durarepo.crypto import primitives
from durarepo.format.document import MANIFEST_TYPE
from durarepo.format.layout import Seal, fitting_class
from durarepo.format.manifest import (
    Nested,
    Pin,
    SnapshotType,
    Statement,
    Totals,
    encode_nested,
    encode_statement,
)
from durarepo.ingest import check_mark, last_milestone, nested_extra
from durarepo.local.journal import Journal
from durarepo.repository.chain import Chain
from durarepo.repository.repository import Repository
from durarepo.repository.standing import Standing, note_manifest, publish_record
from durarepo.sealing import (
    envelope_overhead,
    new_envelope_header,
    seal_box,
    seal_envelope,
    sign_document,
    signer_id,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a run has to say; the rest of the manifest follows from where it stands."""

    type: SnapshotType
    complete: bool
    totals: Totals
    pins: tuple[Pin, ...]
    abandoned: tuple[ObjectName, ...]
    nested: Nested


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A manifest that stands."""

    statement: Statement
    name: ObjectName
    digest: Digest


def publish(
    repository: Repository, draft: Draft, *, standing: Standing, journal: Journal, now: int
) -> Published:
    """Sign, seal and put the next manifest, then note it.

    Args:
        repository: the stream's repository; the caller holds its lock.
        draft: what the run kept.
        standing: where the run began.
        journal: told just before the envelope is put.
        now: when it is issued.

    Raises:
        TrustError: ``fork``: another writer holds the number.
        StoreError: it could not be put, or (the manifest stands) not noted.
    """
    signing = repository.keys.need_signing().reveal()
    record, epoch = repository.record, repository.record.current
    place = repository.place(epoch.number)
    recipients = (*epoch.data_recipients, *epoch.audit_recipients)
    key, header = new_envelope_header(recipients, place=place, count=epoch.stanza_count)
    sequence = standing.sequence + 1
    extra = nested_extra(sequence, standing.head_digest)
    statement = Statement(
        stream=repository.stream,
        epoch=epoch.number,
        compartment=record.compartment,
        never_publish=record.never_publish,
        signer=signer_id(primitives.signer_public(signing)),
        sequence=sequence,
        previous=standing.head_digest,
        milestone=_milestone_digest(repository, sequence),
        header_digest=Digest(primitives.sha256(header)),
        registry_version=repository.registry.registry.version,
        issued=now,
        expires=now + MANIFEST_TTL_SECONDS,
        type=draft.type,
        complete=draft.complete,
        totals=draft.totals,
        shrunk=False,
        accepted=None,
        holds=(),
        audit_head=repository.audit.head(),
        state_lost=standing.state_lost,
        pins=draft.pins,
        repairs=(),
        abandoned=draft.abandoned,
        floor=record.floor,
        nested=seal_box(
            deflate(encode_nested(draft.nested)),
            epoch.data_recipients,
            kind=Seal.NESTED,
            place=place,
            count=epoch.stanza_count,
            extra=extra,
        ),
    )
    encoded = encode_statement(statement)
    document = sign_document(MANIFEST_TYPE, encoded, signing)
    size = fitting_class(envelope_overhead(header) + len(document), most=ENVELOPE_MAX_BYTES)
    mark_key = primitives.derive_subkey(repository.keys.naming.reveal(), "mark")
    data = seal_envelope(key, header, document, size=size, mark_key=mark_key)
    digest = Digest(primitives.sha256(data))
    name = _put(repository, statement, data, journal, encoded)
    try:
        note_manifest(repository, statement, name=name, digest=digest)
    except StoreError as error:
        raise not_noted(error, sequence) from error
    return Published(statement=replace(statement, nested=b""), name=name, digest=digest)


def not_noted(error: StoreError, sequence: int) -> StoreError:
    """Return the error of a run whose manifest stands although it could not end its work."""
    return StoreError(
        error.code.partition(".")[2],
        f"manifest {sequence} stands, but could not be noted: {error.message}",
        hint=error.hint or "run the command again; it notes the manifest first",
    )


def _milestone_digest(repository: Repository, sequence: int) -> Digest:
    number = last_milestone(sequence, repository.record)
    if number == 0:
        return ZERO_DIGEST
    envelope = Chain(repository).envelope(number)
    if envelope is None:
        raise IntegrityError(
            "gap",
            f"milestone {number} of stream '{repository.stream}' is missing",
            hint=PUT_BACK,
        )
    return envelope.digest


def _put(
    repository: Repository, statement: Statement, data: bytes, journal: Journal, encoded: bytes
) -> ObjectName:
    digest = Digest(primitives.sha256(data))
    for attempt in range(SLOT_ATTEMPTS):
        name = repository.manifest_slot(statement.epoch, statement.sequence, attempt)
        if repository.store.stat(name) is not None:
            _check_torn(repository, name, statement.sequence)
            continue
        journal.append(publish_record(name, digest, encoded))
        try:
            repository.store.put_new(name, data)
        except IntegrityError:  # taken since it was looked at
            _check_torn(repository, name, statement.sequence)
            continue
        except StoreError as error:
            if repository.store.stat(name) is None:
                raise
            raise not_noted(error, statement.sequence) from error
        return name
    first = repository.manifest_slot(statement.epoch, statement.sequence, 0)
    raise TrustError(
        "slots",
        f"all places of manifest {statement.sequence} are taken by something else",
        hint=f"find out who put {first} and others into objects/, and move them away",
    )


def _check_torn(repository: Repository, name: ObjectName, sequence: int) -> None:
    """Return if what stands in a slot was torn or is foreign; refuse a twin's envelope."""
    try:
        check_mark(repository.store.read(name), repository.keys.naming.reveal())
    except IntegrityError:
        return
    raise TrustError(
        "fork",
        f"another writer has put manifest {sequence} of stream '{repository.stream}'",
        hint="two machines may share the stream's keys; stop one of them",
    )
