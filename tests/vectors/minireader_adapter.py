"""The independent reader under the vectors; text files of keys through `cardreader`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
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
from tests.vectors.cardreader import CardError, read_card, read_key, read_keys_file
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
    now = int(inputs["now"])
    given: dict[str, Any] = {
        "stream": inputs.get("stream", "notes"),
        "locator": bytes.fromhex(inputs["locator"]),
        "owner_digest": bytes.fromhex(inputs["owner-digest"]),
        "identities": [bytes.fromhex(inputs["identity"])] if "identity" in inputs else [],
        "highest": int(inputs["highest"]),
        "clock": int(inputs.get("clock", "0")),
        "archival": inputs.get("archival") == "yes",
        "now": lambda: now,
    }
    for key, name in (("anchor", "anchor"), ("high-water", "high_water")):
        mark = mark_of(inputs.get(key))
        if mark is not None:
            given[name] = (mark.sequence, mark.digest)
    return reader.Held(**given)


def _cbor(vector: Vector, _: Path) -> str:
    return notation(reader.decode(vector.body))


def _key(vector: Vector, _: Path) -> str:
    key = read_key(vector.body.decode("ascii"), vector.inputs["key-kind"])
    return sha256(key).hexdigest()


def _card(vector: Vector, _: Path) -> str:
    return notation(read_card(vector.body, vector.inputs.get("passphrase")))


def _keys_file(vector: Vector, _: Path) -> str:
    return notation(read_keys_file(vector.body, bytes.fromhex(vector.inputs["identity"])))


def _objects(objects: Mapping[str, bytes]) -> Callable[[str], bytes | None]:
    return objects.get


def _registry_slot(inputs: Mapping[str, str], data: bytes) -> dict[str, bytes]:
    """Return the one object that is there: ``data`` in the slot of the version looked for."""
    key = reader._sub(bytes.fromhex(inputs["locator"]), b"registry-slot")
    place = b"\3" + bytes(4) + int(inputs["version"]).to_bytes(8) + b"\0"
    return {reader._mac(key, place).hex(): data}


def _registry(vector: Vector, _: Path) -> str:
    inputs, held = vector.inputs, _held(vector.inputs)
    held.highest = max(int(inputs["version"]), held.highest)
    held.get = _objects(_registry_slot(inputs, vector.body))
    with _watching():
        held.find_registry()
    found = held.registry
    head = f"version={found[0]} issued={found[1][0]} expires={found[1][1]}"
    streams = [
        f"{one[0]}={one[1]}/{len(one[3])}/{one[4]}/{one[3][-1][6]}/{len(one[3][-1][3])}"
        for one in found[3]
    ]
    return " ".join([head, *streams])


def _manifest(vector: Vector, _: Path) -> str:
    inputs, held = vector.inputs, _held(vector.inputs)
    number, epoch = int(inputs["sequence"]), int(inputs["epoch"])
    held.get = _objects(_registry_slot(inputs, shared_input(inputs, "registry")))
    held.archival, archival = True, held.archival  # the registry passes
    held.find_registry()
    held.archival = archival
    if "naming" in inputs:
        others = range(1, 1 + len(held.record()[3]))  # whose slots are not asked for
        held.naming |= dict.fromkeys(others, bytes(32)) | {epoch: bytes.fromhex(inputs["naming"])}
    else:
        held.key = lambda *_: bytes(32)  # the key is not held, nor its slots known
    held.slot = lambda _, place: [vector.body] if place[5:] == number.to_bytes(8) else []
    held.open_envelope = partial(held.open_envelope, epoch=epoch)
    with _watching():
        digest, one = held.follow(number)
        nested = held.open_nested(one)
    return (
        f"sequence={one[1][0]} digest={digest.hex()} signer={one[0][4].hex()}"
        f" type={one[3]} complete={str(one[4]).lower()} files={one[5][0]} bytes={one[5][2]}"
        f" pins={len(one[11])} components={nested[2].hex()}"
    )


# --- packs


def _open_index(vector: Vector) -> Any:
    pin, naming = pin_of(vector.inputs["pin"]), bytes.fromhex(vector.inputs["naming"])
    row: list[Any] = [bytes.fromhex(pin.name)]
    if pin.index_digest is not None:
        row += [pin.class_number, pin.index_digest, 1]
    epoch = int(vector.inputs.get("epoch", "1"))
    stream = vector.inputs.get("stream", "notes"), vector.inputs.get("compartment", "main")
    held = reader.Held(
        stream=stream[0],
        identities=[bytes.fromhex(vector.inputs.get("identity", ""))],
        naming={epoch: naming},
        registry={3: [{0: stream[0], 1: stream[1], 3: [{0: epoch}]}]},
        get=_objects(vector.labelled),
    )
    held.open_pack(row)
    return held


def _index(vector: Vector, _: Path) -> str:
    with _watching():
        held = _open_index(vector)
    ids = b"".join(held.where)
    return f"chunks={len(ids) // 32} ids={sha256(ids).hexdigest()}"


def _chunk(vector: Vector, _: Path) -> str:
    held, name = _open_index(vector), bytes.fromhex(vector.inputs["chunk"])
    kind = held.where[name][-1] if name in held.where else 0
    with _watching():
        plain = held.load(name, kind)
    return f"bytes={len(plain)} sha256={sha256(plain).hexdigest()}"


# --- trees


def _tree(vector: Vector, folder: Path) -> str:
    naming = bytes.fromhex(vector.inputs["naming"])
    held = reader.Held(naming={1: naming})
    held.single = held.key(1, b"chunk-id")
    chunks = chunks_of(vector)
    for number, (kind, plain) in enumerate(chunks):  # each a frame of its own in a pack of its own
        told = bytes([kind]) + len(plain).to_bytes(8) + sha256(plain).digest()
        name = bytes(reader._mac(held.single, told))
        held.where[name] = number, 0, 0, len(plain), kind
        held.packs[number] = (1,)
    held.frame = lambda number, _: chunks[number][1]

    root = bytes.fromhex(vector.inputs["root-path"])
    entry = reader.decode(bytes.fromhex(vector.inputs["root"]))
    destination = folder / "restored"
    held.checkout({0: [[root, entry]], 1: []}, destination, lambda: None)
    return listing_result(list_roots(destination, [root]))


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
    times = iter((now, now, now, frames))  # asked at 3.12, 4.26, 4.28, 6.1 and then at 7.9
    wanted = inputs["sequence"]
    reader.restore(
        objects,
        destination,
        held,
        lambda: next(times, end),
        sequence=0 if wanted == "latest" else int(wanted),
        archival=inputs.get("archival") == "yes",
    )
    return [path for path in held.done if path.rpartition(b"/")[0] not in held.done]


def _chain(vector: Vector, folder: Path) -> str:
    held = _held(vector.inputs)
    try:
        _restore(vector, folder, held)
    except reader.Refused as refused:
        if refused.code != "integrity.pack-missing":
            raise  # chains come without packs: that step lies behind all those of a chain
    return f"sequence={held.statement[1][0]} digest={held.digest.hex()}"


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
