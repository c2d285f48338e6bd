"""durarepo under the vectors: each kind through the functions that its operations use.

Decryptions are counted at the one door through which durarepo decrypts. Whole repositories go
through `checkout` itself. What durarepo does not do (`covers`) the independent reader answers.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from durarepo.core.entries import ChunkList, Entry, FileType
from durarepo.core.errors import DurarepoError, IntegrityError, TrustError
from durarepo.core.limits import CHUNK_MAX_BYTES, KEY_BYTES, SIZE_CLASSES
from durarepo.core.names import ChunkId, Digest, ObjectName
from durarepo.core.secret import Secret
from durarepo.crypto import primitives
from durarepo.format.canonical import decode
from durarepo.format.keytext import parse_key
from durarepo.format.layout import ChunkKind, Compartment, Seal
from durarepo.format.manifest import Pin, component_index
from durarepo.format.tree import parse_entry
from durarepo.ingest import (
    GENESIS,
    Anchor,
    Expected,
    HighWater,
    VerifiedManifest,
    VerifiedRegistry,
    admit,
    check_floor,
    check_registry_time,
    check_restorable,
    open_manifest,
    open_nested,
    open_registry,
)
from durarepo.local.configuration import StreamConfig
from durarepo.local.keyring import Keyring
from durarepo.local.places import Places
from durarepo.local.statefiles import StateFiles
from durarepo.operations.archival import checkout_archival
from durarepo.operations.checkout import CheckoutRequest, checkout
from durarepo.policy.freshness import check_issued
from durarepo.repository.chain import Chain
from durarepo.repository.openpack import EpochKeys, PackOpener
from durarepo.repository.pieces import file_pieces
from durarepo.repository.reader import ChunkReader
from durarepo.repository.repository import Repository, find_registry
from durarepo.repository.trees import Event, read_content, walk
from durarepo.sealing import ChunkNamer, open_box
from durarepo.store.localdir import LocalDir
from tests.vectors.adapter import (
    SUCCESS,
    Outcome,
    chunks_of,
    listing_result,
    mark_of,
    notation,
    pin_of,
    restored_result,
    shared_input,
    things_in,
)
from tests.vectors.vectorfile import Vector

TARGET = "target"


class OpenCounter:
    """Counts calls of the one function that decrypts."""

    def __init__(self) -> None:
        self.calls = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count while the block runs."""
        real = primitives.open_bytes

        def counted(key: bytes, nonce: bytes, ciphertext: bytes) -> bytes:
            self.calls += 1
            return real(key, nonce, ciphertext)

        primitives.open_bytes = counted
        try:
            yield
        finally:
            primitives.open_bytes = real


def _cbor(vector: Vector, _: Path, __: OpenCounter) -> str:
    return notation(decode(vector.body))


def _key(vector: Vector, _: Path, __: OpenCounter) -> str:
    kind = vector.inputs["key-kind"]
    key = parse_key(kind, vector.body)
    if kind in {"signer", "owner-public"} and primitives.is_weak_signer(key):
        raise TrustError("weak-key", "key is weak")
    return primitives.sha256(key).hex()


# --- registry and manifest


def _open_registry(data: bytes, inputs: dict[str, str]) -> VerifiedRegistry:
    return open_registry(
        data,
        bytes.fromhex(inputs["locator"]),
        owner_digest=bytes.fromhex(inputs["owner-digest"]),
        version=int(inputs["version"]),
        highest=int(inputs["highest"]),
    )


def _registry(vector: Vector, _: Path, counter: OpenCounter) -> str:
    inputs, now = dict(vector.inputs), int(vector.inputs["now"])
    with counter.watching():
        verified = _open_registry(vector.body, inputs)
    if inputs.get("purpose") == "write":
        check_issued(verified.registry.issued, now, what="registry")
    else:
        check_registry_time(verified, now)
    registry = verified.registry
    head = f"version={registry.version} issued={registry.issued} expires={registry.expires}"
    streams = [
        f"{one.stream}={one.compartment}/{len(one.epochs)}/{one.floor}"
        f"/{one.current.stanza_count}/{len(one.current.signers)}"
        for one in registry.streams
    ]
    return " ".join([head, *streams])


def _high_water(inputs: dict[str, str]) -> HighWater:
    high, clock = mark_of(inputs.get("high-water")), int(inputs.get("clock", "0"))
    if high is None:
        return HighWater(clock=clock)
    return HighWater(sequence=high.sequence, digest=Digest(high.digest), clock=clock)


