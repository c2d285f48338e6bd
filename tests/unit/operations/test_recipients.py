"""Recipients added and retired: who opens what from then on, and what becomes of old packs."""

import os
from pathlib import Path

import pytest

from durarepo.core.errors import ConfigurationError, IntegrityError, KeyMaterialError
from durarepo.core.secret import Secret
from durarepo.crypto import primitives
from durarepo.format.keytext import encode_key
from durarepo.format.layout import Seal, seal_info
from durarepo.operations.recipients import add_recipient, retire_recipient
from durarepo.repository.admission import Outcome
from durarepo.repository.chain import Chain
from durarepo.repository.rewriting import recipients_share
from durarepo.sealing import open_header
from tests.interop import minireader
from tests.machines.stream import Stream, fill


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
        return recipients_share(repository)


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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("durarepo.operations.snapshot.publish", _dies)
        with pytest.raises(KeyboardInterrupt):
            stream.snapshot()
    left = {path.name for path in stream.object_files()}
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


def _dies(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


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
