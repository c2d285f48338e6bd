"""A clone becomes runnable by one command, whole or not at all, and then costs nothing.

The interpreter is a small shell script here, so that installing needs no network and can be
made to fail, to take long, or to lack a part; everything else is the real launcher.
"""

import getpass
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.architecture.sources import TOP
from tests.doubles.children import UNPRIVILEGED, let_others_pass

INTERPRETER = """#!/bin/sh
# Stands in for Python. What it is asked goes to $S/calls; files in $S change its mind.
S='{switches}'
printf '%s\\n' "$*" >>"$S/calls"
case $* in
*os.replace*) exec '{python}' "$@" ;;
*version_info*) printf '%s\\n' "$0" ;;
"-m venv --without-pip "*) shift 3 && mkdir -p "$1/bin" && cp "$0" "$1/bin/python" ;;
"-m venv "*)
    [ ! -e "$S/no-venv" ] || exit 1
    mkdir -p "$3/bin"
    cp "$0" "$3/bin/python"
    cp "$0" "$3/bin/pip"
    ;;
"-m virtualenv "*) exit 1 ;;
"-m pip --version") [ ! -e "$S/no-pip" ] ;;
"-m pip "*)
    [ ! -e "$S/slow" ] || sleep 1
    [ ! -e "$S/no-network" ] || {{ echo 'could not fetch click' >&2; exit 1; }}
    case $3 in
    --python) at=${{4%/bin/python}} ;;
    *) at=${{0%/bin/python}} ;;
    esac
    mkdir -p "$at/lib/python3.11/site-packages/click-8.5.1.dist-info"
    ;;
esac
"""
TOOLS = (
    "cat", "chmod", "cmp", "cp", "dirname", "ln", "ls", "mkdir", "mktemp", "readlink", "rm", "sh",
    "sleep",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A checkout and the programs of a machine that has just been set up."""

    top: Path
    bin: Path
    switches: Path

    def command(self, *arguments: str, script: str = "cli/durarepo") -> list[str]:
        """Return the command line that runs a script of the checkout."""
        return ["sh", str(self.top / script), *arguments]

    def environment(self) -> dict[str, str]:
        """Return an environment with nothing in it but the few programs and an empty home."""
        return {"PATH": str(self.bin), "HOME": str(self.switches), "PYTHONPATH": "/nowhere"}

    def run(
        self, *arguments: str, script: str = "cli/durarepo"
    ) -> subprocess.CompletedProcess[str]:
        """Run a script of the checkout to its end."""
        return subprocess.run(
            self.command(*arguments, script=script),
            env=self.environment(), cwd="/", capture_output=True, text=True, check=False,
        )  # fmt: skip

    def start(self) -> subprocess.Popen[bytes]:
        """Start the launcher as the leader of a process group of its own."""
        return subprocess.Popen(
            self.command("status"), env=self.environment(), start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def switch(self, *, on: str) -> None:
        """Change the mind of the interpreter."""
        (self.switches / on).touch()

    def calls(self, about: str = "") -> list[str]:
        """Return what the interpreter was asked so far, or what of it holds ``about``."""
        log = self.switches / "calls"
        asked = log.read_text().splitlines() if log.exists() else []
        return [line for line in asked if about in line]

    def builds(self) -> set[str]:
        """Return the names of the builds that lie beside the environment."""
        return {path.name for path in (self.top / ".venv.d").iterdir()} - {"lock"}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with a shell, an interpreter, flock and a checkout in a folder with a blank."""
    made = Machine(top=tmp_path / "my clone", bin=tmp_path / "bin", switches=tmp_path / "home")
    for folder in (made.bin, made.switches):
        folder.mkdir()
    for tool in (*TOOLS, "flock"):
        (made.bin / tool).symlink_to(shutil.which(tool) or tool)
    interpreter = made.bin / "python3"
    interpreter.write_text(INTERPRETER.format(switches=made.switches, python=sys.executable))
    interpreter.chmod(0o755)
    for name in ("cli/durarepo", "cli/private_venv.sh", "tests/run"):
        (made.top / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TOP / name, made.top / name)
    (made.top / ".ci").mkdir()
    for name in ("pyproject.toml", ".ci/requirements.txt"):
        shutil.copy(TOP / name, made.top / name)
    return made


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for another process to get somewhere; give up after half a minute."""
    for _ in range(600):
        if holds():
            return
        time.sleep(0.05)
    pytest.fail("the other process did not get there")


def check_two_lines(done: subprocess.CompletedProcess[str], *, hint: str) -> None:
    """Assert that a run failed with one error and one hint as its last lines, and no result."""
    error, advice = done.stderr.splitlines()[-2:]
    assert done.returncode == 14
    assert done.stdout == ""
    assert error.startswith("durarepo: error: ")
    assert advice.startswith("durarepo: hint: ")
    assert hint in advice


def test_the_first_run_installs_and_starts_the_command(machine: Machine) -> None:
    """The README's first command is all that a newcomer types."""
    done = machine.run("quickstart", "a folder")

    assert done.returncode == 0
    assert len(machine.calls("pip install")) == 1
    assert machine.calls()[-1].startswith("-I ")
    assert machine.calls()[-1].endswith("/bin/durarepo quickstart a folder")


def test_a_second_run_only_starts_the_command(machine: Machine) -> None:
    """What is installed must cost no Python start and print no line."""
    machine.run("status")
    before = len(machine.calls())

    done = machine.run("status")

    assert done.stderr == ""
    assert len(machine.calls()) == before + 1


def test_a_changed_recipe_makes_a_new_environment_and_keeps_the_one_in_use(
    machine: Machine,
) -> None:
    """After an update the dependencies follow, and a command that is running loses nothing."""
    machine.run("status")
    first = machine.builds()
    recipe = machine.top / "pyproject.toml"
    recipe.write_text(recipe.read_text() + "\n# changed\n")
    machine.run("status")
    second = machine.builds()
    recipe.write_text(recipe.read_text() + "\n# changed again\n")
    machine.run("status")

    assert len(machine.calls("pip install")) == 3
    assert first < second
    assert len(machine.builds()) == 2
    assert first.isdisjoint(machine.builds())


def damage_package(machine: Machine) -> None:
    """Take one package out of the environment."""
    shutil.rmtree(next((machine.top / ".venv/lib").rglob("click-*")))


def damage_interpreter(machine: Machine) -> None:
    """Let the interpreter of the environment be gone, as after an upgrade of the system."""
    (machine.top / ".venv/bin/python").unlink()


def damage_link(machine: Machine) -> None:
    """Let the environment point to nothing."""
    shutil.rmtree((machine.top / ".venv").resolve())


def damage_notes(machine: Machine) -> None:
    """Empty what the environment knows about itself."""
    (machine.top / ".venv/made-of").write_text("")


@pytest.mark.parametrize("damage", [damage_package, damage_interpreter, damage_link, damage_notes])
def test_a_broken_environment_is_made_anew(
    machine: Machine, damage: Callable[[Machine], None]
) -> None:
    """Nobody should have to know that there is an environment to throw away."""
    machine.run("status")
    damage(machine)

    done = machine.run("status")

    assert done.returncode == 0
    assert len(machine.calls("pip install")) == 2
    assert next((machine.top / ".venv/lib").rglob("click-*")).is_dir()


def test_a_copied_checkout_does_not_run_the_code_of_the_original(machine: Machine) -> None:
    """An environment knows its checkout by path; a copy would start the other one's code."""
    machine.run("status")
    copy = Machine(top=machine.top.parent / "copy", bin=machine.bin, switches=machine.switches)
    shutil.copytree(machine.top, copy.top, symlinks=True)

    copy.run("status")

    assert len(machine.calls("pip install")) == 2
    assert f"{copy.top}/.venv.d/" in machine.calls()[-1]


def test_a_failed_installation_leaves_nothing_and_says_why(machine: Machine) -> None:
    """Half an environment would fail later, somewhere else, without a reason."""
    machine.switch(on="no-network")

    done = machine.run("status")

    check_two_lines(done, hint="run it again")
    assert "could not fetch click" in done.stderr
    assert not (machine.top / ".venv").exists()
    assert machine.builds() == set()

    (machine.switches / "no-network").unlink()
    assert machine.run("status").returncode == 0


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_installation_leaves_no_environment(
    machine: Machine, sent: signal.Signals
) -> None:
    """The next run must find nothing that looks finished."""
    machine.switch(on="slow")
    running = machine.start()
    wait_until(lambda: bool(machine.calls("pip install")))
    os.killpg(running.pid, sent)
    running.wait()

    assert not (machine.top / ".venv").exists()
    assert running.returncode in {-sent, 128 + sent}
    assert (machine.builds() == set()) is (sent != signal.SIGKILL)

    (machine.switches / "slow").unlink()
    assert machine.run("status").returncode == 0
    assert len(machine.builds()) == 1


def test_two_first_runs_at_once_install_once(machine: Machine) -> None:
    """A timer and a person may start the same new version in the same second."""
    machine.switch(on="slow")
    both = [machine.start(), machine.start()]

    assert [run.wait() for run in both] == [0, 0]
    assert len(machine.calls("pip install")) == 1
    assert len(machine.builds()) == 1


def test_two_first_runs_without_a_lock_both_end_well(machine: Machine) -> None:
    """Where flock is missing the work is done twice, and either result is whole."""
    (machine.bin / "flock").unlink()
    machine.switch(on="slow")
    both = [machine.start(), machine.start()]

    assert [run.wait() for run in both] == [0, 0]
    assert machine.run("status").stderr == ""


def test_a_machine_without_venv_uses_the_pip_it_has(machine: Machine) -> None:
    """Debian ships venv apart from Python; root should not be needed if pip is there."""
    machine.switch(on="no-venv")

    done = machine.run("status")

    assert done.returncode == 0
    assert machine.calls("-m pip --python ")


def test_a_machine_without_venv_and_pip_says_which_package_to_install(machine: Machine) -> None:
    """Two lines with a command are worth more than the trace of a missing module."""
    machine.switch(on="no-venv")
    machine.switch(on="no-pip")

    done = machine.run("status")

    check_two_lines(done, hint="apt-get install python3-venv")
    assert machine.builds() == set()


def test_a_machine_without_python_says_which_package_to_install(machine: Machine) -> None:
    """The very first thing that can be missing."""
    (machine.bin / "python3").unlink()

    check_two_lines(machine.run("status"), hint="apt-get install python3")


def test_an_environment_of_somebody_else_is_left_alone(machine: Machine) -> None:
    """Many people make a .venv of their own in a clone; it is theirs."""
    (machine.top / ".venv" / "bin").mkdir(parents=True)

    done = machine.run("status")

    check_two_lines(done, hint="move it elsewhere")
    assert [path.name for path in (machine.top / ".venv").iterdir()] == ["bin"]


def test_a_checkout_that_cannot_be_written_is_told(machine: Machine) -> None:
    """A clone made by root and used by somebody else cannot install anything into itself."""
    (machine.top / ".venv.d").write_text("in the way")

    check_two_lines(machine.run("status"), hint="make the checkout yours")


@pytest.mark.parametrize("closed", ["", ".venv.d", ".venv.d/lock"])
def test_a_part_that_another_user_made_is_told(machine: Machine, closed: str) -> None:
    """What root installed once must not end in a message of the shell."""
    folder = machine.top / ".venv.d"
    folder.mkdir()
    (folder / "lock").touch()
    for place in (machine.top, folder, folder / "lock"):
        os.chown(place, UNPRIVILEGED, UNPRIVILEGED)
    os.chown(machine.top / closed, 0, 0)
    let_others_pass(machine.top)

    done = subprocess.run(
        machine.command("status"), env=machine.environment(), cwd="/", user=UNPRIVILEGED,
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    check_two_lines(done, hint="make the checkout yours")


def test_the_launcher_works_through_links_and_from_its_own_folder(machine: Machine) -> None:
    """People link it into their path, or stand beside it."""
    (machine.bin / "durarepo").symlink_to(machine.top / "cli" / "durarepo")
    (machine.bin / "again").symlink_to("durarepo")
    linked = ["sh", str(machine.bin / "again"), "status"]
    beside = ["sh", "durarepo", "status"]

    for command, cwd in ((linked, Path("/")), (beside, machine.top / "cli")):
        done = subprocess.run(command, cwd=cwd, env=machine.environment(), check=False)

        assert done.returncode == 0
    assert len(machine.calls("pip install")) == 1


def test_the_tests_install_only_what_the_lock_names_by_hash(machine: Machine) -> None:
    """A test run that takes the newest of everything tests something else every day."""
    done = machine.run("-q", "tests/unit", script="tests/run")

    [installed] = machine.calls("pip install")
    assert done.returncode == 0
    assert "--require-hashes --only-binary :all: --requirement " in installed
    assert machine.calls()[-1] == "-m pytest -q tests/unit"
    assert not (machine.top / ".venv").exists()


def test_a_test_run_ends_well_beside_trees_deeper_than_the_stack(tmp_path: Path) -> None:
    """Pytest removes what earlier runs left; a crash there takes the closing line away."""
    garbage = tmp_path / f"pytest-of-{getpass.getuser()}" / "garbage-1"
    garbage.mkdir(parents=True, mode=0o700)
    garbage.parent.chmod(0o700)
    at = os.open(garbage, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    environment = {**os.environ, "PYTEST_DEBUG_TEMPROOT": str(tmp_path)}
    one = f"{Path(__file__)}::test_an_environment_of_somebody_else_is_left_alone"

    few = ["sh", "-c", 'ulimit -Sn 256 && exec "$@"', "sh"]
    command = [*few, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", one]
    done = subprocess.run(
        command, cwd=TOP, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "1 passed" in done.stdout.splitlines()[-1]
    assert not garbage.exists()


NEEDS = """
import errno, os, subprocess, pytest
def test_forbidden(): raise PermissionError(errno.EPERM, "chown")
def test_in_a_child(): assert False, "PermissionError: [Errno 1] Operation not permitted"
def test_by_a_tool(): raise subprocess.CalledProcessError(1, ["mount", "x"])
@pytest.fixture
def owner(): raise PermissionError(errno.EPERM, "chown")
def test_in_a_fixture(owner): pass
def test_closed(): raise PermissionError(errno.EACCES, "open")
def test_wrong(): assert 1 == 2
def test_other_tool(): raise subprocess.CalledProcessError(1, ["git", "x"])
"""


@pytest.mark.parametrize(
    ("user", "outcome"), [(1000, "3 failed, 4 skipped"), (0, "6 failed, 1 error")]
)
def test_only_what_needs_root_is_skipped_and_only_without_root(
    user: int, outcome: str, tmp_path: Path
) -> None:
    """A newcomer's first test run should pass; it must not pass by hiding a failure."""
    shutil.copy(TOP / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_needs.py").write_text(NEEDS)
    start = f"import os, pytest\nos.geteuid = lambda: {user}\npytest.main(['-q', '--tb=no'])"

    command = [sys.executable, "-c", start]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1].startswith(outcome)


def test_the_lock_holds_every_dependency_in_its_range_with_hashes() -> None:
    """A range without its lock entry would be installed unpinned, or not at all."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["test"]]
    lock = (TOP / ".ci" / "requirements.txt").read_text()
    entries = re.findall(
        r"^(\S+?)==(\S+)[^\n]*\\\n((?: +--hash=sha256:\w{64}[ \\]*\n)+)", lock, re.M
    )
    locked = {name: version for name, version, _ in entries}

    assert len(entries) == len(re.findall(r"^\w", lock, re.M))
    for requirement in map(Requirement, wanted):
        assert requirement.specifier.contains(locked[requirement.name]), requirement


def test_the_lock_names_no_host() -> None:
    """Where packages come from is the business of the machine that installs them."""
    assert "://" not in (TOP / ".ci" / "requirements.txt").read_text()
