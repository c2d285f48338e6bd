"""Hypothesis strategies for the values that the format encodes.

Everything a writer may make, with the borders of each field; nothing that a reader refuses.
"""

from typing import Any

from hypothesis import strategies as st

from durarepo.core.entries import ChunkList, Consistency, Entry, FileType, Run
from durarepo.core.limits import CHUNK_MAX_BYTES, SIZE_CLASSES, TIME_MAX_SECONDS, TIME_MIN_SECONDS
from durarepo.core.names import ChunkId, Digest, FileHash, ObjectName, SignerId
from durarepo.format.canonical import Value
from durarepo.format.document import Document
from durarepo.format.keytext import Card, CardStream
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import (
    Component,
    LedgerLine,
    Nested,
    OmissionClass,
    Pin,
    Repair,
    Root,
    SnapshotType,
    Statement,
    Totals,
)
from durarepo.format.pack import FrameInfo, PackIndex, header_length
from durarepo.format.registry import (
    Epoch,
    Registry,
    Retention,
    Revocation,
    Role,
    Signer,
    StreamRecord,
)

U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
POSITIVE = st.integers(1, 2**64 - 1)
WORDS = st.binary(min_size=32, max_size=32)
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NAMES = st.binary(min_size=1, max_size=255).filter(
    lambda name: not {0, 47} & set(name) and name not in (b".", b"..")
)
TIMES = st.integers(TIME_MIN_SECONDS * 10**9, TIME_MAX_SECONDS * 10**9 + 999_999_999)
STREAM_IDS = st.from_regex(r"[a-z0-9][a-z0-9-]{0,62}", fullmatch=True)

SCALARS: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.binary(max_size=40) | TEXT
)


def values() -> st.SearchStrategy[Value]:
    """Any value of the encoding."""
    return st.recursive(
        SCALARS,
        lambda below: (
            st.lists(below, max_size=5) | st.dictionaries(st.integers(0, 23), below, max_size=5)
        ),
        max_leaves=30,
    )


@st.composite
def chunk_lists(draw: st.DrawFn) -> ChunkList:
    """A content list of any depth."""
    depth = draw(st.integers(0, 3))
    most = CHUNK_MAX_BYTES if depth == 0 else 2**40
    runs: list[Run] = []
    for _ in range(draw(st.integers(1, 6))):
        is_hole = depth == 0 and not (runs and runs[-1].chunk is None) and draw(st.booleans())
        if is_hole:
            runs.append(Run(draw(st.integers(1, 2**40)), None))
        else:
            runs.append(Run(draw(st.integers(1, most)), ChunkId(draw(WORDS))))
    return ChunkList(depth, tuple(runs))


_XATTRS = st.dictionaries(
    st.binary(min_size=1, max_size=255).filter(lambda name: b"\0" not in name),
    st.binary(max_size=100) | chunk_lists(),
    max_size=3,
).map(lambda pairs: tuple(sorted(pairs.items(), key=lambda pair: pair[0])))


def _own_fields(draw: st.DrawFn, kind: FileType) -> dict[str, Any]:
    match kind:
        case FileType.FILE:
            content = draw(st.none() | chunk_lists())
            size = draw(st.integers(0, CHUNK_MAX_BYTES))
            if content is not None:
                size = sum(run.length for run in content.runs)
            return {
                "size": size,
                "content": content,
                "sha256": FileHash(draw(WORDS)) if size else None,
                "consistency": draw(st.sampled_from(Consistency)),
                "redactions": tuple(draw(st.lists(TEXT, max_size=2))),
            }
        case FileType.DIRECTORY:
            return {"tree": ChunkId(draw(WORDS))}
        case FileType.SYMLINK:
            target = st.binary(min_size=1, max_size=300).filter(lambda one: b"\0" not in one)
            return {"target": draw(target)}
        case FileType.CHAR_DEVICE | FileType.BLOCK_DEVICE:
            return {"device": (draw(U32), draw(U32))}
        case _:
            return {}


@st.composite
def entries(draw: st.DrawFn, *, root: bool = False) -> Entry:
    """An entry of any type; a root is a directory without a name."""
    kind = FileType.DIRECTORY if root else draw(st.sampled_from(FileType))
    short = st.none() | st.binary(min_size=1, max_size=255)
    return Entry(
        name=b"" if root else draw(NAMES),
        type=kind,
        mode=draw(st.integers(0, 0o7777)),
        mtime_ns=draw(TIMES),
        uid=draw(U32),
        gid=draw(U32),
        birth_ns=draw(st.none() | TIMES),
        user=draw(short),
        group=draw(short),
        xattrs=draw(_XATTRS),
        link_group=draw(st.none() | U64),
        since=draw(st.none() | POSITIVE),
        **_own_fields(draw, kind),
    )


