"""Registries drafted here, signed by the owner elsewhere, admitted here; and what is refused."""

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from durarepo.core.errors import (
    ConfigurationError,
    DurarepoError,
    FreshnessError,
    KeyMaterialError,
    RunError,
    TrustError,
)
from durarepo.core.progress import SilentProgress
from durarepo.core.secret import Secret
from durarepo.crypto import primitives
from durarepo.format.document import REGISTRY_TYPE, parse_document
from durarepo.format.keytext import (
    RegistryDraft,
    encode_draft,
    encode_signed,
    parse_draft,
    parse_key,
    parse_signer,
)
from durarepo.format.registry import (
    Registry,
    Role,
    Signer,
    encode_registry,
    parse_registry,
)
from durarepo.local.audit import AuditLog
from durarepo.local.keyring import load_owner
from durarepo.local.places import Places
from durarepo.operations.checkout import CheckoutRequest, checkout
from durarepo.operations.registry import (
    DraftRequest,
    admit_registry,
    draft_registry,
    sign_registry,
)
from durarepo.operations.rotation import new_signer, rotate_naming, rotate_signing
from durarepo.operations.snapshot import SnapshotRequest, SnapshotResult, snapshot
from durarepo.repository.admission import Outcome, holding
from durarepo.repository.repository import Repository, open_repository
from durarepo.sealing import sign_document, signer_id
from tests.machines.stream import Stream, fill, seen

DAY = 86_400


@dataclass
class Office:
    """A stream whose owner sits elsewhere: the owner's key is nowhere near the repository."""

    base: Path
    put_only: bool = True
    stream: Stream = field(init=False)
    drafts: int = field(default=0, init=False)
    now: int = field(default=0, init=False)
    began: int = field(default_factory=lambda: int(time.time()) + 20, init=False)

    def __post_init__(self) -> None:
        """Make the stream and one manifest."""
        self.stream = Stream(self.base, put_only=self.put_only)
        self.stream.clock = self.clock
        fill(self.stream.root, {"notes": b"first", "more": os.urandom(50_000)})
        self.stream.snapshot()

    def clock(self) -> int:
        """Give the time at which it began, moved on by ``now`` seconds."""
        return self.began + self.now

    @property
    def owner(self) -> Secret:
        """The owner's key, where the owner has it."""
        return Secret(parse_key("owner", (self.base / "away" / "owner.key").read_bytes()))

    def draft(self, **request: object) -> bytes:
        """Draft on the computer, and return what is in the file."""
        self.drafts += 1
        out = self.base / f"draft-{self.drafts}"
        with self.stream.open() as repository:
            draft_registry(
                repository,
                DraftRequest(out=bytes(out), **request),  # type: ignore[arg-type]  # any field
                clock=self.clock,
            )
        return out.read_bytes()

    def signed(self, draft: bytes) -> bytes:
        """Sign a draft as the owner does."""
        text = sign_registry(draft, self.owner).text
        assert text is not None
        return text

    def admit(self, text: bytes) -> Outcome:
        """Admit on the computer."""
        with self.stream.open() as repository:
            return admit_registry(repository, text, clock=self.clock)

    def changed(self, change: Callable[[Registry], Registry], draft: bytes | None = None) -> bytes:
        """Return a registry that the owner has signed although it says what it must not."""
        given = parse_draft(draft or self.draft())
        statement = encode_registry(change(parse_registry(given.statement)))
        document = sign_document(REGISTRY_TYPE, statement, self.owner.reveal())
        return encode_signed(document)


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """Return a stream whose owner sits elsewhere."""
    return Office(tmp_path)


def version(stream: Stream) -> int:
    """Return the version of the registry in force."""
    with stream.open() as repository:
        return repository.registry.registry.version


def test_a_draft_without_a_change_renews(office: Office) -> None:
    """A registry that cannot be renewed ends the stream after 400 days."""
    office.now = 100 * DAY
    before = office.stream.open().registry.registry

    outcome = office.admit(office.signed(office.draft()))

    after = office.stream.open().registry.registry
    assert (outcome.version, after.version, outcome.epoch) == (2, 2, 1)
    assert after.expires == office.clock() + 400 * DAY
    assert after.streams == before.streams
    assert office.stream.snapshot().distrust is None


