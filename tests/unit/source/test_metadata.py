"""Metadata of every file type: nothing lost, nothing followed (E18, lesson 31)."""

import ctypes
import errno
import os
import pwd
import socket
import stat as stat_module
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from durarepo.core.entries import Entry, FileType
from durarepo.core.errors import SourceError, VanishedError
from durarepo.source.metadata import Description, MetadataReader
from durarepo.source.mounts import link_group

SECOND = 1_000_000_000
YEAR_2038 = 2_147_483_648
YEAR_10000 = 253_402_300_800


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """Give a folder and a descriptor of it."""
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield tmp_path, fd
    os.close(fd)


def description_of(fd: int, name: bytes, *, file_system: bytes = b"/") -> Description:
    """Describe ``name`` by a fresh reader."""
    found = os.stat(name, dir_fd=fd, follow_symlinks=False)
    return MetadataReader().describe(fd, name, found, file_system=file_system)


def entry_of(fd: int, name: bytes, *, file_system: bytes = b"/") -> Entry:
    """Return the entry of what can be described in full."""
    description = description_of(fd, name, file_system=file_system)
    assert description.unread == ()
    return description.entry


def make_socket(path: Path) -> None:
    """Leave a socket behind."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


MAKERS: dict[FileType, Callable[[Path], object]] = {
    FileType.FILE: lambda path: path.write_bytes(b"12345"),
    FileType.DIRECTORY: lambda path: path.mkdir(),
    FileType.SYMLINK: lambda path: path.symlink_to("/nowhere/at all"),
    FileType.FIFO: os.mkfifo,
    FileType.SOCKET: make_socket,
    FileType.CHAR_DEVICE: lambda path: os.mknod(
        path, stat_module.S_IFCHR | 0o600, os.makedev(1, 3)
    ),
    FileType.BLOCK_DEVICE: lambda path: os.mknod(
        path, stat_module.S_IFBLK | 0o600, os.makedev(259, 70_000)
    ),
}


@pytest.mark.parametrize("kind", list(FileType))
def test_every_type_is_described_without_being_opened(
    folder: tuple[Path, int], kind: FileType
) -> None:
    """Opening a pipe waits for ever; opening a device does whatever it does."""
    path, fd = folder
    MAKERS[kind](path / "x")
    found = os.lstat(path / "x")

    entry = entry_of(fd, b"x")

    assert (entry.name, entry.type) == (b"x", kind)
    assert entry.mode == found.st_mode & 0o7777
    assert (entry.uid, entry.gid, entry.mtime_ns) == (0, 0, found.st_mtime_ns)
    assert (entry.user, entry.group) == (b"root", b"root")
    assert entry.size == (5 if kind is FileType.FILE else 0)
    assert entry.target == (b"/nowhere/at all" if kind is FileType.SYMLINK else None)
    devices = {FileType.CHAR_DEVICE: (1, 3), FileType.BLOCK_DEVICE: (259, 70_000)}
    assert entry.device == devices.get(kind)
    assert entry.link_group is None
    assert (entry.content, entry.sha256, entry.tree) == (None, None, None)


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o4755, 0o2750, 0o1777, 0o000])
def test_all_twelve_mode_bits_are_recorded(folder: tuple[Path, int], mode: int) -> None:
    """What to drop is the restore's decision; what was there is ours to know (E18)."""
    path, fd = folder
    (path / "x").write_bytes(b"")
    os.chmod(path / "x", mode)

    assert entry_of(fd, b"x").mode == mode


@pytest.mark.parametrize(
    "mtime_ns",
    [
        -1,
        -SECOND,
        -SECOND - 1,
        0,
        1,
        YEAR_2038 * SECOND,
        YEAR_2038 * SECOND + 999_999_999,
        YEAR_10000 * SECOND + 7,
        -YEAR_2038 * SECOND * 20 + 3,
    ],
)
def test_times_before_1970_and_far_ahead_are_exact(mtime_ns: int) -> None:
    """Floats and 32-bit seconds round or wrap exactly here. A tmpfs keeps all 64 bits."""
    name = b"/dev/shm/durarepo-mtime-%d" % os.getpid()
    fd = os.open(b"/dev/shm", os.O_RDONLY)
    try:
        with open(name, "wb"):
            pass
        os.utime(name, ns=(0, mtime_ns))

        assert entry_of(fd, os.path.basename(name)).mtime_ns == mtime_ns
    finally:
        os.unlink(name)
        os.close(fd)


