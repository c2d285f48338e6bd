"""The independent reader under the vectors; cards and keys files through `cardreader`."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.interop import minireader
from tests.vectors.adapter import (
    SUCCESS,
    Outcome,
    chunks_of,
    list_roots,
    listing_result,
    mark_of,
    notation,
    pin_of,
    restored_result,
    shared_input,
    things_in,
)
from tests.vectors.cardreader import CardError, read_card, read_keys_file
from tests.vectors.vectorfile import Vector

# The reader annotates little and keeps no secrets from its auditor.
reader: Any = minireader


class _CountingCipher:
    """AES-256-GCM as the reader knows it, with its decryptions counted."""

    calls = 0
    real = reader.AESGCM

    def __init__(self, key: bytes) -> None:
        self._cipher = self.real(key)

    def decrypt(self, nonce: bytes, data: bytes, more: bytes | None) -> bytes:
        """Decrypt and count."""
        _CountingCipher.calls += 1
        return bytes(self._cipher.decrypt(nonce, data, more))


@contextmanager
def _watching() -> Iterator[None]:
    """Count the reader's decryptions while the block runs."""
    reader.AESGCM = _CountingCipher
    try:
        yield
    finally:
        reader.AESGCM = _CountingCipher.real


def _held(inputs: Mapping[str, str]) -> Any:
    given: dict[str, Any] = {
        "stream": inputs.get("stream", "notes"),
        "locator": bytes.fromhex(inputs["locator"]),
        "owner_digest": bytes.fromhex(inputs["owner-digest"]),
        "identities": [bytes.fromhex(inputs["identity"])] if "identity" in inputs else [],
        "highest": int(inputs["highest"]),
        "clock": int(inputs.get("clock", "0")),
    }
    for key, name in (("anchor", "anchor"), ("high-water", "high_water")):
        mark = mark_of(inputs.get(key))
        if mark is not None:
            given[name] = (mark.sequence, mark.digest)
    return reader.Held(**given)


def _cbor(vector: Vector, _: Path) -> str:
    return notation(reader.decode(vector.body))


def _key(vector: Vector, _: Path) -> str:
    key = reader.parse_key(vector.body.decode("ascii"), vector.inputs["key-kind"])
    return sha256(key).hexdigest()


def _card(vector: Vector, _: Path) -> str:
    return notation(read_card(vector.body, vector.inputs.get("passphrase")))


def _keys_file(vector: Vector, _: Path) -> str:
    return notation(read_keys_file(vector.body, bytes.fromhex(vector.inputs["identity"])))


def _registry(vector: Vector, _: Path) -> str:
    inputs = vector.inputs
    held, version, now = _held(inputs), int(inputs["version"]), int(inputs["now"])
    with _watching():
        found = reader.open_registry(vector.body, held, version, now)
    head = f"version={found[0]} issued={found[1][0]} expires={found[1][1]}"
    streams = [
        f"{one[0]}={one[1]}/{len(one[3])}/{one[4]}/{one[3][-1][6]}/{len(one[3][-1][3])}"
        for one in found[3]
    ]
    return " ".join([head, *streams])


def _manifest(vector: Vector, _: Path) -> str:
    inputs, held = vector.inputs, _held(vector.inputs)
    now, version = int(inputs["now"]), int(inputs["version"])
    held.registry = reader.open_registry(shared_input(inputs, "registry"), held, version, now)
    if "naming" in inputs:
        held.naming[int(inputs["epoch"])] = bytes.fromhex(inputs["naming"])
    anchor = mark_of(inputs.get("anchor"))
    if anchor is not None:
        held.chain[anchor.sequence] = anchor.digest
    with _watching():
        found = reader.open_manifest(
            vector.body,
            held,
            int(inputs["sequence"]),
            now,
            archival=inputs.get("archival") == "yes",
            epoch=int(inputs["epoch"]),
        )
    one = found.statement
    return (
        f"sequence={one[1][0]} digest={found.digest.hex()} signer={one[0][4].hex()}"
        f" type={one[3]} complete={str(one[4]).lower()} files={one[5][0]} bytes={one[5][2]}"
        f" pins={len(one[11])} components={found.nested[2].hex()}"
    )


# --- packs


def _open_index(vector: Vector) -> Any:
    pin, naming = pin_of(vector.inputs["pin"]), bytes.fromhex(vector.inputs["naming"])
    row: list[Any] = [bytes.fromhex(pin.name)]
    if pin.index_digest is not None:
        row += [pin.class_number, pin.index_digest]
    return reader.open_index(vector.labelled.get(pin.name), row, naming)


def _index(vector: Vector, _: Path) -> str:
    with _watching():
        pack = _open_index(vector)
    ids = b"".join(name for frame in pack.frames for name in frame[5])
    return f"chunks={len(ids) // 32} ids={sha256(ids).hexdigest()}"


