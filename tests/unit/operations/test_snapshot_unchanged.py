"""What counts as unchanged, what is left out, and what counts against a run."""

import mmap
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from durarepo.core.errors import SourceError, StoreError
from durarepo.core.progress import SilentProgress
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import LedgerLine, OmissionClass, encode_ledger, parse_ledger
from durarepo.format.tree import encode_entry
from durarepo.local.configuration import parse_configuration
from durarepo.operations.snapshot import SnapshotRequest, snapshot
from durarepo.repository import treekeeper
from durarepo.repository.chunks import ChunkSink
from durarepo.source import sqlitestate
from tests.doubles.children import UNPRIVILEGED, let_others_pass, mount, run_in_child
from tests.machines.opens import opened_files
from tests.machines.stream import Stream, fill, later, omissions


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Give a fresh stream with an empty root."""
    return Stream(tmp_path)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """Count what is encoded and handed over for storing."""
    counts = {"entries": 0, "trees": 0}
    encode, put = encode_entry, ChunkSink.put

    def counting_encode(entry: object) -> bytes:
        counts["entries"] += 1
        return encode(entry)  # type: ignore[arg-type]  # an entry, as given

    def counting_put(self: ChunkSink, kind: ChunkKind, *given: object) -> object:
        counts["trees"] += kind is ChunkKind.TREE
        return put(self, kind, *given)  # type: ignore[arg-type]  # as given

    with monkeypatch.context() as patch:
        patch.setattr(treekeeper, "encode_entry", counting_encode)
        patch.setattr(ChunkSink, "put", counting_put)
        yield counts


def _own_folder(folder: Path) -> Path:
    """Make a folder that belongs to an unprivileged child."""
    let_others_pass(folder)
    own = folder / "own"
    own.mkdir(mode=0o700)
    os.chown(own, UNPRIVILEGED, UNPRIVILEGED)
    return own


# --- unchanged -----------------------------------------------------------------------------


def test_unchanged_files_are_not_opened_and_folders_not_encoded(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next day of a tree that nobody touched must cost a look, not a read (A3g)."""
    fill(stream.root, {f"d{n % 7}/e{n % 3}/f{n}": b"%d" % n for n in range(60)})
    stream.snapshot()
    before = stream.object_files()

    with opened_files(bytes(stream.root)) as opens, counted(monkeypatch) as counts:
        result = stream.snapshot()

    assert opens == []
    assert counts == {"entries": 0, "trees": 0}
    assert (result.new_chunks, result.packs, result.files) == (0, 0, 60)
    assert len(stream.object_files()) == len(before) + 1  # the manifest
    stream.check_restores()


