"""The statement, the nested part and the ledger: what each may say."""

import hashlib
from typing import Any

import pytest

from durarepo.core.errors import ConfigurationError, IntegrityError
from durarepo.core.limits import LEDGER_INLINE_BYTES, PINS_MAX_COUNT
from durarepo.format.canonical import Value, decode, encode
from durarepo.format.manifest import (
    Component,
    SnapshotType,
    Totals,
    component_index,
    encode_ledger,
    encode_nested,
    encode_statement,
    is_milestone,
    parse_ledger,
    parse_nested,
    parse_statement,
    peek_signer,
)
from durarepo.format.tree import encode_entry
from tests.properties.actors import Stream, directory, nested_part

ID = b"i" * 32
STATEMENT: Any = decode(encode_statement(Stream().statement(5, b"header", registry_version=3)))
NESTED: Any = decode(encode_nested(nested_part()))
ROOT: Value = decode(encode_entry(directory()))
COMPONENT: Any = NESTED[1][0]


def statement(key: int, value: Value, *inner: int) -> bytes:
    """Return a statement whose field, or whose field's field, is another."""
    if inner:
        return encode({**STATEMENT, key: {**STATEMENT[key], inner[0]: value}})
    return encode({**STATEMENT, key: value})


@pytest.mark.parametrize(
    ("key", "inner", "value"),
    [
        (0, 0, "Notes"),
        (0, 0, ""),
        (0, 0, b"notes"),
        (0, 0, "n" * 64),
        (0, 1, 0),
        (0, 1, 2**32),
        (0, 1, True),
        (0, 2, "a/b"),
        (0, 3, 0),
        (0, 4, bytes(31)),
        (0, 5, 0),
        (1, 0, 0),
        (1, 0, -1),
        (1, 0, True),
        (1, 1, bytes(33)),
        (1, 2, None),
        (1, 3, bytes(31)),
        (1, 4, 0),
        (2, 0, -1),
        (2, 0, 2**62),
        (2, 1, 2**64 - 1),
        (5, 0, -1),
        (5, 6, None),
        (5, 7, 0),
    ],
)
def test_a_part_of_the_statement_out_of_bounds_is_refused(
    key: int, inner: int, value: Value
) -> None:
    """Every number of a statement is bounded before it is used (ingest 4.12)."""
    with pytest.raises(IntegrityError) as caught:
        parse_statement(statement(key, value, inner))

    assert caught.value.code == "integrity.statement"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (0, []),
        (1, {}),
        (2, 0),
        (3, 4),
        (3, True),
        (3, -1),
        (3, 2**64 - 1),
        (4, 1),
        (5, {}),
        (6, None),
        (7, b""),
        (7, False),
        (8, [2, 1]),
        (8, [1, 1]),
        (8, [-1]),
        (8, [True]),
        (8, list(range(PINS_MAX_COUNT + 1))),
        (8, {}),
        (9, bytes(31)),
        (10, 0),
        (11, {}),
        (12, None),
        (13, b""),
        (14, -1),
        (15, None),
        (16, 0),
    ],
)
def test_a_statement_of_another_form_is_refused(key: int, value: Value) -> None:
    """A wrong type ends in a code and not in a traceback (ingest 4.12)."""
    with pytest.raises(IntegrityError) as caught:
        parse_statement(statement(key, value))

    assert caught.value.code == "integrity.statement"


@pytest.mark.parametrize("accepted", [None, bytes(32), ID])
def test_what_a_shrunk_statement_accepts_is_read_as_written(accepted: Value) -> None:
    """Consent to a loss that is lost itself would be asked for again, or of something else."""
    data = statement(7, accepted)

    assert parse_statement(data).accepted == accepted
    assert encode_statement(parse_statement(data)) == data


def pin(name: int = 1, size: Value = 0, digest: bytes = ID, version: Value = 3) -> list[Value]:
    """Return a pin."""
    return [bytes((name,)) * 32, size, digest, version]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (11, [pin(2), pin(1)]),
        (11, [pin(1), pin(1)]),
        (11, [pin(size=8)]),
        (11, [pin(size=-1)]),
        (11, [pin(size=True)]),
        (11, [pin(version=0)]),
        (11, [pin(version=4)]),
        (11, [pin(version=True)]),
        (11, [pin(digest=bytes(31))]),
        (11, [pin()[:3]]),
        (11, [{}]),
        (11, [[b"short", 0, ID, 3]]),
        (12, [[bytes(32)]]),
        (12, [[bytes(31), []]]),
        (12, [[bytes(32), [bytes(31)]]]),
        (12, [[bytes(32), {}]]),
        (12, [[b"b" * 32, []], [b"a" * 32, []]]),
        (12, [[b"a" * 32, [b"b" * 32, b"a" * 32]]]),
        (13, [b"b" * 32, b"a" * 32]),
        (13, [b"a" * 32, b"a" * 32]),
        (13, ["a" * 32]),
        (13, [bytes(31)]),
    ],
)
def test_pins_repairs_and_abandoned_packs_are_well_formed(key: int, value: Value) -> None:
    """What is pinned is what is fetched and kept (ingest 4.29)."""
    with pytest.raises(IntegrityError) as caught:
        parse_statement(statement(key, value))

    assert caught.value.code == "integrity.pins"


