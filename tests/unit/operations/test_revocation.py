"""A second writer with copied keys, and what is left of it once the owner has revoked the signer.

The thief is a whole copy of the stream, keys and state included, that goes on by itself; what it
writes is put beside the honest objects, as whoever can write to the store could.
"""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from durarepo.core.errors import (
    ConfigurationError,
    DurarepoError,
    KeyMaterialError,
    SelectionError,
    TrustError,
)
from durarepo.core.progress import SilentProgress
from durarepo.crypto import primitives
from durarepo.format.manifest import SnapshotType
from durarepo.format.registry import Role
from durarepo.local.keyring import load_owner
from durarepo.local.places import Places
from durarepo.operations.checkout import CheckoutRequest, checkout
from durarepo.operations.log import log
from durarepo.operations.registry import DraftRequest, draft_registry, sign_registry
from durarepo.operations.registry import admit_registry as admit
from durarepo.operations.rotation import new_signer, rotate_signing
from durarepo.operations.snapshot import SnapshotRequest, snapshot
from durarepo.operations.verify import Level, VerifyRequest, verify
from durarepo.repository.admission import Outcome
from durarepo.repository.chain import Chain
from durarepo.repository.problems import ProblemKind
from durarepo.repository.replaced import replaced_here
from durarepo.repository.repository import open_repository
from durarepo.sealing import signer_id
from tests.interop import minireader
from tests.machines.stream import Stream, fill
from tests.unit.operations.test_snapshot_budget import Stopwatch

YEAR = 365 * 86_400


def stolen(stream: Stream, base: Path) -> Places:
    """Copy all of a stream, keys included."""
    there = replace(
        stream.places,
        repository=bytes(base / "repository"),
        keys=bytes(base / "keys"),
        state=bytes(base / "state"),
    )
    for one, two in (
        (stream.places.repository, there.repository),
        (stream.places.keys, there.keys),
        (stream.places.state, there.state),
    ):
        shutil.copytree(os.fsdecode(one), os.fsdecode(two))
    return there


def write_as_thief(places: Places, stream: Stream, *, clock_shift: int = 0) -> int:
    """Take a snapshot with the copied keys, at any claimed time; return its number."""
    with open_repository(places) as repository:
        result = snapshot(
            repository,
            SnapshotRequest(),
            clock=lambda: stream.clock() + clock_shift,
            progress=SilentProgress(),
        )
    assert result.sequence is not None
    return result.sequence


def slip_in(places: Places, stream: Stream) -> None:
    """Put the thief's objects beside the honest ones, in the next attempt where a slot is taken."""
    with open_repository(places) as thief, stream.open() as honest:
        slots = {}
        for number in range(1, 30):
            for attempt in range(3):
                slots[thief.manifest_slot(1, number, attempt)] = (number, attempt)
        for name in thief.store.iter_names():
            data = thief.store.read(name)
            if honest.store.stat(name) is not None:
                if name not in slots or honest.store.read(name) == data:
                    continue
                number, attempt = slots[name]
                honest.store.put_new(thief.manifest_slot(1, number, attempt + 1), data)
                continue
            honest.store.put_new(name, data)


def revoke(stream: Stream, sequence: int, **request: object) -> Outcome:
    """Revoke the stream's first signer behind a manifest: draft, sign, admit."""
    with stream.open() as repository:
        signers = [run.signer for run in repository.state.iter_runs()]
        signer = signers[0].hex()[:16]
        stream.drafts = getattr(stream, "drafts", 0) + 1  # type: ignore[attr-defined]
        out = stream.base / f"draft-{stream.drafts}"  # type: ignore[attr-defined]
        draft_registry(
            repository,
            DraftRequest(out=bytes(out), revoke=f"{signer}@{sequence}", **request),  # type: ignore[arg-type]
            clock=stream.clock,
        )
    owner = load_owner(stream.places.keys + b"/owner.key")
    text = sign_registry(out.read_bytes(), owner).text
    assert text is not None
    with stream.open() as repository:
        return admit(repository, text, clock=stream.clock)


