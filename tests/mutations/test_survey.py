"""The survey changes one place at a time, tells who dies, and its survivors still exist."""

import ast
import os
from pathlib import Path

import pytest

from tests.mutations.mutation import TOP
from tests.mutations.survey import SUBJECTS, Mutant, mutants_of, run_forked
from tests.mutations.survivors import SURVIVORS, page
from tests.mutations.test_mutations import PROBE, PROGRAM

SOURCE = '''
def check(number: int = 3, *, wide: bool = False) -> int:
    """Say 7."""
    if number < 2 and not wide:
        raise ValueError("7")
    while True:
        number += 1
        print(number)
        if number in (5,):
            break
    return number - 1
'''


def test_each_mutant_changes_one_place_and_only_that() -> None:
    """Two changes at once may hide each other."""
    plain = ast.unparse(ast.parse(SOURCE)) + "\n"
    found = [(mutant, make()) for mutant, make in mutants_of(SOURCE, "x.py")]

    changes = {(mutant.before, mutant.after) for mutant, _ in found}
    assert {
        ("number < 2 and (not wide)", "number < 2 or not wide"),
        ("number < 2", "number <= 2"),
        ("2", "3"),
        ("3", "4"),
        ("not wide", "wide"),
        ("raise ValueError('7')", "pass"),
        ("number += 1", "pass"),
        ("print(number)", "pass"),
        ("number in (5,)", "number not in (5,)"),
        ("break", "pass"),
        ("number - 1", "number + 1"),
    } <= changes
    for mutant, text in found:
        different = [
            (old, new) for old, new in zip(plain.split(), text.split(), strict=False) if old != new
        ]
        assert text != plain, mutant
        assert different, mutant
        ast.parse(text)
    assert len({mutant for mutant, _ in found}) == len(found)


def test_words_annotations_and_truth_values_are_left_alone() -> None:
    """A changed docstring breaks nothing, and no test should notice."""
    for _, make in mutants_of(SOURCE, "x.py"):
        assert '"""Say 7."""' in make()
        assert "wide: bool=False) -> int" in make()


def test_mutants_that_look_alike_are_told_apart() -> None:
    """A reason given for one must not excuse the other."""
    found = [one for one, _ in mutants_of("a = 1\nb = 1\n", "x.py")]

    assert found == [
        Mutant(file="x.py", function="", before="1", after="2", number=number) for number in (0, 1)
    ]


@pytest.mark.parametrize(
    ("program", "ends"),
    [
        (PROGRAM, "lives"),
        ("VALUE = 2\n", "dies"),
        ("VALUE = (\n", "does not start"),
    ],
)
def test_a_child_tells_how_the_tests_ended(tmp_path: Path, program: str, ends: str) -> None:
    """A run that never got to its tests must not count as alive."""
    for name, text in {"durarepo/__init__.py": program, "tests/test_probe.py": PROBE}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    here = os.getcwd()

    assert run_forked(tmp_path, ("tests/test_probe.py::test_value",)) == ends
    assert os.getcwd() == here


def test_every_module_and_every_test_of_the_survey_exists() -> None:
    """A renamed file would leave its module out without a word."""
    for file, tests in SUBJECTS.items():
        assert (TOP / file).is_file()
        for test in tests:
            assert (TOP / test.partition("::")[0]).exists(), test


def test_every_survivor_is_a_mutant_of_the_program_as_it_is() -> None:
    """A reason for what is no longer there hides what came in its place."""
    files = {one.mutant.file for one in SURVIVORS}
    there = {mutant for file in files for mutant, _ in mutants_of((TOP / file).read_text(), file)}

    assert [str(one.mutant) for one in SURVIVORS if one.mutant not in there] == []
    assert len({one.mutant for one in SURVIVORS}) == len(SURVIVORS)
    assert all(one.told.endswith(".") for one in SURVIVORS)


def test_the_page_names_every_survivor() -> None:
    """What is not on the page was not explained to anybody."""
    assert page().count("\n* ") == len(SURVIVORS)
