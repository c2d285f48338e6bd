"""The kernel's list of mounts, and the number that names of one inode share."""

import hashlib
from pathlib import Path

import pytest

from durarepo.source.mounts import (
    PSEUDO_FILESYSTEMS,
    Mount,
    MountTable,
    link_group,
    parse_mountinfo,
    read_mounts,
)

SAMPLE = rb"""22 27 0:20 / /proc rw,nosuid shared:12 - proc proc rw
27 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw
90 27 8:1 /sub /mnt/a\040b\011c\012d\134e rw - xfs /dev/sda1 rw,attr2
91 27 0:44 / /mnt/many rw shared:3 master:2 propagate_from:1 unbindable - fuse.sshfs me@host: rw
92 27 0:45 / /mnt/hidden rw - tmpfs none rw
93 27 0:46 / /mnt/hidden rw - proc none rw
94 27 0:47 / /mnt/- rw - tmpfs - rw
"""


def test_every_line_gives_path_and_type_with_escapes_undone() -> None:
    """A mount point with a blank in its name must still be seen as one."""
    assert [(mount.path, mount.fs_type) for mount in parse_mountinfo(SAMPLE)] == [
        (b"/proc", b"proc"),
        (b"/", b"ext4"),
        (b"/mnt/a b\tc\nd\\e", b"xfs"),
        (b"/mnt/many", b"fuse.sshfs"),
        (b"/mnt/hidden", b"tmpfs"),
        (b"/mnt/hidden", b"proc"),
        (b"/mnt/-", b"tmpfs"),
    ]


@pytest.mark.parametrize(
    "text",
    [b"", b"\n\n", b"x", b"1 2 3 4 5 6 -", b"22 27 0:20 / /a rw shared:1 x y z w", b"\xff\0 " * 20],
)
def test_lines_of_another_form_are_skipped(text: bytes) -> None:
    """A later kernel's line must not end a backup."""
    assert parse_mountinfo(text) == []


def test_the_last_mount_on_a_path_hides_the_ones_before() -> None:
    """What is on top is what a walk would read."""
    mount = MountTable(parse_mountinfo(SAMPLE)).at(b"/mnt/hidden")

    assert mount is not None
    assert mount.is_pseudo


def test_a_path_belongs_to_the_nearest_mount_above_it() -> None:
    """By whole components: /mnt/many2 does not lie on /mnt/many."""
    table = MountTable(parse_mountinfo(SAMPLE))

    assert table.mount_point_of(b"/mnt/many/a/b") == b"/mnt/many"
    assert table.mount_point_of(b"/mnt/many") == b"/mnt/many"
    assert table.mount_point_of(b"/mnt/many2/a") == b"/"
    assert table.mount_point_of(b"/") == b"/"
    assert table.is_mount_point(b"/mnt/many")
    assert not table.is_mount_point(b"/mnt/many/a")


def test_this_machine_mounts_proc_and_a_root() -> None:
    """The real list must be read, not only the sample."""
    table = read_mounts()

    proc = table.at(b"/proc")
    assert proc is not None
    assert proc.fs_type in PSEUDO_FILESYSTEMS
    assert table.is_mount_point(b"/")


def test_without_proc_the_table_is_empty(tmp_path: Path) -> None:
    """A bare chroot has no /proc; the walk then goes by device numbers."""
    table = read_mounts(bytes(tmp_path / "none"))

    assert table.at(b"/") is None
    assert table.mount_of(b"/a/b") is None
    assert table.mount_point_of(b"/a/b") == b"/"


def test_a_link_group_follows_from_mount_point_and_inode_alone() -> None:
    """Device numbers change with a reboot; then every linked file would look changed."""
    expected = int.from_bytes(hashlib.sha256(b"/data\x0042").digest()[:8], "big")

    assert link_group(42, b"/data") == expected
    assert len({link_group(42, b"/data"), link_group(43, b"/data"), link_group(42, b"/")}) == 3


def test_ordinary_file_systems_are_not_pseudo() -> None:
    """Taking tmpfs or fuse for the kernel's would lose files without a word."""
    for name in (b"ext4", b"xfs", b"btrfs", b"zfs", b"tmpfs", b"overlay", b"nfs4", b"fuse.x"):
        assert not Mount(path=b"/", fs_type=name).is_pseudo
