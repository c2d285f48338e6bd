"""Listings tell what a manifest holds, at any age, without touching what files hold."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from durarepo.core.entries import Entry
from durarepo.core.errors import (
    FreshnessError,
    IntegrityError,
    KeyMaterialError,
    SelectionError,
    SourceError,
    TrustError,
)
from durarepo.core.names import ChunkId, Digest, ObjectName, Sequence, SignerId
from durarepo.local.places import Places
from durarepo.local.statefiles import HighWater, RunRecord, StateFiles
from durarepo.operations import diff as diff_module
from durarepo.operations.diff import diff
from durarepo.operations.log import log
from durarepo.operations.reading import cat, find, ls
from durarepo.operations.show import iter_ledger, show
from durarepo.repository import openpack, trees
from durarepo.repository.chain import Chain
from durarepo.repository.reader import ChunkReader
from durarepo.repository.repository import Repository
from durarepo.source.mounts import Mount, MountTable
from tests.adversary.scene import NOW, ROOT, RecordingStore, Scene, fill_catalog, verified
from tests.doubles.children import UNPRIVILEGED, let_others_pass, run_in_child
from tests.interop import miniwriter as mini
from tests.machines.stream import Stream, fill

MUCH_LATER = NOW + 300 * 86400


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Give a stream with two manifests."""
    scene = Scene(tmp_path)
    scene.snapshot(
        {
            b"a": mini.file(b"alpha"),
            b"dir": mini.directory({b"deep": mini.file(b"x" * 10, 5_000, b"y", modified=[5, 6])}),
            b"gone": mini.file(b"gone"),
            b"link": mini.symlink(b"a"),
        }
    )
    scene.snapshot(
        {
            b"a": mini.file(b"other"),
            b"dir": mini.directory({b"deep": mini.file(b"x" * 10, 5_000, b"y", modified=[5, 6])}),
            b"link": mini.file(b"a file now"),
            b"new": mini.directory({b"inside": mini.file(b"i")}),
        }
    )
    return scene


