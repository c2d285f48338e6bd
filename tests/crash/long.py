"""As many crashes as are asked for: `python -m tests.crash.long power|kills`.

``power`` checks that many distinct states of recorded runs (20,000 by default), ``kills`` that
many real kills (2,000). The seed makes the same choices again, among the events of runs that
are recorded anew. One line of JSON tells what came of it. Start at `main`.
"""

import itertools
import random
import sys
import tempfile
from pathlib import Path

from tests.crash.kills import ROUNDS_AT_ONCE, killed_rounds
from tests.crash.recorded import RUNS, Recorded, check_model, check_point, recorded
from tests.doubles.remembered import remembered
from tests.doubles.results import Count, options

_SUITES = {"power": "crash", "kills": "kills"}
_USUAL = {"power": 20_000, "kills": 2_000}
_BARREN = 50
"""A run that yields nothing new so often in a row is left alone for this turn."""


def main(arguments: list[str]) -> int:
    """Do what the arguments say and return the exit code."""
    given = options("python -m tests.crash.long", tuple(_USUAL)).parse_args(arguments)
    count = given.points or _USUAL[given.suite]
    command = f"python -m tests.crash.long {given.suite} --points {count} --seed {given.seed}"
    result = Count(
        suite=_SUITES[given.suite],
        command=command,
        seed=given.seed,
        out=given.out,
        most_seconds=given.seconds,
    )
    chance = random.Random(given.seed)  # noqa: S311  # no secret: what is tried
    with tempfile.TemporaryDirectory(dir=given.folder) as folder, remembered():
        if given.suite == "power":
            _power(result, Path(folder).resolve(), chance, count)
        else:
            _kills(result, Path(folder), chance, count)
    return result.tell()


def _power(result: Count, folder: Path, chance: random.Random, count: int) -> None:
    runs = []
    for name in RUNS:
        (folder / name).mkdir()
        runs.append(recorded(name, folder / name))
        check_model(runs[-1])
    for turn in itertools.cycle(runs):
        if result.distinct >= count or result.is_over:
            return
        _one_new(result, turn, chance)


def _one_new(result: Count, run: Recorded, chance: random.Random) -> None:
    for point in itertools.islice(run.points(chance, _BARREN), _BARREN):
        if run.is_new(point):
            result.distinct += 1
            result.attempt(lambda: check_point(run, point))  # noqa: B023  # called at once
            return


def _kills(result: Count, folder: Path, chance: random.Random, count: int) -> None:
    died: list[int] = []
    for first in range(0, count, ROUNDS_AT_ONCE):
        if result.is_over:
            return
        many = min(ROUNDS_AT_ONCE, count - first)
        with tempfile.TemporaryDirectory(dir=folder) as own:
            result.attempt(lambda: died.append(killed_rounds(Path(own), chance, many)))  # noqa: B023
        result.points += many - 1
        result.distinct = sum(died)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
