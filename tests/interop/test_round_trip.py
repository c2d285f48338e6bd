"""From source to snapshot to checkout, compared by rsync, getfattr and stat: nothing of it ours."""

import os
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from durarepo.operations.checkout import CheckoutRequest, checkout
from tests.doubles.children import run_in_child
from tests.machines.stream import Stream

NOBODY = 65534
DAY_BEFORE_THE_EPOCH_NS = -1_000_000_000
YEAR_2038_NS = 2_147_483_648 * 1_000_000_000 + 1
MANY = 100_000 if os.environ.get("DURAREPO_TESTS_LONG") else 5_000
"""Files of the large tree: all in the long mode, a share of them in each other run."""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder on a disk that knows attributes and holds times, open to an unprivileged child."""
    path = Path(tempfile.mkdtemp(prefix="round-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    subprocess.run(["chmod", "-R", "u+rwX", path], check=False)
    shutil.rmtree(path)


def _plant(root: Path, *, as_root: bool) -> None:
    """Make one of everything that a folder can hold."""
    odd = [b"not-\xff-utf8", b"new\nline", b"escape\x1b[2J", b"trailing  ", b"x" * 255]
    for number, name in enumerate(odd):
        path = os.path.join(os.fsencode(root), name)
        with open(path, "wb") as file:
            file.write(b"%d" % number * 3000)
        os.utime(path, ns=(0, (DAY_BEFORE_THE_EPOCH_NS, YEAR_2038_NS)[number % 2]))
    (root / "empty").mkdir(mode=0o750)
    (root / "closed").mkdir()
    (root / "closed" / "kept").write_bytes(b"in a folder without write permission")
    (root / "closed").chmod(0o500)
    (root / "one").write_bytes(b"one inode")
    os.link(root / "one", root / "empty" / "two")
    os.link(root / "one", root / "three")
    os.symlink("/etc/passwd", root / "away")
    os.symlink(b"dangling \xfe", root / "dangling")
    os.mkfifo(root / "pipe", 0o640)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(root / "socket"))
    with open(root / "sparse", "wb") as file:
        file.write(b"begin")
        file.seek(3 << 20)
        file.write(b"end")
        file.truncate(5 << 20)
    (root / "large").write_bytes(os.urandom(700_000) + b"text " * 100_000)
    _plant_attributes(root, as_root=as_root)


def _plant_attributes(root: Path, *, as_root: bool) -> None:
    os.setxattr(root / "one", "user.note", b"small")
    os.setxattr(root / "empty", "user.folder", b"\0\xff")
    subprocess.run(["setfacl", "-m", "u:12345:r", root / "large"], check=True)
    subprocess.run(["setfacl", "-d", "-m", "g:12345:rx", root / "empty"], check=True)
    if as_root:
        os.mknod(root / "device", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        os.chown(root / "large", 12345, 54321)
        os.setxattr(root / "one", "trusted.note", b"for root alone")


def _restored(stream: Stream, destination: Path) -> Path:
    with stream.open() as repository:
        request = CheckoutRequest(destination=os.fsencode(destination))
        checkout(repository, request, clock=stream.clock)
    return destination / str(stream.root).lstrip("/")


def _attributes(folder: Path) -> list[str]:
    listing = subprocess.run(
        ["getfattr", "-R", "-h", "-d", "-m", "-", "-e", "hex", "."],
        cwd=folder,
        capture_output=True,
        check=True,
    ).stdout
    return sorted(os.fsdecode(listing).split("\n\n"))


def _check_equal(source: Path, restored: Path) -> None:
    options = ["-aHAXn", "--itemize-changes", "--delete", "--checksum", "--specials", "--devices"]
    changes = subprocess.run(
        ["rsync", *options, f"{source}/", f"{restored}/"], capture_output=True, check=True
    ).stdout
    assert changes == b""
    assert _attributes(source) == _attributes(restored)
    for name in os.listdir(os.fsencode(source)):
        one = os.lstat(os.path.join(os.fsencode(source), name))
        two = os.lstat(os.path.join(os.fsencode(restored), name))
        assert (one.st_mode, one.st_mtime_ns, one.st_size) == (
            two.st_mode,
            two.st_mtime_ns,
            two.st_size,
        )
    assert (restored / "sparse").stat().st_blocks * 512 < 1 << 20


@pytest.mark.parametrize("as_root", [True, False])
def test_everything_a_folder_can_hold_comes_back(place: Path, as_root: bool) -> None:  # noqa: FBT001
    """What other tools see of a restored folder has to be what they saw of the source."""

    def go() -> None:
        stream = Stream(place / "s")
        _plant(stream.root, as_root=as_root)
        stream.snapshot()
        _check_equal(stream.root, _restored(stream, place / "out"))

    if as_root:
        go()
    else:
        os.chown(place, NOBODY, NOBODY)
        run_in_child(go, user=NOBODY)


def test_a_tree_of_very_many_files_comes_back(place: Path) -> None:
    """Many small files are what an agent's folder is made of; their listings are cut and joined."""
    stream = Stream(place / "s")
    for number in range(MANY):
        folder = stream.root / f"{number % 97:02}"
        if number < 97:
            folder.mkdir()
        (folder / f"file-{number}").write_bytes(b"content %d" % (number // 3))

    made = stream.snapshot()
    restored = _restored(stream, place / "out")

    assert made.files == MANY
    assert made.new_chunks < MANY // 3 + 200
    same = subprocess.run(["diff", "-r", stream.root, restored], capture_output=True, check=False)
    assert (same.returncode, same.stdout) == (0, b"")