def test_no_pack_is_pinned_and_abandoned() -> None:
    """What a store may remove is nothing that a manifest needs (format 7.2)."""
    pinned: dict[int, Value] = {**STATEMENT, 11: [pin(1), pin(2)]}

    assert parse_statement(encode({**pinned, 13: [b"\3" * 32]})).abandoned == ("03" * 32,)
    with pytest.raises(IntegrityError) as caught:
        parse_statement(encode({**pinned, 13: [b"\2" * 32]}))
    assert caught.value.code == "integrity.pins"


@pytest.mark.parametrize("key", [11, 13])
def test_the_number_of_pins_is_bounded(key: int) -> None:
    """A manifest must not make a reader ask a store for ever (law 8)."""
    names: list[Value] = [n.to_bytes(32) for n in range(PINS_MAX_COUNT + 1)]
    pins: list[Value] = [[name, 0, ID, 1] for name in names]

    with pytest.raises(IntegrityError) as caught:
        parse_statement(statement(key, pins if key == 11 else names))

    assert caught.value.code == "integrity.pins"
    assert parse_statement(statement(key, (pins if key == 11 else names)[1:])).sequence == 5


@pytest.mark.parametrize(
    "value",
    [None, [], 5, {}, {0: None}, {0: {}}, {0: {4: None}}, {0: {4: bytes(31)}}, {0: [ID]}],
)
def test_a_statement_without_a_signer_names_none(value: Value) -> None:
    """The signer is looked at before any signature: by the encoding's rules alone (4.10)."""
    with pytest.raises(IntegrityError) as caught:
        peek_signer(encode(value))

    assert caught.value.code == "integrity.statement"


def test_only_the_signer_is_looked_at_before_the_signatures() -> None:
    """Whatever else stands there is not read yet (law 2)."""
    assert peek_signer(encode({0: {4: ID, 9: True}, 7: [None]})) == ID


def test_what_a_snapshot_did_not_meet_counts_nothing() -> None:
    """A file that vanished in every snapshot would be looked for in vain."""
    totals = Totals(files=1, dirs=2, bytes=3)

    assert (totals.omissions, totals.excluded, totals.redacted, totals.vanished) == (0, 0, 0, 0)


def test_the_last_time_that_there_is_can_be_stated() -> None:
    """The border is one number, and other readers take it as well (format 7)."""
    last = (1 << 62) - 1

    parsed = parse_statement(statement(2, {**STATEMENT[2], 0: last, 1: last}))

    assert (parsed.issued, parsed.expires) == (last, last)


def test_milestones_are_the_first_the_64ths_and_each_first_of_an_epoch() -> None:
    """Their envelopes never die: they are the way back to an anchor (format 7.2)."""
    assert [n for n in range(1, 200) if is_milestone(n, 1)] == [1, 64, 128, 192]
    assert [n for n in range(1, 200) if is_milestone(n, 70)] == [1, 64, 70, 128, 192]


@pytest.mark.parametrize("member", SnapshotType)
def test_a_type_is_found_by_its_word(member: SnapshotType) -> None:
    """People and scripts write words, manifests hold numbers."""
    assert SnapshotType.of(member.word) is member
    assert "_" not in member.word


@pytest.mark.parametrize("word", ["", "Manual", "pre_shutdown", "x" * 100])
def test_an_unknown_type_is_a_matter_of_the_call(word: str) -> None:
    """It was typed, so the call is at fault, and the message stays short."""
    with pytest.raises(ConfigurationError) as caught:
        SnapshotType.of(word)

    assert caught.value.code == "config.type"
    assert len(caught.value.message) < 100


# --- the nested part


def component(**changes: Value) -> bytes:
    """Return a nested part with one component that is changed, by key ``kN``."""
    merged = {**COMPONENT, **{int(key[1:]): value for key, value in changes.items()}}
    return encode({**NESTED, 1: [merged]})


