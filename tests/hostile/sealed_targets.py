"""Targets that are sealed: as they are stored, and with the input put in behind the seal.

Whoever reads a store meets the first; a signer, or who holds the naming key, can make the second.
Behind the seal everything around the input is right: header, commitment, digests, signatures.
"""

from dataclasses import replace

from durarepo.chunking.compression import inflate
from durarepo.core.errors import IntegrityError
from durarepo.core.limits import NESTED_MAX_BYTES
from durarepo.core.names import ZERO_DIGEST, ChunkId, Digest, ObjectName
from durarepo.core.secret import Secret
from durarepo.crypto import primitives
from durarepo.format import pack as pack_format
from durarepo.format.layout import Compartment, Seal
from durarepo.format.manifest import encode_nested, encode_statement, parse_statement
from durarepo.format.pack import FrameInfo, PackIndex
from durarepo.format.registry import encode_registry
from durarepo.ingest import (
    Expected,
    SignedManifest,
    VerifiedManifest,
    VerifiedRegistry,
    check_mark,
    open_manifest,
    open_nested,
    open_registry,
)
from durarepo.repository.openpack import EpochKeys
from durarepo.repository.rebuild import open_unpinned
from durarepo.sealing import (
    ChunkNamer,
    check_frame,
    check_index,
    index_key,
    iter_chunks,
    open_box,
    open_frame,
    open_index,
    open_pack_key,
    open_trailer,
)
from tests.hostile.target import LawError, Parse, Target
from tests.interop import miniwriter as mini

_ROOT = b"/srv/notes"
_HEADER = 65 + 4 * 1168
_SALT = bytes([90]) * 32
_KEY = bytes([91]) * 32
_ZEROS = bytes(12)


def sealed_targets(stream: mini.Repository) -> list[Target]:
    """Return the targets of registry, manifest and pack."""
    return [*_stored(stream), *_behind_the_seal(stream), *_packs(stream)]


def registry_of(stream: mini.Repository) -> VerifiedRegistry:
    """Return the stream's newest registry, verified."""
    name = mini.registry_slot(stream.locator, stream.registry[0])
    return open_registry(
        stream.objects[name],
        stream.locator,
        owner_digest=stream.owner_digest,
        version=stream.registry[0],
    )


def _place(stream: mini.Repository) -> Compartment:
    return Compartment(stream=stream.stream, epoch=1, compartment=stream.compartment)


def _stored(stream: mini.Repository) -> list[Target]:
    object_ = stream.publish()
    envelope = stream.snapshot({_ROOT: mini.directory({b"a": mini.file(b"alpha")})})
    naming, identity = stream.naming[1], stream.data[0].seed

    def registry(data: bytes) -> object:
        return open_registry(data, stream.locator, owner_digest=stream.owner_digest, version=2)

    expected = Expected(registry=registry_of(stream), stream="notes", epoch=1, sequence=1)
    return [
        Target(
            name="open_registry",
            parse=_unforgeable(registry, object_),
            seeds=(object_,),
            rounds=100,
            covers=("durarepo.ingest:open_registry",),
        ),
        Target(
            name="open_manifest",
            parse=_unforgeable(
                lambda data: open_manifest(data, identity, expected=expected, naming_key=naming),
                envelope,
            ),
            seeds=(envelope,),
            rounds=60,
            covers=("durarepo.ingest:open_manifest", "durarepo.sealing:open_header"),
        ),
        Target(
            name="check_mark",
            parse=_unforgeable(lambda data: check_mark(data, naming), envelope),
            seeds=(envelope,),
            rounds=100,
            covers=("durarepo.ingest:check_mark",),
        ),
    ]


def _unforgeable(parse: Parse, good: bytes) -> Parse:
    """Return ``parse`` with the law that nothing but what was made is taken."""

    def take(data: bytes) -> object:
        found = parse(data)
        if data != good:
            raise LawError("something was taken that nobody sealed")
        return found

    return take


