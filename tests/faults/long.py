"""Every call fails once with every error: `python -m tests.faults.long calls|system`.

``calls`` lets each call of snapshot, verify and checkout on a file fail with each of its errors;
with ``--points``, that many of them by chance. ``system`` does it to system calls, below SQLite
and Python, to 400 of them by default. One line of JSON tells what came of it. Start at `main`.
"""

import random
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.doubles.remembered import remembered
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
    result = Count(
        suite=_SUITES[given.suite],
        command=command,
        seed=given.seed,
        out=given.out,
        most_seconds=given.seconds,
    )
    chance = random.Random(given.seed)  # noqa: S311  # no secret: what is tried
    with tempfile.TemporaryDirectory(dir=given.folder) as folder, remembered():
        bench = Bench(Path(folder).resolve())
        if given.suite == "system":
            stopped = Stopped(bench)
            stops = stopped.share(chance, given.points or _STOPS)
            _attempt_each(result, [partial(stopped.check, stop) for stop in stops])
        else:
            _attempt_each(result, _calls(bench, chance, given.points))
    return result.tell()


def _calls(bench: Bench, chance: random.Random, points: int) -> list[Callable[[], None]]:
    """Return what is tried, in an order by chance: a run that is ended has met every kind."""
    tried = [partial(bench.check, verb, fault) for verb in VERBS for fault in bench.faults(verb)]
    return list(chance.sample(tried, points or len(tried)))


def _attempt_each(result: Count, checks: list[Callable[[], None]]) -> None:
    for check in checks:
        if result.is_over:
            return
        result.distinct += 1
        result.attempt(check)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
