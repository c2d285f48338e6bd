"""Verify names every damaged object and every file that suffers, and believes nothing local."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from durarepo.core.errors import FreshnessError, KeyMaterialError
from durarepo.core.names import ChunkId, Digest, ObjectName, Sequence
from durarepo.core.progress import SilentProgress
from durarepo.local.checked import CheckedPacks
from durarepo.local.statefiles import HighWater, LivePins, StateFiles
from durarepo.operations.verify import Level, Verified, VerifyRequest, verify
from durarepo.repository import inspection, openpack
from durarepo.repository.problems import ProblemKind
from durarepo.repository.repository import open_repository
from durarepo.repository.standing import pinned_manifest, run_record
from tests.adversary.scene import NOW, ROOT, Scene, fill_catalog, verified
from tests.interop import miniwriter as mini

LARGE = (b"x" * 1000, 500, b"y" * 2000)
DAY = 86_400
Found = list[tuple[str, str, tuple[bytes, ...] | None]]


def look(
    scene: Scene,
    level: Level = Level.PACKS,
    *,
    percent: float | None = None,
    clock: Callable[[], int] = lambda: NOW,
) -> Verified:
    """Verify what lies on disk, as it lies there."""
    with open_repository(scene.places) as repository:
        request = VerifyRequest(level=level, percent=percent)
        return verify(repository, request, clock=clock, progress=SilentProgress())


def found(result: Verified) -> Found:
    """Return the problems in short."""
    return [(one.object, str(one.kind), one.affects) for one in result.problems]


def concerned(result: Verified) -> list[tuple[int, ...]]:
    """Return the manifests that each problem concerns."""
    return [one.manifests for one in result.problems]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Give a stream of two manifests, laid out."""
    scene = Scene(tmp_path)
    folder = mini.directory({b"b": mini.file(b"beta" * 100), b"big": mini.file(*LARGE, depth=1)})
    scene.snapshot({b"a": mini.file(b"alpha"), b"d": folder})
    scene.snapshot({b"a": mini.file(b"gamma"), b"d": folder})
    scene.lay_out()
    return scene


def slot(scene: Scene, number: int) -> str:
    """Return the name of a manifest's envelope."""
    key = mini.slot_key(scene.stream.naming[1])
    return mini.manifest_slot(key, 1, number)


def edit(scene: Scene, name: str, at: int) -> None:
    """Flip one bit of an object."""
    path = scene.object_path(name)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def pack_of(scene: Scene, kind: int, plain: bytes) -> tuple[str, int]:
    """Return the pack that holds a chunk, and the offset of its frame."""
    wanted = mini.chunk_id(scene.stream.naming[1], kind, plain)
    with open_repository(scene.places) as repository:
        for pin in verified(repository, scene.stream.head).statement.pins:
            pack = openpack.PackOpener(repository).open(pin)
            number = pack.number(ChunkId(wanted))
            if number is not None:
                return pin.name, pack.index.frames[pack.frame_of(number)].position
    raise LookupError


@pytest.mark.parametrize("level", list(Level))
def test_what_is_whole_is_found_whole_at_every_level(scene: Scene, level: Level) -> None:
    """The findings below are worth nothing if a good repository has some too."""
    result = look(scene, level)

    assert (result.ok, found(result), result.head, result.manifests) == (True, [], 2, 2)
    assert (result.chain, result.expired, result.unknown) == ("full", False, 0)
    assert result.packs == (0 if level is Level.CHAIN else 2)
    assert result.bytes == (0 if level is Level.CHAIN else 2 * 32768)


@pytest.mark.parametrize("level", [Level.PACKS, Level.DATA])
def test_a_flipped_bit_names_the_pack_and_the_one_file_in_that_frame(
    scene: Scene, level: Level
) -> None:
    """A person decides by the list of files whether to worry."""
    name, at = pack_of(scene, mini.DATA, b"beta" * 100)
    edit(scene, name, at)

    result = look(scene, level)

    assert found(result) == [(name, "corrupt", (ROOT + b"/d/b",))]
    assert not result.ok
    assert (concerned(result), result.newest_whole) == ([(1, 2)], False)


