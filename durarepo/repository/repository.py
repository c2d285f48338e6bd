"""One stream's repository on this computer, open: what every operation holds.

Opening reads the configuration, checks and loads the keys, opens the object store and finds the
newest registry that passes ingest. It takes no lock and writes nothing.
Source: spec/format.md 8 and 9; spec/cli.md 3. Start at `open_repository`.
"""

from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeVar

from durarepo.core.errors import (
    PUT_BACK,
    DurarepoError,
    IntegrityError,
    RepositoryStateError,
    StoreError,
    TrustError,
)
from durarepo.core.limits import PACK_MAX_BYTES, SLOT_ATTEMPTS
from durarepo.core.names import ObjectName
from durarepo.core.secret import Secret
from durarepo.crypto import primitives
from durarepo.format.layout import (
    Compartment,
    Seal,
    manifest_slot_input,
    object_name,
    registry_slot_input,
)
from durarepo.format.registry import Epoch, StreamRecord
from durarepo.ingest import VerifiedRegistry, open_registry
from durarepo.local.audit import AuditLog
from durarepo.local.catalog import Catalog
from durarepo.local.configuration import (
    CONFIGURATION_MAX_BYTES,
    StreamConfig,
    parse_configuration,
)
from durarepo.local.keyring import Keyring, load_keyring
from durarepo.local.places import Places, neighbours_of
from durarepo.local.statefiles import StateFiles
from durarepo.sealing import open_box
from durarepo.store.atomic import read_small, shown
from durarepo.store.localdir import LocalDir
from durarepo.store.port import ObjectStore

Refusal = TypeVar("Refusal", bound=DurarepoError)


@dataclass(slots=True, kw_only=True)
class Repository:
    """An open repository; use it as a context manager, or `close` it."""

    places: Places
    configuration_text: bytes
    configuration: StreamConfig
    keys: Keyring
    store: LocalDir
    state: StateFiles
    registry: VerifiedRegistry
    _catalog: Catalog | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give everything back."""
        self.store.close()
        self.close_catalog()

    def close_catalog(self) -> None:
        """Give the catalogue back; it is opened, or made, anew when it is next asked for."""
        if self._catalog is not None:
            self._catalog.close()
            self._catalog = None

    @property
    def stream(self) -> str:
        """The stream's id."""
        return self.configuration.stream

    @property
    def record(self) -> StreamRecord:
        """The stream's record in the registry."""
        return self.registry.record(self.stream)

    @property
    def catalog(self) -> Catalog:
        """The catalogue, opened when it is first asked for."""
        if self._catalog is None:
            self._catalog = Catalog(self.places.catalog)
        return self._catalog

    @property
    def audit(self) -> AuditLog:
        """The audit log in the state folder."""
        return AuditLog(self.places.state + b"/audit.jsonl")

    @property
    def root_paths(self) -> list[bytes]:
        """The configured roots."""
        return [root.path for root in self.configuration.roots]

    @property
    def protected(self) -> list[bytes]:
        """What no checkout may lie in: roots, and all that is of this or another stream here.

        Raises:
            StoreError: the folders beside this stream's cannot be looked at.
        """
        places = self.places
        return [*self.root_paths, places.repository, places.keys, *neighbours_of(places)]

    def place(self, epoch: int) -> Compartment:
        """Return what the seals of an epoch are bound to."""
        return Compartment(stream=self.stream, epoch=epoch, compartment=self.record.compartment)

    def epoch(self, number: int) -> Epoch:
        """Return an epoch of the stream by its number.

        Raises:
            TrustError: ``epoch``.
        """
        for epoch in self.record.epochs:
            if epoch.number == number:
                return epoch
        raise TrustError("epoch", f"registry has no epoch {number}")

    def naming_key(self, epoch: int) -> Secret:
        """Return the naming key of an epoch, from the keys folder or from the registry.

        Raises:
            KeyMaterialError: ``identity-absent`` where only the registry has it.
        """
        current = self.record.current
        if epoch == current.number or self.epoch(epoch).naming_key == current.naming_key:
            return self.keys.naming
        if epoch in self.keys.old_naming:
            return self.keys.old_naming[epoch]
        identity = self.keys.need_identity().reveal()
        box = self.epoch(epoch).naming_key
        return Secret(open_box(box, identity, kind=Seal.NAMING_KEY, place=self.place(epoch)))

    def manifest_slot(self, epoch: int, sequence: int, attempt: int) -> ObjectName:
        """Return the name under which a manifest is looked for."""
        key = primitives.derive_subkey(self.naming_key(epoch).reveal(), "slot")
        return object_name(
            primitives.keyed_hash(key, manifest_slot_input(epoch, sequence, attempt))
        )


