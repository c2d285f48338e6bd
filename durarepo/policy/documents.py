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
    NAME_MOST,
    NESTING_MOST,
    OPTION,
    PAIR_NAMES,
    VALUE_NAMES,
    NestingError,
)

JSON_MOST = 16 * 1024 * 1024
"""What a parser makes of a larger one need not fit in memory; its tokens are read one by one."""

_TOML_MOST = 64 * 1024
"""Larger ones take the parser longer than a snapshot can wait."""

_MANY_PARTS = re.compile(rb"(?:[A-Za-z0-9_\"'-]{1,80}[ \t]{0,8}\.[ \t]{0,8}){16}")
"""A name of so many parts costs the parser the square of them."""


_PAIR_NAMES = frozenset(name.decode() for name in PAIR_NAMES)
_VALUE_NAMES = frozenset(name.decode() for name in VALUE_NAMES)
_PAIR_NAME_MOST = max(map(len, _PAIR_NAMES | _VALUE_NAMES))


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
        if syntax is Syntax.JSON and len(data) <= JSON_MOST:
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
        is_object = isinstance(value, tuple)
        inside = (*above, name) if name else above
        for key, one in _members(value) if isinstance(value, tuple) else _items(value, name):
            if isinstance(one, str):
                if len(one) >= least:
                    yield Stated(_name_of(key), inside, _encoded(one))
            elif isinstance(one, (tuple, list)):
                pending.append((one, _name_of(key) if is_object else b"", inside, depth + 1))


def _name_of(key: str) -> bytes:
    return _encoded(key[-NAME_MOST:])


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _members(members: tuple[tuple[str, object], ...]) -> Iterable[tuple[str, object]]:
    """Return the members of an object; a value of a pair once more, under the pair's name."""
    names = {name.lower() for name, _ in members if len(name) <= _PAIR_NAME_MOST}
    if names.isdisjoint(_VALUE_NAMES) or names.isdisjoint(_PAIR_NAMES):
        return members
    texts = [(name.lower(), one) for name, one in members if isinstance(one, str)]
    values = [one for name, one in texts if name in _VALUE_NAMES]
    pairs = [one for name, one in texts if name in _PAIR_NAMES]
    return [*members, *((pair, value) for pair in pairs[-1:] for value in values)]


def _items(items: object, name: bytes) -> Iterator[tuple[str, object]]:
    above = name.decode("utf-8", "surrogatepass")
    before = ""
    for one in items if isinstance(items, list) else [items]:
        if not isinstance(one, str) or not one.startswith("-"):
            yield before or above, one
            before = ""
            continue
        option = OPTION.match(_encoded(one))
        before, was = "", before
        if option is None:
            yield was or above, one
        elif option["value"] is None:
            before = option["name"].decode("ascii")
            yield was or above, one
        else:
            yield option["name"].decode("ascii"), option["value"].decode("utf-8", "surrogatepass")


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