def test_a_pack_of_an_old_manifest_alone_leaves_the_newest_whole(scene: Scene) -> None:
    """Damage to last month's state must not look like the loss of today's."""
    first = min(pin.hex() for pin in scene.stream.pins)
    scene.stream.pins.clear()
    scene.snapshot({b"z": mini.file(b"all of it is new")})
    scene.lay_out()
    scene.object_path(first).unlink()

    result, chain = look(scene), look(scene, Level.CHAIN)

    assert [(one.object, one.kind) for one in result.problems] == [(first, "missing")]
    assert concerned(result)[0][-1] == 2
    assert (result.ok, result.newest_whole, chain.newest_whole) == (False, True, None)


def test_a_problem_of_an_envelope_names_its_own_manifest(scene: Scene) -> None:
    """A name of 64 digits tells nobody which snapshot it was."""
    edit(scene, slot(scene, 2), 200)
    broken = look(scene)
    scene.lay_out()
    scene.object_path(slot(scene, 1)).unlink()
    gone = look(scene)

    assert (concerned(broken), broken.newest_whole) == ([(2,)], False)
    assert (concerned(gone), gone.newest_whole) == ([(1,)], True)


@pytest.mark.parametrize("level", [Level.PACKS, Level.DATA])
def test_a_large_file_is_named_by_any_of_its_chunks(scene: Scene, level: Level) -> None:
    """A file is lost with its last chunk as with its first."""
    name, at = pack_of(scene, mini.DATA, b"y" * 2000)
    edit(scene, name, at)

    assert found(look(scene, level)) == [(name, "corrupt", (ROOT + b"/d/big",))]


def test_a_damaged_listing_names_its_folder(tmp_path: Path) -> None:
    """Nobody can say what was in it, so all below its path is affected."""
    scene = Scene(tmp_path)
    trees = lambda chunks: [  # noqa: E731  # one frame a chunk
        mini.Frame([one]) for one in chunks.new.values()
    ]
    folder = mini.directory({b"b": mini.file(b"beta")})
    roots = {ROOT: mini.directory({b"a": mini.file(b"alpha"), b"d": folder})}
    chunks = scene.stream.chunks()
    nested = scene.stream.nested_map(roots, chunks)
    listing = mini.encode([0, [chunks.entry(folder.children[b"b"], b"b")]])
    scene.stream.store(chunks, frames=trees)
    scene.stream.commit_nested(nested, counts=mini.totals(roots))
    scene.lay_out()
    name, at = pack_of(scene, mini.TREE, listing)
    edit(scene, name, at)

    assert found(look(scene)) == [(name, "corrupt", (ROOT + b"/d",))]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda path: path.unlink(), "missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "short"),
        (lambda path: path.write_bytes(b""), "short"),
        (lambda path: path.write_bytes(path.read_bytes() + b"\0"), "corrupt"),
        (lambda path: path.write_bytes(bytes(path.stat().st_size)), "corrupt"),
    ],
)
def test_each_kind_of_damage_to_a_pack_has_its_word(
    scene: Scene, change: Callable[[Path], object], kind: str
) -> None:
    """A missing pack is fetched again, a corrupt one is set aside first."""
    name, _ = pack_of(scene, mini.DATA, b"gamma")
    change(scene.object_path(name))

    ((object_, word, affects),) = found(look(scene))

    assert (object_, word) == (name, kind)
    assert affects == (ROOT,)  # the root's listing lay in the same pack


