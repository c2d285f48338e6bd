"""Small local state: absent is told from damaged, and marks never fall."""

import dataclasses
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durarepo.core.errors import StoreError
from durarepo.core.names import Digest, ObjectName, Sequence, SignerId
from durarepo.local.statefiles import (
    HighWater,
    LivePin,
    LivePins,
    PinnedManifest,
    RunRecord,
    StateFiles,
)

MARKS = HighWater(
    epoch=2,
    sequence=Sequence(412),
    head_digest=Digest(b"\x11" * 32),
    registry_version=3,
    clock_seconds=1_800_000_000,
)
RECORD = RunRecord(
    epoch=2,
    sequence=Sequence(412),
    name=ObjectName("ab" * 32),
    digest=Digest(b"\x11" * 32),
    issued=1_800_000_000,
    expires=1_800_086_400,
    type="auto",
    files=18_342,
    dirs=900,
    bytes=1 << 50,
    signer=SignerId(b"\x22" * 32),
    complete=True,
    omissions=0,
    pinned_packs=77,
)


def manifest(sequence: int, pins: int = 3) -> PinnedManifest:
    """Return a manifest with pins."""
    return PinnedManifest(
        epoch=2,
        sequence=Sequence(sequence),
        name=ObjectName(f"{sequence:064x}"),
        digest=Digest(sequence.to_bytes(32)),
        pins=tuple(
            LivePin(
                pack=ObjectName(f"{number:064x}"),
                size_bytes=32 << 20,
                index_digest=Digest(number.to_bytes(32)),
                registry_version=1,
            )
            for number in range(pins)
        ),
    )


@pytest.fixture
def state(tmp_path: Path) -> StateFiles:
    """Give the state of a stream that has none yet."""
    return StateFiles(bytes(tmp_path / "state"))


def test_state_that_never_was_is_none_and_not_an_error(state: StateFiles, tmp_path: Path) -> None:
    """A run that lost its state has to go on, and to say so in its manifest."""
    assert state.high_water() is None
    assert state.live_pins() is None
    assert state.runs() is None
    assert not (tmp_path / "state").exists()


def test_state_comes_back_as_it_was_kept(state: StateFiles, tmp_path: Path) -> None:
    """Every field counts: a lost epoch or digest is a fork or a rollback later."""
    live = LivePins(head=manifest(412), complete=manifest(411))

    state.raise_high_water(MARKS)
    state.replace_live_pins(live)
    state.append_run(RECORD)
    state.append_run(dataclasses.replace(RECORD, sequence=Sequence(413), complete=False))

    again = StateFiles(bytes(tmp_path / "state"))
    assert again.high_water() == MARKS
    assert again.live_pins() == live
    assert again.runs() == [
        RECORD,
        dataclasses.replace(RECORD, sequence=Sequence(413), complete=False),
    ]
    for path in (tmp_path / "state").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("complete", [None, manifest(7), manifest(6, pins=0)])
def test_last_complete_manifest_may_be_none_the_head_or_another(
    state: StateFiles, complete: PinnedManifest | None
) -> None:
    """Deduplication counts on both; taking one for the other loses data (law 3)."""
    live = LivePins(head=manifest(7), complete=complete)

    state.replace_live_pins(live)

    assert state.live_pins() == live


