"""The page of long runs says what their results say, and invents nothing."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.hostile.targets import NAMES
from tests.mutations.survivors import page as survivors_page
from tests.reliability.results import (
    FOLDER,
    TOP,
    Result,
    all_results,
    read_results,
    write_result,
)
from tests.reliability.table import NOT_RUN, SUITES, page

ONE = Result(
    suite="damage", command="python -m tests.hostile.damage", commit="0123456789ab",
    date="2027-01-02", seed=7, points=1234, distinct=1233, failures=2, seconds=5.5,
    facts={"repositories": 3},
)  # fmt: skip


def test_the_page_is_what_the_results_make_of_it() -> None:
    """A figure that nobody measured would stand there for ever."""
    assert (TOP / "spec" / "reliability.md").read_text() == page(all_results())


def test_the_page_of_survivors_is_made_from_their_list() -> None:
    """A reason that is only on the page is about a mutant that nobody can find."""
    assert (TOP / "spec" / "mutation-survivors.md").read_text() == survivors_page()


def test_a_suite_without_a_result_is_not_run() -> None:
    """Silence would read as success."""
    text = page({})

    for name in [*(one.name for one in SUITES), *(f"fuzz {name}" for name in NAMES)]:
        assert f"| {name} | {NOT_RUN} | | | | | | | |" in text


def test_a_result_stands_on_the_page_as_it_was_written(tmp_path: Path) -> None:
    """Numbers that change between the run and the page are worse than none."""
    path = tmp_path / "damage.json"
    write_result(path, ONE, replace(ONE, suite="other", facts={}))
    write_result(path, ONE)

    assert read_results(path) == [ONE, replace(ONE, suite="other", facts={})]
    text = page(all_results(tmp_path))
    assert "| damage | 1234 | 1233 | 2 | 2027-01-02 | 0123456789ab | 7 | 5.5 |" in text
    assert "damage: repositories 3." in text
    assert "| other | 1234 |" in text
    assert f"| crash | {NOT_RUN} |" in text


def test_keys_that_are_not_known_are_kept_as_facts(tmp_path: Path) -> None:
    """A suite that counts more than others must not be refused for it."""
    path = tmp_path / "damage.json"
    path.write_text(json.dumps({**asdict(ONE), "more": 5}) + "\n")

    assert read_results(path) == [replace(ONE, facts={"repositories": 3, "more": 5})]


def test_two_results_of_one_suite_are_refused(tmp_path: Path) -> None:
    """The page could show either, and nobody would know which."""
    for name in ("a.json", "b.json"):
        write_result(tmp_path / name, ONE)

    with pytest.raises(ValueError, match="damage"):
        all_results(tmp_path)


@pytest.mark.parametrize("change", [{"distinct": 1235}, {"failures": -1}, {"failures": 1235}])
def test_a_result_that_cannot_be_is_refused(change: dict[str, int]) -> None:
    """More failures than points are a mistake in the suite."""
    with pytest.raises(ValueError, match="damage"):
        replace(ONE, **change)  # type: ignore[arg-type]  # all of them are numbers


def test_what_is_stored_can_be_read() -> None:
    """One broken file would take the page down with it."""
    for path in FOLDER.glob("*.json"):
        assert read_results(path), os.fspath(path)