@pytest.fixture
def repository(scene: Scene) -> Iterator[Repository]:
    """Open the stream."""
    with scene.open() as repository:
        yield repository


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Refuse and note every decryption of a frame."""
    calls: list[object] = []

    def refuse(*given: object) -> None:
        calls.append(given)
        raise AssertionError("a frame was decrypted")

    monkeypatch.setattr(openpack, "open_frame", refuse)
    return calls


def below(*names: str) -> list[bytes]:
    """Return paths below the root."""
    return [ROOT + b"/" + name.encode() for name in names]


# --- ls and find ---


def test_ls_without_a_path_names_the_roots(repository: Repository) -> None:
    """One has to begin somewhere."""
    assert [line.path for line in ls(repository, "1", now=NOW)] == [ROOT]


def test_ls_of_a_folder_lists_it_and_of_a_file_the_file(repository: Repository) -> None:
    """Sizes and hashes have to be those that a restore would give."""
    folder = list(ls(repository, "1", ROOT, now=NOW))
    (file,) = ls(repository, "1", b"dir/deep", now=NOW)

    assert [line.path for line in folder] == below("a", "dir", "gone", "link")
    assert [line.type for line in folder] == ["file", "directory", "file", "symlink"]
    assert (file.size, file.mtime_ns) == (5011, 5_000_000_006)
    assert file.sha256 == mini.sha256(b"x" * 10 + bytes(5_000) + b"y")
    assert folder[1].sha256 is None
    assert folder[3].target == b"a"


def test_ls_goes_into_folders_only_when_asked(repository: Repository) -> None:
    """A listing of a home folder must not be a million lines by surprise."""
    every = [line.path for line in ls(repository, "1", now=NOW, recursive=True)]

    assert every == [ROOT, *below("a", "dir", "dir/deep", "gone", "link")]
    assert [line.path for line in ls(repository, "1", b"/srv", now=NOW)] == [ROOT]


def test_ls_of_nothing_is_an_error(repository: Repository) -> None:
    """An empty listing would look like an empty folder."""
    for path in (b"none", b"a/below", b"/elsewhere"):
        with pytest.raises(SelectionError):
            list(ls(repository, "1", path, now=NOW))


def test_find_matches_the_whole_path_and_tells_cases_apart(repository: Repository) -> None:
    """A pattern that matched names only could not say where."""
    assert [line.path for line in find(repository, b"*/dee?", now=NOW, at="1")] == below("dir/deep")
    assert list(find(repository, b"*/DEEP", now=NOW)) == []
    assert list(find(repository, b"/deep", now=NOW)) == []


@pytest.mark.parametrize(
    ("pattern", "folder", "expected"),
    [
        (b"dee?", None, ["dir/deep"]),
        (b"DEEP", None, []),
        (b"dir/d*", None, ["dir/deep"]),
        (b"./dir/d*", b"/elsewhere", ["dir/deep"]),
        (b"./d*", ROOT + b"/dir", ["dir/deep"]),
        (b"dir/d*", ROOT + b"/dir", []),
        (b"*/d*", ROOT + b"/dir", ["dir", "dir/deep"]),
    ],
)
def test_a_pattern_fits_names_or_paths_from_where_one_stands(
    repository: Repository, pattern: bytes, folder: bytes | None, expected: list[str]
) -> None:
    """A pattern that silently fits nothing looks like a file that is lost."""
    rows = find(repository, pattern, now=NOW, at="1", folder=folder)

    assert [line.path for line in rows] == below(*expected)


def test_the_folder_of_a_pattern_is_no_pattern(tmp_path: Path) -> None:
    """Brackets in the name of a folder would make every search in it come back empty."""
    scene = Scene(tmp_path)
    inner = mini.directory({b"n.md": mini.file(b"n")})
    scene.snapshot({b"[a]": inner, b"a": mini.directory({b"n.md": mini.file(b"m")})})
    with scene.open() as repository:
        rows = list(find(repository, b"./*.md", now=NOW, folder=ROOT + b"/[a]"))

    assert [line.path for line in rows] == below("[a]/n.md")


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        (b"deep", ROOT + b"/dir", "dir/deep"),
        (b"./deep", ROOT + b"/dir", "dir/deep"),
        (b"../a", ROOT + b"/dir", "a"),
        (b"./a", ROOT, "a"),
        (b"a", ROOT + b"/dir", "a"),
        (b"dir/deep", ROOT + b"/dir", "dir/deep"),
        (b"dir/deep", b"/elsewhere", "dir/deep"),
    ],
)
def test_a_relative_path_is_found_from_where_one_stands(
    repository: Repository, path: bytes, folder: bytes, expected: str
) -> None:
    """In a folder of the root one types names as one sees them."""
    (row,) = ls(repository, "1", path, now=NOW, folder=folder)

    assert row.path == below(expected)[0]


def test_a_path_that_may_be_two_files_is_refused(tmp_path: Path) -> None:
    """The wrong one of two files of a name is worse than a question."""
    scene = Scene(tmp_path)
    inner = mini.directory({b"n.md": mini.file(b"inner")})
    scene.snapshot({b"n.md": mini.file(b"outer"), b"sub": inner})
    sub = ROOT + b"/sub"
    with scene.open() as repository:
        with pytest.raises(SelectionError) as caught:
            cat(repository, "1", b"n.md", clock=lambda: NOW, folder=sub)
        near = b"".join(cat(repository, "1", b"./n.md", clock=lambda: NOW, folder=sub))
        outer = b"".join(cat(repository, "1", b"../n.md", clock=lambda: NOW, folder=sub))

    assert caught.value.code == "select.relative-path"
    assert (near, outer) == (b"inner", b"outer")


def test_dots_mean_nothing_outside_of_the_roots(repository: Repository) -> None:
    """There they would be taken from a folder that the manifest knows nothing of."""
    with pytest.raises(SelectionError) as caught:
        list(ls(repository, "1", b"./a", now=NOW, folder=b"/elsewhere"))

    assert caught.value.code == "select.path"


def test_listings_are_read_at_any_age(repository: Repository) -> None:
    """What was lost last month has to be found before a human restores it."""
    assert list(ls(repository, "1", ROOT, now=MUCH_LATER))
    assert list(find(repository, b"*", now=MUCH_LATER))
    assert list(diff(repository, "1", "2", now=MUCH_LATER))
    assert show(repository, "1", now=MUCH_LATER).expired


def test_listings_touch_no_pack_that_holds_only_data(tmp_path: Path) -> None:
    """On a reading machine the data packs are not even here."""
    scene = Scene(tmp_path)
    stream, roots = scene.stream, {ROOT: mini.directory({b"a": mini.file(b"alpha")})}
    chunks = stream.chunks()
    nested = stream.nested_map(roots, chunks)
    data = mini.Chunks(chunks.naming, stored=chunks.stored)
    data.new = {name: one for name, one in chunks.new.items() if one[0] == mini.DATA}
    others = mini.Chunks(chunks.naming, stored=chunks.stored)
    others.new = {name: one for name, one in chunks.new.items() if one[0] != mini.DATA}
    pack = stream.store(data)
    assert pack is not None
    stream.store(others)
    stream.commit_nested(nested, counts=mini.totals(roots))
    with scene.open() as repository:
        fill_catalog(repository, verified(repository))
        store = RecordingStore(repository.store)
        repository.store = store  # type: ignore[assignment]  # reads like a folder

        list(ls(repository, "1", now=NOW, recursive=True))
        list(find(repository, b"*", now=NOW))
        list(diff(repository, "1", "1", now=NOW))
        show(repository, "1", now=NOW)

    assert store.touched
    assert ObjectName(pack.name.hex()) not in store.touched


# --- cat ---


def test_cat_gives_the_content_with_its_holes(repository: Repository) -> None:
    """Raw bytes, as the file was."""
    pieces = cat(repository, "1", b"dir/deep", clock=lambda: NOW)

    assert b"".join(pieces) == b"x" * 10 + bytes(5_000) + b"y"


def test_cat_of_an_expired_manifest_is_refused_before_anything_is_decrypted(
    repository: Repository, frames: list[object]
) -> None:
    """It is a restore of one file, and no way around the age of a manifest (A6h)."""
    with pytest.raises(FreshnessError) as caught:
        cat(repository, "1", b"a", clock=lambda: NOW + 86400)

    assert caught.value.code == "fresh.expired"
    assert frames == []


def test_cat_gives_nothing_of_a_file_that_is_not_the_signed_one(tmp_path: Path) -> None:
    """Bytes on a pipe cannot be taken back (A6f)."""
    scene = Scene(tmp_path)
    scene.snapshot({b"a": mini.file(b"one", b"two", sha256=mini.sha256(b"twoone"))})
    with scene.open() as repository, pytest.raises(IntegrityError) as caught:
        cat(repository, "1", b"a", clock=lambda: NOW)

    assert caught.value.code == "integrity.file-hash"


def test_cat_of_what_is_no_file_is_an_error(repository: Repository) -> None:
    """Neither a folder nor a link has bytes to give; a link is not followed."""
    for path in (b"dir", b"link", b"none"):
        with pytest.raises(SelectionError):
            cat(repository, "1", path, clock=lambda: NOW)


# --- show ---


def test_show_tells_what_the_manifest_says(scene: Scene, repository: Repository) -> None:
    """An operator judges a manifest by its totals, its signer and its packs."""
    told = show(repository, "2", now=NOW)

    assert (told.sequence, told.type, told.complete, told.expired) == (2, "auto", True, False)
    assert (told.totals.files, told.totals.dirs) == (4, 3)
    assert told.signer == scene.stream.signers[1].id.hex()
    assert told.roots == (ROOT,)
    assert [one.kind for one in told.components] == ["files"]
    assert told.objects[0].kind == "manifest"
    assert {one.name for one in told.objects[1:]} == {name.hex() for name in scene.stream.pins}


@pytest.mark.parametrize("outside", [False, True])
def test_the_ledger_is_shown_wherever_it_lies(tmp_path: Path, *, outside: bool) -> None:
    """What was left out is as much a part of a backup as what was kept."""
    scene = Scene(tmp_path)
    lines = [[1, b"/srv/notes/locked", "unreadable", "path", 3]]
    roots = {ROOT: mini.directory({})}
    chunks = scene.stream.chunks()
    ledger: mini.Value = mini.encode(lines)
    if outside:
        ledger = chunks.content([ledger], 0, mini.LEDGER)
    nested = scene.stream.nested_map(roots, chunks, ledger=ledger)
    scene.stream.store(chunks)
    scene.stream.commit_nested(nested)
    with scene.open() as repository:
        (line,) = iter_ledger(repository, "1", now=MUCH_LATER)

    assert (line.path, line.rule, line.count) == (b"/srv/notes/locked", "unreadable", 3)


# --- diff ---


def changes(repository: Repository, old: str, new: str) -> dict[bytes, str]:
    """Return change by path."""
    return {one.path: one.change for one in diff(repository, old, new, now=NOW)}


def test_diff_of_two_manifests_names_every_change_once(repository: Repository) -> None:
    """A review of what an agent did overnight must miss nothing."""
    assert changes(repository, "1", "2") == dict(
        zip(
            below("a", "gone", "link", "new", "new/inside"),
            ["modified", "removed", "modified", "added", "added"],
            strict=True,
        )
    )
    assert changes(repository, "2", "1") == dict(
        zip(
            below("a", "gone", "link", "new", "new/inside"),
            ["modified", "added", "modified", "removed", "removed"],
            strict=True,
        )
    )
    assert changes(repository, "2", "2") == {}


def test_diff_does_not_read_folders_that_are_equal(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two days of a large state differ in a few folders; only those may cost."""
    read: list[bytes] = []

    def noted(reader: ChunkReader, tree: ChunkId) -> Iterator[Entry]:
        read.append(tree)
        return trees.iter_directory(reader, tree)

    monkeypatch.setattr(diff_module, "iter_directory", noted)

    list(diff(repository, "1", "2", now=NOW))

    assert len(read) == 3


