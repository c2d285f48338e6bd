"""spec/benchmarks.md, made from the stored results alone.

Refuses to be made while any call that is on record failed, or gave back another tree.
Start at `page`.
"""

import re
import statistics
from collections.abc import Iterator, Mapping

from tests.bench.plot import Panel
from tests.bench.programs import OURS, PROGRAMS
from tests.bench.results import Record, Results
from tests.bench.rows import ROWS, SCAN_TARGETS, Row, Value, scan_share, value_of

_GROWTH_STEPS = ("first", "unchanged", "restore")
_CORPORA = {
    "small": "notes, source, transcripts, results, git, SQLite and pictures",
    "medium": "ten times small",
    "many": "300,000 small texts",
    "million": "1,000,000 small texts",
    "big": "a transcript, a database, a binary and a log with holes, 512 MiB each",
    "sqlite": "one database of messages and vectors",
}


class UnsoundError(Exception):
    """There are records of failures or of trees that differ; they are the arguments."""


def page(results: Results, notes: str) -> str:
    """Return the page.

    Args:
        results: all that was measured.
        notes: the explanation that stands below the table.

    Raises:
        UnsoundError: a call failed, or a restored tree was not the source.
    """
    bad = [record for record in results.records if not record.is_sound]
    if bad:
        raise UnsoundError(*map(_told, bad))
    return "\n".join(
        [
            "# Benchmarks",
            "",
            "Made by `python -m tests.bench table` from stored results; not edited by hand.",
            "",
            *_head(results),
            "",
            "## Against targets",
            "",
            "In each pair all programs did the same step one after the other, in an order that "
            "alternates. CPU is user and system time of the process and its children. A ratio "
            "is ours divided by the peer's in each pair, its median counts, and the peer that is "
            "hardest to beat in the row is named; the spread is over its pairs.",
            "",
            "| row | corpus | ours | restic | borg | ratio or value (spread) | target | reached |",
            "|---|---|---|---|---|---|---|---|",
            *(_row(row, value_of(row, results)) for row in ROWS),
            *_scan_rows(results),
            "",
            "## Growth",
            "",
            *_growth_table(results),
            "",
            "![CPU and memory over files and bytes](benchmarks-growth.svg)",
            "",
            "## All medians",
            "",
            *_medians(results),
            "",
            notes.strip(),
            "",
        ]
    )


def growth_panels(results: Results) -> list[Panel]:
    """Return the panels of the plot: CPU and memory over files and over bytes."""
    panels: list[Panel] = []
    for kind, word in (("files", "files"), ("bytes", "GB")):
        for what, unit in (("cpu", "CPU seconds"), ("rss", "peak memory, MiB")):
            panels.append((f"{unit} over {word}", _lines(results, kind, what)))
    return panels


def _told(record: Record) -> str:
    what = record.differences[0] if record.differences else f"exit code {record.code}"
    return f"{record.corpus} {record.step} {record.program}: {what}"


def _head(results: Results) -> Iterator[str]:
    if not results.records:
        yield "Nothing has been measured yet."
        return
    used = sorted({record.facts for record in results.records})
    keys = list(dict.fromkeys(key for number in used for key in results.facts[number]))
    yield "| | |"
    yield "|---|---|"
    for key in keys:
        values = dict.fromkeys(results.facts[number].get(key, "-") for number in used)
        yield f"| {key} | {'; '.join(values)} |"
    began = sorted(record.began for record in results.records)
    loads = [record.load for record in results.records]
    yield f"| measured | {began[0]} to {began[-1]}, {len(began)} calls |"
    yield (
        f"| load average before a call | median {statistics.median(loads):.2f}, "
        f"{min(loads):.2f} to {max(loads):.2f} |"
    )
    for program in PROGRAMS.values():
        yield f"| configuration of {program.name} | {program.defaults} |"
    sizes = {record.corpus: (record.files, record.size) for record in reversed(results.records)}
    for corpus, (files, size) in sorted(sizes.items()):
        about = f": {_CORPORA[corpus]}" if corpus in _CORPORA else ""
        yield f"| corpus {corpus} | {files:,} files, {size / 1e6:,.0f} MB{about} |"


