"""What says secret without the form of its file: strings within values, and what no reader saw.

`inner_spans` are values that stand exactly where it says, in strings that hold settings of their
own. `has_loose_secret` only doubts: something that says secret still stands there, so the file
must go. No pattern looks further than a fixed number of bytes.
Source: spec/exclusion.md 5; documentation of .NET, ODBC and libpq (connection strings).
Start at `inner_spans`.
"""

import re
from collections.abc import Iterator

from durarepo.policy.values import is_assigned_secret, is_password, says_secret

_WORD = (
    rb"(?i:pass(?:word|wd|phrase|code)?|pwd|secrets?|token|keys?|credentials?|auth(?:orization)?"
    rb"|cookies?|bearer|pat)"
)
_LOOSE = re.compile(
    _WORD + rb"(?P<rest>[A-Za-z0-9_]{0,16}+)[\"'\\]{0,4}+\s{0,8}+"
    rb"(?:(?:=>|:=|[:=])\s{0,64}(?:[&!][^\s]{1,40}\s{1,8}){0,3}(?:[|>][+-]?[0-9]?\s{1,80})?"
    rb"|,?\s{0,16}[\"'\\]{0,4}(?i:value|val)[\"'\\]{0,4}\s{0,8}[:=]\s{0,8}"
    rb"|(?<=[\"']),\s{0,16}(?=[\"'])|(?<=[ \t])(?=[\"'])"
    rb"|>\s{0,16}(?:<!\[CDATA\[)?\s{0,16}|[^<>]{0,80}>\s{0,80}<[A-Za-z]{1,12}>\s{0,16}"
    rb"|</[A-Za-z]{1,12}>[^\0]{0,200}?<(?:value|string|data)>\s{0,16})"
    rb"[\"'\\]{0,4}(?P<value>[^\s\"'<>,;{}\[\]\\]{16,512})"
)
_CONNECTION = re.compile(
    rb"(?i)(?<![A-Za-z0-9_])(?:password|pwd|accountkey|sharedaccesskey)[ \t]{0,4}=[ \t]{0,4}"
    rb"(?P<secret>[^\s;\"'\\<>&]{8,400})"
)
_CONNECTION_WORDS = (b"password", b"pwd", b"accesskey", b"accountkey")
_SERVER = re.compile(
    rb"(?i)(?<![A-Za-z])(?:server|data source|host|addr|address|network address|endpoint"
    rb"|accountname|user id|uid|user|username|initial catalog|database|dbname)[ \t]{0,4}=[^=]"
)
_EMBEDDED = re.compile(
    rb"\\(?P<rest>)\\{0,6}\"[ \t]{0,8}:[ \t]{0,8}\\{1,7}\""
    rb"(?P<secret>[^\\\"\s]{16,4000})\\{1,7}\""
)
"""A member of JSON within a string of JSON, from the end of its name."""

_SLASHED_URL = re.compile(
    rb":\\/\\/[^\s/:@\"'<>\\]{0,80}:(?P<secret>[^\s/@\"'<>\\]{6,200})@[A-Za-z0-9\[_$]"
)
_OPTION = re.compile(
    rb"-(?<![A-Za-z0-9_-]-)-?(?P<name>[A-Za-z][A-Za-z0-9_-]{0,60})[ =][\"']?"
    rb"(?P<secret>(?!-)[^\s\"'\\<>]{16,400})"
)
_ASSIGNED = re.compile(
    rb"(?P<rest>)(?<=[A-Za-z0-9])(?:=|:[ ]{1,4}(?:(?i:token|bearer|basic|key|apikey)[ ])?)"
    rb"\\{0,3}(?P<quote>[\"']?)(?=[^\s\"'\\<>&,;(){}\[\]]{16})"
)
"""A setting within a value: of an environment, a header or an address. Seen from its sign on."""

_ASSIGNED_VALUE = re.compile(rb"[^\s\"'\\<>&,;(){}\[\]]{16,4000}")
_NAME_BEFORE = re.compile(rb"[A-Za-z0-9_.-]*\Z")
_NAME_REACH = 60
_HEAD = 64
"""So much of a value within a value tells what it is; one may begin at each of its bytes."""

_WORDS = re.compile(rb"[a-z0-9]+(?:[-_.][a-z0-9]+){2,}\Z")
"""Small words between separators: a name of something, nearly always."""

_CONNECTION_REACH = 300


def inner_spans(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where secrets stand in connection strings, URLs, command lines and inner JSON."""
    yield from _in_connections(data)
    for match in _SLASHED_URL.finditer(data) if b":\\/" in data else ():
        if is_password(match["secret"]):
            yield match.span("secret")
    yield from _in_values(data)
    for match in _OPTION.finditer(data):
        if says_secret(match["name"]) and is_assigned_secret(match["secret"]):
            yield match.span("secret")
    for match in _EMBEDDED.finditer(data) if b'\\"' in data else ():
        if is_assigned_secret(match["secret"]) and says_secret(_name_of(match)):
            yield match.span("secret")


def _in_values(data: bytes) -> Iterator[tuple[int, int]]:
    for match in _ASSIGNED.finditer(data):
        value = _ASSIGNED_VALUE.match(data, match.end()) if says_secret(_name_of(match)) else None
        head = value[0][:_HEAD] if value is not None else b""
        if value is not None and is_assigned_secret(head) and not _WORDS.match(head):
            yield value.span()


def _in_connections(data: bytes) -> Iterator[tuple[int, int]]:
    lowered = data.lower()
    if not any(word in lowered for word in _CONNECTION_WORDS):
        return
    for match in _CONNECTION.finditer(data):
        if is_password(match["secret"]) and _is_in_connection(match):
            yield match.span("secret")


def _is_in_connection(match: re.Match[bytes]) -> bool:
    """Return whether a password stands beside a server or a user in one string."""
    before = match.string[max(0, match.start() - _CONNECTION_REACH) : match.start()]
    after = match.string[match.end() : match.end() + _CONNECTION_REACH]
    line = re.split(rb"[\r\n\"'<>]", before)[-1], re.split(rb"[\r\n\"'<>]", after, maxsplit=1)[0]
    return any(_SERVER.search(part) is not None for part in line)


def has_loose_secret(data: bytes) -> bool:
    """Return whether a value that looks drawn stands behind a name that says secret."""
    return any(
        is_assigned_secret(match["value"])
        and not _WORDS.match(match["value"])
        and says_secret(_name_of(match))
        for match in _LOOSE.finditer(data)
    )


def _name_of(match: re.Match[bytes]) -> bytes:
    before = match.string[max(0, match.start() - _NAME_REACH) : match.start()]
    held = _NAME_BEFORE.search(before)
    return (held[0] if held is not None else b"") + match.string[match.start() : match.end("rest")]
