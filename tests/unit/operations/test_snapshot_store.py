"""What a snapshot writes: sizes, names, slots, and the same tree for the same files."""

import os
import shutil
import sqlite3
from contextlib import closing
from hashlib import blake2b, sha1, sha256, sha512
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durarepo.core.errors import StoreError, TrustError
from durarepo.core.limits import MIB, SIZE_CLASSES
from durarepo.core.names import ChunkId
from durarepo.core.progress import SilentProgress
from durarepo.crypto import primitives
from durarepo.format.layout import ChunkKind, Compartment
from durarepo.format.manifest import Pin
from durarepo.operations.verify import Verified, VerifyRequest, verify
from durarepo.repository import publisher
from durarepo.repository.openpack import PackOpener
from durarepo.repository.writer import NewPack, PackTerms, PackWriter
from durarepo.sealing import PackSealer
from durarepo.store.localdir import LocalDir
from tests.machines.stream import Stream, fill, later


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Give a fresh stream with an empty root."""
    return Stream(tmp_path)


def _limit(stream: Stream, size: int) -> None:
    path = Path(os.fsdecode(stream.places.configuration))
    path.write_text(f"max_object_bytes = {size}\n" + path.read_text())


@pytest.mark.parametrize("size", [0, MIB - 1, MIB, MIB + 1, 10 * MIB])
def test_no_object_is_larger_than_the_stores_limit(stream: Stream, size: int) -> None:
    """A store that takes 1 MiB refuses the rest, and the backup with it (A3c)."""
    _limit(stream, MIB)
    (stream.root / "file").write_bytes(os.urandom(size))

    stream.snapshot()

    sizes = [path.stat().st_size for path in stream.object_files()]
    assert max(sizes) <= MIB
    assert set(sizes) <= set(SIZE_CLASSES)
    stream.check_restores()


def test_a_chunk_of_the_largest_files_fits_the_smallest_limit(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Huge files are cut into larger chunks; one larger than an object can never be stored."""
    from durarepo.repository import contents

    _limit(stream, MIB)
    monkeypatch.setattr(contents, "average_for", lambda _: 512 * 1024)  # as above 4 GiB
    (stream.root / "file").write_bytes(os.urandom(6 * MIB))

    stream.snapshot()

    assert max(path.stat().st_size for path in stream.object_files()) <= MIB
    stream.check_restores()


def test_a_listing_that_fits_no_object_is_an_error_that_says_so(stream: Stream) -> None:
    """It must name the limit to raise, and leave the last manifest the head."""
    _limit(stream, MIB)
    fill(stream.root, {"a": b"1"})
    stream.snapshot()
    with stream.open() as repository:
        writer, packs = _writer(repository.store, limit=MIB)
        writer.add(ChunkKind.TREE, ChunkId(bytes(32)), os.urandom(MIB))
        with pytest.raises(StoreError) as caught:
            writer.finish()
        writer.close()

    assert caught.value.code == "store.object-limit"
    assert packs == []


def _writer(store: LocalDir, *, limit: int) -> tuple[PackWriter, list[NewPack]]:
    recipient = primitives.recipient_of(primitives.random_key())
    place = Compartment(stream="notes", epoch=1, compartment="notes")
    subkey = primitives.random_key()
    packs: list[NewPack] = []
    writer = PackWriter(
        store,
        new_sealer=lambda: PackSealer([recipient], place=place, count=4, index_subkey=subkey),
        terms=PackTerms(registry_version=1, stanza_count=4, object_limit=limit),
        on_sealed=lambda _: None,
        on_pack=packs.append,
    )
    return writer, packs


@given(
    sizes=st.lists(st.integers(1, 32_768), min_size=1, max_size=120),
    limit=st.sampled_from([MIB, 3 * MIB, 32 * MIB]),
)
@settings(max_examples=25)
def test_padding_costs_at_most_a_twentieth_and_128_kib(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], limit: int
) -> None:
    """Size classes hide lengths; they must not double a small night's upload.

    Chunks are of the usual length and less here: a lone one that is a little longer than a size
    class needs the next, which costs more than that.
    """
    folder = tmp_path_factory.mktemp("objects")
    with LocalDir(bytes(folder)) as store:
        writer, packs = _writer(store, limit=limit)
        for number, size in enumerate(sizes):
            writer.add(ChunkKind.DATA, ChunkId(sha256(b"%d" % number).digest()), os.urandom(size))
        writer.finish()
        writer.close()

    stored = sum(new.pin.size for new in packs)
    ids = [chunk for new in packs for chunk in new.ids]
    shutil.rmtree(folder)
    assert sorted(ids) == sorted(sha256(b"%d" % n).digest() for n in range(len(sizes)))
    assert {new.pin.size for new in packs} <= {one for one in SIZE_CLASSES if one <= limit}
    headers = 5200 * len(packs)
    assert stored <= 1.05 * (sum(sizes) + headers + 90 * len(sizes)) + 128 * 1024


