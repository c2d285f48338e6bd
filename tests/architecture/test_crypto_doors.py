"""Nothing is decrypted before its digest was compared, and no switch chooses the cipher.

Source: AICEP 10.5.5 and 10.5.6 (A5e, A6e).
"""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.sources import COMMAND_LINE, LIBRARY, Source, tree_sources

DECRYPT = "durarepo.crypto.primitives.open_bytes"
PRIMITIVES = "durarepo/crypto/primitives.py"
MAY_DECRYPT = {
    "durarepo/sealing.py:open_sealed",  # under a key that was checked against its commitment
    "durarepo/sealing.py:open_trailer",  # 36 bytes that say where the index begins
    "durarepo/sealing.py:open_index",  # takes a CheckedIndex
    "durarepo/sealing.py:open_frame",  # takes a CheckedFrame
}
PROOFS = {
    "CheckedFrame": {"durarepo/sealing.py:check_frame"},
    "CheckedIndex": {"durarepo/sealing.py:check_index"},
    "VerifiedManifest": {"durarepo/ingest.py:admit"},
    "VerifiedRegistry": {"durarepo/ingest.py:open_registry"},
}
"""Types that prove a check, and the one function that may make them."""

ENVIRONMENT = {
    "CI", "DURAREPO_KEYS", "DURAREPO_REPO", "DURAREPO_STATE", "HOME", "NO_COLOR", "TERM",
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
}  # fmt: skip
"""Variables that may be read: places, and how to talk. Never a choice of implementation."""

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+\Z")
_CHOOSING_FLAG = re.compile(
    r"--.*(algorithm|backend|cipher|crypto|debug|double|engine|fake|implementation|insecure|kms"
    r"|memory|mock|no-check|no-verify|provider|simulat|skip|stub|test-|unsafe)"
)
_TEST_PACKAGES = {"doctest", "hypothesis", "pytest", "tests", "unittest"}
_LOADERS = {"importlib.import_module", "importlib.metadata.entry_points", "__import__"}
_WHOLE_ENVIRONMENT = {"os.environ", "os.environb", "os.getenv"}
_EVALUATORS = {"eval", "exec", "compile"}


def find_decryptions(source: Source) -> Iterator[str]:
    """Yield each use of the decryption outside the functions that may use it."""
    if source.path == PRIMITIVES:
        return
    for function, part in source.functions():
        for node in ast.walk(part):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            hidden = called and node.func.attr.startswith("decrypt")  # type: ignore[attr-defined] # narrowed by `called`
            used = source.name_of(node) == DECRYPT
            if hidden or (used and f"{source.path}:{function}" not in MAY_DECRYPT):
                yield source.finding(node, f"decrypts in {function}")


def find_forged_proofs(source: Source) -> Iterator[str]:
    """Yield each place that makes a checked value without being its check."""
    for function, part in source.functions():
        for node in ast.walk(part):
            if not isinstance(node, ast.Call):
                continue
            made = source.name_of(node.func).rpartition(".")[2]
            if made in PROOFS and f"{source.path}:{function}" not in PROOFS[made]:
                yield source.finding(node, f"{function} makes a {made}")


def find_variables(source: Source) -> Iterator[str]:
    """Yield each environment variable that is read and is not on the list."""
    for node in ast.walk(source.tree):
        for key in _asked_for(source, node):
            if key not in ENVIRONMENT:
                yield source.finding(node, f"reads the variable {key}")
        if source.name_of(node) in _WHOLE_ENVIRONMENT and _is_library(source):
            yield source.finding(node, "the library takes the environment as an argument")


def find_choices(source: Source) -> Iterator[str]:
    """Yield each flag, dynamic import or test package by which code could be exchanged."""
    for node in ast.walk(source.tree):
        name = source.name_of(node)
        if isinstance(node, ast.Constant) and _CHOOSING_FLAG.match(str(node.value)):
            yield source.finding(node, f"a flag that chooses: {node.value!r}")
        if name in _EVALUATORS or (name in _LOADERS and _is_library(source)):
            yield source.finding(node, f"code by name: {name}")
        for package in _imported_packages(node):
            if package in _TEST_PACKAGES:
                yield source.finding(node, f"production code knows of {package}")


def _is_library(source: Source) -> bool:
    return source.path.startswith(f"{LIBRARY}/")


