"""Directories: what an entry, a content list, a leaf and a node may say, and where leaves end."""

import hashlib
from typing import Any

import pytest

from durarepo.core.entries import ChunkList, Consistency, Entry, FileType, Run
from durarepo.core.errors import IntegrityError
from durarepo.core.limits import (
    CHUNK_MAX_BYTES,
    FILE_MAX_BYTES,
    TREE_LEAF_MAX_ENTRIES,
    TREE_SPLIT_BYTES,
    XATTRS_MAX_COUNT,
)
from durarepo.core.names import ChunkId, FileHash
from durarepo.format.canonical import Value, decode, encode
from durarepo.format.tree import (
    Leaf,
    SetHash,
    check_name,
    cut_leaves,
    encode_entry,
    encode_leaf,
    encode_list,
    is_normal_path,
    parse_entry,
    parse_list,
    parse_list_chunk,
    parse_tree,
    set_value,
)
from durarepo.format.usual import read_usual

ID = b"i" * 32
NS = 1_000_000_000


def entry(kind: FileType = FileType.FILE, **changes: Any) -> Entry:
    """Return a valid entry of a type."""
    by_type: dict[FileType, dict[str, Any]] = {
        FileType.FILE: {"size": 5, "sha256": FileHash(ID)},
        FileType.DIRECTORY: {"tree": ChunkId(ID)},
        FileType.SYMLINK: {"target": b"a"},
        FileType.CHAR_DEVICE: {"device": (1, 3)},
        FileType.BLOCK_DEVICE: {"device": (8, 0)},
    }
    own = by_type.get(kind, {})
    fields = {"name": b"a", "type": kind, "mode": 0o644, "mtime_ns": 0, "uid": 0, "gid": 0}
    return Entry(**{**fields, **own, **changes})


def altered(base: Entry, changes: dict[int, Value], *without: int) -> Value:
    """Return the decoded map of an entry with some fields replaced and others taken away."""
    value = decode(encode_entry(base))
    if not isinstance(value, dict):
        raise TypeError("an entry is a map")
    merged = {**value, **changes}
    return {key: merged[key] for key in sorted(merged) if key not in without}


def code(value: Value) -> str:
    """Return the code with which an entry is refused."""
    with pytest.raises(IntegrityError) as caught:
        parse_entry(value)
    return caught.value.code


LIST: Value = [0, [5, ID]]


@pytest.mark.parametrize("kind", FileType)
def test_an_entry_of_each_type_has_its_own_fields_only(kind: FileType) -> None:
    """A directory with a size, or a file with a target, is something no writer means."""
    base = entry(kind)
    own: dict[int, Value] = {9: 5, 10: ID, 11: LIST, 12: ID, 13: b"a", 14: [1, 2]}
    allowed = {
        FileType.FILE: {9, 10, 11, 17, 19},
        FileType.DIRECTORY: {12},
        FileType.SYMLINK: {13},
        FileType.CHAR_DEVICE: {14},
        FileType.BLOCK_DEVICE: {14},
    }.get(kind, set())
    own |= {17: 1, 19: ["r"]}

    assert parse_entry(decode(encode_entry(base))) == base
    for key, value in own.items():
        if key not in allowed:
            assert code(altered(base, {key: value})) == "integrity.entry"


