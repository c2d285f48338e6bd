"""Rotate keys: a new epoch with another signing key, or with another naming key as well.

The signing key is changed at no cost. Under a new naming key no earlier pack is known, so the
next snapshot seals everything anew. Old keys stay here under names of their own: they read what
was kept, and sign nothing that a reader would take.
Source: spec/format.md 3.4 and 8. Start at `rotate_signing`.
"""

import os

from durarepo.core.clock import Clock
from durarepo.core.errors import ConfigurationError
from durarepo.core.secret import Secret
from durarepo.crypto import primitives
from durarepo.format.keytext import encode_signer
from durarepo.format.registry import Registry, Role, Signer
from durarepo.repository.admission import Outcome, carry_out, check_free, holding
from durarepo.repository.chain import Chain
from durarepo.repository.epochs import begin_epoch, new_signing
from durarepo.repository.nextregistry import renewed
from durarepo.repository.repository import Repository
from durarepo.store.atomic import write_once


def rotate_signing(repository: Repository, *, clock: Clock, out: bytes | None = None) -> Outcome:
    """Begin an epoch with a new signing key; naming key, ids and packs stay.

    Args:
        repository: open; its lock is taken.
        clock: the live time.
        out: where a draft is written, if the owner signs elsewhere.

    Raises:
        RunError, ConfigurationError, TrustError, IntegrityError, KeyMaterialError, StoreError:
            see `carry_out`.
    """

    def compose(now: int) -> Registry:
        repository.check_signer()
        old = primitives.signer_public(repository.keys.need_signing().reveal())
        head = Chain(repository).head()
        _check_begins(repository, head)
        signers = _replaced(repository, old, new_signing(repository))
        record = begin_epoch(
            repository,
            repository.record,
            signers=signers,
            naming=repository.keys.naming,
            after=head,
        )
        return renewed(repository.registry.registry, record, now=now)

    return carry_out(repository, compose, clock=clock, out=out)


def rotate_naming(repository: Repository, *, clock: Clock, out: bytes | None = None) -> Outcome:
    """Begin an epoch with a new naming key; everything is sealed anew by the next snapshot.

    Args and errors are those of `rotate_signing`.
    """

    def compose(now: int) -> Registry:
        repository.check_signer()
        head = Chain(repository).head()
        _check_begins(repository, head)
        record = begin_epoch(
            repository,
            repository.record,
            signers=repository.record.current.signers,
            naming=Secret(primitives.random_key()),
            after=head,
        )
        return renewed(repository.registry.registry, record, now=now)

    return carry_out(repository, compose, clock=clock, out=out)


def _check_begins(repository: Repository, head: int) -> None:
    """Refuse before a key is made for nothing."""
    first = repository.record.current.first_sequence
    if head < first:
        raise ConfigurationError(
            "epoch",
            f"epoch {repository.record.current.number} has no manifest yet",
            hint="take a snapshot first: durarepo snapshot",
        )


def _replaced(repository: Repository, old: bytes, new: bytes) -> tuple[Signer, ...]:
    return tuple(
        Signer(public=new, roles=one.roles) if one.public == old else one
        for one in repository.record.current.signers
    )


def new_signer(repository: Repository, role: Role, *, out: bytes, clock: Clock) -> bytes:
    """Make a signer's key on this computer, where it waits until the owner admits it.

    Args:
        repository: open; its lock is taken.
        role: what it is to sign.
        out: takes the public part, for `durarepo registry draft --signer`.
        clock: the live time.

    Returns:
        The public bytes.

    Raises:
        ConfigurationError: ``exists``: the file is there.
        RunError, KeyMaterialError, StoreError: see `holding`.
    """
    with holding(repository, clock):
        check_free(out)
        public = new_signing(repository)
        word = "manifest" if Role.MANIFEST in role else "evidence"
        write_once(os.path.abspath(out), encode_signer(word, public))
        return public
