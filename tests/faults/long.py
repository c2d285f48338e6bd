"""Every call fails once with every error: `python -m tests.faults.long calls|system`.

``calls`` lets each call of snapshot, verify and checkout on a file fail with each of its errors;
with ``--points``, that many of them by chance. ``system`` does it to system calls, below SQLite
and Python, to 400 of them by default. One line of JSON tells what came of it. Start at `main`.
"""

import random
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.doubles.results import Count, options
from tests.faults.outcomes import VERBS, Bench
from tests.faults.stopped import Stopped

_STOPS = 400
_SUITES = {"calls": "faults", "system": "faults-system"}


def main(arguments: list[str]) -> int:
    """Do what the arguments say and return the exit code."""
    given = options("python -m tests.faults.long", ("calls", "system")).parse_args(arguments)
    command = f"python -m tests.faults.long {given.suite}"
    command += f" --points {given.points} --seed {given.seed}" if given.points else ""
    result = Count(suite=_SUITES[given.suite], command=command, seed=given.seed)
    chance = random.Random(given.seed)  # noqa: S311  # no secret: what is tried
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        bench = Bench(Path(folder).resolve())
        if given.suite == "system":
            stopped = Stopped(bench)
            for stop in stopped.share(chance, given.points or _STOPS):
                result.attempt(partial(stopped.check, stop))
        else:
            _calls(result, bench, chance, given.points)
    result.distinct = result.points
    return result.tell(given.out)


def _calls(result: Count, bench: Bench, chance: random.Random, points: int) -> None:
    tried = [(verb, fault) for verb in VERBS for fault in bench.faults(verb)]
    for verb, fault in chance.sample(tried, points) if points else tried:
        result.attempt(partial(bench.check, verb, fault))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
