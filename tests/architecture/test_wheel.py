"""The wheel that users install holds the program and nothing else (A5e)."""

import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from durarepo import __version__
from tests.architecture.sources import COMMAND_LINE, LIBRARY, TOP

DOUBLES = {
    "double", "doubles", "dummy", "fake", "faulty", "memory", "mock", "mocks", "simulated",
    "simulator", "stub", "stubs", "test", "testing", "tests",
}  # fmt: skip
"""No module of the program may have one of these words in its path."""


def build_wheel(top: Path, into: Path) -> zipfile.ZipFile:
    """Build the wheel of a checkout without network and without build isolation."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)]
    subprocess.run(command, cwd=top, check=True, capture_output=True)
    [wheel] = into.glob("*.whl")
    return zipfile.ZipFile(wheel)


def modules_of(wheel: zipfile.ZipFile) -> set[str]:
    """Return the files of a wheel without its record."""
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


def find_doubles(modules: set[str]) -> set[str]:
    """Return the modules whose name says that they stand in for something."""
    return {name for name in modules if DOUBLES & set(re.split(r"[/._-]", name.lower()))}


def find_strangers(modules: set[str], top: Path) -> set[str]:
    """Return what a wheel holds and the two packages of the checkout do not, or the reverse."""
    library = {path.relative_to(top).as_posix() for path in (top / LIBRARY).rglob("*.py")}
    command_line = {
        path.relative_to(top / "cli").as_posix() for path in (top / COMMAND_LINE).rglob("*.py")
    }
    return modules ^ (library | command_line)


def copy_checkout(into: Path) -> Path:
    """Copy what a build needs, and the tests, which it must leave out."""
    skip = shutil.ignore_patterns("__pycache__", ".*")
    for folder in (LIBRARY, "cli", "tests"):
        shutil.copytree(TOP / folder, into / folder, ignore=skip)
    for name in ("pyproject.toml", "README.md", ".gitignore"):
        shutil.copy(TOP / name, into / name)
    return into


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this checkout."""
    return copy_checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel of that copy."""
    return build_wheel(checkout, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_exactly_the_two_packages(wheel: zipfile.ZipFile, checkout: Path) -> None:
    """A file too many is code that nobody reviewed as part of the program."""
    assert find_strangers(modules_of(wheel), checkout) == set()


def test_the_wheel_holds_no_double(wheel: zipfile.ZipFile) -> None:
    """A memory store or a fake cipher that is installed is one that can be reached."""
    assert find_doubles(modules_of(wheel)) == set()


def test_the_wheel_says_what_it_needs(wheel: zipfile.ZipFile) -> None:
    """The pin of the crypto package has to reach who installs the wheel."""
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = Parser().parsestr(wheel.read(name).decode())
    needed = metadata.get_all("Requires-Dist") or []
    [scripts] = [name for name in wheel.namelist() if name.endswith("/entry_points.txt")]

    assert metadata["Version"] == __version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert "cryptography==50.0.2" in needed
    assert not [line for line in needed if line.startswith(("pygit2", "pytest", "hypothesis"))]
    assert "durarepo = durarepo_cli.main:main" in wheel.read(scripts).decode()


def test_a_planted_double_is_found_in_its_wheel(tmp_path: Path) -> None:
    """The check has to see what a build would really take along."""
    top = copy_checkout(tmp_path / "checkout")
    (top / "durarepo" / "crypto" / "fake_primitives.py").write_text('"""Seals nothing."""\n')
    (top / "cli" / "durarepo_cli" / "notes.txt").write_text("left behind\n")
    (tmp_path / "wheel").mkdir()

    modules = modules_of(build_wheel(top, tmp_path / "wheel"))

    assert find_doubles(modules) == {"durarepo/crypto/fake_primitives.py"}
    assert find_strangers(modules, top) == {"durarepo_cli/notes.txt"}
