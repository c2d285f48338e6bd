"""Verify: is what is stored still what was signed? Answered from stored bytes alone.

Three levels, each with those before it: the chain of manifests, the packs that they pin, the
data in them. Problems are collected and none ends the run; each names its object, and the files
and manifests that suffer. Neither catalogue nor notes are believed, and nothing stored is changed;
what came of it is noted in the state.
What an expired manifest pins is compared with its digests and never decrypted.
Longer than most, since the steps of one run share all that they find.
Source: spec/cli.md 4 (verify), spec/ingest.md. Start at `verify`.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from durarepo.core.clock import Clock
from durarepo.core.entries import ChunkList, Entry
from durarepo.core.errors import (
    FreshnessError,
    IntegrityError,
    KeyMaterialError,
    StoreError,
    TrustError,
)
from durarepo.core.limits import CHUNK_MAX_BYTES
from durarepo.core.names import ObjectName
from durarepo.core.progress import Progress
from durarepo.core.secret import Secret
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import Nested, Pin, parse_ledger
from durarepo.ingest import VerifiedManifest, check_registry_time, check_restorable
from durarepo.local.checked import CheckedPacks
from durarepo.local.lastverify import LastVerify, Outcome, PackFinding
from durarepo.policy.freshness import check_clock
from durarepo.repository.chain import Chain
from durarepo.repository.chaincheck import check_chain
from durarepo.repository.chainlocal import check_chain_locally
from durarepo.repository.inspection import Depth, IdSet, PackInspector, PackReport, short_id
from durarepo.repository.listingwalk import Branch, ListingWalk, Needs, Walked, needed_by
from durarepo.repository.losses import (
    Losses,
    Whereabouts,
    damaged_packs,
    note_pinning,
    visible_packs,
)
from durarepo.repository.openpack import EpochKeys
from durarepo.repository.pieces import file_pieces
from durarepo.repository.problems import Findings, Problem, ProblemKind, is_whole
from durarepo.repository.reader import CheckedFrames, ChunkReader
from durarepo.repository.rebuild import epoch_keys, open_unpinned
from durarepo.repository.repository import Repository
from durarepo.repository.sealedto import check_recipient, not_recipient
from durarepo.repository.shelf import Shelf
from durarepo.repository.slots import CheckedChain, read_object
from durarepo.repository.trees import read_content
from durarepo.store.port import ObjectStore

_Content = tuple[bytes | None, ChunkList | None]
"""What a file of more than one chunk is: its SHA-256, and where its chunks lie."""


class Level(StrEnum):
    """How much is verified."""

    CHAIN = "chain"
    PACKS = "packs"
    DATA = "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """What is to be verified; at level data, ``percent`` (0 to 100) of the pinned bytes."""

    level: Level = Level.PACKS
    percent: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was found.

    ``ok`` is True only if the asked level was done in full and no problem was found. ``bytes``
    are the bytes of packs that were read. ``chain`` is ``full``, or ``local`` where no identity
    that opens the head is here and only names, marks and digests were compared, or ``part``
    where older manifests are sealed to others and only their names and marks were looked at.
    ``unknown`` counts objects that nothing explains: several streams may share a store.
    ``newest_whole`` tells whether no problem concerns the newest manifest; None where not all
    of it was looked at.
    """

    ok: bool
    level: Level
    head: int
    manifests: int
    packs: int
    frames: int
    bytes: int
    problems: tuple[Problem, ...]
    expired: bool
    chain: str
    unknown: int
    newest_whole: bool | None


def verify(
    repository: Repository,
    request: VerifyRequest,
    *,
    clock: Clock,
    progress: Progress,
    store: ObjectStore | None = None,
) -> Verified:
    """Verify the stream's objects up to the level that is asked for.

    Args:
        repository: open; its lock is not taken.
        request: what is asked for.
        clock: gives the live time.
        progress: told of every pack.
        store: holds the objects, if not the repository itself; the outcome is then not noted.

    Returns:
        What was found; problems do not raise.

    Raises:
        FreshnessError: ``clock``, ``ahead``, ``registry-expired``: the live time, or the
            registry at the live time, does not allow an answer.
        KeyMaterialError: ``identity-absent``, ``not-recipient``, at level data.
        StoreError: the store or the state cannot be used.
        ValueError: a percentage out of bounds.
    """
    if request.percent is not None and not 0 < request.percent <= 100:  # noqa: PLR2004
        raise ValueError("a percentage lies above 0 and is at most 100")
    if request.level is Level.DATA:
        repository.keys.need_identity()
    run = _Run(repository, request, clock=clock, store=store or repository.store)
    run.check_chain()
    if request.level is not Level.CHAIN:
        if request.level is Level.DATA:
            run.read_listings()
            run.check_files()
        run.check_packs(progress)
        run.note_checked()
        run.find_losses()
        run.look_at_the_rest()
    found = run.result()
    if store is None:
        _note(repository, found, request, run)
    return found


