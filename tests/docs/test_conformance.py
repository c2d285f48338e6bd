"""spec/conformance.md is what its table says, and the table names only what exists."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.conformance.table import ROWS, files_and_names, mutations_of, page, proofs_of
from tests.mutations.catalogue import MUTATIONS
from tests.vectors.vectorfile import load_vectors

TOP = Path(__file__).resolve().parents[2]
STAGE = {
    "A2a", "A2b", "A2c", "A2d", "A2e", "A2f", "A3a", "A3b", "A3c", "A3d", "A3e", "A3f", "A3g",
    "A4d", "A4e", "A4f", "A5a", "A5b", "A5d", "A5e", "A6a", "A6b", "A6c", "A6d", "A6e", "A6f",
    "A6h", "A6i", "A6j", "E2", "E18", "E20", "E21", "E22", "E23", "E30", "E35",
    "P1", "P16", "X1", "X2", "X6",
}  # fmt: skip
"""What the page has to speak of."""


@cache
def names_in(file: str) -> frozenset[str]:
    """Return the names of the tests in a file below tests/."""
    tree = ast.parse((TOP / "tests" / file).read_text())
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def test_the_page_is_what_the_table_says() -> None:
    """Two tables of one thing drift apart: python -m tests.conformance.table makes it anew."""
    assert (TOP / "spec" / "conformance.md").read_text() == page().rstrip("\n") + "\n"


def test_every_requirement_of_the_stage_has_one_row() -> None:
    """A requirement that nobody claims is one that nobody tests."""
    ids = [row.id for row in ROWS]

    assert set(ids) == STAGE
    assert len(ids) == len(set(ids))


def test_every_test_that_is_named_exists() -> None:
    """A test that was renamed would go on proving a row that nothing proves any more."""
    missing = [
        (row, file, name)
        for row, file, name in files_and_names()
        if not (TOP / "tests" / file).is_file() or name not in names_in(file)
    ]

    assert missing == []


def test_every_case_that_is_named_is_a_vector() -> None:
    """The cases of the vectors are files, and a file can be renamed."""
    cases = {
        test.partition("[")[2].rstrip("]") for row in ROWS for test in proofs_of(row) if "[" in test
    }

    assert cases
    assert cases - set(load_vectors()) == set()


def test_every_module_that_is_named_exists() -> None:
    """Who looks a row up must find where it is kept."""
    named = {module for row in ROWS for module in row.modules}

    assert [module for module in sorted(named) if not (TOP / module).is_file()] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_every_row_has_a_mutation_and_words(row: object) -> None:
    """A row whose protection can be taken out unseen is a hope."""
    (found,) = [one for one in ROWS if one is row]

    assert mutations_of(found)
    assert found.words.strip()
    assert not found.words.endswith(".")
    assert found.clause


def test_every_mutation_is_of_a_row() -> None:
    """A mutation of nothing shows that a row is missing."""
    assert {row for one in MUTATIONS for row in one.rows} <= STAGE
