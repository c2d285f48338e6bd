"""Small local state of a stream: high-water marks, the head's live pins, the run ledger.

Each file carries its format and a SHA-256 of its content, so damage is told from absence:
absent means that the state was lost and is an answer, damaged is an error. Marks only rise.
Files are replaced by rename; the ledger only grows.
Source: spec/format.md 8 and 12 (laws 4, 5 and 7). Start at `StateFiles`.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from durarepo.core.errors import StoreError
from durarepo.core.limits import MIB, PINS_MAX_COUNT
from durarepo.core.names import Digest, ObjectName, Sequence, SignerId, is_object_name
from durarepo.local.places import HIGH_WATER
from durarepo.store.atomic import (
    append_line,
    iter_lines,
    make_folder,
    read_small,
    replace_small,
    shown,
)

STATE_FORMAT = 1
_HEAD_MAX_BYTES = 64 * MIB
_MARKS_MAX_BYTES = 64 * 1024
_HINT = "restore the file, or move it away: the next run then counts the state as lost"

_WHOLE = b'{"format":%d,"kind":"%b","sha256":"%b","value":%b}'
_PARTS = re.compile(
    rb'\{"format":([0-9]{1,9}),"kind":"([a-z-]{1,32})","sha256":"([0-9a-f]{64})","value":(.*)\}\Z',
    re.DOTALL,
)

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class HighWater:
    """The highest that was ever accepted. ``epoch`` is the one in force at that time.

    No field ever falls, but that a later epoch may begin below the sequence held: then the
    owner has cut off what lay above.
    """

    epoch: int
    sequence: Sequence
    head_digest: Digest
    registry_version: int
    clock_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePin:
    """One pack that a manifest keeps alive, as its statement names it."""

    pack: ObjectName
    size_bytes: int
    index_digest: Digest
    registry_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedManifest:
    """A manifest of this stream with all that it pins."""

    epoch: int
    sequence: Sequence
    name: ObjectName
    digest: Digest
    pins: tuple[LivePin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePins:
    """What deduplication may count on: the head and the last complete manifest.

    ``complete`` is None before the first one; it equals ``head`` where that is complete.
    """

    head: PinnedManifest
    complete: PinnedManifest | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What the ledger keeps of each manifest made here; times in seconds since 1970."""

    epoch: int
    sequence: Sequence
    name: ObjectName
    digest: Digest
    issued: int
    expires: int
    type: str
    files: int
    dirs: int
    bytes: int
    signer: SignerId
    complete: bool
    omissions: int
    pinned_packs: int