def _note(repository: Repository, found: Verified, request: VerifyRequest, run: "_Run") -> None:
    outcome = Outcome(
        level=found.level.value,
        is_share=request.percent is not None,
        at=run.began,
        ok=found.ok,
        problems=sum(one.kind is not ProblemKind.EXPIRED for one in found.problems),
    )
    try:
        LastVerify(repository.places.state).note(outcome, run.pack_findings())
    except StoreError:
        return  # what was found is worth more than the note of it


@dataclass(slots=True, kw_only=True)
class _Restorable:
    """A manifest whose data may be decrypted now, and what it lists."""

    manifest: VerifiedManifest
    nested: Nested
    needs: Needs
    failed: list[tuple[bytes, IntegrityError]] = field(default_factory=list)


class _Run:
    """One verification."""

    def __init__(
        self, repository: Repository, request: VerifyRequest, *, clock: Clock, store: ObjectStore
    ) -> None:
        self._repository = repository
        self._request = request
        self._clock = clock
        self._store = store
        self._findings = Findings()
        self._identity = repository.keys.identity
        self._chain = CheckedChain()
        self._shelf = Shelf(repository, store=store)
        self._restorable: list[_Restorable] = []
        self._reports: dict[Pin, PackReport] = {}
        self._chosen: set[Pin] = set()
        self._frames = CheckedFrames()
        self._now = self.began = clock()
        self._unknown = 0

    # --- the chain ---

    def check_chain(self) -> None:
        """Check registries and manifests."""
        repository, now = self._repository, self._now
        check_clock(now, Chain(repository).high.clock)
        check_registry_time(repository.registry, now)
        if self._identity is not None and not _opens_head(repository):
            if self._request.level is Level.DATA:
                raise not_recipient("the newest manifest")
            self._identity = None
        if self._identity is None:
            self._chain = check_chain_locally(
                repository, self._store, now=now, findings=self._findings
            )
        else:
            self._chain = check_chain(
                repository,
                self._store,
                identity=self._identity,
                now=now,
                findings=self._findings,
            )

    def _reader(
        self, manifest: VerifiedManifest, permit: Callable[[], None] | None = None
    ) -> ChunkReader:
        return ChunkReader(
            self._repository,
            manifest,
            shelf=self._shelf,
            permit=permit,
            newest=self._chain.newest,
            thorough=self._frames,
        )

    def _permit(self) -> None:
        """Ask the live time again before data are decrypted (ingest 6.1)."""
        now = self._clock()
        check_clock(now, self._now)
        check_registry_time(self._repository.registry, now)
        for one in self._restorable:
            check_restorable(one.manifest, record=self._repository.record, now=now)

    # --- what the restorable manifests list ---

    def read_listings(self) -> None:
        """Read the listings of every manifest that may be restored; note an expired head."""
        if self._chain.expired:
            name = self._chain.names[self._chain.head]
            self._findings.add(name, ProblemKind.EXPIRED, self._repository.root_paths)
        walked: dict[int, Walked] = {}
        for manifest in self._chain.manifests.values():
            try:
                check_restorable(manifest, record=self._repository.record, now=self._now)
            except (TrustError, FreshnessError):
                continue
            if not self._opens_packs(manifest):
                continue
            nested = self._nested(manifest)
            if nested is None:
                continue
            reader = self._reader(manifest)
            before = walked.setdefault(manifest.statement.epoch, Walked())
            needs = Needs(reader, before)
            ListingWalk(reader, nested, needs, known=before.known).walk()
            self._restorable.append(_Restorable(manifest=manifest, nested=nested, needs=needs))

    def _opens_packs(self, manifest: VerifiedManifest) -> bool:
        """Return whether the identity here opens all that a manifest pins; of the head it must.

        An older one that pins packs from before this recipient came is compared by digests.
        """
        identity = self._repository.keys.need_identity()
        try:
            check_recipient(self._repository, manifest.statement.pins, identity)
        except KeyMaterialError:
            if manifest.statement.sequence == self._chain.head:
                raise
            return False
        return True

    def _nested(self, manifest: VerifiedManifest) -> Nested | None:
        try:
            return Chain(self._repository).nested(manifest)
        except IntegrityError:
            name = self._chain.names[manifest.statement.sequence]
            self._findings.add(name, ProblemKind.CORRUPT, self._repository.root_paths)
            return None

    # --- packs ---

    def check_packs(self, progress: Progress) -> None:
        """Read every pinned pack once."""
        restorable = self._restorable_pins()
        if self._restorable:
            self._permit()
        total, done = sum(pin.size for pin in self._chain.pins), 0

        def depth_of(pin: Pin) -> Depth:
            if pin not in self._chosen:
                return Depth.WHOLE
            return Depth.CHUNKS if pin in restorable else Depth.FRAMES

        inspector = PackInspector(
            self._store, self._keys_of, identity=self._identity, spared=self._frames
        )
        for report in inspector.inspect_all(self._chain.pins, depth_of=depth_of):
            self._reports[report.pin] = report
            done += report.pin.size
            progress.update(len(self._reports), done, total)

    def _restorable_pins(self) -> set[Pin]:
        return {pin for one in self._restorable for pin in one.manifest.statement.pins}

    def _keys_of(self, pin: Pin) -> EpochKeys:
        opener = self._shelf.opener
        return opener.keys(opener.epoch_of(pin.registry_version))

    def _choose(self) -> set[Pin]:
        """Return the packs whose content is checked this time: the longest unchecked first."""
        if self._request.level is not Level.DATA:
            return set()
        if self._request.percent is None:
            return set(self._chain.pins)
        sizes = {pin.name: pin.size for pin in self._chain.pins}
        wanted = sum(sizes.values()) * self._request.percent / 100
        names = CheckedPacks(self._repository.places.state).choose(sizes, wanted)
        return {pin for pin in self._chain.pins if pin.name in names}

    def note_checked(self) -> None:
        """Remember which packs had their content checked; good ones only."""
        good = [pin.name for pin in self._chosen if self._reports[pin].kind is None]
        if good:
            pinned = {pin.name for pin in self._chain.pins}
            CheckedPacks(self._repository.places.state).note(good, self._now, pinned=pinned)

    def pack_findings(self) -> dict[ObjectName, PackFinding]:
        """Return what each pack was found to be, and how closely it was looked into."""
        decrypted = self._chosen & self._restorable_pins()
        return {
            pin.name: PackFinding(
                is_bad=report.kind is not None,
                level=(Level.DATA if pin in decrypted else Level.PACKS).value,
            )
            for pin, report in self._reports.items()
        }

    # --- files ---

    def check_files(self) -> None:
        """Put together every file of more than one chunk, and compare its SHA-256.

        A file of one chunk needs no more: the chunk's id follows from the file's SHA-256. Every
        chunk of a frame that is read on the way is checked, so that none is decrypted twice.
        Of some of the bytes only, those files are read that begin in them.
        """
        self._chosen = self._choose()
        begins = None if self._request.percent is None else self._chosen_chunks()
        done: set[_Content] = set()
        whole: set[Branch] = set()
        for one in self._restorable:
            reader = self._reader(one.manifest, self._permit)
            for branch in one.needs.iter_branches():
                if branch not in whole:
                    failed = _check_large(reader, branch, begins, done)
                    one.failed += failed
                    whole |= set() if failed else {branch}
            self._check_ledger(one, reader)

    def _chosen_chunks(self) -> IdSet:
        """Return what the indexes of the chosen packs name, as far as they can be read."""
        parts: list[array[int]] = []
        for pin in self._chosen:
            try:
                parts.append(array("Q", map(short_id, self._shelf.open(pin).index.ids)))
            except (IntegrityError, TrustError):
                continue  # told of when the pack itself is looked into
        begins = IdSet()
        begins.add(parts)
        return begins

    def _check_ledger(self, one: _Restorable, reader: ChunkReader) -> None:
        ledger = one.nested.ledger
        try:
            if not isinstance(ledger, bytes):
                ledger = read_content(reader, ledger, kind=ChunkKind.LEDGER, most=CHUNK_MAX_BYTES)
            parse_ledger(ledger)
        except IntegrityError:
            name = self._chain.names[one.manifest.statement.sequence]
            self._findings.add(name, ProblemKind.CORRUPT, ())

    # --- losses ---

    def find_losses(self) -> None:
        """Note damaged packs, and what cannot be restored because of them."""
        kinds = damaged_packs(self._chain, self._reports)
        repaired = self._chain.repaired
        live = None if self._identity is not None else self._repository.state.live_pins()
        harmful = {name: kind for name, kind in kinds.items() if name not in repaired}
        for name, kind in harmful.items():
            self._findings.add(name, kind, None if self._identity is None else ())
        note_pinning(self._chain.manifests, live, kinds=harmful, findings=self._findings)
        restorable = {one.manifest.statement.sequence: one for one in self._restorable}
        where: Whereabouts | None = None
        for number, manifest in self._chain.manifests.items():
            one = restorable.get(number)
            is_harmed = any(pin.name in kinds for pin in manifest.statement.pins)
            if one is None and not is_harmed:
                continue
            visible = visible_packs(manifest, self._chain.newest, self._reports)
            where = Whereabouts(visible, where)
            if is_harmed or one is None or one.failed or where.lacks(one.needs):
                self._find_losses_of(manifest, one, where=where, kinds=kinds)

    def _find_losses_of(
        self,
        manifest: VerifiedManifest,
        one: _Restorable | None,
        *,
        where: Whereabouts,
        kinds: dict[ObjectName, ProblemKind],
    ) -> None:
        nested = self._nested(manifest) if one is None else one.nested
        if nested is None:
            return
        reader, name = self._reader(manifest), self._chain.names[manifest.statement.sequence]
        losses = Losses(reader, name, where=where, kinds=kinds, findings=self._findings)
        ListingWalk(reader, nested, losses).walk()
        for path, _ in () if one is None else one.failed:
            if path not in losses.paths:
                losses.refused(path)

    # --- the rest ---

    def look_at_the_rest(self) -> None:
        """Count what nothing explains; without an identity, check packs that no note names."""
        keys = epoch_keys(self._repository) if self._identity is None else {}
        for name in self._store.iter_names():
            if name in self._chain.known:
                continue
            self._unknown += 1
            if keys:
                self._check_unnamed(name, keys)

    def _check_unnamed(self, name: ObjectName, keys: dict[int, EpochKeys]) -> None:
        try:
            open_unpinned(read_object(self._store, name), name, keys)
        except IntegrityError:
            self._findings.add(name, ProblemKind.CORRUPT)

    def result(self) -> Verified:
        """Return what was found."""
        problems = self._findings.problems(self._chain.names)
        reports = self._reports.values()
        is_checked = self._request.level is not Level.CHAIN and self._chain.is_full
        return Verified(
            ok=not problems and self._chain.is_full,
            level=self._request.level,
            head=self._chain.head,
            manifests=self._chain.count,
            packs=len(self._reports),
            frames=sum(report.frames for report in reports),
            bytes=sum(report.bytes for report in reports),
            problems=problems,
            expired=self._chain.expired,
            chain=_chain_word(self._identity, self._chain),
            unknown=self._unknown,
            newest_whole=is_whole(self._chain.head, problems, was_checked=is_checked),
        )