def test_what_an_owner_is_shown_is_what_changes(office: Office) -> None:
    """An owner who signs blindly could as well leave the key on the computer."""
    with office.stream.open() as repository:
        path = office.base / "rotation"
        rotate_signing(repository, clock=office.clock, out=bytes(path))

    looked = sign_registry(path.read_bytes(), None)

    assert looked.text is None
    assert any("epoch 2 begins with manifest 2" in line for line in looked.changes)
    assert sum("comes in" in line for line in looked.changes) == 1
    assert sum("goes out" in line for line in looked.changes) == 1


def test_without_the_owner_s_key_a_rotation_is_drafted_and_nothing_changes(office: Office) -> None:
    """A computer that could rotate without its owner could hand the stream to anybody."""
    with office.stream.open() as repository:
        outcome = rotate_naming(repository, clock=office.clock)

    assert outcome.draft is not None
    assert version(office.stream) == 1
    assert office.stream.snapshot().new_bytes == 0


def test_a_rotation_that_the_owner_signed_elsewhere_comes_into_force(office: Office) -> None:
    """The key that waited gets its name only now."""
    with office.stream.open() as repository:
        outcome = rotate_naming(repository, clock=office.clock)
    assert outcome.draft is not None

    office.admit(office.signed(Path(os.fsdecode(outcome.draft)).read_bytes()))

    assert office.stream.snapshot().new_bytes > 50_000
    office.stream.check_restores()


def test_a_draft_that_the_chain_has_left_behind_is_refused(office: Office) -> None:
    """Else the manifests made since would lie in no epoch, and be lost."""
    with office.stream.open() as repository:
        outcome = rotate_signing(repository, clock=office.clock)
    assert outcome.draft is not None
    text = office.signed(Path(os.fsdecode(outcome.draft)).read_bytes())
    office.stream.snapshot()

    with pytest.raises(ConfigurationError) as refusal:
        office.admit(text)

    assert refusal.value.code == "config.draft-stale"
    assert version(office.stream) == 1
    office.stream.check_restores()


def test_another_owner_s_registry_is_refused(office: Office) -> None:
    """Whoever can write a file on the computer would own the stream."""
    draft = parse_draft(office.draft())
    thief = primitives.random_key() + primitives.random_key()
    registry = parse_registry(draft.statement)
    own = encode_registry(replace(registry, owner=primitives.signer_public(thief)))

    for statement in (draft.statement, own):
        forged = encode_signed(sign_document(REGISTRY_TYPE, statement, thief))
        with pytest.raises(TrustError) as refusal:
            office.admit(forged)
        assert refusal.value.code in {"trust.signature", "trust.owner"}

    assert version(office.stream) == 1


def test_an_owner_does_not_sign_a_draft_of_another_owner_s_stream(office: Office) -> None:
    """A signature under somebody else's registry says what its owner never meant."""
    other = Secret(primitives.random_key() + primitives.random_key())

    with pytest.raises(TrustError) as refusal:
        sign_registry(office.draft(), other)

    assert refusal.value.code == "trust.owner"


def test_a_draft_whose_base_nobody_signed_is_not_signed(office: Office) -> None:
    """What an owner is shown is a difference: a made-up base would hide any change."""
    given = parse_draft(office.draft())
    base = parse_document(given.before)
    thief = primitives.random_key() + primitives.random_key()
    forged = sign_document(REGISTRY_TYPE, base.statement, thief)

    with pytest.raises(TrustError) as refusal:
        sign_registry(
            encode_draft(RegistryDraft(statement=given.statement, before=forged)), office.owner
        )

    assert refusal.value.code == "trust.signature"


def _resealed(registry: Registry) -> Registry:
    epoch = registry.streams[0].current
    other = replace(epoch, naming_key=bytes(len(epoch.naming_key)))
    return _record(registry, epochs=(other,))


