"""What lies on a mirror: a folder of objects for each scope, with what it holds and may hold.

Counts are taken once at the start and kept from then on; they are changed by one thread only,
the one that answers requests. Source: spec/mirror.md 4. Start at `Shelf`.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from durarepo.core.limits import MIRROR_PAGE_NAMES
from durarepo.core.names import ObjectName
from durarepo.store.atomic import make_folder
from durarepo.store.localdir import LocalDir


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One row of a listing: ``received`` in seconds since 1970, by the mirror's own clock."""

    name: ObjectName
    size: int
    received: int


class Shelf:
    """The objects of one scope."""

    def __init__(self, folder: bytes, *, quota_bytes: int = 0) -> None:
        """Open or make the folder, and count what is there.

        Args:
            folder: of this scope alone.
            quota_bytes: how much may lie there; 0 for as much as there is room.

        Raises:
            StoreError: it cannot be used.
        """
        make_folder(folder)
        self.store = LocalDir(folder)
        self._quota = quota_bytes
        sizes = [self.store.stat(name) or 0 for name in self.store.iter_names()]
        self.objects, self.bytes = len(sizes), sum(sizes)
        self._promised = 0

    def reserve(self, size: int) -> bool:
        """Return whether there is room for so many bytes; they are then kept free."""
        if self._quota and self.bytes + self._promised + size > self._quota:
            return False
        self._promised += size
        return True

    def settle(self, size: int, *, is_new: bool) -> None:
        """Note what became of reserved bytes: an object, or nothing."""
        self._promised -= size
        if is_new:
            self.objects += 1
            self.bytes += size

    def page(self, after: str) -> list[Listed]:
        """Return the next names after one, in order, at most a page of them."""
        rows: list[Listed] = []
        for name in self.store.iter_names(after=after):
            size, received = self.store.stat(name), self.store.received(name)
            if size is not None and received is not None:
                rows.append(Listed(name=name, size=size, received=received))
            if len(rows) == MIRROR_PAGE_NAMES:
                break
        return rows

    def close(self) -> None:
        """Give the descriptor back."""
        self.store.close()


def open_shelves(folder: bytes, scopes: Iterable[str], *, quota_bytes: int) -> dict[str, Shelf]:
    """Return a shelf for each scope, in sub-folders of ``folder``.

    Raises:
        StoreError: one cannot be used.
    """
    return {
        scope: Shelf(os.path.join(folder, scope.encode("ascii")), quota_bytes=quota_bytes)
        for scope in scopes
    }
