"""The specification of the command line says what the program does, and the other way round."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from durarepo.core import errors
from durarepo_cli.codes import PAGES, exit_of_code
from durarepo_cli.exits import CODE_EXITS, FAMILY_EXITS, Exit
from durarepo_cli.program import COMMANDS, PROGRAM
from tests.cli.harness import PROGRAM as CALL
from tests.cli.harness import TOP

SPEC = TOP / "spec"
_ROW = re.compile(r"^\| `([a-z]+\.[a-z0-9-]+)` \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)


# --- error codes ----------------------------------------------------------------------------


def test_the_pages_of_explain_are_the_rows_of_the_specification() -> None:
    """Two tables of one thing drift apart."""
    rows = {row[0]: row[1:] for row in _ROW.findall((SPEC / "errors.md").read_text())}

    assert rows == {code: tuple(page) for code, page in PAGES.items()}


def test_every_code_that_is_raised_has_a_page() -> None:
    """Who meets an error looks its code up."""
    missing = {code: places for code, places in raised().items() if code not in PAGES}

    assert not missing


def test_every_page_is_of_a_code_that_is_raised() -> None:
    """A page about nothing makes people look for it."""
    assert set(PAGES) - set(raised()) == set()


def test_every_family_has_an_exit_code() -> None:
    """An error of a family without one would be taken for a bug."""
    families = {
        one.family
        for one in vars(errors).values()
        if isinstance(one, type) and issubclass(one, errors.DurarepoError) and one.family
    }

    assert families - {"run"} == set(FAMILY_EXITS)
    assert all(exit_of_code(code) is not Exit.DONE for code in PAGES)
    assert set(CODE_EXITS) <= set(PAGES)


def raised() -> dict[str, list[str]]:
    """Return every error code that the sources can raise, with where.

    A reason is a literal where the error is made, or comes in through a parameter: then the
    literals count with which that function is called, and so on.
    """
    return _Reasons([*(TOP / "durarepo").rglob("*.py"), *(TOP / "cli").rglob("*.py")]).codes()


def _families() -> dict[str, str]:
    found = {
        name: one.family
        for name, one in vars(errors).items()
        if isinstance(one, type) and issubclass(one, errors.DurarepoError)
    }
    return {name: family for name, family in found.items() if family} | {"BugError": "bug"}


class _Reasons:
    """Follows the reasons of errors from where they are made to where they are written."""

    def __init__(self, paths: list[Path]) -> None:
        self._calls: dict[str, list[tuple[ast.Call, ast.AST, str]]] = {}
        for path in paths:
            tree = ast.parse(path.read_text())
            self._collect(tree, tree, str(path.relative_to(TOP)))

    def _collect(self, node: ast.AST, scope: ast.AST, where: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = child if isinstance(child, (ast.FunctionDef, ast.ClassDef)) else scope
            if isinstance(child, ast.Call):
                name = _name_of(child.func)
                self._calls.setdefault(name, []).append((child, scope, where))
            self._collect(child, inner, where)

    def codes(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, family in _families().items():
            for call, scope, where in self._calls.get(name, []):
                argument = _argument(call, 0, "reason")
                assert argument is not None, f"{where}:{call.lineno}: an error without a reason"
                for reason in self._values(argument, scope, f"{where}:{call.lineno}"):
                    found.setdefault(f"{family}.{reason}", []).append(f"{where}:{call.lineno}")
        return found

    def _values(self, node: ast.AST, scope: ast.AST, where: str) -> Iterator[str]:
        """Yield every text that an expression can be."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.IfExp):
            yield from self._values(node.body, scope, where)
            yield from self._values(node.orelse, scope, where)
        elif isinstance(node, ast.JoinedStr):
            yield from self._joined(node.values, scope, where)
        elif isinstance(node, ast.Name):
            yield from self._of_name(node.id, scope, where)
        elif isinstance(node, ast.Attribute) and node.attr == "_reason":
            yield from self._of_parameter("Fields", None, "reason", where)
        elif _is_code_cut(node):
            return  # the reason of an error that is told again with a better message
        else:
            pytest.fail(f"{where}: cannot tell the reason {ast.unparse(node)}")

    def _joined(self, parts: list[ast.expr], scope: ast.AST, where: str) -> Iterator[str]:
        texts = [""]
        for part in parts:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            ends = list(self._values(inner, scope, where))
            texts = [text + end for text in texts for end in ends]
        yield from texts

    def _of_name(self, name: str, scope: ast.AST, where: str) -> Iterator[str]:
        function = scope
        assert isinstance(function, ast.FunctionDef), where
        assigned = list(_assigned(function, name))
        for value in assigned:
            yield from self._values(value, scope, where)
        names = [one.arg for one in function.args.args]
        keywords = [one.arg for one in function.args.kwonlyargs]
        if name in names:
            position = names.index(name) - (names[0] in ("self", "cls"))
            yield from self._of_parameter(function.name, position, name, where)
        elif name in keywords:
            yield from self._of_parameter(function.name, None, name, where)
        elif not assigned:
            pytest.fail(f"{where}: cannot tell where '{name}' comes from")

    def _of_parameter(
        self, function: str, position: int | None, name: str, where: str
    ) -> Iterator[str]:
        """Yield what a parameter can be: a private function is called in its own file only."""
        home = where.rpartition("from ")[2].partition(":")[0]
        for call, scope, place in self._calls.get(function, []):
            is_far = place != home
            if is_far and (function.startswith("_") or not isinstance(call.func, ast.Name)):
                continue
            argument = _argument(call, position, name)
            if argument is not None:
                yield from self._values(argument, scope, f"{where} from {place}:{call.lineno}")


