"""Which packs are chosen to be rewritten, and what is known to live in a pack."""

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import pytest

from durarepo.core.limits import (
    MIB,
    PACK_MAX_BYTES,
    REWRITE_LEAST_BYTES,
    SIZE_CLASSES,
    SMALL_PACKS_MAX,
    SMALL_PACKS_SPARE,
)
from durarepo.core.names import Digest, ObjectName
from durarepo.format.manifest import Pin
from durarepo.local.catalog import PackWeight
from durarepo.local.journal import Journal
from durarepo.repository.chunks import ChunkSink
from durarepo.repository.livebytes import LiveBytes
from durarepo.repository.rebuild import RowChecker, ensure_packs
from durarepo.repository.rewriting import Choice, pick, recipients_share
from durarepo.repository.standing import find_standing
from durarepo.sealing import ChunkNamer
from tests.machines.stream import Stream, fill

Pack = tuple[int, int, int | None]
"""Size class, plain bytes, and live bytes."""


def chosen(packs: Sequence[Pack], *, foreign: Sequence[int] = ()) -> set[int]:
    """Return which of ``packs``, by their place, are picked."""
    pins = {
        row: Pin(
            name=ObjectName(f"{row:064x}"),
            size=size,
            index_digest=Digest(bytes(32)),
            registry_version=1,
        )
        for row, (size, _, _) in enumerate(packs)
    }
    weights = {
        row: PackWeight(plain=plain, live=live) for row, (_, plain, live) in enumerate(packs)
    }
    choice = Choice(pins=pins, weights=weights, foreign=frozenset(foreign), largest=PACK_MAX_BYTES)
    return set(pick(choice))


def big(live: int | None, plain: int = 40 * MIB) -> Pack:
    """Return a pack of the largest class."""
    return PACK_MAX_BYTES, plain, live


def test_a_pack_is_chosen_when_less_than_half_of_it_lives() -> None:
    """Bytes that nobody needs stay pinned for ever if nothing ever takes the rest out."""
    assert chosen([big(20 * MIB), big(20 * MIB - 1), big(None), big(0)]) == {1, 3}


def test_a_pack_of_unknown_content_is_not_called_empty() -> None:
    """A pack of which nothing is known would be stored again each night."""
    assert chosen([big(None, plain=0), big(0, plain=0)]) == set()


def test_the_emptiest_packs_are_chosen_and_no_more_than_the_allowance() -> None:
    """A night must never become a full upload, however much died."""
    packs = [big(n * MIB) for n in range(19, 3, -1)]

    taken = chosen(packs)

    spent = sum(packs[row][2] or 0 for row in taken)
    assert taken == set(range(len(packs) - len(taken), len(packs)))
    assert REWRITE_LEAST_BYTES - 19 * MIB < spent <= REWRITE_LEAST_BYTES


def test_one_pack_is_chosen_even_if_it_is_more_than_the_allowance() -> None:
    """A pack that compressed well would otherwise stay for ever."""
    assert chosen([big(100 * MIB, plain=300 * MIB)]) == {0}


@pytest.mark.parametrize("size", SIZE_CLASSES)
def test_small_packs_are_chosen_before_there_are_too_many_of_a_class(size: int) -> None:
    """A pack or two each night would make manifests and listings grow for ever."""
    few = SMALL_PACKS_MAX - SMALL_PACKS_SPARE
    small = [(size, 1000, None)] * few

    assert chosen([*small, big(None)]) == set()
    more = chosen([*small, (size, 1000, None), big(None)])
    assert more == (set(range(few + 1)) if size < 6 * MIB else set())


def test_packs_of_other_recipients_are_chosen_within_the_allowance() -> None:
    """Whoever was retired opens old packs until they are sealed anew; not all in one night."""
    packs = [big(10 * MIB, plain=10 * MIB) for _ in range(20)]

    taken = chosen(packs, foreign=range(20))

    assert len(taken) == REWRITE_LEAST_BYTES // (10 * MIB)


