"""Resume points: all that was acknowledged comes back after any tear, and nothing else."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durarepo.core.errors import StoreError
from durarepo.local import journal as journal_module
from durarepo.local.journal import Journal
from tests.doubles.children import mount, run_in_child


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Give a journal that was not begun."""
    return Journal(bytes(tmp_path / "journal"))


def test_journal_that_was_never_begun_has_nothing(journal: Journal, tmp_path: Path) -> None:
    """The first run must not find a resume point; looking must not make one."""
    assert journal.load() is None
    assert journal.read_all() == []
    assert not (tmp_path / "journal").exists()


def test_records_come_back_in_order_byte_for_byte(journal: Journal) -> None:
    """A record is opaque: empty, binary and long ones too."""
    records = [b"", b"\0\n\xff", os.urandom(100_000), b"last"]

    journal.begin(b"run 7")
    for record in records:
        journal.append(record)
    journal.close()

    found = journal.load()
    assert found is not None
    assert found.header == b"run 7"
    assert list(found.records) == records
    assert not found.is_complete


def test_completed_journal_leaves_nothing_to_resume(journal: Journal) -> None:
    """Resuming a finished run would publish it twice."""
    journal.begin(b"run")
    journal.append(b"pack")
    journal.complete()

    assert journal.read_all() == []
    found = journal.load()
    assert found is not None
    assert found.is_complete
    with pytest.raises(StoreError) as caught:
        journal.resume()
    assert caught.value.code == "store.no-journal"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[int]]:
    """Give the bytes of a journal of three records, and its size after the header and each."""
    folder = tmp_path_factory.mktemp("recorded")
    journal = Journal(bytes(folder))
    journal.begin(b"run")
    sizes = [(folder / "current").stat().st_size]
    for record in (b"one", b"two", b"three"):
        journal.append(record)
        sizes.append((folder / "current").stat().st_size)
    journal.close()
    return (folder / "current").read_bytes(), sizes


def test_torn_at_every_byte_keeps_exactly_the_whole_records(
    tmp_path: Path, recorded: tuple[bytes, list[int]]
) -> None:
    """A kill may tear the last record anywhere; it was never acknowledged."""
    raw, sizes = recorded
    (tmp_path / "current").touch()

    for length in range(len(raw) + 1):
        (tmp_path / "current").write_bytes(raw[:length])
        found = Journal(bytes(tmp_path)).load()

        whole = sum(length >= size for size in sizes) - 1
        if whole < 0:
            assert found is None
        else:
            assert found is not None
            assert found.records == (b"one", b"two", b"three")[:whole]


def test_resumed_journal_cuts_the_tear_and_goes_on(
    tmp_path: Path, recorded: tuple[bytes, list[int]]
) -> None:
    """A record appended behind a torn one would be lost with it."""
    raw, _ = recorded
    (tmp_path / "current").write_bytes(raw[:-1])
    journal = Journal(bytes(tmp_path))

    found = journal.resume()
    journal.append(b"four")
    journal.close()

    assert found.records == (b"one", b"two")
    assert journal.read_all() == [b"one", b"two", b"four"]


@given(position=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_changed_byte_ends_the_journal_before_its_record(
    tmp_path_factory: pytest.TempPathFactory,
    recorded: tuple[bytes, list[int]],
    position: int,
    flip: int,
) -> None:
    """A resume point that was never written must not be resumed from."""
    raw, _ = recorded
    spoiled = bytearray(raw)
    spoiled[position % len(raw)] ^= flip
    folder = tmp_path_factory.mktemp("spoiled")
    (folder / "current").write_bytes(spoiled)

    found = Journal(bytes(folder)).load()

    records = () if found is None else found.records
    assert records == (b"one", b"two", b"three")[: len(records)]
    assert len(records) < 3


def test_new_generation_keeps_one_before_it_and_no_more(journal: Journal, tmp_path: Path) -> None:
    """The journal stays bounded although nothing is deleted."""
    for number in range(5):
        journal.begin(b"run %d" % number, [b"carried"])
        journal.append(b"pack %d" % number)
    journal.close()

    names = sorted(path.name for path in (tmp_path / "journal").iterdir())
    assert names == ["current", "previous"]
    assert journal.read_all() == [b"carried", b"pack 4"]


def test_damaged_current_generation_leaves_the_one_before(journal: Journal, tmp_path: Path) -> None:
    """Damage must cost work, not the run."""
    journal.begin(b"first", [b"pack"])
    journal.begin(b"second")
    journal.close()
    (tmp_path / "journal" / "current").write_bytes(b"\0" * 100)

    assert journal.read_all() == [b"pack"]


def test_full_disk_keeps_every_acknowledged_record(tmp_path: Path) -> None:
    """After the failure the journal is whole, and goes on when there is room."""

    def work() -> None:
        mount("-t", "tmpfs", "-o", "size=128k", "none", str(tmp_path))
        journal = Journal(bytes(tmp_path / "journal"))
        journal.begin(b"run")
        journal.append(b"kept")
        with pytest.raises(StoreError) as caught:
            journal.append(b"x" * 1_000_000)
        assert caught.value.code == "store.full"
        journal.append(b"kept too")
        journal.close()
        assert journal.read_all() == [b"kept", b"kept too"]

    run_in_child(work, own_mounts=True)


def test_journal_does_not_grow_past_its_bound(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What would not be read back must not be written."""
    monkeypatch.setattr(journal_module, "JOURNAL_MAX_BYTES", 1000)
    journal.begin(b"run")
    journal.append(b"x" * 500)

    with pytest.raises(StoreError) as caught:
        journal.append(b"x" * 500)

    journal.close()
    assert caught.value.code == "store.journal-full"
    assert journal.read_all() == [b"x" * 500]


def test_append_before_begin_is_the_callers_mistake(journal: Journal) -> None:
    """It would be a record of no run."""
    with pytest.raises(ValueError, match="begun"):
        journal.append(b"pack")
