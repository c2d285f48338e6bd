"""The trees that are backed up, drawn by seed, and what one day changes in them.

The same name and seed give the same tree on one machine; only the salts in the logs of databases
that look as under a running agent, and the inodes in a git index, are different each time.
Source: the measured shape of agents' working state. Start at `make`; `days.change` is the day.
"""
# ruff: noqa: S311 - corpora are drawn by seed, and nothing in them is secret

import json
import math
import os
import random
import re
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

from tests.bench.databases import make_database
from tests.bench.pool import Pool

NOW = 1_760_000_000
"""The corpora's present, in seconds."""

SCALES = {"tiny": 0.01, "small": 1.0, "medium": 10.0}
FIXED = {"many": "files-300000", "million": "files-1000000"}
WORDS = (
    *("alpha", "audit", "budget", "design", "draft", "index", "memo", "memory", "merge", "metrics"),
    *("note", "outline", "parser", "plan", "prompt", "release", "report", "research", "retry"),
    *("review", "schema", "summary", "tool", "vector"),
)
_DAY = 86_400
_TREE_FILES = 6_200
_NOTES = 2_600
_RESULTS = 1_300
_SESSIONS = 80
_IMAGES = 65
_DATABASE_BYTES = 48_000_000
_FILES_PER_FOLDER = 100


def make(name: str, root: Path, pool: Pool, *, seed: int = 1) -> None:
    """Make the corpus ``name`` in the new folder ``root``.

    Args:
        name: tiny, small, medium, many, million, big, sqlite, ``files-N``, or ``bytes-N`` (MB).
        root: does not exist yet.
        pool: where text comes from.
        seed: what else than the name decides what is drawn.

    Raises:
        ValueError: no such corpus.
    """
    name = FIXED.get(name, name)
    rng = random.Random(f"{seed}/{name}")
    sized = re.fullmatch(r"(files|bytes)-(\d+)", name)
    root.mkdir(parents=True)
    if name in SCALES:
        _agent(root, pool, rng, SCALES[name])
    elif name == "big":
        _big(root, pool, rng, 512 << 20)
    elif name == "sqlite":
        make_database(root / "memory.sqlite", 1_000_000_000, rng, pool)
    elif sized is not None and sized[1] == "files":
        _many(root, pool, rng, int(sized[2]))
    elif sized is not None:
        _bytes(root, pool, rng, int(sized[2]) * 1_000_000)
    else:
        raise ValueError(f"no corpus is called '{name}'")
    _set_times(root, rng)


def drawn_size(rng: random.Random, mean: int, spread: float, most: int) -> int:
    """Return a size with a long tail (log-normal), at least 40 and at most ``most``."""
    middle = math.log(mean) - spread * spread / 2
    return int(max(40, min(most, rng.lognormvariate(middle, spread))))


def slug(rng: random.Random, words: int = 3) -> str:
    """Return a harmless name."""
    return "-".join(rng.choice(WORDS) for _ in range(words))


def write(path: Path, data: bytes) -> None:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def session_lines(pool: Pool, rng: random.Random, size: int, at: int) -> bytes:
    """Return about ``size`` bytes of an agent's transcript, one JSON object a line."""
    lines: list[bytes] = []
    done = 0
    while done < size:
        at += rng.randrange(1, 90)
        is_result = rng.random() < 0.5
        text = pool.text(rng, drawn_size(rng, 3_000 if is_result else 500, 1.1, 30_000))
        record = {
            "uuid": f"{rng.getrandbits(128):032x}",
            "timestamp": at,
            "type": "user" if is_result else "assistant",
            "cwd": f"/home/agent/{slug(rng, 2)}",
            "message": {"kind": "tool_result" if is_result else "text", "content": text},
        }
        line = json.dumps(record).encode() + b"\n"
        if pool.cleaner.keeps("session.jsonl", line):
            lines.append(line)
            done += len(line)
    return b"".join(lines)


def image(rng: random.Random, size: int) -> bytes:
    """Return something that compresses as little as a picture."""
    return b"\x89PNG\r\n\x1a\n" + zlib.compress(rng.randbytes(size), 0)


def git(repository: Path, *arguments: str) -> None:
    """Run git with fixed names and times."""
    fixed = {"NAME": "agent", "EMAIL": "agent@example.com", "DATE": f"{NOW} +0000"}
    environment = {f"GIT_{who}_{k}": v for who in ("AUTHOR", "COMMITTER") for k, v in fixed.items()}
    environment |= {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/"}
    command = ["git", "-C", str(repository), "-c", "gc.auto=0", "-c", "pack.threads=1"]
    done = subprocess.run([*command, *arguments], env=environment, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"git {arguments[0]} failed: {done.stderr.decode()}")


def edited(pool: Pool, rng: random.Random, data: bytes) -> bytes:
    """Return text after an editor's kind of change."""
    lines = data.split(b"\n")
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(lines))
        lines[at : at + rng.randrange(2)] = [pool.lines(rng, rng.randrange(40, 200)).rstrip()]
    return b"\n".join(lines)


