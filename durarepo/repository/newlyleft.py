"""Which files left the backup for their content since the last complete snapshot.

A name or a mark is seen by whoever looks at the folder; that a token was pasted into a file is
not, and with it the whole file stays out of the snapshot. The catalogue keeps short hashes of the
paths that were told of. Without it every one of them is new again.
Source: spec/cli.md 4 (snapshot), spec/exclusion.md 3. Start at `newly_left`.
"""

import hashlib
from collections.abc import Iterable

from durarepo.format.manifest import LedgerLine, OmissionClass
from durarepo.local.catalog import Catalog
from durarepo.policy.rules import Stage
from durarepo.repository.treekeeper import RULE_SIDECAR

_FACT = "left-by-content"
_SHORT = 8
_KNOWN_MAX = 250_000
"""So many paths are remembered; those beyond are told of each time."""


def newly_left(catalog: Catalog, lines: Iterable[LedgerLine]) -> tuple[LedgerLine, ...]:
    """Return what is left out for its content and was not before, and note what is out now.

    Args:
        catalog: what was out before is read from it, and what is out now kept in it.
        lines: the ledger of the snapshot. A log of a database that is kept as of one moment is
            in that, and so has left nothing.
    """
    packed = catalog.fact(_FACT) or b""
    before = {packed[at : at + _SHORT] for at in range(0, len(packed), _SHORT)}
    out = {_short(line.path): line for line in lines if _is_meant(line)}
    after = b"".join(sorted(out)[:_KNOWN_MAX])
    if after != packed:
        catalog.set_fact(_FACT, after)
    return tuple(sorted((line for short, line in out.items() if short not in before), key=_path_of))


def _is_meant(line: LedgerLine) -> bool:
    is_out = line.kind is OmissionClass.EXCLUSION and line.stage != Stage.PATH
    return is_out and line.rule != RULE_SIDECAR


def _path_of(line: LedgerLine) -> bytes:
    return line.path


def _short(path: bytes) -> bytes:
    return hashlib.blake2b(path, digest_size=_SHORT).digest()
