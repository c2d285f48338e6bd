"""How the golden repositories were made, once, by the build of that day. Never run it again.

It stands here so that one can see what they hold: what a later build cannot read, an earlier one
wrote in earnest. A new version of the format gets repositories of its own, under another name.
It was run as root: `python -m tests.compat.make FOLDER`, where FOLDER was fixtures/repos; what a
later build added, with `later` behind it.
"""

import hmac
import os
import shutil
import socket
import sqlite3
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from hashlib import shake_256
from pathlib import Path
from typing import Any
from unittest import mock

from durarepo.core.progress import SilentProgress
from durarepo.crypto import primitives
from durarepo.format.keytext import encode_key
from durarepo.local.keyring import load_owner
from durarepo.local.places import Places, bases_of, places_of
from durarepo.operations import init
from durarepo.operations.init import InitRequest, initialise
from durarepo.operations.registry import (
    DraftRequest,
    admit_registry,
    draft_registry,
    sign_registry,
)
from durarepo.operations.rotation import rotate_naming, rotate_signing
from durarepo.operations.snapshot import SnapshotRequest, snapshot
from durarepo.repository.repository import open_repository
from tests.compat.golden import MADE, listing_of
from tests.interop import minireader

STREAM, WRITTEN = "golden", 1_700_000_000
SOURCE = Path("/srv/golden")


def _key(path: Path) -> bytes:
    return bytes.fromhex(path.read_text().split()[-2])


def _bytes(seed: str, length: int) -> bytes:
    return shake_256(seed.encode()).digest(length)


def _settle(root: Path) -> None:
    """Give everything a time of its own, the deepest first."""
    for number, path in enumerate(sorted(root.rglob("*"), reverse=True)):
        os.utime(path, ns=(0, WRITTEN * 10**9 + number * 1000 + 7), follow_symlinks=False)
    os.utime(root, (0, WRITTEN))


def _small(root: Path, word: str = "first") -> None:
    (root / "memory").mkdir(exist_ok=True)
    (root / "notes.md").write_text(f"# Notes\n\n{word}\n")
    (root / "memory" / "log.jsonl").write_text('{"role": "user"}\n' * 40)


def _everything(root: Path) -> None:
    _small(root)
    names = (b"\xff\xfe\x80", b"line\nfeed", b"trailing ", b"n" * 255, b"\xc3\xa4", b"-rf", b"...")
    for name in names:
        Path(os.fsdecode(bytes(root) + b"/" + name)).write_bytes(name)
    (root / "empty").write_bytes(b"")
    (root / "hollow").mkdir()
    (root / "deep" / "er" / "and").mkdir(parents=True)
    (root / "deep" / "er" / "and" / "more").write_bytes(b"deep")
    (root / "large").write_bytes(_bytes("large", 180_000))
    with (root / "sparse").open("wb") as file:
        file.write(b"begin")
        file.truncate(400_000)
        file.seek(300_000)
        file.write(b"end")
    os.link(root / "notes.md", root / "linked.md")
    os.symlink("notes.md", root / "link")
    os.symlink(b"../\xff gone", bytes(root) + b"/dangling")
    os.mkfifo(root / "pipe", 0o640)
    with closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind(str(root / "socket"))
    os.mknod(root / "char", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.mknod(root / "block", stat.S_IFBLK | 0o600, os.makedev(7, 0))
    (root / "program").write_bytes(b"#!/bin/sh\n")
    (root / "program").chmod(0o4755)
    os.setxattr(root / "program", b"user.origin", b"golden")
    os.setxattr(root / "notes.md", b"user.long", _bytes("value", 3000))
    os.chown(root / "program", 1234, 5678)


def _database(root: Path, rows: int) -> None:
    with closing(sqlite3.connect(root / "agent.db")) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [(f"row {n}",) for n in range(rows)])
        connection.commit()


