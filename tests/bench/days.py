"""One day of changes in a corpus: edits, additions, deletions, appended lines, changed rows.

Source: the measured days of agents' working state. Start at `change`.
"""
# ruff: noqa: S311 - corpora are drawn by seed, and nothing in them is secret

import os
import random
from pathlib import Path

from tests.bench.corpora import NOW, drawn_size, edited, image, session_lines, slug, write
from tests.bench.databases import change_rows
from tests.bench.pool import Pool

_KIND_OF_DAY = {0: "scattered", 1: "recent"}
_TEXT = {".c", ".cpp", ".h", ".hpp", ".js", ".md", ".pm", ".py", ".pyi", ".rst", ".txt"}


def kind_of(day: int) -> str:
    """Return which rows of a lone database change on a day: odd days recent, even scattered."""
    return _KIND_OF_DAY[day % 2]


def change(name: str, root: Path, pool: Pool, day: int, *, seed: int = 1) -> None:
    """Apply day ``day`` (1 and on) to the corpus ``name`` in ``root``."""
    rng = random.Random(f"{seed}/{name}/day/{day}")
    if name == "sqlite":
        change_rows(root / "memory.sqlite", rng, pool, share=0.01, kind=kind_of(day))
        return
    if name == "big":
        _change_big(root, rng, pool, day)
        return
    plain, sessions, databases = _sorted_out(root)
    _change_plain(plain, rng, pool, day)
    for path in rng.sample(sessions, min(len(sessions), max(2, len(sessions) // 20))):
        more = max(20_000, int(path.stat().st_size * rng.uniform(0.05, 0.3)))
        with path.open("ab") as file:
            file.write(session_lines(pool, rng, more, NOW + day))
    if sessions:
        new = session_lines(pool, rng, drawn_size(rng, 600_000, 1.1, 6_000_000), NOW + day)
        write(root / "sessions" / f"day-{day}" / "new.jsonl", new)
        write(root / "media" / f"day-{day}" / "new.png", image(rng, 420_000))
    for path in databases:
        change_rows(path, rng, pool, share=0.006, kind="recent")
        change_rows(path, rng, pool, share=0.002, kind="scattered")


def _change_plain(plain: list[Path], rng: random.Random, pool: Pool, day: int) -> None:
    count = len(plain)
    for path in rng.sample(plain, min(count, max(1, count // 200))):
        data = edited(pool, rng, path.read_bytes())
        if pool.cleaner.keeps(str(path), data):
            path.write_bytes(data)
    for path in rng.sample(plain, count // 300):
        path.unlink()
    folders = sorted({path.parent for path in plain if path.parent.exists()})
    for number in range(count // 100):
        data = pool.lines(rng, drawn_size(rng, 3_000, 1.1, 60_000))
        write(rng.choice(folders) / f"day{day}-{slug(rng, 2)}-{number}.md", data)


def _change_big(root: Path, rng: random.Random, pool: Pool, day: int) -> None:
    """Append to transcript and log, change rows and pages here and there."""
    for name in ("sessions.jsonl", "agent.log"):
        with (root / name).open("ab") as file:
            file.write(session_lines(pool, rng, 4 << 20, NOW + day))
    change_rows(root / "memory.sqlite", rng, pool, share=0.01, kind="recent")
    with (root / "model.bin").open("r+b") as file:
        pages = (root / "model.bin").stat().st_size // 4_096
        for _ in range(200):
            file.seek(rng.randrange(pages) * 4_096)
            file.write(rng.randbytes(4_096))


def _sorted_out(root: Path) -> tuple[list[Path], list[Path], list[Path]]:
    plain: list[Path] = []
    sessions: list[Path] = []
    databases: list[Path] = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - {".git"})
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_symlink():
                continue
            if path.suffix in _TEXT:
                plain.append(path)
            elif path.suffix == ".jsonl":
                sessions.append(path)
            elif path.suffix == ".sqlite":
                databases.append(path)
    return plain, sessions, databases
