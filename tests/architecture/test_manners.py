"""The library prints nothing and ends nothing; files name no workplace; tests can fail."""

import ast
import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.architecture.sources import LIBRARY, TOP, Source, tree_sources

_SPEAKING = {
    "print", "input", "exit", "quit", "breakpoint", "sys.exit", "sys.stdout", "sys.stderr",
    "sys.stdin", "sys.argv", "os._exit", "os.abort", "SystemExit", "logging.getLogger",
}  # fmt: skip

# Built from parts, so that this file does not name what it looks for. What is joined to
# something before it (`place + b"/..."`) is no absolute path.
_PLACES = re.compile(
    r"""(?<![\w.~}\])>-])(?<!\+ ["'])(?<!\+ [bf]["'])/(?:"""
    + "|".join((r"root/\w", r"work(?=/|\b(?![\w-]))"))
    + ")"
)
_HOST = re.compile(r"https?://([\w.-]+)")
_INDEX_WORDS = (
    "artifactory", "index", "mirror", "nexus", "npm", "packages", "proxy", "pypi", "registry",
    "simple",
)  # fmt: skip
ALLOWED_HOSTS = {"mirror.example", "mirror.example.com", "mirror.example.org"}

_LEAST_WORDS = 5
"""A test's name with so many words reads as a sentence."""


def find_speech(source: Source) -> Iterator[str]:
    """Yield what only the command line may do: print, ask, log to a stream, end the process."""
    for node in ast.walk(source.tree):
        name = source.name_of(node)
        if name in _SPEAKING or name.split(".", 1)[0] in {"click", "durarepo_cli"}:
            yield source.finding(node, f"speaks or ends: {name}")


def find_weak_tests(source: Source) -> Iterator[str]:
    """Yield tests that cannot fail, and tests that do not say what they are about."""
    functions = {
        name: node for name, node in source.functions() if isinstance(node, ast.FunctionDef)
    }
    judging = {name for name, node in functions.items() if _can_fail(source, node, set())}
    for name, node in functions.items():
        short = name.rpartition(".")[2]
        if short.startswith("test") and not short.startswith("test_"):
            yield source.finding(node, f"{name}: begins with test but is not collected by its name")
        if not short.startswith("test_"):
            continue
        if not ast.get_docstring(node) and short.count("_") < _LEAST_WORDS:
            yield source.finding(node, f"{name}: neither a sentence nor a docstring")
        if not _can_fail(source, node, judging):
            yield source.finding(node, f"{name}: nothing in it can fail")


def find_workplace(path: str, text: str) -> Iterator[str]:
    """Yield lines that name a place of one machine, or the host of a package index."""
    for number, line in enumerate(text.splitlines(), 1):
        if _PLACES.search(line):
            yield f"{path}:{number}: names a place of one machine"
        for host in _HOST.findall(line):
            words = re.split(r"[.-]", host.lower())
            if host.lower() not in ALLOWED_HOSTS and any(word in _INDEX_WORDS for word in words):
                yield f"{path}:{number}: names the host {host}"


def _can_fail(source: Source, function: ast.AST, judging: set[str]) -> bool:
    """Return whether a function claims something, or calls one of the module that does."""
    return any(_claims(source, node, judging) for node in ast.walk(function))


def _claims(source: Source, node: ast.AST, judging: set[str]) -> bool:
    if isinstance(node, ast.Assert):
        return not (isinstance(node.test, ast.Constant) and node.test.value)
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        return source.name_of(node.exc.func) == "AssertionError"
    if isinstance(node, ast.Call):
        called = source.name_of(node.func) or getattr(node.func, "attr", "")
        is_check = called.rpartition(".")[2].lstrip("_").startswith("check")
        return is_check or called in judging or called in {"pytest.raises", "pytest.fail"}
    return False


