"""The short way through a leaf gives what the long way gives, for good bytes and for all others."""

import hashlib
from collections.abc import Mapping
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from durarepo.core.entries import Entry, FileType
from durarepo.core.errors import IntegrityError
from durarepo.core.limits import CHUNK_MAX_BYTES
from durarepo.core.names import ChunkId, FileHash
from durarepo.format import tree
from durarepo.format.canonical import Value, decode, encode
from durarepo.format.tree import Leaf, Node, encode_entry, encode_leaf, parse_entry, parse_tree
from durarepo.format.usual import read_usual
from tests.properties import strategies as my

_TIMES = st.integers(0, 2**32 * 10**9 - 1)
_BORDERS = (0, 1, 23, 24, 255, 256, 65_535, 65_536, CHUNK_MAX_BYTES, 2**32 - 1)
_IDS = st.sampled_from(_BORDERS) | my.U32
_SHORT = st.none() | st.binary(min_size=1, max_size=23)


@st.composite
def usual_entries(draw: st.DrawFn) -> Entry:
    """A file of at most one chunk or a directory, as nearly all are."""
    name, mode = draw(my.NAMES), draw(st.integers(0, 0o7777))
    size = draw(st.sampled_from(_BORDERS[:-1]) | st.integers(0, CHUNK_MAX_BYTES))
    is_file = draw(st.booleans())
    return Entry(
        name=name,
        type=FileType.FILE if is_file else FileType.DIRECTORY,
        mode=mode,
        mtime_ns=draw(_TIMES),
        uid=draw(_IDS),
        gid=draw(_IDS),
        birth_ns=draw(st.none() | _TIMES),
        user=draw(_SHORT),
        group=draw(_SHORT),
        size=size if is_file else 0,
        sha256=FileHash(draw(my.WORDS)) if is_file and size else None,
        tree=None if is_file else ChunkId(draw(my.WORDS)),
    )


def leaves_of(entries: st.SearchStrategy[Entry]) -> st.SearchStrategy[bytes]:
    """Leaves of such entries, in order."""
    listed = st.lists(entries, max_size=4, unique_by=lambda entry: entry.name)
    return listed.map(
        lambda found: encode_leaf(
            [encode_entry(one) for one in sorted(found, key=lambda one: one.name)]
        )
    )


def outcome(data: bytes) -> Leaf | Node | str:
    """Return what `parse_tree` makes of bytes: a value, or the code of its refusal."""
    try:
        return parse_tree(data)
    except IntegrityError as error:
        return error.code


def check_both_ways(data: bytes) -> None:
    """Compare the short way with the long one."""
    short = outcome(data)
    with patch.object(tree, "_quick_leaf", return_value=None):
        assert outcome(data) == short


@given(usual_entries())
def test_a_usual_entry_is_read_in_one_step(entry: Entry) -> None:
    """If none ever were, all other tests here would pass and a restore be slow."""
    data = encode_entry(entry)

    assert read_usual(data, 0) == (entry, len(data))
    assert read_usual(b"before" + data + b"behind", 6) == (entry, 6 + len(data))


@given(leaves_of(usual_entries() | my.entries()))
def test_both_ways_agree_on_what_a_writer_makes(data: bytes) -> None:
    """A field lost on one way only would be restored or not, as the neighbours are."""
    check_both_ways(data)


@given(my.altered(leaves_of(usual_entries())))
def test_both_ways_agree_on_altered_bytes(data: bytes) -> None:
    """The short way must pass nothing that the long one refuses (spec/ingest.md 1 and 7)."""
    check_both_ways(data)


