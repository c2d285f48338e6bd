"""Every function that takes foreign bytes apart, each with inputs that it accepts.

A new parser belongs into `targets`; the suites of this folder take it from there. Inputs come
from the independent writer or from an encoder, so that a mutation starts near something good.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from durarepo.core.names import ZERO_DIGEST, Digest, ObjectName, Sequence, SignerId
from durarepo.format import keytext
from durarepo.format.canonical import decode
from durarepo.format.document import parse_document, unpad_document
from durarepo.format.manifest import parse_ledger, parse_nested, parse_statement, peek_signer
from durarepo.format.pack import parse_index
from durarepo.format.registry import parse_registry, peek_owner
from durarepo.format.tree import parse_list_chunk, parse_tree
from durarepo.ingest import Expected, VerifiedRegistry, check_mark, open_manifest, open_registry
from durarepo.local.audit import AuditLog
from durarepo.local.checked import CheckedPacks
from durarepo.local.configuration import parse_configuration
from durarepo.local.journal import Journal
from durarepo.local.statefiles import (
    HighWater,
    LivePin,
    LivePins,
    PinnedManifest,
    RunRecord,
    StateFiles,
)
from tests.interop import miniwriter as mini

ROOT = b"/srv/notes"


@dataclass(frozen=True, kw_only=True)
class Target:
    """A parser by name. ``is_encoded`` says that its input is the format's encoding.

    ``rounds`` are the tries of a usual run: fewer where each costs a key exchange.
    """

    name: str
    parse: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    is_encoded: bool = False
    rounds: int = 400


def targets(folder: Path) -> list[Target]:
    """Return all targets; files that they read lie below ``folder``."""
    stream = mini.Repository()
    return [*_encoded(stream), *_plain(), *_sealed(stream), *_files(folder)]


def _encoded(stream: mini.Repository) -> list[Target]:
    file = mini.file(b"x" * 50, 9, b"y" * 20, depth=1, xattrs=[[b"user.a", b"1"]], link=7)
    folder = mini.directory({b"d": mini.directory({}), b"f": file, b"l": mini.symlink(b"f")})
    chunks = stream.chunks()
    nested = stream.nested_map({ROOT: folder}, chunks)
    trees = tuple(plain for kind, plain in chunks.new.values() if kind == mini.TREE)
    lists = tuple(plain for kind, plain in chunks.new.values() if kind == mini.LIST)
    node = mini.encode([1, [[b"a", bytes(32)], [b"b", bytes(32)]]])
    statement = stream.statement(nested=b"sealed")
    pins = [[bytes([n]) * 32, n, bytes(32), 1] for n in range(3)]
    full = {**statement, 8: [1, 2], 11: pins, 12: [[bytes(32), [b"\1" * 32]]], 13: [b"\2" * 32]}
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
    rows: list[tuple[str, Callable[[bytes], object], tuple[bytes, ...]]] = [
        ("decode", decode, (*trees, *statements, registry, ledger, card)),
        ("parse_document", parse_document, (document,)),
        ("parse_tree", parse_tree, (*trees, node)),
        ("parse_list_chunk", lambda data: parse_list_chunk(data, total=59, depth=0), lists),
        ("parse_statement", parse_statement, statements),
        ("peek_signer", peek_signer, statements),
        ("parse_nested", parse_nested, (mini.encode(nested),)),
        ("parse_ledger", parse_ledger, (ledger,)),
        ("parse_registry", parse_registry, (registry,)),
        ("peek_owner", peek_owner, (registry,)),
        ("parse_card", keytext.parse_card, (card,)),
    ]
    return [Target(name=name, parse=parse, seeds=seeds, is_encoded=True)
            for name, parse, seeds in rows]  # fmt: skip


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
            parse=partial(keytext.parse_key, kind),
            seeds=(b"# a comment\n" + line, line),
        )
        for kind, line in kinds.items()
    ]
    card, file = (keytext.armour(card=card, content=bytes(200)) for card in (True, False))
    toml = (
        b'stream = "notes"\ncompartment = "main"\nretention_days = 30\nbudget = "4h"\n'
        b'[human]\nname = "x"\nchannels = ["mail:x"]\n'
        b'[[root]]\npath = "/srv/notes"\nexclude = ["*.tmp"]\none_filesystem = true\n'
        b'[[component]]\nname = "db"\nkind = "sqlite"\npath = "/srv/notes/a.db"\n'
        b'[[remote]]\nname = "r"\nurl = "file:///mnt/"\n'
    )
    return [
        *keys,
        Target(name="parse_index", parse=lambda data: parse_index(data, end=end), seeds=(tables,)),
        Target(name="unpad_document", parse=unpad_document, seeds=(b"\0\0\0\3abc" + bytes(9),)),
        Target(
            name="unarmour card",
            parse=lambda data: keytext.unarmour(data, card=True),
            seeds=(card, file),
        ),
        Target(
            name="unarmour keys",
            parse=lambda data: keytext.unarmour(data, card=False),
            seeds=(card, file),
        ),
        Target(name="parse_configuration", parse=parse_configuration, seeds=(toml,)),
    ]


def _sealed(stream: mini.Repository) -> list[Target]:
    object_ = stream.publish()
    envelope = stream.snapshot({ROOT: mini.directory({b"a": mini.file(b"alpha")})})
    naming, identity = stream.naming[1], stream.data[0].seed

    def registry(data: bytes) -> object:
        return open_registry(data, stream.locator, owner_digest=stream.owner_digest, version=2)

    expected = Expected(registry=registry_of(stream), stream="notes", epoch=1, sequence=1)
    return [
        Target(name="open_registry", parse=registry, seeds=(object_,), rounds=100),
        Target(
            name="open_manifest",
            parse=lambda data: open_manifest(
                data, identity, expected=expected, naming_key=None
            ),
            seeds=(envelope,),
            rounds=60,
        ),
        Target(
            name="check_mark",
            parse=lambda data: check_mark(data, naming),
            seeds=(envelope,),
            rounds=100,
        ),
    ]  # fmt: skip


def registry_of(stream: mini.Repository) -> VerifiedRegistry:
    """Return the stream's newest registry, verified."""
    name = mini.registry_slot(stream.locator, stream.registry[0])
    return open_registry(
        stream.objects[name],
        stream.locator,
        owner_digest=stream.owner_digest,
        version=stream.registry[0],
    )


