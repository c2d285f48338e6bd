"""Whether a restored tree is the source: an own walk, with no code of any program compared.

Content, type, mode, owner, modification time and link target, of every entry below both. A
database that was captured as of one moment may differ in its bytes and lack its log: then all its
rows must be the same.
Start at `iter_differences`.
"""

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

_MAGIC = b"SQLite format 3\0"
_WINDOW_BYTES = 1 << 20
_LOGS = (b"-wal", b"-shm")


def iter_differences(source: Path, restored: Path, *, captures_databases: bool) -> Iterator[str]:
    """Yield one line for each entry that is not the same on both sides.

    Args:
        source: the tree that was backed up.
        restored: what came back.
        captures_databases: the program keeps a database's state, not its files.
    """
    before, after = _entries(source), _entries(restored)
    for path in sorted(before.keys() | after.keys()):
        shown = os.fsdecode(path)
        if path not in after:
            if not (captures_databases and path.endswith(_LOGS) and path[:-4] in after):
                yield f"{shown}: not restored"
        elif path not in before:
            yield f"{shown}: not in the source"
        else:
            left, right = (
                os.path.join(os.fsencode(source), path),
                os.path.join(os.fsencode(restored), path),
            )
            may_differ = captures_databases and _is_database(left, before[path])
            facts = _different_facts(before[path], after[path], may_differ=may_differ)
            if facts:
                yield f"{shown}: {facts}"
            elif not _is_same_content(left, right, before[path], may_differ=may_differ):
                yield f"{shown}: content"


def _entries(root: Path) -> dict[bytes, os.stat_result]:
    top = os.fsencode(root)
    found: dict[bytes, os.stat_result] = {}
    for folder, folders, names in os.walk(top):
        for name in folders + names:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, top)] = os.lstat(path)
    return found


def _different_facts(left: os.stat_result, right: os.stat_result, *, may_differ: bool) -> str:
    facts = {
        "mode": (left.st_mode, right.st_mode),
        "owner": ((left.st_uid, left.st_gid), (right.st_uid, right.st_gid)),
    }
    if not stat.S_ISLNK(left.st_mode):
        facts["time"] = (left.st_mtime_ns, right.st_mtime_ns)
    if stat.S_ISREG(left.st_mode):
        facts["size"] = (left.st_size, right.st_size)
    if may_differ:
        facts.pop("size")
        facts.pop("time")
    return ", ".join(name for name, (one, other) in facts.items() if one != other)


def _is_same_content(left: bytes, right: bytes, facts: os.stat_result, *, may_differ: bool) -> bool:
    if stat.S_ISLNK(facts.st_mode):
        return os.readlink(left) == os.readlink(right)
    if not stat.S_ISREG(facts.st_mode):
        return True
    has_lost_log = may_differ and os.path.exists(left + b"-wal") > os.path.exists(right + b"-wal")
    if not has_lost_log and _is_same_bytes(left, right):
        return True
    return may_differ and _rows(left) == _rows(right)


def _is_same_bytes(left: bytes, right: bytes) -> bool:
    with open(left, "rb", buffering=0) as one, open(right, "rb", buffering=0) as other:
        while True:
            data = one.read(_WINDOW_BYTES)
            if data != other.read(_WINDOW_BYTES):
                return False
            if not data:
                return True


def _is_database(path: bytes, facts: os.stat_result) -> bool:
    if not stat.S_ISREG(facts.st_mode) or facts.st_size < len(_MAGIC):
        return False
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _rows(path: bytes) -> int:
    """Return a hash over schema and rows of a copy, with the log that lies beside it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(os.fsencode(folder), b"copy")
        shutil.copyfile(path, copy)
        if os.path.exists(path + b"-wal"):
            shutil.copyfile(path + b"-wal", copy + b"-wal")
        with closing(sqlite3.connect(copy)) as connection:
            value = 0
            for line in connection.iterdump():
                value = hash((value, line))
    return value
