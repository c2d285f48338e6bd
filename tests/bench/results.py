"""What was measured, kept as JSON lines: one call a line, only ever appended to.

A line that tells of a failure or a difference stays, and no table is made from such a file until
`forget` has taken the step out, which leaves the rest of the file as it was.
Start at `Results`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.bench.scanchild import MODES


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One measured call. ``stored`` and ``added`` are bytes of the repository."""

    corpus: str
    step: str
    pair: int
    program: str
    cpu: float
    wall: float
    rss_kib: int
    code: int
    load: float
    began: str
    facts: int = 0
    stored: int = 0
    added: int = 0
    files: int = 0
    size: int = 0
    note: str = ""
    tail: str = ""
    differences: list[str] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """Whether the call ended well, and what it restored is the source."""
        return self.code == 0 and not self.differences


class Results:
    """The file of all records, and of the machines and versions they were made with."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.records: list[Record] = []
        self.facts: list[dict[str, str]] = []
        if path.exists():
            for line in path.read_text().splitlines():
                self._take(json.loads(line))

    def add(self, record: Record) -> None:
        """Keep a record."""
        self.records.append(record)
        self._append([{"record": asdict(record)}])

    def add_facts(self, facts: dict[str, str]) -> int:
        """Keep what a run was made with, and return its number; the same are kept once."""
        if facts not in self.facts:
            self.facts.append(facts)
            self._append([{"facts": facts}])
        return self.facts.index(facts)

    def of(self, corpus: str, step: str, program: str = "") -> list[Record]:
        """Return the records of a step, of one program or of all."""
        return [
            record
            for record in self.records
            if (record.corpus, record.step) == (corpus, step) and program in ("", record.program)
        ]

    def pairs(self, corpus: str, step: str, programs: Iterable[str]) -> int:
        """Return how many sound records each of the programs has at least."""
        return min(
            sum(record.is_sound for record in self.of(corpus, step, name)) for name in programs
        )

    def forget(self, corpus: str, step: str) -> None:
        """Take one step of one corpus out of the file."""
        steps = {step, *(f"scan-{mode}" for mode in MODES if step == "scan")}
        self.records = [
            record for record in self.records if record.corpus != corpus or record.step not in steps
        ]
        new = self._path.with_suffix(".new")
        lines: list[Mapping[str, object]] = [{"facts": facts} for facts in self.facts]
        lines += [{"record": asdict(record)} for record in self.records]
        new.write_text("".join(json.dumps(line) + "\n" for line in lines))
        new.replace(self._path)

    def _append(self, lines: list[Mapping[str, object]]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)

    def _take(self, line: dict[str, dict[str, str]]) -> None:
        if "facts" in line:
            self.facts.append(line["facts"])
        else:
            self.records.append(Record(**line["record"]))  # type: ignore[arg-type]  # own file
