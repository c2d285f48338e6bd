"""One corpus measured: every program at every step, in an order that alternates.

Steps that change a repository (first, unchanged, day) leave it for the next; the others read it.
Nothing is deleted while a corpus is measured but restores, which lie in memory (tmpfs), because
a disk that has just deleted a tree answers slowly. A step that has enough sound pairs is skipped,
so a run that was ended goes on where it was.
Start at `Rounds.run`.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.measure import Measured, run_measured, stored_bytes
from tests.bench.programs import OURS, PROGRAMS, Program, Site, environment_of
from tests.bench.results import Record, Results
from tests.bench.scanchild import MODES

STEPS = ("first", "unchanged", "day", "verify", "log", "restore", "scan")
TOP = Path(__file__).resolve().parents[2]
_BROKEN, _BROKEN_DAY = 1, 2
_BACKUPS = ("first", "unchanged", "day")
_SETTLE_SECONDS = 2.0
_WARM_BYTES = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be measured: programs by name with their paths, and where everything lies.

    ``scanner`` is a Python that has ours with every engine, for the step ``scan`` only.
    """

    corpus: str
    steps: Sequence[str]
    pairs: int
    programs: Mapping[str, str]
    work: Path
    memory: Path
    scanner: Path
    facts: int = 0


class FailedError(Exception):
    """A call failed or a restored tree differed; the record that says so is kept."""