@pytest.mark.parametrize(
    "data",
    [
        encode({**NESTED, 8: 0}),
        encode({key: NESTED[key] for key in range(7)}),
        encode([]),
        encode({**NESTED, 0: [[b"/a", ROOT, 0]]}),
        encode({**NESTED, 0: [["/a", ROOT]]}),
        encode({**NESTED, 0: [[b"a", ROOT]]}),
        encode({**NESTED, 0: [[b"/a/..", ROOT]]}),
        encode({**NESTED, 0: [[b"/b", ROOT], [b"/a", ROOT]]}),
        encode({**NESTED, 0: [[b"/a", ROOT], [b"/a", ROOT]]}),
        encode({**NESTED, 0: [[b"/a", ROOT], [b"/a/b", ROOT]]}),
        encode({**NESTED, 0: [[b"/", ROOT], [b"/a", ROOT]]}),
        encode({**NESTED, 0: [[b"/a", ROOT], [b"/a-b", ROOT], [b"/a/b", ROOT]]}),
        encode({**NESTED, 0: [[b"/a", {1: 3, 2: 0, 3: [0, 0], 4: 0, 5: 0}]]}),
        encode({**NESTED, 1: [[]]}),
        encode({**NESTED, 2: bytes(31)}),
        encode({**NESTED, 3: bytes(LEDGER_INLINE_BYTES + 1)}),
        encode({**NESTED, 4: None}),
        encode({**NESTED, 5: [["a", 1]]}),
        encode({**NESTED, 5: [["a"]]}),
        encode({**NESTED, 6: [["a", True]]}),
        encode({**NESTED, 6: [["a", -1]]}),
        encode({**NESTED, 6: [[b"a", "b"]]}),
        encode({**NESTED, 7: b"1"}),
        component(k0=b"files"),
        component(k0="k" * 65_536),
        component(k0="é" * 32_768),
        component(k1="files"),
        component(k1=bytes(65_536)),
        component(k2=bytes(31)),
        component(k3=6),
        component(k3=True),
        component(k4=[["a", True]]),
        component(k4=[["a", -1]]),
        component(k4=[["a"]]),
        component(k5=[["a", None]]),
        component(k6=0),
    ],
)
def test_a_nested_part_of_another_form_is_refused(data: bytes) -> None:
    """Roots are where files go: a wrong one is found before any is made (ingest 4.31)."""
    with pytest.raises(IntegrityError) as caught:
        parse_nested(data)

    assert caught.value.code == "integrity.nested-form"


def test_a_kind_or_name_at_its_border_can_be_hashed() -> None:
    """The index of components counts in 16 bits: one more once broke a restore."""
    nested, _ = parse_nested(component(k0="k" * 65_535, k1=bytes(65_535)))

    assert len(component_index(nested.components)) == 32


def test_the_index_of_components_tells_kind_from_name() -> None:
    """Two components must not be able to swap the ends of their names (format 7.3)."""
    one = Component(kind="ab", name=b"c", integrity=ID)
    two = Component(kind="a", name=b"bc", integrity=ID)

    assert component_index((one,)) != component_index((two,))
    assert component_index((one, two)) != component_index((two, one))
    assert component_index((one,)) == hashlib.sha256(b"\0\2ab\0\1c" + ID).digest()


def test_a_ledger_may_lie_in_chunks() -> None:
    """A long ledger is content, not bytes in place (format 7.3)."""
    nested, _ = parse_nested(encode({**NESTED, 3: [0, [5, ID]]}))

    assert not isinstance(nested.ledger, bytes)
    with pytest.raises(IntegrityError) as caught:
        parse_nested(encode({**NESTED, 3: [0, []]}))
    assert caught.value.code == "integrity.content"


def test_a_line_of_the_ledger_may_count_nothing() -> None:
    """A rule that was asked and took nothing out is no damage."""
    (line,) = parse_ledger(encode([[0, b"p", "r", "s", 0]]))

    assert line.count == 0


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        [None],
        [[0, b"p", "r", "s"]],
        [[4, b"p", "r", "s", 1]],
        [[-1, b"p", "r", "s", 1]],
        [[True, b"p", "r", "s", 1]],
        [[0, None, "r", "s", 1]],
        [[0, b"p", b"r", "s", 1]],
        [[0, b"p", "r", None, 1]],
        [[0, b"p", "r", "s", -1]],
        [[0, b"p", "r", "s", True]],
        [[0, b"p", "r", "s", 1, 2]],
    ],
)
def test_a_ledger_of_another_form_is_refused(value: Value) -> None:
    """It says what was left out; a count of true is none (format 7.3)."""
    with pytest.raises(IntegrityError) as caught:
        parse_ledger(encode(value))

    assert caught.value.code == "integrity.nested-form"


def test_roots_beside_each_other_are_taken() -> None:
    """A name that begins like another is no folder in it."""
    data = encode({**NESTED, 0: [[b"/a", ROOT], [b"/a-b", ROOT], [b"/ab", ROOT]]})

    assert [root.path for root in parse_nested(data)[0].roots] == [b"/a", b"/a-b", b"/ab"]


def test_a_keyed_short_id_is_told_from_a_path() -> None:
    """A path that holds a secret is not written; what stands for it must not look like one."""
    lines = parse_ledger(encode([[1, "k-1", "r", "s", 1], [1, b"k-1", "r", "s", 1]]))

    assert [(line.path, line.is_keyed) for line in lines] == [(b"k-1", True), (b"k-1", False)]
    assert encode_ledger(lines[:1]) != encode_ledger(lines[1:])


def test_roots_are_directories_with_all_their_fields() -> None:
    """A root that is a link would be followed."""
    link: Value = {1: 2, 2: 0o777, 3: [0, 0], 4: 0, 5: 0, 13: b"/etc"}
    cases: list[tuple[Value, str]] = [(link, "nested-form"), ({1: 1}, "entry"), (None, "entry")]

    for value, code in cases:
        with pytest.raises(IntegrityError) as caught:
            parse_nested(encode({**NESTED, 0: [[b"/a", value]]}))
        assert caught.value.code == f"integrity.{code}"
    nested, _ = parse_nested(encode({**NESTED, 0: [[b"/", ROOT]]}))
    assert nested.roots[0].entry == directory()