class StateFiles:
    """The files of one ``STATE/STREAM`` folder, which need not exist before the first write."""

    def __init__(self, folder: bytes) -> None:
        self._folder = folder
        self.marks_path = os.path.join(folder, HIGH_WATER)
        self.head_path = os.path.join(folder, b"head.json")
        self.ledger_path = os.path.join(folder, b"runs.jsonl")

    def high_water(self) -> HighWater | None:
        """Return the marks, or None where the state was lost or never was.

        Raises:
            StoreError: ``state-damaged``, ``state-version``; else it cannot be read.
        """
        data = read_small(self.marks_path, _MARKS_MAX_BYTES)
        if data is None:
            return None
        fields = _Fields(_unwrap(data, "high-water", self.marks_path), self.marks_path)
        return HighWater(
            epoch=fields.count("epoch"),
            sequence=Sequence(fields.count("sequence")),
            head_digest=Digest(fields.digest("head_digest")),
            registry_version=fields.count("registry_version"),
            clock_seconds=fields.integer("clock_seconds"),
        )

    def raise_high_water(self, marks: HighWater) -> None:
        """Keep ``marks``, durable on return.

        Raises:
            ValueError: a mark would fall, or the digest of a sequence would change.
            StoreError: the marks held cannot be read or replaced; they stay as they are.
        """
        held = self.high_water()
        if held is not None:
            _check_rises(held, marks)
        if held == marks:
            return
        value = {
            "epoch": marks.epoch,
            "sequence": marks.sequence,
            "head_digest": marks.head_digest.hex(),
            "registry_version": marks.registry_version,
            "clock_seconds": marks.clock_seconds,
        }
        make_folder(self._folder)
        replace_small(self.marks_path, _wrap("high-water", value))

    def live_pins(self) -> LivePins | None:
        """Return what the head and the last complete manifest pin, or None where it was lost.

        Raises:
            StoreError: ``state-damaged``, ``state-version``; else it cannot be read.
        """
        data = read_small(self.head_path, _HEAD_MAX_BYTES)
        if data is None:
            return None
        fields = _Fields(_unwrap(data, "head", self.head_path), self.head_path)
        head = _manifest_of(fields.inner("head"))
        if fields.truth("head_is_complete"):
            return LivePins(head=head, complete=head)
        if fields.is_null("complete"):
            return LivePins(head=head, complete=None)
        return LivePins(head=head, complete=_manifest_of(fields.inner("complete")))

    def replace_live_pins(self, live: LivePins) -> None:
        """Keep ``live`` in the place of what was held, durable on return.

        Raises:
            ValueError: more pins than a manifest may have.
            StoreError: it cannot be written; what was held stays.
        """
        same = live.complete == live.head
        complete = None if same or live.complete is None else _value_of(live.complete)
        value = {"head": _value_of(live.head), "head_is_complete": same, "complete": complete}
        make_folder(self._folder)
        replace_small(self.head_path, _wrap("head", value))

    def append_run(self, record: RunRecord) -> bytes:
        """Add a manifest made here to the ledger, durable on return.

        Returns:
            The torn tail of an append that a kill cut short, now cut off; usually empty.

        Raises:
            StoreError: nothing was added.
        """
        value = {
            "epoch": record.epoch,
            "sequence": record.sequence,
            "name": record.name,
            "digest": record.digest.hex(),
            "issued": record.issued,
            "expires": record.expires,
            "type": record.type,
            "files": record.files,
            "dirs": record.dirs,
            "bytes": record.bytes,
            "signer": record.signer.hex(),
            "complete": record.complete,
            "omissions": record.omissions,
            "pinned_packs": record.pinned_packs,
        }
        make_folder(self._folder)
        return append_line(self.ledger_path, _wrap("run", value))

    def runs(self) -> list[RunRecord] | None:
        """Return the ledger, oldest first, or None where the state was lost or never was.

        Raises:
            StoreError: ``state-damaged``: a whole line fails its check; a torn tail does not.
        """
        if not os.path.lexists(self.ledger_path):
            return None
        return list(self.iter_runs())

    def iter_runs(self) -> Iterator[RunRecord]:
        """Yield the ledger, oldest first; see `runs`."""
        for line in iter_lines(self.ledger_path):
            fields = _Fields(_unwrap(line, "run", self.ledger_path), self.ledger_path)
            yield RunRecord(
                epoch=fields.count("epoch"),
                sequence=Sequence(fields.count("sequence")),
                name=fields.name("name"),
                digest=Digest(fields.digest("digest")),
                issued=fields.integer("issued"),
                expires=fields.integer("expires"),
                type=fields.text("type"),
                files=fields.count("files"),
                dirs=fields.count("dirs"),
                bytes=fields.count("bytes"),
                signer=SignerId(fields.digest("signer")),
                complete=fields.truth("complete"),
                omissions=fields.count("omissions"),
                pinned_packs=fields.count("pinned_packs"),
            )


def _check_rises(held: HighWater, marks: HighWater) -> None:
    falls = (
        (marks.epoch, marks.sequence) < (held.epoch, held.sequence)
        or marks.registry_version < held.registry_version
        or marks.clock_seconds < held.clock_seconds
    )
    if falls:
        raise ValueError("a high-water mark never falls")
    same = (marks.epoch, marks.sequence) == (held.epoch, held.sequence)
    if same and marks.head_digest != held.head_digest:
        raise ValueError("one sequence has one digest")


