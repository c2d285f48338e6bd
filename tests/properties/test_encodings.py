"""What is written is read back, and what is read is written back byte for byte, or refused.

One canonical encoding is what makes equal directories equal chunks and a signature cover one
meaning only (spec/format.md 6.1).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durarepo.core.entries import ChunkList, Entry
from durarepo.core.errors import DurarepoError, IntegrityError
from durarepo.format import manifest as manifest_format
from durarepo.format import pack as pack_format
from durarepo.format import tree as tree_format
from durarepo.format.canonical import Value, decode, encode
from durarepo.format.document import (
    Document,
    encode_document,
    pad_document,
    parse_document,
    unpad_document,
)
from durarepo.format.keytext import (
    KEY_LENGTHS,
    Card,
    armour,
    encode_card,
    encode_key,
    parse_card,
    parse_key,
    unarmour,
)
from durarepo.format.pack import PackIndex
from durarepo.format.registry import (
    Registry,
    encode_registry,
    parse_registry,
    peek_owner,
)
from tests.properties import strategies as my


@given(my.values())
def test_every_value_is_read_back(value: Value) -> None:
    """A value that changed on its way would be signed as something else."""
    assert decode(encode(value)) == value


@given(my.altered(my.values().map(encode)))
def test_no_value_has_a_second_encoding(data: bytes) -> None:
    """Two encodings of one value give one directory two ids (spec/ingest.md 1.2, 1.4)."""
    try:
        value = decode(data)
    except IntegrityError as error:
        assert error.code.startswith("integrity.cbor-")
        return

    assert encode(value) == data


@given(st.binary(max_size=64))
def test_any_bytes_decode_or_are_refused_with_a_code(data: bytes) -> None:
    """Anything but a durarepo error would end a command with a traceback."""
    try:
        value = decode(data)
    except IntegrityError as error:
        assert error.code.startswith("integrity.cbor-")
    else:
        assert encode(value) == data


@given(my.entries())
def test_every_entry_is_read_back(entry: Entry) -> None:
    """An entry that lost a field would be restored without it."""
    assert tree_format.parse_entry(decode(tree_format.encode_entry(entry))) == entry


@given(my.entries())
def test_an_entry_is_encoded_as_the_general_encoder_would(entry: Entry) -> None:
    """Entries are written by hand for speed; a slip there is read by nobody."""
    data = tree_format.encode_entry(entry)

    assert encode(decode(data)) == data


@given(my.entries(root=True))
def test_every_root_is_read_back(entry: Entry) -> None:
    """A root has no name; as a directory's entry it would be refused."""
    value = decode(tree_format.encode_entry(entry))

    assert tree_format.parse_entry(value, root=True) == entry
    with pytest.raises(IntegrityError) as caught:
        tree_format.parse_entry(value)
    assert caught.value.code == "integrity.entry"


@given(my.altered(my.entries().map(tree_format.encode_entry)))
def test_no_entry_has_a_second_encoding(data: bytes) -> None:
    """An altered entry is refused or means another thing, never the same (format 6.3)."""
    try:
        entry = tree_format.parse_entry(decode(data))
    except IntegrityError:
        return

    assert tree_format.encode_entry(entry) == data


@given(my.chunk_lists())
def test_every_content_list_is_read_back(content: ChunkList) -> None:
    """A list that lost a run gives a file that is too short."""
    total = sum(run.length for run in content.runs)

    assert (
        tree_format.parse_list(
            decode(tree_format.encode_list(content)), total=total, depth=content.depth
        )
        == content
    )


@given(my.altered(my.chunk_lists().map(tree_format.encode_list)))
def test_no_content_list_has_a_second_encoding(data: bytes) -> None:
    """Lists are chunks: two encodings are two ids for one content."""
    try:
        content = tree_format.parse_list(decode(data), total=None)
    except IntegrityError:
        return

    assert tree_format.encode_list(content) == data


@given(st.lists(my.entries(), max_size=4, unique_by=lambda entry: entry.name))
def test_every_leaf_is_read_back(entries: list[Entry]) -> None:
    """A directory that is read in another order than it was written is another one."""
    entries.sort(key=lambda entry: entry.name)

    assert tree_format.parse_tree(
        tree_format.encode_leaf([tree_format.encode_entry(one) for one in entries])
    ) == tree_format.Leaf(tuple(entries))


@given(st.dictionaries(my.NAMES, my.WORDS, min_size=2, max_size=5))
def test_every_node_is_read_back(leaves: dict[bytes, bytes]) -> None:
    """A large directory is found through its node."""
    pairs: list[Any] = sorted(leaves.items())

    assert tree_format.parse_tree(tree_format.encode_node(pairs)) == tree_format.Node(tuple(pairs))


@given(my.statements())
def test_every_statement_is_read_back(statement: manifest_format.Statement) -> None:
    """What is signed is what is read."""
    data = manifest_format.encode_statement(statement)

    assert manifest_format.parse_statement(data) == statement
    assert manifest_format.peek_signer(data) == statement.signer


