"""Where a run stands when it begins: head, live packs, and what a killed run left to take over.

The journal of a run names each pack before its object gets its name, the files that lie whole in
packs that are durable, and, just before the envelope is put, the manifest itself; so a kill at
any point loses at most the unfinished pack, and a manifest that was put is found to be ours.
After a partial manifest the journal goes on, under a header that names the new head.
Source: spec/format.md 8, 9 and 12 (laws 3 and 5). Start at `find_standing`.
"""

import struct
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

from durarepo.core.errors import IntegrityError, TrustError
from durarepo.core.names import ZERO_DIGEST, Digest, ObjectName, Sequence, SignerId
from durarepo.format.canonical import Value, decode, encode
from durarepo.format.manifest import Pin, SnapshotType, Statement, parse_statement
from durarepo.local.journal import Journal
from durarepo.local.lastverify import LastVerify
from durarepo.local.statefiles import (
    HighWater,
    LivePin,
    LivePins,
    PinnedManifest,
    RunRecord,
)
from durarepo.repository.chain import Chain
from durarepo.repository.keyfolder import settle_keys
from durarepo.repository.openpack import PackOpener
from durarepo.repository.repository import Repository
from durarepo.repository.rewriting import is_todays

_PACK, _FILES, _PUBLISH, _LOOSE = 1, 2, 3, 4
_MARK = struct.Struct(">HBII")
ANY_TIME = 1 << 61
"""Stands for the live time where a writer looks at its own chain: writing never stops for a
clock that is behind (format 11); a reader never uses it."""


@dataclass(frozen=True, slots=True)
class FileMark:
    """A file that lies whole in durable packs: path, record, encoded entry, pack names."""

    path: bytes
    record: bytes
    entry: bytes
    packs: tuple[ObjectName, ...]


@dataclass(slots=True, kw_only=True)
class Standing:
    """What a new run builds on. ``live`` are the pins that count, by pack name."""

    head: PinnedManifest | None
    complete: PinnedManifest | None
    live: dict[ObjectName, Pin]
    state_lost: bool
    taken_over: dict[ObjectName, Pin] = field(default_factory=dict)
    abandoned: set[ObjectName] = field(default_factory=set)
    files: list[FileMark] = field(default_factory=list)

    @property
    def sequence(self) -> int:
        """Number of the head, 0 before the first manifest."""
        return 0 if self.head is None else self.head.sequence

    @property
    def head_digest(self) -> Digest:
        """Digest of the head's envelope."""
        return ZERO_DIGEST if self.head is None else self.head.digest


# --- journal records -----------------------------------------------------------------------


def journal_header(head: Digest) -> bytes:
    """Return the header of a run that starts from ``head``."""
    return encode([head])


def pack_record(pin: Pin) -> bytes:
    """Return the record of a pack that is about to be put."""
    return encode(
        [_PACK, bytes.fromhex(pin.name), pin.size, pin.index_digest, pin.registry_version]
    )


def files_record(marks: Iterable[FileMark]) -> bytes:
    """Return the record of files that lie whole in durable packs."""
    parts: list[bytes] = []  # packed by hand: there is one for each file of a first snapshot
    for mark in marks:
        names = bytes.fromhex("".join(mark.packs))
        lengths = map(len, (mark.path, mark.record, mark.entry, names))
        parts += (_MARK.pack(*lengths), mark.path, mark.record, mark.entry, names)
    return encode([_FILES, b"".join(parts)])


def loose_record(names: Iterable[ObjectName]) -> bytes:
    """Return the record of packs that an earlier run left and no manifest has named yet."""
    return encode([_LOOSE, [bytes.fromhex(name) for name in sorted(names)]])


def publish_record(name: ObjectName, envelope_digest: Digest, statement: bytes) -> bytes:
    """Return the record of a manifest that is about to be put."""
    return encode([_PUBLISH, bytes.fromhex(name), envelope_digest, statement])


def carried_records(records: Iterable[bytes], pinned: Container[ObjectName]) -> Iterator[bytes]:
    """Yield what of a run's records counts after its partial manifest: files, unpinned packs.

    Packs that an earlier run left are listed as abandoned by now.
    """
    for record in records:
        match decode(record):
            case [1, *_] as value if _parse_pack(value).name not in pinned:
                yield record
            case [2, *_]:
                yield record
            case _:
                continue


def _parse_pack(value: Value) -> Pin:
    match value:
        case [1, bytes() as name, int() as size, bytes() as digest, int() as version]:
            return Pin(
                name=ObjectName(name.hex()),
                size=size,
                index_digest=Digest(digest),
                registry_version=version,
            )
        case _:
            raise IntegrityError("journal", "record of a pack has another form")