def _chunk(vector: Vector, _: Path) -> str:
    inputs, pack = vector.inputs, _open_index(vector)
    held = reader.Held(
        stream=inputs["stream"],
        identities=[bytes.fromhex(inputs["identity"])],
        registry={3: [{0: inputs["stream"], 1: inputs["compartment"]}]},
    )
    name, data = bytes.fromhex(inputs["chunk"]), vector.parts[0].data
    if name not in pack.chunks:
        raise reader.Refused("chunk-missing")
    with _watching():
        frame = reader.read_frame(data, pack, pack.chunks[name][0], int(inputs["epoch"]), held)
        plain = reader.read_chunk(frame, pack, name, _chunk_subkey(inputs["naming"]))
    return f"bytes={len(plain)} sha256={sha256(plain).hexdigest()}"


def _chunk_subkey(naming: str) -> bytes:
    return bytes(reader._sub(bytes.fromhex(naming), b"chunk-id"))


# --- trees


def _tree(vector: Vector, folder: Path) -> str:
    subkey = _chunk_subkey(vector.inputs["naming"])
    stored: dict[bytes, tuple[int, bytes]] = {}
    for kind, plain in chunks_of(vector):
        told = bytes([kind]) + len(plain).to_bytes(8, "big") + sha256(plain).digest()
        stored[reader._mac(subkey, told)] = kind, plain

    def load(name: bytes) -> tuple[int, bytes]:
        if name not in stored:
            raise reader.Refused("chunk-missing")
        return stored[name]

    root = bytes.fromhex(vector.inputs["root-path"])
    entry = reader.decode(bytes.fromhex(vector.inputs["root"]))
    descriptor = os.open(folder, os.O_DIRECTORY)
    try:
        checkout = reader.Checkout(descriptor, load, [subkey])
        checkout.finish({0: [[root, entry]], 1: [], 3: b"\x80"})
    finally:
        os.close(descriptor)
    return listing_result(list_roots(folder, [root]))


# --- objects in their slots


def _write(vector: Vector, folder: Path) -> Path:
    for name, data in vector.labelled.items():
        place = folder / name[:2]
        place.mkdir(exist_ok=True, parents=True)
        (place / name).write_bytes(data)
    return folder


def _restore(vector: Vector, folder: Path, held: Any) -> list[bytes]:
    """Restore and return the paths of the roots."""
    inputs = vector.inputs
    objects, destination = _write(vector, folder.parent / "objects"), folder / "restored"
    now = int(inputs["now"])
    frames, end = (int(inputs.get(key, now)) for key in ("now-frames", "now-end"))
    times = iter((now, now, frames))  # asked at 3.12, 4.26, 6.1 and then at 7.9
    wanted = inputs["sequence"]
    restored = reader.restore(
        objects,
        destination,
        held,
        lambda: next(times, end),
        sequence=0 if wanted == "latest" else int(wanted),
        archival=inputs.get("archival") == "yes",
    )
    paths = {one.path for one in restored}
    return [path for path in paths if path.rpartition(b"/")[0] not in paths]


def _chain(vector: Vector, folder: Path) -> str:
    held, wanted = _held(vector.inputs), vector.inputs["sequence"]
    try:
        _restore(vector, folder, held)
    except reader.Refused as refused:
        if refused.code != "integrity.pack-missing":
            raise  # chains come without packs: that step lies behind all those of a chain
    number = max(held.chain) if wanted == "latest" else int(wanted)
    return f"sequence={number} digest={held.chain[number].hex()}"


def _repository(vector: Vector, folder: Path) -> str:
    roots = _restore(vector, folder, _held(vector.inputs))
    return restored_result(folder / "restored", roots)


_RUNS: Mapping[str, Callable[[Vector, Path], str]] = {
    "cbor": _cbor,
    "key": _key,
    "card": _card,
    "keysfile": _keys_file,
    "registry": _registry,
    "manifest": _manifest,
    "chain": _chain,
    "index": _index,
    "chunk": _chunk,
    "tree": _tree,
    "path": _tree,
    "content": _tree,
    "repository": _repository,
}


class MinireaderAdapter:
    """The reader that was made from the specification alone."""

    name = "minireader"

    def covers(self, vector: Vector) -> bool:
        """Return whether there is a way to run ``vector``; it never writes."""
        return vector.kind in _RUNS and vector.inputs.get("purpose") != "write"

    def run(self, vector: Vector, folder: Path) -> Outcome:
        """Return the reader's answer to ``vector``."""
        _CountingCipher.calls = 0
        target = folder / "target"
        target.mkdir()
        try:
            result = _RUNS[vector.kind](vector, target)
        except CardError:
            return Outcome(code="keys.card", left=things_in(target))
        except reader.Refused as refused:
            calls = _CountingCipher.calls
            return Outcome(code=refused.code, opened=calls, left=things_in(target))
        return Outcome(code=SUCCESS, result=result, opened=_CountingCipher.calls)
