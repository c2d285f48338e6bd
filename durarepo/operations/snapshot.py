"""Take a snapshot: walk, read what changed, store new chunks, publish one signed manifest.

Reads top to bottom: stand, take over, keep each root, store the rest, publish, note. Nothing
before `publish` is visible to a reader, and a failure anywhere leaves a resume point.
Source: spec/cli.md (snapshot, omissions), spec/format.md 4 to 7, law 1. Start at `snapshot`.
"""

import os
import platform
import stat
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from durarepo import __version__
from durarepo.core.entries import ChunkList, Run
from durarepo.core.errors import (
    ConfigurationError,
    FreshnessError,
    RunError,
    SourceError,
    StoreError,
)
from durarepo.core.limits import MIB, NESTED_MAX_BYTES, PINS_MAX_COUNT
from durarepo.core.names import Digest, ObjectName
from durarepo.core.progress import Progress
from durarepo.crypto import primitives
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import (
    Component,
    LedgerLine,
    Nested,
    OmissionClass,
    Pin,
    Root,
    SnapshotType,
    Statement,
    encode_ledger,
)
from durarepo.format.tree import SetHash
from durarepo.ingest import check_registry_time
from durarepo.local.catalog import Catalog, ManifestRow
from durarepo.local.configuration import RootConfig
from durarepo.local.journal import Journal
from durarepo.local.lock import RunLock
from durarepo.local.space import check_space, free_space
from durarepo.local.work import WorkFolder
from durarepo.policy import freshness
from durarepo.policy.patterns import PatternRule
from durarepo.repository.chunks import ChunkSink
from durarepo.repository.contents import FileKeeper
from durarepo.repository.listing import Line, record_of, stat_record
from durarepo.repository.publisher import (
    INLINE_LEDGER_BYTES,
    Draft,
    Published,
    not_noted,
    publish,
)
from durarepo.repository.rebuild import ensure_packs
from durarepo.repository.repository import Repository
from durarepo.repository.standing import (
    FileMark,
    Standing,
    files_record,
    find_standing,
    journal_header,
    loose_record,
    pack_record,
)
from durarepo.repository.takeover import LastComplete
from durarepo.repository.tally import Tally
from durarepo.repository.treekeeper import Resumed, TreeKeeper
from durarepo.repository.writer import NewPack, PackTerms, PackWriter
from durarepo.sealing import ChunkNamer, PackSealer
from durarepo.source.mounts import MountTable, read_mounts
from durarepo.source.opening import open_root
from durarepo.source.walk import Enter, WalkRules, walk
from durarepo.store.atomic import make_folder

DIRS_FACT = "dirs-of"
"""The catalogue's fact that names the complete manifest whose directories it has."""

_MOUNT_FACT = "mount:"

_POLICY_VERSION = "0"
_NOOP_SECONDS = 20 * 3600
_DAY_SECONDS = 24 * 3600
_TIGHT_BYTES = 16 * 1024 * MIB
_SPARE_BYTES = 2 * MIB
_LIKELY_RATIO = 4
_MARKS_AT_ONCE = 4096
_MARKS_BYTES = MIB
_LEDGER_SPARE_BYTES = 4096
_LEDGER_PART_BYTES = MIB // 2
_MARKS_MAX_BYTES = 256 * MIB

