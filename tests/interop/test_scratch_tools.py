"""What a restore made, compared by tools that know nothing of durarepo: rsync, getfattr, stat."""

import codecs
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from durarepo.core.entries import Entry, FileType
from durarepo.local.work import WorkFolder
from durarepo.repository.scratch import Linkable, ScratchBuilder

NOBODY = 65534
TYPES = {
    stat.S_IFREG: FileType.FILE,
    stat.S_IFDIR: FileType.DIRECTORY,
    stat.S_IFLNK: FileType.SYMLINK,
    stat.S_IFIFO: FileType.FIFO,
    stat.S_IFSOCK: FileType.SOCKET,
    stat.S_IFCHR: FileType.CHAR_DEVICE,
    stat.S_IFBLK: FileType.BLOCK_DEVICE,
}
WINDOW = 1 << 16
DISKS = ("/dev/shm", "/tmp")  # noqa: S108 - one that holds every time, and the usual one


@dataclass(frozen=True, slots=True)
class Held:
    """A lock that is held."""

    is_held: bool = True


@pytest.fixture
def place() -> Iterator[bytes]:
    """A folder of its own that an unprivileged child may use too."""
    path = tempfile.mkdtemp(prefix="scratch-", dir="/tmp")
    os.chown(path, NOBODY, NOBODY)
    yield os.fsencode(path)
    subprocess.run(["chmod", "-R", "u+rwX", path], check=False)
    shutil.rmtree(path)


def begin(destination: bytes, *, privileges: bool = False) -> ScratchBuilder:
    """Return a builder for ``destination`` with a real work folder beside it."""
    keeper = WorkFolder(os.path.dirname(destination) + b"/work", Held())
    return ScratchBuilder.create(destination, protected=[], keeper=keeper, privileges=privileges)


def set_mode(path: bytes, mode: int) -> None:
    """Give ``path`` a mode, however odd."""
    os.chmod(path, mode)


def entry_of(path: bytes) -> Entry:
    """Return what a listing says of ``path``."""
    found = os.lstat(path)
    kind = TYPES[stat.S_IFMT(found.st_mode)]
    names = [os.fsencode(n) for n in os.listxattr(path, follow_symlinks=False)]
    return Entry(
        name=os.path.basename(path),
        type=kind,
        mode=stat.S_IMODE(found.st_mode),
        mtime_ns=found.st_mtime_ns,
        uid=found.st_uid,
        gid=found.st_gid,
        size=found.st_size if kind is FileType.FILE else 0,
        device=(os.major(found.st_rdev), os.minor(found.st_rdev)),
        xattrs=tuple((n, os.getxattr(path, n, follow_symlinks=False)) for n in sorted(names)),
        link_group=found.st_ino if kind is not FileType.DIRECTORY and found.st_nlink > 1 else None,
        target=os.readlink(path) if kind is FileType.SYMLINK else None,
    )


def pieces_of(path: bytes, size: int) -> Iterator[bytes | int]:
    """Yield the content of ``path``, holes as lengths."""
    fd = os.open(path, os.O_RDONLY)
    at = 0
    while at < size:
        try:
            data = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:
            data = size
        if data > at:
            yield data - at
        at = data
        end = os.lseek(fd, at, os.SEEK_HOLE) if at < size else at
        while at < end:
            block = os.pread(fd, min(WINDOW, end - at), at)
            at += len(block)
            yield block
    os.close(fd)


def restore(source: bytes, builder: ScratchBuilder) -> bytes:
    """Rebuild ``source`` as a root of the same path; return where it lies now."""
    links: dict[int, Linkable] = {}

    def fill(folder: bytes) -> None:
        for name in sorted(os.listdir(folder)):
            path = folder + b"/" + name
            entry = entry_of(path)
            if entry.type is FileType.DIRECTORY:
                builder.enter(entry)
                fill(path)
                builder.leave()
                continue
            first = links.get(entry.link_group or -1)
            if first is not None and builder.add_link(entry, first):
                continue
            if entry.type is FileType.FILE:
                made = builder.add_file(entry, pieces_of(path, entry.size))
            else:
                made = builder.add_special(entry)
            if made is not None and entry.link_group is not None:
                links[entry.link_group] = made

    builder.enter_root(source, entry_of(source))
    fill(source)
    builder.leave()
    builder.finish()
    builder.publish()
    return builder.destination + source


