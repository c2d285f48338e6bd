"""Rows of spec/conformance.md that no other suite proves as a whole, end to end on real files."""

import hashlib
import hmac
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from durarepo.core.entries import Entry
from durarepo.core.errors import ConfigurationError, DurarepoError, IntegrityError, RunError
from durarepo.core.limits import KIB, MIB, SIZE_CLASSES
from durarepo.core.names import ObjectName
from durarepo.core.secret import Secret
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import SnapshotType
from durarepo.local.configuration import parse_configuration
from durarepo.local.lock import RunLock
from durarepo.operations.checkout import CheckoutRequest, checkout
from durarepo.operations.reading import ls
from durarepo.repository.chain import Chain
from durarepo.repository.openpack import OpenPack, PackOpener
from durarepo.repository.reader import ChunkReader
from durarepo.store.localdir import LocalDir
from tests.machines.stream import Stream, fill

DAY = 86_400
LIMIT = MIB


class Clock:
    """A live time that a test moves; it begins at six in the morning of tomorrow, UTC."""

    def __init__(self) -> None:
        self.now = (int(time.time()) // DAY + 1) * DAY + DAY // 4

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Give a clock that stands still until it is moved."""
    return Clock()


@pytest.fixture
def stream(tmp_path: Path, clock: Clock) -> Stream:
    """Give a stream without a snapshot."""
    return Stream(tmp_path, clock=clock)


def names(stream: Stream) -> set[str]:
    """Return the names of all stored objects."""
    return {path.name for path in stream.object_files()}


def pack_names(stream: Stream) -> set[str]:
    """Return the names of all pinned packs."""
    return {pin.name for one in stream.statements().values() for pin in one.pins}


# --- one manifest a day, for a day (A3a, A3b) ------------------------------------------------


def test_the_second_automatic_run_of_a_day_makes_nothing(stream: Stream, clock: Clock) -> None:
    """A timer that fires twice would make two manifests of one day (A3a)."""
    fill(stream.root, {"note": b"one"})

    first = stream.snapshot(type=SnapshotType.AUTO)
    kept = names(stream)
    clock.now += 3600
    second = stream.snapshot(type=SnapshotType.AUTO)
    same = names(stream)
    clock.now += DAY
    third = stream.snapshot(type=SnapshotType.AUTO)

    assert (first.status, second.status, third.status) == ("ok", "noop", "ok")
    assert (first.sequence, second.sequence, third.sequence) == (1, None, 2)
    assert same == kept
    assert {one.stream for one in stream.statements().values()} == {"notes"}


def test_of_two_runs_at_once_one_makes_a_manifest(stream: Stream, clock: Clock) -> None:
    """Two runs at once would take the same number, and one chain would become two (A3a)."""
    fill(stream.root, {"note": b"one"})
    lock = RunLock(stream.places.lock, now=datetime.fromtimestamp(clock.now, UTC))
    with lock, pytest.raises(RunError) as caught:
        stream.snapshot(type=SnapshotType.AUTO)

    assert caught.value.code == "run.locked"
    assert stream.statements() == {}
    assert stream.snapshot(type=SnapshotType.AUTO).sequence == 1


@pytest.mark.parametrize("key", ["ttl", "ttl_hours", "expires", "lifetime", "manifest_ttl"])
def test_no_setting_lengthens_the_life_of_a_manifest(stream: Stream, key: str) -> None:
    """A machine that asks for 25 hours must be told that it does not get them (A3b)."""
    text = Path(os.fsdecode(stream.places.configuration)).read_bytes()

    with pytest.raises(ConfigurationError) as caught:
        parse_configuration(f'{key} = "25h"\n'.encode() + text)

    assert caught.value.code == "config.unknown-key"
    assert parse_configuration(text).stream == "notes"


def test_a_manifest_expires_a_day_after_it_was_issued(stream: Stream, clock: Clock) -> None:
    """What a writer states has to be what readers take (A3b)."""
    stream.snapshot()

    (statement,) = stream.statements().values()

    assert (statement.issued, statement.expires) == (clock.now, clock.now + DAY)


# --- size, compression, names (A3c, A3d, A3e, A3g) -------------------------------------------


def test_no_object_is_longer_than_the_store_takes(stream: Stream) -> None:
    """A store that refuses one object of a snapshot makes the snapshot worthless (A3c)."""
    configuration = Path(os.fsdecode(stream.places.configuration))
    configuration.write_text(f"max_object_bytes = {LIMIT}\n" + configuration.read_text())
    sizes = (0, LIMIT - 1, LIMIT, LIMIT + 1, 10 * LIMIT)
    fill(stream.root, {f"of-{size}": os.urandom(size) for size in sizes})

    done = stream.snapshot()

    lengths = [path.stat().st_size for path in stream.object_files()]
    assert done.status == "ok"
    assert max(lengths) == LIMIT
    assert set(lengths) <= set(SIZE_CLASSES)
    stream.check_restores()


def test_what_compresses_is_stored_smaller(stream: Stream) -> None:
    """Text that is stored as it is costs four times its price, each day (A3d)."""
    line = b"a line of a log that says the same again and again, nearly: %d\n"
    fill(stream.root, {"log": b"".join(line % number for number in range(40_000))})

    done = stream.snapshot()

    assert done.bytes > 2 * MIB
    assert done.stored_bytes < done.bytes // 2
    stream.check_restores()


def small_file_chunk(stream: Stream, path: bytes) -> bytes:
    """Return the id of the only chunk of a small file."""
    entry: Entry = stream.entries()[path]
    with stream.open() as repository:
        chain = Chain(repository).all_verified(now=stream.clock())
        return ChunkReader(repository, chain[max(chain)]).file_chunk(entry)


def test_the_same_content_is_stored_once(stream: Stream, clock: Clock) -> None:
    """Copies and days must not cost their size again (A3e)."""
    data = os.urandom(200 * KIB)
    fill(stream.root, {"a/one": data, "b/two": data})

    first = stream.snapshot()
    clock.now += DAY
    fill(stream.root, {"c/three": data})
    second = stream.snapshot()

    assert len(data) <= first.new_bytes < len(data) + 16 * KIB
    assert second.new_bytes < 16 * KIB
    stream.check_restores()


def test_no_name_tells_what_the_content_is(tmp_path: Path, clock: Clock) -> None:
    """Whoever has a file could ask whether it is in the store, were names plain hashes (A3e)."""
    data = b"a document that many people have"
    streams = [Stream(tmp_path / name, name=name, clock=clock) for name in ("one", "two")]
    chunks, objects = [], []
    for stream in streams:
        fill(stream.root, {"known": data})
        stream.snapshot()
        chunks.append(small_file_chunk(stream, bytes(stream.root / "known")))
        objects.append(names(stream))

    told = {name for found in objects for name in found} | {chunk.hex() for chunk in chunks}

    assert chunks[0] != chunks[1]
    assert not objects[0] & objects[1]
    assert not told & public_hashes(data)


def public_hashes(data: bytes) -> set[str]:
    """Return what anybody can calculate from a content, in hexadecimal."""
    found = {hashlib.new(name, data).hexdigest() for name in ("sha256", "sha3_256", "blake2s")}
    found.add(hashlib.blake2b(data, digest_size=32).hexdigest())
    digest = hashlib.sha256(data).digest()
    inner = b"\x01" + len(data).to_bytes(8) + digest
    for key in (b"", bytes(32), b"durarepo/1", b"chunk-id", b"durarepo/1chunk-id"):
        keys = (key, hmac.digest(key, b"chunk-id", "sha256"))
        for one in keys:
            found |= {hmac.digest(one, text, "sha256").hex() for text in (data, digest, inner)}
    return found


def test_a_day_without_changes_costs_one_manifest(stream: Stream, clock: Clock) -> None:
    """A daily copy that grows by itself fills every store in the end (A3g)."""
    fill(stream.root, {f"d{n % 7}/f{n}": os.urandom(900) for n in range(60)})
    stream.snapshot()
    before = names(stream)

    clock.now += DAY
    done = stream.snapshot()

    assert (done.new_chunks, done.new_bytes, done.packs) == (0, 0, 0)
    assert names(stream) - before == {done.manifest}


def test_a_touched_file_is_read_and_not_stored_again(stream: Stream, clock: Clock) -> None:
    """A new time on old content costs its entry, never the content (A3g)."""
    data = os.urandom(300 * KIB)
    fill(stream.root, {"big": data, "other": b"other"})
    stream.snapshot()

    os.utime(stream.root / "big", (1_700_000_000, 1_700_000_000))
    clock.now += DAY
    done = stream.snapshot()

    assert done.new_chunks == 1
    assert done.new_bytes < 4 * KIB
    stream.check_restores()


# --- listings (E30) --------------------------------------------------------------------------


@pytest.mark.parametrize("catalog", [True, False], ids=["with catalogue", "without"])
def test_a_listing_reads_no_pack_of_data(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, *, catalog: bool
) -> None:
    """Who looks for one file must not fetch them all (E30)."""
    fill(stream.root, {f"d{n % 5}/f{n}": os.urandom(9000) for n in range(40)})
    stream.snapshot()
    with stream.open() as repository:
        chain = Chain(repository)
        (manifest,) = chain.all_verified(now=stream.clock()).values()
        opener = PackOpener(repository)
        kinds = {pin.name: set(opener.open(pin).index.kinds) for pin in manifest.statement.pins}
    listings = {name for name, found in kinds.items() if ChunkKind.DATA not in found}
    if not catalog:
        stream.lose(catalog=True)
    frames: list[str] = []
    real = OpenPack.read_frame

    def noting(self: OpenPack, ordinal: int, identity: Secret) -> bytes:
        frames.append(self.pin.name)
        return real(self, ordinal, identity)

    monkeypatch.setattr(OpenPack, "read_frame", noting)

    with stream.open() as repository:
        found = {item.path for item in ls(repository, "1", now=stream.clock(), recursive=True)}

    assert len(found) >= 45
    assert listings
    assert set(kinds) - listings
    assert set(frames) == listings


# --- nothing is fetched before everything was checked (A3f, A6a) -----------------------------


def read_packs(monkeypatch: pytest.MonkeyPatch, packs: set[str]) -> list[str]:
    """Give the list to which every read of a pack, of any part of it, is added."""
    seen: list[str] = []
    real = LocalDir.read

    def noting(
        self: LocalDir, name: ObjectName, offset: int = 0, length: int | None = None
    ) -> bytes:
        if name in packs:
            seen.append(name)
        return real(self, name, offset, length)

    monkeypatch.setattr(LocalDir, "read", noting)
    return seen


def flip(path: Path) -> None:
    """Change one bit in the middle of an object."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def envelope(stream: Stream, sequence: int) -> Path:
    """Return where a manifest lies."""
    with stream.open() as repository:
        epoch = repository.record.current.number
        return stream.object_path(repository.manifest_slot(epoch, sequence, 0))


def swap(one: Path, two: Path) -> None:
    """Let two objects change places."""
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


def registries(stream: Stream) -> list[Path]:
    """Return the objects that are neither pack nor envelope."""
    known = pack_names(stream) | {envelope(stream, number).name for number in (1, 2, 3)}
    return [path for path in stream.object_files() if path.name not in known]


def _expire(_: Stream, clock: Clock) -> None:
    clock.now += DAY


def _set_clock_back(_: Stream, clock: Clock) -> None:
    clock.now -= 3600


def _confirm_a_later_time(stream: Stream, clock: Clock) -> None:
    """Do what a remote does that says what time it is (format 11)."""
    with stream.open() as repository:
        held = repository.state.high_water()
        assert held is not None
        repository.state.raise_high_water(replace(held, clock_seconds=clock.now + 3600))


FAILURES: dict[str, tuple[Callable[[Stream, Clock], object], str]] = {
    "flipped head": (lambda stream, _: flip(envelope(stream, 3)), "integrity.mark"),
    "flipped link": (lambda stream, _: flip(envelope(stream, 2)), "integrity.mark"),
    "gap": (lambda stream, _: envelope(stream, 2).unlink(), "integrity.gap"),
    "rollback": (lambda stream, _: envelope(stream, 3).unlink(), "trust.rollback"),
    "swapped": (lambda stream, _: swap(envelope(stream, 2), envelope(stream, 3)), "trust.sequence"),
    "registry": (lambda stream, _: flip(registries(stream)[0]), "integrity.seal"),
    "expired": (_expire, "fresh.expired"),
    "clock set back": (_set_clock_back, "fresh.ahead"),
    "clock behind": (_confirm_a_later_time, "fresh.clock"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_no_pack_is_touched_before_the_whole_chain_was_checked(
    stream: Stream, clock: Clock, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an attacker signs must not choose what is fetched and parsed (A6a)."""
    for number in range(3):
        fill(stream.root, {f"note-{number}": os.urandom(100)})
        stream.snapshot()
        clock.now += 60
    break_it, code = FAILURES[failure]
    packs = pack_names(stream)
    break_it(stream, clock)
    if failure in {"gap", "flipped link"}:  # the high-water vouches for what lies below it
        stream.lose(catalog=True, state=True, journal=True)
    seen = read_packs(monkeypatch, packs)
    target = bytes(stream.base / "out")

    with pytest.raises(DurarepoError) as caught, stream.open() as repository:
        checkout(repository, CheckoutRequest(destination=target), clock=clock)

    assert caught.value.code == code
    assert seen == []
    assert not os.path.lexists(target)


def test_a_good_chain_lets_packs_be_read(
    stream: Stream, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above would pass as well if reads were not seen at all."""
    fill(stream.root, {"note": b"one"})
    stream.snapshot()
    seen = read_packs(monkeypatch, pack_names(stream))

    with stream.open() as repository:
        checkout(repository, CheckoutRequest(destination=bytes(stream.base / "out")), clock=clock)

    assert set(seen) == pack_names(stream)


def test_two_valid_packs_in_each_others_place_are_refused(stream: Stream, clock: Clock) -> None:
    """Bytes that the owner sealed are still not those that this manifest pins (A3f)."""
    for number in range(2):
        fill(stream.root, {f"note-{number}": os.urandom(20 * KIB)})
        stream.snapshot()
        clock.now += 60
    one, two = (stream.object_path(name) for name in sorted(pack_names(stream)))
    assert one.stat().st_size == two.stat().st_size
    swap(one, two)

    target = stream.base / "out"
    with pytest.raises(IntegrityError) as caught, stream.open() as repository:
        checkout(repository, CheckoutRequest(destination=bytes(target)), clock=clock)

    assert caught.value.code == "integrity.index-digest"
    assert not target.exists()
