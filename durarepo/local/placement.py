"""Keys outside every root: whether two paths can reach the same files, by any way known here.

It compares by device and inode along every step of a path, symlinks included, by the subtree
of a file system that a mount makes visible, and by link counts. It opens no key file.
Source: spec/threat-model.md (AICEP 10.5.5). Start at `check_outside`.
"""

import os
import re
import shlex
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from durarepo.core.errors import KeyMaterialError
from durarepo.store.atomic import shown

_LINKS_MAX = 40
_ESCAPE = re.compile(rb"\\([0-7]{3})")

Identity = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mount:
    """One line of the mount table: which subtree of which device shows where."""

    id: int
    device: bytes
    subtree: bytes
    point: bytes


@dataclass(frozen=True, slots=True)
class _Region:
    """A subtree of a file system, named without regard to where it is mounted."""

    device: bytes
    path: bytes

    def meets(self, other: "_Region") -> bool:
        """Return whether one of the two lies in the other."""
        return self.device == other.device and (
            is_below(self.path, other.path) or is_below(other.path, self.path)
        )


def is_below(path: bytes, folder: bytes) -> bool:
    """Return whether ``path`` is ``folder`` or below it, by text alone."""
    return path == folder or path.startswith(folder.rstrip(b"/") + b"/")


def check_outside(path: bytes, roots: Sequence[bytes], *, what: str, hint: str = "") -> None:
    """Refuse ``path`` if a backup of any root could read it, before anything in it is read.

    Args:
        path: a key file or a folder of key files; it need not exist yet.
        roots: what is backed up, as configured; missing ones are compared by text.
        what: the noun for the message, such as ``the keys folder``.
        hint: what to do; by default the commands that move the keys away.

    Raises:
        KeyMaterialError: ``placement``: it equals, lies under, contains, is symlinked or
            mounted into a root, or a key file has a second hard link; ``placement-unknown``:
            the places cannot be looked at.

    Source: AICEP 10.5.5.
    """
    try:
        mounts = _mounts()
        for each in (path, *_files_of(path)):
            if _has_second_link(each):
                raise _hard_linked(each, what)
            for root in roots:
                if _can_reach(os.path.abspath(root), os.path.abspath(each), mounts):
                    raise _refusal(path, root, roots, what, hint)
    except OSError as error:
        raise KeyMaterialError(
            "placement-unknown",
            f"cannot tell whether {what} {shown(path)} lies outside the roots: {error.strerror}",
        ) from error


def _can_reach(root: bytes, path: bytes, mounts: dict[int, _Mount]) -> bool:
    if is_below(path, root) or is_below(root, path):
        return True
    root_steps, path_steps = list(_steps(root)), list(_steps(path))
    if root_steps[-1][1] is not None and root_steps[-1][1] in {step[1] for step in path_steps}:
        return True
    if path_steps[-1][1] is not None and path_steps[-1][1] in {step[1] for step in root_steps}:
        return True
    shared = _regions(root, mounts)
    return any(own.meets(other) for own in _regions(path, mounts) for other in shared)


def _steps(path: bytes) -> Iterator[tuple[bytes, Identity | None]]:
    """Yield each place that resolving ``path`` passes, with its identity; None where missing.

    Symlinks are followed by hand, so that a link which leads through a root and out of it
    again is seen. The last step is the end of the path.
    """
    at, rest, links = b"/", _components(path), 0
    yield at, _identity(os.stat(at))
    while rest:
        name = rest.pop()
        following = os.path.dirname(at) if name == b".." else os.path.join(at, name)
        try:
            status = os.lstat(following)
        except (FileNotFoundError, NotADirectoryError):
            yield following, None
            at = following
            continue
        if stat.S_ISLNK(status.st_mode) and links < _LINKS_MAX:
            links += 1
            yield following, _identity(status)
            target = os.readlink(following)
            rest.extend(_components(target))
            at = b"/" if target.startswith(b"/") else at
            yield at, _identity(os.stat(at))
            continue
        at = following
        yield at, _identity(status)


