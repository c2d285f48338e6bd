"""Kill a real process at every file event of a write: what is visible is whole, or nothing is.

The child runs the write and ends itself, without any clean-up, just before its n-th event:
every open, mkdir, link, rename and remove through an audit hook, and every write and fsync.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from durarepo.core.names import ObjectName
from durarepo.local.audit import AuditLog
from durarepo.local.journal import Journal
from durarepo.store import atomic
from durarepo.store.localdir import LocalDir
from durarepo.store.port import Put

EVENTS = frozenset({"open", "os.mkdir", "os.link", "os.rename", "os.remove", "os.truncate"})
KILLED = 99
OLD, NEW = b"old" * 5000, b"new" * 9000


class _Held:
    is_held = True


def _run_killed_at(number: int, work: Callable[[], object]) -> bool:
    """Run ``work`` in a child that dies before event ``number``; tell whether it died."""
    child = os.fork()
    if child == 0:
        try:
            _arm(number)
            work()
        except BaseException:  # noqa: BLE001  # nothing may come back into pytest
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in {0, KILLED}, f"the child failed by itself before event {number}"
    return code == KILLED


def _arm(number: int) -> None:
    left = number

    def event(name: str, _facts: object) -> None:
        nonlocal left
        if name in EVENTS:
            if left == 0:
                os._exit(KILLED)
            left -= 1

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def wrapper(*given: object, **named: object) -> object:
            event("open", None)
            return call(*given, **named)

        return wrapper

    for name in ("write", "fsync", "ftruncate"):
        setattr(os, name, counted(getattr(os, name)))
    sys.addaudithook(event)


def _each_kill(work: Callable[[int], object]) -> Iterator[int]:
    """Yield the number of each kill after it; the caller looks at the disk and sets it back."""
    for number in range(200):
        if not _run_killed_at(number, lambda: work(number)):  # noqa: B023  # runs before the next
            assert number > 2, "the write had hardly any event: the hook does not see it"
            return
        yield number
    pytest.fail("the write never came to its end")


@pytest.fixture(params=["nameless", "named"])
def temporaries(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of writing: with nameless files, and as on file systems that have none."""
    if request.param == "named":
        monkeypatch.setattr(os, "O_TMPFILE", os.O_TMPFILE | os.O_CREAT)  # EINVAL, as elsewhere
    return str(request.param)


def test_kill_at_every_event_of_put_new_leaves_whole_objects_or_none(
    tmp_path: Path, temporaries: str
) -> None:
    """Half an object under its name, or debris that nobody recognises (A4a, P16)."""
    data = [b"x" * 100_000, b"y" * 50_000]
    whole = b"".join(data)
    name = ObjectName(hashlib.sha256(whole).hexdigest())
    outcomes = []

    def work(number: int) -> object:
        with LocalDir(bytes(tmp_path / f"{number}"), create=True) as store:
            return store.put_new(name, iter(data))

    for number in _each_kill(work):
        folder = bytes(tmp_path / f"{number}")
        with LocalDir(folder, create=True) as store:
            seen = list(store.iter_names())
            leftovers = list(store.iter_leftovers())

            outcomes.append(len(seen))
            assert seen in ([], [name])
            assert [store.read(each) for each in seen] in ([], [whole])
            assert temporaries == "named" or leftovers == []
            assert len(leftovers) <= 1

            assert store.put_new(name, iter(data)) in {Put.CREATED, Put.ALREADY_THERE}
            assert store.read(name) == whole
            assert store.remove_leftovers(_Held()) == len(leftovers)
            assert {path.name for path in Path(os.fsdecode(folder)).rglob("*")} == {name, name[:2]}
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {0, 1}


def test_kill_at_every_event_of_put_pack_leaves_whole_packs_or_none(
    tmp_path: Path, temporaries: str
) -> None:
    """A pack has no name until its end; a kill before must not invent one."""

    def work(number: int) -> object:
        with LocalDir(bytes(tmp_path / str(number)), create=True) as store:
            return store.put_pack([b"a" * 70_000, b"b" * 10])

    for number in _each_kill(work):
        with LocalDir(bytes(tmp_path / str(number)), create=True) as store:
            for name in store.iter_names():
                assert hashlib.sha256(store.read(name)).hexdigest() == name
            assert temporaries == "named" or not list(store.iter_leftovers())


