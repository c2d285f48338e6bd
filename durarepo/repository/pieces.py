"""The content of one file out of its chunks, compared with its SHA-256 on the way.

Knows nothing of where it goes: a restore, a verification and `show` read through it.
Source: spec/format.md 6.4, spec/ingest.md 7.7. Start at `file_pieces`.
"""

import hashlib
from collections.abc import Callable, Iterator

from durarepo.core.entries import Entry
from durarepo.core.errors import IntegrityError
from durarepo.core.limits import MIB
from durarepo.core.names import ChunkId
from durarepo.format.layout import ChunkKind
from durarepo.repository.reader import ChunkReader
from durarepo.repository.trees import iter_runs
from durarepo.store.atomic import shown

_ZEROS = bytes(MIB)


def file_pieces(reader: ChunkReader, entry: Entry, path: bytes) -> Iterator[bytes | int]:
    """Yield the content of a file in order: bytes, or the length of a hole.

    The last step compares the SHA-256 of all of it; whoever does not go on to the end has not
    checked it. For a file that is one chunk that comparison is the one of the chunk's id, which
    is derived from the file's size and SHA-256, and derived again from the bytes.

    Raises:
        IntegrityError: ``file-hash`` (ingest 7.7), ``content``, or why a chunk cannot be read.
    """
    if entry.content is None:
        if entry.size:
            yield reader.file_data(entry)
        return
    digest = hashlib.sha256()
    for length, chunk in iter_runs(reader, entry):
        yield length if chunk is None else _piece(reader, length, chunk, digest.update)
        if chunk is None:  # only after the builder has found that a hole of this size fits
            for at in range(0, length, MIB):
                digest.update(_ZEROS[: length - at])
    if digest.digest() != entry.sha256:
        raise IntegrityError("file-hash", f"{shown(path)} is not the file that was kept")


def _piece(
    reader: ChunkReader, length: int, chunk: ChunkId, update: Callable[[bytes], None]
) -> bytes:
    data = reader.chunk(chunk, ChunkKind.DATA)
    if len(data) != length:
        raise IntegrityError("content", "chunk has another length than its run")
    update(data)
    return data
