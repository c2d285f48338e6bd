"""What a run counts and must tell: totals, ledger, databases, and the owners that it needs.

Source: spec/format.md 7.2 and 7.3, spec/cli.md (omissions). Start at `Tally`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from durarepo.format.canonical import Value, decode, encode
from durarepo.format.manifest import Component, LedgerLine, OmissionClass, Totals


@dataclass(slots=True)
class Notes:
    """What a directory adds besides its own files' sizes; repeated while it stays unchanged.

    ``links`` are (inode, size) of files with more than one name, ``file_system`` their disk.
    """

    links: list[tuple[int, int]] = field(default_factory=list)
    lines: list[LedgerLine] = field(default_factory=list)
    databases: list[Component] = field(default_factory=list)

    def encode(self) -> bytes:
        """Return the notes as the catalogue keeps them; empty if there are none."""
        if not (self.links or self.lines or self.databases):
            return b""
        lines: list[Value] = [
            [int(one.kind), _told(one), one.rule, one.stage, one.count] for one in self.lines
        ]
        databases: list[Value] = [
            [
                one.kind,
                one.name,
                one.integrity,
                one.consistency,
                [list(pair) for pair in one.counts],
                [list(pair) for pair in one.facts],
            ]
            for one in self.databases
        ]
        links: list[Value] = [[inode, size] for inode, size in self.links]
        return encode([links, lines, databases])


def decode_notes(data: bytes) -> Notes:
    """Return what `Notes.encode` wrote.

    Raises:
        IntegrityError: ``cbor-*``; ValueError: another shape. The catalogue is then damaged.
    """
    notes = Notes()
    if not data:
        return notes
    match decode(data):
        case [list() as links, list() as lines, list() as databases]:
            notes.links = [_link(one) for one in links]
            notes.lines = [_line(one) for one in lines]
            notes.databases = [_database(one) for one in databases]
            return notes
        case _:
            raise ValueError("notes of another shape")


def _link(value: Value) -> tuple[int, int]:
    match value:
        case [int() as inode, int() as size]:
            return inode, size
        case _:
            raise ValueError("notes of another shape")


def _told(line: LedgerLine) -> Value:
    return line.path.decode() if line.is_keyed else line.path


def _line(value: Value) -> LedgerLine:
    match value:
        case [
            int() as kind,
            (bytes() | str()) as path,
            str() as rule,
            str() as stage,
            int() as count,
        ]:
            return LedgerLine(
                kind=OmissionClass(kind),
                path=path.encode() if isinstance(path, str) else path,
                rule=rule,
                stage=stage,
                count=count,
                is_keyed=isinstance(path, str),
            )
        case _:
            raise ValueError("notes of another shape")


def _database(value: Value) -> Component:
    match value:
        case [
            str() as kind,
            bytes() as name,
            bytes() as integrity,
            int() as consistency,
            list() as counts,
            list() as facts,
        ]:
            return Component(
                kind=kind,
                name=name,
                integrity=integrity,
                consistency=consistency,
                counts=tuple((str(a), int(str(b))) for a, b in _pairs(counts)),
                facts=tuple(
                    (str(a), b if isinstance(b, int) else str(b)) for a, b in _pairs(facts)
                ),
            )
        case _:
            raise ValueError("notes of another shape")


def _pairs(values: list[Value]) -> list[tuple[Value, Value]]:
    return [(pair[0], pair[1]) for pair in values if isinstance(pair, list)]


class Tally:
    """Counts of one run over all roots, and the only way into its ledger."""

    def __init__(self, *, short_id: Callable[[bytes], bytes | None] = lambda _: None) -> None:
        """Begin with nothing.

        Args:
            short_id: returns what to tell instead of a path that holds a secret, or None.
        """
        self._short_id = short_id
        self.files = 0
        self.dirs = 0
        self.bytes = 0
        self.vanished = 0
        self.reached_all = True
        self.lines: list[LedgerLine] = []
        self.databases: list[Component] = []
        self.owners: set[int] = set()
        self._linked: set[tuple[bytes, int]] = set()

    def add_notes(self, notes: Notes, file_system: bytes) -> None:
        """Count what the notes of one directory say."""
        for inode, size in notes.links:
            if (file_system, inode) not in self._linked:
                self._linked.add((file_system, inode))
                self.bytes += size
        self.lines += notes.lines
        self.databases += notes.databases

    def add_line(self, kind: OmissionClass, path: bytes, rule: str, stage: str) -> None:
        """Note one thing that was left out."""
        self.lines.append(self.line(kind, path, rule, stage))

    def line(
        self, kind: OmissionClass, path: bytes, rule: str, stage: str, *, count: int = 1
    ) -> LedgerLine:
        """Return the line of one thing; a path that holds a secret is told by its short id."""
        keyed = self._short_id(path)
        return LedgerLine(
            kind=kind,
            path=path if keyed is None else keyed,
            rule=rule,
            stage=str(stage),
            count=count,
            is_keyed=keyed is not None,
        )

    def count(self, kind: OmissionClass) -> int:
        """Return how many lines there are of a class."""
        return sum(line.count for line in self.lines if line.kind is kind)

    def totals(self) -> Totals:
        """Return the totals of the statement."""
        return Totals(
            files=self.files,
            dirs=self.dirs,
            bytes=self.bytes,
            omissions=self.count(OmissionClass.OMISSION),
            excluded=self.count(OmissionClass.EXCLUSION),
            redacted=self.count(OmissionClass.REDACTION),
            vanished=self.vanished,
        )
