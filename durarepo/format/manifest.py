"""The manifest's statement (for auditors) and its nested part (for data recipients).

Source: spec/format.md 7.2 and 7.3, spec/ingest.md 4.12 and 4.29 to 4.32.
Start at `Statement`, then `Nested`.
"""

import hashlib
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

from durarepo.core.entries import ChunkList, Consistency, Entry, FileType
from durarepo.core.errors import IntegrityError
from durarepo.core.limits import (
    LEDGER_INLINE_BYTES,
    MILESTONE_EVERY,
    PINS_MAX_COUNT,
    SIZE_CLASSES,
)
from durarepo.core.names import Digest, ObjectName, SignerId, is_stream_id
from durarepo.format.canonical import Value, decode, encode
from durarepo.format.fields import U32_MAX, U64_MAX, Fields
from durarepo.format.layout import object_name
from durarepo.format.snapshottype import SnapshotType as SnapshotType  # noqa: PLC0414
from durarepo.format.tree import encode_entry, encode_list, is_normal_path, parse_entry, parse_list

_DIGEST = 32
_TIME_MAX = (1 << 62) - 1
_U16_MAX = (1 << 16) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts of one snapshot; bytes are logical, once an inode."""

    files: int
    dirs: int
    bytes: int
    omissions: int = 0
    excluded: int = 0
    redacted: int = 0
    vanished: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A pack that a manifest needs. ``size`` is its size class in bytes."""

    name: ObjectName
    size: int
    index_digest: Digest
    registry_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A bad pack and the packs whose chunks replace its own."""

    bad: ObjectName
    replacements: tuple[ObjectName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What the signatures of a manifest cover. Times are seconds since 1970."""

    stream: str
    epoch: int
    compartment: str
    never_publish: bool
    signer: SignerId
    sequence: int
    previous: Digest
    milestone: Digest
    header_digest: Digest
    registry_version: int
    issued: int
    expires: int
    type: SnapshotType
    complete: bool
    totals: Totals
    shrunk: bool
    accepted: Digest | None
    holds: tuple[int, ...]
    audit_head: Digest
    state_lost: bool
    pins: tuple[Pin, ...]
    repairs: tuple[Repair, ...]
    abandoned: tuple[ObjectName, ...]
    floor: int
    nested: bytes


def is_milestone(sequence: int, first_of_epoch: int) -> bool:
    """Return whether the envelope of this number never dies."""
    return sequence in (1, first_of_epoch) or sequence % MILESTONE_EVERY == 0


def encode_statement(one: Statement) -> bytes:
    """Return the statement's bytes."""
    totals = one.totals
    return encode(
        {
            0: {
                0: one.stream,
                1: one.epoch,
                2: one.compartment,
                3: one.never_publish,
                4: one.signer,
            },
            1: {
                0: one.sequence,
                1: one.previous,
                2: one.milestone,
                3: one.header_digest,
                4: one.registry_version,
            },
            2: {0: one.issued, 1: one.expires},
            3: int(one.type),
            4: one.complete,
            5: {
                0: totals.files,
                1: totals.dirs,
                2: totals.bytes,
                3: totals.omissions,
                4: totals.excluded,
                5: totals.redacted,
                6: totals.vanished,
            },
            6: one.shrunk,
            7: one.accepted,
            8: list(one.holds),
            9: one.audit_head,
            10: one.state_lost,
            11: [_pin_value(pin) for pin in one.pins],
            12: [_repair_value(repair) for repair in one.repairs],
            13: [bytes.fromhex(name) for name in one.abandoned],
            14: one.floor,
            15: one.nested,
        }
    )


def _pin_value(pin: Pin) -> Value:
    return [
        bytes.fromhex(pin.name),
        SIZE_CLASSES.index(pin.size),
        pin.index_digest,
        pin.registry_version,
    ]


def _repair_value(repair: Repair) -> Value:
    return [bytes.fromhex(repair.bad), [bytes.fromhex(name) for name in repair.replacements]]


