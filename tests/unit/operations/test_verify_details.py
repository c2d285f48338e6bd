"""The corners of verify: broken chains, odd listings, and what is decrypted how often."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from durarepo.core.entries import Entry, FileType
from durarepo.core.errors import FreshnessError
from durarepo.core.limits import PATH_MAX_BYTES, TREE_MAX_DEPTH
from durarepo.core.names import ChunkId, Digest, Sequence
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import Nested, Root
from durarepo.format.pack import PackIndex
from durarepo.local.statefiles import HighWater, StateFiles
from durarepo.operations import verify
from durarepo.operations.verify import Level
from durarepo.repository import inspection, openpack
from durarepo.repository.listingwalk import ListingWalk
from durarepo.repository.pieces import file_pieces
from durarepo.repository.reader import ChunkReader
from durarepo.sealing import CheckedFrame, open_frame
from tests.adversary.scene import NOW, ROOT, Scene
from tests.interop import miniwriter as mini
from tests.unit.operations.test_verify import (
    calls_of,
    edit,
    found,
    look,
    pack_of,
    slot,
    state_of,
)
from tests.unit.operations.test_verify import scene as scene  # noqa: PLC0414  # a fixture


def one_root(scene: Scene, children: dict[bytes, mini.Node]) -> tuple[mini.Chunks, mini.Value]:
    """Return the chunks and the nested map of a manifest that is not stored yet."""
    chunks = scene.stream.chunks()
    return chunks, scene.stream.nested_map({ROOT: mini.directory(children)}, chunks)


def commit(scene: Scene, chunks: mini.Chunks, nested: mini.Value) -> None:
    """Store a manifest, each chunk in a frame of its own."""
    scene.stream.store(
        chunks, frames=lambda given: [mini.Frame([one]) for one in given.new.values()]
    )
    nested[2] = mini.component_index(nested[1])
    scene.stream.commit_nested(nested)
    scene.lay_out()


# --- the chain ---


def test_what_lies_behind_a_bad_manifest_is_still_looked_at(scene: Scene) -> None:
    """One broken link must not hide that the newest packs are damaged."""
    statement = scene.stream.statement()
    scene.stream.commit({**statement, 1: {**statement[1], 1: bytes(32)}})
    for text in (b"delta", b"epsilon"):
        scene.snapshot({b"a": mini.file(text)})
    scene.lay_out()
    name, at = min(pin.hex() for pin in scene.stream.pins), 100
    edit(scene, name, at)

    result = look(scene)

    assert result.manifests == 4
    assert {(one, kind) for one, kind, _ in found(result)} == {
        (slot(scene, 3), "fork"),
        (name, "corrupt"),
    }


def test_a_milestone_is_compared_across_a_gap(scene: Scene) -> None:
    """Behind a gap the link of one to the next says nothing; the milestone still does."""
    statement = scene.stream.statement()
    scene.stream.commit({**statement, 1: {**statement[1], 2: bytes(32)}})
    scene.lay_out()
    scene.object_path(slot(scene, 2)).unlink()

    assert {(one, kind) for one, kind, _ in found(look(scene, Level.CHAIN))} == {
        (slot(scene, 3), "fork"),
        (slot(scene, 2), "gap"),
    }


@pytest.mark.parametrize(("is_torn", "kind"), [(True, "corrupt"), (False, "gap")])
def test_a_put_only_machine_sees_torn_and_missing_envelopes(
    scene: Scene, *, is_torn: bool, kind: str
) -> None:
    """The mark needs no identity."""
    state_of(scene, 1, 2)
    (scene.folder / "keys" / "identity.key").unlink()
    if is_torn:
        edit(scene, slot(scene, 1), 9000)
    else:
        scene.object_path(slot(scene, 1)).unlink()

    assert found(look(scene, Level.CHAIN)) == [(slot(scene, 1), kind, None)]


def test_a_clock_behind_its_high_water_is_an_error_at_every_level(scene: Scene) -> None:
    """A clock that was set back makes expired manifests look fresh."""
    StateFiles(scene.places.state).raise_high_water(
        HighWater(
            epoch=1,
            sequence=Sequence(0),
            head_digest=Digest(bytes(32)),
            registry_version=1,
            clock_seconds=NOW + 1,
        )
    )

    with pytest.raises(FreshnessError) as caught:
        look(scene, Level.CHAIN)

    assert caught.value.code == "fresh.clock"


# --- packs and frames ---


def test_an_index_that_is_not_the_pinned_one_is_corrupt(tmp_path: Path) -> None:
    """The signed pin decides which index counts, also where the pack is whole."""
    scene = Scene(tmp_path)
    chunks, nested = one_root(scene, {b"a": mini.file(b"alpha")})
    pack = scene.stream.store(chunks)
    assert pack is not None
    scene.stream.pins[pack.name][2] = bytes(32)
    scene.stream.commit_nested(nested)
    scene.lay_out()

    assert found(look(scene)) == [(pack.name.hex(), "corrupt", (ROOT,))]


def test_a_damaged_header_takes_the_whole_pack_with_it(scene: Scene) -> None:
    """Without its header no frame of a pack can be opened, however whole the frames are."""
    name, _ = pack_of(scene, mini.DATA, b"gamma")
    edit(scene, name, 100)

    assert found(look(scene)) == [(name, "corrupt", (ROOT,))]


def test_no_frame_is_decrypted_for_its_pack_that_was_decrypted_for_a_file(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listings, large files and packs share frames; to open all of them again doubles the cost."""
    opened: dict[ModuleType, list[tuple[bytes, int]]] = {inspection: [], openpack: []}

    def note(module: ModuleType) -> None:
        def noted(checked: CheckedFrame, index: PackIndex, pack_key: bytes) -> bytes:
            opened[module].append((index.header_digest, checked.ordinal))
            return open_frame(checked, index, pack_key)

        monkeypatch.setattr(module, "open_frame", noted)

    note(inspection)
    note(openpack)

    result = look(scene, Level.DATA)

    by_packs, by_files = opened[inspection], set(opened[openpack])
    assert by_files.isdisjoint(by_packs)
    assert (result.frames, len(by_files) + len(by_packs)) == (7, 7)
    assert len(by_packs) == 3  # small files, which lie in frames of their own here


