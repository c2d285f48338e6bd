"""A folder as a store: `objects/ab/ab12…`, each object written once and never touched again.

It must not follow a symlink below its root, overwrite, or take foreign files for objects.
A folder made by a killed run may not be durable in its parent yet, so the first use of each
folder in a process makes it so before anything in it is reported stored.
Source: spec/format.md 8 and 12 (laws 1, 4 and 8). Start at `LocalDir.put_new`.
"""

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Self

from durarepo.core.errors import PUT_BACK, IntegrityError, StoreError
from durarepo.core.limits import PACK_MAX_BYTES
from durarepo.core.names import ObjectName, is_object_name
from durarepo.store.atomic import (
    HeldLock,
    UnfinishedFile,
    is_temporary,
    make_folder,
    open_folder,
    read_up_to,
    remove_temporaries,
    shown,
    store_error,
)
from durarepo.store.port import Put

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FAN = re.compile(rb"[0-9a-f]{2}\Z")
_WINDOW = 1024 * 1024


def _fan_out(name: ObjectName) -> tuple[bytes, bytes]:
    if not is_object_name(name):
        raise ValueError("not an object name")
    encoded = name.encode("ascii")
    return encoded[:2], encoded


class _Pieces:
    """The data of a put, measured and hashed while they pass."""

    def __init__(self, data: bytes | Iterable[bytes]) -> None:
        self._data = (data,) if isinstance(data, bytes) else data
        self._hash = hashlib.sha256()
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._data:
            self.size += len(piece)
            if self.size > PACK_MAX_BYTES:
                raise ValueError(f"an object is at most {PACK_MAX_BYTES} bytes")
            self._hash.update(piece)
            yield piece

    def digest(self) -> bytes:
        return self._hash.digest()


