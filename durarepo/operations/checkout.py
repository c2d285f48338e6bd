"""Checkout: bring a verified, unexpired manifest back into a new folder, which is held.

The order is that of ingest: registry, chain, expiry, listing, content, components, the live time
once more, and only then does the folder appear, whole and under its name. The repository's lock
is not taken; what a killed checkout left is removed by the next one.
Source: spec/ingest.md, spec/cli.md 3 and 4; AICEP 10.5.6. Start at `checkout`.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from durarepo.core.clock import Clock
from durarepo.core.entries import Entry
from durarepo.core.errors import IntegrityError, RunError, StoreError
from durarepo.core.progress import Progress, SilentProgress
from durarepo.format.manifest import LedgerLine, Nested, OmissionClass
from durarepo.ingest import VerifiedManifest
from durarepo.local.lock import RunLock
from durarepo.local.places import SCRATCH
from durarepo.local.work import WorkFolder
from durarepo.policy.freshness import utc_text
from durarepo.policy.pathrules import is_secret
from durarepo.policy.rules_table import find_rule
from durarepo.repository.chain import Chain
from durarepo.repository.ledgers import read_ledger
from durarepo.repository.livetime import LiveTime
from durarepo.repository.reader import ChunkReader, Permit
from durarepo.repository.repository import Repository
from durarepo.repository.restorer import Restored, iter_chosen, restore
from durarepo.repository.scratch import ScratchBuilder
from durarepo.repository.scratch_place import open_place
from durarepo.repository.selection import LATEST, Selection, find_sequence, select
from durarepo.repository.trees import Event, Visit
from durarepo.store.atomic import make_folder, shown

Listed = Callable[[bytes, Entry], None]
"""Is told of each path that a dry run would restore."""

HELD, PROVENANCE = b"held.json", b"provenance.json"
MARKER_FORMAT = 1
_AT_ONCE_MAX = 16
_WAY_OUT = (
    "other files come back with --path, older manifests with --at; "
    "durarepo verify --packs lists what is damaged"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckoutRequest:
    """What is to be brought back, and where to.

    ``destination`` None is ``STATE/scratch/STREAM-SEQ``; ``privileges`` keeps setuid, setgid,
    sticky and capabilities. ``folder`` is where who asks stands, for relative ``paths``.
    """

    at: str = LATEST
    destination: bytes | None = None
    paths: tuple[bytes, ...] = ()
    components: tuple[bytes, ...] = ()
    folder: bytes | None = None
    privileges: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedOut:
    """What came back; after a dry run what would have, and nothing is held.

    ``reprovision`` are the secrets that no snapshot holds, by the paths that were chosen: what
    has to be set up anew before anything runs on what came back.
    """

    sequence: int
    destination: bytes
    files: int
    bytes: int
    held: bool
    epoch: int
    requires_restart: bool
    not_restored: Mapping[str, int] = field(default_factory=dict)
    reprovision: tuple[LedgerLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A manifest that may be restored now, and whom to ask again before each effect."""

    manifest: VerifiedManifest
    newest: VerifiedManifest
    permit: Permit
    now: int


def checkout(
    repository: Repository,
    request: CheckoutRequest,
    *,
    clock: Clock,
    progress: Progress | None = None,
    listed: Listed | None = None,
) -> CheckedOut:
    """Bring back what ``request`` names into a new folder.

    Args:
        repository: open; its lock is not taken.
        request: what and where to.
        clock: read before anything, before the first frame, and before the folder appears.
        progress: told of every file.
        listed: told of every path of a dry run.

    Returns:
        What came back and where it stands.

    Raises:
        SelectionError: nothing of that name; nothing was made.
        FreshnessError: expired (the hint names the archival command), revoked, clock.
        IntegrityError, TrustError: the first check that fails; nothing was published.
        PolicyRefusedError: the destination is refused.
        KeyMaterialError: ``identity-absent``.
        StoreError, ConfigurationError: it cannot be read or written.
    """
    identity = repository.keys.need_identity()
    live = LiveTime(repository, clock)
    sequence = find_sequence(live.chain, request.at, identity=identity)
    manifest = live.admit(sequence)
    newest = live.chain.newest_beside(sequence, now=live.now)
    admitted = Admitted(manifest=manifest, newest=newest, permit=live.check, now=live.now)
    return bring_back(
        repository, request, admitted, progress=progress or SilentProgress(), listed=listed
    )