def _parse_files(data: bytes) -> list[FileMark]:
    marks: list[FileMark] = []
    at = 0
    while at < len(data):
        begin = at + _MARK.size
        cells: list[bytes] = []
        for length in _MARK.unpack_from(data, at):
            cells.append(data[begin : begin + length])
            begin += length
        path, record, entry, names = cells
        packs = tuple(ObjectName(names[n : n + 32].hex()) for n in range(0, len(names), 32))
        marks.append(FileMark(path, record, entry, packs))
        at = begin
    return marks


# --- finding out ---------------------------------------------------------------------------


def find_standing(repository: Repository, journal: Journal) -> Standing:
    """Return what a new run builds on; first ends the bookkeeping of a manifest that was put.

    It follows the owner before all else: the newest registry, and the keys of its epoch.

    Raises:
        TrustError: ``rollback``, ``fork``.
        KeyMaterialError: the keys are not those of the epoch in force.
        StoreError: the state cannot be read.
    """
    repository.refresh_registry()
    repository.check_signer()
    settle_keys(repository)
    chain = Chain(repository)
    head = chain.head()
    generation = journal.load()
    left = [] if generation is None or generation.is_complete else list(generation.records)
    live = repository.state.live_pins()
    if live is not None and repository.record.is_cut_off(live.head.epoch, live.head.sequence):
        live = _cut_off(repository, chain, head)
    if head and (live is None or live.head.sequence != head):
        # Marks are there from init on: without them the state was lost, and the journal, which
        # knows one manifest at most, does not bring it back.
        is_lost = repository.state.high_water() is None
        live = None if is_lost else _end_bookkeeping(repository, chain, head, left)
        live = live or _from_chain(repository, chain, head)
    standing = Standing(
        head=None if live is None else live.head,
        complete=None if live is None else live.complete,
        live={},
        state_lost=False,
    )
    if head and live is None:
        standing.head = _head_by_slot(repository, chain, head)
        standing.state_lost = True
    elif live is not None:
        standing.live = _present(repository, [live.head, live.complete])
    if generation is not None and left:
        same_head = generation.header == journal_header(standing.head_digest)
        pinned = None if standing.state_lost and not same_head else _pinned(live)
        _take_over(repository, left, standing, same_head=same_head, pinned=pinned)
    return standing


def _cut_off(repository: Repository, chain: Chain, head: int) -> LivePins:
    """Note the head that the owner's last epoch leaves; no pack before that epoch counts.

    Every epoch that cuts something off has a new naming key (format 8).
    """
    live = LivePins(head=_head_by_slot(repository, chain, head), complete=None)
    repository.state.replace_live_pins(live)
    return live


def _pinned(live: LivePins | None) -> set[ObjectName]:
    manifests = () if live is None else (live.head, live.complete)
    return {pin.pack for one in manifests if one is not None for pin in one.pins}


def _present(
    repository: Repository, manifests: list[PinnedManifest | None]
) -> dict[ObjectName, Pin]:
    """Return the pinned packs that are there, with their size (law 3).

    One that a verification found bad is left out, so that its chunks are stored anew; so is
    all that was sealed under another naming key (format 7.2).
    """
    bad = LastVerify(repository.places.state).bad_packs()
    manifests = [one for one in manifests if one and repository.keeps_naming(one.epoch)]
    found: dict[ObjectName, Pin] = {}
    for manifest in manifests:
        for one in () if manifest is None else manifest.pins:
            if one.pack in found or one.pack in bad:
                continue
            if repository.store.stat(one.pack) == one.size_bytes:
                found[one.pack] = Pin(
                    name=one.pack,
                    size=one.size_bytes,
                    index_digest=one.index_digest,
                    registry_version=one.registry_version,
                )
    return found


def _end_bookkeeping(
    repository: Repository, chain: Chain, head: int, records: list[bytes]
) -> LivePins | None:
    """Note a manifest that a killed run had put and not noted; None if it is another one."""
    for record in records:
        match decode(record):
            case [3, bytes() as name, bytes() as digest, bytes() as encoded]:
                statement = parse_statement(encoded)
                envelope = chain.envelope(head)
                if statement.sequence == head and envelope and envelope.digest == digest:
                    return note_manifest(
                        repository, statement, name=ObjectName(name.hex()), digest=Digest(digest)
                    )
            case _:
                continue
    return None


def note_manifest(
    repository: Repository, statement: Statement, *, name: ObjectName, digest: Digest
) -> LivePins:
    """Note a manifest that stands: live pins, ledger, marks, in the order that a kill survives.

    Raises:
        StoreError: the state cannot be written; the manifest stands all the same.
    """
    pinned = pinned_manifest(statement, name=name, digest=digest)
    before = repository.state.live_pins()
    complete = pinned if statement.complete else None if before is None else before.complete
    live = LivePins(head=pinned, complete=complete)
    noted = max(((run.epoch, run.sequence) for run in repository.state.iter_runs()), default=(0, 0))
    if noted < (statement.epoch, statement.sequence):
        repository.state.append_run(run_record(statement, name=name, digest=digest))
    repository.state.replace_live_pins(live)
    raise_marks(repository, pinned)
    return live


