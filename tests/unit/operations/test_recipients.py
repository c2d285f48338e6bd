"""Recipients added and retired: who opens what from then on, and what becomes of old packs."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from durarepo.core.errors import (
    ConfigurationError,
    IntegrityError,
    KeyMaterialError,
    TrustError,
)
from durarepo.core.names import Digest
from durarepo.core.progress import SilentProgress
from durarepo.core.secret import Secret
from durarepo.crypto import primitives
from durarepo.format.keytext import encode_key
from durarepo.format.layout import Seal, seal_info
from durarepo.operations.checkout import CheckedOut, CheckoutRequest, checkout
from durarepo.operations.log import log
from durarepo.operations.recipients import add_recipient, retire_recipient
from durarepo.operations.rotation import rotate_naming, rotate_signing
from durarepo.operations.verify import Level, Verified, VerifyRequest, verify
from durarepo.repository.admission import Outcome, holding
from durarepo.repository.chain import Chain
from durarepo.repository.rewriting import recipients_share
from durarepo.repository.sealedto import is_sealed_to_others
from durarepo.repository.selection import open_view
from durarepo.sealing import open_box, open_header
from tests.interop import minireader
from tests.machines.stream import Stream, fill, kill_before_publishing


def begun(folder: Path) -> Stream:
    """Make a stream with one manifest."""
    stream = Stream(folder)
    fill(stream.root, {f"d{n}/f{n}": os.urandom(90_000) for n in range(6)})
    stream.snapshot()
    return stream


def new_identity(stream: Stream) -> tuple[bytes, Outcome]:
    """Add a recipient; return the identity that it belongs to."""
    identity = primitives.random_key()
    text = encode_key("recipient", primitives.recipient_of(identity))
    with stream.open() as repository:
        return identity, add_recipient(repository, text, clock=stream.clock)


def escrow_seed(stream: Stream) -> bytes:
    """Return the recipient that is not the owner's identity."""
    with stream.open() as repository:
        own = primitives.recipient_of(stream.key("identity", "identity.key"))
        data = repository.record.current.data_recipients
        return next(one for one in data if one != own)


def retired(stream: Stream, key: str) -> Outcome:
    """Retire a recipient."""
    with stream.open() as repository:
        return retire_recipient(repository, key, clock=stream.clock)


def opens(stream: Stream, name: str, kind: Seal, identity: bytes) -> bool:
    """Return whether an identity opens the header of an object of the epoch in force."""
    with stream.open() as repository:
        data = repository.store.read(name)  # type: ignore[arg-type]
        info = seal_info(kind, repository.place(repository.record.current.number), data[1:33])
    try:
        open_header(identity, data, 33, info)
    except IntegrityError:
        return False
    return True


def share(stream: Stream) -> float:
    """Return the share of pinned bytes that is sealed to today's recipients."""
    with stream.open() as repository:
        found = recipients_share(repository)
    assert found is not None
    return found


def test_after_enough_runs_the_new_identity_alone_restores_the_head(tmp_path: Path) -> None:
    """An heir who can open only what was changed since has no backup."""
    stream = begun(tmp_path)

    identity, outcome = new_identity(stream)
    assert (outcome.version, outcome.epoch) == (2, 1)
    assert share(stream) == 0.0
    for _ in range(4):
        stream.snapshot()
        if share(stream) == 1.0:
            break

    assert share(stream) == 1.0
    statements = stream.statements()
    head = max(statements)
    held = stream.held()
    held.__dict__["identities"] = [identity]
    held.anchor = held.high_water = (head - 1, statements[head].previous)
    minireader.restore(stream.objects, tmp_path / "out", held, stream.clock())
    there = tmp_path / "out" / os.fsdecode(stream.roots[0]).lstrip("/")
    for number in range(6):
        name = f"d{number}/f{number}"
        assert (there / name).read_bytes() == (stream.root / name).read_bytes()
    stream.check_restores()


def test_a_retired_identity_opens_no_new_pack_and_no_new_envelope(tmp_path: Path) -> None:
    """A key that was given back, or lost, must not read tomorrow's work."""
    stream = begun(tmp_path)
    identity, _ = new_identity(stream)
    fill(stream.root, {"between": os.urandom(70_000)})
    between = stream.snapshot()
    statement = stream.statements()[2]
    assert between.manifest is not None
    assert opens(stream, between.manifest, Seal.ENVELOPE, identity)
    assert any(opens(stream, pin.name, Seal.PACK, identity) for pin in statement.pins)

    text = encode_key("recipient", primitives.recipient_of(identity))
    retired(stream, text)
    known = {path.name for path in stream.object_files()}
    fill(stream.root, {"after": os.urandom(70_000)})
    result = stream.snapshot()

    new = {path.name for path in stream.object_files()} - known
    assert result.manifest in new
    assert len(new) > 1
    own = stream.key("identity", "identity.key")
    for name in new:
        kind = Seal.ENVELOPE if name == result.manifest else Seal.PACK
        assert opens(stream, name, kind, own)
        assert not opens(stream, name, kind, identity)
    stream.check_restores()


