"""Looking into a manifest: ls, find and cat.

Listings are read at any age and touch no data; `cat` is a restore of one file, asks the live
time as a checkout does, and gives nothing out before the whole file has been checked.
Source: spec/cli.md 4, spec/ingest.md 6.1 and 7. Start at `ls`, `find` or `cat`.
"""

import fnmatch
import glob
import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from durarepo.core.clock import Clock
from durarepo.core.entries import Entry, FileType
from durarepo.core.errors import FreshnessError, SelectionError
from durarepo.core.limits import MIB
from durarepo.format.manifest import Nested
from durarepo.repository.livetime import LiveTime
from durarepo.repository.pieces import file_pieces
from durarepo.repository.reader import ChunkReader
from durarepo.repository.repository import Repository
from durarepo.repository.selection import (
    LATEST,
    View,
    find_entry,
    find_place,
    find_sequence,
    is_above_root,
    lies_in_root,
    no_path,
    open_view,
)
from durarepo.repository.trees import Event, iter_directory, join_path, walk
from durarepo.store.atomic import shown

_PATTERN_MAX = 4096
_FITS_FROM_START = ("/", "*", "?", "[")
_ZEROS = bytes(MIB)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPath:
    """One path of a manifest. ``sha256`` is None for all but files that are not empty."""

    path: bytes
    type: str
    size: int
    mtime_ns: int
    sha256: bytes | None
    mode: int
    uid: int
    gid: int
    target: bytes | None


def listed_path(path: bytes, entry: Entry) -> ListedPath:
    """Return what a listing shows of an entry."""
    return ListedPath(
        path=path,
        type=entry.type.name.lower().replace("_", "-"),
        size=entry.size,
        mtime_ns=entry.mtime_ns,
        sha256=entry.sha256,
        mode=entry.mode,
        uid=entry.uid,
        gid=entry.gid,
        target=entry.target,
    )


def ls(
    repository: Repository,
    sequence: str,
    path: bytes | None = None,
    *,
    now: int,
    recursive: bool = False,
    folder: bytes | None = None,
) -> Iterator[ListedPath]:
    """Yield what lies in a folder of a manifest, in order; without a path, its roots.

    Args:
        repository: open.
        sequence: SEQ.
        path: PATH; what is no folder is yielded itself.
        now: the live time.
        recursive: go into every folder.
        folder: where who asks stands, of `find_place`.

    Raises:
        SelectionError: nothing of that name.
        IntegrityError, TrustError, FreshnessError, KeyMaterialError, StoreError: as every
            reading of a manifest.
    """
    view = open_view(repository, sequence, now=now)
    if path is None:
        return _roots(view, b"/", recursive=recursive)
    place = find_place(view.reader, view.nested, path, folder=folder)
    entry = find_entry(view.reader, view.nested, place)
    if entry is None:
        if not is_above_root(view.nested, place):
            raise no_path(place, view.manifest.statement.sequence)
        return _roots(view, place, recursive=recursive)
    return _below(view.reader, place, entry, recursive=recursive)


def _roots(view: View, above: bytes, *, recursive: bool) -> Iterator[ListedPath]:
    for root in view.nested.roots:
        if root.path.startswith(above.rstrip(b"/") + b"/"):
            yield listed_path(root.path, root.entry)
            if recursive:
                yield from _below(view.reader, root.path, root.entry, recursive=True)


def _below(
    reader: ChunkReader, path: bytes, entry: Entry, *, recursive: bool
) -> Iterator[ListedPath]:
    if entry.tree is None:
        yield listed_path(path, entry)
    elif recursive:
        for visit in walk(reader, path, entry):
            if visit.event is not Event.LEAVE and visit.path != path:
                yield listed_path(visit.path, visit.entry)
    else:
        for child in iter_directory(reader, entry.tree):
            yield listed_path(join_path(path, child.name), child)


