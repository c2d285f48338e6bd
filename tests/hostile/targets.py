"""Every function that takes foreign bytes apart, each with inputs that it accepts.

A new parser belongs into `targets`; the suites of this folder and the fuzzer (tests/fuzz) take it
from there. Inputs come from the independent writer or from an encoder, so that a mutation starts
near something good. What is sealed stands in `sealed_targets`, what lies on this machine in
`local_targets`. Keys follow from a seed: an input means the same in every run.
"""

from functools import partial
from pathlib import Path

from durarepo.core.entries import ChunkList
from durarepo.core.errors import IntegrityError
from durarepo.core.names import ZERO_DIGEST
from durarepo.format import keytext, pack
from durarepo.format.canonical import decode, decode_item, encode
from durarepo.format.document import encode_document, pad_document, parse_document, unpad_document
from durarepo.format.manifest import (
    Nested,
    component_index,
    encode_ledger,
    encode_nested,
    encode_statement,
    parse_ledger,
    parse_nested,
    parse_statement,
    peek_signer,
)
from durarepo.format.registry import encode_registry, parse_registry, peek_owner
from durarepo.format.tree import (
    Leaf,
    Node,
    encode_entry,
    encode_leaf,
    encode_list,
    encode_node,
    parse_entry,
    parse_list_chunk,
    parse_tree,
    read_entry,
)
from durarepo.format.usual import read_usual
from tests.hostile.local_targets import local_targets
from tests.hostile.sealed_targets import sealed_targets
from tests.hostile.target import LawError, Parse, Target, both_ways
from tests.interop import miniwriter as mini

ROOT = b"/srv/notes"
_ENTRY_DEPTH = 3
_KEYTEXT = "durarepo.format.keytext"

NAMES = (
    "decode", "parse_document", "parse_tree", "parse_list_chunk", "parse_statement",
    "peek_signer", "parse_nested", "parse_ledger", "parse_registry", "peek_owner", "parse_card",
    "read_usual",
    "parse_key signing", "parse_key signer", "parse_key owner", "parse_key owner-public",
    "parse_key identity", "parse_key recipient", "parse_key naming", "parse_key locator",
    "parse_signer", "parse_draft", "parse_signed", "unarmour card", "unarmour keys",
    "parse_index", "unpad_document",
    "open_registry", "open_manifest", "check_mark", "statement of a registry",
    "statement of a manifest", "open_nested", "open_box", "open_trailer", "open_index",
    "tables of an index", "open_pack_key", "open_frame", "open_unpinned",
    "parse_configuration", "parse_ignore", "parse_mountinfo", "is_sqlite", "decode_notes",
    "decode_owners", "parse_until", "high-water.json", "head.json", "runs.jsonl", "checked.json",
    "verified.json", "audit.jsonl", "current", "lock", "made.jsonl", "naming.key",
    "remotes.json", "failed.json",
)  # fmt: skip
"""The names of all targets in their order; those of the encoding come first."""
ENCODED_NAMES = NAMES[:11]


def targets(folder: Path) -> list[Target]:
    """Return all targets; files that they read lie below ``folder``."""
    stream = mini.Repository()
    return [*_encoded(stream), *_plain(), *sealed_targets(stream), *local_targets(folder)]


