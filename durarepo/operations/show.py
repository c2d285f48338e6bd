"""Show: all that one manifest says of itself, of what it needs and of what was left out.

It reads envelopes, and lists and ledgers at most; no data. Manifests of any age are shown.
Source: spec/format.md 7, spec/cli.md 4. Start at `show` and `iter_ledger`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from durarepo.core.names import ObjectName
from durarepo.format.manifest import LedgerLine, Totals
from durarepo.repository.chain import Chain
from durarepo.repository.ledgers import read_ledger
from durarepo.repository.repository import Repository
from durarepo.repository.selection import open_view


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownObject:
    """A stored object that a manifest is, or needs; size in bytes."""

    name: ObjectName
    kind: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownComponent:
    """A component with its integrity hash, in hexadecimal."""

    kind: str
    name: bytes
    integrity: str
    counts: tuple[tuple[str, int], ...]
    facts: tuple[tuple[str, str | int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What `show` tells; times are seconds since 1970, digests hexadecimal."""

    sequence: int
    epoch: int
    manifest: str
    issued: int
    expires: int
    expired: bool
    type: str
    complete: bool
    signer: str
    registry_version: int
    totals: Totals
    shrunk: bool
    state_lost: bool
    holds: tuple[int, ...]
    roots: tuple[bytes, ...]
    components: tuple[ShownComponent, ...]
    host: tuple[tuple[str, str], ...]
    policy: str
    objects: tuple[ShownObject, ...]


def show(repository: Repository, sequence: str, *, now: int) -> Shown:
    """Return what a manifest says of itself.

    Raises:
        SelectionError: ``no-sequence``, ``sequence``.
        KeyMaterialError: ``identity-absent``.
        IntegrityError, TrustError, FreshnessError: the code of the step that fails.
    """
    view = open_view(repository, sequence, now=now)
    statement, nested = view.manifest.statement, view.nested
    return Shown(
        sequence=statement.sequence,
        epoch=statement.epoch,
        manifest=view.manifest.digest.hex(),
        issued=statement.issued,
        expires=statement.expires,
        expired=now >= statement.expires,
        type=statement.type.word,
        complete=statement.complete,
        signer=statement.signer.hex(),
        registry_version=statement.registry_version,
        totals=statement.totals,
        shrunk=statement.shrunk,
        state_lost=statement.state_lost,
        holds=statement.holds,
        roots=tuple(root.path for root in nested.roots),
        components=tuple(
            ShownComponent(
                kind=one.kind,
                name=one.name,
                integrity=one.integrity.hex(),
                counts=one.counts,
                facts=one.facts,
            )
            for one in nested.components
        ),
        host=nested.host,
        policy=nested.policy,
        objects=(
            *_envelope(repository, statement.sequence),
            *(ShownObject(name=pin.name, kind="pack", size=pin.size) for pin in statement.pins),
        ),
    )


def _envelope(repository: Repository, sequence: int) -> Iterator[ShownObject]:
    envelope = Chain(repository).envelope(sequence)
    if envelope is not None:
        yield ShownObject(name=envelope.name, kind="manifest", size=len(envelope.data))


def iter_ledger(repository: Repository, sequence: str, *, now: int) -> Iterator[LedgerLine]:
    """Yield what a manifest says was left out, and by which rule.

    Raises:
        As `show`; IntegrityError: ``nested-form`` where the ledger is none.
    """
    view = open_view(repository, sequence, now=now)
    yield from read_ledger(view.reader, view.nested)
