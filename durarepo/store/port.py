"""What every store of objects can do: put new, read, stat, list. Nothing else exists.

There is no delete and no overwrite, so no caller can ask for one. An object is put whole or
not at all; putting the same bytes again is fine, other bytes under a taken name are an alarm.
A remote is a store to which objects are sent: whole values that can be sent more than once.
Source: spec/format.md 8 and 12 (law 4); spec/mirror.md; AICEP 10.5.4. Start at `ObjectStore`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from durarepo.core.names import Digest, ObjectName


class Put(Enum):
    """What putting an object did."""

    CREATED = "created"
    ALREADY_THERE = "already-there-same"


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The bytes of an object on their way: measured before, and to be read more than once.

    ``pieces`` begins anew with each call and yields ``size`` bytes whose SHA-256 is ``digest``.
    """

    size: int
    digest: Digest
    pieces: Callable[[], Iterator[bytes]]

    def is_named(self, name: ObjectName) -> bool:
        """Return whether ``name`` is the digest of the bytes, as that of a pack is."""
        return self.digest.hex() == name


class ObjectStore(Protocol):
    """A write-once map from object names to bytes, each at most 32 MiB.

    Every method raises `StoreError` where the store cannot be used, and `ValueError` for a name
    that is no object name.
    """

    def put_new(self, name: ObjectName, data: bytes | Iterable[bytes]) -> Put:
        """Store ``data`` under ``name``, durable on return, or change nothing.

        Args:
            name: 64 lower-case hex digits, free or taken by the same bytes.
            data: the whole object, or its pieces in order.

        Raises:
            IntegrityError: ``object-differs``: the name is taken by other bytes, which stay.
            StoreError: nothing was stored (``full``, ``permission``, ``io``).
            ValueError: the data are longer than any object may be.
        """
        ...

    def read(self, name: ObjectName, offset: int = 0, length: int | None = None) -> bytes:
        """Return exactly the bytes asked for.

        Args:
            name: the object.
            offset: first byte, >= 0.
            length: how many bytes, >= 0; None for all that follow.

        Raises:
            IntegrityError: ``object-missing``; ``object-short`` where the object ends before
                the range does; ``object-size`` where it is longer than any object may be.
        """
        ...

    def stat(self, name: ObjectName) -> int | None:
        """Return the size of the object in bytes, or None where there is none."""
        ...

    def iter_names(self) -> Iterator[ObjectName]:
        """Yield each object's name once, in ascending order."""
        ...


class Remote(ObjectStore, Protocol):
    """A store on another machine, or one that is used like it: its errors are `RemoteError`.

    ``put_new`` holds the whole object in memory; ``send`` does not.
    """

    def send(self, name: ObjectName, body: Body) -> Put:
        """Store ``body`` under ``name`` and look at it there, or change nothing.

        On return the remote holds it: size seen, and read back whole where the name is not
        its digest or where it was there before.

        Raises:
            IntegrityError: ``object-differs``: other bytes are there, and stay; they may be a
                torn copy of these.
            RemoteError: it is not known to be there.
            ValueError: the body is longer than any object may be.
        """
        ...
