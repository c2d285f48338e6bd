"""Nothing is deleted or overwritten, and files appear through few doors (A4a, A4f)."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.sources import COMMAND_LINE, LIBRARY, Source, is_below, tree_sources

MAY_REMOVE = (
    "durarepo/store/atomic.py",  # its own unfinished temporaries
    "durarepo/local/work.py",  # what its journal says a run made
)
MAY_RENAME = (
    "durarepo/local/catalog.py",  # sets a damaged catalogue aside; it can be built again
    "durarepo/repository/scratch.py",  # takes a failed file out of its own staging folder
    "durarepo/repository/scratch_place.py",  # publishes a new folder; replaces nothing
)
MAY_CREATE = (
    "durarepo/store/atomic.py",  # every stored object and every small file of state
    "durarepo/local/catalog.py",  # the rebuildable database
    "durarepo/local/lock.py",  # the lock file, which is never removed
    "durarepo/local/work.py",  # working files, named in its journal first
    "durarepo/repository/scratch.py",  # restored files, out of sight until published
    "durarepo/source/sqlitestate.py",  # copies of live databases, in a work folder
    "durarepo/source/sqliteclean.py",  # the same copies, when logins are taken out of them
    "durarepo/source/sqlitefree.py",  # and what their free pages hold
    "durarepo/source/sqliteslack.py",  # and what their pages leave unread
)

RENAMES = {"os.replace", "os.rename", "os.renames", "shutil.move"}
REMOVALS = {
    "os.remove", "os.unlink", "os.rmdir", "os.removedirs", "os.truncate", "shutil.rmtree",
}  # fmt: skip
RENAMING_METHODS = {"rename", "renameat", "renameat2"}
REMOVING_METHODS = {"unlink", "unlinkat", "rmdir", "rmtree"}
CREATING_FLAGS = {"O_CREAT", "O_WRONLY", "O_RDWR", "O_APPEND", "O_TRUNC", "O_TMPFILE"}
CREATING_METHODS = {"write_text", "write_bytes", "touch"}
CREATING_CALLS = {"sqlite3.connect", "os.mkfifo", "os.mknod", "os.link", "os.symlink"}


def find_removals(source: Source) -> Iterator[str]:
    """Yield each mention of something that removes or replaces a file, called or not."""
    removes = is_below(source.path, MAY_REMOVE)
    renames = removes or is_below(source.path, MAY_RENAME)
    for node in ast.walk(source.tree):
        name = source.name_of(node)
        method = node.attr if isinstance(node, ast.Attribute) else _named_by_text(source, node)
        if not removes and (name in REMOVALS or method in REMOVING_METHODS):
            yield source.finding(node, f"removes: {name or method}")
        if not renames and (name in RENAMES or method in RENAMING_METHODS):
            yield source.finding(node, f"renames: {name or method}")
        if not renames and _is_path_replace(source, node):
            yield source.finding(node, "renames: Path.replace")


def find_creations(source: Source) -> Iterator[str]:
    """Yield each mention of something that makes a file or opens one for writing."""
    if is_below(source.path, MAY_CREATE):
        return
    harmless = set(_opening_nothing(source))
    for node in ast.walk(source.tree):
        name = source.name_of(node)
        attribute = node.attr if isinstance(node, ast.Attribute) else ""
        flag = name.rpartition(".")[2] in CREATING_FLAGS and node not in harmless
        if flag or attribute in CREATING_METHODS or name.startswith("tempfile."):
            yield source.finding(node, f"creates: {name or attribute}")
        if name in CREATING_CALLS and node not in harmless:
            yield source.finding(node, f"creates: {name}")
        if isinstance(node, ast.Call) and _opens_for_writing(source, node):
            yield source.finding(node, "creates: open for writing")


def _opening_nothing(source: Source) -> Iterator[ast.AST]:
    """Yield what stands in a call that opens the null device or a database in memory."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and node.args:
            target = node.args[0]
            in_memory = isinstance(target, ast.Constant) and target.value == ":memory:"
            if in_memory or source.name_of(target) == "os.devnull":
                yield from ast.walk(node)


def _named_by_text(source: Source, node: ast.AST) -> str:
    """Return the function that a call names by text, for ``getattr`` or the C library."""
    if isinstance(node, ast.Call):
        for argument in node.args[:2]:
            text = argument.value if isinstance(argument, ast.Constant) else None
            if text in REMOVING_METHODS | RENAMING_METHODS:
                return str(text)
            if text == "remove" and source.name_of(node.func) == "getattr":
                return "unlink"
    return ""


