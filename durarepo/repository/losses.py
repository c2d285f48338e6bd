"""What cannot be restored any more, and which damaged pack is to blame for it.

A chunk is lost if no pack that the manifest pins, or that a repair names, gives it. Where the
index of a damaged pack can be read, its chunks are known; where it cannot, everything that no
other pack names is laid to it. Source: spec/format.md 7.2 (repairs), spec/ingest.md 6 and 7.
Start at `Losses`.
"""

from collections.abc import Callable, Mapping

from durarepo.core.entries import Entry
from durarepo.core.errors import IntegrityError
from durarepo.core.names import ChunkId, ObjectName
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import Pin
from durarepo.format.tree import Node, parse_tree
from durarepo.ingest import VerifiedManifest
from durarepo.local.statefiles import LivePins
from durarepo.repository.inspection import IdSet, PackReport, short_id
from durarepo.repository.listingwalk import Branch, Needs, needed_by
from durarepo.repository.problems import Findings, ProblemKind
from durarepo.repository.reader import ChunkReader
from durarepo.repository.slots import CheckedChain

Where = Callable[[ChunkId], tuple[ObjectName, ...] | None]
"""Says which damaged packs a chunk is lost with; None for one that can be read."""


class Losses:
    """Listens for what cannot be restored, and notes it under the pack that is to blame.

    What no damaged pack explains is noted under the manifest: it lists what it must not.
    """

    def __init__(
        self,
        reader: ChunkReader,
        manifest: ObjectName,
        *,
        where: Where,
        kinds: Mapping[ObjectName, ProblemKind],
        findings: Findings,
    ) -> None:
        """Prepare.

        Args:
            reader: of the manifest.
            manifest: name of its envelope.
            where: tells what is lost.
            kinds: what is wrong with each damaged pack that counts.
            findings: takes the paths.
        """
        self._reader = reader
        self._manifest = manifest
        self._where = where
        self._kinds = kinds
        self._findings = findings
        self.paths: set[bytes] = set()

    def entry(self, path: bytes, entry: Entry) -> bool:
        """Note what an entry needs and nobody gives."""
        return any(self._is_lost(chunk, path) for chunk in needed_by(self._reader, entry))

    def unreadable(self, path: bytes, tree: ChunkId) -> None:
        """Note a directory under the packs that its listing is lost with."""
        if self._is_lost(tree, path):
            return
        try:
            whole = parse_tree(self._reader.chunk(tree, ChunkKind.TREE))
        except IntegrityError:
            self.refused(path)
            return
        leaves = whole.leaves if isinstance(whole, Node) else ()
        if not [leaf for _, leaf in leaves if self._is_lost(leaf, path)]:
            self.refused(path)

    def refused(self, path: bytes) -> None:
        """Note a path that no restore would take."""
        self.paths.add(path)
        self._findings.add(self._manifest, ProblemKind.CORRUPT, [path])

    def again(self, path: bytes, first: bytes) -> None:
        """Note the whole folder under all that harms what is in it."""
        self.paths.add(path)
        for name, kind in self._findings.harming(first):
            self._findings.add(name, kind, [path])

    def enter(self, _tree: ChunkId) -> None:
        """Do nothing, here and below: paths say all."""

    def read(self, _chunk: ChunkId) -> None:
        """Do nothing: what cannot be read is told of."""

    def leave(self, _tree: ChunkId) -> None:
        """Do nothing."""

    def met(self, _tree: ChunkId) -> None:
        """Do nothing: `again` was told if it has to be known."""

    def _is_lost(self, chunk: ChunkId, path: bytes) -> bool:
        packs = self._where(chunk)
        if packs is None:
            return False
        self.paths.add(path)
        for name in packs:
            if name in self._kinds:  # others were taken by retention
                self._findings.add(name, self._kinds[name], [path])
        if not packs:
            self._findings.add(self._manifest, ProblemKind.MISSING, [path])
        return True


class Whereabouts:
    """Tells where a chunk of one manifest is lost; see `Where`."""

    def __init__(self, reports: list[PackReport], before: "Whereabouts | None" = None) -> None:
        """Prepare.

        Args:
            reports: of the packs that a reader of the manifest looks into.
            before: of another manifest, which is not asked any more: what was found to be there
                need not be looked for again if all its packs are among these.
        """
        self.pins = {report.pin for report in reports}
        self.good, self.whole, known = IdSet(), set[Branch](), set[Pin]()
        self.waiting: list[PackReport] = []
        if before is not None and before.pins <= self.pins:
            self.good, self.whole, known = before.good, before.whole, before.pins
            self.waiting = before.waiting
        self.waiting += [report for report in reports if report.pin not in known]
        self._blind = tuple(report.pin.name for report in reports if not report.is_indexed)
        self._lost: dict[int, list[ObjectName]] = {}
        for report in reports:
            for short in report.lost:
                self._lost.setdefault(short, []).append(report.pin.name)

    def __call__(self, chunk: ChunkId) -> tuple[ObjectName, ...] | None:
        """Return the packs that a chunk is lost with, or None where it can be read."""
        short = short_id(chunk)
        if self._is_good(short):
            return None
        lost = self._lost.get(short)
        return self._blind if lost is None else tuple(lost)

    def lacks(self, needs: Needs) -> bool:
        """Return whether something that is needed is not there, or is not as it has to be."""
        if not needs.is_sound:
            return True
        for branch in needs.iter_branches():
            if branch not in self.whole:
                if not all(map(self._is_good, branch.chunks)):
                    return True
                self.whole.add(branch)
        return False

    def _is_good(self, short: int) -> bool:
        if self.waiting:
            self.good.add(report.good for report in self.waiting)
            self.waiting.clear()
        return short in self.good


def damaged_packs(
    chain: CheckedChain, reports: Mapping[Pin, PackReport]
) -> dict[ObjectName, ProblemKind]:
    """Return what is wrong with each pack; one that only old manifests pin may be gone."""
    found: dict[ObjectName, ProblemKind] = {}
    for pin, report in reports.items():
        is_pruned = report.kind is ProblemKind.MISSING and not chain.pins[pin]
        if report.kind is not None and not is_pruned:
            found[pin.name] = report.kind
    return found


def note_pinning(
    manifests: Mapping[int, VerifiedManifest],
    live: LivePins | None,
    *,
    kinds: Mapping[ObjectName, ProblemKind],
    findings: Findings,
) -> None:
    """Note the manifests that pin a damaged pack.

    Args:
        manifests: the verified ones.
        live: what the state knows, where none can be verified.
        kinds: what is wrong with each damaged pack that counts.
        findings: takes the numbers.
    """
    pinned = [
        (number, pin.name)
        for number, one in manifests.items()
        for pin in one.statement.pins
        if pin.name in kinds
    ]
    for noted in () if live is None else (live.head, live.complete):
        if noted is not None:
            pinned += [(noted.sequence, pin.pack) for pin in noted.pins if pin.pack in kinds]
    for number, name in pinned:
        findings.add(name, kinds[name], manifest=number)


def visible_packs(
    manifest: VerifiedManifest,
    newest: VerifiedManifest | None,
    reports: Mapping[Pin, PackReport],
) -> list[PackReport]:
    """Return the reports of the packs that a reader of ``manifest`` looks into."""
    pins = {pin.name: pin for pin in manifest.statement.pins}
    if newest is not None:
        later = {pin.name: pin for pin in newest.statement.pins}
        for repair in newest.statement.repairs:
            if repair.bad in pins:
                pins |= {name: later[name] for name in repair.replacements if name in later}
    return [reports[pin] for pin in pins.values()]
