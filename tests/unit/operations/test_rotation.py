"""Rotation of keys: the chain goes on, what was kept stays readable, and nothing old writes on."""

import os
from pathlib import Path

import pytest

from durarepo.core.errors import ConfigurationError, KeyMaterialError
from durarepo.core.progress import SilentProgress
from durarepo.format.registry import Role
from durarepo.local.secretfiles import read_secret
from durarepo.operations.rotation import new_signer, rotate_naming, rotate_signing
from durarepo.operations.verify import Level, Verified, VerifyRequest, verify
from durarepo.repository.admission import Outcome
from tests.machines.stream import Stream, fill, kill_before_publishing


def rotated_signing(stream: Stream) -> Outcome:
    """Rotate the signing key, the owner's key being here."""
    with stream.open() as repository:
        return rotate_signing(repository, clock=stream.clock)


def rotated_naming(stream: Stream) -> Outcome:
    """Rotate the naming key, the owner's key being here."""
    with stream.open() as repository:
        return rotate_naming(repository, clock=stream.clock)


def verified(stream: Stream, level: Level = Level.DATA) -> Verified:
    """Verify all there is."""
    with stream.open() as repository:
        return verify(
            repository, VerifyRequest(level=level), clock=stream.clock, progress=SilentProgress()
        )


def begun(folder: Path, *, put_only: bool = False) -> Stream:
    """Make a stream with one manifest; with ``put_only`` the owner's key is back here."""
    stream = Stream(folder, put_only=put_only)
    if put_only:
        here, there = Path(os.fsdecode(stream.places.keys)), folder / "away" / "owner.key"
        (here / "owner.key").write_bytes(there.read_bytes())
        (here / "owner.key").chmod(0o600)
    fill(stream.root, {f"d{n}/f{n}": os.urandom(60_000) for n in range(4)})
    stream.snapshot()
    return stream


def key_files(stream: Stream) -> set[str]:
    """Return the names in the keys folder."""
    return {os.fsdecode(name) for name in os.listdir(stream.places.keys)}


def test_after_a_new_signing_key_the_next_snapshot_stores_no_data(tmp_path: Path) -> None:
    """A rotation that costs a full upload is one that nobody does."""
    stream = begun(tmp_path)

    outcome = rotated_signing(stream)
    result = stream.snapshot()

    assert (outcome.version, outcome.epoch, outcome.draft) == (2, 2, None)
    assert (result.status, result.sequence) == ("ok", 2)
    assert (result.packs, result.new_bytes) == (0, 0)
    statements = stream.statements()
    assert [one.epoch for one in statements.values()] == [1, 2]
    assert statements[1].signer != statements[2].signer
    assert statements[2].milestone == statements[2].previous
    assert statements[1].pins == statements[2].pins


def test_every_epoch_is_verified_and_restored_after_rotations(tmp_path: Path) -> None:
    """Whoever rotates keys must not lose the history by it."""
    stream = begun(tmp_path)
    rotated_signing(stream)
    fill(stream.root, {"d0/second": b"second"})
    stream.snapshot()
    rotated_naming(stream)
    fill(stream.root, {"d0/third": b"third"})
    stream.snapshot()
    rotated_signing(stream)
    stream.snapshot()

    found = verified(stream)

    assert (found.ok, found.head, found.manifests) == (True, 4, 4)
    stream.check_restores()
    stream.check_restores(4)
    old = stream.restored_root(1)
    assert not (old / "d0" / "second").exists()
    assert (stream.restored_root(2) / "d0" / "second").read_bytes() == b"second"


def test_under_a_new_naming_key_everything_is_sealed_anew(tmp_path: Path) -> None:
    """A pack of the old naming key in a new manifest would be readable by whoever stole it."""
    stream = begun(tmp_path)
    stream.snapshot()

    outcome = rotated_naming(stream)
    result = stream.snapshot()

    assert outcome.epoch == 2
    assert result.new_bytes >= 4 * 60_000
    statements = stream.statements()
    old = {pin.name for number in (1, 2) for pin in statements[number].pins}
    assert old.isdisjoint(pin.name for pin in statements[3].pins)
    assert not statements[3].state_lost
    stream.check_restores()
    stream.check_restores(1)
    assert stream.snapshot().new_bytes == 0