def test_one_damaged_pack_hides_no_other_and_nothing_is_changed(scene: Scene) -> None:
    """Whoever mends the first finding would otherwise meet the next one only later."""
    first, _ = pack_of(scene, mini.DATA, b"gamma")
    second, at = pack_of(scene, mini.DATA, b"beta" * 100)
    scene.object_path(first).unlink()
    edit(scene, second, at)
    edit(scene, slot(scene, 1), 9000)
    note = scene.folder / "state" / "notes" / "verified.json"
    before = {p: p.read_bytes() for p in scene.folder.rglob("*") if p.is_file()}

    result = look(scene)

    assert {(name, kind) for name, kind, _ in found(result)} == {
        (first, "missing"),
        (second, "corrupt"),
        (slot(scene, 1), "corrupt"),
    }
    after = {p: p.read_bytes() for p in scene.folder.rglob("*") if p.is_file()}
    assert after.pop(note)  # that it failed is noted in the state, and nothing else is
    assert before == after


def test_a_catalogue_changes_no_answer_whether_whole_or_damaged(scene: Scene) -> None:
    """A catalogue that says all is well is no evidence, and verify repairs none."""
    with open_repository(scene.places) as repository:
        fill_catalog(repository, verified(repository, 2))
    name, at = pack_of(scene, mini.DATA, b"beta" * 100)
    edit(scene, name, at)
    catalog = scene.folder / "repository" / "catalog.db"

    whole = look(scene, Level.DATA)
    catalog.write_bytes(b"no database at all" * 100)
    damaged = look(scene, Level.DATA)
    left = catalog.read_bytes()
    catalog.unlink()

    assert whole == damaged == look(scene, Level.DATA)
    assert found(whole) == [(name, "corrupt", (ROOT + b"/d/b",))]
    assert left.startswith(b"no database")


def test_a_missing_manifest_is_a_gap_and_a_forged_one_unsigned(scene: Scene) -> None:
    """Numbers are given without gaps; a hole is a manifest that somebody took away."""
    scene.snapshot({b"a": mini.file(b"delta")})
    scene.lay_out()
    scene.object_path(slot(scene, 2)).unlink()

    gap = look(scene, Level.CHAIN)
    scene.stream.commit_nested({}, edits={"ed25519": bytes(64)})
    scene.lay_out()
    unsigned = look(scene, Level.CHAIN)

    assert found(gap) == [(slot(scene, 2), "gap", (ROOT,))]
    assert found(unsigned) == [(slot(scene, 4), "unsigned", (ROOT,))]


def test_other_signers_and_broken_links_have_words_of_their_own(scene: Scene) -> None:
    """Exit code 21 says that somebody did this, 20 that a disk did."""
    stranger = mini.Signer(scene.stream.secret("stranger", 64))
    statement = scene.stream.statement()
    scene.stream.commit({**statement, 0: {**statement[0], 4: stranger.id}}, signer=stranger)
    statement = scene.stream.statement()
    scene.stream.commit(statement)
    scene.stream.commit({**statement, 1: {**statement[1], 0: 5, 1: bytes(32)}})
    scene.lay_out()

    assert found(look(scene, Level.CHAIN)) == [
        (slot(scene, 3), "unknown-signer", (ROOT,)),
        (slot(scene, 5), "fork", (ROOT,)),
    ]


def test_two_manifests_of_one_number_are_a_fork(scene: Scene) -> None:
    """Two machines that share the keys must be seen (ingest 4.23)."""
    statement = scene.stream.statement(sequence=2)
    scene.stream.commit(statement, attempt=1)
    scene.lay_out()

    ((_, kind, _),) = found(look(scene, Level.CHAIN))

    assert kind == "fork"


def state_of(scene: Scene, *numbers: int) -> StateFiles:
    """Note manifests as the machine that made them would have."""
    state = StateFiles(scene.places.state)
    with open_repository(scene.places) as repository:
        for number in numbers:
            one = verified(repository, number)
            name = ObjectName(slot(scene, number))
            state.append_run(run_record(one.statement, name=name, digest=one.digest))
            pinned = pinned_manifest(one.statement, name=name, digest=one.digest)
            state.replace_live_pins(LivePins(head=pinned, complete=pinned))
            state.raise_high_water(
                HighWater(
                    epoch=1,
                    sequence=Sequence(number),
                    head_digest=one.digest,
                    registry_version=1,
                    clock_seconds=0,
                )
            )
    return state