@pytest.mark.parametrize(
    "lower",
    [
        dataclasses.replace(MARKS, epoch=1),
        dataclasses.replace(MARKS, sequence=Sequence(411)),
        dataclasses.replace(MARKS, registry_version=2),
        dataclasses.replace(MARKS, clock_seconds=1_799_999_999),
        dataclasses.replace(MARKS, head_digest=Digest(b"\x12" * 32)),
        dataclasses.replace(MARKS, sequence=Sequence(500), clock_seconds=0),
    ],
)
def test_marks_never_fall_and_a_sequence_keeps_its_digest(
    state: StateFiles, lower: HighWater
) -> None:
    """A lower mark is how a rolled-back remote is let in (high-water)."""
    state.raise_high_water(MARKS)

    with pytest.raises(ValueError, match=r"never falls|one digest"):
        state.raise_high_water(lower)

    assert state.high_water() == MARKS


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)),
        max_size=12,
    )
)
def test_marks_are_the_highest_of_all_that_were_taken(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, int, int]]
) -> None:
    """Whatever is tried in whatever order, no field is ever lower than before.

    Only a later epoch may begin below the sequence that was seen.
    """
    state = StateFiles(bytes(tmp_path_factory.mktemp("marks")))
    highest = (0, 0, 0, 0)

    for step in steps:
        epoch, sequence, version, clock = step
        tried = HighWater(
            epoch=epoch,
            sequence=Sequence(sequence),
            head_digest=Digest(sequence.to_bytes(32)),
            registry_version=version,
            clock_seconds=clock,
        )
        rises = step[:2] >= highest[:2] and step[2] >= highest[2] and step[3] >= highest[3]
        if rises:
            state.raise_high_water(tried)
            highest = step
        elif state.high_water() is not None:
            with pytest.raises(ValueError, match="falls"):
                state.raise_high_water(tried)
        held = state.high_water()
        if held is not None:
            assert (
                held.epoch,
                held.sequence,
                held.registry_version,
                held.clock_seconds,
            ) == highest


def test_changed_byte_anywhere_is_damage(state: StateFiles, tmp_path: Path) -> None:
    """A mark that a bit flip lowered would let a rollback in."""
    state.raise_high_water(MARKS)
    path = tmp_path / "state" / "high-water.json"
    good = path.read_bytes()

    for position in range(len(good)):
        spoiled = bytearray(good)
        spoiled[position] ^= 0x01
        path.write_bytes(spoiled)
        with pytest.raises(StoreError) as caught:
            state.high_water()
        assert caught.value.code == "store.state-damaged"
        assert caught.value.hint


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 60_000, b"{}", b'{"kind":"high-water"}']
)
def test_what_is_no_state_file_is_damage(state: StateFiles, tmp_path: Path, content: bytes) -> None:
    """Damage must never read as 'no state yet': that would reset the marks."""
    (tmp_path / "state").mkdir()
    for name in ("high-water.json", "head.json"):
        (tmp_path / "state" / name).write_bytes(content)

    for read in (state.high_water, state.live_pins):
        with pytest.raises(StoreError) as caught:
            read()
        assert caught.value.code == "store.state-damaged"
    with pytest.raises(StoreError):
        state.raise_high_water(MARKS)


def test_one_state_file_is_not_taken_for_another(state: StateFiles, tmp_path: Path) -> None:
    """The kind is under the check sum."""
    state.replace_live_pins(LivePins(head=manifest(1), complete=None))
    os.rename(tmp_path / "state" / "head.json", tmp_path / "state" / "high-water.json")

    with pytest.raises(StoreError) as caught:
        state.high_water()

    assert caught.value.code == "store.state-damaged"


def test_newer_format_is_named_as_such(state: StateFiles, tmp_path: Path) -> None:
    """'Damaged' would make a person delete what only a newer version can read."""
    state.raise_high_water(MARKS)
    path = tmp_path / "state" / "high-water.json"
    path.write_bytes(path.read_bytes().replace(b'"format":1', b'"format":2'))

    with pytest.raises(StoreError) as caught:
        state.high_water()

    assert caught.value.code == "store.state-version"


def test_torn_tail_of_the_ledger_is_tolerated_and_damage_in_it_is_not(
    state: StateFiles, tmp_path: Path
) -> None:
    """A killed append is normal; a changed line is not."""
    path = tmp_path / "state" / "runs.jsonl"
    state.append_run(RECORD)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:50])

    assert state.runs() == [RECORD]
    assert state.append_run(RECORD) == whole[:50]
    assert state.runs() == [RECORD, RECORD]

    path.write_bytes(whole.replace(b"18342", b"18343") + whole)
    with pytest.raises(StoreError) as caught:
        state.runs()
    assert caught.value.code == "store.state-damaged"


def test_pins_of_the_largest_manifest_fit(state: StateFiles) -> None:
    """A state file that cannot be read back is a state that is lost."""
    most = 65_536
    live = LivePins(head=manifest(9, pins=most), complete=manifest(8, pins=most))

    state.replace_live_pins(live)

    assert state.live_pins() == live
    with pytest.raises(ValueError, match="at most"):
        state.replace_live_pins(LivePins(head=manifest(10, pins=most + 1), complete=None))
