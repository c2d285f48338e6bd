"""What an earlier build wrote is read by this one, and by the independent reader, for ever."""

import hashlib
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from durarepo.core.errors import DurarepoError
from durarepo.core.progress import SilentProgress
from durarepo.operations.archival import SetAside, checkout_archival
from durarepo.operations.checkout import CheckoutRequest, checkout
from durarepo.operations.verify import Level, Verified, VerifyRequest, verify
from durarepo.repository.chain import Chain
from durarepo.repository.repository import open_repository
from tests.compat.golden import NOW, REPOS, Golden, listing_of, load, names
from tests.interop import minireader

ROOT = b"/srv/golden"
WHOLE = [name for name in names() if not name.startswith("v1-damaged-")]
DAMAGED = [name for name in names() if name.startswith("v1-damaged-")]
READER_MAKES = "fdlp"


def agree(_lines: Sequence[SetAside]) -> None:
    """Stand for a person at a terminal who agrees."""


def verified(golden: Golden, base: Path) -> Verified:
    """Verify a copy of a golden repository to the last byte."""
    with open_repository(golden.lay_out(base)) as repository:
        request = VerifyRequest(level=Level.DATA, percent=100.0)
        return verify(repository, request, clock=lambda: golden.fresh, progress=SilentProgress())


def restored(golden: Golden, base: Path) -> bytes:
    """Restore a copy through durarepo and return the folder."""
    destination = bytes(base / "out")
    with open_repository(golden.lay_out(base)) as repository:
        request = CheckoutRequest(at=str(golden.manifests), destination=destination)
        checkout_archival(repository, request, agree, clock=lambda: NOW)
    return destination


def read_independently(golden: Golden, base: Path) -> bytes:
    """Restore through the second reader and return the folder."""
    held = minireader.Held(
        stream=golden.stream,
        locator=golden.key("locator.key"),
        owner_digest=hashlib.sha256(golden.key("owner.pub")).digest(),
        identities=[golden.key("identity.key")],
    )
    minireader.restore(golden.folder / "objects", base / "out", held, NOW, archival=True)
    return bytes(base / "out")


def test_the_golden_repositories_are_there_and_small() -> None:
    """A repository that is left out of a clone would test nothing."""
    files = [path for path in REPOS.rglob("*") if path.is_file()]

    assert len(WHOLE) >= 5
    assert len(DAMAGED) >= 6
    assert len({load(name).code for name in DAMAGED}) == len(DAMAGED)
    assert sum(path.stat().st_size for path in files) < 6_000_000


def test_the_plain_one_holds_every_type_of_entry() -> None:
    """A type that is not there is a type that a later build may forget."""
    listing = load("v1-plain").listing

    assert {line[0] for line in listing} == set("fdlpscb")
    assert any(line.split()[5] == "2" for line in listing)
    assert any(b"\xff\xfe\x80" in bytes.fromhex(line.split()[6]) for line in listing)


@pytest.mark.parametrize("name", WHOLE)
def test_a_golden_repository_is_found_whole(name: str, tmp_path: Path) -> None:
    """A build that calls old data damaged would make its owner give it up."""
    golden = load(name)

    found = verified(golden, tmp_path)

    assert (found.head, found.manifests) == (golden.manifests, golden.manifests)
    assert found.problems == ()


@pytest.mark.parametrize("name", WHOLE)
def test_a_golden_repository_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    """The promise of a backup: what was written years ago is restored today."""
    golden = load(name)

    found = listing_of(restored(golden, tmp_path), [ROOT])

    assert found == golden.listing


