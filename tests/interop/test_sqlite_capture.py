"""Databases under real writers and in the states that killed writers leave (P1, X6, X7)."""

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from durarepo.core.errors import SourceError, StoreError, VanishedError
from durarepo.source.sqlitestate import (
    Damaged,
    DatabaseCopy,
    capture_database,
    database_state,
    is_sqlite,
    may_have_changed,
    sidecar_names,
)

WRITER = """
import os, random, sqlite3, sys, time
path, counter, journal_mode, checkpoint = sys.argv[1:5]
db = sqlite3.connect(path, isolation_level=None, timeout=30)
db.execute(f"PRAGMA journal_mode={journal_mode}")
db.execute(f"PRAGMA wal_autocheckpoint={checkpoint}")
db.execute("PRAGMA synchronous=OFF")
db.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, k TEXT, body TEXT)")
db.execute("CREATE INDEX IF NOT EXISTS tk ON t (k)")
out = os.open(counter, os.O_WRONLY)
number = 0
while True:
    db.execute("BEGIN IMMEDIATE")
    number += 1
    key = random.randbytes(16).hex()
    db.execute("INSERT INTO t VALUES (?, ?, ?)", (number, key, "x" * random.randrange(3000)))
    db.execute("UPDATE t SET k = ? WHERE id = ?", (key[::-1], random.randrange(1, number + 1)))
    db.execute("COMMIT")
    os.pwrite(out, number.to_bytes(8, "big"), 0)
    time.sleep(0.01)
"""


@dataclass
class Work:
    """The part of a work folder that a capture uses."""

    folder: Path
    given: int = 0

    def new_file(self, suffix: str) -> bytes:
        self.given += 1
        path = self.folder / f"{self.given}{suffix}"
        path.touch(mode=0o600)
        return os.fsencode(path)

    def discard(self, path: bytes) -> None:
        assert os.path.dirname(path) == os.fsencode(self.folder)
        with suppress(FileNotFoundError):
            os.unlink(path)

    @property
    def names(self) -> list[str]:
        return sorted(os.listdir(self.folder))


@pytest.fixture
def work(tmp_path: Path) -> Work:
    """Give an empty work folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    return Work(folder)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Give an empty folder for the source."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def open_database(path: Path | str, mode: str = "DELETE") -> sqlite3.Connection:
    """Open or make a database in this journal mode."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(f"PRAGMA journal_mode={mode}")
    return database


def fill(database: sqlite3.Connection, rows: int) -> None:
    """Make the table and its rows in one transaction."""
    database.execute("BEGIN")
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)")
    database.executemany("INSERT INTO t VALUES (?, ?)", [(i, "x" * 500) for i in range(rows)])
    database.execute("COMMIT")


def run_python(code: str, *arguments: str) -> int:
    """Run code in a process of its own and return its exit code."""
    return subprocess.run([sys.executable, "-c", code, *arguments], check=False).returncode


