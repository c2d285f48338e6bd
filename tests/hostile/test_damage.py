"""Any flipped bit and any cut of any object is found, named, and costs no other file.

For each damage the answer of verify is compared with what a restore can really read: the paths
that it names are exactly those that do not come back. A usual run damages every object at its
joints and at 12 random places; DURAREPO_HOSTILE_FACTOR, for tests only, multiplies the random
places, and from 1000 on every byte of every object is flipped. A failure prints the seed.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from durarepo.core.entries import Entry
from durarepo.core.errors import IntegrityError
from durarepo.core.progress import SilentProgress
from durarepo.operations.verify import Verified, VerifyRequest, verify
from durarepo.repository.chain import Chain
from durarepo.repository.reader import ChunkReader
from durarepo.repository.repository import Repository, open_repository
from durarepo.repository.restorer import file_pieces
from durarepo.repository.trees import iter_directory, join_path
from tests.adversary.scene import NOW, ROOT, Scene, verified
from tests.hostile.mutation import draws
from tests.interop import miniwriter as mini

FACTOR = int(os.environ.get("DURAREPO_HOSTILE_FACTOR", "1"))
SEED = int(os.environ.get("DURAREPO_HOSTILE_SEED", "20261"))
EVERYWHERE = 1000
HEADER = 65 + 4 * 1168
JOINTS = (0, 1, 33, 33 + 1168, HEADER - 32, HEADER - 1, HEADER, HEADER + 12, -60, -36, -32, -1)
CONTENTS = {
    b"/a": b"alpha" * 30,
    b"/empty": b"",
    b"/d/b": b"beta" * 700,
    b"/d/big": b"x" * 3000 + bytes(500) + b"y" * 3000,
    b"/d/deep/c": b"gamma" * 11,
}
OLD_TOO = {b"/a", b"/empty"}
"""Paths that an older manifest may have lost while the newest one still has them."""


def make(folder: Path) -> tuple[Scene, dict[str, str]]:
    """Return a stream of two manifests, each with a pack, and its objects by kind."""
    scene = Scene(folder)
    big = mini.file(b"x" * 3000, 500, b"y" * 3000, depth=1)
    deep = mini.directory({b"c": mini.file(CONTENTS[b"/d/deep/c"])})
    inner = mini.directory({b"b": mini.file(CONTENTS[b"/d/b"]), b"big": big, b"deep": deep})
    names: dict[str, str] = {}
    for number, first in enumerate((b"old", CONTENTS[b"/a"]), start=1):
        before = set(scene.stream.pins)
        scene.snapshot({b"a": mini.file(first), b"d": inner, b"empty": mini.file()})
        (pack,) = set(scene.stream.pins) - before
        slots = mini.slot_key(scene.stream.naming[1])
        names[f"pack {number}"] = pack.hex()
        names[f"envelope {number}"] = mini.manifest_slot(slots, 1, number)
    names["registry"] = mini.registry_slot(scene.stream.locator, 1)
    scene.lay_out()
    return scene, names


def look(repository: Repository) -> Verified:
    """Verify all packs."""
    return verify(repository, VerifyRequest(), clock=lambda: NOW, progress=SilentProgress())


def restorable(repository: Repository) -> dict[bytes, bytes]:
    """Return every file of the newest manifest that can be read, by its path below the root."""
    manifest = verified(repository, 2)
    reader = ChunkReader(repository, manifest, permit=lambda: None)
    (root,) = Chain(repository).nested(manifest).roots
    return {path[len(ROOT) :]: data for path, data in _read(reader, ROOT, root.entry)}


def _read(reader: ChunkReader, path: bytes, entry: Entry) -> Iterator[tuple[bytes, bytes]]:
    try:
        if entry.tree is None:
            pieces = file_pieces(reader, entry, path)
            yield path, b"".join(one if isinstance(one, bytes) else bytes(one) for one in pieces)
            return
        children = list(iter_directory(reader, entry.tree))
    except IntegrityError:
        return
    for child in children:
        yield from _read(reader, join_path(path, child.name), child)


def is_named(path: bytes, affects: tuple[bytes, ...]) -> bool:
    """Return whether a path below the root is among those that a problem affects."""
    whole = ROOT + path
    return any(whole == one or whole.startswith(one + b"/") for one in affects)


def damages(data: bytes, kind: str) -> Iterator[tuple[str, bytes]]:
    """Yield what is done to an object: (what, the bytes that are there then)."""
    rng = draws(f"{SEED} {kind}")
    places = [at % len(data) for at in JOINTS]
    places += [rng.randrange(len(data)) for _ in range(12 * FACTOR)]
    for at in range(len(data)) if FACTOR >= EVERYWHERE else places:
        flipped = bytearray(data)
        flipped[at] ^= 1 << rng.randrange(8)
        yield f"a bit of byte {at}", bytes(flipped)
    for length in [0, 1, HEADER, len(data) - 1, *(rng.randrange(len(data)) for _ in range(FACTOR))]:
        yield f"cut to {length}", data[:length]
    yield "one byte more", data + b"\0"
    yield "zeros", bytes(len(data))


def test_the_stream_is_whole_before_it_is_damaged(tmp_path: Path) -> None:
    """What follows compares with this."""
    scene, names = make(tmp_path)
    with open_repository(scene.places) as repository:
        assert look(repository).ok
        assert restorable(repository) == CONTENTS
    assert set(names.values()) == set(scene.stream.objects)


@pytest.mark.parametrize("kind", ["pack 1", "pack 2"])
def test_every_damage_to_a_pack_is_found_and_named_down_to_the_file(
    tmp_path: Path, kind: str
) -> None:
    """Found late, or laid to the wrong file, damage becomes loss (A1c)."""
    scene, names = make(tmp_path)
    path = scene.object_path(names[kind])
    data = path.read_bytes()
    objects = {one for one in (scene.folder / "repository").rglob("*") if one.is_file()}
    partly = 0

    for what, damaged in damages(data, kind):
        path.write_bytes(damaged)
        with open_repository(scene.places) as repository:
            result, left = look(repository), restorable(repository)

        told = f"seed {SEED}, {kind}, {what}"
        assert [one.object for one in result.problems] == [names[kind]], told
        affects = result.problems[0].affects
        assert affects is not None, told
        newest = {name for name in CONTENTS if is_named(name, affects)}
        assert set(CONTENTS) - set(left) <= newest, told
        assert newest - (set(CONTENTS) - set(left)) <= OLD_TOO, told
        assert left == {name: CONTENTS[name] for name in left}, told
        assert path.read_bytes() == damaged, told
        partly += 0 < len(left) < len(CONTENTS)
    after = {one for one in (scene.folder / "repository").rglob("*") if one.is_file()}
    assert after == objects
    assert partly > 0


@pytest.mark.parametrize("kind", ["registry", "envelope 1", "envelope 2"])
def test_every_damage_to_an_envelope_or_a_registry_is_found(tmp_path: Path, kind: str) -> None:
    """A manifest that cannot be read takes everything with it that only it lists."""
    scene, names = make(tmp_path)
    path = scene.object_path(names[kind])
    data = path.read_bytes()

    for what, damaged in damages(data, kind):
        path.write_bytes(data)
        with open_repository(scene.places) as repository:
            path.write_bytes(damaged)
            result = look(repository)

        told = f"seed {SEED}, {kind}, {what}"
        found = [(one.object, str(one.kind), one.affects) for one in result.problems]
        affects = () if kind == "registry" else (ROOT,)
        assert found == [(names[kind], "corrupt", affects)], told
        assert path.read_bytes() == damaged, told


@pytest.mark.parametrize(
    ("kind", "word"),
    [("registry", "missing"), ("envelope 1", "gap"), ("pack 1", "missing"), ("pack 2", "missing")],
)
def test_every_object_that_is_missing_is_named(tmp_path: Path, kind: str, word: str) -> None:
    """An object that is gone leaves no bytes that could be wrong."""
    scene, names = make(tmp_path)
    with open_repository(scene.places) as repository:
        scene.object_path(names[kind]).unlink()
        result = look(repository)

    assert [(one.object, str(one.kind)) for one in result.problems] == [(names[kind], word)]
