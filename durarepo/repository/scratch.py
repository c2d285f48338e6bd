"""The scratch builder: the only code that creates restored files.

Builds a folder from entries whose form is trusted and whose intent is not, out of sight beside
its destination, and lets it appear by one rename. It fetches, decrypts and removes nothing:
leftovers go through the work module, which knows what this run has made.

The staging folder is private (mode 0700) and holds `tree`, which becomes the destination,
`links`, where the first file of each hard-link group has a second name, and `dropped`, where a
file goes whose content failed. Everything is created by name relative to an open folder, new or
not at all; no path is ever walked, so no symlink can redirect anything.
Memory and open files depend on depth and on hard-link groups, never on the number of files.
Source: spec/format.md 10 and law 4, spec/cli.md 3. Start at `ScratchBuilder.create`.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from durarepo.core.entries import Consistency, Entry, FileType
from durarepo.core.errors import IntegrityError, StoreError
from durarepo.repository.scratch_checks import (
    DEVICES,
    MARKERS,
    SIDECARS,
    check_entry,
    is_name,
    is_same_inode,
    split_root,
)
from durarepo.repository.scratch_content import (
    WriteFailedError,
    WrongSizeError,
    write_all,
    write_content,
)
from durarepo.repository.scratch_folders import Frame, ScratchFolders
from durarepo.repository.scratch_metadata import MetadataWriter
from durarepo.repository.scratch_place import exists_at, place_error
from durarepo.repository.scratch_staging import Staging, StagingKeeper
from durarepo.source.sqlitestate import is_sidecar
from durarepo.store.atomic import shown

COMPONENTS: Final = b"components"
_MAGIC_BYTES: Final = 16
_NEW_FILE: Final = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_SPECIAL: Final = {
    FileType.FIFO: stat.S_IFIFO,
    FileType.SOCKET: stat.S_IFSOCK,
    FileType.CHAR_DEVICE: stat.S_IFCHR,
    FileType.BLOCK_DEVICE: stat.S_IFBLK,
}
_FILE: Final = (FileType.FILE,)
_FOLDER: Final = (FileType.DIRECTORY,)
_NAMED: Final = (FileType.SYMLINK, *_SPECIAL)
_LINKED: Final = (FileType.FILE, *_NAMED)
_NO_LINK: Final = (errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linkable:
    """Something a builder has made and may give further names; only that builder makes one."""

    owner: "ScratchBuilder"
    pooled: bytes
    entry: Entry

    def agrees(self, entry: Entry) -> bool:
        """Return whether ``entry`` may be one more name: same group, content and metadata."""
        return is_same_inode(self.entry, entry)


class ScratchBuilder:
    """Builds one restored folder: roots, then what they hold, then `finish` and `publish`.

    Use it as a context manager: what leaves the block unpublished is abandoned. After a store
    error nothing can be published any more. Not for several threads at once.
    """

    def __init__(self, staging: Staging, *, privileges: bool) -> None:
        """Build in ``staging``; see `create`."""
        self._staging = staging
        self._metadata = MetadataWriter(
            privileges=privileges, made_as=staging.made_as(), is_root=os.geteuid() == 0
        )
        self._folders = ScratchFolders(
            staging.tree_fd,
            self._metadata,
            syncs_each=staging.syncs_each,
            destination=staging.destination,
        )
        self._root_of_all: Entry | None = None
        self._serial = 0
        self._is_finished = False

    @classmethod
    def create(
        cls,
        destination: bytes,
        *,
        protected: Sequence[bytes],
        keeper: StagingKeeper,
        privileges: bool = False,
    ) -> Self:
        """Return a builder for a new folder ``destination``; only its staging folder is made.

        Args:
            destination: path of a folder that does not exist; its parent does.
            protected: paths of every root, of the repository and of the keys folder.
            keeper: the work module of this run.
            privileges: keep setuid, setgid, sticky and capabilities of files.

        Raises:
            ConfigurationError: ``config.destination``.
            PolicyRefusedError: ``destination-exists``, ``destination-protected``,
                ``destination-parent``; nothing was made.
            StoreError: the staging folder cannot be made.
        """
        staging = Staging.create(destination, protected=protected, keeper=keeper)
        return cls(staging, privileges=privileges)

    def __enter__(self) -> Self:
        """Return the builder itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Abandon what was not published."""
        self.abandon()

    @property
    def destination(self) -> bytes:
        """Real path of the folder that `publish` lets appear."""
        return self._staging.destination

    @property
    def staging(self) -> bytes:
        """Real path of the folder in which everything is built."""
        return self._staging.path

    @property
    def not_restored(self) -> dict[str, int]:
        """What did not come back: kind of loss -> how often; empty if everything did.

        Kinds: ``owner``, ``mode``, ``times``, ``setuid``, ``setgid``, ``sticky``,
        ``capabilities``, ``acl``, ``xattr``, ``device`` (left out), ``hard-link`` (a file of
        its own instead). When a file was made can be set by nobody and is not counted.
        """
        return dict(self._metadata.not_restored)

    def enter_root(self, path: bytes, entry: Entry) -> None:
        """Begin the root whose absolute source path is ``path``; `leave` ends it.

        Folders above it are made where missing (mode 0700) and shared between roots.

        Raises:
            IntegrityError: ``path``: not absolute, not normal, too long, or the restore's own
                name; ``entry``; ``name-collision``: an earlier root has something else there.
            StoreError: it cannot be made.
        """
        self._check_at_top()
        names = split_root(path)
        check_entry(entry, path, types=_FOLDER)
        if names:
            with self._unwound():
                for name in names[:-1]:
                    self._folders.enter_between(name)
                self._folders.enter_root(names[-1], entry)
            return
        if self._root_of_all is not None:
            raise self._folders.collision(b"", b"")
        self._root_of_all = entry  # applied by `publish`: until then the top stays writable
        self._folders.enter_top()

    def enter_component(self, name: bytes) -> None:
        """Begin ``.durarepo/components/NAME``, for what is no file at a source path.

        Raises:
            IntegrityError: ``path``, ``name-collision``.
            StoreError: it cannot be made.
        """
        self._check_at_top()
        self._folders.check_name(name)
        with self._unwound():
            self._folders.enter_between(MARKERS)
            self._folders.enter_between(COMPONENTS)
            self._folders.enter(name, None)

    def enter(self, entry: Entry) -> None:
        """Make the directory ``entry`` in the current one and make it the current one.

        Raises:
            IntegrityError: ``path``: no name or too deep; ``entry``: impossible metadata;
                ``name-collision``: the name is taken.
            StoreError: it cannot be made.
        """
        self._check(entry, _FOLDER)
        self._folders.enter(entry.name, entry)

    def leave(self) -> None:
        """Finish the current directory: metadata, then times; its parent is current again.

        Raises:
            StoreError: its metadata cannot be written.
        """
        self._check_building()
        self._folders.leave()
        while len(self._folders) and self._folders.current.is_between:
            self._folders.leave()

    def add_file(self, entry: Entry, pieces: Iterable[bytes | int]) -> Linkable | None:
        """Write one regular file; it keeps its name only if its whole content came.

        Args:
            entry: the file; ``entry.size`` bytes have to come, no more and no fewer.
            pieces: content in order: bytes, or the length of a hole of zeros. What the iterator
                raises (a failed digest) is passed on, and the file is not part of the result.

        Returns:
            A handle for `add_link` if ``entry`` belongs to a hard-link group, else None.

        Raises:
            IntegrityError: ``path``, ``entry``, ``name-collision``; ``file-size``: another
                number of bytes came; ``sidecar``: it would be mixed with a copied database.
            StoreError: it cannot be written.
        """
        frame = self._check(entry, _FILE)
        self._check_sidecar(frame, entry)
        try:
            fd = os.open(entry.name, _NEW_FILE, 0o600, dir_fd=frame.fd)
        except OSError as error:
            raise self._folders.not_made(error, entry.name) from error
        try:
            self._fill(fd, entry, pieces)
            self._check_log(frame, entry, fd)
        except BaseException:
            self._drop(frame, entry.name, fd)
            raise
        finally:
            os.close(fd)
        _note_database(frame, entry)
        return self._pool(frame, entry)

    def add_special(self, entry: Entry) -> Linkable | None:
        """Make a symlink, FIFO, socket or device; a target is stored and never looked at.

        A device that this user may not make is left out and counted as ``device``.

        Returns:
            A handle for `add_link` if ``entry`` was made and belongs to a hard-link group.

        Raises:
            IntegrityError: ``path``, ``entry``, ``name-collision``.
            StoreError: it cannot be made.
        """
        frame = self._check(entry, _NAMED)
        try:
            if not self._make_named(frame.fd, entry):
                self._metadata.count("device")
                return None
        except OSError as error:
            raise self._folders.not_made(error, entry.name) from error
        try:
            self._metadata.apply_named(frame.fd, entry.name, entry)
        except OSError as error:
            raise self._folders.broken(
                error, f"write the metadata of {self._folders.show(entry.name)}"
            ) from error
        return self._pool(frame, entry)

    def add_link(self, entry: Entry, first: Linkable) -> bool:
        """Give ``first`` the further name ``entry.name`` in the current directory.

        Returns:
            False when the file system will not link it: counted as ``hard-link``; the caller
            writes a file of its own instead.

        Raises:
            IntegrityError: ``link-group``: the two do not agree; ``path``, ``name-collision``.
            StoreError: it cannot be made.
            ValueError: ``first`` was made by another builder.
        """
        frame = self._check(entry, _LINKED)
        if first.owner is not self:
            raise ValueError("the first name of a hard link comes from the same builder")
        if not first.agrees(entry):
            raise IntegrityError(
                "link-group",
                f"{self._folders.show(entry.name)} is listed as another name of "
                f"{shown(first.entry.name)} and differs from it",
                hint="restore it as a file of its own",
            )
        self._check_linked_log(frame, entry, first)
        try:
            _link(self._staging.links_fd, first.pooled, frame.fd, entry.name)
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise self._folders.not_made(error, entry.name) from error
            self._metadata.count("hard-link")
            return False
        _note_database(frame, entry)
        return True

    def write_marker(self, name: bytes, data: bytes) -> None:
        """Write ``data`` as ``.durarepo/NAME`` of the result, mode 0600.

        Raises:
            IntegrityError: ``path``; ``name-collision``: it is there already.
            StoreError: it cannot be written.
        """
        self._check_at_top()
        self._folders.check_name(name)
        with self._unwound():
            self._folders.enter_between(MARKERS)
            self._write_new(name, data)
            self._folders.leave()

    def finish(self) -> None:
        """Make everything durable; nothing can be added afterwards.

        Raises:
            StoreError: something did not reach the disk; nothing can be published.
            ValueError: a directory was not left, or an earlier step failed.
        """
        self._check_at_top()
        try:
            self._staging.sync()
        except OSError as error:
            what = f"write {shown(self.staging)} to disk"
            raise self._folders.broken(error, what) from error
        self._is_finished = True

    @property
    def has_appeared(self) -> bool:
        """Whether the folder stands at its destination, whatever failed since."""
        return self._staging.has_appeared

    def publish(self) -> None:
        """Let the folder appear at its destination, whole, and discard the staging folder.

        Raises:
            PolicyRefusedError: ``destination-exists``: something stands there by now.
            StoreError: the rename failed; or it stands, and only its own metadata is missing.
            ValueError: not finished.
        """
        if not self._is_finished:
            raise ValueError("only a finished scratch folder can be published")
        self._staging.publish()
        if self._root_of_all is not None:
            try:
                self._metadata.apply_open(self._staging.tree_fd, self._root_of_all)
                os.fsync(self._staging.tree_fd)
            except OSError as error:
                what = f"write the metadata of {shown(self.destination)}"
                raise place_error(error, what) from error
        self.abandon()

    def abandon(self) -> None:
        """Let the work module discard what is still in staging; once is enough.

        Before `publish` this is all there is, and the destination never existed.
        """
        self._folders.close()
        self._staging.close()

    def _check_building(self) -> None:
        if self._is_finished or self._folders.failed:
            raise ValueError("this scratch folder has failed or is finished")

    def _check_at_top(self) -> None:
        self._check_building()
        if len(self._folders):
            raise ValueError("a directory is still entered")

    def _check(self, entry: Entry, types: tuple[FileType, ...]) -> Frame:
        self._check_building()
        frame = self._folders.current
        self._folders.check_name(entry.name)
        check_entry(entry, entry.name, types=types)
        return frame

    @contextmanager
    def _unwound(self) -> Iterator[None]:
        """Let a refusal in between leave the folders that were entered for it."""
        try:
            yield
        except IntegrityError:
            while len(self._folders):
                self._folders.leave()
            raise

    def _write_new(self, name: bytes, data: bytes) -> None:
        try:
            fd = os.open(name, _NEW_FILE, 0o600, dir_fd=self._folders.current_fd)
            try:
                write_all(fd, data)
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise self._folders.not_made(error, name) from error

    def _check_sidecar(self, frame: Frame, entry: Entry) -> None:
        """Never let SQLite find a log beside a copied database (each was taken by itself)."""
        if entry.consistency is Consistency.SQLITE_BACKUP:
            beside = [entry.name + s for s in SIDECARS if is_name(entry.name + s)]
            if any(exists_at(frame.fd, log) for log in beside):
                raise self._mixed(entry.name)

    def _check_log(self, frame: Frame, entry: Entry, fd: int) -> None:
        """Refuse what SQLite would take for the log of a database beside it; a name is not enough.

        Work that is only named like a sidecar is restored like any other file.
        """
        if not entry.name.endswith(SIDECARS):
            return
        is_beside = any(
            entry.name.endswith(s) and entry.name.removesuffix(s) in frame.databases
            for s in SIDECARS
        )
        if is_beside and entry.size:
            first_bytes = os.pread(fd, _MAGIC_BYTES, 0)
            if is_sidecar(entry.name, first_bytes, entry.size):
                raise self._mixed(entry.name)

    def _check_linked_log(self, frame: Frame, entry: Entry, first: Linkable) -> None:
        if not entry.name.endswith(SIDECARS) or entry.type is not FileType.FILE:
            return
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(first.pooled, flags, dir_fd=self._staging.links_fd)
        except OSError as error:
            raise self._folders.not_made(error, entry.name) from error
        try:
            self._check_log(frame, entry, fd)
        finally:
            os.close(fd)

    def _mixed(self, name: bytes) -> IntegrityError:
        return IntegrityError(
            "sidecar",
            f"{self._folders.show(name)} and a database stand side by side that do not "
            "belong together",
            hint="restore the database alone, by its path",
        )

    def _fill(self, fd: int, entry: Entry, pieces: Iterable[bytes | int]) -> None:
        try:
            write_content(fd, entry.size, pieces)
        except WrongSizeError as error:
            raise self._wrong_size(entry, error.came) from error
        except WriteFailedError as error:
            raise self._not_written(error.cause, entry) from error.cause
        try:
            self._metadata.apply_open(fd, entry)
            if self._staging.syncs_each:
                os.fsync(fd)
        except OSError as error:
            raise self._not_written(error, entry) from error

    def _wrong_size(self, entry: Entry, came: int) -> IntegrityError:
        return IntegrityError(
            "file-size",
            f"{self._folders.show(entry.name)} has {entry.size} bytes by its listing, and "
            f"{came} or more came",
            hint="see what is damaged: durarepo verify --data",
        )

    def _not_written(self, error: OSError, entry: Entry) -> StoreError:
        return self._folders.broken(error, f"write {self._folders.show(entry.name)}")

    def _next_name(self) -> bytes:
        self._serial += 1
        return b"%d" % self._serial

    def _drop(self, frame: Frame, name: bytes, fd: int) -> None:
        """Take a file that failed out of the tree; the work module discards it later."""
        try:
            os.rename(
                name, self._next_name(), src_dir_fd=frame.fd, dst_dir_fd=self._staging.dropped_fd
            )
            os.ftruncate(fd, 0)
        except OSError:
            self._folders.failed = True  # it may still have its name, so nothing is published

    def _pool(self, frame: Frame, entry: Entry) -> Linkable | None:
        if entry.link_group is None:
            return None
        pooled = self._next_name()
        try:
            _link(frame.fd, entry.name, self._staging.links_fd, pooled)
        except OSError as error:
            if error.errno not in _NO_LINK:
                what = f"link {self._folders.show(entry.name)}"
                raise self._folders.broken(error, what) from error
            self._metadata.count("hard-link")
            return None
        return Linkable(owner=self, pooled=pooled, entry=entry)

    def _make_named(self, folder_fd: int, entry: Entry) -> bool:
        if entry.type is FileType.SYMLINK:
            os.symlink(entry.target or b"", entry.name, dir_fd=folder_fd)
            return True
        is_device = entry.type in DEVICES
        if is_device and not self._metadata.is_root:
            return False
        device = os.makedev(*entry.device) if is_device and entry.device else 0
        try:
            os.mknod(entry.name, _SPECIAL[entry.type] | 0o600, device, dir_fd=folder_fd)
        except PermissionError:
            if is_device:
                return False
            raise
        return True


def _note_database(frame: Frame, entry: Entry) -> None:
    if entry.consistency is Consistency.SQLITE_BACKUP:
        frame.databases.add(entry.name)


def _link(from_fd: int, name: bytes, to_fd: int, new: bytes) -> None:
    os.link(name, new, src_dir_fd=from_fd, dst_dir_fd=to_fd, follow_symlinks=False)
