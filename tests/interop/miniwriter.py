"""A second, small writer of the durarepo format, version 1, made from the specification alone.

It turns Python values into registries, packs, envelopes and whole repositories, and lets a
test alter any single field *before* what depends on it is computed (commitments, marks,
signatures, seals, names). It must not import durarepo and shares no code with it: where the
two disagree, one of them or the specification is wrong. It is for tests and holds no care for
secrets.

Every function that builds an object takes ``edits``: a mapping from the name of a part (listed
in its docstring, in the order of computation) to a new value, or to a function from the old
value to the new one. Everything computed later uses the edited value.

Source: spec/format.md. Start at `Repository`; the functions above it are its steps.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import zstandard
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA65PrivateKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Value = Any  # what the encoding of format 6.1 can hold; tests put wrong things there on purpose
Edits = Mapping[str, Any]

SIZE_CLASSES = (32768, 131072, 393216, 1048576, 2621440, 6291456, 14680064, 33554432)
DATA, LIST, TREE, LEDGER = range(4)
FILE, DIRECTORY, SYMLINK, FIFO, SOCKET, CHARACTER, BLOCK = range(7)
ZERO = bytes(32)
MANIFEST_TYPE = "durarepo/1/manifest"
REGISTRY_TYPE = "durarepo/1/registry"
TREE_SPLIT_BYTES, TREE_LEAF_MAX_ENTRIES = 1048576, 4096
_SUITE = hpke.Suite(hpke.KEM.MLKEM768_X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)


class Raw(bytes):
    """Bytes that `encode` puts out as they are: a ready (or a broken) encoding."""


def _edit(edits: Edits | None, name: str, value: Value) -> Value:
    """Return ``value``, or what ``edits`` makes of it."""
    if not edits or name not in edits:
        return value
    change = edits[name]
    return change(value) if callable(change) else change


def u8(number: int) -> bytes:
    """Encode one byte."""
    return struct.pack(">B", number)


def u16(number: int) -> bytes:
    """Encode two bytes, big-endian."""
    return struct.pack(">H", number)


def u32(number: int) -> bytes:
    """Encode four bytes, big-endian."""
    return struct.pack(">I", number)


def u64(number: int) -> bytes:
    """Encode eight bytes, big-endian."""
    return struct.pack(">Q", number)


def sha256(data: bytes) -> bytes:
    """Return the SHA-256 of ``data``."""
    return hashlib.sha256(data).digest()


def mac(key: bytes, message: bytes) -> bytes:
    """Return HMAC-SHA-256."""
    return hmac.digest(key, message, "sha256")


def subkey(key: bytes, label: str) -> bytes:
    """Derive a subkey (format 1)."""
    return mac(key, b"durarepo/1/" + label.encode() + b"\x01")


def head(major: int, number: int) -> bytes:
    """Encode one CBOR head in its shortest form."""
    if number < 24:
        return u8(major << 5 | number)
    for code, (bits, form) in enumerate(((8, ">B"), (16, ">H"), (32, ">I"), (64, ">Q"))):
        if number < 1 << bits:
            return u8(major << 5 | 24 + code) + struct.pack(form, number)
    raise ValueError("number too large")


def encode(value: Value) -> bytes:
    """Encode a value as format 6.1 says. Map keys stand in the order given, wrong or right."""
    if isinstance(value, Raw):
        return bytes(value)
    if value is None or isinstance(value, bool):
        return {None: b"\xf6", False: b"\xf4", True: b"\xf5"}[value]
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, bytes | str):
        data = value.encode() if isinstance(value, str) else value
        return head(3 if isinstance(value, str) else 2, len(data)) + data
    if isinstance(value, dict):
        pairs = list(chain.from_iterable(value.items()))
        return head(5, len(value)) + b"".join(map(encode, pairs))
    return head(4, len(value)) + b"".join(map(encode, value))


def ordered(pairs: Mapping[int, Value]) -> dict[int, Value]:
    """Return a map with ascending keys."""
    return {key: pairs[key] for key in sorted(pairs)}


def key_line(kind: str, data: bytes, *, check: bytes | None = None) -> str:
    """Return the key line of format 3.2; ``check`` replaces the four check bytes."""
    start = f"durarepo-{kind}-1 "
    check = sha256(start.encode() + data)[:4] if check is None else check
    return f"{start}{data.hex()} {check.hex()}\n"


@dataclass(frozen=True)
class Signer:
    """A signing or owner key from its 64 secret bytes."""

    secret: bytes

    @property
    def public(self) -> bytes:
        """The 1984 public bytes."""
        ed25519 = Ed25519PrivateKey.from_private_bytes(self.secret[:32]).public_key()
        mldsa = MLDSA65PrivateKey.from_seed_bytes(self.secret[32:]).public_key()
        return ed25519.public_bytes_raw() + mldsa.public_bytes_raw()

    @property
    def id(self) -> bytes:
        """The signer id."""
        return sha256(self.public)

    def sign(self, message: bytes, context: bytes) -> tuple[bytes, bytes]:
        """Return the Ed25519 and the ML-DSA-65 signature."""
        ed25519 = Ed25519PrivateKey.from_private_bytes(self.secret[:32]).sign(message)
        return ed25519, MLDSA65PrivateKey.from_seed_bytes(self.secret[32:]).sign(message, context)


@dataclass(frozen=True)
class Identity:
    """A data, audit or escrow identity from its 32-byte seed."""

    seed: bytes

    @property
    def private(self) -> hpke.MLKEM768X25519PrivateKey:
        """The HPKE private key (format 3.1)."""
        wide = hashlib.shake_256(self.seed).digest(96)
        return hpke.MLKEM768X25519PrivateKey(
            MLKEM768PrivateKey.from_seed_bytes(wide[:64]),
            X25519PrivateKey.from_private_bytes(wide[64:]),
        )

    @property
    def recipient(self) -> bytes:
        """The 1216 public bytes."""
        wide = hashlib.shake_256(self.seed).digest(96)
        kem = MLKEM768PrivateKey.from_seed_bytes(wide[:64]).public_key().public_bytes_raw()
        curve = X25519PrivateKey.from_private_bytes(wide[64:]).public_key().public_bytes_raw()
        return kem + curve


@dataclass(frozen=True)
class Scope:
    """What a sealing is bound to, and to whom it is sealed."""

    stream: str = "notes"
    epoch: int = 1
    compartment: str = "main"
    recipients: tuple[Identity, ...] = ()
    n: int = 4

    def info(self, kind: int, salt: bytes) -> bytes:
        """Return the info of format 3.3."""
        stream, compartment = self.stream.encode(), self.compartment.encode()
        return b"".join((b"durarepo/1", u8(kind), u8(len(stream)), stream, u32(self.epoch),
                         u8(len(compartment)), compartment, salt))  # fmt: skip


NOBODY = Scope(stream="", epoch=0, compartment="")


def commit(key: bytes, info: bytes) -> bytes:
    """Return the commitment of format 3.3."""
    return mac(key, b"commit" + info)


def nonce(key: bytes, part: int, plain: bytes) -> bytes:
    """Return the synthetic nonce of format 3.3."""
    return mac(key, b"nonce" + u8(part) + plain)[:12]


def gcm(key: bytes, nonce12: bytes, plain: bytes) -> bytes:
    """Return ciphertext and tag."""
    return AESGCM(key).encrypt(nonce12, plain, None)


def stanza(key: bytes, info: bytes, identity: Identity) -> bytes:
    """Seal ``key`` to one identity: 1168 bytes."""
    return bytes(_SUITE.encrypt(key, identity.private.public_key(), info))


def stanzas(key: bytes, info: bytes, scope: Scope) -> list[bytes]:
    """Seal ``key`` to the recipients, and to keys that nobody holds up to n."""
    decoys = [Identity(os.urandom(32)) for _ in range(scope.n - len(scope.recipients))]
    return [stanza(key, info, identity) for identity in (*scope.recipients, *decoys)][::-1]


def size_class(length: int) -> int:
    """Return the number of the least size class that holds ``length`` bytes."""
    return next(number for number, size in enumerate(SIZE_CLASSES) if length <= size)


def sealed_box(content: bytes, *, kind: int, scope: Scope, extra: bytes = b"",
               part: int | None = None, edits: Edits | None = None) -> bytes:  # fmt: skip
    """Return a sealed box.

    Parts: key, salt, info, stanzas, commitment, content, nonce, sealed,
    object.
    """
    part = (2 if kind == 3 else 6) if part is None else part
    key = _edit(edits, "key", os.urandom(32))
    salt = _edit(edits, "salt", os.urandom(32))
    info = _edit(edits, "info", scope.info(kind, salt) + extra)
    sealed_keys = _edit(edits, "stanzas", stanzas(key, info, scope))
    commitment = _edit(edits, "commitment", commit(key, info))
    content = _edit(edits, "content", content)
    number = _edit(edits, "nonce", nonce(key, part, content))
    sealed = _edit(edits, "sealed", gcm(key, number, content))
    whole = salt + b"".join(sealed_keys) + commitment + number + sealed
    return bytes(_edit(edits, "object", whole))


def sign_document(kind: str, statement: Value, signer: Signer, *,
                  edits: Edits | None = None) -> bytes:  # fmt: skip
    """Encode and sign a statement.

    Parts: statement, statement_bytes, type, message, context,
    ed25519, mldsa, document, document_bytes.
    """
    statement = _edit(edits, "statement", statement)
    inner = _edit(edits, "statement_bytes", encode(statement))
    kind = _edit(edits, "type", kind)
    name = kind.encode()
    message = b"DSSEv1 %d %s %d %s" % (len(name), name, len(inner), inner)
    message = _edit(edits, "message", message)
    ed25519, mldsa = signer.sign(message, _edit(edits, "context", name))
    ed25519, mldsa = _edit(edits, "ed25519", ed25519), _edit(edits, "mldsa", mldsa)
    document = _edit(edits, "document", [kind, inner, ed25519, mldsa])
    return bytes(_edit(edits, "document_bytes", encode(document)))


def _padded(document: bytes, around: int, size: int | None, edits: Edits | None) -> bytes:
    """Return the plaintext that fills an object. Parts: declared, zeros, plain."""
    declared = _edit(edits, "declared", len(document))
    need = around + 4 + len(document)
    size = _edit(edits, "size", SIZE_CLASSES[size_class(need)] if size is None else size)
    zeros = _edit(edits, "zeros", bytes(size - need))
    return bytes(_edit(edits, "plain", u32(declared) + document + zeros))


def seal_registry(statement: Value, *, owner: Signer, locator: bytes, size: int | None = None,
                  edits: Edits | None = None) -> bytes:  # fmt: skip
    """Return a registry object.

    Parts: those of `sign_document`, version_byte, salt, key, info,
    commitment, declared, size, zeros, plain, nonce, sealed, object.
    """
    document = sign_document(REGISTRY_TYPE, statement, owner, edits=edits)
    version = _edit(edits, "version_byte", b"\x01")
    salt = _edit(edits, "salt", os.urandom(32))
    key = _edit(edits, "key", mac(subkey(locator, "registry-seal"), salt))
    info = _edit(edits, "info", NOBODY.info(4, salt))
    commitment = _edit(edits, "commitment", commit(key, info))
    plain = _padded(document, 1 + 32 + 32 + 12 + 16, size, edits)
    number = _edit(edits, "nonce", nonce(key, 3, plain))
    sealed = _edit(edits, "sealed", gcm(key, number, plain))
    return bytes(_edit(edits, "object", version + salt + commitment + number + sealed))


def seal_nested(nested: Value, *, scope: Scope, sequence: int, previous: bytes,
                edits: Edits | None = None) -> bytes:  # fmt: skip
    """Return the nested part of a manifest.

    Parts: nested, nested_bytes, compressed, then those
    of `sealed_box`.
    """
    nested = _edit(edits, "nested", nested)
    inner = _edit(edits, "nested_bytes", encode(nested))
    packed = _edit(edits, "compressed", compress(inner))
    return sealed_box(packed, kind=3, scope=scope, extra=u64(sequence) + previous, edits=edits)


def seal_envelope(statement: dict[int, Value], *, signer: Signer, naming: bytes, scope: Scope,
                  size: int | None = None, edits: Edits | None = None) -> bytes:  # fmt: skip
    """Return an envelope; fills in the header digest (statement key 1, key 3).

    Parts: version_byte, key, salt, info, stanzas, commitment, header, header_digest, those of
    `sign_document`, declared, size, zeros, plain, nonce, sealed, marked, mark, object.
    """
    version = _edit(edits, "version_byte", b"\x01")
    key = _edit(edits, "key", os.urandom(32))
    salt = _edit(edits, "salt", os.urandom(32))
    info = _edit(edits, "info", scope.info(2, salt))
    sealed_keys = _edit(edits, "stanzas", stanzas(key, info, scope))
    commitment = _edit(edits, "commitment", commit(key, info))
    header = _edit(edits, "header", version + salt + b"".join(sealed_keys) + commitment)
    links = ordered({**statement[1], 3: _edit(edits, "header_digest", sha256(header))})
    document = sign_document(MANIFEST_TYPE, {**statement, 1: links}, signer, edits=edits)
    plain = _padded(document, len(header) + 12 + 16 + 32, size, edits)
    number = _edit(edits, "nonce", nonce(key, 1, plain))
    sealed = _edit(edits, "sealed", gcm(key, number, plain))
    marked = _edit(edits, "marked", header + number + sealed)
    mark = _edit(edits, "mark", mac(subkey(naming, "mark"), marked))
    return bytes(_edit(edits, "object", marked + mark))


def compress(data: bytes, *, level: int = 3, content_size: bool = True) -> bytes:
    """Return one zstd frame."""
    return zstandard.ZstdCompressor(level=level, write_content_size=content_size).compress(data)


def chunk_id(naming: bytes, kind: int, plain: bytes) -> bytes:
    """Return a chunk's id (format 4)."""
    return mac(subkey(naming, "chunk-id"), u8(kind) + u64(len(plain)) + sha256(plain))


