"""Where a scratch folder may stand, and how it appears there: whole, durable, or not at all.

Holds the rules for a destination, the parent folder held by descriptor, and the two system
calls that Python does not offer. It creates and removes nothing but by the one rename.
Source: spec/format.md 10, spec/cli.md 3. Start at `open_place`, `publish_folder`, `sync_parent`.
"""

import ctypes
import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from durarepo.core.errors import ConfigurationError, DurarepoError, PolicyRefusedError, StoreError
from durarepo.core.limits import NAME_MAX_BYTES, PATH_MAX_BYTES
from durarepo.repository.scratch_mounts import Subtree, lies_in, subtree_of
from durarepo.store.atomic import refused_by_system, shown

RENAME_NOREPLACE = 1
PATH_ONLY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_LIBC = ctypes.CDLL(None, use_errno=True)

Identity = tuple[int, int]
"""Device and inode: what a folder is, whatever it is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A destination that may be made: its name, and its parent held open.

    ``parent`` is the parent's real path, for messages and for the record of unfinished work;
    every effect goes through ``parent_fd``, which the holder closes.
    """

    parent: bytes
    name: bytes
    parent_fd: int

    @property
    def path(self) -> bytes:
        """The destination's real path."""
        return os.path.join(self.parent, self.name)


_HINTS = {
    "io": "check the disk of the destination",
    "full": "free some space or choose a destination on a larger disk",
    "permission": "choose a destination that this user may write",
}


def place_error(error: OSError, what: str) -> StoreError:
    """Return the store error that says what the operating system refused at a destination.

    Args:
        error: the failed call.
        what: lower case, the step and its subject in quotes.
    """
    return refused_by_system(error, what, hints=_HINTS)


def open_place(destination: bytes, *, protected: Sequence[bytes]) -> Place:
    """Return the place for a new folder ``destination``, or refuse it; nothing is made.

    Args:
        destination: path; relative ones are taken from the working directory.
        protected: paths of every root, of the repository and of the keys. They need not exist.

    Raises:
        ConfigurationError: ``config.destination``: no usable path, or the parent is no folder.
        PolicyRefusedError: ``destination-exists``, ``destination-protected`` (it would lie in,
            be or contain a protected folder), ``destination-parent`` (anyone may rename there).
        StoreError: the parent cannot be read.

    Source: spec/cli.md 2, code 31.
    """
    parent, name = _split(destination)
    try:
        # Symlinks of the caller's own path are resolved once, here; afterwards none is followed.
        real = os.path.realpath(parent, strict=True)
        parent_fd, ancestors = _open_folder(real)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _no_parent(parent) from error
    except OSError as error:
        raise place_error(error, f"open the folder {shown(parent)}") from error
    place = Place(parent=real, name=name, parent_fd=parent_fd)
    try:
        _check_parent(place)
        _check_protected(place, ancestors, protected=protected)
        _check_absent(place)
    except BaseException:
        os.close(parent_fd)
        raise
    return place


def exists_at(folder_fd: int, name: bytes) -> bool:
    """Return whether ``name`` stands in the open folder; a symlink counts, wherever it points.

    Raises:
        StoreError: it cannot be told.
    """
    try:
        os.lstat(name, dir_fd=folder_fd)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise place_error(error, f"look for {shown(name)}") from error
    return True


def _destination_exists(place: Place) -> PolicyRefusedError:
    """Return the refusal to touch what already stands at the destination."""
    return PolicyRefusedError(
        "destination-exists",
        f"the destination {shown(place.path)} already exists",
        hint="name another with --scratch DIR, or delete that folder if it is not needed",
    )


def publish_folder(source_fd: int, source: bytes, place: Place) -> None:
    """Let the finished folder ``source`` appear as ``place``, replacing nothing.

    Raises:
        PolicyRefusedError: ``destination-exists``: something stands there by now.
        StoreError: the rename failed.
    """
    try:
        _rename_new(source_fd, source, place)
    except FileExistsError as error:
        raise _destination_exists(place) from error
    except OSError as error:
        raise place_error(error, f"publish {shown(place.path)}") from error


def sync_parent(place: Place) -> None:
    """Make the name of the folder durable that has appeared.

    Raises:
        StoreError: the fsync of its parent failed.
    """
    try:
        os.fsync(place.parent_fd)
    except OSError as error:
        raise place_error(error, f"make the name {shown(place.path)} durable") from error


