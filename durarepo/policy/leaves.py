"""Values and the names they stand under, with the offsets at which they stand, in four forms.

Not full parsers: they find text leaves and what encloses them, and never fail; whoever takes a
value out checks with a real parser, where there is one, that only leaves differ.
Source: RFC 8259, JSON5, TOML 1.0, YAML 1.2 (flow and simple block scalars), git-config(1).
Start at `iter_leaves`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from durarepo.policy.forms import Syntax


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


def iter_leaves(data: bytes, syntax: Syntax, *, least: int = 0) -> Iterator[Leaf]:
    """Yield the leaves of a configuration file.

    Args:
        data: all of it.
        syntax: its form.
        least: leaves of a JSON or TOML file that are shorter may be left out, which is faster.
    """
    if syntax is Syntax.JSON:
        yield from _json_leaves(data, 0, len(data), least=least)
    elif syntax is Syntax.XML:
        yield from _xml_leaves(data)
    else:
        yield from _line_leaves(data, is_toml=syntax is Syntax.TOML)


# --- JSON and what is like it ---

_TOKEN = re.compile(
    rb'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|//[^\r\n]*|/\*.*?\*/|[{}\[\],:]'
    rb"|(?:[^\s{}\[\],:\"'/]|:(?=[^\s,}\]])|/(?![/*]))+",
    re.DOTALL,
)
_TOKEN_TOML = re.compile(rb'"(?:[^"\\]|\\.)*"|\'[^\']*\'|#[^\r\n]*|[{}\[\],=]|[^\s{}\[\],=\"\']+')
_OPTION = re.compile(rb"--?(?P<name>[A-Za-z][A-Za-z0-9_.-]*)(?:=(?P<value>.+))?\Z", re.DOTALL)
_PAIR_NAMES = (b"name", b"key", b"id", b"header", b"variable")


@dataclass(slots=True)
class _Level:
    """An open object or array: the name it stands under, the name now due, the last value."""

    name: bytes
    is_array: bool
    key: bytes = b""
    last: bytes = b""
    pair: bytes = b""
    is_due: bool = False


def _json_leaves(
    data: bytes, start: int, stop: int, *, is_toml: bool = False, least: int = 0
) -> Iterator[Leaf]:
    top = _Level(b"", is_array=True)
    levels = [top]
    token = _TOKEN_TOML if is_toml else _TOKEN
    for match in token.finditer(data, start, stop):
        text = match[0]
        if text in _OPENING:
            name = top.key or top.last if not top.is_array else b""
            top = _Level(name, is_array=text == b"[")
            levels.append(top)
        elif text in _CLOSING:
            del levels[max(1, len(levels) - 1) :]
            top = levels[-1]
        elif text in _BETWEEN:
            top.key, top.is_due = top.last, True
        elif text == b",":
            top.key, top.is_due = b"", False
        elif not text.startswith(_COMMENTED):
            leaf = _json_value(match, levels, least)
            if leaf is not None:
                yield leaf


_OPENING, _CLOSING, _BETWEEN, _COMMENTED = (b"{", b"["), (b"}", b"]"), (b":", b"="), (b"//", b"/*")


def _json_value(match: re.Match[bytes], levels: list[_Level], least: int) -> Leaf | None:
    top, text = levels[-1], match[0]
    start, stop = match.span()
    if text[:1] in (b'"', b"'"):
        text, start, stop = text[1:-1], start + 1, stop - 1
    leaf: Leaf | None = None
    if top.is_array:
        if stop - start >= least:
            leaf = _listed(text, start, top, _above(levels))
    elif top.is_due:
        name = top.key
        if name.lower() in _PAIR_NAMES:
            top.pair = text
        elif top.pair and name.lower() == b"value":
            name = top.pair
        if stop - start >= least:
            leaf = Leaf(name, _above(levels), start, stop)
        top.is_due = False
    top.last = text
    return leaf


def _above(levels: list[_Level]) -> tuple[bytes, ...]:
    return tuple([level.name for level in levels[1:] if level.name])


def _listed(text: bytes, start: int, top: _Level, above: tuple[bytes, ...]) -> Leaf:
    option = _OPTION.match(text)
    if option is not None and option["value"] is not None:
        return Leaf(option["name"], above, start + option.start("value"), start + len(text))
    before = _OPTION.match(top.last)
    name = before["name"] if before is not None and before["value"] is None else top.name
    return Leaf(name, above, start, start + len(text))


# --- a name and a value a line ---

_LINE = re.compile(
    rb"(?P<indent>[ \t]*+)(?P<item>(?:- +)*+)(?:export +|set +|\?? )?[\"']?"
    rb"(?P<name>[A-Za-z0-9_./:@*$ -]*?[A-Za-z0-9_*])[\"']?[ \t]*"
    rb"(?:=>?|:(?=[ \t\r\n]|\Z)|:=)[ \t]*(?P<value>[^\r\n]*)"
)
_ITEM = re.compile(rb"(?P<indent>[ \t]*)- +(?P<value>[^\r\n]+)")
_SECTION = re.compile(rb"[ \t]*\[+(?P<name>[^\]\r\n]*)\]+[ \t]*(?:[#;].*)?\r?\Z")
_BLOCK = re.compile(rb"[|>][0-9+-]{0,2}[ \t]*(?:#.*)?\Z")
_TRIPLE = (b'"""', b"'''")
_COMMENTS = (b"#", b";", b"//", b"!")


