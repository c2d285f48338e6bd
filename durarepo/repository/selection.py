"""What a call means by SEQ, PATH and COMPONENT, looked up in verified manifests.

Nothing is made here, and what matches nothing is an error: a restore of nothing is none.
Source: spec/cli.md 1. Start at `find_sequence` and `select`.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from durarepo.core.entries import Entry
from durarepo.core.errors import SelectionError
from durarepo.core.names import ChunkId
from durarepo.core.secret import Secret
from durarepo.format.manifest import Component, Nested
from durarepo.format.tree import is_normal_path
from durarepo.ingest import VerifiedManifest
from durarepo.repository.chain import Chain, no_sequence
from durarepo.repository.reader import ChunkReader
from durarepo.repository.repository import Repository
from durarepo.repository.trees import find_name
from durarepo.store.atomic import shown

FILES_KIND, SQLITE_KIND = "files", "sqlite"
LATEST = "latest"
_DOTS = frozenset({b".", b".."})
_NUMBER = re.compile(r"[0-9]{1,18}\Z")
_BEFORE = re.compile(r"latest~([0-9]{1,9})\Z")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z\Z")


def find_sequence(chain: Chain, wanted: str, *, identity: Secret) -> int:
    """Return the number of the manifest that SEQ means; whether it is good is asked later.

    Args:
        chain: where manifests are looked for.
        wanted: a number, ``latest``, ``latest~N``, or a UTC date or instant, which means the
            newest manifest issued at or before it (a date: before its end).
        identity: opens manifests to see when they were issued.

    Raises:
        SelectionError: ``no-sequence``, ``sequence``.
        IntegrityError, TrustError: a manifest that has to be looked at is not good.
    """
    head = chain.head()
    if _NUMBER.match(wanted):
        number = int(wanted)
    elif wanted == LATEST:
        number = head
    elif (before := _BEFORE.match(wanted)) is not None:
        number = head - int(before[1])
    else:
        number = _newest_before(chain, _end_of(wanted), identity=identity)
    if not 1 <= number <= head:
        raise no_sequence(wanted, head)
    return number


def _end_of(wanted: str) -> int:
    """Return the last second that a date or an instant means."""
    try:
        if _DAY.match(wanted):
            day = datetime.strptime(wanted, "%Y-%m-%d").replace(tzinfo=UTC)
            return int((day + timedelta(days=1)).timestamp()) - 1
        if _INSTANT.match(wanted):
            instant = datetime.strptime(wanted, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
            return int(instant.timestamp())
    except (ValueError, OverflowError):
        pass
    raise SelectionError(
        "sequence",
        f"{shown(wanted[:40].encode(errors='surrogateescape'))} names no manifest",
        hint="use a number, latest, latest~N, YYYY-MM-DD or YYYY-MM-DDTHH:MM:SSZ",
    )


def _newest_before(chain: Chain, instant: int, *, identity: Secret) -> int:
    for number in range(chain.head(), 0, -1):
        if not chain.has(number):
            continue  # below what is kept; a gap above it is found when the chain is followed
        if chain.signed(number, identity).statement.issued <= instant:
            return number
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A verified manifest of any age, open for looking: what it lists, never what files hold."""

    manifest: VerifiedManifest
    nested: Nested
    reader: ChunkReader


