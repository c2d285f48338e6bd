"""A stream of its own below one folder: made, snapshotted and read back by an independent reader.

`Stream` goes through the operations as the command line does, and reads back through
`tests/interop/minireader.py`, which shares no code with them. Keys are generated.
"""

import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from durarepo.core.entries import Entry
from durarepo.core.progress import SilentProgress
from durarepo.format.keytext import parse_key
from durarepo.format.manifest import LedgerLine, Nested, Statement
from durarepo.local.places import Places, bases_of, places_of
from durarepo.operations.init import InitRequest, initialise
from durarepo.operations.snapshot import SnapshotRequest, SnapshotResult, snapshot
from durarepo.repository.chain import Chain
from durarepo.repository.reader import ChunkReader
from durarepo.repository.repository import Repository, open_repository
from durarepo.repository.trees import iter_directory
from tests.interop import minireader

Seen = tuple[int, int, int, bytes]
"""Type, mode, modification time in nanoseconds, and content or target of one path."""


def later() -> int:
    """Give the live time ten seconds ahead, at which what was just made counts as settled."""
    return int(time.time()) + 10


@dataclass
class Stream:
    """One stream below ``base``; its root is ``base/root`` unless other roots are given."""

    base: Path
    name: str = "notes"
    roots: tuple[bytes, ...] = ()
    put_only: bool = False
    clock: Callable[[], int] = later
    restored: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Make the folders and the stream."""
        if not self.roots:
            self.root.mkdir(parents=True, exist_ok=True)
            self.roots = (bytes(self.root),)
        if not os.path.lexists(self.places.configuration):
            out = bytes(self.base / "away") if self.put_only else None
            if out is not None:
                os.makedirs(out, mode=0o700)
            request = InitRequest(
                stream=self.name,
                roots=self.roots,
                places=self.places,
                put_only=self.put_only,
                out=out,
            )
            initialise(request, now=int(time.time()))

    @property
    def root(self) -> Path:
        """The only root."""
        return self.base / "root"

    @property
    def places(self) -> Places:
        """Where repository, keys and state lie."""
        home = bytes(self.base / self.name / "home")
        return places_of(self.name, bases=bases_of({"HOME": home.decode()}, user_id=1))

    @property
    def objects(self) -> Path:
        """The folder of the objects."""
        return Path(os.fsdecode(self.places.objects))

    def object_path(self, name: str) -> Path:
        """Where an object lies."""
        return self.objects / name[:2] / name

    def object_files(self) -> list[Path]:
        """Every stored object."""
        return sorted(path for path in self.objects.glob("??/*") if path.is_file())

    def open(self) -> Repository:
        """Open the repository."""
        return open_repository(self.places)

    def snapshot(self, **request: object) -> SnapshotResult:
        """Take a snapshot, as a run of its own."""
        with self.open() as repository:
            return snapshot(
                repository,
                SnapshotRequest(**request),  # type: ignore[arg-type]  # tests name any field
                clock=self.clock,
                progress=SilentProgress(),
            )

    def lose(self, *, catalog: bool = False, state: bool = False, journal: bool = False) -> None:
        """Delete what may be deleted at any time."""
        if catalog:
            for suffix in (b"", b"-wal", b"-shm"):
                if os.path.lexists(self.places.catalog + suffix):
                    os.unlink(self.places.catalog + suffix)
        if state:
            shutil.rmtree(self.places.state, ignore_errors=True)
        if journal:
            shutil.rmtree(self.places.journal, ignore_errors=True)

    def key(self, kind: str, file: str) -> bytes:
        """Return the bytes of a key."""
        for folder in (os.fsdecode(self.places.keys), self.base / "away"):
            path = Path(folder) / file
            if path.exists():
                return parse_key(kind, path.read_bytes())
        raise FileNotFoundError(file)

    def held(self) -> minireader.Held:
        """Return what the independent reader is given."""
        owner = self.key("owner-public", "owner.pub")
        return minireader.Held(
            stream=self.name,
            locator=self.key("locator", "locator.key"),
            owner_digest=minireader._sha(owner),
            identities=[self.key("identity", "identity.key")],
        )

    def restore(self, sequence: int = 0) -> Path:
        """Restore a manifest, the head by default, with the independent reader."""
        self.restored += 1
        target = self.base / f"restored-{self.restored}"
        minireader.restore(
            self.objects, target, self.held(), self.clock(), sequence=sequence, archival=True
        )
        return target

    def restored_root(self, sequence: int = 0) -> Path:
        """Restore, and return where the only root stands in what was restored."""
        return self.restore(sequence) / os.fsdecode(self.roots[0]).lstrip("/")

    def statements(self) -> dict[int, Statement]:
        """Return every statement, after full ingest of the whole chain."""
        with self.open() as repository:
            chain = Chain(repository).all_verified(now=self.clock())
            return {number: one.statement for number, one in chain.items()}

    def nested(self, sequence: int = 0) -> Nested:
        """Return the nested part of a manifest, the head's by default."""
        with self.open() as repository:
            chain = Chain(repository)
            found = chain.all_verified(now=self.clock())
            return chain.nested(found[sequence or max(found)])

    def entries(self, sequence: int = 0) -> dict[bytes, Entry]:
        """Return every entry of a manifest by its absolute path."""
        with self.open() as repository:
            chain = Chain(repository)
            found = chain.all_verified(now=self.clock())
            manifest = found[sequence or max(found)]
            reader = ChunkReader(repository, manifest)
            told: dict[bytes, Entry] = {}
            waiting = [(root.path, root.entry) for root in chain.nested(manifest).roots]
            while waiting:
                path, entry = waiting.pop()
                told[path] = entry
                if entry.tree is not None:
                    below = iter_directory(reader, entry.tree)
                    waiting += [(path.rstrip(b"/") + b"/" + one.name, one) for one in below]
            return told

    def check_restores(self, sequence: int = 0) -> None:
        """Compare the root with what an independent reader restores, path by path."""
        assert seen(bytes(self.restored_root(sequence))) == seen(bytes(self.root))