def test_a_pack_is_announced_before_it_is_there_and_reported_after(tmp_path: Path) -> None:
    """A name noted only afterwards is lost to a kill in between; one reported early lies."""
    told: list[tuple[str, bool]] = []
    with LocalDir(bytes(tmp_path)) as store:
        writer, _ = _writer(store, limit=MIB)

        def announced(pin: Pin) -> None:
            told.append(("announced", store.stat(pin.name) is not None))

        writer._on_sealed = announced
        writer._on_pack = lambda new: told.append(("durable", store.stat(new.pin.name) is not None))
        writer.add(ChunkKind.DATA, ChunkId(bytes(32)), b"data")
        writer.finish()
        writer.close()

    assert told == [("announced", False), ("durable", True)]


def test_equal_files_are_stored_once_in_two_places_and_on_two_days(stream: Stream) -> None:
    """Deduplication is what makes a nightly backup cheap (A3e)."""
    data = os.urandom(300_000)
    fill(stream.root, {"a": data, "deep/er/b": data})
    first = stream.snapshot()
    fill(stream.root, {"c": data})
    second = stream.snapshot()

    assert first.new_bytes < 310_000
    assert second.new_bytes < 10_000


def test_no_name_tells_what_is_stored(tmp_path: Path) -> None:
    """Who knows a file must not find it by a hash of it; and streams do not show what they share.

    (A3e)
    """
    data = os.urandom(50_000)
    streams = [Stream(tmp_path / name, name=name) for name in ("one", "two")]
    names: list[set[str]] = []
    for stream in streams:
        (stream.root / "file").write_bytes(data)
        stream.snapshot()
        names.append({path.name for path in stream.object_files()})
        with stream.open() as repository:
            rows = repository.catalog._connection.execute("SELECT id FROM chunks").fetchall()
        names[-1] |= {row[0].hex() for row in rows}

    hashes = {make(data).hexdigest()[:64] for make in (sha256, sha512, sha1, blake2b)}
    assert not names[0] & names[1]
    assert not (names[0] | names[1]) & hashes


def test_no_key_lies_anywhere_but_in_the_keys_folder(stream: Stream) -> None:
    """A journal or catalogue with a key in it makes the whole repository an open book (A2e)."""
    with closing(sqlite3.connect(stream.root / "agent.db")) as connection:
        connection.execute("CREATE TABLE t (x)")
    fill(stream.root, {"a": os.urandom(100_000)})
    stream.snapshot()
    kinds = {
        "signing": "signing.key",
        "naming": "naming.key",
        "identity": "identity.key",
        "locator": "locator.key",
        "owner": "owner.key",
    }
    secrets = [stream.key(kind, name) for kind, name in kinds.items()]
    needles = [part for key in secrets for part in (key[:32], key[-32:])]
    needles += [needle.hex().encode() for needle in needles]
    looked_at = 0
    for folder in (stream.places.repository, stream.places.state):
        for path in Path(os.fsdecode(folder)).rglob("*"):
            if path.is_file():
                looked_at += 1
                data = path.read_bytes()
                assert not any(needle in data for needle in needles), path
    assert looked_at > 8


