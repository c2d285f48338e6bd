"""Every hint can be followed with the program as it is: it names no command that is not there.

A hint is whatever text the sources give as one. Start at `faults_of`.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from durarepo_cli.codes import PAGES
from durarepo_cli.program import PROGRAM
from tests.cli.harness import TOP

_CALL = re.compile(r"(?<![.\w/])durarepo ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?([^;,`]*)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_ABSENT = re.compile(r"\b(?:push|fetch|clone|repair|activate|nightly|deadman)\b")
_PROSE = {"the", "with", "that", "make", "or", "did", "does", "knows", "wrote", "is", "reads"}
"""What may follow the name of the program where it is no call but a part of a sentence."""


def test_every_hint_names_only_what_the_program_has() -> None:
    """A hint that cannot be followed leaves its reader worse off than none."""
    texts = [
        *(one for path in _sources() for one in hints_of(path.read_text())),
        *(page.fix for page in PAGES.values()),
    ]

    assert len(texts) > 200
    assert {text: found for text in texts if (found := list(faults_of(text)))} == {}


def test_every_text_names_only_commands_that_the_program_has() -> None:
    """Messages and results send people to commands as well."""
    found = {
        text: faults
        for path in _sources()
        for text in texts_of(ast.parse(path.read_text()))
        if (faults := [one for one in faults_of(text) if one.startswith("command")])
    }

    assert found == {}


@pytest.mark.parametrize(
    "planted",
    [
        "bring it back: durarepo restore",
        "durarepo keys rotate-everything",
        "durarepo checkout --in-place",
        "see durarepo show SEQ --ledgers",
        "name it with --everything",
        "repair it",
        "fetch the newer registry first",
    ],
)
def test_a_planted_hint_is_found(planted: str) -> None:
    """A search that finds nothing would let every hint pass."""
    assert list(faults_of(planted))


def test_hints_are_found_wherever_they_are_written() -> None:
    """A hint that is not looked at is not checked."""
    source = 'x(hint="a")\nhint = f"b {c}" if d else "e"\n_HINT = "g"\nrefused("r", "m", "h")\n'

    assert sorted(hints_of(source)) == ["a", "b X", "e", "g", "h"]


def _sources() -> list[Path]:
    return sorted([*(TOP / "durarepo").rglob("*.py"), *(TOP / "cli").rglob("*.py")])


def hints_of(source: str) -> Iterator[str]:
    """Yield every text that a source gives as a hint; X stands for what is put into it."""
    for node in ast.walk(ast.parse(source)):
        names = [one.id for one in getattr(node, "targets", []) if isinstance(one, ast.Name)]
        if isinstance(node, ast.keyword) and node.arg:
            names.append(node.arg if node.arg == "hint" else "")
        if any("hint" in name.lower() or name == "PUT_BACK" for name in names):
            yield from texts_of(node.value)  # type: ignore[attr-defined]  # both kinds have it
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "refused":
            yield from (text for one in node.args[2:] for text in texts_of(one))


def texts_of(node: ast.AST) -> Iterator[str]:
    """Yield every text in a piece of source that is no docstring."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.JoinedStr):
        yield "".join(
            str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values
        )
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from texts_of(child)


def faults_of(text: str) -> Iterator[str]:
    """Yield what a text names and the program does not have."""
    yield from (f"word {one}" for one in _ABSENT.findall(text))
    for first, second, rest in _CALL.findall(text):
        if first in _PROSE:
            continue
        command = _command(PROGRAM, first)
        if isinstance(command, click.Group):
            command = _command(command, second)
        if command is None:
            yield f"command {first} {second}"
            continue
        yield from (
            f"option {one}" for one in _OPTION.findall(rest) if one not in _options(command)
        )
    if not _CALL.search(text):
        yield from (f"option {one}" for one in _OPTION.findall(text) if one not in _all_options())


@cache
def _all_options() -> frozenset[str]:
    return frozenset(option for one in _all(PROGRAM) for option in _options(one))


@cache
def _command(group: click.Group, name: str) -> click.Command | None:
    return group.get_command(click.Context(group), name)


def _all(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            inner = _command(command, name)
            if inner is not None:
                yield from _all(inner)


def _options(command: click.Command) -> set[str]:
    return {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
