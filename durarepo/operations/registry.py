"""Draft, sign and admit a registry: three steps, of which the owner does the middle one elsewhere.

A draft without a change renews: it is the same registry with a fresh expiry. A signed registry
travels in the open, as it holds no secret; it is sealed when it is admitted.
Source: spec/format.md 8, spec/cli.md 4. Start at `draft_registry`.
"""

import re
from dataclasses import dataclass, replace

from durarepo.core.clock import Clock
from durarepo.core.errors import ConfigurationError, TrustError
from durarepo.core.secret import Secret
from durarepo.crypto import primitives
from durarepo.format.document import REGISTRY_TYPE, encode_document, parse_document
from durarepo.format.keytext import encode_signed, parse_draft, parse_signed
from durarepo.format.registry import (
    Registry,
    Revocation,
    Role,
    Signer,
    StreamRecord,
    parse_registry,
)
from durarepo.ingest import check_registry_document
from durarepo.repository.admission import (
    Outcome,
    admit_document,
    carry_out,
    digest_of,
    holding,
)
from durarepo.repository.chain import Chain, no_sequence
from durarepo.repository.epochs import begin_epoch, new_signing
from durarepo.repository.nextregistry import (
    check_follows,
    describe,
    joined,
    renewed,
    with_revocation,
    with_signer,
)
from durarepo.repository.repository import Repository
from durarepo.repository.revoking import highest_known, last_good
from durarepo.sealing import sign_document, signer_id