def test_equal_trees_give_equal_ids_components_counts_and_ledgers(tmp_path: Path) -> None:
    """Two repositories that differ for the same files cannot be compared or trusted."""
    root = tmp_path / "root"
    fill(root, {f"d{n % 5}/f{n}": os.urandom(n * 1000) for n in range(40)})
    with closing(sqlite3.connect(root / "agent.db")) as connection:
        connection.execute("CREATE TABLE t (x)")
    (root / "x.db").write_bytes(b"SQLite format 3\x00 damaged" + bytes(200))
    one = Stream(tmp_path, name="one", roots=(bytes(root),), clock=later)
    two = Stream(tmp_path, name="two", roots=(bytes(root),), clock=later)
    for name in (b"naming.key",):
        shutil.copy(one.places.keys + b"/" + name, two.places.keys + b"/" + name)

    results = [one.snapshot(), two.snapshot()]

    told = [stream.nested() for stream in (one, two)]
    assert told[0].roots == told[1].roots
    assert told[0].components == told[1].components
    assert told[0].ledger == told[1].ledger
    assert results[0].left_out == results[1].left_out
    counts = [(r.files, r.dirs, r.bytes, r.omissions, r.new_chunks, r.new_bytes) for r in results]
    assert counts[0] == counts[1]


# --- slots ---------------------------------------------------------------------------------


def _next_slot(stream: Stream, sequence: int, attempt: int = 0) -> Path:
    with stream.open() as repository:
        path = stream.object_path(repository.manifest_slot(1, sequence, attempt))
    path.parent.mkdir(exist_ok=True)
    return path