class Rounds:
    """All rounds of one corpus."""

    def __init__(self, plan: Plan, results: Results, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._results = results
        self._say = say
        self._folder = plan.work / "runs" / plan.corpus
        self._state = {"source": 0, "first": 0, "day": 0, "number": 0, "broken": 0}
        if (self._folder / "state.json").exists():
            self._state |= json.loads((self._folder / "state.json").read_text())
        self._size = (0, 0)
        self._kind = ""

    def run(self) -> None:
        """Measure until every step has its pairs.

        Raises:
            FailedError: a program failed, or gave back something else than the source.
        """
        for step in STEPS:
            if step not in self._plan.steps:
                continue
            names = [OURS] if step == "scan" else list(self._plan.programs)
            counted = f"scan-{MODES[-1]}" if step == "scan" else step
            while (
                done := self._results.pairs(self._plan.corpus, counted, names)
            ) < self._plan.pairs:
                self._pair(step, done)

    def _pair(self, step: str, pair: int) -> None:
        if step == "first":
            self._prepare_first()
        elif step != "scan" and (self._state["broken"] or not self._state["first"]):
            done = self._results.pairs(self._plan.corpus, "first", self._plan.programs)
            self._pair("first", done)
        self._make_source()
        if step == "scan":
            self._scan(pair)
        elif step in _BACKUPS:  # a round that ends in between is not gone on with
            self._save(broken=_BROKEN_DAY if step == "day" else _BROKEN)
            if step == "day":
                self._change_source()
            self._state["number"] += 1
            self._measure_all(step, pair)
            self._save(broken=0)
        else:
            self._measure_all(step, pair)

    def _measure_all(self, step: str, pair: int) -> None:
        names = list(self._plan.programs)
        for name in names[pair % len(names) :] + names[: pair % len(names)]:
            self._measure(step, pair, PROGRAMS[name])

    def _change_source(self) -> None:
        self._state["day"] += 1
        day = ["--day", str(self._state["day"])]
        self._kind = self._child("day", str(self._source()), *day)
        time.sleep(_SETTLE_SECONDS)
        self._size = _warmed(self._source())

    def _prepare_first(self) -> None:
        if (
            self._state["day"] or self._state["broken"] == _BROKEN_DAY
        ):  # it is day 0 that is measured
            self._state |= {"source": self._state["source"] + 1, "day": 0}
            self._size = (0, 0)
        self._state["first"] += 1
        self._make_source()
        for name in self._plan.programs:
            site = self._site(name)
            site.home.mkdir(parents=True)
            site.repository.parent.mkdir(parents=True, exist_ok=True)
            self._must(PROGRAMS[name], "init", site)

    def _make_source(self) -> None:
        source = self._source()
        if not source.exists():
            self._say(f"{self._plan.corpus}: making the corpus")
            unfinished = source.with_suffix(".new")
            shutil.rmtree(unfinished, ignore_errors=True)
            self._child("make", str(unfinished))
            unfinished.rename(source)
            time.sleep(_SETTLE_SECONDS)
        if self._size == (0, 0):
            self._size = _warmed(source)

    def _source(self) -> Path:
        return self._folder / f"source-{self._state['source']}"

    def _site(self, name: str) -> Site:
        home = self._folder / f"first-{self._state['first']}" / name
        return Site(
            program=self._plan.programs[name],
            home=home / "home",
            repository=home / "repository",
            source=self._source(),
            restored=self._plan.memory / name,
            number=self._state["number"],
        )

    def _measure(self, step: str, pair: int, program: Program) -> None:
        site = self._site(program.name)
        before = stored_bytes(site.repository)
        began = datetime.now(UTC)
        if step == "restore":
            shutil.rmtree(site.restored, ignore_errors=True)
            site.restored.parent.mkdir(parents=True, exist_ok=True)
            if not program.makes_destination:
                site.restored.mkdir()
        measured = self._call(program, step, site)
        stored = stored_bytes(site.repository)
        differences: list[str] = []
        if step == "restore" and measured.code == 0:
            differences = self._compare(site, program)
        shutil.rmtree(site.restored, ignore_errors=True)
        self._keep(
            Record(
                corpus=self._plan.corpus,
                step=step,
                pair=pair,
                program=program.name,
                cpu=measured.cpu,
                wall=measured.wall,
                rss_kib=measured.rss_kib,
                code=measured.code,
                load=measured.load,
                began=began.isoformat(timespec="seconds"),
                facts=self._plan.facts,
                stored=stored,
                added=stored - before,
                files=self._size[0],
                size=self._size[1],
                note=self._note(step),
                tail=measured.tail,
                differences=differences,
            )
        )

    def _note(self, step: str) -> str:
        return f"day {self._state['day']} {self._kind}" if step == "day" else ""

    def _keep(self, record: Record) -> None:
        self._results.add(record)
        self._say(
            f"{record.corpus} {record.step} {record.pair} {record.program}: cpu {record.cpu:.2f} "
            f"wall {record.wall:.2f} rss {record.rss_kib >> 10} MiB "
            f"added {record.added / 1e6:.2f} MB"
        )
        if not record.is_sound:
            told = record.differences[:5] or [record.tail]
            raise FailedError(f"{record.program} {record.step}: {record.code} {told}")

    def _call(self, program: Program, step: str, site: Site) -> Measured:
        return run_measured(
            program.command(step, site),
            environment=environment_of(program, site),
            folder=site.restored if site.restored.exists() else site.home,
            log=site.home.parent / f"{step}.log",
        )

    def _must(self, program: Program, step: str, site: Site) -> None:
        measured = self._call(program, step, site)
        if measured.code:
            raise FailedError(f"{program.name} {step}: {measured.code} {measured.tail}")

    def _compare(self, site: Site, program: Program) -> list[str]:
        captures = ["--captures-databases"] if program.captures_databases else []
        command = ["compare", str(site.source), str(site.tree()), *captures]
        done = _bench(command)
        if done.returncode:
            raise FailedError(f"compare: {done.stderr[-500:]}")
        return done.stdout.splitlines()[:50]

    def _child(self, what: str, *arguments: str) -> str:
        pool = str(self._plan.work / "pool")
        done = _bench([what, self._plan.corpus, *arguments, "--pool", pool])
        if done.returncode:
            raise FailedError(f"{what}: {done.stderr[-500:]}")
        return done.stdout.strip()

    def _scan(self, pair: int) -> None:
        """Measure the exclusion policy: our program in a child whose policy is replaced."""
        program = PROGRAMS[OURS]
        interpreter = str(self._plan.scanner)
        script = str(Path(__file__).parent / "scanchild.py")
        for mode in MODES if pair % 2 == 0 else MODES[::-1]:
            home = self._folder / f"scan-{time.time_ns()}"
            site = Site(
                program=self._plan.programs[OURS],
                home=home / "home",
                repository=home / "repository",
                source=self._source(),
                restored=home / "none",
            )
            site.home.mkdir(parents=True)
            self._must(program, "init", site)
            measured = run_measured(
                [interpreter, script, mode, str(site.source)],
                environment=environment_of(program, site),
                folder=site.home,
                log=home / "scan.log",
            )
            self._keep(
                Record(
                    corpus=self._plan.corpus,
                    step=f"scan-{mode}",
                    pair=pair,
                    program=OURS,
                    cpu=measured.cpu,
                    wall=measured.wall,
                    rss_kib=measured.rss_kib,
                    code=measured.code,
                    load=measured.load,
                    began=datetime.now(UTC).isoformat(timespec="seconds"),
                    facts=self._plan.facts,
                    files=self._size[0],
                    size=self._size[1],
                    note=(measured.output.decode("utf-8", "replace").splitlines() or [""])[-1],
                    tail=measured.tail,
                )
            )

    def _save(self, *, broken: int) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._state["broken"] = broken
        (self._folder / "state.json").write_text(json.dumps(self._state))


def _bench(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run this package in a child, so that the measuring process stays small."""
    environment = dict(os.environ, PYTHONPATH=f"{TOP}:{TOP / 'cli'}")
    return subprocess.run(
        [sys.executable, "-m", "tests.bench", *arguments],
        cwd=TOP,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _warmed(source: Path) -> tuple[int, int]:
    """Read every file once, so that all programs find a warm page cache; return count and bytes."""
    files = size = 0
    for folder, _, names in os.walk(source):
        for name in names:
            path = os.path.join(folder, name)
            files += 1
            if os.path.islink(path):
                continue
            with open(path, "rb", buffering=0) as file:
                while data := file.read(_WARM_BYTES):
                    size += len(data)
    return files, size