def raise_marks(repository: Repository, head: PinnedManifest) -> None:
    """Raise the high-water to a head under the epoch in force, and to the registry held."""
    held = repository.state.high_water()
    repository.state.raise_high_water(
        HighWater(
            epoch=repository.record.current.number,
            sequence=head.sequence,
            head_digest=head.digest,
            registry_version=repository.registry.registry.version,
            clock_seconds=0 if held is None else held.clock_seconds,
        )
    )


def _from_chain(repository: Repository, chain: Chain, head: int) -> LivePins | None:
    """Note what the manifests themselves say; None without an identity that opens the head."""
    if repository.keys.identity is None or not chain.opens(head):
        return None
    noted = max(((run.epoch, run.sequence) for run in repository.state.iter_runs()), default=(0, 0))
    newest: PinnedManifest | None = None
    complete: PinnedManifest | None = None
    is_ours = all(map(chain.opens, range(1, head + 1)))
    found = chain.all_verified(now=ANY_TIME) if is_ours else chain.part(head, now=ANY_TIME)
    for number, one in sorted(found.items()):
        envelope = chain.envelope(number)
        name = envelope.name if envelope else repository.manifest_slot(1, number, 0)
        newest = pinned_manifest(one.statement, name=name, digest=one.digest)
        complete = newest if one.statement.complete else complete
        if (one.statement.epoch, number) > noted:
            repository.state.append_run(run_record(one.statement, name=name, digest=one.digest))
    if newest is None or newest.sequence != head:
        return None
    live = LivePins(head=newest, complete=complete)
    repository.state.replace_live_pins(live)
    raise_marks(repository, newest)
    return live


def _head_by_slot(repository: Repository, chain: Chain, head: int) -> PinnedManifest:
    """Return the head by its slot and digest alone (law 5: neither state nor identity)."""
    envelope = chain.envelope(head)
    if envelope is None:
        raise TrustError("rollback", f"manifest {head} was there a moment ago and is gone")
    pinned = PinnedManifest(
        epoch=envelope.epoch,
        sequence=Sequence(head),
        name=envelope.name,
        digest=envelope.digest,
        pins=(),
    )
    raise_marks(repository, pinned)
    return pinned


def _take_over(
    repository: Repository,
    records: list[bytes],
    standing: Standing,
    *,
    same_head: bool,
    pinned: set[ObjectName] | None,
) -> None:
    """Take over what a killed run stored, if the head is still the one that it started from.

    A pack counts only if it has the naming key in force and exactly the recipients of today:
    what a retired identity opens must not enter a manifest that comes after it. What is there
    and not taken over is abandoned, unless a manifest pins it. Where that is not known
    (``pinned`` is None), nothing is called abandoned.
    """
    left: set[ObjectName] = set()
    opener = PackOpener(repository)
    for record in records:
        match decode(record):
            case [1, *_] as value:
                pin = _parse_pack(value)
                size = repository.store.stat(pin.name)
                epoch = opener.epoch_of(pin.registry_version)
                has_keys = repository.keeps_naming(epoch) and is_todays(
                    repository, pin.registry_version
                )
                if same_head and size == pin.size and has_keys:
                    standing.taken_over[pin.name] = pin
                elif size is not None:
                    left.add(pin.name)
            case [2, bytes() as packed] if same_head:
                standing.files += _parse_files(packed)
            case [4, list() as names]:
                left.update(ObjectName(name.hex()) for name in names if isinstance(name, bytes))
            case _:
                continue
    if pinned is not None:
        standing.abandoned = left - pinned - standing.taken_over.keys()


def pinned_manifest(statement: Statement, *, name: ObjectName, digest: Digest) -> PinnedManifest:
    """Return what the state keeps of a manifest's pins."""
    return PinnedManifest(
        epoch=statement.epoch,
        sequence=Sequence(statement.sequence),
        name=name,
        digest=digest,
        pins=tuple(
            LivePin(
                pack=pin.name,
                size_bytes=pin.size,
                index_digest=pin.index_digest,
                registry_version=pin.registry_version,
            )
            for pin in statement.pins
        ),
    )


def run_record(statement: Statement, *, name: ObjectName, digest: Digest) -> RunRecord:
    """Return the ledger's line for a manifest made here."""
    return RunRecord(
        epoch=statement.epoch,
        sequence=Sequence(statement.sequence),
        name=name,
        digest=digest,
        issued=statement.issued,
        expires=statement.expires,
        type=SnapshotType(statement.type).word,
        files=statement.totals.files,
        dirs=statement.totals.dirs,
        bytes=statement.totals.bytes,
        signer=SignerId(statement.signer),
        complete=statement.complete,
        omissions=statement.totals.omissions,
        pinned_packs=len(statement.pins),
    )