def _reordered(registry: Registry) -> Registry:
    epoch = registry.streams[0].current
    other = bytes(len(epoch.naming_key))
    turned = replace(epoch, data_recipients=epoch.data_recipients[::-1], naming_key=other)
    return _record(registry, epochs=(turned,))


def _without_escrow(registry: Registry) -> Registry:
    epoch = registry.streams[0].current
    twice = replace(epoch, data_recipients=epoch.data_recipients[:1] * 2)
    return _record(registry, epochs=(twice,))


def _twice(registry: Registry) -> Registry:
    epoch = registry.streams[0].current
    data = (*epoch.data_recipients, epoch.data_recipients[0])
    return _record(registry, epochs=(replace(epoch, data_recipients=data),))


def _without_signer(registry: Registry) -> Registry:
    epoch = registry.streams[0].current
    signers = tuple(replace(one, roles=Role.EVIDENCE) for one in epoch.signers)
    return _record(registry, epochs=(replace(epoch, signers=signers),))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda one: replace(one, version=one.version + 1), "trust.registry-version"),
        (lambda one: replace(one, version=one.version - 1), "trust.registry-version"),
        (lambda one: _record(one, never_publish=True), "trust.registry-change"),
        (lambda one: _record(one, compartment="other"), "trust.registry-change"),
        (lambda one: _record(one, stream="other"), "trust.registry-change"),
        (lambda one: _epoch(one, data_recipients=1), "config.recipients"),
        (_resealed, "trust.registry-change"),
        (_reordered, "trust.registry-change"),
        (_without_escrow, "config.recipients"),
        (_twice, "config.recipients"),
        (_without_signer, "trust.registry-change"),
        (lambda one: replace(one, issued=one.issued + 3600), "fresh.ahead"),
    ],
)
def test_what_is_fixed_cannot_be_changed_even_by_the_owner(
    office: Office, change: Callable[[Registry], Registry], code: str
) -> None:
    """A slip of the owner must not make what is stored unreadable."""
    text = office.changed(change)

    with pytest.raises(DurarepoError) as refusal:
        office.admit(text)

    assert refusal.value.code == code
    assert version(office.stream) == 1


def _record(registry: Registry, **fields: object) -> Registry:
    return replace(registry, streams=(replace(registry.streams[0], **fields),))  # type: ignore[arg-type]


def _epoch(registry: Registry, *, data_recipients: int) -> Registry:
    epoch = registry.streams[0].current
    kept = replace(epoch, data_recipients=epoch.data_recipients[:data_recipients])
    return _record(registry, epochs=(kept,))


def test_a_registry_that_is_in_force_may_be_admitted_again(office: Office) -> None:
    """A run that was killed just behind the commit point is run again."""
    text = office.signed(office.draft())

    first, second = office.admit(text), office.admit(text)

    assert (first.version, second.version) == (2, 2)
    assert second.changes == ()


def test_an_older_registry_is_refused_once_a_newer_one_was_seen(office: Office) -> None:
    """A store that is put back to yesterday would bring back who has been revoked since."""
    known = {path.name for path in office.stream.object_files()}
    office.admit(office.signed(office.draft()))
    (new,) = [path for path in office.stream.object_files() if path.name not in known]
    new.unlink()

    with pytest.raises(TrustError) as refusal:
        office.stream.open()

    assert refusal.value.code == "trust.registry-version"


def test_admission_is_told_in_the_audit_log(office: Office) -> None:
    """Who asks later why a key counted finds when it came."""
    office.admit(office.signed(office.draft()))

    log = Path(os.fsdecode(office.stream.places.state)) / "audit.jsonl"
    assert '"kind":"registry-admit"' in log.read_text()
    AuditLog(bytes(log)).check()


def test_nobody_admits_while_a_run_holds_the_lock(office: Office) -> None:
    """A run that began under one registry must not end under another."""
    text = office.signed(office.draft())
    with office.stream.open() as repository, holding(repository, office.clock):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                office.admit(text)
            except RunError as error:
                code = 0 if error.code == "run.locked" else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert version(office.stream) == 1


