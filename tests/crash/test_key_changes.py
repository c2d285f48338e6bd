"""A change of keys killed anywhere: keys, registry and chain hold together, and it goes on.

The child dies at its n-th change of a folder or `fsync`. After each death the stream opens and is
whole, and either the same command or a snapshot ends what was begun.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from durarepo.core.errors import ConfigurationError
from durarepo.core.progress import SilentProgress
from durarepo.crypto import primitives
from durarepo.format.keytext import encode_key
from durarepo.format.registry import Role
from durarepo.local.keyring import load_owner
from durarepo.operations.recipients import add_recipient
from durarepo.operations.registry import (
    DraftRequest,
    admit_registry,
    draft_registry,
    sign_registry,
)
from durarepo.operations.rotation import new_signer, rotate_naming, rotate_signing
from durarepo.operations.verify import Level, VerifyRequest, verify
from tests.crash.test_snapshot_kills import killed
from tests.machines.stream import Stream, fill

_STEP = 1 if os.environ.get("DURAREPO_TESTS_LONG") else 2
"""Every event is tried in the long mode, every second one in each other run."""

Change = Callable[[Stream], object]


def signing(stream: Stream) -> None:
    """Rotate the signing key."""
    with stream.open() as repository:
        rotate_signing(repository, clock=stream.clock)


def naming(stream: Stream) -> None:
    """Rotate the naming key."""
    with stream.open() as repository:
        rotate_naming(repository, clock=stream.clock)


def recipient(stream: Stream) -> None:
    """Add a recipient; once is enough."""
    key = stream.base / "recipient"
    if not key.exists():
        public = primitives.recipient_of(primitives.random_key())
        key.write_text(encode_key("recipient", public))
    with stream.open() as repository:
        add_recipient(repository, str(key), clock=stream.clock)


def revocation(stream: Stream) -> None:
    """Admit the registry that revokes the first signer behind manifest 1."""
    with stream.open() as repository:
        admit_registry(repository, (stream.base / "signed").read_bytes(), clock=stream.clock)


def begun(folder: Path) -> Stream:
    """Make a stream with two manifests, and a signed revocation behind the first."""
    stream = Stream(folder)
    fill(stream.root, {"notes": b"first", "more": os.urandom(40_000)})
    stream.snapshot()
    fill(stream.root, {"notes": b"second"})
    stream.snapshot()
    with stream.open() as repository:
        signer = next(repository.state.iter_runs()).signer.hex()
        out = bytes(folder / "draft")
        request = DraftRequest(out=out, revoke=f"{signer}@1")
        draft_registry(repository, request, clock=stream.clock)
    owner = load_owner(stream.places.keys + b"/owner.key")
    text = sign_registry((folder / "draft").read_bytes(), owner).text
    assert text is not None
    (folder / "signed").write_bytes(text)
    return stream


def secrets(stream: Stream) -> set[bytes]:
    """Return every key that lies in the keys folder, under whatever name."""
    folder = Path(os.fsdecode(stream.places.keys))
    return {
        path.read_bytes()
        for path in folder.iterdir()
        if path.suffix in {".key", ".next"} and path.name.startswith(("naming", "signing"))
    }


def check_whole(stream: Stream) -> None:
    """Check that the stream opens and that nothing in it is amiss."""
    with stream.open() as repository:
        request = VerifyRequest(level=Level.DATA)
        found = verify(repository, request, clock=stream.clock, progress=SilentProgress())
        repository.check_signer()
    assert found.problems == ()
    assert found.ok


@pytest.mark.slow
@pytest.mark.parametrize("change", [signing, naming, recipient, revocation])
def test_a_change_of_keys_killed_at_any_event_goes_on(tmp_path: Path, change: Change) -> None:
    """Power that fails between two renames must not leave a stream that nobody can sign for."""
    event, deaths = 1, 0
    while True:
        stream = begun(tmp_path / str(event))
        before = secrets(stream)
        if not killed(stream, event, change):
            break
        deaths += 1
        assert before <= secrets(stream)
        check_whole(stream)
        if event % (2 * _STEP) < _STEP:
            _again(stream, change)
        fill(stream.root, {"notes": b"third"})
        result = stream.snapshot()
        assert result.status == "ok"
        statements = stream.statements()
        assert list(statements) == list(range(1, (result.sequence or 0) + 1))
        assert not any(one.state_lost for one in statements.values())
        assert before <= secrets(stream)
        check_whole(stream)
        stream.check_restores()
        event += _STEP
    assert deaths >= 5


def _again(stream: Stream, change: Change) -> None:
    """Give the same command once more; it may say that all is done already."""
    try:
        change(stream)
    except ConfigurationError as error:
        assert error.code in {"config.epoch", "config.recipients"}


def test_a_new_signer_killed_at_any_event_leaves_a_stream_as_it_was(tmp_path: Path) -> None:
    """A key that was half made counts for nothing, and is in nobody's way."""
    stream = begun(tmp_path)
    event = 1

    def make(stream: Stream) -> None:
        out = bytes(stream.base / f"signer-{event}")
        with stream.open() as repository:
            new_signer(repository, Role.MANIFEST, out=out, clock=stream.clock)

    while killed(stream, event, make):
        check_whole(stream)
        event += 1

    assert event > 4
    assert stream.snapshot().status == "ok"
    stream.check_restores()
