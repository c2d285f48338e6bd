"""Chunks come from pinned packs only, after every check, and from nowhere else."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from durarepo.core.entries import Entry
from durarepo.core.errors import FreshnessError, IntegrityError, TrustError
from durarepo.core.names import ChunkId, ObjectName
from durarepo.format.layout import ChunkKind
from durarepo.repository import openpack
from durarepo.repository import shelf as shelf_module
from durarepo.repository.chain import Chain
from durarepo.repository.reader import ChunkReader
from durarepo.repository.repository import Repository
from durarepo.repository.shelf import Shelf
from durarepo.repository.trees import iter_directory
from tests.adversary.scene import ROOT, RecordingStore, Scene, fill_catalog, verified
from tests.interop import miniwriter as mini

DATA = ChunkKind.DATA


def allow() -> None:
    """Let everything be decrypted."""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Give a stream with one manifest of two files."""
    scene = Scene(tmp_path)
    scene.snapshot({b"a": mini.file(b"alpha"), b"b": mini.file(b"beta" * 1000)})
    return scene


@pytest.fixture
def repository(scene: Scene) -> Iterator[Repository]:
    """Open the stream."""
    with scene.open() as repository:
        yield repository


def listing(repository: Repository, reader: ChunkReader) -> dict[bytes, Entry]:
    """Return what the only root holds."""
    nested = Chain(repository).nested(reader.manifest)
    tree = nested.roots[0].entry.tree
    assert tree is not None
    return {entry.name: entry for entry in iter_directory(reader, tree)}


def read_file(repository: Repository, reader: ChunkReader, name: bytes) -> bytes:
    """Return a file that is one chunk."""
    return reader.file_data(listing(repository, reader)[name])


def edit(scene: Scene, name: str, change: Callable[[bytearray], object]) -> None:
    """Change an object on disk."""
    data = bytearray(scene.object_path(name).read_bytes())
    change(data)
    scene.object_path(name).write_bytes(data)


def the_pack(scene: Scene) -> str:
    """Return the name of the stream's only pack."""
    (pin,) = scene.stream.pins
    return pin.hex()


def test_a_chunk_comes_back_as_it_was(repository: Repository) -> None:
    """The refusals below are worth nothing if nothing can be read."""
    reader = ChunkReader(repository, verified(repository), permit=allow)

    assert read_file(repository, reader, b"a") == b"alpha"
    assert read_file(repository, reader, b"b") == b"beta" * 1000


def test_a_catalogue_that_lies_about_places_changes_nothing(repository: Repository) -> None:
    """The catalogue is a guess; believed, it could show one file's bytes as another's."""
    manifest = verified(repository)
    pin = manifest.statement.pins[0]
    ids = openpack.PackOpener(repository).open(pin).index.ids
    with repository.catalog.transaction():
        repository.catalog.add_pack(pin, ids[::-1])
    reader = ChunkReader(repository, manifest, permit=allow)

    assert read_file(repository, reader, b"a") == b"alpha"


def test_a_chunk_that_no_pinned_index_names_is_missing(repository: Repository) -> None:
    """A catalogue that names a chunk must not make the reader look outside the pins."""
    manifest = verified(repository)
    stray = ChunkId(bytes(32))
    with repository.catalog.transaction():
        repository.catalog.add_pack(manifest.statement.pins[0], [stray])
    reader = ChunkReader(repository, manifest, permit=allow)

    with pytest.raises(IntegrityError) as caught:
        reader.chunk(stray, DATA)

    assert caught.value.code == "integrity.chunk-missing"


@pytest.mark.parametrize(
    ("kind", "code"), [(ChunkKind.TREE, "tree-form"), (ChunkKind.LIST, "content")]
)
def test_a_chunk_is_not_given_as_another_kind(
    repository: Repository, kind: ChunkKind, code: str
) -> None:
    """File content that looks like a listing must never be taken for one."""
    reader = ChunkReader(repository, verified(repository), permit=allow)
    chunk = reader.file_chunk(listing(repository, reader)[b"a"])

    with pytest.raises(IntegrityError) as caught:
        reader.chunk(chunk, kind)

    assert caught.value.code == f"integrity.{code}"


