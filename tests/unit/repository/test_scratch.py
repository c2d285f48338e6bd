"""The scratch builder: nothing outside its folder, nothing before publish, nothing half done."""

import codecs
import errno
import gc
import os
import pickle
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import traceback
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durarepo.core.entries import ChunkList, Consistency, Entry, FileType
from durarepo.core.errors import (
    ConfigurationError,
    DurarepoError,
    IntegrityError,
    PolicyRefusedError,
    StoreError,
)
from durarepo.local.work import WorkFolder
from durarepo.repository import scratch_place, scratch_staging
from durarepo.repository.scratch import Linkable, ScratchBuilder

Result = TypeVar("Result")
NOBODY = 65534
KILLED_RESULT = [b".durarepo", b".durarepo/held.json", b"r", b"r/l", b"r/s", b"r/x", b"r/y"]
MOMENT = 1_600_000_000_123_456_789


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


def keeper(place: bytes) -> WorkFolder:
    """Return a real work folder, as one run has it."""
    return WorkFolder(place + b"/work", Held())


def begin(place: bytes, *, privileges: bool = False, name: bytes = b"out") -> ScratchBuilder:
    """Return a builder for ``place``/NAME."""
    return ScratchBuilder.create(
        place + b"/" + name, protected=[], keeper=keeper(place), privileges=privileges
    )


def folder(name: bytes = b"d", mode: int = 0o755) -> Entry:
    """Return a directory that the running user owns."""
    return entry(name, type=FileType.DIRECTORY, mode=mode)


def entry(name: bytes, **facts: object) -> Entry:
    """Return a file of 3 bytes that the running user owns, but for ``facts``."""
    whole: dict[str, object] = {
        "name": name,
        "type": FileType.FILE,
        "mode": 0o644,
        "mtime_ns": MOMENT,
        "uid": os.geteuid(),
        "gid": os.getegid(),
        "size": 3 if facts.get("type", FileType.FILE) is FileType.FILE else 0,
    }
    return Entry(**{**whole, **facts})  # type: ignore[arg-type]  # facts are checked by the test


def symlink(name: bytes, target: bytes) -> Entry:
    """Return a symlink."""
    return entry(name, type=FileType.SYMLINK, mode=0o777, target=target)


def done(builder: ScratchBuilder) -> bytes:
    """Leave the one root, finish and publish; return the destination."""
    builder.leave()
    builder.finish()
    builder.publish()
    return builder.destination


def as_nobody(function: Callable[[], Result]) -> Result:
    """Return what ``function`` returns in a child that runs as an unprivileged user."""
    codecs.lookup("ascii")  # a child that may not read the interpreter cannot load it any more
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writing, pickle.dumps(function()))
        finally:
            if sys.exc_info()[0] is not None:
                traceback.print_exc()
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    assert told, "the unprivileged child failed; its traceback is above"
    result: Result = pickle.loads(told)  # noqa: S301 - from our own child
    return result


def set_mode(path: bytes, mode: int) -> None:
    """Give ``path`` a mode, however odd."""
    os.chmod(path, mode)


def listing(path: bytes) -> list[bytes]:
    """Return every path below ``path``, relative and sorted; links are not followed."""
    found = []
    for top, folders, files in os.walk(path):
        found += [os.path.relpath(os.path.join(top, name), path) for name in folders + files]
    return sorted(found)


def code_of(function: Callable[[], object]) -> str:
    """Return the code of the error that ``function`` raises."""
    with pytest.raises(DurarepoError) as caught:
        function()
    return caught.value.code


# --- Where it may stand


def test_entries_lie_at_their_absolute_source_path_below_the_destination(place: bytes) -> None:
    """Two roots of one base name must not meet in one folder (spec/cli.md 3)."""
    builder = begin(place)
    for root in (b"/home/a/notes", b"/home/b/notes"):
        builder.enter_root(root, folder())
        builder.add_file(entry(b"x"), [root[6:7], b"bc"])
        builder.leave()
    builder.write_marker(b"held.json", b"{}")
    builder.finish()
    builder.publish()

    out = builder.destination
    assert Path(os.fsdecode(out + b"/home/a/notes/x")).read_bytes() == b"abc"
    assert Path(os.fsdecode(out + b"/home/b/notes/x")).read_bytes() == b"bbc"
    assert sorted(os.listdir(out)) == [b".durarepo", b"home"]
    assert stat.S_IMODE(os.stat(out).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(out + b"/home").st_mode) == 0o700
    assert sorted(os.listdir(place)) == [b"out", b"work"]


def test_nothing_stands_at_the_destination_before_it_is_published(place: bytes) -> None:
    """A launcher that looks early must see no folder, not a half one."""
    builder = begin(place)
    builder.enter_root(b"/r", folder())
    builder.add_file(entry(b"x"), [b"abc"])
    builder.leave()
    assert not os.path.lexists(builder.destination)
    builder.finish()
    assert not os.path.lexists(builder.destination)
    assert stat.S_IMODE(os.stat(builder.staging).st_mode) == 0o700
    assert os.path.dirname(builder.staging) == os.path.dirname(builder.destination)

    builder.publish()

    assert listing(builder.destination) == [b"r", b"r/x"]
    assert not os.path.lexists(builder.staging)


def test_abandoning_leaves_no_trace(place: bytes) -> None:
    """A failed restore of 100 GB must not stay beside the destination."""
    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        builder.enter(folder(b"closed", 0o000))
        builder.add_file(entry(b"x"), [b"abc"])
        builder.leave()
        staging = builder.staging
        assert os.path.lexists(staging)

    assert sorted(os.listdir(place)) == [b"work"]
    assert not os.path.lexists(staging)


@pytest.mark.parametrize("kind", ["folder", "file", "dangling"])
def test_a_destination_that_exists_is_refused(place: bytes, kind: str) -> None:
    """A restore never merges into, replaces or follows what stands there."""
    out = place + b"/out"
    if kind == "folder":
        os.mkdir(out)
    elif kind == "file":
        Path(os.fsdecode(out)).write_bytes(b"mine")
    else:
        os.symlink(b"/nowhere", out)

    assert code_of(lambda: begin(place)) == "policy.destination-exists"
    assert sorted(os.listdir(place)) == [b"out"]