def test_a_run_that_was_killed_before_a_retirement_is_not_taken_over(tmp_path: Path) -> None:
    """A manifest from after the retirement would pin what the retired key opens."""
    stream = begun(tmp_path)
    identity, _ = new_identity(stream)
    fill(stream.root, {"big": os.urandom(900_000)})
    left = kill_before_publishing(stream)
    retired(stream, encode_key("recipient", primitives.recipient_of(identity)))

    stream.snapshot()

    last = stream.statements()[2]
    before = {pin.name for pin in stream.statements()[1].pins}
    new = {pin.name for pin in last.pins} - before
    assert new
    assert left.isdisjoint(new)
    assert set(last.abandoned) <= left
    assert last.abandoned
    assert not any(opens(stream, name, Seal.PACK, identity) for name in new)
    stream.check_restores()


def test_a_recipient_is_retired_by_the_digits_of_its_id(tmp_path: Path) -> None:
    """`registry show` gives ids, and nobody has the whole key at hand."""
    stream = begun(tmp_path)
    identity, _ = new_identity(stream)
    public = primitives.recipient_of(identity)

    retired(stream, primitives.sha256(public).hex()[:12])

    with stream.open() as repository:
        assert public not in repository.record.current.data_recipients
    text = Path(os.fsdecode(stream.places.keys), "recipients").read_bytes()
    assert text.count(b"\n") == 2
    assert [line.split()[1] for line in text.splitlines()] == [b"owner", b"escrow"]


def test_two_recipients_have_to_remain(tmp_path: Path) -> None:
    """With one, its loss is the loss of everything."""
    stream = begun(tmp_path)

    with pytest.raises(ConfigurationError) as refusal:
        retired(stream, primitives.sha256(escrow_seed(stream)).hex())

    assert refusal.value.code == "config.recipients"


def test_the_identity_of_this_computer_is_not_retired_on_it(tmp_path: Path) -> None:
    """It would open nothing afterwards, not even what it has just kept."""
    stream = begun(tmp_path)
    new_identity(stream)
    own = primitives.recipient_of(stream.key("identity", "identity.key"))

    with pytest.raises(ConfigurationError) as refusal:
        retired(stream, primitives.sha256(own).hex()[:8])

    assert refusal.value.code == "config.own-recipient"
    stream.snapshot()
    stream.check_restores()


def test_a_retired_identity_is_told_so_and_not_that_bytes_are_damaged(tmp_path: Path) -> None:
    """Who is told of damage looks for a copy, which helps nobody."""
    stream = begun(tmp_path)
    identity, _ = new_identity(stream)
    stream.snapshot()
    retired(stream, encode_key("recipient", primitives.recipient_of(identity)))
    fill(stream.root, {"after": os.urandom(70_000)})
    stream.snapshot()

    with stream.open() as repository:
        chain = Chain(repository)
        with pytest.raises(KeyMaterialError) as refusal:
            chain.signed(chain.head(), Secret(identity))

    assert refusal.value.code == "keys.not-recipient"


def as_other(stream: Stream, identity: bytes, *, has_state: bool) -> Stream:
    """Put another identity where the stream's own was: the computer of that recipient."""
    path = Path(os.fsdecode(stream.places.keys), "identity.key")
    path.write_text(encode_key("identity", identity) + "\n")
    stream.lose(catalog=True, state=not has_state, journal=not has_state)
    return stream


def restored(stream: Stream, at: str) -> CheckedOut:
    """Restore a manifest into a new folder."""
    stream.restored += 1
    request = CheckoutRequest(at=at, destination=bytes(stream.base / f"out-{stream.restored}"))
    with stream.open() as repository:
        return checkout(repository, request, clock=stream.clock)


def verified(stream: Stream, level: Level) -> Verified:
    """Verify."""
    with stream.open() as repository:
        request = VerifyRequest(level=level)
        return verify(repository, request, clock=stream.clock, progress=SilentProgress())


