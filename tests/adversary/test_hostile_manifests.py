"""Signed, and hostile: what a stolen signing key says reaches nothing but the scratch folder.

Every test lays a canary beside the repository and looks at it afterwards: content, mode and time.
Memory is bounded by the kernel in a child; a test that needs more dies there.
"""

import os
import resource
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from durarepo.core.entries import Entry, FileType
from durarepo.core.errors import DurarepoError, IntegrityError
from durarepo.core.limits import MIB
from durarepo.core.names import ChunkId
from durarepo.format.layout import ChunkKind
from durarepo.operations.checkout import CheckoutRequest, checkout
from durarepo.operations.reading import ls
from durarepo.repository.trees import walk
from tests.adversary.scene import NOW, ROOT, Scene
from tests.doubles.children import run_in_child
from tests.interop import miniwriter as mini

CANARY = b"canary"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Give an empty stream, and a canary that a restore could reach if it followed anything."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(CANARY)
    (outside / "file").chmod(0o640)
    os.utime(outside / "file", (1, 1))
    place = tmp_path / "place"
    place.mkdir()
    return Scene(place)


def outside(scene: Scene) -> Path:
    """Return the folder with the canary."""
    return scene.folder.parent / "outside"


def check_outside(scene: Scene) -> None:
    """Fail if anything but the scratch folder was made or changed."""
    told = (outside(scene) / "file").stat()
    assert (outside(scene) / "file").read_bytes() == CANARY
    assert (told.st_mode & 0o7777, told.st_mtime, told.st_nlink) == (0o640, 1, 1)
    assert sorted(os.listdir(scene.folder.parent)) == ["outside", "place"]
    assert os.listdir(outside(scene)) == ["file"]
    assert set(os.listdir(scene.folder)) <= {"keys", "repository", "state", "out"}


def restore(scene: Scene) -> Path:
    """Check the newest manifest out and return the folder."""
    with scene.open() as repository:
        request = CheckoutRequest(destination=bytes(scene.folder / "out"))
        checkout(repository, request, clock=lambda: NOW)
    return scene.folder / "out"


def refusal(scene: Scene) -> str:
    """Check out; return the code of the refusal, after which nothing may be there."""
    with pytest.raises(DurarepoError) as caught:
        restore(scene)
    check_outside(scene)
    assert not (scene.folder / "out").exists()
    return caught.value.code


def commit(
    scene: Scene,
    root: mini.Node,
    *,
    chunks: mini.Chunks | None = None,
    more: Mapping[bytes, mini.Node] | None = None,
) -> None:
    """Sign a manifest of ``root``, whose chunks may be made by hand."""
    chunks = chunks or scene.stream.chunks()
    roots = {ROOT: root, **(more or {})}
    nested = scene.stream.nested_map(roots, chunks)
    scene.stream.store(chunks)
    scene.stream.commit_nested(nested)


def by_hand(chunks: mini.Chunks, entries: list[dict[int, mini.Value]]) -> mini.Node:
    """Return a directory with exactly these entries in one leaf."""
    return mini.directory({}, tree=chunks.add(mini.TREE, mini.encode([0, entries])))


# --- names and paths ---


@pytest.mark.parametrize(
    "name",
    [b"..", b".", b"", b"/etc", b"../outside/file", b"a/b", b"a\0b", b"n" * 256],
    ids=repr,
)
def test_a_name_that_is_no_name_is_refused(scene: Scene, name: bytes) -> None:
    """One such name is all that a classic traversal needs (E20)."""
    commit(scene, mini.directory({name: mini.file(b"evil")}))

    assert refusal(scene) == "integrity.name"


def test_names_that_look_dangerous_and_are_not_come_back(scene: Scene) -> None:
    """Backslashes, newlines and terminal escapes are bytes like others; nothing acts on them."""
    names = [b"..\\..\\x", b"a\nb", b"\x1b[2J", b"-rf", b"\xff\xfe", b"...", b"n" * 255]
    commit(scene, mini.directory({name: mini.file(b"kept") for name in names}))

    found = os.listdir(bytes(restore(scene) / "srv" / "notes"))

    assert sorted(found) == sorted(names)
    check_outside(scene)


