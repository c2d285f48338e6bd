"""Folders that a mark in them left out, looked at from outside: how much is it, and is it work.

An agent could mark a folder and so hide its work from its own backup. Two things tell, whatever
the files are called and however deep they lie: source text where the tool of the mark puts none,
and names that were not there when the folder was told of (`markednames.py`). Names and sizes are
looked at; opened is only what is new, to see whether a tool made it.
Source: spec/exclusion.md 9, PEP 405, Cargo, Maven and conda documentation. Start at `look_at`.
"""

import hashlib
import os
from collections.abc import Collection
from dataclasses import dataclass

from durarepo.source.markednames import made_by_tools, shape_of

_SHORT = 8
_NAMES_ASKED = 20_000
"""So many new names are looked into; the others count as made by nobody knows whom."""

_WORK_SUFFIXES = tuple(
    b"." + one
    for one in (
        *(b"py", b"ipynb", b"rs", b"go", b"c", b"h", b"cc", b"cpp", b"hpp", b"java", b"kt"),
        *(b"js", b"mjs", b"ts", b"tsx", b"jsx", b"vue", b"rb", b"php", b"swift", b"scala"),
        *(b"sh", b"sql", b"r", b"jl", b"lua", b"ex", b"exs", b"md", b"rst", b"tex", b"org"),
        *(b"docx", b"odt", b"xlsx", b"jsonl"),
    )
)
_TOOL_FOLDERS = {
    "mark-pyvenv": frozenset({b"bin", b"lib", b"lib64", b"include", b"share", b"Scripts", b"etc"}),
    "mark-conda": frozenset(
        {
            *(b"bin", b"lib", b"lib64", b"include", b"share", b"etc", b"conda-meta", b"pkgs"),
            *(b"envs", b"ssl", b"man", b"sbin", b"libexec", b"condabin", b"compiler_compat"),
            *(b"shell", b"var", b"mkspecs", b"plugins", b"qml", b"translations", b"phrasebooks"),
            *(b"doc", b"python-scripts", b"fonts", b"resources"),
        }
    ),
    "mark-target": frozenset(
        {
            *(b"debug", b"release", b"doc", b"package", b"tmp", b"classes", b"test-classes"),
            *(b"generated-sources", b"generated-test-sources", b"site", b"maven-status"),
            *(b"maven-archiver", b"surefire-reports", b"stale", b"criterion", b"nextest"),
        }
    ),
}
_TOOL_FOLDERS["mark-cachedir"] = _TOOL_FOLDERS["mark-target"]
_OF_PACKAGES = frozenset({"mark-vendor", "mark-mix", "mark-chromium", "mark-firefox"})
"""Marks of folders that hold the source text of packages, or a program's own files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedFolder:
    """A folder left out by a mark, as it is told of.

    ``works`` counts files that look like somebody's work by their suffix, and folders that
    cannot be listed; ``grown`` counts files of names that were not there at the last complete
    snapshot and that no tool is known to have made, 0 where the folder itself is new;
    ``is_doubled`` is whether it is twice as large as when it was last told of.
    """

    path: bytes
    rule: str
    files: int
    bytes: int
    works: int
    grown: int
    is_new: bool
    is_doubled: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at a folder gave: what is told of it, and the shapes of all names in it.

    A shape is held as a digest of eight bytes.
    """

    folder: MarkedFolder
    shapes: frozenset[bytes]


def look_at(path: bytes, rule: str, *, known: Collection[bytes] | None) -> Look:
    """Return how much lies in a folder, and how much of it is neither known nor a tool's.

    Args:
        path: the folder.
        rule: the mark that left it out.
        known: shapes of the names that it has held, as in `Look`; None where it was not
            marked before.
    """
    seen = _Seen(path, rule, known)
    while seen.waiting:
        seen.enter(seen.waiting.pop())
    asked, unasked = seen.strange[:_NAMES_ASKED], len(seen.strange[_NAMES_ASKED:])
    made = made_by_tools(path, asked, packages=seen.packages) if asked else 0
    folder = MarkedFolder(
        path=path,
        rule=rule,
        files=seen.files,
        bytes=seen.bytes,
        works=seen.works,
        grown=len(asked) - made + unasked,
        is_new=known is None,
    )
    return Look(folder, frozenset(seen.shapes))


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder to look at: its path, the same and its shape below the marked one, whose it is."""

    path: bytes
    below: bytes = b""
    shape: bytes = b""
    is_tools: bool = False


class _Seen:
    """What has been seen of a folder; each name in it is met once, at any depth."""

    def __init__(self, path: bytes, rule: str, known: Collection[bytes] | None) -> None:
        self._tools = _TOOL_FOLDERS.get(rule, frozenset())
        self._known = known
        self.files = self.bytes = self.works = 0
        self.shapes: set[bytes] = set()
        self.strange: list[bytes] = []
        self.packages: list[bytes] = []
        self.waiting = [_Folder(path, is_tools=rule in _OF_PACKAGES)]

    def enter(self, folder: _Folder) -> None:
        """Look at what lies in one folder; those below it have to wait."""
        try:
            with os.scandir(folder.path) as entries:
                listed = list(entries)
        except FileNotFoundError:
            return  # it vanished
        except OSError:
            self.works += 1  # nobody can say that it holds no work
            return
        for entry in listed:
            path = folder.below + entry.name
            if entry.is_dir(follow_symlinks=False):
                belongs = folder.is_tools or (not folder.below and entry.name in self._tools)
                self.works += entry.name == b".git" and not belongs
                if entry.name.endswith(b"-packages"):
                    self.packages.append(path)
                shape = folder.shape + shape_of(entry.name, is_folder=True) + b"/"
                self.waiting.append(_Folder(entry.path, path + b"/", shape, belongs))
                continue
            self.files += 1
            self.bytes += _size(entry)
            self.works += not folder.is_tools and entry.name.lower().endswith(_WORK_SUFFIXES)
            self._note(path, folder.shape + shape_of(entry.name))

    def _note(self, path: bytes, shape: bytes) -> None:
        short = hashlib.blake2b(shape, digest_size=_SHORT).digest()
        self.shapes.add(short)
        if self._known is not None and short not in self._known:
            self.strange.append(path)


def _size(entry: "os.DirEntry[bytes]") -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0