OBJECT_NAMES = WORDS.map(lambda raw: ObjectName(raw.hex()))
_NAME_TUPLES = st.sets(OBJECT_NAMES, max_size=4).map(lambda names: tuple(sorted(names)))


@st.composite
def statements(draw: st.DrawFn) -> Statement:
    """A manifest's statement."""
    version = draw(POSITIVE)
    pins = tuple(
        Pin(
            name=name,
            size=draw(st.sampled_from(SIZE_CLASSES)),
            index_digest=Digest(draw(WORDS)),
            registry_version=draw(st.integers(1, version)),
        )
        for name in draw(_NAME_TUPLES)
    )
    repairs = tuple(Repair(bad=bad, replacements=draw(_NAME_TUPLES)) for bad in draw(_NAME_TUPLES))
    counts = st.tuples(U64, U64, U64, U64, U64, U64, U64)
    files, dirs, size, omissions, excluded, redacted, vanished = draw(counts)
    seconds = st.integers(0, 2**62 - 1)
    return Statement(
        stream=draw(STREAM_IDS),
        epoch=draw(st.integers(1, 2**32 - 1)),
        compartment=draw(STREAM_IDS),
        never_publish=draw(st.booleans()),
        signer=SignerId(draw(WORDS)),
        sequence=draw(POSITIVE),
        previous=Digest(draw(WORDS)),
        milestone=Digest(draw(WORDS)),
        header_digest=Digest(draw(WORDS)),
        registry_version=version,
        issued=draw(seconds),
        expires=draw(seconds),
        type=draw(st.sampled_from(SnapshotType)),
        complete=draw(st.booleans()),
        totals=Totals(
            files=files,
            dirs=dirs,
            bytes=size,
            omissions=omissions,
            excluded=excluded,
            redacted=redacted,
            vanished=vanished,
        ),
        shrunk=draw(st.booleans()),
        accepted=draw(st.none() | WORDS.map(Digest)),
        holds=tuple(sorted(draw(st.sets(U64, max_size=4)))),
        audit_head=Digest(draw(WORDS)),
        state_lost=draw(st.booleans()),
        pins=pins,
        repairs=repairs,
        abandoned=tuple(
            name for name in draw(_NAME_TUPLES) if name not in {pin.name for pin in pins}
        ),
        floor=draw(U64),
        nested=draw(st.binary(max_size=60)),
    )


_FACTS = st.lists(st.tuples(TEXT, TEXT | U64), max_size=3).map(tuple)
_PATHS = st.lists(NAMES, max_size=3).map(lambda parts: b"/" + b"/".join(parts))


def _apart(paths: set[bytes]) -> list[bytes]:
    """Return, in order, those paths that lie in none of the others."""
    return sorted(
        path
        for path in paths
        if not any((path + b"/").startswith(one.rstrip(b"/") + b"/") for one in paths - {path})
    )


@st.composite
def nested_parts(draw: st.DrawFn) -> Nested:
    """A manifest's nested part."""
    components = tuple(
        Component(
            kind=draw(TEXT),
            name=draw(st.binary(max_size=30)),
            integrity=draw(WORDS),
            consistency=draw(st.integers(0, 5)),
            counts=tuple(draw(st.lists(st.tuples(TEXT, U64), max_size=2))),
            facts=draw(_FACTS),
        )
        for _ in range(draw(st.integers(0, 2)))
    )
    paths = _apart(draw(st.sets(_PATHS, max_size=3)))
    return Nested(
        roots=tuple(Root(path=path, entry=draw(entries(root=True))) for path in paths),
        components=components,
        ledger=draw(st.binary(max_size=40) | chunk_lists()),
        configuration=draw(st.binary(max_size=40)),
        host=tuple(draw(st.lists(st.tuples(TEXT, TEXT), max_size=2))),
        epoch_facts=draw(_FACTS),
        policy=draw(TEXT),
    )


@st.composite
def _ledger_lines(draw: st.DrawFn) -> LedgerLine:
    is_keyed = draw(st.booleans())
    return LedgerLine(
        kind=draw(st.sampled_from(OmissionClass)),
        path=draw(TEXT).encode() if is_keyed else draw(st.binary(max_size=40)),
        rule=draw(TEXT),
        stage=draw(TEXT),
        count=draw(U64),
        is_keyed=is_keyed,
    )


LEDGERS = st.lists(_ledger_lines(), max_size=5)

DOCUMENTS = st.builds(
    Document,
    type=TEXT,
    statement=st.binary(max_size=200),
    signatures=st.tuples(
        st.binary(min_size=64, max_size=64), st.binary(min_size=3309, max_size=3309)
    ),
)