def test_a_run_that_was_open_before_follows_the_registry_admitted_meanwhile(
    tmp_path: Path,
) -> None:
    """Its manifest would lie in an epoch that has ended."""
    stream = Stream(tmp_path)
    fill(stream.root, {"notes": b"first"})
    stream.snapshot()
    with stream.open() as early:
        with stream.open() as repository:
            rotate_signing(repository, clock=stream.clock)

        result = snapshot(early, SnapshotRequest(), clock=stream.clock, progress=SilentProgress())

    assert result.sequence == 2
    assert stream.statements()[2].epoch == 2
    stream.check_restores()


def test_under_an_expired_registry_writing_goes_on_until_it_is_renewed(tmp_path: Path) -> None:
    """The owner's holiday must neither stop the backup nor pass unseen (format 11)."""
    office = Office(tmp_path, put_only=False)
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "owner.key").write_bytes(
        Path(os.fsdecode(office.stream.places.keys), "owner.key").read_bytes()
    )
    office.now = 401 * DAY
    late = office.stream.snapshot()

    assert late.sequence == 2
    assert late.distrust is not None
    assert late.distrust.code == "fresh.registry-expired"
    with office.stream.open() as repository, pytest.raises(FreshnessError) as refusal:
        checkout(
            repository,
            CheckoutRequest(at="latest", destination=bytes(tmp_path / "out")),
            clock=office.clock,
        )
    assert refusal.value.code == "fresh.registry-expired"

    office.admit(office.signed(office.draft()))

    assert office.stream.snapshot().distrust is None
    with office.stream.open() as repository:
        out = CheckoutRequest(at="latest", destination=bytes(tmp_path / "out"))
        checkout(repository, out, clock=office.clock)
    assert seen(bytes(tmp_path / "out") + office.stream.roots[0]) == seen(bytes(office.stream.root))


# --- a chain that another computer goes on with


def _moved(office: Office, base: Path) -> Places:
    """Copy the repository to another computer, which has no signing key and no state."""
    places, there = (
        office.stream.places,
        replace(
            office.stream.places,
            repository=bytes(base / "repository"),
            keys=bytes(base / "keys"),
            state=bytes(base / "state"),
        ),
    )
    shutil.copytree(os.fsdecode(places.repository), base / "repository")
    shutil.copytree(os.fsdecode(places.keys), base / "keys")
    (base / "keys" / "signing.key").unlink()
    return there


def _snapshot(repository: Repository, office: Office) -> SnapshotResult:
    return snapshot(repository, SnapshotRequest(), clock=office.clock, progress=SilentProgress())


@pytest.mark.parametrize("with_identity", [True, False])
def test_another_computer_goes_on_with_the_chain(tmp_path: Path, *, with_identity: bool) -> None:
    """The day the old machine is dead: a copy of the repository, a new key, the owner by file."""
    office = Office(tmp_path / "old")
    places = _moved(office, tmp_path)
    if with_identity:
        shutil.copy(tmp_path / "old" / "away" / "identity.key", tmp_path / "keys")
    with open_repository(places) as repository:
        with pytest.raises(KeyMaterialError) as refusal:
            _snapshot(repository, office)
        assert refusal.value.code == "keys.signing-absent"
        new_signer(
            repository, Role.MANIFEST, out=bytes(tmp_path / "new.signer"), clock=office.clock
        )
        role, public = parse_signer((tmp_path / "new.signer").read_bytes())
        assert role == "manifest"
        draft_registry(
            repository,
            DraftRequest(out=bytes(tmp_path / "draft"), signer=(public, Role.MANIFEST)),
            clock=office.clock,
        )
    text = office.signed((tmp_path / "draft").read_bytes())

    with open_repository(places) as repository:
        outcome = admit_registry(repository, text, clock=office.clock)
    with open_repository(places) as repository:
        result = _snapshot(repository, office)
        statement = repository.record.current

    assert (outcome.epoch, result.sequence, statement.first_sequence) == (2, 2, 2)
    assert (result.new_bytes == 0) is with_identity
    shutil.copytree(tmp_path / "repository" / "objects", tmp_path / "old" / "all")
    office.stream.restored = 50
    shutil.rmtree(office.stream.objects)
    shutil.copytree(tmp_path / "repository" / "objects", office.stream.objects)
    office.stream.check_restores()
    with pytest.raises(KeyMaterialError) as refusal:
        office.stream.snapshot()  # the old machine comes back from the dead
    assert refusal.value.code in {"keys.signing-refused", "keys.naming-absent"}