def _name_of(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _argument(call: ast.Call, position: int | None, name: str) -> ast.AST | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if position is not None and position < len(call.args):
        return call.args[position]
    return None


def _assigned(function: ast.FunctionDef, name: str) -> Iterator[ast.AST]:
    """Yield what is assigned to a name inside a function; pairs are taken apart."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id == name:
                yield node.value
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for one, value in zip(target.elts, node.value.elts, strict=True):
                    if isinstance(one, ast.Name) and one.id == name:
                        yield value


def _is_code_cut(node: ast.AST) -> bool:
    """Return whether this takes the reason out of the code of another error."""
    return "code.partition" in ast.unparse(node) or "code.removeprefix" in ast.unparse(node)


# --- exit codes, commands, options, schemas -------------------------------------------------


def test_the_exit_codes_are_those_of_the_specification() -> None:
    """Scripts are written after the table."""
    section = _section((SPEC / "cli.md").read_text(), "2.")
    rows = re.findall(r"^\| (\d+) \| `([A-Z]+)` \|", section, re.MULTILINE)

    assert {name: int(number) for number, name in rows} == {one.name: one.value for one in Exit}


def test_the_families_have_the_exit_codes_of_the_specification() -> None:
    """Which error ends with which code is part of the contract."""
    section = _section((SPEC / "cli.md").read_text(), "2.")
    rows = re.findall(r"^\| \d+ \| `([A-Z]+)` \| [^|]+ \| ([^|]*) \|$", section, re.MULTILINE)
    told = {
        family.strip(" `").removesuffix(".*"): Exit[name]
        for name, families in rows
        for family in families.split(",")
        if family.strip() != "none"
    }

    assert told == {**FAMILY_EXITS, **CODE_EXITS}


def test_every_command_and_option_is_in_the_specification() -> None:
    """What is not written down cannot be relied on, and what is has to be there."""
    section = _section((SPEC / "cli.md").read_text(), "4.")
    for name, command in _commands():
        title = re.search(rf"^### {name}$", section, re.MULTILINE)
        assert title, name
        text = section[title.end() :].split("\n### ")[0]
        told = set(re.findall(r"^\* `(--[a-z-]+)", text, re.MULTILINE))
        own = _options(command) - _options(PROGRAM)
        assert told == own, name
    titles = set(re.findall(r"^### (.+)$", section, re.MULTILINE))
    assert titles == {name for name, _ in _commands()}


def test_the_options_of_all_commands_are_in_the_specification() -> None:
    """They hold before and after the name of every command."""
    section = _section((SPEC / "cli.md").read_text(), "1.")
    told = set(re.findall(r"^\| `(--[a-z]+)", section, re.MULTILINE))

    assert told == _options(PROGRAM)
    for _, command in _commands():
        assert _options(PROGRAM) - {"--version"} <= _options(command)


def test_every_schema_is_named_and_every_name_has_a_schema() -> None:
    """A schema that nobody finds checks nothing."""
    named = set(re.findall(r"`schema/([a-z-]+)\.json`", (SPEC / "cli.md").read_text()))

    assert named == {path.stem for path in (SPEC / "schema").glob("*.json")}


def test_the_table_of_help_is_the_table_of_commands() -> None:
    """The names are known without importing a command; they must be the right ones."""
    for name, row in COMMANDS.items():
        command = PROGRAM.get_command(click.Context(PROGRAM), name)
        assert command is not None
        assert command.name == name
        assert row.help.endswith(".")


def test_help_in_the_documents_is_what_the_program_prints() -> None:
    """Old help is worse than none."""
    found = 0
    for path in (TOP / "README.md", SPEC / "cli.md"):
        blocks = re.findall(
            r"```text\n\$ durarepo ([a-z -]*--help)\n(.*?)```", path.read_text(), re.DOTALL
        )
        found += len(blocks)
        for call, text in blocks:
            done = subprocess.run(
                [*CALL, *call.split()],
                capture_output=True,
                check=True,
                env={"PYTHONPATH": f"{TOP}:{TOP / 'cli'}", "HOME": "/nowhere"},
            )
            assert done.stdout.decode() == text, f"{path.name}: {call}"
    assert found


def _section(text: str, number: str) -> str:
    start = re.search(rf"^## {re.escape(number)} ", text, re.MULTILINE)
    assert start is not None, number
    return text[start.end() :].split("\n## ", maxsplit=1)[0]


def _commands() -> Iterator[tuple[str, click.Command]]:
    for name in COMMANDS:
        command = PROGRAM.get_command(click.Context(PROGRAM), name)
        assert command is not None
        if isinstance(command, click.Group):
            for inner in command.commands.values():
                yield f"{name} {inner.name}", inner
        else:
            yield name, command


def _options(command: click.Command) -> set[str]:
    return {
        option
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
        if option.startswith("--")
    }