def _agent(root: Path, pool: Pool, rng: random.Random, scale: float) -> None:
    _source_trees(root / "workspace", pool, rng, int(_TREE_FILES * scale))
    kinds: list[tuple[str, int, Callable[[], bytes]]] = [
        ("notes/{0}.md", _NOTES, lambda: pool.mixed(rng, drawn_size(rng, 4_200, 1.0, 90_000))),
        ("results/{0}.txt", _RESULTS, lambda: pool.lines(rng, drawn_size(rng, 7_000, 1, 120_000))),
        (
            "sessions/{0}.jsonl",
            _SESSIONS,
            lambda: session_lines(pool, rng, drawn_size(rng, 600_000, 1.1, 12_000_000), NOW),
        ),
        ("media/{0}.png", _IMAGES, lambda: image(rng, drawn_size(rng, 420_000, 0.8, 4_000_000))),
    ]
    for form, count, content in kinds:
        for number in range(max(2, int(count * scale))):
            place = f"{number % 40:02d}/{slug(rng)}-{number:05d}"
            write(root / form.format(place), content())
    write(root / "media" / "model.bin", rng.randbytes(int(6_000_000 * scale)))
    for number in range(3):
        _git_repository(root / "repos" / f"{slug(rng, 2)}-{number}", pool, rng, scale)
    for name, share in (("memory", 0.62), ("sessions", 0.27), ("events", 0.11)):
        path = root / "db" / f"{name}.sqlite"
        make_database(path, int(_DATABASE_BYTES * scale * share), rng, pool, keeps_log=True)
    (root / "inbox" / "empty").mkdir(parents=True)
    for number in range(20):
        (root / "inbox" / f"link-{number}").symlink_to(f"../notes/{number:02d}")


def _source_trees(root: Path, pool: Pool, rng: random.Random, count: int) -> None:
    """Write files of the pool in projects; once it is used up, mixtures of the same sizes."""
    order = list(range(len(pool.pieces)))
    rng.shuffle(order)
    for number in range(count):
        piece = pool.pieces[order[number % len(order)]]
        is_new = number < len(order)
        data = pool.whole(piece) if is_new else pool.mixed(rng, piece.size)
        name = "-".join(Path(piece.name).parts[-2:])
        if not is_new:
            name = Path(name).stem + ".txt"
        write(root / f"project-{number // 500:03d}" / f"part-{number // 25 % 20:02d}" / name, data)


def _git_repository(root: Path, pool: Pool, rng: random.Random, scale: float) -> None:
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    files = [root / f"src/{number:03d}.py" for number in range(int(100 + 100 * min(scale, 4)))]
    for path in files:
        write(path, pool.mixed(rng, drawn_size(rng, 4_000, 1.0, 60_000)))
    for number in range(10):
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", slug(rng))
        if number == 6:
            git(root, "repack", "-adq")
        for path in rng.sample(files, 6):
            path.write_bytes(edited(pool, rng, path.read_bytes()))
    for hook in sorted((root / ".git" / "hooks").iterdir()):
        hook.unlink()


def _many(root: Path, pool: Pool, rng: random.Random, count: int) -> None:
    for number in range(count):
        folder = root / f"d{number // 10_000:03d}" / f"s{number // _FILES_PER_FOLDER % 100:02d}"
        if number % _FILES_PER_FOLDER == 0:
            folder.mkdir(parents=True)
        (folder / f"f{number:07d}.txt").write_bytes(
            pool.lines(rng, drawn_size(rng, 600, 0.8, 4_000))
        )


def _bytes(root: Path, pool: Pool, rng: random.Random, size: int) -> None:
    """Write files of 50 MB: two of transcripts, then one that does not compress, and so on."""
    for number in range(max(1, size // 50_000_000)):
        if number % 3 == 2:
            write(root / f"part-{number:03d}.bin", rng.randbytes(50_000_000))
        else:
            write(root / f"part-{number:03d}.jsonl", session_lines(pool, rng, 50_000_000, NOW))


def _big(root: Path, pool: Pool, rng: random.Random, size: int) -> None:
    with (root / "sessions.jsonl").open("wb") as file:
        while file.tell() < size:
            file.write(session_lines(pool, rng, 1 << 20, NOW))
    make_database(root / "memory.sqlite", size, rng, pool)
    with (root / "model.bin").open("wb") as file:
        while file.tell() < size:
            file.write(rng.randbytes(1 << 20))
    with (root / "agent.log").open("wb") as file:
        while file.tell() < size:
            file.write(b"".join(_log_lines(pool, rng)))
            file.seek(rng.randrange(8) << 20, os.SEEK_CUR)  # holes, as in a disk image
        file.truncate(file.tell())


def _log_lines(pool: Pool, rng: random.Random) -> list[bytes]:
    at = [f"{NOW + number} {rng.getrandbits(40):010x} " for number in range(4_000)]
    return [head.encode() + pool.lines(rng, 180).replace(b"\n", b" ") + b"\n" for head in at]


def _set_times(root: Path, rng: random.Random) -> None:
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            at = NOW - rng.randrange(300 * _DAY)
            os.utime(os.path.join(folder, name), (at, at), follow_symlinks=False)