@dataclass(slots=True)
class _Lines:
    """Where the walk over lines is: the section, and the open names by their indentation."""

    section: tuple[bytes, ...] = ()
    open: list[tuple[int, bytes]] | None = None
    pair: bytes = b""

    def above(self, indent: int) -> tuple[bytes, ...]:
        opened = self.open or []
        while opened and opened[-1][0] >= indent:
            opened.pop()
        self.open = opened
        return (*self.section, *(name for _, name in opened))


def _line_leaves(data: bytes, *, is_toml: bool) -> Iterator[Leaf]:
    at = 0
    state = _Lines()
    lines = data.splitlines(keepends=True)
    for number, line in enumerate(lines):
        stripped = line.strip()
        if stripped and not stripped.startswith(_COMMENTS[:2]):
            section = _SECTION.match(line)
            if section is not None:
                words = re.findall(rb'"[^"]*"|[^\s."]+', section["name"])
                state = _Lines(tuple(word.strip(b'"') for word in words))
            else:
                yield from _line_values(data, at, line, state, is_toml=is_toml)
                yield from _block_value(lines, number, at, state)
        at += len(line)


def _line_values(
    data: bytes, at: int, line: bytes, state: _Lines, *, is_toml: bool
) -> Iterator[Leaf]:
    match = _LINE.match(line)
    if match is None:
        yield from _item_value(at, line, state)
        return
    indent = len(match["indent"]) + len(match["item"])
    above = state.above(indent)
    name = match["name"].strip()
    start = at + match.start("value")
    value = match["value"].rstrip()
    if not value or _BLOCK.match(value):
        state.open = [*(state.open or []), (indent, name)]
        return
    if value[:1] in (b"{", b"["):
        for leaf in _json_leaves(data, start, start + len(value), is_toml=is_toml):
            yield Leaf(leaf.name or name, (*above, name, *leaf.above), leaf.start, leaf.stop)
        return
    start, stop = _unquoted(value, start)
    if name.lower() in _PAIR_NAMES:
        state.pair = value.strip(b"\"'")
    elif name.lower() == b"value" and state.pair:
        name = state.pair
    yield Leaf(name, above, start, stop, not value.startswith(_TRIPLE))


def _item_value(at: int, line: bytes, state: _Lines) -> Iterator[Leaf]:
    item = _ITEM.match(line)
    if item is None:
        return
    above = state.above(len(item["indent"]) + 1)
    start, stop = _unquoted(item["value"].rstrip(), at + item.start("value"))
    yield Leaf(above[-1] if above else b"", above, start, stop)


def _unquoted(value: bytes, start: int) -> tuple[int, int]:
    quote = value[:1]
    if quote in (b'"', b"'") and value.find(quote, 1) > 0:
        closing = value.rfind(quote)
        return start + 1, start + closing
    comment = re.search(rb"[ \t]+#", value)
    return start, start + (comment.start() if comment else len(value))


def _block_value(lines: list[bytes], number: int, at: int, state: _Lines) -> Iterator[Leaf]:
    """Yield what stands, indented, below a name that ends in a block mark."""
    match = _LINE.match(lines[number])
    if match is None or not _BLOCK.match(match["value"].rstrip()):
        return
    indent = len(match["indent"]) + len(match["item"])
    start = stop = at + len(lines[number])
    for line in lines[number + 1 :]:
        if line.strip() and len(line) - len(line.lstrip(b" \t")) <= indent:
            break
        stop += len(line)
    yield Leaf(match["name"].strip(), state.above(indent), start, stop, is_plain=False)


# --- XML ---

_ELEMENT = re.compile(rb"<(?P<name>[A-Za-z_][\w.:-]*)(?:\s[^<>]*)?>(?P<value>[^<>]+)</")
_ATTRIBUTES = re.compile(
    rb"""key\s*=\s*["'](?P<name>[^"'<>]*)["']\s+value\s*=\s*["'](?P<value>[^"'<>]+)["']"""
)
_ATTRIBUTE = re.compile(rb"""\s(?P<name>[A-Za-z_][\w.:-]*)\s*=\s*["'](?P<value>[^"'<>]+)["']""")
_PLIST = re.compile(rb"<key>(?P<name>[^<>]+)</key>\s*<string>(?P<value>[^<>]+)</")


def _xml_leaves(data: bytes) -> Iterator[Leaf]:
    for pattern in (_ELEMENT, _ATTRIBUTES, _PLIST, _ATTRIBUTE):
        for match in pattern.finditer(data):
            yield Leaf(match["name"], (), *match.span("value"))
