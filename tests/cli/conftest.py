"""A home for each test, and one stream with a few files where a test wants it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.harness import Cli
from tests.doubles.children import mount

NAMES = (b"a.txt", b"deep/er/b.txt", b"line\nbreak", b"esc\x1b[31mred", b"\xff\xfe.bin")


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The program in an empty home."""
    return Cli(tmp_path / "home")


def fill(root: Path) -> None:
    """Make files with plain and with nasty names."""
    for number, name in enumerate(NAMES):
        path = root / name.decode(errors="surrogateescape")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"content %d\n" % number * (number * 1000 + 1))


@pytest.fixture
def fresh(cli: Cli) -> Cli:
    """A stream ``notes`` with a root and nothing kept."""
    root = cli.home / "agent" / "notes"
    root.mkdir()
    fill(root)
    assert cli.run("init", "--stream", "notes", "--root", str(root)).code == 0
    return cli


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk that is full: a few files of room, no more."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(folder))
    (folder / "ballast").write_bytes(bytes(56 * 1024))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