def with_a_guest(folder: Path, *, is_retired: bool) -> tuple[Stream, bytes]:
    """Make manifests 1 to 4; a recipient comes before 2 and, perhaps, goes before 3."""
    stream = begun(folder)
    identity, _ = new_identity(stream)
    for number in (2, 3, 4):
        fill(stream.root, {f"after-{number}": os.urandom(70_000)})
        stream.snapshot()
        while number == 2 and share(stream) < 1:  # the guest has come
            stream.snapshot()
        if number == 2 and is_retired:
            retired(stream, encode_key("recipient", primitives.recipient_of(identity)))
    return stream, identity


@pytest.mark.parametrize("has_state", [True, False])
def test_a_retired_identity_reads_what_was_sealed_to_it_and_nothing_else(
    tmp_path: Path, *, has_state: bool
) -> None:
    """Its manifests are whole and readable; the others are somebody else's, and not damaged."""
    stream, identity = with_a_guest(tmp_path, is_retired=True)
    total = max(stream.statements())
    mine = list(range(2, total - 1))
    as_other(stream, identity, has_state=has_state)

    for number in (1, total - 1, total):
        with pytest.raises(KeyMaterialError) as refusal:
            restored(stream, str(number))
        assert refusal.value.code == "keys.not-recipient"
    done = restored(stream, str(mine[-1]))
    assert done.files == 7
    with stream.open() as repository:
        lines = {line.sequence: line for line in log(repository, now=stream.clock())}
        view = open_view(repository, str(mine[-1]), now=stream.clock())
    assert view.manifest.statement.sequence == mine[-1]
    if not has_state:
        assert [n for n, line in sorted(lines.items()) if not line.is_sealed] == mine
    assert lines[mine[-1]].files == 7


@pytest.mark.parametrize("has_state", [True, False])
def test_verify_with_a_retired_identity_finds_no_damage(tmp_path: Path, *, has_state: bool) -> None:
    """Who is told of damage looks for a copy, which helps nobody."""
    stream, identity = with_a_guest(tmp_path, is_retired=True)
    as_other(stream, identity, has_state=has_state)

    for level in (Level.CHAIN, Level.PACKS):
        found = verified(stream, level)
        assert (found.problems, found.chain) == ((), "local")
    with pytest.raises(KeyMaterialError) as refusal:
        verified(stream, Level.DATA)
    assert refusal.value.code == "keys.not-recipient"


@pytest.mark.parametrize("has_state", [True, False])
def test_a_recipient_that_came_later_reads_and_verifies_from_then_on(
    tmp_path: Path, *, has_state: bool
) -> None:
    """An heir must not be told that the history before is damaged."""
    stream, identity = with_a_guest(tmp_path, is_retired=False)
    as_other(stream, identity, has_state=has_state)

    with pytest.raises(KeyMaterialError) as refusal:
        restored(stream, "1")
    done, found = restored(stream, "latest"), verified(stream, Level.PACKS)
    whole = verified(stream, Level.DATA)

    assert refusal.value.code == "keys.not-recipient"
    assert done.files == 9
    assert (found.ok, found.problems, found.chain) == (True, (), "part")
    assert (whole.ok, whole.problems, whole.newest_whole) == (True, (), True)


def test_what_was_seen_above_has_to_be_there_although_it_stays_closed(tmp_path: Path) -> None:
    """A retired identity cannot follow the chain up to the mark, but it knows its digest."""
    stream, identity = with_a_guest(tmp_path, is_retired=True)
    as_other(stream, identity, has_state=True)

    with stream.open() as repository:
        chain = Chain(repository)
        assert chain.span(2)[0] == 2
        chain.high = replace(chain.high, digest=Digest(bytes(32)))
        with pytest.raises(TrustError) as refusal:
            chain.verified(2, now=stream.clock())

    assert refusal.value.code == "trust.fork"


