"""A stream on disk whose objects an independent writer made, so that they may say anything.

`Scene` lays out what `tests/interop/miniwriter.py` holds in memory as a repository with keys and
state. Keys follow from a seed and open nothing outside a test.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from durarepo.core.names import ObjectName
from durarepo.format.keytext import encode_key
from durarepo.ingest import VerifiedManifest
from durarepo.local.catalog import Catalog
from durarepo.local.places import Places
from durarepo.repository.chain import Chain
from durarepo.repository.openpack import PackOpener
from durarepo.repository.repository import Repository, open_repository
from durarepo.store.localdir import LocalDir
from tests.interop import miniwriter as mini

ROOT = b"/srv/notes"
NOW = 1_800_000_100
"""A moment at which what the writer makes is valid."""


@dataclass
class Scene:
    """One stream below ``folder``; ``stream`` is the writer's view of it."""

    folder: Path
    stream: mini.Repository = field(default_factory=mini.Repository)

    @property
    def places(self) -> Places:
        """Where the three folders lie."""
        base = bytes(self.folder)
        return Places(
            stream=self.stream.stream,
            repository=base + b"/repository",
            keys=base + b"/keys",
            state=base + b"/state/notes",
        )

    def lay_out(self, *, roots: tuple[bytes, ...] = (ROOT,), identity: bool = True) -> Places:
        """Write objects, keys and configuration as the writer has them now."""
        places = self.places
        self.stream.write(self.folder / "repository" / "objects")
        text = f'stream = "{self.stream.stream}"\ncompartment = "{self.stream.compartment}"\n'
        text += "".join(f'[[root]]\npath = "{root.decode()}"\n' for root in roots)
        (self.folder / "repository" / "stream.toml").write_text(text)
        (self.folder / "state" / "notes").mkdir(parents=True, exist_ok=True)
        keys = self.folder / "keys"
        keys.mkdir(mode=0o700, exist_ok=True)
        lines = {
            "naming.key": encode_key("naming", self.stream.naming[self.stream.epoch]),
            "locator.key": encode_key("locator", self.stream.locator),
            "owner.pub": encode_key("owner-public", self.stream.owner.public),
            "signing.key": encode_key("signing", self.stream.signers[self.stream.epoch].secret),
        }
        if identity:
            lines["identity.key"] = encode_key("identity", self.stream.data[0].seed)
        for name, line in lines.items():
            (keys / name).write_text(line)
            (keys / name).chmod(0o600)
        return places

    def open(self, *, roots: tuple[bytes, ...] = (ROOT,), identity: bool = True) -> Repository:
        """Lay everything out and open it."""
        return open_repository(self.lay_out(roots=roots, identity=identity))

    def snapshot(self, children: Mapping[bytes, mini.Node], *, root: bytes = ROOT) -> None:
        """Let the writer make a manifest of one root."""
        self.stream.snapshot({root: mini.directory(children)})

    def object_path(self, name: str) -> Path:
        """Return where an object lies."""
        return self.folder / "repository" / "objects" / name[:2] / name


def verified(repository: Repository, sequence: int = 1, *, now: int = NOW) -> VerifiedManifest:
    """Return a manifest after full ingest."""
    return Chain(repository).verified(sequence, now=now)


def fill_catalog(repository: Repository, manifest: VerifiedManifest) -> None:
    """Note every pinned pack in the catalogue, as a run that wrote them would have."""
    opener = PackOpener(repository)
    catalog: Catalog = repository.catalog
    with catalog.transaction():
        for pin in manifest.statement.pins:
            catalog.add_pack(pin, opener.open(pin).index.ids)


class RecordingStore:
    """Reads from a folder and notes each read: (name, offset, length)."""

    def __init__(self, store: LocalDir) -> None:
        self._store = store
        self.reads: list[tuple[ObjectName, int, int | None]] = []
        self.put_new = store.put_new
        self.close = store.close
        self.stat = store.stat
        self.iter_names = store.iter_names

    def read(self, name: ObjectName, offset: int = 0, length: int | None = None) -> bytes:
        self.reads.append((name, offset, length))
        return self._store.read(name, offset, length)

    @property
    def touched(self) -> set[ObjectName]:
        """The objects of which anything was read."""
        return {name for name, _, _ in self.reads}
