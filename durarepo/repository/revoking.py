"""How far a revocation reaches: what lies behind the named manifest and others signed stays.

What one revoked key signed is taken back, and no day's work of another. Who signed a manifest is
known from the registry where its epoch has no other signer, else from the ledger here, else it is
opened; where that cannot be done nothing is guessed. Reads only.
Source: spec/format.md 8. Start at `last_good`.
"""

from collections.abc import Container

from durarepo.core.errors import IntegrityError, TrustError
from durarepo.core.names import SignerId
from durarepo.format.registry import Revocation
from durarepo.repository.chain import Chain
from durarepo.repository.repository import Repository
from durarepo.sealing import signer_id


def highest_known(repository: Repository) -> int:
    """Return the highest number known, without asking which of several writers is right.

    Raises:
        StoreError: the state or the objects cannot be read.
    """
    numbers = [run.sequence for run in repository.iter_counted_runs()]
    chain = Chain(repository)
    head = max([*numbers, chain.high.sequence])
    while chain.has(head + 1):
        head += 1
    return head


def last_good(repository: Repository, revocation: Revocation) -> int:
    """Return the last manifest that stays: those behind the named one by other signers do.

    Raises:
        KeyMaterialError: ``identity-absent``, ``not-recipient``: nothing here can tell who signed.
        IntegrityError, TrustError: a manifest of which it has to be known is damaged, or forked.
        StoreError: the state or the objects cannot be read.
    """
    signers = _Signers(repository)
    good = revocation.sequence
    while signers.has_other(good + 1, {revocation.signer}):
        good += 1
    return good


def cuts_off_others(repository: Repository, first: int, revoked: Container[SignerId]) -> bool:
    """Return whether an epoch that begins with ``first`` would cut off what no revoked key signed.

    Raises:
        KeyMaterialError, IntegrityError, TrustError, StoreError: as `last_good`.
    """
    return _Signers(repository).has_other(first, revoked)


class _Signers:
    """Tells who signed what, under the registry held."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._chain = Chain(repository)
        runs = repository.iter_counted_runs()
        self._ledger: dict[int, SignerId] = {run.sequence: run.signer for run in runs}

    def has_other(self, sequence: int, revoked: Container[SignerId]) -> bool:
        """Return whether a manifest is there that another than a revoked signer signed."""
        epoch = self._repository.record.epoch_of(sequence)
        if all(signer_id(public) in revoked for public in epoch.manifest_signers):
            return False
        signer = self._ledger.get(sequence) or self._read(sequence)
        return signer is not None and signer not in revoked

    def _read(self, sequence: int) -> SignerId | None:
        """Return who signed a manifest; None where there is none by a signer of its epoch."""
        chain, keys = self._chain, self._repository.keys
        try:
            if chain.envelope(sequence) is None:
                return None
            return SignerId(chain.signed(sequence, keys.need_identity()).statement.signer)
        except TrustError as error:
            if error.code == "trust.fork":
                raise
            return None  # whoever holds the naming key can put it there
        except IntegrityError:
            if chain.has(sequence + 1):
                raise  # damage; to go on without it would cut off what lies above
            return None  # a write was torn there (format 9)