def test_a_pack_that_is_sealed_to_others_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until old packs are sealed anew, who came later opens manifests and not all data."""
    stream = begun(tmp_path)
    identity, _ = new_identity(stream)
    fill(stream.root, {"new": os.urandom(70_000)})
    monkeypatch.setattr("durarepo.repository.rewriting.pick", lambda _: frozenset())
    stream.snapshot()
    assert share(stream) < 1
    as_other(stream, identity, has_state=True)

    for attempt in (lambda: restored(stream, "latest"), lambda: verified(stream, Level.DATA)):
        with pytest.raises(KeyMaterialError) as refusal:
            attempt()
        assert refusal.value.code == "keys.not-recipient"


def test_a_manifest_of_ones_own_that_does_not_open_is_damaged(tmp_path: Path) -> None:
    """The registry says to whom it was sealed; without that, damage would pass for a retirement."""
    stream = begun(tmp_path)
    as_other(stream, primitives.random_key(), has_state=True)
    with stream.open() as repository:
        own = Secret(stream.key("identity", "identity.key"))
        assert is_sealed_to_others(repository, 1, own)
    stream = begun(tmp_path / "second")
    with stream.open() as repository:
        own = Secret(stream.key("identity", "identity.key"))
        assert not is_sealed_to_others(repository, 1, own)


@pytest.mark.parametrize("key", ["ffffffff", "0" * 64])
def test_who_is_no_recipient_cannot_be_retired(tmp_path: Path, key: str) -> None:
    """A slip must not pass for a retirement."""
    stream = begun(tmp_path)

    with pytest.raises(ConfigurationError) as refusal:
        retired(stream, key)

    assert refusal.value.code == "config.recipients"


def test_with_more_than_four_recipients_everything_has_eight_stanzas(tmp_path: Path) -> None:
    """The number of stanzas tells no more than four or eight."""
    stream = begun(tmp_path)
    for _ in range(3):
        new_identity(stream)

    stream.snapshot()

    with stream.open() as repository:
        assert repository.record.current.stanza_count == 8
        assert len(repository.record.current.data_recipients) == 5
    stream.check_restores()
    for _ in range(3):
        new_identity(stream)
    with pytest.raises(ConfigurationError):
        new_identity(stream)


# --- recipients over several epochs


@pytest.mark.parametrize("has_manifest", [True, False])
def test_recipients_change_after_the_signing_key_was_rotated(
    tmp_path: Path, *, has_manifest: bool
) -> None:
    """A lost key could never be retired in a stream whose signing key was ever changed."""
    stream = begun(tmp_path)
    with stream.open() as repository:
        rotate_signing(repository, clock=stream.clock)
    if has_manifest:
        stream.snapshot()

    identity, outcome = new_identity(stream)
    fill(stream.root, {"new": os.urandom(70_000)})
    stream.snapshot()
    while share(stream) != 1.0:
        stream.snapshot()

    assert outcome.epoch == 2
    for number in (1, 2):
        with stream.open() as repository:
            box, place = repository.epoch(number).naming_key, repository.place(number)
            key = open_box(box, identity, kind=Seal.NAMING_KEY, place=place)
            assert Secret(key) == repository.keys.naming
    retired(stream, encode_key("recipient", primitives.recipient_of(identity)))
    stream.snapshot()
    with stream.open() as repository, pytest.raises(IntegrityError):
        box, place = repository.epoch(1).naming_key, repository.place(1)
        open_box(box, identity, kind=Seal.NAMING_KEY, place=place)
    stream.check_restores()


def test_the_file_of_recipients_follows_the_registry_after_a_kill(tmp_path: Path) -> None:
    """Who looks into it would else miss who can read what is kept."""
    stream = begun(tmp_path)
    path = Path(os.fsdecode(stream.places.keys)) / "recipients"
    old = path.read_bytes()
    new_identity(stream)
    new = path.read_bytes()
    path.write_bytes(old)  # as a run leaves it that was killed behind the commit point

    with stream.open() as repository, holding(repository, stream.clock):
        assert path.read_bytes() == new != old


def test_a_key_file_that_cannot_be_read_is_told_as_such(tmp_path: Path) -> None:
    """A disk that fails is no bug."""
    stream = begun(tmp_path)
    with stream.open() as repository, pytest.raises(KeyMaterialError) as refusal:
        add_recipient(repository, "/proc/self/mem", clock=stream.clock)

    assert refusal.value.code == "keys.unreadable"


def test_a_naming_key_that_is_sealed_to_others_is_asked_for(tmp_path: Path) -> None:
    """Who is told of a wrong stanza looks for damage, and brings the same three files again."""
    stream = begun(tmp_path)
    with stream.open() as repository:
        rotate_naming(repository, clock=stream.clock)
    identity, _ = new_identity(stream)
    stream.snapshot()
    as_other(stream, identity, has_state=False)
    (Path(os.fsdecode(stream.places.keys)) / "naming-1.key").unlink()

    with stream.open() as repository, pytest.raises(KeyMaterialError) as refusal:
        list(log(repository, now=stream.clock()))

    assert refusal.value.code == "keys.naming-absent"