def test_a_folder_that_becomes_a_file_shows_what_was_in_it(tmp_path: Path) -> None:
    """What vanished inside would otherwise be told nowhere."""
    scene = Scene(tmp_path)
    scene.snapshot({b"x": mini.directory({b"in": mini.file(b"1")})})
    scene.snapshot({b"x": mini.file(b"1")})
    with scene.open() as repository:
        found = changes(repository, "1", "2")

    assert found == {below("x")[0]: "modified", below("x/in")[0]: "removed"}


@pytest.fixture
def live(tmp_path: Path) -> tuple[Scene, Path]:
    """Give a stream of a real folder that is as it was kept."""
    root = tmp_path / "root"
    (root / "dir").mkdir(parents=True)
    scene = Scene(tmp_path / "place")
    scene.folder.mkdir()
    kept: dict[bytes, mini.Node] = {}
    for name in ("same", "edited", "gone", "touched"):
        (root / name).write_bytes(name.encode())
    (root / "link").symlink_to("same")
    for name in ("same", "edited", "gone", "touched", "link", "dir"):
        told = (root / name).lstat()
        seconds, rest = divmod(told.st_mtime_ns, 10**9)
        about: dict[str, mini.Value] = {
            "mode": told.st_mode & 0o7777,
            "uid": told.st_uid,
            "gid": told.st_gid,
            "modified": [seconds, rest],
        }
        kept[name.encode()] = mini.file(name.encode(), **about)
        if name == "link":
            kept[b"link"] = mini.symlink(b"same", **about)
        if name == "dir":
            kept[b"dir"] = mini.directory({}, **about)
    top = root.stat()
    node = mini.directory(kept, mode=top.st_mode & 0o7777, uid=top.st_uid, gid=top.st_gid)
    scene.stream.snapshot({bytes(root): node})
    return scene, root