@st.composite
def _epochs(draw: st.DrawFn, number: int, first: int) -> Epoch:
    count = draw(st.sampled_from((4, 8)))
    recipients = draw(st.integers(1, count))
    audit = draw(st.integers(0, count - recipients))
    signers = draw(st.sets(st.integers(0, 255), min_size=1, max_size=3))
    return Epoch(
        number=number,
        first_sequence=first,
        previous=Digest(bytes(32) if number == 1 else draw(WORDS)),
        signers=tuple(
            Signer(public=bytes((one,)) * 1984, roles=Role(draw(st.integers(1, 3))))
            for one in sorted(signers)
        ),
        data_recipients=tuple(bytes((one,)) * 1216 for one in range(recipients)),
        audit_recipients=tuple(bytes((one,)) * 1216 for one in range(audit)),
        stanza_count=count,
        naming_key=draw(st.binary(max_size=50)),
        slot_key=draw(st.binary(max_size=50)) if audit else None,
        revocations=tuple(
            Revocation(signer=SignerId(draw(WORDS)), sequence=draw(U64), digest=Digest(draw(WORDS)))
            for _ in range(draw(st.integers(0, 2)))
        ),
    )


@st.composite
def _records(draw: st.DrawFn, name: str) -> StreamRecord:
    firsts = (1, *sorted(draw(st.sets(st.integers(2, 2**64 - 1), max_size=2))))
    epochs = tuple(draw(_epochs(number, first)) for number, first in enumerate(firsts, 1))
    return StreamRecord(
        stream=name,
        compartment=draw(STREAM_IDS),
        never_publish=draw(st.booleans()),
        epochs=epochs,
        floor=draw(U64),
        retention=Retention(days=draw(U32), keep_weekly=draw(U32), keep_monthly=draw(U32)),
        foreign_drill=draw(st.booleans()),
        shrink_lifted=draw(st.none() | WORDS.map(Digest)),
    )


@st.composite
def registries(draw: st.DrawFn) -> Registry:
    """A registry's statement."""
    issued = draw(st.integers(0, 2**61))
    names = sorted(draw(st.sets(STREAM_IDS, min_size=1, max_size=2)))
    return Registry(
        version=draw(POSITIVE),
        issued=issued,
        expires=issued + draw(st.integers(1, 400 * 86_400)),
        owner=draw(st.integers(0, 255)).to_bytes(1) * 1984,
        streams=tuple(draw(_records(name)) for name in names),
    )


@st.composite
def indexes(draw: st.DrawFn) -> PackIndex:
    """A pack's index, with frames that lie as its header and lengths say."""
    length = header_length(draw(st.sampled_from((4, 8))))
    frames: list[FrameInfo] = []
    lengths: list[int] = []
    position = length
    for _ in range(draw(st.integers(1, 4))):
        chunks = draw(st.lists(st.integers(1, 2**20), min_size=1, max_size=5))
        stored = draw(st.integers(17, 2**20))
        frames.append(
            FrameInfo(
                position=position,
                stored_length=stored,
                plain_length=sum(chunks),
                compression=draw(st.integers(0, 1)),
                digest=Digest(draw(WORDS)),
                first_chunk=len(lengths),
                chunk_count=len(chunks),
            )
        )
        position += stored
        lengths += chunks
    return PackIndex(
        header_digest=Digest(draw(WORDS)),
        header_length=length,
        frames=tuple(frames),
        lengths=tuple(lengths),
        kinds=bytes(draw(st.sampled_from(ChunkKind)) for _ in lengths),
        ids=tuple(ChunkId(draw(WORDS)) for _ in lengths),
    )


@st.composite
def cards(draw: st.DrawFn) -> Card:
    """A card's content."""
    return Card(
        owner_digest=draw(WORDS),
        identity=draw(WORDS),
        locator=draw(WORDS),
        registry_version=draw(U64),
        streams=tuple(
            CardStream(
                stream=draw(STREAM_IDS),
                anchor=(draw(U32), draw(U64), Digest(draw(WORDS))),
                head=(draw(U64), Digest(draw(WORDS))),
            )
            for _ in range(draw(st.integers(0, 2)))
        ),
        remotes=tuple(
            draw(st.lists(st.tuples(TEXT, TEXT, st.none() | st.binary(max_size=30)), max_size=2))
        ),
    )


def altered(data: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Return what ``data`` gives after up to three small changes."""

    def change(pair: tuple[bytes, list[tuple[int, int, bytes]]]) -> bytes:
        raw, changes = pair
        for at, cut, put in changes:
            at %= len(raw) + 1  # noqa: PLW2901
            raw = raw[:at] + put + raw[at + cut :]
        return raw

    edits = st.lists(
        st.tuples(st.integers(0, 2**16), st.integers(0, 2), st.binary(max_size=2)), max_size=3
    )
    return st.tuples(data, edits).map(change)
