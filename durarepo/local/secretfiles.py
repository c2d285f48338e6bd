"""Key files: read only where nobody else can read or swap them, written once and never over.

The path is walked from the root one component at a time by descriptor, so what was checked is
what is read. A symlink on the way is followed only if root or this user made it in a folder
that no other can change; the file itself is never a symlink. It holds no key format.
Source: spec/threat-model.md (AICEP 10.5.5). Start at `read_secret`.
"""

import errno
import os
import stat
import struct
from dataclasses import dataclass

from durarepo.core.errors import KeyMaterialError
from durarepo.store.atomic import (
    UnfinishedFile,
    make_folder,
    move_small,
    read_up_to,
    shown,
)

SECRET_MAX_BYTES = 64 * 1024
_LINKS_MAX = 40
_PATH_ONLY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

_ACL_HEADER = struct.Struct("<I")
_ACL_ENTRY = struct.Struct("<HHI")
_ACL_GRANTS = frozenset({0x02, 0x08, 0x10})  # named user, named group, mask
_ACL_NAMED = frozenset({0x02, 0x08})
_ACL_WRITE = 2


def read_secret(path: bytes) -> bytes:
    """Return the bytes of the key file ``path`` if only its owner can reach it.

    Args:
        path: absolute path of a regular file of at most 64 KiB.

    Returns:
        All its bytes; wrap them in `durarepo.core.secret.Secret` at once.

    Raises:
        KeyMaterialError: ``missing``; ``unreadable``; ``linked`` (a symlink, a second hard
            link or no regular file); ``owner``; ``acl``; ``mode``; ``size``; ``folder-mode``
            (a folder on the way can be changed by others).

    Source: AICEP 10.5.5.
    """
    folder, name = os.path.split(os.path.abspath(path))
    parent = _open_checked(folder, path)
    try:
        descriptor = _open_key(parent, name, path)
    finally:
        os.close(parent)
    try:
        _check_file(descriptor, path)
        data = read_up_to(descriptor, SECRET_MAX_BYTES + 1, 0)
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(descriptor)
    if len(data) > SECRET_MAX_BYTES:
        raise KeyMaterialError(
            "size", f"the key file {shown(path)} is longer than {SECRET_MAX_BYTES} bytes"
        )
    return data


def write_secret_new(path: bytes, data: bytes) -> None:
    """Create the key file ``path``, 0600 in a 0700 folder, whole and durable.

    Args:
        path: absolute; missing folders are made, 0700.
        data: at most 64 KiB.

    Raises:
        KeyMaterialError: ``exists``: something of that name is there and stays;
            ``folder-mode``, ``acl``: the folder is not this user's alone.
        StoreError: it cannot be written; nothing of it is there.
        ValueError: the data are too long.
    """
    if len(data) > SECRET_MAX_BYTES:
        raise ValueError(f"a key file is at most {SECRET_MAX_BYTES} bytes")
    folder, name = os.path.split(os.path.abspath(path))
    parent = _open_for_new(folder, path)
    try:
        with UnfinishedFile(parent, folder) as file:
            file.write(data)
            if not file.publish(parent, name):
                raise _exists(path)
    finally:
        os.close(parent)


def rename_secret(path: bytes, name: bytes) -> None:
    """Give the key file ``path`` another name in its folder, durable on return.

    The caller holds the lock of the run: nobody else renames here.

    Raises:
        KeyMaterialError: ``exists``: something has that name and stays; ``missing``;
            ``folder-mode``, ``acl``: the folder is not this user's alone.
        StoreError: it cannot be renamed; it stays as it is.
    """
    folder = os.path.dirname(os.path.abspath(path))
    os.close(_open_for_new(folder, path))
    target = os.path.join(folder, name)
    if os.path.lexists(target):
        raise _exists(target)
    if not move_small(path, name):
        raise _missing(path)


def prepare_secret_folder(folder: bytes) -> None:
    """Make a folder for key files, 0700, or find that one is there that may hold them.

    Raises:
        KeyMaterialError: ``folder-mode``, ``acl``: it is not this user's alone.
        StoreError: it cannot be made.
    """
    folder = os.path.abspath(folder)
    os.close(_open_for_new(folder, folder))


def _open_for_new(folder: bytes, path: bytes) -> int:
    if not os.path.isdir(folder):
        make_folder(folder)
    checked = _open_checked(folder, path)
    try:
        if stat.S_IMODE(os.fstat(checked).st_mode) & _OTHERS:
            raise _folder_mode(folder, path)
        if any(tag in _ACL_GRANTS for tag, _ in _acl(checked, path, kind="default")):
            raise _acl_refused(folder)  # the new file would inherit the grant
        return os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=checked)
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(checked)


@dataclass(slots=True)
class _Walk:
    """Where a walk stands: an open folder, its path, and the components still to go."""

    descriptor: int
    at: bytes
    rest: list[bytes]
    links: int = 0


def _open_checked(folder: bytes, subject: bytes) -> int:
    """Return an O_PATH descriptor of ``folder``, each step of the way to it checked."""
    walk = _Walk(os.open(b"/", _PATH_ONLY | os.O_DIRECTORY), b"/", _components(folder))
    try:
        _check_folder(walk, subject)
        while walk.rest:
            _step(walk, subject)
            _check_folder(walk, subject)
    except OSError as error:
        os.close(walk.descriptor)
        raise _unreadable(subject, error) from error
    except BaseException:
        os.close(walk.descriptor)
        raise
    return walk.descriptor