def difference(source: bytes, restored: bytes) -> str:
    """Return what rsync would have to change, in content, links and every attribute."""
    return subprocess.run(
        [
            *("rsync", "-aHAXnc", "--numeric-ids", "--modify-window=-1", "--itemize-changes"),
            *("--delete", source + b"/", restored + b"/"),
        ],
        check=True,
        capture_output=True,
    ).stdout.decode("utf-8", "backslashreplace")


def attributes(path: bytes) -> bytes:
    """Return every attribute below ``path`` as getfattr tells them."""
    return subprocess.run(
        ["getfattr", "-R", "-P", "-d", "-h", "-m", "-", "-e", "hex", "."],
        check=True,
        capture_output=True,
        cwd=path,
    ).stdout


def make_tree(top: bytes, *, is_root: bool) -> None:
    """Make an agent's folder with everything that a file system of Linux can hold."""
    make_names(top)
    make_kinds(top)
    make_attributes(top)
    if is_root:
        make_what_only_root_can(top)
    moments = {b"/empty": -1, b"/large": 1, b"/link-up": 4_000_000_000 * 10**9 + 7}
    moments |= {b"/fifo": -(10**18) - 3, b"/deep/er": 2**31 * 10**9}
    moments |= {b"/shared": 10**18 + 999_999_999}
    for path, moment in moments.items():
        os.utime(top + path, ns=(moment, moment), follow_symlinks=False)


def make_names(top: bytes) -> None:
    """Make files whose names are hard to carry."""
    os.makedirs(top + b"/deep/er/closed")
    names = [b"plain", b"-n", b" sp ace ", "é".encode(), "e\u0301".encode(), b"\xff\xfe", b"a\\b"]
    for name in [*names, b"new\nline", b"Twin", b"twin", b"n" * 255, b".hidden"]:
        Path(os.fsdecode(top + b"/deep/" + name)).write_bytes(name * 500)