def _anchor(inputs: dict[str, str]) -> Anchor:
    anchor = mark_of(inputs.get("anchor"))
    return (
        GENESIS
        if anchor is None
        else Anchor(sequence=anchor.sequence, digest=Digest(anchor.digest))
    )


def _manifest(vector: Vector, _: Path, counter: OpenCounter) -> str:
    inputs, now = dict(vector.inputs), int(vector.inputs["now"])
    registry = _open_registry(shared_input(inputs, "registry"), inputs)
    check_registry_time(registry, min(now, registry.registry.expires - 1))
    naming, identity = inputs.get("naming"), bytes.fromhex(inputs["identity"])
    expected = Expected(
        registry=registry,
        stream=inputs["stream"],
        epoch=int(inputs["epoch"]),
        sequence=int(inputs["sequence"]),
    )
    with counter.watching():
        signed = open_manifest(
            vector.body,
            identity,
            expected=expected,
            naming_key=None if naming is None else bytes.fromhex(naming),
        )
        high = _high_water(inputs)
        admitted = admit(
            {expected.sequence: signed},
            record=expected.record,
            anchor=_anchor(inputs),
            high=high,
            now=now,
        )[expected.sequence]
        if inputs.get("archival") == "yes":
            check_floor(admitted, expected.record)
        else:
            check_restorable(admitted, record=expected.record, now=now, clock=high.clock)
        nested = open_nested(admitted, identity, expected.place)
    one = admitted.statement
    return (
        f"sequence={one.sequence} digest={admitted.digest.hex()} signer={one.signer.hex()}"
        f" type={int(one.type)} complete={str(one.complete).lower()} files={one.totals.files}"
        f" bytes={one.totals.bytes} pins={len(one.pins)}"
        f" components={component_index(nested.components).hex()}"
    )


@contextmanager
def _opened(vector: Vector, folder: Path) -> Iterator[Repository]:
    """Give a repository with the objects of the body in it."""
    objects = folder / "repository" / "objects"
    objects.mkdir(parents=True)
    (folder / "state").mkdir()
    store = LocalDir(bytes(objects))
    try:
        for name, data in vector.labelled.items():
            store.put_new(ObjectName(name), data)
        yield _repository(store, dict(vector.inputs), folder)
    finally:
        store.close()


def _chain(vector: Vector, folder: Path, _: OpenCounter) -> str:
    inputs = dict(vector.inputs)
    with _opened(vector, folder) as repository:
        found = _find(repository, inputs, int(inputs["now"]))
    return f"sequence={found.statement.sequence} digest={found.digest.hex()}"


def _restored(vector: Vector, folder: Path, _: OpenCounter) -> str:
    inputs = vector.inputs
    now = int(inputs["now"])
    times = iter((now, int(inputs.get("now-frames", now))))
    end = int(inputs.get("now-end", now))
    destination = folder / TARGET / "restored"
    request = CheckoutRequest(at=inputs["sequence"], destination=bytes(destination))
    with _opened(vector, folder) as repository:
        if inputs.get("archival") == "yes":
            checkout_archival(repository, request, lambda _: None, clock=lambda: now)
        else:
            checkout(repository, request, clock=lambda: next(times, end))
        found = Chain(repository).verified(int(inputs["sequence"]), now=now)
        roots = [root.path for root in Chain(repository).nested(found).roots]
    return restored_result(destination, roots)


class _State:
    """Stands for the state folder: a high-water, or none."""

    def __init__(self, high: HighWater) -> None:
        self._high = high

    def high_water(self) -> SimpleNamespace | None:
        """Return what the state folder would."""
        if not (self._high.sequence or self._high.clock):
            return None
        return SimpleNamespace(
            sequence=self._high.sequence,
            head_digest=self._high.digest,
            clock_seconds=self._high.clock,
            epoch=1 << 31,  # a vector gives what counts under the registry in force
        )


@dataclass(slots=True, kw_only=True)
class _Keys:
    """Stands for the keys folder of a reader that holds an identity and a card."""

    locator: Secret
    identity: Secret
    owner_digest: bytes
    naming: Secret = field(default_factory=lambda: Secret(bytes(KEY_BYTES)))
    old_naming: dict[int, Secret] = field(default_factory=dict)

    def need_identity(self) -> Secret:
        """Return the identity."""
        return self.identity


