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

from durarepo.operations.verify import Level
from durarepo.repository.repository import open_repository
from tests.adversary.scene import ROOT
from tests.hostile.damage import (
    CONTENTS,
    PER_BYTE,
    Bench,
    Damage,
    campaign,
    check_named,
    look,
    make,
    quickly,
    restorable,
)
from tests.hostile.mutation import draws

FACTOR = int(os.environ.get("DURAREPO_HOSTILE_FACTOR", "1"))
SEED = int(os.environ.get("DURAREPO_HOSTILE_SEED", "20261"))
EVERYWHERE = 1000
HEADER = 65 + 4 * 1168
JOINTS = (0, 1, 33, 33 + 1168, HEADER - 32, HEADER - 1, HEADER, HEADER + 12, -60, -36, -32, -1)
POINTS = 600
"""Mutations of a usual run beside those on disk."""


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
        check_named(affects, left, told)
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


# --- many more, in memory -------------------------------------------------------------------


def test_no_mutation_of_any_object_is_missed_or_laid_to_another(tmp_path: Path) -> None:
    """What the joints of an object show need not hold for every byte between them (A1c)."""
    tally = campaign(tmp_path, seed=SEED, count=POINTS * FACTOR)

    assert tally.failures == [], f"seed {SEED}"
    assert tally.points == POINTS * FACTOR
    assert tally.partly > 0


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Give a repository whose objects lie in memory too."""
    scene, names = make(tmp_path)
    with open_repository(scene.places) as repository:
        yield Bench(repository, names)


def test_the_list_of_mutations_names_each_once(bench: Bench) -> None:
    """A place that no number means is never damaged."""
    sizes = dict(bench.sizes)
    first, last = bench.damage(0), bench.damage(bench.count() - 1)
    kind = next(iter(sizes))

    assert bench.count() == PER_BYTE * sum(sizes.values())
    assert first == Damage(kind=kind, at=0, bit=0)
    assert last == Damage(kind=list(sizes)[-1], at=list(sizes.values())[-1] - 1, bit=8)
    assert first.done_to(b"\x00\x01") == b"\x01\x01"
    assert Damage(kind=kind, at=1, bit=8).done_to(b"ab") == b"a"
    seen = {bench.damage(number) for number in range(0, bench.count(), 1009)}
    assert len(seen) == len(range(0, bench.count(), 1009))
    assert {one.kind for one in seen} == set(sizes)


def test_the_bench_sees_what_verify_does_not_find(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bench that is content with everything would be green for ever."""
    whole = look(bench.repository, store=bench.store)
    monkeypatch.setattr("tests.hostile.damage.look", lambda *_args, **_more: whole)

    with pytest.raises(AssertionError, match="not found"):
        bench.check(Damage(kind="pack 1", at=9, bit=0), number=1)


def test_what_is_remembered_is_what_is_calculated(bench: Bench) -> None:
    """A shortcut that answered for other bytes would hide what it was made to find."""
    name = bench.names["envelope 2"]
    damaged = Damage(kind="envelope 2", at=40, bit=3)

    found: list[object] = []
    for _ in range(2):
        with quickly():
            assert look(bench.repository, level=Level.DATA, store=bench.store).ok
            bench.check(damaged, number=1)
            assert look(bench.repository, level=Level.DATA, store=bench.store).ok
            found.append(bench.store.objects[name])  # type: ignore[index]  # a name is text
    assert found[0] == found[1]
