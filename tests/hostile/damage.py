"""Damage to objects, one place at a time, and what verify says of each: one list of mutations.

The list is every bit of every byte of every object flipped, and every object cut at every length.
`campaign` draws from it without repeating itself. Each mutation goes through the operation
itself; only the store is one in memory, and what is decided by its arguments alone is calculated
once for the same arguments (`quickly`), so that a mutation costs what its own bytes reach. What
verify says of a place is compared with what can really be restored the first time that a part of
an object is hit, and now and then after; all other hits of that part have to be told alike.
The long command: ``python -m tests.hostile.damage``; its file follows after each repository.
Start at `campaign`.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

from durarepo.core.entries import Entry
from durarepo.core.errors import IntegrityError
from durarepo.core.names import ObjectName
from durarepo.core.progress import SilentProgress
from durarepo.operations.verify import Level, Verified, VerifyRequest, verify
from durarepo.repository import inspection
from durarepo.repository.chain import Chain
from durarepo.repository.openpack import PackOpener
from durarepo.repository.pieces import file_pieces
from durarepo.repository.reader import ChunkReader
from durarepo.repository.repository import Repository, open_repository
from durarepo.repository.shelf import Shelf
from durarepo.repository.slots import Slots
from durarepo.repository.trees import iter_directory, join_path
from durarepo.store.port import ObjectStore
from tests.adversary.scene import NOW, ROOT, Scene, verified
from tests.doubles.memory_store import MemoryStore
from tests.doubles.remembered import remembered
from tests.interop import miniwriter as mini
from tests.reliability.results import FOLDER, Result, commit_now, today, write_result

CONTENTS = {
    b"/a": b"alpha" * 30,
    b"/empty": b"",
    b"/d/b": b"beta" * 700,
    b"/d/big": b"x" * 3000 + bytes(500) + b"y" * 3000,
    b"/d/deep/c": b"gamma" * 11,
}
OLD_TOO = {b"/a", b"/empty"}
"""Paths that an older manifest may have lost while the newest one still has them."""
PER_BYTE = 9
"""Mutations of one byte: each of its bits, and the object cut before it."""
RESTORE_EVERY = 500
AT_LEVEL_DATA_EVERY = 50

T = TypeVar("T")


def make(folder: Path, *, stream: mini.Repository | None = None) -> tuple[Scene, dict[str, str]]:
    """Return a stream of two manifests, each with a pack, and its objects by kind."""
    scene = Scene(folder) if stream is None else Scene(folder, stream)
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


def look(
    repository: Repository, *, level: Level = Level.PACKS, store: ObjectStore | None = None
) -> Verified:
    """Verify up to a level."""
    request = VerifyRequest(level=level)
    return verify(
        repository, request, clock=lambda: NOW, progress=SilentProgress(), store=store
    )  # fmt: skip


def restorable(repository: Repository, *, store: ObjectStore | None = None) -> dict[bytes, bytes]:
    """Return every file of the newest manifest that can be read, by its path below the root."""
    manifest = verified(repository, 2)
    shelf = Shelf(repository, store=store)
    reader = ChunkReader(repository, manifest, permit=lambda: None, shelf=shelf)
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


def check_named(affects: tuple[bytes, ...], left: Mapping[bytes, bytes], told: str) -> None:
    """Compare the paths that a problem names with what is left to be restored.

    Args:
        affects: paths that verify names.
        left: what could be restored, by path below the root.
        told: goes into the message.
    """
    newest = {name for name in CONTENTS if is_named(name, affects)}
    lost = set(CONTENTS) - set(left)
    assert lost <= newest, told
    assert newest - lost <= OLD_TOO, told
    assert left == {name: CONTENTS[name] for name in left}, told


# --- one mutation ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One mutation: the object's kind, the byte, and the bit that is flipped; 8 cuts there."""

    kind: str
    at: int
    bit: int

    def done_to(self, data: bytes) -> bytes:
        """Return what is there then."""
        if self.bit == PER_BYTE - 1:
            return data[: self.at]
        return data[: self.at] + bytes([data[self.at] ^ 1 << self.bit]) + data[self.at + 1 :]