def _encoded(stream: mini.Repository) -> list[Target]:
    file = mini.file(b"x" * 50, 9, b"y" * 20, depth=1, xattrs=[[b"user.a", b"1"]], link=7)
    folder = mini.directory({
        b"d": mini.directory({}), b"f": file, b"l": mini.symlink(b"f"),
        b"m": mini.file(b"z" * 100), b"n": mini.file(b"z" * 70_000),
        b"o": mini.file(b"z", link=7), b"p": mini.file(b"z", since=5),
    })  # fmt: skip
    chunks = stream.chunks()
    nested = stream.nested_map({ROOT: folder}, chunks)
    trees = tuple(plain for kind, plain in chunks.new.values() if kind == mini.TREE)
    lists = tuple(plain for kind, plain in chunks.new.values() if kind == mini.LIST)
    node = mini.encode([1, [[b"a", bytes(32)], [b"b", bytes(32)]]])
    statement = stream.statement(nested=b"sealed")
    pins = [[bytes([n]) * 32, n, bytes(32), 1] for n in range(3)]
    totals = {key: 10 + key for key in range(7)}
    full = {
        **statement, 5: totals, 7: bytes(32), 8: [1, 2], 11: pins,
        12: [[bytes(32), [b"\1" * 32]]], 13: [b"\x09" * 32],
    }  # fmt: skip
    usual = tuple(
        mini.encode(chunks.entry(mini.file(b"z" * size), b"m")) for size in (1, 100, 70_000)
    )
    statements = mini.encode(statement), mini.encode(full)
    document = mini.sign_document(mini.MANIFEST_TYPE, statement, stream.signers[1])
    registry = mini.encode(stream.registry)
    ledger = mini.encode([[0, b"/a", "rule", "path", 1], [3, b"/b", "", "path", 2]])
    card = keytext.encode_card(
        keytext.Card(
            owner_digest=bytes(32),
            identity=bytes(32),
            locator=bytes(32),
            registry_version=1,
            streams=(
                keytext.CardStream(
                    stream="notes", anchor=(1, 0, ZERO_DIGEST), head=(0, ZERO_DIGEST)
                ),
            ),
            remotes=(("one", "file:///mnt/", None), ("two", "https://mirror.example/", b"pem")),
        )
    )  # fmt: skip
    return [
        _target("decode", both_ways(decode, encode), (*trees, *statements, registry, ledger, card),
                "canonical:decode"),
        _target("parse_document", both_ways(parse_document, encode_document), (document,),
                "document:parse_document"),
        _target("parse_tree", both_ways(parse_tree, _encode_tree), (*trees, node),
                "tree:parse_tree", "tree:parse_entry", "tree:parse_list",
                "canonical:decode_array_head", "canonical:decode_item"),
        _target("parse_list_chunk", both_ways(_parse_list, encode_list), lists,
                "tree:parse_list_chunk", "tree:parse_list"),
        _target("parse_statement", both_ways(parse_statement, encode_statement), statements,
                "manifest:parse_statement"),
        _target("peek_signer", peek_signer, statements, "manifest:peek_signer"),
        _target("parse_nested", parse_nested_both_ways, (mini.encode(nested),),
                "manifest:parse_nested"),
        _target("parse_ledger", both_ways(parse_ledger, encode_ledger), (ledger,),
                "manifest:parse_ledger"),
        _target("parse_registry", both_ways(parse_registry, encode_registry), (registry,),
                "registry:parse_registry"),
        _target("peek_owner", peek_owner, (registry,), "registry:peek_owner"),
        _target("parse_card", both_ways(keytext.parse_card, keytext.encode_card), (card,),
                "keytext:parse_card"),
        _target("read_usual", _read_usual, usual, "usual:read_usual", "tree:read_entry"),
    ]  # fmt: skip


def _target(name: str, parse: Parse, seeds: tuple[bytes, ...], *covers: str) -> Target:
    """Return a target of `durarepo.format` whose input is the format's encoding."""
    names = tuple(f"durarepo.format.{one}" for one in covers)
    return Target(name=name, parse=parse, seeds=seeds, is_encoded=name != "read_usual",
                  covers=names)  # fmt: skip


def _encode_tree(tree: Leaf | Node) -> bytes:
    if isinstance(tree, Node):
        return encode_node(list(tree.leaves))
    return encode_leaf([encode_entry(entry) for entry in tree.entries])


def _parse_list(data: bytes) -> ChunkList:
    return parse_list_chunk(data, total=59, depth=0)


def parse_nested_both_ways(data: bytes) -> Nested:
    """Return a nested part; the index that it states beside its components has to be theirs."""
    nested, stated = parse_nested(data)
    if component_index(nested.components) != stated:
        raise IntegrityError("component-index", "not that of the components")
    if encode_nested(nested) != data:
        raise LawError("what was taken encodes to other bytes")
    return nested