def day(stream: Stream, number: int) -> None:
    """Do a day's work and keep it."""
    fill(stream.root, {"notes": b"day %d" % number, f"d/{number}": os.urandom(40_000)})
    assert stream.snapshot().status == "ok"


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Return a stream with three honest manifests, the keys of which were copied after one."""
    stream = Stream(tmp_path / "honest")
    day(stream, 1)
    stolen(stream, tmp_path / "thief")
    day(stream, 2)
    day(stream, 3)
    return stream


def thief_places(stream: Stream) -> Places:
    """Return where the thief's copy lies."""
    base = stream.base.parent / "thief"
    return replace(
        stream.places,
        repository=bytes(base / "repository"),
        keys=bytes(base / "keys"),
        state=bytes(base / "state"),
    )


def restored(stream: Stream, at: str, out: str) -> Path:
    """Check a manifest out, and return the root there."""
    destination = stream.base / out
    with stream.open() as repository:
        request = CheckoutRequest(at=at, destination=bytes(destination))
        checkout(repository, request, clock=stream.clock)
    return destination / os.fsdecode(stream.roots[0]).lstrip("/")


@pytest.mark.parametrize("shift", [0, -YEAR, 600])
def test_after_the_revocation_the_thief_s_manifests_are_gone_and_the_good_ones_restorable(
    stream: Stream, shift: int
) -> None:
    """The owner finds a second writer: what was good stays, what was not never comes back (A6b)."""
    places = thief_places(stream)
    fill(stream.root, {"notes": b"poisoned"})
    last = [write_as_thief(places, stream, clock_shift=shift) for _ in range(3)][-1]
    slip_in(places, stream)
    fill(stream.root, {"notes": b"day 4"})
    assert last == 4
    with pytest.raises(TrustError) as fork:
        stream.snapshot()
    assert fork.value.code == "trust.fork"

    outcome = revoke(stream, 3)
    day(stream, 4)

    assert (outcome.epoch, outcome.version) == (2, 2)
    statements = stream.statements()
    assert [one.epoch for one in statements.values()] == [1, 1, 1, 2]
    assert statements[4].signer != statements[3].signer
    assert {pin.name for one in list(statements.values())[:3] for pin in one.pins}.isdisjoint(
        pin.name for pin in statements[4].pins
    )
    for number in (1, 2, 3, 4):
        root = restored(stream, str(number), f"out-{number}")
        assert (root / "notes").read_bytes() == b"day %d" % number
    with stream.open() as repository:
        found = verify(
            repository,
            VerifyRequest(level=Level.DATA),
            clock=stream.clock,
            progress=SilentProgress(),
        )
        listed = [line.sequence for line in log(repository, now=stream.clock())]
    assert (found.problems, found.manifests, listed) == ((), 4, [4, 3, 2, 1])


def test_the_independent_reader_follows_the_registry_past_slipped_envelopes(
    stream: Stream,
) -> None:
    """Two readers of one specification must take the same one of two envelopes (4.23)."""
    places = thief_places(stream)
    fill(stream.root, {"notes": b"poisoned"})
    for _ in range(3):
        write_as_thief(places, stream)
    slip_in(places, stream)
    fill(stream.root, {"notes": b"day 4"})
    with pytest.raises(minireader.Refused) as fork:
        stream.restore(2)
    assert fork.value.code == "trust.fork"

    revoke(stream, 3)
    day(stream, 4)

    for number in (1, 2, 3, 4):
        assert (stream.restored_root(number) / "notes").read_bytes() == b"day %d" % number


def test_what_the_thief_writes_after_the_revocation_counts_for_nothing(stream: Stream) -> None:
    """A thief who is never told goes on for ever."""
    places = thief_places(stream)
    revoke(stream, 3)
    day(stream, 4)
    fill(stream.root, {"notes": b"poisoned"})
    for _ in range(4):
        write_as_thief(places, stream)
    slip_in(places, stream)

    day(stream, 5)

    assert sorted(stream.statements()) == [1, 2, 3, 4, 5]
    assert (restored(stream, "latest", "out") / "notes").read_bytes() == b"day 5"


def test_the_honest_manifests_behind_the_named_one_are_cut_off(stream: Stream) -> None:
    """Where nobody knows when the key was copied, the last one that is known good is named."""
    revoke(stream, 2)

    with stream.open() as repository:
        assert Chain(repository).head() == 2
        with pytest.raises(SelectionError):
            Chain(repository).verified(3, now=stream.clock())
    day(stream, 3)
    assert [one.epoch for one in stream.statements().values()] == [1, 1, 2]
    with stream.open() as repository:
        runs = [(run.epoch, run.sequence) for run in repository.iter_counted_runs()]
        marks = repository.state.high_water()
    assert runs == [(1, 1), (1, 2), (2, 3)]
    assert marks is not None
    assert (marks.epoch, marks.sequence) == (2, 3)
    assert (restored(stream, "2", "out") / "notes").read_bytes() == b"day 2"


