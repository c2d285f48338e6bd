"""Log: the manifests that are there, newest first, at the cost of looking whether they are.

Rows were verified when they were noted: by the run that made the manifest, in the catalogue and
in the run ledger of the state, or here. Only what neither knows is opened, and only where an
identity is; what stays unknown is None. No pack and, usually, no envelope is read.
Source: spec/cli.md 4. Start at `log`.
"""

import os
from collections.abc import Container, Iterator
from dataclasses import dataclass

from durarepo.core.errors import StoreError
from durarepo.format.layout import object_name
from durarepo.format.snapshottype import SnapshotType
from durarepo.ingest import SignedManifest
from durarepo.local.catalog import ManifestRow
from durarepo.local.statefiles import RunRecord
from durarepo.repository.chain import Chain, Envelope
from durarepo.repository.replaced import check_not_replaced
from durarepo.repository.repository import Repository


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One manifest; None is unknown. Times are seconds since 1970, ``signer`` is hexadecimal.

    ``verified`` is the level and time that evidence vouches for; ``is_sealed`` is whether it is
    sealed to others than the identity here, so that what it says is not known.
    """

    sequence: int
    epoch: int
    issued: int | None = None
    expires: int | None = None
    type: str | None = None
    files: int | None = None
    dirs: int | None = None
    bytes: int | None = None
    signer: str | None = None
    complete: bool | None = None
    omissions: int | None = None
    verified: tuple[str, int] | None = None
    is_sealed: bool = False


def log(
    repository: Repository, *, now: int, type_: str | None = None, limit: int | None = None
) -> Iterator[LogLine]:
    """Yield the manifests that are there, newest first.

    Args:
        repository: open.
        now: the live time, where a manifest has to be opened.
        type_: only those of this type.
        limit: at most so many.

    Raises:
        ConfigurationError: ``type``.
        TrustError: ``fork``: what was made here is no more in the chain.
        TrustError, IntegrityError, FreshnessError: the head seen before is gone, or a manifest
            that has to be opened does not pass.
        StoreError: the objects or the state cannot be read.
    """
    wanted = None if type_ is None else SnapshotType.of(type_).word
    chain = Chain(repository)
    head = chain.head()
    check_not_replaced(repository)
    known = _known(repository)
    shown, can_open = 0, True
    for sequence in range(head, 0, -1):
        if limit is not None and shown >= limit:
            return
        if not chain.has(sequence):
            continue
        if sequence not in known and can_open:
            found = _opened(repository, chain, sequence, known=known, now=now)
            can_open = bool(found)
            known |= found
        epoch = repository.record.epoch_of(sequence).number
        line = known.get(sequence) or LogLine(sequence=sequence, epoch=epoch)
        if wanted is None or line.type == wanted:
            shown += 1
            yield line


def _known(repository: Repository) -> dict[int, LogLine]:
    runs, record = repository.iter_counted_runs(), repository.record
    lines: dict[int, LogLine] = {run.sequence: _of_run(run) for run in runs}
    if os.path.exists(repository.places.catalog):
        try:
            catalog = repository.catalog
            with catalog.guarded():
                rows = catalog.manifests()
        except StoreError:
            rows = []  # it is a copy, and may be missing or damaged
        counted = (row for row in rows if not record.is_cut_off(row.epoch, row.sequence))
        lines |= {row.sequence: _of_row(row) for row in counted}
    return lines


def _of_run(run: RunRecord) -> LogLine:
    return LogLine(
        sequence=run.sequence,
        epoch=run.epoch,
        issued=run.issued,
        expires=run.expires,
        type=run.type,
        files=run.files,
        dirs=run.dirs,
        bytes=run.bytes,
        signer=run.signer.hex(),
        complete=run.complete,
        omissions=run.omissions,
    )


def _of_row(row: ManifestRow) -> LogLine:
    return LogLine(
        sequence=row.sequence,
        epoch=row.epoch,
        issued=row.issued,
        expires=row.expires,
        type=SnapshotType(row.type).word,
        files=row.files,
        dirs=row.dirs,
        bytes=row.size_bytes,
        signer=row.signer.hex(),
        complete=row.complete,
        omissions=row.omissions,
    )


def _opened(
    repository: Repository, chain: Chain, sequence: int, *, known: Container[int], now: int
) -> dict[int, LogLine]:
    """Return and note what manifests say that nothing here knows, after full ingest."""
    identity = repository.keys.identity
    if identity is None:
        return {}
    first = sequence
    while first > 1 and first - 1 not in known and chain.has(first - 1):
        first -= 1
    if not chain.high.sequence and not all(map(chain.has, range(1, first))):
        return {}  # below what is kept, and nothing vouches for where the chain begins
    numbers = range(first, sequence + 1)
    epochs = {number: repository.record.epoch_of(number).number for number in numbers}
    lines = {one: LogLine(sequence=one, epoch=epochs[one], is_sealed=True) for one in numbers}
    vouched: set[int] = set()
    rows = []
    for number in filter(chain.opens, numbers):
        if number not in vouched:
            vouched.update(chain.vouched(number, now=now))
        rows.append(_row(chain.signed(number, identity), chain.envelope(number)))
    _note(repository, rows)
    return lines | {row.sequence: _of_row(row) for row in rows}


def _row(signed: SignedManifest, envelope: Envelope | None) -> ManifestRow:
    statement, totals = signed.statement, signed.statement.totals
    return ManifestRow(
        sequence=statement.sequence,
        epoch=statement.epoch,
        name=object_name(bytes(32)) if envelope is None else envelope.name,
        digest=signed.digest,
        issued=statement.issued,
        expires=statement.expires,
        type=statement.type,
        files=totals.files,
        dirs=totals.dirs,
        size_bytes=totals.bytes,
        signer=statement.signer,
        complete=statement.complete,
        omissions=totals.omissions,
    )


def _note(repository: Repository, rows: list[ManifestRow]) -> None:
    try:
        with repository.catalog.transaction():
            for row in rows:
                repository.catalog.add_manifest(row)
    except StoreError:
        return  # a copy that cannot be written costs time and nothing else
