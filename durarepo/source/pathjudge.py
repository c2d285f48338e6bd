"""The path rules applied to a tree: by name, by inode, by what lies in a folder, by its owner.

Asks the kernel for types, inodes and listings only, and opens nothing but `.durarepoignore` and
`CACHEDIR.TAG`, of which the first says what to leave out and the second whether it is valid.
A file that has more than one name is judged by all of them: the first such file makes every
root be looked through for names that are left out.
Source: spec/exclusion.md 2. Start at `PathJudge`.
"""

import os
import stat as stat_bits
from collections.abc import Sequence

from durarepo.policy.decide import ContentPolicy
from durarepo.policy.ignorefile import (
    IGNORE_MAX_BYTES,
    IGNORE_NAME,
    RULE_IGNORE,
    IgnoreFile,
    is_ignored,
    parse_ignore,
)
from durarepo.policy.pathrules import is_secret, shared_path_rules
from durarepo.policy.rules import MarkRule
from durarepo.source.opening import Identity

RULE_PATH_SECRET = "path-secret"  # noqa: S105 - the id of a rule

_STORE_FILES_MAX = 20_000
_LEVELS_MAX = 64
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class PathJudge:
    """Judges names of the roots of one run; is asked by the walk before anything is opened."""

    def __init__(
        self, roots: Sequence[bytes], *, home: bytes | None, contents: ContentPolicy | None = None
    ) -> None:
        """Prepare.

        Args:
            roots: absolute real paths of the folders that are walked.
            home: the home folder whose well-known stores are looked up, in a root or not.
            contents: tells whether a name itself holds a credential; not asked when None.
        """
        self._rules = shared_path_rules()
        self._roots = tuple(roots)
        self._contents = contents
        self._stores: dict[Identity, str] = {}
        self._named: dict[Identity, str] | None = None
        self._ignore_files: dict[bytes, IgnoreFile | None] = {}
        self._ignoring: tuple[bytes, list[IgnoreFile]] = (b"", [])
        self.marked: dict[bytes, str] = {}
        if home is not None:
            self._look_up_stores(home)

    def __call__(self, folder: bytes, name: bytes, stat: os.stat_result) -> str | None:
        """Return the id of the rule that leaves ``name`` in ``folder`` out, or None."""
        is_folder = stat_bits.S_ISDIR(stat.st_mode)
        rule = self._rules.find(folder, name, is_folder=is_folder)
        if rule is not None:
            return rule.id
        if is_folder:
            mark = self._mark(folder, name)
            if mark is not None:
                self.marked[_joined(folder, name)] = mark.id
                return mark.id
        else:
            by_inode = self._by_inode(stat)
            if by_inode is not None:
                return by_inode
        if self.holds_secret(name):
            return RULE_PATH_SECRET
        return RULE_IGNORE if self._is_ignored(folder, name, is_folder=is_folder) else None

    def holds_secret(self, name: bytes) -> bool:
        """Return whether a name itself holds a credential of known form."""
        return self._contents is not None and self._contents.holds_secret(name)

    # --- by inode ---

    def _by_inode(self, stat: os.stat_result) -> str | None:
        identity = (stat.st_dev, stat.st_ino)
        if identity in self._stores:
            return self._stores[identity]
        if stat.st_nlink <= 1 or not stat_bits.S_ISREG(stat.st_mode):
            return None
        if self._named is None:
            self._named = {}
            for root in self._roots:
                self._name_inodes(root, under=None, level=0)
        return self._named.get(identity)

    def _look_up_stores(self, home: bytes) -> None:
        paths = [os.path.join(home, os.fsencode(one)) for _, one in self._rules.well_known()]
        for folder in (home, os.path.join(home, b".ssh")):
            paths += [_joined(folder, name) for name in _listed(folder)]
        for path in paths:
            folder, _, name = path.rpartition(b"/")
            # A folder that only has the name of a file is work, and so is all that lies in it.
            rule = self._rules.find(folder or b"/", name, is_folder=_is_folder(path))
            if rule is not None and is_secret(rule):
                self._note_store(path, rule.id, level=0)

    def _note_store(self, path: bytes, rule: str, *, level: int) -> None:
        try:
            stat = os.lstat(path)
            if stat_bits.S_ISREG(stat.st_mode):
                self._stores.setdefault((stat.st_dev, stat.st_ino), rule)
            elif stat_bits.S_ISDIR(stat.st_mode) and level < _LEVELS_MAX:
                for name in os.listdir(path):
                    if len(self._stores) < _STORE_FILES_MAX:
                        self._note_store(_joined(path, name), rule, level=level + 1)
        except OSError:
            return  # what is not there, or not ours to see, has no inode here

    def _name_inodes(self, folder: bytes, *, under: str | None, level: int) -> None:
        """Note every inode that has, somewhere, a name that is left out as secret."""
        named = self._named if self._named is not None else {}
        try:
            entries = list(os.scandir(folder)) if level < _LEVELS_MAX else []
        except OSError:
            return
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            rule = self._rules.find(folder, entry.name, is_folder=is_folder)
            if rule is not None and not is_secret(rule):
                continue
            found = under or (rule.id if rule is not None else None)
            if is_folder:
                self._name_inodes(entry.path, under=found, level=level + 1)
            elif found is not None and entry.is_file(follow_symlinks=False):
                stat = entry.stat(follow_symlinks=False)
                if stat.st_nlink > 1:
                    named.setdefault((stat.st_dev, stat.st_ino), found)

    # --- by what lies in a folder ---

    def _mark(self, folder: bytes, name: bytes) -> MarkRule | None:
        path = _joined(folder, name)
        for mark in self._rules.marks_for(name):
            if _is_marked(mark, folder, path):
                return mark
        return None

    # --- by its owner ---

    def _is_ignored(self, folder: bytes, name: bytes, *, is_folder: bool) -> bool:
        if self._ignoring[0] != folder:
            found = [file for one in self._folders(folder) if (file := self._ignore_file(one))]
            self._ignoring = (folder, found)
        files = self._ignoring[1]
        return bool(files) and is_ignored(files, _joined(folder, name), is_folder=is_folder)

    def _folders(self, folder: bytes) -> list[bytes]:
        """Return the folders from the root down to ``folder``."""
        found = [folder]
        while found[-1] not in self._roots and len(found[-1]) > 1:
            found.append(os.path.dirname(found[-1]))
        return found[::-1]

    def _ignore_file(self, folder: bytes) -> IgnoreFile | None:
        if folder not in self._ignore_files:
            data = _read_start(_joined(folder, IGNORE_NAME), IGNORE_MAX_BYTES)
            self._ignore_files[folder] = None if data is None else parse_ignore(data, folder)
        return self._ignore_files[folder]


