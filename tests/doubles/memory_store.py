"""A store of objects in memory that honours the same contract as the real ones."""

from collections.abc import Iterable, Iterator

from durarepo.core.errors import IntegrityError
from durarepo.core.limits import PACK_MAX_BYTES
from durarepo.core.names import ObjectName, is_object_name
from durarepo.store.port import Put


class MemoryStore:
    """An `ObjectStore` in a dictionary; ``calls`` records what was asked for, in order."""

    def __init__(self) -> None:
        self.objects: dict[ObjectName, bytes] = {}
        self.calls: list[tuple[str, str]] = []

    def put_new(self, name: ObjectName, data: bytes | Iterable[bytes]) -> Put:
        self._note("put_new", name)
        size, pieces = 0, []
        for piece in (data,) if isinstance(data, bytes) else data:
            size += len(piece)
            if size > PACK_MAX_BYTES:
                raise ValueError("too long for an object")
            pieces.append(piece)
        whole = b"".join(pieces)
        if name not in self.objects:
            self.objects[name] = whole
            return Put.CREATED
        if self.objects[name] != whole:
            raise IntegrityError("object-differs", f"object {name} is stored with other bytes")
        return Put.ALREADY_THERE

    def read(self, name: ObjectName, offset: int = 0, length: int | None = None) -> bytes:
        self._note("read", name)
        if offset < 0 or (length is not None and length < 0):
            raise ValueError("offset and length are not negative")
        if name not in self.objects:
            raise IntegrityError("object-missing", f"object {name} is not there")
        data = self.objects[name]
        wanted = max(len(data) - offset, 0) if length is None else length
        if offset + wanted > len(data):
            raise IntegrityError("object-short", f"object {name} is {len(data)} bytes long")
        return data[offset : offset + wanted]

    def stat(self, name: ObjectName) -> int | None:
        self._note("stat", name)
        found = self.objects.get(name)
        return None if found is None else len(found)

    def iter_names(self) -> Iterator[ObjectName]:
        self._note("iter_names", "")
        yield from sorted(self.objects)

    def _note(self, call: str, name: str) -> None:
        if call != "iter_names" and not is_object_name(name):
            raise ValueError("not an object name")
        self.calls.append((call, name))