Clock = Callable[[], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRequest:
    """What kind of snapshot is asked for; the budget in seconds, None for none."""

    type: SnapshotType = SnapshotType.MANUAL
    budget_seconds: float | None = None
    partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotResult:
    """What a run did. ``distrust`` is why trust has run out (exit code 22), or None."""

    status: str
    sequence: int | None
    manifest: ObjectName | None
    files: int
    dirs: int
    bytes: int
    new_chunks: int
    new_bytes: int
    stored_bytes: int
    packs: int
    omissions: int
    excluded: int
    redacted: int
    vanished: int
    seconds: float
    left_out: tuple[LedgerLine, ...] = ()
    distrust: FreshnessError | None = None


def snapshot(
    repository: Repository, request: SnapshotRequest, *, clock: Clock, progress: Progress
) -> SnapshotResult:
    """Take one snapshot of the stream's roots.

    Args:
        repository: the stream's repository.
        request: what is asked for.
        clock: gives the live time in whole seconds.
        progress: told how far it has come.

    Returns:
        What was done; status ``ok``, ``omissions``, ``noop`` or ``budget``.

    Raises:
        RunError: ``locked``.
        SourceError: a root is missing or unreadable; no manifest was made.
        StoreError: the repository or the state cannot be written; no manifest was made, or
            (said so) it stands and could not be noted.
        TrustError: the chain is not ours to go on with.
    """
    repository.keys.need_signing()
    with (
        RunLock(repository.places.lock, now=_instant(clock)) as lock,
        Journal(repository.places.journal) as journal,
        WorkFolder(repository.places.work, lock) as work,
    ):
        work.clean_after_kill()
        repository.store.remove_leftovers(lock)
        make_folder(repository.places.state)  # it may have been lost
        if lock.takeover is not None:
            repository.audit.append("lock-takeover", {}, _instant(clock))
        run = _Run(repository, request, clock=clock, progress=progress)
        try:
            return run.take(journal, work)
        except StoreError as error:
            if error.code != "store.catalog-damaged" or run.published is not None:
                raise
        repository.close_catalog()  # it was set aside; all it said can be found again
        return _Run(repository, request, clock=clock, progress=progress).take(journal, work)


def _instant(clock: Clock) -> datetime:
    return datetime.fromtimestamp(clock(), UTC)


class _Run:
    """One run of a snapshot."""

    def __init__(
        self, repository: Repository, request: SnapshotRequest, *, clock: Clock, progress: Progress
    ) -> None:
        self._repository = repository
        self._request = request
        self._clock = clock
        self._progress = progress
        self._began = time.monotonic()
        self._tally = Tally()
        self.published: Published | None = None

    def take(self, journal: Journal, work: WorkFolder) -> SnapshotResult:
        """Do it all, from standing to noting."""
        repository, catalog = self._repository, self._repository.catalog
        standing = find_standing(repository, journal)
        if self._request.type is SnapshotType.AUTO and self._is_done_today():
            return self._result("noop")
        mounts = read_mounts()
        with catalog.guarded():
            self._check_roots(mounts)
            self._check_space()
        hand: _Hand | None = None
        try:
            with catalog.transaction() as transaction:
                hand = _Hand(repository, standing, journal=journal, work=work)
                self.published = self._keep_and_publish(hand, mounts)
                if not self.published.statement.complete:
                    transaction.undo()
            journal.complete()
        except RunError as error:
            if error.code != "run.budget":
                raise
            return self._result("budget", hand)
        except StoreError as error:
            raise self._told(error) from error
        finally:
            if hand is not None:
                hand.writer.close()
        return self._result(self._status(self.published), hand)

    def _told(self, error: StoreError) -> StoreError:
        if self.published is None:
            return error
        return not_noted(error, self.published.statement.sequence)

    def _keep_and_publish(self, hand: "_Hand", mounts: MountTable) -> Published:
        try:
            roots, set_hash = self._keep_roots(hand, mounts)
        except RunError:
            hand.writer.finish()  # what was read is stored, so that the next run goes on from it
            raise
        nested = self._nested(hand, roots, set_hash)
        hand.writer.finish()
        pins = self._pins(hand)
        pinned = {pin.name for pin in pins}
        loose = hand.standing.abandoned | {
            hand.sink.packs[row].name for row in (*hand.sink.new_packs, *hand.taken_over)
        }
        draft = Draft(
            type=self._request.type,
            complete=self._tally.reached_all,
            totals=self._tally.totals(),
            pins=pins,
            abandoned=tuple(sorted(loose - pinned)),
            nested=nested,
        )
        published = publish(
            self._repository, draft, standing=hand.standing, journal=hand.journal, now=self._clock()
        )
        self._note(hand, published, roots, mounts)
        return published

    # --- before anything is read ---

    def _is_done_today(self) -> bool:
        now = self._clock()
        for run in self._repository.state.iter_runs():
            same_day = run.issued // _DAY_SECONDS == now // _DAY_SECONDS
            fresh = 0 <= now - run.issued < _NOOP_SECONDS
            if run.complete and run.type == SnapshotType.AUTO.word and same_day and fresh:
                return True
        return False

    def _check_roots(self, mounts: MountTable) -> None:
        if not self._repository.configuration.roots:
            raise ConfigurationError("no-root", "stream.toml names no root")
        for root in self._repository.configuration.roots:
            fd = open_root(root.path)
            try:
                is_empty = not os.listdir(fd)
            except OSError as error:
                raise SourceError(
                    "root-unreadable",
                    f"root {os.fsdecode(root.path)!r} cannot be read: {error.strerror}",
                    hint="give the user that runs durarepo the right to read it",
                ) from error
            finally:
                os.close(fd)
            if is_empty:
                self._check_empty_root(root.path, mounts)

    def _check_empty_root(self, path: bytes, mounts: MountTable) -> None:
        """Refuse an empty root whose files lived on a disk that is not there now."""
        before = self._repository.catalog.fact(_MOUNT_FACT + path.hex())
        row = self._repository.catalog.find_dir(path)
        had_files = bool(row.entries) if row is not None else self._has_held_files()
        moved = before is not None and before != mounts.mount_point_of(path)
        if had_files and (moved or mounts.is_mount_point(path)):
            raise SourceError(
                "root-empty-mount",
                f"root {os.fsdecode(path)!r} is an empty mount point and held files before",
                hint="mount its disk; if the files are gone on purpose, make a new stream",
            )

    def _has_held_files(self) -> bool:
        """Return whether the only root held files, by the ledger; False where it cannot tell."""
        if len(self._repository.configuration.roots) > 1:
            return False
        complete = [run for run in self._repository.state.iter_runs() if run.complete]
        return bool(complete) and complete[-1].files > 0

    def _check_space(self) -> None:
        """Refuse before reading where what changed could not fit; only asked on a small disk."""
        folder = self._repository.places.repository
        if free_space(folder)[0] > _TIGHT_BYTES:
            return
        changed = sum(
            _changed_bytes(root, self._repository.catalog, self._rules(root))
            for root in self._repository.configuration.roots
        )
        check_space(folder, changed // _LIKELY_RATIO + _SPARE_BYTES, what="the snapshot")

    def _rules(self, root: RootConfig) -> WalkRules:
        operator = PatternRule(root.path, exclude=root.exclude, include=root.include)
        places = self._repository.places
        return WalkRules(
            is_excluded=(lambda folder, name, _: operator(folder, name)) if root.exclude else None,
            one_filesystem=root.one_filesystem,
            own_state=_identities(places.repository, places.state, places.keys),
        )

    # --- keeping ---

    def _keep_roots(self, hand: "_Hand", mounts: MountTable) -> tuple[tuple[Root, ...], bytes]:
        trees = TreeKeeper(
            hand.keeper,
            hand.sink,
            catalog=self._repository.catalog,
            tally=self._tally,
            started_ns=self._clock() * 1_000_000_000,
            progress=self._progress,
        )
        trees.resumed = hand.resumed
        trees.on_file = hand.note_file
        trees.is_spent = hand.keeper.is_spent = lambda: self._is_spent(hand)
        if hand.since is not None:
            trees.last_complete = LastComplete(
                self._repository.catalog, hand.sink, tally=self._tally, since=hand.since
            )
        roots: list[Root] = []
        hashed = SetHash()
        for config in self._repository.configuration.roots:
            root, set_hash = trees.keep_root(config.path, rules=self._rules(config), mounts=mounts)
            roots.append(root)
            hashed.add_root(config.path, set_hash)
        return tuple(roots), hashed.digest()

    def _is_spent(self, hand: "_Hand") -> bool:
        budget = self._request.budget_seconds
        if budget is None or time.monotonic() - self._began < budget:
            return False
        if not (self._request.partial and hand.knows_last_complete):
            raise RunError(
                "budget",
                "the time budget is spent; a resume point was saved",
                hint="run the command again to go on from there",
            )
        return True

    def _nested(self, hand: "_Hand", roots: tuple[Root, ...], set_hash: bytes) -> Nested:
        tally = self._tally
        files = Component(
            kind="files",
            name=b"files",
            integrity=set_hash,
            counts=(("bytes", tally.bytes), ("dirs", tally.dirs), ("files", tally.files)),
        )
        databases = sorted(tally.databases, key=lambda one: one.name)
        return Nested(
            roots=roots,
            components=(files, *databases),
            ledger=self._ledger(hand),
            configuration=self._repository.configuration_text,
            host=(
                ("durarepo", __version__),
                ("host", platform.node()),
                ("system", f"{platform.system()} {platform.release()}"),
            ),
            epoch_facts=(),
            policy=_POLICY_VERSION,
        )

    def _ledger(self, hand: "_Hand") -> bytes | ChunkList:
        lines = sorted(self._tally.lines, key=lambda one: (one.path, one.kind, one.rule))
        data = encode_ledger(lines)
        if len(data) > NESTED_MAX_BYTES:
            data = encode_ledger(_shortened(lines))
        if len(data) <= INLINE_LEDGER_BYTES:
            return data
        runs: list[Run] = []
        for at in range(0, len(data), _LEDGER_PART_BYTES):
            part = data[at : at + _LEDGER_PART_BYTES]
            chunk, owner = hand.sink.put(ChunkKind.LEDGER, part)
            self._tally.owners.add(owner)
            runs.append(Run(len(part), chunk))
        return ChunkList(0, tuple(runs))

    def _pins(self, hand: "_Hand") -> tuple[Pin, ...]:
        rows = hand.sink.packs_of(self._tally.owners)
        pins = sorted((hand.sink.packs[row] for row in rows), key=lambda pin: pin.name)
        if len(pins) > PINS_MAX_COUNT:
            raise StoreError("pins", f"a manifest pins at most {PINS_MAX_COUNT} packs")
        return tuple(pins)

    # --- after ---

    def _note(
        self, hand: "_Hand", published: Published, roots: tuple[Root, ...], mounts: MountTable
    ) -> None:
        catalog, statement = self._repository.catalog, published.statement
        catalog.set_fact(DIRS_FACT, published.digest)
        for root in roots:
            catalog.set_fact(_MOUNT_FACT + root.path.hex(), mounts.mount_point_of(root.path))
        catalog.add_manifest(manifest_row(statement, name=published.name, digest=published.digest))
        hand.published_bytes = self._repository.store.stat(published.name) or 0

    def _status(self, published: Published) -> str:
        if not published.statement.complete:
            return "budget"
        return "omissions" if self._tally.count(OmissionClass.OMISSION) else "ok"

    def _distrust(self) -> FreshnessError | None:
        """Return why trust has run out although writing goes on (format 11)."""
        now, marks = self._clock(), self._repository.state.high_water()
        try:
            check_registry_time(self._repository.registry, now)
            freshness.check_clock(now, 0 if marks is None else marks.clock_seconds)
            for run in self._repository.state.iter_runs():
                freshness.check_issued(run.issued, now, what=f"manifest {run.sequence}")
        except FreshnessError as error:
            return error
        return None

    def _result(self, status: str, hand: "_Hand | None" = None) -> SnapshotResult:
        totals, sink = self._tally.totals(), None if hand is None else hand.sink
        published = self.published
        stored = 0 if hand is None else hand.sink.stored_bytes + hand.published_bytes
        return SnapshotResult(
            status=status,
            sequence=None if published is None else published.statement.sequence,
            manifest=None if published is None else published.name,
            files=totals.files,
            dirs=totals.dirs,
            bytes=totals.bytes,
            new_chunks=0 if sink is None else sink.new_chunks,
            new_bytes=0 if sink is None else sink.new_bytes,
            stored_bytes=stored,
            packs=0 if sink is None else len(sink.new_packs),
            omissions=totals.omissions,
            excluded=totals.excluded,
            redacted=totals.redacted,
            vanished=totals.vanished,
            seconds=round(time.monotonic() - self._began, 3),
            left_out=tuple(self._tally.lines),
            distrust=self._distrust(),
        )


class _Hand:
    """What a run works with: sink, writer, file keeper, and the journal that it feeds."""

    def __init__(
        self, repository: Repository, standing: Standing, *, journal: Journal, work: WorkFolder
    ) -> None:
        self.standing = standing
        self.journal = journal
        self.since = None if standing.complete is None else int(standing.complete.sequence)
        self.knows_last_complete = _knows_last_complete(repository.catalog, standing)
        self.published_bytes = 0
        self._pending: deque[tuple[bytes, Line]] = deque()
        self._noted_bytes = 0
        catalog, naming = repository.catalog, repository.keys.naming.reveal()
        live = ensure_packs(repository, catalog, standing.live.values())
        taken = ensure_packs(repository, catalog, standing.taken_over.values())
        self.taken_over = tuple(taken)
        self.sink = ChunkSink(catalog, namer=ChunkNamer(naming), live=live | taken)
        self.resumed = _resumed(standing, taken)
        self.writer = self._new_writer(repository)
        self.sink.write_to(self.writer)
        self.keeper = FileKeeper(
            self.sink,
            cut_key=primitives.derive_subkey(naming, "cut"),
            work=work,
            object_limit=repository.configuration.object_limit,
        )
        carried = [pack_record(pin) for pin in taken.values()]
        carried += [loose_record(standing.abandoned)] if standing.abandoned else []
        carried += [files_record(marks) for marks in _batches(standing.files)]
        journal.begin(journal_header(standing.head_digest), carried)

    def _new_writer(self, repository: Repository) -> PackWriter:
        epoch = repository.record.current
        place = repository.place(epoch.number)
        subkey = primitives.derive_subkey(repository.keys.naming.reveal(), "index")
        return PackWriter(
            repository.store,
            new_sealer=lambda: PackSealer(
                epoch.data_recipients, place=place, count=epoch.stanza_count, index_subkey=subkey
            ),
            terms=PackTerms(
                registry_version=repository.registry.registry.version,
                stanza_count=epoch.stanza_count,
                object_limit=repository.configuration.object_limit,
            ),
            on_sealed=lambda pin: self.journal.append(pack_record(pin)),
            on_pack=self._note_pack,
        )

    def note_file(self, path: bytes, line: Line) -> None:
        """Remember a file until all that it needs is durable."""
        self._pending.append((path, line))
        if len(self._pending) % _MARKS_AT_ONCE == 0:
            self._note_durable_files()

    def _note_pack(self, new: NewPack) -> None:
        self.sink.note_pack(new)
        self._note_durable_files()

    def _note_durable_files(self) -> None:
        marks: list[FileMark] = []
        while self._pending and self.sink.is_durable(self._pending[0][1].owners):
            path, line = self._pending.popleft()
            names = [self.sink.packs[row].name for row in self.sink.packs_of(line.owners)]
            marks.append(FileMark(path, line.record, line.entry, tuple(names)))
        for batch in _batches(marks):
            record = files_record(batch)
            self._noted_bytes += len(record)
            if self._noted_bytes <= _MARKS_MAX_BYTES:
                self.journal.append(record)


def _batches(marks: list[FileMark]) -> list[list[FileMark]]:
    """Return marks in groups, each short enough for one record of the journal."""
    batches: list[list[FileMark]] = []
    size = 0
    for mark in marks:
        if not batches or size > _MARKS_BYTES or len(batches[-1]) >= _MARKS_AT_ONCE:
            batches.append([])
            size = 0
        batches[-1].append(mark)
        size += len(mark.path) + len(mark.entry)
    return batches


def _knows_last_complete(catalog: Catalog, standing: Standing) -> bool:
    """Return whether the catalogue's directories are those of the last complete manifest.

    If not, they are good all the same to find what is unchanged since whenever they were noted.
    """
    if standing.complete is None:
        return not standing.state_lost
    return catalog.fact(DIRS_FACT) == standing.complete.digest


def _resumed(standing: Standing, taken: dict[int, Pin]) -> dict[bytes, Resumed]:
    rows = {pin.name: row for row, pin in taken.items()}
    found: dict[bytes, Resumed] = {}
    for mark in standing.files:
        owners = tuple(-rows[name] for name in mark.packs if name in rows)
        if len(owners) == len(mark.packs):
            found[mark.path] = Resumed(mark.record, mark.entry, owners)
    return found


def _identities(*paths: bytes) -> frozenset[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            continue  # what is not there cannot be met by the walk
        found.add((status.st_dev, status.st_ino))
    return frozenset(found)


def _changed_bytes(root: RootConfig, catalog: Catalog, rules: WalkRules) -> int:
    """Return the bytes of files in directories that are not as they were kept."""
    total = 0
    for event in walk(root.path, rules=rules):
        if isinstance(event, Enter):
            row = catalog.find_dir(event.path)
            record = record_of([(name, stat_record(found)) for name, found in event.names])
            if row is None or row.record != record:
                total += sum(
                    found.st_blocks * 512 for _, found in event.names if stat.S_ISREG(found.st_mode)
                )
    return total


def _shortened(lines: list[LedgerLine]) -> list[LedgerLine]:
    """Return a ledger that fits: omissions first, then one line a class with how many more."""
    kept: list[LedgerLine] = []
    more: Counter[OmissionClass] = Counter()
    room = NESTED_MAX_BYTES - _LEDGER_SPARE_BYTES
    for line in sorted(lines, key=lambda one: one.kind is not OmissionClass.OMISSION):
        room -= len(encode_ledger([line]))
        if room >= 0:
            kept.append(line)
        else:
            more[line.kind] += line.count
    return kept + [
        LedgerLine(kind=kind, path=b"", rule="ledger-full", stage="ledger", count=count)
        for kind, count in sorted(more.items())
    ]


def manifest_row(statement: Statement, *, name: ObjectName, digest: Digest) -> ManifestRow:
    """Return what the catalogue keeps of a manifest for `log`."""
    return ManifestRow(
        sequence=statement.sequence,
        epoch=statement.epoch,
        name=name,
        digest=digest,
        issued=statement.issued,
        expires=statement.expires,
        type=int(statement.type),
        files=statement.totals.files,
        dirs=statement.totals.dirs,
        size_bytes=statement.totals.bytes,
        signer=statement.signer,
        complete=statement.complete,
        omissions=statement.totals.omissions,
    )
