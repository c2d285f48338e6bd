"""Laws of all seals: no nonce twice under a key, and nothing opens for a put-only machine.

Source: spec/format.md 3.3, spec/threat-model.md.
"""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durarepo.core.errors import DurarepoError
from durarepo.core.limits import SIZE_CLASSES
from durarepo.core.names import ChunkId, Digest
from durarepo.crypto import primitives
from durarepo.crypto.primitives import WrongKeyError
from durarepo.format.layout import ChunkKind, Compartment, Seal
from durarepo.format.pack import FrameInfo, PackIndex
from durarepo.ingest import open_manifest, open_registry
from durarepo.sealing import (
    ChunkNamer,
    PackSealer,
    check_frame,
    check_index,
    index_key,
    open_box,
    open_frame,
    open_index,
    open_pack_key,
    open_trailer,
    seal_box,
    seal_registry,
)
from tests.properties.actors import Stream, identities

PLACE = Compartment(stream="notes", epoch=1, compartment="main")
READER = Stream()
EXPECTED = READER.expected(1)


def pack_of(
    payloads: list[bytes], *, recipients: list[bytes], naming: bytes, count: int = 4
) -> tuple[bytes, PackIndex]:
    """Seal each payload as a frame of one chunk; return the pack and its index."""
    subkey = primitives.derive_subkey(naming, "index")
    sealer = PackSealer(recipients, place=PLACE, count=count, index_subkey=subkey)
    namer = ChunkNamer(naming)
    body, frames, ids = b"", [], []
    for ordinal, payload in enumerate(payloads):
        ids.append(namer.name_of(ChunkKind.DATA, payload))
        ciphertext, digest = sealer.seal_frame(ordinal, ids[-1:], 0, payload)
        frames.append(
            FrameInfo(
                position=len(sealer.header) + len(body),
                stored_length=len(ciphertext),
                plain_length=len(payload),
                compression=0,
                digest=digest,
                first_chunk=ordinal,
                chunk_count=1,
            )
        )
        body += ciphertext
    index = PackIndex(
        header_digest=Digest(primitives.sha256(sealer.header)),
        header_length=len(sealer.header),
        frames=tuple(frames),
        lengths=tuple(map(len, payloads)),
        kinds=bytes(len(payloads)),
        ids=tuple(ids),
    )
    sealed, trailer = sealer.seal_index(index, size=SIZE_CLASSES[0])
    return sealer.header + body + sealed + trailer, index


@given(
    st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=5),
    st.sampled_from((4, 8)),
    st.integers(1, 4),
)
def test_every_pack_opens_for_each_recipient(
    payloads: list[bytes], count: int, holders: int
) -> None:
    """The full way of a reader, from the trailer to the plaintext (format 5)."""
    naming = primitives.random_key()
    people = identities()[:holders]
    data, index = pack_of(
        payloads, recipients=[one.public for one in people], naming=naming, count=count
    )

    key = index_key(primitives.derive_subkey(naming, "index"), data[1:33])
    position = open_trailer(key, data[-36:], size=len(data))
    sealed = data[position:-36]
    found = open_index(check_index(sealed, position, Digest(primitives.sha256(sealed))), key)
    assert found == index
    for person in people:
        pack_key = open_pack_key(data[: index.header_length], person.secret, PLACE)
        for number, (info, payload) in enumerate(zip(index.frames, payloads, strict=True)):
            stored = data[info.position : info.position + info.stored_length]
            assert open_frame(check_frame(stored, found, number), found, pack_key) == payload


@given(
    st.binary(max_size=2000),
    st.sampled_from((4, 8)),
    st.integers(1, 4),
    st.sampled_from((Seal.NESTED, Seal.NAMING_KEY, Seal.SLOT_KEY, Seal.KEYS_FILE)),
    st.binary(max_size=40),
)
def test_every_box_opens_for_each_recipient(
    content: bytes, count: int, holders: int, kind: Seal, extra: bytes
) -> None:
    """Content of any length, none included."""
    people = identities()[:holders]
    box = seal_box(
        content,
        [one.public for one in people],
        kind=kind,
        place=PLACE,
        count=count,
        extra=extra,
    )

    for person in people:
        assert open_box(box, person.secret, kind=kind, place=PLACE, extra=extra) == content


@given(st.binary(max_size=4000))
def test_any_bytes_in_place_of_a_sealed_thing_are_refused_with_a_code(data: bytes) -> None:
    """A store may give back anything."""
    stream, expected = READER, EXPECTED
    whole = data + bytes(SIZE_CLASSES[0] - len(data))
    owner = stream.owner_digest
    for raw in (data, whole, b"\x01" + whole[1:]):
        with pytest.raises(DurarepoError):
            open_registry(raw, stream.locator, owner_digest=owner, version=3)
        for naming in (None, stream.naming):
            with pytest.raises(DurarepoError):
                open_manifest(raw, stream.data[0].secret, expected=expected, naming_key=naming)
        with pytest.raises(DurarepoError):
            open_box(raw, stream.data[0].secret, kind=Seal.NESTED, place=PLACE)
        with pytest.raises(DurarepoError):
            open_trailer(bytes(32), raw[-36:], size=len(raw))


