"""The chain of manifests where no identity is: marks, and what the state knows.

A put-only computer cannot open an envelope. It can compute every slot and every mark, and it
keeps name and digest of each manifest that was made here. Nothing is written.
Source: spec/format.md 7.1 and 9. Start at `check_chain_locally`.
"""

from collections.abc import Iterator, Mapping

from durarepo.core.errors import IntegrityError
from durarepo.core.names import Digest, ObjectName
from durarepo.crypto import primitives
from durarepo.format.manifest import Pin
from durarepo.local.statefiles import PinnedManifest, RunRecord
from durarepo.repository.chain import high_water_of
from durarepo.repository.problems import Findings, ProblemKind, kind_of
from durarepo.repository.replaced import replaced_here
from durarepo.repository.repository import Repository
from durarepo.repository.slots import CheckedChain, Slots, is_kept, live_since
from durarepo.store.port import ObjectStore


def check_chain_locally(
    repository: Repository, store: ObjectStore, *, now: int, findings: Findings
) -> CheckedChain:
    """Return the chain as far as marks, and what the state knows, can tell.

    Raises:
        StoreError: the store or the state cannot be read.
    """
    chain = CheckedChain()
    slots = Slots(repository, store, chain, findings)
    slots.check_registries()
    live = repository.state.live_pins()
    noted = () if live is None else (live.head, live.complete)
    pinned = [
        one for one in noted if one and not repository.record.is_cut_off(one.epoch, one.sequence)
    ]
    runs: dict[int, RunRecord] = {run.sequence: run for run in repository.iter_counted_runs()}
    seen = _seen_locally(repository, pinned, runs)
    chain.head = slots.find_head(max(seen, default=0))
    if max(seen, default=0) > chain.head:
        findings.add(slots.slot(max(seen)), ProblemKind.ROLLBACK, manifest=max(seen))
    for number in replaced_here(repository):
        findings.add(slots.slot(number), ProblemKind.FORK)
    since = live_since(repository, runs)
    for number in range(1, chain.head + 1):
        if not slots.is_empty(number):
            _check_locally(slots, number, seen.get(number))
        elif is_kept(slots, number, since=since):
            findings.add(slots.slot(number), ProblemKind.GAP, manifest=number)
    for one in pinned:
        chain.pin(tuple(_pins(one)), is_live=True)
    chain.is_full = bool(pinned) or chain.head == 0
    if chain.head in runs:
        chain.expired = now >= runs[chain.head].expires
    return chain


def _seen_locally(
    repository: Repository, pinned: list[PinnedManifest], runs: Mapping[int, RunRecord]
) -> dict[int, Digest]:
    seen: dict[int, Digest] = {number: run.digest for number, run in runs.items()}
    seen |= {one.sequence: one.digest for one in pinned}
    high = high_water_of(repository)
    if high.sequence:
        seen[high.sequence] = high.digest
    return seen


def _check_locally(slots: Slots, number: int, expected: Digest | None) -> None:
    refused: list[tuple[ObjectName, ProblemKind]] = []
    marked: dict[ObjectName, Digest] = {}
    for name, data in slots.candidates(number):
        if isinstance(data, IntegrityError):
            refused.append((name, kind_of(data)))
            continue
        marked[name] = Digest(primitives.sha256(data))
    if not marked:
        slots.findings.add(*refused[0], manifest=number)
        return
    record = slots.repository.record
    is_closed = number < record.current.first_sequence
    first = next(iter(marked))
    seen = [name for name, digest in marked.items() if digest == expected]
    slots.chain.names[number] = seen[0] if is_closed and seen else first
    slots.chain.count += 1
    if expected not in (None, marked[slots.chain.names[number]]):
        slots.findings.add(first, ProblemKind.FORK)


def _pins(manifest: PinnedManifest) -> Iterator[Pin]:
    for one in manifest.pins:
        yield Pin(
            name=one.pack,
            size=one.size_bytes,
            index_digest=one.index_digest,
            registry_version=one.registry_version,
        )