def test_of_a_half_only_those_large_files_are_read_that_begin_in_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A share of the bytes each night must not become all large files each night."""
    read: list[bytes] = []

    def noted(reader: ChunkReader, entry: Entry, path: bytes) -> Iterator[bytes | int]:
        read.append(path)
        return file_pieces(reader, entry, path)

    monkeypatch.setattr(verify, "file_pieces", noted)

    first = look(scene, Level.DATA, percent=50)
    second = look(scene, Level.DATA, percent=50, clock=lambda: NOW + 1)

    assert (first.ok, second.ok) == (True, True)
    assert read == [ROOT + b"/d/big"]


def test_a_small_file_beside_the_chunks_of_a_large_one_is_checked(tmp_path: Path) -> None:
    """A frame that was read for a large file is not looked at again, if all of it is good."""
    scene = Scene(tmp_path)
    children = {
        b"a": mini.file(b"alpha", b"omega"),
        b"b": mini.file(b"beta!"),
        b"c": mini.file(b"gamma"),
    }
    chunks, nested = one_root(scene, children)
    data = [one for one in chunks.new.values() if one[0] == mini.DATA]
    trees = [one for one in chunks.new.values() if one[0] != mini.DATA]
    pack = scene.stream.store(
        chunks,
        frames=lambda _: [mini.Frame(data), mini.Frame(trees)],
        edits={"ids": lambda ids: [[*ids[0][:2], ids[0][3], ids[0][2]], *ids[1:]]},
    )
    assert pack is not None
    scene.stream.commit_nested(nested)
    scene.lay_out()

    paths = tuple(ROOT + b"/" + name for name in children)
    assert found(look(scene, Level.DATA)) == [(pack.name.hex(), "corrupt", paths)]


def test_the_time_is_asked_again_before_packs_are_decrypted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A manifest may expire while its listing is read (A6h)."""
    scene = Scene(tmp_path)
    scene.snapshot({b"a": mini.file(b"alpha")})
    scene.lay_out()
    opened = calls_of(monkeypatch, "open_frame")
    times = iter([NOW, NOW + 100_000])

    with pytest.raises(FreshnessError) as caught:
        look(scene, Level.DATA, clock=lambda: next(times))

    assert caught.value.code == "fresh.expired"
    assert opened == []


# --- listings ---


