"""One mutation: a protection taken out of the program, and the tests that have to notice.

`survives` copies what a test needs to a folder of its own, changes the one place there, and runs
the named tests in a child. The checkout itself is never changed. Start at `run`.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
COPIED = ("durarepo", "cli", "tests", "pyproject.toml", "README.md", ".gitignore")
LINKED = (".ci", "fixtures", "spec")
TIMEOUT_SECONDS = 240

_FAILED = re.compile(r"^FAILED (\S+?)(?:\[.*)?(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """What is broken, where, and by which tests it is noticed.

    ``breaks`` is said of the mutated program, ``old`` stands exactly once in ``file``, and each
    of ``tests`` (file::name, or with one parameter set) fails once ``new`` stands there instead.
    """

    id: str
    rows: tuple[str, ...]
    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How the named tests ended in the child: exit code of pytest, failed tests, all it said."""

    code: int
    failed: frozenset[str]
    said: str


def function_of(test: str) -> str:
    """Return a test's name without its parameters."""
    return test.partition("[")[0]


def is_in_place(mutation: Mutation) -> bool:
    """Return whether the text to be mutated stands exactly once where it is looked for."""
    return (TOP / mutation.file).read_text().count(mutation.old) == 1


def copy_tree(folder: Path) -> None:
    """Copy to ``folder`` what the tests run from; what they only read is linked."""
    skipped = shutil.ignore_patterns(".*", "*.pyc")
    for name in COPIED:
        source = TOP / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=skipped, symlinks=True)
        else:
            shutil.copy2(source, folder / name)
    for name in LINKED:
        (folder / name).symlink_to(TOP / name)


def apply(mutation: Mutation, folder: Path) -> None:
    """Change the one place in a copy.

    Raises:
        ValueError: the text is not there, or not once.
    """
    path = folder / mutation.file
    text = path.read_text()
    if text.count(mutation.old) != 1:
        raise ValueError(f"{mutation.file} does not hold the text of '{mutation.id}' once")
    path.write_text(text.replace(mutation.old, mutation.new))


def run(tests: Iterable[str], folder: Path) -> Ran:
    """Run the named tests, and only those, from a copy.

    Args:
        tests: names as pytest takes them.
        folder: the copy; temporary folders of the tests lie in it.
    """
    base = folder / "temporary"
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:randomly", "--tb=line"]
    command += ["-p", "no:cacheprovider", f"--basetemp={base}", *tests]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    environment |= {
        "PYTHONPATH": f"{folder}:{folder / 'cli'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "COLUMNS": "400",
    }
    child = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said = child.communicate(timeout=TIMEOUT_SECONDS)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        said = child.communicate()[0].decode(errors="replace") + "\nno end\n"
    shutil.rmtree(base, ignore_errors=True)
    return Ran(code=child.returncode, failed=frozenset(_FAILED.findall(said)), said=said)


def run_mutated(mutation: Mutation, folder: Path) -> Ran:
    """Run a mutation's tests against a copy in which it is applied."""
    copy_tree(folder)
    apply(mutation, folder)
    return run(mutation.tests, folder)


def survives(mutation: Mutation, ran: Ran) -> bool:
    """Return whether a named test did not notice; a run that did not get to its tests counts."""
    return ran.code != 1 or not {function_of(test) for test in mutation.tests} <= ran.failed