def _joined(folder: bytes, name: bytes) -> bytes:
    return folder + name if folder == b"/" else b"%s/%s" % (folder, name)


def _is_marked(mark: MarkRule, folder: bytes, path: bytes) -> bool:
    if mark.beside:
        return any(_exists(folder, one) for one in mark.beside)
    if mark.inside:
        return all(_exists(path, one) for one in mark.inside)
    if mark.signature:
        tag = _read_start(_joined(path, os.fsencode(mark.any_inside[0])), len(mark.signature))
        return tag == mark.signature
    return any(_exists(path, one) for one in mark.any_inside)


def _is_folder(path: bytes) -> bool:
    try:
        return stat_bits.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _listed(folder: bytes) -> list[bytes]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _exists(folder: bytes, name: str) -> bool:
    try:
        os.lstat(_joined(folder, os.fsencode(name)))
    except OSError:
        return False
    return True


def _read_start(path: bytes, limit: int) -> bytes | None:
    """Return the first bytes of a regular file; None where there is none to read."""
    try:
        if not stat_bits.S_ISREG(os.lstat(path).st_mode):
            return None
        fd = os.open(path, _FLAGS)
    except OSError:
        return None
    try:
        return os.read(fd, limit) if stat_bits.S_ISREG(os.fstat(fd).st_mode) else None
    except OSError:
        return None
    finally:
        os.close(fd)