@pytest.mark.parametrize("has_identity", [True, False])
def test_a_head_that_was_seen_and_is_gone_is_a_rollback(
    scene: Scene, *, has_identity: bool
) -> None:
    """An old copy put back in place of the repository looks whole in itself."""
    state_of(scene, 1, 2)
    scene.object_path(slot(scene, 2)).unlink()
    if not has_identity:
        (scene.folder / "keys" / "identity.key").unlink()

    result = look(scene, Level.CHAIN)

    assert found(result) == [(slot(scene, 2), "rollback", (ROOT,) if has_identity else None)]
    assert result.head == 1


def test_another_manifest_than_the_one_that_was_noted_is_a_fork(scene: Scene) -> None:
    """The machine that made number 1 knows its digest, with an identity or without."""
    state = state_of(scene, 1, 2)
    runs = state.runs() or []
    lines = (scene.folder / "state" / "notes" / "runs.jsonl").read_bytes()
    assert lines.count(b"\n") == len(runs) == 2
    (scene.folder / "state" / "notes" / "runs.jsonl").unlink()
    for run in runs:
        digest = Digest(bytes(32)) if run.sequence == 1 else run.digest
        state.append_run(replace(run, digest=digest))

    with_identity = found(look(scene, Level.CHAIN))
    (scene.folder / "keys" / "identity.key").unlink()

    assert with_identity == [(slot(scene, 1), "fork", (ROOT,))]
    assert found(look(scene, Level.CHAIN)) == [(slot(scene, 1), "fork", None)]


def test_a_put_only_machine_checks_what_its_state_knows(scene: Scene) -> None:
    """No identity is there on purpose; damage has to be seen all the same."""
    state_of(scene, 1, 2)
    (scene.folder / "keys" / "identity.key").unlink()

    whole = look(scene)
    name, at = pack_in(scene)
    edit(scene, name, at)
    damaged = look(scene)

    assert (whole.ok, whole.chain, whole.packs, whole.manifests) == (True, "local", 2, 2)
    assert found(damaged) == [(name, "corrupt", None)]
    assert whole.newest_whole
    assert not damaged.newest_whole
    assert concerned(damaged)[0][-1] == 2


def pack_in(scene: Scene) -> tuple[str, int]:
    """Return a pack of the stream and an offset within its frames."""
    return min(pin.hex() for pin in scene.stream.pins), 65 + 4 * 1168 + 3


def test_a_put_only_machine_without_state_does_not_claim_to_have_checked(scene: Scene) -> None:
    """Nobody told it what should be there; "ok" would be a lie."""
    (scene.folder / "keys" / "identity.key").unlink()
    quiet = look(scene)
    name, at = pack_in(scene)
    edit(scene, name, at)

    assert (quiet.ok, found(quiet), quiet.manifests) == (False, [], 2)
    assert found(look(scene)) == [(name, "corrupt", None)]


def test_data_are_not_verified_without_an_identity(scene: Scene) -> None:
    """Chunks cannot be looked at; exit code 12 says where to run it."""
    (scene.folder / "keys" / "identity.key").unlink()

    with pytest.raises(KeyMaterialError) as caught:
        look(scene, Level.DATA)

    assert caught.value.code == "keys.identity-absent"


def calls_of(monkeypatch: pytest.MonkeyPatch, function: str) -> list[str]:
    """Note each call of a function by the module that inspects packs."""
    calls: list[str] = []
    real = getattr(inspection, function)

    def noted(*given: object) -> object:
        calls.append(function)
        return real(*given)

    monkeypatch.setattr(inspection, function, noted)
    return calls


