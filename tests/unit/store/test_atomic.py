"""Write-once files, small state and lines under a full disk, closed folders and torn ends."""

import os
import stat
from pathlib import Path

import pytest

from durarepo.core.errors import StoreError
from durarepo.store import atomic
from tests.doubles.children import UNPRIVILEGED, let_others_pass, mount, run_in_child


class _Lock:
    def __init__(self, *, held: bool) -> None:
        self.is_held = held


def code_of(error: pytest.ExceptionInfo[StoreError]) -> str:
    """Return the stable code of what was raised."""
    return error.value.code


def test_write_once_makes_a_private_file_and_never_a_second(tmp_path: Path) -> None:
    """A second write under the same name would be an overwrite."""
    path = tmp_path / "file"

    assert atomic.write_once(bytes(path), b"first")
    assert not atomic.write_once(bytes(path), b"second")

    assert path.read_bytes() == b"first"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_write_once_does_not_write_through_a_dangling_symlink(tmp_path: Path) -> None:
    """A planted symlink must not decide where an object goes."""
    (tmp_path / "name").symlink_to(tmp_path / "elsewhere")

    assert not atomic.write_once(bytes(tmp_path / "name"), b"data")

    assert not (tmp_path / "elsewhere").exists()


def test_file_system_without_nameless_files_gives_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older overlay file systems have none; the fallback must leave no temporary either."""
    monkeypatch.setattr(os, "O_TMPFILE", os.O_TMPFILE | os.O_CREAT)

    assert atomic.write_once(bytes(tmp_path / "file"), b"first")
    assert not atomic.write_once(bytes(tmp_path / "file"), b"second")

    assert (tmp_path / "file").read_bytes() == b"first"
    assert (tmp_path / "file").stat().st_nlink == 1
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("kind", ["ext", "tmpfs", "overlay"])
def test_files_appear_the_same_on_each_file_system(tmp_path: Path, kind: str) -> None:
    """A container's overlay and a small tmpfs hold repositories too."""

    def work() -> None:
        folder = tmp_path / "there"
        folder.mkdir()
        if kind != "ext":
            mount("-t", "tmpfs", "none", str(folder))
        if kind == "overlay":
            for name in ("lower", "upper", "work", "merged"):
                (folder / name).mkdir()
            layers = ",".join(f"{name}dir={folder / name}" for name in ("lower", "upper", "work"))
            folder = folder / "merged"
            mount("-t", "overlay", "none", "-o", layers, str(folder))
        assert atomic.write_once(bytes(folder / "file"), b"first")
        assert not atomic.write_once(bytes(folder / "file"), b"second")
        atomic.replace_small(bytes(folder / "state"), b"1")
        atomic.replace_small(bytes(folder / "state"), b"2")
        assert (folder / "file").read_bytes() == b"first"
        assert (folder / "state").read_bytes() == b"2"
        assert {each.name for each in folder.iterdir()} == {"file", "state"}

    run_in_child(work, own_mounts=True)


def test_full_disk_is_full_and_what_was_there_stays(tmp_path: Path) -> None:
    """ENOSPC must be told from all else, and must not cost a byte of what is stored."""

    def work() -> None:
        mount("-t", "tmpfs", "-o", "size=256k", "none", str(tmp_path))
        state, log = bytes(tmp_path / "state"), bytes(tmp_path / "log")
        atomic.replace_small(state, b"old")
        atomic.append_line(log, b"whole line")
        big = b"x" * 1_000_000
        for call in (
            lambda: atomic.write_once(bytes(tmp_path / "new"), big),
            lambda: atomic.replace_small(state, big),
            lambda: atomic.append_line(log, big),
        ):
            with pytest.raises(StoreError) as caught:
                call()
            assert code_of(caught) == "store.full"
        assert atomic.read_small(state, 100) == b"old"
        assert (tmp_path / "log").read_bytes() == b"whole line\n"
        assert {each.name for each in tmp_path.iterdir()} == {"state", "log"}
        atomic.append_line(log, b"and the next fits")

    run_in_child(work, own_mounts=True)


def test_closed_and_read_only_folders_are_a_permission_matter(tmp_path: Path) -> None:
    """The hint differs: nobody frees space to mend a mode."""
    (tmp_path / "closed").mkdir(mode=0o500)
    os.chown(tmp_path / "closed", UNPRIVILEGED, UNPRIVILEGED)
    let_others_pass(tmp_path)

    def write() -> None:
        with pytest.raises(StoreError) as caught:
            atomic.write_once(bytes(tmp_path / "closed" / "file"), b"")
        assert code_of(caught) == "store.permission"

    def read_only() -> None:
        mount("-t", "tmpfs", "-o", "ro", "none", str(tmp_path / "closed"))
        write()

    run_in_child(write, user=UNPRIVILEGED)
    run_in_child(read_only, own_mounts=True)


def test_message_shows_no_raw_control_character(tmp_path: Path) -> None:
    """A file name must not be able to write on a terminal."""
    with pytest.raises(StoreError) as caught:
        atomic.replace_small(bytes(tmp_path) + b"/a\nb\x1b[31m\xff/file", b"")

    assert caught.value.code == "store.absent"
    assert caught.value.message.isprintable()
    assert "\\n" in caught.value.message


@pytest.mark.parametrize(
    ("name", "is_ours"),
    [
        (".tmp-" + "0f" * 16, True),
        (".tmp-" + "0f" * 15, False),
        (".tmp-" + "0F" * 16, False),
        (".tmp-" + "0f" * 16 + "\n", False),
        ("x.tmp-" + "0f" * 16, False),
        (".tmp-notes", False),
        (".tmp", False),
    ],
)
def test_only_the_exact_own_pattern_is_removed_as_leftover(
    tmp_path: Path,
    name: str,
    is_ours: bool,  # noqa: FBT001  # a table of cases
) -> None:
    """A user's `.tmp-notes` is none of our business; a killed run's temporary is."""
    (tmp_path / name).write_bytes(b"")

    removed = atomic.remove_temporaries(bytes(tmp_path), _Lock(held=True))

    assert removed == (1 if is_ours else 0)
    assert (tmp_path / name).exists() != is_ours