class Making:
    """One repository while it is made."""

    def __init__(self, base: Path, **request: Any) -> None:
        self.base, self.clock = base, MADE
        shutil.rmtree(SOURCE, ignore_errors=True)
        SOURCE.mkdir(parents=True)
        bases = bases_of({"HOME": str(base / "home")}, user_id=1)
        self.places: Places = places_of(STREAM, bases=bases)
        roots = (bytes(SOURCE),)
        initialise(
            InitRequest(stream=STREAM, roots=roots, places=self.places, **request), now=MADE - 3600
        )

    def snapshot(self, fill: Callable[[Path], None], **request: Any) -> None:
        """Change the source and take a snapshot, a day after the last one."""
        fill(SOURCE)
        _settle(SOURCE)
        self.clock += 86_400
        with open_repository(self.places) as repository:
            snapshot(repository, SnapshotRequest(**request), clock=lambda: self.clock,
                     progress=SilentProgress())  # fmt: skip

    def rotate(self, change: Callable[..., object]) -> None:
        """Rotate a key an hour after the last snapshot."""
        with open_repository(self.places) as repository:
            change(repository, clock=lambda: self.clock + 3600)

    def revoke(self, sequence: int) -> None:
        """Revoke the signer behind a manifest, an hour after the last snapshot."""
        out = self.base / "draft"
        with open_repository(self.places) as repository:
            signer = next(repository.state.iter_runs()).signer.hex()
            request = DraftRequest(out=bytes(out), revoke=f"{signer}@{sequence}")
            draft_registry(repository, request, clock=lambda: self.clock + 3600)
        owner = load_owner(self.places.keys + b"/owner.key")
        text = sign_registry(out.read_bytes(), owner).text or b""
        with open_repository(self.places) as repository:
            admit_registry(repository, text, clock=lambda: self.clock + 3600)

    def restored(self, keys: Path) -> tuple[str, ...]:
        """Return what the independent reader restores."""
        held = minireader.Held(
            stream=STREAM,
            locator=_key(keys / "locator.key"),
            owner_digest=primitives.sha256(_key(keys / "owner.pub")),
            identities=[_key(keys / "identity.key")],
        )
        objects = Path(os.fsdecode(self.places.objects))
        minireader.restore(objects, self.base / "restored", held, self.clock)
        return listing_of(bytes(self.base / "restored"), [bytes(SOURCE)])

    def keep(self, target: Path, *, is_as_source: bool = True, away: Path | None = None) -> None:
        """Write the golden repository, with what must come back.

        That is the source as it was; where a copy differs from it (databases, a partial
        manifest), it is what the second reader restored.
        """
        manifests = (self.clock - MADE) // 86_400
        (target / "keys").mkdir(parents=True)
        shutil.copytree(os.fsdecode(self.places.objects), target / "objects")
        shutil.copy(os.fsdecode(self.places.configuration), target / "stream.toml")
        for folder in (Path(os.fsdecode(self.places.keys)), *([away] if away else [])):
            for file in folder.glob("*.key"):
                shutil.copy(file, target / "keys")
            for file in folder.glob("owner.pub"):
                shutil.copy(file, target / "keys")
        (target / "keys" / "owner.key").unlink(missing_ok=True)
        listing = (
            listing_of(b"", [bytes(SOURCE)]) if is_as_source else self.restored(target / "keys")
        )
        about(target, manifests, "success", listing)


def about(target: Path, manifests: int, code: str, listing: tuple[str, ...]) -> None:
    """Write what must come back."""
    head = f"stream: {STREAM}\nmanifests: {manifests}\ncode: {code}\n\n"
    (target / "about.txt").write_text(head + "".join(f"{line}\n" for line in listing), "ascii")


def _folders(root: Path, word: str) -> None:
    for number in range(6):
        (root / f"day-{number}").mkdir(exist_ok=True)
        (root / f"day-{number}" / "notes.md").write_text(f"{word} {number}\n")


def _partial(making: Making) -> None:
    making.snapshot(lambda root: _folders(root, "first"))
    seconds = iter([0.0] * 6)
    with mock.patch.object(time, "monotonic", lambda: next(seconds, 1000.0)):
        making.snapshot(lambda root: _folders(root, "second"), budget_seconds=10, partial=True)


def _slot(key: bytes, label: bytes, place: bytes) -> str:
    subkey = hmac.digest(key, b"durarepo/1/" + label + b"\1", "sha256")
    return hmac.digest(subkey, place, "sha256").hex()