def listing_of(folder: Path, *, but: tuple[str, ...] = ()) -> dict[str, tuple[int, bytes]]:
    """Return what must not change: the names, their times of change and their bytes."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(but or "\0"):
            found[name] = (os.stat(folder / name).st_mtime_ns, (folder / name).read_bytes())
    return found


def captured(path: Path, work: Work, *, busy_seconds: float = 5) -> DatabaseCopy:
    """Capture what must not be damaged."""
    outcome = capture_database(os.fsencode(path), work=work, busy_seconds=busy_seconds)
    assert isinstance(outcome, DatabaseCopy), outcome
    return outcome


def ids_in(path: bytes) -> list[int]:
    """Return the ids of a database that passes the full check."""
    with closing(sqlite3.connect(os.fsdecode(path))) as copy:
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [row[0] for row in copy.execute("SELECT id FROM t ORDER BY id")]


@contextmanager
def writing(path: Path, journal_mode: str, checkpoint: int) -> Iterator[Path]:
    """Run a process that commits about 100 times a second; give the file of its count."""
    counter = path.parent.parent / "counter"
    counter.write_bytes(bytes(8))
    arguments = [str(path), str(counter), journal_mode, str(checkpoint)]
    writer = subprocess.Popen([sys.executable, "-c", WRITER, *arguments])
    try:
        deadline = time.monotonic() + 20
        while int.from_bytes(counter.read_bytes(), "big") < 20:
            assert writer.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield counter
        assert writer.poll() is None, "the writer must have lived through all captures"
    finally:
        writer.kill()
        writer.wait()


@pytest.mark.parametrize(
    ("journal_mode", "checkpoint"), [("WAL", 0), ("WAL", 20), ("DELETE", 0), ("PERSIST", 0)]
)
def test_every_capture_under_a_writer_is_whole_and_holds_what_was_committed(
    home: Path, work: Work, journal_mode: str, checkpoint: int
) -> None:
    """A nightly snapshot meets agents at work: a torn or stale copy is found at restore (P1)."""
    path = home / "state.db"
    lost_by_plain_copy = 0
    with writing(path, journal_mode, checkpoint) as counter:
        for _ in range(50):
            committed = int.from_bytes(counter.read_bytes(), "big")

            copy = captured(path, work)

            ids = ids_in(copy.path)
            assert ids == list(range(1, len(ids) + 1))
            assert len(ids) >= committed
            work.discard(copy.path)
            lost_by_plain_copy += not plain_copy_holds(path, home.parent / "plain.db", committed)
            time.sleep(0.005)
    if journal_mode == "WAL" and checkpoint == 0:
        assert lost_by_plain_copy == 50  # the control: what this all is for
    assert not [name for name in work.names if name.endswith((".sqlite", ".staged"))]


def plain_copy_holds(path: Path, target: Path, committed: int) -> bool:
    """Return whether copying the main file alone would have done."""
    shutil.copyfile(path, target)
    try:
        return len(ids_in(os.fsencode(target))) >= committed
    except (sqlite3.Error, AssertionError):
        return False


def test_a_live_log_with_checkpoints_off_is_captured_without_touching_main_file_and_log(
    home: Path, work: Work
) -> None:
    """A backup that checkpoints or truncates a log changes what it was asked to keep."""
    path = home / "a.db"
    code = "import sqlite3,sys,time;d=sqlite3.connect(sys.argv[1],isolation_level=None)\n"
    code += "d.execute('PRAGMA wal_autocheckpoint=0');d.execute('INSERT INTO t VALUES(99,1)')\n"
    code += "print(1,flush=True);time.sleep(60)"
    with closing(open_database(path, "WAL")) as database:
        fill(database, 3)
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        before = listing_of(home, but=("-shm",))

        copy = captured(path, work)

        assert listing_of(home, but=("-shm",)) == before
        writer.kill()
    assert ids_in(copy.path) == [0, 1, 2, 99]


def test_a_database_at_rest_gets_no_sidecars(home: Path, work: Work) -> None:
    """SQLite, told to read only, still makes `-wal` and `-shm` beside a WAL database."""
    path = home / "a.db"
    with closing(open_database(path, "WAL")) as database:
        fill(database, 3)
    before = listing_of(home)
    assert list(before) == ["a.db"]

    copy = captured(path, work)

    assert listing_of(home) == before
    assert ids_in(copy.path) == [0, 1, 2]


@pytest.mark.parametrize("with_index", [True, False])
def test_a_log_that_a_killed_writer_left_is_read_and_left_alone(
    home: Path, work: Work, *, with_index: bool
) -> None:
    """After a crash the newest commits are only in the log, with or without its index."""
    path = home / "a.db"
    code = "import sqlite3,sys,os;d=sqlite3.connect(sys.argv[1],isolation_level=None)\n"
    code += "d.execute('PRAGMA journal_mode=WAL');d.execute('PRAGMA wal_autocheckpoint=0')\n"
    code += "d.execute('CREATE TABLE t(id INTEGER PRIMARY KEY)')\n"
    code += "[d.execute('INSERT INTO t VALUES(?)',(i,)) for i in range(50)];os._exit(9)"
    assert run_python(code, str(path)) == 9
    if not with_index:
        os.unlink(f"{path}-shm")
    before = listing_of(home)
    assert "a.db-wal" in before

    copy = captured(path, work)

    assert listing_of(home) == before
    assert ids_in(copy.path) == list(range(50))


def make_hot_journal(path: Path) -> None:
    """Kill a writer amid a transaction that has reached the main file."""
    code = "import sqlite3,sys,os;d=sqlite3.connect(sys.argv[1],isolation_level=None)\n"
    code += "d.execute('PRAGMA cache_size=5')\n"
    code += "d.execute('CREATE TABLE t(id INTEGER PRIMARY KEY, b TEXT)');d.execute('BEGIN')\n"
    code += "d.executemany('INSERT INTO t VALUES(?,?)',[(i,'x'*500) for i in range(1000)])\n"
    code += "d.execute('COMMIT');d.execute('BEGIN');d.execute('DELETE FROM t WHERE id > 5')\n"
    code += "d.execute('UPDATE t SET b=hex(zeroblob(9000))');os._exit(9)"
    assert run_python(code, str(path)) == 9
    assert os.stat(f"{path}-journal").st_size > 0


def test_a_hot_journal_is_rolled_back_in_the_copy_and_never_in_the_source(
    home: Path, work: Work
) -> None:
    """The main file holds half a transaction: kept so, it is malformed; mended, it is changed."""
    path = home / "a.db"
    make_hot_journal(path)
    before = listing_of(home)

    copy = captured(path, work)

    assert listing_of(home) == before
    assert work.names == ["1.sqlite"]
    assert ids_in(copy.path) == list(range(1000))


def test_a_damaged_file_with_a_log_leaves_nothing_in_the_work_folder(
    home: Path, work: Work
) -> None:
    """SQLite leaves sidecars beside a copy it cannot mend; many such would fill the disk."""
    path = home / "a.db"
    make_hot_journal(path)
    path.write_bytes(path.read_bytes()[:100] + os.urandom(20_000))
    Path(f"{path}-journal").write_bytes(b"j" * 5000)
    Path(f"{path}-wal").write_bytes(b"w" * 5000)

    outcome = capture_database(os.fsencode(path), work=work)

    assert isinstance(outcome, Damaged)
    assert work.names == []


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_long_path_and_an_odd_name_are_no_obstacle(home: Path, work: Work, mode: str) -> None:
    """SQLite opens no path above 512 bytes; names may hold what a URI must escape."""
    deep = os.fsencode(home)
    for _ in range(3):
        deep += b"/" + b"d" * 200
    os.makedirs(deep)
    odd = os.fsencode(home) + b"/od?d #%41\xff\n&mode=rwc.db"
    for path in (odd, deep + b"/a.db"):
        plain = home / "plain.db"
        with closing(open_database(plain, mode)) as database:
            fill(database, 7)
        os.rename(plain, path)

        copy = capture_database(path, work=work)

        assert isinstance(copy, DatabaseCopy)
        assert ids_in(copy.path) == list(range(7))
    assert sorted(os.listdir(os.fsencode(home))) == [b"d" * 200, os.path.basename(odd)]


def test_an_unchanged_database_gives_copies_of_equal_bytes(home: Path, work: Work) -> None:
    """Else every night stores pages of a database that nobody touched."""
    for mode in ("DELETE", "WAL"):
        path = home / f"{mode}.db"
        with closing(open_database(path, mode)) as database:
            fill(database, 200)

        first, second = captured(path, work), captured(path, work)

        assert Path(os.fsdecode(first.path)).read_bytes() == (
            Path(os.fsdecode(second.path)).read_bytes()
        )
        assert first.page_count * first.page_size == first.size
        assert first.check == "integrity"


def test_facts_of_the_copy_are_those_of_the_database(home: Path, work: Work) -> None:
    """The page size decides how the copy is cut into chunks."""
    path = home / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA page_size=65536")
        database.execute("PRAGMA user_version=-7")
        fill(database, 5)

    copy = captured(path, work)

    assert (copy.page_size, copy.user_version) == (65536, -7)
    assert copy.stat.st_ino == path.stat().st_ino


def test_a_database_held_exclusively_is_waited_for_and_then_copied_as_it_lies(
    home: Path, work: Work
) -> None:
    """Browsers hold theirs for hours; waiting for ever is how a nightly hangs."""
    path = home / "a.db"
    with closing(open_database(path)) as database:
        fill(database, 4)
        database.execute("PRAGMA locking_mode=EXCLUSIVE")
        database.execute("INSERT INTO t VALUES (4, 'y')")

        code = LOCKED_CAPTURE.format(where=str(work.folder))
        result = subprocess.run(
            [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True
        )

    assert result.stdout.split() == ["DatabaseCopy"]
    assert ids_in(os.fsencode(work.folder / "1")) == [0, 1, 2, 3, 4]


LOCKED_CAPTURE = """
import os, sys
from durarepo.source.sqlitestate import capture_database
class Work:
    count = 0
    def new_file(self, suffix):
        self.count += 1
        path = os.path.join({where!r}, str(self.count)).encode()
        open(path, "x").close()
        return path
    def discard(self, path):
        if os.path.exists(path):
            os.unlink(path)
