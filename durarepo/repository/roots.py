"""The declared roots before anything of them is read: are they there, and is there room?

Source: spec/cli.md (omissions; exit code 13), spec/format.md 12 (law 6). Start at `Roots`.
"""

import os
import stat
from contextlib import suppress

from durarepo.core.errors import ConfigurationError, SourceError
from durarepo.core.limits import MIB
from durarepo.local.catalog import Catalog
from durarepo.local.configuration import RootConfig
from durarepo.local.space import check_space, free_space
from durarepo.policy.patterns import PatternRule
from durarepo.repository.listing import record_of, stat_record
from durarepo.repository.repository import Repository
from durarepo.repository.scratch_place import can_sync_disk, sync_disk
from durarepo.source.mounts import MountTable
from durarepo.source.opening import open_root
from durarepo.source.pathjudge import PathJudge
from durarepo.source.walk import Enter, WalkRules, walk

MOUNT_FACT = "mount:"
"""The catalogue's fact, with the root's path in hex, that names the mount point it lay on."""

_TIGHT_BYTES = 16 * 1024 * MIB
_SPARE_BYTES = 2 * MIB
_LIKELY_RATIO = 4


class Roots:
    """The roots of one repository."""

    def __init__(self, repository: Repository, *, paths: PathJudge) -> None:
        """Prepare.

        Args:
            repository: names the roots.
            paths: the path rules, asked of every name before anything is opened.
        """
        self._repository = repository
        self._paths = paths

    def check(self, mounts: MountTable) -> None:
        """Refuse to begin where a root cannot be what it was declared to be.

        Raises:
            ConfigurationError: ``no-root``.
            SourceError: a root is missing, unreadable, or an empty mount point.
            StoreError: ``space``.
        """
        if not self._repository.configuration.roots:
            raise ConfigurationError("no-root", "stream.toml names no root")
        for root in self._repository.configuration.roots:
            fd = open_root(root.path)
            try:
                _write_back(fd)
                is_empty = not os.listdir(fd)
            except OSError as error:
                raise SourceError(
                    "root-unreadable",
                    f"root {os.fsdecode(root.path)!r} cannot be read: {error.strerror}",
                    hint="give the user that runs durarepo the right to read it",
                ) from error
            finally:
                os.close(fd)
            if is_empty:
                self._check_empty(root.path, mounts)
        self._check_space()

    def _check_empty(self, path: bytes, mounts: MountTable) -> None:
        """Refuse an empty root whose files lived on a disk that is not there now."""
        before = self._repository.catalog.fact(MOUNT_FACT + path.hex())
        row = self._repository.catalog.find_dir(path)
        had_files = bool(row.entries) if row is not None else self._has_held_files()
        moved = before is not None and before != mounts.mount_point_of(path)
        if had_files and (moved or mounts.is_mount_point(path)):
            raise SourceError(
                "root-empty-mount",
                f"root {os.fsdecode(path)!r} is an empty mount point and held files before",
                hint="mount its disk; if the files are gone on purpose, make a new stream",
            )

    def _has_held_files(self) -> bool:
        """Return whether the only root held files, by the ledger; False where it cannot tell."""
        if len(self._repository.configuration.roots) > 1:
            return False
        complete = [run for run in self._repository.state.iter_runs() if run.complete]
        return bool(complete) and complete[-1].files > 0

    def _check_space(self) -> None:
        """Refuse before reading where what changed could not fit; only asked on a small disk."""
        folder = self._repository.places.repository
        if free_space(folder)[0] > _TIGHT_BYTES:
            return
        changed = sum(
            _changed_bytes(root, self._repository.catalog, self.rules(root))
            for root in self._repository.configuration.roots
        )
        check_space(folder, changed // _LIKELY_RATIO + _SPARE_BYTES, what="the snapshot")

    def rules(self, root: RootConfig) -> WalkRules:
        """Return what the walk of a root leaves out."""
        paths, places = self._paths, self._repository.places
        operator = PatternRule(root.path, exclude=root.exclude, include=root.include)

        def by_either(folder: bytes, name: bytes, found: os.stat_result) -> str | None:
            return paths(folder, name, found) or operator(folder, name)

        return WalkRules(
            is_excluded=by_either if root.exclude else paths,
            one_filesystem=root.one_filesystem,
            own_state=_identities(places.repository, places.state, places.keys),
        )


def _write_back(fd: int) -> None:
    """Have the kernel write back the disk of a root.

    A store to a mapped page moves a file's times only if it is the first since the page was
    written back; without this a later one could look like no change. Disks that never write
    back (tmpfs) stay without that proof (spec/threat-model.md, limits).
    """
    if can_sync_disk():
        with suppress(OSError):
            sync_disk(fd)


def _identities(*paths: bytes) -> frozenset[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            continue  # what is not there cannot be met by the walk
        found.add((status.st_dev, status.st_ino))
    return frozenset(found)


def _changed_bytes(root: RootConfig, catalog: Catalog, rules: WalkRules) -> int:
    """Return the bytes of files in directories that are not as they were kept."""
    total = 0
    for event in walk(root.path, rules=rules):
        if isinstance(event, Enter):
            row = catalog.find_dir(event.path)
            record = record_of([(name, stat_record(found)) for name, found in event.names])
            if row is None or row.record != record:
                total += sum(
                    found.st_blocks * 512 for _, found in event.names if stat.S_ISREG(found.st_mode)
                )
    return total