@pytest.mark.parametrize("key", [0, 1, 2, 3, 4, 5, 9, 10])
def test_no_field_that_a_file_must_have_may_be_absent(key: int) -> None:
    """A restore would have to invent it."""
    assert code(altered(entry(), {}, key)) == "integrity.entry"


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (FileType.FILE, {1: 7}),
        (FileType.FILE, {1: True}),
        (FileType.FILE, {1: -1}),
        (FileType.FILE, {1: b"\0"}),
        (FileType.FILE, {1: 2**64 - 1}),
        (FileType.FILE, {1: [0]}),
        (FileType.FILE, {2: 0o10000}),
        (FileType.FILE, {3: [0, 1_000_000_000]}),
        (FileType.FILE, {3: [0, -1]}),
        (FileType.FILE, {3: [2**62, 0]}),
        (FileType.FILE, {3: [-(2**62) - 1, 0]}),
        (FileType.FILE, {3: [0]}),
        (FileType.FILE, {3: 0}),
        (FileType.FILE, {4: 2**32}),
        (FileType.FILE, {5: -1}),
        (FileType.FILE, {6: b""}),
        (FileType.FILE, {7: b"g" * 256}),
        (FileType.FILE, {8: [0, True]}),
        (FileType.FILE, {9: -1}),
        (FileType.FILE, {9: 0}),
        (FileType.FILE, {9: 0, 11: LIST}),
        (FileType.FILE, {9: CHUNK_MAX_BYTES + 1}),
        (FileType.FILE, {9: 2**64 - 1}),
        (FileType.FILE, {9: 2**53, 11: [0, [2**53, None]]}),
        (FileType.FILE, {10: b"short"}),
        (FileType.FILE, {10: None}),
        (FileType.FILE, {15: []}),
        (FileType.FILE, {15: [[b"", b""]]}),
        (FileType.FILE, {15: [[b"a" * 256, b""]]}),
        (FileType.FILE, {15: [[b"a\0", b""]]}),
        (FileType.FILE, {15: [[b"a", b"v" * 4097]]}),
        (FileType.FILE, {15: [[b"b", b""], [b"a", b""]]}),
        (FileType.FILE, {15: [[b"a", b""], [b"a", b""]]}),
        (FileType.FILE, {15: [[b"a"]]}),
        (FileType.FILE, {15: [[b"%05d" % n, b""] for n in range(XATTRS_MAX_COUNT + 1)]}),
        (FileType.FILE, {16: -1}),
        (FileType.FILE, {17: 0}),
        (FileType.FILE, {17: 6}),
        (FileType.FILE, {17: True}),
        (FileType.FILE, {18: 0}),
        (FileType.FILE, {19: []}),
        (FileType.FILE, {19: [b"rule"]}),
        (FileType.FILE, {20: 0}),
        (FileType.DIRECTORY, {12: bytes(31)}),
        (FileType.SYMLINK, {13: b""}),
        (FileType.SYMLINK, {13: b"a\0"}),
        (FileType.SYMLINK, {13: b"a" * 4096}),
        (FileType.CHAR_DEVICE, {14: [1]}),
        (FileType.CHAR_DEVICE, {14: [1, 2**32]}),
        (FileType.BLOCK_DEVICE, {14: [-1, 0]}),
    ],
)
def test_a_field_out_of_bounds_is_refused(kind: FileType, changes: dict[int, Value]) -> None:
    """Numbers of a hostile writer end in a code, not in a traceback (ingest 7.2)."""
    assert code(altered(entry(kind), changes)) == "integrity.entry"


BORDERS = (0, 1, 23, 24, 255, 256, 65535, 65536, 2**32 - 1)
RARE: tuple[dict[str, Any], ...] = (
    {"birth_ns": 7 * NS + 9},
    {"user": b"u", "group": b"group"},
    {"consistency": Consistency.GREW},
    {"link_group": 3},
    {"since": 9},
    {"redactions": ("rule",)},
    {"xattrs": ((b"user.a", b"1"),)},
    {"content": ChunkList(depth=0, runs=(Run(5, ChunkId(ID)),))},
)


@pytest.mark.parametrize("changes", [{}, *RARE])
def test_an_entry_is_encoded_as_the_map_that_it_is(changes: dict[str, Any]) -> None:
    """The hand-made encoding must be the canonical one, and lose no field."""
    one = entry(**changes)

    assert encode(decode(encode_entry(one))) == encode_entry(one)
    assert parse_entry(decode(encode_entry(one))) == one


@pytest.mark.parametrize("seconds", [*BORDERS, 2**32, -1, 2**62 - 1])
def test_a_time_is_encoded_in_its_shortest_form(seconds: int) -> None:
    """Two encodings of one time would be two ids of one directory."""
    for rest in {min(one, NS - 1) for one in BORDERS}:
        one = entry(mtime_ns=seconds * NS + rest, birth_ns=seconds * NS + rest)

        assert altered(one, {})[3] == [seconds, rest]  # type: ignore[index]
        assert encode(decode(encode_entry(one))) == encode_entry(one)


