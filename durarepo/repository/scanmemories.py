"""What earlier runs noted of the databases and largest files that they scanned, by path.

For each part: by what it is known again, and, of a database, as which chunks it was stored. It
lies in the catalogue, which may be lost: all is then scanned and put again. What another version
of the policy noted is not believed, nor what does not fit its sum, since what it says ends up in
a manifest.
Source: spec/exclusion.md 6; spec/decisions/0004-catalogue.md. Start at `ScanMemories.find`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from durarepo.core.names import ChunkId
from durarepo.local.catalog import Catalog
from durarepo.policy.remembered import ScanMemory

Stored = list[tuple[ChunkId, int]]
"""As which chunks a part is stored, with their owners as the sink gives them."""

_SUM_BYTES = 16
_LENGTH_BYTES, _COUNT_BYTES, _OWNER_BYTES = 8, 2, 4
_HASH_BYTES = 32
_ROW_BYTES = _HASH_BYTES + _OWNER_BYTES


@dataclass(frozen=True, slots=True)
class DatabaseMemory:
    """What is known of one file: of its scan, and as what each part is stored, by its key.

    ``is_noted`` says that it was kept before, if only to scan it again.
    """

    scanned: ScanMemory = field(default_factory=ScanMemory)
    stored: Mapping[bytes, Stored] = field(default_factory=dict)
    is_noted: bool = False


class ScanMemories:
    """The memories of one run."""

    def __init__(self, catalog: Catalog, version: str) -> None:
        """Prepare; ``version`` is that of the policy."""
        self._catalog = catalog
        self._mark = version.encode() + b"\0"

    def find(self, path: bytes) -> DatabaseMemory:
        """Return what is known of a database; nothing if it was not scanned by this policy."""
        noted = self._catalog.scanned(path)
        if noted is None or not noted.startswith(self._mark):
            return DatabaseMemory()
        middle = len(self._mark) + _SUM_BYTES
        body = noted[middle:]
        if noted[len(self._mark) : middle] != _sum(path, body):
            return DatabaseMemory()
        end = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES])
        scanned = ScanMemory(body[_LENGTH_BYTES:end])
        return DatabaseMemory(scanned, _parsed(body, end), is_noted=True)

    def keep(self, path: bytes, scanned: ScanMemory, stored: Mapping[bytes, Stored]) -> None:
        """Note what is known of a database now.

        Args:
            path: where it lies.
            scanned: the scan of the copy that was kept, in all of which nothing was found; an
                empty one where something was.
            stored: as what each part of it is stored, by its key (see `KnownParts`).
        """
        parts = scanned.encode()
        chunks = b"".join([_encoded(key, rows) for key, rows in stored.items()])
        body = len(parts).to_bytes(_LENGTH_BYTES) + parts + chunks
        self._catalog.keep_scanned(path, self._mark + _sum(path, body) + body)


def _sum(path: bytes, body: bytes) -> bytes:
    key = hashlib.sha256(path).digest()
    return hashlib.blake2b(body, key=key, digest_size=_SUM_BYTES).digest()


def _encoded(key: bytes, stored: Stored) -> bytes:
    rows = [chunk + owner.to_bytes(_OWNER_BYTES, signed=True) for chunk, owner in stored]
    return key + len(rows).to_bytes(_COUNT_BYTES) + b"".join(rows)


def _parsed(body: bytes, at: int) -> dict[bytes, Stored]:
    found: dict[bytes, Stored] = {}
    while at < len(body):
        key, at = body[at : at + _HASH_BYTES], at + _HASH_BYTES
        count = int.from_bytes(body[at : at + _COUNT_BYTES])
        first = at + _COUNT_BYTES
        at = first + count * _ROW_BYTES
        found[key] = [
            (
                ChunkId(body[row : row + _HASH_BYTES]),
                int.from_bytes(body[row + _HASH_BYTES : row + _ROW_BYTES], signed=True),
            )
            for row in range(first, at, _ROW_BYTES)
        ]
    return found
