"""Bodies: bytes that are sent to a remote, from memory or straight from a local store.

Nothing is copied to disk: pieces are read from the object as they are sent, a window at a time.
Source: spec/mirror.md 2. Start at `body_of_object`.
"""

import hashlib
from collections.abc import Iterable, Iterator

from durarepo.core.errors import PUT_BACK, IntegrityError
from durarepo.core.limits import PACK_MAX_BYTES
from durarepo.core.names import Digest, ObjectName
from durarepo.store.port import Body, ObjectStore

WINDOW = 256 * 1024
"""Bytes that are held at once of an object on its way."""


def body_of_bytes(data: bytes | Iterable[bytes]) -> Body:
    """Return the body of bytes in memory, or of pieces that are taken into memory.

    Raises:
        ValueError: they are longer than any object may be.
    """
    whole = data if isinstance(data, bytes) else b"".join(_bounded(data))
    if len(whole) > PACK_MAX_BYTES:
        raise ValueError(f"an object is at most {PACK_MAX_BYTES} bytes")

    def pieces() -> Iterator[bytes]:
        view = memoryview(whole)
        for start in range(0, len(whole), WINDOW):
            yield bytes(view[start : start + WINDOW])

    digest = Digest(hashlib.sha256(whole).digest())
    return Body(size=len(whole), digest=digest, pieces=pieces)


def body_of_object(store: ObjectStore, name: ObjectName) -> Body:
    """Return the body of a stored object; it is read once now, to know its digest.

    Raises:
        IntegrityError: ``object-missing``, ``object-size``, ``object-short``.
        StoreError: the store cannot be read.
    """
    size = store.stat(name)
    if size is None:
        raise IntegrityError("object-missing", f"object {name} is not there", hint=PUT_BACK)

    def pieces() -> Iterator[bytes]:
        for start in range(0, size, WINDOW):
            yield store.read(name, start, min(WINDOW, size - start))

    digest = hashlib.sha256()
    for piece in pieces():
        digest.update(piece)
    return Body(size=size, digest=Digest(digest.digest()), pieces=pieces)


def checked_pieces(body: Body) -> Iterator[bytes]:
    """Yield the pieces of a body, the last one only when all of it is what was measured.

    So a remote never gets a whole object that is not the one it was to get.

    Raises:
        IntegrityError: ``object-name``: it changed since it was measured.
    """
    digest, size, held = hashlib.sha256(), 0, b""
    for piece in body.pieces():
        digest.update(piece)
        size += len(piece)
        if size > body.size:
            break
        if held and piece:
            yield held
        held = piece or held
    if size != body.size or digest.digest() != body.digest:
        raise IntegrityError(
            "object-name",
            f"an object of {body.size} bytes changed while it was sent",
            hint="run durarepo verify --packs",
        )
    if held:
        yield held


def _bounded(data: Iterable[bytes]) -> Iterator[bytes]:
    size = 0
    for piece in data:
        size += len(piece)
        if size > PACK_MAX_BYTES:
            raise ValueError(f"an object is at most {PACK_MAX_BYTES} bytes")
        yield piece
