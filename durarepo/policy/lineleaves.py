"""Leaves of files with a name and a value a line: YAML, INI, properties, rc files.

One reader for all of them, since a name does not say which one a file is: whatever any of them
would take for a value is one. Nothing is looked at more often than a line is long.
Source: YAML 1.2, git-config(1), java.util.Properties, configparser. Start at `line_leaves`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from durarepo.policy.leaves import (
    BOM,
    NAME_MOST,
    NESTING_MOST,
    OPTION,
    PAIR_NAMES,
    VALUE_NAMES,
    Leaf,
    NestingError,
    unescaped,
)
from durarepo.policy.tokenleaves import Tokens, token_leaves
from durarepo.policy.values import says_secret

_COMMENT = re.compile(rb"[ \t]*+[#;]++[ \t]*+")
_LINE = re.compile(
    rb"(?P<indent>[ \t]*+)(?P<item>(?:- +)*+)(?:export +|set +|\?? )?[\"']?"
    rb"(?P<name>[A-Za-z0-9_./:@*$ -]*?[A-Za-z0-9_*])[\"']?[ \t]*"
    rb"(?:=>?|:(?=[ \t\r\n]|\Z)|:=)[ \t]*(?P<value>[^\r\n]*)"
)
_PROPERTY = re.compile(
    rb"[ \t]*+(?P<name>[A-Za-z0-9_.\\-]++)(?P<between>[ \t]*+[:=]|[ \t])[ \t]*+(?P<value>[^\r\n]*)"
)
_QUOTED = re.compile(
    rb"(?P<indent>[ \t]*+)(?P<item>(?:- +)*+)\"(?P<name>[^\"\r\n]*+)\"[ \t]*+[:=]"
    rb"[ \t]*+(?P<value>[^\r\n]*)"
)
"""A name that escapes may stand in."""

_ITEM = re.compile(rb"(?P<indent>[ \t]*+)(?:- +)*+(?P<value>[^\r\n]+)")
_SECTION = re.compile(rb"[ \t]*+\[++(?P<name>[^\]\r\n]*+)\]++[ \t]*+(?P<rest>[^\r\n]*)")
_WORD = re.compile(rb'"[^"]*"|[^\s."]+')
_WHOLE = re.compile(
    rb'(?P<held>"(?:[^"\\]|\\.)*+"'
    rb"|'(?:[^']|'')*+')(?=[ \t,]*+(?:[#;]|\Z))",
    re.DOTALL,
)
"""A value in quotes, and nothing but a comment behind it."""

_BLOCK = re.compile(rb"[|>][0-9+-]{0,2}[ \t]*(?:#.*)?\Z")
_MARKS = re.compile(rb"(?:(?:&[^\s]*|!!?(?:str|binary)?|!<[^\s]*)(?:[ \t]+|\Z))+")
"""Anchors, and the tags that change nothing."""
_TRIPLE = (b'"""', b"'''")
_QUOTES = (b'"', b"'")
_FLOW = (b"{", b"[")


@dataclass(slots=True)
class _Block:
    """A value of several lines that is still open, and how far it reaches."""

    leaf: Leaf
    indent: int


@dataclass(slots=True)
class _Lines:
    """Where the walk over lines is.

    ``open`` are the names that enclose, each with its indentation and the names above it;
    ``pending`` is a name whose value may stand on the next line; ``joined`` is a value that a
    backslash carries on to the next one; ``option`` is an item that names the next one.
    """

    section: tuple[bytes, ...] = ()
    open: list[tuple[int, tuple[bytes, ...]]] = field(default_factory=list)
    blocks: list[_Block] = field(default_factory=list)
    pending: tuple[int, bytes] | None = None
    joined: Leaf | None = None
    option: bytes = b""
    pair: bytes = b""
    value: Leaf | None = None

    def above(self, indent: int) -> tuple[bytes, ...]:
        """Return the names that enclose what stands so far from the left."""
        while self.open and self.open[-1][0] >= indent:
            self.open.pop()
        return self.open[-1][1] if self.open else self.section

    def begin(self, section: bytes) -> None:
        """Begin a section; nothing of the one before encloses what follows."""
        words = _WORD.findall(section)[:NESTING_MOST]
        self.section = tuple(word.strip(b'"')[-NAME_MOST:] for word in words)
        self.open, self.pending = [], None
        self.pair, self.value = b"", None

    def enclose(self, indent: int, name: bytes) -> None:
        """Let a name enclose what stands further right than it."""
        above = self.above(indent)
        if len(above) > NESTING_MOST:
            raise NestingError
        self.open.append((indent, (*above, name[-NAME_MOST:])))