def registry_slot(locator: Secret, version: int, attempt: int) -> ObjectName:
    """Return the name under which a registry is looked for."""
    key = primitives.derive_subkey(locator.reveal(), "registry-slot")
    return object_name(primitives.keyed_hash(key, registry_slot_input(version, attempt)))


def open_repository(places: Places) -> Repository:
    """Return the repository at ``places``, open.

    Raises:
        RepositoryStateError: ``absent``.
        ConfigurationError: stream.toml cannot be accepted.
        KeyMaterialError: the keys are refused.
        TrustError, IntegrityError: the registry does not pass ingest.
        StoreError: something cannot be read.
    """
    text = read_small(places.configuration, CONFIGURATION_MAX_BYTES)
    if text is None:
        raise RepositoryStateError(
            "absent",
            f"there is no repository in {shown(places.repository)}",
            hint="make one with: durarepo init --stream NAME --root FOLDER",
        )
    configuration = parse_configuration(text, place=places.configuration)
    if configuration.stream != places.stream:
        raise RepositoryStateError(
            "stream",
            f"stream.toml names '{configuration.stream}', expected '{places.stream}'",
            hint="name the repository of that stream with --repo",
        )
    keys = load_keyring(places.keys, roots=[root.path for root in configuration.roots])
    state = StateFiles(places.state)
    store = LocalDir(places.objects)
    try:
        registry = find_registry(store, keys, highest=_registry_mark(state))
        repository = Repository(
            places=places,
            configuration_text=text,
            configuration=configuration,
            keys=keys,
            store=store,
            state=state,
            registry=registry,
        )
        _check_agrees(repository)
    except BaseException:
        store.close()
        raise
    return repository


def _registry_mark(state: StateFiles) -> int:
    marks = state.high_water()
    return 0 if marks is None else marks.registry_version


def find_registry(store: ObjectStore, keys: Keyring, *, highest: int) -> VerifiedRegistry:
    """Return the newest registry of a store that passes ingest.

    Args:
        store: where it is looked for.
        keys: locator and owner.
        highest: the high-water of versions; no lower one is accepted.

    Raises:
        TrustError: ``registry-version`` where none, or only an older one, is there.
        IntegrityError, TrustError: why the newest one is refused.
    """
    found: VerifiedRegistry | None = None
    version = max(highest, 1)
    while (next_one := _read_registry(store, keys, version, highest)) is not None:
        found = next_one
        version += 1
    if found is None:
        raise TrustError(
            "registry-version",
            f"registry {version} is not there, though it has been seen",
            hint=PUT_BACK,
        )
    return found


def _read_registry(
    store: ObjectStore, keys: Keyring, version: int, highest: int
) -> VerifiedRegistry | None:
    refusal: IntegrityError | TrustError | None = None
    for attempt in range(SLOT_ATTEMPTS):
        name = registry_slot(keys.locator, version, attempt)
        if store.stat(name) is None:
            break
        try:
            return open_registry(
                store.read(name),
                keys.locator.reveal(),
                owner_digest=keys.owner_digest,
                version=version,
                highest=highest,
            )
        except (IntegrityError, TrustError) as error:
            refusal = about_object(error, f"registry {version}", name)
    if refusal is not None:
        raise refusal
    return None


def about_object(error: Refusal, what: str, name: ObjectName) -> Refusal:
    """Return the same refusal with the object that it is about, and with a hint.

    Args:
        error: why the object is refused; its class and code stay.
        what: the object for a person, such as ``manifest 7``.
        name: under which it is stored.
    """
    message = f"{what} (object {name}): {error.message}"
    return type(error)(error.code.partition(".")[2], message, hint=error.hint or PUT_BACK)


def _check_agrees(repository: Repository) -> None:
    record, config = repository.record, repository.configuration
    if (record.compartment, record.never_publish) != (config.compartment, config.never_publish):
        raise TrustError(
            "stream",
            "compartment or never_publish of stream.toml is not what the owner registered",
            hint="both are fixed for the life of the stream; put back what stream.toml said",
        )
    if repository.configuration.object_limit < PACK_MAX_BYTES // 32:
        raise StoreError("object-limit", "per-object limit of the store is below 1 MiB")
