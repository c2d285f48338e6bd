"""Documents that a real parser reads: what they state, and whether two differ in leaves alone.

Objects are tuples of pairs, so a name that stands twice is seen twice. What the parsers of the
standard library cannot do in linear time, or at all, counts as not parsed.
Source: RFC 8259, TOML 1.0, documentation of json and tomllib. Start at `parse_document`.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from durarepo.policy.forms import Syntax
from durarepo.policy.leaves import (
    BOM,
    NESTING_MOST,
    OPTION,
    PAIR_NAMES,
    VALUE_NAMES,
    NestingError,
)

_TOML_MOST = 64 * 1024
"""Larger ones take the parser longer than a snapshot can wait."""

_MANY_PARTS = re.compile(rb"(?:[A-Za-z0-9_\"'-]{1,80}[ \t]{0,8}\.[ \t]{0,8}){16}")
"""A name of so many parts costs the parser the square of them."""


@dataclass(frozen=True, slots=True)
class Document:
    """What a parser made of a file."""

    root: object


@dataclass(frozen=True, slots=True)
class Stated:
    """A text that a document states: its name, the names around it, and itself."""

    name: bytes
    above: tuple[bytes, ...]
    value: bytes


def parse_document(data: bytes, syntax: Syntax) -> Document | None:
    """Return what a file says, or None where no parser can tell."""
    try:
        if syntax is Syntax.JSON:
            return Document(
                json.loads(
                    data,
                    object_pairs_hook=tuple,
                    parse_int=str,
                    parse_float=str,
                    parse_constant=str,
                )
            )
        if syntax is Syntax.TOML and len(data) <= _TOML_MOST and not _MANY_PARTS.search(data):
            return Document(_paired(tomllib.loads(data.removeprefix(BOM).decode())))
    except (ValueError, RecursionError):
        pass
    return None


def _paired(value: object) -> object:
    if isinstance(value, dict):
        return tuple((name, _paired(one)) for name, one in value.items())
    if isinstance(value, list):
        return [_paired(one) for one in value]
    return value


def iter_stated(document: Document, *, least: int = 0) -> Iterator[Stated]:
    """Yield the texts of a document; one that belongs to a pair, under the pair's name too.

    Args:
        document: of `parse_document`.
        least: shorter texts are left out.

    Raises:
        NestingError: it nests too deep.
    """
    pending: list[tuple[object, bytes, tuple[bytes, ...], int]] = [(document.root, b"", (), 0)]
    while pending:
        value, name, above, depth = pending.pop()
        if depth > NESTING_MOST:
            raise NestingError
        pairs = _members(value) if isinstance(value, tuple) else _items(value, name)
        inside = (*above, name) if name else above
        for key, one in pairs:
            if isinstance(one, str):
                if len(one) >= least:
                    text = one.encode("utf-8", "surrogatepass")
                    yield Stated(key, inside, text)
            elif isinstance(one, (tuple, list)):
                pending.append((one, key if isinstance(value, tuple) else b"", inside, depth + 1))


def _members(members: Iterable[tuple[str, object]]) -> Iterator[tuple[bytes, object]]:
    pair, value = b"", None
    for name, one in members:
        key = name.encode("utf-8", "surrogatepass")
        yield key, one
        if isinstance(one, str):
            lowered = key.lower()
            if lowered in PAIR_NAMES:
                pair = one.encode("utf-8", "surrogatepass")
            elif lowered in VALUE_NAMES:
                value = one
    if pair and value is not None:
        yield pair, value


def _items(items: object, name: bytes) -> Iterator[tuple[bytes, object]]:
    before = b""
    for one in items if isinstance(items, list) else [items]:
        if not isinstance(one, str):
            yield b"", one
            continue
        text = one.encode("utf-8", "surrogatepass")
        option = OPTION.match(text) if text.startswith(b"-") else None
        if option is not None and option["value"] is not None:
            yield option["name"], option["value"].decode("utf-8", "surrogatepass")
        else:
            yield before or name, one
        before = option["name"] if option is not None and option["value"] is None else b""


def is_only_leaves_changed(before: Document, after: Document) -> bool:
    """Return whether two documents differ in texts alone, which a marker has taken a part in."""
    pending = [(before.root, after.root)]
    while pending:
        one, two = pending.pop()
        if isinstance(one, tuple) and isinstance(two, tuple):
            if [name for name, _ in one] != [name for name, _ in two]:
                return False
            pending += [(a, b) for (_, a), (_, b) in zip(one, two, strict=True)]
        elif isinstance(one, list) and isinstance(two, list):
            if len(one) != len(two):
                return False
            pending += zip(one, two, strict=True)
        elif one != two and not (isinstance(two, str) and "withheld(" in two):
            return False
    return True
