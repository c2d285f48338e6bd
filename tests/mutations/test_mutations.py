"""Each protection, taken out, is missed by the tests that are said to be about it.

They run two at a time, beside the program as it is, in the order of the tests that ask for them.
"""

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutations.catalogue import MUTATIONS
from tests.mutations.mutation import (
    Mutation,
    Ran,
    apply,
    copy_tree,
    is_in_place,
    run,
    run_mutated,
    survives,
)

BY_ID = {one.id: one for one in MUTATIONS}
AT_ONCE = 2
AS_IT_IS = "as-it-is"  # a folder too, and nginx takes no blank in a path

Mutants = dict[str, Future[Ran]]


@pytest.fixture(scope="module")
def mutants(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mutants]:
    """Give the runs that the tests of this call of pytest ask for, by the name of the mutant."""
    base = tmp_path_factory.mktemp("mutants")
    wanted = [
        str(item.callspec.params["mutant"]) if hasattr(item, "callspec") else AS_IT_IS
        for item in request.session.items
        if isinstance(item, pytest.Function) and "mutants" in item.fixturenames
    ]
    with ThreadPoolExecutor(max_workers=AT_ONCE) as workers:
        futures: Mutants = {name: workers.submit(_ran, name, base / name) for name in wanted}
        yield futures
        for future in futures.values():
            future.cancel()


def _ran(name: str, folder: Path) -> Ran:
    folder.mkdir()
    if name != AS_IT_IS:
        return run_mutated(BY_ID[name], folder)
    copy_tree(folder)
    return run(sorted({test for one in MUTATIONS for test in one.tests}), folder)


def test_the_program_as_it_is_passes_all_of_the_named_tests(mutants: Mutants) -> None:
    """A test that fails anyway, or that does not exist, would notice every mutation."""
    ran = mutants[AS_IT_IS].result()

    assert ran.code == 0, ran.said
    assert ran.failed == frozenset()


@pytest.mark.parametrize("mutant", BY_ID)
def test_a_protection_that_is_gone_is_missed(mutant: str, mutants: Mutants) -> None:
    """A test that passes without what it is about protects nothing."""
    ran = mutants[mutant].result()

    assert not survives(BY_ID[mutant], ran), ran.said


def test_every_mutation_finds_its_place() -> None:
    """A text that has moved must be noticed before the mutants are run."""
    assert [one.id for one in MUTATIONS if not is_in_place(one)] == []
    assert len(BY_ID) == len(MUTATIONS) >= 20
    assert all(one.old != one.new and one.tests and one.rows for one in MUTATIONS)


# --- the runner -----------------------------------------------------------------------------

PROGRAM = "VALUE = 1\n"
PROBE = (
    '"""A probe."""\nfrom durarepo import VALUE\n\n\n'
    "def test_value():\n    assert VALUE == 1\n\n\n"
    "def test_other():\n    assert VALUE in (1, 2)\n"
)


def probe(new: str, *tests: str) -> Mutation:
    """Return a mutation of a program of one line."""
    return Mutation(
        id="probe",
        rows=("X1",),
        breaks="the probe",
        file="durarepo/__init__.py",
        old="VALUE = 1",
        new=new,
        tests=tests,
    )


@pytest.mark.parametrize(
    ("new", "tests", "lives"),
    [
        ("VALUE = 2", ("tests/test_probe.py::test_value",), False),
        ("VALUE = 1 ", ("tests/test_probe.py::test_value",), True),
        ("VALUE = 2", ("tests/test_probe.py::test_value", "tests/test_probe.py::test_other"), True),
        ("VALUE = (", ("tests/test_probe.py::test_value",), True),
        ("VALUE = 2", ("tests/test_probe.py::test_gone",), True),
    ],
    ids=["noticed", "unchanged", "one of two notices", "does not compile", "no such test"],
)
def test_the_runner_tells_who_notices(
    tmp_path: Path, new: str, tests: tuple[str, ...], *, lives: bool
) -> None:
    """A mutant that never got to its tests must not count as noticed."""
    for name, text in {"durarepo/__init__.py": PROGRAM, "tests/test_probe.py": PROBE}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    mutation = probe(new, *tests)

    apply(mutation, tmp_path)

    assert survives(mutation, run(mutation.tests, tmp_path)) is lives


def test_a_text_that_is_not_there_once_is_refused(tmp_path: Path) -> None:
    """A mutation that changes nothing, or two places, says nothing."""
    (tmp_path / "durarepo").mkdir()
    (tmp_path / "durarepo" / "__init__.py").write_text(PROGRAM * 2)

    for mutation in (probe("VALUE = 2", "x"), replace(probe("VALUE = 2", "x"), old="VALUE = 3")):
        with pytest.raises(ValueError, match="once"):
            apply(mutation, tmp_path)


def test_the_checkout_stays_as_it_is(tmp_path: Path) -> None:
    """A mutant that reached the checkout would break the program for good."""
    mutation = MUTATIONS[0]
    original = Path(__file__).resolve().parents[2] / mutation.file
    before = original.read_bytes()

    copy_tree(tmp_path)
    apply(mutation, tmp_path)

    assert original.read_bytes() == before
    assert (tmp_path / mutation.file).read_bytes() != before
    assert not os.path.samefile(original, tmp_path / mutation.file)
