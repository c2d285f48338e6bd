"""SQLite databases of a corpus: messages of an agent, and one day of changes in them.

Source: the shape of agents' message and memory stores. Start at `make_database`.
"""

import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

from tests.bench.pool import Pool

_TABLES = """
CREATE TABLE messages(id INTEGER PRIMARY KEY, session TEXT, at INTEGER, role TEXT, content TEXT);
CREATE INDEX by_session ON messages(session, at);
CREATE TABLE vectors(id INTEGER PRIMARY KEY, message INTEGER, vector BLOB);
"""
_BATCH = 500


def make_database(
    path: Path, size: int, rng: random.Random, pool: Pool, *, keeps_log: bool = False
) -> None:
    """Make a database of about ``size`` bytes.

    Args:
        path: a file that does not exist.
        size: bytes of rows.
        rng: what is drawn.
        pool: where text comes from.
        keeps_log: leave a write-ahead log beside it, as under an agent that runs.
    """
    path.parent.mkdir(parents=True, exist_ok=True)

    def fill() -> None:
        connection = sqlite3.connect(path)
        if keeps_log:
            connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=OFF")
        connection.executescript(_TABLES)
        done = number = 0
        while done < size:
            rows = [_message(number + k, rng, pool) for k in range(_BATCH)]
            vectors = [(number + k, number + k, rng.randbytes(1_536)) for k in range(0, _BATCH, 3)]
            connection.executemany("INSERT INTO messages VALUES (?,?,?,?,?)", rows)
            connection.executemany("INSERT INTO vectors VALUES (?,?,?)", vectors)
            connection.commit()
            number += _BATCH
            done += sum(len(row[4]) + 60 for row in rows) + 1_560 * len(vectors)
        if keeps_log:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            _update(connection, range(1, number, 400), rng, pool)

    _in_child(fill)


def change_rows(path: Path, rng: random.Random, pool: Pool, *, share: float, kind: str) -> int:
    """Give a share of all messages new text, and return how many.

    Args:
        path: the database.
        rng: what is drawn.
        pool: where text comes from.
        share: of all rows, 0 to 1.
        kind: ``recent``, the newest ones; or ``scattered``, drawn from all.
    """
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        [[count]] = connection.execute("SELECT count(*) FROM messages").fetchall()
    connection.close()
    changed = max(1, int(count * share))
    rows = range(count - changed, count)
    chosen = sorted(rng.sample(range(count), changed)) if kind == "scattered" else list(rows)

    def change() -> None:
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA synchronous=OFF")
        _update(connection, chosen, rng, pool)

    _in_child(change)
    return changed


def _message(number: int, rng: random.Random, pool: Pool) -> tuple[int, str, int, str, str]:
    size = int(max(40, min(16_000, rng.lognormvariate(7.1, 0.9))))
    role = rng.choice(("user", "assistant", "tool"))
    return number, f"s{number // 60:06d}", number * 7, role, pool.text(rng, size)


def _update(
    connection: sqlite3.Connection, rows: list[int] | range, rng: random.Random, pool: Pool
) -> None:
    for row in rows:
        connection.execute(
            "UPDATE messages SET content = ? WHERE id = ?", (_message(row, rng, pool)[4], row)
        )
    connection.commit()


def _in_child(work: Callable[[], None]) -> None:
    """Run in a child that ends without closing, so that a log stays where there is one."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError("a database of the corpus could not be written")