def test_twins_are_refused(scene: Scene) -> None:
    """A link and a folder of one name: what is put into the folder would go through the link."""
    chunks = scene.stream.chunks()
    link = chunks.entry(mini.symlink(bytes(outside(scene))), b"twin")
    folder = chunks.entry(mini.directory({b"file": mini.file(b"evil")}), b"twin")
    commit(scene, by_hand(chunks, [link, folder]), chunks=chunks)

    assert refusal(scene) == "integrity.tree-order"


def test_twins_in_two_leaves_are_refused(scene: Scene) -> None:
    """The order of a directory holds over all of its leaves."""
    chunks = scene.stream.chunks()
    link = chunks.entry(mini.symlink(bytes(outside(scene))), b"twin")
    folder = chunks.entry(mini.directory({b"file": mini.file(b"evil")}), b"twin")
    node = mini.directory({}, tree=chunks.node([[link], [folder]]))
    commit(scene, node, chunks=chunks)

    assert refusal(scene) == "integrity.tree-order"


def test_a_leaf_that_ends_behind_where_the_next_begins_is_refused(scene: Scene) -> None:
    """First names in order prove nothing about what lies between them."""
    chunks = scene.stream.chunks()
    one = [chunks.entry(mini.file(b"1"), name) for name in (b"a", b"d")]
    two = [chunks.entry(mini.file(b"1"), name) for name in (b"b", b"c")]
    commit(scene, mini.directory({}, tree=chunks.node([one, two])), chunks=chunks)

    assert refusal(scene) == "integrity.tree-order"


def test_a_node_whose_first_names_are_not_its_leaves_is_refused(scene: Scene) -> None:
    """A name found by its leaf and a name found by walking must be the same."""
    chunks = scene.stream.chunks()
    leaves = [
        chunks.add(mini.TREE, mini.encode([0, [chunks.entry(mini.file(b"1"), name)]]))
        for name in (b"b", b"c")
    ]
    rows = [[b"a", leaves[0]], [b"c", leaves[1]]]
    tree = chunks.add(mini.TREE, mini.encode([1, rows]))
    commit(scene, mini.directory({}, tree=tree), chunks=chunks)

    assert refusal(scene) == "integrity.tree-order"


@pytest.mark.parametrize("inner", ["node", "empty"])
def test_a_node_of_anything_but_leaves_is_refused(scene: Scene, inner: str) -> None:
    """Nodes in nodes could be stacked without end."""
    chunks = scene.stream.chunks()
    entry = [[chunks.entry(mini.file(b"1"), name)] for name in (b"a", b"b")]
    below = chunks.node(entry) if inner == "node" else chunks.add(mini.TREE, mini.encode([0, []]))
    tree = chunks.add(mini.TREE, mini.encode([1, [[b"a", below], [b"b", below]]]))
    commit(scene, mini.directory({}, tree=tree), chunks=chunks)

    assert refusal(scene) == "integrity.tree-form"


def test_a_root_below_a_link_of_another_root_is_refused(scene: Scene) -> None:
    """The second root would be made wherever the link of the first one points."""
    commit(
        scene,
        mini.directory({b"link": mini.symlink(bytes(outside(scene)))}),
        more={ROOT + b"/link/new": mini.directory({b"file": mini.file(b"evil")})},
    )

    assert refusal(scene) == "integrity.nested-form"


def test_a_link_is_restored_and_never_followed(scene: Scene) -> None:
    """Its mode and times are its own, not those of what it points to (E21)."""
    target = bytes(outside(scene) / "file")
    commit(
        scene,
        mini.directory(
            {
                b"link": mini.symlink(target, mode=0o777, modified=[5, 0]),
                b"up": mini.symlink(b"../" * 40 + target[1:]),
            }
        ),
    )

    root = restore(scene) / "srv" / "notes"

    assert os.readlink(bytes(root / "link")) == target
    check_outside(scene)


