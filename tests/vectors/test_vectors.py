"""Every vector through durarepo and through the independent reader: code, result, and no more."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.vectors.adapter import SUCCESS, Adapter
from tests.vectors.durarepo_adapter import DurarepoAdapter
from tests.vectors.minireader_adapter import MinireaderAdapter
from tests.vectors.vectorfile import Vector, load_vectors

VECTORS = load_vectors()
DURAREPO, MINIREADER = DurarepoAdapter(), MinireaderAdapter()
ADAPTERS = (DURAREPO, MINIREADER)

# Vectors that an implementation is known to answer wrongly. The mark is strict: a repair shows.
KNOWN_DEFECTS: Mapping[tuple[str, str], str] = {}

# Decryptions that a reader may have made when a step fails: (first step, decryptions) rising.
_OPENED: Mapping[str, tuple[tuple[tuple[int, int], int], ...]] = {
    "registry": (((3, 1), 0), ((3, 4), 1)),
    "manifest": (((4, 1), 0), ((4, 6), 1), ((4, 30), 2)),
    "index": (((5, 1), 0), ((5, 3), 1), ((5, 5), 2)),
    "chunk": (((6, 2), 0), ((6, 6), 1)),
}


def _cases(adapter: Adapter) -> list[object]:
    cases: list[object] = []
    for name, vector in VECTORS.items():
        if not adapter.covers(vector):
            continue
        reason = KNOWN_DEFECTS.get((adapter.name, name))
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
        cases.append(pytest.param(vector, id=name, marks=marks))
    return cases


def decryptions_before(vector: Vector) -> int:
    """Return how many decryptions lie before the failing step, or in all for a success."""
    table = _OPENED[vector.kind]
    if vector.expect == SUCCESS:
        return table[-1][1]
    section, _, step = vector.spec.partition(".")
    return next(count for first, count in reversed(table) if first <= (int(section), int(step)))


def check_answer(adapter: Adapter, vector: Vector, folder: Path) -> None:
    """Compare an adapter's answer with the vector, and look for what came out too early."""
    outcome = adapter.run(vector, folder)

    assert outcome.code == vector.expect
    assert outcome.result == vector.result
    if vector.expect != SUCCESS:
        assert outcome.left == ""
    if outcome.opened is not None and vector.kind in _OPENED:
        assert outcome.opened <= decryptions_before(vector)
        if vector.expect == SUCCESS:
            assert outcome.opened == decryptions_before(vector)


@pytest.mark.parametrize("vector", _cases(DURAREPO))
def test_durarepo_answers_as_the_vector_says(vector: Vector, tmp_path: Path) -> None:
    """Another code, another result, or bytes released too early would be a hole in ingest."""
    check_answer(DURAREPO, vector, tmp_path)


@pytest.mark.parametrize("vector", _cases(MINIREADER))
def test_the_independent_reader_answers_as_the_vector_says(vector: Vector, tmp_path: Path) -> None:
    """Where two readers made from one page differ, the page is not clear enough."""
    check_answer(MINIREADER, vector, tmp_path)


def test_every_vector_is_run_by_at_least_one_reader() -> None:
    """A vector that nobody runs would test nothing."""
    left_out = [
        name
        for name, vector in VECTORS.items()
        if not any(adapter.covers(vector) for adapter in ADAPTERS)
    ]

    assert left_out == []