def _read_usual(data: bytes) -> object:
    """Compare the fast reader of an entry with the one that is ruled by the specification."""
    found = read_usual(data, 0)
    if found is None:
        raise IntegrityError("entry", "not a usual one")
    try:
        value, end = decode_item(data, 0, _ENTRY_DEPTH)
        ruled = parse_entry(value), end
    except IntegrityError as error:
        raise LawError("the fast reader takes what the other refuses") from error
    if found != ruled or (found[1] == len(data) and read_entry(data) != found[0]):
        raise LawError("the two readers of an entry differ")
    return found


def _plain() -> list[Target]:
    tables = mini.make_index(
        {
            "header_digest": bytes(32), "header_length": 65 + 4 * 1168, "frames": 2, "chunks": 3,
            "stored": [50, 60], "plain": [30, 70], "counts": [1, 2], "compressions": [0, 1],
            "digests": [bytes(32)] * 2, "lengths": [30, 30, 40], "kinds": [0, 1, 2],
            "ids": [bytes([n]) * 32 for n in range(3)],
        }
    )  # fmt: skip
    end = 65 + 4 * 1168 + 110
    kinds = {
        kind: mini.key_line(kind, bytes(n)).encode() for kind, n in keytext.KEY_LENGTHS.items()
    }
    keys = [
        Target(
            name=f"parse_key {kind}",
            parse=partial(_parse_key, kind),
            seeds=(b"# a comment\n" + line, line),
            covers=(f"{_KEYTEXT}:parse_key",),
        )
        for kind, line in kinds.items()
    ]
    card, file = (keytext.armour(card=card, content=bytes(200)) for card in (True, False))
    draft = keytext.encode_draft(keytext.RegistryDraft(statement=b"new", before=b"old"))
    return [
        *keys,
        _text("parse_signer", _parse_signer,
              *(keytext.encode_signer(role, bytes(1984)) for role in keytext.SIGNER_ROLES)),
        _text("parse_draft", both_ways(keytext.parse_draft, keytext.encode_draft), draft),
        _text("parse_signed", both_ways(keytext.parse_signed, keytext.encode_signed),
              keytext.encode_signed(b"document")),
        _text("unarmour card", both_ways(partial(keytext.unarmour, card=True), _card_of),
              card, file),
        _text("unarmour keys", both_ways(partial(keytext.unarmour, card=False), _file_of),
              card, file),
        Target(
            name="parse_index",
            parse=both_ways(partial(pack.parse_index, end=end), pack.encode_index),
            seeds=(tables,),
            covers=("durarepo.format.pack:parse_index",),
        ),
        Target(
            name="unpad_document",
            parse=_unpad,
            seeds=(b"\0\0\0\3abc" + bytes(9),),
            covers=("durarepo.format.document:unpad_document",),
        ),
    ]  # fmt: skip


def _text(name: str, parse: Parse, *seeds: bytes) -> Target:
    function = name.partition(" ")[0]
    return Target(name=name, parse=parse, seeds=seeds, covers=(f"{_KEYTEXT}:{function}",))


def _parse_key(kind: str, text: bytes) -> bytes:
    key = keytext.parse_key(kind, text)
    if keytext.encode_key(kind, key).encode() not in text:
        raise LawError("the key stands otherwise in the text")
    return key


def _parse_signer(text: bytes) -> tuple[str, bytes]:
    role, public = keytext.parse_signer(text)
    if (
        not text.startswith(role.encode())
        or keytext.encode_key("signer", public).encode() not in text
    ):
        raise LawError("role or key stand otherwise in the text")
    return role, public


def _card_of(content: bytes) -> bytes:
    return keytext.armour(card=True, content=content)


def _file_of(content: bytes) -> bytes:
    return keytext.armour(card=False, content=content)


def _unpad(data: bytes) -> bytes:
    document = unpad_document(data)
    if pad_document(document, len(data)) != data:
        raise LawError("what was taken is padded otherwise")
    return document