@dataclass
class Frame:
    """Chunks of one frame: (kind, plaintext) each."""

    chunks: list[tuple[int, bytes]]
    compression: int = 1


@dataclass(frozen=True)
class Pack:
    """A sealed pack and what a pin says of it."""

    data: bytes
    index_digest: bytes
    position: int
    ids: tuple[bytes, ...]

    @property
    def name(self) -> bytes:
        """The pack's name, 32 bytes."""
        return sha256(self.data)

    def pin(self, registry_version: int) -> list[Value]:
        """Return the pin of format 7.2."""
        return [self.name, size_class(len(self.data)), self.index_digest, registry_version]


def make_index(tables: Mapping[str, Value]) -> bytes:
    """Encode the index tables.

    They are header_digest, header_length, frames, chunks (numbers), stored,
    plain, counts, compressions, digests (per frame), lengths, kinds, ids (per chunk).
    """
    return b"".join((
        tables["header_digest"], u32(tables["header_length"]),
        u32(tables["frames"]), u32(tables["chunks"]),
        *map(u32, tables["stored"]), *map(u32, tables["plain"]), *map(u32, tables["counts"]),
        *map(u8, tables["compressions"]), *tables["digests"],
        *map(u32, tables["lengths"]), *map(u8, tables["kinds"]), *tables["ids"],
    ))  # fmt: skip