def _repository(store: LocalDir, inputs: dict[str, str], folder: Path) -> Repository:
    """Return an open repository as a reader with an identity and a card would have it."""
    keys = _Keys(
        locator=Secret(bytes.fromhex(inputs["locator"])),
        identity=Secret(bytes.fromhex(inputs["identity"])),
        owner_digest=bytes.fromhex(inputs["owner-digest"]),
    )
    registry = find_registry(store, cast("Keyring", keys), highest=int(inputs["highest"]))
    record = registry.record(inputs["stream"])
    place = Compartment(
        stream=record.stream, epoch=record.current.number, compartment=record.compartment
    )
    box, identity = record.current.naming_key, keys.identity.reveal()
    keys.naming = Secret(open_box(box, identity, kind=Seal.NAMING_KEY, place=place))
    return Repository(
        places=Places(
            stream=record.stream,
            repository=bytes(folder / "repository"),
            keys=bytes(folder / "keys"),
            state=bytes(folder / "state"),
        ),
        configuration_text=b"",
        configuration=cast("StreamConfig", SimpleNamespace(stream=record.stream, roots=())),
        keys=cast("Keyring", keys),
        store=store,
        state=cast("StateFiles", _State(_high_water(inputs))),
        registry=registry,
    )


def _find(repository: Repository, inputs: dict[str, str], now: int) -> VerifiedManifest:
    check_registry_time(repository.registry, now)
    chain, anchor = Chain(repository), _anchor(inputs)
    wanted = inputs["sequence"]
    head = chain.head()
    number = head if wanted == "latest" else int(wanted)
    if not anchor.sequence:
        found = chain.verified(number, now=now)
    else:
        signed = {
            at: chain.signed(at, repository.keys.need_identity())
            for at in range(anchor.sequence + 1, head + 1)
        }
        found = admit(signed, record=repository.record, anchor=anchor, high=chain.high, now=now)[
            number
        ]
    check_restorable(found, record=repository.record, now=now, clock=chain.high.clock)
    return found


# --- packs


class _Loose:
    """Stands for an open repository of which only keys and objects are known."""

    def __init__(self, vector: Vector, folder: Path) -> None:
        inputs, epoch = vector.inputs, int(vector.inputs.get("epoch", "1"))
        self._naming = Secret(bytes.fromhex(inputs["naming"]))
        self._identity = Secret(bytes.fromhex(inputs.get("identity", "00" * KEY_BYTES)))
        self._place = Compartment(
            stream=inputs.get("stream", "notes"),
            epoch=epoch,
            compartment=inputs.get("compartment", "main"),
        )
        only = SimpleNamespace(number=epoch)
        self.record = SimpleNamespace(epochs=(only,), current=only)
        self.places = SimpleNamespace(catalog=bytes(folder / "no-catalogue"))
        self.keys = SimpleNamespace(
            need_identity=lambda: self._identity,
            locator=Secret(bytes(KEY_BYTES)),  # no registry lies where it leads
        )
        self.registry = SimpleNamespace(registry=SimpleNamespace(version=0))
        self.store = _Objects(vector.labelled)

    def naming_key(self, _: int) -> Secret:
        """Return the naming key."""
        return self._naming

    def place(self, _: int) -> Compartment:
        """Return what seals are bound to."""
        return self._place


class _Objects:
    """A store over the objects in a vector's body."""

    def __init__(self, objects: Mapping[str, bytes]) -> None:
        self._objects = objects

    def stat(self, name: ObjectName) -> int | None:
        """Return the size of an object, None where there is none."""
        return len(self._objects[name]) if name in self._objects else None

    def read(self, name: ObjectName, offset: int = 0, length: int | None = None) -> bytes:
        """Return bytes of an object."""
        data = self._objects[name]
        return data[offset : len(data) if length is None else offset + length]


def _pin(vector: Vector) -> Pin:
    one = pin_of(vector.inputs["pin"])
    return Pin(
        name=ObjectName(one.name),
        size=SIZE_CLASSES[one.class_number],
        index_digest=Digest(one.index_digest or b""),
        registry_version=1,
    )


def _index(vector: Vector, folder: Path, counter: OpenCounter) -> str:
    opener = PackOpener(cast("Repository", _Loose(vector, folder)))
    with counter.watching():
        index = opener.open(_pin(vector)).index
    ids = b"".join(index.ids)
    return f"chunks={len(index.ids)} ids={primitives.sha256(ids).hex()}"


def _chunk(vector: Vector, folder: Path, counter: OpenCounter) -> str:
    repository = cast("Repository", _Loose(vector, folder))
    statement = SimpleNamespace(pins=(_pin(vector),), repairs=(), epoch=1)
    manifest = cast("VerifiedManifest", SimpleNamespace(statement=statement))
    reader = ChunkReader(repository, manifest, permit=lambda: None)
    wanted = ChunkId(bytes.fromhex(vector.inputs["chunk"]))
    index_opens = 2
    with counter.watching():
        try:
            plain = _any_kind(reader, wanted)
        finally:
            counter.calls -= index_opens
    return f"bytes={len(plain)} sha256={primitives.sha256(plain).hex()}"


