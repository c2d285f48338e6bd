"""The benchmark's own promises: the same trees each time, and no table made of failures."""

import hashlib
import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.bench import corpora, days
from tests.bench.__main__ import main
from tests.bench.compare import iter_differences
from tests.bench.databases import make_database
from tests.bench.measure import run_measured
from tests.bench.pool import Pool
from tests.bench.results import Record, Results
from tests.bench.rows import ROWS, scan_share, value_of
from tests.bench.table import UnsoundError, page

_NOT_FIXED = ("-wal", "-shm", ".git/index")


def _record(program: str, cpu: float, **more: object) -> Record:
    facts: dict[str, object] = {
        "corpus": "small",
        "step": "first",
        "pair": 0,
        "program": program,
        "cpu": cpu,
        "wall": cpu,
        "rss_kib": 50_000,
        "code": 0,
        "load": 0.1,
        "began": "2026-01-01T00:00:00+00:00",
        "stored": 1_000,
        "added": 1_000,
        "files": 10,
        "size": 2_000,
    }
    return Record(**(facts | more))  # type: ignore[arg-type]  # a row of a test


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    """A pool of a few texts, so that it is made at once."""
    texts = tmp_path / "texts"
    texts.mkdir()
    for number in range(40):
        lines = [f"line {k} of text {number}, {k * number} words\n" for k in range(200)]
        (texts / f"text-{number}.txt").write_text("".join(lines))
    return Pool(tmp_path / "pool", (str(texts),))


def _digest(root: Path) -> str:
    """Return a digest over names, modes, times and contents, without what is never the same."""
    total = hashlib.sha256()
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if str(path).endswith(_NOT_FIXED):
                continue
            stat = path.lstat()
            content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
            facts = f"{path.relative_to(root)} {stat.st_mode:o} {stat.st_mtime_ns}"
            total.update(facts.encode() + hashlib.sha256(content).digest())
    return total.hexdigest()


def test_a_corpus_is_the_same_for_the_same_seed_and_another_for_another(
    tmp_path: Path, pool: Pool
) -> None:
    """Pairs that were measured on different trees compare nothing."""
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        corpora.make("tiny", tmp_path / name, pool, seed=seed)

    assert _digest(tmp_path / "one") == _digest(tmp_path / "again")
    assert _digest(tmp_path / "one") != _digest(tmp_path / "other")
    assert (tmp_path / "one/db/memory.sqlite-wal").stat().st_size > 0


def test_a_day_changes_a_corpus_and_leaves_most_of_it(tmp_path: Path, pool: Pool) -> None:
    """A day without changes, or one that rewrites all, would measure another thing."""
    root, before = tmp_path / "tree", tmp_path / "before"
    corpora.make("tiny", root, pool)
    shutil.copytree(root, before, symlinks=True)

    days.change("tiny", root, pool, 1)

    lines = list(iter_differences(before, root, captures_databases=False))
    count = sum(len(names) for _, _, names in os.walk(before))
    assert 3 <= len(lines) < count / 3


def _remove(path: Path) -> None:
    path.unlink()


def _flip(path: Path) -> None:
    stat = path.stat()
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _set_mode(path: Path) -> None:
    path.chmod(0o600)


def _set_time(path: Path) -> None:
    os.utime(path, (1, 1))


@pytest.mark.parametrize(
    ("change", "word"),
    [(_remove, "not restored"), (_flip, "content"), (_set_mode, "mode"), (_set_time, "time")],
)
def test_the_comparison_sees_one_change(
    tmp_path: Path, change: Callable[[Path], None], word: str
) -> None:
    """A comparison that sees nothing would let a program win that restores nothing."""
    source, restored = tmp_path / "source", tmp_path / "restored"
    (source / "folder").mkdir(parents=True)
    (source / "folder" / "file").write_bytes(b"content")
    shutil.copytree(source, restored)
    same = list(iter_differences(source, restored, captures_databases=True))

    change(restored / "folder" / "file")

    lines = list(iter_differences(source, restored, captures_databases=True))
    assert same == []
    assert [line for line in lines if line.startswith("folder/file:")] == [f"folder/file: {word}"]