def _behind_the_seal(stream: mini.Repository) -> list[Target]:
    identity, scope = stream.data[0].seed, stream.scope()
    info = scope.info(2, _SALT)
    stanzas = mini.stanzas(_KEY, info, scope)
    fixed = {"key": _KEY, "salt": _SALT, "stanzas": stanzas}
    header = b"\x01" + _SALT + b"".join(stanzas) + mini.commit(_KEY, info)
    expected = Expected(registry=registry_of(stream), stream="notes", epoch=1, sequence=2)
    plain = stream.statement(nested=b"sealed")
    links = mini.ordered({**plain[1], 3: mini.sha256(header)})
    statement = mini.encode({**plain, 1: links})

    def registry(data: bytes) -> object:
        object_ = mini.seal_registry(
            {}, owner=stream.owner, locator=stream.locator, edits={"statement_bytes": data}
        )
        found = open_registry(
            object_, stream.locator, owner_digest=stream.owner_digest, version=2
        ).registry
        return _same(encode_registry(found), data)

    def manifest(data: bytes) -> object:
        object_ = mini.seal_envelope(
            {1: {}},
            signer=stream.signers[1],
            naming=stream.naming[1],
            scope=scope,
            edits={**fixed, "statement_bytes": data},
        )
        found: SignedManifest = open_manifest(
            object_, identity, expected=expected, naming_key=stream.naming[1]
        )
        return _same(encode_statement(found.statement), data)

    return [
        Target(
            name="statement of a registry",
            parse=registry,
            seeds=(mini.encode(stream.registry),),
            rounds=40,
            covers=("durarepo.ingest:open_registry", "durarepo.sealing:open_sealed"),
        ),
        Target(
            name="statement of a manifest",
            parse=manifest,
            seeds=(statement,),
            rounds=40,
            covers=("durarepo.ingest:open_manifest",),
        ),
        *_boxes(stream, statement),
    ]


def _boxes(stream: mini.Repository, statement: bytes) -> list[Target]:
    """Return the nested part by its plaintext, and a box by its bytes."""
    identity, scope, place = stream.data[0].seed, stream.scope(), _place(stream)
    extra = mini.u64(2) + bytes(32)
    info = scope.info(3, _SALT) + extra
    fixed = {"key": _KEY, "salt": _SALT, "stanzas": mini.stanzas(_KEY, info, scope)}
    held = replace(parse_statement(statement), sequence=2, previous=ZERO_DIGEST)
    chunks = stream.chunks()
    plain = mini.encode(
        stream.nested_map({_ROOT: mini.directory({b"a": mini.file(b"alpha")})}, chunks)
    )

    def nested(data: bytes) -> object:
        box = mini.sealed_box(data, kind=3, scope=scope, extra=extra, edits=fixed)
        manifest = VerifiedManifest(
            statement=replace(held, nested=box), digest=Digest(mini.sha256(box))
        )
        found = encode_nested(open_nested(manifest, identity, place))
        return _same(inflate(data, most=NESTED_MAX_BYTES), found)

    key_box, naming = stream.epochs[0][7], stream.naming[1]

    def box(data: bytes) -> object:  # stanzas of others may be anything; what opens may not
        return _same(open_box(data, identity, kind=Seal.NAMING_KEY, place=place), naming)

    return [
        Target(
            name="open_nested",
            parse=nested,
            seeds=(mini.compress(plain),),
            rounds=100,
            covers=("durarepo.ingest:open_nested",),
        ),
        Target(
            name="open_box",
            parse=box,
            seeds=(key_box,),
            rounds=60,
            covers=("durarepo.sealing:open_box", "durarepo.sealing:open_header"),
        ),
    ]


