"""How an epoch of a stream begins: its first sequence, what it follows, its keys.

New keys are written down, waiting, before any registry names them (`local/keyring.py`).
Source: spec/format.md 3.4 and 8. Start at `begin_epoch`.
"""

from durarepo.core.errors import ConfigurationError
from durarepo.core.secret import Secret
from durarepo.crypto import primitives
from durarepo.format.registry import Signer, StreamRecord
from durarepo.local.keyring import naming_id, signing_short_id, write_waiting
from durarepo.repository.admission import digest_of
from durarepo.repository.nextregistry import Begin, with_epoch
from durarepo.repository.repository import Repository
from durarepo.sealing import signer_id


def new_signing(repository: Repository) -> bytes:
    """Make a signing key that waits in the keys folder; return its public bytes.

    Raises:
        KeyMaterialError, StoreError: it cannot be written.
    """
    key = primitives.random_key() + primitives.random_key()
    public = primitives.signer_public(key)
    write_waiting(repository.places.keys, "signing", signing_short_id(signer_id(public)), key)
    return public


def begin_epoch(
    repository: Repository,
    record: StreamRecord,
    *,
    signers: tuple[Signer, ...],
    naming: Secret,
    after: int,
) -> StreamRecord:
    """Return a record in which a new epoch goes on after a manifest; its naming key waits here.

    Args:
        repository: whose chain goes on; the caller holds its lock.
        record: the stream's, perhaps with a revocation already.
        signers: of the new epoch.
        naming: its naming key, new or kept.
        after: number of the last manifest before it.

    Raises:
        ConfigurationError: ``epoch``: there is none before it.
        KeyMaterialError, StoreError: the key cannot be written.
    """
    if after < 1:
        raise ConfigurationError(
            "epoch", "no epoch can begin before the first manifest", hint="take a snapshot first"
        )
    begin = Begin(
        signers=signers,
        naming=naming.reveal(),
        first_sequence=after + 1,
        previous=digest_of(repository, after),
    )
    changed = with_epoch(record, begin)
    short = naming_id(changed.current.naming_key)
    write_waiting(repository.places.keys, "naming", short, naming.reveal())
    return changed