def test_a_run_may_be_as_long_as_the_limits_say() -> None:
    """A chunk has a greatest length, a hole only that of a file."""
    good: list[tuple[int, Value]] = [
        *((CHUNK_MAX_BYTES, ID), (1, None), (1, ID), (FILE_MAX_BYTES, None)),
    ]
    for length, chunk in good:
        assert parse_list([0, [length, chunk]], total=None).runs[0].length == length
    assert parse_list([1, [FILE_MAX_BYTES, ID]], total=None).depth == 1
    bad: list[tuple[int, Value]] = [
        *((CHUNK_MAX_BYTES + 1, ID), (FILE_MAX_BYTES + 1, None), (0, ID), (0, None)),
    ]
    for length, chunk in bad:
        with pytest.raises(IntegrityError):
            parse_list([0, [length, chunk]], total=None)


def test_a_file_of_more_than_a_chunk_has_a_content_list() -> None:
    """Without a list nobody knows which chunks it is, and with one it is a file like any other."""
    size = CHUNK_MAX_BYTES + 1
    content = ChunkList(depth=0, runs=(Run(1, ChunkId(ID)), Run(CHUNK_MAX_BYTES, ChunkId(ID))))
    whole = entry(size=size, content=content)

    assert parse_entry(decode(encode_entry(whole))) == whole
    assert code(altered(whole, {}, 11)) == "integrity.entry"
    at_most = entry(size=CHUNK_MAX_BYTES)
    assert parse_entry(decode(encode_entry(at_most))) == at_most


DIRECTORY = entry(FileType.DIRECTORY)
UNUSUAL: tuple[Value, ...] = (
    altered(entry(), {2: 0o10000}),
    altered(entry(), {3: [0, NS]}),
    altered(entry(), {3: [5, NS]}),
    altered(entry(), {8: [5, NS]}),
    altered(entry(), {9: 0}),
    altered(entry(), {}, 10),
    altered(entry(), {9: CHUNK_MAX_BYTES + 1}),
    altered(entry(), {}, 9, 10),
    altered(entry(), {}, 4),
    altered(entry(), {12: ID}),
    altered(DIRECTORY, {9: 0}),
    altered(DIRECTORY, {1: 0}),
    altered(entry(), {1: 1}),
    altered(entry(), {0: b"a/b"}),
    altered(entry(), {0: b".."}),
    altered(entry(), {0: b"a\0"}),
)


@pytest.mark.parametrize("value", UNUSUAL)
def test_the_fast_reader_takes_nothing_that_the_other_refuses(value: Value) -> None:
    """It says nothing of what is wrong, so whatever it takes is believed."""
    with pytest.raises(IntegrityError):
        parse_entry(value)

    assert read_usual(encode(value), 0) is None


def test_a_count_of_fields_that_is_not_theirs_is_no_usual_entry() -> None:
    """The head of the map is bytes like all others, and may lie."""
    good = encode_entry(entry())

    assert read_usual(good, 0) == (entry(), len(good))
    for head in {*range(0xA0, 0xB8)} - {good[0]}:
        assert read_usual(bytes([head]) + good[1:], 0) is None


def test_a_usual_entry_at_its_borders_is_read_alike_by_both_readers() -> None:
    """The fast reader may leave an entry to the other, but not read another one."""
    for changes in (
        {"mode": 0o7777}, {"size": CHUNK_MAX_BYTES}, {"mtime_ns": NS - 1}, {"birth_ns": 0},
        {"size": 0, "sha256": None}, {"uid": 2**32 - 1}, {"user": b"u" * 23}, {"name": b"n" * 255},
    ):  # fmt: skip
        one = entry(**changes)

        assert read_usual(encode_entry(one), 0) == (one, len(encode_entry(one))), changes


def test_an_empty_file_has_neither_hash_nor_content() -> None:
    """An empty file that says where its bytes lie has some (format 6.3)."""
    assert code(altered(entry(), {9: 0, 11: LIST}, 10)) == "integrity.entry"
    assert code(altered(entry(), {9: 0})) == "integrity.entry"
    assert code(altered(entry(), {}, 10)) == "integrity.entry"
    assert parse_entry(altered(entry(), {9: 0}, 10)).size == 0