def test_other_recipients_get_their_half_however_much_died() -> None:
    """A stream that changes much each night would otherwise never leave its old recipients."""
    packs = [big(10 * MIB) for _ in range(20)] + [big(None, plain=10 * MIB)] * 20

    taken = chosen(packs, foreign=range(20, 40))

    assert len([row for row in taken if row >= 20]) >= 3


# --- what lives --------------------------------------------------------------------------------


def fill_all_kinds(root: Path) -> None:
    """Make files whose content is named in each of the ways that the format knows."""
    fill(root, {f"small/{n}": os.urandom(700) for n in range(40)})
    fill(root, {"small/twin": (root / "small/1").read_bytes(), "empty": b""})
    fill(root, {"large": os.urandom(3 * MIB), "larger": os.urandom(24 * MIB)})
    fill(root, {f"many/{n:05}": b"" for n in range(4200)})
    os.link(root / "large", root / "linked")
    os.symlink("large", root / "link")
    with open(root / "holes", "wb") as file:
        file.truncate(5 * MIB)
        file.seek(2 * MIB)
        file.write(os.urandom(90_000))
    with closing(connect(root / "agent.db")) as database:
        database.execute("CREATE TABLE t (x)")
        database.executemany("INSERT INTO t VALUES (?)", [(os.urandom(900),) for _ in range(900)])
        database.commit()


def live_bytes(stream: Stream) -> dict[int, tuple[int, int]]:
    """Return plain and live bytes of each pack of the head, by row id."""
    with stream.open() as repository, Journal(repository.places.journal) as journal:
        catalog = repository.catalog
        standing = find_standing(repository, journal)
        namer = ChunkNamer(repository.keys.naming.reveal())
        pins = ensure_packs(repository, catalog, standing.live.values())
        sink = ChunkSink(catalog, namer=namer, live=pins, confirm=RowChecker(repository).confirm)
        scale = LiveBytes(catalog, sink, namer=namer, pins=pins)
        for root in repository.root_paths:
            for row in catalog.iter_dirs(root):
                scale.add_dir(row)
        weights = catalog.pack_weights()
        return {row: (weights[row].plain, scale.live[row]) for row in pins}


@pytest.mark.parametrize("put_only", [False, True])
def test_all_that_a_first_snapshot_stored_is_known_to_live(
    tmp_path: Path, *, put_only: bool
) -> None:
    """What is not found again looks dead, and would be stored again, night after night."""
    stream = Stream(tmp_path, put_only=put_only)
    fill_all_kinds(stream.root)
    stream.snapshot()

    found = live_bytes(stream)

    assert len(found) > 2
    assert all(live == plain for plain, live in found.values())


def test_what_was_removed_is_known_to_be_dead(tmp_path: Path) -> None:
    """A pack that looks full is never rewritten."""
    stream = Stream(tmp_path)
    fill_all_kinds(stream.root)
    stream.snapshot()
    before = sum(live for _, live in live_bytes(stream).values())
    (stream.root / "larger").unlink()
    (stream.root / "small/twin").unlink()
    stream.snapshot()

    after = sum(live for _, live in live_bytes(stream).values())

    lists = MIB // 8
    assert 24 * MIB - lists < before - after < 24 * MIB + lists


def test_what_cannot_be_located_counts_wherever_it_may_lie(tmp_path: Path) -> None:
    """A list that the catalogue lost must not make packs look empty."""
    stream = Stream(tmp_path)
    fill_all_kinds(stream.root)
    stream.snapshot()
    with closing(connect(os.fsdecode(stream.places.catalog))) as catalog:
        catalog.execute("DELETE FROM lists")
        catalog.commit()

    assert all(live >= 0.9 * plain for plain, live in live_bytes(stream).values() if plain > MIB)


def test_all_is_sealed_to_today_s_recipients_until_they_change(tmp_path: Path) -> None:
    """A share below 1 says that somebody who was retired still opens something."""
    stream = Stream(tmp_path)
    fill(stream.root, {"a": b"a"})
    with stream.open() as repository:
        assert recipients_share(repository) is None
    stream.snapshot()

    with stream.open() as repository:
        assert recipients_share(repository) == 1.0
    stream.lose(state=True)
    with stream.open() as repository:
        assert recipients_share(repository) is None  # nothing here knows, and none is claimed
