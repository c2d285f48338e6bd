"""Leaves of what is made of tokens: JSON and what is like it, flow values of YAML, and TOML.

A string that nothing closes ends with its line, and a comment that nothing closes with the file,
so every byte belongs to one token and is looked at once.
Source: RFC 8259, JSON5, YAML 1.2 (flow style), TOML 1.0. Start at `token_leaves`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from durarepo.policy.leaves import (
    NAME_MOST,
    NESTING_MOST,
    OPTION,
    PAIR_NAMES,
    VALUE_NAMES,
    Leaf,
    NestingError,
    unescaped,
)


class Tokens(StrEnum):
    """Which tokens a text is made of."""

    JSON = "json"
    FLOW = "flow"  # of YAML
    TOML = "toml"


_DOUBLE = rb'"[^"\\\r\n]*+(?:\\(?:\r\n|.|\Z)[^"\\\r\n]*+)*+(?:"|(?=[\r\n])|\Z)'
_SINGLE = rb"'[^'\\\r\n]*+(?:\\(?:\r\n|.|\Z)[^'\\\r\n]*+)*+(?:'|(?=[\r\n])|\Z)"
_LITERAL = rb"'[^'\r\n]*+(?:''[^'\r\n]*+)*+(?:'|(?=[\r\n])|\Z)"
_LONG = (
    rb'"""[^"\\]*+(?:(?:\\(?:.|\Z)|"{1,2}(?!"))[^"\\]*+)*+(?:"{3,5}|\Z)'
    rb"|'''[^']*+(?:'{1,2}(?!')[^']*+)*+(?:'{3,5}|\Z)"
)
_SLASHES = rb"//[^\r\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)"
_INSIDE = rb"[^\s{}\[\],:]|:(?=[^\s,}\]{\[\"'])"
_PATTERNS = {
    Tokens.JSON: re.compile(
        b"|".join((_DOUBLE, _SINGLE, _SLASHES, rb"[{}\[\],:]"))
        + rb"|(?:[^\s{}\[\],:\"'/]|:(?=[^\s,}\]{\[\"'])|/(?![/*]))++",
        re.DOTALL,
    ),
    Tokens.FLOW: re.compile(
        b"|".join((_DOUBLE, _LITERAL, rb"(?<![^\s,{\[])#[^\r\n]*+", rb"[{}\[\],:]"))
        + rb"|[^\s{}\[\],:\"'](?:%s)*+" % _INSIDE,
        re.DOTALL,
    ),
    Tokens.TOML: re.compile(
        b"|".join((_LONG, _DOUBLE, rb"'[^'\r\n]*+(?:'|(?=[\r\n])|\Z)", rb"#[^\r\n]*+"))
        + rb"|[{}\[\],=\n]|[^\s{}\[\],=\"'#]++",
        re.DOTALL,
    ),
}
_OPENING, _CLOSING, _BETWEEN = (b"{", b"["), (b"}", b"]"), (b":", b"=")
_COMMENTS = {Tokens.JSON: (b"//", b"/*"), Tokens.FLOW: (b"#",), Tokens.TOML: (b"#",)}
_QUOTES = (b'"', b"'")
_TRIPLE = (b'"""', b"'''")
_MARK = re.compile(rb"[&!][^\s,]*\Z")
"""An anchor or a tag before a value of YAML."""


@dataclass(slots=True)
class _Level:
    """An open object or array: what it stands under, the name now due, the last value."""

    name: bytes
    above: tuple[bytes, ...]
    is_array: bool
    key: bytes = b""
    last: bytes = b""
    pair: bytes = b""
    value: Leaf | None = None
    is_due: bool = False


def token_leaves(
    data: bytes, start: int, stop: int, *, tokens: Tokens, least: int = 0
) -> Iterator[Leaf]:
    """Yield the leaves that stand in ``start`` to ``stop``.

    Args:
        data: the file.
        start: where the value begins.
        stop: where it ends.
        tokens: what it is made of.
        least: shorter leaves may be left out.

    Raises:
        NestingError: it nests too deep.
    """
    reader = _Reader(tokens, least)
    for match in _PATTERNS[tokens].finditer(data, start, stop):
        yield from reader.take(match)


