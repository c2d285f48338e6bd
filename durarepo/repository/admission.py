"""How the next registry comes into force: drafted here, signed by the owner, admitted here.

The commit point is the registry's object in its slot: before it nothing has changed but keys
that wait under a name of their own; after it whoever opens the repository finds it, and whoever
takes the lock next ends what is left to do. Where the owner's key still lies with the others, all
is done at once; else a draft is written for the owner to sign elsewhere.
Source: spec/format.md 8 and 3.4. Start at `carry_out` and `admit_document`.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from durarepo.core.clock import Clock
from durarepo.core.errors import (
    ConfigurationError,
    FreshnessError,
    IntegrityError,
    TrustError,
)
from durarepo.core.limits import REGISTRY_MAX_BYTES, SLOT_ATTEMPTS
from durarepo.core.names import Digest, Sequence
from durarepo.crypto import primitives
from durarepo.format.document import REGISTRY_TYPE, encode_document, parse_document
from durarepo.format.keytext import RegistryDraft, encode_draft
from durarepo.format.layout import fitting_class
from durarepo.format.registry import Registry, StreamRecord, encode_registry
from durarepo.ingest import check_registry_document, open_registry, registry_document
from durarepo.local import keyring
from durarepo.local.audit import Fact
from durarepo.local.keyring import load_keyring, load_owner
from durarepo.local.lock import RunLock
from durarepo.local.statefiles import HighWater
from durarepo.policy import freshness
from durarepo.repository.chain import Chain, high_water_of, revocations_of
from durarepo.repository.keyfolder import settle_keys, settle_recipients
from durarepo.repository.nextregistry import check_follows, describe
from durarepo.repository.repository import Repository, keys_in_force, registry_slot
from durarepo.repository.revoking import cuts_off_others
from durarepo.sealing import seal_registry, sign_document
from durarepo.store.atomic import make_folder, shown, write_once

AUDIT_KIND = "registry-admit"
_REGISTRY_ROOM = 1 + 32 + 32 + 12 + 16 + 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a change: admitted, or drafted for the owner to sign (``draft`` is its file).

    ``changes`` tells a person what the registry changes, a line each.
    """

    version: int
    epoch: int
    expires: int
    changes: tuple[str, ...]
    draft: bytes | None = None


def carry_out(
    repository: Repository,
    compose: Callable[[int], Registry],
    *,
    clock: Clock,
    out: bytes | None = None,
) -> Outcome:
    """Bring the registry that ``compose`` gives into force, or draft it for the owner.

    Args:
        repository: open; its lock is taken.
        compose: is given the live time under the lock, and may write new keys that wait.
        clock: the live time.
        out: where a draft is written; by default into the state folder. Where it is given a
            draft is written in any case.

    Raises:
        RunError: ``locked``.
        ConfigurationError: the change cannot be made, or the draft's file exists.
        TrustError, IntegrityError: what stands does not pass.
        KeyMaterialError: the keys are refused.
        StoreError: something cannot be written.
    """
    owner_path = os.path.join(repository.places.keys, keyring.OWNER)
    with holding(repository, clock):
        after = compose(clock())
        before = repository.registry.registry
        check_follows(before, after)
        if out is None and os.path.lexists(owner_path):
            owner = load_owner(owner_path).reveal()
            document = sign_document(REGISTRY_TYPE, encode_registry(after), owner)
            return admit_document(repository, document, now=clock())
        path = write_draft(repository, after, out=out)
        return Outcome(
            version=after.version,
            epoch=_record(repository, after).current.number,
            expires=after.expires,
            changes=describe(before, after),
            draft=path,
        )


@contextmanager
def holding(repository: Repository, clock: Clock) -> Iterator[None]:
    """Hold the lock, with registry and keys as they are once it is held.

    Raises:
        RunError: ``locked``.
        TrustError, IntegrityError, KeyMaterialError, StoreError: see `settle_keys`.
    """
    now = datetime.fromtimestamp(clock(), UTC)
    with RunLock(repository.places.lock, now=now) as lock:
        make_folder(repository.places.state)  # it may have been lost
        if lock.takeover is not None:
            repository.audit.append("lock-takeover", {}, now)
        repository.refresh_registry()
        settle_keys(repository)
        settle_recipients(repository)  # a run may have been killed before it could
        yield


def write_draft(repository: Repository, after: Registry, *, out: bytes | None) -> bytes:
    """Write a draft down for the owner, and return where.

    Raises:
        ConfigurationError: ``exists``: the file is there.
        StoreError: it cannot be written.
    """
    before = _current_document(repository)
    text = encode_draft(RegistryDraft(statement=encode_registry(after), before=before))
    path = out
    if path is None:
        name = f"registry-{after.version}-{primitives.sha256(text).hex()[:8]}.draft"
        path = os.path.join(repository.places.state, name.encode())
    check_free(path)
    write_once(path, text)
    return path


def check_free(path: bytes, *, hint: str = "name another file with --out") -> None:
    """Refuse a file to be written that is there already.

    Raises:
        ConfigurationError: ``exists``.
    """
    if os.path.lexists(path):
        raise ConfigurationError("exists", f"{shown(path)} is there already", hint=hint)


def _current_document(repository: Repository) -> bytes:
    """Return the signed document of the registry in force, as it is stored."""
    held, keys = repository.registry, repository.keys
    for attempt in range(SLOT_ATTEMPTS):
        name = registry_slot(keys.locator, held.registry.version, attempt)
        if repository.store.stat(name) is None:
            break
        data = repository.store.read(name)
        if primitives.sha256(data) == held.digest:
            return encode_document(registry_document(data, keys.locator.reveal()))
    raise TrustError("registry-version", f"registry {held.registry.version} is gone")