def test_a_signer_of_evidence_signs_no_manifest(tmp_path: Path) -> None:
    """A dead-man's host that could write manifests would be a second writer."""
    office = Office(tmp_path / "old")
    places = _moved(office, tmp_path)
    with open_repository(places) as repository:
        public = new_signer(
            repository, Role.EVIDENCE, out=bytes(tmp_path / "signer"), clock=office.clock
        )
    office.admit(office.signed(office.draft(signer=(public, Role.EVIDENCE))))
    office.stream.snapshot()
    shutil.rmtree(tmp_path / "repository" / "objects")
    shutil.copytree(office.stream.objects, tmp_path / "repository" / "objects")

    with open_repository(places) as repository, pytest.raises(KeyMaterialError) as refusal:
        _snapshot(repository, office)

    assert refusal.value.code == "keys.signing-absent"
    assert len(office.stream.open().record.epochs) == 1


@pytest.mark.parametrize("is_last", [True, False])
def test_a_key_that_waits_for_evidence_never_becomes_the_signing_key(
    tmp_path: Path, *, is_last: bool
) -> None:
    """Else the stream is wedged: nothing can be signed, and nothing can be rotated."""
    stream = Stream(tmp_path)
    fill(stream.root, {"notes": b"first"})
    stream.snapshot()
    with stream.open() as repository:
        out = bytes(tmp_path / "evidence.signer")
        public = new_signer(repository, Role.EVIDENCE, out=out, clock=stream.clock)
    owner = load_owner(stream.places.keys + b"/owner.key")
    with stream.open() as repository:
        request = DraftRequest(out=bytes(tmp_path / "draft"), signer=(public, Role.EVIDENCE))
        draft_registry(repository, request, clock=stream.clock)
    text = sign_registry((tmp_path / "draft").read_bytes(), owner).text
    assert text is not None
    with stream.open() as repository:
        admit_registry(repository, text, clock=stream.clock)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("durarepo.local.keyring._names", _sorted_names(public, is_last=is_last))
        with stream.open() as repository:
            rotate_signing(repository, clock=stream.clock)

    assert stream.snapshot().sequence == 2
    with stream.open() as repository:
        held = primitives.signer_public(repository.keys.need_signing().reveal())
        assert held in repository.record.current.manifest_signers
        assert held != public
    assert primitives.signer_public(stream.key("signing", "signing.key")) == held


def _sorted_names(public: bytes, *, is_last: bool) -> Callable[[bytes], list[bytes]]:
    """List a folder with the key that waits for evidence at one end."""
    short = signer_id(public).hex()[:16].encode()

    def names(folder: bytes) -> list[bytes]:
        return sorted(os.listdir(folder), key=lambda one: (short in one) == is_last)

    return names


def test_a_signer_of_evidence_may_take_the_chain_over_and_keeps_both_roles(office: Office) -> None:
    """A draft that names a signer twice is refused only where the owner is."""
    with office.stream.open() as repository:
        out = bytes(office.base / "signer")
        public = new_signer(repository, Role.EVIDENCE, out=out, clock=office.clock)
    office.admit(office.signed(office.draft(signer=(public, Role.EVIDENCE))))

    office.admit(office.signed(office.draft(signer=(public, Role.MANIFEST))))

    with office.stream.open() as repository:
        (signer,) = repository.record.current.signers
    assert signer == Signer(public=public, roles=Role.MANIFEST | Role.EVIDENCE)
    assert office.stream.snapshot().sequence == 2