def test_the_old_naming_key_is_kept_under_the_number_of_its_epoch(tmp_path: Path) -> None:
    """Without it a machine that cannot read would not find its own old manifests."""
    stream = begun(tmp_path)
    old = read_secret(stream.places.keys + b"/naming.key")
    rotated_naming(stream)

    assert read_secret(stream.places.keys + b"/naming-1.key") == old
    assert read_secret(stream.places.keys + b"/naming.key") != old
    assert not any(name.endswith(".next") for name in key_files(stream))


def test_the_old_signing_key_writes_nothing_more(tmp_path: Path) -> None:
    """A copy of the key that was rotated away must not go on with the chain."""
    stream = begun(tmp_path)
    old = Path(os.fsdecode(stream.places.keys)) / "signing.key"
    text = old.read_bytes()
    rotated_signing(stream)
    old.write_bytes(text)

    with pytest.raises(KeyMaterialError) as refusal:
        stream.snapshot()

    assert refusal.value.code == "keys.signing-refused"
    assert [name for name in key_files(stream) if name.startswith("signing-")] != []


def test_a_put_only_machine_rotates_and_verifies_without_an_identity(tmp_path: Path) -> None:
    """The machine that needs rotation most cannot open anything."""
    stream = begun(tmp_path, put_only=True)
    rotated_signing(stream)
    assert stream.snapshot().new_bytes == 0
    rotated_naming(stream)
    fill(stream.root, {"d0/more": b"more"})
    result = stream.snapshot()

    found = verified(stream, Level.PACKS)

    assert result.new_bytes >= 4 * 60_000
    assert (found.ok, found.chain, found.manifests) == (True, "local", 3)
    stream.check_restores()
    assert (stream.restored_root(1) / "d0" / "f0").read_bytes() == (
        stream.root / "d0" / "f0"
    ).read_bytes()


def test_no_epoch_begins_before_the_last_one_has_a_manifest(tmp_path: Path) -> None:
    """Two epochs cannot begin with one number; and no key is made for nothing."""
    stream = begun(tmp_path)
    rotated_signing(stream)
    before = key_files(stream)

    with pytest.raises(ConfigurationError) as refusal:
        rotated_naming(stream)

    assert refusal.value.code == "config.epoch"
    assert key_files(stream) == before


def test_a_run_that_was_killed_before_a_new_naming_key_is_not_taken_over(tmp_path: Path) -> None:
    """Its packs are named by the old key: pinned by the new epoch, nobody could read them."""
    stream = begun(tmp_path)
    fill(stream.root, {"big": os.urandom(900_000)})
    left = kill_before_publishing(stream)
    rotated_naming(stream)

    stream.snapshot()

    last = stream.statements()[2]
    assert left.isdisjoint(pin.name for pin in last.pins)
    assert set(last.abandoned) <= left
    assert last.abandoned
    stream.check_restores()
    assert verified(stream).ok


def test_a_signer_made_here_waits_until_the_owner_admits_it(tmp_path: Path) -> None:
    """A key that counted before the owner said so would be a second writer."""
    stream = begun(tmp_path)
    out = tmp_path / "new.signer"
    with stream.open() as repository:
        public = new_signer(repository, Role.MANIFEST, out=bytes(out), clock=stream.clock)

    assert out.read_bytes().startswith(b"manifest durarepo-signer-1 " + public.hex().encode())
    assert len([name for name in key_files(stream) if name.endswith(".next")]) == 1
    assert stream.snapshot().status == "ok"
    assert stream.statements()[2].signer == stream.statements()[1].signer