@pytest.mark.parametrize("fallback", [False, True])
def test_a_destination_made_meanwhile_is_not_replaced(
    place: bytes, monkeypatch: pytest.MonkeyPatch, *, fallback: bool
) -> None:
    """rename(2) would silently replace an empty folder that somebody has just made."""
    builder = begin(place)
    builder.finish()
    os.mkdir(builder.destination)
    inode = os.stat(builder.destination).st_ino
    if fallback:
        monkeypatch.setattr(scratch_place, "_call", lambda *_: errno.ENOSYS)

    assert code_of(builder.publish) == "policy.destination-exists"
    assert os.stat(builder.destination).st_ino == inode
    builder.abandon()
    assert sorted(os.listdir(place)) == [b"out", b"work"]


def test_an_old_kernel_publishes_too(place: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without renameat2 and syncfs the result is the same, each file synced by itself."""
    synced: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        real(fd)

    monkeypatch.setattr(scratch_place, "_call", lambda *_: errno.ENOSYS)
    monkeypatch.setattr(os, "fsync", fsync)
    builder = begin(place)
    builder.enter_root(b"/r", folder())
    builder.add_file(entry(b"x"), [b"abc"])
    out = done(builder)

    assert listing(out) == [b"r", b"r/x"]
    tree = os.fsdecode(builder.staging) + "/tree"
    for path in (f"{tree}/r/x", f"{tree}/r", tree, os.fsdecode(place)):
        assert path in synced


@pytest.mark.parametrize("name", [b"", b"/", b"..", b"out/..", b"out/.", b"a\0b", b"x" * 256])
def test_a_destination_without_a_name_of_its_own_is_refused(place: bytes, name: bytes) -> None:
    """A name that is no name could let an existing folder be taken for the new one."""
    path = name and (name if name == b"/" else place + b"/" + name)

    with pytest.raises((ConfigurationError, PolicyRefusedError)):
        ScratchBuilder.create(path, protected=[], keeper=keeper(place))
    assert os.listdir(place) == []


def test_a_relative_destination_and_a_long_name_work(
    place: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The staging folder's name is longer than the destination's and must stay a name."""
    monkeypatch.chdir(os.fsdecode(place))
    name = b"n" * 255
    builder = ScratchBuilder.create(name + b"/", protected=[], keeper=keeper(place))
    builder.finish()
    builder.publish()

    assert builder.destination == os.path.realpath(place) + b"/" + name
    assert os.listdir(place + b"/" + name) == []


def test_a_missing_parent_is_the_callers_mistake(place: bytes) -> None:
    """Making parents would create folders of a mistyped path."""
    assert code_of(lambda: begin(place, name=b"no/out")) == "config.destination"
    assert os.listdir(place) == []


def test_a_symlinked_parent_is_resolved_once_and_then_held(place: bytes) -> None:
    """Who may swap the link later must not move the restore elsewhere."""
    os.mkdir(place + b"/real")
    os.mkdir(place + b"/other")
    os.symlink(b"real", place + b"/link")
    builder = begin(place, name=b"link/out")
    os.unlink(place + b"/link")
    os.symlink(b"other", place + b"/link")
    builder.finish()
    builder.publish()

    assert os.listdir(place + b"/real") == [b"out"]
    assert os.listdir(place + b"/other") == []


def test_a_parent_that_anyone_may_write_is_refused_unless_sticky(place: bytes) -> None:
    """There, anyone could swap the staging folder while it is filled."""
    os.mkdir(place + b"/open")
    set_mode(place + b"/open", 0o777)
    assert code_of(lambda: begin(place, name=b"open/out")) == "policy.destination-parent"

    set_mode(place + b"/open", 0o1777)
    begin(place, name=b"open/out").abandon()
    assert os.listdir(place + b"/open") == []


@pytest.mark.parametrize("has_mount_table", [True, False])
@pytest.mark.parametrize("where", [b"root/out", b"root/a/b/out", b"link/out", b"root/sub/../out"])
def test_a_destination_in_a_protected_folder_is_refused(
    place: bytes, where: bytes, monkeypatch: pytest.MonkeyPatch, *, has_mount_table: bool
) -> None:
    """A restore inside a root would be backed up, or would overwrite what it restores (A6g)."""
    os.makedirs(place + b"/root/a/b")
    os.mkdir(place + b"/root/sub")
    os.symlink(b"root/a", place + b"/link")
    before = listing(place)
    if not has_mount_table:
        monkeypatch.setattr(scratch_place, "subtree_of", lambda _: None)

    def create() -> object:
        return ScratchBuilder.create(
            place + b"/" + where, protected=[place + b"/root"], keeper=keeper(place)
        )

    assert code_of(create) == "policy.destination-protected"
    assert listing(place) == before


@pytest.mark.parametrize("root", [b"out", b"out/deep/root", b"alias/out/r"])
def test_a_destination_that_would_be_or_hold_a_missing_root_is_refused(
    place: bytes, root: bytes
) -> None:
    """A root that is lost just now comes back at that path; the scratch must not be there."""
    os.symlink(b".", place + b"/alias")

    def create() -> object:
        return ScratchBuilder.create(
            place + b"/out", protected=[place + b"/" + root], keeper=keeper(place)
        )

    assert code_of(create) == "policy.destination-protected"


def test_a_destination_that_cannot_be_looked_at_is_a_failure_of_the_store(
    place: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads of a mistake in the program does not look at the disk that fails."""

    def failing(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(os, "lstat", failing)
    folder = os.open(place, os.O_PATH)

    with pytest.raises(StoreError):
        scratch_place.exists_at(folder, b"out")
    os.close(folder)


def test_a_bind_mount_does_not_hide_that_a_place_lies_in_a_root(place: bytes) -> None:
    """A mount shows the inside of a root at a path that passes none of its folders."""
    os.makedirs(place + b"/root/inner")
    os.makedirs(place + b"/whole")
    os.makedirs(place + b"/part")
    script = """
import os, sys
from durarepo.core.errors import PolicyRefusedError
from durarepo.repository.scratch_place import open_place
here = os.fsencode(sys.argv[1])
for where in ("whole/inner", "whole", "part"):
    try:
        open_place(here + f"/{where}/out".encode(), protected=[here + b"/root"])
    except PolicyRefusedError as error:
        print(where, error.code)
open_place(here + b"/out", protected=[here + b"/root"])
print("beside fine")
"""
    binds = 'mount --bind "$1/root" "$1/whole"; mount --bind "$1/root/inner" "$1/part"; '
    run = subprocess.run(
        [
            *("unshare", "-m", "sh", "-ec", binds + '"$2" -c "$3" "$1"', "sh"),
            *(os.fsdecode(place), sys.executable, script),
        ],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )

    refused = "policy.destination-protected"
    assert run.stdout.splitlines() == [
        f"whole/inner {refused}",
        f"whole {refused}",
        f"part {refused}",
        "beside fine",
    ]


# --- Hostile sequences


@pytest.mark.parametrize(
    "path",
    [
        *(b"", b"r", b"./r", b"/..", b"/.", b"/a/../b", b"/a/./b", b"//a", b"/a/", b"/a//b"),
        *(b"/a\0b", b"/.durarepo", b"/.durarepo/held.json", b"/" + b"x" * 256),
        b"/" + b"y/" * 2048 + b"z",
    ],
)
def test_a_root_path_that_is_not_plain_is_refused(place: bytes, path: bytes) -> None:
    """A signed manifest may still try to climb out or to forge the hold (E20)."""
    with begin(place) as builder:
        assert code_of(lambda: builder.enter_root(path, folder())) == "integrity.path"
        assert listing(builder.staging + b"/tree") == []


@pytest.mark.parametrize(
    "name", [b"", b".", b"..", b"a/b", b"/", b"/etc/passwd", b"../x", b"a\0b", b"\0", b"n" * 256]
)
def test_a_name_that_is_no_name_is_refused_for_every_type(place: bytes, name: bytes) -> None:
    """One unchecked way of making something is enough to escape (E20)."""
    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        first = builder.add_file(entry(b"first", link_group=1), [b"abc"])
        assert first is not None
        tries: list[Callable[[], object]] = [
            lambda: builder.enter(folder(name)),
            lambda: builder.add_file(entry(name), [b"abc"]),
            lambda: builder.add_special(symlink(name, b"t")),
            lambda: builder.add_special(entry(name, type=FileType.FIFO)),
            lambda: builder.add_link(entry(name, link_group=1), first),
        ]

        assert [code_of(attempt) for attempt in tries] == ["integrity.path"] * 5
        builder.leave()
        assert code_of(lambda: builder.write_marker(name, b"")) == "integrity.path"
        assert code_of(lambda: builder.enter_component(name)) == "integrity.path"
        assert listing(builder.staging + b"/tree") == [b"r", b"r/first"]


@pytest.mark.parametrize("standing", ["file", "folder", "symlink"])
@pytest.mark.parametrize("coming", ["file", "folder", "symlink", "link", "fifo"])
def test_a_name_that_is_taken_is_refused_whatever_stands_there(
    place: bytes, standing: str, coming: str
) -> None:
    """A symlink first and a folder of its name next is how archives escape (C20)."""
    outside = place + b"/outside"
    os.mkdir(outside)
    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        first = builder.add_file(entry(b"first", link_group=1), [b"abc"])
        assert first is not None

        def make(kind: str) -> object:
            if kind == "file":
                return builder.add_file(entry(b"x"), [b"abc"])
            if kind == "folder":
                builder.enter(folder(b"x"))
                return None
            if kind == "symlink":
                return builder.add_special(symlink(b"x", outside))
            if kind == "link":
                return builder.add_link(entry(b"x", link_group=1), first)
            return builder.add_special(entry(b"x", type=FileType.FIFO))

        make(standing)
        if standing == "folder":
            builder.leave()
        inode = os.lstat(builder.staging + b"/tree/r/x").st_ino

        assert code_of(lambda: make(coming)) == "integrity.name-collision"
        assert os.lstat(builder.staging + b"/tree/r/x").st_ino == inode
        builder.add_file(entry(b"later"), [b"abc"])
        out = done(builder)

    assert sorted(os.listdir(out + b"/r")) == [b"first", b"later", b"x"]
    assert os.listdir(outside) == []


def test_a_root_cannot_pass_through_what_an_earlier_root_made_a_symlink(place: bytes) -> None:
    """The folders above a root are shared, so they are where one root could plant for another."""
    outside = place + b"/outside"
    os.mkdir(outside)
    with begin(place) as builder:
        builder.enter_root(b"/home", folder())
        builder.add_special(symlink(b"a", outside))
        builder.add_file(entry(b"f"), [b"abc"])
        builder.leave()
        for path in (b"/home/a/x", b"/home/a", b"/home/f/x", b"/home/f", b"/home"):
            code = code_of(partial(builder.enter_root, path, folder()))
            assert code == "integrity.name-collision"
        builder.enter_root(b"/other", folder())
        out = done(builder)

    assert listing(out) == [b"home", b"home/a", b"home/f", b"other"]
    assert os.listdir(outside) == []


def test_a_root_of_all_cannot_forge_the_hold(place: bytes) -> None:
    """With the root `/` the kept names lie where the restore's own folder lies."""
    with begin(place) as builder:
        builder.enter_root(b"/", folder(mode=0o555))
        for attempt in (
            lambda: builder.enter(folder(b".durarepo")),
            lambda: builder.add_file(entry(b".durarepo"), [b"abc"]),
            lambda: builder.add_special(symlink(b".durarepo", b"/tmp")),
        ):
            assert code_of(attempt) == "integrity.path"
        builder.enter(folder(b"etc"))
        builder.enter(folder(b".durarepo"))
        builder.leave()
        builder.leave()
        builder.leave()
        assert code_of(lambda: builder.enter_root(b"/", folder())) == "integrity.name-collision"
        builder.write_marker(b"held.json", b"{}")
        builder.finish()
        builder.publish()

    out = builder.destination
    assert listing(out) == [b".durarepo", b".durarepo/held.json", b"etc", b"etc/.durarepo"]
    assert stat.S_IMODE(os.stat(out).st_mode) == 0o555
    assert os.stat(out).st_mtime_ns == MOMENT


def test_a_root_inside_an_earlier_one_leaves_that_as_it_was(place: bytes) -> None:
    """Roots may be nested where the outer one excludes the inner."""
    for user in ("root", "nobody"):

        def build(user: str = user) -> bytes:
            builder = begin(place, name=user.encode())
            builder.enter_root(b"/home/a", folder(mode=0o555))
            builder.add_file(entry(b"x"), [b"abc"])
            builder.leave()
            builder.enter_root(b"/home/a/inner/deep", folder(mode=0o500))
            builder.add_file(entry(b"y"), [b"abc"])
            builder.leave()
            builder.enter_root(b"/home", folder(mode=0o711))
            builder.leave()
            builder.finish()
            builder.publish()
            return builder.destination

        out = build() if user == "root" else as_nobody(build)
        assert listing(out)[1:] == [
            b"home/a",
            b"home/a/inner",
            b"home/a/inner/deep",
            b"home/a/inner/deep/y",
            b"home/a/x",
        ]
        for path, mode in ((b"/home/a", 0o555), (b"/home/a/inner/deep", 0o500), (b"/home", 0o711)):
            assert stat.S_IMODE(os.stat(out + path).st_mode) == mode
            assert os.stat(out + path).st_mtime_ns == MOMENT
        shutil.rmtree(place + b"/work")


def test_a_root_inside_an_earlier_one_inherits_nothing_from_it(place: bytes) -> None:
    """The outer folder has its default ACL and setgid bit by then; the inner one had neither."""
    source = place + b"/source"
    os.mkdir(source)
    subprocess.run(["setfacl", "-m", "d:u:1234:rwx", source], check=True)
    acl = os.getxattr(source, "system.posix_acl_default")
    outer = folder(mode=0o2777)._replace(xattrs=((b"system.posix_acl_default", acl),))
    builder = begin(place)
    builder.enter_root(b"/outer", outer)
    builder.leave()
    for path in (b"/outer/inner", b"/outer/on/the/way"):
        builder.enter_root(path, folder())
        builder.add_file(entry(b"x"), [b"abc"])
        builder.leave()
    builder.finish()
    builder.publish()

    out = builder.destination
    found = {p: os.listxattr(out + b"/" + p) for p in listing(out)}
    assert {p for p, names in found.items() if names} == {b"outer"}
    assert stat.S_IMODE(os.stat(out + b"/outer/on").st_mode) == 0o700
    assert stat.S_IMODE(os.stat(out + b"/outer/inner").st_mode) == 0o755
    assert stat.S_IMODE(os.stat(out + b"/outer").st_mode) == 0o2777


def test_a_path_over_the_limit_is_refused_at_its_last_name(place: bytes) -> None:
    """4,096 bytes of path are the law; the 4,097th must not be made (law 8)."""
    with begin(place) as builder:
        builder.enter_root(b"/" + b"r" * 255, folder())
        for _ in range(15):
            builder.enter(folder(b"d" * 255))
        # 16 folders are 4,096 bytes with their slashes: not even one more byte fits.
        assert code_of(lambda: builder.add_file(entry(b"x"), [b"abc"])) == "integrity.path"
        builder.leave()
        builder.add_file(entry(b"f" * 255), [b"abc"])
        with pytest.raises(IntegrityError):
            builder.add_file(entry(b"g" * 256), [b"abc"])


@pytest.mark.parametrize(
    "facts",
    [
        {"mode": 0o10000},
        {"mode": -1},
        {"uid": (1 << 32) - 1},
        {"gid": (1 << 32) - 1},
        {"uid": -1},
        {"size": -1},
        {"size": 1 << 63},
        {"xattrs": ((b"", b"v"),)},
        {"xattrs": ((b"user.a\0b", b"v"),)},
        {"xattrs": ((b"user." + b"a" * 251, b"v"),)},
        {"xattrs": ((b"user.a", b"v" * 65537),)},
        {"xattrs": tuple((b"user.%d" % i, b"") for i in range(1025))},
    ],
)
def test_metadata_that_cannot_exist_is_refused_before_a_file_is_made(
    place: bytes, facts: dict[str, object]
) -> None:
    """An owner of 2**32 - 1 means `leave it alone` to the system: it would stay root's."""
    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        assert code_of(lambda: builder.add_file(entry(b"x", **facts), [b"abc"])) == (
            "integrity.entry"
        )
        assert os.listdir(builder.staging + b"/tree/r") == []


@pytest.mark.parametrize(
    "special",
    [
        symlink(b"x", b""),
        symlink(b"x", b"a\0b"),
        symlink(b"x", b"t" * 4096),
        entry(b"x", type=FileType.SYMLINK),
        entry(b"x", type=FileType.CHAR_DEVICE),
        entry(b"x", type=FileType.BLOCK_DEVICE, device=(4096, 0)),
        entry(b"x", type=FileType.BLOCK_DEVICE, device=(1, 1 << 20)),
        entry(b"x", type=FileType.CHAR_DEVICE, device=(-1, 3)),
    ],
)
def test_a_special_file_that_cannot_exist_is_refused(place: bytes, special: Entry) -> None:
    """A device number that wraps around would become another device."""
    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        assert code_of(lambda: builder.add_special(special)) == "integrity.entry"
        assert os.listdir(builder.staging + b"/tree/r") == []


def test_calls_out_of_order_are_a_programmers_mistake(place: bytes) -> None:
    """Leaving below the root, or adding beside roots, would write where no entry belongs."""
    with begin(place) as builder:
        with pytest.raises(ValueError, match="no directory"):
            builder.leave()
        with pytest.raises(ValueError, match="no directory"):
            builder.add_file(entry(b"x"), [b"abc"])
        with pytest.raises(ValueError, match="finished"):
            builder.publish()
        builder.enter_root(b"/a/b", folder())
        with pytest.raises(ValueError, match="still entered"):
            builder.enter_root(b"/c", folder())
        with pytest.raises(ValueError, match="still entered"):
            builder.finish()
        with pytest.raises(ValueError, match="made in another way"):
            builder.add_file(folder(b"x"), [])
        with pytest.raises(TypeError, match="extended attributes"):
            big = ChunkList(depth=0, runs=())
            builder.add_file(entry(b"x", xattrs=((b"user.a", big),)), [b"abc"])
        builder.leave()
        with pytest.raises(ValueError, match="no directory"):
            builder.leave()
        builder.finish()
        with pytest.raises(ValueError, match="failed or is finished"):
            builder.enter_root(b"/c", folder())
        assert listing(builder.staging + b"/tree") == [b"a", b"a/b"]


def test_a_message_shows_no_raw_control_character(place: bytes) -> None:
    """A name must not write to the terminal of whoever reads the error (C27)."""
    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        builder.add_file(entry(b"a\x1b[2J\n\xff"), [b"abc"])
        with pytest.raises(IntegrityError) as caught:
            builder.add_file(entry(b"a\x1b[2J\n\xff"), [b"abc"])
        assert caught.value.message.isprintable()
        assert "/r/a" in caught.value.message
        out = done(builder)
    assert os.listdir(out + b"/r") == [b"a\x1b[2J\n\xff"]


NAMES = (b"a", b"b", b"A", b"..", b".", b"", b"a/b", b"/tmp", b"\0", b"n" * 256, b".durarepo")
STEPS = st.tuples(
    st.sampled_from(["enter", "leave", "file", "short", "symlink", "link", "root", "marker"]),
    st.sampled_from(NAMES),
)


@given(steps=st.lists(STEPS, max_size=40))
def test_any_sequence_of_calls_builds_what_a_plain_model_says(
    steps: list[tuple[str, bytes]],
) -> None:
    """Whatever a listing says, in whatever order: the result is a plain tree, and nothing else."""
    with tempfile.TemporaryDirectory() as folder_name:
        place = os.fsencode(folder_name)
        with begin(place) as builder:
            model = Model(builder)
            for step, name in steps:
                model.try_step(step, name)
            while model.here:
                model.try_step("leave", b"")
            builder.finish()
            builder.publish()

        found = {p: _kind(builder.destination + b"/" + p) for p in listing(builder.destination)}
        assert found == model.tree
        assert sorted(os.listdir(place)) == [b"out", b"work"]


class Model:
    """Calls a builder and keeps a dict of what has to be there; it knows no file system."""

    def __init__(self, builder: ScratchBuilder) -> None:
        self.builder = builder
        self.tree: dict[bytes, str] = {}
        self.here: list[bytes] = []
        self.first: Linkable | None = None

    def try_step(self, step: str, name: bytes) -> None:
        """Do ``step``; compare whether it was refused with what the model expects."""
        path = b"/".join([*self.here, name])
        is_plain = name in NAMES[:3] or (name == b".durarepo" and step not in {"root"})
        is_free = is_plain and path not in self.tree
        is_inside = bool(self.here)
        allowed = {
            "leave": is_inside,
            "root": not is_inside and is_free,
            "marker": not is_inside and is_plain and b".durarepo/" + name not in self.tree,
            "link": is_inside and is_free and self.first is not None,
            "short": False,
        }.get(step, is_inside and is_free)
        try:
            self._do(step, name)
        except (DurarepoError, ValueError):
            assert not allowed, (step, name, self.here)
            return
        assert allowed, (step, name, self.here)
        self._note(step, name, path)

    def _do(self, step: str, name: bytes) -> None:
        builder = self.builder
        if step == "enter":
            builder.enter(folder(name))
        elif step == "leave":
            builder.leave()
        elif step == "root":
            builder.enter_root(b"/" + (name if name and b"/" not in name else b".."), folder())
        elif step == "marker":
            builder.write_marker(name, b"{}")
        elif step == "symlink":
            builder.add_special(symlink(name, b"/tmp"))
        elif step == "link":
            if self.first is None:
                raise ValueError("nothing to link yet")
            builder.add_link(entry(name, link_group=1), self.first)
        else:
            made = builder.add_file(entry(name, link_group=1), [b"abc"] if step == "file" else [])
            self.first = self.first or made

    def _note(self, step: str, name: bytes, path: bytes) -> None:
        if step == "leave":
            self.here.pop()
        elif step == "marker":
            self.tree[b".durarepo"] = "folder"
            self.tree[b".durarepo/" + name] = "file"
        else:
            kinds = {"enter": "folder", "root": "folder", "symlink": "symlink"}
            self.tree[path] = kinds.get(step, "file")
        if step in {"enter", "root"}:
            self.here.append(name)


def _kind(path: bytes) -> str:
    mode = os.lstat(path).st_mode
    return "symlink" if stat.S_ISLNK(mode) else "folder" if stat.S_ISDIR(mode) else "file"


# --- Files


@pytest.mark.parametrize("pieces", [[], [b"ab"], [b"abcd"], [b"ab", b"cd"], [4], [2], [b"ab", 2]])
def test_a_file_of_another_length_than_listed_does_not_stay(
    place: bytes, pieces: list[bytes | int]
) -> None:
    """A file cut short or blown up must not be taken for the one that was kept (C24)."""
    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        assert code_of(lambda: builder.add_file(entry(b"x"), pieces)) == "integrity.file-size"
        builder.add_file(entry(b"y"), [b"ab", 1])
        out = done(builder)

    assert listing(out) == [b"r", b"r/y"]
    assert Path(os.fsdecode(out + b"/r/y")).read_bytes() == b"ab\0"


def test_a_negative_hole_cannot_overwrite_what_was_checked(place: bytes) -> None:
    """Going back would let later bytes replace earlier ones whose hash was right."""
    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        code = code_of(lambda: builder.add_file(entry(b"x"), [b"abc", -2, b"zz"]))
        assert code == "integrity.file-size"


@pytest.mark.parametrize(
    "error", [IntegrityError("digest", "bad"), OSError(5, "x"), KeyboardInterrupt()]
)
def test_what_the_content_raises_passes_and_the_file_is_not_part_of_the_result(
    place: bytes, error: BaseException
) -> None:
    """Content whose digest fails midway must never stand under its name (format 10)."""

    def pieces() -> Iterator[bytes]:
        yield b"ab"
        raise error

    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        with pytest.raises(type(error)) as caught:
            builder.add_file(entry(b"x"), pieces())
        assert caught.value is error
        assert os.listdir(builder.staging + b"/tree/r") == []
        builder.add_file(entry(b"x"), [b"new"])
        out = done(builder)

    assert Path(os.fsdecode(out + b"/r/x")).read_bytes() == b"new"
    assert sorted(os.listdir(place)) == [b"out", b"work"]


def test_a_file_that_cannot_be_dropped_stops_the_whole_restore(
    place: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the bad file keeps its name, nothing may be published."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EIO, "input/output error")

    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", refuse)
            assert code_of(lambda: builder.add_file(entry(b"x"), [b"a"])) == "integrity.file-size"
        with pytest.raises(ValueError, match="failed"):
            builder.leave()
        with pytest.raises(ValueError, match="failed"):
            builder.finish()
    assert sorted(os.listdir(place)) == [b"work"]


def test_a_disk_that_loses_writes_is_not_published(
    place: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Syncfs is where a late write error shows; ignoring it publishes holes."""

    def fail(_: int) -> NoReturn:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(scratch_staging, "sync_disk", fail)
    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        builder.leave()
        assert code_of(builder.finish) == "store.io"
        with pytest.raises(ValueError, match="finished"):
            builder.publish()
        with pytest.raises(ValueError, match="failed"):
            builder.finish()
    assert sorted(os.listdir(place)) == [b"work"]


@pytest.mark.parametrize("call", ["fchmod", "fchown", "utime", "setxattr"])
def test_a_disk_that_fails_while_metadata_is_written_is_a_store_error(
    place: bytes, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """What the system refuses is counted; what the disk loses must stop the restore (law 6)."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EIO, "input/output error")

    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        rich = entry(b"x", uid=1234, xattrs=((b"user.a", b"v"),))
        with monkeypatch.context() as patch:
            patch.setattr(os, call, fail)
            assert code_of(lambda: builder.add_file(rich, [b"abc"])) == "store.io"
        assert os.listdir(builder.staging + b"/tree/r") == []
        with pytest.raises(ValueError, match="failed"):
            builder.leave()


def test_a_folder_that_was_moved_away_meanwhile_stops_the_restore(place: bytes) -> None:
    """The way back up goes by `..`, which is only right while nobody moves what is being built."""
    elsewhere = place + b"/elsewhere"
    os.mkdir(elsewhere)
    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        for _ in range(100):
            builder.enter(folder(b"d"))
        os.rename(builder.staging + b"/tree/r/d" + b"/d" * 9, elsewhere + b"/d")

        def leave_all() -> None:
            for _ in range(101):
                builder.leave()

        assert code_of(leave_all) == "store.io"
        with pytest.raises(ValueError, match="failed"):
            builder.finish()


def test_names_that_one_folder_cannot_hold_apart_are_both_named(
    place: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a case-folding folder the second twin would overwrite the first, or vanish.

    The folding is put on by hand: few kernels of test machines have it.
    """
    real_open, real_stat = os.open, os.stat

    def fold(name: object) -> object:
        return name.lower() if isinstance(name, bytes) and name.lower() == b"twin" else name

    monkeypatch.setattr(os, "open", lambda p, *a, **k: real_open(fold(p), *a, **k))  # type: ignore[arg-type]
    monkeypatch.setattr(os, "stat", lambda p, *a, **k: real_stat(fold(p), *a, **k))  # type: ignore[arg-type]
    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        builder.add_file(entry(b"twin"), [b"abc"])
        with pytest.raises(IntegrityError) as caught:
            builder.add_file(entry(b"TWIN"), [b"xyz"])

        assert caught.value.code == "integrity.name-collision"
        assert "'/r/twin'" in caught.value.message
        assert "'/r/TWIN'" in caught.value.message
        assert Path(os.fsdecode(builder.staging + b"/tree/r/twin")).read_bytes() == b"abc"


def test_twins_by_case_and_by_unicode_form_are_two_files(place: bytes) -> None:
    """Where the file system tells them apart, so does a restore (byte names, end to end)."""
    names = [b"Note", b"note", "é".encode(), "e\u0301".encode(), b"\xff", b"a\\b", b"a\nb"]
    builder = begin(place)
    builder.enter_root(b"/r", folder())
    for name in names:
        builder.add_file(entry(name, size=len(name)), [name])
    out = done(builder)

    assert sorted(os.listdir(out + b"/r")) == sorted(names)
    for name in names:
        assert Path(os.fsdecode(out + b"/r/" + name)).read_bytes() == name


@pytest.mark.parametrize(
    ("suffix", "log"),
    [
        (b"-wal", b"\x37\x7f\x06\x82"),
        (b"-shm", bytes.fromhex("18e22d00")),
        (b"-journal", bytes.fromhex("d9d505f920a163d7")),
    ],
)
@pytest.mark.parametrize("first", ["database", "sidecar"])
def test_a_copied_database_never_stands_beside_a_log(
    place: bytes, suffix: bytes, log: bytes, first: str
) -> None:
    """SQLite would replay a foreign log into the copy (X7)."""
    database = entry(b"db", consistency=Consistency.SQLITE_BACKUP)
    pair = [database, entry(b"db" + suffix, size=len(log))]
    contents = [b"abc", log]
    if first == "sidecar":
        pair.reverse()
        contents.reverse()
    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        builder.add_file(pair[0], [contents[0]])
        assert code_of(lambda: builder.add_file(pair[1], [contents[1]])) == "integrity.sidecar"
        builder.enter(folder(b"elsewhere"))
        builder.add_file(entry(b"db" + suffix), [b"abc"])
        builder.leave()
        builder.add_file(entry(b"plain"), [b"abc"])
        builder.add_file(entry(b"plain" + suffix), [b"abc"])


def test_work_that_is_named_like_a_log_is_restored_beside_its_database(place: bytes) -> None:
    """A snapshot keeps notes of that name; a restore that refuses them would lose them."""
    builder = begin(place)
    builder.enter_root(b"/r", folder())
    builder.add_file(entry(b"db", consistency=Consistency.SQLITE_BACKUP), [b"abc"])
    for suffix in (b"-journal", b"-shm", b"-wal"):
        builder.add_file(entry(b"db" + suffix), [b"abc"])
    out = done(builder)

    assert len(os.listdir(out + b"/r")) == 4


def test_a_database_with_the_longest_name_can_have_no_log_beside_it(place: bytes) -> None:
    """Asking for a name that is too long is an error of the system, and no reason to stop."""
    builder = begin(place)
    builder.enter_root(b"/r", folder())
    for length in (247, 248, 251, 252, 255):
        name = b"d" * length
        builder.add_file(entry(name, consistency=Consistency.SQLITE_BACKUP), [b"abc"])
    builder.add_file(entry(b"x", consistency=Consistency.SQLITE_BACKUP, link_group=1), [b"abc"])
    out = done(builder)

    assert len(os.listdir(out + b"/r")) == 6


# --- Hard links


def test_hard_links_are_joined_only_to_what_this_builder_made(place: bytes) -> None:
    """A link whose source could be chosen would publish any file of this disk (C20)."""
    other = begin(place, name=b"other")
    other.enter_root(b"/r", folder())
    foreign = other.add_file(entry(b"x", link_group=7), [b"abc"])
    assert isinstance(foreign, Linkable)
    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        first = builder.add_file(entry(b"x", link_group=7), [b"abc"])
        assert first is not None
        with pytest.raises(ValueError, match="same builder"):
            builder.add_link(entry(b"y", link_group=7), foreign)
        assert builder.add_link(entry(b"y", link_group=7), first)
        assert builder.add_file(entry(b"z"), [b"abc"]) is None
        out = done(builder)
    other.abandon()

    assert os.stat(out + b"/r/x").st_ino == os.stat(out + b"/r/y").st_ino
    assert os.stat(out + b"/r/x").st_nlink == 2
    assert os.stat(out + b"/r/x").st_mtime_ns == MOMENT


@pytest.mark.parametrize(
    "facts",
    [
        {"link_group": 8},
        {"link_group": None},
        {"size": 4},
        {"mode": 0o600},
        {"mtime_ns": 0},
        {"uid": 12},
        {"sha256": bytes(32)},
        {"xattrs": ((b"user.a", b"v"),)},
    ],
)
def test_a_link_that_does_not_agree_is_refused(place: bytes, facts: dict[str, object]) -> None:
    """Two listings of one group that differ are two files, whatever the group says (format 6)."""
    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        first = builder.add_file(entry(b"x", link_group=7), [b"abc"])
        assert first is not None
        second = entry(b"y", **{"link_group": 7, **facts})
        assert not first.agrees(second)
        assert code_of(lambda: builder.add_link(second, first)) == "integrity.link-group"


def test_links_reach_out_of_folders_that_are_closed_already(place: bytes) -> None:
    """As an unprivileged user a finished folder of mode 0 cannot be walked through any more."""

    def build() -> tuple[bytes, int]:
        builder = begin(place)
        builder.enter_root(b"/r", folder())
        builder.enter(folder(b"closed", 0o000))
        first = builder.add_file(entry(b"x", link_group=7, mode=0o400), [b"abc"])
        builder.add_special(symlink(b"s", b"/etc/passwd"))
        linked = builder.add_special(symlink(b"t", b"/etc/passwd")._replace(link_group=8))
        builder.leave()
        assert first is not None
        assert linked is not None
        assert builder.add_link(entry(b"y", link_group=7, mode=0o400), first)
        assert builder.add_link(symlink(b"u", b"/etc/passwd")._replace(link_group=8), linked)
        return done(builder), os.lstat(builder.destination + b"/r/u").st_nlink

    out, links = as_nobody(build)
    assert links == 2
    assert os.stat(out + b"/r/closed/x").st_ino == os.stat(out + b"/r/y").st_ino
    assert os.readlink(out + b"/r/u") == b"/etc/passwd"


def test_a_link_that_the_file_system_refuses_is_counted(
    place: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """65,000 names are the most on ext4; the next one becomes a file of its own."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EMLINK, "too many links")

    with begin(place) as builder:
        builder.enter_root(b"/r", folder())
        first = builder.add_file(entry(b"x", link_group=7), [b"abc"])
        assert first is not None
        monkeypatch.setattr(os, "link", refuse)
        assert not builder.add_link(entry(b"y", link_group=7), first)
        builder.add_file(entry(b"y", link_group=7), [b"abc"])
        assert builder.not_restored == {"hard-link": 2}


# --- Rights


def test_rights_are_dropped_and_counted_by_default(place: bytes) -> None:
    """A restored setuid root shell is a gift to whoever finds it (E18)."""
    builder = begin(place)
    builder.enter_root(b"/r", folder(mode=0o3777))
    builder.add_file(entry(b"suid", mode=0o4755), [b"abc"])
    builder.add_file(entry(b"all", mode=0o7777), [b"abc"])
    builder.enter(folder(b"d", 0o7755))
    builder.leave()
    out = done(builder)

    modes = {p: stat.S_IMODE(os.stat(out + b"/" + p).st_mode) for p in listing(out)}
    assert modes == {b"r": 0o3777, b"r/suid": 0o755, b"r/all": 0o777, b"r/d": 0o3755}
    assert builder.not_restored == {"setuid": 3, "setgid": 1, "sticky": 1}


def test_rights_are_kept_only_where_asked_for_and_the_owner_is_restored(place: bytes) -> None:
    """A setuid file whose owner could not be set would be setuid for somebody else."""

    def build(name: bytes) -> tuple[bytes, dict[str, int]]:
        builder = begin(place, privileges=True, name=name)
        builder.enter_root(b"/r", folder())
        builder.add_file(entry(b"mine", mode=0o4755), [b"abc"])
        builder.add_file(entry(b"theirs", mode=0o4755, uid=1234, gid=1234), [b"abc"])
        return done(builder), builder.not_restored

    out, lost = build(b"root")
    assert lost == {}
    assert stat.S_IMODE(os.stat(out + b"/r/theirs").st_mode) == 0o4755
    assert os.stat(out + b"/r/theirs").st_uid == 1234
    shutil.rmtree(place + b"/work")

    out, lost = as_nobody(lambda: build(b"nobody"))
    assert lost == {"owner": 1, "setuid": 1}
    assert stat.S_IMODE(os.stat(out + b"/r/mine").st_mode) == 0o4755
    assert stat.S_IMODE(os.stat(out + b"/r/theirs").st_mode) == 0o755
    assert os.stat(out + b"/r/theirs").st_uid == NOBODY


@pytest.mark.parametrize("mask", [0o000, 0o077, 0o777])
def test_the_mode_does_not_depend_on_the_umask(place: bytes, mask: int) -> None:
    """A timer's umask differs from a shell's; the restored mode may not."""
    before = os.umask(mask)
    try:
        builder = begin(place)
        builder.enter_root(b"/r", folder(mode=0o777))
        builder.add_file(entry(b"x", mode=0o666), [b"abc"])
        builder.add_special(entry(b"p", type=FileType.FIFO, mode=0o666))
        out = done(builder)
    finally:
        os.umask(before)

    assert stat.S_IMODE(os.stat(out + b"/r").st_mode) == 0o777
    assert stat.S_IMODE(os.stat(out + b"/r/x").st_mode) == 0o666
    assert stat.S_IMODE(os.stat(out + b"/r/p").st_mode) == 0o666


def test_devices_are_left_out_and_counted_without_the_right_to_make_them(place: bytes) -> None:
    """A restore must go on, and must say what is missing."""

    def build(name: bytes) -> tuple[bytes, dict[str, int]]:
        builder = begin(place, name=name)
        builder.enter_root(b"/r", folder())
        builder.add_special(entry(b"null", type=FileType.CHAR_DEVICE, device=(1, 3)))
        builder.add_special(entry(b"sock", type=FileType.SOCKET, mode=0o600))
        return done(builder), builder.not_restored

    out, lost = build(b"root")
    assert lost == {}
    assert os.stat(out + b"/r/null").st_rdev == os.makedev(1, 3)
    assert stat.S_ISSOCK(os.stat(out + b"/r/sock").st_mode)
    shutil.rmtree(place + b"/work")

    out, lost = as_nobody(lambda: build(b"nobody"))
    assert lost == {"device": 1}
    assert listing(out) == [b"r", b"r/sock"]


def test_a_folder_that_nobody_may_write_can_still_be_filled(place: bytes) -> None:
    """Modes come last: a folder of mode 0500 is filled before it is closed."""

    def build() -> bytes:
        builder = begin(place)
        builder.enter_root(b"/r", folder(mode=0o500))
        builder.enter(folder(b"in", 0o000))
        builder.add_file(entry(b"x", mode=0o000), [b"abc"])
        builder.leave()
        return done(builder)

    out = as_nobody(build)
    assert stat.S_IMODE(os.stat(out + b"/r").st_mode) == 0o500
    assert stat.S_IMODE(os.stat(out + b"/r/in").st_mode) == 0
    assert os.stat(out + b"/r").st_mtime_ns == MOMENT
    assert os.stat(out + b"/r/in").st_mtime_ns == MOMENT


# --- Bounds and kills


def test_depth_and_number_of_files_cost_no_descriptors_and_no_memory(place: bytes) -> None:
    """A hostile or merely large tree must not exhaust the process (C24, wish 33)."""
    before = len(os.listdir("/proc/self/fd"))
    builder = begin(place)
    builder.enter_root(b"/r", folder())
    for _ in range(2000):
        builder.enter(folder(b"d"))
    builder.add_file(entry(b"x"), [b"abc"])
    assert len(os.listdir("/proc/self/fd")) - before < 80
    for _ in range(2000):
        builder.leave()
    tracemalloc.start()
    for number in range(1000):
        builder.add_file(entry(b"%d" % number), [b"abc"])
    gc.collect()  # Python keeps some memory of values that are gone, for the next ones
    first = tracemalloc.get_traced_memory()[0]
    for number in range(1000, 4000):
        builder.add_file(entry(b"%d" % number), [b"abc"])
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - first
    tracemalloc.stop()
    out = done(builder)

    assert grown < 32_768
    assert len(os.listdir("/proc/self/fd")) == before
    fd = os.open(out + b"/r", os.O_RDONLY)
    for _ in range(2000):
        assert os.fstat(fd).st_mtime_ns == MOMENT
        inner = os.open(b"d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    assert os.listdir(fd) == ["x"]
    os.close(fd)
    subprocess.run(["rm", "-rf", os.fsdecode(out)], check=True)


def test_a_kill_at_any_step_leaves_all_or_nothing_and_the_next_run_cleans_up(
    place: bytes,
) -> None:
    """A power cut or the OOM killer must not leave something that looks like a restore (A6g)."""
    seen = {"absent": 0, "whole": 0, "not adopted": 0}
    for step in range(1, 400):
        os.mkdir(place + b"/%d" % step)
        if not _killed_at(place + b"/%d" % step, step):
            break
        here = place + b"/%d" % step
        if os.path.lexists(here + b"/out"):
            seen["whole"] += 1
            assert listing(here + b"/out") == KILLED_RESULT
            assert Path(os.fsdecode(here + b"/out/r/x")).read_bytes() == b"abc"
        else:
            seen["absent"] += 1
        assert keeper(here).clean_after_kill() == []
        for name in os.listdir(here):
            if name.startswith(b".out.durarepo-partial-"):
                seen["not adopted"] += 1
                assert os.listdir(here + b"/" + name) == []
                os.rmdir(here + b"/" + name)
        assert set(os.listdir(here)) <= {b"out", b"work"}
        assert not os.path.lexists(here + b"/out") or os.stat(here + b"/out/r/x").st_nlink == 2
    else:
        pytest.fail("the child never ran to its end")

    assert seen["absent"] > 20
    assert seen["whole"] > 1
    assert seen["not adopted"] < 8


def _killed_at(here: bytes, step: int) -> bool:
    """Restore a little in a child that dies at its ``step``-th event; return whether it did."""
    child = os.fork()
    if child == 0:
        left = step

        def die(event: str, _: object) -> None:
            nonlocal left
            if event == "open" or event.startswith(("os.", "ctypes.")):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(die)
            builder = begin(here)
            builder.enter_root(b"/r", folder())
            first = builder.add_file(entry(b"x", link_group=1), [b"abc"])
            assert first is not None
            builder.add_link(entry(b"l", link_group=1), first)
            builder.add_special(symlink(b"s", b"t"))
            builder.add_file(entry(b"y"), [b"a", 2])
            builder.leave()
            builder.write_marker(b"held.json", b"{}")
            builder.finish()
            builder.publish()
        finally:
            os._exit(0 if os.path.lexists(here + b"/out") else 1)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def test_a_component_that_is_no_file_lies_in_the_restores_own_folder(place: bytes) -> None:
    """A database dump must not be taken for a file of a root (spec/cli.md 3)."""
    builder = begin(place)
    builder.enter_component(b"notes-db")
    builder.add_file(entry(b"dump.sql"), [b"abc"])
    builder.leave()
    assert code_of(lambda: builder.enter_component(b"notes-db")) == "integrity.name-collision"
    builder.write_marker(b"held.json", b"{}")
    code = code_of(lambda: builder.write_marker(b"held.json", b""))
    builder.finish()
    builder.publish()

    assert code == "integrity.name-collision"
    assert listing(builder.destination) == [
        b".durarepo",
        b".durarepo/components",
        b".durarepo/components/notes-db",
        b".durarepo/components/notes-db/dump.sql",
        b".durarepo/held.json",
    ]
    marker = os.stat(builder.destination + b"/.durarepo/held.json")
    assert stat.S_IMODE(marker.st_mode) == 0o600


def test_a_parent_that_cannot_be_written_is_a_store_error(place: bytes) -> None:
    """The disk's refusal is never mistaken for bad content (law 6)."""
    os.mkdir(place + b"/closed")
    set_mode(place + b"/closed", 0o555)

    def build() -> str:
        try:
            ScratchBuilder.create(place + b"/closed/out", protected=[], keeper=keeper(place))
        except StoreError as error:
            return error.code
        return "made"

    assert as_nobody(build) == "store.permission"
    assert os.listdir(place + b"/closed") == []
