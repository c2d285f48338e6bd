"""The staging folder beside a destination: made private, made durable, published or discarded.

It holds the descriptors through which everything of a restore happens. It writes no content;
what it leaves behind goes through the work module, which alone may remove files.
Source: spec/format.md 10 and law 4. Start at `Staging.create`.
"""

import os
from collections.abc import Sequence
from typing import Final, Protocol, Self

from durarepo.core.errors import DurarepoError
from durarepo.repository.scratch_metadata import clear_inherited
from durarepo.repository.scratch_place import (
    READ_FOLDER,
    Place,
    can_sync_disk,
    open_place,
    place_error,
    publish_folder,
    sync_disk,
    sync_parent,
)
from durarepo.store.atomic import shown

STAGED_NAME_BYTES: Final = 200
"""So much of the destination's name stands in the staging folder's, to keep it a name."""


class StagingKeeper(Protocol):
    """What a restore asks of the work module, which alone may remove files."""

    def adopt_staging(self, path: bytes) -> None:
        """Record the new, empty folder ``path`` as made by this run."""

    def discard(self, path: bytes) -> None:
        """Remove the adopted folder ``path`` with all that it holds."""


class Staging:
    """A private folder with three folders in it, all held open.

    Attributes:
        tree_fd: what becomes the destination.
        links_fd: second names of files that may get further names.
        dropped_fd: files whose content failed.
        syncs_each: this system cannot sync a whole disk; each file has to be synced.
    """

    def __init__(self, place: Place, name: bytes, *, keeper: StagingKeeper) -> None:
        """Take over ``place`` and the new, adopted folder ``name`` in it; see `create`."""
        self._place = place
        self._name = name
        self._keeper = keeper
        self._fds = [place.parent_fd]
        self._is_closed = False
        self.has_appeared = False
        self.syncs_each = not can_sync_disk()
        try:
            self._staging_fd = self._open(name, place.parent_fd)
            clear_inherited(self._staging_fd)
            self.tree_fd = self._make(b"tree")
            self.links_fd = self._make(b"links")
            self.dropped_fd = self._make(b"dropped")
        except OSError as error:
            self.close()
            raise place_error(error, f"make the folder {shown(self.path)}") from error

    @classmethod
    def create(
        cls, destination: bytes, *, protected: Sequence[bytes], keeper: StagingKeeper
    ) -> Self:
        """Return the staging folder for ``destination``, freshly made beside it.

        A kill before it is adopted leaves it empty: nothing of a restore is there yet.

        Raises:
            ConfigurationError, PolicyRefusedError: as `open_place`; nothing was made.
            StoreError: it cannot be made.
        """
        place = open_place(destination, protected=protected)
        name = b".%s.durarepo-partial-%s" % (
            place.name[:STAGED_NAME_BYTES],
            os.urandom(8).hex().encode(),
        )
        path = os.path.join(place.parent, name)
        try:
            os.mkdir(name, 0o700, dir_fd=place.parent_fd)
            keeper.adopt_staging(path)
        except OSError as error:
            os.close(place.parent_fd)
            raise place_error(error, f"make the folder {shown(path)}") from error
        except DurarepoError:
            os.close(place.parent_fd)
            raise
        return cls(place, name, keeper=keeper)

    @property
    def path(self) -> bytes:
        """Real path of the staging folder."""
        return os.path.join(self._place.parent, self._name)

    @property
    def destination(self) -> bytes:
        """Real path of the folder that `publish` lets appear."""
        return self._place.path

    def made_as(self) -> tuple[int, int]:
        """Return user and group that new files get here by themselves."""
        made = os.fstat(self.tree_fd)
        return made.st_uid, made.st_gid

    def sync(self) -> None:
        """Make everything in the tree durable (what each file did not do for itself).

        Raises:
            OSError: something did not reach the disk.
        """
        if self.syncs_each:
            os.fsync(self.tree_fd)
        else:
            sync_disk(self.tree_fd)

    def publish(self) -> None:
        """Let the tree appear at the destination by one rename.

        Raises:
            PolicyRefusedError: ``destination-exists``: something stands there by now.
            StoreError: the rename or the fsync of the parent failed.
        """
        publish_folder(self._staging_fd, b"tree", self._place)
        self.has_appeared = True
        sync_parent(self._place)

    def close(self) -> None:
        """Close everything and let the work module discard what is still here; once is enough."""
        if self._is_closed:
            return
        self._is_closed = True
        for fd in self._fds:
            os.close(fd)
        self._keeper.discard(self.path)

    def _open(self, name: bytes, folder_fd: int) -> int:
        fd = os.open(name, READ_FOLDER, dir_fd=folder_fd)
        self._fds.append(fd)
        return fd

    def _make(self, name: bytes) -> int:
        os.mkdir(name, 0o700, dir_fd=self._staging_fd)
        return self._open(name, self._staging_fd)
