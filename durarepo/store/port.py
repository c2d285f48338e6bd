"""What every store of objects can do: put new, read, stat, list. Nothing else exists.

There is no delete and no overwrite, so no caller can ask for one. An object is put whole or
not at all; putting the same bytes again is fine, other bytes under a taken name are an alarm.
Source: spec/format.md 8 and 12 (law 4); AICEP 10.5.4. Start at `ObjectStore`.
"""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Protocol

from durarepo.core.names import ObjectName


class Put(Enum):
    """What putting an object did."""

    CREATED = "created"
    ALREADY_THERE = "already-there-same"


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