@pytest.mark.parametrize("value", [None, 0, [], b"", "x", {}, {0: b"a"}])
def test_what_is_no_entry_is_refused(value: Value) -> None:
    """A leaf may hold anything; only maps of the right form are entries."""
    assert code(value) == "integrity.entry"


@pytest.mark.parametrize(
    "name", [b"", b".", b"..", b"a/b", b"/", b"a\0", b"n" * 256, b"../../etc/passwd"]
)
def test_a_name_that_cannot_stand_in_a_directory_is_refused(name: bytes) -> None:
    """A name with a slash would leave the scratch folder (ingest 7.3)."""
    assert code(altered(entry(), {0: name})) == "integrity.name"
    with pytest.raises(IntegrityError):
        check_name(name)


def test_odd_names_that_a_file_system_takes_are_kept() -> None:
    """Backup is not the place to mend names."""
    for name in (b"...", b" ", b"\n", b"\xff\xfe", b"-rf", b"n" * 255):
        assert parse_entry(altered(entry(), {0: name})).name == name


def test_a_root_is_an_entry_without_a_name() -> None:
    """A name there would be a second place that says what the root is called."""
    with pytest.raises(IntegrityError) as caught:
        parse_entry(altered(entry(), {}), root=True)

    assert caught.value.code == "integrity.entry"


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        [0],
        [0, []],
        [0, [5]],
        [0, [5, ID, 5]],
        [0, [0, ID]],
        [0, [-1, ID]],
        [0, [True, ID]],
        [0, [5, bytes(31)]],
        [0, [5, "i" * 32]],
        [0, [5, 7]],
        [0, [5, None, 5, None]],
        [0, [CHUNK_MAX_BYTES + 1, ID]],
        [0, [2**53, None]],
        [1, [2**53, ID]],
        [1, [5, None]],
        [4, [5, ID]],
        [-1, [5, ID]],
        [True, [5, ID]],
        [b"", [5, ID]],
        [0, {}],
        [0, [5, ID], 0],
    ],
)
def test_a_content_list_of_another_form_is_refused(value: Value) -> None:
    """Runs say where a file's bytes lie; a wrong one would read past it (ingest 7.6)."""
    with pytest.raises(IntegrityError) as caught:
        parse_list(value, total=None)

    assert caught.value.code == "integrity.content"


def test_a_content_list_has_to_add_up_and_to_be_of_the_depth_looked_for() -> None:
    """A sum of huge runs must not wrap, and a list in itself must end."""
    for value, total, depth in (
        ([0, [5, ID]], 6, None),
        ([0, [2**53 - 1, None, 6, ID]], 5, None),
        ([0, [5, ID]], 5, 1),
        ([3, [5, ID]], 5, 2),
    ):
        with pytest.raises(IntegrityError) as caught:
            parse_list_chunk(encode(value), total=total, depth=depth)  # type: ignore[arg-type]
        assert caught.value.code == "integrity.content"
    assert parse_list_chunk(encode([1, [9, ID]]), total=9, depth=1).runs == (Run(9, ChunkId(ID)),)


def test_holes_and_chunks_may_follow_each_other() -> None:
    """Sparse files are runs of both (format 6.4)."""
    content = ChunkList(0, (Run(2**40, None), Run(5, ChunkId(ID)), Run(1, None)))

    assert parse_list(decode(encode_list(content)), total=2**40 + 6) == content


