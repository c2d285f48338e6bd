"""The walk: what it finds, what it refuses to follow, what it leaves out."""

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from durarepo.core.errors import SourceError
from durarepo.source.mounts import Mount, MountTable
from durarepo.source.opening import open_real_path
from durarepo.source.walk import (
    Enter,
    Leave,
    Trouble,
    TroubleKind,
    WalkRules,
    walk,
)

NO_RULES = WalkRules()
ODD_NAMES = sorted(
    [
        b"\xff\xfe not UTF-8",
        b"new\nline",
        b"\x1b[31mred",
        b"n" * 255,
        b"trailing  ",
        b" leading",
        b"-rf",
        b"...",
        "\u202etxt".encode(),
        "\U0001f600".encode(),
        "\uff5e".encode(),
    ]
)

AsNobody = Callable[[Callable[[], None]], None]


def events_of(
    root: Path | bytes, rules: WalkRules = NO_RULES, mounts: MountTable | None = None
) -> list[Enter | Leave | Trouble]:
    """Return all events of a walk."""
    return list(walk(os.fsencode(root), rules=rules, mounts=mounts))


def entered(events: list[Enter | Leave | Trouble], root: Path) -> dict[str, list[bytes]]:
    """Return for each entered directory, relative to the root, the names handed over."""
    base = len(os.fsencode(root)) + 1
    return {
        os.fsdecode(event.path[base:]): [name for name, _ in event.names]
        for event in events
        if isinstance(event, Enter)
    }


def troubles(events: list[Enter | Leave | Trouble]) -> list[tuple[bytes, TroubleKind]]:
    """Return names and kinds of all troubles."""
    return [(os.path.basename(e.path), e.kind) for e in events if isinstance(e, Trouble)]


def open_descriptors() -> int:
    """Return how many descriptors this process has open."""
    return len(os.listdir("/proc/self/fd"))


def test_odd_names_come_back_byte_for_byte_in_byte_order(tmp_path: Path) -> None:
    """A name that is decoded on the way is lost or replaced (lesson 30)."""
    for name in ODD_NAMES:
        with open(os.path.join(os.fsencode(tmp_path), name), "wb"):
            pass

    enter = events_of(tmp_path)[0]

    assert isinstance(enter, Enter)
    assert [name for name, _ in enter.names] == ODD_NAMES


def test_directories_nest_in_name_order_and_parents_leave_last(tmp_path: Path) -> None:
    """A tree id needs those of its sub-directories first."""
    for folder in ("b/x", "a", "b/w", "a.d"):
        (tmp_path / folder).mkdir(parents=True)
    base = os.fsencode(tmp_path)

    seen = [(type(event).__name__, event.path[len(base) :]) for event in events_of(tmp_path)]

    assert seen == [
        ("Enter", b""),
        ("Enter", b"/a"),
        ("Leave", b"/a"),
        ("Enter", b"/a.d"),
        ("Leave", b"/a.d"),
        ("Enter", b"/b"),
        ("Enter", b"/b/w"),
        ("Leave", b"/b/w"),
        ("Enter", b"/b/x"),
        ("Leave", b"/b/x"),
        ("Leave", b"/b"),
        ("Leave", b""),
    ]


def test_the_descriptor_of_an_entered_directory_reads_its_files(tmp_path: Path) -> None:
    """Reading by path again would follow whatever was put there meanwhile."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f").write_bytes(b"x")

    for event in walk(os.fsencode(tmp_path), rules=NO_RULES):
        if isinstance(event, Enter):
            for name, stat in event.names:
                assert os.stat(name, dir_fd=event.fd, follow_symlinks=False) == stat
            assert os.fstat(event.fd).st_ino == event.stat.st_ino


def test_symlinks_and_special_files_are_listed_and_never_followed(tmp_path: Path) -> None:
    """A link to / would carry the machine into the backup (E21)."""
    (tmp_path / "up").symlink_to("/")
    (tmp_path / "etc").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")

    events = events_of(tmp_path)

    assert entered(events, tmp_path) == {"": [b"etc", b"pipe", b"up"]}
    assert troubles(events) == []


def test_what_a_rule_excludes_is_never_opened(tmp_path: Path) -> None:
    """Exclusion before any data is read is the promise; the rule's id goes to the ledger."""
    (tmp_path / "cache" / "deep").mkdir(parents=True)
    (tmp_path / "key.pem").write_bytes(b"x")
    (tmp_path / "keep").write_bytes(b"x")
    asked: list[bytes] = []

    def rule(directory: bytes, name: bytes, stat: os.stat_result) -> str | None:
        assert stat.st_ino
        asked.append(directory + b"/" + name)
        return "no-cache" if name == b"cache" else "no-keys" if name == b"key.pem" else None

    events = events_of(tmp_path, WalkRules(is_excluded=rule))

    enter = events[0]
    assert isinstance(enter, Enter)
    assert enter.excluded == ((b"cache", "no-cache"), (b"key.pem", "no-keys"))
    assert entered(events, tmp_path) == {"": [b"keep"]}
    assert asked == [os.fsencode(tmp_path / name) for name in ("cache", "keep", "key.pem")]