def test_the_time_of_birth_is_the_kernels_and_not_a_targets(folder: tuple[Path, int]) -> None:
    """GNU stat reads the same field; a symlink has a birth of its own."""
    path, fd = folder
    (path / "x").write_bytes(b"")
    time.sleep(0.02)
    (path / "link").symlink_to("x")
    os.utime(path / "x", ns=(5, 5))

    for name in ("x", "link"):
        shown = subprocess.run(
            ["stat", "-c", "%.9W", path / name], capture_output=True, text=True, check=True
        ).stdout.strip()
        seconds, nanoseconds = shown.split(".")
        assert entry_of(fd, name.encode()).birth_ns == int(seconds) * SECOND + int(nanoseconds)
    assert entry_of(fd, b"x").birth_ns != entry_of(fd, b"link").birth_ns


def test_without_statx_the_time_of_birth_is_unknown(
    folder: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old C library costs this field, not the backup."""
    path, fd = folder
    (path / "x").write_bytes(b"")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())

    assert entry_of(fd, b"x").birth_ns is None


def test_extended_attributes_come_sorted_and_byte_for_byte(folder: tuple[Path, int]) -> None:
    """ACLs and capabilities are attributes: losing one changes who may do what."""
    path, fd = folder
    name = b"odd \xff\n\x1b name "
    full = os.path.join(os.fsencode(path), name)
    with open(full, "wb"):
        pass
    capability = bytes.fromhex("0100000200040000000000000000000000000000")
    os.setxattr(full, b"user.zz", b"\x00\xff" * 20)
    os.setxattr(full, b"user.empty", b"")
    os.setxattr(full, b"user.n\xff", b"v")
    os.setxattr(full, b"trusted.ours", b"t")
    os.setxattr(full, b"security.capability", capability)

    entry = entry_of(fd, name)

    assert entry.xattrs == (
        (b"security.capability", capability),
        (b"trusted.ours", b"t"),
        (b"user.empty", b""),
        (b"user.n\xff", b"v"),
        (b"user.zz", b"\x00\xff" * 20),
    )


def test_access_control_lists_of_files_and_folders_are_kept(folder: tuple[Path, int]) -> None:
    """A default ACL of a folder decides on every file made in it after a restore."""
    path, fd = folder
    (path / "d").mkdir()
    access = bytes.fromhex(
        "02000000"  # version 2, then (tag, permissions, id)
        "01000700ffffffff"
        "02000500fe000000"
        "04000500ffffffff"
        "10000500ffffffff"
        "20000000ffffffff"
    )
    os.setxattr(path / "d", "system.posix_acl_access", access)
    os.setxattr(path / "d", "system.posix_acl_default", access)

    assert entry_of(fd, b"d").xattrs == (
        (b"system.posix_acl_access", access),
        (b"system.posix_acl_default", access),
    )


def test_attributes_of_a_symlink_are_its_own(folder: tuple[Path, int]) -> None:
    """Following here would give the link its target's attributes."""
    path, fd = folder
    (path / "x").write_bytes(b"")
    os.setxattr(path / "x", "user.of-target", b"1")
    (path / "link").symlink_to("x")
    os.setxattr(path / "link", "trusted.of-link", b"2", follow_symlinks=False)

    assert entry_of(fd, b"link").xattrs == ((b"trusted.of-link", b"2"),)


def test_an_attribute_that_cannot_be_read_is_named_and_the_rest_is_kept(
    folder: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One bad attribute must be an omission, neither a crash nor silence."""
    path, fd = folder
    (path / "x").write_bytes(b"")
    for name in ("user.bad", "user.gone", "user.good"):
        os.setxattr(path / "x", name, b"v")
    real = os.getxattr

    def getxattr(target: bytes, name: bytes, *, follow_symlinks: bool) -> bytes:
        if name != b"user.good":
            raise OSError(errno.EIO if name == b"user.bad" else errno.ENODATA, "no")
        return real(target, name, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(os, "getxattr", getxattr)

    description = description_of(fd, b"x")

    assert description.entry.xattrs == ((b"user.good", b"v"),)
    assert [one.name for one in description.unread] == [b"user.bad"]


@pytest.mark.parametrize(
    ("number", "unread", "calls"), [(errno.EIO, [b""], 2), (errno.ENOTSUP, [], 1)]
)
def test_a_file_system_without_attributes_is_asked_once(
    folder: tuple[Path, int],
    monkeypatch: pytest.MonkeyPatch,
    *,
    number: int,
    unread: list[bytes],
    calls: int,
) -> None:
    """No attributes is normal; attributes that cannot even be listed are an omission."""
    path, fd = folder
    (path / "x").write_bytes(b"")
    asked = []

    def listxattr(target: bytes, *, follow_symlinks: bool) -> list[str]:
        asked.append((target, follow_symlinks))
        raise OSError(number, "no")

    monkeypatch.setattr(os, "listxattr", listxattr)
    reader = MetadataReader()

    for _ in range(2):
        description = reader.describe(fd, b"x", os.stat(path / "x"))

        assert description.entry.xattrs == ()
        assert [one.name for one in description.unread] == unread
    assert len(asked) == calls


def test_more_attributes_than_the_format_holds_are_named(
    folder: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal while encoding would end the whole run."""
    path, fd = folder
    (path / "x").write_bytes(b"")
    for number in range(4):
        os.setxattr(path / "x", f"user.{number}", b"")
    monkeypatch.setattr("durarepo.source.metadata.XATTRS_MAX_COUNT", 3)

    description = description_of(fd, b"x")

    assert len(description.entry.xattrs) == 3
    assert [one.name for one in description.unread] == [b"user.3"]


def test_an_unknown_owner_has_a_number_and_no_name(folder: tuple[Path, int]) -> None:
    """Names are a help, ids are the truth."""
    path, fd = folder
    (path / "x").write_bytes(b"")
    os.chown(path / "x", 3_999_999_999, 3_999_999_998)

    entry = entry_of(fd, b"x")

    assert (entry.uid, entry.gid) == (3_999_999_999, 3_999_999_998)
    assert (entry.user, entry.group) == (None, None)


def test_owner_names_are_looked_up_once(
    folder: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look-up may ask a directory server: not for each of 100,000 files."""
    path, fd = folder
    (path / "x").write_bytes(b"")
    asked = []
    real = pwd.getpwuid

    def getpwuid(uid: int) -> pwd.struct_passwd:
        asked.append(uid)
        return real(uid)

    monkeypatch.setattr(pwd, "getpwuid", getpwuid)
    reader = MetadataReader()
    for _ in range(3):
        reader.describe(fd, b"x", os.stat(path / "x"))

    assert asked == [0]


def test_names_of_one_inode_share_a_group_and_others_have_none(folder: tuple[Path, int]) -> None:
    """Only so can a restore join them; symlinks and pipes can be linked too, folders cannot."""
    path, fd = folder
    (path / "a").write_bytes(b"")
    (path / "link").symlink_to("x")
    (path / "d" / "sub").mkdir(parents=True)
    for name in ("a", "link"):
        os.link(path / name, path / f"{name}2", follow_symlinks=False)

    groups = {
        name: entry_of(fd, name, file_system=b"/data").link_group
        for name in (b"a", b"a2", b"link", b"link2", b"d")
    }

    assert groups[b"a"] == groups[b"a2"] == link_group((path / "a").stat().st_ino, b"/data")
    assert groups[b"link"] == groups[b"link2"]
    assert len({groups[b"a"], groups[b"link"]}) == 2
    assert groups[b"d"] is None


def test_symlink_targets_are_bytes_of_any_kind(folder: tuple[Path, int]) -> None:
    """A target is not a path of ours: nothing is decoded or shortened."""
    path, fd = folder
    target = b"../\xff\n\x1b/" + b"t" * 4000
    os.symlink(target, os.fsencode(path / "link"))

    assert entry_of(fd, b"link").target == target


def test_a_symlink_that_went_or_turned_is_told_apart(folder: tuple[Path, int]) -> None:
    """Gone is no omission; turned into something else is one."""
    path, fd = folder
    (path / "link").symlink_to("x")
    found = os.lstat(path / "link")
    (path / "link").unlink()

    with pytest.raises(VanishedError):
        MetadataReader().describe(fd, b"link", found)
    (path / "link").write_bytes(b"")
    with pytest.raises(SourceError) as refused:
        MetadataReader().describe(fd, b"link", found)

    assert refused.value.code == "source.changed-type"


def test_a_directory_describes_itself_through_its_descriptor(folder: tuple[Path, int]) -> None:
    """A root has no parent that the walk holds."""
    path, fd = folder
    os.setxattr(path, "user.root", b"1")

    entry = MetadataReader().describe(fd, b".", os.fstat(fd)).entry

    assert entry.type is FileType.DIRECTORY
    assert entry.xattrs == ((b"user.root", b"1"),)
    assert entry.birth_ns is not None


def test_an_unprivileged_reader_sees_what_it_may(
    open_tree: Path, check_as_nobody: Callable[[Callable[[], None]], None]
) -> None:
    """Attributes in the trusted name space show for root only; the others must not fail."""
    (open_tree / "x").write_bytes(b"")
    os.chmod(open_tree / "x", 0o644)
    os.setxattr(open_tree / "x", "user.u", b"1")
    os.setxattr(open_tree / "x", "trusted.t", b"2")
    (open_tree / "closed").write_bytes(b"")
    os.setxattr(open_tree / "closed", "user.u", b"1")
    os.chmod(open_tree / "closed", 0o600)

    def check() -> None:
        fd = os.open(open_tree, os.O_RDONLY)
        assert entry_of(fd, b"x").xattrs == ((b"user.u", b"1"),)
        closed = description_of(fd, b"closed")
        assert closed.entry.mode == 0o600
        assert [one.name for one in closed.unread] == [b"user.u"]

    check_as_nobody(check)
