"""Runs that rewrite packs: the repository gets smaller, and nothing is ever lost by it."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from durarepo.core.limits import SIZE_CLASSES
from durarepo.core.progress import SilentProgress
from durarepo.crypto import primitives
from durarepo.format.document import REGISTRY_TYPE
from durarepo.format.layout import Seal
from durarepo.format.registry import encode_registry
from durarepo.operations.verify import Level, VerifyRequest, verify
from durarepo.repository.contents import FileKeeper
from durarepo.repository.repository import registry_slot
from durarepo.repository.rewriting import recipients_share
from durarepo.sealing import seal_box, seal_registry, sign_document
from tests.doubles.children import UNPRIVILEGED, let_others_pass, run_in_child
from tests.interop import minireader
from tests.machines.opens import opened_files
from tests.machines.stream import Stream, fill, omissions, seen
from tests.unit.operations.test_snapshot_budget import Stopwatch

FILES, LEFT = 60, 20


def dying(tmp_path: Path, *, put_only: bool = False) -> Stream:
    """Return a stream of two manifests; of what the first one stored, a third still lives."""
    stream = Stream(tmp_path, put_only=put_only)
    fill(stream.root, {f"d{n % 3}/f{n:02}": os.urandom(20_000) for n in range(FILES)})
    stream.snapshot()
    for n in range(LEFT, FILES):
        (stream.root / f"d{n % 3}/f{n:02}").unlink()
    stream.snapshot()
    return stream


def pinned(stream: Stream, sequence: int) -> set[str]:
    """Return the names of the packs that a manifest pins."""
    return {str(pin.name) for pin in stream.statements()[sequence].pins}


def check_whole(stream: Stream) -> None:
    """Check that the head restores, and that all data verifies."""
    stream.check_restores()
    with stream.open() as repository:
        request = VerifyRequest(level=Level.DATA)
        told = verify(repository, request, clock=stream.clock, progress=SilentProgress())
    assert (told.ok, list(told.problems)) == (True, [])


@pytest.mark.parametrize("put_only", [False, True], ids=["all-keys", "put-only"])
def test_a_pack_that_mostly_died_is_no_longer_pinned(tmp_path: Path, *, put_only: bool) -> None:
    """Without it a repository keeps for ever whatever shares a pack with something that lives."""
    stream = dying(tmp_path, put_only=put_only)
    before = {path.name: path.read_bytes() for path in stream.object_files()}

    result = stream.snapshot()

    assert (result.status, result.files) == ("ok", LEFT)
    assert LEFT * 20_000 <= result.new_bytes < LEFT * 20_000 + 20_000
    assert {
        path.name: path.read_bytes() for path in stream.object_files()
    }.items() >= before.items()
    stream.check_restores()
    if not put_only:
        assert not pinned(stream, 1) & pinned(stream, 3)
        check_whole(stream)
    again = stream.snapshot()
    assert (again.new_chunks, again.packs) == (0, 0)


def test_a_manifest_from_before_a_rewriting_restores_as_ever(tmp_path: Path) -> None:
    """Older manifests live on in the packs that they pin; retention alone ends that."""
    stream = Stream(tmp_path)
    fill(stream.root, {f"d{n % 3}/f{n:02}": os.urandom(20_000) for n in range(FILES)})
    stream.snapshot()
    first = seen(bytes(stream.root))
    for n in range(LEFT, FILES):
        (stream.root / f"d{n % 3}/f{n:02}").unlink()
    for _ in range(3):
        stream.snapshot()

    assert seen(bytes(stream.restored_root(1))) == first


def test_an_unchanged_run_weighs_and_rewrites_nothing(tmp_path: Path) -> None:
    """A night on which nothing happened has to cost nothing."""
    stream = Stream(tmp_path)
    fill(stream.root, {f"d{n % 3}/f{n:02}": os.urandom(20_000) for n in range(FILES)})
    stream.snapshot()

    for _ in range(3):
        with opened_files(bytes(stream.root)) as opens:
            result = stream.snapshot()
        assert (opens, result.new_chunks, result.packs) == ([], 0, 0)


def test_many_small_packs_become_few(tmp_path: Path) -> None:
    """A small pack or two each night would make every manifest longer than the one before."""
    stream = Stream(tmp_path)
    counts = []
    for n in range(40):
        fill(stream.root, {f"d{n % 3}/f{n}": os.urandom(4000)})
        stream.snapshot()
        with stream.open() as repository:
            live = repository.state.live_pins()
        assert live is not None
        counts.append(len(live.head.pins))

    assert max(counts) <= 32
    assert counts[-1] < max(counts)
    check_whole(stream)


def test_an_unchanged_file_that_cannot_be_read_again_keeps_its_entry_and_packs(
    tmp_path: Path,
) -> None:
    """Rewriting reads what no one asked it to read; that must never cost what is stored."""
    stream = Stream(tmp_path)
    fill(stream.root, {f"d{n % 3}/f{n:02}": os.urandom(20_000) for n in range(FILES)})
    (stream.root / "d0/f00").chmod(0o600)
    stream.snapshot()
    for n in range(LEFT, FILES):
        (stream.root / f"d{n % 3}/f{n:02}").unlink()
    stream.snapshot()
    _give(stream.base / stream.name, to=UNPRIVILEGED)
    let_others_pass(tmp_path)

    def rewrite() -> None:
        result = stream.snapshot()
        assert (result.status, result.files) == ("omissions", LEFT)
        path = bytes(stream.root / "d0/f00")
        assert [(one.path, one.rule) for one in omissions(result)] == [(path, "source.unreadable")]

    run_in_child(rewrite, user=UNPRIVILEGED)

    _give(stream.base / stream.name, to=0)
    stream.check_restores()
    assert pinned(stream, 1) & pinned(stream, 3)
    assert stream.snapshot().status == "ok"
    check_whole(stream)


def _give(folder: Path, *, to: int) -> None:
    for place, folders, files in os.walk(folder):
        for name in (".", *folders, *files):
            os.chown(Path(place) / name, to, to, follow_symlinks=False)


@pytest.mark.parametrize("files", [0, 1, 7, 19])
def test_a_partial_manifest_made_while_rewriting_holds_all_and_is_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    """What was not reached stays in the old packs, and what was rewritten is not lost again."""
    stream = dying(tmp_path)

    with monkeypatch.context() as patch:
        Stopwatch(patch, files=files)
        partial = stream.snapshot(budget_seconds=10, partial=True)

    assert (partial.status, partial.sequence) == ("budget", 3)
    assert pinned(stream, 1) & pinned(stream, 3)
    stream.check_restores(3)
    again = stream.snapshot()
    assert (again.status, again.sequence) == ("ok", 4)
    assert again.new_bytes < (LEFT - files) * 20_000 + 20_000
    assert not pinned(stream, 1) & pinned(stream, 4)
    check_whole(stream)


def test_what_a_partial_manifest_stored_is_not_taken_for_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalogue knows only the last complete manifest; the next run goes on from the head."""
    stream = Stream(tmp_path)
    fill(stream.root, {f"a/{n:02}": os.urandom(20_000) for n in range(FILES)})
    stream.snapshot()
    stream.snapshot()
    fill(stream.root, {f"b/{n:02}": os.urandom(20_000) for n in range(FILES)})
    with monkeypatch.context() as patch:
        Stopwatch(patch, files=FILES - 1)
        partial = stream.snapshot(budget_seconds=10, partial=True)

    again = stream.snapshot()

    assert (partial.status, again.status) == ("budget", "ok")
    assert again.new_bytes < 2 * 20_000
    check_whole(stream)