def _tracked() -> Iterator[tuple[str, str]]:
    """Yield path and text of every file that belongs to the project and is text."""
    command = ["git", "-c", f"safe.directory={TOP}", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=TOP, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        path = TOP / name
        if path.is_file() and not path.is_symlink():
            try:
                yield name, path.read_text("utf-8")
            except UnicodeDecodeError:
                continue


def test_nothing_below_the_command_line_prints_or_exits() -> None:
    """A library that ends its caller cannot promise a status line on every exit path."""
    assert [line for source in tree_sources(LIBRARY) for line in find_speech(source)] == []


def test_every_test_can_fail_and_says_what_it_is_about() -> None:
    """A test without a claim is a false comfort on the day something breaks."""
    sources = tree_sources("tests", pattern="test_*.py")

    assert sources
    assert [line for source in sources for line in find_weak_tests(source)] == []


def test_no_file_names_the_place_where_it_was_written() -> None:
    """A path of one machine or a host of one network is noise, or a leak, everywhere else."""
    assert [line for path, text in _tracked() for line in find_workplace(path, text)] == []


@pytest.mark.parametrize(
    "planted",
    [
        "print('done')",
        "import sys\nsys.exit(1)",
        "from sys import exit as leave\nleave(1)",
        "raise SystemExit(2)",
        "import sys\nprint_to = sys.stderr",
        "import click\nclick.echo('x')",
        "from click import echo\necho('x')",
        "import os\nos._exit(1)",
        "answer = input()",
    ],
)
def test_planted_speech_is_found(planted: str) -> None:
    """Under its own name, another name, or by way of the command-line package."""
    assert list(find_speech(Source.parse("durarepo/operations/push.py", planted)))


@pytest.mark.parametrize(
    "planted",
    [
        "def test_a_long_name_that_is_a_sentence():\n    run()",
        "def test_a_long_name_that_is_a_sentence():\n    assert True",
        "def run():\n    start()\ndef test_a_long_name_that_is_a_sentence():\n    run()",
        "class TestX:\n    def test_a_long_name_that_is_a_sentence(self):\n        run()",
        "def test_push():\n    assert run() == 0",
        "def testing_that_it_runs_at_all():\n    assert run() == 0",
    ],
)
def test_a_planted_empty_test_is_found(planted: str) -> None:
    """No claim, a claim that always holds, no words, or a name that pytest does not take."""
    assert list(find_weak_tests(Source.parse("tests/unit/test_x.py", planted)))


@pytest.mark.parametrize(
    "sound",
    [
        "def test_push():\n    '''Says what breaks without it.'''\n    assert run() == 0",
        "def test_push_fails_when_it_must_fail():\n    with pytest.raises(OSError):\n        run()",
        "def test_push_leaves_nothing_behind_it():\n    check_empty(folder)",
        "def test_push_leaves_nothing_in_there():\n    in_child(lambda: _check(folder))",
        "def attempt():\n    assert run()\ndef test_that_a_push_is_tried():\n    attempt()",
        "def helper():\n    run()",
    ],
)
def test_a_sound_test_is_left_alone(sound: str) -> None:
    """Docstring or sentence, assertion or helper: each is enough."""
    assert not list(find_weak_tests(Source.parse("tests/unit/test_x.py", sound)))


@pytest.mark.parametrize(
    "planted",
    [
        "cd /" + "root/venv",
        "path = '/" + "work/main'",
        "`/" + "work`",
        "index-url = https:/" + "/pypi.internal/simple",
        "see http:/" + "/npm-proxy.corp.test/",
    ],
)
def test_a_planted_workplace_is_found(planted: str) -> None:
    """Places and hosts, in code, text and settings."""
    assert list(find_workplace("README.md", planted))


@pytest.mark.parametrize(
    "innocent",
    [
        "STATE/STREAM/work/",
        "https://mirror.example/notes/",
        "/var/lib/work/x",
        "~/root",
        'environment = {"HOME": "/root"}',
        'os.mkdir(place + b"/work")',
    ],
)
def test_an_ordinary_path_is_left_alone(innocent: str) -> None:
    """A folder called work is no workplace."""
    assert not list(find_workplace("README.md", innocent))
