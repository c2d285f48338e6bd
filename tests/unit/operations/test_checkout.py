"""A checkout restores what was kept, into a new folder, at the right time, or nothing at all."""

import errno
import json
import os
import signal
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from durarepo import sealing
from durarepo.core.entries import Entry
from durarepo.core.errors import (
    ConfigurationError,
    DurarepoError,
    FreshnessError,
    IntegrityError,
    KeyMaterialError,
    PolicyRefusedError,
    SelectionError,
    StoreError,
    TrustError,
)
from durarepo.core.names import Digest, Sequence
from durarepo.local.lock import RunLock
from durarepo.local.statefiles import HighWater, StateFiles
from durarepo.local.work import WorkFolder
from durarepo.operations.checkout import CheckedOut, CheckoutRequest, checkout
from durarepo.repository import chain as chain_module
from durarepo.repository import openpack
from durarepo.repository.repository import Repository, open_repository
from tests.adversary.scene import NOW, ROOT, Scene, fill_catalog, verified
from tests.interop import miniwriter as mini

DAY = 86400
EXPIRES = 1_800_000_001 + DAY
"""When manifest 1 of a scene expires."""


def at(moment: int) -> Callable[[], int]:
    """Give a clock that stands still."""
    return lambda: moment


def ticking(*moments: int) -> Callable[[], int]:
    """Give a clock that says each moment once, then the last one for ever."""
    left = list(moments)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Give a stream with one manifest that holds one of everything."""
    scene = Scene(tmp_path)
    scene.snapshot(
        {
            b"small": mini.file(b"small", mode=0o600, modified=[1_600_000_000, 123_456_789]),
            b"empty": mini.file(),
            b"large": mini.file(b"a" * 70_000, 1_000_000, b"b" * 9, depth=2),
            b"tool": mini.file(b"#!/bin/sh\n", mode=0o4755),
            b"one": mini.file(b"linked", link=7),
            b"two": mini.file(b"linked", link=7),
            b"link": mini.symlink(b"/etc/passwd"),
            b"pipe": mini.special(mini.FIFO),
            b"folder": mini.directory(
                {b"inner": mini.file(b"inner"), b"\xff\n": mini.file(b"odd name")}, mode=0o700
            ),
        }
    )
    return scene


@pytest.fixture
def repository(scene: Scene) -> Iterator[Repository]:
    """Open the stream."""
    with scene.open() as repository:
        yield repository


def run(
    repository: Repository, *, clock: Callable[[], int] | None = None, **request: object
) -> CheckedOut:
    """Check out into ``out`` beside the repository, unless told otherwise."""
    base = os.path.dirname(repository.places.repository)
    wanted = {"destination": base + b"/out"} | request
    return checkout(repository, CheckoutRequest(**wanted), clock=clock or at(NOW))  # type: ignore[arg-type]  # tests name any field


def out(scene: Scene) -> Path:
    """Return where the restored root stands."""
    return scene.folder / "out" / ROOT.decode().lstrip("/")


def test_everything_comes_back_as_it_was(scene: Scene, repository: Repository) -> None:
    """The first promise of a backup: content, holes, links, names, modes and times (E18)."""
    done = run(repository)

    root = out(scene)
    assert (root / "small").read_bytes() == b"small"
    assert (root / "empty").read_bytes() == b""
    assert (root / "large").read_bytes() == b"a" * 70_000 + bytes(1_000_000) + b"b" * 9
    assert (root / "small").stat().st_mode & 0o7777 == 0o600
    assert (root / "small").stat().st_mtime_ns == 1_600_000_000_123_456_789
    assert (root / "one").stat().st_ino == (root / "two").stat().st_ino
    assert os.readlink(root / "link") == "/etc/passwd"
    assert stat.S_ISFIFO((root / "pipe").lstat().st_mode)
    assert sorted(os.listdir(bytes(root / "folder"))) == [b"inner", b"\xff\n"]
    assert (root / "folder").stat().st_mode & 0o7777 == 0o700
    assert (done.sequence, done.files, done.epoch) == (1, 10, 1)
    assert done.bytes == 5 + 1_070_009 + 10 + 6 + 5 + 8
    assert done.held
    assert done.requires_restart


def test_a_hole_of_more_than_one_read_comes_back_as_a_hole(tmp_path: Path) -> None:
    """Its zeros are in the hash of the file: those of all of it, and not one more."""
    scene = signed_with(tmp_path, mini.file(b"a", 2_500_000, b"b"))
    with scene.open() as repository:
        run(repository)

    found = out(scene) / "victim"
    assert found.read_bytes() == b"a" + bytes(2_500_000) + b"b"
    assert found.stat().st_blocks * 512 < 1_000_000


def test_setuid_is_dropped_and_the_loss_is_told(scene: Scene, repository: Repository) -> None:
    """A restored set-id program is a way to root for whoever can write the repository (E18)."""
    done = run(repository)

    assert (out(scene) / "tool").stat().st_mode & 0o7777 == 0o755
    assert done.not_restored["setuid"] == 1


def test_the_folder_is_held_and_says_where_it_is_from(scene: Scene, repository: Repository) -> None:
    """A launcher must not start a second copy of an agent from a restored folder (A6g)."""
    run(repository)

    markers = scene.folder / "out" / ".durarepo"
    held = json.loads((markers / "held.json").read_bytes())
    told = json.loads((markers / "provenance.json").read_bytes())
    assert (held["sequence"], held["since"]) == (1, "2027-01-15T08:01:40Z")
    assert told["role"] == "restored-copy"
    assert told["stream"] == "notes"
    assert told["sequence"] == 1
    assert told["manifest"] == scene.stream.digest(1).hex()
    assert told["signer"] == scene.stream.signers[1].id.hex()
    assert told["issued"] == "2027-01-15T08:00:01Z"
    assert told["never_publish"] is False
    assert (markers / "held.json").stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(scene.folder / "out")) == [".durarepo", "srv"]


def test_without_a_destination_it_lies_in_the_state_folder(
    scene: Scene, repository: Repository
) -> None:
    """The default must be one place that scripts can rely on."""
    done = run(repository, destination=None)

    assert done.destination == bytes(scene.folder) + b"/state/scratch/notes-1"
    assert os.path.isdir(done.destination)


def test_a_restore_leaves_nothing_but_the_result(scene: Scene, repository: Repository) -> None:
    """Staging folders that stay would fill the disk with copies of everything."""
    before = set(os.listdir(scene.folder))

    run(repository)

    assert set(os.listdir(scene.folder)) - before == {"out"}


# --- time (A6h) ---


@pytest.mark.parametrize("step", ["fsync", "work"])
def test_what_fails_after_the_folder_appeared_says_that_it_stands(
    repository: Repository, scene: Scene, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Who is told of a failure alone restores once more, or trusts nothing of what is there."""
    target, real, leave = scene.folder / "out", os.fsync, WorkFolder.__exit__

    def fsync(fd: int) -> None:
        if step == "fsync" and target.exists():
            raise OSError(errno.EIO, "input/output error")
        real(fd)

    def leaving(self: WorkFolder, *told: object) -> None:
        leave(self, *told)  # type: ignore[arg-type]  # passed on as they came
        if step == "work":
            raise StoreError("io", "cannot remove the work folder", hint="check the disk")

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(WorkFolder, "__exit__", leaving)
    with pytest.raises(StoreError) as failure:
        run(repository)

    assert failure.value.code == "store.io"
    assert repr(str(target)) in failure.value.message
    assert (target / ".durarepo" / "held.json").exists()