def make_kinds(top: bytes) -> None:
    """Make every type of file that needs no rights, and hard links."""
    Path(os.fsdecode(top + b"/empty")).touch()
    Path(os.fsdecode(top + b"/large")).write_bytes(os.urandom(300_000))
    with open(top + b"/sparse", "wb") as sparse:
        sparse.seek(5_000_000)
        sparse.write(b"middle")
        sparse.truncate(12_000_000)
    os.symlink(b"/etc/passwd", top + b"/link-out")
    os.symlink(b"../../../../x", top + b"/link-up")
    os.symlink(b"nowhere", top + b"/dangling")
    os.mkfifo(top + b"/fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fsdecode(top + b"/sock"))
    os.link(top + b"/large", top + b"/deep/er/large-again")
    os.link(top + b"/dangling", top + b"/deep/dangling-again", follow_symlinks=False)


def make_attributes(top: bytes) -> None:
    """Set attributes, ACLs and modes."""
    os.mkdir(top + b"/shared")
    os.setxattr(top + b"/empty", b"user.note", b"v\0\xff" * 20)
    os.setxattr(top + b"/shared", b"user.folder", b"")
    for acl in ("u:1234:rw,g:77:r", "u:1:r"):
        subprocess.run(["setfacl", "-m", acl, top + b"/large"], check=True)
    subprocess.run(["setfacl", "-m", "u:1234:rwx,d:u:55:rw,d:g::r", top + b"/shared"], check=True)
    Path(os.fsdecode(top + b"/shared/in")).write_bytes(b"made under a default ACL")
    os.mkdir(top + b"/shared/sub")
    set_mode(top + b"/deep/plain", 0o400)
    set_mode(top + b"/fifo", 0o622)
    set_mode(top + b"/shared", 0o3770)


def make_what_only_root_can(top: bytes) -> None:
    """Make devices, foreign owners, attributes of the system and a closed folder."""
    os.mknod(top + b"/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(top + b"/disk", stat.S_IFBLK | 0o600, os.makedev(259, 70_000))
    set_mode(top + b"/null", 0o666)
    for name in (b"/empty", b"/link-out", b"/fifo"):
        os.setxattr(top + name, b"trusted.t", name, follow_symlinks=False)
    for path, owner in ((b"/empty", 1234), (b"/link-up", 77), (b"/fifo", 5), (b"/deep", 99)):
        os.chown(top + path, owner, owner + 1, follow_symlinks=False)
    set_mode(top + b"/deep/er/closed", 0o000)


def in_child(script: str, *arguments: bytes, prefix: tuple[str, ...] = ()) -> dict[str, object]:
    """Run ``script`` in a fresh interpreter under ``prefix``; return the JSON that it prints."""
    here = os.fsdecode(os.path.dirname(os.path.abspath(__file__)))
    path = os.pathsep.join([here, *filter(None, sys.path)])
    run = subprocess.run(
        [*prefix, sys.executable, "-c", script, *arguments],
        check=False,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert run.returncode == 0, run.stderr.decode()
    result = json.loads(run.stdout)
    assert isinstance(result, dict)
    return result


def forked_as_nobody() -> int:
    """Fork; return 0 in a child that is an unprivileged user, else the child."""
    codecs.lookup("ascii")  # a child that may not read the interpreter cannot load it any more
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    return child


def exit_of(child: int) -> int:
    """Return the exit code of ``child``."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_restore_as_root_leaves_rsync_nothing_to_change(place: bytes) -> None:
    """Every attribute that a listing keeps comes back: no silent loss (wish 31)."""
    source = place + b"/agent"
    make_tree(source, is_root=True)
    builder = begin(place + b"/out")

    restored = restore(source, builder)

    assert difference(source, restored) == ""
    assert attributes(restored) == attributes(source)
    assert builder.not_restored == {}
    # The comparison itself must be able to see a loss.
    set_mode(restored + b"/large", 0o600)
    os.utime(restored + b"/deep/er", ns=(0, 2**31 * 10**9 + 1))
    os.removexattr(restored + b"/empty", b"user.note")
    assert sorted(line[12:] for line in difference(source, restored).splitlines()) == [
        "deep/er/",
        "deep/er/large-again",
        "empty",
        "large",
    ]


def test_a_restore_as_an_unprivileged_user_leaves_rsync_nothing_to_change(place: bytes) -> None:
    """Most agents do not run as root, and must not need to."""
    child = forked_as_nobody()
    if child == 0:
        code = 1
        try:
            source = place + b"/agent"
            make_tree(source, is_root=False)
            builder = begin(place + b"/out")
            restored = restore(source, builder)
            same = difference(source, restored) == "" and attributes(source) == attributes(restored)
            code = 0 if same and builder.not_restored == {} else 2
        except Exception:  # noqa: BLE001 - told by the exit code, and seen in the output
            traceback.print_exc()
        finally:
            os._exit(code)

    assert exit_of(child) == 0


def test_what_an_unprivileged_user_may_not_restore_is_counted(place: bytes) -> None:
    """A tree kept by root, restored by a user: contents whole, losses told."""
    source = place + b"/agent"
    make_tree(source, is_root=True)
    entries = {n: entry_of(source + b"/" + n) for n in (b"empty", b"link-out", b"null", b"fifo")}
    child = forked_as_nobody()
    if child == 0:
        code = 1
        try:
            builder = begin(place + b"/out")
            builder.enter_root(b"/r", entry_of(place)._replace(mode=0o755))
            builder.add_file(entries[b"empty"], [])
            for name in (b"link-out", b"null", b"fifo"):
                builder.add_special(entries[name])
            builder.leave()
            builder.finish()
            builder.publish()
            # empty, link-out and fifo were root's or others'; three trusted attributes.
            code = 0 if builder.not_restored == {"owner": 3, "xattr": 3, "device": 1} else 2
        except Exception:  # noqa: BLE001 - told by the exit code, and seen in the output
            traceback.print_exc()
        finally:
            os._exit(code)

    assert exit_of(child) == 0
    restored = place + b"/out/r"
    assert sorted(os.listdir(restored)) == [b"empty", b"fifo", b"link-out"]
    assert os.getxattr(restored + b"/empty", b"user.note") == b"v\0\xff" * 20
    assert {os.lstat(restored + b"/" + n).st_uid for n in os.listdir(restored)} == {NOBODY}


@pytest.mark.parametrize("privileges", [False, True])
def test_capabilities_come_back_only_where_asked_for(place: bytes, *, privileges: bool) -> None:
    """A capability is a setuid bit by another name (E18)."""
    source = place + b"/agent"
    os.mkdir(source)
    Path(os.fsdecode(source + b"/tool")).write_bytes(b"#!/bin/true\n")
    set_mode(source + b"/tool", 0o755)
    os.chown(source + b"/tool", 1234, 1234)
    subprocess.run(["setcap", "cap_net_raw+ep", source + b"/tool"], check=True)
    builder = begin(place + b"/out", privileges=privileges)

    restored = restore(source, builder)

    names = os.listxattr(restored + b"/tool")
    assert names == (["security.capability"] if privileges else [])
    assert builder.not_restored == ({} if privileges else {"capabilities": 1})
    assert os.stat(restored + b"/tool").st_uid == 1234


def test_nothing_is_inherited_from_where_the_destination_stands(place: bytes) -> None:
    """A default ACL or setgid folder there would open restored files to strangers."""
    source = place + b"/agent"
    make_tree(source, is_root=True)
    parent = place + b"/parent"
    os.mkdir(parent)
    os.chown(parent, 0, 4321)
    set_mode(parent, 0o2755)
    subprocess.run(["setfacl", "-m", "d:u:1234:rwx,d:o::rwx", parent], check=True)

    restored = restore(source, begin(parent + b"/out"))

    assert difference(source, restored) == ""
    top = os.stat(parent + b"/out")
    assert (stat.S_IMODE(top.st_mode), os.listxattr(parent + b"/out")) == (0o700, [])


def test_holes_stay_holes(place: bytes) -> None:
    """A sparse disk image of 12 MB on 8 KB must not take 12 MB (wish of every VM user)."""
    source = place + b"/agent"
    os.mkdir(source)
    with open(source + b"/image", "wb") as image:
        image.seek(64 << 20)
        image.write(b"x")
        image.truncate(256 << 20)
    Path(os.fsdecode(source + b"/all-hole")).touch()
    os.truncate(source + b"/all-hole", 1 << 30)

    restored = restore(source, begin(place + b"/out"))

    assert os.stat(restored + b"/image").st_size == 256 << 20
    assert os.stat(restored + b"/image").st_blocks <= 16
    assert os.stat(restored + b"/all-hole").st_size == 1 << 30
    assert os.stat(restored + b"/all-hole").st_blocks == 0
    assert (
        subprocess.run(["cmp", source + b"/image", restored + b"/image"], check=False).returncode
        == 0
    )


MOMENTS = {
    b"before": -1,
    b"long-before": -62_135_596_800 * 10**9,
    b"2038": (2**31 - 1) * 10**9 + 999_999_999,
    b"after-2038": 2**31 * 10**9 + 1,
    b"year-10000": 253_402_300_800 * 10**9 + 1,
    b"never": ((1 << 62) - 1) * 10**9,
}


def make_moments(destination: bytes, type_: FileType) -> ScratchBuilder:
    """Restore one thing for each of `MOMENTS`."""
    builder = begin(destination)
    top = entry_of(os.path.dirname(destination))
    builder.enter_root(b"/r", top)
    for name, moment in MOMENTS.items():
        entry = top._replace(name=name, type=type_, mtime_ns=moment, target=b"t", size=0, xattrs=())
        if type_ is FileType.DIRECTORY:
            builder.enter(entry)
            builder.leave()
        elif type_ is FileType.FILE:
            builder.add_file(entry, [])
        else:
            builder.add_special(entry)
    builder.leave()
    builder.finish()
    builder.publish()
    return builder


@pytest.mark.parametrize("type_", [FileType.FILE, FileType.DIRECTORY, FileType.SYMLINK])
@pytest.mark.parametrize("disk", DISKS)
def test_times_are_exact_or_counted(disk: str, type_: FileType) -> None:
    """A file system that cannot hold a time clamps it without a word."""
    with tempfile.TemporaryDirectory(dir=disk) as folder:
        builder = make_moments(os.fsencode(folder) + b"/out", type_)
        found = {n: os.lstat(builder.destination + b"/r/" + n).st_mtime_ns for n in MOMENTS}
        wrong = [name for name, moment in MOMENTS.items() if found[name] != moment]

        assert builder.not_restored.get("times", 0) == len(wrong)
        for name in (b"before", b"2038", b"after-2038"):
            assert found[name] == MOMENTS[name]
        if disk == DISKS[0]:
            assert found[b"year-10000"] == MOMENTS[b"year-10000"]


def test_a_full_disk_is_a_store_error_and_publishes_nothing(place: bytes) -> None:
    """ENOSPC in the middle of a restore must never look like a restore (law 6, C29)."""
    script = """
import json, os, subprocess, sys
from test_scratch_tools import begin, entry_of
from durarepo.core.entries import FileType
from durarepo.core.errors import StoreError
disk = os.fsencode(sys.argv[1]) + b"/disk"
os.mkdir(disk)
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "none", disk], check=True)
top = entry_of(disk)
file = top._replace(name=b"x", type=FileType.FILE, size=3 << 20)
result = {}
for name, pieces in (("large", [b"a" * (3 << 20)]), ("many", [b"a" * 4096] * 768)):
    try:
        with begin(disk + b"/out") as builder:
            builder.enter_root(b"/r", top)
            builder.add_file(file, iter(pieces))
    except StoreError as error:
        result[name] = error.code
    try:
        builder.finish()
    except ValueError:
        result[name] += " and not finished"
    result[name + " left"] = sorted(os.listdir(os.fsdecode(disk)))
    result[name + " free"] = os.statvfs(disk).f_bavail * 4096 > 900_000
print(json.dumps(result))
"""
    found = in_child(script, place, prefix=("unshare", "-m"))

    assert found == {
        "large": "store.full and not finished",
        "large left": ["work"],
        "large free": True,
        "many": "store.full and not finished",
        "many left": ["work"],
        "many free": True,
    }


def test_a_kill_in_the_middle_of_a_file_leaves_nothing_at_the_destination(place: bytes) -> None:
    """Kill -9 cannot be caught; only not having published can help."""
    child = os.fork()
    if child == 0:
        builder = begin(place + b"/out")
        builder.enter_root(b"/r", entry_of(place))

        def pieces() -> Iterator[bytes]:
            yield b"half"
            os.kill(os.getpid(), signal.SIGKILL)

        builder.add_file(entry_of(place)._replace(type=FileType.FILE, size=8), pieces())
        os._exit(0)

    assert exit_of(child) == -signal.SIGKILL
    assert not os.path.lexists(place + b"/out")
    assert len(os.listdir(place)) == 2
    assert WorkFolder(place + b"/work", Held()).clean_after_kill() == []
    assert os.listdir(place) == [b"work"]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_small_file_costs_six_system_calls(place: bytes) -> None:
    """50,000 small files are restored in seconds: open, write, chown, chmod, times, close."""
    script = """
import json, os, sys
from test_scratch_tools import begin, entry_of
from durarepo.core.entries import FileType
here = os.fsencode(sys.argv[1])
top = entry_of(here)
file = top._replace(type=FileType.FILE, size=3, uid=1234, gid=1234)
builder = begin(here + b"/out")
builder.enter_root(b"/r", top)
os.access("first mark", 0)
for number in range(100):
    builder.add_file(file._replace(name=b"%d" % number), [b"abc"])
os.access("second mark", 0)
builder.abandon()
print("{}")
"""
    log = os.fsdecode(place) + "/log"
    in_child(script, place, prefix=("strace", "-o", log))
    lines = Path(log).read_text(errors="replace").split("first mark")[1].split("second mark")[0]

    calls = [line.partition("(")[0] for line in lines.splitlines()[1:-1]]
    calls = [call for call in calls if call not in {"brk", "mmap", "munmap"}]
    assert calls[:6] == ["openat", "write", "fchown", "fchmod", "utimensat", "close"]
    assert len(calls) == 600
