"""The rows of the table: what is compared, and the target that was set before measuring.

A ratio is taken in each pair and the median of the pairs counts, for each peer; the row's value
is the greatest of these, so that the best peer of the row is the one we are held against.
Start at `ROWS`; `value_of` computes one.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.bench.programs import OURS
from tests.bench.results import Record, Results
from tests.bench.scanchild import MODES

Measure = Callable[[Record], float]


def _cpu(record: Record) -> float:
    return record.cpu


def _added(record: Record) -> float:
    return float(record.added)


def _stored(record: Record) -> float:
    return float(record.stored)


def _memory(record: Record) -> float:
    return record.rss_kib / 1024


def _added_share(record: Record) -> float:
    return record.added / record.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row. ``is_ratio``: of ours to the best peer; else ours alone. ``day`` limits days."""

    title: str
    corpus: str
    step: str
    measure: Measure
    target: float
    unit: str
    is_ratio: bool = True
    day: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What a row came to: ours and the peers' medians, and the value with its spread."""

    ours: float
    peers: dict[str, float]
    best: str
    value: float
    least: float
    greatest: float
    pairs: int


def _ratio(title: str, corpus: str, step: str, measure: Measure, target: float) -> Row:
    unit = "s" if measure is _cpu else "MB"
    return Row(title=title, corpus=corpus, step=step, measure=measure, target=target, unit=unit)


def _own(title: str, place: tuple[str, str], measure: Measure, target: float, unit: str) -> Row:
    return Row(
        title=title,
        corpus=place[0],
        step=place[1],
        measure=measure,
        target=target,
        unit=unit,
        is_ratio=False,
    )


def _sqlite(kind: str, day: str) -> Row:
    return Row(
        title=f"SQLite of 1 GB, a day with 1 % of rows changed ({kind}): added, share of its size",
        corpus="sqlite",
        step="day",
        measure=_added_share,
        target=0.03,
        unit="",
        is_ratio=False,
        day=day,
    )


ROWS: tuple[Row, ...] = (
    _ratio("First snapshot, CPU", "small", "first", _cpu, 0.55),
    _ratio("First snapshot, CPU", "medium", "first", _cpu, 0.55),
    _ratio("First snapshot, CPU", "big", "first", _cpu, 0.70),
    _ratio("Unchanged snapshot, CPU", "medium", "unchanged", _cpu, 0.25),
    _ratio("One day's change, CPU", "small", "day", _cpu, 0.5),
    _ratio("One day's change, CPU", "medium", "day", _cpu, 0.5),
    _ratio("One day's change, bytes added", "small", "day", _added, 0.8),
    _ratio("One day's change, bytes added", "medium", "day", _added, 0.8),
    _ratio("Stored after day 0", "small", "first", _stored, 0.95),
    _ratio("Stored after day 0", "medium", "first", _stored, 0.95),
    _ratio("Stored after day 0", "many", "first", _stored, 0.9),
    _ratio("Stored after day 0", "big", "first", _stored, 1.02),
    _ratio("Full restore, CPU", "small", "restore", _cpu, 0.6),
    _ratio("Full restore, CPU", "medium", "restore", _cpu, 0.6),
    _ratio("Verify all data, CPU", "small", "verify", _cpu, 0.6),
    _ratio("Verify all data, CPU", "medium", "verify", _cpu, 0.6),
    _own("First snapshot, peak memory", ("medium", "first"), _memory, 150, "MiB"),
    _own("First snapshot, peak memory", ("many", "first"), _memory, 200, "MiB"),
    _own("`durarepo log`, cold start, CPU", ("small", "log"), _cpu, 0.2, "s"),
    _sqlite("the newest together", "recent"),
    _sqlite("scattered", "scattered"),
    _own("Unchanged snapshot, CPU", ("million", "unchanged"), _cpu, 25, "s"),
    _own("Unchanged snapshot, peak memory", ("million", "unchanged"), _memory, 400, "MiB"),
)

SCAN_TARGETS = {"hyperscan": 0.15, "re2": 0.30}


def value_of(row: Row, results: Results) -> Value | None:
    """Return what a row came to, or None while it has not been measured."""
    pairs = _by_pair(row, results)
    ours = pairs.pop(OURS, {})
    if not ours or (row.is_ratio and not pairs):
        return None
    mid = statistics.median(ours.values())
    peers = {name: statistics.median(values.values()) for name, values in pairs.items() if values}
    if not row.is_ratio:
        return _value(list(ours.values()), ours=mid, peers=peers, best="")
    ratios = {
        name: [value / theirs[pair] for pair, value in ours.items() if theirs.get(pair)]
        for name, theirs in pairs.items()
    }
    ratios = {name: values for name, values in ratios.items() if values}
    if not ratios:
        return None
    best = max(ratios, key=lambda name: statistics.median(ratios[name]))
    return _value(ratios[best], ours=mid, peers=peers, best=best)


def scan_share(results: Results, corpus: str, engine: str) -> tuple[float, int, bool] | None:
    """Return what the policy costs, as a share of a first snapshot without it.

    Returns:
        The median share, the pairs, and whether it was measured in the snapshot; else it is
        that of walking, reading and judging alone, less reading alone. None if not measured.
    """
    taken = {mode: results.of(corpus, f"scan-{mode}", OURS) for mode in MODES}
    if not all(taken.values()):
        return None
    is_inside = all(_is_judged(record) for record in taken[engine])
    more, less = (engine, "none") if is_inside else (f"alone-{engine}", "read")
    shares = [
        (one.cpu - other.cpu) / base.cpu
        for one, other, base in zip(taken[more], taken[less], taken["none"], strict=False)
    ]
    return statistics.median(shares), len(shares), is_inside


def _is_judged(record: Record) -> bool:
    """Return whether the policy was asked for most files of a snapshot."""
    return int(record.note.split()[-1]) * 2 > record.files


def _by_pair(row: Row, results: Results) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for record in results.of(row.corpus, row.step):
        if row.day in ("", record.note.split(" ")[-1]):
            found.setdefault(record.program, {})[record.pair] = row.measure(record)
    return found


def _value(values: Sequence[float], *, ours: float, peers: dict[str, float], best: str) -> Value:
    return Value(
        ours=ours,
        peers=peers,
        best=best,
        value=statistics.median(values),
        least=min(values),
        greatest=max(values),
        pairs=len(values),
    )
