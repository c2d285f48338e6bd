"""Rows of the catalogue made again from the packs themselves, each through its pin.

Needs the naming key only, so it works on a put-only machine and after catalog.db was deleted.
Source: spec/format.md 12 (law 5). Start at `ensure_packs`.
"""

from collections.abc import Iterable

from durarepo.core.errors import IntegrityError
from durarepo.core.names import ObjectName
from durarepo.format.manifest import Pin
from durarepo.local.catalog import Catalog
from durarepo.repository.openpack import PackOpener
from durarepo.repository.repository import Repository


def ensure_packs(repository: Repository, catalog: Catalog, pins: Iterable[Pin]) -> dict[int, Pin]:
    """Return the packs of ``pins`` by row id, with rows for those that the catalogue lacked.

    A pack whose index is not the pinned one is left out: its chunks count as unknown and are
    stored anew. The caller is in a transaction of the catalogue.

    Raises:
        StoreError: a pack cannot be read.
    """
    opener = PackOpener(repository)
    known: dict[ObjectName, int] = catalog.pack_ids()
    found: dict[int, Pin] = {}
    for pin in pins:
        row_id = known.get(pin.name)
        if row_id is None:
            try:
                row_id = catalog.add_pack(pin, opener.open(pin).index.ids)
            except IntegrityError:
                continue
        found[row_id] = pin
    return found
