"""Reading files that hold still, grow, change, shrink, vanish or turn into something else."""

import errno
import hashlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from durarepo.core.entries import Consistency
from durarepo.core.errors import SourceError, VanishedError
from durarepo.core.limits import READ_WINDOW_BYTES
from durarepo.core.names import FileHash
from durarepo.source import reading
from durarepo.source.reading import (
    Captured,
    Segment,
    SourceFile,
    capture,
    read_small,
)

Between = Callable[[int], object]


class Folder:
    """A folder held by descriptor, as the walk holds it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def write(self, name: str, data: bytes) -> Path:
        """Make a file with old times, and wait until any later change must show in them."""
        path = self.path / name
        path.write_bytes(data)
        os.utime(path, ns=(1, 1))
        time.sleep(0.02)
        return path


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """Give an empty folder."""
    one = Folder(tmp_path)
    yield one
    os.close(one.fd)


def keep(between: Between = lambda _: None) -> "Keeper":
    """Return a consumer that keeps all bytes and lets ``between`` meddle after each call."""
    return Keeper(between)


class Keeper:
    """Takes segments as a chunker would; ``between`` is called with the number of the call."""

    def __init__(self, between: Between) -> None:
        self.between = between
        self.calls = 0

    def __call__(self, segments: Iterator[Segment]) -> tuple[FileHash, bytes]:
        content = b""
        for segment in segments:
            assert segment.offset == len(content)
            content += bytes(segment.length) if segment.data is None else segment.data
        self.calls += 1
        self.between(self.calls)
        return FileHash(hashlib.sha256(content).digest()), content


def check_kept(got: Captured[bytes], content: bytes, consistency: Consistency) -> None:
    """Fail unless exactly this was kept, with a fitting size and hash."""
    assert got.result == content
    assert (got.size, got.consistency) == (len(content), consistency)
    assert got.sha256 == hashlib.sha256(content).digest()


def append(path: Path, data: bytes) -> None:
    """Write more at the end."""
    with open(path, "ab") as file:
        file.write(data)


# Small files


@pytest.mark.parametrize("name", [b"plain", b"\xff\n\x1b ", b"n" * 255])
@pytest.mark.parametrize("size", [0, 1, 65_536])
def test_a_quiet_small_file_is_read_whole_at_one_look(
    folder: Folder, name: bytes, size: int
) -> None:
    """The first snapshot of 100,000 files stands or falls with this path."""
    content = os.urandom(size)
    with open(os.path.join(os.fsencode(folder.path), name), "wb") as file:
        file.write(content)
    listed = os.stat(name, dir_fd=folder.fd)

    got = read_small(folder.fd, name, listed)

    assert (got.data, got.quiet, got.stat) == (content, True, listed)


def test_a_file_that_is_larger_or_another_than_listed_is_left_to_capture(folder: Folder) -> None:
    """What was listed decides how a file is cut and cached; another file is another matter."""
    path = folder.write("a", b"12345")
    listed = os.stat(path)
    assert not read_small(folder.fd, b"a", listed, limit=4).quiet
    folder.write("b", b"12345").rename(path)

    assert not read_small(folder.fd, b"a", listed).quiet


@pytest.mark.parametrize("change", ["same size", "longer", "shorter"])
def test_a_small_file_that_changes_while_it_is_read_is_not_quiet(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Half of one moment and half of another is no file (E21)."""
    path = folder.write("a", b"12345")
    listed = os.stat(path)
    real = os.read

    def read(fd: int, length: int) -> bytes:
        data = real(fd, length)
        path.write_bytes({"same size": b"abcde", "longer": b"123456", "shorter": b""}[change])
        return data

    monkeypatch.setattr(os, "read", read)

    assert not read_small(folder.fd, b"a", listed).quiet


def test_what_is_no_longer_a_regular_file_is_refused_unread(folder: Folder) -> None:
    """A link to a secret, or a pipe that waits for ever, may have taken the name (E21)."""
    path = folder.write("a", b"12345")
    listed = os.stat(path)
    (folder.path / "secret").write_bytes(b"secret")

    def to_socket() -> None:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(path))

    turns: list[Callable[[], object]] = [
        lambda: path.symlink_to("secret"),
        lambda: os.mkfifo(path),
        lambda: os.mknod(path, 0o020600, os.makedev(1, 5)),
        path.mkdir,
        to_socket,
    ]
    for turn in turns:
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()
        turn()

        with pytest.raises(SourceError) as small:
            read_small(folder.fd, b"a", listed)
        with pytest.raises(SourceError) as large:
            capture(folder.fd, b"a", keep())

        assert small.value.code == large.value.code == "source.changed-type"
    path.unlink()


