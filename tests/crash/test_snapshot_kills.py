"""A snapshot killed anywhere: the next run finishes, by itself, and loses and repeats little.

The child takes a snapshot and dies at its n-th change of the file system, or when the parent
kills it. After each death the same promises are checked by `check_recovers`.
"""

import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from durarepo.repository import publisher
from durarepo.repository import workbench as bench
from durarepo.repository.writer import NewPack
from tests.doubles.children import die_with_parent
from tests.machines.opens import opened_files
from tests.machines.stream import Stream, fill

_CHANGES = frozenset(
    {"os.link", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "sqlite3.connect"}
)
_DEAD = 99
_STEP = 1 if os.environ.get("DURAREPO_TESTS_LONG") else 11
"""Every event is tried in the long mode, a share of them in each other run."""


def killed(
    stream: Stream, event: int, change: Callable[[Stream], object] = Stream.snapshot
) -> bool:
    """Take a snapshot, or make another change, in a child that dies at its n-th event.

    Returns False if the child came to its end. Events are all calls that change a folder, and
    every `fsync`, before it is done.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _die_at(event)
            change(stream)
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, _DEAD), f"the child failed with {code}"
    return code == _DEAD


def _die_at(event: int) -> None:
    left = [event]

    def step() -> None:
        left[0] -= 1
        if left[0] == 0:
            os._exit(_DEAD)

    def hook(name: str, _: object) -> None:
        if name in _CHANGES:
            step()

    real = os.fsync

    def fsync(fd: int) -> None:
        step()
        real(fd)

    sys.addaudithook(hook)
    os.fsync = fsync  # type: ignore[assignment]  # in the child alone


def check_recovers(stream: Stream, known: set[str]) -> None:
    """Take a snapshot after a kill and check that the chain, the files and the store are whole.

    Args:
        stream: whose run was killed.
        known: objects that were there before; none of them may be gone.
    """
    result = stream.snapshot()

    assert result.status == "ok"
    statements = stream.statements()
    assert list(statements) == list(range(1, (result.sequence or 0) + 1))
    assert not any(one.state_lost for one in statements.values())
    stream.check_restores()
    there = {path.name for path in stream.object_files()}
    assert known <= there
    pinned = {pin.name for one in statements.values() for pin in one.pins}
    abandoned = {name for one in statements.values() for name in one.abandoned}
    assert not pinned & abandoned
    with stream.open() as repository:
        slots = {repository.manifest_slot(1, number, 0) for number in statements}
    assert len(there - pinned - abandoned - slots) == 1  # the registry
    assert pinned | slots <= there
    assert list(stream.objects.rglob(".tmp-*")) == []


def _objects(stream: Stream) -> set[str]:
    return {path.name for path in stream.object_files()}


def _small_packs(stream: Stream) -> None:
    """Let a few hundred KiB fill several packs."""
    path = Path(os.fsdecode(stream.places.configuration))
    path.write_text("max_object_bytes = 1048576\n" + path.read_text())


def _filled(folder: Path) -> Stream:
    stream = Stream(folder)
    _small_packs(stream)
    fill(stream.root, {f"d{n % 3}/f{n}": os.urandom(220_000) for n in range(18)})
    return stream


@pytest.mark.slow
def test_a_first_snapshot_killed_at_any_event_is_finished_by_the_next(tmp_path: Path) -> None:
    """Every boundary between two changes on disk is one where power fails some day (A4a)."""
    event, deaths = 1, 0
    while True:
        stream = _filled(tmp_path / str(event))
        known = _objects(stream)
        if not killed(stream, event):
            break
        deaths += 1
        check_recovers(stream, known)
        event += _STEP
    assert deaths >= 5


@pytest.mark.slow
def test_a_later_snapshot_killed_at_any_event_is_finished_by_the_next(tmp_path: Path) -> None:
    """The same on one stream, so that each run also inherits what the last one left."""
    stream = _filled(tmp_path)
    stream.snapshot()
    event = 1
    while True:
        fill(stream.root, {f"d1/n{event}": os.urandom(700_000), "d0/f0": b"%d" % event})
        known = _objects(stream)
        if not killed(stream, event):
            break
        check_recovers(stream, known)
        event += _STEP
    assert event > 20


def test_killed_again_and_again_it_still_comes_to_its_end(tmp_path: Path) -> None:
    """A machine that is switched off every few minutes must finish its first backup some day."""
    stream = _filled(tmp_path)
    known = _objects(stream)
    event = 12
    while killed(stream, event):
        event += 4

    check_recovers(stream, known)
    assert sum(path.stat().st_size for path in stream.object_files()) < 2 * 18 * 220_000


def test_a_run_killed_at_random_moments_is_finished_by_the_next(tmp_path: Path) -> None:
    """SIGKILL asks nobody; the seed is printed so that a failure can be had again."""
    seed = int.from_bytes(os.urandom(4))
    sys.stdout.write(f"seed {seed}\n")
    chance = random.Random(seed)  # noqa: S311  # no secret: moments of kills
    stream = _filled(tmp_path)
    for round_number in range(4):
        known = _objects(stream)
        child = os.fork()
        if child == 0:
            die_with_parent()
            try:
                stream.snapshot()
            finally:
                os._exit(0)
        time.sleep(chance.uniform(0.0, 0.4))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        check_recovers(stream, known)
        fill(stream.root, {f"d{round_number % 3}/more": os.urandom(900_000)})


def test_the_next_run_reads_again_at_most_what_was_in_the_unfinished_pack(tmp_path: Path) -> None:
    """A first backup of terabytes that starts over after each reboot never ends."""
    stream = _filled(tmp_path)
    _die_after_packs(stream, 3)
    known = _objects(stream)

    with opened_files(bytes(stream.root)) as opens:
        result = stream.snapshot()

    assert 0 < len(set(opens)) <= 18 - 3 * 4
    assert result.new_bytes < 18 * 220_000 - 2_500_000
    pinned = {pin.name for pin in stream.statements()[1].pins}
    assert len(known - pinned) == 1  # the registry: each pack of the killed run was taken over
    check_recovers(stream, known)


def _die_before(owner: object, name: str) -> Callable[[], None]:
    def arrange() -> None:
        def die(*_: object, **__: object) -> None:
            os._exit(_DEAD)

        setattr(owner, name, die)

    return arrange


def _boundaries() -> dict[str, Callable[[], None]]:
    from durarepo.local.catalog import Catalog
    from durarepo.local.journal import Journal
    from durarepo.local.statefiles import StateFiles

    return {
        "record": _die_before(publisher, "publish_record"),
        "envelope": _die_before(publisher, "note_manifest"),
        "ledger": _die_before(StateFiles, "append_run"),
        "pins": _die_before(StateFiles, "replace_live_pins"),
        "marks": _die_before(StateFiles, "raise_high_water"),
        "catalogue": _die_before(Catalog, "add_manifest"),
        "journal": _die_before(Journal, "complete"),
    }


def _die_in_child(stream: Stream, arrange: Callable[[], None]) -> None:
    child = os.fork()
    if child == 0:
        try:
            arrange()
            stream.snapshot()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == _DEAD


_LOSSES = ("", "state", "catalog", "journal", "catalog state journal")


@pytest.mark.parametrize(
    ("boundary", "loss"),
    [(boundary, loss) for boundary in sorted(_boundaries()) for loss in ("", "state")]
    + [("envelope", loss) for loss in _LOSSES[2:]]
    + [("pins", "catalog state journal"), ("record", "journal")],
)
def test_a_kill_between_the_envelope_and_its_bookkeeping_is_made_good(
    tmp_path: Path, boundary: str, loss: str
) -> None:
    """The manifest stands although nobody noted it: the next number must follow on it."""
    stream = Stream(tmp_path)
    fill(stream.root, {f"d{n % 3}/f{n}": os.urandom(1000) for n in range(12)})
    stream.snapshot()
    fill(stream.root, {"d0/new": os.urandom(5000)})
    _die_in_child(stream, _boundaries()[boundary])
    stands = boundary != "record"
    known = _objects(stream)
    stream.lose(**dict.fromkeys(loss.split(), True))

    with opened_files(bytes(stream.root)) as opens:
        result = stream.snapshot()

    assert result.sequence == (3 if stands else 2)
    if not loss and stands:
        assert set(opens) <= {bytes(stream.root / "d0" / "new")}
        assert result.new_chunks == 0
    assert result.new_bytes < 7000 * (1 + ("journal" in loss))
    statements = stream.statements()
    assert list(statements) == list(range(1, (result.sequence or 0) + 1))
    assert not any(one.state_lost for one in statements.values())
    pinned = {pin.name for one in statements.values() for pin in one.pins}
    assert not pinned & set(statements[max(statements)].abandoned)
    assert known <= _objects(stream)
    stream.check_restores()
    _check_state(stream, list(statements))
    again = stream.snapshot()
    assert (again.sequence, again.new_chunks) == ((result.sequence or 0) + 1, 0)


def _check_state(stream: Stream, sequences: list[int]) -> None:
    with stream.open() as repository:
        runs = repository.state.runs() or []
        assert [int(run.sequence) for run in runs] == sequences
        marks = repository.state.high_water()
        assert marks is not None
        assert marks.sequence == max(sequences)


@pytest.mark.parametrize(
    ("boundary", "loss"),
    [("envelope", loss) for loss in _LOSSES]
    + [
        ("record", ""),
        ("record", "state"),
        ("pins", ""),
        ("pins", "journal"),
        ("journal", "state"),
    ],
)
def test_on_a_put_only_machine_a_kill_is_made_good_too(
    tmp_path: Path, boundary: str, loss: str
) -> None:
    """Without an identity nothing old can be read; what cannot be known is sealed anew."""
    stream = Stream(tmp_path, put_only=True)
    fill(stream.root, {f"d{n % 3}/f{n}": os.urandom(1000) for n in range(12)})
    stream.snapshot()
    fill(stream.root, {"d0/new": os.urandom(5000)})
    _die_in_child(stream, _boundaries()[boundary])
    stands = boundary != "record"
    known = _objects(stream)
    stream.lose(**dict.fromkeys(loss.split(), True))

    result = stream.snapshot()
    later = stream.snapshot()

    with_identity(stream)
    statements = stream.statements()
    assert result.sequence == (3 if stands else 2)
    lost = "state" in loss or ("journal" in loss and boundary in ("envelope", "pins"))
    assert statements[result.sequence].state_lost == lost
    assert not statements[later.sequence or 0].state_lost
    assert later.new_chunks == 0
    if lost:
        assert result.new_bytes >= 12_000  # all but what the killed run itself had stored
    for one in statements.values():
        pinned = {pin.name for other in statements.values() for pin in other.pins}
        assert not pinned & set(one.abandoned)
    assert known <= _objects(stream)
    stream.check_restores()


def with_identity(stream: Stream) -> None:
    """Bring the identity back, so that a test can read what a put-only machine wrote."""
    source = stream.base / "away" / "identity.key"
    target = Path(os.fsdecode(stream.places.keys)) / "identity.key"
    target.write_bytes(source.read_bytes())
    target.chmod(0o600)


def test_what_a_killed_run_left_is_told_of_even_after_two_more_kills(tmp_path: Path) -> None:
    """A pack that no manifest names and nobody remembers stays in the store for ever."""
    stream = _filled(tmp_path)
    stream.snapshot()
    fill(stream.root, {"d0/n": os.urandom(900_000)})
    events = iter(range(5, 100))
    while not (_objects(stream) - _named(stream)):
        assert killed(stream, next(events))
    loose = _objects(stream) - _named(stream)
    os.unlink(stream.root / "d0" / "n")
    _die_in_child(stream, _boundaries()["record"])
    _die_in_child(stream, _boundaries()["record"])

    stream.snapshot()

    assert loose <= set(stream.statements()[2].abandoned)


def _named(stream: Stream) -> set[str]:
    statements = stream.statements()
    named = {pin.name for one in statements.values() for pin in one.pins}
    named |= {name for one in statements.values() for name in one.abandoned}
    with stream.open() as repository:
        named |= {repository.manifest_slot(1, number, 0) for number in statements}
    first = [path.name for path in stream.object_files() if path.name not in named]
    oldest = min(first, key=lambda name: stream.object_path(name).stat().st_mtime_ns)
    return named | {oldest}  # the registry


def _die_after_packs(stream: Stream, count: int) -> None:
    packs = [0]
    child = os.fork()
    if child == 0:
        try:
            real = bench.Workbench._note_pack

            def noting(self: bench.Workbench, new: NewPack) -> None:
                real(self, new)
                packs[0] += 1
                if packs[0] == count:
                    os._exit(_DEAD)

            bench.Workbench._note_pack = noting  # type: ignore[method-assign]  # in the child alone
            stream.snapshot()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == _DEAD


def test_a_database_of_a_killed_run_is_captured_anew(tmp_path: Path) -> None:
    """What was committed to its log since does not show in its main file, which looks the same."""
    stream = _filled(tmp_path)
    path = stream.root / "d0" / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (x)")
        connection.execute("INSERT INTO t VALUES (1)")
        _die_after_packs(stream, 3)
        connection.execute("INSERT INTO t VALUES (2)")

        stream.snapshot()

    with closing(sqlite3.connect(stream.restored_root() / "d0" / "a.db")) as connection:
        assert connection.execute("SELECT x FROM t").fetchall() == [(1,), (2,)]
    assert [one.kind for one in stream.nested().components] == ["files", "sqlite"]


def test_a_pack_of_a_manifest_that_was_put_is_never_called_abandoned(tmp_path: Path) -> None:
    """The pruner may delete what is abandoned; manifest 2 still needs what manifest 3 does not."""
    stream = Stream(tmp_path)
    fill(stream.root, {"a": os.urandom(1000)})
    stream.snapshot()
    fill(stream.root, {"b": os.urandom(50_000)})
    _die_in_child(stream, _boundaries()["journal"])
    os.unlink(stream.root / "b")

    stream.snapshot()

    statements = stream.statements()
    assert {pin.name for pin in statements[2].pins} - {pin.name for pin in statements[3].pins}
    assert statements[3].abandoned == ()