def seal_pack(frames: Sequence[Frame], *, naming: bytes, scope: Scope, size: int | None = None,
              edits: Edits | None = None) -> Pack:  # fmt: skip
    """Return a sealed pack.

    Parts: version_byte, key, salt, info, stanzas, commitment, header; ids (a list of ids per
    frame), plains, stored (after compression), ciphers (all lists, one item a frame), tables,
    index_plain, index_packed, index_declared, size, index_zeros, index_nonce, index_sealed,
    position, trailer_nonce, trailer, object.
    """
    key = _edit(edits, "key", os.urandom(32))
    version = _edit(edits, "version_byte", b"\x01")
    salt = _edit(edits, "salt", os.urandom(32))
    info = _edit(edits, "info", scope.info(1, salt))
    sealed_keys = _edit(edits, "stanzas", stanzas(key, info, scope))
    commitment = _edit(edits, "commitment", commit(key, info))
    header = _edit(edits, "header", version + salt + b"".join(sealed_keys) + commitment)
    ids, ciphers, tables = _seal_frames(frames, key, naming, edits)
    tables.update(header_digest=sha256(header), header_length=len(header))
    tables = _edit(edits, "tables", tables)
    index_plain = _edit(edits, "index_plain", make_index(tables))
    packed = _edit(edits, "index_packed", compress(index_plain))
    declared = _edit(edits, "index_declared", len(packed))
    position = len(header) + sum(map(len, ciphers))
    need = position + 12 + 4 + len(packed) + 16 + 36
    size = _edit(edits, "size", SIZE_CLASSES[size_class(need)] if size is None else size)
    zeros = _edit(edits, "index_zeros", bytes(size - need))
    seal = mac(subkey(naming, "index"), b"index" + salt)
    plain = u32(declared) + packed + zeros
    number = _edit(edits, "index_nonce", nonce(seal, 4, plain))
    index = _edit(edits, "index_sealed", number + gcm(seal, number, plain))
    told = u64(_edit(edits, "position", position))
    number = _edit(edits, "trailer_nonce", nonce(seal, 5, told))
    trailer = _edit(edits, "trailer", number + gcm(seal, number, told))
    data = _edit(edits, "object", header + b"".join(ciphers) + index + trailer)
    return Pack(data, sha256(data[position:-36]), position, tuple(chain.from_iterable(ids)))