def _packs(stream: mini.Repository) -> list[Target]:
    naming, identity, place = stream.naming[1], stream.data[0].seed, _place(stream)
    frames = [
        mini.Frame([(mini.DATA, b"x" * 900), (mini.TREE, b"\x82\0\x80")]),
        mini.Frame([(mini.DATA, bytes(range(200)))], compression=0),
    ]
    pack = mini.seal_pack(frames, naming=naming, scope=stream.scope())
    key = index_key(primitives.derive_subkey(naming, "index"), pack.data[1:33])
    keys = EpochKeys(
        place=place,
        namer=ChunkNamer(naming),
        index_subkey=Secret(primitives.derive_subkey(naming, "index")),
        slot_subkey=Secret(primitives.derive_subkey(naming, "slot")),
    )
    sealed = pack.data[pack.position : -36]
    body = primitives.open_bytes(key, sealed[:12], sealed[12:])
    index = open_index(check_index(sealed, pack.position, Digest(mini.sha256(sealed))), key)

    def sealed_index(plain: bytes) -> PackIndex:
        made = _ZEROS + mini.gcm(key, _ZEROS, plain)
        return open_index(check_index(made, pack.position, Digest(mini.sha256(made))), key)

    def tables(data: bytes) -> object:
        packed = mini.compress(data)
        found = sealed_index(mini.u32(len(packed)) + packed + bytes(100))
        return _same(pack_format.encode_index(found), data)

    def trailer(data: bytes) -> object:
        made = _ZEROS + mini.gcm(key, _ZEROS, data)
        return _same(open_trailer(key, made, size=len(pack.data)).to_bytes(8), data)

    def unpinned(data: bytes) -> object:
        name = ObjectName(mini.sha256(data).hex())
        found = open_unpinned(data, name, {1: keys})
        if found is None:
            raise IntegrityError("pack", "not one of this stream's")
        return found

    sealing = "durarepo.sealing"
    return [
        Target(name="open_trailer", parse=trailer, seeds=(mini.u64(pack.position),),
               covers=(f"{sealing}:open_trailer",)),
        Target(name="open_index", parse=sealed_index, seeds=(body[:400], body),
               covers=(f"{sealing}:open_index",)),
        Target(name="tables of an index", parse=tables, seeds=(pack_format.encode_index(index),),
               covers=(f"{sealing}:open_index",)),
        Target(name="open_pack_key", seeds=(pack.data[:_HEADER],), rounds=60,
               parse=lambda data: _open_pack_key(data, identity, place),
               covers=(f"{sealing}:open_pack_key", f"{sealing}:open_stanzas")),
        _frame_target(naming),
        Target(name="open_unpinned", parse=unpinned, seeds=(pack.data,), rounds=200,
               covers=("durarepo.repository.rebuild:open_unpinned",)),
    ]  # fmt: skip


def _open_pack_key(header: bytes, identity: bytes, place: Compartment) -> bytes:
    """Open a header of right length: another length is refused with the index."""
    return open_pack_key(header[:_HEADER].ljust(_HEADER, b"\0"), identity, place)


def _frame_target(naming: bytes) -> Target:
    """Return a frame by its payload, its compression in the first byte, its digests right."""
    namer = ChunkNamer(naming)
    chunks = (b"x" * 60, b"y" * 40)
    ids = tuple(ChunkId(mini.chunk_id(naming, mini.DATA, one)) for one in chunks)
    payload = b"".join(chunks)

    def open_payload(data: bytes) -> object:
        compression = int.from_bytes(data[:1]) & 1
        context = mini.u32(0) + mini.sha256(b"".join(ids)) + mini.u8(compression)
        cipher = mini.gcm(mini.mac(_KEY, b"frame" + context), _ZEROS, data[1:])
        info = FrameInfo(
            position=_HEADER, stored_length=len(cipher), plain_length=len(payload),
            first_chunk=0, chunk_count=2, compression=compression,
            digest=Digest(mini.sha256(cipher)),
        )  # fmt: skip
        index = PackIndex(
            header_digest=ZERO_DIGEST, header_length=_HEADER, frames=(info,),
            lengths=tuple(map(len, chunks)), kinds=bytes(2), ids=ids,
        )  # fmt: skip
        plain = open_frame(check_frame(cipher, index, 0), index, _KEY)
        found = b"".join(one for _, one in iter_chunks(plain, index, info, namer))
        return _same(found, payload)

    return Target(
        name="open_frame",
        parse=open_payload,
        seeds=(b"\0" + payload, b"\1" + mini.compress(payload)),
        covers=("durarepo.sealing:open_frame",),
    )


def _same(found: bytes, expected: bytes) -> bytes:
    if found != expected:
        raise LawError("what was taken is not what it encodes to")
    return found