def test_a_run_that_has_spent_half_its_time_rewrites_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rewriting can wait for another night; today's files cannot."""
    stream = dying(tmp_path)
    keep, left = FileKeeper.keep, [5]

    def counting(keeper: FileKeeper, *given: object, **named: object) -> object:
        left[0] -= 1
        return keep(keeper, *given, **named)  # type: ignore[arg-type]  # as given

    with monkeypatch.context() as patch:
        patch.setattr(FileKeeper, "keep", counting)
        patch.setattr(time, "monotonic", lambda: 6.0 if left[0] <= 0 else 0.0)
        result = stream.snapshot(budget_seconds=10)

    assert (result.status, result.files) == ("ok", LEFT)
    assert left[0] > 5 - LEFT
    assert pinned(stream, 1) & pinned(stream, 3)
    check_whole(stream)


def test_after_enough_runs_a_new_recipient_alone_restores_the_head(tmp_path: Path) -> None:
    """A retired recipient opens what is pinned until the last old pack is sealed anew."""
    stream = Stream(tmp_path)
    fill(stream.root, {f"d{n % 3}/f{n:02}": os.urandom(20_000) for n in range(FILES)})
    fill(stream.root, {"large": os.urandom(5_000_000)})
    for _ in range(2):
        stream.snapshot()
    fresh = primitives.random_key()
    _register(stream, primitives.recipient_of(fresh))
    shares = [_share(stream)]

    while shares[-1] < 1.0 and len(shares) < 5:
        assert stream.snapshot().status == "ok"
        shares.append(_share(stream))

    assert (shares[0], shares[-1]) == (0.0, 1.0)
    held = stream.held()
    vars(held).update(identities=[fresh], anchor=_anchor(stream, 2))
    target = tmp_path / "fresh"
    minireader.restore(stream.objects, target, held, stream.clock(), archival=True)
    assert seen(bytes(target / str(stream.root).lstrip("/"))) == seen(bytes(stream.root))
    assert not pinned(stream, 2) & pinned(stream, max(stream.statements()))