def test_a_hard_link_through_a_link_joins_nothing(scene: Scene) -> None:
    """A group that mixes a link with a file must not give the file the link's target."""
    target = bytes(outside(scene) / "file")
    commit(
        scene,
        mini.directory(
            {
                b"a": mini.symlink(target, link=1),
                b"b": mini.file(b"evil", link=1),
                b"c": mini.symlink(target, link=1),
            }
        ),
    )

    root = restore(scene) / "srv" / "notes"

    assert (root / "a").lstat().st_ino == (root / "c").lstat().st_ino
    assert not (root / "b").is_symlink()
    assert (root / "b").read_bytes() == b"evil"
    check_outside(scene)


def nest(chunks: mini.Chunks, depth: int, name: bytes) -> mini.Node:
    """Return a directory with ``depth`` directories below one another."""
    tree = chunks.add(mini.TREE, mini.encode([0, []]))
    for _ in range(depth):
        entry = chunks.entry(mini.directory({}, tree=tree), name)
        tree = chunks.add(mini.TREE, mini.encode([0, [entry]]))
    return mini.directory({}, tree=tree)


@pytest.mark.parametrize(("depth", "name"), [(17, b"n" * 255), (2048, b"d")])
def test_a_path_of_more_than_4096_bytes_is_refused(scene: Scene, depth: int, name: bytes) -> None:
    """Longer paths cannot be named by the tools that an operator has (E20)."""
    chunks = scene.stream.chunks()
    commit(scene, nest(chunks, depth, name), chunks=chunks)

    assert refusal(scene) == "integrity.path"
    with scene.open() as repository, pytest.raises(IntegrityError) as caught:
        list(ls(repository, "1", ROOT, now=NOW, recursive=True))
    assert caught.value.code == "integrity.path"