def test_another_writer_that_took_the_number_ends_the_run(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two machines with one stream's keys must be told apart, not mixed (trust.fork)."""
    fill(stream.root, {"a": b"1"})
    stream.snapshot()
    slot = _next_slot(stream, 2)
    shutil.copytree(stream.base / "notes", stream.base / "twin")
    stream.snapshot()
    theirs = slot.read_bytes()
    shutil.rmtree(stream.base / "notes")
    os.rename(stream.base / "twin", stream.base / "notes")
    real = publisher._put

    def raced(*given: object) -> object:
        slot.parent.mkdir(exist_ok=True)
        slot.write_bytes(theirs)
        return real(*given)  # type: ignore[arg-type]  # as given

    monkeypatch.setattr(publisher, "_put", raced)
    with pytest.raises(TrustError) as caught:
        stream.snapshot()

    assert caught.value.code == "trust.fork"
    assert slot.read_bytes() == theirs


def test_a_number_taken_while_it_is_put_is_a_fork_too(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the link lies a moment, and it must not end as damage."""
    fill(stream.root, {"a": b"1"})
    stream.snapshot()
    slot = _next_slot(stream, 2)
    first = _next_slot(stream, 1).read_bytes()
    real = LocalDir.put_new

    def raced(store: LocalDir, name: str, data: bytes) -> object:
        slot.write_bytes(first)  # any envelope with a good mark
        return real(store, name, data)  # type: ignore[arg-type]  # as given

    monkeypatch.setattr(LocalDir, "put_new", raced)
    with pytest.raises(TrustError) as caught:
        stream.snapshot()

    assert caught.value.code == "trust.fork"
    assert slot.read_bytes() == first


@pytest.mark.parametrize("size", [0, 100, 32_768])
def test_something_torn_in_the_slot_is_passed_over(stream: Stream, size: int) -> None:
    """A torn object must neither stop the writer for good nor hide the manifest behind it."""
    fill(stream.root, {"a": b"1"})
    stream.snapshot()
    slot = _next_slot(stream, 2)
    slot.write_bytes(os.urandom(size))
    torn = slot.read_bytes()

    result = stream.snapshot()

    assert result.sequence == 2
    assert result.manifest == _next_slot(stream, 2, 1).name
    assert slot.read_bytes() == torn
    assert list(stream.statements()) == [1, 2]
    stream.check_restores()
    assert stream.snapshot().sequence == 3


# --- put-only ------------------------------------------------------------------------------


def test_a_put_only_machine_takes_snapshots_and_does_not_start_over(tmp_path: Path) -> None:
    """The machine that must not read its backups still must not store them anew each night."""
    stream = Stream(tmp_path, put_only=True)
    fill(stream.root, {"a": os.urandom(200_000)})
    first = stream.snapshot()
    second = stream.snapshot()
    stream.lose(catalog=True)
    third = stream.snapshot()

    assert not os.path.lexists(stream.places.keys + b"/identity.key")
    assert first.new_bytes > 200_000
    assert (second.new_chunks, third.new_chunks) == (0, 0)


def test_a_put_only_machine_that_lost_its_state_seals_all_anew_and_says_so(tmp_path: Path) -> None:
    """It cannot know which packs the head pins; a wrong guess is a file that is lost (law 5)."""
    stream = Stream(tmp_path, put_only=True)
    fill(stream.root, {"a": os.urandom(200_000)})
    stream.snapshot()
    stream.lose(state=True)
    again = stream.snapshot()

    assert (again.sequence, again.new_bytes > 200_000) == (2, True)
    from tests.crash.test_snapshot_kills import with_identity

    with_identity(stream)
    statements = stream.statements()
    assert [one.state_lost for one in statements.values()] == [False, True]
    assert statements[2].abandoned == ()
    stream.check_restores()


def test_a_catalogue_that_is_damaged_in_the_middle_is_built_anew_by_the_same_run(
    stream: Stream,
) -> None:
    """Nobody should have to start a backup again because a cache went bad."""
    fill(stream.root, {f"d{n}/f": os.urandom(1000) for n in range(5)})
    stream.snapshot()
    with closing(sqlite3.connect(os.fsdecode(stream.places.catalog))) as connection:
        connection.execute(
            "UPDATE dirs SET entries = zeroblob(length(entries)) "
            "WHERE CAST(path AS TEXT) LIKE '%d3'"
        )
        connection.commit()
    fill(stream.root, {"d3/g": b"new"})

    result = stream.snapshot()

    assert (result.status, result.sequence, result.files) == ("ok", 2, 6)
    assert os.path.lexists(stream.places.catalog + b".damaged")
    stream.check_restores()


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_catalogue_that_is_no_catalogue_is_set_aside(stream: Stream, content: bytes) -> None:
    """It may be deleted or ruined at any time; the backup goes on."""
    fill(stream.root, {"a": os.urandom(1000)})
    stream.snapshot()
    stream.lose(catalog=True)
    Path(os.fsdecode(stream.places.catalog)).write_bytes(content)

    result = stream.snapshot()

    assert (result.status, result.sequence, result.new_chunks) == ("ok", 2, 0)


@pytest.mark.parametrize("damage", ["missing", "corrupt"])
def test_what_verify_found_bad_is_stored_anew_by_the_next_snapshot(
    stream: Stream, damage: str
) -> None:
    """Otherwise every later snapshot of an unchanged file is as broken as the first."""
    fill(stream.root, {"a": os.urandom(5000), "d/b": os.urandom(5000)})
    stream.snapshot()
    for pin in stream.statements()[1].pins:
        path = stream.object_path(pin.name)
        data = bytearray(path.read_bytes())
        data[len(data) // 4] ^= 1
        path.unlink()
        if damage == "corrupt":
            path.write_bytes(data)
    before = _verify(stream)

    stream.snapshot()

    after = _verify(stream)
    assert (before.ok, before.newest_whole) == (False, False)
    assert (after.ok, after.newest_whole, after.head) == (False, True, 2)
    stream.check_restores()


def _verify(stream: Stream) -> Verified:
    with stream.open() as repository:
        return verify(repository, VerifyRequest(), clock=stream.clock, progress=SilentProgress())


@pytest.mark.parametrize("wrong", ["number = number + 1", "pack = (SELECT max(id) FROM packs)"])
def test_a_row_of_the_catalogue_that_the_index_does_not_bear_out_is_not_believed(
    stream: Stream, wrong: str
) -> None:
    """A chunk that counts as known and lies nowhere is lost, and nobody is told."""
    content = os.urandom(5000)
    fill(stream.root, {"a": content})
    stream.snapshot()
    fill(stream.root, {"b": os.urandom(5000)})
    stream.snapshot()
    with closing(sqlite3.connect(os.fsdecode(stream.places.catalog))) as connection:
        connection.execute(f"UPDATE chunks SET {wrong} WHERE pack = 1")  # noqa: S608
        connection.commit()
    for path in (stream.root / "again", stream.root / "more"):
        path.write_bytes(content)

    result = stream.snapshot()

    assert result.new_bytes >= len(content)
    stream.check_restores()


def test_an_unchanged_run_opens_no_pack(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was stored is looked up in the packs only for what is new; the rest costs nothing."""
    fill(stream.root, {f"d{n}/f": os.urandom(1000) for n in range(5)})
    stream.snapshot()
    opened: list[Pin] = []
    monkeypatch.setattr(PackOpener, "open", lambda _, pin: opened.append(pin))

    stream.snapshot()

    assert opened == []
