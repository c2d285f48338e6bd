"""The registry that comes next: how each change of keys is said, told, and held to the one before.

Only values: it signs nothing and stores nothing. An epoch, once begun, keeps its number, its
first sequence and what it follows; a revocation never goes away.
Source: spec/format.md 8. Start at `renewed` and `check_follows`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from durarepo.core.errors import ConfigurationError, TrustError
from durarepo.core.limits import REGISTRY_TTL_MAX_SECONDS, STANZA_COUNTS
from durarepo.core.names import Digest
from durarepo.crypto import primitives
from durarepo.format.layout import Compartment, Seal
from durarepo.format.registry import Epoch, Registry, Revocation, Role, Signer, StreamRecord
from durarepo.policy.freshness import utc_text
from durarepo.sealing import seal_box, signer_id

RECIPIENTS_MIN = 2
"""The owner and the escrow: one of them may be lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """What a new epoch begins with; ``naming`` is 32 secret bytes, new or kept."""

    signers: tuple[Signer, ...]
    naming: bytes
    first_sequence: int
    previous: Digest


def renewed(registry: Registry, record: StreamRecord, *, now: int) -> Registry:
    """Return the next version of a registry, with one stream's record as given."""
    streams = tuple(record if one.stream == record.stream else one for one in registry.streams)
    return replace(
        registry,
        version=registry.version + 1,
        issued=now,
        expires=now + REGISTRY_TTL_MAX_SECONDS,
        streams=streams,
    )


def with_epoch(record: StreamRecord, begin: Begin) -> StreamRecord:
    """Return a record in which a further epoch is in force.

    Raises:
        ConfigurationError: ``epoch``: the one in force has no manifest before it.
    """
    current = record.current
    if begin.first_sequence <= current.first_sequence:
        raise ConfigurationError(
            "epoch",
            f"epoch {current.number} begins with manifest {current.first_sequence}, "
            "and no other can begin at or before it",
            hint="take a snapshot first; a revocation reaches back as far as this epoch at most",
        )
    epoch = replace(
        current,
        number=current.number + 1,
        first_sequence=begin.first_sequence,
        previous=begin.previous,
        signers=begin.signers,
        revocations=(),
    )
    return replace(record, epochs=(*record.epochs, _sealed(record, epoch, begin.naming)))


def _sealed(record: StreamRecord, epoch: Epoch, naming: bytes) -> Epoch:
    """Return an epoch with its keys sealed to its own recipients."""
    place = Compartment(stream=record.stream, epoch=epoch.number, compartment=record.compartment)
    count, slot_key = epoch.stanza_count, None
    if epoch.audit_recipients:
        subkey = primitives.derive_subkey(naming, "slot")
        slot_key = seal_box(
            subkey, epoch.audit_recipients, kind=Seal.SLOT_KEY, place=place, count=count
        )
    box = seal_box(naming, epoch.data_recipients, kind=Seal.NAMING_KEY, place=place, count=count)
    return replace(epoch, naming_key=box, slot_key=slot_key)


def with_recipients(
    record: StreamRecord, data: tuple[bytes, ...], *, naming: dict[int, bytes]
) -> StreamRecord:
    """Return a record whose epoch in force has other data recipients.

    Args:
        record: the stream's.
        data: all of them.
        naming: naming keys by number, of the epochs whose packs still count: they are sealed
            anew, so that a new recipient can read what a later manifest pins.

    Raises:
        ConfigurationError: ``recipients``: fewer than two, or more than stanzas.
    """
    current = record.current
    total = len(data) + len(current.audit_recipients)
    if len(data) < RECIPIENTS_MIN or total > max(STANZA_COUNTS):
        raise ConfigurationError(
            "recipients",
            f"a stream has {RECIPIENTS_MIN} to {max(STANZA_COUNTS)} recipients, not {total}",
            hint="add the new one before the old one is retired",
        )
    count = next(n for n in STANZA_COUNTS if n >= max(total, current.stanza_count))
    epochs: list[Epoch] = []
    for epoch in record.epochs:
        changed = replace(epoch, data_recipients=data, stanza_count=count)
        if epoch.number == current.number:
            sealed = _sealed(record, changed, naming[epoch.number])
            is_same_form = count == epoch.stanza_count
            epochs.append(replace(sealed, slot_key=epoch.slot_key) if is_same_form else sealed)
        elif epoch.number in naming:
            box = _sealed(record, changed, naming[epoch.number]).naming_key
            epochs.append(replace(epoch, naming_key=box))
        else:
            epochs.append(epoch)
    return replace(record, epochs=tuple(epochs))