def _seal_frames(frames: Sequence[Frame], key: bytes, naming: bytes, edits: Edits | None,
                 ) -> tuple[list[list[bytes]], list[bytes], dict[str, Value]]:  # fmt: skip
    """Return ids and ciphertexts of each frame, and the tables that follow from them."""
    ids = [[chunk_id(naming, kind, plain) for kind, plain in frame.chunks] for frame in frames]
    ids = _edit(edits, "ids", ids)
    plains = [b"".join(plain for _, plain in frame.chunks) for frame in frames]
    plains = _edit(edits, "plains", plains)
    stored = [compress(plain) if frame.compression == 1 else plain
              for frame, plain in zip(frames, plains, strict=True)]  # fmt: skip
    stored = _edit(edits, "stored", stored)
    ciphers = []
    for ordinal, (frame, plain, names) in enumerate(zip(frames, stored, ids, strict=True)):
        context = u32(ordinal) + sha256(b"".join(names)) + u8(frame.compression)
        ciphers.append(gcm(mac(key, b"frame" + context), bytes(12), plain))
    ciphers = _edit(edits, "ciphers", ciphers)
    chunks = [chunk for frame in frames for chunk in frame.chunks]
    tables: dict[str, Value] = {
        "frames": len(frames), "chunks": len(chunks),
        "stored": list(map(len, ciphers)), "plain": list(map(len, plains)),
        "counts": [len(frame.chunks) for frame in frames],
        "compressions": [frame.compression for frame in frames],
        "digests": list(map(sha256, ciphers)),
        "lengths": [len(plain) for _, plain in chunks], "kinds": [kind for kind, _ in chunks],
        "ids": list(chain.from_iterable(ids)),
    }  # fmt: skip
    return ids, ciphers, tables