def _is_path_replace(source: Source, node: ast.AST) -> bool:
    """Tell ``path.replace(target)`` from the ``replace`` of texts, times and data classes."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "replace"
        and len(node.args) == 1
        and not node.keywords
        and source.name_of(node.func) not in RENAMES
    )


def _opens_for_writing(source: Source, call: ast.Call) -> bool:
    """Return whether a call of some ``open`` names a mode that is not plainly for reading."""
    modes = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    if source.name_of(call.func) in {"open", "io.open", "os.fdopen"}:
        return not all(map(_is_reading, modes + call.args[1:2]))
    if isinstance(call.func, ast.Attribute) and call.func.attr == "open":
        # A method of a path, or of anything else that can be opened: only a mode tells.
        return any(_is_mode(mode) and not _is_reading(mode) for mode in modes + call.args[:1])
    return False


def _is_mode(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and bool(re.fullmatch(r"[rwaxbt+]{1,4}", str(node.value)))


def _is_reading(mode: ast.expr) -> bool:
    return isinstance(mode, ast.Constant) and not set(str(mode.value)) & set("wax+")


def test_no_module_but_two_removes_or_replaces_a_file() -> None:
    """One careless unlink in a backup tool is somebody's only copy."""
    sources = tree_sources(LIBRARY, COMMAND_LINE)

    assert [line for source in sources for line in find_removals(source)] == []


def test_files_are_made_only_where_they_are_made_durable() -> None:
    """A file written past store/atomic.py may be half there after a crash."""
    sources = tree_sources(LIBRARY, COMMAND_LINE)

    assert [line for source in sources for line in find_creations(source)] == []


@pytest.mark.parametrize(
    "planted",
    [
        "import os\nos.remove(path)",
        "import os as o\no.unlink(path)",
        "from os import unlink as u\nu(path)",
        "from os import rmdir\nfor path in paths:\n    rmdir(path)",
        "import os\nclean = os.removedirs",
        "import os\nos.replace(one, other)",
        "import os\nos.rename(one, other)",
        "import os\nos.truncate(path, 0)",
        "from shutil import rmtree\nrmtree(path)",
        "import shutil\nshutil.move(one, other)",
        "from pathlib import Path\nPath(name).unlink()",
        "path.rmdir()",
        "path.rename(other)",
        "path.replace(other)",
        "import os\ngetattr(os, 'unlink')(path)",
        "import os\ngetattr(os, 'remove')(path)",
        "import ctypes\nctypes.CDLL(None).unlinkat(-100, path, 0)",
        "import ctypes\nctypes.CDLL(None).renameat2(-100, one, -100, other, 0)",
        "call_c_library('unlinkat', -100, path, 0)",
    ],
)
def test_a_planted_removal_is_found(planted: str) -> None:
    """A ban that cannot see one way of deleting is no ban."""
    assert list(find_removals(Source.parse("durarepo/source/walk.py", planted)))


@pytest.mark.parametrize(
    "innocent",
    [
        "name = name.replace('a', 'b')",
        "from dataclasses import replace\nvalue = replace(value, size=1)",
        "now = now.replace(microsecond=0)",
        "names.remove(name)",
        "import os\nos.stat(path)",
    ],
)
def test_code_that_removes_no_file_is_left_alone(innocent: str) -> None:
    """A rule that cries at everything is switched off by the first who meets it."""
    assert not list(find_removals(Source.parse("durarepo/source/walk.py", innocent)))


def test_renaming_does_not_allow_removing() -> None:
    """The door for publishing a folder must not be one for deleting."""
    [place, *_] = MAY_RENAME
    planted = Source.parse(place, "import os\nos.rename(a, b)\nos.unlink(c)")

    assert list(find_removals(planted)) == [f"{place}:3: removes: os.unlink"]


@pytest.mark.parametrize(
    "planted",
    [
        "open(path, 'w')",
        "open(path, mode='ab')",
        "open(path, 'r+b')",
        "open(path, mode)",
        "from pathlib import Path\nPath(name).open('x')",
        "import io\nio.open(path, 'w')",
        "import os\nos.fdopen(fd, 'w')",
        "import os\nos.open(path, os.O_WRONLY | os.O_CREAT)",
        "from os import O_RDWR\nFLAGS = O_RDWR",
        "path.write_text(text)",
        "path.write_bytes(data)",
        "path.touch()",
        "import tempfile\ntempfile.mkdtemp()",
        "from tempfile import NamedTemporaryFile\nNamedTemporaryFile()",
        "import sqlite3\nsqlite3.connect(path)",
        "import os\nos.link(one, other)",
    ],
)
def test_a_planted_creation_is_found(planted: str) -> None:
    """A file can be opened for writing in many ways; each has to be seen."""
    assert list(find_creations(Source.parse("durarepo/operations/push.py", planted)))


@pytest.mark.parametrize(
    "innocent",
    [
        "open(path)",
        "open(path, 'rb')",
        "import os\nos.open(path, os.O_RDONLY)",
        "path.open()",
        "pack = opener.open(pin)",
        "import os\nos.open(os.devnull, os.O_RDWR)",
        "import sqlite3\nsqlite3.connect(':memory:')",
    ],
)
def test_reading_is_left_alone(innocent: str) -> None:
    """Reading is what a backup does all day."""
    assert not list(find_creations(Source.parse("durarepo/operations/push.py", innocent)))
