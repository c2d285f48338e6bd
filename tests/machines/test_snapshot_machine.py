"""A tree that changes in every way, snapshots, kills and losses: always what a plain model says."""

import os
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from tests.crash.test_snapshot_kills import killed
from tests.machines.stream import Stream, seen

sys.setrecursionlimit(max(20_000, sys.getrecursionlimit()))
"""The independent reader asks for as much, and Hypothesis does not like that to happen late."""

_NAMES = st.sampled_from(["a", "b", "c", "d/a", "d/b", "d/e/a", "d/e/b", "f/a", "\udcff\n"])
_SIZES = st.sampled_from([0, 1, 100, 65_536, 65_537, 200_000])


class SnapshotMachine(RuleBasedStateMachine):
    """Files by name in a plain dictionary; after each snapshot a restore must equal it."""

    def __init__(self) -> None:
        super().__init__()
        self.base = Path(tempfile.mkdtemp(dir="/dev/shm"))
        self.files: dict[str, bytes] = {}
        self.rows: list[str] = []
        self.links: dict[str, str] = {}
        self.taken = 0

    @initialize()
    def begin(self) -> None:
        self.stream = Stream(self.base)

    def teardown(self) -> None:
        shutil.rmtree(self.base)

    def _path(self, name: str) -> Path:
        path = self.stream.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    @rule(name=_NAMES, size=_SIZES)
    def write(self, name: str, size: int) -> None:
        data = os.urandom(size)
        self.links.pop(name, None)
        self._path(name).unlink(missing_ok=True)
        self._path(name).write_bytes(data)
        self.files[name] = data

    @rule(name=_NAMES)
    def edit_in_place_and_put_the_time_back(self, name: str) -> None:
        if self.files.get(name):
            path = self._path(name)
            told = path.stat()
            data = bytes([self.files[name][0] ^ 1]) + self.files[name][1:]
            path.write_bytes(data)
            os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns))
            self._set_all(name, data)

    @rule(name=_NAMES)
    def append(self, name: str) -> None:
        if name in self.files:
            more = os.urandom(300)
            with self._path(name).open("ab") as file:
                file.write(more)
            self._set_all(name, self.files[name] + more)

    def _set_all(self, name: str, data: bytes) -> None:
        inode = self._path(name).stat().st_ino
        for other in self.files:
            if self._path(other).stat().st_ino == inode:
                self.files[other] = data

    @rule(one=_NAMES, other=_NAMES)
    def rename(self, one: str, other: str) -> None:
        if one in self.files and self._path(one).stat().st_ino != _inode(self._path(other)):
            self.links.pop(other, None)
            os.replace(self._path(one), self._path(other))
            self.files[other] = self.files.pop(one)

    @rule(one=_NAMES, other=_NAMES)
    def hard_link(self, one: str, other: str) -> None:
        if one in self.files and other not in self.files and other not in self.links:
            os.link(self._path(one), self._path(other))
            self.files[other] = self.files[one]

    @rule(name=_NAMES)
    def symbolic_link(self, name: str) -> None:
        if name not in self.files and name not in self.links:
            os.symlink("a/../b", self._path(name))
            self.links[name] = "a/../b"

    @rule(name=_NAMES, mode=st.sampled_from([0o600, 0o640, 0o755]))
    def change_mode(self, name: str, mode: int) -> None:
        if name in self.files:
            self._path(name).chmod(mode)

    @rule(name=_NAMES)
    def delete(self, name: str) -> None:
        if self.files.pop(name, None) is not None or self.links.pop(name, None) is not None:
            self._path(name).unlink()

    @rule()
    def delete_a_folder(self) -> None:
        shutil.rmtree(self.stream.root / "d", ignore_errors=True)
        self.files = {name: data for name, data in self.files.items() if name[:2] != "d/"}
        self.links = {name: target for name, target in self.links.items() if name[:2] != "d/"}

    @rule()
    def commit_to_the_database(self) -> None:
        row = os.urandom(20).hex()
        with closing(sqlite3.connect(self._path("agent.db"), isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("CREATE TABLE IF NOT EXISTS t (x)")
            connection.execute("INSERT INTO t VALUES (?)", (row,))
        self.rows.append(row)

    @rule(event=st.integers(1, 60))
    def kill_a_snapshot(self, event: int) -> None:
        if not killed(self.stream, event):
            self.taken += 1

    @rule(
        catalog=st.booleans(),
        journal=st.booleans(),
        state=st.sampled_from([False, False, True]),
    )
    def lose(self, catalog: bool, journal: bool, state: bool) -> None:  # noqa: FBT001  # drawn by name
        self.stream.lose(catalog=catalog, journal=journal, state=state)

    @rule()
    def snapshot(self) -> None:
        result = self.stream.snapshot()
        self.taken += 1

        assert result.status == "ok"
        assert result.files == len(self.files) + len(self.links) + bool(self.rows)
        back = self.stream.restored_root()
        assert {name: (back / name).read_bytes() for name in self.files} == self.files
        assert {name: os.readlink(back / name) for name in self.links} == self.links
        ours, theirs = seen(bytes(self.stream.root)), seen(bytes(back))
        database = b"/agent.db"
        for suffix in (b"", b"-wal", b"-shm"):
            ours.pop(database + suffix, None)
        theirs.pop(database, None)
        assert theirs == ours
        if self.rows:
            with closing(sqlite3.connect(back / "agent.db")) as connection:
                assert [row[0] for row in connection.execute("SELECT x FROM t")] == self.rows
        shutil.rmtree(back)

    @precondition(lambda self: self.taken > 0)
    @invariant()
    def nothing_pinned_is_called_abandoned(self) -> None:
        statements = self.stream.statements()
        pinned = {pin.name for one in statements.values() for pin in one.pins}
        assert not pinned & {name for one in statements.values() for name in one.abandoned}
        assert all(self.stream.object_path(name).exists() for name in pinned)


def _inode(path: Path) -> int:
    return path.stat().st_ino if path.exists() else 0


TestSnapshotMachine = SnapshotMachine.TestCase
TestSnapshotMachine.settings = settings(
    max_examples=max(5, settings().max_examples // 10),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
