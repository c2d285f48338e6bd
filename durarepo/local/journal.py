"""Resume points: records of a run, each durable on return, read back after a kill.

It knows no content of a record. At most one earlier generation is kept beside the current
one; nothing is deleted. A torn end is the record whose append never returned: it is cut.
A record is its length (4 bytes), the first 16 bytes of the SHA-256 of kind and data, its kind
and its data. Source: spec/format.md 8. Start at `Journal`.
"""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from durarepo.core.errors import StoreError
from durarepo.core.limits import MIB
from durarepo.store.atomic import AppendFile, make_folder, move_small, read_small, replace_small

JOURNAL_MAX_BYTES = 512 * MIB
RECORD_MAX_BYTES = 16 * MIB
_MAGIC = b"durarepo journal 1\n"
_LENGTH = 4
_CHECK = 16
_FRAME = _LENGTH + _CHECK + 1
_HEADER, _RECORD, _COMPLETE = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What one generation of the journal holds."""

    header: bytes
    records: tuple[bytes, ...]
    is_complete: bool
    whole_bytes: int


class Journal:
    """The journal of one repository; its user holds the lock."""

    def __init__(self, folder: bytes) -> None:
        """Prepare; nothing is made before `begin`.

        Args:
            folder: ``REPOSITORY/journal``.
        """
        self._folder = folder
        self._current = os.path.join(folder, b"current")
        self._previous = os.path.join(folder, b"previous")
        self._file: AppendFile | None = None
        self._header = b""

    def load(self) -> Generation | None:
        """Return the newest generation with a whole header, or None where there is none.

        Raises:
            StoreError: it cannot be read.
        """
        for path in (self._current, self._previous):
            found = _parse(read_small(path, JOURNAL_MAX_BYTES) or b"")
            if found is not None:
                return found
        return None

    def read_all(self) -> list[bytes]:
        """Return the records of the newest generation in order; none where it is complete."""
        found = self.load()
        return [] if found is None or found.is_complete else list(found.records)

    def begin(self, header: bytes, carried: Iterable[bytes] = ()) -> None:
        """Begin a generation; the newest one that has a header becomes the previous one.

        Args:
            header: facts of the run that a resuming run compares with its own.
            carried: records of an earlier generation that still count; they are there from
                the first moment on, so a kill right after loses none of them.

        Raises:
            StoreError: it cannot be begun; what was recorded can still be loaded.
        """
        self.close()
        make_folder(self._folder)
        if _parse(read_small(self._current, JOURNAL_MAX_BYTES) or b"") is not None:
            move_small(self._current, b"previous")
        kept = [_encode(_RECORD, record) for record in carried]
        replace_small(self._current, _MAGIC + _encode(_HEADER, header) + b"".join(kept))
        self._header = header
        self._file = AppendFile(self._current)

    def resume(self) -> Generation:
        """Go on appending to the current generation, its torn end cut off; return it.

        Raises:
            StoreError: ``no-journal``: there is none to go on with, or it is complete.
        """
        self.close()
        found = _parse(read_small(self._current, JOURNAL_MAX_BYTES) or b"")
        if found is None or found.is_complete:
            raise StoreError("no-journal", "there is no unfinished journal to go on with")
        file = AppendFile(self._current)
        try:
            file.cut(found.whole_bytes)
        except BaseException:
            file.close()
            raise
        self._file, self._header = file, found.header
        return found

    def append(self, record: bytes) -> None:
        """Add one record, durable on return.

        Args:
            record: at most 16 MiB.

        Raises:
            StoreError: nothing was added; ``journal-full`` where it would grow too long.
            ValueError: no generation was begun, or the record is too long.
        """
        self._add(_RECORD, record)

    def complete(self) -> None:
        """Mark the generation as done: a later run has nothing to resume; then close it.

        What nobody will resume is not kept either: only the header stays.
        """
        self._add(_COMPLETE, b"")
        self.close()
        done = _MAGIC + _encode(_HEADER, self._header) + _encode(_COMPLETE, b"")
        replace_small(self._current, done)

    def close(self) -> None:
        """Give the file back; the generation stays unfinished unless `complete` was called."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _add(self, kind: int, data: bytes) -> None:
        if self._file is None:
            raise ValueError("a journal is begun before it is written")
        encoded = _encode(kind, data)
        if self._file.size + len(encoded) > JOURNAL_MAX_BYTES:
            raise StoreError("journal-full", f"the journal is {self._file.size} bytes long")
        self._file.append(encoded)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _encode(kind: int, data: bytes) -> bytes:
    if len(data) > RECORD_MAX_BYTES:
        raise ValueError(f"a record is at most {RECORD_MAX_BYTES} bytes")
    body = bytes([kind]) + data
    return len(data).to_bytes(_LENGTH) + hashlib.sha256(body).digest()[:_CHECK] + body


def _parse(raw: bytes) -> Generation | None:
    """Return the whole records of a generation; None without a magic and a whole header."""
    if not raw.startswith(_MAGIC):
        return None
    parsed: list[tuple[int, bytes]] = []
    at = len(_MAGIC)
    while (found := _record_at(raw, at)) is not None:
        parsed.append(found)
        at += _FRAME + len(found[1])
    if not parsed or parsed[0][0] != _HEADER:
        return None
    return Generation(
        header=parsed[0][1],
        records=tuple(data for kind, data in parsed if kind == _RECORD),
        is_complete=any(kind == _COMPLETE for kind, _ in parsed),
        whole_bytes=at,
    )


def _record_at(raw: bytes, at: int) -> tuple[int, bytes] | None:
    """Return kind and data of the record at ``at``, or None where none is whole there."""
    length = int.from_bytes(raw[at : at + _LENGTH])
    end = at + _FRAME + length
    if at + _FRAME > len(raw) or end > len(raw):
        return None
    body = raw[at + _LENGTH + _CHECK : end]
    check = raw[at + _LENGTH : at + _LENGTH + _CHECK]
    if hashlib.sha256(body).digest()[:_CHECK] != check:
        return None
    return body[0], body[1:]