def _value_of(manifest: PinnedManifest) -> Json:
    if len(manifest.pins) > PINS_MAX_COUNT:
        raise ValueError(f"a manifest pins at most {PINS_MAX_COUNT} packs")
    return {
        "epoch": manifest.epoch,
        "sequence": manifest.sequence,
        "name": manifest.name,
        "digest": manifest.digest.hex(),
        "pins": [
            [pin.pack, pin.size_bytes, pin.index_digest.hex(), pin.registry_version]
            for pin in manifest.pins
        ],
    }


def _manifest_of(fields: "_Fields") -> PinnedManifest:
    return PinnedManifest(
        epoch=fields.count("epoch"),
        sequence=Sequence(fields.count("sequence")),
        name=fields.name("name"),
        digest=Digest(fields.digest("digest")),
        pins=tuple(_pin_of(row) for row in fields.rows("pins")),
    )


def _pin_of(row: "_Fields") -> LivePin:
    return LivePin(
        pack=row.name("0"),
        size_bytes=row.count("1"),
        index_digest=Digest(row.digest("2")),
        registry_version=row.count("3"),
    )


def _check_sum(kind: bytes, value: bytes) -> bytes:
    return hashlib.sha256(kind + b"\n" + value).hexdigest().encode("ascii")


def _wrap(kind: str, value: Json) -> bytes:
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    name = kind.encode("ascii")
    return _WHOLE % (STATE_FORMAT, name, _check_sum(name, text), text)


def _unwrap(data: bytes, kind: str, path: bytes) -> Json:
    """Return the value of a state file after its self-check, which covers every byte."""
    parts = _PARTS.match(data)
    if parts is None or parts[2] != kind.encode("ascii"):
        raise _damaged(path)
    if int(parts[1]) > STATE_FORMAT:
        raise StoreError(
            "state-version",
            f"{shown(path)} has format {int(parts[1])}, this durarepo reads {STATE_FORMAT}",
            hint="install the durarepo that wrote it, or a newer one",
        )
    if int(parts[1]) != STATE_FORMAT or parts[3] != _check_sum(parts[2], parts[4]):
        raise _damaged(path)
    try:
        value = json.loads(parts[4])
    except (ValueError, RecursionError) as error:
        raise _damaged(path) from error
    if not isinstance(value, dict):
        raise _damaged(path)
    return value


def _damaged(path: bytes) -> StoreError:
    return StoreError("state-damaged", f"the state file {shown(path)} is damaged", hint=_HINT)


class _Fields:
    """Typed access to the value of a state file; what does not fit is damage."""

    def __init__(self, value: Json, path: bytes) -> None:
        self._value = value
        self._path = path

    def integer(self, key: str) -> int:
        found = self._value.get(key)
        if not isinstance(found, int) or isinstance(found, bool):
            raise _damaged(self._path)
        return found

    def count(self, key: str) -> int:
        found = self.integer(key)
        if found < 0:
            raise _damaged(self._path)
        return found

    def truth(self, key: str) -> bool:
        found = self._value.get(key)
        if not isinstance(found, bool):
            raise _damaged(self._path)
        return found

    def text(self, key: str) -> str:
        found = self._value.get(key)
        if not isinstance(found, str):
            raise _damaged(self._path)
        return found

    def digest(self, key: str) -> bytes:
        return bytes.fromhex(self.name(key))

    def name(self, key: str) -> ObjectName:
        found = self.text(key)
        if not is_object_name(found):
            raise _damaged(self._path)
        return ObjectName(found)

    def is_null(self, key: str) -> bool:
        return self._value.get(key) is None

    def inner(self, key: str) -> "_Fields":
        found = self._value.get(key)
        if not isinstance(found, dict):
            raise _damaged(self._path)
        return _Fields(found, self._path)

    def rows(self, key: str) -> Iterator["_Fields"]:
        found = self._value.get(key)
        if not isinstance(found, list) or len(found) > PINS_MAX_COUNT:
            raise _damaged(self._path)
        for row in found:
            if not isinstance(row, list):
                raise _damaged(self._path)
            yield _Fields({str(n): cell for n, cell in enumerate(row)}, self._path)
