"""Results of long runs: a JSON object a run, written by the commands that do them.

The files lie in fixtures/reliability/; one file may hold several objects, a line each. Only the
last result of a suite is kept. `table.py` makes spec/reliability.md from them.
Start at `write_result`.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
FOLDER = TOP / "fixtures" / "reliability"
CHANGED = "+"
"""Behind a commit: the program was run with changes that were not committed yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one long run of one suite came to.

    ``points`` are the things that were tried, ``distinct`` those that differ from each other,
    ``failures`` those after which something did not hold. ``facts`` are further numbers.
    """

    suite: str
    command: str
    commit: str
    date: str
    seed: int
    points: int
    distinct: int
    failures: int
    seconds: float
    facts: Mapping[str, int | float | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a result that cannot be one."""
        if not 0 <= self.distinct <= self.points or not 0 <= self.failures <= self.points:
            raise ValueError(f"result of '{self.suite}' counts more than was tried")


def commit_now() -> str:
    """Return the commit that is checked out; `CHANGED` behind it where the program differs."""
    git = ["git", "-c", f"safe.directory={TOP}", "-C", str(TOP)]
    head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], check=True,
                          capture_output=True, text=True).stdout.strip()  # fmt: skip
    status = subprocess.run([*git, "status", "--porcelain", "--", "durarepo", "cli"], check=True,
                            capture_output=True, text=True).stdout  # fmt: skip
    return head + (CHANGED if status else "")


def today() -> str:
    """Return the day, as results name it."""
    return datetime.now(UTC).strftime("%Y-%m-%d")  # a run of tests, not of the program


def write_result(path: Path, *results: Result) -> None:
    """Put results in a file, in place of those of the same suites."""
    held = {one.suite: one for one in read_results(path)} if path.exists() else {}
    held |= {one.suite: one for one in results}
    lines = [json.dumps(asdict(one), sort_keys=True) for _, one in sorted(held.items())]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def read_results(path: Path) -> list[Result]:
    """Return the results in a file; keys that are not known become facts.

    Raises:
        KeyError, TypeError, ValueError: it holds something else.
    """
    return [_parsed(json.loads(line)) for line in path.read_text().splitlines() if line.strip()]


def _parsed(found: dict[str, Any]) -> Result:
    facts = found.pop("facts", {})
    known = {name: found.pop(name) for name in Result.__dataclass_fields__ if name in found}
    return Result(**known, facts={**facts, **found})


def all_results(folder: Path = FOLDER) -> dict[str, Result]:
    """Return every result by its suite.

    Raises:
        ValueError: two files speak of one suite.
    """
    found: dict[str, Result] = {}
    for path in sorted(folder.glob("*.json")):
        for one in read_results(path):
            if one.suite in found:
                raise ValueError(f"two results of '{one.suite}'")
            found[one.suite] = one
    return found


def quiet_environment() -> dict[str, str]:
    """Return the environment of children that run the program from this checkout."""
    return {**os.environ, "PYTHONPATH": f"{TOP}:{TOP / 'cli'}", "PYTHONHASHSEED": "0"}
