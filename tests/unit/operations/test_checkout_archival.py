"""An archival checkout asks a human for each thing set aside, and sets aside nothing else."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from durarepo.core.errors import DurarepoError, PolicyRefusedError
from durarepo.core.names import Digest
from durarepo.core.names import Sequence as SequenceNumber
from durarepo.local.statefiles import HighWater, StateFiles
from durarepo.operations.archival import SetAside, checkout_archival
from durarepo.operations.checkout import CheckedOut, CheckoutRequest
from durarepo.repository import openpack
from tests.adversary.scene import NOW, ROOT, Scene
from tests.interop import miniwriter as mini

LATER = NOW + 30 * 86400
REGISTRY_EXPIRES = 1_800_000_000 + 34_560_000


class Human:
    """Agrees to everything, or refuses; remembers what was asked."""

    def __init__(self, *, agrees: bool = True, meanwhile: Callable[[], None] | None = None) -> None:
        self.agrees = agrees
        self.meanwhile = meanwhile
        self.asked: list[SetAside] = []

    def __call__(self, lines: Sequence[SetAside], /) -> None:
        self.asked = list(lines)
        if not self.agrees:
            raise PolicyRefusedError("no-human", "nobody is there")
        if self.meanwhile is not None:
            self.meanwhile()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Give a stream with two manifests."""
    scene = Scene(tmp_path)
    scene.snapshot({b"a": mini.file(b"first")})
    scene.snapshot({b"a": mini.file(b"other")})
    return scene


def restore(
    scene: Scene, human: Human, *, clock: Callable[[], int] = lambda: LATER, at: str = "1"
) -> CheckedOut:
    """Restore into ``out`` beside the repository."""
    request = CheckoutRequest(at=at, destination=bytes(scene.folder / "out"))
    with scene.open() as repository:
        return checkout_archival(repository, request, human, clock=clock)


def audit_lines(scene: Scene) -> list[dict[str, object]]:
    """Return the lines of the audit log."""
    path = scene.folder / "state" / "notes" / "audit.jsonl"
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def seen(scene: Scene, sequence: int, *, clock: int = 0) -> None:
    """Let the state say that a manifest has been seen."""
    scene.lay_out()
    digest = scene.stream.digest(sequence) if sequence in scene.stream.envelopes else bytes(32)
    StateFiles(scene.places.state).raise_high_water(
        HighWater(
            epoch=1,
            sequence=SequenceNumber(sequence),
            head_digest=Digest(digest),
            registry_version=1,
            clock_seconds=clock,
        )
    )


def test_an_expired_manifest_comes_back_after_the_phrase(scene: Scene) -> None:
    """The phrase holds the day of issue, so that nobody restores last year by habit."""
    human = Human()

    done = restore(scene, human)

    assert [line.answer for line in human.asked] == ["notes 2027-01-15"]
    root = scene.folder / "out" / ROOT.decode().lstrip("/")
    assert (root / "a").read_bytes() == b"first"
    assert done.held
    assert (scene.folder / "out" / ".durarepo" / "held.json").exists()


def test_nothing_happens_while_nobody_agrees(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking after the fact is not asking (A6i)."""
    frames: list[object] = []
    monkeypatch.setattr(openpack, "open_frame", lambda *given: frames.append(given))

    with pytest.raises(PolicyRefusedError):
        restore(scene, Human(agrees=False))

    assert frames == []
    assert audit_lines(scene) == []
    assert sorted(os.listdir(scene.folder)) == ["keys", "repository", "state"]


def test_one_warning_stands_in_the_audit_log_before_the_first_frame(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore that fails half-way has still shown old data to somebody (A6j)."""

    def fail(*_given: object) -> None:
        lines.extend(audit_lines(scene))
        raise KeyboardInterrupt

    lines: list[dict[str, object]] = []
    monkeypatch.setattr(openpack, "open_frame", fail)

    with pytest.raises(KeyboardInterrupt):
        restore(scene, Human())

    (line,) = lines
    assert line["kind"] == "archival-checkout"
    facts = line["facts"]
    assert isinstance(facts, dict)
    assert facts["level"] == "warning"
    assert facts["sequence"] == 1
    assert facts["set_aside"] == "age"


def test_an_expired_registry_is_a_question_of_its_own(scene: Scene) -> None:
    """Without a registry in force revocations may be missing; that is worth a line."""
    human = Human()

    restore(scene, human, clock=lambda: REGISTRY_EXPIRES)

    assert [line.check for line in human.asked] == ["age", "registry-expired"]
    assert human.asked[1].answer == "notes registry 1"


@pytest.mark.parametrize("now", [1_799_000_000, NOW - 1])
def test_a_clock_that_is_behind_is_a_question_of_its_own(scene: Scene, now: int) -> None:
    """On a machine with a dead clock battery one must still get at the data."""
    seen(scene, 2, clock=NOW)
    human = Human()

    restore(scene, human, clock=lambda: now)

    assert [line.check for line in human.asked] == ["age", "clock"]


def test_a_revoked_signer_is_a_question_of_its_own(scene: Scene) -> None:
    """A stolen key may have signed it; the human decides knowing that."""
    scene.stream.revoke(1, 0)
    scene.stream.publish()
    human = Human()

    restore(scene, human)

    assert [line.check for line in human.asked] == ["age", "revoked"]


def test_a_head_below_the_one_seen_is_a_question_of_its_own(scene: Scene) -> None:
    """When newer objects are lost for good the older ones must not be lost with them."""
    seen(scene, 3)
    human = Human()

    restore(scene, human, at="2")

    assert [line.check for line in human.asked] == ["age", "rollback"]


def _forged(scene: Scene) -> None:
    scene.stream.snapshot(
        {ROOT: mini.directory({})},
        edits={"mldsa": lambda one: bytes([one[0] ^ 1]) + one[1:]},
    )


def _unlinked(scene: Scene) -> None:
    def break_link(statement: dict[int, mini.Value]) -> dict[int, mini.Value]:
        return {**statement, 1: {**statement[1], 1: bytes(32)}}

    scene.stream.snapshot({ROOT: mini.directory({})}, edits={"statement": break_link})


def _foreign(scene: Scene) -> None:
    stranger = mini.Signer(scene.stream.secret("stranger", 64))
    scene.stream.signers[1] = stranger
    scene.stream.snapshot({ROOT: mini.directory({})})


def _floor(scene: Scene) -> None:
    scene.stream.registry[3][0][4] = 2
    scene.stream.publish()


def _frame(scene: Scene) -> None:
    for pin in scene.stream.pins:
        data = bytearray(scene.stream.objects[pin.hex()])
        data[65 + 4 * 1168] ^= 1
        scene.stream.objects[pin.hex()] = bytes(data)


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (_forged, "trust.signature"),
        (_unlinked, "trust.link"),
        (_foreign, "trust.unknown-signer"),
        (_floor, "trust.floor"),
        (_frame, "integrity.frame-digest"),
    ],
)
def test_no_signature_link_floor_or_digest_is_ever_set_aside(
    scene: Scene, damage: Callable[[Scene], None], code: str
) -> None:
    """A human cannot judge whether bytes are right; only arithmetic can."""
    damage(scene)

    with pytest.raises(DurarepoError) as caught:
        restore(scene, Human())

    assert caught.value.code == code
    assert not (scene.folder / "out").exists()


