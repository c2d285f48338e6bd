"""The catalogue comes back from the packs alone, and never from a pack that is not whole."""

from pathlib import Path

import pytest

from durarepo.core.errors import IntegrityError
from durarepo.core.names import ChunkId
from durarepo.format.manifest import Pin
from durarepo.repository.openpack import PackOpener
from durarepo.repository.rebuild import ensure_packs, epoch_keys, find_unpinned, open_unpinned
from durarepo.repository.repository import open_repository
from tests.adversary.scene import Scene, verified
from tests.interop import miniwriter as mini


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Give a stream with a pack in each of two epochs, laid out."""
    scene = Scene(tmp_path)
    scene.snapshot({b"a": mini.file(b"alpha")})
    scene.stream.begin_epoch()
    scene.stream.publish()
    scene.snapshot({b"b": mini.file(b"beta")})
    scene.lay_out()
    return scene


def all_pins(scene: Scene) -> list[Pin]:
    """Return what both manifests pin."""
    with open_repository(scene.places) as repository:
        return [pin for n in (1, 2) for pin in verified(repository, n).statement.pins]


def test_rows_that_the_catalogue_lacks_come_from_the_pinned_indexes(scene: Scene) -> None:
    """After catalog.db was deleted every chunk has to be known again, or all is stored twice."""
    pins = all_pins(scene)
    with open_repository(scene.places) as repository:
        expected = {pin: PackOpener(repository).open(pin).index.ids for pin in pins}
        with repository.catalog.transaction():
            found = ensure_packs(repository, repository.catalog, pins)
            again = ensure_packs(repository, repository.catalog, pins)

        assert set(found.values()) == set(pins)
        assert again == found
        for row, pin in found.items():
            for number, chunk in enumerate(expected[pin]):
                assert repository.catalog.find_chunk(chunk) == (row, number)


def test_a_pack_whose_index_is_not_the_pinned_one_gives_no_rows(scene: Scene) -> None:
    """A chunk that counts as known is not stored; known wrongly, it is lost."""
    pins = all_pins(scene)
    with open_repository(scene.places) as repository:
        ids = PackOpener(repository).open(pins[0]).index.ids
        path = scene.object_path(pins[0].name)
        data = bytearray(path.read_bytes())
        data[-40] ^= 1
        path.write_bytes(data)
        with repository.catalog.transaction():
            found = ensure_packs(repository, repository.catalog, pins)

        assert set(found.values()) == set(pins[1:])
        assert all(repository.catalog.find_chunk(chunk) is None for chunk in ids)


def test_without_pins_every_whole_pack_of_any_epoch_is_found(scene: Scene) -> None:
    """A machine that lost its state and has no identity still knows its packs (ingest 5.4)."""
    pins = all_pins(scene)
    other = mini.Repository(seed=b"other")
    other.snapshot({b"/srv": mini.directory({b"x": mini.file(b"foreign")})})
    other.write(scene.folder / "repository" / "objects")
    naming = scene.folder / "keys" / "naming-1.key"
    naming.write_text(mini.key_line("naming", scene.stream.naming[1]))
    naming.chmod(0o600)
    (scene.folder / "keys" / "identity.key").unlink()

    with open_repository(scene.places) as repository:
        found = {pack.name: pack for pack in find_unpinned(repository, repository.store)}

    assert {name: pack.index_digest for name, pack in found.items()} == {
        pin.name: pin.index_digest for pin in pins
    }
    assert sorted(pack.epoch for pack in found.values()) == [1, 2]
    wanted = ChunkId(mini.chunk_id(scene.stream.naming[1], mini.DATA, b"alpha"))
    assert any(wanted in pack.index.ids for pack in found.values())


@pytest.mark.parametrize("at", [5, 5000, -50, -1])
def test_without_pins_a_damaged_pack_is_never_taken(scene: Scene, at: int) -> None:
    """Only the whole pack vouches for its index; a changed frame would be pinned for ever."""
    data, names = bytearray(), [pin.name for pin in all_pins(scene)]
    for name in names:
        path = scene.object_path(name)
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    with open_repository(scene.places) as repository:
        assert list(find_unpinned(repository, repository.store)) == []
        if at == 5000:
            with pytest.raises(IntegrityError) as caught:
                open_unpinned(bytes(data), names[-1], epoch_keys(repository))
            assert caught.value.code == "integrity.object-name"