_REVOKE = re.compile(r"([0-9a-f]{8,64})@([0-9]{1,18})\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftRequest:
    """What a draft is to change; nothing: it renews.

    ``signer`` are public bytes and role of a signer to admit. One for manifests takes the chain
    over: it begins an epoch in which no other signs manifests. ``revoke`` is ``SIGNER@SEQ``.
    """

    out: bytes
    signer: tuple[bytes, Role] | None = None
    revoke: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRegistry:
    """What an owner has looked at; ``text`` is None where nothing was signed."""

    version: int
    expires: int
    changes: tuple[str, ...]
    text: bytes | None


def draft_registry(repository: Repository, request: DraftRequest, *, clock: Clock) -> Outcome:
    """Write a draft of the next registry for the owner to sign.

    Args:
        repository: open; its lock is taken.
        request: what is to change.
        clock: the live time.

    Raises:
        ConfigurationError: what is asked for cannot be; the file exists.
        RunError, TrustError, IntegrityError, KeyMaterialError, StoreError: see `carry_out`.
    """

    def compose(now: int) -> Registry:
        record = repository.record
        if request.revoke is not None:
            record = _revoked(repository, request)
        elif request.signer is not None:
            record = _with_signer(repository, *request.signer)
        return renewed(repository.registry.registry, record, now=now)

    return carry_out(repository, compose, clock=clock, out=request.out)


def _with_signer(repository: Repository, public: bytes, role: Role) -> StreamRecord:
    record, signer = repository.record, Signer(public=public, roles=role)
    _check_signer(record, public)
    if Role.MANIFEST not in role:
        return with_signer(record, signer)
    head = Chain(repository).head()
    naming = repository.keys.naming
    return begin_epoch(
        repository,
        record,
        signers=joined(signer, _others(record, public)),
        naming=naming,
        after=head,
    )


def _others(record: StreamRecord, public: bytes) -> tuple[Signer, ...]:
    """Return ``public`` and the signers of evidence alone: they go on whoever signs manifests."""
    signers = record.current.signers
    return tuple(one for one in signers if one.public == public or Role.MANIFEST not in one.roles)


def _check_signer(record: StreamRecord, public: bytes) -> None:
    if primitives.is_weak_signer(public):
        raise TrustError("weak-key", "new signer's Ed25519 key is weak")
    if record.is_revoked(signer_id(public)):
        raise ConfigurationError(
            "signer",
            "that signer has been revoked",
            hint="make another one: durarepo keys new-signer",
        )


def _revoked(repository: Repository, request: DraftRequest) -> StreamRecord:
    record = repository.record
    public, sequence, roles = _parse_revocation(record, request.revoke or "")
    head = highest_known(repository)
    if not 1 <= sequence <= head:
        raise no_sequence(str(sequence), head)
    revocation = Revocation(
        signer=signer_id(public), sequence=sequence, digest=digest_of(repository, sequence)
    )
    listing = [one.number for one in record.epochs if public in {s.public for s in one.signers}]
    changed = with_revocation(record, revocation, epoch=listing[-1])
    kept = tuple(one for one in record.current.signers if one.public != public)
    if Role.MANIFEST not in roles:
        current = replace(changed.current, signers=kept or changed.current.signers)
        return replace(changed, epochs=(*changed.epochs[:-1], current))
    after = last_good(repository, revocation)
    if request.signer is not None:
        _check_signer(changed, request.signer[0])
        signer = Signer(public=request.signer[0], roles=request.signer[1])
        others = _others(record, signer.public)
        kept = joined(signer, tuple(one for one in others if one.public != public))
    if not any(Role.MANIFEST in one.roles for one in kept):
        mine = Signer(public=new_signing(repository), roles=Role.MANIFEST | Role.EVIDENCE)
        kept = (mine, *kept)
    return begin_epoch(
        repository, changed, signers=kept, naming=Secret(primitives.random_key()), after=after
    )


def _parse_revocation(record: StreamRecord, text: str) -> tuple[bytes, int, Role]:
    match = _REVOKE.match(text)
    if match is None:
        raise ConfigurationError(
            "revoke",
            "a revocation is SIGNER@SEQ: eight digits or more of the signer's id, and the number "
            "of the last good manifest",
            hint="see durarepo registry show for the signers, durarepo log for the numbers",
        )
    found: dict[bytes, Role] = {}
    for epoch in record.epochs:
        for one in epoch.signers:
            if signer_id(one.public).hex().startswith(match[1]):
                found[one.public] = found.get(one.public, Role(0)) | one.roles
    if len(found) != 1 or record.is_revoked(signer_id(next(iter(found)))):
        raise ConfigurationError(
            "signer",
            f"there is not one signer '{match[1]}' that could be revoked",
            hint="see durarepo registry show for the signers",
        )
    ((public, roles),) = found.items()
    return public, int(match[2]), roles


def sign_registry(text: bytes, owner: Secret | None) -> SignedRegistry:
    """Look at a draft as its owner, and sign it if the owner's key is given.

    Args:
        text: the draft's file.
        owner: the owner's key; None: only look, by the key that signed the registry before.

    Raises:
        ConfigurationError: ``draft``: that is none; ``recipients``.
        TrustError: ``owner``: it is of another owner; ``registry-change``; ``signature``.
        IntegrityError: what stands in it has another form.
    """
    draft = parse_draft(text)
    base, after = parse_document(draft.before), parse_registry(draft.statement)
    public = after.owner if owner is None else primitives.signer_public(owner.reveal())
    before = check_registry_document(base, primitives.sha256(public))
    check_follows(before, after)
    signed = None
    if owner is not None:
        document = sign_document(REGISTRY_TYPE, draft.statement, owner.reveal())
        signed = encode_signed(encode_document(parse_document(document)))
    return SignedRegistry(
        version=after.version,
        expires=after.expires,
        changes=describe(before, after),
        text=signed,
    )


def admit_registry(repository: Repository, text: bytes, *, clock: Clock) -> Outcome:
    """Bring a registry that the owner signed into force.

    Args:
        repository: open; its lock is taken.
        text: the signed registry's file.
        clock: the live time.

    Raises:
        RunError: ``locked``.
        ConfigurationError: ``draft``, ``draft-stale``.
        TrustError, IntegrityError, FreshnessError, KeyMaterialError, StoreError: see
            `admit_document`.
    """
    encoded = parse_signed(text)
    with holding(repository, clock):
        return admit_document(repository, encoded, now=clock())