def open_view(repository: Repository, wanted: str, *, now: int) -> View:
    """Return the manifest that SEQ means, after full ingest but for its expiry.

    Raises:
        SelectionError: ``no-sequence``, ``sequence``.
        KeyMaterialError: ``identity-absent``.
        IntegrityError, TrustError, FreshnessError: the code of the step that fails.
    """
    chain = Chain(repository)
    sequence = find_sequence(chain, wanted, identity=repository.keys.need_identity())
    manifest = chain.verified(sequence, now=now)
    newest = chain.newest_beside(sequence, now=now)
    reader = ChunkReader(repository, manifest, newest=newest)
    return View(manifest=manifest, nested=chain.nested(manifest), reader=reader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Paths that are chosen with all below them; None for everything."""

    paths: frozenset[bytes] | None = None
    above: frozenset[bytes] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether everything is chosen."""
        return self.paths is None

    def takes(self, path: bytes) -> bool:
        """Return whether a path is chosen: itself, or something above it."""
        if self.paths is None:
            return True
        return not self.paths.isdisjoint((path, *folders_above(path)))

    def enters(self, path: bytes, _entry: Entry) -> bool:
        """Return whether a directory is chosen, or leads to something that is."""
        return path in self.above or self.takes(path)


EVERYTHING = Selection()


def folders_above(path: bytes) -> list[bytes]:
    """Return the folders above an absolute path, from the nearest up to the root."""
    found = []
    while path != b"/":
        path = path.rpartition(b"/")[0] or b"/"
        found.append(path)
    return found


def absolute_path(nested: Nested, path: bytes) -> bytes:
    """Return the absolute source path that PATH means.

    Raises:
        SelectionError: ``path``: it is not in normal form; ``relative-path``: it is relative,
            and there is not exactly one root.
    """
    named = path.rstrip(b"/") or path[:1]
    if not named.startswith(b"/"):
        if len(nested.roots) != 1:
            raise SelectionError(
                "relative-path",
                f"{shown(path)} is relative, and the manifest has {len(nested.roots)} roots",
                hint="give the absolute path as durarepo ls prints it",
            )
        named = (nested.roots[0].path.rstrip(b"/") + b"/" + named) if named else b"//"
    if not is_normal_path(named):
        raise SelectionError(
            "path",
            f"{shown(path)} is no path in normal form",
            hint="give it without '.', '..' and empty names, as durarepo ls prints it",
        )
    return named


def lies_in_root(nested: Nested, folder: bytes | None) -> bool:
    """Return whether a folder is a root of a manifest, or lies below one."""
    return folder is not None and any(
        folder == root.path or folder.startswith(root.path.rstrip(b"/") + b"/")
        for root in nested.roots
    )


def find_place(
    reader: ChunkReader, nested: Nested, path: bytes, *, folder: bytes | None = None
) -> bytes:
    """Return the absolute source path that PATH means for somebody who stands in a folder.

    Args:
        reader: of the manifest.
        nested: its inner part.
        path: PATH; a relative one is taken from ``folder`` or below the only root, wherever the
            manifest has it, and one with ``.`` or ``..`` in it from ``folder`` alone.
        folder: a real path; None, and one outside of the roots, stand for nowhere.

    Raises:
        SelectionError: as `absolute_path`; ``relative-path``: there are two of that name.
        IntegrityError: a directory on the way cannot be read.
    """
    if folder is None or not path or path.startswith(b"/") or not lies_in_root(nested, folder):
        return absolute_path(nested, path)
    near = os.path.normpath(os.path.join(folder, path))
    is_dotted = not _DOTS.isdisjoint(path.split(b"/"))
    if is_dotted or len(nested.roots) != 1:
        return near
    below = absolute_path(nested, path)
    if below == near or find_entry(reader, nested, below) is None:
        return near
    if find_entry(reader, nested, near) is None:
        return below
    raise SelectionError(
        "relative-path",
        f"{shown(path)} may be {shown(near)} or {shown(below)}",
        hint="give the absolute path, or begin with ./ for the folder that you are in",
    )


def find_entry(reader: ChunkReader, nested: Nested, path: bytes) -> Entry | None:
    """Return the entry at an absolute path, or None where the manifest has nothing there.

    Raises:
        IntegrityError: a directory on the way cannot be read.
    """
    for root in nested.roots:
        if path == root.path:
            return root.entry
        above = root.path.rstrip(b"/") + b"/"
        if path.startswith(above):
            return _follow(reader, root.entry, path[len(above) :].split(b"/"))
    return None


def _follow(reader: ChunkReader, entry: Entry, names: Sequence[bytes]) -> Entry | None:
    found: Entry | None = entry
    for name in names:
        tree: ChunkId | None = None if found is None else found.tree
        if tree is None:
            return None
        found = find_name(reader, tree, name)
    return found


def is_above_root(nested: Nested, path: bytes) -> bool:
    """Return whether a root lies below ``path``."""
    return any(path in folders_above(root.path) for root in nested.roots)


def no_path(path: bytes, sequence: int) -> SelectionError:
    """Return the error for a path that a manifest does not have."""
    return SelectionError(
        "no-path",
        f"manifest {sequence} has nothing at {shown(path)}",
        hint=f"list what it has with: durarepo ls {sequence} --recursive",
    )


def select(
    reader: ChunkReader,
    nested: Nested,
    *,
    paths: Sequence[bytes] = (),
    components: Sequence[bytes] = (),
    folder: bytes | None = None,
) -> Selection:
    """Return what is chosen; everything where nothing is named.

    Args:
        reader: of the manifest.
        nested: its inner part.
        paths: PATH each.
        components: names of components.
        folder: of `find_place`.

    Raises:
        SelectionError: ``no-path``, ``no-component``, ``path``, ``relative-path``.
        IntegrityError: a directory on the way cannot be read.
    """
    if not paths and not components:
        return EVERYTHING
    chosen = [find_place(reader, nested, path, folder=folder) for path in paths]
    for name in components:
        path = _component_path(nested, name)
        if path is None:
            return EVERYTHING
        chosen.append(path)
    for path in chosen:
        if find_entry(reader, nested, path) is None and not is_above_root(nested, path):
            raise no_path(path, reader.manifest.statement.sequence)
    above = frozenset(folder for path in chosen for folder in folders_above(path))
    return Selection(paths=frozenset(chosen), above=above)


def _component_path(nested: Nested, name: bytes) -> bytes | None:
    """Return the path of a component, None for that of all files."""
    for component in nested.components:
        if component.name == name or component.kind.encode() == name == FILES_KIND.encode():
            if component.kind == FILES_KIND:
                return None
            path = sqlite_path(component)
            if path is not None:
                return path
    names = ", ".join(shown(component.name) for component in nested.components[:20])
    raise SelectionError(
        "no-component",
        f"the manifest has no component {shown(name[:200])} that can be chosen",
        hint=f"it has {names}" if names else "it has none",
    )


def sqlite_path(component: Component) -> bytes | None:
    """Return the path of the database that a component is, or None for another kind."""
    path = component.name.removeprefix(b"sqlite:")
    is_database = component.kind == SQLITE_KIND and path != component.name
    return path if is_database and is_normal_path(path) else None
