"""The folders of a scratch tree while they are filled: from its top down to the current one.

Enters, makes and leaves directories by name relative to an open folder. Nothing is followed, no
path is walked, and the way back up is checked by identity. Directories stay private (0700) until
left; then they get their metadata, and their times last. Makes folders, never files.
Source: spec/format.md 10 and law 8. Start at `ScratchFolders.enter`.
"""

import errno
import os
import stat
from dataclasses import dataclass, field
from typing import Final

from durarepo.core.entries import Entry
from durarepo.core.errors import DurarepoError, IntegrityError, StoreError
from durarepo.core.limits import PATH_MAX_BYTES, TREE_MAX_DEPTH
from durarepo.repository.scratch_checks import MARKERS, is_name
from durarepo.repository.scratch_metadata import MetadataWriter, clear_inherited
from durarepo.repository.scratch_place import (
    PATH_ONLY,
    READ_FOLDER,
    Identity,
    identity_of,
    place_error,
)
from durarepo.store.atomic import shown

OPEN_FRAMES: Final = 64
"""So many of the innermost folders are held open; the others are reopened on the way back."""

_PRIVATE: Final = 0o700


@dataclass(slots=True, kw_only=True)
class Frame:
    """A folder being filled; ``fd`` is -1 while it is not held open.

    ``found`` is (mode, access time, modification time) of a finished folder entered once more.
    """

    name: bytes
    path_bytes: int
    identity: Identity
    fd: int
    entry: Entry | None = None
    is_between: bool = False
    found: tuple[int, int, int] | None = None
    databases: set[bytes] = field(default_factory=set)