def test_own_state_is_left_out_by_identity_under_any_name(tmp_path: Path) -> None:
    """A repository inside a root that is renamed must still not back itself up."""
    (tmp_path / "renamed" / "objects").mkdir(parents=True)
    stat = os.stat(tmp_path / "renamed")

    events = events_of(tmp_path, WalkRules(own_state=frozenset({(stat.st_dev, stat.st_ino)})))

    enter = events[0]
    assert isinstance(enter, Enter)
    assert enter.excluded == ((b"renamed", "own-state"),)
    assert len(events) == 2


def test_a_consumer_may_skip_a_directory(tmp_path: Path) -> None:
    """An unchanged or already stored sub-directory need not be read."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c").mkdir()
    seen = []

    for event in walk(os.fsencode(tmp_path), rules=NO_RULES):
        if isinstance(event, Enter):
            seen.append(os.path.basename(event.path))
            event.skip.add(b"a")

    assert seen == [os.path.basename(os.fsencode(tmp_path)), b"c"]


def test_a_directory_that_vanishes_after_listing_is_no_omission(tmp_path: Path) -> None:
    """Temporary folders come and go; only their kind tells the run that nothing was lost."""
    (tmp_path / "gone").mkdir()
    (tmp_path / "stays").mkdir()
    found: list[Enter | Leave | Trouble] = []

    for event in walk(os.fsencode(tmp_path), rules=NO_RULES):
        if isinstance(event, Enter) and event.path == os.fsencode(tmp_path):
            (tmp_path / "gone").rmdir()
        found.append(event)

    assert troubles(found) == [(b"gone", TroubleKind.VANISHED)]
    assert set(entered(found, tmp_path)) == {"", "stays"}


@pytest.mark.parametrize("becomes", ["symlink", "file"])
def test_a_directory_swapped_after_listing_is_not_followed(tmp_path: Path, becomes: str) -> None:
    """The classic race: the name now leads elsewhere (E21)."""
    (tmp_path / "a").mkdir()
    found: list[Enter | Leave | Trouble] = []

    for event in walk(os.fsencode(tmp_path), rules=NO_RULES):
        if isinstance(event, Enter) and len(found) == 0:
            (tmp_path / "a").rmdir()
            if becomes == "symlink":
                (tmp_path / "a").symlink_to("/etc")
            else:
                (tmp_path / "a").write_bytes(b"")
        found.append(event)

    assert troubles(found) == [(b"a", TroubleKind.CHANGED_TYPE)]
    assert set(entered(found, tmp_path)) == {""}


def test_own_state_moved_in_after_listing_is_not_entered(tmp_path: Path) -> None:
    """Rules judge what was listed; what is opened may be another directory by then."""
    (tmp_path / "root" / "a").mkdir(parents=True)
    (tmp_path / "state").mkdir()
    stat = os.stat(tmp_path / "state")
    rules = WalkRules(own_state=frozenset({(stat.st_dev, stat.st_ino)}))
    found: list[Enter | Leave | Trouble] = []

    for event in walk(os.fsencode(tmp_path / "root"), rules=rules):
        if isinstance(event, Enter) and len(found) == 0:
            (tmp_path / "root" / "a").rmdir()
            (tmp_path / "state").rename(tmp_path / "root" / "a")
        found.append(event)

    assert troubles(found) == [(b"a", TroubleKind.CHANGED_TYPE)]


def test_an_unreadable_directory_is_reported_and_the_rest_is_walked(
    open_tree: Path, check_as_nobody: AsNobody
) -> None:
    """One closed folder must cost that folder, not the run, and not silently."""
    (open_tree / "closed").mkdir(mode=0o700)
    (open_tree / "open").mkdir(mode=0o755)
    (open_tree / "listed-only").mkdir()
    (open_tree / "listed-only" / "f").write_bytes(b"")
    (open_tree / "listed-only").chmod(0o744)

    def check() -> None:
        events = events_of(open_tree)
        assert troubles(events) == [
            (b"closed", TroubleKind.UNREADABLE),
            (b"f", TroubleKind.UNREADABLE),
        ]
        assert entered(events, open_tree) == {
            "": [b"closed", b"listed-only", b"open"],
            "listed-only": [],
            "open": [],
        }

    check_as_nobody(check)


def test_an_unprivileged_walk_of_others_files_works(
    open_tree: Path, check_as_nobody: AsNobody
) -> None:
    """Only the owner may leave access times alone; others must not be refused for trying."""
    (open_tree / "theirs").mkdir(mode=0o755)

    check_as_nobody(lambda: check_walks(open_tree, {"": [b"theirs"], "theirs": []}))


def check_walks(root: Path, expected: dict[str, list[bytes]]) -> None:
    """Fail unless the walk gives exactly this, without trouble."""
    events = events_of(root)
    assert troubles(events) == []
    assert entered(events, root) == expected


def test_a_listing_that_breaks_off_keeps_what_it_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bad sector in a directory must not pass for a directory that is short."""
    (tmp_path / "a").write_bytes(b"")
    scandir = os.scandir

    class Broken:
        def __init__(self, fd: int) -> None:
            self.inner = scandir(fd)

        def __enter__(self) -> Iterator[os.DirEntry[str]]:
            return self.entries()

        def __exit__(self, *_: object) -> None:
            self.inner.close()

        def entries(self) -> Iterator[os.DirEntry[str]]:
            yield next(self.inner)
            raise OSError(errno.EIO, "I/O error")

    monkeypatch.setattr("durarepo.source.walk.os.scandir", Broken)

    events = events_of(tmp_path)

    assert entered(events, tmp_path) == {"": [b"a"]}
    assert troubles(events) == [(os.path.basename(os.fsencode(tmp_path)), TroubleKind.UNREADABLE)]