def slot_key(naming: bytes) -> bytes:
    """Return the slot subkey of a naming key."""
    return subkey(naming, "slot")


def manifest_slot(slot: bytes, epoch: int, sequence: int, attempt: int = 0) -> str:
    """Return the name of an envelope."""
    return mac(slot, u8(1) + u32(epoch) + u64(sequence) + u8(attempt)).hex()


def evidence_slot(slot: bytes, epoch: int, sequence: int, signer: bytes, *, counter: int = 0,
                  attempt: int = 0) -> str:  # fmt: skip
    """Return the name of a piece of evidence."""
    place = u8(2) + u32(epoch) + u64(sequence) + u8(attempt)
    return mac(slot, place + signer + u16(counter)).hex()


def registry_slot(locator: bytes, version: int, attempt: int = 0) -> str:
    """Return the name of a registry."""
    place = u8(3) + u32(0) + u64(version) + u8(attempt)
    return mac(subkey(locator, "registry-slot"), place).hex()


def pack_slot(slot: bytes, pack: bytes, attempt: int = 0) -> str:
    """Return the name of the second place of a pack."""
    return mac(slot, u8(4) + pack + u8(attempt)).hex()


def text_file(first: str, content: bytes) -> str:
    """Return a card or a keys file: ``first`` line, then base64 of ``content``."""
    lines = base64.b64encode(content).decode()
    return "\n".join((first, *(lines[at : at + 64] for at in range(0, len(lines), 64)), ""))


# --- trees -------------------------------------------------------------------------------------


@dataclass
class Node:
    """One thing to store: its entry's fields without the name, and what lies in it.

    ``runs`` are the parts of a file's content, in order: bytes are one data chunk, an int is a
    hole. ``depth`` is the depth of its lists. ``fields`` may override any key; a value of
    `DROP` leaves the key out.
    """

    type: int
    fields: dict[int, Value] = field(default_factory=dict)
    runs: Sequence[bytes | int] = ()
    depth: int = 0
    children: dict[bytes, Node] = field(default_factory=dict)


DROP = object()


def file(*runs: bytes | int, depth: int = 0, **fields: Value) -> Node:
    """Return a file of ``runs``; further fields by name, e.g. mode=0o600, link=7."""
    return Node(FILE, named(fields), [run for run in runs if run], depth)


def directory(children: Mapping[bytes, Node], **fields: Value) -> Node:
    """Return a directory."""
    return Node(DIRECTORY, named(fields), children=dict(children))


def symlink(target: bytes, **fields: Value) -> Node:
    """Return a symbolic link."""
    return Node(SYMLINK, named(fields) | {13: target})


def special(kind: int, **fields: Value) -> Node:
    """Return a FIFO, socket or device."""
    return Node(kind, named(fields))


FIELD_NAMES = {
    "name": 0, "type": 1, "mode": 2, "modified": 3, "uid": 4, "gid": 5, "user": 6, "group": 7,
    "born": 8, "size": 9, "sha256": 10, "content": 11, "tree": 12, "target": 13, "device": 14,
    "xattrs": 15, "link": 16, "consistency": 17, "since": 18, "redactions": 19,
}  # fmt: skip


def named(fields: Mapping[str, Value]) -> dict[int, Value]:
    """Turn names of entry fields into their keys."""
    return {FIELD_NAMES[name]: value for name, value in fields.items()}