@dataclass(slots=True)
class Bench:
    """A repository whose objects also lie in memory, and the parts that objects are made of."""

    repository: Repository
    names: dict[str, str]
    store: MemoryStore = field(default_factory=MemoryStore)
    ends: dict[str, list[int]] = field(default_factory=dict)
    told: dict[tuple[str, int], tuple[bytes, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take the objects in, and look up where the frames of packs end."""
        for name in self.repository.store.iter_names():
            self.store.objects[name] = self.repository.store.read(name)
        opener = PackOpener(self.repository)
        for pin in verified(self.repository, 2).statement.pins:
            index = opener.open(pin).index
            kind = next(one for one, name in self.names.items() if name == pin.name)
            frames = [one.position + one.stored_length for one in index.frames]
            self.ends[kind] = [index.header_length, *frames]

    @property
    def sizes(self) -> list[tuple[str, int]]:
        """Kind and length of every object."""
        return [(kind, len(self.store.objects[ObjectName(name)]))
                for kind, name in self.names.items()]  # fmt: skip

    def count(self) -> int:
        """Return how many mutations there are."""
        return PER_BYTE * sum(size for _, size in self.sizes)

    def damage(self, number: int) -> Damage:
        """Return a mutation by its number, 0 to `count` - 1."""
        place, bit = divmod(number, PER_BYTE)
        for kind, size in self.sizes:
            if place < size:
                return Damage(kind=kind, at=place, bit=bit)
            place -= size
        raise ValueError("no such mutation")

    def part_of(self, damage: Damage) -> int:
        """Return the part of a pack that is hit; all that is cut counts as one."""
        if damage.bit == PER_BYTE - 1:
            return -1
        return sum(damage.at >= end for end in self.ends[damage.kind])

    def check(self, damage: Damage, *, number: int) -> bool:
        """Do one mutation, check all that verify says of it, and take it back.

        Returns:
            Whether some files were left and others not.

        Raises:
            AssertionError: it was not found, or laid to something else.
        """
        name = ObjectName(self.names[damage.kind])
        data = self.store.objects[name]
        damaged = self.store.objects[name] = damage.done_to(data)
        try:
            is_partly = self._check(damage, name, number=number)
            assert self.store.objects[name] == damaged, f"{damage}: the object was changed"
        finally:
            self.store.objects[name] = data
            self.store.calls.clear()
        return is_partly

    def _check(self, damage: Damage, name: ObjectName, *, number: int) -> bool:
        is_pack = damage.kind in self.ends
        level = Level.PACKS if is_pack else Level.CHAIN
        if number % AT_LEVEL_DATA_EVERY == 0:
            level = Level.DATA
        result = look(self.repository, level=level, store=self.store)
        assert not result.ok, f"{damage}: not found"
        assert {one.object for one in result.problems} == {name}, f"{damage}: another is named"
        assert not any(call == "put_new" for call, _ in self.store.calls), f"{damage}: stored"
        if not is_pack:
            affects = () if damage.kind == "registry" else (ROOT,)
            assert [one.affects for one in result.problems] == [affects], f"{damage}"
            return False
        return self._check_pack(damage, result, number=number)

    def _check_pack(self, damage: Damage, result: Verified, *, number: int) -> bool:
        (problem,) = result.problems
        assert problem.affects is not None, f"{damage}"
        part = damage.kind, self.part_of(damage)
        affects = tuple(sorted(problem.affects))
        if part not in self.told or number % RESTORE_EVERY == 0:
            left = restorable(self.repository, store=self.store)
            check_named(affects, left, f"{damage}")
            assert self.told.setdefault(part, affects) == affects, f"{damage}: told otherwise"
        assert self.told[part] == affects, f"{damage}: told otherwise than of the same part"
        return 0 < sum(is_named(one, affects) for one in CONTENTS) < len(CONTENTS)


class _AtOnce:
    """Works like a pool of threads, but in this one: a start of threads costs more than a look."""

    def __init__(self, max_workers: int) -> None:
        """Take what a pool takes."""

    def __enter__(self) -> "_AtOnce":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Callable[..., T], *given: object) -> "Future[T]":
        """Do the work, and return what it came to."""
        done: Future[T] = Future()
        try:
            done.set_result(work(*given))
        except Exception as error:  # noqa: BLE001  # it is raised where the result is asked for
            done.set_exception(error)
        return done


@contextmanager
def quickly() -> Iterator[None]:
    """Look at one repository many times: what is pure is remembered, and packs need no threads."""
    slot_of, held = Slots.slot, dict[tuple[int, int, int], ObjectName]()

    def slot(slots: Slots, sequence: int, attempt: int = 0) -> ObjectName:
        place = id(slots.repository), sequence, attempt
        if place not in held:
            held[place] = slot_of(slots, sequence, attempt)
        return held[place]

    with (
        remembered(),
        patch.object(Slots, "slot", slot),
        patch.object(inspection, "ThreadPoolExecutor", _AtOnce),
    ):
        yield


# --- many ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tally:
    """How many mutations were tried, what some of them broke, and how many left some files."""

    points: int = 0
    partly: int = 0
    failures: list[str] = field(default_factory=list)


def campaign(folder: Path, *, seed: int, count: int, deadline: float | None = None) -> Tally:
    """Try ``count`` different mutations of one repository, or as many as there are.

    Args:
        folder: an empty folder for the repository.
        seed: of the repository's keys, its number of stanzas, and the draws.
        count: how many.
        deadline: of the monotonic clock; nothing is begun after it.
    """
    stream = mini.Repository(seed=b"damage %d" % seed, n=(4, 8)[seed % 2])
    scene, names = make(folder, stream=stream)
    tally = Tally()
    with open_repository(scene.places) as repository, quickly():
        bench = Bench(repository, names)
        assert look(repository, store=bench.store, level=Level.DATA).ok
        every = range(bench.count())
        for at in random.Random(seed).sample(every, min(count, len(every))):  # noqa: S311
            if deadline is not None and time.monotonic() > deadline:
                break
            try:
                tally.partly += bench.check(bench.damage(at), number=tally.points)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is a finding
                tally.failures.append(f"seed {seed}, {bench.damage(at)}: {error!r}")
            tally.points += 1
    return tally


def main() -> int:
    """Run campaigns until the count or the time is used up; exit with 1 where one found some."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.damage", description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=24 * 3600.0, help="at most")
    parser.add_argument("--seed", type=int, default=1, help="of the first repository")
    parser.add_argument("--each", type=int, default=200_000, help="mutations of one repository")
    parser.add_argument("--out", type=Path, default=FOLDER / "damage.json")
    asked = parser.parse_args()
    began, points, seed, failures = time.monotonic(), 0, asked.seed, list[str]()
    command = f"python -m tests.hostile.damage --points {asked.points} --seed {asked.seed}"
    commit = commit_now()
    while points < asked.points and time.monotonic() - began < asked.seconds:
        with tempfile.TemporaryDirectory() as base:
            tally = campaign(Path(base), seed=seed, count=min(asked.each, asked.points - points),
                             deadline=began + asked.seconds)  # fmt: skip
        points, seed = points + tally.points, seed + 1
        failures += tally.failures
        print(f"{points} tried, {len(failures)} not as they should be", flush=True)  # noqa: T201
        write_result(asked.out, Result(
            suite="damage", command=command, commit=commit, date=today(), seed=asked.seed,
            points=points, distinct=points, failures=len(failures),
            seconds=round(time.monotonic() - began, 1), facts={"repositories": seed - asked.seed},
        ))  # fmt: skip
    print("\n".join(failures))  # noqa: T201
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