def test_an_attribute_may_lie_outside_its_entry() -> None:
    """Attributes beyond 4096 bytes are chunks (format 6.3)."""
    content = ChunkList(0, (Run(9000, ChunkId(ID)),))
    one = entry(xattrs=((b"user.a", b"v" * 4096), (b"user.b", content)))

    assert parse_entry(decode(encode_entry(one))) == one
    assert code(altered(one, {15: [[b"user.b", 7]]})) == "integrity.content"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "tree-form"),
        ([], "tree-form"),
        ([0], "tree-form"),
        ([2, []], "tree-form"),
        ([0, {}], "tree-form"),
        ([0, [], 0], "tree-form"),
        ([1, []], "tree-form"),
        ([1, [[b"a", ID]]], "tree-form"),
        ([1, [[b"a", ID], [b"b"]]], "tree-form"),
        ([1, [[b"a", ID], ["b", ID]]], "tree-form"),
        ([1, [[b"a", ID], [b"b", bytes(31)]]], "tree-form"),
        ([1, [[b"a", ID], [b"..", ID]]], "name"),
        ([1, [[b"b", ID], [b"a", ID]]], "tree-order"),
        ([1, [[b"a", ID], [b"a", ID]]], "tree-order"),
        ([0, [None]], "entry"),
    ],
)
def test_a_tree_of_another_form_is_refused(value: Value, expected: str) -> None:
    """A tree chunk is a leaf or a node of at least two leaves, in order (ingest 7.1, 7.4)."""
    with pytest.raises(IntegrityError) as caught:
        parse_tree(encode(value))

    assert caught.value.code == f"integrity.{expected}"


@pytest.mark.parametrize(("one", "two"), [(b"b", b"a"), (b"a", b"a"), (b"a\xff", b"a")])
def test_names_of_a_leaf_ascend_strictly(one: bytes, two: bytes) -> None:
    """Two entries of one name: which of them would be restored (ingest 7.4)."""
    leaf = encode_leaf([encode_entry(entry(name=name)) for name in (one, two)])

    with pytest.raises(IntegrityError) as caught:
        parse_tree(leaf)

    assert caught.value.code == "integrity.tree-order"


def test_a_boolean_does_not_tell_a_leaf_from_a_node() -> None:
    """False equals 0 in Python; the format has no such tree."""
    for value in ([False, []], [True, [[b"a", ID], [b"b", ID]]]):
        with pytest.raises(IntegrityError) as caught:
            parse_tree(encode(value))  # type: ignore[arg-type]  # lists of lists
        assert caught.value.code == "integrity.tree-form"


# --- where a large directory is cut


def _encoded(count: int, **changes: Any) -> tuple[list[bytes], list[bytes]]:
    names = [b"%08d" % n for n in range(count)]
    return names, [encode_entry(entry(name=name, **changes)) for name in names]


def _begins(name: bytes) -> bool:
    digest = hashlib.sha256(name).digest()
    return digest[0] == 0 and digest[1] < 64


def test_a_directory_is_one_leaf_while_its_encoding_is_small_enough() -> None:
    """Equal directories have equal ids: the border is one number (format 6.2)."""
    names, entries = _encoded(10)
    spare = TREE_SPLIT_BYTES - len(encode_leaf(entries))
    entries[-1] += b"x" * spare

    assert cut_leaves(names, entries) == [(names[0], encode_leaf(entries))]
    entries[-1] += b"x" * 3  # the head of the leaf counts for the first rule, not for the last
    assert len(cut_leaves(names, entries)) == 1
    entries[-1] += b"x"
    assert len(cut_leaves(names, entries)) == 2
    assert cut_leaves([], []) == [(b"", encode_leaf([]))]


def test_a_directory_of_just_the_greatest_size_is_not_cut_at_a_name() -> None:
    """A name that begins a leaf does so in a directory that is cut at all."""
    first = next(name for n in range(99_999) if _begins(name := b"x%05d" % n))
    names = [b"a", first]
    entries = [encode_entry(entry(name=name)) for name in names]
    entries[-1] += b"x" * (TREE_SPLIT_BYTES - len(encode_leaf(entries)))

    assert len(cut_leaves(names, entries)) == 1
    entries[-1] += b"x"
    assert len(cut_leaves(names, entries)) == 2


