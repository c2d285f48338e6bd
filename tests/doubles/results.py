"""The options of a long run, and what it counts. Start at `Count`."""

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.reliability.results import Result, commit_now, today, write_result

_TELL_SECONDS = 60
_SHARED_MEMORY = "/dev/shm"  # noqa: S108  # a folder of its own is made in it


def options(program: str, suites: tuple[str, ...]) -> argparse.ArgumentParser:
    """Return the options that every long run has."""
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("suite", choices=suites)
    parser.add_argument("--points", type=int, default=0, help="how many; 0 is the suite's usual")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--out", type=Path, help="the result goes to this file, also on the way")
    parser.add_argument("--seconds", type=float, default=24 * 3600.0, help="at most")
    parser.add_argument("--folder", default=_usual_folder(), help="where to work")
    return parser


def _usual_folder() -> str | None:
    return _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None


@dataclass
class Count:
    """What a long run did so far; `tell` makes a result of it.

    With ``out`` the file follows every minute, so that a run that is ended tells what it did.
    """

    suite: str
    command: str
    seed: int
    out: Path | None = None
    most_seconds: float = math.inf
    points: int = 0
    distinct: int = 0
    failures: int = 0
    _began: float = field(default_factory=time.monotonic)
    _told: float = field(default_factory=time.monotonic)
    _commit: str = field(default_factory=commit_now)

    @property
    def is_over(self) -> bool:
        """Whether the time is used up."""
        return time.monotonic() - self._began > self.most_seconds

    def attempt(self, check: Callable[[], object]) -> None:
        """Do one check; say on stderr why it failed, and go on."""
        self.points += 1
        try:
            check()
        except AssertionError as error:
            self.failures += 1
            sys.stderr.write(f"{self.suite}: {error}\n")
        if self.out is not None and time.monotonic() - self._told > _TELL_SECONDS:
            self._told = time.monotonic()
            write_result(self.out, self._result())

    def tell(self) -> int:
        """Write the result to stdout, and to ``out``; return the exit code."""
        result = self._result()
        sys.stdout.write(json.dumps(asdict(result)) + "\n")
        if self.out is not None:
            write_result(self.out, result)
        return 1 if self.failures else 0

    def _result(self) -> Result:
        return Result(
            suite=self.suite,
            command=self.command,
            commit=self._commit,
            date=today(),
            seed=self.seed,
            points=self.points,
            distinct=self.distinct,
            failures=self.failures,
            seconds=round(time.monotonic() - self._began, 1),
        )