class Witness:
    """Stands between the library and AES-GCM and remembers each (key, nonce) and its text."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: dict[tuple[bytes, bytes], bytes] = {}
        self.seals = 0
        seal = primitives.seal_bytes

        def watched(key: bytes, nonce: bytes, plaintext: bytes) -> bytes:
            self.seals += 1
            assert self.seen.setdefault((key, nonce), plaintext) == plaintext
            return seal(key, nonce, plaintext)

        monkeypatch.setattr(primitives, "seal_bytes", watched)


def test_no_key_meets_two_texts_under_one_nonce(monkeypatch: pytest.MonkeyPatch) -> None:
    """AES-GCM gives its key away when a nonce is used twice (format 3.3)."""
    witness = Witness(monkeypatch)
    stream = Stream()
    people = [one.public for one in stream.data]
    for number in range(1, 21):
        stream.manifest(number)
        stream.registry_object(version=number)
        pack_of([b"a", b"b", b"a" * number], recipients=people, naming=stream.naming)
        seal_registry(stream.locator, b"document", size=SIZE_CLASSES[0])

    # An envelope and its nested part, two registries, a pack: three frames, index and trailer.
    assert witness.seals >= 20 * (2 + 2 + 5)
    assert len(witness.seen) == witness.seals


def test_a_machine_that_repeats_its_randomness_repeats_no_nonce(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An image resumed twice draws the same keys; other content must not meet one (format 5)."""
    witness = Witness(monkeypatch)
    naming = bytes(32)
    people = [one.public for one in identities()[:2]]
    monkeypatch.setattr(primitives, "random_key", lambda: b"r" * 32)

    for first, second in product((b"one", b"two", b"three"), repeat=2):
        pack_of([first, second], recipients=people, naming=naming)
        seal_box(first + second, people, kind=Seal.NESTED, place=PLACE, count=4)
        seal_registry(naming, first + second, size=SIZE_CLASSES[0])

    assert witness.seals > len(witness.seen)  # some texts came again, under their own nonce


def _derived(secrets: list[bytes], data: bytes) -> set[bytes]:
    """Return every 32-byte key that follows from some secrets by the format's derivations."""
    labels = ("chunk-id", "slot", "mark", "index", "cut", "registry-slot", "registry-seal")
    salts = {data[1:33], data[:32], bytes(32)}
    keys = {one[at : at + 32] for one in secrets for at in (0, len(one) - 32)}
    for _ in range(2):
        keys |= {primitives.derive_subkey(key, label) for key in keys for label in labels}
        keys |= {primitives.derive_subkey(key, "evidence") for key in keys}
    salted = [b"index" + salt for salt in salts] + sorted(salts)
    keys |= {primitives.keyed_hash(key, text) for key in list(keys) for text in salted}
    return keys | {primitives.sha256(one) for one in secrets}


def _opens(key: bytes, sealed: bytes, nonces: list[bytes]) -> bool:
    for nonce in nonces:
        try:
            primitives.open_bytes(key, nonce, sealed)
        except WrongKeyError:
            continue
        return True
    return False


def test_the_keys_of_a_put_only_machine_open_no_frame_and_no_manifest() -> None:
    """A thief of the working computer reads nothing that was backed up (format design, 1).

    Every secret that lies there is tried, with every derivation of the format, as the key of
    each sealed part and as an identity for each stanza.
    """
    stream = Stream()
    people = [one.public for one in stream.data]
    envelope = stream.manifest(1)
    pack, index = pack_of([b"secret work"] * 3, recipients=people, naming=stream.naming)
    held = [
        stream.signers[0].secret,
        stream.naming,
        stream.locator,
        *people,
        stream.audit[0].public,
        stream.owner.public,
    ]
    keys: set[bytes] = set()
    for data in (envelope, pack):
        keys |= _derived(held, data)
    header = 65 + 4 * 1168
    info = index.frames[0]
    ids = ChunkId(primitives.sha256(b"".join(index.ids[:1])))
    frame_text = b"frame" + (0).to_bytes(4) + ids + b"\0"
    as_pack_key = {primitives.keyed_hash(key, frame_text) for key in keys}
    frame = pack[info.position : info.position + info.stored_length]
    body = envelope[header + 12 : -32]
    nonces = [bytes(12), envelope[header : header + 12]]

    assert len(keys) > 500
    for key in keys | as_pack_key:
        assert not _opens(key, frame, [bytes(12)])
        assert not _opens(key, body, nonces)
    for seed in {one[:32] for one in held}:
        for data, place in ((envelope, stream.place()), (pack, PLACE)):
            with pytest.raises(DurarepoError):
                open_pack_key(data[:header], seed, place)
        with pytest.raises(DurarepoError):
            open_manifest(envelope, seed, expected=stream.expected(1), naming_key=stream.naming)

    # That the search would find a key is shown where the machine does hold one: the index.
    sealed = pack[index.end : -36]
    assert any(_opens(key, sealed[12:], [sealed[:12]]) for key in keys)
    pack_key = open_pack_key(pack[:header], stream.data[0].secret, PLACE)
    assert _opens(primitives.keyed_hash(pack_key, frame_text), frame, [bytes(12)])