def test_diff_with_the_working_tree_tells_what_is_different_now(
    live: tuple[Scene, Path],
) -> None:
    """Before a restore one asks what it would change."""
    scene, root = live
    with scene.open(roots=(bytes(root),)) as repository:
        assert changes(repository, "1", "working") == {}
        (root / "edited").write_bytes(b"EDITED")
        (root / "touched").touch()
        (root / "gone").unlink()
        (root / "dir" / "new").write_bytes(b"new")
        (root / "link").unlink()
        (root / "link").symlink_to("edited")
        os.mkfifo(root / "pipe")

        found = changes(repository, "1", "working")

    assert found == {
        bytes(root / "edited"): "modified",
        bytes(root / "gone"): "removed",
        bytes(root / "dir" / "new"): "added",
        bytes(root / "link"): "modified",
        bytes(root / "pipe"): "added",
    }


def test_diff_says_which_working_file_cannot_be_read(live: tuple[Scene, Path]) -> None:
    """A file that cannot be compared is neither equal nor different."""
    _, root = live
    (root / "edited").write_bytes(b"EDITED")
    (root / "edited").chmod(0o600)
    let_others_pass(root)

    def compare() -> None:
        with pytest.raises(SourceError) as caught:
            diff_module._hash_file(bytes(root / "edited"))
        assert caught.value.code == "source.unreadable"
        assert str(root / "edited") in caught.value.message

    run_in_child(compare, user=UNPRIVILEGED)


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Give a stream of a real folder with a database, snapshotted once settled."""
    return Stream(tmp_path, clock=lambda: int(time.time()))


def working(stream: Stream) -> dict[bytes, str]:
    """Return what the folders of a stream have changed since manifest 1."""
    with stream.open() as repository:
        found = diff(repository, "1", "working", now=int(time.time()))
        return {one.path: one.change for one in found}


def age(*paths: Path) -> None:
    """Let files have been written a minute ago."""
    for path in paths:
        then = time.time_ns() - 60 * 10**9
        os.utime(path, ns=(then, then))


class _Within(Stream):
    """A stream whose repository and state lie in its own root."""

    @property
    def places(self) -> Places:
        """Where repository, keys and state lie."""
        root, keys = bytes(self.root), bytes(self.base / "keys")
        return Places(
            stream=self.name, repository=root + b"/own/repo", keys=keys, state=root + b"/own/state"
        )


def test_diff_with_the_working_tree_leaves_out_what_a_snapshot_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is told of caches and of durarepo's own state after each run stops looking."""
    stream = _Within(tmp_path)
    fill(tmp_path / "root", {"kept": b"1", "cache/old": b"2", "late.tmp": b"3"})
    configuration = Path(os.fsdecode(stream.places.configuration))
    text = configuration.read_text()
    configuration.write_text(text.replace("[[root]]", '[[root]]\nexclude = ["cache"]'))
    stream.snapshot()
    configuration.write_text(text.replace("[[root]]", '[[root]]\nexclude = ["cache", "*.tmp"]'))
    fill(tmp_path / "root", {"cache/new": b"4", "proc/1": b"5", "other": b"6"})
    mount = Mount(path=bytes(tmp_path / "root" / "proc"), fs_type=b"proc")
    monkeypatch.setattr(diff_module, "read_mounts", lambda: MountTable([mount]))

    found = working(stream)

    assert found == {bytes(tmp_path / "root" / "other"): "added"}