def line_leaves(data: bytes) -> Iterator[Leaf]:
    """Yield the leaves of a file; those in comments as well.

    Raises:
        NestingError: it nests too deep.
    """
    at = len(BOM) if data.startswith(BOM) else 0
    state = _Lines()
    for line in data[at:].splitlines(keepends=True):
        text = line.rstrip()
        if text:
            yield from _closed(state, at, len(text) - len(text.lstrip(b" \t")))
            yield from _of_line(data, at, text, state)
        at += len(line)
    yield from _closed(state, at, -1)


def comment_leaves(data: bytes) -> Iterator[Leaf]:
    """Yield the leaves of lines that a ``#`` switches off."""
    at = 0
    for line in data.splitlines(keepends=True) if b"#" in data else ():
        comment = _COMMENT.match(line)
        if comment is not None:
            yield from _of_comment(data, at + comment.end(), line[comment.end() :].rstrip())
        at += len(line)


def _closed(state: _Lines, at: int, indent: int) -> Iterator[Leaf]:
    """Yield the values of several lines that end before a line."""
    while state.blocks and state.blocks[-1].indent >= indent:
        leaf = state.blocks.pop().leaf
        yield Leaf(leaf.name, leaf.above, leaf.start, at, is_plain=False)


def _of_line(data: bytes, at: int, line: bytes, state: _Lines) -> Iterator[Leaf]:
    if state.joined is not None:
        yield from _carried(at, line, state)
        return
    comment = _COMMENT.match(line)
    if comment is not None:
        yield from _of_comment(data, at + comment.end(), line[comment.end() :])
        return
    section = _SECTION.match(line)
    if section is not None and _is_section(section):
        state.begin(section["name"])
        at, line = at + section.start("rest"), section["rest"]
    if line.strip():
        yield from _of_statement(data, at, line, state)


def _is_section(match: re.Match[bytes]) -> bool:
    return b"," not in match["name"] and not match["rest"].startswith((b",", b":", b"="))


def _of_comment(data: bytes, at: int, line: bytes) -> Iterator[Leaf]:
    """Yield the value of a line that somebody has switched off: it is still there."""
    for leaf in _of_statement(data, at, line, _Lines()):
        if b" " not in data[leaf.start : leaf.stop]:
            yield leaf


def _of_statement(data: bytes, at: int, line: bytes, state: _Lines) -> Iterator[Leaf]:
    match = _found(line)
    if match is None:
        yield from _unnamed(data, at, line, state)
        return
    groups = match.groupdict(b"")
    indent = len(groups.get("indent", b"")) + len(groups.get("item", b""))
    name, start, value = groups["name"].strip(), at + match.start("value"), groups["value"]
    state.pending, state.option = None, b""
    if groups.get("item"):
        state.pair, state.value = b"", None
    marks = _MARKS.match(value)
    if marks is not None:
        start, value = start + marks.end(), value[marks.end() :]
    if not value:
        state.pending = (indent, name)
        state.enclose(indent, name)
    elif _BLOCK.match(value):
        above = state.above(indent)
        state.enclose(indent, name)
        stop = at + len(line)
        state.blocks.append(_Block(Leaf(name, above, stop, stop), indent))
    else:
        leaf = Leaf(name, state.above(indent), start, start + len(value))
        if value.startswith(_QUOTES) and value.find(value[:1], 1) < 0:
            state.blocks.append(_Block(leaf, indent))
        yield from _valued(data, leaf, state)


def _found(line: bytes) -> re.Match[bytes] | None:
    """Return the name and the value of a line; the reading in which the name says secret wins."""
    if b"\\" in line:
        quoted = _QUOTED.match(line)
        if quoted is not None:
            return quoted
    match, other = _LINE.match(line), _PROPERTY.match(line)
    if other is None or not says_secret(unescaped(other["name"])):
        return match
    value = other["value"]
    if not other["between"].strip() and b" " in value and not value.startswith(_QUOTES):
        return match  # a sentence
    if match is None or match.start("value") > other.start("value"):
        return other
    return match