@given(my.nested_parts())
def test_every_nested_part_is_read_back(nested: manifest_format.Nested) -> None:
    """Roots, components and facts come back as they were."""
    assert manifest_format.parse_nested(manifest_format.encode_nested(nested)) == (
        nested,
        manifest_format.component_index(nested.components),
    )


@given(my.LEDGERS)
def test_every_ledger_is_read_back(lines: list[manifest_format.LedgerLine]) -> None:
    """What was left out is told as it was written."""
    assert manifest_format.parse_ledger(manifest_format.encode_ledger(lines)) == lines


@given(my.registries())
def test_every_registry_is_read_back(registry: Registry) -> None:
    """The owner signs what readers see."""
    data = encode_registry(registry)

    assert parse_registry(data) == registry
    assert peek_owner(data) == registry.owner


@given(my.indexes())
def test_every_index_is_read_back(index: PackIndex) -> None:
    """Positions are not stored; they have to come out alike."""
    assert pack_format.parse_index(pack_format.encode_index(index), end=index.end) == index


@given(my.DOCUMENTS)
def test_every_document_is_read_back(document: Document) -> None:
    """A signature that moved would be compared with other bytes."""
    assert parse_document(encode_document(document)) == document


@given(st.binary(max_size=100), st.integers(0, 50))
def test_every_padded_document_is_found_again(data: bytes, spare: int) -> None:
    """Padding hides a length; it must not change what is read."""
    padded = pad_document(data, 4 + len(data) + spare)

    assert len(padded) == 4 + len(data) + spare
    assert unpad_document(padded) == data


@given(my.cards())
def test_every_card_is_read_back(card: Card) -> None:
    """The card is used once, on the worst day."""
    assert parse_card(unarmour(armour(card=True, content=encode_card(card)), card=True)) == card


@given(st.sampled_from(sorted(KEY_LENGTHS)), st.data())
def test_every_key_is_read_back(kind: str, data: st.DataObject) -> None:
    """A key that comes back otherwise opens nothing."""
    length = KEY_LENGTHS[kind]
    raw = data.draw(st.binary(min_size=length, max_size=length))

    assert parse_key(kind, b"# a comment\n" + encode_key(kind, raw).encode() + b"\n") == raw


def _re_encode_nested(data: bytes) -> bytes:
    nested, stated = manifest_format.parse_nested(data)
    if manifest_format.component_index(nested.components) != stated:
        raise IntegrityError("component-index", "as ingest 4.32 says")
    return manifest_format.encode_nested(nested)


def _index_of(data: bytes) -> bytes:
    length = int.from_bytes(data[32:36]) if len(data) >= 40 else 0
    frames = int.from_bytes(data[36:40]) if len(data) >= 44 else 0
    stored = sum(int.from_bytes(data[44 + 4 * n : 48 + 4 * n]) for n in range(min(frames, 9)))
    return pack_format.encode_index(pack_format.parse_index(data, end=length + stored))


_ROUND_TRIPS: dict[str, tuple[st.SearchStrategy[bytes], Callable[[bytes], bytes]]] = {
    "statement": (
        my.statements().map(manifest_format.encode_statement),
        lambda data: manifest_format.encode_statement(manifest_format.parse_statement(data)),
    ),
    "nested": (my.nested_parts().map(manifest_format.encode_nested), _re_encode_nested),
    "ledger": (
        my.LEDGERS.map(manifest_format.encode_ledger),
        lambda data: manifest_format.encode_ledger(manifest_format.parse_ledger(data)),
    ),
    "registry": (
        my.registries().map(encode_registry),
        lambda data: encode_registry(parse_registry(data)),
    ),
    "index": (my.indexes().map(pack_format.encode_index), _index_of),
    "document": (
        my.DOCUMENTS.map(encode_document),
        lambda data: encode_document(parse_document(data)),
    ),
    "card": (my.cards().map(encode_card), lambda data: encode_card(parse_card(data))),
    "armour": (
        my.cards().map(lambda card: armour(card=True, content=encode_card(card))),
        lambda data: armour(card=True, content=unarmour(data, card=True)),
    ),
    "padding": (
        st.binary(max_size=60).map(lambda data: pad_document(data, len(data) + 20)),
        lambda data: pad_document(unpad_document(data), len(data)),
    ),
}


@pytest.mark.parametrize("kind", sorted(_ROUND_TRIPS))
@given(data=st.data())
def test_altered_bytes_are_refused_or_written_back_alike(kind: str, data: st.DataObject) -> None:
    """Two byte strings of one meaning let somebody swap one for the other (format 1)."""
    source, again = _ROUND_TRIPS[kind]
    raw = data.draw(my.altered(source))

    try:
        written = again(raw)
    except DurarepoError:
        return

    assert written == raw


@given(my.statements(), st.data())
def test_a_statement_is_never_read_as_another(
    statement: manifest_format.Statement, data: st.DataObject
) -> None:
    """Every field reaches the bytes: otherwise it would not be signed."""
    other = data.draw(my.statements())

    assert (
        manifest_format.encode_statement(statement) == manifest_format.encode_statement(other)
    ) == (statement == other)
    changed = replace(statement, floor=(statement.floor + 1) % 2**64)
    assert manifest_format.encode_statement(changed) != manifest_format.encode_statement(statement)
