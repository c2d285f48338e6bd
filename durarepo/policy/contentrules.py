"""What content rules say of bytes: the patterns compiled, and what is asked beyond a pattern.

An engine only says which rules may hold; here they are confirmed with the standard library, so
that every engine comes to the same decision. A match is looked at and never kept or shown.
Source: spec/exclusion.md 3. Start at `ContentRules`.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from durarepo.policy.content_table import CONTENT_RULES, WIDE_LEAST, WIDE_RUN
from durarepo.policy.rules import Check, ContentRule, Scope, Word
from durarepo.policy.values import (
    is_drawn,
    is_password,
    is_placeholder,
)

MATCH_MAX_BYTES = 16 * 1024
"""No pattern matches more."""

CONTEXT_BYTES = 256
"""What a pattern asks for before or after its match is shorter."""

REACH_BYTES = 8192
"""How far before and after a match a check may look."""

START_BYTES = 64
"""How many first bytes of a file the rules of its start look at."""

_NO_BASE64 = re.compile(rb"[^A-Za-z0-9+/_\\\s-]")
_BASE64_NOISE = re.compile(rb"\\[rn]|\\|\s")
_URLSAFE = bytes.maketrans(b"-_", b"+/")
_HEADER_BYTES = 512
"""Base64 of a header is shorter; what begins so shortly before the end of a look is new."""
_PRIVATE_MEMBER_LEAST = 42
_WIDE_RUN = re.compile(WIDE_RUN.encode("latin-1"))
_SHAPES = bytes(0x61 if 0x20 <= one < 0x7F else 0xFF * bool(one) for one in range(256))  # noqa: PLR2004
_WIDE_SHAPES = (b"a\0" * WIDE_LEAST, b"a\0\0\0" * WIDE_LEAST)
WIDE_PROBE = rb"\x00(?:(?:[ -~]\x00){%d}|\x00\x00(?:[ -~]\x00\x00\x00){%d})" % (
    WIDE_LEAST - 1,
    WIDE_LEAST - 1,
)
"""All but the first letter of a run: beginning with a zero, it passes over text fast."""
_ESC = rb"(?:\x1b|\\e|\\x1[bB]|\\u001[bB]|\\0?33)"
_ESCAPE_BEFORE = re.compile(
    rb"(?:\\[bfnrtv0]|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|%%(?:25){0,3}[0-9A-Fa-f]{2}|=[0-9A-F]{2}"
    rb"|\[[0-9;:]{1,32}m|%s(?:\[[0-9;:?<=>]{0,32}[A-Za-z]|[()][0-9A-Z])|/bot)\Z" % _ESC
)
"""What ends in a letter or a digit and is no part of a word: escapes of texts and terminals."""
_ESCAPE_BYTES = 48
_IS_WORD = [(chr(one).isalnum() and one < 0x80) or one == 0x5F for one in range(256)]  # noqa: PLR2004
_BODY = re.compile(
    rb"(?:\\{0,2}[rn]|\s|[>|*#\"'+.-]|(?:Proc-Type|DEK-Info|Version|Comment|Hash)[^\r\n\\]{0,200}"
    rb"|%0[AaDd]){0,64}?[A-Za-z0-9+/]{32}"
)
_BODY_REACH = 600


@dataclass(frozen=True, slots=True)
class Span:
    """Where a value stands, as offsets, and the rule that says so."""

    start: int
    stop: int
    rule: str


class _Compiled:
    """A rule with its pattern."""

    def __init__(self, rule: ContentRule) -> None:
        self.rule = rule
        self.group: str | int = "secret" if "(?P<secret>" in rule.pattern else 0
        self._check = _CHECKS[rule.check]

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """The pattern, compiled when an engine first saw something: most runs need a few."""
        return re.compile(self.rule.pattern.encode("latin-1"))

    @cached_property
    def prefix(self) -> re.Pattern[bytes]:
        """What the pattern begins with, where a word has to begin."""
        return re.compile(self.rule.prefix.encode("latin-1"))

    def matches(self, data: bytes, start: int, stop: int) -> Iterator[re.Match[bytes]]:
        """Yield confirmed matches that begin in ``start`` to ``stop``."""
        return (match for match, is_confirmed in self._tries(data, start, stop) if is_confirmed)

    def _tries(self, data: bytes, start: int, stop: int) -> Iterator[tuple[re.Match[bytes], bool]]:
        """Yield what fits the pattern there, and whether it is confirmed."""
        if self.rule.prefix:
            yield from self._tries_at_prefix(data, start, stop)
            return
        end = stop + MATCH_MAX_BYTES + CONTEXT_BYTES
        match = self.pattern.search(data, start, end)
        while match is not None and match.start() < stop:
            is_confirmed = self._check(match, self.group)
            yield match, is_confirmed
            start = max(match.end(), match.start() + 1)
            if self.rule.check is Check.BASE64 and not is_confirmed:
                start = _end_of_decoded(data, start)
            match = self.pattern.search(data, start, end)

    def _tries_at_prefix(
        self, data: bytes, start: int, stop: int
    ) -> Iterator[tuple[re.Match[bytes], bool]]:
        """Try the pattern only where a word begins: most of what looks like a prefix is none."""
        end = stop + MATCH_MAX_BYTES + CONTEXT_BYTES
        for found in self.prefix.finditer(data, start, min(len(data), stop + CONTEXT_BYTES)):
            at = found.start()
            if at >= stop:
                return
            if at < start:
                continue
            match = None
            if self.rule.is_distinct or _begins_word(data, at):
                match = self.pattern.match(data, at, end)
            if match is None and at and at + data[at - 1] <= len(data):
                # A binary format may say the length before a text, and go on behind it.
                match = self.pattern.fullmatch(data, at, at + data[at - 1])
            if match is not None:
                start = max(match.end(), at + 1)
                yield match, self._check(match, self.group)

    def spans(self, data: bytes, start: int, stop: int) -> tuple[list[Span], int]:
        """Return where values stand whose matches begin there, and where to go on."""
        found: list[Span] = []
        for match, is_confirmed in self._tries(data, start, stop):
            start = max(match.end(), match.start() + 1)
            if is_confirmed:
                found.append(Span(*match.span(self.group), self.rule.id))
        return found, start


class ContentRules:
    """All content rules, compiled once; a rule's number is its place in `probes`."""

    def __init__(self, rules: Sequence[ContentRule] = CONTENT_RULES) -> None:
        """Compile ``rules``."""
        starts = [one for one in rules if one.at_start]
        self._starts = [(_start_pattern(one.pattern), one) for one in starts]
        self._any_start = _start_pattern("|".join(f"(?:{one.pattern})" for one in starts))
        probed = [_Compiled(one) for one in rules if not one.at_start]
        self._configuration = [one for one in probed if _only_configuration(one.rule)]
        self._probed = [one for one in probed if not _only_configuration(one.rule)]
        self.by_id = {one.id: one for one in (*starts, *(two.rule for two in probed))}

    @property
    def probes(self) -> list[bytes]:
        """What an engine looks for in any file, by number."""
        return [_probe(one.rule) for one in self._probed]

    @property
    def configuration_probes(self) -> list[bytes]:
        """What an engine looks for in configuration files as well."""
        return [_probe(one.rule) for one in self._configuration]

    def rule(self, number: int) -> ContentRule:
        """Return the rule of a number."""
        return self._probed[number].rule

    def first_match(
        self, number: int, data: bytes, *, start: int, stop: int
    ) -> re.Match[bytes] | None:
        """Return the first confirmed match of a rule that begins in ``start`` to ``stop``."""
        return next(self._probed[number].matches(data, start, stop), None)

    def at_start(self, data: bytes) -> ContentRule | None:
        """Return the rule that the first bytes of a file fit, or None."""
        head = data[:START_BYTES]
        if self._any_start.match(head) is None:
            return None
        return next((rule for pattern, rule in self._starts if pattern.match(head)), None)

    def has_spans(self, number: int) -> bool:
        """Return whether the values of a rule may be taken out."""
        return self._probed[number].rule.scope is Scope.SPAN

    def spans(self, number: int, data: bytes, *, start: int, stop: int) -> tuple[list[Span], int]:
        """Return where values of a rule stand whose matches begin in ``start`` to ``stop``.

        Also returns where the search for the next ones has to go on.
        """
        return self._probed[number].spans(data, start, stop)