def _record(repository: Repository, registry: Registry) -> StreamRecord:
    found = registry.stream(repository.stream)
    if found is None:
        raise TrustError("stream", f"registry does not name stream '{repository.stream}'")
    return found


def admit_document(repository: Repository, encoded: bytes, *, now: int) -> Outcome:
    """Bring a registry that the owner signed into force; the caller holds the lock.

    Admitting once more what is in force ends what a killed run left, and changes nothing else.

    Args:
        repository: open.
        encoded: the signed document.
        now: the live time.

    Raises:
        TrustError, IntegrityError: it is not the owner's, or does not follow.
        FreshnessError: ``ahead``, ``registry-expired``.
        ConfigurationError: ``draft-stale``, ``recipients``.
        KeyMaterialError: the keys of its epoch are not here.
        StoreError: it cannot be stored, or (it is in force) not noted.
    """
    document = parse_document(encoded)
    after = check_registry_document(document, repository.keys.owner_digest)
    before = repository.registry.registry
    if document.statement == encode_registry(before):
        changes: tuple[str, ...] = ()
    else:
        check_follows(before, after)
        _check_time(after, now)
        _check_chain(repository, _record(repository, after))
        keys_in_force(
            load_keyring(repository.places.keys, roots=repository.root_paths),
            _record(repository, after),
        )
        changes = describe(before, after)
        _note(repository, after, encoded, now)
        _put(repository, after, encoded)
    _end(repository)
    return Outcome(
        version=after.version,
        epoch=repository.record.current.number,
        expires=after.expires,
        changes=changes,
    )


def _check_time(after: Registry, now: int) -> None:
    what = f"registry {after.version}"
    freshness.check_issued(after.issued, now, what=what)  # ingest 3.12
    if now >= after.expires:
        raise FreshnessError(
            "registry-expired",
            f"{what} expired at {freshness.utc_text(after.expires)} before it was admitted",
            hint="draft it again: durarepo registry draft",
        )


def _check_chain(repository: Repository, record: StreamRecord) -> None:
    """Refuse an epoch that does not begin where the chain is, but for what it revokes."""
    held = repository.record
    if len(record.epochs) == len(held.epochs):
        return
    current = record.current
    if revocations_of(record) <= revocations_of(held):
        head = Chain(repository).head()
        if current.first_sequence != head + 1:
            raise _stale(head)
    elif cuts_off_others(
        repository, current.first_sequence, {one.signer for one in revocations_of(record)}
    ):
        raise _stale(current.first_sequence)
    if digest_of(repository, current.first_sequence - 1) != current.previous:
        raise _stale(current.first_sequence - 1)


def _stale(head: int) -> ConfigurationError:
    return ConfigurationError(
        "draft-stale",
        f"draft does not go on from manifest {head}, with which the chain goes on now",
        hint="draft it again, and take no snapshot until it is admitted",
    )


def digest_of(repository: Repository, sequence: int) -> Digest:
    """Return the digest of a manifest's envelope: as the ledger here has it, else as it lies there.

    Raises:
        TrustError: ``fork``: several lie there, and nothing here knows which is ours.
        IntegrityError: ``gap``.
    """
    for run in repository.iter_counted_runs():
        if run.sequence == sequence:
            return run.digest
    envelope = Chain(repository).envelope(sequence)
    if envelope is None:
        raise IntegrityError(
            "gap", f"manifest {sequence} of stream '{repository.stream}' is missing"
        )
    return envelope.digest


def _note(repository: Repository, after: Registry, encoded: bytes, now: int) -> None:
    """Tell the audit log before anything is in force."""
    make_folder(repository.places.state)
    facts: dict[str, Fact] = {
        "stream": repository.stream,
        "version": after.version,
        "epoch": _record(repository, after).current.number,
        "document": primitives.sha256(encoded).hex(),
    }
    repository.audit.append(AUDIT_KIND, facts, datetime.fromtimestamp(now, UTC))


def _put(repository: Repository, after: Registry, encoded: bytes) -> None:
    locator = repository.keys.locator
    try:
        size = fitting_class(len(encoded) + _REGISTRY_ROOM, most=REGISTRY_MAX_BYTES)
    except ValueError:
        raise ConfigurationError(
            "registry-size",
            f"registry would be longer than {REGISTRY_MAX_BYTES} bytes",
            hint="it holds too many epochs; make a new stream: durarepo init",
        ) from None
    data = seal_registry(locator.reveal(), encoded, size=size)
    verified = open_registry(
        data,
        locator.reveal(),
        owner_digest=repository.keys.owner_digest,
        version=after.version,
    )
    for attempt in range(SLOT_ATTEMPTS):
        name = registry_slot(locator, after.version, attempt)
        if repository.store.stat(name) is not None:
            continue  # torn or foreign: what passes ingest would have been found
        try:
            repository.store.put_new(name, data)
        except IntegrityError:
            continue
        repository.take_registry(verified)
        return
    raise TrustError(
        "slots",
        f"all places of registry {after.version} are taken by something else",
        hint="find out who put them into objects/, and move them away",
    )


def _end(repository: Repository) -> None:
    """Do what follows from the registry in force; each part can be done again."""
    settle_keys(repository)
    settle_recipients(repository)
    held = repository.state.high_water()
    if held is None:
        return  # the state was lost; the next run has to see that
    high = high_water_of(repository)
    repository.state.raise_high_water(
        HighWater(
            epoch=repository.record.current.number,
            sequence=Sequence(high.sequence),
            head_digest=high.digest,
            registry_version=repository.registry.registry.version,
            clock_seconds=held.clock_seconds,
        )
    )