outcome = capture_database(sys.argv[1].encode(), work=Work(), busy_seconds=0.2)
print(type(outcome).__name__, getattr(outcome, "reason", ""))
"""


def test_a_busy_exclusive_writer_ends_as_locked(home: Path, work: Work) -> None:
    """Locked and changing all the time: nothing can be vouched for, and the run goes on."""
    path = home / "a.db"
    code = "import sqlite3,sys;d=sqlite3.connect(sys.argv[1],isolation_level=None)\n"
    code += "d.execute('PRAGMA synchronous=OFF');d.execute('CREATE TABLE t(id,b)')\n"
    code += "d.execute('PRAGMA locking_mode=EXCLUSIVE');d.execute('INSERT INTO t VALUES(1,1)')\n"
    code += "print(1,flush=True)\nwhile 1: d.execute('INSERT INTO t VALUES(2,2)')"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()

        outcome = capture_database(os.fsencode(path), work=work, busy_seconds=0.2)

        writer.kill()
    assert outcome == Damaged(reason="locked")


@pytest.mark.parametrize("kind", ["noise", "short"])
def test_what_only_looks_like_a_database_is_damaged(home: Path, work: Work, kind: str) -> None:
    """Encrypted or torn files with the magic are kept as bytes and reported, never dropped."""
    path = home / "a.db"
    with closing(open_database(path)) as database:
        fill(database, 200)
    whole = path.read_bytes()
    assert is_sqlite(whole[:16])
    path.write_bytes(whole[:16] + os.urandom(8000) if kind == "noise" else whole[:20000])

    outcome = capture_database(os.fsencode(path), work=work)

    assert isinstance(outcome, Damaged)
    assert outcome.reason in {"not-a-database", "malformed", "check-failed"}
    assert work.names == []


def test_a_database_with_a_damaged_index_fails_its_check(home: Path, work: Work) -> None:
    """The backup copies damage faithfully; without a check it is found at restore."""
    path = home / "a.db"
    with closing(open_database(path)) as database:
        fill(database, 200)
        database.execute("CREATE INDEX ti ON t (body, id)")
        database.execute("PRAGMA writable_schema=ON")
        database.execute("UPDATE sqlite_master SET sql=replace(sql, 'id)', '-id)')")

    outcome = capture_database(os.fsencode(path), work=work)

    assert outcome == Damaged(reason="check-failed")


def test_a_schema_this_sqlite_does_not_know_is_kept_unchecked(home: Path, work: Work) -> None:
    """An application's own collation is no damage: calling it that would block pruning."""
    path = home / "a.db"
    with closing(open_database(path)) as database:
        database.create_collation("ours", lambda a, b: (a > b) - (a < b))
        fill(database, 3)
        database.execute("CREATE INDEX ti ON t (body COLLATE ours)")

    copy = captured(path, work)

    assert copy.check == "impossible"
    with closing(sqlite3.connect(os.fsdecode(copy.path))) as again:
        assert again.execute("SELECT count(*) FROM t").fetchone() == (3,)


