"""Content put as chunks: cut, named and listed; it has been judged before it comes here.

Source: spec/format.md 4 and 6.4. Start at `Storing.put`.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from durarepo.chunking.chunker import Cut
from durarepo.core.entries import ChunkList, Run
from durarepo.core.errors import RunError
from durarepo.core.limits import LIST_MAX_DEPTH, XATTR_INLINE_BYTES
from durarepo.core.names import FileHash
from durarepo.format.layout import ChunkKind
from durarepo.format.tree import encode_list
from durarepo.repository.chunks import ChunkSink
from durarepo.source.reading import Segment, hashed

_LIST_RUNS_MAX = 256
_LIST_CUT_LEAST, _LIST_CUT_GREATEST, _LIST_CUT_MASK = 32, 1024, 0x7F


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What was put of a file, and what that needs."""

    runs: list[Run]
    owners: set[int]


class Storing:
    """Puts content into the sink of one run."""

    def __init__(self, sink: ChunkSink) -> None:
        """Prepare."""
        self.sink = sink
        self.is_spent: Callable[[], bool] = lambda: False

    def consume(self, cut: Cut, segments: Iterable[Segment]) -> tuple[FileHash, Content]:
        """Put content, and return its SHA-256 with what was put."""
        digest = hashlib.sha256()
        content = self.put(cut, hashed(segments, digest.update))
        return FileHash(digest.digest()), content

    def put(self, cut: Cut, segments: Iterable[Segment]) -> Content:
        """Put content, its holes as such."""
        content = Content(runs=[], owners=set())
        for is_hole, group in groupby(segments, key=lambda one: one.data is None):
            if is_hole:
                content.runs.append(Run(sum(one.length for one in group), None))
            else:
                for piece in cut(one.data for one in group if one.data is not None):
                    chunk, owner = self.sink.put(ChunkKind.DATA, piece)
                    content.owners.add(owner)
                    content.runs.append(Run(len(piece), chunk))
        return content

    def timed(self, segments: Iterable[Segment]) -> Iterator[Segment]:
        """Yield segments while there is time.

        Raises:
            RunError: ``budget``.
        """
        for one in segments:
            if self.is_spent():
                raise RunError("budget", "the time budget was spent within a large file")
            yield one

    def store_list(self, runs: list[Run], owners: set[int]) -> ChunkList:
        """Return a list of runs that is short enough to stand in an entry; add what it needs."""
        depth = 0
        while len(runs) > _LIST_RUNS_MAX and depth < LIST_MAX_DEPTH:
            above: list[Run] = []
            for part in _cut_runs(runs):
                plaintext = encode_list(ChunkList(depth, tuple(part)))
                chunk, owner = self.sink.put(ChunkKind.LIST, plaintext)
                owners.add(owner)
                above.append(Run(sum(run.length for run in part), chunk))
            runs, depth = above, depth + 1
        return ChunkList(depth, tuple(runs))

    def outside(self, value: bytes | ChunkList, owners: set[int]) -> bytes | ChunkList:
        """Return a value as it stands in an entry: a long one is put, and only named there."""
        if isinstance(value, ChunkList) or len(value) <= XATTR_INLINE_BYTES:
            return value
        chunk, owner = self.sink.put(ChunkKind.DATA, value)
        owners.add(owner)
        return ChunkList(0, (Run(len(value), chunk),))


def _cut_runs(runs: list[Run]) -> Iterator[list[Run]]:
    """Yield runs in parts, cut where an id says so, so that a small change moves few cuts."""
    part: list[Run] = []
    for run in runs:
        part.append(run)
        ends = run.chunk is not None and run.chunk[0] & _LIST_CUT_MASK == 0
        if len(part) >= _LIST_CUT_GREATEST or (ends and len(part) >= _LIST_CUT_LEAST):
            yield part
            part = []
    if part:
        yield part
