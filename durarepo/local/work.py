"""The work folder: database copies and staging, made and removed by name and identity only.

Besides `store/atomic.py` this is the only module that may remove a file, and it removes only
what this run, or a dead run that its journal names, has made. A name is written to the
journal before the thing exists and its identity right after, so a kill loses nothing.
Removal goes by descriptor, follows no symlink, crosses no mount and refuses all else.
Source: spec/format.md 12 (law 4). Start at `WorkFolder`.
"""

import json
import os
import re
import stat
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from durarepo.core.errors import PolicyRefusedError, StoreError
from durarepo.local.lock import boot_id
from durarepo.store.atomic import (
    HeldLock,
    append_line,
    iter_lines,
    make_folder,
    replace_small,
    shown,
    store_error,
)

_JOURNAL = b"made.jsonl"
_RUN = re.compile(rb"run-[0-9a-f]{32}\Z")
_SUFFIX = re.compile(r"[A-Za-z0-9._-]{0,64}\Z")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A folder that a run made; ``identity`` is None where a kill came before it was known."""

    path: bytes
    identity: tuple[int, int] | None
    boot: str

    def fits(self, status: os.stat_result, parent: os.stat_result) -> bool:
        """Return whether ``status`` is that folder; device numbers hold for one boot only."""
        if self.identity is None or not stat.S_ISDIR(status.st_mode):
            return False
        device, inode = self.identity
        same_device = status.st_dev == device if self.boot == boot_id() else True
        return status.st_ino == inode and same_device and status.st_dev == parent.st_dev


class WorkFolder:
    """``STATE/STREAM/work`` during one run; leaving the context removes what the run made."""

    def __init__(self, path: bytes, lock: HeldLock) -> None:
        """Prepare; nothing is made before it is needed.

        Args:
            path: absolute; made where it is missing.
            lock: the lock of the repository, held while this folder is used.
        """
        self._path = path
        self._lock = lock
        self._journal = os.path.join(path, _JOURNAL)
        self._made: dict[bytes, Made] = {}
        self._run: bytes | None = None
        self._files = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the run's own folder; stagings beside destinations stay unless discarded."""
        if self._run is not None:
            run, self._run = self._run, None
            self.discard(run)

    def run_folder(self) -> bytes:
        """Return the private folder of this run, 0700, made on first use.

        Raises:
            StoreError: it cannot be made.
            ValueError: the lock is not held.
        """
        if self._run is None:
            self._check_lock()
            make_folder(self._path)
            run = os.path.join(self._path, b"run-" + os.urandom(16).hex().encode("ascii"))
            self._note(Made(path=run, identity=None, boot=boot_id()))
            try:
                os.mkdir(run, 0o700)
            except OSError as error:
                raise store_error(error, "make the folder", run) from error
            self._adopt(run)
            self._run = run
        return self._run

    def new_file(self, suffix: str = "") -> bytes:
        """Return the path of a new empty file in the folder of this run, 0600.

        Args:
            suffix: ends the name; letters, digits, dot, dash, underscore.

        Raises:
            StoreError: it cannot be made.
        """
        path = self._next(suffix)
        try:
            os.close(os.open(path, _NEW, 0o600))
        except OSError as error:
            raise store_error(error, "make the file", path) from error
        return path

    def new_folder(self, suffix: str = "") -> bytes:
        """Return the path of a new empty folder in the folder of this run, 0700."""
        path = self._next(suffix)
        try:
            os.mkdir(path, 0o700)
        except OSError as error:
            raise store_error(error, "make the folder", path) from error
        return path

    def adopt_staging(self, path: bytes) -> None:
        """Record the new, empty folder ``path`` beside a destination as made by this run.

        Raises:
            PolicyRefusedError: ``not-ours``: it is no folder of this user, or not empty.
            StoreError: it cannot be looked at or recorded.
        """
        self._check_lock()
        make_folder(self._path)
        path = os.path.abspath(path)
        try:
            status = os.lstat(path)
            ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            if not ours or os.listdir(path):
                raise _not_ours(path)
        except OSError as error:
            raise store_error(error, "look at", path) from error
        self._adopt(path)

    def discard(self, path: bytes) -> None:
        """Remove what this run made: an adopted folder, or anything inside one or the run's.

        Something that is gone already is fine.

        Raises:
            PolicyRefusedError: ``not-ours``: this run did not make it, or it was swapped.
            StoreError: a part of it cannot be removed.
        """
        path = os.path.abspath(path)
        made = self._made.get(path)
        if made is not None:
            _remove_made(made)
            del self._made[path]
            append_line(self._journal, json.dumps({"gone": os.fsdecode(path)}).encode("ascii"))
            return
        owner = self._owner_of(path)
        if owner is None:
            raise _not_ours(path)
        _remove_inside(owner, path)

    def clean_after_kill(self) -> list[bytes]:
        """Remove what dead runs left, as far as the journal proves that they made it.

        Call it once, before anything is made.

        Returns:
            What was named but not removed: its identity is unknown or is another's.

        Raises:
            ValueError: the lock is not held, or this run has made something.
            StoreError: something cannot be removed; the journal keeps it.
        """
        self._check_lock()
        if self._made:
            raise ValueError("leftovers are cleaned before a run makes anything")
        left = [made for made in self._named().values() if not self._is_cleaned(made)]
        if os.path.lexists(self._journal):
            replace_small(self._journal, b"".join(_line_of(made) + b"\n" for made in left))
        return [made.path for made in left]

    def _is_cleaned(self, made: Made) -> bool:
        known = made if made.identity is not None else self._private(made)
        if known is not None and _is_removed(known):
            return True
        return not os.path.lexists(made.path)

    def _private(self, made: Made) -> Made | None:
        """Return ``made`` with its identity where the random name in this folder proves it."""
        folder, name = os.path.split(made.path)
        if folder != self._path or _RUN.match(name) is None:
            return None
        try:
            status = os.lstat(made.path)
        except OSError:
            return None
        return Made(path=made.path, identity=(status.st_dev, status.st_ino), boot=boot_id())

    def _next(self, suffix: str) -> bytes:
        if _SUFFIX.match(suffix) is None:
            raise ValueError("a suffix holds letters, digits, dots, dashes and underscores")
        self._files += 1
        return os.path.join(self.run_folder(), b"%06d" % self._files + suffix.encode("ascii"))

    def _adopt(self, path: bytes) -> None:
        try:
            status = os.lstat(path)
        except OSError as error:
            raise store_error(error, "look at", path) from error
        made = Made(path=path, identity=(status.st_dev, status.st_ino), boot=boot_id())
        self._note(made)
        self._made[path] = made

    def _note(self, made: Made) -> None:
        append_line(self._journal, _line_of(made))

    def _named(self) -> dict[bytes, Made]:
        """Return what the journal names and does not call gone; damaged lines name nothing."""
        named: dict[bytes, Made] = {}
        for line in iter_lines(self._journal):
            try:
                found = json.loads(line)
                if "gone" in found:
                    named.pop(os.fsencode(found["gone"]), None)
                    continue
                inode = found.get("inode")
                identity = None if inode is None else (int(found["device"]), int(inode))
                path = os.fsencode(found["made"])
                named[path] = Made(path=path, identity=identity, boot=str(found["boot"]))
            except (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError):
                continue
        return named

    def _owner_of(self, path: bytes) -> Made | None:
        for made in self._made.values():
            if path.startswith(made.path + b"/"):
                return made
        return None

    def _check_lock(self) -> None:
        if not self._lock.is_held:
            raise ValueError("the work folder is used only under the lock")