def _damages(plain: Path) -> dict[str, tuple[str, Callable[[Path], object]]]:
    """Return what is done to which object of the plain repository, and what readers answer."""
    registry = b"\3" + bytes(4) + (1).to_bytes(8) + b"\0"
    registry_name = _slot(_key(plain / "keys/locator.key"), b"registry-slot", registry)
    envelopes = [b"\1" + (1).to_bytes(4) + n.to_bytes(8) + b"\0" for n in (1, 2)]
    first, last = (_slot(_key(plain / "keys/naming.key"), b"slot", one) for one in envelopes)
    paths = {path.name: path for path in (plain / "objects").glob("*/*")}
    packs = sorted(set(paths) - {registry_name, first, last})

    def flipped(name: str, at: int) -> Callable[[Path], object]:
        def change(path: Path) -> object:
            data = bytearray(path.read_bytes())
            data[at] ^= 1
            return path.write_bytes(data)

        return lambda base: change(base / "objects" / name[:2] / name)

    def of(name: str, change: Callable[[Path], object]) -> Callable[[Path], object]:
        return lambda base: change(base / "objects" / name[:2] / name)

    half = os.path.getsize(paths[packs[0]]) // 2
    return {
        "pack-missing": ("integrity.pack-missing", of(packs[0], Path.unlink)),
        "pack-short": ("integrity.object-size", of(packs[0], lambda path: os.truncate(path, half))),
        "pack-header": ("integrity.pack-header", flipped(packs[0], 40)),
        "pack-frame": ("integrity.frame-digest", flipped(packs[0], 65 + 4 * 1168 + 10)),
        "pack-index": ("integrity.trailer", flipped(packs[0], -10)),
        "envelope": ("integrity.mark", flipped(first, 9000)),
        "envelope-missing": ("integrity.gap", of(first, Path.unlink)),
        "registry": ("integrity.seal", flipped(registry_name, 20000)),
    }


def _three(making: Making) -> None:
    def day(number: int) -> Callable[[Path], None]:
        def fill(root: Path) -> None:
            _small(root, f"day {number}")
            _database(root, number)

        return fill

    for number in (1, 2, 3):
        making.snapshot(day(number))


def _make_damaged(base: Path, target: Path) -> None:
    small = Making(base / "small")
    small.snapshot(_small)
    small.snapshot(_small)
    small.keep(base / "whole")
    for name, (code, damage) in _damages(base / "whole").items():
        folder = target / f"v1-damaged-{name}"
        shutil.copytree(base / "whole", folder)
        damage(folder)
        about(folder, 2, code, ())


def later(target: Path) -> None:
    """Make those that came with epochs: keys rotated twice, and a revoked signer."""

    def day(number: int) -> Callable[[Path], None]:
        return lambda root: _small(root, f"day {number}")

    with tempfile.TemporaryDirectory() as temporary:
        epochs = Making(Path(temporary) / "epochs")
        epochs.snapshot(day(1))
        epochs.rotate(rotate_signing)
        epochs.snapshot(day(2))
        epochs.rotate(rotate_naming)
        epochs.snapshot(day(3))
        epochs.keep(target / "v1-epochs")

        revoked = Making(Path(temporary) / "revoked")
        revoked.snapshot(day(1))
        revoked.snapshot(day(2))
        revoked.clock -= 86_400 - 600
        revoked.snapshot(lambda root: _small(root, "written by a thief"))
        revoked.clock -= 600
        revoked.revoke(2)
        revoked.snapshot(day(3))
        revoked.keep(target / "v1-revoked")
    shutil.rmtree(SOURCE)


def main(target: Path) -> None:
    """Make all of the first ones."""
    others = [primitives.recipient_of(_bytes(f"recipient {n}", 32)) for n in (1, 2)]
    recipients = tuple(encode_key("recipient", one) for one in others)
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        plain = Making(base / "plain")
        plain.snapshot(_everything)
        plain.keep(target / "v1-plain")

        three = Making(base / "three")
        _three(three)
        three.keep(target / "v1-three", is_as_source=False)

        away = base / "away"
        away.mkdir(mode=0o700)
        writing = Making(base / "put", put_only=True, out=bytes(away))
        writing.snapshot(_small)
        writing.keep(target / "v1-put-only", away=away)

        with mock.patch.object(init, "_STANZAS", 8):  # as the owner's next registry may say
            eight = Making(base / "eight", recipients=recipients)
            eight.snapshot(_small)
        eight.keep(target / "v1-eight-stanzas")

        partial = Making(base / "partial")
        _partial(partial)
        partial.keep(target / "v1-partial", is_as_source=False)

        _make_damaged(base, target)
    shutil.rmtree(SOURCE)


if __name__ == "__main__":
    (later if sys.argv[2:] == ["later"] else main)(Path(sys.argv[1]))