def test_an_expired_head_is_a_problem_of_the_data_level_alone(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of an expired manifest is decrypted, so its data were not verified (A6j)."""
    opened = calls_of(monkeypatch, "open_frame")
    late = NOW + 2 * DAY

    packs = look(scene, clock=lambda: late)
    data = look(scene, Level.DATA, clock=lambda: late)

    assert (packs.ok, packs.expired) == (True, True)
    assert found(data) == [(slot(scene, 2), "expired", (ROOT,))]
    assert (packs.newest_whole, data.newest_whole) == (True, None)
    assert opened == []
    assert look(scene, Level.DATA).ok
    assert opened != []


def test_digests_of_expired_packs_are_compared_all_the_same(scene: Scene) -> None:
    """Archives are old by nature; damage to them counts."""
    name, at = pack_of(scene, mini.DATA, b"beta" * 100)
    edit(scene, name, at)

    kinds = found(look(scene, Level.DATA, clock=lambda: NOW + 2 * DAY))

    assert (name, "corrupt", (ROOT + b"/d/b",)) in kinds


def test_a_clock_that_runs_back_or_an_expired_registry_ends_the_run(scene: Scene) -> None:
    """Freshness cannot be judged with a wrong clock; that is an error, no finding."""
    times = iter([NOW, NOW - 5])

    with pytest.raises(FreshnessError) as back:
        look(scene, Level.DATA, clock=lambda: next(times))
    with pytest.raises(FreshnessError) as expired:
        look(scene, clock=lambda: NOW + 401 * DAY)

    assert back.value.code == "fresh.clock"
    assert expired.value.code == "fresh.registry-expired"


@pytest.mark.parametrize(
    ("edits", "level"),
    [
        ({"ids": lambda ids: [ids[1], ids[0], *ids[2:]]}, Level.DATA),
        ({"plains": lambda plains: [plains[0][::-1], *plains[1:]]}, Level.DATA),
        ({"ciphers": lambda ciphers: [bytes(len(ciphers[0])), *ciphers[1:]]}, Level.DATA),
    ],
)
def test_a_signed_pack_that_does_not_hold_what_it_says_is_corrupt(
    tmp_path: Path, edits: mini.Edits, level: Level
) -> None:
    """Digests agree, and only decrypting shows that the content is another one."""
    scene = Scene(tmp_path)
    children = {b"a": mini.file(b"alpha"), b"b": mini.file(b"gamma")}
    scene.stream.snapshot({ROOT: mini.directory(children)}, pack_edits=edits)
    scene.lay_out()

    ((name, kind, affects),) = found(look(scene, level))

    assert look(scene, Level.PACKS).ok
    assert (name, kind) == (min(pin.hex() for pin in scene.stream.pins), "corrupt")
    assert affects is not None
    assert ROOT + b"/a" in affects


def test_a_large_file_in_a_pack_that_does_not_open_is_laid_to_the_pack(tmp_path: Path) -> None:
    """Its chunks are read by way of the file; the pack has to be named all the same."""
    scene = Scene(tmp_path)
    scene.stream.snapshot(
        {ROOT: mini.directory({b"big": mini.file(b"x" * 100, b"y" * 100)})},
        pack_edits={"plains": lambda plains: [plains[0], b"z" * 100, *plains[2:]]},
    )
    scene.lay_out()

    name = min(pin.hex() for pin in scene.stream.pins)
    assert found(look(scene, Level.DATA)) == [(name, "corrupt", (ROOT + b"/big",))]


@pytest.mark.parametrize("depth", [0, 1])
def test_a_file_whose_sum_is_another_one_is_found_by_its_path(tmp_path: Path, depth: int) -> None:
    """Every chunk may be right and in the wrong order (ingest 7.7)."""
    scene = Scene(tmp_path)
    wrong = mini.file(b"x" * 100, b"y" * 100, depth=depth, sha256=bytes(32))
    scene.snapshot({b"a": mini.file(b"alpha"), b"big": wrong})
    scene.lay_out()

    kinds = found(look(scene, Level.DATA))

    assert (slot(scene, 1), "corrupt") in {(name, kind) for name, kind, _ in kinds}
    assert look(scene).ok


def test_a_component_that_is_not_the_listed_files_is_found(tmp_path: Path) -> None:
    """The set hash is what an auditor compares (ingest 7.8)."""
    scene = Scene(tmp_path)
    roots = {ROOT: mini.directory({b"a": mini.file(b"alpha")})}
    chunks = scene.stream.chunks()
    nested = scene.stream.nested_map(roots, chunks)
    nested[1] = [mini.component("files", b"files", bytes(32))]
    nested[2] = mini.component_index(nested[1])
    scene.stream.store(chunks)
    scene.stream.commit_nested(nested, counts=mini.totals(roots))
    scene.lay_out()

    assert found(look(scene, Level.DATA)) == [(slot(scene, 1), "corrupt", (ROOT,))]


def test_a_chunk_that_no_pack_has_is_missing_from_the_manifest(tmp_path: Path) -> None:
    """No pack is damaged, and still the file cannot come back."""
    scene = Scene(tmp_path)
    chunks = scene.stream.chunks()
    roots = {ROOT: mini.directory({b"a": mini.file(b"alpha"), b"b": mini.file(b"gamma")})}
    nested = scene.stream.nested_map(roots, chunks)
    del chunks.new[mini.chunk_id(chunks.naming, mini.DATA, b"gamma")]
    scene.stream.store(chunks)
    scene.stream.commit_nested(nested, counts=mini.totals(roots))
    scene.lay_out()

    assert found(look(scene, Level.DATA)) == [(slot(scene, 1), "missing", (ROOT + b"/b",))]


def test_a_folder_that_is_listed_twice_is_named_at_both_paths(tmp_path: Path) -> None:
    """Equal folders are stored once; damage reaches every place of them."""
    scene = Scene(tmp_path)
    twin = mini.directory({b"b": mini.file(b"beta")})
    scene.snapshot({b"a": mini.file(b"alpha"), b"one": twin, b"two": twin})
    scene.lay_out()
    name, at = pack_of(scene, mini.DATA, b"beta")
    edit(scene, name, at)

    assert found(look(scene)) == [(name, "corrupt", (ROOT + b"/one/b", ROOT + b"/two"))]


def test_packs_of_manifests_that_are_not_live_may_be_gone(tmp_path: Path) -> None:
    """Retention takes them; a deleted pack of a live manifest is damage."""
    scene = Scene(tmp_path)
    scene.stream.registry[3][0][5] = [1, 0, 0]
    scene.stream.publish()
    for number in range(6):
        scene.stream.issued += 2 * DAY
        scene.stream.pins.clear()
        scene.stream.stored[1].clear()
        scene.snapshot({b"a": mini.file(b"content %d" % number)})
    scene.lay_out()
    now = scene.stream.issued + 60

    with open_repository(scene.places) as repository:
        packs = {n: verified(repository, n, now=now).statement.pins[0].name for n in (2, 5)}
    scene.object_path(packs[2]).unlink()
    scene.object_path(slot(scene, 2)).unlink()
    pruned = look(scene, clock=lambda: now)
    scene.object_path(packs[5]).unlink()

    assert pruned.ok
    assert found(look(scene, clock=lambda: now)) == [(packs[5], "missing", (ROOT,))]


def test_a_bad_pack_that_a_repair_replaces_is_no_problem(tmp_path: Path) -> None:
    """The bad pack stays where it is for ever; verify must become green again."""
    scene = Scene(tmp_path)
    stream = scene.stream
    roots = {ROOT: mini.directory({b"a": mini.file(b"alpha")})}
    chunks = stream.chunks()
    nested = stream.nested_map(roots, chunks)
    bad = stream.store(chunks)
    assert bad is not None
    stream.commit_nested(nested, counts=mini.totals(roots))
    again = mini.Chunks(chunks.naming)
    again.new = chunks.new
    good = stream.store(again)
    assert good is not None
    sealed = mini.seal_nested(
        stream.nested_map(roots, stream.chunks()),
        scope=stream.scope(), sequence=2, previous=stream.digest(1),
    )  # fmt: skip
    statement = stream.statement(counts=mini.totals(roots), nested=sealed)
    stream.commit({**statement, 12: [[bad.name, [good.name]]]})
    scene.lay_out()

    edit(scene, bad.name.hex(), 6000)
    repaired = [look(scene, level) for level in (Level.PACKS, Level.DATA)]
    scene.object_path(good.name.hex()).unlink()

    assert [one.ok for one in repaired] == [True, True]
    assert (good.name.hex(), "missing", (ROOT,)) in found(look(scene))


def test_objects_of_others_are_counted_and_are_no_problem(scene: Scene) -> None:
    """Several streams may share a store."""
    other = Scene(scene.folder, stream=mini.Repository(seed=b"other"))
    other.snapshot({b"a": mini.file(b"alpha")})
    other.stream.write(scene.folder / "repository" / "objects")

    result = look(scene)

    assert (result.ok, result.unknown) == (True, 3)


def test_a_damaged_or_missing_registry_is_named(scene: Scene) -> None:
    """Old packs are opened by what an old registry says."""
    scene.stream.publish()
    scene.stream.publish()
    scene.lay_out()
    first = mini.registry_slot(scene.stream.locator, 1)
    second = mini.registry_slot(scene.stream.locator, 2)
    edit(scene, first, 200)
    scene.object_path(second).unlink()
    StateFiles(scene.places.state).raise_high_water(
        HighWater(
            epoch=1,
            sequence=Sequence(0),
            head_digest=Digest(bytes(32)),
            registry_version=3,
            clock_seconds=0,
        )
    )

    assert found(look(scene)) == [(first, "corrupt", ()), (second, "missing", ())]


def test_shares_of_the_data_go_round_until_all_was_checked(tmp_path: Path) -> None:
    """A small share each day has to reach every pack in the end (A1c)."""
    scene = Scene(tmp_path)
    for number in range(4):
        scene.snapshot({b"%d" % n: mini.file(b"content %d" % n) for n in range(number + 1)})
    scene.lay_out()
    state = CheckedPacks(scene.places.state)
    seen: list[int] = []

    for day in range(4):
        assert look(scene, Level.DATA, percent=25, clock=lambda day=day: NOW + day).ok  # type: ignore[misc]
        seen.append(len(state.times()))
    first = min(state.times(), key=lambda name: state.times()[name])
    look(scene, Level.DATA, percent=1, clock=lambda: NOW + 9)

    assert seen == [1, 2, 3, 4]
    assert state.times()[first] == NOW + 9
    (scene.folder / "state" / "notes" / "checked.json").write_bytes(b"[1, 2")
    assert state.times() == {}


def test_only_the_chosen_share_is_decrypted_and_the_rest_still_hashed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A share is cheap; damage that shows without keys is found in every run."""
    opened = calls_of(monkeypatch, "open_pack_key")

    assert look(scene, Level.DATA, percent=50).ok
    share = len(opened)
    for name in [pin.hex() for pin in scene.stream.pins]:
        edit(scene, name, 5000)

    assert share == 1
    assert len(found(look(scene, Level.DATA, percent=1))) == 2
    with pytest.raises(ValueError, match="percentage"):
        look(scene, Level.DATA, percent=0)


def test_the_kinds_are_the_words_that_scripts_know() -> None:
    """A renamed kind breaks whoever reads the JSON."""
    assert [str(kind) for kind in ProblemKind] == [
        "missing", "short", "corrupt", "gap",
        "unsigned", "unknown-signer", "fork", "rollback", "expired",
    ]  # fmt: skip