def test_an_automatic_run_does_not_take_what_was_cut_off_for_today_s(stream: Stream) -> None:
    """After a revocation the day's work is in no manifest that counts, whatever the ledger says."""
    stream.snapshot(type=SnapshotType.AUTO)
    assert stream.snapshot(type=SnapshotType.AUTO).status == "noop"
    revoke(stream, 3)

    result = stream.snapshot(type=SnapshotType.AUTO)

    assert (result.status, result.sequence) == ("ok", 4)


def test_a_reader_that_has_seen_more_follows_the_owner_back(stream: Stream, tmp_path: Path) -> None:
    """Its high-water is above what is left, and no rollback: the owner has signed the cut."""
    reader = stolen(stream, tmp_path / "reader")
    revoke(stream, 2)
    day(stream, 3)
    shutil.rmtree(os.fsdecode(reader.objects))
    shutil.copytree(stream.objects, os.fsdecode(reader.objects))
    with open_repository(reader) as repository:
        found = Chain(repository).all_verified(now=stream.clock())

    assert [one.statement.epoch for one in found.values()] == [1, 1, 2]


def test_a_put_only_machine_goes_on_after_a_revocation(tmp_path: Path) -> None:
    """It opens nothing, and all the same knows where the chain goes on."""
    stream = Stream(tmp_path / "honest", put_only=True)
    shutil.copy(tmp_path / "honest" / "away" / "owner.key", os.fsdecode(stream.places.keys))
    day(stream, 1)
    day(stream, 2)
    revoke(stream, 1)

    day(stream, 2)

    with stream.open() as repository:
        found = verify(
            repository,
            VerifyRequest(level=Level.PACKS),
            clock=stream.clock,
            progress=SilentProgress(),
        )
    assert (found.problems, found.head) == ((), 2)
    stream.check_restores()
    identity = (tmp_path / "honest" / "away" / "identity.key").read_bytes()
    path = Path(os.fsdecode(stream.places.keys)) / "identity.key"
    path.write_bytes(identity)
    path.chmod(0o600)
    statements = stream.statements()
    assert [one.epoch for one in statements.values()] == [1, 2]
    assert not statements[2].state_lost


def test_a_manifest_reached_through_the_digest_stays_and_another_signer_s_too(
    stream: Stream,
) -> None:
    """A revocation takes back what one key signed, and no day's work of another."""
    with stream.open() as repository:
        old = repository.record.current.signers[0].public
        public = new_signer(
            repository, Role.MANIFEST, out=bytes(stream.base / "signer"), clock=stream.clock
        )
        draft_registry(
            repository,
            DraftRequest(out=bytes(stream.base / "handover"), signer=(public, Role.MANIFEST)),
            clock=stream.clock,
        )
    owner = load_owner(stream.places.keys + b"/owner.key")
    text = sign_registry((stream.base / "handover").read_bytes(), owner).text
    assert text is not None
    with stream.open() as repository:
        admit(repository, text, clock=stream.clock)
    day(stream, 4)

    outcome = revoke(stream, 3)
    day(stream, 5)

    assert outcome.epoch == 3
    with stream.open() as repository:
        assert public in {one.public for one in repository.record.current.signers}
        assert old not in {one.public for one in repository.record.current.signers}
        assert repository.record.current.first_sequence == 5
    assert [one.epoch for one in stream.statements().values()] == [1, 1, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("nonsense", "config.revoke"),
        ("00000000@1", "config.signer"),
        ("SIGNER@9", "select.no-sequence"),
        ("SIGNER@0", "select.no-sequence"),
    ],
)
def test_a_revocation_that_names_nothing_is_refused(stream: Stream, text: str, code: str) -> None:
    """A slip must not begin an epoch, with a full upload behind it."""
    with stream.open() as repository:
        signer = next(repository.state.iter_runs()).signer.hex()[:12]
        with pytest.raises(DurarepoError) as refusal:
            draft_registry(
                repository,
                DraftRequest(
                    out=bytes(stream.base / "draft"), revoke=text.replace("SIGNER", signer)
                ),
                clock=stream.clock,
            )

    assert refusal.value.code == code