def peek_signer(statement: bytes) -> SignerId:
    """Return the signer id of a statement whose signature is not checked yet.

    Raises:
        IntegrityError: ``cbor-*``, or ``statement`` if no signer stands there.
    """
    value = decode(statement)
    identity = value.get(0) if isinstance(value, dict) else None
    signer = identity.get(4) if isinstance(identity, dict) else None
    if not isinstance(signer, bytes) or len(signer) != _DIGEST:
        raise IntegrityError("statement", "statement names no signer")
    return SignerId(signer)


def _fields(value: Value, what: str, count: int) -> Fields:
    return Fields(value, reason="statement", what=what, required=range(count))


def parse_statement(data: bytes) -> Statement:
    """Return the statement that ``data`` holds (ingest 4.12 and 4.29, in one pass).

    Raises:
        IntegrityError: ``statement``, ``pins`` or ``cbor-*``.
    """
    fields = _fields(decode(data), "statement", 16)
    identity = _fields(fields.raw(0), "identity of the statement", 5)
    chain = _fields(fields.raw(1), "chain of the statement", 5)
    time = _fields(fields.raw(2), "time of the statement", 2)
    if not (is_stream_id(identity.text(0)) and is_stream_id(identity.text(2))):
        raise identity.refused("has an id of another form")
    accepted = fields.maybe_blob(7, _DIGEST)
    pins = _parse_pins(fields.items(11), chain.uint(4))
    repairs, abandoned = _parse_repairs(fields.items(12)), _parse_abandoned(fields.items(13))
    if {pin.name for pin in pins} & set(abandoned):
        raise _bad_pins("name a pack that is abandoned")
    return Statement(
        stream=identity.text(0),
        epoch=identity.uint(1, U32_MAX, 1),
        compartment=identity.text(2),
        never_publish=identity.flag(3),
        signer=SignerId(identity.blob(4, _DIGEST)),
        sequence=chain.uint(0, U64_MAX, 1),
        previous=Digest(chain.blob(1, _DIGEST)),
        milestone=Digest(chain.blob(2, _DIGEST)),
        header_digest=Digest(chain.blob(3, _DIGEST)),
        registry_version=chain.uint(4, U64_MAX, 1),
        issued=time.uint(0, _TIME_MAX),
        expires=time.uint(1, _TIME_MAX),
        type=SnapshotType(fields.uint(3, max(SnapshotType))),
        complete=fields.flag(4),
        totals=_parse_totals(fields.raw(5)),
        shrunk=fields.flag(6),
        accepted=None if accepted is None else Digest(accepted),
        holds=_parse_holds(fields),
        audit_head=Digest(fields.blob(9, _DIGEST)),
        state_lost=fields.flag(10),
        pins=pins,
        repairs=repairs,
        abandoned=abandoned,
        floor=fields.uint(14),
        nested=fields.octets(fields.raw(15)),
    )


def _parse_totals(value: Value) -> Totals:
    fields = _fields(value, "totals of the statement", 7)
    counts = [fields.uint(key) for key in range(7)]
    return Totals(
        files=counts[0],
        dirs=counts[1],
        bytes=counts[2],
        omissions=counts[3],
        excluded=counts[4],
        redacted=counts[5],
        vanished=counts[6],
    )


def _parse_holds(fields: Fields) -> tuple[int, ...]:
    holds = [fields.number(item) for item in fields.items(8, PINS_MAX_COUNT)]
    if any(one >= two for one, two in pairwise(holds)):
        raise fields.refused("has holds out of order")
    return tuple(holds)


def _bad_pins(why: str) -> IntegrityError:
    return IntegrityError("pins", f"pins of the manifest {why}")


def _ascending(names: list[bytes]) -> None:
    if any(one >= two for one, two in pairwise(names)):
        raise _bad_pins("are not in ascending order")


