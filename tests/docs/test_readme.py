"""What the README shows is what happens: every command of it, in order, on a machine of its own.

A ``console`` block has commands behind ``$``, and beneath each what it prints. ``…`` stands for
any text, on a line of its own for any number of lines; a line that begins with ``> `` is typed
at a terminal. A comment before a block says where it runs.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.harness import Cli, in_terminal

TOP = Path(__file__).resolve().parents[2]
README = (TOP / "README.md").read_text()
SHOWN_HOME, SHOWN_DAY = "/home/ana", "2031-05-17"
NEW_MACHINE, FRESH_MACHINE = "a new machine that has the copies", "a fresh machine"
ANY = "…"

_BLOCK = re.compile(r"(?:<!-- test: ([^\n]*) -->\n)?```(console|sh)\n(.*?)```", re.DOTALL)


@dataclass
class Step:
    """A command as the README shows it, with what it prints and what is typed."""

    command: str
    shown: list[str] = field(default_factory=list)

    @property
    def answers(self) -> list[str]:
        """What is typed at prompts."""
        return [line[2:] for line in self.shown if line.startswith("> ")]


def blocks(kind: str) -> list[tuple[str, str]]:
    """Return (where, text) of each block of a kind."""
    return [(where, text) for where, found, text in _BLOCK.findall(README) if found == kind]


def steps(text: str) -> Iterator[Step]:
    """Yield the commands of a block."""
    step: Step | None = None
    for line in text.splitlines():
        if line.startswith("$ "):
            if step is not None:
                yield step
            step = Step(line[2:])
        else:
            assert step is not None, f"output before a command: {line}"
            step.shown.append(line)
    if step is not None:
        yield step


def matches(shown: list[str], printed: list[str]) -> bool:
    """Return whether what was printed has the shape that is shown."""
    if not shown:
        return not printed
    if shown[0] == ANY:
        return any(matches(shown[1:], printed[at:]) for at in range(len(printed) + 1))
    pattern = ".*".join(re.escape(part) for part in shown[0].split(ANY))
    return (
        bool(printed)
        and bool(re.fullmatch(pattern, printed[0]))
        and matches(shown[1:], printed[1:])
    )


class Machine:
    """A home with the program in its PATH; shown places become those of the test."""

    def __init__(self, folder: Path) -> None:
        self.cli = Cli(folder / "home")
        home = self.cli.home
        programs = folder / "bin"
        programs.mkdir()
        launcher = programs / "durarepo"
        launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -m durarepo_cli.main "$@"\n')
        launcher.chmod(0o755)
        self.cli.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
        data = "/var/lib/durarepo" if os.geteuid() == 0 else f"{home}/var/durarepo"
        self._places = {
            "/.local/share/durarepo": data,
            "/.config/durarepo/keys": f"{home}/etc/keys",
            "/.local/state/durarepo": f"{home}/var/state",
        }
        self._prefix = self.cli.command()[:-3] if os.geteuid() == 0 else []

    def real(self, text: str) -> str:
        """Return a shown text with the places and the day of this machine."""
        for shown, place in self._places.items():
            text = text.replace(SHOWN_HOME + shown, place).replace("~" + shown, place)
        text = text.replace(SHOWN_HOME, str(self.cli.home))
        return text.replace(SHOWN_DAY, self._day()) if SHOWN_DAY in text else text

    def _day(self) -> str:
        line = self.cli.run("log", "--limit", "1", "--json").stdout
        return str(json.loads(line)["issued"])[:10]

    def run(self, step: Step) -> list[str]:
        """Return the lines that a step prints, stdout and stderr together."""
        command = self.real(step.command)
        if step.answers:
            name, *arguments = shlex.split(command.replace("~", str(self.cli.home)))
            assert name == "durarepo"
            answers = [self.real(answer).encode() for answer in step.answers]
            ran = in_terminal(self.cli, *arguments, answers=answers)
            return [*ran.err.splitlines(), *ran.out.splitlines()]
        done = subprocess.run(
            [*self._prefix, "sh", "-c", command],
            env=self.cli.environment,
            cwd=self.cli.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=120,
        )
        assert (done.returncode == 0) is not any("error:" in line for line in step.shown), (
            command,
            done.stdout.decode(),
        )
        return done.stdout.decode().splitlines()

    def lose_all_but_copies(self) -> None:
        """Leave what the README keeps elsewhere, as it would be found on another machine."""
        for name in ("var", "etc", "notes", "back", "back-1", "old"):
            shutil.rmtree(self.cli.home / name)
        for name in ("var", "etc"):
            (self.cli.home / name).mkdir()


def test_every_command_of_the_readme_prints_what_is_shown(tmp_path: Path) -> None:
    """A newcomer types what stands there; the first difference costs their trust."""
    machine, ran = Machine(tmp_path / "first"), list[str]()
    for where, text in blocks("console"):
        if where == NEW_MACHINE:
            machine.lose_all_but_copies()
        elif where == FRESH_MACHINE:
            machine = Machine(tmp_path / f"after-{len(ran)}")
        else:
            assert where == ""
        for step in steps(text):
            printed = machine.run(step)
            shown = [machine.real(line) for line in step.shown]
            assert matches(shown, printed), (step.command, shown, printed)
            ran.append(step.command)

    commands = {command.split()[1] for command in ran if command.startswith("durarepo ")}
    assert commands >= {
        *("init", "snapshot", "log", "ls", "cat", "find", "diff", "verify", "checkout", "status"),
        "held",
    }


def test_the_first_command_goes_from_nothing_to_a_proven_copy(tmp_path: Path) -> None:
    """The first line of the README is the first thing that anybody tries."""
    (_, text), *others = blocks("sh")
    first = text.splitlines()[0].partition("#")[0].replace("sh cli/durarepo", "durarepo")
    machine = Machine(tmp_path / "first")
    (machine.cli.home / "notes").mkdir()
    (machine.cli.home / "notes" / "a").write_text("one")

    printed = machine.run(Step(first))

    assert others == []
    assert printed[0] == "made stream notes"
    assert "  compared  1 file, byte for byte" in printed


def test_the_readme_names_only_commands_that_exist_or_says_that_they_do_not() -> None:
    """A command that is missing must stand where it is said to be missing, and nowhere else."""
    from durarepo_cli.program import COMMANDS

    named = set(re.findall(r"`durarepo ([a-z]+)", README))
    missing = README.partition("**Not in this version:**")[2].partition("\n\n")[0]
    later = {"push", "fetch", "clone", "nightly", "deadman", "activate", "repair", "schedule"}

    assert named <= set(COMMANDS)
    assert later & set(COMMANDS) == set()
    assert all(f"`{name}`" in missing for name in later)


@pytest.mark.parametrize(
    ("shown", "printed", "agrees"),
    [
        (["a", ANY, "d"], ["a", "b", "c", "d"], True),
        (["a", ANY], ["a"], True),
        ([f"a {ANY} c"], ["a b b c"], True),
        (["a"], ["a", "b"], False),
        ([], ["a"], False),
        (["a.c"], ["abc"], False),
        (["a", ANY, "d"], ["a", "b"], False),
    ],
)
def test_shapes_are_told_apart(shown: list[str], printed: list[str], *, agrees: bool) -> None:
    """A comparison that lets everything pass would let an old README pass."""
    assert matches(shown, printed) is agrees
