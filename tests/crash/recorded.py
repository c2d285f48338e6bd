"""Recorded runs, the states that a crash may leave of them, and what must hold in each.

A run is recorded once; its states are then laid out one after another below the same path, and
the real operations are asked: does all that was committed verify, does the next run finish by
itself, is nothing gone or changed, and does what comes back equal the files.
Start at `recorded`, then `check_point`.
"""

import os
import random
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from durarepo.core.errors import ConfigurationError, RepositoryStateError
from durarepo.core.progress import SilentProgress
from durarepo.operations.checkout import CheckoutRequest, checkout
from durarepo.operations.verify import Level, Verified, VerifyRequest, verify
from durarepo.repository import publisher
from durarepo.repository.chain import Chain
from durarepo.repository.repository import Repository, registry_slot
from tests.crash.disk import KILL, LOST, MODES, TORN, Disk, Picture, lay_out, pictured
from tests.crash.trace import traced
from tests.machines.stream import Stream, fill, later, seen

Point = tuple[str, int, str, int]
"""Which run, at which event, in which mode, and the seed of all that chance decides."""

_DEAD = 99


@dataclass
class Recorded:
    """One recorded run: the disk as it changed, and how far the chain may be after a crash."""

    name: str
    stream: Stream | None
    base: Path
    disk: Disk
    least: int
    marks: int
    distinct: set[bytes] = field(default_factory=set)

    @property
    def home(self) -> Path:
        """The folder of repository, keys and state."""
        return self.base / "notes"

    def points(self, chance: random.Random, count: int) -> Iterator[Point]:
        """Yield the ends of all modes, then ``count`` points by chance."""
        for mode in (LOST, KILL):
            yield self.name, self.disk.events, mode, 0
        for _ in range(count):
            mode = chance.choice((*MODES, TORN))
            yield self.name, chance.randrange(self.disk.events + 1), mode, chance.getrandbits(32)

    def is_new(self, point: Point) -> bool:
        """Return whether what stands on the disk at a point was not yet asked for."""
        count = len(self.distinct)
        self.state(point)
        return len(self.distinct) > count

    def state(self, point: Point) -> Picture:
        """Return what stands on the disk at a point, and count it if it is new."""
        _, event, mode, seed = point
        picture = self.disk.crashed(event, mode, random.Random(seed))  # noqa: S311  # no secret
        digest = sha256()
        for path in sorted(picture):
            digest.update(path + b"\0" + sha256(picture[path] or b"").digest())
        self.distinct.add(digest.digest())
        return picture


def recorded(name: str, base: Path) -> Recorded:
    """Prepare what a run needs below ``base``, record the run, and return it.

    Args:
        name: one of `RUNS`.
        base: a new folder, its path without links.
    """
    stream = RUNS[name](base)
    home = base / "notes"
    home.mkdir(exist_ok=True)
    least = marks = 0
    if stream is not None:
        with stream.open() as repository:
            least, marks = verified(repository).head, marked(repository)
    disk = Disk(bytes(home), pictured(home))
    verb = "init" if stream is None else "snapshot"
    program = [sys.executable, "-m", "tests.crash.operate", str(base), verb]
    disk.record(traced(program, base / "log"))
    os.unlink(base / "log")
    return Recorded(name, stream, base, disk, least, marks)


def check_model(run: Recorded) -> None:
    """Compare the model with the disk after the recorded run: it must have missed nothing.

    The shared memory of SQLite is written without calls and has no meaning after a crash.
    """
    told, found = run.disk.after(), pictured(run.home)
    shared = {path for path in {*told, *found} if path.endswith(b"-shm")}
    assert {path: told[path] for path in told if path not in shared} == {
        path: found[path] for path in found if path not in shared
    }


def check_point(run: Recorded, point: Point) -> None:
    """Lay out the state at a point and check all that a crash must not break.

    Raises:
        AssertionError: something does not hold; the message names the point.
    """
    try:
        lay_out(run.home, run.state(point))
        if run.stream is None:
            _check_init(run, is_done=point[1] == run.disk.events)
        else:
            _check_snapshot(run, run.stream, is_done=point[1] == run.disk.events)
    except Exception as error:
        raise AssertionError(f"at {point}: {type(error).__name__}: {error}") from error


def _check_snapshot(run: Recorded, stream: Stream, *, is_done: bool) -> None:
    objects = _objects(stream)
    committed = run.disk.before
    assert all(objects[path] == committed[path] for path in committed if path in objects)
    with stream.open() as repository:
        found, marks = verified(repository), marked(repository)
    assert found.ok or (found.head == 0 and not found.problems), found.problems
    assert found.head in ((run.least + 1,) if is_done else (run.least, run.least + 1))
    assert run.marks <= marks <= found.head
    assert marks == found.head or not is_done
    check_goes_on(stream, found.head)
    assert objects.items() <= _objects(stream).items()


def check_goes_on(stream: Stream, head: int) -> None:
    """Take the next snapshot and check that it follows ``head``, verifies and brings all back."""
    result = stream.snapshot()
    assert (result.status, result.sequence) == ("ok", head + 1)
    with stream.open() as repository:
        after = verified(repository)
        assert (after.ok, after.head, after.manifests) == (True, head + 1, head + 1), after.problems
        _check_books(stream, repository, head + 1)
        check_comes_back(stream, repository)