def test_a_file_with_a_wrong_sum_is_named_alone_where_the_rest_agrees(tmp_path: Path) -> None:
    """Its chunks are right, and even the set hash says so; only putting it together tells."""
    scene = Scene(tmp_path)
    big = mini.file(b"x" * 100, b"y" * 100, sha256=bytes(32))
    chunks, nested = one_root(scene, {b"big": big})
    listed = mini.sha256(mini.u16(3) + b"big" + mini.u8(0) + mini.u64(200) + bytes(32))
    whole = mini.sha256(mini.u16(len(ROOT)) + ROOT + listed)
    nested[1] = [mini.component("files", b"files", whole)]
    commit(scene, chunks, nested)

    assert found(look(scene, Level.DATA)) == [(slot(scene, 1), "corrupt", (ROOT + b"/big",))]


def test_a_database_that_is_not_its_component_is_named(tmp_path: Path) -> None:
    """A component says which bytes were captured; the listing must have the same."""
    scene = Scene(tmp_path)
    children = {b"a.db": mini.file(b"database")}
    chunks, nested = one_root(scene, children)
    path = ROOT + b"/a.db"
    nested[1].append(mini.component("sqlite", b"sqlite:" + path, bytes(32)))
    commit(scene, chunks, nested)

    assert found(look(scene, Level.DATA)) == [(slot(scene, 1), "corrupt", (path,))]


def test_a_database_in_a_folder_that_was_seen_before_is_compared(tmp_path: Path) -> None:
    """A folder and its twin are walked once, and a good copy must not be called a bad one."""
    scene = Scene(tmp_path)
    twin = mini.directory({b"a.db": mini.file(b"database")})
    chunks, nested = one_root(scene, {b"x": twin, b"y": twin})
    right, wrong = (ROOT + b"/%s/a.db" % name for name in (b"x", b"y"))
    digest = mini.sha256(b"database")
    nested[1].append(mini.component("sqlite", b"sqlite:" + right, digest))
    nested[1].append(mini.component("sqlite", b"sqlite:" + wrong, digest[::-1]))
    commit(scene, chunks, nested)

    assert found(look(scene, Level.DATA)) == [(slot(scene, 1), "corrupt", (wrong,))]


@pytest.mark.parametrize("is_listing", [True, False])
def test_a_folder_of_two_manifests_is_missing_in_the_one_that_does_not_pin_it(
    tmp_path: Path, *, is_listing: bool
) -> None:
    """A folder is walked once for all manifests; what it needs has to be there for each."""
    scene = Scene(tmp_path)
    folder = mini.directory({b"a": mini.file(b"alpha")})
    chunks, nested = one_root(scene, {b"d": folder})
    commit(scene, chunks, nested)
    if not is_listing:  # it is stored once more below, its file is not
        trees = {name for name, (kind, _) in chunks.new.items() if kind == mini.TREE}
        scene.stream.stored[1] -= trees
    scene.stream.pins.clear()
    commit(scene, *one_root(scene, {b"d": folder, b"b": mini.file(b"beta")}))

    path = ROOT + (b"/d" if is_listing else b"/d/a")
    assert found(look(scene, Level.DATA)) == [(slot(scene, 2), "missing", (path,))]


def test_a_ledger_that_is_none_is_laid_to_the_manifest(tmp_path: Path) -> None:
    """What was left out on purpose has to be known."""
    scene = Scene(tmp_path)
    chunks, nested = one_root(scene, {b"a": mini.file(b"alpha")})
    nested[3] = b"\x81\x00"
    commit(scene, chunks, nested)

    assert found(look(scene, Level.DATA)) == [(slot(scene, 1), "corrupt", ())]


def test_an_attribute_whose_chunk_is_nowhere_names_its_file(tmp_path: Path) -> None:
    """A restore would end on it."""
    scene = Scene(tmp_path)
    value = [0, [5, bytes(32)]]
    chunks, nested = one_root(scene, {b"a": mini.file(b"alpha", xattrs=[[b"user.a", value]])})
    commit(scene, chunks, nested)

    assert found(look(scene, Level.DATA)) == [(slot(scene, 1), "missing", (ROOT + b"/a",))]


def test_a_damaged_leaf_of_a_large_folder_names_that_folder_once(tmp_path: Path) -> None:
    """The pack is to blame, not the manifest."""
    scene = Scene(tmp_path)
    chunks = scene.stream.chunks()
    leaves = [
        [chunks.entry(mini.file(b"content"), b"%d" % n) for n in part]
        for part in (range(1, 4), range(4, 7))
    ]
    tree = chunks.node(leaves)
    folder = mini.directory({}, tree=tree)
    nested = scene.stream.nested_map({ROOT: mini.directory({b"d": folder})}, chunks)
    commit(scene, chunks, nested)
    name, at = pack_of(scene, mini.TREE, mini.encode([0, leaves[1]]))
    edit(scene, name, at)

    assert found(look(scene)) == [(name, "corrupt", (ROOT + b"/d",))]