def test_leaves_are_cut_where_the_specification_says() -> None:
    """Another writer has to cut alike (format 6.2): names, then count, then bytes."""
    names, entries = _encoded(30_000)
    firsts = {0}
    begin = size = 0
    for at, (name, raw) in enumerate(zip(names, entries, strict=True)):
        full = at - begin >= TREE_LEAF_MAX_ENTRIES or size + len(raw) > TREE_SPLIT_BYTES
        if at > begin and (_begins(name) or full):
            firsts.add(at)
            begin, size = at, 0
        size += len(raw)

    leaves = cut_leaves(names, entries)

    assert [first for first, _ in leaves] == [names[at] for at in sorted(firsts)]
    parsed = [parse_tree(plain) for _, plain in leaves]
    assert [one.name for leaf in parsed if isinstance(leaf, Leaf) for one in leaf.entries] == names
    assert max(len(leaf.entries) for leaf in parsed if isinstance(leaf, Leaf)) <= 4096


def test_a_leaf_ends_before_it_holds_too_much() -> None:
    """Long targets fill a leaf before their number does."""
    names, _ = _encoded(600)
    entries = [
        encode_entry(entry(FileType.SYMLINK, name=name, target=b"t" * 4000)) for name in names
    ]

    leaves = cut_leaves(names, entries)

    assert len(leaves) >= 3
    assert all(len(plain) <= TREE_SPLIT_BYTES + 7 for _, plain in leaves)


def test_one_more_name_changes_the_leaves_around_it_only() -> None:
    """Otherwise one new file in a large folder would store the whole listing again."""
    names, entries = _encoded(30_000)
    before = {plain for _, plain in cut_leaves(names, entries)}
    names.insert(15_000, b"00014999x")
    entries.insert(15_000, encode_entry(entry(name=b"00014999x")))

    after = {plain for _, plain in cut_leaves(names, entries)}

    assert len(after - before) <= 2


# --- paths and hashes


@pytest.mark.parametrize("path", [b"/", b"/a", b"/a/b", b"/" + b"n" * 255, b"/.a", b"/..."])
def test_an_absolute_path_in_normal_form_may_be_a_root(path: bytes) -> None:
    """Roots are where agents keep state, whatever they call it."""
    assert is_normal_path(path)


@pytest.mark.parametrize(
    "path",
    [
        b"",
        b"a",
        b"//",
        b"/a/",
        b"/a//b",
        b"/./a",
        b"/a/..",
        b"/a\0",
        b"/" + b"n" * 256,
        b"/" + b"/".join([b"n" * 255] * 16) + b"/x",
    ],
)
def test_any_other_path_may_not(path: bytes) -> None:
    """A root that climbs would be restored outside the scratch folder (ingest 4.31)."""
    assert not is_normal_path(path)


def test_the_set_hash_is_as_the_specification_says() -> None:
    """A restore proves with it that nothing is missing (format 7.3)."""
    file = entry(name=b"f")
    empty = entry(name=b"e", size=0, sha256=None)
    link = entry(FileType.SYMLINK, name=b"l", target=b"to")
    one = SetHash()
    for each in (empty, file, link):
        one.add(each, set_value(each))
    folder = SetHash()
    folder.add(entry(FileType.DIRECTORY, name=b"d"), one.digest())
    roots = SetHash()
    roots.add_root(b"/r", folder.digest())

    zero = bytes(32)
    inner = hashlib.sha256(
        b"\0\1e\0"
        + bytes(8)
        + zero
        + b"\0\1f\0"
        + (5).to_bytes(8)
        + ID
        + b"\0\1l\2"
        + bytes(8)
        + hashlib.sha256(b"to").digest()
    ).digest()
    outer = hashlib.sha256(b"\0\1d\1" + bytes(8) + inner).digest()
    assert one.digest() == inner
    assert roots.digest() == hashlib.sha256(b"\0\2/r" + outer).digest()
    assert set_value(entry(FileType.FIFO)) == zero
    roots.add_root(b"/.durarepo/components/git", folder.digest())  # has a component of its own
    assert roots.digest() == hashlib.sha256(b"\0\2/r" + outer).digest()


def test_owners_that_differ_in_one_part_are_encoded_apart() -> None:
    """What is alike for most entries is kept from one to the next."""
    base = entry(uid=1, gid=2, user=b"u", group=b"g")
    others = [
        base._replace(uid=3),
        base._replace(gid=3),
        base._replace(user=None),
        base._replace(group=None),
        base._replace(user=b"g", group=b"u"),
        base,
    ]

    assert [parse_entry(decode(encode_entry(one))) for one in others] == others