@pytest.mark.usefixtures("temporaries")
def test_kill_at_every_event_of_replace_small_leaves_old_or_new(tmp_path: Path) -> None:
    """A torn high-water mark would read as damage, or worse as a lower mark."""
    path = tmp_path / "state.json"
    seen = set()
    path.write_bytes(OLD)

    for _ in _each_kill(lambda _: atomic.replace_small(bytes(path), NEW)):
        seen.add(path.read_bytes())
        path.write_bytes(OLD)

    assert seen == {OLD, NEW}
    left = {each.name for each in tmp_path.iterdir()} - {path.name}
    assert all(atomic.is_temporary(os.fsencode(name)) for name in left)


def test_kill_at_every_event_of_an_append_keeps_the_lines_before(tmp_path: Path) -> None:
    """A killed append must cost at most its own line, and the next one must still follow."""
    path = bytes(tmp_path / "audit")
    log = AuditLog(path)
    now = datetime.fromisoformat("2026-01-02T03:04:05Z")
    log.append("first", {}, now)

    for count in _each_kill(lambda _: log.append("killed", {}, now)):
        before = sum(1 for _ in atomic.iter_lines(path))
        log.append("after", {"count": count}, now)

        assert sum(1 for _ in atomic.iter_lines(path)) == before + 1
        assert log.check() == log.head()


def test_kill_at_every_event_of_a_new_generation_loses_no_resume_point(tmp_path: Path) -> None:
    """Between two generations of the journal there must always be one to resume from."""
    journal = Journal(bytes(tmp_path / "journal"))
    journal.begin(b"run 1", [b"pack 1", b"pack 2"])
    journal.close()

    def work(_: int) -> None:
        journal.begin(b"run 2", journal.read_all())
        journal.append(b"pack 3")

    for _ in _each_kill(work):
        assert journal.read_all()[:2] == [b"pack 1", b"pack 2"]
        names = {each.name for each in (tmp_path / "journal").iterdir()}
        assert {name for name in names if not name.startswith(".tmp-")} <= {"current", "previous"}


def test_the_order_of_a_write_is_the_guarantee(
    tmp_path: Path, temporaries: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power failure obeys only fsync: the file before its name, the folder before the answer."""
    done: list[str] = []
    real_write, real_fsync, real_link = os.write, os.fsync, os.link

    def fsync(descriptor: int) -> None:
        done.append("fsync folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "fsync")
        real_fsync(descriptor)

    def write(descriptor: int, data: bytes) -> int:
        done.append("write")
        return real_write(descriptor, data)

    def link(*given: object, **named: object) -> None:
        done.append("link")
        real_link(*given, **named)  # type: ignore[arg-type]  # handed through

    with LocalDir(bytes(tmp_path / "objects"), create=True) as store:
        store.put_new(ObjectName("ab" * 32), b"first makes the folder")
        monkeypatch.setattr(os, "write", write)
        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(os, "link", link)

        store.put_new(ObjectName("ab" + "cd" * 31), b"bytes")

    assert done == ["write", "fsync", "link", "fsync folder"], temporaries


def test_a_folder_left_by_a_dead_run_is_made_durable_before_anything_in_it_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dead run may not have synced the folder's own name: the object would vanish with it."""
    objects = tmp_path / "objects"
    (objects / "ab").mkdir(parents=True)
    synced: list[str] = []
    real_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real_fsync(descriptor)

    with LocalDir(bytes(objects)) as store:
        monkeypatch.setattr(os, "fsync", fsync)
        store.put_new(ObjectName("ab" * 32), b"bytes")

    assert str(objects) in synced
    assert synced[-1] == str(objects / "ab")


def test_putting_again_makes_durable_what_a_dead_run_only_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """'Already there' is a promise too: a manifest is about to rest on it."""
    with LocalDir(bytes(tmp_path / "objects"), create=True) as store:
        store.put_new(ObjectName("ab" * 32), b"bytes")
    synced: list[str] = []
    real_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        real_fsync(descriptor)

    with LocalDir(bytes(tmp_path / "objects")) as store:
        monkeypatch.setattr(os, "fsync", fsync)
        assert store.put_new(ObjectName("ab" * 32), b"bytes") is Put.ALREADY_THERE

    assert synced == ["ab" * 32, "ab"]