def test_a_pipe_is_not_drained_by_being_refused(folder: Folder) -> None:
    """Taking bytes out of a pipe steals them from whoever they were meant for."""
    path = folder.write("a", b"12345")
    listed = os.stat(path)
    path.unlink()
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    os.write(pipe, b"message")

    with pytest.raises(SourceError):
        read_small(folder.fd, b"a", listed)

    assert os.read(pipe, 100) == b"message"
    os.close(pipe)


def test_gone_before_it_was_opened_has_a_class_of_its_own(folder: Folder) -> None:
    """It is no omission, so it must not look like one."""
    path = folder.write("a", b"")
    listed = os.stat(path)
    path.unlink()

    with pytest.raises(VanishedError):
        read_small(folder.fd, b"a", listed)
    with pytest.raises(VanishedError):
        capture(folder.fd, b"a", keep())


def test_a_file_without_read_permission_is_a_source_error(
    open_tree: Path, check_as_nobody: Callable[[Callable[[], None]], None]
) -> None:
    """An unreadable file is an omission of the source, never a fault of the store."""
    (open_tree / "closed").write_bytes(b"x")
    os.chmod(open_tree / "closed", 0o600)
    (open_tree / "theirs").write_bytes(b"y")
    os.chmod(open_tree / "theirs", 0o644)

    def check() -> None:
        fd = os.open(open_tree, os.O_RDONLY)
        for read in (
            lambda: read_small(fd, b"closed", os.stat(open_tree / "closed")),
            lambda: capture(fd, b"closed", keep()),
        ):
            with pytest.raises(SourceError) as refused:
                read()
            assert refused.value.code == "source.unreadable"
        assert read_small(fd, b"theirs", os.stat(open_tree / "theirs")).data == b"y"
        check_kept(capture(fd, b"theirs", keep()), b"y", Consistency.QUIET)

    check_as_nobody(check)


