"""Values taken out of files whose form is certain; everything else of the file stays as it is.

The same bytes always become the same bytes, so that deduplication holds. What cannot be taken
out with certainty is refused, and the caller leaves the file out. A value is never kept.
Source: spec/exclusion.md 5. Start at `redact`, or `LineRedactor` for text of any length.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from durarepo.policy.contentrules import ContentRules, Span
from durarepo.policy.forms import Form, Profile, Syntax
from durarepo.policy.leaves import Leaf, iter_leaves
from durarepo.policy.rules import Rule, Word
from durarepo.policy.scanning import Engine, find_spans
from durarepo.policy.values import (
    ASSIGNED_LEAST,
    is_assigned_secret,
    is_drawn,
    is_set,
    says_secret,
)

STRUCTURED_RULES = (
    Rule(
        id="login-value",
        word=Word.CREDENTIALS,
        reason="a value under a name that says secret, in settings known to hold logins",
        source="documentation of the programs that the file names stand for",
    ),
    Rule(
        id="login-store",
        word=Word.CREDENTIALS,
        reason="a login in a file that is little else; it goes as a whole",
        source="Docker and Kubernetes documentation",
    ),
    Rule(
        id="kubernetes-secret",
        word=Word.CREDENTIALS,
        reason="a value of a Kubernetes Secret",
        source="Kubernetes documentation",
    ),
)
"""Rules that need the form of the file; they have no pattern."""

RULE_ASSIGNED = "assigned"
RULE_LOGIN, RULE_STORE, RULE_KUBERNETES = (one.id for one in STRUCTURED_RULES)

_NUMBER_OF_TRIES = 2
_AROUND_LOGINS = frozenset(
    {b"env", b"environment", b"headers", b"http_headers", b"env_http_headers", b"secrets"}
    | {b"credentials", b"api-key", b"api_key", b"apikey", b"apikeys", b"api_keys", b"tokens"}
)
_AUTH_NAMES = frozenset(
    {b"auth", b"_auth", b"npmauthident", b"identitytoken", b"registrytoken", b"id-token"}
)
_IN_LOGINS = (
    re.compile(rb"://[^\s/:@\"'<>\\]{0,80}:(?P<secret>[^\s/@\"'<>\\]{3,400})@[A-Za-z0-9\[_]"),
    re.compile(rb"://(?P<secret>[A-Za-z0-9_.~-]{20,400})@[A-Za-z0-9\[_]"),
    re.compile(rb"(?i:\b(?:basic|bearer|token)) (?P<secret>[A-Za-z0-9+/=._~-]{12,4000})"),
)
_SECRET_KIND = re.compile(
    rb"(?m)^[ \t-]*[\"']?kind[\"']?[ \t]*:[ \t]*[\"']?Secret\b|\"kind\"\s*:\s*\"Secret\""
)
_SECRET_PARTS = frozenset({b"data", b"stringData"})


@dataclass(frozen=True, slots=True)
class Redacted:
    """A file without its secrets: the bytes, the rules by which values went, and how many."""

    data: bytes
    rules: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file from which a secret cannot be taken with certainty, and the rule that found it."""

    rule: str


def marker(rule: str) -> bytes:
    """Return what stands where a value stood.

    It is a plain value in JSON strings, YAML, TOML strings, INI, XML and URLs alike, and no
    rule takes it for a secret.
    """
    return b"withheld(" + rule.encode("ascii") + b")"


def redact(
    data: bytes, form: Form, rules: ContentRules, engine: Engine, *, found: frozenset[str]
) -> Redacted | Refusal | None:
    """Take the secrets out of a file that is in memory.

    Args:
        data: all of the file; it holds nothing that leaves it out as a whole.
        form: what its name says.
        rules: the content rules.
        engine: the engine that says which rules may hold.
        found: the rules of values of known form that were found in it.

    Returns:
        The file without them, a refusal, or None when there is nothing to take out.
    """
    if form.syntax is Syntax.OTHER:
        return Refusal(min(found)) if found else None
    if not found and not _may_hold_names(data, form, engine):
        return None
    done = _taken_out(data, form, rules, engine)
    if isinstance(done, Redacted) and not _is_same_shape(data, done.data, form.syntax):
        return Refusal(done.rules[0])
    return done


def _taken_out(
    data: bytes, form: Form, rules: ContentRules, engine: Engine
) -> Redacted | Refusal | None:
    now, names, count = data, set[str](), 0
    for _ in range(_NUMBER_OF_TRIES + 1):
        spans = _found(now, form, rules, engine)
        if isinstance(spans, Refusal):
            return spans
        if not spans:
            return Redacted(now, tuple(sorted(names)), count) if count else None
        now = _without(now, spans)
        names.update(span.rule for span in spans)
        count += len(spans)
    return Refusal(min(names))


def _may_hold_names(data: bytes, form: Form, engine: Engine) -> bool:
    """Return whether names may say that a value is secret; nearly no file has such."""
    if form.profile in (Profile.LOGIN, Profile.STORE):
        return True
    return b"Secret" in data or bool(engine.configuration_candidates(data))


