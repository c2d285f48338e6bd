"""Seals: how plain parts of the format become stored bytes, and back with every check.

Writing: `compress_frame`, `PackSealer`, `seal_envelope`, `seal_registry`, `seal_box`.
Reading: a frame or an index is decrypted only as a `CheckedFrame` or `CheckedIndex`, which only
the functions that compare digests make (law 2). Pure, but for the randomness of fresh keys.
Source: spec/format.md 3.3, 5, 7.1 and 8.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from durarepo.chunking.compression import InflateError, deflate, inflate
from durarepo.core.errors import IntegrityError, KeyMaterialError, TrustError
from durarepo.core.limits import (
    FORMAT_VERSION,
    INDEX_MAX_BYTES,
    KEY_BYTES,
    NONCE_BYTES,
    STANZA_BYTES,
    STANZA_COUNTS,
    TAG_BYTES,
    TRAILER_BYTES,
)
from durarepo.core.names import ChunkId, Digest, SignerId
from durarepo.crypto import primitives
from durarepo.crypto.primitives import WrongKeyError
from durarepo.format import pack as pack_format
from durarepo.format.document import (
    Document,
    encode_document,
    pad_document,
    signed_bytes,
    unpad_document,
)
from durarepo.format.layout import (
    NOWHERE,
    ChunkKind,
    Compartment,
    Part,
    Seal,
    chunk_id_input,
    seal_info,
)
from durarepo.format.pack import FrameInfo, PackIndex

STORED, DEFLATED = 0, 1
MARK_BYTES = 32
_KINDS = tuple(ChunkKind)
_VERSION = bytes((FORMAT_VERSION,))
_FRAME_NONCE = bytes(NONCE_BYTES)
_POSITION_BYTES = 8

Octets = TypeVar("Octets", bytes, memoryview)
"""Bytes, or a view of some."""


class ChunkNamer:
    """Gives chunks their ids under one naming key."""

    __slots__ = ("_hash",)

    def __init__(self, naming_key: bytes) -> None:
        self._hash = primitives.keyed_hasher(primitives.derive_subkey(naming_key, "chunk-id"))

    def name(self, kind: ChunkKind, length: int, digest: bytes) -> ChunkId:
        """Return the id of a chunk from its kind, length in bytes and SHA-256."""
        return ChunkId(self._hash(chunk_id_input(kind, length, digest)))

    def name_of(self, kind: ChunkKind, plaintext: bytes | memoryview) -> ChunkId:
        """Return the id of a chunk from its plaintext."""
        return self.name(kind, len(plaintext), primitives.sha256(plaintext))


# --- seals to recipients -------------------------------------------------------------------


def _seal_stanzas(key: bytes, recipients: Sequence[bytes], count: int, info: bytes) -> bytes:
    if count not in STANZA_COUNTS or not 1 <= len(recipients) <= count:
        raise ValueError("no recipient, or more than stanzas")
    spares = [
        primitives.recipient_of(primitives.random_key()) for _ in range(count - len(recipients))
    ]
    try:
        stanzas = [primitives.seal_stanza(to, key, info) for to in (*recipients, *spares)]
    except WrongKeyError:
        raise KeyMaterialError(
            "malformed",
            "a recipient in the registry is no public key that can be sealed to",
            hint="make a new stream with the right recipients: durarepo init",
        ) from None
    return b"".join(primitives.shuffled(stanzas))


def commitment(key: bytes, info: bytes) -> bytes:
    """Return what binds a key to its place before anything is decrypted under it."""
    return primitives.keyed_hash(key, b"commit" + info)


def check_commitment(key: bytes, info: bytes, stated: bytes) -> None:
    """Refuse a key that is not the committed one.

    Raises:
        IntegrityError: ``commitment``.
    """
    if not primitives.same(commitment(key, info), stated):
        raise IntegrityError("commitment", "key is not the one that the object commits to")


def open_stanzas(identity: bytes, stanzas: bytes, info: bytes) -> bytes:
    """Return the key that one of the stanzas seals to this identity.

    Raises:
        IntegrityError: ``stanza`` if none opens.
    """
    for at in range(0, len(stanzas), STANZA_BYTES):
        try:
            return primitives.open_stanza(identity, stanzas[at : at + STANZA_BYTES], info)
        except WrongKeyError:
            continue
    raise IntegrityError(
        "stanza",
        "object is not sealed to this identity, or is damaged",
        hint="use the identity of one of the stream's recipients: durarepo registry show",
    )


@dataclass(frozen=True, slots=True)
class OpenedHeader:
    """The key of a sealed thing, with the length of the header that it came from."""

    key: bytes
    length: int


def open_header(identity: bytes, data: bytes, at: int, info: bytes) -> OpenedHeader:
    """Open the stanzas that begin at ``at``, four of them or eight, by their commitment.

    Raises:
        IntegrityError: ``stanza`` or ``commitment``.
    """
    for position in range(at, at + max(STANZA_COUNTS) * STANZA_BYTES, STANZA_BYTES):
        stanza = data[position : position + STANZA_BYTES]
        if len(stanza) < STANZA_BYTES:
            break
        try:
            key = primitives.open_stanza(identity, stanza, info)
        except WrongKeyError:
            continue
        expected = commitment(key, info)
        for count in STANZA_COUNTS:
            end = at + count * STANZA_BYTES
            if position < end and primitives.same(expected, data[end : end + KEY_BYTES]):
                return OpenedHeader(key, end + KEY_BYTES)
        raise IntegrityError("commitment", "key is not the one that the object commits to")
    raise IntegrityError(
        "stanza",
        "object is not sealed to this identity, or is damaged",
        hint="use the identity of one of the stream's recipients: durarepo registry show",
    )


def seal_box(
    content: bytes,
    recipients: Sequence[bytes],
    *,
    kind: Seal,
    place: Compartment,
    count: int,
    extra: bytes = b"",
) -> bytes:
    """Seal ``content`` under a fresh key to recipients: salt, stanzas, commitment, ciphertext."""
    key, salt = primitives.random_key(), primitives.random_key()
    info = seal_info(kind, place, salt, extra)
    nonce = primitives.derive_nonce(key, _BOX_PARTS[kind], content)
    stanzas = _seal_stanzas(key, recipients, count, info)
    return b"".join(
        (salt, stanzas, commitment(key, info), nonce, primitives.seal_bytes(key, nonce, content))
    )


_BOX_PARTS = {
    Seal.NESTED: Part.NESTED,
    Seal.NAMING_KEY: Part.SEALED_KEY,
    Seal.SLOT_KEY: Part.SEALED_KEY,
    Seal.KEYS_FILE: Part.SEALED_KEY,
}


def open_box(
    box: bytes, identity: bytes, *, kind: Seal, place: Compartment, extra: bytes = b""
) -> bytes:
    """Open what `seal_box` sealed.

    Raises:
        IntegrityError: ``stanza``, ``commitment`` or ``seal``.
    """
    info = seal_info(kind, place, box[:KEY_BYTES], extra)
    header = open_header(identity, box, KEY_BYTES, info)
    return open_sealed(header.key, box[header.length :])


def open_sealed(key: bytes, data: bytes) -> bytes:
    """Decrypt ``nonce ‖ ciphertext`` whose key has been checked against its commitment.

    Raises:
        IntegrityError: ``seal``.
    """
    try:
        return primitives.open_bytes(key, data[:NONCE_BYTES], data[NONCE_BYTES:])
    except WrongKeyError:
        raise IntegrityError("seal", "sealed bytes do not authenticate") from None


# --- documents -----------------------------------------------------------------------------


def sign_document(type_: str, statement: bytes, signing_key: bytes) -> bytes:
    """Return the document of a statement with both signatures."""
    message = signed_bytes(type_, statement)
    pair = primitives.sign_both(signing_key, message, type_.encode())
    return encode_document(Document(type=type_, statement=statement, signatures=pair))


def signer_id(public: bytes) -> SignerId:
    """Return the id of a signer from its 1984 public bytes."""
    return SignerId(primitives.sha256(public))


def check_signatures(document: Document, public: bytes) -> None:
    """Refuse a document unless both signatures of this signer are good.

    Raises:
        TrustError: ``weak-key`` or ``signature``.
    """
    if primitives.is_weak_signer(public):
        raise TrustError("weak-key", "signer's Ed25519 key is of small order or not canonical")
    message = signed_bytes(document.type, document.statement)
    if not primitives.verify_both(public, message, document.type.encode(), document.signatures):
        raise TrustError("signature", "a signature of the document is not good")


def new_envelope_header(
    recipients: Sequence[bytes], *, place: Compartment, count: int
) -> tuple[bytes, bytes]:
    """Return (key, header) of a new envelope."""
    return _new_header(recipients, Seal.ENVELOPE, place, count)[::2]


def _new_header(
    recipients: Sequence[bytes], kind: Seal, place: Compartment, count: int
) -> tuple[bytes, bytes, bytes]:
    key, salt = primitives.random_key(), primitives.random_key()
    info = seal_info(kind, place, salt)
    stanzas = _seal_stanzas(key, recipients, count, info)
    return key, salt, _VERSION + salt + stanzas + commitment(key, info)


def envelope_overhead(header: bytes) -> int:
    """Return how many bytes of an envelope are not document or padding."""
    return len(header) + NONCE_BYTES + 4 + TAG_BYTES + MARK_BYTES


def seal_envelope(
    key: bytes, header: bytes, document: bytes, *, size: int, mark_key: bytes
) -> bytes:
    """Return the envelope object of ``size`` bytes around a document."""
    body = pad_document(document, size - envelope_overhead(header) + 4)
    nonce = primitives.derive_nonce(key, Part.ENVELOPE, body)
    data = header + nonce + primitives.seal_bytes(key, nonce, body)
    return data + primitives.keyed_hash(mark_key, data)


def seal_registry(locator_key: bytes, document: bytes, *, size: int) -> bytes:
    """Return the registry object of ``size`` bytes around a document."""
    salt = primitives.random_key()
    key = registry_key(locator_key, salt)
    info = seal_info(Seal.REGISTRY, NOWHERE, salt)
    room = size - 1 - KEY_BYTES - KEY_BYTES - NONCE_BYTES - TAG_BYTES
    body = pad_document(document, room)
    nonce = primitives.derive_nonce(key, Part.REGISTRY, body)
    return b"".join(
        (_VERSION, salt, commitment(key, info), nonce, primitives.seal_bytes(key, nonce, body))
    )


def registry_key(locator_key: bytes, salt: bytes) -> bytes:
    """Return the key of the registry object with this salt."""
    return primitives.keyed_hash(primitives.derive_subkey(locator_key, "registry-seal"), salt)


# --- frames and packs, writing -------------------------------------------------------------


def compress_frame(plaintext: bytes) -> tuple[int, bytes]:
    """Return (compression, payload): deflated if that is smaller, else as it is."""
    deflated = deflate(plaintext)
    return (DEFLATED, deflated) if len(deflated) < len(plaintext) else (STORED, plaintext)


def _frame_key(pack_key: bytes, ordinal: int, ids: Sequence[ChunkId], compression: int) -> bytes:
    digest = primitives.sha256(b"".join(ids))
    return primitives.keyed_hash(
        pack_key, b"frame" + ordinal.to_bytes(4) + digest + bytes((compression,))
    )


class PackSealer:
    """Seals the frames, then the index, of one new pack. Its key lives only here."""

    __slots__ = ("_index_key", "_key", "header")

    def __init__(
        self, recipients: Sequence[bytes], *, place: Compartment, count: int, index_subkey: bytes
    ) -> None:
        self._key, salt, self.header = _new_header(recipients, Seal.PACK, place, count)
        self._index_key = index_key(index_subkey, salt)

    def seal_frame(
        self, ordinal: int, ids: Sequence[ChunkId], compression: int, payload: bytes
    ) -> tuple[bytes, Digest]:
        """Return (ciphertext, digest) of one frame; 16 bytes longer than its payload."""
        key = _frame_key(self._key, ordinal, ids, compression)
        ciphertext = primitives.seal_bytes(key, _FRAME_NONCE, payload)
        return ciphertext, Digest(primitives.sha256(ciphertext))

    def seal_index(self, index: PackIndex, *, size: int) -> tuple[bytes, bytes]:
        """Return (index, trailer) that fill a pack up to ``size`` bytes.

        Raises:
            ValueError: there is no room for them, or no reader would take the index.
        """
        encoded = pack_format.encode_index(index)
        tables = deflate(encoded)
        room = size - index.end - TRAILER_BYTES - NONCE_BYTES - TAG_BYTES
        if len(encoded) > INDEX_MAX_BYTES or room < 4 + len(tables):
            raise ValueError("no room for the index")
        body = pad_document(tables, room)
        nonce = primitives.derive_nonce(self._index_key, Part.INDEX, body)
        sealed = nonce + primitives.seal_bytes(self._index_key, nonce, body)
        position = index.end.to_bytes(_POSITION_BYTES)
        trailer_nonce = primitives.derive_nonce(self._index_key, Part.TRAILER, position)
        trailer = primitives.seal_bytes(self._index_key, trailer_nonce, position)
        return sealed, trailer_nonce + trailer


def index_key(index_subkey: bytes, salt: bytes) -> bytes:
    """Return the key of the index of the pack with this salt."""
    return primitives.keyed_hash(index_subkey, b"index" + salt)


# --- frames and packs, reading -------------------------------------------------------------


def open_trailer(key: bytes, trailer: bytes, *, size: int) -> int:
    """Return the index position that a pack's last 36 bytes state.

    Raises:
        IntegrityError: ``trailer``.
    """
    try:
        plain = primitives.open_bytes(key, trailer[:NONCE_BYTES], trailer[NONCE_BYTES:])
    except WrongKeyError:
        plain = b""
    position = int.from_bytes(plain)
    least = pack_format.header_length(min(STANZA_COUNTS)) + TAG_BYTES
    if len(plain) != _POSITION_BYTES or not least < position < size - TRAILER_BYTES:
        raise IntegrityError("trailer", "trailer of the pack does not open or points elsewhere")
    return position


@dataclass(frozen=True, slots=True)
class CheckedIndex:
    """The sealed index of a pack whose digest has been compared. `check_index` makes it."""

    sealed: bytes
    position: int


def check_index(sealed: bytes, position: int, digest: Digest) -> CheckedIndex:
    """Compare a sealed index with the digest that a pin states.

    Raises:
        IntegrityError: ``index-digest``.
    """
    if not primitives.same(primitives.sha256(sealed), digest):
        raise IntegrityError("index-digest", "index of the pack is not the pinned one")
    return CheckedIndex(sealed, position)


def open_index(checked: CheckedIndex, key: bytes) -> PackIndex:
    """Return the tables of a checked index.

    Raises:
        IntegrityError: ``index-seal`` or ``index-form``.
    """
    sealed = checked.sealed
    try:
        body = primitives.open_bytes(key, sealed[:NONCE_BYTES], sealed[NONCE_BYTES:])
        tables = inflate(unpad_document(body), most=INDEX_MAX_BYTES)
    except (WrongKeyError, InflateError, IntegrityError):
        raise IntegrityError("index-seal", "index of the pack does not open") from None
    return pack_format.parse_index(tables, end=checked.position)


def check_pack_header(header: bytes, index: PackIndex) -> None:
    """Refuse a header that is not the one the pinned index names.

    Raises:
        IntegrityError: ``pack-header``.
    """
    if not primitives.same(primitives.sha256(header), index.header_digest):
        raise IntegrityError("pack-header", "header of the pack is not the one its index names")


def open_pack_key(header: bytes, identity: bytes, place: Compartment) -> bytes:
    """Return the pack key from a checked header.

    Raises:
        IntegrityError: ``stanza`` or ``commitment``.
    """
    salt, stanzas, stated = pack_format.split_header(header)
    info = seal_info(Seal.PACK, place, salt)
    key = open_stanzas(identity, b"".join(stanzas), info)
    check_commitment(key, info, stated)
    return key


@dataclass(frozen=True, slots=True)
class CheckedFrame:
    """The ciphertext of a frame whose digest has been compared. `check_frame` makes it."""

    ciphertext: bytes
    ordinal: int
    info: FrameInfo


def check_frame(ciphertext: bytes, index: PackIndex, ordinal: int) -> CheckedFrame:
    """Compare a frame's bytes with the digest in a pinned index.

    Raises:
        IntegrityError: ``frame-digest``.
    """
    info = index.frames[ordinal]
    if not primitives.same(primitives.sha256(ciphertext), info.digest):
        raise IntegrityError("frame-digest", "stored bytes of a frame are not the pinned ones")
    return CheckedFrame(ciphertext, ordinal, info)


def open_frame(checked: CheckedFrame, index: PackIndex, pack_key: bytes) -> bytes:
    """Return the plaintext of a checked frame.

    Raises:
        IntegrityError: ``frame-seal`` or ``frame-inflate``.
    """
    info = checked.info
    ids = index.ids[info.first_chunk : info.first_chunk + info.chunk_count]
    key = _frame_key(pack_key, checked.ordinal, ids, info.compression)
    try:
        payload = primitives.open_bytes(key, _FRAME_NONCE, checked.ciphertext)
    except WrongKeyError:
        raise IntegrityError("frame-seal", "frame does not authenticate") from None
    if info.compression == DEFLATED:
        try:
            payload = inflate(payload, most=info.plain_length)
        except InflateError:
            raise IntegrityError("frame-inflate", "frame does not inflate") from None
    if len(payload) != info.plain_length:
        raise IntegrityError("frame-inflate", "frame inflates to another length")
    return payload


def iter_chunks(
    plaintext: bytes, index: PackIndex, info: FrameInfo, namer: ChunkNamer
) -> Iterator[tuple[ChunkId, memoryview]]:
    """Yield (id, plaintext) of each chunk of a frame, its id derived again; nothing is copied.

    Raises:
        IntegrityError: ``chunk-id``.
    """
    at, whole = 0, memoryview(plaintext)
    for number in range(info.first_chunk, info.first_chunk + info.chunk_count):
        chunk = whole[at : at + index.lengths[number]]
        at += len(chunk)
        yield index.ids[number], check_chunk(chunk, index, number, namer)


def check_chunk(chunk: Octets, index: PackIndex, number: int, namer: ChunkNamer) -> Octets:
    """Return ``chunk`` if its id, derived again, is the one that the index states.

    Raises:
        IntegrityError: ``chunk-id``.
    """
    if namer.name_of(_KINDS[index.kinds[number]], chunk) != index.ids[number]:
        raise IntegrityError("chunk-id", "decrypted chunk is not the one its id names")
    return chunk