def _valued(data: bytes, leaf: Leaf, state: _Lines) -> Iterator[Leaf]:
    value = data[leaf.start : leaf.stop]
    if value.startswith(_FLOW):
        above = (*leaf.above, leaf.name)
        yield from _flow(data, leaf.start, leaf.stop, above, state)
        return
    if value.endswith(b"\\") and not value.startswith((b'"', b"'")):
        state.joined = leaf
        return
    start, stop = _unquoted(value, leaf.start)
    leaf = Leaf(leaf.name, leaf.above, start, stop, not value.startswith(_TRIPLE))
    yield leaf
    lowered = leaf.name.lower()
    if lowered in PAIR_NAMES:
        state.pair = data[start:stop]
    elif lowered in VALUE_NAMES:
        state.value = leaf
    if state.pair and state.value is not None:
        held, state.value = state.value, None
        yield Leaf(state.pair, held.above, held.start, held.stop, held.is_plain)


def _carried(at: int, line: bytes, state: _Lines) -> Iterator[Leaf]:
    """Yield a value that began on the line before."""
    leaf, state.joined = state.joined, None
    if leaf is None:
        return
    begins = len(line) - len(line.lstrip(b" \t"))
    is_empty = leaf.stop - leaf.start == 1  # nothing but the backslash
    start = at + begins if is_empty else leaf.start
    joined = Leaf(leaf.name, leaf.above, start, at + len(line), is_empty and leaf.is_plain)
    if line.endswith(b"\\"):
        state.joined = Leaf(leaf.name, leaf.above, start, at + len(line), is_plain=False)
        return
    yield joined


def _unnamed(data: bytes, at: int, line: bytes, state: _Lines) -> Iterator[Leaf]:
    """Yield the value of a line without a name: an item, or what a name before it stands for."""
    item = _ITEM.match(line)
    if item is None:
        return
    start, stop = at + item.start("value"), at + len(line)
    indent = item.start("value")
    is_item = indent > len(item["indent"])
    if data[start : start + 1] in _FLOW:
        yield from _flow(data, start, stop, state.above(indent), state)
        return
    pending, state.pending = state.pending, None
    option, state.option = state.option, b""
    marks = _MARKS.match(data[start:stop])
    start += marks.end() if marks is not None else 0
    span = _unquoted(data[start:stop], start)
    state.option = _option_in(data[slice(*span)])
    if option or is_item:
        above = state.above(len(item["indent"]) + 1)
        yield Leaf(option or (above[-1] if above else b""), above, *span)
    elif pending is not None and indent > pending[0]:
        yield Leaf(pending[1], state.above(pending[0]), *span)


def _flow(
    data: bytes, start: int, stop: int, above: tuple[bytes, ...], state: _Lines
) -> Iterator[Leaf]:
    """Yield the leaves of a flow value, as far as it stands on one line."""
    state.option = b""
    for leaf in token_leaves(data, start, stop, tokens=Tokens.FLOW):
        name = leaf.name or (above[-1] if above else b"")
        state.option = _option_in(data[leaf.start : leaf.stop])
        yield Leaf(name, (*above, *leaf.above), leaf.start, leaf.stop, leaf.is_plain)


def _option_in(value: bytes) -> bytes:
    """Return the name of an option that its value follows, or nothing."""
    match = OPTION.match(value) if value.startswith(b"-") else None
    return match["name"] if match is not None and match["value"] is None else b""


def _unquoted(value: bytes, start: int) -> tuple[int, int]:
    """Return where a value stands within its quotes, or before a comment and a last comma."""
    whole = _WHOLE.match(value)
    if whole is not None:
        return start + 1, start + whole.end("held") - 1
    quote = value[:1]
    if quote in (b'"', b"'") and value.find(quote, 1) > 0:
        return start + 1, start + value.rfind(quote)
    ends = [end for mark in (b" #", b"\t#", b" ;", b"\t;") if (end := value.find(mark)) >= 0]
    held = value[: min(ends, default=len(value))].rstrip(b" \t,")
    return start, start + len(held)