def make_deep(root: bytes, depth: int) -> None:
    """Make directories ``d`` below each other, deeper than one path can name."""
    fd = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(b"d", dir_fd=fd)
        below = os.open(b"d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)


@pytest.fixture
def deep_root(tmp_path: Path) -> Iterator[Path]:
    """Give a folder for such a tree, and remove it: the standard library cannot."""
    yield tmp_path
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


def test_a_tree_as_deep_as_paths_go_is_walked_and_deeper_is_reported(deep_root: Path) -> None:
    """Depth must cost neither recursion nor descriptors, and nothing may vanish silently."""
    make_deep(os.fsencode(deep_root), 2100)
    before = open_descriptors()
    held = deepest = 0
    kinds = []

    for event in walk(os.fsencode(deep_root), rules=NO_RULES):
        if isinstance(event, Enter):
            held = max(held, open_descriptors() - before)
            deepest = max(deepest, len(event.path))
            assert os.fstat(event.fd).st_ino == event.stat.st_ino
        if isinstance(event, Trouble):
            kinds.append(event.kind)

    assert deepest in (4095, 4096)
    assert kinds == [TroubleKind.TOO_LONG]
    assert held < 140
    assert open_descriptors() == before


def test_every_directory_of_a_deep_tree_is_entered_when_descriptors_are_few(
    deep_root: Path,
) -> None:
    """Services run with 64 descriptors; parents let go must be found again, side branches too."""
    make_deep(os.fsencode(deep_root), 300)
    for level in range(0, 300, 7):
        os.mkdir(os.fsencode(deep_root) + b"/d" * level + b"/side")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_descriptors() + 12, hard))
    try:
        events = events_of(deep_root)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert troubles(events) == []
    names = [os.path.basename(event.path) for event in events if isinstance(event, Enter)]
    assert names.count(b"d") == 300
    assert names.count(b"side") == 43