def _opens_head(repository: Repository) -> bool:
    """Return whether the identity here is one that the head is sealed to; damage is told later."""
    chain = Chain(repository)
    try:
        head = chain.head()
        return not head or chain.opens(head)
    except (IntegrityError, TrustError):
        return True


def _chain_word(identity: Secret | None, chain: CheckedChain) -> str:
    if identity is None:
        return "local"
    return "part" if chain.sealed else "full"


def _check_large(
    reader: ChunkReader, branch: Branch, begins: IdSet | None, done: set[_Content]
) -> list[tuple[bytes, IntegrityError]]:
    """Put together the files of more than one chunk in one directory; return what fails.

    Args:
        reader: gives the data.
        branch: of the directory.
        begins: where not all are wanted, those that begin in these chunks are.
        done: what was good before; what is good now is added.
    """
    failed: list[tuple[bytes, IntegrityError]] = []
    for path, entry in branch.large:
        content = (entry.sha256, entry.content)
        try:
            if content in done or not _begins_in(begins, reader, entry):
                continue
            for _ in file_pieces(reader, entry, path):
                pass  # the last step compares
            done.add(content)
        except IntegrityError as error:
            failed.append((path, error))
    return failed


def _begins_in(chunks: IdSet | None, reader: ChunkReader, entry: Entry) -> bool:
    """Return whether the first chunk of a file is one of ``chunks``; None are all."""
    if chunks is None:
        return True
    first = next(needed_by(reader, entry), None)
    return first is None or short_id(first) in chunks