def test_a_schema_that_makes_the_check_endless_does_not_stop_the_capture(
    home: Path, work: Work
) -> None:
    """An agent could keep its own backup from ending with one expression in an index."""
    path = home / "endless.db"
    with closing(open_database(path)) as database:
        database.execute("CREATE TABLE large (a)")
        database.executemany("INSERT INTO large VALUES (?)", [(20_000_000,)] * 1000)
        database.execute("CREATE INDEX li ON large (a >= 0)")
        database.execute("PRAGMA writable_schema=ON")
        database.execute("UPDATE sqlite_master SET sql=replace(sql, 'a >= 0', 'hex(zeroblob(a))')")

    assert captured(path, work).check == "unfinished"


def test_a_symlink_in_place_of_a_database_is_refused(home: Path, work: Work) -> None:
    """Else a swapped name carries another user's database into the backup (E21)."""
    secret = home / "secret.db"
    with closing(open_database(secret)) as database:
        fill(database, 3)
    (home / "a.db").symlink_to(secret)
    (home / "folder").symlink_to(home)

    with pytest.raises(SourceError) as refused:
        capture_database(os.fsencode(home / "a.db"), work=work)
    with pytest.raises(SourceError) as refused_parent:
        capture_database(os.fsencode(home / "folder" / "secret.db"), work=work)

    assert refused.value.code == "source.changed-type"
    assert refused_parent.value.code == "source.unreadable"
    assert work.names == []