@dataclass
class Chunks:
    """Collects the chunks of one manifest; a chunk that is there is not stored again."""

    naming: bytes
    new: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    stored: set[bytes] = field(default_factory=set)

    def add(self, kind: int, plain: bytes) -> bytes:
        """Keep a chunk and return its id."""
        name = chunk_id(self.naming, kind, plain)
        if name not in self.stored:
            self.new.setdefault(name, (kind, plain))
        return name

    def content(self, runs: Sequence[bytes | int], depth: int, kind: int = DATA) -> Value:
        """Store runs and return their content (format 6.4), with lists of two items each."""
        items: list[tuple[int, Value]] = [
            (run, None) if isinstance(run, int) else (len(run), self.add(kind, run))
            for run in runs
        ]  # fmt: skip
        for level in range(depth):
            groups = [items[at : at + 2] for at in range(0, len(items), 2)]
            items = [
                (sum(length for length, _ in group), self.add(LIST, encode([level, flat(group)])))
                for group in groups
            ]
        return [depth, flat(items)]

    def entry(self, node: Node, name: bytes | None = None) -> dict[int, Value]:
        """Store what ``node`` holds and return its entry."""
        fields: dict[int, Value] = {} if name is None else {0: name}
        usual = 0o755 if node.type == DIRECTORY else 0o644
        fields |= {1: node.type, 2: usual, 3: [1700000000, 5], 4: 0, 5: 0}
        if node.type == FILE:
            fields |= self._file(node)
        if node.type == DIRECTORY:
            fields[12] = self.tree(
                [self.entry(child, name) for name, child in sorted(node.children.items())]
            )
        fields |= node.fields
        return ordered({key: value for key, value in fields.items() if value is not DROP})

    def _file(self, node: Node) -> dict[int, Value]:
        size = sum(run if isinstance(run, int) else len(run) for run in node.runs)
        if not size:
            return {9: 0}
        digest = sha256(b"".join(bytes(run) for run in node.runs))
        single = len(node.runs) == 1 and isinstance(node.runs[0], bytes) and not node.depth
        content = self.content(node.runs, node.depth)
        return {9: size, 10: digest} | ({} if single else {11: content})

    def tree(self, entries: Sequence[dict[int, Value]]) -> bytes:
        """Store a directory, cut as format 6.2 says, and return its id."""
        whole = encode([0, list(entries)])
        if len(whole) <= TREE_SPLIT_BYTES:
            return self.add(TREE, whole)
        leaves: list[list[dict[int, Value]]] = [[]]
        weight = 0
        for entry in entries:
            own = len(encode(entry))
            cut = int.from_bytes(sha256(entry[0])[:2], "big") >> 6 == 0
            full = len(leaves[-1]) == TREE_LEAF_MAX_ENTRIES or weight + own > TREE_SPLIT_BYTES
            if leaves[-1] and (cut or full):
                leaves.append([])
                weight = 0
            leaves[-1].append(entry)
            weight += own
        return self.node(leaves)

    def node(self, leaves: Sequence[Sequence[dict[int, Value]]]) -> bytes:
        """Store a directory of the given leaves and return the node's id."""
        rows = [[leaf[0][0], self.add(TREE, encode([0, list(leaf)]))] for leaf in leaves]
        return self.add(TREE, encode([1, rows]))


def flat(items: Iterable[tuple[int, Value]]) -> list[Value]:
    """Turn (length, id) pairs into one list."""
    return [part for item in items for part in item]


def set_hash(node: Node) -> bytes:
    """Return the set hash of a directory (format 7.3)."""
    text = b""
    for name, child in sorted(node.children.items()):
        size, value = 0, ZERO
        whole = b"".join(bytes(run) for run in child.runs)
        if child.type == FILE:
            size, value = len(whole), sha256(whole) if whole else ZERO
        elif child.type == DIRECTORY:
            value = set_hash(child)
        elif child.type == SYMLINK:
            value = sha256(child.fields[13])
        text += u16(len(name)) + name + u8(child.type) + u64(size) + value
    return sha256(text)


def component(kind: str, name: bytes, integrity: bytes, **fields: Value) -> dict[int, Value]:
    """Return a component of the nested part."""
    return {0: kind, 1: name, 2: integrity, 3: fields.get("consistency", 0),
            4: fields.get("counts", []), 5: fields.get("facts", [])}  # fmt: skip


def files_component(roots: Mapping[bytes, Node]) -> dict[int, Value]:
    """Return the component of kind ``files`` over all roots."""
    text = b"".join(u16(len(path)) + path + set_hash(node) for path, node in sorted(roots.items())
                    if not path.startswith(b"/.durarepo/components/"))  # fmt: skip
    return component("files", b"files", sha256(text))


def component_index(components: Sequence[Mapping[int, Value]]) -> bytes:
    """Return the index of components (format 7.3)."""
    return sha256(b"".join(
        u16(len(part[0].encode())) + part[0].encode() + u16(len(part[1])) + part[1] + part[2]
        for part in components))  # fmt: skip


def totals(roots: Mapping[bytes, Node]) -> dict[int, int]:
    """Count files, directories and bytes."""
    counts = dict.fromkeys(range(7), 0)
    links: set[int] = set()
    pending = list(roots.values())
    while pending:
        node = pending.pop()
        pending += node.children.values()
        counts[1 if node.type == DIRECTORY else 0] += 1
        if node.fields.get(16) not in links:
            counts[2] += sum(run if isinstance(run, int) else len(run) for run in node.runs)
        links |= {node.fields[16]} if 16 in node.fields else set()
    return counts


# --- a whole repository ------------------------------------------------------------------------


