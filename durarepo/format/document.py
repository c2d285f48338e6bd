"""A signed document: its array, and the bytes that both signatures cover.

Nothing here checks a signature. Source: spec/format.md 7.1. Start at `parse_document`.
"""

from dataclasses import dataclass

from durarepo.core.errors import IntegrityError
from durarepo.core.limits import ED25519_SIGNATURE_BYTES, MLDSA_SIGNATURE_BYTES
from durarepo.format.canonical import decode, encode

MANIFEST_TYPE = "durarepo/1/manifest"
REGISTRY_TYPE = "durarepo/1/registry"

_FIELDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Type, statement bytes and the two signatures over both."""

    type: str
    statement: bytes
    signatures: tuple[bytes, bytes]


def signed_bytes(type_: str, statement: bytes) -> bytes:
    """Return the DSSE pre-authentication encoding of type and statement."""
    name = type_.encode()
    return b"DSSEv1 %d %s %d %s" % (len(name), name, len(statement), statement)


def encode_document(document: Document) -> bytes:
    """Return the document's array."""
    return encode([document.type, document.statement, *document.signatures])


def parse_document(data: bytes) -> Document:
    """Return the document that ``data`` holds.

    Raises:
        IntegrityError: ``document`` if the array is another one, ``cbor-*`` if it is none.
    """
    match decode(data):
        case [str() as type_, bytes() as statement, bytes() as classic, bytes() as lattice] if (
            len(classic) == ED25519_SIGNATURE_BYTES and len(lattice) == MLDSA_SIGNATURE_BYTES
        ):
            return Document(type=type_, statement=statement, signatures=(classic, lattice))
    raise IntegrityError("document", "signed document has another form")


def pad_document(data: bytes, room: int) -> bytes:
    """Return ``data`` with its length before it and zeros behind it, ``room`` bytes in all."""
    return len(data).to_bytes(4) + data + bytes(room - 4 - len(data))


def unpad_document(padded: bytes) -> bytes:
    """Return what `pad_document` padded.

    Raises:
        IntegrityError: ``padding``.
    """
    length = int.from_bytes(padded[:4])
    if length > len(padded) - 4 or padded.count(0, 4 + length) != len(padded) - 4 - length:
        raise IntegrityError("padding", "padding is not zeros of the declared length")
    return padded[4 : 4 + length]