def test_a_bad_sector_is_a_source_error_and_leaks_nothing(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An I/O error of the source must not be taken for one of the repository."""
    path = folder.write("a", b"12345")
    listed = os.stat(path)
    before = len(os.listdir("/proc/self/fd"))

    def broken(*_: int) -> bytes:
        raise OSError(errno.EIO, "I/O error")

    monkeypatch.setattr(os, "read", broken)
    monkeypatch.setattr(os, "pread", broken)

    with pytest.raises(SourceError) as small:
        read_small(folder.fd, b"a", listed)
    with pytest.raises(SourceError) as large:
        capture(folder.fd, b"a", keep())

    assert small.value.code == large.value.code == "source.unreadable"
    monkeypatch.undo()
    assert len(os.listdir("/proc/self/fd")) == before


def test_messages_show_odd_names_without_their_control_characters(folder: Folder) -> None:
    """A name may try to write to the reader's terminal."""
    with pytest.raises(VanishedError) as refused:
        capture(folder.fd, b"\x1b[2J\n\xff", keep())

    assert refused.value.message.isprintable()


# Larger files


def test_a_quiet_file_is_read_in_windows(folder: Folder) -> None:
    """Memory must not grow with the file."""
    content = os.urandom(READ_WINDOW_BYTES + 5)
    folder.write("a", content)
    with SourceFile(folder.fd, b"a") as file:
        lengths = [segment.length for segment in file.segments()]
    assert lengths == [READ_WINDOW_BYTES, 5]

    consume = keep()
    check_kept(capture(folder.fd, b"a", consume), content, Consistency.QUIET)
    assert consume.calls == 1


def test_a_log_that_grows_is_kept_up_to_its_last_whole_line(folder: Folder) -> None:
    """Half a JSON line breaks the reader of a restored session."""
    path = folder.write("a.jsonl", b'{"a":1}\n{"b":2}\n{"c"')
    consume = keep(lambda call: append(path, b":3}\n") if call == 1 else None)

    check_kept(
        capture(folder.fd, b"a.jsonl", consume), b'{"a":1}\n{"b":2}\n', Consistency.LINE_PREFIX
    )
    assert consume.calls == 2


def test_a_log_that_grows_by_whole_lines_is_read_once(folder: Folder) -> None:
    """The usual case must not cost a second pass of chunking."""
    path = folder.write("a.log", b"one\ntwo\n")
    consume = keep(lambda _: append(path, b"three\n"))

    check_kept(capture(folder.fd, b"a.log", consume), b"one\ntwo\n", Consistency.LINE_PREFIX)
    assert consume.calls == 1


def test_a_log_without_any_line_end_is_kept_as_grown(folder: Folder) -> None:
    """A prefix of no lines would be an empty file: worse than a cut line."""
    path = folder.write("a.log", b"no end")

    got = capture(folder.fd, b"a.log", keep(lambda _: append(path, b" yet")))

    check_kept(got, b"no end", Consistency.GREW)


def test_lines_are_known_by_their_look_where_the_name_says_nothing(folder: Folder) -> None:
    """Sessions and transcripts often have no ending."""
    path = folder.write("session", "h\u00e9llo\nw\u00f6rld\nhal".encode("latin-1"))

    got = capture(folder.fd, b"session", keep(lambda _: append(path, b"f\n")))

    check_kept(got, "h\u00e9llo\nw\u00f6rld\n".encode("latin-1"), Consistency.LINE_PREFIX)


@pytest.mark.parametrize("content", [b"\x00\x01\n\x02", b"text\n" * 2000 + b"\0" + b"no end"])
def test_a_binary_file_that_grows_is_kept_to_the_size_at_open(
    folder: Folder, content: bytes
) -> None:
    """Cutting a binary file at a byte that happens to be 10 would spoil it."""
    path = folder.write("a.bin", content)

    check_kept(
        capture(folder.fd, b"a.bin", keep(lambda _: append(path, b"more"))),
        content,
        Consistency.GREW,
    )


def test_a_line_end_is_found_windows_away(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line may be longer than a window."""
    monkeypatch.setattr(reading, "READ_WINDOW_BYTES", 4)
    path = folder.write("a.txt", b"first\n" + b"x" * 50)

    got = capture(folder.fd, b"a.txt", keep(lambda _: append(path, b"x")))

    check_kept(got, b"first\n", Consistency.LINE_PREFIX)


def test_a_file_that_grew_and_changed_before_its_end_is_read_again(folder: Folder) -> None:
    """Growing does not prove that what was read is still there."""
    path = folder.write("a.log", b"one\ntwo\n")

    def meddle(call: int) -> None:
        if call == 1:
            path.write_bytes(b"ONE\ntwo\nthree\n")

    check_kept(capture(folder.fd, b"a.log", keep(meddle)), b"ONE\ntwo\nthree\n", Consistency.QUIET)


def test_a_line_prefix_that_changes_while_it_is_taken_is_read_again(folder: Folder) -> None:
    """The second pass of chunking must have seen what the check saw."""
    path = folder.write("a.log", b"one\ntwo")

    def meddle(call: int) -> None:
        if call == 1:
            append(path, b"x")
        if call == 2:
            path.write_bytes(b"ONE\n")

    check_kept(capture(folder.fd, b"a.log", keep(meddle)), b"ONE\n", Consistency.QUIET)


@pytest.mark.parametrize("change", [b"same-size!", b"short", b""])
def test_a_file_that_changes_once_is_read_again_and_then_quiet(
    folder: Folder, change: bytes
) -> None:
    """A second look nearly always helps, and costs no omission."""
    path = folder.write("a", b"0123456789")
    consume = keep(lambda call: path.write_bytes(change) if call == 1 else None)

    check_kept(capture(folder.fd, b"a", consume), change, Consistency.QUIET)


def test_a_file_that_changes_in_every_try_is_kept_and_marked(folder: Folder) -> None:
    """Three tries, then the last bytes with the mark that makes an omission of them."""
    path = folder.write("a", b"0123456789")
    consume = keep(lambda call: path.write_bytes(b"%010d" % call))

    check_kept(capture(folder.fd, b"a", consume), b"%010d" % 2, Consistency.CHANGED)
    assert consume.calls == 3


def test_a_change_that_restores_size_and_mtime_is_still_seen(folder: Folder) -> None:
    """Tools set the time back; the change time cannot be set (lesson 28)."""
    path = folder.write("a", b"0123456789")

    def meddle(call: int) -> None:
        if call == 1:
            path.write_bytes(b"abcdefghij")
            os.utime(path, ns=(1, 1))

    check_kept(capture(folder.fd, b"a", keep(meddle)), b"abcdefghij", Consistency.QUIET)


def test_a_file_replaced_by_rename_is_read_in_its_new_form_with_its_own_stat(
    folder: Folder,
) -> None:
    """Editors save so: old stat with new bytes would be cached as unchanged."""
    path = folder.write("a", b"old")
    folder.write("b", b"new content")
    consume = keep(lambda call: (folder.path / "b").rename(path) if call == 1 else None)

    got = capture(folder.fd, b"a", consume)

    check_kept(got, b"new content", Consistency.QUIET)
    assert got.stat.st_ino == os.stat(path).st_ino


def test_a_file_that_goes_while_it_is_read_is_kept_as_it_was_read(folder: Folder) -> None:
    """It was there when it was opened, so it is not simply gone."""
    path = folder.write("a", b"content")
    consume = keep(lambda _: path.unlink())

    check_kept(capture(folder.fd, b"a", consume), b"content", Consistency.CHANGED)


def test_a_file_that_shrinks_below_what_is_being_read_ends_early(folder: Folder) -> None:
    """The size kept is that of the bytes read, not of the listing (lesson 29)."""
    content = os.urandom(READ_WINDOW_BYTES * 2)
    path = folder.write("a", content)
    with SourceFile(folder.fd, b"a") as file:
        lengths = []
        for segment in file.segments():
            lengths.append(segment.length)
            os.truncate(path, READ_WINDOW_BYTES)

        assert lengths == [READ_WINDOW_BYTES]
        assert file.bytes_seen == READ_WINDOW_BYTES
        assert file.settle(FileHash(bytes(32))) is Consistency.CHANGED


def make_sparse(path: Path) -> bytes:
    """Make hole, data, hole, data, hole; return the content."""
    mib = 1 << 20
    with open(path, "wb") as file:
        file.seek(mib)
        file.write(b"a" * 4096)
        file.seek(3 * mib)
        file.write(b"b" * 5000)
        file.truncate(5 * mib)
    return path.read_bytes()


def test_holes_are_told_apart_from_data_also_at_both_ends(folder: Folder) -> None:
    """A sparse disk image must not become terabytes of zeros."""
    content = make_sparse(folder.path / "a")
    with SourceFile(folder.fd, b"a") as file:
        segments = list(file.segments())

    assert segments[0].data is None
    assert segments[-1].data is None
    assert sum(segment.length for segment in segments) == len(content)
    assert sum(len(segment.data or b"") for segment in segments) < 40_000
    check_kept(capture(folder.fd, b"a", keep()), content, Consistency.QUIET)


def test_a_file_of_nothing_but_a_hole_is_read(folder: Folder) -> None:
    """SEEK_DATA has no answer there."""
    with open(folder.path / "a", "wb") as file:
        file.truncate(3_000_000)
    with SourceFile(folder.fd, b"a") as source:
        assert list(source.segments()) == [Segment(offset=0, length=3_000_000, data=None)]
    check_kept(capture(folder.fd, b"a", keep()), bytes(3_000_000), Consistency.QUIET)


def test_a_sparse_file_that_grows_is_kept_to_its_size_at_open(folder: Folder) -> None:
    """The second reading of a prefix must count holes as zeros too."""
    content = make_sparse(folder.path / "a")

    got = capture(folder.fd, b"a", keep(lambda _: append(folder.path / "a", b"more")))

    check_kept(got, content, Consistency.GREW)


def test_a_file_that_says_it_is_empty_and_is_not_is_read_to_its_end() -> None:
    """Files served by programs often have no size; the bytes read decide."""
    fd = os.open("/proc/self", os.O_RDONLY)
    try:
        small = read_small(fd, b"cmdline", os.stat("/proc/self/cmdline"))
        got = capture(fd, b"cmdline", keep())
    finally:
        os.close(fd)

    assert not small.quiet
    check_kept(got, Path("/proc/self/cmdline").read_bytes(), Consistency.QUIET)
    assert got.size > 0


def test_a_file_that_hides_its_size_and_never_ends_is_cut_and_marked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An endless file must not hang the run."""
    monkeypatch.setattr(reading, "UNSIZED_MAX_BYTES", 4)
    fd = os.open("/proc/self", os.O_RDONLY)
    try:
        got = capture(fd, b"cmdline", keep())
    finally:
        os.close(fd)

    assert (got.size, got.consistency) == (4, Consistency.CHANGED)


def test_what_the_consumer_raises_comes_through_unchanged(folder: Folder) -> None:
    """A full repository disk is a store error and must not turn into one of the source."""
    folder.write("a", b"x")
    before = len(os.listdir("/proc/self/fd"))

    def consume(_: Iterator[Segment]) -> tuple[FileHash, None]:
        raise OSError(errno.ENOSPC, "no space left")

    with pytest.raises(OSError, match="no space"):
        capture(folder.fd, b"a", consume)
    assert len(os.listdir("/proc/self/fd")) == before


def test_reading_leaves_the_access_time_alone(folder: Folder) -> None:
    """A backup that touches every file's access time hides which are in use."""
    path = folder.write("a", b"x")
    os.utime(path, ns=(1, 1))

    read_small(folder.fd, b"a", os.stat(path))
    capture(folder.fd, b"a", keep())

    assert os.stat(path).st_atime_ns == 1


def test_no_tries_at_all_is_a_mistake_of_the_caller(folder: Folder) -> None:
    """Nothing read must not look like something kept."""
    with pytest.raises(ValueError, match="at least once"):
        capture(folder.fd, b"a", keep(), tries=0)