def can_sync_disk() -> bool:
    """Return whether one call can make a whole file system durable here."""
    return _call("syncfs", -1) == errno.EBADF


def sync_disk(fd: int) -> None:
    """Make everything written to the file system of ``fd`` durable.

    Raises:
        OSError: something could not be written.
    """
    failed = _call("syncfs", fd)
    if failed:
        raise OSError(failed, os.strerror(failed))


def _call(function: str, *arguments: int | bytes) -> int:
    """Call the C library; the result is 0 or the error number."""
    if not hasattr(_LIBC, function):
        return errno.ENOSYS
    values = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_int(a) for a in arguments]
    return ctypes.get_errno() if getattr(_LIBC, function)(*values) else 0


def _rename_new(source_fd: int, source: bytes, place: Place) -> None:
    failed = _call("renameat2", source_fd, source, place.parent_fd, place.name, RENAME_NOREPLACE)
    if failed in (errno.ENOSYS, errno.EINVAL):
        # An old kernel or file system: the check and the rename are two steps there.
        if exists_at(place.parent_fd, place.name):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        os.rename(source, place.name, src_dir_fd=source_fd, dst_dir_fd=place.parent_fd)
    elif failed:
        raise OSError(failed, os.strerror(failed))


def _split(destination: bytes) -> tuple[bytes, bytes]:
    path = os.path.join(os.getcwdb(), destination).rstrip(b"/")
    parent, name = os.path.split(path)
    is_bad = name in (b"", b".", b"..") or len(name) > NAME_MAX_BYTES
    if not destination or b"\0" in destination or len(path) > PATH_MAX_BYTES or is_bad:
        raise ConfigurationError(
            "destination",
            f"the destination {shown(destination)} does not name a new folder",
            hint="give the path of a folder that does not exist yet, ending in its name",
        )
    return parent, name


def _no_parent(parent: bytes) -> DurarepoError:
    return ConfigurationError(
        "destination",
        f"the destination's parent {shown(parent)} is not an existing folder",
        hint="make the parent folder first, or choose another destination",
    )


def _open_folder(path: bytes) -> tuple[int, frozenset[Identity]]:
    """Open ``path`` one component at a time, following nothing; with all folders on the way."""
    fd = os.open(b"/", PATH_ONLY)
    ancestors = set()
    try:
        for name in [part for part in path.split(b"/") if part]:
            ancestors.add(identity_of(os.fstat(fd)))
            step = os.open(name, PATH_ONLY, dir_fd=fd)
            os.close(fd)
            fd = step
        ancestors.add(identity_of(os.fstat(fd)))
        return os.open(b".", READ_FOLDER, dir_fd=fd), frozenset(ancestors)
    finally:
        os.close(fd)


def identity_of(found: os.stat_result) -> Identity:
    """Return device and inode."""
    return found.st_dev, found.st_ino


def _check_parent(place: Place) -> None:
    mode = os.fstat(place.parent_fd).st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise PolicyRefusedError(
            "destination-parent",
            f"anyone may rename what lies in {shown(place.parent)}",
            hint="choose a destination whose parent others cannot write, or set its sticky bit",
        )


def _check_protected(
    place: Place, ancestors: frozenset[Identity], *, protected: Sequence[bytes]
) -> None:
    here = subtree_of(place.parent_fd)
    for path in protected:
        real = os.path.realpath(path)
        is_below = (real + b"/").startswith(place.path + b"/")
        if is_below or _identity_at(real) in ancestors or _shows_inside(here, real):
            raise PolicyRefusedError(
                "destination-protected",
                f"the destination {shown(place.path)} lies in, is or contains {shown(path)}",
                hint="choose a destination outside the roots, repositories, states and keys",
            )


def _shows_inside(here: Subtree | None, path: bytes) -> bool:
    """Return whether a mount shows some inside of the folder ``path`` as ``here``."""
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        there = subtree_of(fd)
    finally:
        os.close(fd)
    return here is not None and there is not None and lies_in(here, there)


def _check_absent(place: Place) -> None:
    if exists_at(place.parent_fd, place.name):
        raise _destination_exists(place)


def _identity_at(path: bytes) -> Identity | None:
    try:
        return identity_of(os.stat(path))
    except OSError:
        return None
