"""What lies in the slots of one stream: registries and envelopes, found number by number.

Shared by the two ways of checking a chain. A slot is only where one looks first; what does not
carry a good mark is passed over. Also here: which manifests retention lets live.
Source: spec/format.md 8 and 9. Start at `Slots`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from durarepo.core.errors import IntegrityError, StoreError, TrustError
from durarepo.core.limits import LIVE_MANIFESTS_MIN, MILESTONE_EVERY, SLOT_ATTEMPTS
from durarepo.core.names import ObjectName
from durarepo.format.manifest import Pin, is_milestone
from durarepo.ingest import VerifiedManifest, check_mark, open_registry
from durarepo.repository.problems import Findings, ProblemKind, kind_of
from durarepo.repository.repository import Repository, registry_slot
from durarepo.store.port import ObjectStore

_DAY_SECONDS = 24 * 3600


class Dated(Protocol):
    """What is asked of a manifest to know how long it lives."""

    @property
    def issued(self) -> int:
        """When it was made, in seconds since 1970."""
        ...

    @property
    def complete(self) -> bool:
        """Whether it holds everything that was asked for."""
        ...


@dataclass(slots=True, kw_only=True)
class CheckedChain:
    """What was found of the chain.

    ``manifests`` are verified ones; there are none where the chain was checked locally.
    ``pins`` are the packs to look at; those of ``live`` have to be there.
    ``known`` are the objects that have been explained, ``sealed`` the numbers of manifests that
    are sealed to others than the identity here.
    """

    head: int = 0
    count: int = 0
    expired: bool = False
    is_full: bool = True
    manifests: dict[int, VerifiedManifest] = field(default_factory=dict)
    names: dict[int, ObjectName] = field(default_factory=dict)
    live: set[int] = field(default_factory=set)
    pins: dict[Pin, bool] = field(default_factory=dict)
    known: set[ObjectName] = field(default_factory=set)
    sealed: set[int] = field(default_factory=set)

    @property
    def newest(self) -> VerifiedManifest | None:
        """The newest verified manifest, if there is one."""
        return self.manifests[max(self.manifests)] if self.manifests else None

    @property
    def repaired(self) -> set[ObjectName]:
        """The packs that the newest manifest calls bad and repairs: they count as there."""
        newest = self.newest
        return set() if newest is None else {one.bad for one in newest.statement.repairs}

    def pin(self, pins: tuple[Pin, ...], *, is_live: bool) -> None:
        """Note packs that a manifest pins."""
        for pin in pins:
            self.known.add(pin.name)
            self.pins[pin] = self.pins.get(pin, False) or is_live


def read_object(
    store: ObjectStore, name: ObjectName, offset: int = 0, length: int | None = None
) -> bytes:
    """Return an object, or the bytes asked for; what the disk cannot give back counts as wrong.

    Raises:
        IntegrityError: it is not there, too long, or the disk fails where it lies.
        StoreError: the store as such cannot be used.
    """
    try:
        return store.read(name, offset, length)
    except StoreError as error:
        if error.code != "store.io":
            raise
        raise IntegrityError("object-name", error.message, hint=error.hint) from error


class Slots:
    """Looks for what lies in slots, and notes what may not lie there."""

    def __init__(
        self, repository: Repository, store: ObjectStore, chain: CheckedChain, findings: Findings
    ) -> None:
        self.repository = repository
        self.store = store
        self.chain = chain
        self.findings = findings

    def _taken(self, name_of: Callable[[int], ObjectName]) -> Iterator[ObjectName]:
        for attempt in range(SLOT_ATTEMPTS):
            name = name_of(attempt)
            if self.store.stat(name) is None:
                return
            self.chain.known.add(name)
            yield name

    def check_registries(self) -> None:
        """Look for every registry from the first version up to the one held."""
        keys, registry = self.repository.keys, self.repository.registry.registry
        for version in range(1, registry.version + 1):
            refused: list[tuple[ObjectName, ProblemKind]] = []
            first = registry_slot(keys.locator, version, 0)
            for name in self._taken(lambda attempt: registry_slot(keys.locator, version, attempt)):  # noqa: B023  # used within this turn
                try:
                    open_registry(
                        read_object(self.store, name),
                        keys.locator.reveal(),
                        owner_digest=keys.owner_digest,
                        version=version,
                    )
                except (IntegrityError, TrustError) as error:
                    refused.append((name, kind_of(error)))
                else:
                    break
            else:
                name, kind = refused[0] if refused else (first, ProblemKind.MISSING)
                self.findings.add(name, kind, ())

    def slot(self, sequence: int, attempt: int = 0) -> ObjectName:
        """Return a slot of a manifest."""
        epoch = self.repository.record.epoch_of(sequence).number
        return self.repository.manifest_slot(epoch, sequence, attempt)

    def is_empty(self, sequence: int) -> bool:
        """Return whether nothing lies in the first slot of a number."""
        return self.store.stat(self.slot(sequence)) is None

    def find_head(self, least: int) -> int:
        """Return the highest number that is there, looking at least up to ``least``."""
        head, number, border = 0, 1, max(least, MILESTONE_EVERY)
        while number <= border:
            if not self.is_empty(number):
                head = number
                border = max(border, number - number % MILESTONE_EVERY + MILESTONE_EVERY)
            number += 1
        return head

    def candidates(self, sequence: int) -> Iterator[tuple[ObjectName, bytes | IntegrityError]]:
        """Yield what lies in the slots of a number: an envelope with a good mark, or why not."""
        epoch = self.repository.record.epoch_of(sequence).number
        naming = self.repository.naming_key(epoch).reveal()
        for name in self._taken(lambda attempt: self.slot(sequence, attempt)):
            try:
                data = read_object(self.store, name)
                check_mark(data, naming)
            except IntegrityError as error:
                yield name, error
            else:
                yield name, data


def live_since(repository: Repository, manifests: Mapping[int, Dated]) -> int:
    """Return the lowest number from which on all manifests are live.

    Those are the newest complete ones and all since, and all within retention before the head.
    """
    if not manifests:
        return 1
    complete = [number for number in sorted(manifests) if manifests[number].complete]
    since = min(complete[-LIVE_MANIFESTS_MIN:], default=1)
    head = manifests[max(manifests)]
    oldest = head.issued - repository.record.retention.days * _DAY_SECONDS
    recent = (number for number, one in manifests.items() if one.issued >= oldest)
    return min(since, *recent)


def is_kept(slots: Slots, number: int, *, since: int, holds: tuple[int, ...] = ()) -> bool:
    """Return whether the envelope of a number has to be there: retention takes others."""
    first = slots.repository.record.epoch_of(number).first_sequence
    return number >= since or number in holds or is_milestone(number, first)