class Repository:
    """One stream in memory: keys from a seed, a registry, packs and a chain of envelopes.

    ``objects`` maps names to bytes. A snapshot is `snapshot`; its steps `store`, `nested_map`,
    `statement` and `commit` may be called singly. `publish` seals ``registry`` (the statement,
    to be changed at will) under a new version.
    """

    def __init__(
        self,
        *,
        seed: bytes = b"miniwriter",
        stream: str = "notes",
        compartment: str = "main",
        n: int = 4,
        issued: int = 1800000000,
    ) -> None:
        self.seed, self.stream, self.compartment = seed, stream, compartment
        self.n, self.issued = n, issued
        self.owner = Signer(self.secret("owner", 64))
        self.locator = self.secret("locator", 32)
        self.data = [Identity(self.secret("data", 32))]
        self.audit = [Identity(self.secret("audit", 32))]
        self.signers: dict[int, Signer] = {}
        self.naming: dict[int, bytes] = {}
        self.objects: dict[str, bytes] = {}
        self.envelopes: dict[int, bytes] = {}
        self.epoch_of: dict[int, int] = {}
        self.pins: dict[bytes, list[Value]] = {}
        self.stored: dict[int, set[bytes]] = {}
        self.epochs: list[dict[int, Value]] = []
        self.registry: dict[int, Value] = {
            0: 0, 1: {0: issued, 1: issued + 34560000}, 2: self.owner.public,
            3: [{0: stream, 1: compartment, 2: False, 3: self.epochs, 4: 1, 5: [30, 8, 12],
                 6: False, 7: None}],
        }  # fmt: skip
        self.begin_epoch()
        self.publish()

    def secret(self, label: str, length: int) -> bytes:
        """Return a secret that follows from the seed."""
        return hashlib.shake_256(self.seed + b"/" + label.encode()).digest(length)

    @property
    def epoch(self) -> int:
        """The number of the last epoch."""
        return len(self.epochs)

    @property
    def head(self) -> int:
        """The highest sequence committed, 0 before the first."""
        return max(self.envelopes, default=0)

    @property
    def owner_digest(self) -> bytes:
        """SHA-256 of the owner's public bytes."""
        return sha256(self.owner.public)

    def digest(self, sequence: int) -> bytes:
        """Return the digest of an envelope; zero for number 0."""
        return sha256(self.envelopes[sequence]) if sequence else ZERO

    def scope(self, *, audit: bool = False, epoch: int | None = None) -> Scope:
        """Return the scope of an epoch: data recipients, with ``audit`` the audit ones too."""
        recipients = (*self.data, *(self.audit if audit else ()))
        return Scope(self.stream, epoch or self.epoch, self.compartment, recipients, self.n)

    def begin_epoch(self, *, naming: bytes | None = None) -> dict[int, Value]:
        """Add an epoch to the registry statement; call `publish` after.

        Its keys are its own, but for a ``naming`` key that is kept; then chunks are kept as well.
        """
        number = self.epoch + 1
        kept = self.stored.get(self.epoch, set()) if naming else set()
        self.signers[number] = Signer(self.secret(f"signer-{number}", 64))
        self.naming[number] = naming or self.secret(f"naming-{number}", 32)
        self.stored[number] = set(kept)
        if not naming:  # a manifest pins packs of one naming key only (format 7.2)
            self.pins = {}
        slots = Scope(self.stream, number, self.compartment, tuple(self.audit), self.n)
        self.epochs.append({
            0: number, 1: self.head + 1, 2: self.digest(self.head),
            3: [[self.signers[number].public, 3]],
            4: [identity.recipient for identity in self.data],
            5: [identity.recipient for identity in self.audit], 6: self.n,
            7: sealed_box(self.naming[number], kind=5, scope=self.scope(epoch=number)),
            8: (sealed_box(slot_key(self.naming[number]), kind=6, scope=slots)
                if self.audit else None),
            9: [],
        })  # fmt: skip
        return self.epochs[-1]

    def revoke(self, epoch: int, last_good: int, signer: Signer | None = None) -> None:
        """Add a revocation to an epoch; call `publish` after."""
        signer = signer or self.signers[epoch]
        row = [signer.id, last_good, self.digest(last_good)]
        self.epochs[epoch - 1][9].append(row)

    def publish(self, *, version: int | None = None, attempt: int = 0,
                edits: Edits | None = None) -> bytes:  # fmt: skip
        """Seal the registry statement under the next version and store it."""
        self.registry[0] = self.registry[0] + 1 if version is None else version
        data = seal_registry(self.registry, owner=self.owner, locator=self.locator, edits=edits)
        self.objects[registry_slot(self.locator, self.registry[0], attempt)] = data
        return data

    def chunks(self) -> Chunks:
        """Return an empty collection of chunks under the present naming key."""
        return Chunks(self.naming[self.epoch], stored=self.stored[self.epoch])

    def store(self, chunks: Chunks, *, frames: Callable[[Chunks], list[Frame]] | None = None,
              edits: Edits | None = None) -> Pack | None:  # fmt: skip
        """Seal the new chunks as one pack, pin it and return it; None where there are none."""
        if not chunks.new:
            return None
        made = (frames or frame_all)(chunks)
        pack = seal_pack(made, naming=chunks.naming, scope=self.scope(), edits=edits)
        self.put_pack(pack)
        self.stored[self.epoch].update(chunks.new)
        return pack

    def put_pack(self, pack: Pack) -> None:
        """Store a pack and pin it."""
        self.objects[pack.name.hex()] = pack.data
        self.pins[pack.name] = pack.pin(self.registry[0])

    def nested_map(self, roots: Mapping[bytes, Node], chunks: Chunks, *,
                   ledger: Value = b"\x80") -> dict[int, Value]:  # fmt: skip
        """Store the trees of ``roots`` in ``chunks`` and return the nested map."""
        components = [files_component(roots)]
        return {
            0: [[path, chunks.entry(node)] for path, node in sorted(roots.items())],
            1: components, 2: component_index(components), 3: ledger, 4: b"[stream]\n",
            5: [["system", "Linux"]], 6: [["entropy", 1]], 7: "1",
        }  # fmt: skip

    def statement(self, *, sequence: int | None = None, counts: Mapping[int, int] | None = None,
                  nested: bytes = b"") -> dict[int, Value]:  # fmt: skip
        """Return the statement of the next manifest, without its header digest."""
        number = self.head + 1 if sequence is None else sequence
        issued = self.issued + number
        return {
            0: {0: self.stream, 1: self.epoch, 2: self.compartment, 3: False,
                4: self.signers[self.epoch].id},
            1: {0: number, 1: self.digest(number - 1), 2: self.digest(self.milestone(number)),
                3: ZERO, 4: self.registry[0]},
            2: {0: issued, 1: issued + 86400}, 3: 0, 4: True,
            5: dict(counts or dict.fromkeys(range(7), 0)), 6: False, 7: None, 8: [], 9: ZERO,
            10: False, 11: [self.pins[name] for name in sorted(self.pins)], 12: [], 13: [],
            14: 1, 15: nested,
        }  # fmt: skip

    def milestone(self, sequence: int) -> int:
        """Return the last milestone before ``sequence``; 0 where there is none."""
        firsts = {epoch[1] for epoch in self.epochs}
        return next((number for number in range(sequence - 1, 0, -1)
                     if number == 1 or number % 64 == 0 or number in firsts), 0)  # fmt: skip

    def commit(self, statement: dict[int, Value], *, attempt: int = 0, size: int | None = None,
               signer: Signer | None = None, edits: Edits | None = None) -> bytes:  # fmt: skip
        """Seal a statement and store the envelope in its slot (of the present head + 1)."""
        data = seal_envelope(
            statement, signer=signer or self.signers[self.epoch], size=size, edits=edits,
            naming=self.naming[self.epoch], scope=self.scope(audit=True))  # fmt: skip
        self.put_envelope(data, sequence=statement[1][0], attempt=attempt)
        return data

    def put_envelope(self, data: bytes, *, sequence: int, attempt: int = 0) -> None:
        """Store an envelope under the slot of ``sequence`` in the present epoch."""
        slot = slot_key(self.naming[self.epoch])
        self.objects[manifest_slot(slot, self.epoch, sequence, attempt)] = data
        self.envelopes[sequence] = data
        self.epoch_of[sequence] = self.epoch

    def snapshot(self, roots: Mapping[bytes, Node], *, edits: Edits | None = None,
                 nested_edits: Edits | None = None, pack_edits: Edits | None = None,
                 attempt: int = 0) -> bytes:  # fmt: skip
        """Store ``roots`` as the next manifest and return its envelope.

        ``edits`` go to `commit`, ``nested_edits`` to `seal_nested`, ``pack_edits`` to `store`.
        """
        chunks = self.chunks()
        nested = self.nested_map(roots, chunks)
        self.store(chunks, edits=pack_edits)
        return self.commit_nested(nested, counts=totals(roots), edits=edits,
                                  nested_edits=nested_edits, attempt=attempt)  # fmt: skip

    def commit_nested(self, nested: Value, *, counts: Mapping[int, int] | None = None,
                      edits: Edits | None = None, nested_edits: Edits | None = None,
                      attempt: int = 0) -> bytes:  # fmt: skip
        """Seal a nested map into the next manifest and return its envelope."""
        number = self.head + 1
        sealed = seal_nested(nested, scope=self.scope(), sequence=number,
                             previous=self.digest(number - 1), edits=nested_edits)  # fmt: skip
        statement = self.statement(counts=counts, nested=sealed)
        return self.commit(statement, edits=edits, attempt=attempt)

    def write(self, folder: Path) -> Path:
        """Write all objects below ``folder`` (the objects directory) and return it."""
        for name, data in self.objects.items():
            place = folder / name[:2]
            place.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(data)
        return folder


def frame_all(chunks: Chunks) -> list[Frame]:
    """Put each chunk in a frame of its own, trees together in the last one."""
    frames = [Frame([chunk], compression=number % 2)
              for number, chunk in enumerate(chunks.new.values()) if chunk[0] == DATA]  # fmt: skip
    others = [chunk for chunk in chunks.new.values() if chunk[0] != DATA]
    while others:
        taken, total = 0, 0
        while taken < len(others) and total + len(others[taken][1]) <= 8388608:
            total += len(others[taken][1])
            taken += 1
        frames.append(Frame(others[:taken]))
        others = others[taken:]
    return frames