def find(
    repository: Repository,
    pattern: bytes,
    *,
    now: int,
    at: str = LATEST,
    folder: bytes | None = None,
) -> Iterator[ListedPath]:
    """Yield every path of a manifest that a glob fits, in order.

    Args:
        repository: open.
        pattern: ``*`` is any run of characters, ``/`` too; ``?`` one; ``[…]`` one of a set. It
            fits a whole path; one without a slash a name as well; one that begins with the name
            of a folder, or with ``./``, is taken from ``folder`` or below the only root.
        now: the live time.
        at: SEQ.
        folder: where who asks stands; outside of the roots it counts for nothing.

    Raises:
        SelectionError: ``pattern``: too long; ``no-sequence``.
        IntegrityError, TrustError, FreshnessError, KeyMaterialError, StoreError: as `ls`.
    """
    if not 0 < len(pattern) <= _PATTERN_MAX:
        raise SelectionError("pattern", f"a pattern has 1 to {_PATTERN_MAX} bytes")
    view = open_view(repository, at, now=now)
    whole = _whole_pattern(view.nested, os.fsdecode(pattern), folder)
    matches = re.compile(fnmatch.translate(whole)).match
    if b"/" in pattern:
        return _matching(view, lambda path: matches(os.fsdecode(path)) is not None)
    return _matching(view, lambda path: _fits_name(matches, os.fsdecode(path)))


def _whole_pattern(nested: Nested, pattern: str, folder: bytes | None) -> str:
    """Return a pattern with the folder from which it is meant before it."""
    if "/" not in pattern or pattern.startswith(_FITS_FROM_START):
        return pattern
    roots = [root.path for root in nested.roots]
    base = folder if lies_in_root(nested, folder) else roots[0] if len(roots) == 1 else None
    if base is None:
        return pattern
    return f"{glob.escape(os.fsdecode(base).rstrip('/'))}/{pattern.removeprefix('./')}"


def _fits_name(matches: Callable[[str], re.Match[str] | None], path: str) -> bool:
    return matches(path) is not None or matches(path.rpartition("/")[2]) is not None


def _matching(view: View, matches: Callable[[bytes], bool]) -> Iterator[ListedPath]:
    for root in view.nested.roots:
        for visit in walk(view.reader, root.path, root.entry):
            if visit.event is not Event.LEAVE and matches(visit.path):
                yield listed_path(visit.path, visit.entry)


def cat(
    repository: Repository,
    sequence: str,
    path: bytes,
    *,
    clock: Clock,
    folder: bytes | None = None,
) -> Iterator[bytes]:
    """Yield the content of one file, all of it checked before the first piece.

    Args:
        repository: open.
        sequence: SEQ.
        path: PATH of a regular file.
        clock: the live time, read before ingest, before the first frame and before anything
            is given out.
        folder: where who asks stands, of `find_place`.

    Raises:
        SelectionError: ``no-path``, ``no-file``, ``no-sequence``.
        FreshnessError: expired, revoked, clock.
        IntegrityError, TrustError, KeyMaterialError, StoreError: as a checkout.
    """
    live = LiveTime(repository, clock)
    identity = repository.keys.need_identity()
    number = find_sequence(live.chain, sequence, identity=identity)
    try:
        manifest = live.admit(number)
    except FreshnessError as error:
        raise _for_one_path(error, path) from error
    newest = live.chain.newest_beside(number, now=live.now)
    reader = ChunkReader(repository, manifest, permit=live.check, newest=newest)
    nested = live.chain.nested(manifest)
    place = find_place(reader, nested, path, folder=folder)
    entry = find_entry(reader, nested, place)
    if entry is None:
        raise no_path(place, number)
    if entry.type is not FileType.FILE:
        raise SelectionError(
            "no-file",
            f"{shown(place)} is no regular file",
            hint=f"see what it is with: durarepo ls {number} {_word(path)}",
        )
    for _ in file_pieces(reader, entry, place):
        pass  # ingest 7.7: the whole file is checked first; below it is only read again
    live.check()  # ingest 7.9
    return _bytes_of(file_pieces(reader, entry, place))


def _word(path: bytes) -> str:
    return shlex.quote(os.fsdecode(path))


def _for_one_path(error: FreshnessError, path: bytes) -> FreshnessError:
    """Return the same refusal; where its hint is to restore, with the path that is wanted."""
    if error.code != "fresh.expired":
        return error
    return FreshnessError("expired", error.message, hint=f"{error.hint} --path {_word(path)}")


def _bytes_of(pieces: Iterator[bytes | int]) -> Iterator[bytes]:
    for piece in pieces:
        if isinstance(piece, int):
            for at in range(0, piece, MIB):
                yield _ZEROS[: piece - at]
        else:
            yield piece
