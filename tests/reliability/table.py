"""spec/reliability.md, made from the results of the last long runs and from nothing else.

``python -m tests.reliability.table > spec/reliability.md``. A suite without a result says so; no
number stands here that a run has not written. Start at `page`.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.hostile.targets import NAMES
from tests.reliability.results import CHANGED, Result, all_results

NOT_RUN = "not run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A suite of long runs: its name in results, what one point is, and what has to hold."""

    name: str
    point: str
    holds: str


SUITES = (
    Suite(
        name="crash",
        point="a moment in a snapshot at which everything ends, what was not synced lost",
        holds="what stood before is whole, and the next run goes on",
    ),
    Suite(
        name="kills",
        point="SIGKILL of a process at a random time",
        holds="the same",
    ),
    Suite(
        name="faults",
        point="one call of the system that fails once",
        holds="an error of ours or all is done; never a false success",
    ),
    Suite(
        name="damage",
        point="one bit of one object flipped, or an object cut",
        holds="verify finds it, names the object and the files, and the others come back",
    ),
    Suite(
        name="churn",
        point="a night of changes to a tree",
        holds="what is stored stays in proportion to what lives",
    ),
    Suite(
        name="mutations",
        point="one small change of the program",
        holds="a test notices; failures are those without a reason in mutation-survivors.md",
    ),
)


def page(results: Mapping[str, Result]) -> str:
    """Return the page for these results by suite."""
    lines = [
        "# Reliability",
        "",
        "Made by `python -m tests.reliability.table` from `fixtures/reliability/`; do not edit."
        " Each row is the last long run of a suite. The gate runs a share of all of them; how"
        " much, and how to run the whole, stands in [tests/README.md](../tests/README.md).",
        "",
        f"A `{CHANGED}` behind a commit says that the program had changes that were not committed"
        " yet.",
        "",
        "## What is tried, and what has to hold",
        "",
        "| suite | one point is | after each |",
        "|---|---|---|",
        *(f"| {one.name} | {one.point} | {one.holds} |" for one in SUITES),
        "| fuzz | one input of one parser | a value that encodes back to the same bytes,"
        " or an error of ours |",
        "",
        "## The last long runs",
        "",
        *_table([one.name for one in SUITES], results),
        *_facts(results),
        "",
        "## Fuzzing, parser by parser",
        "",
        "Distinct are the inputs that reached something new.",
        "",
        *_table([f"fuzz {name}" for name in NAMES], results),
    ]
    others = [name for name in results if name not in _known()]
    if others:
        lines += ["", "## Other runs", "", *_table(others, results)]
    return "\n".join(lines) + "\n"


def _known() -> set[str]:
    return {one.name for one in SUITES} | {f"fuzz {name}" for name in NAMES}


def _table(names: list[str], results: Mapping[str, Result]) -> Iterator[str]:
    yield "| suite | points | distinct | failures | date | commit | seed | seconds | command |"
    yield "|---|---:|---:|---:|---|---|---:|---:|---|"
    for name in names:
        yield _row(name, results.get(name))


def _row(name: str, one: Result | None) -> str:
    if one is None:
        return f"| {name} | {NOT_RUN} | | | | | | | |"
    return (
        f"| {name} | {one.points} | {one.distinct} | {one.failures} | {one.date} |"
        f" {one.commit} | {one.seed} | {one.seconds:g} | `{one.command}` |"
    )


def _facts(results: Mapping[str, Result]) -> Iterator[str]:
    """Yield further numbers of the suites, where a run has written some."""
    told = [(one.name, results[one.name].facts) for one in SUITES if one.name in results]
    for name, facts in told:
        if facts:
            yield ""
            yield f"{name}: " + ", ".join(f"{key} {facts[key]}" for key in sorted(facts)) + "."


if __name__ == "__main__":
    sys.stdout.write(page(all_results()))
