"""Text of the machine it runs on, frozen in one file so that later runs give the same bytes.

Takes what Python and the system's packages installed, without what the exclusion policy would
take out of a snapshot: all programs must keep the same bytes, or the comparison is unfair.
Source: requirements of the benchmark (tests/README.md). Start at `Pool`.
"""

import hashlib
import json
import mmap
import os
import random
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from durarepo.policy.decide import ContentPolicy
from durarepo.policy.rules import Decision
from durarepo.policy.scanner import open_engine

SYSTEM_TEXT = (
    sysconfig.get_paths()["stdlib"],
    sysconfig.get_paths()["purelib"],
    "/usr/lib/python3",
    "/usr/include",
    "/usr/share/doc",
    "/usr/share/perl",
)
SUFFIXES = frozenset(
    {
        *(".c", ".cfg", ".cpp", ".css", ".h", ".hpp", ".html", ".js", ".json", ".md", ".pm"),
        *(".py", ".pyi", ".rs", ".rst", ".toml", ".ts", ".txt"),
    }
)
_FILE_MAX_BYTES = 400_000
_POOL_MAX_BYTES = 400_000_000
_LINE_SEARCH_BYTES = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One file of the pool: its name, and where its bytes stand."""

    name: str
    offset: int
    size: int


class Cleaner:
    """Asks the policy whether a file of this name and content would be kept as it is."""

    def __init__(self) -> None:
        self._policy = ContentPolicy(open_engine())

    def keeps(self, name: str, data: bytes) -> bool:
        """Return whether nothing would be left out or replaced."""
        return self._policy.judge(os.fsencode(name), data).decision is Decision.INCLUDE


class Pool:
    """Real text, whole files or runs of lines, every piece of it clean."""

    def __init__(self, folder: Path, roots: tuple[str, ...] = SYSTEM_TEXT) -> None:
        """Open the pool in ``folder``; make it from ``roots`` if it is not there."""
        self.cleaner = Cleaner()
        if not (folder / "pool.json").exists():
            _freeze(folder, roots, self.cleaner)
        rows: list[list[str | int]] = json.loads((folder / "pool.json").read_text())
        self.pieces = [Piece(name=str(a), offset=int(b), size=int(c)) for a, b, c in rows]
        with (folder / "pool.bin").open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def whole(self, piece: Piece) -> bytes:
        """Return all bytes of one file."""
        return self._map[piece.offset : piece.offset + piece.size]

    def lines(self, rng: random.Random, size: int) -> bytes:
        """Return about ``size`` bytes of whole lines that the policy keeps."""
        size = min(size, len(self._map) // 2)
        while True:
            start = rng.randrange(len(self._map) - size)
            newline = self._map.find(b"\n", start, start + _LINE_SEARCH_BYTES)
            start = newline + 1 if newline >= 0 else start
            data = self._map[start : start + size]
            data = data[: data.rfind(b"\n") + 1] or data.replace(b"=", b" ")
            if self.cleaner.keeps("piece.txt", data):
                return data

    def text(self, rng: random.Random, size: int) -> str:
        """Return `lines` as text."""
        return self.lines(rng, size).decode("utf-8", "replace")

    def mixed(self, rng: random.Random, size: int) -> bytes:
        """Return a file made of runs of lines of several files."""
        parts: list[bytes] = []
        while size > 0:
            parts.append(self.lines(rng, min(max(size, 64), rng.randrange(300, 6_000))))
            size -= len(parts[-1])
        return b"".join(parts)


def _freeze(folder: Path, roots: tuple[str, ...], cleaner: Cleaner) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[tuple[str, int, int]] = []
    seen: set[bytes] = set()
    offset = 0
    with (folder / "pool.bin").open("wb") as out:
        for name, data in _iter_text(roots):
            digest = hashlib.blake2b(data, digest_size=16).digest()
            if digest in seen or not cleaner.keeps(name, data):
                continue
            seen.add(digest)
            out.write(data)
            rows.append((name, offset, len(data)))
            offset += len(data)
            if offset > _POOL_MAX_BYTES:
                break
    (folder / "pool.json").write_text(json.dumps(rows))


def _iter_text(roots: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    for root in roots:
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(set(folders) - {"__pycache__"})
            for name in sorted(names):
                path = Path(folder, name)
                if path.suffix not in SUFFIXES and name != "copyright":
                    continue
                if path.is_symlink() or not path.is_file():
                    continue
                data = path.read_bytes()
                if 0 < len(data) <= _FILE_MAX_BYTES:
                    yield os.path.relpath(path, "/"), data