class ScratchFolders:
    """A stack of folders over the top of the tree, which stays open.

    Attributes:
        failed: a store error came up; what stands here must not be published.
    """

    def __init__(
        self, top_fd: int, metadata: MetadataWriter, *, syncs_each: bool, destination: bytes
    ) -> None:
        """Stand at the top; ``top_fd`` stays the caller's, ``destination`` is for messages."""
        self._destination = destination
        self.failed = False
        self._top_fd = top_fd
        self._metadata = metadata
        self._syncs_each = syncs_each
        self._frames: list[Frame] = []
        self._between: set[Identity] = set()

    def __len__(self) -> int:
        """Return how many folders below the top are entered."""
        return len(self._frames)

    @property
    def current(self) -> Frame:
        """The folder being filled; ValueError at the top, which holds only roots."""
        if not self._frames:
            raise ValueError("no directory is entered")
        return self._frames[-1]

    @property
    def current_fd(self) -> int:
        """The folder being filled, open; the top itself if none is entered."""
        return self._frames[-1].fd if self._frames else self._top_fd

    def show(self, name: bytes) -> str:
        """Return the quoted source path of ``name`` in the current folder, for messages."""
        return shown(b"/" + b"/".join([*(f.name for f in self._frames if f.name), name]))

    def check_name(self, name: bytes) -> None:
        """Check that ``name`` may be made in the current folder.

        Raises:
            IntegrityError: ``path``: no name, a path over 4,096 bytes, or the restore's own name.
        """
        above = self._frames[-1].path_bytes if self._frames else 0
        is_own = name == MARKERS and len(self._frames) == 1 and not self._frames[0].name
        if is_own or not is_name(name) or above + 1 + len(name) > PATH_MAX_BYTES:
            raise IntegrityError("path", f"{self.show(name[:512])} is no name to restore")

    def enter(self, name: bytes, entry: Entry | None) -> None:
        """Make the new folder ``name`` and enter it.

        Raises:
            IntegrityError: ``path``: too deep; ``name-collision``: the name is taken.
            StoreError: it cannot be made.
        """
        if len(self._frames) >= TREE_MAX_DEPTH:
            raise IntegrityError("path", f"{self.show(name)} lies too deep")
        try:
            os.mkdir(name, _PRIVATE, dir_fd=self.current_fd)
            self._push(name, os.open(name, READ_FOLDER, dir_fd=self.current_fd)).entry = entry
        except OSError as error:
            raise self.not_made(error, name) from error

    def enter_top(self) -> None:
        """Enter the top itself, for the root ``/``; leaving it changes nothing."""
        try:
            self._push(b"", os.dup(self._top_fd))
        except OSError as error:
            raise self.broken(error, "enter '/'") from error

    def enter_between(self, name: bytes) -> None:
        """Enter the folder ``name`` above a root: a new one, or one that an earlier root left.

        Raises:
            IntegrityError: ``name-collision``: something else has the name.
            StoreError: it cannot be made or entered.
        """
        try:
            os.mkdir(name, _PRIVATE, dir_fd=self.current_fd)
        except FileExistsError:
            self._enter_existing(name)
            return
        except OSError as error:
            raise self.not_made(error, name) from error
        frame = self._enter_plain(name)
        frame.is_between = True
        self._between.add(frame.identity)

    def enter_root(self, name: bytes, entry: Entry) -> None:
        """Enter the last folder of a root's path: new, or so far only on the way to others.

        Raises:
            IntegrityError: ``name-collision``: something else has the name.
            StoreError: it cannot be made.
        """
        try:
            os.mkdir(name, _PRIVATE, dir_fd=self.current_fd)
        except FileExistsError:
            self._check_exact(name)
            if self._identity_at(name) not in self._between:
                raise self.collision(name, name) from None
        except OSError as error:
            raise self.not_made(error, name) from error
        frame = self._enter_plain(name)
        frame.entry = entry
        self._between.discard(frame.identity)

    def leave(self) -> Frame:
        """Finish the current folder: metadata, times, and its parent is current again.

        Raises:
            StoreError: its metadata cannot be written.
        """
        frame = self.current
        self._frames.pop()
        try:
            if self._frames and self._frames[-1].fd < 0:
                self._reopen(self._frames[-1], frame.fd)
            self._finish(frame)
        except OSError as error:
            raise self.broken(error, f"finish the folder {self.show(frame.name)}") from error
        finally:
            os.close(frame.fd)
        return frame

    def close(self) -> None:
        """Close every folder without finishing it."""
        for frame in self._frames:
            if frame.fd >= 0:
                os.close(frame.fd)
        self._frames.clear()

    def broken(self, error: OSError, what: str) -> StoreError:
        """Return the store error for a step that failed; nothing may be published any more."""
        self.failed = True
        return place_error(error, f"{what} in the destination {shown(self._destination)}")

    def not_made(self, error: OSError, name: bytes) -> DurarepoError:
        """Return what is to be raised because ``name`` could not be made."""
        if error.errno == errno.EEXIST:
            return self.collision(name, self._actual_name(name))
        return self.broken(error, f"make {self.show(name)}")

    def collision(self, name: bytes, other: bytes) -> IntegrityError:
        """Return the refusal to let two names meet in one place."""
        return IntegrityError(
            "name-collision",
            f"{self.show(name)} and {self.show(other)} are one name at the destination",
            hint="choose a destination whose file system tells the names apart"
            if name != other
            else "the listing names one thing twice: restore another manifest with --at",
        )

    def _push(self, name: bytes, fd: int) -> Frame:
        above = self._frames[-1].path_bytes if self._frames else 0
        length = above + 1 + len(name) if name else 0
        frame = Frame(name=name, path_bytes=length, identity=identity_of(os.fstat(fd)), fd=fd)
        self._frames.append(frame)
        if len(self._frames) > OPEN_FRAMES:
            outer = self._frames[-OPEN_FRAMES - 1]
            os.close(outer.fd)
            outer.fd = -1
        return frame

    def _enter_plain(self, name: bytes) -> Frame:
        """Enter a private folder, free of what its parent may have handed down."""
        try:
            frame = self._push(name, os.open(name, READ_FOLDER, dir_fd=self.current_fd))
            clear_inherited(frame.fd)
        except OSError as error:
            raise self.broken(error, f"enter the folder {self.show(name)}") from error
        return frame

    def _enter_existing(self, name: bytes) -> None:
        self._check_exact(name)
        try:
            is_made_between = self._identity_at(name) in self._between
            found = None if is_made_between else self._unlock(name)
            frame = self._push(name, os.open(name, READ_FOLDER, dir_fd=self.current_fd))
        except (NotADirectoryError, FileExistsError) as error:
            raise self.collision(name, name) from error
        except OSError as error:
            raise self.broken(error, f"enter the folder {self.show(name)}") from error
        frame.is_between = True
        frame.found = found

    def _unlock(self, name: bytes) -> tuple[int, int, int]:
        """Make a finished folder private and writable again; return how it was."""
        fd = os.open(name, PATH_ONLY, dir_fd=self.current_fd)
        try:
            found = os.fstat(fd)
            os.chmod(f"/proc/self/fd/{fd}", _PRIVATE)
            return stat.S_IMODE(found.st_mode), found.st_atime_ns, found.st_mtime_ns
        finally:
            os.close(fd)

    def _identity_at(self, name: bytes) -> Identity:
        return identity_of(os.stat(name, dir_fd=self.current_fd, follow_symlinks=False))

    def _check_exact(self, name: bytes) -> None:
        actual = self._actual_name(name)
        if actual != name:
            raise self.collision(name, actual)

    def _actual_name(self, name: bytes) -> bytes:
        """Return how the current folder spells what it finds under ``name``."""
        try:
            inode = self._identity_at(name)[1]
            with os.scandir(self.current_fd) as entries:
                same = {os.fsencode(e.name) for e in entries if e.inode() == inode}
        except OSError:
            return name
        return name if name in same else min(same, default=name)

    def _reopen(self, frame: Frame, child_fd: int) -> None:
        frame.fd = os.open(b"..", READ_FOLDER, dir_fd=child_fd)
        if identity_of(os.fstat(frame.fd)) != frame.identity:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    def _finish(self, frame: Frame) -> None:
        if frame.found is not None:
            mode, accessed, modified = frame.found
            os.fchmod(frame.fd, mode)
            os.utime(frame.fd, ns=(accessed, modified))
        elif frame.entry is not None:
            self._metadata.apply_open(frame.fd, frame.entry)
        if self._syncs_each:
            os.fsync(frame.fd)
