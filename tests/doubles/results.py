"""The outcome of a long run as one line of JSON, for the reliability page.

The fields are ``suite``, ``command``, ``commit``, ``date``, ``seed``, ``points``, ``distinct``,
``failures`` and ``seconds``. Start at `Result`.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.cli.harness import TOP

_SHARED_MEMORY = "/dev/shm"  # noqa: S108  # a folder of its own is made in it


def options(program: str, suites: tuple[str, ...]) -> argparse.ArgumentParser:
    """Return the options that every long run has."""
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("suite", choices=suites)
    parser.add_argument("--points", type=int, default=0, help="how many; 0 is the suite's usual")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--out", type=Path, help="a line is added to this file")
    parser.add_argument("--folder", default=_usual_folder(), help="where to work")
    return parser


def _usual_folder() -> str | None:
    return _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None


@dataclass
class Result:
    """What a long run did; complete once `tell` was called."""

    suite: str
    command: str
    seed: int
    points: int = 0
    distinct: int = 0
    failures: int = 0
    commit: str = ""
    date: str = ""
    seconds: float = 0.0
    _began: float = field(default_factory=time.monotonic)

    def attempt(self, check: Callable[[], object]) -> None:
        """Do one check; say on stderr why it failed, and go on."""
        self.points += 1
        try:
            check()
        except AssertionError as error:
            self.failures += 1
            sys.stderr.write(f"{self.suite}: {error}\n")

    def tell(self, out: Path | None) -> int:
        """Write the line to stdout and to ``out``; return the exit code."""
        self.commit = _git("rev-parse", "--short=12", "HEAD")
        self.date = datetime.now(UTC).date().isoformat()
        self.seconds = round(time.monotonic() - self._began, 1)
        told = {name: value for name, value in asdict(self).items() if name[0] != "_"}
        line = json.dumps(told) + "\n"
        sys.stdout.write(line)
        if out is not None:
            with open(out, "a", encoding="ascii") as file:
                file.write(line)
        return 1 if self.failures else 0


def _git(*arguments: str) -> str:
    command = ["git", "-c", f"safe.directory={TOP}", *arguments]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    return done.stdout.strip()
