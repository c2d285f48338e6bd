"""Which packs a run seals anew from the source, so that a repository gets smaller again.

Chosen are packs of which little lives, small ones of which there are many, and those that today's
recipients cannot open; never more than an allowance, so that no run becomes a full upload. The
chosen ones stay pinnable: what cannot be read again keeps them, and to choose none is always safe.
Nothing is deleted here; a pack that no live manifest pins dies by retention.
Source: spec/format.md 5.5; spec/decisions/0006-rewriting.md. Start at `choose_packs`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from durarepo.core.errors import IntegrityError, TrustError
from durarepo.core.limits import (
    REWRITE_LEAST_BYTES,
    REWRITE_LIVE_SHARE,
    REWRITE_SHARE,
    SIZE_CLASSES,
    SMALL_PACK_BYTES,
    SMALL_PACKS_MAX,
    SMALL_PACKS_SPARE,
    WEIGH_MANIFESTS,
    WEIGH_SHARE,
)
from durarepo.format.canonical import decode, encode
from durarepo.format.manifest import Pin
from durarepo.local.catalog import Catalog, PackWeight
from durarepo.local.statefiles import LivePin, PinnedManifest
from durarepo.repository.chunks import ChunkSink
from durarepo.repository.livebytes import LiveBytes
from durarepo.repository.repository import Repository
from durarepo.repository.sealedto import read_registry
from durarepo.sealing import ChunkNamer

WEIGHED_FACT = "weighed"
"""The catalogue's fact that tells when it was last looked up what lives: number and bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What `pick` chooses from: packs of the last complete manifest, by row id.

    ``largest`` is the greatest size of a new pack, ``foreign`` are the packs that are sealed to
    other recipients than today's.
    """

    pins: Mapping[int, Pin]
    weights: Mapping[int, PackWeight]
    foreign: frozenset[int]
    largest: int


def choose_packs(
    repository: Repository,
    complete: PinnedManifest | None,
    sink: ChunkSink,
    *,
    namer: ChunkNamer,
    knows_dirs: bool,
) -> frozenset[int]:
    """Return the packs, by row id, that a run is to rewrite.

    Args:
        repository: the stream's repository; the caller is in a transaction of its catalogue.
        complete: the last complete manifest; what only a partial one pins is left alone.
        sink: knows which packs count.
        namer: gives ids to what the catalogue's directories name.
        knows_dirs: whether those directories are the ones of ``complete``.

    Raises:
        StoreError: a registry cannot be read.
    """
    if complete is None:
        return frozenset()
    names = {pin.pack for pin in complete.pins}
    pins = {row: pin for row, pin in sink.packs.items() if pin.name in names}
    if knows_dirs:
        _weigh_if_due(repository, int(complete.sequence), sink, pins=pins, namer=namer)
    choice = Choice(
        pins=pins,
        weights=repository.catalog.pack_weights(),
        foreign=frozenset(_foreign(repository, pins)),
        largest=max(s for s in SIZE_CLASSES if s <= repository.configuration.object_limit),
    )
    return pick(choice)


def pick(choice: Choice) -> frozenset[int]:
    """Return what is to be rewritten, within the allowance.

    While packs are sealed to other recipients, half of the allowance is theirs.
    """
    costs = {row: _live_bytes(choice.weights[row]) for row in choice.pins}
    allowance = max(REWRITE_LEAST_BYTES, int(sum(costs.values()) * REWRITE_SHARE))
    kept_back = allowance // 2 if choice.foreign else 0
    taken: set[int] = set()
    room = _take(taken, [*_dying(choice), *_small(choice)], costs, allowance - kept_back)
    foreign = sorted(choice.foreign, key=lambda row: choice.pins[row].name)
    _take(taken, foreign, costs, room + kept_back)
    return frozenset(taken)


def recipients_share(repository: Repository) -> float | None:
    """Return the share of pinned bytes that all of today's data recipients can open, and no other.

    Returns:
        0 to 1, of the packs that the head and the last complete manifest pin; None where nothing
        here knows of any.

    Raises:
        StoreError: the state or a registry cannot be read.
    """
    live = repository.state.live_pins()
    manifests = () if live is None else (live.head, live.complete)
    pins = {pin.pack: pin for one in manifests if one is not None for pin in one.pins}
    todays = {version: is_todays(repository, version) for version in _versions(pins.values())}
    total = sum(pin.size_bytes for pin in pins.values())
    fitting = sum(pin.size_bytes for pin in pins.values() if todays[pin.registry_version])
    return fitting / total if total else None


# --- what lives --------------------------------------------------------------------------------


def _weigh_if_due(
    repository: Repository,
    sequence: int,
    sink: ChunkSink,
    *,
    pins: Mapping[int, Pin],
    namer: ChunkNamer,
) -> None:
    catalog = repository.catalog
    size = catalog.manifest_bytes(sequence) or 0
    weights = [one for row, one in catalog.pack_weights().items() if row in pins]
    added = sum(one.plain for one in weights if one.live is None)
    noted = _noted(catalog)
    if noted is not None and not _is_due(noted, (sequence, size), added, weights):
        return
    if added or noted is not None:
        scale = LiveBytes(catalog, sink, namer=namer, pins=pins)
        for root in repository.root_paths:
            for row in catalog.iter_dirs(root):
                scale.add_dir(row)
        catalog.set_live_bytes(scale.live)
        catalog.forget_lists(but=scale.lists)
    catalog.set_fact(WEIGHED_FACT, encode([sequence, size]))


def _is_due(
    noted: tuple[int, int], now: tuple[int, int], added: int, weights: list[PackWeight]
) -> bool:
    """Return whether enough may have died since it was last looked up what lives."""
    total = sum(one.plain for one in weights)
    has_shrunk = now[1] < noted[1] * (1 - WEIGH_SHARE)
    is_long_ago = now[0] - noted[0] >= WEIGH_MANIFESTS
    return has_shrunk or (added > 0 and (added >= total * WEIGH_SHARE or is_long_ago))


def _noted(catalog: Catalog) -> tuple[int, int] | None:
    data = catalog.fact(WEIGHED_FACT)
    try:
        match None if data is None else decode(data):
            case [int() as sequence, int() as size]:
                return sequence, size
            case _:
                return None
    except IntegrityError:
        return None  # only a hint; it is looked up anew


def _live_bytes(weight: PackWeight) -> int:
    return weight.plain if weight.live is None else weight.live


# --- choosing ----------------------------------------------------------------------------------


def _dying(choice: Choice) -> list[int]:
    """Return the packs of which less lives than is worth keeping, the emptiest first."""
    weights = choice.weights

    def share(row: int) -> float:
        return _live_bytes(weights[row]) / weights[row].plain if weights[row].plain else 1.0

    return sorted((row for row in choice.pins if share(row) < REWRITE_LIVE_SHARE), key=share)


def _small(choice: Choice) -> list[int]:
    """Return the packs of small classes that have many, the smallest first."""
    bound = min(SMALL_PACK_BYTES, choice.largest)
    counts = Counter(pin.size for pin in choice.pins.values() if pin.size < bound)
    full = {size for size, n in counts.items() if n > SMALL_PACKS_MAX - SMALL_PACKS_SPARE}
    rows = (row for row, pin in choice.pins.items() if pin.size in full)
    return sorted(rows, key=lambda row: (choice.pins[row].size, row))


def _take(taken: set[int], rows: Iterable[int], costs: Mapping[int, int], room: int) -> int:
    """Add rows to ``taken`` while there is room, one in any case; return the room left."""
    fresh = [row for row in rows if row not in taken]
    for row in fresh:
        if row not in taken and (row == fresh[0] or costs[row] <= room):
            taken.add(row)
            room -= costs[row]
    return room


# --- recipients --------------------------------------------------------------------------------


def _foreign(repository: Repository, pins: Mapping[int, Pin]) -> Iterable[int]:
    todays = {version: is_todays(repository, version) for version in _versions(pins.values())}
    return (row for row, pin in pins.items() if not todays[pin.registry_version])


def _versions(pins: Iterable[Pin | LivePin]) -> set[int]:
    return {pin.registry_version for pin in pins}


def is_todays(repository: Repository, version: int) -> bool:
    """Return whether packs of a registry's time are sealed to exactly today's recipients.

    Raises:
        StoreError: the registry cannot be read.
    """
    if version == repository.registry.registry.version:
        return True
    try:
        then = read_registry(repository, repository.store, version).record(repository.stream)
    except (IntegrityError, TrustError):
        return False  # nobody knows to whom
    return set(then.current.data_recipients) == set(repository.record.current.data_recipients)