_OF_OTHER_KIND = ("integrity.chunk-missing", "integrity.content", "integrity.tree-form")


def _any_kind(reader: ChunkReader, wanted: ChunkId) -> bytes:
    """Return a chunk whose kind is not known; each kind is asked for."""
    missing: IntegrityError | None = None
    for kind in ChunkKind:
        try:
            return reader.chunk(wanted, kind)
        except IntegrityError as error:
            if error.code not in _OF_OTHER_KIND:
                raise
            missing = error
    raise missing or IntegrityError("chunk-missing", "there are no kinds")


# --- trees


class _ClearReader(ChunkReader):
    """Gives chunks that stand in a vector in the clear, as a reader of packs would."""

    def __init__(self, vector: Vector) -> None:
        namer = ChunkNamer(bytes.fromhex(vector.inputs["naming"]))
        self._keys = cast("EpochKeys", SimpleNamespace(namer=namer))
        self.manifest = cast(
            "VerifiedManifest", SimpleNamespace(statement=SimpleNamespace(epoch=1))
        )
        self._stored = {
            (namer.name_of(ChunkKind(kind), plain), kind): plain
            for kind, plain in chunks_of(vector)
        }

    def chunk(self, chunk: ChunkId, kind: ChunkKind) -> bytes:
        """Return a chunk of a kind."""
        if (chunk, kind) not in self._stored:
            raise IntegrityError("chunk-missing", "no such chunk in the vector")
        return self._stored[chunk, kind]

    def file_data(self, entry: Entry) -> bytes:
        """Return the content of a file that is one chunk."""
        return self.chunk(self.file_chunk(entry), ChunkKind.DATA)


def _tree(vector: Vector, _: Path, __: OpenCounter) -> str:
    reader = _ClearReader(vector)
    path = bytes.fromhex(vector.inputs["root-path"])
    root = parse_entry(decode(bytes.fromhex(vector.inputs["root"])), root=True)
    lines = [
        _line(reader, visit.path, visit.entry)
        for visit in walk(reader, path, root)
        if visit.event is not Event.LEAVE
    ]
    return listing_result("".join(lines))


def _line(reader: ChunkReader, path: bytes, entry: Entry) -> str:
    for _, attribute in entry.xattrs:
        if isinstance(attribute, ChunkList):
            read_content(reader, attribute, kind=ChunkKind.DATA, most=CHUNK_MAX_BYTES)
    mode, value = entry.mode, "-"
    if entry.type is FileType.FILE:
        plain = _file(reader, entry)
        value = primitives.sha256(plain).hex()
    elif entry.type is FileType.SYMLINK:
        mode, value = 0o777, (entry.target or b"").hex()
    elif entry.type is not FileType.DIRECTORY:
        return ""
    letter = {FileType.FILE: "f", FileType.SYMLINK: "l"}.get(entry.type, "d")
    return f"{letter} {mode:o} {entry.mtime_ns} {entry.size} {value} {path.hex()}\n"


def _file(reader: ChunkReader, entry: Entry) -> bytes:
    pieces = file_pieces(reader, entry, entry.name)
    return b"".join(bytes(one) if isinstance(one, int) else one for one in pieces)


_RUNS: Mapping[str, Callable[[Vector, Path, OpenCounter], str]] = {
    "cbor": _cbor,
    "key": _key,
    "registry": _registry,
    "manifest": _manifest,
    "chain": _chain,
    "index": _index,
    "chunk": _chunk,
    "tree": _tree,
    "path": _tree,
    "content": _tree,
    "repository": _restored,
}


class DurarepoAdapter:
    """durarepo's own functions."""

    name = "durarepo"

    def covers(self, vector: Vector) -> bool:
        """Return whether there is a way to run ``vector``."""
        rebuilds = vector.kind == "index" and " " not in vector.inputs["pin"]
        return vector.kind in _RUNS and not rebuilds

    def run(self, vector: Vector, folder: Path) -> Outcome:
        """Return durarepo's answer to ``vector``."""
        counter, target = OpenCounter(), folder / TARGET
        target.mkdir()
        try:
            result = _RUNS[vector.kind](vector, folder, counter)
        except DurarepoError as error:
            return Outcome(code=error.code, opened=counter.calls, left=things_in(target))
        return Outcome(code=SUCCESS, result=result, opened=counter.calls)