def _asked_for(source: Source, node: ast.AST) -> Iterator[str]:
    """Yield the names of variables in ``x["NAME"]``, ``x.get("NAME")`` and ``getenv("NAME")``."""
    key: ast.AST | None = None
    if isinstance(node, ast.Subscript):
        key = node.slice
    elif isinstance(node, ast.Call) and node.args:
        asks = source.name_of(node.func).endswith("getenv")
        if asks or (isinstance(node.func, ast.Attribute) and node.func.attr in {"get", "pop"}):
            key = node.args[0]
    if isinstance(key, ast.Constant) and isinstance(key.value, str | bytes):
        text = key.value if isinstance(key.value, str) else key.value.decode("latin-1")
        if _VARIABLE.match(text):
            yield text


def _imported_packages(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.split(".", 1)[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [(node.module or "").split(".", 1)[0]]
    return []


def test_only_four_functions_decrypt() -> None:
    """A way from unchecked ciphertext to plaintext would pass every other test."""
    sources = tree_sources(LIBRARY, COMMAND_LINE)

    assert [line for source in sources for line in find_decryptions(source)] == []


def test_checked_values_come_only_from_their_checks() -> None:
    """The type is the proof only while nobody else can make one."""
    sources = tree_sources(LIBRARY, COMMAND_LINE)

    assert [line for source in sources for line in find_forged_proofs(source)] == []


def test_no_variable_is_read_that_is_not_a_place_or_a_manner() -> None:
    """An environment variable that picks a key service is how doubles reach production."""
    sources = tree_sources(LIBRARY, COMMAND_LINE)

    assert [line for source in sources for line in find_variables(source)] == []


def test_no_flag_and_no_name_chooses_an_implementation() -> None:
    """What a flag can exchange, an attacker or a tired operator will exchange."""
    sources = tree_sources(LIBRARY, COMMAND_LINE)

    assert [line for source in sources for line in find_choices(source)] == []


@pytest.mark.parametrize(
    "planted",
    [
        "from durarepo.crypto import primitives\ndef f():\n    primitives.open_bytes(k, n, c)",
        "from durarepo.crypto.primitives import open_bytes as o\ndef f():\n    o(k, n, c)",
        "from durarepo.crypto.primitives import open_bytes\nopener = open_bytes",
        "import durarepo.crypto.primitives as p\nclass R:\n    def f(self):\n        p.open_bytes",
        "def f(cipher):\n    return cipher.decrypt(nonce, data, None)",
    ],
)
@pytest.mark.parametrize("path", ["durarepo/repository/reader.py", "durarepo/sealing.py"])
def test_a_planted_decryption_is_found(planted: str, path: str) -> None:
    """Renamed, bound to another name, in a method or through the cipher object itself."""
    assert list(find_decryptions(Source.parse(path, planted)))


@pytest.mark.parametrize("proof", PROOFS)
def test_a_planted_forgery_is_found(proof: str) -> None:
    """Each proof type, made where no check was done."""
    module = "ingest" if proof.startswith("Verified") else "sealing"
    text = f"from durarepo.{module} import {proof}\ndef shortcut(data):\n    return {proof}(data)"

    assert list(find_forged_proofs(Source.parse("durarepo/repository/reader.py", text)))


@pytest.mark.parametrize(
    "planted",
    [
        "import os\nos.environ['DURAREPO_BACKEND']",
        "import os\nos.environ.get('DURAREPO_INSECURE', '')",
        "import os\nos.getenv('KMS_BACKEND')",
        "from os import getenv as g\ng('KMS_BACKEND')",
        "from os import environ\nkind = environ['BACKEND']",
        "import os\nos.environb[b'KMS_BACKEND']",
        "def f(environment):\n    return environment.get('DURAREPO_CIPHER')",
        "import os\nplaces_of(os.environ)",
    ],
)
def test_a_planted_variable_is_found(planted: str) -> None:
    """Read directly, by another name, or out of a mapping that was handed down."""
    assert list(find_variables(Source.parse("durarepo/local/places.py", planted)))


def test_the_command_line_may_hand_its_environment_down() -> None:
    """Somebody has to; what is then read out of it is checked where it is read."""
    handed = Source.parse("cli/durarepo_cli/main.py", "import os\nplaces_of(os.environ)")

    assert not list(find_variables(handed))


@pytest.mark.parametrize(
    "planted",
    [
        "option('--backend')",
        "option('--insecure', is_flag=True)",
        "option('--no-verify')",
        "import importlib\nimportlib.import_module(name)",
        "__import__(name)",
        "eval(text)",
        "import unittest.mock",
        "from tests.doubles import memory_store",
    ],
)
def test_a_planted_choice_is_found(planted: str) -> None:
    """Flags, dynamic imports and test packages in the library."""
    assert list(find_choices(Source.parse("durarepo/crypto/keys.py", planted)))
