"""Fuzz every target, or those that are named: ``python -m tests.fuzz [TARGET...] --seconds 600``.

Needs atheris (``pip install atheris``). Each target runs in a child of its own, one after the
other, with limits of memory and of time for one input. An input after which a law does not hold
is saved below ``--findings`` and counted; with ``--keep`` it is also kept in the corpus, as are
the inputs that reached something new.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

from tests.fuzz.corpus import corpus_of, slug_of, smallest_cover, write_corpus
from tests.hostile.targets import NAMES, targets
from tests.reliability.results import (
    FOLDER,
    TOP,
    Result,
    commit_now,
    quiet_environment,
    today,
    write_result,
)

RSS_MAX_MB = 1024
"""A target may take so much memory, the interpreter and what instruments it included."""
ONE_INPUT_SECONDS = 20
INPUT_MAX_BYTES = 64 * 1024

_TRIED = re.compile(r"^stat::number_of_executed_units: (\d+)$", re.MULTILINE)
_CORPUS = re.compile(r"\bcorp: (\d+)/")


def fuzz(name: str, *, seconds: int, seed: int, findings: Path, keep: bool) -> Result:
    """Fuzz one target and return what came of it.

    Args:
        name: of the target.
        seconds: how long.
        seed: of the fuzzer's draws; what it finds also depends on the machine.
        findings: a folder for the inputs that broke something.
        keep: put what reached something new in the corpus.
    """
    with tempfile.TemporaryDirectory() as base:
        folder, inputs, state = (Path(base) / one for one in ("files", "inputs", "state"))
        for one in (folder, inputs, state):
            one.mkdir(mode=0o700)
        target = next(one for one in targets(folder) if one.name == name)
        for data in corpus_of(name):
            (inputs / sha256(data).hexdigest()[:16]).write_bytes(data)
        broken = findings / slug_of(name)
        broken.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        said = _run(name, state, inputs, [
            f"-max_total_time={seconds}", f"-seed={seed}", f"-artifact_prefix={broken}/",
        ])  # fmt: skip
        took = time.monotonic() - began
        found = [path.read_bytes() for path in inputs.iterdir()]
        bad = [path.read_bytes() for path in broken.iterdir()]
        if keep:
            kept = smallest_cover(target, [*found, *corpus_of(name)]) if not bad else found[:0]
            write_corpus(name, [*kept, *bad] if not bad else [*corpus_of(name), *bad])
    tried = _TRIED.search(said)
    if tried is None and not bad:
        raise RuntimeError(f"the fuzzer of '{name}' did not end as it should:\n{said[-3000:]}")
    points = max(int(tried[1]) if tried else 0, 1)
    distinct = [int(number) for number in _CORPUS.findall(said)]
    return Result(
        suite=f"fuzz {name}", command="python -m tests.fuzz", commit=commit_now(), date=today(),
        seed=seed, points=points, distinct=min(max(distinct, default=0), points),
        failures=len(bad), seconds=round(took, 1),
    )  # fmt: skip


def _run(name: str, state: Path, inputs: Path, options: list[str]) -> str:
    """Run the fuzzer to its end and return all that it said."""
    command = [sys.executable, "-m", "tests.fuzz.child", name, str(state), *options]
    command += [f"-rss_limit_mb={RSS_MAX_MB}", f"-timeout={ONE_INPUT_SECONDS}",
                f"-max_len={INPUT_MAX_BYTES}", "-print_final_stats=1", str(inputs)]  # fmt: skip
    ran = subprocess.run(command, check=False, cwd=TOP, env=quiet_environment(),
                         capture_output=True)  # fmt: skip
    return (ran.stdout + ran.stderr).decode(errors="replace")


def main() -> int:
    """Fuzz what the command line names; exit with 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=600, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=FOLDER / "fuzz.json")
    parser.add_argument("--findings", type=Path, default=Path("findings"))
    parser.add_argument("--keep", action="store_true", help="put what is new in the corpus")
    asked = parser.parse_args()
    unknown = set(asked.targets) - set(NAMES)
    if unknown:
        parser.error(f"no target is called {', '.join(sorted(unknown))}")
    failures = 0
    for name in asked.targets or NAMES:
        result = fuzz(name, seconds=asked.seconds, seed=asked.seed, findings=asked.findings,
                      keep=asked.keep)  # fmt: skip
        write_result(asked.out, result)
        failures += result.failures
        print(f"{name}: {result.points} tried, {result.distinct} kept, "  # noqa: T201
              f"{result.failures} broke something", flush=True)  # fmt: skip
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
