"""The chain of manifests, looked at as a whole: every number from 1, every problem noted.

A `Chain` stops at the first manifest that is not good, since nothing may be restored past it;
here the numbers behind it are still looked at. Every manifest goes through full ingest. Nothing
is written. Source: spec/format.md 7.2 and 9, spec/ingest.md 3 and 4. Start at `check_chain`.
"""

from collections.abc import Iterator, Mapping

from durarepo.core.errors import FreshnessError, IntegrityError, TrustError
from durarepo.core.names import ObjectName
from durarepo.core.secret import Secret
from durarepo.ingest import (
    GENESIS,
    Anchor,
    Expected,
    HighWater,
    SignedManifest,
    VerifiedManifest,
    admit,
    last_milestone,
    open_manifest,
)
from durarepo.local.statefiles import RunRecord
from durarepo.repository.chain import Chain
from durarepo.repository.problems import Findings, ProblemKind, kind_of
from durarepo.repository.replaced import replaced_here
from durarepo.repository.repository import Repository
from durarepo.repository.sealedto import is_sealed_to_others
from durarepo.repository.slots import CheckedChain, Slots, is_kept, live_since
from durarepo.store.port import ObjectStore


def check_chain(
    repository: Repository, store: ObjectStore, *, identity: Secret, now: int, findings: Findings
) -> CheckedChain:
    """Return the chain after full ingest of every manifest from number 1.

    Raises:
        FreshnessError: ``ahead``, ``clock``: the live time cannot be right.
        StoreError: the store or the state cannot be read.
    """
    chain = CheckedChain()
    slots = Slots(repository, store, chain, findings)
    slots.check_registries()
    marks = Chain(repository).high
    runs: dict[int, RunRecord] = {run.sequence: run for run in repository.iter_counted_runs()}
    seen = max(marks.sequence, *runs, 0)
    chain.head = slots.find_head(seen)
    signed = _signed(slots, identity)
    _check_seen(slots, signed, marks, runs)
    chain.manifests = _admitted(slots, signed, now=now, clock=marks.clock)
    chain.count = len(chain.manifests)
    statements = {number: one.statement for number, one in chain.manifests.items()}
    since = live_since(repository, statements)
    holds = statements[max(statements)].holds if statements else ()
    floor = repository.record.floor
    chain.live = {n for n in statements if n >= floor and (n >= since or n in holds)}
    for number in range(1, chain.head):
        if slots.is_empty(number) and is_kept(slots, number, since=since, holds=holds):
            gap = slots.slot(number)
            findings.add(gap, ProblemKind.GAP, repository.root_paths, manifest=number)
    for number, manifest in chain.manifests.items():
        chain.pin(manifest.statement.pins, is_live=number in chain.live)
    if chain.head in chain.manifests:
        chain.expired = now >= chain.manifests[chain.head].statement.expires
    return chain


def _signed(slots: Slots, identity: Secret) -> dict[int, SignedManifest]:
    """Return every manifest that passes ingest 4.1 to 4.19; note those that do not.

    What has a good mark and is sealed to others than this identity is no problem.
    """
    passed: dict[int, dict[ObjectName, SignedManifest]] = {}
    repository = slots.repository
    for number in range(1, slots.chain.head + 1):
        epoch = repository.record.epoch_of(number).number
        expected = Expected(
            registry=repository.registry, stream=repository.stream, epoch=epoch, sequence=number
        )
        refused: list[tuple[ObjectName, IntegrityError | TrustError]] = []
        for name, data in slots.candidates(number):
            try:
                if isinstance(data, IntegrityError):
                    raise data
                one = open_manifest(data, identity.reveal(), expected=expected, naming_key=None)
            except (IntegrityError, TrustError) as error:
                is_stanza = error.code == "integrity.stanza"
                if is_stanza and is_sealed_to_others(repository, number, identity):
                    slots.chain.sealed.add(number)
                    continue
                refused.append((name, error))
                continue
            passed.setdefault(number, {})[name] = one
        if number not in passed and refused:
            first, why = refused[0]
            roots = repository.root_paths
            slots.findings.add(first, kind_of(why), roots, manifest=number)
    return _chosen(slots, passed)