def test_another_manifest_at_the_number_seen_is_never_set_aside(scene: Scene) -> None:
    """Two manifests of one number mean that somebody else holds the keys."""
    scene.lay_out()
    seen(scene, 2)
    for name in list(scene.stream.objects):
        if scene.stream.objects[name] == scene.stream.envelopes[2]:
            del scene.stream.objects[name]
            scene.object_path(name).unlink()
    del scene.stream.envelopes[2]
    scene.snapshot({b"b": mini.file(b"fork")})

    with pytest.raises(DurarepoError) as caught:
        restore(scene, Human())

    assert caught.value.code == "trust.fork"


# --- what was not set aside is asked again (6.1 and 7.9) ---


def _revoke(scene: Scene) -> None:
    scene.stream.revoke(1, 0)
    scene.stream.publish()
    scene.lay_out()


def _raise_floor(scene: Scene) -> None:
    _floor(scene)
    scene.lay_out()


@pytest.mark.parametrize(
    ("change", "code"), [(_revoke, "fresh.revoked"), (_raise_floor, "trust.floor")]
)
def test_what_the_owner_says_while_the_human_thinks_still_counts(
    scene: Scene, change: Callable[[Scene], None], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The human was shown none of it; a theft is told in just such a moment."""
    frames: list[object] = []
    monkeypatch.setattr(openpack, "open_frame", lambda *given: frames.append(given))

    with pytest.raises(DurarepoError) as caught:
        restore(scene, Human(meanwhile=lambda: change(scene)))

    assert caught.value.code == code
    assert frames == []
    assert not (scene.folder / "out").exists()


@pytest.mark.parametrize(
    ("moments", "code"),
    [
        ((REGISTRY_EXPIRES - 1, REGISTRY_EXPIRES), "fresh.registry-expired"),
        ((REGISTRY_EXPIRES - 1, REGISTRY_EXPIRES - 1, REGISTRY_EXPIRES), "fresh.registry-expired"),
        ((LATER, LATER - 1), "fresh.clock"),
        ((LATER, LATER, LATER - 1), "fresh.clock"),
    ],
)
def test_the_time_is_asked_before_the_first_frame_and_before_the_end(
    scene: Scene, moments: tuple[int, ...], code: str
) -> None:
    """A yes to an old manifest is no yes to an expired registry or a clock that runs back."""
    left = list(moments)

    with pytest.raises(DurarepoError) as caught:
        restore(scene, Human(), clock=lambda: left.pop(0) if len(left) > 1 else left[0])

    assert caught.value.code == code
    assert not (scene.folder / "out").exists()


def test_only_what_was_set_aside_by_name_is_not_asked_again(scene: Scene) -> None:
    """All five at once, a clock that runs back, and a newer registry that says nothing new."""
    seen(scene, 3, clock=NOW + 100)
    scene.stream.registry[1] = {0: NOW + 5 - 34_560_000, 1: NOW + 5}
    _revoke(scene)

    def renew() -> None:
        scene.stream.publish()
        scene.lay_out()

    human = Human(meanwhile=renew)
    left = [NOW + 8, NOW + 7, NOW + 6]

    restore(scene, human, clock=lambda: left.pop(0) if len(left) > 1 else left[0])

    asked = [line.check for line in human.asked]
    assert asked == ["age", "registry-expired", "clock", "revoked", "rollback"]
    assert (scene.folder / "out").exists()
