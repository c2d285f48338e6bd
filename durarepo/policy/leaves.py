"""Values and the names they stand under, with the offsets at which they stand, in four forms.

Not full parsers: they find text leaves and what encloses them; whoever takes a value out checks
with a real parser, where there is one, that only leaves differ and none is left. What they cost
grows with the length of a file and no faster; a file that nests too deep is refused.
Source: RFC 8259, JSON5, TOML 1.0, YAML 1.2, git-config(1), XML 1.0. Start at `iter_leaves`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

NESTING_MOST = 256
"""Levels of one file that are looked into; real settings have a dozen."""

NAME_MOST = 512
"""So much of a name's end is looked at, for every value below it; no longer one says anything."""

BOM = b"\xef\xbb\xbf"

PAIR_NAMES = frozenset({b"name", b"key", b"id", b"header", b"variable", b"parameterkey"})
"""Names of members that hold the name of a pair."""

VALUE_NAMES = frozenset({b"value", b"val", b"parametervalue"})
"""Names of members that hold its value."""

OPTION = re.compile(rb"--?(?P<name>[A-Za-z][A-Za-z0-9_.-]*)(?:=(?P<value>.+))?\Z", re.DOTALL)


_ESCAPE = re.compile(rb"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|([\"'\\/bfnrt]))")
_SHORT = dict(zip(b"bfnrt", (b"\b", b"\f", b"\n", b"\r", b"\t"), strict=True))


class NestingError(Exception):
    """A file nests deeper than `NESTING_MOST` levels."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A text value: its name, the names around it from outside, and where its bytes stand.

    ``is_plain`` is false where the value spans lines and cannot be replaced as it stands.
    """

    name: bytes
    above: tuple[bytes, ...]
    start: int
    stop: int
    is_plain: bool = True


def unescaped(text: bytes) -> bytes:
    """Return what a string says that may hold escapes; what nobody knows stays."""
    if b"\\" not in text:
        return text
    return _ESCAPE.sub(_said, text)


def _said(match: re.Match[bytes]) -> bytes:
    number = match[1] or match[2]
    if number:
        return chr(int(number, 16)).encode("utf-8", "surrogatepass")
    return _SHORT.get(match[3][0], match[3])


# --- XML ---

_ELEMENT = re.compile(rb"<(?P<name>[A-Za-z_][\w.:-]*)(?:\s[^<>]*)?>(?P<value>[^<>]+)</")
_CDATA = re.compile(rb"<(?P<name>[A-Za-z_][\w.:-]*)(?:\s[^<>]*)?>\s*<!\[CDATA\[")
_NAMED = re.compile(
    rb"<(?P<tag>key|name)>(?P<name>[^<>]+)</(?P=tag)>\s*<(?:string|value|data)>\s*(?P<value>[^<>]+)</"
)
_TAG = re.compile(rb"<[A-Za-z_][^<>]*>")
_ATTRIBUTE = re.compile(
    rb"\s(?P<name>[A-Za-z_][\w.:-]*+)\s*+=\s*+(?:\"(?P<value>[^\"<>]+)\"|'(?P<other>[^'<>]+)')"
)


def xml_leaves(data: bytes) -> Iterator[Leaf]:
    """Yield the texts of elements, attributes, and pairs of a name and a value."""
    for pattern in (_ELEMENT, _NAMED):
        for match in pattern.finditer(data):
            yield Leaf(match["name"], (), *match.span("value"))
    for match in _TAG.finditer(data):
        yield from _attributes(data, match)
    end = 0
    for match in _CDATA.finditer(data):
        if match.end() > end:
            end = data.find(b"]]>", match.end())
        if end < 0:
            break
        if match.end() < end:
            yield Leaf(match["name"], (), match.end(), end)


def _attributes(data: bytes, tag: re.Match[bytes]) -> Iterator[Leaf]:
    pair = b""
    value: tuple[int, int] | None = None
    for match in _ATTRIBUTE.finditer(data, *tag.span()):
        span = match.span("value") if match["value"] is not None else match.span("other")
        name = match["name"]
        yield Leaf(name, (), *span)
        if name.lower() in PAIR_NAMES:
            pair = data[slice(*span)]
        elif name.lower() in VALUE_NAMES:
            value = span
    if pair and value is not None:
        yield Leaf(pair, (), *value)
