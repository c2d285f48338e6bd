"""What the runner asks of an implementation, and what both adapters share.

An adapter turns a vector's inputs into calls of one implementation and its answer into an
`Outcome`. It holds no check of its own: what it does not call, it does not test.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from tests.vectors.vectorfile import Vector, load_shared

SUCCESS = "success"
CHUNK_KINDS = ("data", "list", "tree", "ledger")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an implementation answered.

    ``opened`` counts decryptions with AES-256-GCM behind the inputs that are trusted already;
    ``left`` is what was found at the destination, as a listing.
    """

    code: str
    result: str | None = None
    opened: int | None = None
    left: str = ""


class Adapter(Protocol):
    """One implementation under test."""

    name: str

    def covers(self, vector: Vector) -> bool:
        """Return whether the implementation does what ``vector`` asks for."""
        ...

    def run(self, vector: Vector, folder: Path) -> Outcome:
        """Return the answer to ``vector``; ``folder`` is empty and may be used."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A point of a chain: epoch, sequence, digest."""

    epoch: int
    sequence: int
    digest: bytes


def mark_of(text: str | None) -> Mark | None:
    """Return the mark in an ``anchor`` or ``high-water`` input, None where it is missing."""
    if text is None:
        return None
    epoch, sequence, digest = text.split(" ")
    return Mark(epoch=int(epoch), sequence=int(sequence), digest=bytes.fromhex(digest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A ``pin`` input; only the name where a pack is read without a pin."""

    name: str
    class_number: int = 0
    index_digest: bytes | None = None


def pin_of(text: str) -> Pin:
    """Return the pin in a ``pin`` input."""
    name, *rest = text.split(" ")
    if not rest:
        return Pin(name=name)
    return Pin(name=name, class_number=int(rest[0]), index_digest=bytes.fromhex(rest[1]))


def shared_input(inputs: Mapping[str, str], key: str) -> bytes:
    """Return the bytes of an input that names a shared file."""
    return load_shared(inputs[key].removeprefix("@"))


def chunks_of(vector: Vector) -> list[tuple[int, bytes]]:
    """Return (kind, plaintext) of each chunk in the body of a tree, path or content vector."""
    return [(CHUNK_KINDS.index(p.label.partition(" ")[0]), p.data) for p in vector.parts]


def notation(value: object) -> str:
    """Return a decoded value in diagnostic notation (RFC 8949, 8); text with ASCII escapes."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {notation(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(notation(one) for one in value) + "]"
    match value:
        case bytes():
            return f"h'{value.hex()}'"
        case str():
            return _text(value)
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case _:
            return str(value)


def _text(value: str) -> str:
    units = value.encode("utf-16-be")
    numbers = [int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]
    plain = range(0x20, 0x7F)
    return '"' + "".join(chr(n) if n in plain else f"\\u{n:04x}" for n in numbers) + '"'


def list_roots(destination: Path, roots: Iterable[bytes]) -> str:
    """Return the listing of the restored ``roots`` below ``destination`` (spec/vectors.md)."""
    base = os.fsencode(destination)
    return "".join(line for root in sorted(roots) for line in _iter_lines(base + root, root))


def _iter_lines(path: bytes, shown: bytes) -> Iterator[str]:
    about = os.lstat(path)
    size, value, letter = 0, "-", ""
    if stat.S_ISREG(about.st_mode):
        letter, size = "f", about.st_size
        value = sha256(Path(os.fsdecode(path)).read_bytes()).hexdigest()
    elif stat.S_ISDIR(about.st_mode):
        letter = "d"
    elif stat.S_ISLNK(about.st_mode):
        letter, value = "l", os.readlink(path).hex()
    if letter:
        mode = stat.S_IMODE(about.st_mode)
        yield f"{letter} {mode:o} {about.st_mtime_ns} {size} {value} {shown.hex()}\n"
    if letter == "d":
        for name in sorted(os.listdir(path)):
            yield from _iter_lines(os.path.join(path, name), shown.rstrip(b"/") + b"/" + name)


def listing_result(listing: str) -> str:
    """Return a listing as it stands in a vector's result."""
    count = listing.count("\n")
    return f"lines={count} listing={sha256(listing.encode('ascii')).hexdigest()}"


def restored_result(destination: Path, roots: Iterable[bytes]) -> str:
    """Return the listing of a whole restore, and how many names share their inode."""
    roots, base = list(roots), os.fsencode(destination)
    files = [
        os.path.join(at, name)
        for root in roots
        for at, _, names in os.walk(base + root)
        for name in names
    ]
    linked = sum(os.lstat(path).st_nlink > 1 for path in files)
    return f"{listing_result(list_roots(destination, roots))} linked={linked}"


def things_in(folder: Path) -> str:
    """Return the paths of all files, links and special files below ``folder``."""
    base = os.fsencode(folder)
    found = [os.path.join(at, name) for at, _, names in os.walk(base) for name in names]
    return "\n".join(sorted(repr(path[len(base) :]) for path in found))
