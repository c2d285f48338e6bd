"""A database put part by part: parts that an earlier run stored are only named again.

A part is known by the SHA-256 of its chunks, and counts as stored only while all packs that it
needs count; what is new of a database is little, so most of it is neither looked up chunk by
chunk nor named.
Source: spec/format.md 4. Start at `KnownParts.put`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from durarepo.chunking.chunker import cut_pages, page_step
from durarepo.core.entries import Run
from durarepo.core.limits import KIB
from durarepo.core.names import FileHash
from durarepo.format.layout import ChunkKind
from durarepo.repository.chunks import ChunkSink
from durarepo.repository.scanmemories import Stored
from durarepo.repository.storing import Content
from durarepo.source.reading import Segment

_PART_BYTES = 64 * KIB
"""The greatest length of a page, and so of a chunk, of a database."""


class KnownParts:
    """Puts one database; ``stored`` is then what to know of it at the next run."""

    def __init__(self, known: Mapping[bytes, Stored], sink: ChunkSink) -> None:
        """Prepare; ``known`` is what was stored of it by an earlier run."""
        self._known = known
        self._sink = sink
        self.stored: dict[bytes, Stored] = {}

    def put(self, segments: Iterable[Segment], *, page_bytes: int) -> tuple[FileHash, Content]:
        """Put content that has no hole; return its SHA-256 with what was put.

        Args:
            segments: the content.
            page_bytes: size of a page of the database.
        """
        step = page_step(page_bytes)
        digest, content = hashlib.sha256(), Content(runs=[], owners=set())
        for part in _parts_of(segments):
            digest.update(part)
            pieces = list(cut_pages([part], page_bytes=page_bytes))
            hashes = [hashlib.sha256(piece).digest() for piece in pieces]
            key = hashlib.sha256(b"".join(hashes)).digest()
            stored = self._live(key, len(pieces)) or [
                self._sink.put(ChunkKind.DATA, piece, one)
                for piece, one in zip(pieces, hashes, strict=True)
            ]
            self.stored[key] = stored
            left = len(part)
            for chunk, owner in stored:
                content.runs.append(Run(min(step, left), chunk))
                content.owners.add(owner)
                left -= step
        return FileHash(digest.digest()), content

    def _live(self, key: bytes, count: int) -> Stored:
        """Return as which chunks a part is stored; nothing if not any more, or not so."""
        stored = self._known.get(key, [])
        if len(stored) != count:
            return []
        return stored if self._sink.are_live([owner for _, owner in stored]) else []


def _parts_of(segments: Iterable[Segment]) -> Iterator[bytes]:
    rest = b""
    for one in segments:
        data = rest + (one.data or b"")
        whole = len(data) - len(data) % _PART_BYTES
        for at in range(0, whole, _PART_BYTES):
            yield data[at : at + _PART_BYTES]
        rest = data[whole:]
    if rest:
        yield rest
