"""Take a snapshot: walk, read what changed, store new chunks, publish one signed manifest.

Reads top to bottom: stand, take over, keep each root, store the rest, publish, note. Nothing
before `publish` is visible to a reader, and a failure anywhere leaves a resume point.
Source: spec/cli.md (snapshot, omissions), spec/format.md 4 to 7, law 1. Start at `snapshot`.
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from durarepo.core.clock import Clock
from durarepo.core.errors import (
    FreshnessError,
    RunError,
    StoreError,
)
from durarepo.core.limits import PINS_MAX_COUNT
from durarepo.core.names import Digest, ObjectName
from durarepo.core.progress import Progress
from durarepo.format.manifest import (
    LedgerLine,
    OmissionClass,
    Pin,
    Root,
    SnapshotType,
    Statement,
)
from durarepo.format.tree import SetHash
from durarepo.ingest import check_registry_time
from durarepo.local.catalog import ManifestRow
from durarepo.local.journal import Journal
from durarepo.local.lock import RunLock
from durarepo.local.work import WorkFolder
from durarepo.policy import freshness
from durarepo.repository.account import compose_nested
from durarepo.repository.exclusion import Exclusion
from durarepo.repository.markings import look_at_marked
from durarepo.repository.newlyleft import newly_left
from durarepo.repository.publisher import (
    Draft,
    Published,
    not_noted,
    publish,
)
from durarepo.repository.repository import Repository
from durarepo.repository.roots import MOUNT_FACT, Roots
from durarepo.repository.standing import (
    find_standing,
)
from durarepo.repository.takeover import LastComplete
from durarepo.repository.tally import Tally
from durarepo.repository.treekeeper import POLICY_FACT, TreeKeeper
from durarepo.repository.workbench import DIRS_FACT, Workbench
from durarepo.source.marked import MarkedFolder
from durarepo.source.mounts import MountTable, read_mounts
from durarepo.store.atomic import make_folder

_NOOP_SECONDS = 20 * 3600
_DAY_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRequest:
    """What kind of snapshot is asked for; the budget in seconds, None for none.

    ``home`` is the home folder of the user that runs it, whose well-known stores are left out
    wherever another name of them lies; None where there is none.
    """

    type: SnapshotType = SnapshotType.MANUAL
    budget_seconds: float | None = None
    partial: bool = False
    home: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotResult:
    """What a run did.

    ``redacted`` counts values. ``marked`` are folders left out for a mark in them that somebody
    should look at, ``newly_left`` what is left out for its content and was not the last time.
    ``distrust`` is why trust has run out (exit code 22), or None.
    """

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
    marked: tuple[MarkedFolder, ...] = ()
    newly_left: tuple[LedgerLine, ...] = ()
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
    run = _Run(repository, request, clock=clock, progress=progress)
    try:
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
            try:
                return run.take(journal, work)
            except StoreError as error:
                if error.code != "store.catalog-damaged" or run.published is not None:
                    raise
            repository.close_catalog()  # it was set aside; all it said can be found again
            run = _Run(repository, request, clock=clock, progress=progress)
            return run.take(journal, work)
    except StoreError as error:  # also what shows only when lock and work folder are given back
        raise run.told(error) from error


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
        self._marked: tuple[MarkedFolder, ...] = ()
        self._newly_left: tuple[LedgerLine, ...] = ()
        self.published: Published | None = None

    def take(self, journal: Journal, work: WorkFolder) -> SnapshotResult:
        """Do it all, from standing to noting."""
        repository, catalog = self._repository, self._repository.catalog
        standing = find_standing(repository, journal)
        if self._request.type is SnapshotType.AUTO and self._is_done_today():
            return self._result("noop")
        mounts = read_mounts()
        exclusion = self._exclusion()
        self._tally = Tally(short_id=exclusion.short_id)
        self._roots = Roots(repository, paths=exclusion.paths)
        with catalog.guarded():
            self._roots.check(mounts)
        bench: Workbench | None = None
        try:
            with catalog.transaction() as transaction:
                bench = Workbench(
                    repository, standing, exclusion=exclusion, journal=journal, work=work
                )
                self.published = self._keep_and_publish(bench, exclusion, mounts)
                if not self.published.statement.complete:
                    transaction.undo()
            if self.published.statement.complete:
                journal.complete()
            else:
                pinned = {pin.name for pin in self.published.statement.pins}
                bench.go_on_from(self.published.digest, pinned)
        except RunError as error:
            if error.code != "run.budget":
                raise
            return self._result("budget", bench)
        finally:
            if bench is not None:
                bench.close()
        return self._result(self._status(self.published), bench)

    def told(self, error: StoreError) -> StoreError:
        """Return the error as it is to be told: it says so where the manifest stands."""
        if self.published is None:
            return error
        return not_noted(error, self.published.statement.sequence)

    def _exclusion(self) -> Exclusion:
        today = _instant(self._clock).date()
        return Exclusion(self._repository, home=self._request.home, today=today)

    def _keep_and_publish(
        self, bench: Workbench, exclusion: Exclusion, mounts: MountTable
    ) -> Published:
        try:
            roots, set_hash = self._keep_roots(bench, mounts)
        except RunError:
            bench.writer.finish()  # what was read is stored, so that the next run goes on from it
            raise
        nested = compose_nested(
            self._tally,
            bench.sink,
            roots=roots,
            set_hash=set_hash,
            configuration=self._repository.configuration_text,
            policy=exclusion.version,
        )
        bench.writer.finish()
        pins = self._pins(bench)
        pinned = {pin.name for pin in pins}
        draft = Draft(
            type=self._request.type,
            complete=self._tally.reached_all,
            totals=self._tally.totals(),
            pins=pins,
            abandoned=tuple(sorted(bench.abandoned(complete=self._tally.reached_all) - pinned)),
            nested=nested,
        )
        self.published = published = publish(
            self._repository,
            draft,
            standing=bench.standing,
            journal=bench.journal,
            now=self._clock(),
        )
        self._marked = look_at_marked(self._repository.catalog, exclusion.paths.marked)
        self._newly_left = newly_left(self._repository.catalog, self._tally.lines)
        self._note(published, roots, mounts)
        self._repository.catalog.set_fact(POLICY_FACT, exclusion.version.encode())
        return published

    # --- before anything is read ---

    def _is_done_today(self) -> bool:
        now = self._clock()
        for run in self._repository.iter_counted_runs():
            same_day = run.issued // _DAY_SECONDS == now // _DAY_SECONDS
            fresh = 0 <= now - run.issued < _NOOP_SECONDS
            if run.complete and run.type == SnapshotType.AUTO.word and same_day and fresh:
                return True
        return False

    # --- keeping ---

    def _keep_roots(self, bench: Workbench, mounts: MountTable) -> tuple[tuple[Root, ...], bytes]:
        trees = TreeKeeper(
            bench.keeper,
            bench.sink,
            catalog=self._repository.catalog,
            tally=self._tally,
            started_ns=self._clock() * 1_000_000_000,
            progress=self._progress,
        )
        trees.resumed = bench.resumed
        trees.on_file = bench.note_file
        trees.is_spent = bench.keeper.is_spent = lambda: self._is_spent(bench)
        if bench.since is not None:
            trees.last_complete = LastComplete(
                self._repository.catalog, bench.sink, tally=self._tally, since=bench.since
            )
        roots: list[Root] = []
        hashed = SetHash()
        for config in self._repository.configuration.roots:
            root, set_hash = trees.keep_root(
                config.path, rules=self._roots.rules(config), mounts=mounts
            )
            roots.append(root)
            hashed.add_root(config.path, set_hash)
        return tuple(roots), hashed.digest()

    def _is_spent(self, bench: Workbench) -> bool:
        budget = self._request.budget_seconds
        spent = time.monotonic() - self._began
        if budget is not None and spent >= budget / 2:
            bench.stop_rewriting()
        if budget is None or spent < budget:
            return False
        if not (self._request.partial and bench.knows_last_complete):
            raise RunError(
                "budget",
                "the time budget is spent; a resume point was saved",
                hint="run the command again to go on from there",
            )
        return True

    def _pins(self, bench: Workbench) -> tuple[Pin, ...]:
        rows = bench.sink.packs_of(self._tally.owners)
        pins = sorted((bench.sink.packs[row] for row in rows), key=lambda pin: pin.name)
        if len(pins) > PINS_MAX_COUNT:
            raise StoreError("pins", f"a manifest pins at most {PINS_MAX_COUNT} packs")
        return tuple(pins)

    # --- after ---

    def _note(self, published: Published, roots: tuple[Root, ...], mounts: MountTable) -> None:
        catalog, statement = self._repository.catalog, published.statement
        catalog.set_fact(DIRS_FACT, published.digest)
        for root in roots:
            catalog.set_fact(MOUNT_FACT + root.path.hex(), mounts.mount_point_of(root.path))
        catalog.add_manifest(manifest_row(statement, name=published.name, digest=published.digest))

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
            for run in self._repository.iter_counted_runs():
                freshness.check_issued(run.issued, now, what=f"manifest {run.sequence}")
        except FreshnessError as error:
            return error
        return None

    def _result(self, status: str, bench: Workbench | None = None) -> SnapshotResult:
        totals, sink = self._tally.totals(), None if bench is None else bench.sink
        published = self.published
        stored = 0 if sink is None else sink.stored_bytes
        if published is not None:
            stored += self._repository.store.stat(published.name) or 0
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
            marked=self._marked,
            newly_left=self._newly_left,
            distrust=self._distrust(),
        )


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