def test_an_expired_manifest_is_refused_with_the_archival_command(
    scene: Scene, repository: Repository
) -> None:
    """After 24 hours only a human may bring a state back."""
    with pytest.raises(FreshnessError) as caught:
        run(repository, clock=at(EXPIRES))

    assert caught.value.code == "fresh.expired"
    assert "checkout --archival --at 1" in caught.value.hint
    assert not (scene.folder / "out").exists()
    assert run(repository, clock=at(EXPIRES - 1)).sequence == 1


def test_an_expired_manifest_is_not_even_opened_for_its_paths(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expiry comes before the nested part: 4.28 before 4.30."""
    opened: list[object] = []
    monkeypatch.setattr(chain_module, "open_nested", lambda *given: opened.append(given))

    with pytest.raises(FreshnessError):
        run(repository, clock=at(EXPIRES))

    assert opened == []


def test_nothing_is_decrypted_once_the_manifest_has_expired_after_ingest(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is asked again right before the first frame (ingest 6.1)."""
    frames: list[object] = []
    monkeypatch.setattr(openpack, "open_frame", lambda *given: frames.append(given))

    with pytest.raises(FreshnessError) as caught:
        run(repository, clock=ticking(EXPIRES - 1, EXPIRES))

    assert caught.value.code == "fresh.expired"
    assert frames == []


def test_nothing_appears_once_the_manifest_has_expired_during_the_restore(
    scene: Scene, repository: Repository
) -> None:
    """A restore of hours must not end in a state that is not good any more (ingest 7.9)."""
    with pytest.raises(FreshnessError) as caught:
        run(repository, clock=ticking(EXPIRES - 1, EXPIRES - 1, EXPIRES))

    assert caught.value.code == "fresh.expired"
    assert sorted(os.listdir(scene.folder)) == ["keys", "repository", "state"]


@pytest.mark.parametrize("moments", [(NOW, NOW - 1), (NOW, NOW, NOW - 1)])
def test_a_clock_that_runs_backwards_stops_the_restore(
    scene: Scene, repository: Repository, moments: tuple[int, ...]
) -> None:
    """Turning the clock back while a restore runs would make an expired manifest good."""
    with pytest.raises(FreshnessError) as caught:
        run(repository, clock=ticking(*moments))

    assert caught.value.code == "fresh.clock"
    assert not (scene.folder / "out").exists()


def test_a_clock_behind_its_high_water_stops_the_restore(scene: Scene) -> None:
    """Time that was once confirmed cannot come again."""
    scene.lay_out()
    StateFiles(scene.places.state).raise_high_water(
        HighWater(
            epoch=1,
            sequence=Sequence(1),
            head_digest=Digest(scene.stream.digest(1)),
            registry_version=1,
            clock_seconds=NOW + 1,
        )
    )
    with scene.open() as repository, pytest.raises(FreshnessError) as caught:
        run(repository, clock=at(NOW))

    assert caught.value.code == "fresh.clock"


def test_a_manifest_from_the_future_is_refused(repository: Repository) -> None:
    """A clock that stands still for days would keep every manifest fresh."""
    with pytest.raises(FreshnessError) as caught:
        run(repository, clock=at(1_799_999_000))

    assert caught.value.code == "fresh.ahead"


@pytest.mark.parametrize(
    ("issued", "lasts", "code"),
    [(NOW - DAY, DAY, "fresh.registry-expired"), (NOW + 601, DAY, "fresh.ahead")],
)
def test_a_registry_out_of_its_time_stops_the_restore(
    scene: Scene, issued: int, lasts: int, code: str
) -> None:
    """Without a registry in force nobody knows who is trusted."""
    scene.stream.registry[1] = {0: issued, 1: issued + lasts}
    scene.stream.publish()
    with scene.open() as repository, pytest.raises(FreshnessError) as caught:
        run(repository, clock=at(NOW))

    assert caught.value.code == code


def test_a_signer_revoked_while_the_restore_runs_stops_it(scene: Scene) -> None:
    """The owner's revocation counts from the moment it is here (ingest 4.17 at 7.9)."""
    calls = 0

    def clock() -> int:
        nonlocal calls
        calls += 1
        if calls == 3:
            scene.stream.revoke(1, 0)
            scene.stream.publish()
            scene.stream.write(scene.folder / "repository" / "objects")
        return NOW

    with scene.open() as repository, pytest.raises(FreshnessError) as caught:
        run(repository, clock=clock)

    assert caught.value.code == "fresh.revoked"
    assert calls == 3
    assert not (scene.folder / "out").exists()


def test_a_registry_that_is_lost_while_the_restore_runs_stops_it(scene: Scene) -> None:
    """What cannot be asked any more is not taken for a yes."""
    with scene.open() as repository:
        name = mini.registry_slot(scene.stream.locator, 1)

        def clock() -> int:
            if calls:
                scene.object_path(name).unlink(missing_ok=True)
            calls.append(NOW)
            return NOW

        calls: list[int] = []
        with pytest.raises(TrustError) as caught:
            run(repository, clock=clock)

    assert caught.value.code == "trust.registry-version"


# --- selection ---


def test_sequences_and_dates_choose_the_right_manifest(scene: Scene) -> None:
    """A restore of the wrong day looks like success."""
    for number in range(2, 5):
        scene.snapshot({b"n": mini.file(b"%d" % number)})
    with scene.open() as repository:
        chosen = {
            text: run(repository, at=text, destination=bytes(scene.folder / f"o{number}")).sequence
            for number, text in enumerate(
                ["3", "latest", "latest~2", "2027-01-15T08:00:03Z", "2027-01-15"]
            )
        }

    assert chosen == {
        "3": 3,
        "latest": 4,
        "latest~2": 2,
        "2027-01-15T08:00:03Z": 3,
        "2027-01-15": 4,
    }


@pytest.mark.parametrize(
    "text", ["0", "5", "latest~1", "2027-01-14", "2027-13-01", "last", "", "-1", "1e3", "٣"]
)
def test_what_matches_no_manifest_is_an_error_and_makes_nothing(
    scene: Scene, repository: Repository, text: str
) -> None:
    """Exit 2, and no folder that a script could take for a result."""
    with pytest.raises(SelectionError):
        run(repository, at=text)

    assert not (scene.folder / "out").exists()


def test_a_path_brings_back_that_path_alone(scene: Scene, repository: Repository) -> None:
    """One file of a large state must not cost the whole of it."""
    done = run(repository, paths=(ROOT + b"/folder/inner", b"small"))

    root = out(scene)
    assert sorted(os.listdir(root)) == ["folder", "small"]
    assert os.listdir(root / "folder") == ["inner"]
    assert done.files == 2


def test_a_path_does_not_choose_a_name_that_only_begins_alike(
    scene: Scene, repository: Repository
) -> None:
    """`/srv/notes/o` is not above `/srv/notes/one`."""
    with pytest.raises(SelectionError) as caught:
        run(repository, paths=(ROOT + b"/o",))

    assert caught.value.code == "select.no-path"
    assert not (scene.folder / "out").exists()


@pytest.mark.parametrize("path", [b"/srv/notes/../x", b"", b"a//b", b"./small"])
def test_a_path_that_is_not_normal_is_refused(repository: Repository, path: bytes) -> None:
    """Two spellings of one path would be two answers."""
    with pytest.raises(SelectionError):
        run(repository, paths=(path,))


def test_a_folder_above_the_roots_chooses_them(scene: Scene, repository: Repository) -> None:
    """`/` means everything."""
    assert run(repository, paths=(b"/",)).files == 10
    assert (out(scene) / "small").exists()


def test_components_are_chosen_by_name(tmp_path: Path) -> None:
    """A database alone is what one usually needs at three in the morning."""
    scene = Scene(tmp_path)
    with_database(scene, integrity=mini.sha256(b"SQLite"))
    with scene.open() as repository:
        done = run(repository, components=(b"sqlite:/srv/notes/db",))
        with pytest.raises(SelectionError) as caught:
            run(repository, components=(b"sqlite:/srv/notes/none",))
        every = run(repository, components=(b"files",), destination=bytes(tmp_path / "every"))

    assert os.listdir(out(scene)) == ["db"]
    assert (done.files, every.files) == (1, 2)
    assert caught.value.code == "select.no-component"


def with_database(scene: Scene, *, integrity: bytes) -> None:
    """Make a manifest with a component of kind sqlite."""
    roots = {
        ROOT: mini.directory(
            {b"db": mini.file(b"SQLite", consistency=3), b"other": mini.file(b"o")}
        )
    }
    chunks = scene.stream.chunks()
    nested = scene.stream.nested_map(roots, chunks)
    nested[1].append(mini.component("sqlite", b"sqlite:/srv/notes/db", integrity))
    nested[2] = mini.component_index(nested[1])
    scene.stream.store(chunks)
    scene.stream.commit_nested(nested, counts=mini.totals(roots))


def test_a_dry_run_lists_and_makes_nothing(scene: Scene, repository: Repository) -> None:
    """One looks before a restore of a terabyte."""
    before = sorted(os.walk(scene.folder))
    seen: list[bytes] = []

    def listed(path: bytes, _entry: Entry) -> None:
        seen.append(path)

    done = checkout(repository, CheckoutRequest(dry_run=True), clock=at(NOW), listed=listed)

    assert done.files == 10
    assert done.bytes == 5 + 1_070_009 + 10 + 6 + 5 + 8
    assert not done.held
    assert ROOT + b"/folder/inner" in seen
    assert sorted(os.walk(scene.folder)) == before


# --- destination (A6g) ---


def test_a_destination_in_the_source_is_refused(scene: Scene) -> None:
    """A restore must never touch what it could overwrite."""
    root = scene.folder / "root"
    root.mkdir()
    with scene.open(roots=(bytes(root),)) as repository:
        for place in (root / "out", scene.folder / "repository" / "o", scene.folder / "keys" / "o"):
            with pytest.raises(PolicyRefusedError) as caught:
                run(repository, destination=bytes(place))
            assert caught.value.code == "policy.destination-protected"
            assert not place.exists()


def test_a_destination_among_other_streams_is_refused(scene: Scene) -> None:
    """A restored folder there could pass for keys, objects or marks of a stream."""
    scene.lay_out()
    (scene.folder / "keys").rename(scene.folder / "aside")
    (scene.folder / "keys").mkdir()
    (scene.folder / "aside").rename(scene.folder / "keys" / "notes")
    (scene.folder / "other").mkdir()
    (scene.folder / "other" / "stream.toml").touch()
    for name in ("other", "scratch"):
        (scene.folder / "state" / name).mkdir()
        (scene.folder / "state" / name / "high-water.json").touch()
    places = replace(scene.places, keys=bytes(scene.folder / "keys" / "notes"))

    with open_repository(places) as repository:
        for name in ("keys/other", "other/o", "other/objects", "state/other/o"):
            with pytest.raises(PolicyRefusedError) as caught:
                run(repository, destination=bytes(scene.folder / name))
            assert caught.value.code == "policy.destination-protected"
        done = run(repository, destination=None)

    assert done.destination == bytes(scene.folder / "state" / "scratch" / "notes-1")


def test_a_destination_that_exists_is_left_alone(scene: Scene, repository: Repository) -> None:
    """Not even an empty folder is filled: somebody may be using it."""
    (scene.folder / "out").mkdir()

    with pytest.raises(PolicyRefusedError) as caught:
        run(repository)

    assert caught.value.code == "policy.destination-exists"
    assert os.listdir(scene.folder / "out") == []


def test_a_destination_without_parent_is_a_wrong_call(repository: Repository) -> None:
    """A mistyped path must not grow a tree of folders."""
    with pytest.raises(ConfigurationError) as caught:
        run(repository, destination=b"/nowhere/at/all")

    assert caught.value.code == "config.destination"


# --- what was signed and is wrong (A6f, A3f) ---


def refusal_of(scene: Scene) -> DurarepoError:
    """Check out and return what was raised; nothing may have appeared."""
    with scene.open() as repository, pytest.raises(DurarepoError) as caught:
        run(repository)
    assert sorted(os.listdir(scene.folder)) == ["keys", "repository", "state"]
    return caught.value


def signed_with(tmp_path: Path, node: mini.Node) -> Scene:
    """Give a stream whose manifest holds ``node`` as ``victim`` beside a good file."""
    scene = Scene(tmp_path)
    scene.snapshot({b"good": mini.file(b"good"), b"victim": node})
    return scene


def test_a_file_whose_chunks_are_in_the_wrong_order_never_appears(tmp_path: Path) -> None:
    """Each chunk is good by itself; only the whole tells (ingest 7.7)."""
    right = mini.sha256(b"first" + b"other")
    error = refusal_of(signed_with(tmp_path, mini.file(b"other", b"first", sha256=right)))

    assert isinstance(error, IntegrityError)
    assert error.code == "integrity.file-hash"
    assert "/srv/notes/victim" in error.message


def test_a_run_of_another_length_than_its_chunk_is_refused(tmp_path: Path) -> None:
    """Lengths that lie would shift what follows."""
    scene = Scene(tmp_path)
    chunks = scene.stream.chunks()
    one, two = chunks.add(mini.DATA, b"first"), chunks.add(mini.DATA, b"other!")
    node = mini.file(b"x", content=[0, [6, one, 5, two]], size=11, sha256=bytes(32))
    roots = {ROOT: mini.directory({b"victim": node})}
    nested = scene.stream.nested_map(roots, chunks)
    scene.stream.store(chunks)
    scene.stream.commit_nested(nested)

    assert refusal_of(scene).code == "integrity.content"


def test_a_file_that_was_added_after_signing_the_set_is_refused(tmp_path: Path) -> None:
    """The set hash vouches for names, sizes and absence, not only for content (ingest 7.8)."""
    scene = Scene(tmp_path)
    scene.snapshot({b"a": mini.file(b"a")})
    chunks = scene.stream.chunks()
    claimed = {ROOT: mini.directory({b"a": mini.file(b"a")})}
    kept = {ROOT: mini.directory({b"a": mini.file(b"a"), b"b": mini.file(b"b")})}
    nested = scene.stream.nested_map(kept, chunks)
    nested[1] = [mini.files_component(claimed)]
    nested[2] = mini.component_index(nested[1])
    scene.stream.store(chunks)
    scene.stream.commit_nested(nested)

    assert refusal_of(scene).code == "integrity.component"


def test_a_database_that_is_not_the_one_of_its_component_is_refused(tmp_path: Path) -> None:
    """The component vouches for the database that was checked when it was copied."""
    scene = Scene(tmp_path)
    with_database(scene, integrity=mini.sha256(b"another"))

    assert refusal_of(scene).code == "integrity.component"


def test_names_of_a_group_that_differ_come_back_as_files_of_their_own(tmp_path: Path) -> None:
    """Joined, one would silently take the content of the other (format 6.3)."""
    scene = Scene(tmp_path)
    scene.snapshot(
        {
            b"a": mini.file(b"first", link=1),
            b"b": mini.file(b"other", link=1),
            b"c": mini.file(b"first", link=1, mode=0o600),
            b"d": mini.file(b"first", link=1),
        }
    )
    with scene.open() as repository:
        run(repository)

    root = out(scene)
    inodes = {name: (root / name).stat().st_ino for name in "abcd"}
    assert inodes["a"] == inodes["d"]
    assert len(set(inodes.values())) == 3
    assert (root / "b").read_bytes() == b"other"
    assert (root / "c").stat().st_mode & 0o777 == 0o600


def test_a_damaged_pack_names_the_file_that_needs_it(scene: Scene, repository: Repository) -> None:
    """That something is wrong helps nobody who has to choose what to save first (A3f)."""
    (pin,) = scene.stream.pins
    path = scene.object_path(pin.hex())
    data = bytearray(path.read_bytes())
    data[65 + 4 * 1168] ^= 1
    path.write_bytes(data)

    with pytest.raises(IntegrityError) as caught:
        run(repository)

    assert caught.value.code == "integrity.frame-digest"
    assert "/srv/notes/" in caught.value.message
    assert pin.hex() in caught.value.message
    assert not (scene.folder / "out").exists()


def test_a_long_attribute_comes_back_from_its_chunk(tmp_path: Path) -> None:
    """Attributes above 4096 bytes lie outside the entry."""
    scene = Scene(tmp_path)
    value = b"v" * 5000
    chunks = scene.stream.chunks()
    content = chunks.content([value], 0)
    roots = {ROOT: mini.directory({b"a": mini.file(b"a", xattrs=[[b"user.long", content]])})}
    nested = scene.stream.nested_map(roots, chunks)
    scene.stream.store(chunks)
    scene.stream.commit_nested(nested)
    with scene.open() as repository:
        done = run(repository)

    lost = done.not_restored.get("xattr", 0)
    found = (out(scene) / "a") if lost == 0 else None
    assert found is None or os.getxattr(found, "user.long") == value


def test_a_machine_without_identity_restores_nothing(scene: Scene) -> None:
    """A put-only machine is one from which nothing can be read back (A5a)."""
    with scene.open(identity=False) as repository, pytest.raises(KeyMaterialError) as caught:
        run(repository)

    assert caught.value.code == "keys.identity-absent"


def test_a_whole_restore_decrypts_each_frame_once(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the work is twice the time at the worst moment."""
    manifest = verified(repository)
    fill_catalog(repository, manifest)
    seen: list[int] = []
    real = sealing.open_frame

    def counted(checked: object, *rest: object) -> object:
        seen.append(checked.ordinal)  # type: ignore[attr-defined]  # a CheckedFrame
        return real(checked, *rest)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(openpack, "open_frame", counted)

    run(repository)

    assert len(seen) == len(set(seen))


# --- what a kill leaves, and others at work ---


class KillAtFirstFile:
    """Ends the process as a power cut would, once the first file is there."""

    def update(self, done_files: int, done_bytes: int, total: int | None) -> None:  # noqa: ARG002
        os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_checkout_left_is_removed_by_the_next(
    scene: Scene, repository: Repository
) -> None:
    """Half a state under a hidden name would stay for ever, with all its secrets."""
    child = os.fork()
    if child == 0:
        request = CheckoutRequest(destination=bytes(scene.folder / "first"))
        checkout(repository, request, clock=at(NOW), progress=KillAtFirstFile())
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert any(name.startswith(".first") for name in os.listdir(scene.folder))

    run(repository)

    assert sorted(os.listdir(scene.folder)) == ["keys", "out", "repository", "state"]


def test_a_checkout_waits_for_no_other_and_for_no_backup(
    scene: Scene, repository: Repository
) -> None:
    """Reading never takes the lock of the repository (spec/cli.md 1)."""
    moment = datetime(2027, 1, 15, tzinfo=UTC)
    folder = scene.folder / "state" / "notes" / "restore"
    folder.mkdir()
    with (
        RunLock(repository.places.lock, now=moment),
        RunLock(bytes(folder / "1.lock"), now=moment),
    ):
        assert run(repository).files == 10
