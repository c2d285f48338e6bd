"""One stream's repository on this computer, open: what every operation holds.

Opening reads the configuration, checks and loads the keys, opens the object store and finds the
newest registry that passes ingest. It takes no lock and writes nothing. The keys that it holds
are those of the epoch in force, wherever the keys folder has them.
Source: spec/format.md 8 and 9; spec/cli.md 3. Start at `open_repository`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self, TypeVar

from durarepo.core.errors import (
    PUT_BACK,
    DurarepoError,
    IntegrityError,
    KeyMaterialError,
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
from durarepo.format.registry import Epoch, Role, StreamRecord
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
from durarepo.local.statefiles import RunRecord, StateFiles
from durarepo.sealing import open_box, signer_id
from durarepo.store.atomic import read_small, shown
from durarepo.store.localdir import LocalDir
from durarepo.store.port import ObjectStore

_ALL_NAMING = (
    "bring naming.key and every naming-N.key, with their names, from the computer that began the "
    "newest epoch; they change with each rotation of keys"
)
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
            KeyMaterialError: ``identity-absent`` where only the registry has it;
                ``naming-absent`` where it is sealed to others there.
        """
        current = self.record.current
        if epoch == current.number or self.epoch(epoch).naming_key == current.naming_key:
            return self.keys.naming
        if epoch not in self.keys.old_naming:
            identity = self.keys.need_identity().reveal()
            box, place = self.epoch(epoch).naming_key, self.place(epoch)
            try:
                key = open_box(box, identity, kind=Seal.NAMING_KEY, place=place)
            except IntegrityError as error:  # it is not sealed to this identity
                raise KeyMaterialError(
                    "naming-absent",
                    f"naming key of epoch {epoch} is not in {shown(self.keys.folder)}, and is "
                    "sealed to others than the identity here",
                    hint=_ALL_NAMING,
                ) from error
            self.keys.old_naming[epoch] = Secret(key)
        return self.keys.old_naming[epoch]

    def keeps_naming(self, epoch: int) -> bool:
        """Return whether an epoch has the naming key of the one in force, so its packs count.

        Where the key of that epoch is not here they do not.
        """
        try:
            return self.naming_key(epoch) == self.keys.naming
        except (KeyMaterialError, IntegrityError):
            return False

    def iter_counted_runs(self) -> Iterator[RunRecord]:
        """Yield the ledger's manifests, oldest first, but those that the owner has cut off."""
        record = self.record
        for run in self.state.iter_runs():
            if not record.is_cut_off(run.epoch, run.sequence):
                yield run

    def check_signer(self) -> None:
        """Refuse to write with a key whose manifests no reader would take.

        Raises:
            KeyMaterialError: ``signing-absent``; ``signing-refused``.
        """
        public = primitives.signer_public(self.keys.need_signing().reveal())
        is_signer = any(
            one.public == public and Role.MANIFEST in one.roles
            for one in self.record.current.signers
        )
        if not is_signer or self.record.is_revoked(signer_id(public)):
            raise KeyMaterialError(
                "signing-refused",
                f"signing key here may not sign manifests of stream '{self.stream}'",
                hint="see durarepo registry show; for a key that the owner can admit: "
                "durarepo keys new-signer",
            )

    def take_registry(self, newer: VerifiedRegistry) -> None:
        """Go on under another registry, with the keys of its epoch in force.

        Raises:
            KeyMaterialError: the keys are refused, or the naming key is not here.
        """
        files = load_keyring(self.places.keys, roots=self.root_paths)
        self.registry = newer
        self.keys = keys_in_force(files, self.record)

    def refresh_registry(self) -> None:
        """Follow the owner: a registry may have been admitted since this repository was opened.

        Raises:
            TrustError, IntegrityError: the newest registry does not pass ingest.
            KeyMaterialError: as `take_registry`.
        """
        held = self.registry.registry.version
        newest = find_registry(self.store, self.keys, highest=held)
        if newest.registry.version > held:
            self.take_registry(newest)

    def manifest_slot(self, epoch: int, sequence: int, attempt: int) -> ObjectName:
        """Return the name under which a manifest is looked for."""
        key = primitives.derive_subkey(self.naming_key(epoch).reveal(), "slot")
        return object_name(
            primitives.keyed_hash(key, manifest_slot_input(epoch, sequence, attempt))
        )


def keys_in_force(files: Keyring, record: StreamRecord) -> Keyring:
    """Return the keys with signing and naming key of the epoch in force.

    Args:
        files: as the folder has them.
        record: the stream's record in the newest registry.

    Raises:
        KeyMaterialError: ``naming-absent``.
    """
    current = record.current
    naming = files.naming_of(current.number, current.naming_key)
    if len(record.epochs) > 1 and files.identity is not None:
        # The registry knows better than the names of files.
        naming = _sealed_naming(files, record) or naming
    if naming is None:
        raise KeyMaterialError(
            "naming-absent",
            f"naming key of epoch {current.number} is not in {shown(files.folder)}",
            hint=_ALL_NAMING,
        )
    known = {one.number: files.naming_of(one.number, one.naming_key) for one in record.epochs}
    if naming == files.naming and files.naming_epoch != current.number:
        known.pop(files.naming_epoch, None)  # naming.key is of the epoch in force, and older gone
    signing = files.signing
    if files.waiting:
        signing = files.signing_of(current.manifest_signers) or signing
    return replace(
        files,
        naming=naming,
        old_naming={number: key for number, key in known.items() if key is not None},
        signing=signing,
    )


def _sealed_naming(files: Keyring, record: StreamRecord) -> Secret | None:
    """Return the naming key in force as the registry seals it to the identity that is here."""
    current, identity = record.current, files.need_identity().reveal()
    place = Compartment(stream=record.stream, epoch=current.number, compartment=record.compartment)
    try:
        key = open_box(current.naming_key, identity, kind=Seal.NAMING_KEY, place=place)
    except IntegrityError:
        return None  # it is not sealed to this identity
    return Secret(key)


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
            keys=keys_in_force(keys, registry.record(configuration.stream)),
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