def test_a_path_that_is_deep_and_short_enough_comes_back(scene: Scene) -> None:
    """The bound is on the path, not on the stack of the interpreter."""
    chunks = scene.stream.chunks()
    roots = {ROOT: nest(chunks, 1500, b"d")}
    nested = scene.stream.nested_map(roots, chunks)
    nested[1], nested[2] = [], mini.component_index([])
    scene.stream.store(chunks)
    scene.stream.commit_nested(nested)

    base = os.fsencode(restore(scene) / "srv" / "notes")

    folder = os.open(base, os.O_RDONLY)
    for _ in range(1500):
        below = os.open(b"d", os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
        os.close(folder)
        folder = below
    assert os.listdir(folder) == []
    os.close(folder)


def test_nothing_may_take_the_place_of_the_hold(scene: Scene) -> None:
    """A restored `.durarepo` could say that the folder is free to start from."""
    scene.stream.snapshot({b"/.durarepo": mini.directory({b"held.json": mini.file(b"{}")})})

    assert refusal(scene) == "integrity.path"


# --- sums and content ---


@pytest.mark.parametrize(
    ("depth", "runs"),
    [
        (0, [5, b"1"]),
        (0, [5, b"1", 6, b"2"]),
        (0, [5, b"1", 2**63, b"2"]),
        (0, [5, b"1", 0, b"2", 5, b"2"]),
        (0, [5, None, 5, None]),
        (1, [5, None, 5, b"1"]),
        (4, [5, b"1", 5, b"2"]),
        (0, []),
    ],
)
def test_content_that_does_not_add_up_is_refused(
    scene: Scene, depth: int, runs: list[int | bytes | None]
) -> None:
    """Lengths decide where bytes go; they are checked before any is written."""
    chunks = scene.stream.chunks()
    ids = {b"1": chunks.add(mini.DATA, b"first"), b"2": chunks.add(mini.DATA, b"other")}
    flat = [ids[run] if isinstance(run, bytes) else run for run in runs]
    node = mini.file(b"x", content=[depth, flat], size=10, sha256=bytes(32))
    commit(scene, mini.directory({b"victim": node}), chunks=chunks)

    assert refusal(scene) == "integrity.content"


@pytest.mark.parametrize("depth", [0, 2])
def test_a_list_of_another_depth_or_sum_than_its_place_is_refused(scene: Scene, depth: int) -> None:
    """A list that holds lists of its own depth could go on for ever."""
    chunks = scene.stream.chunks()
    one = chunks.add(mini.DATA, b"first")
    runs = [5, one] if depth else [4, one]
    below = chunks.add(mini.LIST, mini.encode([depth and 1, runs]))
    node = mini.file(b"x", content=[1, [5, below]], size=5, sha256=bytes(32))
    commit(scene, mini.directory({b"victim": node}), chunks=chunks)

    assert refusal(scene) == "integrity.content"


def test_a_hole_larger_than_any_disk_is_refused_at_once(scene: Scene) -> None:
    """Petabytes of zeros cost the writer nothing, and must not cost the reader a year."""
    chunks = scene.stream.chunks()
    one = chunks.add(mini.DATA, b"first")
    hole = (1 << 53) - 6
    node = mini.file(b"x", content=[0, [hole, None, 5, one]], size=hole + 5, sha256=bytes(32))
    commit(scene, mini.directory({b"victim": node}), chunks=chunks)

    assert refusal(scene).startswith("store.")


def test_a_file_too_long_for_the_chunk_that_it_claims_is_refused(scene: Scene) -> None:
    """Without a list a file is one chunk, and a chunk has a bound."""
    node = mini.file(b"x", size=1 << 40, sha256=bytes(32))
    commit(scene, mini.directory({b"victim": node}))

    assert refusal(scene) in ("integrity.entry", "integrity.content")


def test_a_listing_that_counts_as_content_is_refused(scene: Scene) -> None:
    """A chunk has one kind; a listing read as data would be restored as a file."""
    chunks = scene.stream.chunks()
    tree = chunks.add(mini.TREE, mini.encode([0, []]))
    node = mini.file(b"x", content=[0, [3, tree, 1, None]], size=4, sha256=bytes(32))
    commit(scene, mini.directory({b"victim": node}), chunks=chunks)

    assert refusal(scene) == "integrity.content"


# --- memory ---


def check_with_little_memory(work: Callable[[], object], *, spare_bytes: int) -> None:
    """Run ``work`` in a child that may take so many bytes more than it has now."""

    def limited() -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + spare_bytes
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        work()

    run_in_child(limited)


def _index_bomb(scene: Scene, bomb: bytes) -> None:
    scene.stream.snapshot({ROOT: mini.directory({})}, pack_edits={"index_packed": bomb})


def _nested_bomb(scene: Scene, bomb: bytes) -> None:
    scene.stream.snapshot({ROOT: mini.directory({})}, nested_edits={"compressed": bomb})


def _frame_bomb(scene: Scene, bomb: bytes) -> None:
    scene.stream.snapshot({ROOT: mini.directory({})}, pack_edits={"stored": lambda _: [bomb]})


@pytest.mark.parametrize(
    ("lay", "code"),
    [
        (_index_bomb, "integrity.index-seal"),
        (_nested_bomb, "integrity.nested"),
        (_frame_bomb, "integrity.frame-inflate"),
    ],
)
def test_a_decompression_bomb_is_refused_without_its_memory(
    scene: Scene, lay: Callable[[Scene, bytes], None], code: str
) -> None:
    """A few kilobytes must not take down the machine that tries to read them."""
    lay(scene, mini.compress(bytes(512 * MIB)))

    check_with_little_memory(lambda: _check_code(scene, code), spare_bytes=96 * MIB)


def _check_code(scene: Scene, code: str) -> None:
    assert refusal(scene) == code


def many_entries(chunks: mini.Chunks, count: int) -> list[bytes]:
    """Return the encodings of ``count`` small entries, in order."""
    sample = mini.encode(chunks.entry(mini.file(), b"%08d" % 0))
    before, after = sample.split(b"%08d" % 0)
    return [before + b"%08d" % number + after for number in range(count)]


@pytest.mark.slow
def test_a_huge_directory_is_listed_with_little_memory(scene: Scene) -> None:
    """Leaf by leaf: what is listed is never held as a whole."""
    chunks = scene.stream.chunks()
    entries = many_entries(chunks, 120_000)
    rows = []
    for start in range(0, len(entries), 4096):
        part = [mini.Raw(one) for one in entries[start : start + 4096]]
        rows.append([b"%08d" % start, chunks.add(mini.TREE, mini.encode([0, part]))])
    tree = chunks.add(mini.TREE, mini.encode([1, rows]))
    commit(scene, mini.directory({}, tree=tree), chunks=chunks)

    def count() -> None:
        with scene.open() as repository:
            found = sum(1 for _ in ls(repository, "1", ROOT, now=NOW))
        assert found == 120_000

    check_with_little_memory(count, spare_bytes=64 * MIB)


def test_a_leaf_larger_than_a_writer_makes_is_refused_before_it_is_decoded(
    scene: Scene,
) -> None:
    """Eight megabytes of listing are half a gigabyte of objects."""
    chunks = scene.stream.chunks()
    part = [mini.Raw(one) for one in many_entries(chunks, 200_000)]
    tree = chunks.add(mini.TREE, mini.encode([0, part]))
    commit(scene, mini.directory({}, tree=tree), chunks=chunks)

    check_with_little_memory(
        lambda: _check_code(scene, "integrity.tree-form"), spare_bytes=96 * MIB
    )


# --- cycles ---


class MadeUpReader:
    """Gives tree chunks by made-up ids: a real id is a hash, and no chunk holds its own."""

    def __init__(self, chunks: Mapping[bytes, mini.Value]) -> None:
        self._chunks = chunks

    def chunk(self, chunk: ChunkId, kind: ChunkKind) -> bytes:
        assert kind is ChunkKind.TREE
        return mini.encode(self._chunks[chunk])


def folder_to(name: bytes, tree: bytes) -> dict[int, mini.Value]:
    """Return the entry of a directory with this tree."""
    return {0: name, 1: 1, 2: 0o755, 3: [0, 0], 4: 0, 5: 0, 12: tree}


A, B, C = (bytes([number]) * 32 for number in (1, 2, 3))


@pytest.mark.parametrize(
    "chunks",
    [
        {A: [0, [folder_to(b"x", A)]]},
        {A: [0, [folder_to(b"x", B)]], B: [0, [folder_to(b"y", A)]]},
        {A: [1, [[b"x", B], [b"y", C]]], B: [0, [folder_to(b"x", B)]], C: [0, []]},
        {
            A: [1, [[b"x", B], [b"y", C]]],
            B: [0, [folder_to(b"x", C)]],
            C: [0, [folder_to(b"y", B)]],
        },
    ],
)
def test_a_directory_that_holds_itself_is_refused(chunks: dict[bytes, mini.Value]) -> None:
    """Neither a walk nor a restore may go round for ever (ingest 7)."""
    root = Entry(
        name=b"", type=FileType.DIRECTORY, mode=0, mtime_ns=0, uid=0, gid=0, tree=ChunkId(A)
    )
    reader = MadeUpReader(chunks)

    with pytest.raises(IntegrityError) as caught:
        for _ in walk(reader, b"/r", root):  # type: ignore[arg-type]  # all that a walk asks of one
            pass

    assert caught.value.code == "integrity.tree-form"


def test_one_directory_in_two_places_is_no_cycle(scene: Scene) -> None:
    """Equal folders have equal ids; copies of a folder are common."""
    same = {b"f": mini.file(b"1"), b"d": mini.directory({b"g": mini.file(b"2")})}
    commit(scene, mini.directory({b"a": mini.directory(same), b"b": mini.directory(same)}))

    root = restore(scene) / "srv" / "notes"

    assert (root / "a" / "d" / "g").read_bytes() == (root / "b" / "d" / "g").read_bytes() == b"2"
