"""Trees that people have, snapshotted and read back by the independent reader, byte for byte."""

import os
import sqlite3
import subprocess
import sysconfig
import threading
from contextlib import closing
from pathlib import Path

from tests.machines.stream import Seen, Stream, seen


def test_the_library_of_python_comes_back(tmp_path: Path) -> None:
    """Thousands of files of every length, as nobody made them up."""
    source = os.path.realpath(sysconfig.get_path("stdlib")).encode() + b"/email"
    stream = Stream(tmp_path, roots=(source,))

    stream.snapshot()

    assert seen(bytes(stream.restored_root())) == without_caches(seen(source))


def test_a_second_look_at_a_package_of_python_stores_nothing(tmp_path: Path) -> None:
    """A tree that nobody touches must not grow the repository."""
    source = os.path.realpath(sysconfig.get_path("stdlib")).encode() + b"/lib2to3"
    if not os.path.isdir(source):
        source = os.path.realpath(sysconfig.get_path("stdlib")).encode() + b"/asyncio"
    stream = Stream(tmp_path, roots=(source,))

    first = stream.snapshot()
    second = stream.snapshot()

    assert first.files > 30
    assert second.new_chunks == 0
    assert seen(bytes(stream.restored_root())) == without_caches(seen(source))


def test_a_git_repository_in_use_comes_back_with_its_state(tmp_path: Path) -> None:
    """What git says of the restored folder must be what it said of the original."""
    stream = Stream(tmp_path)
    root = stream.root
    _git(root, "init", "-q", "-b", "main")
    (root / "file").write_text("one\n")
    _git(root, "add", ".")
    _git(root, "commit", "-q", "-m", "one")
    (root / "file").write_text("two\n")
    _git(root, "stash", "-q")
    (root / "staged").write_text("staged\n")
    _git(root, "add", "staged")
    (root / "untracked").write_text("untracked\n")

    stream.snapshot()

    back = stream.restored_root()
    for command in (["status", "--porcelain"], ["stash", "list"], ["log", "--format=%H"]):
        assert _git(back, *command) == _git(root, *command)
    assert _git(back, "fsck", "--strict") is not None


def without_caches(tree: dict[bytes, Seen]) -> dict[bytes, Seen]:
    """Return what a tree shows without the folders of compiled modules, which stay out."""
    return {path: one for path, one in tree.items() if b"__pycache__" not in path.split(b"/")}


def _git(folder: Path, *arguments: str) -> str:
    names = {"AUTHOR": "A U Thor", "COMMITTER": "C O Mitter"}
    environment = {**os.environ, "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    environment |= {f"GIT_{who}_NAME": name for who, name in names.items()}
    environment |= {f"GIT_{who}_EMAIL": "someone@example.org" for who in names}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


def test_a_database_that_is_written_meanwhile_is_whole_in_every_snapshot(tmp_path: Path) -> None:
    """Each row is half of a pair in one transaction: a torn copy shows an odd number."""
    stream = Stream(tmp_path)
    path = stream.root / "live.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (x)")
    done = threading.Event()
    writer = threading.Thread(target=_write_pairs, args=(path, done))
    writer.start()
    try:
        results = [stream.snapshot() for _ in range(3)]
    finally:
        done.set()
        writer.join()

    counts = []
    for result in results:
        back = stream.restored_root(result.sequence or 0) / "live.db"
        with closing(sqlite3.connect(back)) as connection:
            counts.append(connection.execute("SELECT count(*) FROM t").fetchone()[0])
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert [result.status for result in results] == ["ok"] * 3
    assert all(count % 2 == 0 for count in counts)
    assert counts == sorted(counts)


def _write_pairs(path: Path, done: threading.Event) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        while not done.is_set():
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO t VALUES (?)", (os.urandom(400),))
            connection.execute("INSERT INTO t VALUES (?)", (os.urandom(400),))
            connection.execute("COMMIT")
            done.wait(0.001)