def test_a_parent_moved_away_while_let_go_is_never_replaced_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`..` of a moved directory leads elsewhere: its neighbours there are not ours (E21)."""
    monkeypatch.setattr("durarepo.source.walk.HELD_DIRECTORIES", 1)
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    (tmp_path / "root" / "a" / "c").mkdir()
    (tmp_path / "elsewhere" / "c" / "secret").mkdir(parents=True)
    found: list[Enter | Leave | Trouble] = []

    for event in walk(os.fsencode(tmp_path / "root"), rules=NO_RULES):
        if isinstance(event, Enter) and os.path.basename(event.path) == b"b":
            (tmp_path / "root" / "a" / "b").rename(tmp_path / "elsewhere" / "b")
            (tmp_path / "root" / "a").rename(tmp_path / "aside")
            (tmp_path / "elsewhere").rename(tmp_path / "root" / "a")
        found.append(event)

    assert troubles(found) == [(b"c", TroubleKind.UNREADABLE)]
    assert set(entered(found, tmp_path / "root")) == {"", "a", "a/b"}


def test_a_parent_is_found_from_the_root_when_the_child_was_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One moved folder must not cost its former neighbours."""
    monkeypatch.setattr("durarepo.source.walk.HELD_DIRECTORIES", 1)
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    (tmp_path / "root" / "a" / "c").mkdir()
    before = open_descriptors()
    found: list[Enter | Leave | Trouble] = []

    for event in walk(os.fsencode(tmp_path / "root"), rules=NO_RULES):
        if isinstance(event, Enter) and os.path.basename(event.path) == b"b":
            (tmp_path / "root" / "a" / "b").rename(tmp_path / "b")
        found.append(event)

    assert troubles(found) == []
    assert set(entered(found, tmp_path / "root")) == {"", "a", "a/b", "a/c"}
    assert open_descriptors() == before


def test_a_walk_that_is_given_up_closes_what_it_held(tmp_path: Path) -> None:
    """A run that stops for its budget must not leak descriptors."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    before = open_descriptors()

    events = walk(os.fsencode(tmp_path), rules=NO_RULES)
    next(events)
    next(events)
    assert open_descriptors() > before
    events.close()

    assert open_descriptors() == before


def test_names_and_paths_too_long_for_the_format_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems allow longer names than the format; that must not end the run."""
    monkeypatch.setattr("durarepo.source.walk.NAME_MAX_BYTES", 10)
    (tmp_path / "exactly-10").write_bytes(b"")
    (tmp_path / "more-than-10").write_bytes(b"")

    events = events_of(tmp_path)

    assert entered(events, tmp_path) == {"": [b"exactly-10"]}
    assert troubles(events) == [(b"more-than-10", TroubleKind.TOO_LONG)]


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda _: None, "source.root-missing"),
        (lambda root: root.write_bytes(b""), "source.root-not-directory"),
        (lambda root: root.symlink_to("/etc"), "source.root-not-directory"),
    ],
)
def test_a_root_that_is_no_directory_fails_the_run(
    tmp_path: Path, make: Callable[[Path], None], code: str
) -> None:
    """A missing source is no warning (X2)."""
    root = tmp_path / "root"
    make(root)

    with pytest.raises(SourceError) as refused:
        events_of(root)

    assert refused.value.code == code


def test_a_root_behind_a_symlink_is_refused(tmp_path: Path) -> None:
    """A parent swapped for a link would back up something else under the root's name."""
    (tmp_path / "real" / "root").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")

    with pytest.raises(SourceError) as refused:
        events_of(tmp_path / "link" / "root")

    assert refused.value.code == "source.root-not-directory"


def test_an_unreadable_root_fails_the_run(open_tree: Path, check_as_nobody: AsNobody) -> None:
    """An empty backup of an unreadable root is the worst kind of success (X2)."""
    (open_tree / "root").mkdir(mode=0o700)

    def check() -> None:
        with pytest.raises(SourceError) as refused:
            events_of(open_tree / "root")
        assert refused.value.code == "source.root-unreadable"

    check_as_nobody(check)