def bring_back(
    repository: Repository,
    request: CheckoutRequest,
    admitted: Admitted,
    *,
    progress: Progress,
    listed: Listed | None = None,
) -> CheckedOut:
    """Bring back an admitted manifest; see `checkout`, whose second half this is."""
    try:
        return _bring_back(repository, request, admitted, progress=progress, listed=listed)
    except IntegrityError as error:
        raise _with_way_out(error) from error


def _bring_back(
    repository: Repository,
    request: CheckoutRequest,
    admitted: Admitted,
    *,
    progress: Progress,
    listed: Listed | None,
) -> CheckedOut:
    manifest = admitted.manifest
    nested = Chain(repository).nested(manifest)
    reader = ChunkReader(repository, manifest, permit=admitted.permit, newest=admitted.newest)
    selection = select(
        reader,
        nested,
        paths=request.paths,
        components=request.components,
        folder=request.folder,
    )
    destination = request.destination or _default_destination(repository, manifest)
    roots = [root.path for root in nested.roots]
    protected = [*repository.protected, *roots]
    if request.dry_run:
        _check_place(request.destination, destination, protected=protected)
        visits = iter_chosen(reader, nested, selection)
        counted = _dry_run(visits, selection, listed)
        secrets = _secrets(reader, nested, selection)
        done = _result(manifest, os.path.abspath(destination), counted, held=False)
        return replace(done, reprovision=secrets)
    if request.destination is None:
        make_folder(os.path.dirname(destination))
    with _saying_what_stands() as builders, ExitStack() as stack:
        builder = stack.enter_context(
            ScratchBuilder.create(
                destination,
                protected=protected,
                keeper=_take_folder(repository, stack, admitted.now),
                privileges=request.privileges,
            )
        )
        restored = restore(reader, nested, builder, selection=selection, progress=progress)
        secrets = _secrets(reader, nested, selection)
        _mark(repository, builder, admitted, selection)
        builder.finish()
        admitted.permit()  # ingest 7.9
        builders.append(builder)
        builder.publish()
        done = _result(
            manifest,
            builder.destination,
            restored,
            held=True,
            not_restored=_with_secrets(builder.not_restored, secrets),
        )
        return replace(done, reprovision=secrets)


@contextmanager
def _saying_what_stands() -> Iterator[list[ScratchBuilder]]:
    """Yield a list for the builder; what fails once its folder has appeared says that it stands.

    Raises:
        StoreError: such a failure, as when the folder's name is made durable.
    """
    builders: list[ScratchBuilder] = []
    try:
        yield builders
    except StoreError as error:
        for one in builders:
            if one.has_appeared:
                raise StoreError(
                    error.code.partition(".")[2],
                    f"{error.message}; but all is restored and checked, and stands held in"
                    f" {shown(one.destination)}",
                    hint="look at it and use it; where the disk cannot be trusted, restore again",
                ) from error
        raise


def _secrets(reader: ChunkReader, nested: Nested, selection: Selection) -> tuple[LedgerLine, ...]:
    """Return the lines of the ledger that tell of secrets below what was chosen."""
    return tuple(
        line
        for line in read_ledger(reader, nested)
        if line.kind in (OmissionClass.EXCLUSION, OmissionClass.REDACTION)
        and (rule := find_rule(line.rule)) is not None
        and is_secret(rule)
        and (selection.is_whole if line.is_keyed else selection.takes(line.path))
    )


def _with_secrets(
    not_restored: Mapping[str, int], secrets: tuple[LedgerLine, ...]
) -> dict[str, int]:
    counts = dict(not_restored)
    for name, kind in (
        ("excluded", OmissionClass.EXCLUSION),
        ("redacted", OmissionClass.REDACTION),
    ):
        count = len({line.path for line in secrets if line.kind is kind})
        if count:
            counts[name] = count
    return counts