class LocalDir:
    """An `ObjectStore` in one folder; use as a context manager, or `close` it."""

    def __init__(self, folder: bytes, *, create: bool = False) -> None:
        """Open the folder that holds the two-digit folders.

        Args:
            folder: the ``objects`` folder of a repository or of a mirror.
            create: make it where it is missing.

        Raises:
            StoreError: ``absent``; else as every store.
        """
        self.folder = folder
        if create:
            make_folder(folder)
        self._root = open_folder(folder)
        self._durable: set[bytes] = set()

    def close(self) -> None:
        """Give the descriptor back; closing twice is fine."""
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def put_new(self, name: ObjectName, data: bytes | Iterable[bytes]) -> Put:
        """Store ``data`` under ``name``; see `ObjectStore.put_new`."""
        fan, encoded = _fan_out(name)
        pieces = _Pieces(data)
        if self.stat(name) is not None:
            for _ in pieces:
                pass
            return self._same(name, pieces)
        with UnfinishedFile(self._root, self.folder) as file:
            for piece in pieces:
                file.write(piece)
            if self._publish(file, fan, encoded):
                return Put.CREATED
        return self._same(name, pieces)

    def put_pack(
        self, chunks: Iterable[bytes], *, announce: Callable[[ObjectName], None] | None = None
    ) -> ObjectName:
        """Store an object under the SHA-256 of its bytes, which only its end makes known.

        Args:
            chunks: the bytes, in pieces.
            announce: told the name before the object gets it, so that a kill right after
                leaves no object that nobody knows of.

        Returns:
            The name, durable.

        Raises:
            IntegrityError: ``object-differs``: other bytes stand under that name.
            StoreError: nothing was stored.
        """
        pieces = _Pieces(chunks)
        with UnfinishedFile(self._root, self.folder) as file:
            for piece in pieces:
                file.write(piece)
            name = ObjectName(pieces.digest().hex())
            fan, encoded = _fan_out(name)
            if announce is not None:
                announce(name)
            if not self._publish(file, fan, encoded):
                self._same(name, pieces)
        return name

    def read(self, name: ObjectName, offset: int = 0, length: int | None = None) -> bytes:
        """Return exactly the bytes asked for; see `ObjectStore.read`."""
        if offset < 0 or (length is not None and length < 0):
            raise ValueError("offset and length are not negative")
        descriptor, size = self._open_object(name)
        try:
            wanted = max(size - offset, 0) if length is None else length
            if size > PACK_MAX_BYTES:
                raise IntegrityError(
                    "object-size", f"object {name} is {size} bytes long", hint=PUT_BACK
                )
            data = read_up_to(descriptor, wanted, offset) if offset + wanted <= size else b""
        except OSError as error:
            raise store_error(error, "read", self._path(name)) from error
        finally:
            os.close(descriptor)
        if offset + wanted > size or len(data) != wanted:
            raise IntegrityError(
                "object-short",
                f"object {name} is {size} bytes long, {wanted} from {offset} were asked for",
                hint=PUT_BACK,
            )
        return data

    def stat(self, name: ObjectName) -> int | None:
        """Return the size of the object in bytes, or None where there is none."""
        found = self._found(name)
        return None if found is None else found.st_size

    def received(self, name: ObjectName) -> int | None:
        """Return when the object was written, in seconds since 1970, or None where there is none.

        No object is ever touched again, so this is when the store had it.
        """
        found = self._found(name)
        return None if found is None else int(found.st_mtime)

    def _found(self, name: ObjectName) -> os.stat_result | None:
        fan, encoded = _fan_out(name)
        try:
            folder = os.open(fan, _FOLDER, dir_fd=self._root)
            try:
                found = os.stat(encoded, dir_fd=folder, follow_symlinks=False)
            finally:
                os.close(folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise store_error(error, "look at", self._path(name)) from error
        return found if stat.S_ISREG(found.st_mode) else None

    def iter_names(self, *, after: str = "") -> Iterator[ObjectName]:
        """Yield each object's name once, in ascending order; foreign files are passed over.

        Args:
            after: only names that come after this one.
        """
        for fan in self._fans():
            if fan < after[:2].encode("ascii"):
                continue
            for found in self._listed(fan):
                text = os.fsdecode(found)
                if text > after and found[:2] == fan and is_object_name(text):
                    name = ObjectName(text)
                    if self.stat(name) is not None:
                        yield name

    def iter_leftovers(self) -> Iterator[bytes]:
        """Yield the path of each unfinished file that a killed run left, by exact pattern."""
        for fan in (b"", *self._fans()):
            for found in self._listed(fan):
                if is_temporary(found):
                    yield os.path.join(self.folder, fan, found)

    def remove_leftovers(self, lock: HeldLock) -> int:
        """Remove what `iter_leftovers` yields and return how many those were.

        Args:
            lock: the lock of the repository, held: no other run is writing now.

        Raises:
            ValueError: the lock is not held.
        """
        return sum(
            remove_temporaries(os.path.join(self.folder, fan), lock) for fan in (b"", *self._fans())
        )

    def _publish(self, file: UnfinishedFile, fan: bytes, encoded: bytes) -> bool:
        if fan not in self._durable:
            make_folder(os.path.join(self.folder, fan))
            self._durable.add(fan)
        folder = self._open_fan(fan)
        try:
            return file.publish(folder, encoded)
        finally:
            os.close(folder)

    def _open_fan(self, fan: bytes) -> int:
        try:
            return os.open(fan, _FOLDER, dir_fd=self._root)
        except OSError as error:
            path = os.path.join(self.folder, fan)
            raise store_error(error, "open the folder", path) from error

    def _open_object(self, name: ObjectName) -> tuple[int, int]:
        fan, encoded = _fan_out(name)
        try:
            folder = os.open(fan, _FOLDER, dir_fd=self._root)
            try:
                descriptor = os.open(encoded, _READ, dir_fd=folder)
            finally:
                os.close(folder)
        except FileNotFoundError as error:
            raise IntegrityError(
                "object-missing", f"object {name} is not there", hint=PUT_BACK
            ) from error
        except OSError as error:
            raise store_error(error, "open", self._path(name)) from error
        try:
            found = os.fstat(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise store_error(error, "look at", self._path(name)) from error
        if stat.S_ISREG(found.st_mode):
            return descriptor, found.st_size
        os.close(descriptor)
        raise StoreError("io", f"{shown(self._path(name))} is not a regular file")

    def _same(self, name: ObjectName, pieces: _Pieces) -> Put:
        """Compare what is stored with what was given, and make it durable."""
        descriptor, size = self._open_object(name)
        try:
            stored = hashlib.sha256()
            if size == pieces.size:
                for offset in range(0, size, _WINDOW):
                    stored.update(read_up_to(descriptor, _WINDOW, offset))
            if size != pieces.size or stored.digest() != pieces.digest():
                raise IntegrityError(
                    "object-differs",
                    f"object {name} is stored with other bytes ({size}, offered {pieces.size})",
                    hint="run durarepo verify --packs; what is stored was left as it is",
                )
            os.fsync(descriptor)
            folder = self._open_fan(name[:2].encode("ascii"))
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise store_error(error, "compare", self._path(name)) from error
        finally:
            os.close(descriptor)
        return Put.ALREADY_THERE

    def _path(self, name: ObjectName) -> bytes:
        return os.path.join(self.folder, name[:2].encode("ascii"), name.encode("ascii"))

    def _fans(self) -> list[bytes]:
        return [found for found in self._listed(b"") if _FAN.match(found)]

    def _listed(self, fan: bytes) -> list[bytes]:
        try:
            folder = os.open(fan or b".", _FOLDER, dir_fd=self._root)
            try:
                return sorted(os.fsencode(found) for found in os.listdir(folder))
            finally:
                os.close(folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            path = os.path.join(self.folder, fan)
            raise store_error(error, "list", path) from error