def with_revocation(record: StreamRecord, revocation: Revocation, *, epoch: int) -> StreamRecord:
    """Return a record that holds a further revocation, in the epoch given."""
    epochs = tuple(
        replace(one, revocations=(*one.revocations, revocation)) if one.number == epoch else one
        for one in record.epochs
    )
    return replace(record, epochs=epochs)


def with_signer(record: StreamRecord, signer: Signer) -> StreamRecord:
    """Return a record whose epoch in force has a further signer; a known one keeps its roles."""
    current = record.current
    signers = joined(signer, current.signers)
    return replace(record, epochs=(*record.epochs[:-1], replace(current, signers=signers)))


def joined(signer: Signer, others: Sequence[Signer]) -> tuple[Signer, ...]:
    """Return signers, none twice: one that is among the others has the roles of both."""
    kept = [one for one in others if one.public != signer.public]
    known = [one.roles for one in others if one.public == signer.public]
    return (replace(signer, roles=reduce(or_, known, signer.roles)), *kept)


# --- held to the one before ----------------------------------------------------------------


def check_follows(before: Registry, after: Registry) -> None:
    """Refuse a registry that does not go on from the one before it.

    Raises:
        TrustError: ``registry-version``; ``registry-change``: what is fixed would change, or
            nobody could sign manifests.
        ConfigurationError: ``recipients``: fewer than two would be left, or one stands twice.
    """
    if after.version != before.version + 1:
        raise TrustError(
            "registry-version",
            f"registry is of version {after.version}, expected {before.version + 1}",
            hint="draft it again from the registry that is in force: durarepo registry draft",
        )
    if after.owner != before.owner:
        raise _changes("its owner")
    for old in before.streams:
        new = after.stream(old.stream)
        if new is None:
            raise _changes(f"stream '{old.stream}', which is gone")
        _check_record(old, new)


def _check_record(old: StreamRecord, new: StreamRecord) -> None:
    if (old.compartment, old.never_publish) != (new.compartment, new.never_publish):
        raise _changes("compartment or never_publish")
    if new.floor < old.floor or len(new.epochs) < len(old.epochs):
        raise _changes("floor or epochs, which only rise")
    has_others = set(new.current.data_recipients) != set(old.current.data_recipients)
    for one, two in zip(old.epochs, new.epochs, strict=False):
        _check_epoch(one, two, may_reseal=has_others)
    revoked = {one.signer for epoch in new.epochs for one in epoch.revocations}
    if any(signer_id(one.public) in revoked for one in new.current.signers) and len(
        new.epochs
    ) > len(old.epochs):
        raise _changes("a revoked signer, which begins no epoch")
    if all(signer_id(public) in revoked for public in new.current.manifest_signers):
        raise _changes("the signers, of whom none could sign manifests")
    _check_recipients(new.current)


def _check_recipients(epoch: Epoch) -> None:
    data = epoch.data_recipients
    if len(set(data)) < RECIPIENTS_MIN:
        raise ConfigurationError(
            "recipients",
            f"at least {RECIPIENTS_MIN} recipients have to remain",
            hint="add the new one before the old one is retired",
        )
    if len({*data, *epoch.audit_recipients}) != len(data) + len(epoch.audit_recipients):
        raise ConfigurationError(
            "recipients",
            "registry would name a recipient twice",
            hint="draft it again: durarepo registry draft; do not sign what you did not ask for",
        )


def _check_epoch(one: Epoch, two: Epoch, *, may_reseal: bool) -> None:
    if (one.first_sequence, one.previous) != (two.first_sequence, two.previous):
        raise _changes(f"where epoch {one.number} begins")
    if _is_sealed_for_nothing(one, two, may_reseal=may_reseal):
        raise _changes(f"a key of epoch {one.number}, which is sealed anew for new recipients")
    if not set(one.revocations) <= set(two.revocations):
        raise _changes("a revocation, which never goes away")