def _line_of(made: Made) -> bytes:
    line: dict[str, object] = {"made": os.fsdecode(made.path), "boot": made.boot}
    if made.identity is not None:
        line["device"], line["inode"] = made.identity
    return json.dumps(line).encode("ascii")


def _not_ours(path: bytes) -> PolicyRefusedError:
    return PolicyRefusedError(
        "not-ours",
        f"{shown(path)} was not made by this run and is not removed",
        hint="look at it, and remove it by hand if it is not needed",
    )


def _is_removed(made: Made) -> bool:
    try:
        _remove_made(made)
    except PolicyRefusedError:
        return False
    return True


def _remove_made(made: Made) -> None:
    """Remove a whole folder that was made, if it is still that one."""
    parent_path, name = os.path.split(made.path)
    try:
        parent = os.open(parent_path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        raise store_error(error, "open the folder", parent_path) from error
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not made.fits(status, os.fstat(parent)):
            raise _not_ours(made.path)
        folder = _open_made(parent, name, made)
        try:
            _empty(folder)
        finally:
            os.close(folder)
        os.rmdir(name, dir_fd=parent)
        os.fsync(parent)
    except FileNotFoundError:
        return
    except OSError as error:
        raise store_error(error, "remove", made.path) from error
    finally:
        os.close(parent)


def _open_made(parent: int, name: bytes, made: Made) -> int:
    _make_writable(parent, name)
    folder = os.open(name, _FOLDER, dir_fd=parent)
    if made.fits(os.fstat(folder), os.fstat(parent)):
        return folder
    os.close(folder)
    raise _not_ours(made.path)


def _remove_inside(owner: Made, path: bytes) -> None:
    """Remove one name below a folder that was made, walking to it by descriptor."""
    *above, name = path[len(owner.path) + 1 :].split(b"/")
    parent_path, top = os.path.split(owner.path)
    try:
        outer = os.open(parent_path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            folder = base = _open_made(outer, top, owner)
        finally:
            os.close(outer)
        try:
            for part in above:
                inner = os.open(part, _FOLDER, dir_fd=folder)
                if folder != base:
                    os.close(folder)
                folder = inner
            _remove_name(base, folder, name)
        finally:
            if folder != base:
                os.close(folder)
            os.close(base)
    except FileNotFoundError:
        return
    except OSError as error:
        raise store_error(error, "remove", path) from error


def _remove_name(base: int, folder: int, name: bytes) -> None:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(name, dir_fd=folder)
        return
    moved = _move_up(folder, name, base)
    inner = os.open(moved, _FOLDER, dir_fd=base)
    try:
        _empty(inner)
    finally:
        os.close(inner)
    os.rmdir(moved, dir_fd=base)


def _empty(top: int) -> None:
    """Remove all that the open folder ``top`` holds, however deep, with few descriptors.

    Each folder is first renamed to a new name directly in ``top``. A mount point cannot be
    renamed, so nothing behind a mount is ever touched; and nothing has to be held open.
    """
    while True:
        names = os.listdir(top)
        if not names:
            return
        for name in names:
            status = os.stat(name, dir_fd=top, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                _flatten(top, os.fsencode(name))
            else:
                os.unlink(name, dir_fd=top)


def _flatten(top: int, name: bytes) -> None:
    """Remove the folder ``name`` of ``top``; folders inside it move up into ``top``."""
    moved = _move_up(top, name, top)
    inner = os.open(moved, _FOLDER, dir_fd=top)
    try:
        for found in os.listdir(inner):
            status = os.stat(found, dir_fd=inner, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                _move_up(inner, os.fsencode(found), top)
            else:
                os.unlink(found, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(moved, dir_fd=top)


def _move_up(folder: int, name: bytes, top: int) -> bytes:
    """Rename a folder into ``top`` under a new name, made writable for its owner first."""
    if os.stat(name, dir_fd=folder, follow_symlinks=False).st_dev != os.fstat(top).st_dev:
        raise StoreError("mounted", f"a file system is mounted on {shown(name)}")
    _make_writable(folder, name)
    moved = b".gone-" + os.urandom(16).hex().encode("ascii")
    os.rename(name, moved, src_dir_fd=folder, dst_dir_fd=top)
    return moved


def _make_writable(parent: int, name: bytes) -> None:
    """Give a folder that was made here back to its owner; a restore may have closed it."""
    held = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
    try:
        if stat.S_IMODE(os.fstat(held).st_mode) & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(b"/proc/self/fd/%d" % held, 0o700)
    finally:
        os.close(held)
