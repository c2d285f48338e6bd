"""Seals: what opens for whom, and the code of each step that fails."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from durarepo.chunking.compression import deflate
from durarepo.core.errors import DurarepoError, IntegrityError, KeyMaterialError
from durarepo.core.limits import INDEX_MAX_BYTES, SIZE_CLASSES
from durarepo.core.names import ChunkId, Digest
from durarepo.crypto import primitives
from durarepo.format.document import unpad_document
from durarepo.format.layout import ChunkKind, Compartment, Seal
from durarepo.format.pack import FrameInfo, PackIndex, encode_index
from durarepo.sealing import (
    DEFLATED,
    STORED,
    CheckedFrame,
    CheckedIndex,
    ChunkNamer,
    PackSealer,
    check_frame,
    check_index,
    check_pack_header,
    compress_frame,
    envelope_overhead,
    index_key,
    iter_chunks,
    new_envelope_header,
    open_box,
    open_frame,
    open_header,
    open_index,
    open_pack_key,
    open_sealed,
    open_trailer,
    seal_box,
    seal_envelope,
    seal_registry,
)
from tests.properties.actors import identities, secrets

PLACE = Compartment(stream="notes", epoch=1, compartment="main")
ELSEWHERE = (
    Compartment(stream="other", epoch=1, compartment="main"),
    Compartment(stream="notes", epoch=2, compartment="main"),
    Compartment(stream="notes", epoch=1, compartment="secret"),
)
NAMING = secrets()[0]
NAMER = ChunkNamer(NAMING)
INDEX_SUBKEY = primitives.derive_subkey(NAMING, "index")


def code_of(action: Callable[..., object], *given: object, **named: object) -> str:
    """Return the code with which an action fails."""
    with pytest.raises(DurarepoError) as caught:
        action(*given, **named)
    return caught.value.code


def flipped(data: bytes, at: int) -> bytes:
    """Return ``data`` with one bit turned over."""
    at %= len(data)
    return data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]


@dataclass(frozen=True)
class Pack:
    """A pack in memory, with what it was made of."""

    data: bytes
    index: PackIndex
    index_digest: Digest
    chunks: list[list[tuple[ChunkKind, bytes]]]

    @property
    def salt(self) -> bytes:
        """The salt, from the header."""
        return self.data[1:33]

    def frame(self, number: int) -> bytes:
        """Return the stored bytes of a frame."""
        info = self.index.frames[number]
        return self.data[info.position : info.position + info.stored_length]


CHUNKS: list[list[tuple[ChunkKind, bytes]]] = [
    [(ChunkKind.DATA, b"hello " * 50), (ChunkKind.DATA, b"world"), (ChunkKind.TREE, b"tree" * 9)],
    [(ChunkKind.LIST, secrets()[3])],
]


def make_pack(recipients: list[bytes], *, count: int = 4, size: int = SIZE_CLASSES[0]) -> Pack:
    """Seal `CHUNKS` as a pack."""
    sealer = PackSealer(recipients, place=PLACE, count=count, index_subkey=INDEX_SUBKEY)
    body = b""
    frames: list[FrameInfo] = []
    ids: list[ChunkId] = []
    for ordinal, chunks in enumerate(CHUNKS):
        own = [NAMER.name_of(kind, plain) for kind, plain in chunks]
        plaintext = b"".join(plain for _, plain in chunks)
        compression, payload = compress_frame(plaintext)
        ciphertext, digest = sealer.seal_frame(ordinal, own, compression, payload)
        frames.append(
            FrameInfo(
                position=len(sealer.header) + len(body),
                stored_length=len(ciphertext),
                plain_length=len(plaintext),
                compression=compression,
                digest=digest,
                first_chunk=len(ids),
                chunk_count=len(chunks),
            )
        )
        body += ciphertext
        ids += own
    every = [chunk for chunks in CHUNKS for chunk in chunks]
    index = PackIndex(
        header_digest=Digest(primitives.sha256(sealer.header)),
        header_length=len(sealer.header),
        frames=tuple(frames),
        lengths=tuple(len(plain) for _, plain in every),
        kinds=bytes(kind for kind, _ in every),
        ids=tuple(ids),
    )
    sealed, trailer = sealer.seal_index(index, size=size)
    data = sealer.header + body + sealed + trailer
    return Pack(data, index, Digest(primitives.sha256(sealed)), CHUNKS)


@pytest.mark.parametrize("count", [4, 8])
@pytest.mark.parametrize("holders", [1, 2, 4])
def test_a_pack_opens_for_each_of_its_recipients(count: int, holders: int) -> None:
    """The owner and the escrow each have to read alone (format 5, AICEP 10.5.3.2)."""
    people = identities()[:holders]
    pack = make_pack([one.public for one in people], count=count)

    assert len(pack.data) == SIZE_CLASSES[0]
    key = index_key(INDEX_SUBKEY, pack.salt)
    position = open_trailer(key, pack.data[-36:], size=len(pack.data))
    index = open_index(check_index(pack.data[position:-36], position, pack.index_digest), key)
    assert index == pack.index
    header = pack.data[: index.header_length]
    check_pack_header(header, index)
    for person in people:
        pack_key = open_pack_key(header, person.secret, PLACE)
        for number, chunks in enumerate(CHUNKS):
            plain = open_frame(check_frame(pack.frame(number), index, number), index, pack_key)
            found = list(iter_chunks(plain, index, index.frames[number], NAMER))
            assert [one for _, one in found] == [text for _, text in chunks]


PACK = make_pack([one.public for one in identities()[:2]])
KEY = index_key(INDEX_SUBKEY, PACK.salt)
HEADER = PACK.data[: PACK.index.header_length]
POSITION = PACK.index.end


def test_a_pack_stays_shut_for_others_and_elsewhere() -> None:
    """A key bound to another place must not open it (format 3.3)."""
    owner, stranger = identities()[0].secret, identities()[7].secret

    assert code_of(lambda: open_pack_key(HEADER, stranger, PLACE)) == "integrity.stanza"
    for place in ELSEWHERE:
        assert code_of(open_pack_key, HEADER, owner, place) == "integrity.stanza"
    commitment = HEADER[:-1] + bytes((HEADER[-1] ^ 1,))
    assert code_of(lambda: open_pack_key(commitment, owner, PLACE)) == "integrity.commitment"
    assert code_of(lambda: open_pack_key(flipped(HEADER, 1), owner, PLACE)) == "integrity.stanza"


@pytest.mark.parametrize("at", range(36))
def test_every_bit_of_the_trailer_counts(at: int) -> None:
    """It says where the index is (ingest 5.3)."""
    trailer = flipped(PACK.data[-36:], at)

    assert code_of(lambda: open_trailer(KEY, trailer, size=len(PACK.data))) == "integrity.trailer"


@pytest.mark.parametrize("position", [0, 65 + 4 * 1168 + 16, 32_768 - 36, 32_768, 2**64 - 1])
def test_a_trailer_that_points_outside_the_frames_is_refused(position: int) -> None:
    """Read there, the header or the trailer itself would pass for an index (ingest 5.3)."""
    plain = position.to_bytes(8)
    nonce = primitives.derive_nonce(KEY, 5, plain)
    trailer = nonce + primitives.seal_bytes(KEY, nonce, plain)

    assert code_of(lambda: open_trailer(KEY, trailer, size=32_768)) == "integrity.trailer"


@pytest.mark.parametrize("plain", [b"", b"\0" * 7, (20_000).to_bytes(9)])
def test_a_trailer_of_another_length_is_refused(plain: bytes) -> None:
    """Only eight bytes are a position."""
    nonce = primitives.derive_nonce(KEY, 5, plain)
    trailer = nonce + primitives.seal_bytes(KEY, nonce, plain)

    assert code_of(lambda: open_trailer(KEY, trailer, size=32_768)) == "integrity.trailer"


def _sealed_index(body: bytes) -> CheckedIndex:
    nonce = primitives.derive_nonce(KEY, 4, body)
    sealed = nonce + primitives.seal_bytes(KEY, nonce, body)
    return check_index(sealed, POSITION, Digest(primitives.sha256(sealed)))


def test_an_index_is_compared_before_it_is_opened() -> None:
    """Law 2: only what is pinned is decrypted, and the type is the proof."""
    sealed = PACK.data[POSITION:-36]

    for at in (0, 12, 500, -1):
        bad = flipped(sealed, at)
        code = code_of(check_index, bad, POSITION, PACK.index_digest)
        assert code == "integrity.index-digest"


@pytest.mark.parametrize(
    "body",
    [b"", b"\0\0\0\5abcde", b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\1\0\1"],
)
def test_an_index_that_does_not_inflate_is_refused(body: bytes) -> None:
    """A writer with the naming key may have sealed anything (ingest 5.5)."""
    checked = _sealed_index(body)

    assert code_of(lambda: open_index(checked, KEY)) == "integrity.index-seal"


def test_an_index_under_another_key_is_refused() -> None:
    """The key follows from the salt in the header."""
    checked = check_index(PACK.data[POSITION:-36], POSITION, PACK.index_digest)

    assert code_of(lambda: open_index(checked, bytes(32))) == "integrity.index-seal"
    assert code_of(lambda: open_index(CheckedIndex(b"", POSITION), KEY)) == "integrity.index-seal"


def test_a_header_that_the_index_does_not_name_is_refused() -> None:
    """Stanzas of another pack would open another key (ingest 6.3)."""
    for at in (0, 5, 40, -1):
        bad = flipped(HEADER, at)
        assert code_of(check_pack_header, bad, PACK.index) == ("integrity.pack-header")


PACK_KEY = open_pack_key(HEADER, identities()[0].secret, PLACE)


@pytest.mark.parametrize("at", [0, 7, -1])
def test_a_frame_is_compared_before_it_is_opened(at: int) -> None:
    """Law 2: one flipped bit is found without a key (ingest 6.4)."""
    bad = flipped(PACK.frame(0), at)

    assert code_of(lambda: check_frame(bad, PACK.index, 0)) == "integrity.frame-digest"


def test_a_frame_opens_in_its_own_place_only() -> None:
    """Its key follows from ordinal, ids and compression (format 5.2)."""
    index, info = PACK.index, PACK.index.frames[0]
    ciphertext = PACK.frame(0)

    def opened(key: bytes, ordinal: int, **changes: int) -> bytes:
        fields = {name: getattr(info, name) for name in FrameInfo.__dataclass_fields__}
        checked = CheckedFrame(ciphertext, ordinal, FrameInfo(**{**fields, **changes}))
        return open_frame(checked, index, key)

    assert opened(PACK_KEY, 0).startswith(b"hello ")
    for action in (
        lambda: opened(bytes(32), 0),
        lambda: opened(PACK_KEY, 1),
        lambda: opened(PACK_KEY, 0, chunk_count=2),
        lambda: opened(PACK_KEY, 0, first_chunk=1),
        lambda: opened(PACK_KEY, 0, compression=STORED),
    ):
        assert code_of(action) == "integrity.frame-seal"
    for length in (info.plain_length - 1, info.plain_length + 1):
        code = code_of(opened, PACK_KEY, 0, plain_length=length)
        assert code == "integrity.frame-inflate"


def _frame(payload: bytes, compression: int, plain_length: int) -> Callable[[], bytes]:
    sealer = PackSealer([identities()[0].public], place=PLACE, count=4, index_subkey=INDEX_SUBKEY)
    key = open_pack_key(sealer.header, identities()[0].secret, PLACE)
    ids = [ChunkId(b"i" * 32)]
    ciphertext, digest = sealer.seal_frame(0, ids, compression, payload)
    info = FrameInfo(
        position=len(sealer.header),
        stored_length=len(ciphertext),
        plain_length=plain_length,
        compression=compression,
        digest=digest,
        first_chunk=0,
        chunk_count=1,
    )
    index = PackIndex(
        header_digest=Digest(primitives.sha256(sealer.header)),
        header_length=len(sealer.header),
        frames=(info,),
        lengths=(plain_length,),
        kinds=b"\0",
        ids=tuple(ids),
    )
    return lambda: open_frame(check_frame(ciphertext, index, 0), index, key)


@pytest.mark.parametrize(
    ("payload", "compression", "length"),
    [
        (b"abc", STORED, 2),
        (b"abc", STORED, 4),
        (b"abc", DEFLATED, 3),
        (b"", DEFLATED, 3),
        (compress_frame(b"a" * 1000)[1], DEFLATED, 999),
        (compress_frame(b"a" * 1000)[1], DEFLATED, 1001),
        (compress_frame(b"a" * 1000)[1] + b"x", DEFLATED, 1000),
    ],
)
def test_a_frame_inflates_to_exactly_its_length(
    payload: bytes, compression: int, length: int
) -> None:
    """A writer may seal what it likes; a reader takes what the index says (ingest 6.7)."""
    assert code_of(_frame(payload, compression, length)) == "integrity.frame-inflate"
    assert _frame(b"abc", STORED, 3)() == b"abc"


def test_a_chunk_s_id_is_derived_again() -> None:
    """The last check: whoever sealed the frame, the bytes are those of the id (ingest 6.8)."""
    info = PACK.index.frames[0]
    plain = b"".join(text for _, text in CHUNKS[0])

    assert [name for name, _ in iter_chunks(plain, PACK.index, info, NAMER)] == [
        *PACK.index.ids[:3]
    ]
    for bad in (flipped(plain, 0), flipped(plain, -1), plain[:-1], b""):
        assert code_of(list, iter_chunks(bad, PACK.index, info, NAMER)) == "integrity.chunk-id"
    other = ChunkNamer(secrets()[1])
    assert code_of(lambda: list(iter_chunks(plain, PACK.index, info, other))) == (
        "integrity.chunk-id"
    )


def test_ids_tell_kinds_apart() -> None:
    """A tree must not be taken for data of the same bytes (format 4)."""
    names = {NAMER.name_of(kind, b"same") for kind in ChunkKind}

    assert len(names) == 4
    assert NAMER.name_of(ChunkKind.DATA, memoryview(b"same")) in names


@pytest.mark.parametrize("count", [4, 8])
@pytest.mark.parametrize("kind", [Seal.NESTED, Seal.NAMING_KEY, Seal.SLOT_KEY, Seal.KEYS_FILE])
def test_a_box_opens_for_its_recipients_in_its_place_only(count: int, kind: Seal) -> None:
    """Kind, place and what is appended are all bound (format 3.3)."""
    people = identities()[:3]
    box = seal_box(
        b"content",
        [one.public for one in people],
        kind=kind,
        place=PLACE,
        count=count,
        extra=b"more",
    )

    def opened(
        data: bytes = box,
        who: bytes = people[0].secret,
        kind_: Seal = kind,
        place: Compartment = PLACE,
        extra: bytes = b"more",
    ) -> bytes:
        return open_box(data, who, kind=kind_, place=place, extra=extra)

    assert [opened(who=one.secret) for one in people] == [b"content"] * 3
    assert code_of(lambda: opened(who=identities()[7].secret)) == "integrity.stanza"
    assert code_of(lambda: opened(extra=b"")) == "integrity.stanza"
    assert code_of(lambda: opened(kind_=Seal.PACK)) == "integrity.stanza"
    for place in ELSEWHERE:
        assert code_of(opened, place=place) == "integrity.stanza"
    end = 32 + count * 1168
    assert code_of(lambda: opened(flipped(box, end))) == "integrity.commitment"
    for at in (end + 32, end + 44, -1):
        assert code_of(opened, flipped(box, at)) == "integrity.seal"
    assert code_of(lambda: opened(box[: end + 40])) == "integrity.seal"
    for cut in (0, 31, 32, 500, 1199):
        assert code_of(opened, box[:cut]) == "integrity.stanza"


def test_a_box_of_eight_does_not_pass_as_one_of_four() -> None:
    """Where the number is not known, the commitment decides it (format 3.3)."""
    eight = seal_box(b"x", [identities()[0].public], kind=Seal.KEYS_FILE, place=PLACE, count=8)

    header = open_header(
        identities()[0].secret,
        eight,
        32,
        b"durarepo/1\x07\x05notes\0\0\0\x01\x04main" + eight[:32],
    )
    assert header.length == 32 + 8 * 1168 + 32


def test_recipients_cannot_be_told_from_spare_stanzas() -> None:
    """Their number and order must not show who can read (format 3.3)."""
    person = identities()[0]
    places = set()
    for _ in range(40):
        key, header = new_envelope_header([person.public], place=PLACE, count=4)
        assert len(header) == 65 + 4 * 1168
        info = b"durarepo/1\x02\x05notes\0\0\0\x01\x04main" + header[1:33]
        for at in range(4):
            begin = 33 + at * 1168
            try:
                found = primitives.open_stanza(person.secret, header[begin : begin + 1168], info)
            except primitives.WrongKeyError:
                continue
            assert found == key
            places.add(at)
    assert places == {0, 1, 2, 3}


def test_an_envelope_fills_its_size_and_gives_its_document_back() -> None:
    """Its size is one of few, so that it tells nothing; its mark is the last thing in it."""
    person, mark_key = identities()[0], secrets()[0]
    key, header = new_envelope_header([person.public], place=PLACE, count=4)
    for document in (b"", b"document", bytes(32_768 - envelope_overhead(header))):
        data = seal_envelope(key, header, document, size=32_768, mark_key=mark_key)

        assert len(data) == 32_768
        assert data[-32:] == primitives.keyed_hash(mark_key, data[:-32])
        info = b"durarepo/1\x02\x05notes\0\0\0\x01\x04main" + data[1:33]
        opened = open_header(person.secret, data, 33, info)
        assert unpad_document(open_sealed(opened.key, data[opened.length : -32])) == document


def test_an_index_may_take_all_the_room_that_there_is() -> None:
    """A pack that just fits its class must not be given a larger one."""
    index = make_pack([identities()[0].public]).index
    exact = index.end + 12 + 16 + 4 + len(deflate(encode_index(index))) + 36
    sealer = PackSealer([identities()[0].public], place=PLACE, count=4, index_subkey=INDEX_SUBKEY)

    sealed, trailer = sealer.seal_index(index, size=exact)

    assert index.end + len(sealed) + len(trailer) == exact
    with pytest.raises(ValueError, match="room"):
        sealer.seal_index(index, size=exact - 1)


@pytest.mark.parametrize(("holders", "count"), [(0, 4), (5, 4), (2, 5), (1, 0)])
def test_a_wrong_number_of_stanzas_is_a_mistake_of_the_caller(holders: int, count: int) -> None:
    """Sealed so, nobody could open it."""
    people = [one.public for one in identities()[:holders]]

    with pytest.raises(ValueError, match="stanzas"):
        seal_box(b"x", people, kind=Seal.NESTED, place=PLACE, count=count)


def test_a_recipient_that_cannot_be_sealed_to_is_a_matter_of_keys() -> None:
    """A registry with such a key must not end a snapshot with a traceback."""

    def seal() -> bytes:
        return seal_box(b"x", [b"\xff" * 1216], kind=Seal.NESTED, place=PLACE, count=4)

    with pytest.raises(KeyMaterialError) as caught:
        seal()
    assert caught.value.code == "keys.malformed"


def test_what_does_not_fit_is_not_sealed() -> None:
    """An object cut to its class would be found unreadable on the worst day."""
    with pytest.raises(ValueError, match="room"):
        make_pack([identities()[0].public], size=5000)
    key, header = new_envelope_header([identities()[0].public], place=PLACE, count=4)
    with pytest.raises(ValueError, match="negative"):
        seal_envelope(key, header, bytes(32_768), size=32_768, mark_key=bytes(32))


def test_an_index_that_no_reader_takes_is_not_sealed() -> None:
    """Readers inflate four MiB at most (format 5.3)."""
    sealer = PackSealer([identities()[0].public], place=PLACE, count=4, index_subkey=INDEX_SUBKEY)
    count = INDEX_MAX_BYTES // 37 + 1
    info = FrameInfo(
        position=len(sealer.header),
        stored_length=100,
        plain_length=count,
        compression=1,
        digest=Digest(bytes(32)),
        first_chunk=0,
        chunk_count=count,
    )
    index = PackIndex(
        header_digest=Digest(bytes(32)),
        header_length=len(sealer.header),
        frames=(info,),
        lengths=(1,) * count,
        kinds=bytes(count),
        ids=(ChunkId(bytes(32)),) * count,
    )

    with pytest.raises(ValueError, match="index"):
        sealer.seal_index(index, size=SIZE_CLASSES[-1])


def test_only_integrity_errors_come_of_cut_or_altered_objects() -> None:
    """Whatever a store gives back, the answer is a code."""
    data = PACK.data
    for cut in range(0, len(data), 997):
        for bad in (data[:cut], data[cut:-1], b"\xff" * cut):
            with pytest.raises(IntegrityError):
                open_trailer(KEY, bad[-36:], size=len(data))
            with pytest.raises(IntegrityError):
                open_box(bad, identities()[0].secret, kind=Seal.NESTED, place=PLACE)


@pytest.mark.parametrize("size", [SIZE_CLASSES[0], SIZE_CLASSES[1]])
def test_a_registry_is_as_long_as_its_class(size: int) -> None:
    """A length of its own would tell which object is the registry, and no reader takes it."""
    sealed = seal_registry(bytes(32), b"document", size=size)

    assert len(sealed) == size