@pytest.mark.parametrize("name", WHOLE)
def test_the_second_reader_restores_a_golden_repository(name: str, tmp_path: Path) -> None:
    """The page that it was made from still says what the old objects mean."""
    golden = load(name)

    found = listing_of(read_independently(golden, tmp_path), [ROOT])

    assert found == tuple(line for line in golden.listing if line[0] in READER_MAKES)


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_golden_repository_is_refused_as_ever(name: str, tmp_path: Path) -> None:
    """Damage keeps its name, and nothing of it is restored."""
    golden = load(name)

    places = golden.lay_out(tmp_path)
    request = CheckoutRequest(at="latest", destination=bytes(tmp_path / "out"))

    with pytest.raises(DurarepoError) as refusal, open_repository(places) as repository:
        checkout(repository, request, clock=lambda: golden.fresh)

    assert refusal.value.code == golden.code
    assert not os.path.lexists(tmp_path / "out")


@pytest.mark.parametrize("name", DAMAGED)
def test_the_second_reader_refuses_a_damaged_one_alike(name: str, tmp_path: Path) -> None:
    """Two readers that name damage differently leave an auditor without a verdict."""
    golden = load(name)

    with pytest.raises(minireader.Refused) as refusal:
        read_independently(golden, tmp_path)

    assert refusal.value.code == golden.code
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", DAMAGED)
def test_verify_finds_the_damage(name: str, tmp_path: Path) -> None:
    """A check that passes over damage is worse than none."""
    golden = load(name)

    try:
        found = verified(golden, tmp_path)
    except DurarepoError as error:
        assert error.code == golden.code
    else:
        assert not found.ok
        assert found.problems


def test_the_database_of_the_last_day_is_whole(tmp_path: Path) -> None:
    """Its copy is not the source's bytes: what counts is that SQLite finds all rows in it."""
    out = Path(os.fsdecode(restored(load("v1-three"), tmp_path) + ROOT))

    with closing(sqlite3.connect(out / "agent.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (1 + 2 + 3,)


def test_the_partial_one_is_partial_and_drops_nothing(tmp_path: Path) -> None:
    """A mark that a later build does not read would pass old files for new ones."""
    golden = load("v1-partial")

    with open_repository(golden.lay_out(tmp_path)) as repository:
        found = Chain(repository).all_verified(now=golden.fresh)

    assert [found[number].statement.complete for number in (1, 2)] == [True, False]
    assert found[1].statement.totals.files == found[2].statement.totals.files


def test_the_one_with_epochs_has_three_and_two_naming_keys(tmp_path: Path) -> None:
    """A reader that knows one epoch alone would pass over the others."""
    golden = load("v1-epochs")

    with open_repository(golden.lay_out(tmp_path)) as repository:
        found = Chain(repository).all_verified(now=golden.fresh)
        kept = [repository.keeps_naming(number) for number in (1, 2, 3)]

    assert [one.statement.epoch for one in found.values()] == [1, 2, 3]
    assert len({one.statement.signer for one in found.values()}) == 2
    assert kept == [False, False, True]


def test_the_revoked_one_keeps_what_was_good_and_nothing_else(tmp_path: Path) -> None:
    """The thief's manifest still lies there, whole and signed, and must stay refused for ever."""
    golden = load("v1-revoked")

    with open_repository(golden.lay_out(tmp_path)) as repository:
        found = Chain(repository).all_verified(now=golden.fresh)
        thief = repository.store.stat(repository.manifest_slot(1, 3, 0))
        revoked = repository.record.epochs[0].revocations

    assert [one.statement.epoch for one in found.values()] == [1, 1, 2]
    assert thief is not None
    assert [one.sequence for one in revoked] == [2]


def test_a_put_only_machine_s_repository_verifies_without_an_identity(tmp_path: Path) -> None:
    """The machine that wrote it holds no identity, and still has to know that it is whole."""
    golden = load("v1-put-only")
    places = golden.lay_out(tmp_path)
    os.unlink(places.keys + b"/identity.key")

    with open_repository(places) as repository:
        request = VerifyRequest(level=Level.PACKS)
        found = verify(repository, request, clock=lambda: golden.fresh, progress=SilentProgress())

    assert (found.chain, found.problems) == ("local", ())
