"""The golden repositories: what each holds, how it is laid out, and what must come back.

`fixtures/repos/v1-NAME` holds `stream.toml`, `objects/`, `keys/` (made up for this, protecting
nothing) and `about.txt`: the stream, a fixed time, the code of a damaged one, and the expected
listing, one line an entry. They were made once, by `make.py`, and are never made again.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from durarepo.local.places import Places, bases_of, places_of

REPOS = Path(__file__).resolve().parents[2] / "fixtures" / "repos"
NOW = 1_900_000_000
"""The live time of a restore: 2030, long after every manifest and registry has expired."""

MADE = 1_800_000_000
"""When they were made, by the clock that was given; a manifest a day followed."""

_LETTERS = {
    stat.S_IFREG: "f",
    stat.S_IFDIR: "d",
    stat.S_IFLNK: "l",
    stat.S_IFIFO: "p",
    stat.S_IFSOCK: "s",
    stat.S_IFCHR: "c",
    stat.S_IFBLK: "b",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """One golden repository."""

    name: str
    stream: str
    manifests: int
    code: str
    listing: tuple[str, ...]

    @property
    def fresh(self) -> int:
        """A minute after the last manifest was issued."""
        return MADE + self.manifests * 86_400 + 60

    @property
    def folder(self) -> Path:
        """Where it lies; nothing may be written there."""
        return REPOS / self.name

    def lay_out(self, base: Path) -> Places:
        """Copy it below ``base`` as a user's repository and keys, and return the places."""
        places = places_of(self.stream, bases=bases_of({"HOME": str(base)}, user_id=1))
        for source, target in (("", places.repository), ("keys", places.keys)):
            shutil.copytree(
                self.folder / source, os.fsdecode(target), ignore=shutil.ignore_patterns("keys")
            )
        os.chmod(places.keys, 0o700)
        for file in Path(os.fsdecode(places.keys)).iterdir():
            file.chmod(0o600)
        os.makedirs(places.state, mode=0o700)
        return places

    def key(self, file: str) -> bytes:
        """Return the bytes of a key."""
        return bytes.fromhex((self.folder / "keys" / file).read_text().split()[-2])


def load(name: str) -> Golden:
    """Return the golden repository ``name``."""
    head, _, rest = (REPOS / name / "about.txt").read_text("ascii").partition("\n\n")
    facts = dict(line.split(": ", 1) for line in head.splitlines())
    return Golden(
        name=name,
        stream=facts["stream"],
        manifests=int(facts["manifests"]),
        code=facts["code"],
        listing=tuple(rest.splitlines()),
    )


def names() -> list[str]:
    """Return the names of all golden repositories."""
    return sorted(path.name for path in REPOS.glob("v1-*"))


def listing_of(base: bytes, roots: list[bytes]) -> tuple[str, ...]:
    """Return a line for each entry of the ``roots`` as they lie below the folder ``base``.

    Letter of the type, permission bits, modification time, size, SHA-256 or target, names that
    share the inode, path.
    """
    return tuple(line for root in roots for line in _iter_lines(base, root))


def _iter_lines(base: bytes, path: bytes) -> Iterator[str]:
    place = base + path
    about = os.lstat(place)
    letter, value, size = _LETTERS[stat.S_IFMT(about.st_mode)], "-", 0
    if letter == "f":
        size, value = about.st_size, sha256(Path(os.fsdecode(place)).read_bytes()).hexdigest()
    elif letter == "l":
        value = os.readlink(place).hex()
    mode = 0o777 if letter == "l" else about.st_mode & 0o777
    links = about.st_nlink if letter == "f" else 1
    yield f"{letter} {mode:o} {about.st_mtime_ns} {size} {value} {links} {path.hex()}"
    if letter == "d":
        for name in sorted(os.listdir(place)):
            yield from _iter_lines(base, path + b"/" + name)