def test_a_reader_without_a_permit_gives_no_data(repository: Repository) -> None:
    """Listings are read at any age; data must not slip out the same way (law 7)."""
    reader = ChunkReader(repository, verified(repository))
    entry = listing(repository, reader)[b"a"]

    with pytest.raises(ValueError, match="permit"):
        reader.chunk(reader.file_chunk(entry), DATA)


def test_the_permit_is_asked_once_and_before_the_first_frame(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A manifest that expires between ingest and decryption must not be decrypted (A6h)."""
    events: list[str] = []
    frames = count_calls(monkeypatch, "open_frame")
    reader = ChunkReader(
        repository, verified(repository), permit=lambda: events.append(f"{len(frames)}")
    )

    read_file(repository, reader, b"a")
    read_file(repository, reader, b"b")

    assert events == ["0"]
    assert len(frames) == 3


def test_a_permit_that_refuses_stops_every_frame(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal that is asked but not heeded is no refusal (A6h)."""

    def refuse() -> None:
        raise FreshnessError("expired", "manifest expired")

    frames = count_calls(monkeypatch, "open_frame")
    reader = ChunkReader(repository, verified(repository), permit=refuse)

    for _ in range(2):
        with pytest.raises(FreshnessError):
            listing(repository, reader)

    assert frames == []


def count_calls(monkeypatch: pytest.MonkeyPatch, function: str) -> list[str]:
    """Note each call of a function of the module that opens packs."""
    calls: list[str] = []
    real = getattr(openpack, function)

    def counted(*given: object) -> object:
        calls.append(function)
        return real(*given)

    monkeypatch.setattr(openpack, function, counted)
    return calls


def test_a_flipped_bit_in_a_frame_is_refused_before_it_is_decrypted(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decryptor fed with what an attacker chose is a way in (A6e, A3f)."""
    header = 65 + 4 * 1168
    with scene.open() as repository:
        manifest = verified(repository)
        frames, keys = (
            count_calls(monkeypatch, "open_frame"),
            count_calls(monkeypatch, "open_pack_key"),
        )
        entry = listing(repository, ChunkReader(repository, manifest))[b"a"]
        frames.clear()
        keys.clear()
        edit(scene, the_pack(scene), lambda data: data.__setitem__(header, data[header] ^ 1))
        reader = ChunkReader(repository, manifest, permit=allow)

        with pytest.raises(IntegrityError) as caught:
            reader.chunk(reader.file_chunk(entry), DATA)

    assert caught.value.code == "integrity.frame-digest"
    assert frames == keys == []


def test_a_header_from_another_pack_is_refused_before_a_stanza_is_opened(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A swapped header would make the reader run key decapsulation on foreign bytes."""
    keys = count_calls(monkeypatch, "open_pack_key")
    with scene.open() as repository:
        manifest = verified(repository)
        edit(scene, the_pack(scene), lambda data: data.__setitem__(100, data[100] ^ 1))

        with pytest.raises(IntegrityError) as caught:
            listing(repository, ChunkReader(repository, manifest))

    assert caught.value.code == "integrity.pack-header"
    assert keys == []


@pytest.mark.parametrize(
    ("offset", "code"),
    [
        (-1, "integrity.trailer"),
        (-37, "integrity.index-digest"),
        (5, "integrity.trailer"),
        (0, "integrity.version"),
    ],
)
def test_a_changed_index_or_trailer_is_refused(scene: Scene, offset: int, code: str) -> None:
    """An index that is not the pinned one may say anything about what lies where."""
    with scene.open() as repository:
        manifest = verified(repository)
        edit(scene, the_pack(scene), lambda data: data.__setitem__(offset, data[offset] ^ 1))

        with pytest.raises(IntegrityError) as caught:
            listing(repository, ChunkReader(repository, manifest))

    assert caught.value.code == code


def test_a_missing_and_a_short_pack_have_names_of_their_own(scene: Scene) -> None:
    """An operator brings back a missing pack and quarantines a short one."""
    with scene.open() as repository:
        manifest = verified(repository)
        path = scene.object_path(the_pack(scene))
        whole = path.read_bytes()

        path.write_bytes(whole[:-1])
        with pytest.raises(IntegrityError) as short:
            listing(repository, ChunkReader(repository, manifest))
        path.unlink()
        with pytest.raises(IntegrityError) as missing:
            listing(repository, ChunkReader(repository, manifest))

    assert short.value.code == "integrity.object-size"
    assert missing.value.code == "integrity.pack-missing"


def test_a_chunk_whose_id_the_index_invents_is_refused(tmp_path: Path) -> None:
    """A signed index may still call a chunk by the id of another one."""
    scene = Scene(tmp_path)

    def swap(ids: list[list[bytes]]) -> list[list[bytes]]:
        return [ids[1], ids[0], *ids[2:]]

    scene.stream.snapshot(
        {ROOT: mini.directory({b"a": mini.file(b"alpha"), b"b": mini.file(b"gamma")})},
        pack_edits={"ids": swap},
    )
    with scene.open() as repository:
        reader = ChunkReader(repository, verified(repository), permit=allow)

        with pytest.raises(IntegrityError) as caught:
            read_file(repository, reader, b"a")

    assert caught.value.code == "integrity.chunk-id"


def file_refusal(scene: Scene, sequence: int = 1) -> str:
    """Return the code with which the content of the file ``a`` is refused."""
    with scene.open() as repository:
        reader = ChunkReader(repository, verified(repository, sequence), permit=allow)
        entry = listing(repository, reader)[b"a"]

        with pytest.raises(IntegrityError) as caught:
            reader.file_data(entry)

        with pytest.raises(IntegrityError) as by_id:
            reader.chunk(reader.file_chunk(entry), DATA)

    assert by_id.value.code == caught.value.code
    return caught.value.code


def test_a_file_of_one_chunk_is_not_given_the_bytes_of_another(tmp_path: Path) -> None:
    """The SHA-256 of the entry stands for the id here, and has to be compared like one."""
    scene = Scene(tmp_path)
    scene.stream.snapshot(
        {ROOT: mini.directory({b"a": mini.file(b"alpha"), b"b": mini.file(b"gamma")})},
        pack_edits={"ids": lambda ids: [ids[1], ids[0], *ids[2:]]},
    )

    assert file_refusal(scene) == "integrity.chunk-id"


def test_a_file_of_one_chunk_is_as_long_as_its_entry_says(tmp_path: Path) -> None:
    """An id is made from the length as well; a hash alone would let five bytes pass for four."""
    scene = Scene(tmp_path)
    length, digest = (4).to_bytes(8), mini.sha256(b"alpha")
    key = mini.subkey(scene.stream.naming[1], "chunk-id")
    invented = mini.mac(key, bytes((mini.DATA,)) + length + digest)
    scene.stream.snapshot(
        {ROOT: mini.directory({b"a": mini.file(b"alpha", size=4)})},
        pack_edits={"ids": lambda ids: [[invented], *ids[1:]]},
    )

    assert file_refusal(scene) == "integrity.chunk-id"


def test_a_file_is_not_found_under_the_naming_key_of_another_epoch(tmp_path: Path) -> None:
    """The id has to be the one that the pack's own naming key gives (spec/ingest.md 6.8)."""
    scene = Scene(tmp_path)
    stream = scene.stream
    scene.snapshot({b"z": mini.file(b"zeta")})
    naming = mini.sha256(stream.naming[1])
    invented = mini.chunk_id(naming, mini.DATA, b"alpha")
    chunks = stream.chunks()
    chunks.add(mini.DATA, b"alpha")
    stream.store(chunks, edits={"ids": lambda _: [[invented]]})
    stream.begin_epoch(naming=naming)
    stream.stored[2] = {invented}
    stream.publish()
    scene.snapshot({b"a": mini.file(b"alpha")})

    assert file_refusal(scene, 2) == "integrity.chunk-id"


def test_a_frame_that_inflates_to_more_than_it_says_is_refused(tmp_path: Path) -> None:
    """A few kilobytes must not become gigabytes in memory."""
    scene = Scene(tmp_path)
    bomb = mini.compress(bytes(64 * 1024 * 1024))

    def swell(stored: list[bytes]) -> list[bytes]:
        return [bomb if len(one) < 8000 else one for one in stored]

    scene.stream.snapshot(
        {ROOT: mini.directory({b"a": mini.file(b"alpha")})}, pack_edits={"stored": swell}
    )
    with scene.open() as repository:
        reader = ChunkReader(repository, verified(repository), permit=allow)

        with pytest.raises(IntegrityError) as caught:
            read_file(repository, reader, b"a")

    assert caught.value.code == "integrity.frame-inflate"


def two_packs(scene: Scene) -> tuple[ObjectName, ObjectName]:
    """Store data and trees in packs of their own; return the names of both."""
    stream, roots = scene.stream, {ROOT: mini.directory({b"a": mini.file(b"alpha")})}
    chunks = stream.chunks()
    nested = stream.nested_map(roots, chunks)
    names = []
    for is_data in (True, False):
        part = mini.Chunks(chunks.naming, stored=chunks.stored)
        part.new = {
            name: one for name, one in chunks.new.items() if (one[0] == mini.DATA) is is_data
        }
        pack = stream.store(part)
        assert pack is not None
        names.append(ObjectName(pack.name.hex()))
    stream.commit_nested(nested, counts=mini.totals(roots))
    return names[0], names[1]


def test_listing_with_a_catalogue_touches_no_pack_that_holds_only_data(tmp_path: Path) -> None:
    """`ls` on a reading machine must work with tree packs alone, and fast."""
    scene = Scene(tmp_path)
    data, trees = two_packs(scene)
    with scene.open() as repository:
        manifest = verified(repository)
        fill_catalog(repository, manifest)
        store = RecordingStore(repository.store)

        found = listing(
            repository, ChunkReader(repository, manifest, shelf=Shelf(repository, store=store))
        )

    assert set(found) == {b"a"}
    assert store.touched == {trees}
    assert data != trees


def test_a_pack_that_is_open_is_found_without_the_catalogue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore goes to and fro between trees and data; a query each time doubles its cost."""
    scene = Scene(tmp_path)
    two_packs(scene)
    with scene.open() as repository:
        manifest = verified(repository)
        fill_catalog(repository, manifest)
        find, asked = repository.catalog.find_chunk, list[ChunkId]()

        def find_noted(chunk: ChunkId) -> tuple[int, int] | None:
            asked.append(chunk)
            return find(chunk)

        monkeypatch.setattr(repository.catalog, "find_chunk", find_noted)
        reader = ChunkReader(repository, manifest, permit=allow)

        found = [read_file(repository, reader, b"a") for _ in range(3)]

    assert found == [b"alpha"] * 3
    assert len(asked) == 2


def test_listing_without_a_catalogue_reads_no_frame_of_a_data_pack(tmp_path: Path) -> None:
    """After a clone only the indexes of data packs are here."""
    scene = Scene(tmp_path)
    data, _ = two_packs(scene)
    with scene.open() as repository:
        manifest = verified(repository)
        pin = next(pin for pin in manifest.statement.pins if pin.name == data)
        index = openpack.PackOpener(repository).open(pin).index
        store = RecordingStore(repository.store)

        listing(repository, ChunkReader(repository, manifest, shelf=Shelf(repository, store=store)))

        frames = [
            (offset, length)
            for name, offset, length in store.reads
            if name == data and offset < index.end and (offset, length) != (0, 33)
        ]
    assert frames == []
    assert not (tmp_path / "repository" / "catalog.db").exists()


def repaired(scene: Scene, *, pinned: bool) -> ObjectName:
    """Make manifest 1, damage its pack, and a manifest 2 that repairs it; return the bad pack."""
    stream = scene.stream
    roots = {ROOT: mini.directory({b"a": mini.file(b"alpha")})}
    chunks = stream.chunks()
    nested = stream.nested_map(roots, chunks)
    bad = stream.store(chunks)
    assert bad is not None
    stream.commit_nested(nested, counts=mini.totals(roots))
    again = mini.Chunks(chunks.naming)
    again.new = chunks.new
    good = stream.store(again)
    assert good is not None
    if not pinned:
        del stream.pins[good.name]
    nested_2 = stream.nested_map(roots, stream.chunks())
    sealed = mini.seal_nested(nested_2, scope=stream.scope(), sequence=2, previous=stream.digest(1))
    statement = stream.statement(counts=mini.totals(roots), nested=sealed)
    stream.commit({**statement, 12: [[bad.name, [good.name]]]})
    return ObjectName(bad.name.hex())


def test_a_later_repair_brings_back_what_a_bad_pack_held(tmp_path: Path) -> None:
    """Old manifests cannot be changed; the repair is signed by a newer one (format 7.2)."""
    scene = Scene(tmp_path)
    bad = repaired(scene, pinned=True)
    with scene.open() as repository:
        chain = Chain(repository)
        manifests = chain.all_verified(now=1_800_000_100)
        edit(scene, bad, lambda data: data.__setitem__(6000, data[6000] ^ 1))
        scene.object_path(bad).unlink()

        with_repair = ChunkReader(repository, manifests[1], permit=allow, newest=manifests[2])
        assert read_file(repository, with_repair, b"a") == b"alpha"
        with pytest.raises(IntegrityError) as caught:
            listing(repository, ChunkReader(repository, manifests[1]))

    assert caught.value.code == "integrity.pack-missing"


def test_a_pack_that_a_repair_calls_bad_is_read_last(tmp_path: Path) -> None:
    """It may open and give good frames for a while, until the disk fails altogether."""
    scene = Scene(tmp_path)
    bad = repaired(scene, pinned=True)
    with scene.open() as repository:
        manifests = Chain(repository).all_verified(now=1_800_000_100)
        store = RecordingStore(repository.store)
        shelf = Shelf(repository, store=store)
        reader = ChunkReader(repository, manifests[2], shelf=shelf, permit=allow)

        assert read_file(repository, reader, b"a") == b"alpha"

    assert bad not in {name for name, *_ in store.reads}


def test_a_pack_that_a_repair_calls_bad_is_read_where_nothing_else_is_left(tmp_path: Path) -> None:
    """Most of a bad pack is often good, and its replacement may be lost as well."""
    scene = Scene(tmp_path)
    bad = repaired(scene, pinned=True)
    with scene.open() as repository:
        manifests = Chain(repository).all_verified(now=1_800_000_100)
        (good,) = {pin.name for pin in manifests[2].statement.pins} - {bad}
        scene.object_path(good).unlink()
        reader = ChunkReader(repository, manifests[1], permit=allow, newest=manifests[2])

        assert read_file(repository, reader, b"a") == b"alpha"


def test_a_pack_that_only_another_reader_may_use_is_not_read(tmp_path: Path) -> None:
    """Readers of several manifests share what is open; each has the pins of its own."""
    scene = Scene(tmp_path)
    for content in (b"alpha", b"beta"):
        scene.snapshot({b"a": mini.file(content)})
    with scene.open() as repository:
        shelf = Shelf(repository)
        newer, older = (
            ChunkReader(repository, verified(repository, number), shelf=shelf, permit=allow)
            for number in (2, 1)
        )
        entry = listing(repository, newer)[b"a"]
        assert newer.file_data(entry) == b"beta"

        with pytest.raises(IntegrityError) as caught:
            older.file_data(entry)

    assert caught.value.code == "integrity.chunk-missing"


def test_a_replacement_that_is_not_pinned_is_not_read(tmp_path: Path) -> None:
    """Only a pin says which index is the right one; an unpinned pack may be anyone's."""
    scene = Scene(tmp_path)
    bad = repaired(scene, pinned=False)
    with scene.open() as repository:
        manifests = Chain(repository).all_verified(now=1_800_000_100)
        scene.object_path(bad).unlink()
        store = RecordingStore(repository.store)
        reader = ChunkReader(
            repository, manifests[1], shelf=Shelf(repository, store=store), newest=manifests[2]
        )

        with pytest.raises(IntegrityError):
            listing(repository, reader)

    assert store.reads == []


def test_a_frame_is_decrypted_once_however_many_chunks_it_holds(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Restoring a thousand small files of one frame must not decrypt it a thousand times."""
    frames = count_calls(monkeypatch, "open_frame")
    reader = ChunkReader(repository, verified(repository), permit=allow)

    for _ in range(5):
        read_file(repository, reader, b"a")

    assert len(frames) == 2


def test_memory_of_frames_and_indexes_stays_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore of a terabyte must not keep a terabyte."""
    monkeypatch.setattr(shelf_module, "FRAMES_MAX_BYTES", 100_000)
    monkeypatch.setattr(shelf_module, "OPEN_CHUNKS_MAX", 4)
    scene = Scene(tmp_path)
    contents = {b"%d" % number: bytes([number]) * 30_000 for number in range(1, 9)}
    for upto in range(1, 9):
        chosen = list(contents.items())[:upto]
        scene.snapshot({name: mini.file(data) for name, data in chosen})
    with scene.open() as repository:
        shelf = Shelf(repository)
        reader = ChunkReader(repository, verified(repository, 8), permit=allow, shelf=shelf)

        for name, data in contents.items():
            assert read_file(repository, reader, name) == data

        assert shelf._frame_bytes == sum(map(len, shelf._frames.values()))
        assert shelf._frame_bytes <= 100_000
        assert sum(len(pack.index.ids) for pack in shelf._packs.values()) <= 4


@pytest.mark.parametrize(
    ("is_there", "code"), [(False, "trust.registry-version"), (True, "integrity.seal")]
)
def test_a_pin_whose_old_registry_is_missing_or_damaged_is_refused(
    tmp_path: Path, *, is_there: bool, code: str
) -> None:
    """Whoever looks for what to bring back has to know which of the two it is."""
    scene = Scene(tmp_path)
    scene.snapshot({b"a": mini.file(b"alpha")})
    scene.stream.begin_epoch(naming=scene.stream.naming[1])
    scene.stream.publish()
    scene.snapshot({b"a": mini.file(b"alpha")})
    old = mini.registry_slot(scene.stream.locator, 1)

    with scene.open() as repository:
        reader = ChunkReader(repository, verified(repository, 2), permit=allow)
        if is_there:
            edit(scene, old, lambda data: data.__setitem__(-1, data[-1] ^ 1))
        else:
            scene.object_path(old).unlink()
        with pytest.raises((IntegrityError, TrustError)) as caught:
            listing(repository, reader)

    assert caught.value.code == code


def test_packs_of_an_earlier_epoch_are_opened_as_of_that_epoch(tmp_path: Path) -> None:
    """A pin says under which registry its pack was sealed, and that decides the epoch."""
    scene = Scene(tmp_path)
    scene.snapshot({b"a": mini.file(b"alpha")})
    scene.stream.begin_epoch(naming=scene.stream.naming[1])
    scene.stream.publish()
    scene.snapshot({b"b": mini.file(b"beta")})
    with scene.open() as repository:
        old = ChunkReader(repository, verified(repository, 1), permit=allow)
        new = ChunkReader(repository, verified(repository, 2), permit=allow)

        assert read_file(repository, old, b"a") == b"alpha"
        assert read_file(repository, new, b"b") == b"beta"
        epochs = [
            old._shelf.opener.epoch_of(pin.registry_version) for pin in new.manifest.statement.pins
        ]

    assert sorted(epochs) == [1, 2]
