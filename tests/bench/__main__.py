"""The benchmark's command: ``python -m tests.bench run`` measures, ``table`` writes the page.

``prepare`` installs our program and borg, ``make`` and ``day`` make a corpus, ``compare``
compares two trees. Everything lies in ``--work``. Start at `main`.
"""

import argparse
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.measure import floor_kib, machine
from tests.bench.programs import PROGRAMS, find_program
from tests.bench.results import Results
from tests.bench.rounds import STEPS, TOP, FailedError, Plan, Rounds
from tests.bench.table import UnsoundError, growth_panels, page

_WORK = Path(os.environ.get("DURAREPO_BENCH", "~/.cache/durarepo-bench")).expanduser()
_BORG = "borgbackup>=1.4,<1.5"


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = _parser().parse_args(arguments)
    commands = {
        "prepare": _prepare,
        "run": _run,
        "table": _table,
        "make": _make,
        "day": _make,
        "compare": _compare,
    }
    try:
        return commands[given.what](given)
    except (FailedError, ValueError) as error:
        _say(f"bench: {error}")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    prepare = commands.add_parser("prepare", help="install our program and borg into --work")
    prepare.add_argument("--extra", default="", help="an extra of ours, for example fast")
    run = commands.add_parser("run", help="measure, going on where an earlier run stopped")
    run.add_argument("--corpus", required=True, help="see corpora.make; several with commas")
    run.add_argument("--rows", default="first,unchanged,day,verify,log,restore")
    run.add_argument("--pairs", type=int, default=5)
    run.add_argument("--only", default=",".join(PROGRAMS), help="these programs, with commas")
    run.add_argument("--program", action="append", default=[], metavar="NAME=PATH")
    run.add_argument("--again", action="store_true", help="forget earlier records of these rows")
    run.add_argument("--memory", type=Path, default=Path("/dev/shm"), help="tmpfs for restores")  # noqa: S108
    table = commands.add_parser("table", help="write the page and the plot")
    table.add_argument("--out", type=Path, default=TOP / "spec")
    for name in ("make", "day"):
        make = commands.add_parser(name)
        make.add_argument("corpus")
        make.add_argument("folder", type=Path)
        make.add_argument("--pool", type=Path, default=_WORK / "pool")
        make.add_argument("--seed", type=int, default=1)
        make.add_argument("--day", type=int, default=1)
    compare = commands.add_parser("compare")
    compare.add_argument("source", type=Path)
    compare.add_argument("restored", type=Path)
    compare.add_argument("--captures-databases", action="store_true")
    for command in (prepare, run, table):
        command.add_argument("--work", type=Path, default=_WORK)
    return parser


def _prepare(given: argparse.Namespace) -> int:
    """Install the committed state of this checkout, and borg, each into its own environment."""
    source = given.work / "checkout"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "-C", str(TOP), "archive", "HEAD"], capture_output=True, check=True
    )
    subprocess.run(["tar", "x", "-C", str(source)], input=archive.stdout, check=True)
    wanted_by_name = {
        "durarepo": f"{source}[{given.extra}]" if given.extra else str(source),
        "durarepo-fast": f"{source}[fast]",
        "borg": _BORG,
    }
    for name, wanted in wanted_by_name.items():
        place = given.work / "programs" / name
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        subprocess.run([place / "bin" / "pip", "-q", "install", wanted], check=True)
    made_from = f"{_commit()}{f', extra {given.extra}' if given.extra else ''}"
    (given.work / "programs" / "commit").write_text(made_from)
    return 0


def _run(given: argparse.Namespace) -> int:
    given.work = given.work.absolute()
    steps = given.rows.split(",")
    if unknown := set(steps) - set(STEPS):
        raise ValueError(f"no such rows: {', '.join(sorted(unknown))}")
    paths = {
        name: str(path)
        for name in PROGRAMS
        if (path := given.work / "programs" / name / "bin" / name).exists()
    }
    paths |= dict(one.split("=", 1) for one in given.program)
    programs = {name: find_program(name, paths) for name in given.only.split(",")}
    results = Results(given.work / "results.jsonl")
    facts = results.add_facts(_facts(programs, given.work))
    memory = given.memory / f"durarepo-bench-{os.getpid()}"
    failed = False
    for corpus in given.corpus.split(","):
        for step in steps if given.again else []:
            results.forget(corpus, step)
        plan = Plan(
            corpus=corpus,
            steps=steps,
            pairs=given.pairs,
            programs=programs,
            work=given.work,
            memory=memory,
            scanner=given.work / "programs" / "durarepo-fast" / "bin" / "python",
            facts=facts,
        )
        try:
            Rounds(plan, results, _say).run()
        except FailedError as error:
            _say(f"bench: {corpus}: {error}")
            failed = True
        finally:
            shutil.rmtree(memory, ignore_errors=True)
    return int(failed)


def _facts(programs: dict[str, str], work: Path) -> dict[str, str]:
    made_from = work / "programs" / "commit"
    facts = machine() | {
        "commit": made_from.read_text().strip() if made_from.exists() else _commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "least memory that can be measured": f"{floor_kib() / 1024:.0f} MiB",
    }
    for name, path in programs.items():
        done = subprocess.run(
            [path, *PROGRAMS[name].version], capture_output=True, text=True, check=True
        )
        facts[f"version of {name}"] = done.stdout.strip().splitlines()[0]
    return facts


def _commit() -> str:
    done = subprocess.run(
        ["git", "-C", str(TOP), "rev-parse", "--short=12", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"


def _table(given: argparse.Namespace) -> int:
    results = Results(given.work / "results.jsonl")
    notes = (Path(__file__).parent / "notes.md").read_text()
    try:
        text = page(results, notes)
    except UnsoundError as error:
        for line in error.args:
            _say(f"bench: not sound: {line}")
        return 1
    from tests.bench.plot import svg

    (given.out / "benchmarks.md").write_text(text)
    (given.out / "benchmarks-growth.svg").write_text(svg(growth_panels(results)))
    return 0


def _make(given: argparse.Namespace) -> int:
    from tests.bench import corpora, days
    from tests.bench.pool import Pool

    pool = Pool(given.pool)
    if given.what == "make":
        corpora.make(given.corpus, given.folder, pool, seed=given.seed)
    else:
        days.change(given.corpus, given.folder, pool, given.day, seed=given.seed)
        sys.stdout.write(days.kind_of(given.day) if given.corpus == "sqlite" else "mixed")
    return 0


def _compare(given: argparse.Namespace) -> int:
    from tests.bench.compare import iter_differences

    lines = iter_differences(
        given.source, given.restored, captures_databases=given.captures_databases
    )
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