def test_one_changed_file_opens_it_alone_and_encodes_its_parents(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single edit must not cost the reading of its neighbours."""
    fill(stream.root, {f"d{n % 7}/e{n % 3}/f{n}": b"%d" % n for n in range(60)})
    stream.snapshot()
    (stream.root / "d0" / "e0" / "f0").write_bytes(b"changed")

    with opened_files(bytes(stream.root)) as opens, counted(monkeypatch) as counts:
        result = stream.snapshot()

    assert set(opens) == {bytes(stream.root / "d0" / "e0" / "f0")}
    assert counts["trees"] == 3
    assert result.new_chunks == 4
    stream.check_restores()


def test_an_edit_of_the_same_size_with_its_time_put_back_is_stored(stream: Stream) -> None:
    """Who trusts size and time alone misses what rsync-like tools and attackers do."""
    path = stream.root / "file"
    path.write_bytes(b"old content")
    stream.snapshot()
    told = path.stat()
    path.write_bytes(b"new content")
    os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns))

    stream.snapshot()

    assert (stream.restored_root() / "file").read_bytes() == b"new content"


def test_an_edit_in_the_same_tick_as_the_read_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two writes within one tick of the clock leave equal times: the young is read again."""
    stream = Stream(tmp_path, clock=lambda: int(time.time()))
    path = stream.root / "file"
    path.write_bytes(b"old content")
    stream.snapshot()
    young = path.stat()
    path.write_bytes(b"new content")
    real_stat = os.DirEntry.stat
    assert callable(real_stat)
    from durarepo.source import walk

    take = walk._Listing.take

    def frozen(self: walk._Listing, entries: Iterator[os.DirEntry[str]]) -> None:
        take(self, entries)
        self.names[:] = [(name, young if name == b"file" else found) for name, found in self.names]

    monkeypatch.setattr(walk._Listing, "take", frozen)

    stream.snapshot()

    assert (stream.restored_root() / "file").read_bytes() == b"new content"


def test_a_time_far_ahead_does_not_cost_a_read_every_night(stream: Stream) -> None:
    """A file dated 2038 by its maker is unchanged like any other."""
    path = stream.root / "file"
    path.write_bytes(b"from the future")
    os.utime(path, ns=(0, 2_200_000_000 * 1_000_000_000))
    stream.snapshot()

    with opened_files(bytes(stream.root)) as opens:
        stream.snapshot()

    assert opens == []


def test_a_missing_or_short_pack_makes_its_files_be_read_again(stream: Stream) -> None:
    """Deduplicating against a pack that is gone loses the file for good (law 3)."""
    fill(stream.root, {"a": os.urandom(1000), "b/c": os.urandom(100_000)})
    stream.snapshot()
    (stream.root / "new").write_bytes(os.urandom(10_000))
    stream.snapshot()
    pins = {pin.name for pin in stream.statements()[2].pins}
    for kind in ("gone", "short"):
        for name in pins:
            path = stream.object_path(name)
            if kind == "gone":
                path.unlink()
            else:
                path.write_bytes(path.read_bytes()[:-1])

        result = stream.snapshot()

        assert result.new_bytes >= 111_000
        stream.check_restores()
        now = {pin.name for pin in stream.statements()[result.sequence or 0].pins}
        assert not now & pins
        pins = now


def test_a_damaged_pack_is_not_deduplicated_against_once_the_catalogue_is_gone(
    stream: Stream,
) -> None:
    """The rows of a pack come from an index that fits its pin, or not at all."""
    fill(stream.root, {"a": os.urandom(1000)})
    stream.snapshot()
    for pin in stream.statements()[1].pins:
        path = stream.object_path(pin.name)
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    stream.lose(catalog=True)

    result = stream.snapshot()

    assert result.new_bytes >= 1000
    stream.check_restores()


def test_appending_to_a_large_file_writes_little_more_than_was_added(stream: Stream) -> None:
    """A day's log lines must not store the log anew: at most 1 MiB + 512 KiB (A3g)."""
    path = stream.root / "log"
    with open(path, "wb") as file:
        for _ in range(96):
            file.write(os.urandom(1 << 20))
    stream.snapshot()
    with open(path, "ab") as file:
        file.write(os.urandom(1 << 20))

    result = stream.snapshot()

    assert 1 << 20 <= result.new_bytes <= (1 << 20) + (256 << 10)
    assert result.stored_bytes <= (1 << 20) + (512 << 10)


def test_renaming_a_folder_stores_no_content_again(stream: Stream) -> None:
    """A folder that moved holds the same bytes; only its listing is new."""
    fill(stream.root, {f"old/deep/f{n}": os.urandom(5000) for n in range(20)})
    stream.snapshot()
    os.rename(stream.root / "old", stream.root / "new")

    result = stream.snapshot()

    assert result.new_bytes < 5000
    stream.check_restores()


def test_a_folder_that_became_a_file_and_back_is_seen(stream: Stream) -> None:
    """What the catalogue knows of a name must not outlive its type."""
    fill(stream.root, {"x/y/z": b"deep"})
    stream.snapshot()
    shutil.rmtree(stream.root / "x")
    (stream.root / "x").write_bytes(b"file now")
    stream.snapshot()
    stream.check_restores()
    os.unlink(stream.root / "x")
    fill(stream.root, {"x/y/other": b"deep again"})
    stream.snapshot()
    stream.check_restores()
    (stream.root / "x" / "y" / "other").chmod(0o600)
    stream.snapshot()
    stream.check_restores()


# --- roots ---------------------------------------------------------------------------------


def test_a_root_that_is_gone_ends_the_run_and_the_head_stays(stream: Stream) -> None:
    """A missing source is a failure, never an empty backup (X2)."""
    fill(stream.root, {"a": b"1"})
    stream.snapshot()
    os.rename(stream.root, stream.base / "moved")

    with pytest.raises(SourceError):
        stream.snapshot()

    assert list(stream.statements()) == [1]
    os.rename(stream.base / "moved", stream.root)
    assert stream.snapshot().sequence == 2


def test_one_root_of_two_that_is_gone_ends_the_run(tmp_path: Path) -> None:
    """Half of what was declared is not a backup of it (X2)."""
    for name in ("one", "two"):
        fill(tmp_path / name, {"file": name.encode()})
    stream = Stream(tmp_path, roots=(bytes(tmp_path / "one"), bytes(tmp_path / "two")))
    assert stream.snapshot().files == 2
    shutil.rmtree(tmp_path / "two")

    with pytest.raises(SourceError):
        stream.snapshot()

    assert list(stream.statements()) == [1]


def test_an_unreadable_root_ends_the_run(tmp_path: Path) -> None:
    """A folder that may not be listed looks empty to a careless walk."""
    own = _own_folder(tmp_path)

    def work() -> None:
        stream = Stream(own)
        fill(stream.root, {"a": b"1"})
        stream.snapshot()
        for mode in (0o000, 0o100, 0o300):
            stream.root.chmod(mode)
            with pytest.raises(SourceError):
                stream.snapshot()
        stream.root.chmod(0o700)
        assert list(stream.statements()) == [1]

    run_in_child(work, user=UNPRIVILEGED)


def test_a_root_whose_listing_breaks_off_ends_the_run(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk error while the root is listed must not become a manifest of less."""
    fill(stream.root, {"a": b"1"})
    stream.snapshot()
    real = os.scandir

    def broken(path: object) -> object:
        if isinstance(path, int):
            raise OSError(5, "Input/output error")
        return real(path)  # type: ignore[call-overload]  # as given

    monkeypatch.setattr(os, "scandir", broken)
    with pytest.raises(SourceError) as caught:
        stream.snapshot()
    monkeypatch.undo()

    assert caught.value.code == "source.root-unreadable"
    assert list(stream.statements()) == [1]


def test_an_empty_mount_point_that_held_files_ends_the_run(stream: Stream) -> None:
    """A disk that is not mounted is not a person who deleted everything."""

    def work() -> None:
        mount("-t", "tmpfs", "none", str(stream.root))
        fill(stream.root, {"a": b"1"})
        stream.snapshot()
        mount("-t", "tmpfs", "none", str(stream.root))
        _check_refused(stream)
        stream.lose(catalog=True)
        _check_refused(stream)

    run_in_child(work, own_mounts=True)


def test_a_disk_that_is_not_mounted_any_more_ends_the_run(stream: Stream) -> None:
    """The folder below a mount point is empty, and nothing is mounted on it now."""

    def work() -> None:
        mount("-t", "tmpfs", "none", str(stream.root))
        fill(stream.root, {"a": b"1"})
        stream.snapshot()

    run_in_child(work, own_mounts=True)

    _check_refused(stream)


def _check_refused(stream: Stream) -> None:
    with pytest.raises(SourceError) as caught:
        stream.snapshot()
    assert caught.value.code == "source.root-empty-mount"
    assert list(stream.statements()) == [1]


def test_a_root_emptied_by_hand_is_kept_empty(stream: Stream) -> None:
    """Where nothing is or was mounted, empty is what the owner made of it."""
    fill(stream.root, {"a": b"1"})
    stream.snapshot()
    os.unlink(stream.root / "a")

    result = stream.snapshot()

    assert (result.status, result.files) == ("ok", 0)


# --- mounts and own state ------------------------------------------------------------------


def test_the_kernels_file_systems_are_left_out_and_others_crossed(stream: Stream) -> None:
    """Reading /proc as files is endless; leaving out a mounted disk is a lost disk."""

    def work() -> None:
        for name, kind in (("p", "proc"), ("s", "sysfs"), ("t", "tmpfs")):
            (stream.root / name).mkdir()
            mount("-t", kind, "none", str(stream.root / name))
        fill(stream.root, {"t/inside": b"on another disk", "own": b"1"})

        result = stream.snapshot()

        told = {line.path: line.rule for line in result.left_out}
        assert told == {
            bytes(stream.root / "p"): "pseudo-filesystem",
            bytes(stream.root / "s"): "pseudo-filesystem",
        }
        assert (result.files, result.excluded, result.status) == (2, 2, "ok")
        assert bytes(stream.root / "t" / "inside") in stream.entries()

    run_in_child(work, own_mounts=True)


def test_one_filesystem_stays_on_its_disk(stream: Stream) -> None:
    """An operator who asks for one disk must not get the network share on it."""
    path = Path(os.fsdecode(stream.places.configuration))
    path.write_text(path.read_text() + "one_filesystem = true\n")
    assert parse_configuration(path.read_bytes()).roots[0].one_filesystem

    def work() -> None:
        (stream.root / "t").mkdir()
        mount("-t", "tmpfs", "none", str(stream.root / "t"))
        fill(stream.root, {"t/inside": b"on another disk", "own": b"1"})

        result = stream.snapshot()

        assert [line.rule for line in result.left_out] == ["other-filesystem"]
        assert result.files == 1

    run_in_child(work, own_mounts=True)


def test_own_state_below_a_root_is_left_out(tmp_path: Path) -> None:
    """A repository that stores itself grows without end."""
    from durarepo.local.places import Places

    home = tmp_path / "home"
    fill(home, {"a": b"1"})
    stream = Stream(tmp_path, roots=(bytes(home),))
    inside = home / "repository", home / "state"
    os.rename(os.fsdecode(stream.places.repository), inside[0])
    os.rename(os.fsdecode(stream.places.state), inside[1])
    moved = Places(
        stream="notes",
        repository=bytes(inside[0]),
        keys=stream.places.keys,
        state=bytes(inside[1]),
    )
    stream = _At(tmp_path, roots=(bytes(home),), moved=moved)

    result = stream.snapshot()

    assert {line.path: line.rule for line in result.left_out} == {
        bytes(inside[0]): "own-state",
        bytes(inside[1]): "own-state",
    }
    assert result.files == 1


class _At(Stream):
    """A stream whose folders were moved."""

    def __init__(self, base: Path, *, roots: tuple[bytes, ...], moved: object) -> None:
        self._moved = moved
        super().__init__(base, roots=roots)

    @property
    def places(self) -> object:  # type: ignore[override]  # the moved ones
        return self._moved


# --- omissions -----------------------------------------------------------------------------


def test_what_may_not_be_read_is_an_omission_until_it_may(tmp_path: Path) -> None:
    """A file that could not be read must be told every night, not only the first."""
    own = _own_folder(tmp_path)

    def work() -> None:
        stream = Stream(own)
        fill(stream.root, {"ok": b"1", "secret": b"2", "closed/inside": b"3", "d/e": b"4"})
        (stream.root / "secret").chmod(0)
        (stream.root / "closed").chmod(0)
        for _ in range(2):
            result = stream.snapshot()
            assert (result.status, result.omissions) == ("omissions", 2)
            assert {(line.path, line.rule) for line in omissions(result)} == {
                (bytes(stream.root / "secret"), "source.unreadable"),
                (bytes(stream.root / "closed"), "source.unreadable"),
            }
            assert (result.files, result.dirs) == (2, 3)
        (stream.root / "secret").chmod(0o600)
        (stream.root / "closed").chmod(0o700)
        result = stream.snapshot()
        assert (result.status, result.omissions, result.files) == ("ok", 0, 4)
        stream.check_restores()

    run_in_child(work, user=UNPRIVILEGED)


def test_a_file_that_cannot_be_looked_at_makes_no_folder(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was never among the names has no entry, so it must not be counted as a folder."""
    fill(stream.root, {"a": b"1"})
    from durarepo.source import walk

    take = walk._Listing.take

    def broken(self: walk._Listing, entries: Iterator[os.DirEntry[str]]) -> None:
        take(self, entries)
        path = self._frame.path_of(b"broken")
        self.troubles.append(walk._trouble(path, OSError(5, "Input/output error")))

    monkeypatch.setattr(walk._Listing, "take", broken)

    result = stream.snapshot()

    assert (result.dirs, result.files, result.omissions) == (1, 1, 1)


def test_what_vanished_is_counted_and_is_no_omission(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Temporary files come and go; a run that calls them omissions cries wolf every night."""
    fill(stream.root, {"a": b"1", "b/c": b"2", "going": b"3", "gone/x": b"4"})
    from durarepo.source import walk

    enter = walk._Walker._enter

    def vanishing(self: walk._Walker, frame: walk._Frame) -> Iterator[object]:
        for event in enter(self, frame):
            if isinstance(event, walk.Enter) and event.path == bytes(stream.root):
                os.unlink(stream.root / "going")
                shutil.rmtree(stream.root / "gone")
            yield event

    monkeypatch.setattr(walk._Walker, "_enter", vanishing)

    result = stream.snapshot()
    monkeypatch.undo()

    assert (result.status, result.omissions, result.vanished) == ("ok", 0, 2)
    assert (result.files, result.dirs) == (2, 2)
    assert stream.snapshot().vanished == 0
    stream.check_restores()


def test_a_file_that_fails_while_it_is_read_is_an_omission_not_a_store_error(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bad sector under one file must not end the backup of all others (law 6)."""
    fill(stream.root, {"bad": b"x" * 200_000, "small": b"y" * 100, "good": b"z"})
    real_read, real_pread = os.read, os.pread
    bad = {(stream.root / name).stat().st_ino for name in ("bad", "small")}

    def failing(real: object, fd: int, *given: int) -> bytes:
        if os.fstat(fd).st_ino in bad:
            raise OSError(5, "Input/output error")
        return real(fd, *given)  # type: ignore[operator,no-any-return]  # os.read or os.pread

    monkeypatch.setattr(os, "read", lambda fd, n: failing(real_read, fd, n))
    monkeypatch.setattr(os, "pread", lambda fd, n, at: failing(real_pread, fd, n, at))

    result = stream.snapshot()
    monkeypatch.undo()

    assert (result.status, result.omissions, result.files) == ("omissions", 2, 1)
    assert stream.snapshot().status == "ok"


def test_the_ledger_is_sealed_and_no_path_stands_in_the_state(stream: Stream) -> None:
    """File names tell as much as content; a thief of the state folder must learn none."""
    secret = b"unspeakable-name"
    fill(stream.root, {f"{secret.decode()}/{secret.decode()}-{n}": b"1" for n in range(30)})
    database = stream.root / f"{secret.decode()}.db"
    _write_database(database)
    stream.snapshot()
    for folder in (os.fsdecode(stream.places.state), os.fsdecode(stream.places.objects)):
        for path in Path(folder).rglob("*"):
            if path.is_file():
                assert secret not in path.read_bytes(), path
                assert secret.hex().encode() not in path.read_bytes(), path
    lines = {line.path for line in _ledger(stream)}
    assert lines == {bytes(database) + b"-shm", bytes(database) + b"-wal"}


def _write_database(path: Path) -> None:
    import sqlite3

    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    _KEPT_OPEN.append(connection)


_KEPT_OPEN: list[object] = []
"""Connections that stay open, so that log and index stay beside their database."""


def _ledger(stream: Stream) -> list[LedgerLine]:
    ledger = stream.nested().ledger
    assert isinstance(ledger, bytes)
    return list(parse_ledger(ledger))


def test_a_ledger_too_long_for_its_place_keeps_every_omission() -> None:
    """Exclusions may be added up where there are too many, omissions not; and it must fit."""
    from durarepo.repository import account as module

    long = b"/" + b"p" * 4000
    lines = [
        LedgerLine(kind=OmissionClass.EXCLUSION, path=long + b"%d" % n, rule="r", stage="path")
        for n in range(3000)
    ]
    lines.append(
        LedgerLine(kind=OmissionClass.OMISSION, path=b"/z", rule="source.unreadable", stage="read")
    )

    short = module._shortened(lines)

    assert len(encode_ledger(short)) <= 8 << 20
    assert sum(line.count for line in short) == 3001
    assert [line.path for line in short if line.kind is OmissionClass.OMISSION] == [b"/z"]
    assert short[-1].rule == "ledger-full"


# --- errors of the store -------------------------------------------------------------------


@pytest.mark.parametrize("where", ["objects", "journal", "state", "catalog"])
@pytest.mark.parametrize("number", [28, 5])
def test_an_error_of_the_store_is_never_an_error_of_the_source(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, where: str, number: int
) -> None:
    """A full disk reported as unreadable files sends the operator to the wrong place (law 6)."""
    fill(stream.root, {"a": os.urandom(300_000), "b": b"1"})
    stream.snapshot()
    fill(stream.root, {"c": os.urandom(300_000)})
    folder = os.fsdecode(
        {
            "objects": stream.places.objects,
            "journal": stream.places.journal,
            "state": stream.places.state,
            "catalog": stream.places.repository,
        }[where]
    )
    real = os.write

    def failing(fd: int, data: bytes) -> int:
        path = os.readlink(f"/proc/self/fd/{fd}")
        if path.startswith(folder) and not path.endswith("lock"):
            raise OSError(number, os.strerror(number))
        return real(fd, data)

    if where == "catalog":
        import sqlite3

        from durarepo.local.catalog import Catalog

        def broken(*_: object) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(Catalog, "add_pack", broken)
    monkeypatch.setattr(os, "write", failing)
    with pytest.raises(StoreError) as caught:
        stream.snapshot()
    monkeypatch.undo()

    stands = where == "state"
    assert ("stands" in caught.value.message) == stands
    assert list(stream.statements()) == ([1, 2] if stands else [1])
    result = stream.snapshot()
    assert result.sequence == (3 if stands else 2)
    stream.check_restores()


def test_a_full_work_folder_is_an_error_of_the_store(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that could not be copied for want of room is not a damaged database."""
    _write_database(stream.root / "agent.db")

    def full(*_: object, **__: object) -> object:
        import sqlite3

        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr(sqlitestate, "_copy_pages", full)
    with pytest.raises(StoreError):
        stream.snapshot()
    monkeypatch.undo()

    assert stream.statements() == {}
    assert stream.snapshot().status == "ok"


def test_the_clock_of_a_test_is_ahead_of_what_was_just_made() -> None:
    """Otherwise every file here would count as young, and nothing would be tried."""
    assert later() >= int(time.time()) + 9


def test_a_folder_moved_where_the_walk_has_been_is_told(stream: Stream) -> None:
    """It existed all the time and is in no listing: silence would make the snapshot a lie."""
    for name in ("a", "m", "z/project"):
        (stream.root / name).mkdir(parents=True)
    fill(stream.root, {"m/trigger": b"t", "z/project/thesis": b"years of work"})
    for path in (stream.root / "z/project/thesis", stream.root / "z/project"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    stream.clock = lambda: int(time.time())

    class Moving(SilentProgress):
        """Moves the folder once the first one has been left."""

        def update(self, *_: object) -> None:
            if (stream.root / "z/project").exists():
                (stream.root / "z/project").rename(stream.root / "a/project")

    with stream.open() as repository:
        result = snapshot(repository, SnapshotRequest(), clock=stream.clock, progress=Moving())

    assert result.status == "omissions"
    moved = bytes(stream.root / "a/project")
    assert [(one.path, one.rule) for one in omissions(result)] == [(moved, "moved-in")]


def test_a_store_to_a_mapped_page_is_seen(stream: Stream) -> None:
    """A page that is dirty already takes a store without a word to the file's times."""
    path = stream.root / "mapped"
    path.write_bytes(b"A" * 8192)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 8192) as pages:
        pages[0:5] = b"AAAAB"
        time.sleep(2.1)
        stream.snapshot()
        pages[0:5] = b"BBBBB"
        stream.snapshot()

    assert (stream.restored_root() / "mapped").read_bytes()[:5] == b"BBBBB"
