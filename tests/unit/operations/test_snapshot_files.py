"""What a snapshot keeps of files and folders, read back by an independent reader."""

import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from durarepo.core.entries import ChunkList, Consistency, FileType
from durarepo.format.layout import ChunkKind
from durarepo.repository.chain import Chain
from durarepo.repository.reader import ChunkReader
from durarepo.repository.trees import read_content
from tests.machines.stream import Stream, fill, seen

ODD_NAMES = (
    b"\xff\xfe not UTF-8",
    b"new\nline",
    b"\x1b[31mescape",
    b"trailing blank ",
    b" leading",
    b"n" * 255,
    b"\xc3\xa9 composed",
    b"e\xcc\x81 decomposed",
    b"-rf",
    b"\\backslash",
    b"CON",
    b"...",
)


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Give a fresh stream with an empty root."""
    return Stream(tmp_path)


def test_names_come_back_as_the_bytes_that_they_are(stream: Stream) -> None:
    """A name that is not text is somebody's only copy as much as any other."""
    for number, name in enumerate(ODD_NAMES):
        with open(bytes(stream.root) + b"/" + name, "wb") as file:
            file.write(b"%d" % number)
        folder = bytes(stream.root) + b"/folder " + name[:200]
        os.mkdir(folder)
        os.symlink(name, folder + b"/link")

    result = stream.snapshot()

    assert result.files == 2 * len(ODD_NAMES)
    assert result.dirs == 1 + len(ODD_NAMES)
    stream.check_restores()