def _found(
    data: bytes, form: Form, rules: ContentRules, engine: Engine
) -> Sequence[Span] | Refusal:
    spans = find_spans(data, rules, engine)
    if form.is_configuration:
        secrets = _secret_leaves(data, form, engine)
        for leaf, rule in secrets:
            if not leaf.is_plain or form.profile is Profile.STORE:
                return Refusal(RULE_STORE if form.profile is Profile.STORE else rule)
            spans.append(Span(leaf.start, leaf.stop, rule))
    if form.profile is Profile.STORE and spans:
        return Refusal(RULE_STORE)
    if form.profile is Profile.LOGIN:
        spans += _logins_in(data)
    return _merged(spans)


def _logins_in(data: bytes) -> Iterator[Span]:
    for pattern in _IN_LOGINS:
        for match in pattern.finditer(data):
            value = match["secret"]
            if is_set(value) and (b":" in match[0][:-1] or is_drawn(value)) and _may_be(match):
                yield Span(*match.span("secret"), RULE_LOGIN)


def _may_be(match: re.Match[bytes]) -> bool:
    """Return whether a match is a login: a user name alone, as in a URL, is none."""
    has_password = match[0].count(b":") > 1 or not match[0].startswith(b"://")
    return has_password or is_drawn(match["secret"])


def _secret_leaves(data: bytes, form: Form, engine: Engine) -> list[tuple[Leaf, str]]:
    is_kubernetes = b"Secret" in data and _SECRET_KIND.search(data) is not None
    is_known = form.profile in (Profile.LOGIN, Profile.STORE)
    if not (is_known or is_kubernetes or engine.configuration_candidates(data)):
        return []
    found: list[tuple[Leaf, str]] = []
    least = 0 if is_known or is_kubernetes else ASSIGNED_LEAST
    for leaf in iter_leaves(data, form.syntax, least=least):
        value = data[leaf.start : leaf.stop].strip()
        if is_kubernetes and _SECRET_PARTS.intersection(leaf.above) and is_set(value):
            found.append((leaf, RULE_KUBERNETES))
        elif is_known and _is_login(leaf, value):
            found.append((leaf, RULE_LOGIN))
        elif says_secret(leaf.name) and is_assigned_secret(value):
            found.append((leaf, RULE_ASSIGNED))
    return found


def _is_login(leaf: Leaf, value: bytes) -> bool:
    if not is_set(value):
        return False
    if says_secret(leaf.name) or leaf.name.rpartition(b":")[2].lower() in _AUTH_NAMES:
        return b" " not in value or is_drawn(value)
    around = {name.lower() for name in leaf.above} & _AROUND_LOGINS
    return bool(around) and is_assigned_secret(value)


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(spans, key=lambda one: (one.start, -one.stop, one.rule)):
        if merged and span.start < merged[-1].stop:
            last = merged.pop()
            merged.append(Span(last.start, max(last.stop, span.stop), last.rule))
        else:
            merged.append(span)
    return merged


def _without(data: bytes, spans: Sequence[Span]) -> bytes:
    parts: list[bytes] = []
    at = 0
    for span in spans:
        parts += (data[at : span.start], marker(span.rule))
        at = span.stop
    return b"".join((*parts, data[at:]))


def _is_same_shape(before: bytes, after: bytes, syntax: Syntax) -> bool:
    """Return whether a real parser, where there is one, sees only text leaves changed."""
    if syntax is Syntax.JSON:
        return _only_leaves(_parsed_json(before), _parsed_json(after))
    if syntax is Syntax.TOML:
        return _only_leaves(_parsed_toml(before), _parsed_toml(after))
    return before.count(b"\n") == after.count(b"\n")


def _parsed_json(data: bytes) -> object:
    try:
        parsed: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return parsed


def _parsed_toml(data: bytes) -> object:
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError):
        return None


def _only_leaves(before: object, after: object) -> bool:
    pending = [(before, after)]
    while pending:
        one, two = pending.pop()
        if isinstance(one, dict) and isinstance(two, dict):
            if list(one) != list(two):
                return False
            pending += [(one[key], two[key]) for key in one]
        elif isinstance(one, list) and isinstance(two, list):
            if len(one) != len(two):
                return False
            pending += zip(one, two, strict=True)
        elif one != two and not (isinstance(two, str) and "withheld(" in two):
            return False
    return True


class LineRedactor:
    """Text redacted line by line in pieces of any size; the result does not depend on them."""

    def __init__(self, rules: ContentRules, engine: Engine) -> None:
        """Prepare for one file."""
        self._rules = rules
        self._engine = engine
        self._rest: list[bytes] = []
        self.names: set[str] = set()
        self.count = 0

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; return those of the lines that have ended."""
        end = data.rfind(b"\n") + 1
        if end == 0:
            self._rest.append(data)
            return b""
        lines = b"".join((*self._rest, data[:end]))
        self._rest = [data[end:]]
        return self._redacted(lines)

    def finish(self) -> bytes:
        """Return the last line, if it has no end."""
        return self._redacted(b"".join(self._rest))

    def _redacted(self, lines: bytes) -> bytes:
        spans = _merged(find_spans(lines, self._rules, self._engine))
        self.names.update(span.rule for span in spans)
        self.count += len(spans)
        return _without(lines, spans)