def _components(path: bytes) -> list[bytes]:
    return [part for part in reversed(path.split(b"/")) if part not in {b"", b"."}]


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def _mounts() -> dict[int, _Mount]:
    """Return the mount table by mount id; empty where there is no /proc."""
    try:
        with open("/proc/self/mountinfo", "rb") as table:
            lines = table.read().splitlines()
    except FileNotFoundError:
        return {}
    mounts = {}
    for line in lines:
        number, _, device, subtree, point = line.split(b" ")[:5]
        mount = _Mount(
            id=int(number), device=device, subtree=_unescaped(subtree), point=_unescaped(point)
        )
        mounts[mount.id] = mount
    return mounts


def _unescaped(field: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 8)]), field)


def _regions(path: bytes, mounts: dict[int, _Mount]) -> list[_Region]:
    """Return the subtrees that ``path`` shows: its own and those mounted below it."""
    real = os.path.realpath(path)
    there, missing = real, b""
    while not os.path.exists(there):
        there, name = os.path.split(there)
        missing = os.path.join(name, missing) if missing else name
    own = mounts.get(_mount_id(there)) if mounts else None
    regions = [
        _Region(mount.device, mount.subtree)
        for mount in mounts.values()
        if is_below(mount.point, real)
    ]
    if own is not None:
        inside = os.path.relpath(os.path.join(there, missing), own.point)
        regions.append(_Region(own.device, os.path.normpath(os.path.join(own.subtree, inside))))
    return regions


def _mount_id(path: bytes) -> int:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        with open(f"/proc/self/fdinfo/{descriptor}", "rb") as facts:
            for line in facts:
                if line.startswith(b"mnt_id:"):
                    return int(line[7:])
    finally:
        os.close(descriptor)
    return -1


def _files_of(path: bytes) -> list[bytes]:
    """Return what lies directly in the folder ``path``; nothing for a file."""
    try:
        return [os.path.join(path, name) for name in sorted(os.listdir(path))]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _has_second_link(path: bytes) -> bool:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def _hard_linked(path: bytes, what: str) -> KeyMaterialError:
    old = shlex.quote(os.fsdecode(path))
    return KeyMaterialError(
        "placement",
        f"{shown(path)} of {what} has a second hard link, which may lie in a root",
        hint=f"find / -xdev -samefile {old}; cp -p {old} {old}.new && mv {old}.new {old}",
    )


def _refusal(
    path: bytes, root: bytes, roots: Sequence[bytes], what: str, hint: str
) -> KeyMaterialError:
    return KeyMaterialError(
        "placement",
        f"{what} {shown(path)} can be reached from the root {shown(root)}",
        hint=hint or _way_out(path, root, roots),
    )


def _way_out(path: bytes, root: bytes, roots: Sequence[bytes]) -> str:
    safe = _safer_folder(path, roots)
    if safe is None:
        hint = "back up a folder that does not hold the keys, or name one outside of it for the "
        hint += "keys, of your own and 0700: export DURAREPO_KEYS=FOLDER"
    else:
        old, new = shlex.quote(os.fsdecode(path)), shlex.quote(os.fsdecode(safe))
        target = shlex.quote(os.fsdecode(os.path.join(safe, os.path.basename(path))))
        hint = f"mkdir -p -m 700 {new} && mv {old} {target}; export DURAREPO_KEYS={new}"
        moves_root = is_below(os.path.abspath(root), os.path.abspath(path))
        if moves_root or not os.path.lexists(path):
            hint = f"mkdir -p -m 700 {new}; export DURAREPO_KEYS={new}"
    return hint


def _safer_folder(path: bytes, roots: Sequence[bytes]) -> bytes | None:
    """Return a folder outside all roots that this user can make, and that nobody cleans up."""
    candidates = [b"/etc/durarepo/keys"] if os.geteuid() == 0 else []
    candidates += [
        os.path.join(os.path.dirname(os.path.abspath(root)), b".durarepo-keys") for root in roots
    ]
    taken = [os.path.abspath(root) for root in roots] + [os.path.abspath(path)]
    for candidate in candidates:
        is_apart = not any(is_below(candidate, one) or is_below(one, candidate) for one in taken)
        if is_apart and _can_make(candidate):
            return candidate
    return None


def _can_make(folder: bytes) -> bool:
    """Return whether this user can make a folder, and those above it that are missing."""
    there = folder
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there) or os.stat(there).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return False
    return os.access(there, os.W_OK | os.X_OK)