def _check_place(given: bytes | None, destination: bytes, *, protected: list[bytes]) -> None:
    """Refuse what the real run would refuse about the destination; make nothing.

    The usual place may lack its folder, which the real run makes.
    """
    if given is None and not os.path.isdir(os.path.dirname(destination)):
        return
    os.close(open_place(destination, protected=protected).parent_fd)


def _with_way_out(error: IntegrityError) -> IntegrityError:
    """Return the same refusal with what can still be had."""
    hint = f"{error.hint}; {_WAY_OUT}" if error.hint else _WAY_OUT
    return IntegrityError(error.code.partition(".")[2], error.message, hint=hint)


def _default_destination(repository: Repository, manifest: VerifiedManifest) -> bytes:
    name = f"{repository.stream}-{manifest.statement.sequence}".encode()
    return os.path.join(os.path.dirname(repository.places.state), SCRATCH, name)


def _dry_run(visits: Iterator[Visit], selection: Selection, listed: Listed | None) -> Restored:
    files = size = 0
    links: set[int] = set()
    for visit in visits:
        if visit.event is Event.LEAVE:
            continue
        entry = visit.entry
        if visit.event is not Event.ENTER:
            files += 1
            size += 0 if entry.link_group in links else entry.size
        if entry.link_group is not None:
            links.add(entry.link_group)
        if listed is not None and selection.takes(visit.path):
            listed(visit.path, entry)
    return Restored(files=files, bytes=size)


def _result(
    manifest: VerifiedManifest,
    destination: bytes,
    restored: Restored,
    *,
    held: bool,
    not_restored: Mapping[str, int] | None = None,
) -> CheckedOut:
    return CheckedOut(
        sequence=manifest.statement.sequence,
        destination=destination,
        files=restored.files,
        bytes=restored.bytes,
        held=held,
        epoch=manifest.statement.epoch,
        requires_restart=True,
        not_restored=not_restored or {},
    )


def _take_folder(repository: Repository, stack: ExitStack, now: int) -> WorkFolder:
    """Return the first free one of the folders in which checkouts note what they make.

    Each has a lock of its own, so that a checkout waits for no backup and for no other checkout,
    and a killed one is cleaned up by whoever takes its folder next.
    """
    base = os.path.join(repository.places.state, b"restore")
    make_folder(base)
    for number in range(1, _AT_ONCE_MAX + 1):
        place = os.path.join(base, b"%d" % number)
        lock = RunLock(place + b".lock", now=datetime.fromtimestamp(now, UTC))
        try:
            stack.enter_context(lock)
        except RunError:
            continue
        work = stack.enter_context(WorkFolder(place, lock))
        work.clean_after_kill()
        return work
    raise RunError(
        "locked",
        f"{_AT_ONCE_MAX} checkouts of stream '{repository.stream}' are running",
        hint="run the command again when one of them is done",
    )


def _mark(
    repository: Repository, builder: ScratchBuilder, admitted: Admitted, selection: Selection
) -> None:
    """Write what holds the folder, and what says where it is from: a copy, never the source."""
    statement, since = admitted.manifest.statement, utc_text(admitted.now)
    builder.write_marker(
        HELD,
        _encode(
            {
                "format": MARKER_FORMAT,
                "stream": statement.stream,
                "sequence": statement.sequence,
                "epoch": statement.epoch,
                "since": since,
                "requires_restart": True,
            }
        ),
    )
    builder.write_marker(
        PROVENANCE,
        _encode(
            {
                "format": MARKER_FORMAT,
                "role": "restored-copy",
                "stream": statement.stream,
                "compartment": statement.compartment,
                "never_publish": statement.never_publish,
                "epoch": statement.epoch,
                "sequence": statement.sequence,
                "manifest": admitted.manifest.digest.hex(),
                "signer": statement.signer.hex(),
                "issued": utc_text(statement.issued),
                "restored_at": since,
                "from": os.fsdecode(repository.places.repository),
                "whole": selection.is_whole,
            }
        ),
    )


def _encode(fields: Mapping[str, str | int | bool]) -> bytes:
    return json.dumps(fields, ensure_ascii=True, indent=1).encode("ascii") + b"\n"
