"""The work folder removes what runs made, and nothing else on the disk."""

import os
import signal
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from durarepo.core.errors import PolicyRefusedError, StoreError
from durarepo.local.lock import RunLock
from durarepo.local.work import WorkFolder
from tests.doubles.children import (
    UNPRIVILEGED,
    die_with_parent,
    let_others_pass,
    mount,
    run_in_child,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class _Lock:
    def __init__(self, *, held: bool = True) -> None:
        self.is_held = held


def work_of(tmp_path: Path) -> WorkFolder:
    """Return the work folder of a test."""
    return WorkFolder(bytes(tmp_path / "work"), _Lock())


def runs_in(tmp_path: Path) -> list[str]:
    """Return the run folders that are there."""
    return [path.name for path in (tmp_path / "work").iterdir() if path.name.startswith("run-")]


def after_kill(work: Callable[[], object]) -> None:
    """Run ``work`` in a child that is then killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            die_with_parent()
            os.close(reader)
            work()
            os.write(writer, b".")
        finally:
            signal.pause()
    os.close(writer)
    assert os.read(reader, 1) == b"."
    os.close(reader)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_run_gets_private_files_and_leaves_none(tmp_path: Path) -> None:
    """A database copy is as secret as the database, and must not stay."""
    with work_of(tmp_path) as work:
        first, second = work.new_file(".db"), work.new_file(".db")
        folder = work.new_folder()

        assert first != second
        assert stat.S_IMODE(os.stat(first).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        assert stat.S_IMODE(os.stat(os.path.dirname(first)).st_mode) == 0o700

    assert runs_in(tmp_path) == []


def test_nothing_is_made_before_it_is_needed(tmp_path: Path) -> None:
    """A dry run must leave no trace."""
    with work_of(tmp_path):
        pass

    assert not (tmp_path / "work").exists()


def test_name_is_in_the_journal_before_the_folder_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill between would leave a folder that nobody may remove."""
    real_mkdir = os.mkdir
    seen = []

    def mkdir(path: bytes, mode: int) -> None:
        if b"run-" in path:
            journal = tmp_path / "work" / "made.jsonl"
            seen.append(journal.exists() and os.path.basename(path) in journal.read_bytes())
        real_mkdir(path, mode)

    monkeypatch.setattr(os, "mkdir", mkdir)
    with work_of(tmp_path) as work:
        work.run_folder()

    assert seen == [True]


def test_discard_of_a_file_leaves_the_others(tmp_path: Path) -> None:
    """Copies are dropped one by one while the run goes on."""
    with work_of(tmp_path) as work:
        first, second = work.new_file(".db"), work.new_file(".db")

        work.discard(first)
        work.discard(first)

        assert not os.path.exists(first)
        assert os.path.exists(second)


@pytest.mark.parametrize(
    "path", ["outside", "outside/file", "work", "work/made.jsonl", "link-to-run/000001", "other"]
)
def test_what_this_run_did_not_make_is_refused(tmp_path: Path, path: str) -> None:
    """No argument, however wrong, may delete a user's file (law 4)."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_bytes(b"mine")
    with work_of(tmp_path) as work:
        file = work.new_file()
        (tmp_path / "link-to-run").symlink_to(os.fsdecode(work.run_folder()))
        (tmp_path / "other").mkdir()

        with pytest.raises(PolicyRefusedError) as caught:
            work.discard(bytes(tmp_path / path))

        assert caught.value.code == "policy.not-ours"
        assert os.path.exists(file)
    assert (tmp_path / "outside" / "file").read_bytes() == b"mine"


def test_dots_do_not_lead_out_of_the_run_folder(tmp_path: Path) -> None:
    """A path is judged by where it ends, not by how it begins."""
    (tmp_path / "mine").write_bytes(b"mine")
    with work_of(tmp_path) as work, pytest.raises(PolicyRefusedError):
        work.discard(os.path.join(work.run_folder(), b"../../mine"))

    assert (tmp_path / "mine").exists()


def test_symlinks_inside_are_removed_and_never_followed(tmp_path: Path) -> None:
    """A restored tree holds symlinks to anywhere."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"mine")
    with work_of(tmp_path) as work:
        folder = Path(os.fsdecode(work.new_folder()))
        (folder / "deep").mkdir()
        (folder / "to-folder").symlink_to(outside)
        (folder / "deep" / "to-file").symlink_to(outside / "file")
        with pytest.raises(StoreError):
            work.discard(bytes(folder / "to-folder" / "file"))

        work.discard(bytes(folder))

        assert not folder.exists()
    assert (outside / "file").read_bytes() == b"mine"


def test_staging_that_was_swapped_is_refused(tmp_path: Path) -> None:
    """The name alone proves nothing: somebody may have put another folder there."""
    staging = tmp_path / ".x.durarepo-partial"
    staging.mkdir()
    with work_of(tmp_path) as work:
        work.adopt_staging(bytes(staging))
        staging.rename(tmp_path / "published")
        staging.mkdir()
        (staging / "file").write_bytes(b"mine")

        for path in (staging, staging / "file"):
            with pytest.raises(PolicyRefusedError):
                work.discard(bytes(path))

    assert (staging / "file").exists()
    assert (tmp_path / "published").exists()


def test_staging_replaced_by_a_symlink_is_refused(tmp_path: Path) -> None:
    """The swap may be a link to somebody's home."""
    staging, home = tmp_path / "staging", tmp_path / "home"
    staging.mkdir()
    home.mkdir()
    (home / "file").write_bytes(b"mine")
    with work_of(tmp_path) as work:
        work.adopt_staging(bytes(staging))
        staging.rmdir()
        staging.symlink_to(home)

        with pytest.raises(PolicyRefusedError):
            work.discard(bytes(staging))

    assert (home / "file").exists()


def test_only_an_empty_own_folder_is_adopted(tmp_path: Path) -> None:
    """Adopting a folder with content would be a way to delete it."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_bytes(b"mine")
    (tmp_path / "file").write_bytes(b"mine")
    (tmp_path / "link").symlink_to("full")
    (tmp_path / "stranger").mkdir()
    os.chown(tmp_path / "stranger", 12345, 12345)
    with work_of(tmp_path) as work:
        for name in ("full", "file", "link", "stranger"):
            with pytest.raises(PolicyRefusedError):
                work.adopt_staging(bytes(tmp_path / name))


def test_killed_run_is_cleaned_by_the_next(tmp_path: Path) -> None:
    """Copies of databases must not pile up night after night (P16)."""
    staging = tmp_path / "staging"

    def killed() -> None:
        work = work_of(tmp_path)
        Path(os.fsdecode(work.new_file(".db"))).write_bytes(b"copy")
        staging.mkdir()
        work.adopt_staging(bytes(staging))
        (staging / "restored").write_bytes(b"half")

    after_kill(killed)
    assert len(runs_in(tmp_path)) == 1

    left = work_of(tmp_path).clean_after_kill()

    assert left == []
    assert runs_in(tmp_path) == []
    assert not staging.exists()
    assert (tmp_path / "work" / "made.jsonl").read_bytes() == b""


def test_destination_that_a_killed_run_published_is_left(tmp_path: Path) -> None:
    """The journal names the staging; what it was renamed to is the user's."""

    def killed() -> None:
        (tmp_path / "staging").mkdir()
        work_of(tmp_path).adopt_staging(bytes(tmp_path / "staging"))
        (tmp_path / "staging" / "file").write_bytes(b"restored")
        (tmp_path / "staging").rename(tmp_path / "restored")

    after_kill(killed)

    assert work_of(tmp_path).clean_after_kill() == []
    assert (tmp_path / "restored" / "file").read_bytes() == b"restored"


def test_folder_in_the_place_of_a_dead_runs_staging_is_reported_and_left(tmp_path: Path) -> None:
    """It may be the user's; the journal keeps it in view until it is gone."""

    def killed() -> None:
        (tmp_path / "staging").mkdir()
        work_of(tmp_path).adopt_staging(bytes(tmp_path / "staging"))

    after_kill(killed)
    (tmp_path / "staging").rename(tmp_path / "moved")
    (tmp_path / "staging").mkdir()

    for _ in range(2):
        assert work_of(tmp_path).clean_after_kill() == [bytes(tmp_path / "staging")]
    (tmp_path / "staging").rmdir()

    assert work_of(tmp_path).clean_after_kill() == []


def test_kill_before_the_identity_is_known_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside the work folder the random name is proof enough."""
    monkeypatch.setattr(WorkFolder, "_adopt", lambda _self, _path: None)
    after_kill(lambda: work_of(tmp_path).run_folder())
    assert len(runs_in(tmp_path)) == 1
    monkeypatch.undo()

    assert work_of(tmp_path).clean_after_kill() == []
    assert runs_in(tmp_path) == []


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b"7",
        b'{"made": 7}',
        b'{"made": "/", "boot": "", "device": 1, "inode": 2}',
        b'{"made": "HOME", "boot": ""}',
        b'{"made": "HOME", "boot": "", "device": 0, "inode": 0}',
        b'{"made": "WORK/run-00112233445566778899aabbccddeeff/../../home", "boot": ""}',
    ],
)
def test_damaged_or_forged_journal_removes_nothing(tmp_path: Path, line: bytes) -> None:
    """The journal is a file like any other; what it says must fit the disk."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "file").write_bytes(b"mine")
    (tmp_path / "work").mkdir()
    line = line.replace(b"HOME", bytes(home)).replace(b"WORK", bytes(tmp_path / "work"))
    (tmp_path / "work" / "made.jsonl").write_bytes(line + b"\n")

    work_of(tmp_path).clean_after_kill()

    assert (home / "file").read_bytes() == b"mine"


def test_mount_inside_is_refused_and_what_is_behind_it_stays(tmp_path: Path) -> None:
    """A bind mount has the device of its source; emptying it would empty the source."""

    def work() -> None:
        (tmp_path / "source" / "inner").mkdir(parents=True)
        (tmp_path / "source" / "inner" / "file").write_bytes(b"mine")
        for kind in ("bind", "tmpfs"):
            folder = work_of(tmp_path)
            top = Path(os.fsdecode(folder.new_folder()))
            (top / "deep").mkdir()
            if kind == "bind":
                mount("--bind", str(tmp_path / "source"), str(top / "deep"))
            else:
                mount("-t", "tmpfs", "none", str(top / "deep"))
                (top / "deep" / "file").write_bytes(b"mine")
            with pytest.raises(StoreError):
                folder.discard(bytes(top))
        assert (tmp_path / "source" / "inner" / "file").read_bytes() == b"mine"

    run_in_child(work, own_mounts=True)


def _make_deep(top: bytes, depth: int) -> None:
    folder = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(b"d" * 200, dir_fd=folder)
        os.close(os.open(b"file", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
        inner = os.open(b"d" * 200, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)


def test_tree_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    """A hostile backup restores to any depth; recursion or descriptors must not run out."""
    with work_of(tmp_path) as work:
        top = work.new_folder()
        _make_deep(top, 2100)

        work.discard(top)

        assert not os.path.exists(top)


def test_unprivileged_run_removes_folders_that_the_restore_closed(tmp_path: Path) -> None:
    """A restored folder of mode 0500 or 0000 must not stay for ever."""
    let_others_pass(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, UNPRIVILEGED, UNPRIVILEGED)

    def work() -> None:
        staging = home / "staging"
        staging.mkdir()
        with work_of(home) as folder:
            folder.adopt_staging(bytes(staging))
            for name in ("a", "a/b", "a/b/c"):
                (staging / name).mkdir()
                (staging / name / "file").write_bytes(b"")
            for name in ("a/b/c", "a/b", "a", "."):
                (staging / name).chmod(0o000 if name == "a/b" else 0o500)
            folder.discard(bytes(staging))
        assert not staging.exists()

    run_in_child(work, user=UNPRIVILEGED)


def test_work_folder_is_used_only_under_the_lock(tmp_path: Path) -> None:
    """What another run is writing would look like a dead run's leftover."""
    lock = RunLock(bytes(tmp_path / "lock"), now=NOW)
    work = WorkFolder(bytes(tmp_path / "work"), lock)

    for call in (work.run_folder, work.clean_after_kill):
        with pytest.raises(ValueError, match="lock"):
            call()
    with lock:
        work.run_folder()
        with pytest.raises(ValueError, match="before"):
            work.clean_after_kill()


def test_suffix_cannot_lead_elsewhere(tmp_path: Path) -> None:
    """A component's name may come from outside."""
    with work_of(tmp_path) as work:
        for suffix in ("/../x", "a/b", "\n", "x" * 65):
            with pytest.raises(ValueError, match="suffix"):
                work.new_file(suffix)
