"""Vectors of steps 5 and 6: a pack, its index, and one chunk of it."""

from collections.abc import Sequence
from typing import Any

from tests.interop import miniwriter as mini
from tests.vectorgen import keys
from tests.vectorgen.catalogue import Body, fails, passes
from tests.vectorgen.scene import SALT, Edits
from tests.vectors.vectorfile import Part

_ONE = b"one"
_TWO = b"two " * 100
_THREE = bytes(range(256)) * 8
_FRAMES = (
    mini.Frame([(mini.DATA, _ONE), (mini.DATA, _TWO)], compression=1),
    mini.Frame([(mini.DATA, _THREE)], compression=0),
)
_RECIPIENTS = (mini.Identity(keys.DATA),)


def _id(plain: bytes, kind: int = mini.DATA) -> bytes:
    return mini.chunk_id(keys.NAMING, kind, plain)


def pack(
    edits: Edits | None = None,
    *,
    frames: Sequence[mini.Frame] = _FRAMES,
    n: int = 4,
    size: int | None = None,
    recipients: tuple[mini.Identity, ...] = _RECIPIENTS,
) -> mini.Pack:
    """Return the usual pack of two frames and three chunks, with some parts replaced."""
    return mini.seal_pack(
        frames,
        naming=keys.NAMING,
        scope=mini.Scope(recipients=recipients, n=n),
        size=size,
        edits={"salt": SALT, **(edits or {})},
    )