def test_the_kernels_own_file_systems_are_no_roots() -> None:
    """Reading /proc has effects and no end."""
    with pytest.raises(SourceError) as refused:
        events_of(b"/proc")

    assert refused.value.code == "source.root-not-files"


def test_the_root_of_all_is_walked_with_clean_paths() -> None:
    """`/` as root must not give paths that begin with two slashes."""
    events = walk(b"/", rules=WalkRules(is_excluded=lambda _d, n, _s: "x" if n != b"etc" else None))
    enter, below = next(events), next(events)
    events.close()

    assert isinstance(enter, Enter)
    assert b"proc" in [name for name, _ in enter.excluded]
    assert below.path == b"/etc"


def test_a_relative_path_is_a_mistake_of_the_caller() -> None:
    """What a relative root means would change with the working directory."""
    with pytest.raises(ValueError, match="absolute"):
        open_real_path(b"relative")


def test_pseudo_and_foreign_file_systems_follow_the_mount_table(tmp_path: Path) -> None:
    """The table decides by path, so a test needs no rights to mount."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "data").mkdir()
    table = MountTable(
        [
            Mount(path=b"/", fs_type=b"ext4"),
            Mount(path=os.fsencode(tmp_path / "proc"), fs_type=b"proc"),
            Mount(path=os.fsencode(tmp_path / "data"), fs_type=b"xfs"),
        ]
    )

    events = events_of(tmp_path, mounts=table)

    enter = events[0]
    assert isinstance(enter, Enter)
    assert enter.excluded == ((b"proc", "pseudo-filesystem"),)
    systems = {e.path: e.file_system for e in events if isinstance(e, Enter)}
    assert systems == {
        os.fsencode(tmp_path): b"/",
        os.fsencode(tmp_path / "data"): os.fsencode(tmp_path / "data"),
    }


IN_A_NAMESPACE = """
import os, subprocess, sys
from durarepo.source.walk import Enter, Trouble, WalkRules, walk
root = sys.argv[1]
def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)
mount("--make-rprivate", "/")
for name in ("tmpfs", "proc", "bind/inner"):
    os.makedirs(os.path.join(root, name))
os.makedirs(os.path.join(root, "real", "sub"))
open(os.path.join(root, "bound-file"), "x").close()
mount("-t", "tmpfs", "none", root + "/tmpfs")
os.mkdir(root + "/tmpfs/in")
mount("-t", "proc", "none", root + "/proc")
mount("--bind", root, root + "/bind")
mount("--bind", "/proc/self/status", root + "/bound-file")
def show(title, rules, mounts=None):
    print(title)
    for event in walk(os.fsencode(root), rules=rules, mounts=mounts):
        path = os.fsdecode(event.path)[len(root):]
        if isinstance(event, Enter):
            print("enter", path, [(n.decode(), r) for n, r in event.excluded])
        elif isinstance(event, Trouble):
            print("trouble", path, event.kind)
show("all", WalkRules())
show("one", WalkRules(one_filesystem=True))
from durarepo.source.mounts import MountTable
show("blind", WalkRules(one_filesystem=True), MountTable(()))
"""


def test_real_mounts_are_crossed_left_out_or_seen_as_loops(tmp_path: Path) -> None:
    """Bind mounts can contain themselves; pseudo file systems must not be read at all."""
    result = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", IN_A_NAMESPACE, str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
    )

    left_out = "[('bound-file', 'pseudo-filesystem'), ('proc', 'pseudo-filesystem')"
    foreign = "[('bound-file', 'other-filesystem'), ('proc', 'other-filesystem')"
    assert result.stdout.splitlines() == [
        "all",
        f"enter  {left_out}]",
        "trouble /bind loop",
        "enter /real []",
        "enter /real/sub []",
        "enter /tmpfs []",
        "enter /tmpfs/in []",
        "one",
        f"enter  {left_out}, ('tmpfs', 'other-filesystem')]",
        "trouble /bind loop",
        "enter /real []",
        "enter /real/sub []",
        "blind",
        f"enter  {foreign}, ('tmpfs', 'other-filesystem')]",
        "trouble /bind loop",
        "enter /real []",
        "enter /real/sub []",
    ]
