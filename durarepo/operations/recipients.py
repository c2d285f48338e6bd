"""Who can open what is kept from now on: add a data recipient, or retire one.

New packs and envelopes are sealed to the new set at once; old packs follow run by run, as they
are rewritten. What a retired recipient could open before, it still can, wherever it has a copy.
Source: spec/format.md 8 and 5.5. Start at `add_recipient`.
"""

import re

from durarepo.core.clock import Clock
from durarepo.core.errors import ConfigurationError
from durarepo.crypto import primitives
from durarepo.format.registry import Registry
from durarepo.repository.admission import Outcome, carry_out
from durarepo.repository.nextregistry import renewed, with_recipients
from durarepo.repository.recipientkey import recipient_given
from durarepo.repository.repository import Repository

_ID = re.compile(r"[0-9a-f]{8,64}\Z")


def add_recipient(
    repository: Repository, key: str, *, clock: Clock, out: bytes | None = None
) -> Outcome:
    """Let a further recipient open what is kept from now on.

    Args:
        repository: open; its lock is taken.
        key: the recipient's key text, as `recipient_given` takes it.
        clock: the live time.
        out: where a draft is written, if the owner signs elsewhere.

    Raises:
        KeyMaterialError: ``malformed``.
        ConfigurationError: ``recipients``: it is one already, or there are too many.
        RunError, TrustError, IntegrityError, StoreError: see `carry_out`.
    """
    public = recipient_given(key)

    def compose(now: int) -> Registry:
        data = repository.record.current.data_recipients
        if public in data:
            raise ConfigurationError("recipients", "that recipient is one already")
        return _changed(repository, (*data, public), now)

    return carry_out(repository, compose, clock=clock, out=out)


def retire_recipient(
    repository: Repository, key: str, *, clock: Clock, out: bytes | None = None
) -> Outcome:
    """Seal nothing more to a recipient; at least two have to remain.

    Args:
        repository: open; its lock is taken.
        key: as `recipient_given` takes it, or eight digits or more of the recipient's id.
        clock: the live time.
        out: where a draft is written, if the owner signs elsewhere.

    Raises:
        KeyMaterialError: ``malformed``.
        ConfigurationError: ``recipients``: it is none, or too few would remain;
            ``own-recipient``: it is the identity that is here.
        RunError, TrustError, IntegrityError, StoreError: see `carry_out`.
    """
    wanted = key if _ID.match(key) else primitives.sha256(recipient_given(key)).hex()

    def compose(now: int) -> Registry:
        data = repository.record.current.data_recipients
        left = tuple(one for one in data if not primitives.sha256(one).hex().startswith(wanted))
        if len(left) != len(data) - 1:
            raise ConfigurationError(
                "recipients",
                "that is not one of the recipients",
                hint="see durarepo registry show",
            )
        _refuse_own(repository, left)
        return _changed(repository, left, now)

    return carry_out(repository, compose, clock=clock, out=out)


def _refuse_own(repository: Repository, left: tuple[bytes, ...]) -> None:
    """Refuse if the identity that is here would open nothing that is kept from now on."""
    identity = repository.keys.identity
    data = repository.record.current.data_recipients
    own = None if identity is None else primitives.recipient_of(identity.reveal())
    if own in data and own not in left:
        raise ConfigurationError(
            "own-recipient",
            "that recipient is the identity of this computer, which could read nothing afterwards",
            hint="add the new recipient first, then retire this one where another identity is",
        )


def _changed(repository: Repository, data: tuple[bytes, ...], now: int) -> Registry:
    record = repository.record
    naming = {
        one.number: repository.keys.naming.reveal()
        for one in record.epochs
        if repository.keeps_naming(one.number)
    }
    changed = with_recipients(record, data, naming=naming)
    return renewed(repository.registry.registry, changed, now=now)