def test_leftovers_are_safe_from_a_run_without_the_lock(tmp_path: Path) -> None:
    """Without the lock the 'leftover' may be the file that a live run is writing."""
    name = ".tmp-" + "00" * 16
    (tmp_path / name).write_bytes(b"")

    with pytest.raises(ValueError, match="lock"):
        atomic.remove_temporaries(bytes(tmp_path), _Lock(held=False))

    assert (tmp_path / name).exists()


def test_leftover_that_is_a_folder_or_a_link_stays(tmp_path: Path) -> None:
    """We never make those, so they are not ours whatever they are called."""
    (tmp_path / (".tmp-" + "00" * 16)).mkdir()
    (tmp_path / (".tmp-" + "11" * 16)).symlink_to("/etc/passwd")

    assert atomic.remove_temporaries(bytes(tmp_path), _Lock(held=True)) == 0
    assert len(list(tmp_path.iterdir())) == 2


def test_torn_line_is_cut_and_handed_over_before_the_next(tmp_path: Path) -> None:
    """A fragment glued to the next line would damage a line that was acknowledged."""
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\nthr")

    assert list(atomic.iter_lines(bytes(path))) == [b"one", b"two"]
    torn = atomic.append_line(bytes(path), b"four")

    assert torn == b"thr"
    assert path.read_bytes() == b"one\ntwo\nfour\n"


@pytest.mark.parametrize("length", [0, 1, 65_535, 65_536, 65_537, 200_000])
def test_last_line_is_found_however_long_it_is(tmp_path: Path, length: int) -> None:
    """The chain of the audit log rests on the last line, found from the end in windows."""
    path = bytes(tmp_path / "log")
    last = b"x" * length
    atomic.append_line(path, b"before")
    atomic.append_line(path, last)
    seen: list[bytes | None] = []

    def compose(line: bytes | None) -> bytes:
        seen.append(line)
        return b"after"

    atomic.append_after(path, compose)

    assert seen == [last]
    assert list(atomic.iter_lines(path)) == [b"before", last, b"after"]


def test_file_of_one_torn_line_begins_anew(tmp_path: Path) -> None:
    """The very first append may be the one that was killed."""
    path = tmp_path / "log"
    path.write_bytes(b"x" * 100_000)
    seen: list[bytes | None] = []

    def compose(line: bytes | None) -> bytes:
        seen.append(line)
        return b"first"

    atomic.append_after(bytes(path), compose)

    assert seen == [None]
    assert path.read_bytes() == b"first\n"


def test_line_with_a_newline_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """One record must not be able to pose as two."""
    path = bytes(tmp_path / "log")
    atomic.append_line(path, b"one")

    with pytest.raises(ValueError, match="newline"):
        atomic.append_line(path, b"two\nthree")

    assert list(atomic.iter_lines(path)) == [b"one"]


def test_appends_of_two_processes_do_not_mix(tmp_path: Path) -> None:
    """A dead-man check may append evidence while a run appends too."""
    path = bytes(tmp_path / "log")

    def append(word: bytes) -> None:
        for number in range(60):
            atomic.append_line(path, word * 50 + b"%d" % number)

    children = []
    for word in (b"a", b"b"):
        child = os.fork()
        if child == 0:
            append(word)
            os._exit(0)
        children.append(child)
    codes = [os.waitpid(child, 0)[1] for child in children]

    lines = list(atomic.iter_lines(path))
    assert codes == [0, 0]
    assert len(lines) == 120
    assert all(line[:50] in {b"a" * 50, b"b" * 50} for line in lines)


def test_small_file_is_read_whole_or_refused(tmp_path: Path) -> None:
    """A swapped FIFO, a symlink or a huge file must not hang or fill the memory."""
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "fifo")

    assert atomic.read_small(bytes(tmp_path / "file"), 5) == b"12345"
    assert atomic.read_small(bytes(tmp_path / "none"), 5) is None
    for name, limit, code in (("file", 4, "size"), ("link", 9, "io"), ("fifo", 9, "io")):
        with pytest.raises(StoreError) as caught:
            atomic.read_small(bytes(tmp_path / name), limit)
        assert code_of(caught) == f"store.{code}"


def test_folders_are_made_private_all_the_way(tmp_path: Path) -> None:
    """State in a folder that others can enter is half given away."""
    atomic.make_folder(bytes(tmp_path / "a" / "b" / "c"))

    modes = [stat.S_IMODE((tmp_path / each).stat().st_mode) for each in ("a", "a/b", "a/b/c")]
    assert modes == [0o700] * 3


def test_folder_where_a_file_stands_is_an_error_of_the_store(tmp_path: Path) -> None:
    """The file is someone's; it stays."""
    (tmp_path / "a").write_bytes(b"mine")

    for path in ("a", "a/b"):
        with pytest.raises(StoreError):
            atomic.make_folder(bytes(tmp_path / path))

    assert (tmp_path / "a").read_bytes() == b"mine"


def test_cut_stays_within_the_file(tmp_path: Path) -> None:
    """Cutting beyond the end would grow a file by zeros."""
    with atomic.AppendFile(bytes(tmp_path / "file")) as file:
        file.append(b"12345")
        with pytest.raises(ValueError, match="length"):
            file.cut(6)
        assert file.cut(3) == b"45"
        file.append(b"67")

    assert (tmp_path / "file").read_bytes() == b"12367"