def may_be_wide(data: bytes) -> bool:
    """Return whether text of two or four bytes a letter may stand in ``data``.

    Asked where an engine saw `WIDE_PROBE`, which holds wherever this does.
    """
    shape = data.translate(_SHAPES)
    return any(run in shape for run in _WIDE_SHAPES)


def narrowed(data: bytes) -> bytes:
    """Return what text of two or four bytes a letter in ``data`` says, a run a line."""
    return b"\n".join(run.replace(b"\0", b"") for run in _WIDE_RUN.findall(data))


def has_body(match: re.Match[bytes], rule: ContentRule) -> bool:
    """Return whether more than the header of a key stands there.

    Only a PEM header can stand alone, as in documentation; every other rule for keys matches
    a part of the key itself.
    """
    if rule.word is not Word.PRIVATE_KEYS:
        return False
    if rule.id not in ("key-pem", "key-openvpn", "key-nkey", "key-ssh2"):
        return True
    return _BODY.match(match.string, match.end(), match.end() + _BODY_REACH) is not None


def _begins_word(data: bytes, at: int) -> bool:
    """Return whether no word goes on at ``at``: an escape of JSON, a URL or a terminal is none."""
    if at == 0 or not _IS_WORD[data[at - 1]]:
        return True
    return _ESCAPE_BEFORE.search(data[max(0, at - _ESCAPE_BYTES) : at]) is not None