def _row(row: Row, value: Value | None) -> str:
    shown = _number(row.target, row)
    if value is None:
        return f"| {row.title} | {row.corpus} | - | - | - | not measured | ≤ {shown} | - |"
    scale = 1e6 if row.unit == "MB" else 1.0
    named = "" if not row.is_ratio else f" of {value.best}"
    spread = f"{_number(value.least, row)} to {_number(value.greatest, row)}, {value.pairs} pairs"
    cells = [
        row.title,
        row.corpus,
        _amount(value.ours / scale, row.unit),
        *(
            _amount(value.peers[name] / scale, row.unit) if name in value.peers else "-"
            for name in PROGRAMS
            if name != OURS
        ),
        f"**{_number(value.value, row)}**{named} ({spread})",
        f"≤ {shown}",
        "yes" if value.value <= row.target else "**no**",
    ]
    return f"| {' | '.join(cells)} |"


def _amount(value: float, unit: str) -> str:
    if not unit:
        return f"{value:.2%}"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.2f} {unit}"


def _number(value: float, row: Row) -> str:
    return f"{value:.2f}x" if row.is_ratio else _amount(value, row.unit)


def _scan_rows(results: Results) -> Iterator[str]:
    for corpus in ("small", "medium"):
        for engine, target in SCAN_TARGETS.items():
            title = f"Cost of the exclusion policy in a first snapshot, {engine}"
            found = scan_share(results, corpus, engine)
            if found is None:
                yield f"| {title} | {corpus} | - | - | - | not measured | ≤ {target:.0%} | - |"
                continue
            share, pairs, is_inside = found
            how = "in the snapshot" if is_inside else "judging alone"
            reached = "yes" if share <= target else "**no**"
            yield (
                f"| {title} | {corpus} | - | - | - | **{share:.0%}** ({how}, {pairs} pairs) "
                f"| ≤ {target:.0%} | {reached} |"
            )


def _growth(results: Results, kind: str) -> dict[str, list[tuple[float, Record]]]:
    """Return one point per program, step and corpus: its median call by CPU."""
    found: dict[str, list[tuple[float, Record]]] = {}
    alias = {"files": {"many", "million"}, "bytes": set[str]()}[kind]
    names = {record.corpus for record in results.records}
    for corpus in names:
        if corpus not in alias and not re.fullmatch(rf"{kind}-\d+", corpus):
            continue
        for step in _GROWTH_STEPS:
            for program in PROGRAMS:
                records = sorted(results.of(corpus, step, program), key=lambda one: one.cpu)
                if records:
                    middle = records[len(records) // 2]
                    at = middle.files if kind == "files" else middle.size / 1e9
                    found.setdefault(f"{program} {step}", []).append((float(at), middle))
    return {name: sorted(points, key=lambda one: one[0]) for name, points in found.items()}


def _lines(results: Results, kind: str, what: str) -> Mapping[str, list[tuple[float, float]]]:
    return {
        name: [
            (at, max(0.01, record.cpu if what == "cpu" else record.rss_kib / 1024))
            for at, record in points
        ]
        for name, points in _growth(results, kind).items()
    }


def _growth_table(results: Results) -> Iterator[str]:
    yield "One line each: CPU seconds and peak MiB, from the smallest corpus to the largest."
    yield ""
    yield "| over | program and step | size: CPU s, MiB |"
    yield "|---|---|---|"
    for kind in ("files", "bytes"):
        for name, points in sorted(_growth(results, kind).items()):
            shown = "; ".join(
                f"{_at(kind, at)}: {record.cpu:.2f} s, {record.rss_kib / 1024:.0f} MiB"
                for at, record in points
            )
            yield f"| {kind} | {name} | {shown} |"


def _at(kind: str, value: float) -> str:
    return f"{value:,.0f}" if kind == "files" else f"{value:.1f} GB"


def _medians(results: Results) -> Iterator[str]:
    yield "| corpus | step | program | calls | CPU s | wall s | peak MiB | added MB | stored MB |"
    yield "|---|---|---|---|---|---|---|---|---|"
    keys = dict.fromkeys((one.corpus, one.step, one.program) for one in results.records)
    for corpus, step, program in sorted(keys):
        records = results.of(corpus, step, program)
        cells = [
            f"{statistics.median(values):,.2f}"
            for values in (
                [one.cpu for one in records],
                [one.wall for one in records],
                [one.rss_kib / 1024 for one in records],
                [one.added / 1e6 for one in records],
                [one.stored / 1e6 for one in records],
            )
        ]
        yield f"| {corpus} | {step} | {program} | {len(records)} | {' | '.join(cells)} |"