class Trees:
    """Stands in for a reader: listings by id, which no real writer could have named so."""

    def __init__(self, trees: dict[bytes, dict[bytes, bytes]]) -> None:
        self._trees = trees

    def chunk(self, chunk: bytes, _kind: ChunkKind) -> bytes:
        entry = {1: 1, 2: 0o755, 3: [0, 0], 4: 0, 5: 0}
        rows = [{0: name, **entry, 12: below} for name, below in self._trees[chunk].items()]
        return mini.encode([0, rows])


class Noted:
    """Listens and keeps the paths that were refused."""

    def __init__(self) -> None:
        self.refusals: list[bytes] = []

    def entry(self, _path: bytes, _entry: Entry) -> bool:
        return False

    def unreadable(self, path: bytes, _tree: ChunkId) -> None:
        self.refusals.append(path)

    def refused(self, path: bytes) -> None:
        self.refusals.append(path)

    def again(self, path: bytes, _first: bytes) -> None:
        self.refusals.append(path)

    def ignore(self, _tree: ChunkId) -> None:
        pass

    enter = read = leave = met = ignore


def walked(trees: dict[bytes, dict[bytes, bytes]]) -> list[bytes]:
    """Walk from the tree of zeros; return what was refused."""
    root = Entry(
        name=b"", type=FileType.DIRECTORY, mode=0, mtime_ns=0, uid=0, gid=0, tree=ChunkId(bytes(32))
    )
    nested = Nested(
        roots=(Root(path=b"/r", entry=root),), components=(), ledger=b"", configuration=b"",
        host=(), epoch_facts=(), policy="",
    )  # fmt: skip
    noted = Noted()
    ListingWalk(Trees(trees), nested, noted).walk()  # type: ignore[arg-type]  # it only reads
    return noted.refusals


def tree(number: int) -> bytes:
    """Return the id of a tree."""
    return number.to_bytes(32)


def test_a_folder_that_holds_itself_ends_the_walk_of_it() -> None:
    """Without an end to it the walk would fill the memory (ingest 7.1)."""
    assert walked({tree(0): {b"a": tree(1)}, tree(1): {b"b": tree(0)}}) == [b"/r/a/b"]


def test_folders_deeper_than_any_restore_goes_are_refused() -> None:
    """Verify must not call good what a restore refuses (ingest 7.5)."""
    deep = {tree(n): {b"d": tree(n + 1)} for n in range(TREE_MAX_DEPTH + 5)}
    most = {tree(n): {b"d": tree(n + 1)} for n in range(1000)} | {tree(1000): {}}

    assert walked(most) == []
    (path,) = walked(deep)
    assert path.count(b"/d") in {(PATH_MAX_BYTES - 2) // 2 + 1, TREE_MAX_DEPTH}


def test_paths_that_are_too_long_are_refused_also_where_a_folder_is_met_again() -> None:
    """The second place of a folder may be too far down although the first one was not."""
    long = {tree(9): {b"n" * 255: tree(10)}, tree(10): {b"m" * 200: tree(11)}, tree(11): {}}
    chain = {tree(n): {b"z" * 255: tree(n + 1)} for n in range(20, 36)} | {tree(36): {}}
    again = {tree(n): {b"y" * 250: tree(n + 1)} for n in range(40, 55)}
    root = {tree(0): {b"a": tree(9), b"b": tree(40)}, tree(55): {b"c": tree(9)}}

    assert walked({tree(0): {b"a": tree(9)}} | long) == []
    assert len(walked({tree(0): {b"a": tree(20)}} | chain)) == 1
    (path,) = walked(root | again | long)
    assert path.endswith(b"/c")


def test_equal_folders_are_walked_once_however_often_they_stand() -> None:
    """Two names for each of 40 levels are 2^40 paths: a hostile listing must not hang verify."""
    both = {tree(n): {b"a": tree(n + 1), b"b": tree(n + 1)} for n in range(40)}

    assert walked(both | {tree(40): {}}) == []


def test_a_component_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    """Kinds that are not known here carry their own facts (format 11)."""
    scene = Scene(tmp_path)
    chunks, nested = one_root(scene, {b"a": mini.file(b"alpha")})
    nested[1].append(mini.component("zother", b"zother:x", bytes(32)))
    commit(scene, chunks, nested)

    assert look(scene, Level.DATA).ok