def _check_books(stream: Stream, repository: Repository, head: int) -> None:
    """Check that every object has a name somewhere, and that ledger and marks are complete."""
    chain = Chain(repository).all_verified(now=later())
    statements = {number: one.statement for number, one in chain.items()}
    assert not any(one.state_lost for one in statements.values())
    pinned = {pin.name for one in statements.values() for pin in one.pins}
    abandoned = {name for one in statements.values() for name in one.abandoned}
    assert not pinned & abandoned
    there = {path.name for path in stream.object_files()}
    assert not [name for name in there if name.startswith(".tmp-")]
    named = {repository.manifest_slot(1, number, 0) for number in statements}
    named.add(registry_slot(repository.keys.locator, 1, 0))
    assert there == pinned | abandoned | named
    assert [run.sequence for run in repository.state.runs() or ()] == list(statements)
    assert marked(repository) == head


def marked(repository: Repository) -> int:
    """Return the highest number that the stream's marks have seen."""
    marks = repository.state.high_water()
    return -1 if marks is None else marks.sequence


def check_comes_back(stream: Stream, repository: Repository) -> None:
    """Check the newest manifest out and compare it with the root; databases by their rows."""
    target = stream.base / "out"
    checkout(repository, CheckoutRequest(destination=bytes(target)), clock=later)
    told = seen(os.path.join(bytes(target), bytes(stream.root).lstrip(b"/")))
    expected = seen(bytes(stream.root))
    for path in [path for path in expected if b".db" in path]:
        expected.pop(path)
        if told.pop(path, None) and path.endswith(b".db"):
            assert rows_of(stream.root, path) == rows_of(target, bytes(stream.root) + path)
    assert told == expected
    shutil.rmtree(target)


def rows_of(top: Path, path: bytes) -> list[tuple[object, ...]]:
    """Return the rows of the test's own table in a database below a folder."""
    place = os.fsdecode(os.path.join(bytes(top), path.lstrip(b"/")))
    with closing(sqlite3.connect(place)) as connection:
        return connection.execute("SELECT x FROM t ORDER BY x").fetchall()


def verified(repository: Repository) -> Verified:
    """Verify all data of a stream."""
    request = VerifyRequest(level=Level.DATA)
    return verify(repository, request, clock=later, progress=SilentProgress())


def _check_init(run: Recorded, *, is_done: bool) -> None:
    """A stream is there whole, or a second init makes it or says what stands in its way."""
    before = pictured(run.home)
    try:
        stream = Stream(run.base)
    except ConfigurationError as error:
        assert error.code == "config.exists"  # keys are never overwritten; it says what to do
        assert not is_done
    except RepositoryStateError:
        assert not is_done
    else:
        check_goes_on(stream, 0)
        assert (Path(os.fsdecode(stream.places.keys)) / "notes.card").stat().st_size > 0
    after = pictured(run.home)
    keys = [path for path in before if b"/keys/" in path and b"/.tmp-" not in path]
    assert all(after[path] == before[path] for path in keys)


def _objects(stream: Stream) -> Picture:
    home = bytes(stream.base / "notes") + b"/"
    return {
        bytes(path).removeprefix(home): path.read_bytes()
        for path in stream.object_files()
        if not path.name.startswith(".tmp-")
    }


# --- what is recorded ---


def _fresh(base: Path) -> None:
    fill(base / "root", {"f": b"one"})


def _first(base: Path) -> Stream:
    stream = Stream(base)
    fill(stream.root, {f"d{n % 3}/f{n}": os.urandom(500 + 900 * n) for n in range(7)})
    return stream


def _later(base: Path) -> Stream:
    stream = _first(base)
    with closing(sqlite3.connect(stream.root / "a.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.execute("INSERT INTO t VALUES (1)")
    stream.snapshot()
    with closing(sqlite3.connect(stream.root / "a.db", isolation_level=None)) as connection:
        connection.execute("INSERT INTO t VALUES (2)")
    fill(stream.root, {"d0/f0": b"changed", "new/deep/file": os.urandom(3000)})
    os.unlink(stream.root / "d1" / "f1")
    return stream


def _after_kill(owner: object, name: str) -> Callable[[Path], Stream]:
    def prepare(base: Path) -> Stream:
        stream = _later(base)
        child = os.fork()
        if child == 0:
            try:
                setattr(owner, name, lambda *_, **__: os._exit(_DEAD))
                stream.snapshot()
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == _DEAD
        return stream

    return prepare


RUNS: dict[str, Callable[[Path], Stream | None]] = {
    "init": _fresh,
    "first": _first,
    "later": _later,
    "resumed": _after_kill(publisher, "publish_record"),
    "unnoted": _after_kill(publisher, "note_manifest"),
}
"""A new stream; its first snapshot; one of what changed since; one after a run that was killed
before its manifest; one after a run that was killed when its manifest stood and nobody knew."""
