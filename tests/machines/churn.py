"""Nights of churn on one stream, and what each leaves: how much is pinned, in how many packs.

A night rewrites, adds and removes a share of the live bytes, most of it in a hot fifth of the
files, so that cold data shares packs with hot. The clock is simulated, a day a night.
Run as a program, it prints what it measured as one line of JSON; see tests/README.md.
"""

import argparse
import json
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from durarepo.core.limits import LIVE_MANIFESTS_MIN, RETENTION_DAYS, SMALL_PACK_BYTES
from tests.machines.stream import Stream
from tests.reliability.results import Result, commit_now, today, write_result

KIB = 1024
DAY_SECONDS = 86_400
PINNED_RATIO_MAX = 1.6
SMALL_PACKS_MAX = 32
HOT_SHARE = 5
COLD_AMONG = 10
"""Of the changes of a night, one in so many falls on the files that are not hot."""
_WORDS = [f"{a}{b}{c}" for a in "bdfgklm" for b in "aeiou" for c in "nrst"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """What stood after a night; all in bytes, but counts."""

    night: int
    live: int
    head_pinned: int
    pinned: int
    pins: int
    small: int
    envelope: int
    stored: int


@dataclass
class Churn:
    """A stream whose files change each night."""

    stream: Stream
    live_bytes: int
    seed: int = 1
    text: bool = False
    share: float = 0.05
    nights: list[Night] = field(default_factory=list, init=False)
    pinned: dict[int, tuple[int, dict[str, int]]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Fill the root with files of an agent's sizes: many small ones, some large."""
        self._random = random.Random(self.seed)  # noqa: S311  # no secret: what is changed
        self._now = int(time.time()) + 10
        self.stream.clock = lambda: self._now
        self._sizes: dict[Path, int] = {}
        self._groups: dict[str, list[Path]] = {"hot": [], "cold": []}
        self._total = 0
        while self._total < self.live_bytes:
            self._write(self._new_path(), self._size())

    def _size(self) -> int:
        if self._random.random() < 0.02:
            return self._random.randrange(self.live_bytes // 100, self.live_bytes // 25)
        return int(self._random.lognormvariate(9.3, 1.2)) + 1

    def _new_path(self) -> Path:
        number = self._random.randrange(1 << 40)
        hot = "hot" if self._random.randrange(HOT_SHARE) == 0 else "cold"
        return self.stream.root / hot / f"{number % 16:x}" / f"{number:010x}"

    def _write(self, path: Path, size: int) -> int:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self._content(size))
        if path not in self._sizes:
            self._groups[path.parts[-3]].append(path)
        self._total += size - self._sizes.get(path, 0)
        self._sizes[path] = size
        return size

    def _remove(self, path: Path) -> None:
        path.unlink()
        self._groups[path.parts[-3]].remove(path)
        self._total -= self._sizes.pop(path)

    def _content(self, size: int) -> bytes:
        if not self.text:
            return self._random.randbytes(size)
        words = self._random.choices(_WORDS, k=size // 4 + 1)
        return " ".join(words).encode()[:size]

    def _pick(self) -> Path:
        group = "cold" if self._random.randrange(COLD_AMONG) == 0 else "hot"
        return self._random.choice(self._groups[group] or list(self._sizes))

    def _change(self) -> None:
        """Change a share of what lives: half written anew, a quarter each added and removed."""
        todo = int(self.live_bytes * self.share)
        while todo > 0:
            path = self._pick()
            size = self._sizes[path]
            kind = self._random.randrange(4)
            if kind == 0 and self._total > self.live_bytes:
                self._remove(path)
            elif kind == 1 and self._total < self.live_bytes:
                size = self._write(self._new_path(), self._size())
            else:
                self._write(path, size)
            todo -= size

    def night(self) -> Night:
        """Change, take a snapshot, and note what stands."""
        if self.nights:
            self._now += DAY_SECONDS
            self._change()
        result = self.stream.snapshot()
        with self.stream.open() as repository:
            held = repository.state.live_pins()
        assert held is not None
        head = {str(pin.pack): pin.size_bytes for pin in held.head.pins}
        self.pinned[held.head.sequence] = self._now, head
        live = {name: size for one in self.live_manifests() for name, size in one.items()}
        sizes = Counter(size for size in head.values() if size < SMALL_PACK_BYTES)
        found = Night(
            night=len(self.nights),
            live=self._total,
            head_pinned=sum(head.values()),
            pinned=sum(live.values()),
            pins=len(head),
            small=max(sizes.values(), default=0),
            envelope=self.stream.object_path(str(result.manifest)).stat().st_size,
            stored=result.stored_bytes,
        )
        self.nights.append(found)
        return found

    def live_manifests(self) -> list[dict[str, int]]:
        """Return what the live manifests pin: the newest three, and those within retention."""
        newest = max(self.pinned)
        since = self._now - RETENTION_DAYS * DAY_SECONDS
        return [
            pins
            for number, (issued, pins) in self.pinned.items()
            if number > newest - LIVE_MANIFESTS_MIN or issued >= since
        ]

    def oldest_live(self) -> int:
        """Return the number of the oldest live manifest."""
        return max(self.pinned) - len(self.live_manifests()) + 1


def main(nights: int, live_mib: int, *, text: bool) -> dict[str, object]:
    """Run, and return what was measured; ratios are of the later half of the nights."""
    began = time.process_time()
    with tempfile.TemporaryDirectory(dir=os.environ.get("DURAREPO_TESTS_FOLDER")) as folder:
        churn = Churn(Stream(base=Path(folder)), live_mib * KIB * KIB, text=text)
        for _ in range(nights + 1):
            churn.night()
        stored = sum(path.stat().st_size for path in churn.stream.object_files())
    later = churn.nights[len(churn.nights) // 2 :]
    return {
        "nights": nights,
        "content": "text" if text else "incompressible",
        "live_bytes": later[-1].live,
        "head_ratio_max": round(max(one.head_pinned / one.live for one in later), 3),
        "pinned_ratio_max": round(max(one.pinned / one.live for one in later), 3),
        "pinned_ratio_mean": round(sum(one.pinned / one.live for one in later) / len(later), 3),
        "night_share_mean": round(sum(one.stored / one.live for one in later) / len(later), 3),
        "small_packs_max": max(one.small for one in churn.nights),
        "pins_max": max(one.pins for one in churn.nights),
        "nights_over": sum(
            one.pinned > PINNED_RATIO_MAX * one.live or one.small > SMALL_PACKS_MAX
            for one in churn.nights
        ),
        "envelope_max": max(one.envelope for one in churn.nights),
        "all_objects_ratio": round(stored / later[-1].live, 2),
        "cpu_seconds": round(time.process_time() - began, 1),
        "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // KIB,
        "last": asdict(later[-1]),
    }


def _command(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.machines.churn")
    parser.add_argument("nights", type=int)
    parser.add_argument("live_mib", type=int)
    parser.add_argument("text", nargs="?", choices=["text"])
    parser.add_argument("--out", type=Path, help="the result goes to this file")
    given = parser.parse_args(arguments)
    began = time.monotonic()
    measured = main(given.nights, given.live_mib, text=given.text is not None)
    sys.stdout.write(json.dumps(measured) + "\n")
    if given.out is not None:
        facts = {name: one for name, one in measured.items() if isinstance(one, int | float | str)}
        result = Result(
            suite="churn",
            command=" ".join(("python -m tests.machines.churn", *arguments)),
            commit=commit_now(),
            date=today(),
            seed=0,
            points=given.nights,
            distinct=given.nights,
            failures=int(str(measured["nights_over"])),
            seconds=round(time.monotonic() - began, 1),
            facts=facts,
        )
        write_result(given.out, result)


if __name__ == "__main__":
    _command(sys.argv[1:])
