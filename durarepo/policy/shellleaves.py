"""Leaves of files that a shell reads, or that hand their lines to one: profiles, Makefiles.

What a shell takes for a word is a value, and no more of its line: what follows is a command of
somebody. Only values whose names say secret are leaves here, since nothing else would count.
Source: POSIX.1-2024 Shell Command Language 2.2 and 2.3; documentation of fish, csh, make and
Dockerfile. Start at `shell_leaves`.
"""

import re
from collections.abc import Iterator

from durarepo.policy.leaves import Leaf
from durarepo.policy.values import says_secret

_NAME = rb"(?P<name>[A-Za-z_][A-Za-z0-9_.-]*+)"
_ASSIGNED = re.compile(
    rb"(?<![A-Za-z0-9_.-])(?:"
    rb"(?:set(?:[ \t]++-[A-Za-z-]++)*+|setenv|ENV|ARG)[ \t]++@?(?P<spaced>[A-Za-z_][A-Za-z0-9_]*+)"
    rb"[ \t]++(?![=:])|" + _NAME + rb"[\"'}]{0,2}+(?:\+?=|[ \t]*+[:?]{0,3}+=?[ \t]++))"
)
"""From a name to its value: assigned, or behind a blank as some shells have it."""

_WORD = re.compile(rb"(?:\"(?:[^\"\\\r\n]|\\.)*+\"|'[^'\r\n]*+'|\\[^\r\n]|[^\s;&|()<>\"'\\`])++")
_SIGNED = (b"=", b":")
_QUOTES = (b'"', b"'")
_LINE_REACH = 2000
"""So much of a line before a value is looked at for the quote that encloses it."""


def shell_leaves(data: bytes) -> Iterator[Leaf]:
    """Yield the values whose names say secret; those in comments as well."""
    for match in _ASSIGNED.finditer(data):
        name = match["spaced"] or match["name"]
        if not says_secret(name):
            continue
        is_signed = any(sign in match[0][len(name) :] for sign in _SIGNED)
        if match["spaced"] or is_signed:
            yield from _valued(data, name, match.end())


def _valued(data: bytes, name: bytes, start: int) -> Iterator[Leaf]:
    word = _WORD.match(data, start)
    stop = word.end() if word is not None else start
    mark = data[stop : stop + 1]
    if mark == b"\\" or (mark in _QUOTES and not _is_within(data, start, mark)):
        # it goes on beyond the line
        end = data.find(b"\n", stop)
        yield Leaf(name, (), start, end if end >= 0 else len(data), is_plain=False)
    elif word is not None:
        quoted = word[0][:1] in _QUOTES and word[0].find(word[0][:1], 1) == len(word[0]) - 1
        yield Leaf(name, (), start + quoted, stop - quoted)


def _is_within(data: bytes, start: int, mark: bytes) -> bool:
    """Return whether a value stands within quotes that were opened before it on its line."""
    before = data[max(0, start - _LINE_REACH) : start]
    return before[before.rfind(b"\n") + 1 :].count(mark) % 2 == 1