def _flipped(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


def _pin(made: mini.Pack) -> str:
    name, number, digest, version = made.pin(3)
    return f"{name.hex()} {number} {digest.hex()} {version}"


# --- 5: the index


def _index(made: mini.Pack, *, pin: str | None = None, name: bytes | None = None) -> Body:
    ids = b"".join(made.ids)
    return Body(
        parts=(Part(label=(name or made.name).hex(), data=made.data),),
        inputs={"pin": pin or _pin(made), "naming": keys.NAMING.hex()},
        result=f"chunks={len(made.ids)} ids={mini.sha256(ids).hex()}",
        encoding="base64",
    )


@passes("index", "5.6")
def index_basic() -> Body:
    """Two frames, one of them compressed, with three chunks."""
    return _index(pack())


@passes("index", "5.6")
def index_8_stanzas() -> Body:
    """A header of eight stanzas."""
    return _index(pack(n=8))


@passes("index", "5.2")
def index_class_1() -> Body:
    """The same in an object of the next size class."""
    return _index(pack(size=131072))


@passes("index", "5.6")
def index_kinds() -> Body:
    """One chunk of each kind, each in a frame of its own."""
    frames = [mini.Frame([(kind, _TWO)], compression=kind % 2) for kind in range(4)]
    return _index(pack(frames=frames))


@passes("index", "5.4")
def index_rebuilt() -> Body:
    """Without a pin, the pack's name is checked."""
    made = pack()
    return _index(made, pin=made.name.hex())


@fails("index", "5.1", "integrity.pack-missing", differs_from="index-basic", field="object")
def index_of_missing_pack() -> Body:
    """Another object is there."""
    made = pack()
    return _index(pack(), pin=_pin(made))


@fails("index", "5.2", "integrity.object-size", differs_from="index-basic", field="length")
def index_one_byte_short() -> Body:
    """The pack is cut."""
    made = pack()
    part = Part(label=made.name.hex(), data=made.data[:-1])
    body = _index(made)
    return Body(parts=(part,), inputs=body.inputs, encoding="base64")


@fails("index", "5.2", "integrity.object-size", differs_from="index-class-1", field="class")
def index_of_other_class() -> Body:
    """The pin says class 0, and the object is of class 1."""
    made = pack(size=131072)
    return _index(made, pin=_pin(made).replace(" 1 ", " 0 ", 1))


@fails("index", "5.3", "integrity.trailer", differs_from="index-basic", field="trailer")
def index_trailer_flipped() -> Body:
    """One bit of the trailer's nonce."""
    return _index(pack({"trailer": _flipped}))


@fails("index", "5.3", "integrity.trailer", differs_from="index-basic", field="index position")
def index_position_in_trailer() -> Body:
    """The index would begin in the trailer."""
    return _index(pack({"position": 32768 - 36}))


@fails("index", "5.3", "integrity.trailer", differs_from="index-basic", field="index position")
def index_position_in_header() -> Body:
    """The index would begin within the header."""
    return _index(pack({"position": 100}))


@fails("index", "5.3", "integrity.trailer", differs_from="index-basic", field="index position")
def index_position_huge() -> Body:
    """2**64 - 1 must not wrap around."""
    return _index(pack({"position": 2**64 - 1}))


@fails("index", "5.4", "integrity.index-digest", differs_from="index-basic", field="pin")
def index_digest_differs() -> Body:
    """The pin names another index."""
    made = pack()
    name, number, _, version = _pin(made).split(" ")
    return _index(made, pin=f"{name} {number} {'47' * 32} {version}")


@fails("index", "5.4", "integrity.index-digest", differs_from="index-basic", field="index")
def index_flipped() -> Body:
    """One bit of the index was altered after it was pinned."""
    made = pack()
    at = made.position + 12
    data = made.data[:at] + _flipped(made.data[at:])
    part = Part(label=made.name.hex(), data=data)
    return Body(parts=(part,), inputs=_index(made).inputs, encoding="base64")


@fails("index", "5.4", "integrity.object-name", differs_from="index-rebuilt", field="a frame")
def index_rebuilt_of_altered_pack() -> Body:
    """One bit of a frame: the index alone would not show it."""
    made = pack()
    data = made.data[:5000] + _flipped(made.data[5000:])
    part = Part(label=made.name.hex(), data=data)
    inputs = _index(made, pin=made.name.hex()).inputs
    return Body(parts=(part,), inputs=inputs, encoding="base64")


@fails("index", "5.5", "integrity.index-seal", differs_from="index-basic", field="index")
def index_seal_flipped() -> Body:
    """One bit of the index, pinned like this."""
    return _index(pack({"index_sealed": lambda old: old[:12] + _flipped(old[12:])}))


@fails("index", "5.5", "integrity.index-seal", differs_from="index-basic", field="zstd frame")
def index_not_zstd() -> Body:
    """What is sealed is no zstd frame."""
    return _index(pack({"index_packed": b"not a frame"}))


@fails("index", "5.5", "integrity.index-seal", differs_from="index-basic", field="zeros")
def index_zeros_not_zero() -> Body:
    """The last byte behind the zstd frame is one."""
    return _index(pack({"index_zeros": lambda old: old[:-1] + b"\x01"}))


@fails("index", "5.5", "integrity.index-seal", differs_from="index-basic", field="declared length")
def index_declared_too_long() -> Body:
    """The zstd frame claims more bytes than the index has."""
    return _index(pack({"index_declared": 0xFFFFFFFF}))


@fails("index", "5.5", "integrity.index-seal", differs_from="index-basic", field="zstd frame")
def index_bomb() -> Body:
    """A zstd frame that inflates to one byte more than 4194304."""
    return _index(pack({"index_packed": mini.compress(bytes(4194305))}))


def _tables(**changes: Any) -> Body:
    return _index(pack({"tables": lambda old: {**old, **changes}}))


@fails("index", "5.6", "integrity.index-form", differs_from="index-basic", field="stored lengths")
def index_frame_too_long() -> Body:
    """The frames end one byte behind the index position."""
    return _index(
        pack({"tables": lambda old: {**old, "stored": [old["stored"][0], old["stored"][1] + 1]}})
    )


@fails("index", "5.6", "integrity.index-form", differs_from="index-basic", field="chunk counts")
def index_counts_differ() -> Body:
    """The frames count four chunks, and three are listed."""
    return _tables(counts=[3, 1])


@fails("index", "5.6", "integrity.index-form", differs_from="index-basic", field="a length")
def index_lengths_differ() -> Body:
    """The chunks of the first frame are one byte longer than its plain length."""
    return _tables(lengths=[len(_ONE) + 1, len(_TWO), len(_THREE)])


@fails("index", "5.6", "integrity.index-form", differs_from="index-basic", field="a kind")
def index_kind_4() -> Body:
    """There are four kinds of chunks, 0 to 3."""
    return _tables(kinds=[0, 0, 4])


@fails("index", "5.6", "integrity.index-form", differs_from="index-basic", field="compression")
def index_compression_2() -> Body:
    """There are two compressions, 0 and 1."""
    return _tables(compressions=[1, 2])


@fails("index", "5.6", "integrity.index-form", differs_from="index-basic", field="bytes behind")
def index_bytes_behind() -> Body:
    """One byte follows the last table."""
    return _index(pack({"index_plain": lambda old: old + b"\x00"}))


# --- 6: one chunk


def _chunk(made: mini.Pack, wanted: bytes, plain: bytes = b"", **inputs: str) -> Body:
    body = _index(made)
    given = {
        **body.inputs,
        "identity": keys.DATA.hex(),
        "stream": "notes",
        "epoch": "1",
        "compartment": "main",
        "chunk": wanted.hex(),
    }
    return Body(
        parts=body.parts,
        inputs={**given, **inputs},
        result=f"bytes={len(plain)} sha256={mini.sha256(plain).hex()}",
        encoding="base64",
    )


@passes("chunk", "6.8")
def chunk_first_of_two() -> Body:
    """The first chunk of a compressed frame."""
    return _chunk(pack(), _id(_ONE), _ONE)


@passes("chunk", "6.8")
def chunk_second_of_two() -> Body:
    """The second chunk of a compressed frame."""
    return _chunk(pack(), _id(_TWO), _TWO)


@passes("chunk", "6.7")
def chunk_not_compressed() -> Body:
    """A frame that is left as it is."""
    return _chunk(pack(), _id(_THREE), _THREE)


@passes("chunk", "6.5")
def chunk_8_stanzas() -> Body:
    """A reader finds the number of stanzas in the index."""
    return _chunk(pack(n=8), _id(_TWO), _TWO)


@passes("chunk", "6.5")
def chunk_second_recipient() -> Body:
    """Two data recipients; this is the second."""
    both = (mini.Identity(keys.DATA), mini.Identity(keys.SECOND_DATA))
    return _chunk(pack(recipients=both), _id(_ONE), _ONE, identity=keys.SECOND_DATA.hex())


@passes("chunk", "6.8")
def chunk_of_8_mebibytes() -> Body:
    """The longest chunk there may be, of one byte repeated."""
    plain = b"x" * 8388608
    return _chunk(pack(frames=[mini.Frame([(mini.DATA, plain)])]), _id(plain), plain)


@fails("chunk", "6.2", "integrity.chunk-missing", differs_from="chunk-first-of-two", field="chunk")
def chunk_of_other_kind() -> Body:
    """The same bytes as a tree: the kind is part of the id."""
    return _chunk(pack(), _id(_ONE, mini.TREE))


@fails("chunk", "6.3", "integrity.pack-header", differs_from="chunk-first-of-two", field="header")
def chunk_behind_altered_stanza() -> Body:
    """One bit of a stanza that nobody can open."""
    made = pack()
    data = made.data[:40] + _flipped(made.data[40:])
    body = _chunk(made, _id(_ONE))
    part = Part(label=made.name.hex(), data=data)
    return Body(parts=(part,), inputs=body.inputs, encoding="base64")


@fails(
    "chunk", "6.3", "integrity.pack-header", differs_from="chunk-first-of-two", field="commitment"
)
def chunk_behind_altered_commitment() -> Body:
    """One bit of the commitment: the header's digest is compared before any key is used."""
    made = pack()
    at = 65 + 4 * 1168 - 32
    data = made.data[:at] + _flipped(made.data[at:])
    body = _chunk(made, _id(_ONE))
    part = Part(label=made.name.hex(), data=data)
    return Body(parts=(part,), inputs=body.inputs, encoding="base64")


@fails("chunk", "6.4", "integrity.frame-digest", differs_from="chunk-first-of-two", field="frame")
def chunk_in_altered_frame() -> Body:
    """One bit of the frame's ciphertext; nothing may be decrypted."""
    made = pack()
    at = 65 + 4 * 1168
    data = made.data[:at] + _flipped(made.data[at:])
    body = _chunk(made, _id(_ONE))
    part = Part(label=made.name.hex(), data=data)
    return Body(parts=(part,), inputs=body.inputs, encoding="base64")


@fails("chunk", "6.5", "integrity.stanza", differs_from="chunk-first-of-two", field="recipients")
def chunk_sealed_to_others() -> Body:
    """The pack is sealed to another identity."""
    return _chunk(pack(recipients=(mini.Identity(keys.STRANGER),)), _id(_ONE))


@fails("chunk", "6.5", "integrity.stanza", differs_from="chunk-first-of-two", field="info: epoch")
def chunk_of_other_epoch() -> Body:
    """The pack's stanzas are bound to epoch 2."""

    def info(_: bytes) -> bytes:
        return mini.Scope(epoch=2).info(1, SALT)

    return _chunk(pack({"info": info}), _id(_ONE))


@fails(
    "chunk", "6.5", "integrity.commitment", differs_from="chunk-first-of-two", field="commitment"
)
def chunk_commitment_of_other_key() -> Body:
    """The stanza opens, and gives a key that was not committed to."""
    return _chunk(pack({"commitment": _flipped}), _id(_ONE))


def _reciphered(ordinal: int, compression: int, ids: Sequence[bytes]) -> Body:
    """Return a body whose first frame is sealed under another context."""
    key = bytes([0x66]) * 32

    def ciphers(old: list[bytes]) -> list[bytes]:
        context = mini.u32(ordinal) + mini.sha256(b"".join(ids)) + mini.u8(compression)
        plain = mini.compress(_ONE + _TWO)
        sealed = mini.gcm(mini.mac(key, b"frame" + context), bytes(12), plain)
        return [sealed, *old[1:]]

    return _chunk(pack({"key": key, "ciphers": ciphers}), _id(_ONE))


@fails(
    "chunk", "6.6", "integrity.frame-seal", differs_from="chunk-first-of-two", field="frame ordinal"
)
def chunk_in_frame_of_other_ordinal() -> Body:
    """The frame was sealed as the second one."""
    return _reciphered(1, 1, [_id(_ONE), _id(_TWO)])


@fails(
    "chunk", "6.6", "integrity.frame-seal", differs_from="chunk-first-of-two", field="compression"
)
def chunk_in_frame_of_other_compression() -> Body:
    """The frame was sealed as one that is not compressed."""
    return _reciphered(0, 0, [_id(_ONE), _id(_TWO)])


@fails("chunk", "6.6", "integrity.frame-seal", differs_from="chunk-first-of-two", field="chunk ids")
def chunk_in_frame_of_other_ids() -> Body:
    """The frame was sealed for the same chunks in another order."""
    return _reciphered(0, 1, [_id(_TWO), _id(_ONE)])


def _stored(first: bytes) -> Body:
    return _chunk(pack({"stored": lambda old: [first, *old[1:]]}), _id(_ONE))


@fails("chunk", "6.7", "integrity.frame-inflate", differs_from="chunk-first-of-two", field="zstd")
def chunk_in_frame_not_zstd() -> Body:
    """The frame does not hold a zstd frame."""
    return _stored(b"not a frame")


@fails("chunk", "6.7", "integrity.frame-inflate", differs_from="chunk-first-of-two", field="zstd")
def chunk_in_frame_too_short() -> Body:
    """It inflates to one byte less than the index says."""
    return _stored(mini.compress((_ONE + _TWO)[:-1]))


@fails("chunk", "6.7", "integrity.frame-inflate", differs_from="chunk-first-of-two", field="zstd")
def chunk_in_frame_too_long() -> Body:
    """It inflates to 64 MiB."""
    return _stored(mini.compress(bytes(64 * 1048576)))


@fails("chunk", "6.7", "integrity.frame-inflate", differs_from="chunk-first-of-two", field="zstd")
def chunk_in_two_zstd_frames() -> Body:
    """Two zstd frames that give the right bytes together."""
    return _stored(mini.compress(_ONE) + mini.compress(_TWO))


@fails(
    "chunk", "6.7", "integrity.frame-inflate", differs_from="chunk-not-compressed", field="plain"
)
def chunk_not_compressed_too_short() -> Body:
    """A frame that is left as it is, with a byte less than the index says."""
    made = pack({"stored": lambda old: [old[0], old[1][:-1]]})
    return _chunk(made, _id(_THREE))


@fails("chunk", "6.8", "integrity.chunk-id", differs_from="chunk-not-compressed", field="plaintext")
def chunk_of_other_bytes() -> Body:
    """A writer that has the keys put other bytes behind a known id."""
    made = pack({"stored": lambda old: [old[0], _flipped(old[1])]})
    return _chunk(made, _id(_THREE))


@fails("chunk", "6.8", "integrity.chunk-id", differs_from="chunk-not-compressed", field="kind")
def chunk_kind_differs() -> Body:
    """The index calls the chunk a list, under the id that it has as data."""
    made = pack({"tables": lambda old: {**old, "kinds": [0, 0, 1]}})
    return _chunk(made, _id(_THREE))