_FILE: dict[int, Value] = {0: b"n", 1: 0, 2: 1, 3: [1, 1], 4: 1, 5: 1, 9: 1, 10: b"h" * 32}
_FOLDER: dict[int, Value] = {0: b"n", 1: 1, 2: 1, 3: [1, 1], 4: 1, 5: 1, 12: b"t" * 32}
_ODD_TIMES: list[list[Value]] = [
    [0, 0],
    [2**32, 1],
    [-1, 1],
    [1, 10**9 - 1],
    [1, 10**9],
    [1, 2**32],
]
_Change = Mapping[int, Value]
_ODD: list[tuple[str, _Change, _Change]] = [
    *(
        (f"name {name[:8]!r}", base, {0: name})
        for base in (_FILE, _FOLDER)
        for name in (b"", b".", b"..", b"/a", b"a\0", b"n" * 23, b"n" * 24, b"n" * 255, b"n" * 256)
    ),
    *((f"mode {mode}", _FILE, {2: mode}) for mode in (0o7777, 0o10000, -1)),
    *((f"time {key} {time}", _FILE, {key: time}) for key in (3, 8) for time in _ODD_TIMES),
    *((f"owner {one}", _FILE, {key: one}) for key in (4, 5) for one in (2**32 - 1, 2**32)),
    *((f"owner name {n}", _FILE, {key: b"u" * n}) for key in (6, 7) for n in (0, 1, 23, 24, 256)),
    *((f"size {size}", _FILE, {9: size}) for size in (CHUNK_MAX_BYTES, CHUNK_MAX_BYTES + 1)),
    ("hash without content", _FILE, {9: 0}),
    ("content without hash", _FILE, {10: None}),
    ("nothing and no hash", _FILE, {9: 0, 10: None}),
    ("short hash", _FILE, {10: b"h" * 31}),
    ("file that is a folder", _FILE, {9: None, 10: None, 12: b"t" * 32}),
    ("folder that is a file", _FOLDER, {12: None, 9: 1, 10: b"h" * 32}),
    ("folder with a size", _FOLDER, {9: 1}),
    ("link", _FILE, {1: 2}),
    ("link group", _FILE, {16: 7}),
    ("unknown field", _FILE, {23: 7}),
]
"""What is done to a good entry; None takes a field away. Some of it is still good."""


@pytest.mark.parametrize(
    ("base", "change"), [row[1:] for row in _ODD], ids=[row[0] for row in _ODD]
)
def test_both_ways_agree_at_every_bound(base: _Change, change: _Change) -> None:
    """Each bound stands in two places; one that differs lets something through."""
    merged = {**base, **change}
    value = {key: merged[key] for key in sorted(merged) if merged[key] is not None}

    check_both_ways(encode([0, [value]]))


@pytest.mark.parametrize(
    ("shortest", "longer"),
    [
        (b"\x02\x01", b"\x02\x18\x01"),
        (b"\x02\x01", b"\x02\x19\x00\x01"),
        (b"\x02\x01", b"\x02\x1a\x00\x00\x00\x01"),
        (b"\x00\x41n", b"\x00\x58\x01n"),
        (b"\x06\x41u", b"\x06\x58\x01u"),
        (b"\x00\x41n", b"\x0d\x41n"),
        (b"\xa9", b"\xa8"),
        (b"\xa9", b"\xaa"),
        (b"\xa9", b"\x89"),
    ],
)
def test_only_the_shortest_form_is_read(shortest: bytes, longer: bytes) -> None:
    """A second encoding of one directory would give it a second id (spec/ingest.md 1.4)."""
    data = encode([0, [_FILE | {6: b"u"}]])
    assert shortest in data
    altered = data.replace(shortest, longer, 1)

    assert isinstance(outcome(data), Leaf)
    assert isinstance(outcome(altered), str)
    check_both_ways(altered)


@given(my.altered(usual_entries().map(encode_entry)))
@example(b"")
@example(b"\xa7\x00\x41")
def test_what_is_read_in_one_step_has_no_second_encoding(data: bytes) -> None:
    """The pattern knows shortest forms only, and where an entry ends."""
    found = read_usual(data, 0)

    if found is not None:
        assert encode_entry(found[0]) == data[: found[1]]
        assert parse_entry(decode(data[: found[1]])) == found[0]


def test_a_leaf_that_states_too_many_entries_is_refused() -> None:
    """The count is not believed: nothing is allocated for it."""
    entry = Entry(name=b"a", type=FileType.FILE, mode=0, mtime_ns=0, uid=0, gid=0)
    data = bytearray(encode_leaf([encode_entry(entry)]))
    assert data[2] == 0x81

    for head in (b"\x80", b"\x82", b"\x9a\xff\xff\xff\xff", b"\x98\x01", b"\xa1", b"\x9f"):
        code = outcome(bytes(data[:2] + head + data[3:]))

        assert isinstance(code, str)
        assert code.startswith("integrity.cbor-")


def test_names_out_of_order_are_refused_on_the_short_way() -> None:
    """Two things of one name would be restored over each other (spec/ingest.md 7.4)."""
    digest = FileHash(hashlib.sha256(b"x").digest())
    one, two = (
        encode_entry(
            Entry(
                name=name,
                type=FileType.FILE,
                mode=0o644,
                mtime_ns=1,
                uid=0,
                gid=0,
                size=1,
                sha256=digest,
            )
        )
        for name in (b"a", b"b")
    )

    assert outcome(encode_leaf([two, one])) == "integrity.tree-order"
    assert outcome(encode_leaf([one, one])) == "integrity.tree-order"
