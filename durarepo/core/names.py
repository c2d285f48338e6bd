"""Ids and names as distinct types, so that one can never be taken for another.

Holds no behaviour but the checks of text forms. Source: spec/format.md 2.
"""

import re
from typing import NewType

ChunkId = NewType("ChunkId", bytes)
"""32 bytes: keyed hash of one chunk of plaintext."""

Digest = NewType("Digest", bytes)
"""32 bytes: SHA-256 of bytes as they are stored (a frame, an index, an envelope)."""

FileHash = NewType("FileHash", bytes)
"""32 bytes: SHA-256 of a file's plaintext. Never leaves sealed data."""

ObjectName = NewType("ObjectName", str)
"""64 lower-case hex digits: the name of a stored object."""

SignerId = NewType("SignerId", bytes)
"""32 bytes: SHA-256 of a signer's two public keys."""

Sequence = NewType("Sequence", int)
"""Number of a manifest within its stream; the first is 1."""

ZERO_DIGEST = Digest(bytes(32))

_OBJECT_NAME = re.compile(r"[0-9a-f]{64}\Z")
_STREAM_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,62}\Z")


def is_object_name(text: str) -> bool:
    """Return whether ``text`` has the form of an object name."""
    return _OBJECT_NAME.match(text) is not None


def is_stream_id(text: str) -> bool:
    """Return whether ``text`` may name a stream or a compartment."""
    return _STREAM_ID.match(text) is not None
