"""The chain of a repository: nothing between a point of trust and a manifest goes unlinked."""

import os
import shutil
import time
from pathlib import Path

import pytest

from durarepo.core.errors import TrustError
from durarepo.repository.chain import Chain
from tests.machines.stream import Stream, fill


def test_a_twin_between_the_high_water_and_a_manifest_is_seen(tmp_path: Path) -> None:
    """A machine that has seen number 1 alone must not take 3 on top of another 2."""
    stream = Stream(tmp_path / "own")
    fill(stream.root, {"a": b"one"})
    stream.snapshot()
    shutil.copytree(tmp_path / "own", tmp_path / "twin", symlinks=True)
    early = Path(os.fsdecode(stream.places.state)) / "high-water.json"
    seen_early = early.read_bytes()
    stream.snapshot()
    stream.snapshot()
    with stream.open() as repository:
        slot = repository.manifest_slot(1, 2, 0)
    own = stream.object_path(slot).read_bytes()
    twins = _manifest_two_of(tmp_path / "twin", stream, slot)
    assert own != twins

    early.write_bytes(seen_early)
    stream.object_path(slot).unlink()
    stream.object_path(slot).write_bytes(twins)

    with stream.open() as repository, pytest.raises(TrustError) as caught:
        Chain(repository).verified(3, now=int(time.time()))
    assert caught.value.code == "trust.link"


def _manifest_two_of(folder: Path, stream: Stream, slot: str) -> bytes:
    """Return the number 2 that a copy of the machine makes for itself."""
    aside = folder.parent / "aside"
    (folder.parent / "own").rename(aside)
    folder.rename(folder.parent / "own")
    stream.snapshot()
    data = stream.object_path(slot).read_bytes()
    shutil.rmtree(folder.parent / "own")
    aside.rename(folder.parent / "own")
    return data
