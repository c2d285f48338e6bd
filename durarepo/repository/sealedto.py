"""To whom something was sealed, by the registries of its time: told from damage, and from forgery.

A recipient that was retired opens nothing that was made afterwards, one that was added nothing
from before. Which registry was in force is known of a pack by its pin; a manifest says it inside
its seal, so of a manifest every registry of its epoch is asked.
Source: spec/format.md 8, spec/ingest.md 4. Start at `is_sealed_to_others`.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from durarepo.core.errors import PUT_BACK, IntegrityError, KeyMaterialError, TrustError
from durarepo.core.limits import SLOT_ATTEMPTS
from durarepo.core.secret import Secret
from durarepo.crypto import primitives
from durarepo.ingest import VerifiedRegistry, open_registry
from durarepo.repository.repository import Repository, about_object, registry_slot
from durarepo.store.port import ObjectStore

if TYPE_CHECKING:  # `log` does without it
    from durarepo.format.manifest import Pin

_HINT = "use a computer whose identity is a recipient of it; those of now: durarepo registry show"


def is_sealed_to_others(repository: Repository, sequence: int, identity: Secret) -> bool:
    """Return whether a manifest may have been sealed without this identity.

    Args:
        repository: whose registries are asked.
        sequence: number of the manifest.
        identity: what did not open it.

    Raises:
        StoreError: a registry cannot be read.
    """
    own = primitives.recipient_of(identity.reveal())
    epoch = repository.record.epoch_of(sequence).number
    for version in range(repository.registry.registry.version, 0, -1):
        registry = _registry(repository, version)
        if registry is None:
            continue
        current = registry.record(repository.stream).current
        if current.number < epoch:
            return False
        if current.number == epoch and own not in current.data_recipients:
            return True
    return False


def check_recipient(repository: Repository, pins: "Iterable[Pin]", identity: Secret) -> None:
    """Refuse packs that were sealed without this identity.

    Raises:
        KeyMaterialError: ``not-recipient``.
        StoreError: a registry cannot be read.
    """
    own = primitives.recipient_of(identity.reveal())
    first = {pin.registry_version: pin for pin in pins}
    for version, pin in sorted(first.items()):
        registry = _registry(repository, version)
        if registry is None:
            continue  # whoever opens the pack says what is wrong with it
        if own not in registry.record(repository.stream).current.data_recipients:
            raise not_recipient(f"pack {pin.name}")


def not_recipient(what: str) -> KeyMaterialError:
    """Return the error for something that is whole, and sealed to others."""
    return KeyMaterialError(
        "not-recipient", f"{what} is sealed to others than this identity, not damaged", hint=_HINT
    )


def _registry(repository: Repository, version: int) -> VerifiedRegistry | None:
    try:
        return read_registry(repository, repository.store, version)
    except (IntegrityError, TrustError):
        return None


def read_registry(repository: Repository, store: ObjectStore, version: int) -> VerifiedRegistry:
    """Return a registry by its version, which may be an old one.

    Raises:
        TrustError: ``registry-version``: that registry is not there.
        IntegrityError, TrustError: why it is refused (ingest 3.1 to 3.11).
    """
    keys = repository.keys
    if version == repository.registry.registry.version:
        return repository.registry
    refusal: IntegrityError | TrustError | None = None
    for attempt in range(SLOT_ATTEMPTS):
        slot = registry_slot(keys.locator, version, attempt)
        if store.stat(slot) is None:
            break
        try:
            return open_registry(
                store.read(slot),
                keys.locator.reveal(),
                owner_digest=keys.owner_digest,
                version=version,
            )
        except (IntegrityError, TrustError) as error:
            refusal = refusal or about_object(error, f"registry {version}", slot)
            continue  # a taken slot; the next attempt may hold it (format 9)
    raise refusal or TrustError(
        "registry-version",
        f"registry {version}, under which a pack was sealed, is not there",
        hint=PUT_BACK,
    )
