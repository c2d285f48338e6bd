"""Values that were taken out of one place, looked for in the rest of the same file.

A login that stands under its name stands in a command, an address or a note as well, often under
no name at all. What is sought are its spellings: as it is, and as JSON and URLs write it. Pure;
what is sought is never kept. What it costs grows with the length of the file and no faster.
Source: spec/exclusion.md 5. Start at `repeated`.
"""

import re
from collections.abc import Iterator, Mapping

from durarepo.policy.contentrules import Span
from durarepo.policy.leaves import unescaped
from durarepo.policy.values import is_telling

_VALUE_MOST = 4096
"""Longer values are no passwords or tokens; they are not looked for again."""

_FEW = 32
"""So many are looked for one by one; more at once, by their last bytes."""

_TAIL = 8
_SAME_TAIL_MOST = 16
_PARTS = re.compile(rb"[^\s;,&\"']+")
_NAMED_PART = re.compile(rb"[A-Za-z0-9_.-]{1,60}[=:](?=[^=])")


class RepeatsError(Exception):
    """So many values end alike that looking for all of them would take too long."""


def repeated(data: bytes, taken: Mapping[bytes, str]) -> list[Span]:
    """Return where values stand that were taken out elsewhere.

    Args:
        data: the file without them.
        taken: the values, each with the rule by which it went.

    Raises:
        RepeatsError: too many of them end alike.
    """
    sought = {one: rule for value, rule in taken.items() for one in _spellings(value)}
    if not sought:
        return []
    if len(sought) <= _FEW:
        return [
            Span(at, at + len(one), rule)
            for one, rule in sought.items()
            for at in _places(data, one)
        ]
    return list(_by_tail(data, sought))


def _spellings(value: bytes) -> Iterator[bytes]:
    """Yield what a value and the parts of it look like, where that tells it from any other."""
    if len(value) > _VALUE_MOST:
        return
    said = unescaped(value)
    words = _PARTS.findall(said)
    inner = [word[match.end() :] for word in words if (match := _NAMED_PART.match(word))]
    for one in (value, said, *words, *inner):
        if is_telling(one):
            escaped = one.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
            yield from (one, escaped, escaped.replace(b"/", b"\\/"))
            yield from (_quoted(one, kept) for kept in (_UNRESERVED, _UNRESERVED | {0x2F}))


_UNRESERVED = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"  # RFC 3986, 2.3
)


def _quoted(value: bytes, kept: frozenset[int]) -> bytes:
    """Return bytes as they stand in a URL."""
    return b"".join(bytes([one]) if one in kept else b"%%%02X" % one for one in value)


def _places(data: bytes, value: bytes) -> Iterator[int]:
    at = data.find(value)
    while at >= 0:
        yield at
        at = data.find(value, at + len(value))


def _by_tail(data: bytes, sought: Mapping[bytes, str]) -> Iterator[Span]:
    tails: dict[bytes, list[bytes]] = {}
    for one in sought:
        tails.setdefault(one[-_TAIL:], []).append(one)
    if max(map(len, tails.values())) > _SAME_TAIL_MOST:
        raise RepeatsError
    for at in range(len(data) - _TAIL + 1):
        if data[at : at + _TAIL] in tails:
            stop = at + _TAIL
            for one in tails[data[at:stop]]:
                if len(one) <= stop and data.startswith(one, stop - len(one)):
                    yield Span(stop - len(one), stop, sought[one])