def test_a_signer_is_revoked_once(stream: Stream) -> None:
    """A second revocation of the same signer could only contradict the first."""
    revoke(stream, 2)
    day(stream, 3)

    with pytest.raises(ConfigurationError) as refusal:
        revoke(stream, 1)

    assert refusal.value.code == "config.signer"


def test_a_thief_s_own_repository_is_refused_by_the_registry(stream: Stream) -> None:
    """Whoever is shown the thief's chain with the owner's newest registry takes none of it."""
    places = thief_places(stream)
    fill(stream.root, {"notes": b"poisoned"})
    for _ in range(2):
        write_as_thief(places, stream)
    revoke(stream, 1)
    with stream.open() as honest, open_repository(places) as thief:
        for name in honest.store.iter_names():
            if thief.store.stat(name) is None:
                thief.store.put_new(name, honest.store.read(name))

    with open_repository(places) as repository:
        found = Chain(repository).all_verified(now=stream.clock())
        assert sorted(found) == [1]
        request = CheckoutRequest(at="1", destination=bytes(stream.base / "out"))
        checkout(repository, request, clock=stream.clock)


@pytest.mark.parametrize("files", [0, 2, 5])
def test_a_partial_manifest_after_a_cut_holds_what_was_reached(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    """Folders that the catalogue knows from what was cut off are none that a manifest kept."""
    fill(stream.root, {f"e{number}/f": os.urandom(3_000) for number in range(6)})
    stream.snapshot()
    revoke(stream, 2)
    fill(stream.root, {f"e{number}/g": os.urandom(3_000) for number in range(6)})

    with monkeypatch.context() as patch:
        Stopwatch(patch, files=files)
        result = stream.snapshot(budget_seconds=10, partial=True)

    assert (result.status, result.sequence, result.files) == ("budget", 3, files)
    again = stream.snapshot()
    assert (again.status, again.files) == ("ok", 16)
    stream.check_restores()


# --- what others signed stays


def rotated(stream: Stream) -> str:
    """Rotate the signing key and do a day's work; return the old signer's id."""
    with stream.open() as repository:
        old = signer_id(repository.record.current.signers[0].public).hex()
        rotate_signing(repository, clock=stream.clock)
    day(stream, 4)
    return old


def drafted(stream: Stream, revoke: str) -> bytes:
    """Draft a revocation and sign it as the owner."""
    out = stream.base / "revocation"
    with stream.open() as repository:
        draft_registry(repository, DraftRequest(out=bytes(out), revoke=revoke), clock=stream.clock)
    owner = load_owner(stream.places.keys + b"/owner.key")
    text = sign_registry(out.read_bytes(), owner).text
    assert text is not None
    return text


def firsts(stream: Stream) -> list[int]:
    """Return with which manifests the epochs begin."""
    with stream.open() as repository:
        return [one.first_sequence for one in repository.record.epochs]


@pytest.mark.parametrize("put_only", [False, True])
def test_work_done_between_draft_and_admission_of_a_revocation_is_not_cut_off(
    stream: Stream, *, put_only: bool
) -> None:
    """The owner takes a day to sign, and the computer goes on working under its own key."""
    text = drafted(stream, f"{rotated(stream)[:16]}@3")
    day(stream, 5)
    if put_only:
        (Path(os.fsdecode(stream.places.keys)) / "identity.key").rename(stream.base / "id")

    with stream.open() as repository, pytest.raises(ConfigurationError) as refusal:
        admit(repository, text, clock=stream.clock)

    assert refusal.value.code == "config.draft-stale"
    assert firsts(stream) == [1, 4]
    (stream.base / "revocation").unlink()
    with stream.open() as repository:
        old = signer_id(repository.record.epochs[0].signers[0].public).hex()
    with_all = drafted(stream, f"{old[:16]}@3")
    with stream.open() as repository:
        admit(repository, with_all, clock=stream.clock)
    assert firsts(stream) == [1, 4, 6]


def test_what_the_revoked_key_signs_meanwhile_makes_no_draft_stale(stream: Stream) -> None:
    """Else whoever holds the stolen key decides when it is revoked."""
    with stream.open() as repository:
        signer = next(repository.state.iter_runs()).signer.hex()
    text = drafted(stream, f"{signer[:16]}@3")
    stream.snapshot()

    with stream.open() as repository:
        admit(repository, text, clock=stream.clock)

    assert firsts(stream) == [1, 4]


@pytest.mark.parametrize("keeps", ["old", "none"])
def test_what_another_machine_signed_stays_though_the_ledger_here_lacks_it(
    stream: Stream, keeps: str
) -> None:
    """A second machine's work, or all of it where the state was lost, would be cut off."""
    old = rotated(stream)
    state = Path(os.fsdecode(stream.places.state))
    shutil.copytree(state, stream.base / "state")
    day(stream, 5)
    day(stream, 6)
    shutil.rmtree(state)
    if keeps == "old":
        shutil.copytree(stream.base / "state", state)

    text = drafted(stream, f"{old[:16]}@3")
    with stream.open() as repository:
        admit(repository, text, clock=stream.clock)

    assert firsts(stream) == [1, 4, 7]
    day(stream, 7)
    assert sorted(stream.statements()) == [1, 2, 3, 4, 5, 6, 7]


def test_without_identity_and_ledger_nobody_guesses_what_a_revocation_cuts_off(
    stream: Stream,
) -> None:
    """A put-only computer that lost its state cannot tell whose manifests it would drop."""
    old = rotated(stream)
    stream.lose(state=True)
    (Path(os.fsdecode(stream.places.keys)) / "identity.key").unlink()

    with pytest.raises(KeyMaterialError) as refusal:
        drafted(stream, f"{old[:16]}@3")

    assert refusal.value.code == "keys.identity-absent"
    assert not [one for one in os.listdir(stream.places.keys) if one.endswith(b".next")]


def test_junk_with_a_good_mark_is_no_manifest_that_stays(stream: Stream) -> None:
    """Whoever holds the naming key could else choose what the next epoch follows."""
    old = rotated(stream)
    with stream.open() as repository:
        data = bytearray(repository.store.read(repository.manifest_slot(2, 4, 0)))
        data[1200] ^= 1
        key = primitives.derive_subkey(repository.keys.naming.reveal(), "mark")
        data[-32:] = primitives.keyed_hash(key, bytes(data[:-32]))
        repository.store.put_new(repository.manifest_slot(2, 5, 0), bytes(data))

    drafted_text = drafted(stream, f"{old[:16]}@3")

    with stream.open() as repository:
        admit(repository, drafted_text, clock=stream.clock)
    assert firsts(stream) == [1, 4, 5]


def replaced(stream: Stream, days: int) -> Places:
    """Return a machine that wrote on some days, and got the objects of a chain without them."""
    other = thief_places(stream)
    for number in range(days):
        fill(stream.root, {"notes": b"other day %d" % number})
        write_as_thief(other, stream)
    rotated(stream)
    shutil.rmtree(os.fsdecode(other.objects))
    shutil.copytree(stream.objects, os.fsdecode(other.objects))
    return other


@pytest.mark.parametrize("days", [1, 2])
@pytest.mark.parametrize("put_only", [False, True])
def test_a_machine_whose_own_manifests_were_replaced_is_told(
    stream: Stream, *, days: int, put_only: bool
) -> None:
    """Two write after a restore, one begins an epoch: its chain is whole without the other's."""
    other = replaced(stream, days)
    if put_only:
        Path(os.fsdecode(other.keys), "identity.key").unlink()
        here = Path(os.fsdecode(stream.places.keys))
        shutil.copy(here / "naming-1.key", os.fsdecode(other.keys))

    with open_repository(other) as repository:
        with pytest.raises(TrustError) as refusal:
            list(log(repository, now=stream.clock()))
        found = verify(
            repository,
            VerifyRequest(level=Level.PACKS),
            clock=stream.clock,
            progress=SilentProgress(),
        )

    assert refusal.value.code == "trust.fork"
    assert not found.ok
    assert ProblemKind.FORK in {one.kind for one in found.problems}
    with stream.open() as repository:
        assert [line.sequence for line in log(repository, now=stream.clock())] == [4, 3, 2, 1]


@pytest.mark.parametrize("days", [2, 4])
def test_what_a_machine_made_behind_the_end_of_an_epoch_is_not_forgotten(
    stream: Stream, days: int
) -> None:
    """At the end of the epoch the digest differs; behind it the number itself is of another."""
    other = replaced(stream, days)

    with open_repository(other) as repository:
        assert replaced_here(repository) == list(range(3, days + 2))
    with stream.open() as repository:
        assert replaced_here(repository) == []