def test_a_captured_database_must_have_every_row(tmp_path: Path, pool: Pool) -> None:
    """Only bytes and the log may differ; a lost row is a lost row."""
    source, stale, whole = tmp_path / "source", tmp_path / "stale", tmp_path / "whole"
    source.mkdir()
    rng = random.Random(1)  # noqa: S311 - a seed of a test
    make_database(source / "a.sqlite", 200_000, rng, pool, keeps_log=True)
    shutil.copytree(source, stale, ignore=shutil.ignore_patterns("*-wal", "*-shm"))
    shutil.copytree(source, whole)
    connection = sqlite3.connect(whole / "a.sqlite")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()

    lost = list(iter_differences(source, stale, captures_databases=True))
    kept = list(iter_differences(source, whole, captures_databases=True))
    bare = list(iter_differences(source, stale, captures_databases=False))

    assert not (whole / "a.sqlite-wal").exists()
    assert (lost, kept) == (["a.sqlite: content"], [])
    assert "a.sqlite-wal: not restored" in bare


@pytest.mark.parametrize("more", [{"code": 1}, {"differences": ["a: content"]}])
def test_no_table_is_written_while_a_call_failed_or_a_tree_differs(
    tmp_path: Path, more: dict[str, object]
) -> None:
    """A number from a run that did not do its work is worse than none."""
    results = Results(tmp_path / "results.jsonl")
    results.add(_record("durarepo", 1.0))
    results.add_facts({"kernel": "Linux"})
    results.add(_record("restic", 2.0, **more))

    with pytest.raises(UnsoundError):
        page(results, "")
    code = main(["table", "--work", str(tmp_path), "--out", str(tmp_path)])

    assert code == 1
    assert not (tmp_path / "benchmarks.md").exists()


def test_the_table_is_made_from_stored_results_against_the_best_peer(tmp_path: Path) -> None:
    """Held against the slower peer, every target would be reached."""
    results = Results(tmp_path / "results.jsonl")
    results.add_facts({"kernel": "Linux"})
    for pair in range(5):
        for program, cpu in (("durarepo", 1.2), ("restic", 4.0), ("borg", 2.0)):
            results.add(_record(program, cpu, pair=pair))

    code = main(["table", "--work", str(tmp_path), "--out", str(tmp_path)])

    value = value_of(ROWS[0], Results(tmp_path / "results.jsonl"))
    assert code == 0
    assert value is not None
    assert (value.best, value.value, value.pairs) == ("borg", 0.6, 5)
    [line] = [
        line
        for line in (tmp_path / "benchmarks.md").read_text().splitlines()
        if line.startswith(f"| {ROWS[0].title} | small ")
    ]
    assert line.endswith("| **no** |")
    assert (tmp_path / "benchmarks-growth.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(("judged", "expected"), [(10, (0.5, True)), (0, (1.5, False))])
def test_the_policy_is_measured_where_it_is_asked(
    tmp_path: Path, judged: int, expected: tuple[float, bool]
) -> None:
    """A snapshot that judges nothing would seem to judge for nothing."""
    results = Results(tmp_path / "results.jsonl")
    cpu = {"none": 2, "re2": 3, "hyperscan": 2, "read": 1, "alone-re2": 4, "alone-hyperscan": 4}
    for mode, seconds in cpu.items():
        note = f"judged {judged if mode == 're2' else 0}"
        results.add(_record("durarepo", seconds, step=f"scan-{mode}", note=note))

    found = scan_share(results, "small", "re2")

    assert found == (expected[0], 1, expected[1])


def test_a_step_that_is_forgotten_leaves_all_others(tmp_path: Path) -> None:
    """Measuring one row again must not cost the others."""
    results = Results(tmp_path / "results.jsonl")
    results.add_facts({"kernel": "Linux"})
    kept = _record("durarepo", 1.0, step="day")
    results.add(_record("durarepo", 1.0, code=70))
    results.add(kept)

    results.forget("small", "first")

    again = Results(tmp_path / "results.jsonl")
    assert [asdict(record) for record in again.records] == [asdict(kept)]
    assert again.facts == [{"kernel": "Linux"}]


def test_a_call_is_measured_with_its_children(tmp_path: Path) -> None:
    """A program that leaves its work to a child would seem to do none."""
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"

    measured = run_measured(
        [shutil.which("python3") or "python3", "-c", nested],
        environment={"PATH": os.environ["PATH"]},
        folder=tmp_path,
        log=tmp_path / "log",
    )

    assert measured.code == 0
    assert measured.cpu >= 0.3
    assert json.loads(json.dumps(measured.cpu)) == measured.cpu