def _chosen(
    slots: Slots, passed: Mapping[int, Mapping[ObjectName, SignedManifest]]
) -> dict[int, SignedManifest]:
    """Return one manifest a number: the one that is reached back to, else the lowest attempt.

    In the epoch in force a second one is a fork; before it the registry has decided (4.23).
    """
    record, found = slots.repository.record, dict[int, SignedManifest]()
    ends = {one.first_sequence - 1: one.previous for one in record.epochs}
    for number in sorted(passed, reverse=True):
        above = found.get(number + 1)
        wanted = ends.get(number, None if above is None else above.statement.previous)
        is_closed = number < record.current.first_sequence
        name = next(iter(passed[number]))
        for other, one in passed[number].items():
            if is_closed and one.digest == wanted:
                name = other
        found[number], slots.chain.names[number] = passed[number][name], name
        for other, one in passed[number].items():
            if one.digest != found[number].digest and not (
                is_closed and found[number].digest == wanted
            ):
                roots = slots.repository.root_paths
                slots.findings.add(other, ProblemKind.FORK, roots, manifest=number)
    return dict(sorted(found.items()))


def _check_seen(
    slots: Slots,
    signed: Mapping[int, SignedManifest],
    marks: HighWater,
    runs: Mapping[int, RunRecord],
) -> None:
    """Compare with what was seen before (ingest 4.22 and 4.23)."""
    roots = slots.repository.root_paths
    seen = {number: run.digest for number, run in runs.items()}
    if marks.sequence:
        seen[marks.sequence] = marks.digest
    if max(seen, default=0) > slots.chain.head:
        newest = max(seen)
        slots.findings.add(slots.slot(newest), ProblemKind.ROLLBACK, roots, manifest=newest)
    for number, one in signed.items():
        if seen.get(number, one.digest) != one.digest:
            slots.findings.add(slots.chain.names[number], ProblemKind.FORK, roots)
    for number in replaced_here(slots.repository):
        slots.findings.add(slots.slot(number), ProblemKind.FORK, roots)


class _Watched(Mapping[int, SignedManifest]):
    """Manifests by number that remember which one was asked for last."""

    def __init__(self, manifests: Mapping[int, SignedManifest]) -> None:
        self._manifests = manifests
        self.last = min(manifests)

    def __getitem__(self, number: int) -> SignedManifest:
        return self._manifests[number]

    def __contains__(self, number: object) -> bool:
        if isinstance(number, int):
            self.last = number
        return number in self._manifests

    def __iter__(self) -> Iterator[int]:
        return iter(self._manifests)

    def __len__(self) -> int:
        return len(self._manifests)


def _admitted(
    slots: Slots, signed: Mapping[int, SignedManifest], *, now: int, clock: int
) -> dict[int, VerifiedManifest]:
    """Return the manifests that hang together; note those that do not."""
    admitted: dict[int, VerifiedManifest] = {}
    stretches: list[list[int]] = []
    for number in sorted(signed):
        if stretches and stretches[-1][-1] == number - 1:
            stretches[-1].append(number)
        else:
            stretches.append([number])
    while stretches:
        stretch = stretches.pop()
        watched = _Watched({number: signed[number] for number in stretch})
        try:
            admitted |= admit(
                watched,
                record=slots.repository.record,
                anchor=_anchor(signed, stretch[0]),
                high=HighWater(clock=clock),
                now=now,
            )
        except (IntegrityError, TrustError) as error:
            if isinstance(error, FreshnessError) and error.code != "fresh.revoked":
                raise
            roots = slots.repository.root_paths
            slots.findings.add(slots.chain.names[watched.last], kind_of(error), roots)
            at = stretch.index(watched.last)
            stretches += [part for part in (stretch[:at], stretch[at + 1 :]) if part]
    _check_milestones(slots, signed, admitted)
    return dict(sorted(admitted.items()))


def _anchor(signed: Mapping[int, SignedManifest], first: int) -> Anchor:
    """Return what a stretch hangs on; behind a gap nothing but its own word for it is left."""
    if first == 1:
        return GENESIS
    before = signed.get(first - 1)
    stated = signed[first].statement.previous
    return Anchor(sequence=first - 1, digest=stated if before is None else before.digest)


def _check_milestones(
    slots: Slots, signed: Mapping[int, SignedManifest], admitted: dict[int, VerifiedManifest]
) -> None:
    """Compare the milestones across gaps, where `admit` could not (ingest 4.21)."""
    for number in list(admitted):
        milestone = signed.get(last_milestone(number, slots.repository.record))
        stated = admitted[number].statement.milestone
        if milestone is not None and milestone.digest != stated:
            roots = slots.repository.root_paths
            slots.findings.add(slots.chain.names[number], ProblemKind.FORK, roots)
            del admitted[number]