def test_diff_with_a_root_that_is_missing_says_so(stream: Stream) -> None:
    """A disk that is not mounted is no removal of everything."""
    fill(stream.root, {"a": b"1"})
    stream.snapshot()
    stream.root.rename(stream.base / "elsewhere")

    with pytest.raises(SourceError) as refusal:
        working(stream)

    assert refusal.value.code == "source.root-missing"


def test_diff_sees_no_change_in_a_database_at_work(stream: Stream) -> None:
    """A log and a size that is not the copy's are how an open database looks, not a change."""
    path = stream.root / "agent.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("CREATE TABLE t (x)")
        connection.execute("INSERT INTO t VALUES (zeroblob(100000))")
        connection.commit()
        logs = [stream.root / "agent.db-wal", stream.root / "agent.db-shm"]
        age(path, *logs)
        stream.snapshot()
        assert path.stat().st_size < stream.entries()[bytes(path)].size

        quiet = working(stream)
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
        busy = working(stream)

    assert quiet == {}
    assert busy == {bytes(path): "modified"}


def test_diff_compares_a_database_that_was_only_touched(stream: Stream) -> None:
    """A time alone is no change, of a database neither."""
    path = stream.root / "agent.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
    age(path)
    stream.snapshot()

    path.touch()
    touched = working(stream)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE u (x)")

    assert touched == {}
    assert working(stream) == {bytes(path): "modified"}