@dataclass(slots=True)
class _Reader:
    """Where the walk over tokens is."""

    tokens: Tokens
    least: int
    levels: list[_Level] = field(default_factory=lambda: [_Level(b"", (), is_array=True)])
    parts: list[bytes] = field(default_factory=list)
    is_header: bool = False

    def take(self, match: re.Match[bytes]) -> Iterator[Leaf]:
        """Take the next token; yield the leaves that it is the value of."""
        text = match[0]
        if self.tokens is Tokens.TOML and len(self.levels) == 1 and self._take_outer(text):
            return
        top = self.levels[-1]
        if text in _OPENING:
            self._open(top, text)
        elif text in _CLOSING:
            del self.levels[max(1, len(self.levels) - 1) :]
        elif text in _BETWEEN:
            top.key = (b".".join(self.parts) or top.last)[-NAME_MOST:]
            self.parts, top.is_due = [], True
        elif text == b",":
            top.key, top.last = b"", top.last if top.is_array else b""
            self.parts, top.is_due = [], False
        elif not text.startswith(_COMMENTS[self.tokens]) and text != b"\n":
            yield from self._value(match, top)

    def _take_outer(self, text: bytes) -> bool:
        """Take what is neither name nor value between the statements of TOML."""
        top = self.levels[0]
        if text == b"\n":
            if self.is_header:
                names = tuple(name[-NAME_MOST:] for name in self.parts[:NESTING_MOST])
                self.levels[0] = _Level(b"", names, is_array=False)
            else:
                top.key, top.is_due, top.is_array = b"", False, False
            self.parts, self.is_header = [], False
        elif not top.is_due and text in (b"[", b"]"):
            self.is_header = True
        else:
            top.is_array = False
            return False
        return True

    def _open(self, top: _Level, text: bytes) -> None:
        if len(self.levels) > NESTING_MOST:
            raise NestingError
        name = (top.key or top.last)[-NAME_MOST:] if not top.is_array else b""
        above = (*top.above, *self._split(name)) if name else top.above
        self.levels.append(_Level(name, above, is_array=text == b"["))
        self.parts = []
        top.is_due = False

    def _value(self, match: re.Match[bytes], top: _Level) -> Iterator[Leaf]:
        text = match[0]
        start, stop = match.span()
        marks = 3 if text.startswith(_TRIPLE) and self.tokens is Tokens.TOML else 1
        is_quoted = text.startswith(_QUOTES)
        if is_quoted:
            start += marks
            stop = max(start, stop - marks) if text.endswith(text[:marks]) else stop
        elif self.tokens is Tokens.FLOW and _MARK.match(text):
            return
        text = text[start - match.start() : stop - match.start()]
        if top.is_array:
            if stop - start >= self.least:
                yield _listed(text, start, top)
        elif top.is_due:
            above = (*top.above, *names) if (names := self._split(top.key)[:-1]) else top.above
            yield from self._member(Leaf(top.key, above, start, stop), text, top)
        elif self.tokens is Tokens.TOML:
            self.parts += [unescaped(text)] if is_quoted else [p for p in text.split(b".") if p]
        else:
            text = unescaped(text)
        top.last = text

    def _split(self, name: bytes) -> list[bytes]:
        return name.split(b".") if self.tokens is Tokens.TOML else [name]

    def _member(self, leaf: Leaf, text: bytes, top: _Level) -> Iterator[Leaf]:
        """Yield a value under its name, and under the name of the pair that it belongs to."""
        top.is_due = False
        name = leaf.name.lower()
        if name in PAIR_NAMES:
            top.pair = unescaped(text)
        elif name in VALUE_NAMES:
            top.value = leaf
        if leaf.stop - leaf.start >= self.least:
            yield leaf
        if top.pair and top.value is not None:
            value, top.value = top.value, None
            yield Leaf(top.pair, value.above, value.start, value.stop, value.is_plain)


def _listed(text: bytes, start: int, top: _Level) -> Leaf:
    if text[:1] == b"-":
        option = OPTION.match(text)
        if option is not None and option["value"] is not None:
            return Leaf(option["name"], top.above, start + option.start("value"), start + len(text))
    before = OPTION.match(top.last) if top.last[:1] == b"-" else None
    name = before["name"] if before is not None and before["value"] is None else top.name
    return Leaf(name, top.above, start, start + len(text))