def _is_sealed_for_nothing(old: Epoch, new: Epoch, *, may_reseal: bool) -> bool:
    """Return whether a sealed key is another although those who are to open it are the same.

    Nobody who signs can see what lies in it; what is wrong there locks every reader out. Where
    the recipients in force change (``may_reseal``), the naming keys of earlier epochs are sealed
    to them as well, and the lists of those epochs stay (format 8). Order makes no difference.
    """
    is_naming = old.naming_key != new.naming_key and not may_reseal
    is_audited = set(old.audit_recipients) == set(new.audit_recipients)
    is_slot = old.slot_key != new.slot_key and is_audited and old.stanza_count == new.stanza_count
    return is_naming or is_slot


def _changes(what: str) -> TrustError:
    return TrustError(
        "registry-change",
        f"registry would change {what}",
        hint="draft it again: durarepo registry draft; do not sign what you did not ask for",
    )


# --- told to a person ----------------------------------------------------------------------


def describe(before: Registry, after: Registry) -> tuple[str, ...]:
    """Return what changes from one registry to the next, a line each."""
    return tuple(_iter_changes(before, after))


def _iter_changes(before: Registry, after: Registry) -> Iterator[str]:
    yield f"expires {utc_text(after.expires)}, was {utc_text(before.expires)}"
    for new in after.streams:
        old = before.stream(new.stream)
        if old is None:
            yield f"stream {new.stream}: new"
            continue
        for line in _iter_record(old, new):
            yield f"stream {new.stream}: {line}"
    for old in before.streams:
        if after.stream(old.stream) is None:
            yield f"stream {old.stream}: gone"


def _iter_record(old: StreamRecord, new: StreamRecord) -> Iterator[str]:
    if (old.compartment, old.never_publish) != (new.compartment, new.never_publish):
        yield f"compartment {new.compartment}, never_publish {str(new.never_publish).lower()}"
    if old.floor != new.floor:
        yield f"manifests below {new.floor} can no more be restored"
    if old.retention != new.retention:
        kept = new.retention
        yield f"retention {kept.days} days, {kept.keep_weekly} weekly, {kept.keep_monthly} monthly"
    if old.foreign_drill != new.foreign_drill:
        yield f"foreign drill required {str(new.foreign_drill).lower()}"
    if old.shrink_lifted != new.shrink_lifted:
        yield "a shrunk manifest is accepted"
    previous = old.epochs[0]
    for epoch in new.epochs:
        same = next((one for one in old.epochs if one.number == epoch.number), None)
        if same is None:
            yield f"epoch {epoch.number} begins with manifest {epoch.first_sequence}"
        yield from _iter_epoch(previous if same is None else same, epoch)
        previous = epoch


def _iter_epoch(old: Epoch, new: Epoch) -> Iterator[str]:
    yield from _iter_keys(
        "signer",
        [(signer_id(one.public).hex(), _words(one.roles)) for one in old.signers],
        [(signer_id(one.public).hex(), _words(one.roles)) for one in new.signers],
    )
    for kind, one, two in (
        ("recipient", old.data_recipients, new.data_recipients),
        ("auditor", old.audit_recipients, new.audit_recipients),
    ):
        yield from _iter_keys(kind, _recipient_ids(one), _recipient_ids(two))
    if old.number == new.number and old.first_sequence != new.first_sequence:
        yield f"epoch {new.number} begins with manifest {new.first_sequence} instead"
    if old.stanza_count != new.stanza_count:
        yield f"places for recipients {new.stanza_count}, were {old.stanza_count}"
    if old.number == new.number and (old.naming_key, old.slot_key) != (
        new.naming_key,
        new.slot_key,
    ):
        yield f"keys of epoch {new.number} sealed anew"
    for revoked in new.revocations:
        if revoked not in old.revocations:
            yield f"signer {revoked.signer.hex()} revoked after manifest {revoked.sequence}"


def _recipient_ids(keys: Sequence[bytes]) -> list[tuple[str, str]]:
    return [(primitives.sha256(key).hex(), "") for key in keys]


def _iter_keys(kind: str, old: list[tuple[str, str]], new: list[tuple[str, str]]) -> Iterator[str]:
    for one, words in new:
        if (one, words) not in old:
            yield f"{kind} {one} comes in{words}"
    for one, words in old:
        if (one, words) not in new:
            yield f"{kind} {one} goes out{words}"


def _words(roles: Role) -> str:
    return ", for " + " and ".join((one.name or "").lower() for one in Role if one in roles)
