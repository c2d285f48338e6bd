"""A folder as a remote: the same objects, on another disk or a network file system.

It is never made here: a disk that is not mounted must not look like an empty remote. What goes
wrong there is the remote's failure and not that of the repository.
Source: spec/mirror.md 1. Start at `FolderRemote`.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from durarepo.core.errors import RemoteError, StoreError
from durarepo.core.limits import PACK_MAX_BYTES
from durarepo.core.names import ObjectName
from durarepo.store.bodies import checked_pieces
from durarepo.store.localdir import LocalDir
from durarepo.store.port import Body, Put


class FolderRemote:
    """A `Remote` in one folder; use as a context manager, or `close` it."""

    def __init__(self, folder: bytes) -> None:
        """Open the folder, which holds the two-digit folders or will.

        Raises:
            RemoteError: ``absent``; else as every remote.
        """
        self.place = os.fsdecode(folder)
        with self._told():
            self._store = LocalDir(folder)

    def close(self) -> None:
        """Give the descriptor back; closing twice is fine."""
        self._store.close()

    def put_new(self, name: ObjectName, data: bytes | Iterable[bytes]) -> Put:
        """Store ``data`` under ``name``; see `ObjectStore.put_new`."""
        feed = _Feed((data,) if isinstance(data, bytes) else data)
        with self._told(feed):
            return self._store.put_new(name, feed)

    def send(self, name: ObjectName, body: Body) -> Put:
        """Store ``body`` under ``name``; see `Remote.send`.

        What is new is compared too: a network file system can lose what it took.
        """
        if body.size > PACK_MAX_BYTES:
            raise ValueError(f"an object is at most {PACK_MAX_BYTES} bytes")
        put = self.put_new(name, checked_pieces(body))
        if put is Put.CREATED:
            self.put_new(name, checked_pieces(body))
        return put

    def read(self, name: ObjectName, offset: int = 0, length: int | None = None) -> bytes:
        """Return exactly the bytes asked for; see `ObjectStore.read`."""
        with self._told():
            return self._store.read(name, offset, length)

    def stat(self, name: ObjectName) -> int | None:
        """Return the size of the object in bytes, or None where there is none."""
        with self._told():
            return self._store.stat(name)

    def iter_names(self) -> Iterator[ObjectName]:
        """Yield each object's name once, in ascending order."""
        names = self._store.iter_names()
        while True:
            with self._told():
                name = next(names, None)
            if name is None:
                return
            yield name

    @contextmanager
    def _told(self, feed: "_Feed | None" = None) -> Iterator[None]:
        """Let a failure of the folder be one of the remote, and one of what feeds it not."""
        try:
            yield
        except StoreError as error:
            if feed is not None and feed.failure is error:
                raise
            if error.code == "store.absent":
                raise RemoteError(
                    "absent",
                    f"remote: {error.message}",
                    hint="mount its disk, or make the folder",
                ) from error
            reason = "full" if error.code == "store.full" else "folder"
            raise RemoteError(reason, f"remote: {error.message}", hint=error.hint) from error


class _Feed:
    """The pieces of an object on their way; remembers if it is they that cannot be read."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self.failure: StoreError | None = None

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._pieces
        except StoreError as error:
            self.failure = error
            raise