def _only_configuration(rule: ContentRule) -> bool:
    return rule.scope is Scope.CONFIGURATION


def _start_pattern(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode("latin-1"), re.DOTALL)


def _probe(rule: ContentRule) -> bytes:
    return rule.probe.encode("latin-1")


# --- what is asked beyond a pattern ---


def _no_check(match: re.Match[bytes], group: str | int) -> bool:
    del match, group
    return True


def _is_filled(match: re.Match[bytes], group: str | int) -> bool:
    return not is_placeholder(match[group])


def _is_drawn(match: re.Match[bytes], group: str | int) -> bool:
    return is_drawn(match[group], strict=True)


def _is_password(match: re.Match[bytes], group: str | int) -> bool:
    return is_password(match[group])


def _is_basic(match: re.Match[bytes], group: str | int) -> bool:
    value = match[group]
    try:
        user, colon, password = base64.b64decode(value + b"=" * (-len(value) % 4)).partition(b":")
    except binascii.Error:
        return False
    return bool(colon) and user.isascii() and is_password(password)


def _is_private_jwk(match: re.Match[bytes], group: str | int) -> bool:
    if is_placeholder(match[group]):
        return False
    start = max(0, match.start() - REACH_BYTES)
    around = match.string[start : match.end() + REACH_BYTES]
    if match["member"] == b"k":
        return re.search(rb'"kty\\{0,3}"\s{0,16}:\s{0,16}\\{0,3}"oct', around) is not None
    return len(match[group]) >= _PRIVATE_MEMBER_LEAST and b'"kty' in around


def _holds_header(match: re.Match[bytes], group: str | int) -> bool:
    """Decode the base64 around a match at every alignment and look for a header in it."""
    del group
    data = match.string
    window = max(0, match.start() - REACH_BYTES)
    before = _NO_BASE64.split(data[window : match.start()])[-1]
    after = _NO_BASE64.split(data[match.end() : match.end() + REACH_BYTES], maxsplit=1)[0]
    text = _BASE64_NOISE.sub(b"", before + match[0] + after).translate(_URLSAFE)
    return any(_PEM.search(_decoded(text[shift:])) for shift in range(4))


def _end_of_decoded(data: bytes, end: int) -> int:
    """Return up to where `_holds_header` has looked into base64 behind a match that ended there."""
    other = _NO_BASE64.search(data, end, end + REACH_BYTES)
    return max(end, (end + REACH_BYTES if other is None else other.start()) - _HEADER_BYTES)


def _decoded(text: bytes) -> bytes:
    return binascii.a2b_base64(text[: len(text) // 4 * 4])


_CHECKS: dict[Check, Callable[[re.Match[bytes], str | int], bool]] = {
    Check.NONE: _no_check,
    Check.BASE64: _holds_header,
    Check.JWK: _is_private_jwk,
    Check.FILLED: _is_filled,
    Check.RANDOM: _is_drawn,
    Check.PASSWORD: _is_password,
    Check.BASIC: _is_basic,
}

_PEM = re.compile(
    next(one.pattern for one in CONTENT_RULES if one.id == "key-pem").encode("latin-1")
)