def _anchor(stream: Stream, sequence: int) -> tuple[int, bytes]:
    """Return what an escrow card says of a manifest: earlier ones cannot be opened any more."""
    with stream.open() as repository:
        runs = repository.state.runs() or []
    return sequence, next(run.digest for run in runs if run.sequence == sequence)


def _share(stream: Stream) -> float:
    with stream.open() as repository:
        found = recipients_share(repository)
    assert found is not None
    return found


def _register(stream: Stream, recipient: bytes) -> None:
    """Put the next registry, in which ``recipient`` stands in the place of the last one."""
    with stream.open() as repository:
        before, record = repository.registry.registry, repository.record
        epoch = record.current
        recipients = (*epoch.data_recipients[:-1], recipient)
        box = seal_box(
            repository.keys.naming.reveal(),
            recipients,
            kind=Seal.NAMING_KEY,
            place=repository.place(epoch.number),
            count=epoch.stanza_count,
        )
        epoch = replace(epoch, data_recipients=recipients, naming_key=box)
        after = replace(
            before,
            version=before.version + 1,
            streams=(replace(record, epochs=(*record.epochs[:-1], epoch)),),
        )
        owner = stream.key("owner", "owner.key")
        document = sign_document(REGISTRY_TYPE, encode_registry(after), owner)
        locator = repository.keys.locator
        data = seal_registry(locator.reveal(), document, size=SIZE_CLASSES[0])
        repository.store.put_new(registry_slot(locator, after.version, 0), data)


@pytest.mark.parametrize(
    "lose",
    [lambda stream: stream.lose(catalog=True), lambda stream: stream.lose(journal=True)],
    ids=["catalogue", "journal"],
)
def test_rewriting_goes_on_after_local_files_were_lost(
    tmp_path: Path, lose: Callable[[Stream], None]
) -> None:
    """What may be deleted at any time may be deleted between two nights of rewriting."""
    stream = dying(tmp_path)
    lose(stream)

    for _ in range(3):
        assert stream.snapshot().status == "ok"

    assert not pinned(stream, 1) & pinned(stream, 5)
    check_whole(stream)
