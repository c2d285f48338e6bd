"""Folders that a mark in them left out, looked at from outside: how much is it, and is it work.

An agent could mark a folder and so hide its work from its own backup. Nothing is opened: names
and sizes tell. What a tool makes lies at places of its own; source text anywhere else looks like
somebody's work.
Source: spec/exclusion.md 9, PEP 405, Cargo, Maven and conda documentation. Start at `look_at`.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass

MARKED_FACT = "marked"
"""The catalogue's fact that lists the folders that were marked at the last complete snapshot."""

_NAMES_MAX = 200_000
_DEPTH_MAX = 64
_SEPARATOR = b"\0"

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
    """A folder left out by a mark; ``works`` counts files that look like somebody's work."""

    path: bytes
    rule: str
    files: int
    bytes: int
    works: int
    is_new: bool


def look_at(path: bytes, rule: str, *, is_new: bool) -> MarkedFolder:
    """Return how much lies in a folder; a folder that cannot be listed counts as empty.

    Args:
        path: the folder.
        rule: the mark that left it out.
        is_new: whether it was not marked at the last complete snapshot.
    """
    tools = _TOOL_FOLDERS.get(rule, frozenset())
    files = size = works = names = 0
    waiting = [(path, 0, rule in _OF_PACKAGES)]
    while waiting and names < _NAMES_MAX:
        folder, depth, is_tools = waiting.pop()
        for entry in _listed(folder):
            names += 1
            if entry.is_dir(follow_symlinks=False):
                belongs = is_tools or (depth == 0 and entry.name in tools)
                works += entry.name == b".git" and not belongs
                if depth < _DEPTH_MAX:
                    waiting.append((entry.path, depth + 1, belongs))
                continue
            files += 1
            size += _size(entry)
            works += not is_tools and entry.name.lower().endswith(_WORK_SUFFIXES)
    return MarkedFolder(path=path, rule=rule, files=files, bytes=size, works=works, is_new=is_new)


def _listed(folder: bytes) -> "list[os.DirEntry[bytes]]":
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _size(entry: "os.DirEntry[bytes]") -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def encode_marked(paths: Iterable[bytes]) -> bytes:
    """Return the folders as the catalogue keeps them."""
    return _SEPARATOR.join(paths)


def parse_marked(fact: bytes | None) -> frozenset[bytes]:
    """Return what `encode_marked` wrote."""
    return frozenset(fact.split(_SEPARATOR)) if fact else frozenset()