def test_every_type_is_recorded_and_none_but_files_is_opened(stream: Stream) -> None:
    """A FIFO that is opened hangs the run for ever; one that is left out is lost."""
    root = stream.root
    fill(root, {"file": b"data", "empty": b""})
    (root / "dir").mkdir()
    os.symlink("file", root / "link")
    os.symlink("nowhere/at/all", root / "dangling")
    os.mkfifo(root / "fifo", 0o640)
    os.mknod(root / "null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.mknod(root / "disk", stat.S_IFBLK | 0o600, os.makedev(7, 200))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "sock"))

    result = stream.snapshot()

    found = {os.path.basename(path): one for path, one in stream.entries().items()}
    assert {name: one.type for name, one in found.items() if name != b"root"} == {
        b"file": FileType.FILE,
        b"empty": FileType.FILE,
        b"dir": FileType.DIRECTORY,
        b"link": FileType.SYMLINK,
        b"dangling": FileType.SYMLINK,
        b"fifo": FileType.FIFO,
        b"null": FileType.CHAR_DEVICE,
        b"disk": FileType.BLOCK_DEVICE,
        b"sock": FileType.SOCKET,
    }
    assert found[b"null"].device == (1, 3)
    assert found[b"disk"].device == (7, 200)
    assert (result.status, result.files, result.omissions) == ("ok", 8, 0)
    stream.check_restores()


def test_metadata_is_kept_to_the_nanosecond(stream: Stream) -> None:
    """A restore that changes modes, owners or times breaks what reads them (make, ssh, mail)."""
    path = stream.root / "file"
    path.write_bytes(b"data")
    os.chown(path, 1234, 56789)
    os.chmod(path, 0o6751)  # noqa: S103  # set-id bits are what is tried
    os.utime(path, ns=(0, 1_234_567_890_123_456_789))

    stream.snapshot()

    entry = stream.entries()[bytes(path)]
    assert entry.mode == 0o6751
    assert (entry.uid, entry.gid) == (1234, 56789)
    assert entry.mtime_ns == 1_234_567_890_123_456_789
    born = subprocess.run(
        ["stat", "-c", "%W", path], check=True, capture_output=True, text=True
    ).stdout.strip()
    assert entry.birth_ns is not None
    assert entry.birth_ns // 1_000_000_000 == int(born)


@pytest.mark.parametrize(
    "seconds", [-1, -86_400 * 365 * 60, 0, 2**31, 4_102_444_800, 13_569_465_600]
)
def test_times_before_1970_and_after_2038_are_kept(stream: Stream, seconds: int) -> None:
    """A time that overflows is a wrong file, or a run that ends every night."""
    path = stream.root / "file"
    path.write_bytes(b"data")
    os.utime(path, ns=(0, seconds * 1_000_000_000 + 7))
    told = path.stat().st_mtime_ns

    stream.snapshot()

    assert stream.entries()[bytes(path)].mtime_ns == told
    assert stream.snapshot().new_chunks == 0


def test_a_hard_link_counts_once_and_stays_one_file(stream: Stream) -> None:
    """Counting each name would report a size that the disk does not have."""
    fill(stream.root, {"one": b"x" * 1000, "other": b"y" * 10, "dir/keep": b""})
    os.link(stream.root / "one", stream.root / "two")
    os.link(stream.root / "one", stream.root / "dir" / "three")

    first = stream.snapshot()
    second = stream.snapshot()

    assert (first.bytes, first.files) == (1010, 5)
    assert (second.bytes, second.files) == (1010, 5)
    back = stream.restored_root()
    assert (back / "one").stat().st_ino == (back / "dir" / "three").stat().st_ino
    assert (back / "one").stat().st_nlink == 3


def test_a_second_name_is_noticed_and_its_end_too(stream: Stream) -> None:
    """The file that keeps its first name does not change its content when it gets a second."""
    fill(stream.root, {"a/one": b"x" * 1000, "b/keep": b""})
    stream.snapshot()
    os.link(stream.root / "a" / "one", stream.root / "b" / "two")
    linked = stream.snapshot()
    os.unlink(stream.root / "b" / "two")
    single = stream.snapshot()

    assert (linked.bytes, linked.files, linked.new_bytes < 1000) == (1000, 3, True)
    assert (single.bytes, single.files) == (1000, 2)
    assert stream.entries()[bytes(stream.root / "a" / "one")].link_group is None
    two = stream.entries(2)
    group = two[bytes(stream.root / "a" / "one")].link_group
    assert group is not None
    assert group == two[bytes(stream.root / "b" / "two")].link_group


def test_attributes_lists_and_capabilities_are_kept(stream: Stream) -> None:
    """ACLs and capabilities live in extended attributes; without them a restore opens doors."""
    path = stream.root / "file"
    path.write_bytes(b"data")
    large = os.urandom(20_000)
    os.setxattr(path, "user.small", b"value\x00with nul")
    os.setxattr(path, "user.empty", b"")
    try:
        os.setxattr(path, "user.large", large)
    except OSError:  # this file system holds 4 KiB in all: take the most that fits
        large = b""
    subprocess.run(["setfacl", "-m", "u:1234:rw", path], check=True)
    subprocess.run(["setcap", "cap_net_bind_service+ep", path], check=True)
    os.setxattr(stream.root, "user.of-root", b"root's own")

    stream.snapshot()

    told = stream.entries()
    found = dict(told[bytes(path)].xattrs)
    assert found[b"user.small"] == b"value\x00with nul"
    assert found[b"user.empty"] == b""
    assert found[b"system.posix_acl_access"] == os.getxattr(path, "system.posix_acl_access")
    assert found[b"security.capability"] == os.getxattr(path, "security.capability")
    assert dict(told[bytes(stream.root)].xattrs)[b"user.of-root"] == b"root's own"
    if large:
        assert _attribute(stream, path, b"user.large") == large


def test_an_attribute_above_4_kib_is_kept_as_a_chunk_and_pinned() -> None:
    """Its chunk must be pinned although no file content is, in changed and unchanged folders."""
    import tempfile

    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:  # tmpfs takes long values
        stream = Stream(Path(folder))
        path = stream.root / "dir" / "file"
        fill(stream.root, {"dir/file": b""})
        value = os.urandom(30_000)
        try:
            os.setxattr(path, "user.large", value)
        except OSError as error:
            pytest.skip(f"no file system here takes a long attribute: {error}")

        stream.snapshot()
        (stream.root / "other").write_bytes(b"another pack")
        stream.snapshot()

        assert _attribute(stream, path, b"user.large") == value


def _attribute(stream: Stream, path: Path, name: bytes) -> bytes:
    value = dict(stream.entries()[bytes(path)].xattrs)[name]
    if isinstance(value, bytes):
        return value
    assert isinstance(value, ChunkList)
    with stream.open() as repository:
        chain = Chain(repository)
        found = chain.all_verified(now=stream.clock())
        reader = ChunkReader(repository, found[max(found)], permit=lambda: None)
        return read_content(reader, value, kind=ChunkKind.DATA, most=1 << 20)


def test_holes_stay_holes_and_cost_nothing(stream: Stream) -> None:
    """A sparse image of a terabyte must not fill the repository with zeros."""
    path = stream.root / "sparse"
    with open(path, "wb") as file:
        file.write(b"a" * 100_000)
        file.seek(200 * 1024 * 1024)
        file.write(b"b" * 100_000)
        file.truncate(300 * 1024 * 1024)
    with open(stream.root / "hole", "wb") as file:
        file.truncate(50 * 1024 * 1024)

    result = stream.snapshot()

    assert result.bytes == 350 * 1024 * 1024
    assert result.new_bytes < 600_000
    back = stream.restored_root()
    assert (back / "sparse").read_bytes() == path.read_bytes()
    assert (back / "hole").stat().st_size == 50 * 1024 * 1024
    assert (back / "sparse").stat().st_blocks * 512 < 2 * 1024 * 1024


def test_empty_folders_and_an_empty_root_are_kept(stream: Stream) -> None:
    """An empty folder is state too: programs fail where their spool is missing."""
    empty = stream.snapshot()
    (stream.root / "a" / "b" / "c").mkdir(parents=True)
    os.chmod(stream.root / "a", 0o700)
    filled = stream.snapshot()

    assert (empty.status, empty.files, empty.dirs, empty.bytes) == ("ok", 0, 1, 0)
    assert (filled.files, filled.dirs) == (0, 4)
    stream.check_restores()


@pytest.mark.parametrize("count", [4095, 4096, 4097, 10_000])
def test_a_large_folder_is_cut_and_comes_back(count: int) -> None:
    """A folder above 1 MiB of entries is cut into leaves; one lost at a border is lost."""
    import tempfile

    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        stream = Stream(Path(folder))
        for number in range(count):
            (stream.root / f"{number:0>120}").touch()

        result = stream.snapshot()
        (stream.root / f"{7:0>120}").write_bytes(b"changed")
        again = stream.snapshot()

        assert result.files == count
        assert again.new_chunks <= 4  # its content, its leaf, the node, and no other leaf
        assert seen(bytes(stream.restored_root())) == seen(bytes(stream.root))


def test_a_file_of_each_size_about_the_borders_comes_back(stream: Stream) -> None:
    """One byte lost at the border between small and large files is a damaged file."""
    sizes = (1, 15, 16, 65_535, 65_536, 65_537, 131_072, 524_288, 8 << 20, (8 << 20) + 1)
    for size in sizes:
        (stream.root / f"{size:08d}").write_bytes(os.urandom(size))

    result = stream.snapshot()

    assert result.bytes == sum(sizes)
    stream.check_restores()


def test_a_file_that_grows_while_it_is_read_is_no_omission(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that never rests must not turn every night into a run with omissions."""
    lines, other = stream.root / "agent.jsonl", stream.root / "agent.bin"
    lines.write_bytes(b'{"a": 1}\n' * 20_000 + b'{"half')
    other.write_bytes(os.urandom(200_000))
    sizes = {lines: lines.stat().st_size, other: other.stat().st_size}
    from durarepo.source import reading

    settle = reading.SourceFile.settle

    def growing(self: reading.SourceFile, sha256: object) -> Consistency:
        if self.name in (b"agent.jsonl", b"agent.bin"):
            with open(os.path.join(bytes(stream.root), self.name), "ab") as file:
                file.write(b'": 2}\n{"more": 1}\n')
        return settle(self, sha256)  # type: ignore[arg-type]  # the digest that was given

    monkeypatch.setattr(reading.SourceFile, "settle", growing)

    result = stream.snapshot()

    told = stream.entries()
    assert (result.status, result.omissions) == ("ok", 0)
    assert told[bytes(lines)].consistency is Consistency.LINE_PREFIX
    assert told[bytes(lines)].size == sizes[lines] - len(b'{"half')
    assert told[bytes(other)].consistency is Consistency.GREW
    assert told[bytes(other)].size == sizes[other]
    back = stream.restored_root()
    assert (back / "agent.jsonl").read_bytes() == b'{"a": 1}\n' * 20_000
    monkeypatch.undo()
    assert stream.snapshot().new_chunks > 0  # what came after is stored by the next run


def test_a_file_that_changes_in_every_try_is_kept_and_is_an_omission(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes of two moments mixed must be told apart from a good copy, night after night."""
    path = stream.root / "busy"
    path.write_bytes(os.urandom(200_000))
    from durarepo.source import reading

    settle = reading.SourceFile.settle
    tries: list[int] = []

    def busy(self: reading.SourceFile, sha256: object) -> Consistency:
        tries.append(1)
        with open(path, "r+b") as file:
            file.write(b"%06d" % len(tries))
        return settle(self, sha256)  # type: ignore[arg-type]  # the digest that was given

    monkeypatch.setattr(reading.SourceFile, "settle", busy)

    result = stream.snapshot()
    monkeypatch.undo()
    again = stream.snapshot()

    assert (result.status, result.omissions, len(tries)) == ("omissions", 1, 3)
    assert [line.path for line in result.left_out] == [bytes(path)]
    assert stream.entries(1)[bytes(path)].consistency is Consistency.CHANGED
    assert stream.statements()[1].totals.omissions == 1
    assert (again.status, again.omissions) == ("ok", 0)
    stream.check_restores()