def _parse_pins(items: list[Value], registry_version: int) -> tuple[Pin, ...]:
    if len(items) > PINS_MAX_COUNT:
        raise _bad_pins("are too many")
    pins: list[Pin] = []
    for item in items:
        match item:
            case [bytes() as name, int() as size, bytes() as digest, int() as version] if (
                len(name) == len(digest) == _DIGEST
                and type(size) is type(version) is int
                and 0 <= size < len(SIZE_CLASSES)
                and 1 <= version <= registry_version
            ):
                pins.append(
                    Pin(
                        name=object_name(name),
                        size=SIZE_CLASSES[size],
                        index_digest=Digest(digest),
                        registry_version=version,
                    )
                )
            case _:
                raise _bad_pins("have one of another form")
    _ascending([pin.name.encode() for pin in pins])
    return tuple(pins)


def _parse_repairs(items: list[Value]) -> tuple[Repair, ...]:
    repairs: list[Repair] = []
    for item in items:
        match item:
            case [bytes() as bad, list() as names] if len(bad) == _DIGEST:
                replacements = _parse_abandoned(names)
                repairs.append(Repair(bad=object_name(bad), replacements=replacements))
            case _:
                raise _bad_pins("have a repair of another form")
    _ascending([repair.bad.encode() for repair in repairs])
    return tuple(repairs)


def _parse_abandoned(items: list[Value]) -> tuple[ObjectName, ...]:
    names: list[bytes] = []
    for item in items:
        if not isinstance(item, bytes) or len(item) != _DIGEST or len(items) > PINS_MAX_COUNT:
            raise _bad_pins("have a pack name of another form")
        names.append(item)
    _ascending(names)
    return tuple(object_name(name) for name in names)


class OmissionClass(IntEnum):
    """Whether and how something left out counts."""

    EXCLUSION = 0
    OMISSION = 1
    REDACTION = 2
    VANISHED = 3


