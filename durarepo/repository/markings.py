"""Which marked folders are told of: what is new, what holds work, what has grown.

The catalogue keeps for each folder how large it was when it was last told of, and the shapes of
all names that it has held since it was marked. Without the catalogue every folder is new again.
Source: spec/exclusion.md 9. Start at `look_at_marked`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from durarepo.core.errors import IntegrityError
from durarepo.format.canonical import Value, decode, encode
from durarepo.local.catalog import Catalog
from durarepo.source.marked import MarkedFolder, look_at

_FACT = "marked-folders"
_SHORT = 8
_SHAPES_MAX = 500_000
"""Of a folder with more shapes than these none is kept: it is told of each time."""

_DOUBLED_LEAST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a folder: its size when it was told of, the shapes of its names."""

    told_bytes: int
    shapes: frozenset[bytes]


def look_at_marked(catalog: Catalog, marked: Mapping[bytes, str]) -> tuple[MarkedFolder, ...]:
    """Return the marked folders that somebody should look at, and note how all of them are.

    Args:
        catalog: what was known of them is read from it, and what is known now kept in it.
        marked: the folders and the marks that leave them out.
    """
    before = _parse(catalog.fact(_FACT))
    after: dict[bytes, _Known] = {}
    told: list[MarkedFolder] = []
    for path, rule in sorted(marked.items()):
        known = before.get(path)
        look = look_at(path, rule, known=None if known is None else known.shapes)
        told_bytes = look.folder.bytes if known is None else known.told_bytes
        is_doubled = look.folder.bytes >= max(2 * told_bytes, _DOUBLED_LEAST_BYTES)
        folder = replace(look.folder, is_doubled=known is not None and is_doubled)
        if folder.is_new or folder.works or folder.grown or folder.is_doubled:
            told.append(folder)
            told_bytes = folder.bytes
        shapes = look.shapes if known is None else look.shapes | known.shapes
        after[path] = _Known(told_bytes, shapes if len(shapes) <= _SHAPES_MAX else frozenset())
    if after != before:
        catalog.set_fact(_FACT, _encode(after))
    return tuple(told)


def _encode(known: Mapping[bytes, _Known]) -> bytes:
    rows: list[Value] = [
        [path, one.told_bytes, b"".join(sorted(one.shapes))] for path, one in known.items()
    ]
    return encode(rows)


def _parse(fact: bytes | None) -> dict[bytes, _Known]:
    try:
        rows = [] if fact is None else decode(fact)
    except IntegrityError:
        return {}  # every folder is told of once more
    found: dict[bytes, _Known] = {}
    for row in rows if isinstance(rows, list) else []:
        match row:
            case [bytes() as path, int() as size, bytes() as packed]:
                cut = range(0, len(packed), _SHORT)
                found[path] = _Known(size, frozenset(packed[at : at + _SHORT] for at in cut))
            case _:
                return {}
    return found
