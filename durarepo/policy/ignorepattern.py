"""The pattern of one line of `.durarepoignore` as a regular expression that cannot run away.

Whoever can write into a root can write such a file, so no pattern may cost more than about its
length times that of a path. What stands between two stars is matched where it first fits and
never looked for again: a star that follows takes whatever a later place would have left to it.
The same holds for what stands between two ``**``. A class that nothing closes is looked for once.
Source: gitignore(5), spec/exclusion.md 7. Start at `compile_pattern`.
"""

import re
from collections.abc import Iterator, Sequence

_FIRST = rb"\A\*\*/|/\*\*\Z|/\*\*/|\*+|\?|\\.|"
_TOKEN = re.compile(_FIRST + rb"\[[!^]?\]?(?:\[:[a-z]+:\]|\\.|[^\]\\])*\]|.", re.DOTALL)
_TOKEN_NO_CLASS = re.compile(_FIRST + rb".", re.DOTALL)
_REPEATED = re.compile(rb"(?<![^/])\*\*/(?:\*\*/)+")
"""``**/**/`` means no more than ``**/``."""

_CLASSES = {
    b"[:alpha:]": b"A-Za-z",
    b"[:digit:]": b"0-9",
    b"[:alnum:]": b"A-Za-z0-9",
    b"[:upper:]": b"A-Z",
    b"[:lower:]": b"a-z",
    b"[:space:]": rb"\s",
    b"[:xdigit:]": b"0-9A-Fa-f",
}
_BEGIN, _END, _BETWEEN = b"**/", b"/**", b"/**/"
_FOLDERS = b"(?:.*/)?"
_STAR = b"[^/]*"


def compile_pattern(text: bytes, *, is_anchored: bool) -> re.Pattern[bytes] | None:
    """Return what matches the paths below a folder that a pattern means; None for no pattern.

    Args:
        text: the pattern without ``!`` and without slashes around it.
        is_anchored: whether it says where it begins.
    """
    tokens = list(_tokens(_REPEATED.sub(rb"**/", text)))
    is_floating = not is_anchored or tokens[0] == _BEGIN
    is_open = tokens[-1] == _END
    tokens = tokens[tokens[0] == _BEGIN : len(tokens) - is_open]
    sections = [_section(one) for one in _split(tokens, _BETWEEN)]
    parts: list[bytes] = []
    for number, section in enumerate(sections):
        floats = is_floating or number > 0
        if number < len(sections) - 1:
            parts.append(b"(?>(?:.*?/)??%s/)" % section if floats else section + b"/")
        else:
            parts.append((_FOLDERS if floats else b"") + section)
    try:
        return re.compile(b"".join(parts) + (b"/.*" if is_open else b""), re.DOTALL)
    except re.error:
        return None


def _tokens(text: bytes) -> Iterator[bytes]:
    at, tokens = 0, _TOKEN
    while (found := tokens.match(text, at)) is not None:
        if found[0] == b"[":
            tokens = _TOKEN_NO_CLASS  # nothing closes this one, nor any behind it
        yield found[0]
        at = found.end()


def _split(tokens: Sequence[bytes], at: bytes) -> list[list[bytes]]:
    """Return the runs of tokens between those that are ``at``."""
    runs: list[list[bytes]] = [[]]
    for token in tokens:
        if token == at:
            runs.append([])
        else:
            runs[-1].append(token)
    return runs


def _section(tokens: Sequence[bytes]) -> bytes:
    """Translate what stands between two ``**``; it crosses no slash but its own."""
    stars = [b"*" if token.startswith(b"*") else token for token in tokens]
    first, *rest = (b"".join(map(_one, piece)) for piece in _split(stars, b"*"))
    if not rest:
        return first
    between = b"".join(b"(?>[^/]*?%s)" % piece for piece in rest[:-1] if piece)
    return first + between + _STAR + rest[-1]


def _one(token: bytes) -> bytes:
    """Translate a token that matches one byte; only a slash matches a slash."""
    if token == b"?":
        return b"[^/]"
    if token.startswith(b"\\") and len(token) > 1:
        return re.escape(token[1:])
    if token.startswith(b"[") and len(token) > 1:
        return _class(token)
    return re.escape(token)


def _class(token: bytes) -> bytes:
    inside = token[1:-1]
    is_negated = inside[:1] in (b"!", b"^")
    inside = inside[1:] if is_negated else inside
    for name, members in _CLASSES.items():
        inside = inside.replace(name, members)
    inside = inside.replace(b"[", rb"\[")
    inside = rb"\]" + inside[1:] if inside.startswith(b"]") else inside
    return (b"(?!/)[^" if is_negated else b"(?!/)[") + inside + b"]"