def test_a_name_swapped_while_it_is_captured_gives_nothing(
    home: Path, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file SQLite opened must be the one that was looked at, not the one there afterwards."""
    path, other, aside = home / "a.db", home / "other.db", home / "aside.db"
    for one, rows in ((path, 3), (other, 5)):
        with closing(open_database(one)) as database:
            fill(database, rows)
    connect = sqlite3.connect

    def swap(uri: str, /, **options: object) -> sqlite3.Connection:
        """Put a symlink in place just while SQLite opens, and the file back at once."""
        if "/a.db" not in uri:
            return connect(uri, **options)  # type: ignore[call-overload, no-any-return]
        os.rename(path, aside)
        path.symlink_to(other)
        database: sqlite3.Connection = connect(uri, **options)  # type: ignore[call-overload]
        database.execute("SELECT count(*) FROM t").fetchone()
        os.unlink(path)
        os.rename(aside, path)
        return database

    monkeypatch.setattr("durarepo.source.sqlitestate.sqlite3.connect", swap)

    outcome = capture_database(os.fsencode(path), work=work)

    assert outcome == Damaged(reason="changing")
    assert work.names == []


def meddle_once(
    monkeypatch: pytest.MonkeyPatch, options: str, change: Callable[[], object]
) -> None:
    """Make ``change`` just after SQLite opened a source with ``options`` for the first time."""
    connect = sqlite3.connect
    changes = [change]

    def connected(uri: str, /, **arguments: object) -> sqlite3.Connection:
        database: sqlite3.Connection = connect(uri, **arguments)  # type: ignore[call-overload]
        if "/home/a.db?" in uri and uri.endswith(options) and changes:
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            changes.pop()()
        return database

    monkeypatch.setattr("durarepo.source.sqlitestate.sqlite3.connect", connected)


def test_a_writer_that_comes_while_a_database_is_read_at_rest_is_noticed(
    home: Path, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading as immutable takes no lock, so only the look afterwards shows a writer."""
    path = home / "a.db"
    with closing(open_database(path, "WAL")) as database:
        fill(database, 3)
    code = "import os,sqlite3,sys;d=sqlite3.connect(sys.argv[1],isolation_level=None)\n"
    code += "d.execute('PRAGMA wal_autocheckpoint=0');d.execute('INSERT INTO t VALUES(3,1)')\n"
    code += "os._exit(9)"
    meddle_once(monkeypatch, "immutable=1", lambda: run_python(code, str(path)))

    copy = captured(path, work)

    assert ids_in(copy.path) == [0, 1, 2, 3]
    assert work.names == [os.path.basename(os.fsdecode(copy.path))]


def test_a_database_replaced_by_rename_is_captured_in_its_new_form(
    home: Path, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Applications restore and migrate so: the next try must hold the new file."""
    path, new = home / "a.db", home / "new.db"
    for one, rows in ((path, 3), (new, 5)):
        with closing(open_database(one)) as database:
            fill(database, rows)
    meddle_once(monkeypatch, "mode=ro", lambda: new.rename(path))

    copy = captured(path, work)

    assert ids_in(copy.path) == [0, 1, 2, 3, 4]
    assert copy.stat.st_ino == path.stat().st_ino


def test_a_database_that_is_gone_is_no_omission(home: Path, work: Work) -> None:
    """Vanished before it was opened is a class of its own."""
    with pytest.raises(VanishedError):
        capture_database(os.fsencode(home / "a.db"), work=work)


def test_a_read_only_folder_and_an_unprivileged_reader_suffice(home: Path, work: Work) -> None:
    """A backup user that may only read must not need write access for SQLite's sidecars."""
    path = home / "a.db"
    code = "import sqlite3,sys,os;d=sqlite3.connect(sys.argv[1],isolation_level=None)\n"
    code += "d.execute('PRAGMA journal_mode=WAL');d.execute('PRAGMA wal_autocheckpoint=0')\n"
    code += "d.execute('CREATE TABLE t(id INTEGER PRIMARY KEY)')\n"
    code += "d.execute('INSERT INTO t VALUES(1)');os._exit(9)"
    assert run_python(code, str(path)) == 9
    os.chmod(home, 0o555)  # noqa: S103  # readable and not writable is the point
    os.chmod(work.folder, 0o777)  # noqa: S103  # the other user writes here
    for folder in home.parents:
        if folder != Path("/") and os.stat(folder).st_uid == os.getuid():
            os.chmod(folder, os.stat(folder).st_mode | 0o011)  # noqa: S103  # may pass through

    child = os.fork()
    if child == 0:
        status = 1
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            outcome = capture_database(os.fsencode(path), work=work)
            status = 0 if isinstance(outcome, DatabaseCopy) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ids_in(os.fsencode(work.folder / "1.sqlite")) == [1]
    assert sorted(os.listdir(home)) == ["a.db", "a.db-shm", "a.db-wal"]


def test_a_full_work_folder_is_a_store_error(home: Path, work: Work) -> None:
    """No room for us is not damage of the source: it must end the run as 14 (X6)."""
    path = home / "a.db"
    with closing(open_database(path)) as database:
        fill(database, 20_000)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
            capture_database(os.fsencode(path), work=work)
        except StoreError:
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert work.names == []


def test_a_commit_to_the_log_counts_as_a_change(home: Path) -> None:
    """The main file keeps size and times while the log grows: a cache on it misses commits."""
    path = home / "a.db"
    wal, _, journal = sidecar_names(os.fsencode(path))
    assert journal == os.fsencode(path) + b"-journal"
    with closing(open_database(path, "WAL")) as database:
        database.execute("PRAGMA wal_autocheckpoint=0")
        fill(database, 3)
        main = os.stat(path)
        before = database_state(main, wal=os.stat(wal), journal=None)
        database.execute("INSERT INTO t VALUES (77, 'z')")
        now = database_state(os.stat(path), wal=os.stat(wal), journal=None)

        assert os.stat(path).st_mtime_ns == main.st_mtime_ns
        assert may_have_changed(before, now)
        assert may_have_changed(None, before)
        assert not may_have_changed(now, database_state(main, wal=os.stat(wal), journal=None))