_OMISSION_CLASSES = {int(member): member for member in OmissionClass}


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine:
    """One thing that was left out. ``path`` is a keyed short id where a path holds a secret."""

    kind: OmissionClass
    path: bytes
    rule: str
    stage: str
    count: int = 1
    is_keyed: bool = False
    """Whether ``path`` is a keyed short id, which is stored as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One component of a snapshot with its integrity hash (32 bytes)."""

    kind: str
    name: bytes
    integrity: bytes
    consistency: int = 0
    counts: tuple[tuple[str, int], ...] = ()
    facts: tuple[tuple[str, str | int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A root: its absolute path and its directory's entry, which has no name."""

    path: bytes
    entry: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested:
    """What only data recipients read. The ledger is in place, or a list of ledger chunks."""

    roots: tuple[Root, ...]
    components: tuple[Component, ...]
    ledger: bytes | ChunkList
    configuration: bytes
    host: tuple[tuple[str, str], ...]
    epoch_facts: tuple[tuple[str, str | int], ...]
    policy: str


def component_index(components: tuple[Component, ...]) -> bytes:
    """Return the hash over all components' integrity hashes, 32 bytes."""
    joined = hashlib.sha256()
    for one in components:
        kind = one.kind.encode()
        joined.update(len(kind).to_bytes(2) + kind)
        joined.update(len(one.name).to_bytes(2) + one.name + one.integrity)
    return joined.digest()


def encode_ledger(lines: list[LedgerLine]) -> bytes:
    """Return the ledger's array."""
    return encode([_ledger_value(line) for line in lines])


def _ledger_value(line: LedgerLine) -> Value:
    path = line.path.decode() if line.is_keyed else line.path
    return [int(line.kind), path, line.rule, line.stage, line.count]


def parse_ledger(data: bytes) -> list[LedgerLine]:
    """Return the lines of a ledger.

    Raises:
        IntegrityError: ``nested-form`` or ``cbor-*``.
    """
    value = decode(data)
    return [_parse_ledger_line(item) for item in (value if isinstance(value, list) else [None])]


def _parse_ledger_line(item: Value) -> LedgerLine:
    match item:
        case [
            int() as kind,
            bytes() | str() as path,
            str() as rule,
            str() as stage,
            int() as count,
        ] if type(kind) is type(count) is int and kind in _OMISSION_CLASSES and count >= 0:
            return LedgerLine(
                kind=_OMISSION_CLASSES[kind],
                path=path if isinstance(path, bytes) else path.encode(),
                rule=rule,
                stage=stage,
                count=count,
                is_keyed=isinstance(path, str),
            )
    raise IntegrityError("nested-form", "ledger line has another form")


def encode_nested(nested: Nested) -> bytes:
    """Return the nested part's map, before compression and sealing."""
    fields: dict[int, Value] = {
        0: [],
        1: [_component_value(one) for one in nested.components],
        2: component_index(nested.components),
        3: None,
        4: nested.configuration,
        5: [[name, text] for name, text in nested.host],
        6: [[name, fact] for name, fact in nested.epoch_facts],
        7: nested.policy,
    }
    roots: list[Value] = [[root.path, decode(encode_entry(root.entry))] for root in nested.roots]
    fields[0] = roots
    fields[3] = (
        nested.ledger if isinstance(nested.ledger, bytes) else decode(encode_list(nested.ledger))
    )
    return encode(fields)


def _component_value(one: Component) -> Value:
    return {
        0: one.kind,
        1: one.name,
        2: one.integrity,
        3: one.consistency,
        4: [[name, count] for name, count in one.counts],
        5: [[name, fact] for name, fact in one.facts],
    }


def parse_nested(data: bytes) -> tuple[Nested, bytes]:
    """Return the nested part that ``data`` holds, and the index of components it states.

    Raises:
        IntegrityError: ``nested-form``, ``entry``, ``content`` or ``cbor-*``.
    """
    fields = Fields(decode(data), reason="nested-form", what="nested part", required=range(8))
    roots = tuple(_parse_root(fields, item) for item in fields.items(0))
    _check_roots(fields, roots)
    ledger = fields.raw(3)
    if isinstance(ledger, bytes) and len(ledger) > LEDGER_INLINE_BYTES:
        raise fields.refused("has a ledger that is too long in place")
    nested = Nested(
        roots=roots,
        components=tuple(_parse_component(item) for item in fields.items(1)),
        ledger=ledger if isinstance(ledger, bytes) else parse_list(ledger, total=None),
        configuration=fields.octets(fields.raw(4)),
        host=tuple(_parse_pair(fields, item) for item in fields.items(5)),
        epoch_facts=tuple(_parse_fact(fields, item) for item in fields.items(6)),
        policy=fields.text(7),
    )
    return nested, fields.blob(2, _DIGEST)


def _check_roots(fields: Fields, roots: tuple[Root, ...]) -> None:
    fields.ascending([root.path for root in roots])
    folders = sorted(root.path.rstrip(b"/") + b"/" for root in roots)
    if any(two.startswith(one) for one, two in pairwise(folders)):
        raise fields.refused("has a root that lies in another")


def _parse_root(fields: Fields, item: Value) -> Root:
    path, entry = fields.array(item, 2)
    path = fields.octets(path)
    if not is_normal_path(path):
        raise fields.refused("has a root whose path is not absolute and normal")
    root = Root(path=path, entry=parse_entry(entry, root=True))
    if root.entry.type is not FileType.DIRECTORY:
        raise fields.refused("has a root that is no directory")
    return root


def _parse_component(item: Value) -> Component:
    fields = Fields(item, reason="nested-form", what="component", required=range(6))
    counts = [fields.array(pair, 2) for pair in fields.items(4)]
    kind, name = fields.text(0), fields.octets(fields.raw(1))
    if max(len(kind.encode()), len(name)) > _U16_MAX:  # as the index of components counts them
        raise fields.refused("has a kind or a name that is too long")
    return Component(
        kind=kind,
        name=name,
        integrity=fields.blob(2, _DIGEST),
        consistency=fields.uint(3, max(Consistency)),
        counts=tuple((fields.words(name), fields.number(count)) for name, count in counts),
        facts=tuple(_parse_fact(fields, pair) for pair in fields.items(5)),
    )


def _parse_pair(fields: Fields, item: Value) -> tuple[str, str]:
    name, text = fields.array(item, 2)
    return fields.words(name), fields.words(text)


def _parse_fact(fields: Fields, item: Value) -> tuple[str, str | int]:
    name, fact = fields.array(item, 2)
    if isinstance(fact, str):
        return fields.words(name), fact
    return fields.words(name), fields.number(fact)
