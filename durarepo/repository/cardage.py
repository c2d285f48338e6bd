"""Whether the escrow card still opens all: what has changed in the registry since it was made.

A card holds one identity, one locator and, beside it, the keys of its day. Another set of
recipients, or a further epoch, makes it old. Source: spec/format.md 10, spec/cli.md (status).
Start at `is_card_current`.
"""

from durarepo.core.errors import IntegrityError, TrustError
from durarepo.repository.repository import Repository
from durarepo.repository.sealedto import read_registry

FIRST_VERSION = 1
"""The registry under which `init` makes the card."""


def is_card_current(repository: Repository, *, made_under: int = FIRST_VERSION) -> bool:
    """Return whether a card made under a registry has the keys of the one in force.

    Raises:
        StoreError: that registry cannot be read.
    """
    try:
        then = read_registry(repository, repository.store, made_under)
        record = then.record(repository.stream)
    except (IntegrityError, TrustError):
        return False
    now = repository.record
    same_epoch = record.current.number == now.current.number
    return same_epoch and record.current.data_recipients == now.current.data_recipients
