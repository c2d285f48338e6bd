"""From nothing to a verified, restorable snapshot of one folder, in one call.

It does what a careful person would do by hand: init (once), snapshot, verify all data, restore
into a scratch folder, and compare that with the source byte by byte. It ends well only if every
step did. Source: spec/cli.md 4. Start at `quickstart`.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from durarepo.core.clock import Clock
from durarepo.core.entries import Consistency, Entry, FileType
from durarepo.core.errors import IntegrityError, SourceError
from durarepo.core.progress import Progress
from durarepo.local.configuration import CONFIGURATION_MAX_BYTES, parse_configuration, real_root
from durarepo.local.places import (
    CONFIGURATION,
    Bases,
    Places,
    is_repository,
    list_repositories,
    places_of,
)
from durarepo.operations.checkout import CheckedOut, CheckoutRequest, checkout
from durarepo.operations.init import RESERVED, InitRequest, initialise
from durarepo.operations.snapshot import SnapshotRequest, SnapshotResult, snapshot
from durarepo.operations.verify import Level, VerifyRequest, verify
from durarepo.repository.livetime import LiveTime
from durarepo.repository.reader import ChunkReader
from durarepo.repository.repository import Repository, open_repository
from durarepo.repository.trees import Event, walk
from durarepo.store.atomic import read_small, shown

_WINDOW = 1 << 20
_NOT_OF_AN_ID = re.compile(r"[^a-z0-9]+")
_ID_MAX = 60
_NO_LINK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Quickstarted:
    """What stands now.

    ``compared`` files were equal byte by byte. Of the others ``databases`` were kept as of one
    moment, of ``redacted`` values were taken out, ``moved_on`` had changed since, ``unsure`` are
    among the snapshot's omissions.
    """

    stream: str
    sequence: int
    files: int
    verified: bool
    scratch: bytes
    compared: int
    databases: int
    redacted: int
    moved_on: int
    unsure: int
    made: bool
    snapshot: SnapshotResult


def quickstart(
    folder: bytes,
    *,
    bases: Bases,
    home: bytes | None = None,
    clock: Clock,
    progress: Progress,
) -> Quickstarted:
    """Keep ``folder`` in a stream of its own, and prove that it comes back.

    Args:
        folder: an existing folder.
        bases: where repositories, keys and state lie.
        home: the home folder of the user, of `SnapshotRequest`.
        clock: gives the live time in whole seconds.
        progress: told how far each step has come.

    Raises:
        SourceError: the folder is missing or unreadable.
        IntegrityError: ``comparison``: what came back is not what is there.
        KeyMaterialError, StoreError, TrustError: a step failed; it says what to do.
    """
    if not os.path.isdir(folder):
        raise SourceError(
            "root-missing", f"{shown(folder)} is not a folder", hint="name an existing folder"
        )
    root = real_root(folder)
    places, made = _find_or_make(root, bases, now=clock())
    with open_repository(places) as repository:
        request = SnapshotRequest(home=home)
        taken = snapshot(repository, request, clock=clock, progress=progress)
    if taken.distrust is not None:
        raise taken.distrust
    with open_repository(places) as repository:
        proof = verify(repository, VerifyRequest(level=Level.DATA), clock=clock, progress=progress)
        back = checkout(
            repository,
            CheckoutRequest(at=str(taken.sequence)),
            clock=clock,
            progress=progress,
        )
        counts = _compare(repository, back, clock=clock)
    return Quickstarted(
        stream=places.stream,
        sequence=back.sequence,
        files=back.files,
        verified=proof.ok,
        scratch=back.destination,
        compared=counts[_Found.EQUAL],
        databases=counts[_Found.DATABASE],
        redacted=counts[_Found.REDACTED],
        moved_on=counts[_Found.MOVED_ON],
        unsure=counts[_Found.UNSURE],
        made=made,
        snapshot=taken,
    )


def _find_or_make(root: bytes, bases: Bases, *, now: int) -> tuple[Places, bool]:
    """Return the places of the stream whose only root is ``root``; make it if there is none."""
    for repository in list_repositories(bases):
        place = os.path.join(repository, CONFIGURATION)
        config = parse_configuration(read_small(place, CONFIGURATION_MAX_BYTES) or b"", place=place)
        if [one.path for one in config.roots] == [root]:
            return places_of(config.stream, bases=bases, repository=repository), False
    places = next(
        places
        for places in _candidates(root, bases)
        if not (is_repository(places.repository) or os.path.lexists(places.keys))
    )
    initialise(InitRequest(stream=places.stream, roots=(root,), places=places), now=now)
    return places, True


def _candidates(root: bytes, bases: Bases) -> Iterator[Places]:
    """Yield the places of free names: the folder's own, then with -2, -3 and so on."""
    name = os.fsdecode(os.path.basename(root)).lower()
    plain = _NOT_OF_AN_ID.sub("-", name).strip("-")[:_ID_MAX].strip("-") or "root"
    number = 1
    while True:
        stream = plain if number == 1 else f"{plain[: _ID_MAX - 4]}-{number}"
        if stream != RESERVED:
            yield places_of(stream, bases=bases)
        number += 1


# --- comparison ----------------------------------------------------------------------------


class _Found(Enum):
    """How a restored file and the source stand to each other."""

    EQUAL = "equal"
    REDACTED = "redacted"
    DATABASE = "database"
    MOVED_ON = "moved-on"
    UNSURE = "unsure"


def _compare(repository: Repository, back: CheckedOut, *, clock: Clock) -> Counter[_Found]:
    """Return how many files were found how.

    Raises:
        IntegrityError: ``comparison``.
    """
    live = LiveTime(repository, clock)
    manifest = live.admit(back.sequence)
    nested = live.chain.nested(manifest)
    reader = ChunkReader(repository, manifest, permit=live.check)
    counts: Counter[_Found] = Counter()
    for root in nested.roots:
        for visit in walk(reader, root.path, root.entry._replace(name=b"")):
            if visit.event is not Event.ENTRY or visit.entry.type is not FileType.FILE:
                continue
            restored = back.destination + visit.path
            counts[_compare_file(visit.path, restored, visit.entry)] += 1
    return counts


def _compare_file(path: bytes, restored: bytes, entry: Entry) -> _Found:
    if _is_equal(path, restored, entry):
        return _Found.EQUAL
    if entry.redactions:
        return _Found.REDACTED
    if entry.consistency is Consistency.SQLITE_BACKUP:
        return _Found.DATABASE
    if entry.consistency in {Consistency.DAMAGED_DATABASE, Consistency.CHANGED}:
        return _Found.UNSURE
    if entry.consistency is not Consistency.QUIET or _has_changed(path, entry):
        return _Found.MOVED_ON
    raise IntegrityError(
        "comparison",
        f"restored file {shown(path)} differs from the source",
        hint="keep the repository as it is and report this: it must not happen",
    )


def _has_changed(path: bytes, entry: Entry) -> bool:
    """Return whether the source is not any more what the snapshot read."""
    try:
        found = os.lstat(path)
    except OSError:
        return True
    return (found.st_size, found.st_mtime_ns) != (entry.size, entry.mtime_ns)


def _is_equal(one: bytes, other: bytes, entry: Entry) -> bool:
    try:
        first, second = os.open(one, _NO_LINK), os.open(other, _NO_LINK)
    except OSError:
        return False
    with open(first, "rb", buffering=0) as left, open(second, "rb", buffering=0) as right:
        if os.fstat(first).st_size != entry.size or os.fstat(second).st_size != entry.size:
            return False
        while piece := left.read(_WINDOW):
            if piece != right.read(len(piece)):
                return False
        return not right.read(1)