def test_diff_tells_of_a_new_database_without_its_log(stream: Stream) -> None:
    """A snapshot keeps the one and leaves out the other; a plain file keeps its name."""
    (stream.root / "plain").write_bytes(b"no database at all")
    stream.snapshot()
    (stream.root / "plain-wal").write_bytes(b"kept as any file")
    with closing(sqlite3.connect(stream.root / "new.db")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (x)")
        found = working(stream)

    added = {bytes(stream.root / name): "added" for name in ("new.db", "plain-wal")}
    assert found == added


# --- log ---


def seen(scene: Scene, sequence: int) -> None:
    """Let the state say that a manifest has been seen."""
    scene.lay_out()
    known = sequence in scene.stream.envelopes
    StateFiles(scene.places.state).raise_high_water(
        HighWater(
            epoch=1,
            sequence=Sequence(sequence),
            head_digest=Digest(scene.stream.digest(sequence) if known else bytes(32)),
            registry_version=1,
            clock_seconds=0,
        )
    )


def test_log_opens_no_envelope_when_the_catalogue_knows(
    scene: Scene, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is run every few minutes, and by prompts of shells."""
    seen(scene, 2)
    first = list(log(repository, now=NOW))
    monkeypatch.setattr(Chain, "envelope", lambda *given: pytest.fail(f"opened {given}"))
    monkeypatch.setattr(Chain, "signed", lambda *given: pytest.fail(f"opened {given}"))
    store = RecordingStore(repository.store)
    repository.store = store  # type: ignore[assignment]  # reads like a folder

    again = list(log(repository, now=NOW))

    assert again == first
    assert store.reads == []
    assert [line.sequence for line in again] == [2, 1]
    assert (again[0].files, again[0].dirs, again[0].type) == (4, 3, "auto")
    assert again[1].issued == scene.stream.issued + 1
    assert again[1].signer == scene.stream.signers[1].id.hex()
    assert again[0].verified is None


def test_log_takes_the_type_and_the_limit(repository: Repository) -> None:
    """Scripts ask for the newest one of a type."""
    assert [line.sequence for line in log(repository, now=NOW, limit=1)] == [2]
    assert list(log(repository, now=NOW, type_="manual")) == []
    assert len(list(log(repository, now=NOW, type_="auto", limit=5))) == 2


def run_of(scene: Scene, sequence: int) -> RunRecord:
    """Return what the run that made a manifest would have noted."""
    return RunRecord(
        epoch=1,
        sequence=Sequence(sequence),
        name=ObjectName("0" * 64),
        digest=Digest(scene.stream.digest(sequence)),
        issued=5,
        expires=6,
        type="manual",
        files=7,
        dirs=8,
        bytes=9,
        signer=SignerId(bytes(32)),
        complete=True,
        omissions=0,
        pinned_packs=1,
    )


def test_log_on_a_put_only_machine_comes_from_the_run_ledger(scene: Scene) -> None:
    """A machine that may only write still has to know what it wrote."""
    scene.lay_out(identity=False)
    StateFiles(scene.places.state).append_run(run_of(scene, 2))
    with scene.open(identity=False) as repository:
        lines = list(log(repository, now=NOW))

    assert [(line.sequence, line.files, line.type) for line in lines] == [
        (2, 7, "manual"),
        (1, None, None),
    ]
    assert not (scene.folder / "repository" / "catalog.db").exists()


def test_log_after_the_catalogue_was_deleted_says_the_same(scene: Scene) -> None:
    """The catalogue may be deleted at any time."""
    with scene.open() as repository:
        before = list(log(repository, now=NOW))
    for path in (scene.folder / "repository").glob("catalog.db*"):
        path.unlink()
    with scene.open() as repository:
        after = list(log(repository, now=NOW))

    assert after == before


def test_log_after_the_catalogue_was_damaged_says_the_same(scene: Scene) -> None:
    """A torn page must not hide manifests."""
    with scene.open() as repository:
        before = list(log(repository, now=NOW))
    for path in (scene.folder / "repository").glob("catalog.db*"):
        path.write_bytes(b"damaged" * 1000)
    with scene.open() as repository:
        after = list(log(repository, now=NOW))

    assert after == before


def test_log_does_not_show_a_manifest_that_is_not_there(
    scene: Scene, repository: Repository
) -> None:
    """The list of what can be restored is not a list of what once could."""
    list(log(repository, now=NOW))
    name = Chain(repository).envelope(1)
    assert name is not None
    scene.object_path(name.name).unlink()

    assert [line.sequence for line in log(repository, now=NOW)] == [2]


def test_log_alarms_when_the_head_that_was_seen_is_gone(scene: Scene) -> None:
    """A shorter list without a word is what a rollback looks like."""
    seen(scene, 3)
    with scene.open() as repository, pytest.raises(TrustError) as caught:
        list(log(repository, now=NOW))

    assert caught.value.code == "trust.rollback"


def test_without_an_identity_nothing_is_listed(scene: Scene) -> None:
    """Names of files are data too (A5a)."""
    with scene.open(identity=False) as repository:
        for read in (
            lambda: ls(repository, "1", now=NOW),
            lambda: find(repository, b"*", now=NOW),
            lambda: show(repository, "1", now=NOW),
            lambda: list(diff(repository, "1", now=NOW)),
            lambda: cat(repository, "1", b"a", clock=lambda: NOW),
        ):
            with pytest.raises(KeyMaterialError):
                read()
