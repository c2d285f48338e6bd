"""The audit log: lines that only grow, each holding the SHA-256 of the line before.

A change to any line but the last shows in the chain; the head goes into each signed manifest,
so a cut or changed end shows against that. It never holds a secret, a path of the source or
content: the caller gives facts, and only plain ones are taken.
Source: spec/format.md 7 (audit log head) and 8. Start at `AuditLog`.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime

from durarepo.core.errors import IntegrityError
from durarepo.core.names import ZERO_DIGEST, Digest
from durarepo.store.atomic import append_after, iter_lines, shown

Fact = str | int | bool | None

_LINE_MAX_BYTES = 16 * 1024


class AuditLog:
    """The audit log of one stream."""

    def __init__(self, path: bytes) -> None:
        """Prepare; the file is created by the first append.

        Args:
            path: the log in ``STATE/STREAM``, whose folder exists.
        """
        self._path = path

    def append(self, kind: str, facts: Mapping[str, Fact], now: datetime) -> Digest:
        """Add one line, durable on return; safe beside other processes.

        Args:
            kind: what happened, one lower-case word with dashes.
            facts: plain values; no secrets.
            now: the time, UTC.

        Returns:
            The new head.

        Raises:
            StoreError: nothing was added.
            ValueError: the line would be too long.
        """
        head = ZERO_DIGEST

        def compose(last: bytes | None) -> bytes:
            nonlocal head
            line = _encode(last, kind, facts, now)
            head = _digest(line)
            return line

        append_after(self._path, compose)
        return head

    def head(self) -> Digest:
        """Return the SHA-256 of the last whole line; 32 zero bytes for an empty log."""
        head = ZERO_DIGEST
        for line in iter_lines(self._path):
            head = _digest(line)
        return head

    def check(self) -> Digest:
        """Return the head after following the chain from its beginning.

        Raises:
            IntegrityError: ``audit-chain``: a line is no line, or does not follow.
            StoreError: it cannot be read.
        """
        before = ZERO_DIGEST
        for number, line in enumerate(iter_lines(self._path), start=1):
            if _previous_of(line) != before.hex():
                raise IntegrityError(
                    "audit-chain",
                    f"line {number} of the audit log {shown(self._path)} does not follow",
                    hint="the log was changed; compare its head with the signed manifests",
                )
            before = _digest(line)
        return before


def _digest(line: bytes) -> Digest:
    return Digest(hashlib.sha256(line).digest())


def _encode(last: bytes | None, kind: str, facts: Mapping[str, Fact], now: datetime) -> bytes:
    before = ZERO_DIGEST if last is None else _digest(last)
    whole = {
        "before": before.hex(),
        "at": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "kind": kind,
        "facts": dict(facts),
    }
    line = json.dumps(whole, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    if len(line) > _LINE_MAX_BYTES:
        raise ValueError(f"a line of the audit log is at most {_LINE_MAX_BYTES} bytes")
    return line


def _previous_of(line: bytes) -> str | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    before = found.get("before") if isinstance(found, dict) else None
    return before if isinstance(before, str) else None
