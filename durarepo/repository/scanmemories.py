"""What earlier runs noted of the databases that they scanned and kept, by path.

It lies in the catalogue, which may be lost: all is then scanned again. What another version of
the policy noted is not believed.
Source: spec/exclusion.md 6. Start at `ScanMemories.find`.
"""

from durarepo.local.catalog import Catalog
from durarepo.policy.remembered import ScanMemory


class ScanMemories:
    """The memories of one run."""

    def __init__(self, catalog: Catalog, version: str) -> None:
        """Prepare; ``version`` is that of the policy."""
        self._catalog = catalog
        self._mark = version.encode() + b"\0"

    def find(self, path: bytes) -> ScanMemory:
        """Return what is known of a database; nothing if it was not scanned by this policy."""
        noted = self._catalog.scanned(path)
        if noted is None or not noted.startswith(self._mark):
            return ScanMemory()
        return ScanMemory(noted[len(self._mark) :])

    def keep(self, path: bytes, memory: ScanMemory) -> None:
        """Note what is known of a database now, in all of which nothing was found."""
        self._catalog.keep_scanned(path, self._mark + memory.encode())
