"""Values taken out of files whose form is certain; everything else of the file stays as it is.

The same bytes always become the same bytes, so that deduplication holds. What cannot be taken
out with certainty is refused, and the caller leaves the file out. A value is never kept.
Source: spec/exclusion.md 5. Start at `redact`, or `LineRedactor` for text of any length.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from durarepo.policy.contentrules import ContentRules, Span, may_be_wide, narrowed
from durarepo.policy.documents import (
    JSON_MOST,
    Document,
    is_only_leaves_changed,
    iter_stated,
    parse_document,
)
from durarepo.policy.forms import Form, Profile, Syntax
from durarepo.policy.leaves import Leaf, NestingError, unescaped, xml_leaves
from durarepo.policy.lineleaves import comment_leaves, line_leaves
from durarepo.policy.loose import has_loose_secret, inner_spans
from durarepo.policy.named import (
    RULE_ASSIGNED,
    RULE_LOGIN,
    RULE_STORE,
    NamedValues,
)
from durarepo.policy.repeats import RepeatsError, repeated
from durarepo.policy.rules import Rule, Word
from durarepo.policy.scanning import Engine, find_spans
from durarepo.policy.shellleaves import shell_leaves
from durarepo.policy.tokenleaves import Tokens, token_leaves
from durarepo.policy.values import is_drawn, is_set

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

_NUMBER_OF_TRIES = 5
_IN_LOGINS = (
    re.compile(
        rb":(?:\\?/){2}[^\s/:@\"'<>\\]{0,80}:(?P<secret>[^\s/@\"'<>\\]{3,400})@[A-Za-z0-9\[_]"
    ),
    re.compile(rb":(?:\\?/){2}(?P<secret>[A-Za-z0-9_.~-]{20,400})@[A-Za-z0-9\[_]"),
    re.compile(rb"(?i:\b(?:basic|bearer|token)) (?P<secret>[A-Za-z0-9+/=._~-]{12,4000})"),
)
_SECRET_KIND = re.compile(
    rb"(?m)^[ \t-]*[\"']?kind[\"']?[ \t]*:[ \t]*[\"']?Secret\b|\"kind\"\s*:\s*\"Secret\""
)
_LONG_VALUE = 1024
"""So much of a value of several lines is looked at; they may stand in each other."""

_JOINED = re.compile(rb"\\\r?\n[ \t]*")
_SAID = (b"pass", b"pwd", b"secret", b"token", b"key", b"credential", b"auth", b"cookie", b"pat")
_ELSEWHERE = (
    *(b"alue", b'\\"', b":\\/", b":\n", b":\r", b"assword=", b"ASSWORD=", b"wd=", b"Key="),
    *(b'at"', b'AT"', b'earer"'),
)
"""One of these stands in most JSON files that say secret in another way than probes ask for."""

_APART = re.compile(rb":[ \t]*+(?:[\[{\r\n]|/\*)|[:\"'][ \t]*+//|:[ \t]++//|[\r\n/][ \t]*+:")
"""Between a name of JSON and its value stand a bracket, the end of a line or a comment."""

_APART_REACH = 80

_ESCAPED_LETTER = re.compile(rb"\\(?:u00|x)(?:[46][1-9a-fA-F]|[57][0-9aA])")
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class Redacted:
    """A file without its secrets: the bytes, and how many values went by which rule."""

    data: bytes
    counts: tuple[tuple[str, int], ...]

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules by which values went."""
        return tuple(rule for rule, _ in self.counts)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file from which a secret cannot be taken with certainty, and the rule that found it."""

    rule: str


def marker(rule: str, *, is_shell: bool = False) -> bytes:
    """Return what stands where a value stood.

    It is a plain value in JSON strings, YAML, TOML strings, INI, XML and URLs alike, and no
    rule takes it for a secret. To a shell a parenthesis is none, so there a dot stands for it.
    """
    said = rule.encode("ascii")
    return b"withheld." + said if is_shell else b"withheld(" + said + b")"


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
    if form.is_configuration and _is_wide(data, engine):
        return _judged_wide(data, form, rules, engine)
    if not found and not _may_hold_names(data, form, engine):
        return None
    form = _certain_form(data, form)
    try:
        done = _taken_out(data, form, rules, engine)
    except NestingError:
        return Refusal(min(found, default=RULE_ASSIGNED))
    if isinstance(done, Redacted) and not _is_same_shape(data, done.data, form.syntax):
        return Refusal(done.rules[0])
    return done


def _is_wide(data: bytes, engine: Engine) -> bool:
    return b"\0" in data and (
        data.startswith(_WIDE_MARKS) or (engine.sees_wide(data) and may_be_wide(data))
    )


def _judged_wide(
    data: bytes, form: Form, rules: ContentRules, engine: Engine
) -> Redacted | Refusal | None:
    """Judge what settings in UTF-16 say; a value in them is not taken out, so they go."""
    if data.startswith(_WIDE_MARKS):
        said = data.decode("utf-16", "replace").encode()
    else:
        said = narrowed(data)
    done = redact(said.replace(b"\0", b""), form, rules, engine, found=frozenset())
    return Refusal(done.rules[0]) if isinstance(done, Redacted) else done


def _certain_form(data: bytes, form: Form) -> Form:
    """Return the form of a file; what is named like settings in lines can be JSON all the same."""
    if form.syntax is Syntax.LINES and data.lstrip()[:1] in (b"{", b"["):
        as_json = replace(form, syntax=Syntax.JSON, is_shell=False)
        return as_json if parse_document(data, Syntax.JSON) is not None else form
    return form


def _taken_out(
    data: bytes, form: Form, rules: ContentRules, engine: Engine
) -> Redacted | Refusal | None:
    now, names = data, Counter[str]()
    taken: dict[bytes, str] = {}
    for _ in range(_NUMBER_OF_TRIES):
        spans = _repeated(now, taken) or _found(now, form, rules, engine)
        if isinstance(spans, Refusal):
            return spans
        if not spans:
            return Redacted(now, tuple(sorted(names.items()))) if names else None
        taken = {now[span.start : span.stop]: span.rule for span in spans}
        now = _without(now, spans, is_shell=form.is_shell)
        names.update(span.rule for span in spans)
    return Refusal(min(names))


def _repeated(data: bytes, taken: dict[bytes, str]) -> Sequence[Span] | Refusal:
    """Return where what was taken out stands once more, under whatever name."""
    markers = b" ".join(marker(rule) for rule in taken.values())
    try:
        spans = repeated(data, {one: rule for one, rule in taken.items() if one not in markers})
    except RepeatsError:
        return Refusal(min(taken.values()))
    return _merged(spans)


def _may_hold_names(data: bytes, form: Form, engine: Engine) -> bool:
    """Return whether names may say that a value is secret; nearly no file has such."""
    if form.profile in (Profile.LOGIN, Profile.STORE):
        return True
    if b"Secret" in data or engine.configuration_candidates(data):
        return True
    if b":\\/\\/" in data or (b"\\" in data and _ESCAPED_LETTER.search(data)):
        return True
    # What the probes ask for is a name with its value on one line; a value may stand elsewhere.
    if form.syntax is Syntax.JSON and not any(mark in data for mark in _ELSEWHERE):
        return any(map(_says, _apart(data)))
    return _says(data)


def _apart(data: bytes) -> Iterator[bytes]:
    """Yield what stands before each place at which a value may stand apart from its name."""
    for match in _APART.finditer(data):
        yield data[max(0, match.start() - _APART_REACH) : match.start()]


def _says(data: bytes) -> bool:
    lowered = data.lower()
    return any(word in lowered for word in (*_SAID, b"bearer"))


def _found(
    data: bytes, form: Form, rules: ContentRules, engine: Engine
) -> Sequence[Span] | Refusal:
    spans = find_spans(data, rules, engine)
    if form.is_configuration:
        spans += [Span(start, stop, RULE_ASSIGNED) for start, stop in inner_spans(data)]
        named = _named_spans(data, form, is_last=not spans)
        if isinstance(named, Refusal):
            return named
        spans += named
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
    has_password = match[0].count(b":") > 1 or not match[0].startswith(b":")
    return has_password or is_drawn(match["secret"])


def _named_spans(data: bytes, form: Form, *, is_last: bool) -> list[Span] | Refusal:
    """Return where values stand whose names say secret; refuse what cannot be located.

    ``is_last`` says that nothing else is there to take out, so what is left would be kept.
    """
    is_kubernetes = b"Secret" in data and _SECRET_KIND.search(data) is not None
    values = NamedValues.of(form, is_kubernetes=is_kubernetes)
    document = parse_document(data, form.syntax)
    stated = _stated_rule(document, values) if document is not None else None
    is_clear = document is not None and stated is None
    # Of a large document no prose is taken for a setting: its tokens tell one from the other.
    is_large = form.syntax is Syntax.JSON and len(data) > JSON_MOST
    spans: list[Span] = []
    for leaf in _leaves(data, form, least=values.least, only_comments=is_clear):
        rule = values.rule_of(unescaped(leaf.name), leaf.above, _value_of(data, leaf))
        if rule is not None:
            if not leaf.is_plain:
                return Refusal(rule)
            spans.append(Span(leaf.start, leaf.stop, rule))
    if spans or not is_last:
        return spans
    if stated is not None:
        return Refusal(stated)
    if document is None and not is_large and has_loose_secret(data):
        return Refusal(RULE_ASSIGNED)
    return []


def _stated_rule(document: Document, values: NamedValues) -> str | None:
    """Return the rule by which a text of a document is a secret, or None."""
    for one in iter_stated(document, least=values.least):
        rule = values.rule_of(one.name, one.above, one.value)
        if rule is not None:
            return rule
    return None


def _leaves(data: bytes, form: Form, *, least: int, only_comments: bool) -> Iterator[Leaf]:
    syntax = form.syntax
    if form.is_shell:
        return shell_leaves(data)
    if only_comments:
        return comment_leaves(data) if syntax is Syntax.TOML else iter(())
    if syntax is Syntax.XML:
        return xml_leaves(data)
    if syntax is Syntax.LINES:
        return line_leaves(data)
    if syntax is Syntax.TOML:
        named = token_leaves(data, 0, len(data), tokens=Tokens.TOML, least=least)
        return chain(named, comment_leaves(data))
    return token_leaves(data, 0, len(data), tokens=Tokens.JSON, least=least)


def _value_of(data: bytes, leaf: Leaf) -> bytes:
    value = data[leaf.start : leaf.stop]
    return unescaped(value) if leaf.is_plain else _JOINED.sub(b"", value[:_LONG_VALUE])


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(spans, key=_order):
        if merged and span.start < merged[-1].stop:
            last = merged.pop()
            merged.append(Span(last.start, max(last.stop, span.stop), last.rule))
        else:
            merged.append(span)
    return merged


def _order(span: Span) -> tuple[int, int, bool, str]:
    """Order spans by place; of two in one place, the rule that knows more names it."""
    return span.start, -span.stop, span.rule == RULE_ASSIGNED, span.rule


def _without(data: bytes, spans: Sequence[Span], *, is_shell: bool = False) -> bytes:
    parts: list[bytes] = []
    at = 0
    for span in spans:
        parts += (data[at : span.start], marker(span.rule, is_shell=is_shell))
        at = span.stop
    return b"".join((*parts, data[at:]))


def _is_same_shape(before: bytes, after: bytes, syntax: Syntax) -> bool:
    """Return whether a real parser, where there is one, sees only text leaves changed."""
    one = parse_document(before, syntax)
    if one is None:
        return before.count(b"\n") == after.count(b"\n")
    two = parse_document(after, syntax)
    return two is not None and is_only_leaves_changed(one, two)


class LineRedactor:
    """Text redacted line by line in pieces of any size; the result does not depend on them."""

    def __init__(self, rules: ContentRules, engine: Engine) -> None:
        """Prepare for one file."""
        self._rules = rules
        self._engine = engine
        self._rest: list[bytes] = []
        self.counts = Counter[str]()

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
        self.counts.update(span.rule for span in spans)
        return _without(lines, spans)