def _files(folder: Path) -> list[Target]:
    """Return readers of local files: what they are given is put in the file's place."""
    base = bytes(folder)
    state, seeds = StateFiles(base), _state_files(folder)

    def reads(name: str, read: Callable[[], object]) -> Target:
        path = folder / name

        def parse(data: bytes) -> object:
            path.write_bytes(data)
            return read()

        return Target(name=name, parse=parse, seeds=(seeds[name],))

    return [
        reads("high-water.json", state.high_water),
        reads("head.json", state.live_pins),
        reads("runs.jsonl", state.runs),
        reads("checked.json", CheckedPacks(base).times),
        reads("audit.jsonl", AuditLog(base + b"/audit.jsonl").check),
        reads("current", Journal(base).load),
    ]


def _state_files(folder: Path) -> dict[str, bytes]:
    base, name, digest = bytes(folder), ObjectName("ab" * 32), Digest(bytes(32))
    state = StateFiles(base)
    state.raise_high_water(
        HighWater(epoch=1, sequence=Sequence(1), head_digest=digest, registry_version=1,
                  clock_seconds=0)
    )  # fmt: skip
    pins = (LivePin(pack=name, size_bytes=32768, index_digest=digest, registry_version=1),)
    pinned = PinnedManifest(epoch=1, sequence=Sequence(1), name=name, digest=digest, pins=pins)
    state.replace_live_pins(LivePins(head=pinned, complete=None))
    run = RunRecord(
        epoch=1, sequence=Sequence(1), name=name, digest=digest, issued=1, expires=2, type="auto",
        files=1, dirs=1, bytes=1, signer=SignerId(bytes(32)), complete=True, omissions=0,
        pinned_packs=1,
    )  # fmt: skip
    state.append_run(run)
    CheckedPacks(base).note([name], 5, pinned={name})
    AuditLog(base + b"/audit.jsonl").append("made", {"count": 1}, datetime.fromtimestamp(0, UTC))
    with Journal(base) as journal:
        journal.begin(b"header")
        journal.append(b"a record")
        journal.append(b"another")
    return {path.name: path.read_bytes() for path in folder.iterdir()}