def iter_paths(root: bytes) -> Iterator[bytes]:
    """Yield the root and every path below it."""
    waiting = [root]
    while waiting:
        path = waiting.pop()
        yield path
        if stat.S_ISDIR(os.lstat(path).st_mode):
            waiting += [path + b"/" + os.fsencode(name) for name in os.listdir(path)]


def seen(root: bytes) -> dict[bytes, Seen]:
    """Return what a tree shows, by path below ``root``; sockets and devices left out."""
    found: dict[bytes, Seen] = {}
    for path in iter_paths(root):
        status = os.lstat(path)
        kind = stat.S_IFMT(status.st_mode)
        content = b""
        if kind == stat.S_IFREG:
            with open(path, "rb") as file:
                content = file.read()
        elif kind == stat.S_IFLNK:
            content = os.readlink(path)
        elif kind not in (stat.S_IFDIR, stat.S_IFIFO):
            continue
        mode = 0 if kind == stat.S_IFLNK else stat.S_IMODE(status.st_mode) & 0o1777
        found[path[len(root) :]] = kind, mode, status.st_mtime_ns, content
    return found


def fill(folder: Path, files: dict[str, bytes]) -> None:
    """Write files below a folder, their parents made."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def omissions(result: SnapshotResult) -> list[LedgerLine]:
    """Return the lines of what should have been kept and was not."""
    return [line for line in result.left_out if line.kind == 1]


def kill_before_publishing(stream: Stream) -> set[str]:
    """End a snapshot when all but its manifest is stored; return the names of all objects."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("durarepo.operations.snapshot.publish", _dies)
        with pytest.raises(KeyboardInterrupt):
            stream.snapshot()
    return {path.name for path in stream.object_files()}


def _dies(*_: object, **__: object) -> None:
    raise KeyboardInterrupt