def _components(path: bytes) -> list[bytes]:
    """Return the components in reverse, the next one last."""
    return [part for part in reversed(path.split(b"/")) if part not in {b"", b"."}]


def _step(walk: _Walk, subject: bytes) -> None:
    name = walk.rest.pop()
    try:
        found = os.open(name, _PATH_ONLY, dir_fd=walk.descriptor)
    except FileNotFoundError as error:
        raise _missing(subject) from error
    except OSError as error:
        raise _unreadable(subject, error) from error
    status = os.fstat(found)
    if stat.S_ISDIR(status.st_mode):
        _enter(walk, found, name)
        return
    try:
        if not stat.S_ISLNK(status.st_mode):
            raise _missing(subject)
        walk.links += 1
        if walk.links > _LINKS_MAX or status.st_uid not in {0, os.geteuid()}:
            raise _linked(subject)
        target = os.readlink(b"", dir_fd=found)
    finally:
        os.close(found)
    walk.rest.extend(_components(target))
    if target.startswith(b"/"):
        _enter(walk, os.open(b"/", _PATH_ONLY | os.O_DIRECTORY), b"/")


def _enter(walk: _Walk, descriptor: int, name: bytes) -> None:
    os.close(walk.descriptor)
    walk.descriptor = descriptor
    walk.at = os.path.join(walk.at, name)


def _check_folder(walk: _Walk, subject: bytes) -> None:
    """Refuse a folder in which another user could put or rename something.

    A sticky folder of root or of this user (``/tmp``) may be on the way, but may not hold
    the key file itself.
    """
    status = os.fstat(walk.descriptor)
    if status.st_uid not in {0, os.geteuid()}:
        raise _folder_mode(walk.at, subject)
    for tag, rights in _acl(walk.descriptor, subject):
        if tag in _ACL_NAMED and rights & _ACL_WRITE:
            raise _acl_refused(walk.at)
    may_pass = bool(walk.rest) and bool(status.st_mode & stat.S_ISVTX)
    if status.st_mode & _OTHERS_WRITE and not may_pass:
        raise _folder_mode(walk.at, subject)


def _open_key(parent: int, name: bytes, path: bytes) -> int:
    try:
        return os.open(name, _READ, dir_fd=parent)
    except FileNotFoundError as error:
        raise _missing(path) from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _linked(path) from error
        raise _unreadable(path, error) from error


def _check_file(descriptor: int, path: bytes) -> None:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        raise _linked(path)
    if status.st_uid not in {0, os.geteuid()}:
        raise KeyMaterialError(
            "owner",
            f"the key file {shown(path)} belongs to user {status.st_uid}",
            hint=f"chown it to user {os.geteuid()}",
        )
    if any(tag in _ACL_GRANTS for tag, _ in _acl(descriptor, path)):
        raise _acl_refused(path)
    mode = stat.S_IMODE(status.st_mode)
    if mode & _OTHERS:
        raise KeyMaterialError(
            "mode",
            f"the key file {shown(path)} has mode {mode:04o}, 0600 is needed",
            hint="chmod 600 the file; if others could read it, make a new stream",
        )


def _acl(descriptor: int, subject: bytes, *, kind: str = "access") -> list[tuple[int, int]]:
    """Return tag and rights of each entry of the access list; none where there is no list."""
    try:
        raw = os.getxattr(b"/proc/self/fd/%d" % descriptor, f"system.posix_acl_{kind}")
    except OSError as error:
        if error.errno in {errno.ENODATA, errno.EOPNOTSUPP, errno.ENOENT}:
            return []
        raise _unreadable(subject, error) from error
    entries = raw[_ACL_HEADER.size :]
    if len(entries) % _ACL_ENTRY.size:
        raise _acl_refused(subject)
    return [(tag, rights) for tag, rights, _ in _ACL_ENTRY.iter_unpack(entries)]


def _exists(path: bytes) -> KeyMaterialError:
    return KeyMaterialError(
        "exists",
        f"the key file {shown(path)} exists and is not overwritten",
        hint="move it away first if a new one is meant",
    )


def _missing(path: bytes) -> KeyMaterialError:
    return KeyMaterialError(
        "missing",
        f"there is no key file {shown(path)}",
        hint="put it back from your copy of the keys; DURAREPO_KEYS names the folder of all keys",
    )


def _linked(path: bytes) -> KeyMaterialError:
    return KeyMaterialError(
        "linked",
        f"the key file {shown(path)} is a link, has a second name, or is no regular file",
        hint="put a plain file with one name in its place",
    )


def _acl_refused(path: bytes) -> KeyMaterialError:
    return KeyMaterialError(
        "acl",
        f"an access list of {shown(path)} grants others a right",
        hint="setfacl -b the file or folder; if others could read the key, make a new stream",
    )


def _folder_mode(folder: bytes, path: bytes) -> KeyMaterialError:
    return KeyMaterialError(
        "folder-mode",
        f"the folder {shown(folder)} of the key file {shown(path)} is not this user's alone",
        hint="chown and chmod 700 the folder; those above it must not be writable by others",
    )


def _unreadable(path: bytes, error: OSError) -> KeyMaterialError:
    said = os.strerror(error.errno).lower() if error.errno else "unknown error"
    return KeyMaterialError("unreadable", f"cannot read the key file {shown(path)}: {said}")
