"""Names, slots, size classes and the `info` strings of seals: where a stored thing stands.

Source: spec/format.md 2, 3.3 and 9. Start at `size_class` and `seal_info`.
"""

from dataclasses import dataclass
from enum import IntEnum

from durarepo.core.errors import IntegrityError
from durarepo.core.limits import SIZE_CLASSES
from durarepo.core.names import ObjectName


class Seal(IntEnum):
    """What is sealed; the kind byte of `seal_info`."""

    PACK = 1
    ENVELOPE = 2
    NESTED = 3
    REGISTRY = 4
    NAMING_KEY = 5
    SLOT_KEY = 6
    KEYS_FILE = 7
    CARD = 8
    EVIDENCE = 9
    CHALLENGE = 10


class Part(IntEnum):
    """What a stored nonce belongs to; the part byte of the nonce."""

    ENVELOPE = 1
    NESTED = 2
    REGISTRY = 3
    INDEX = 4
    TRAILER = 5
    SEALED_KEY = 6
    CARD = 7
    EVIDENCE = 8


class ChunkKind(IntEnum):
    """Kind of a chunk; part of its id."""

    DATA = 0
    LIST = 1
    TREE = 2
    LEDGER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Compartment:
    """The stream, epoch and compartment that a seal is bound to."""

    stream: str
    epoch: int
    compartment: str


NOWHERE = Compartment(stream="", epoch=0, compartment="")


def seal_info(kind: Seal, place: Compartment, salt: bytes, extra: bytes = b"") -> bytes:
    """Return the info string that binds a seal to its kind and place."""
    stream, compartment = place.stream.encode(), place.compartment.encode()
    return b"".join(
        (
            b"durarepo/1",
            bytes((kind, len(stream))),
            stream,
            place.epoch.to_bytes(4),
            bytes((len(compartment),)),
            compartment,
            salt,
            extra,
        )
    )


def chunk_id_input(kind: ChunkKind, length: int, digest: bytes) -> bytes:
    """Return what is hashed with the chunk-id subkey to give a chunk's id."""
    return bytes((kind,)) + length.to_bytes(8) + digest


def manifest_slot_input(epoch: int, sequence: int, attempt: int) -> bytes:
    """Return what is hashed with the slot subkey to give a manifest's name."""
    return b"\x01" + epoch.to_bytes(4) + sequence.to_bytes(8) + bytes((attempt,))


def registry_slot_input(version: int, attempt: int) -> bytes:
    """Return what is hashed with the registry-slot subkey to give a registry's name."""
    return b"\x03" + bytes(4) + version.to_bytes(8) + bytes((attempt,))


def pack_slot_input(pack: ObjectName, attempt: int) -> bytes:
    """Return what is hashed with the slot subkey to give the second place of a pack."""
    return b"\x04" + bytes.fromhex(pack) + bytes((attempt,))


def object_name(raw: bytes) -> ObjectName:
    """Return the text form of a 32-byte name."""
    return ObjectName(raw.hex())


def fitting_class(length: int, *, most: int) -> int:
    """Return the size, in bytes, of the smallest class that holds ``length``.

    Raises:
        ValueError: no class up to ``most`` bytes holds it.
    """
    for size in SIZE_CLASSES:
        if length <= size <= most:
            return size
    raise ValueError("longer than the largest object")


def class_number(size: int) -> int:
    """Return the number, 0 to 7, of a size class given in bytes."""
    return SIZE_CLASSES.index(size)


def check_object_size(length: int, *, most: int) -> None:
    """Refuse a length that is no size class up to ``most`` bytes.

    Raises:
        IntegrityError: ``object-size``.
    """
    if length not in SIZE_CLASSES or length > most:
        raise IntegrityError("object-size", f"object of {length} bytes is of no size class")
