"""Bytes scanned in windows: which content rules hold somewhere in a file, however it is read.

Every match belongs to the one window in which it begins; windows overlap by more than the
longest match and what its check looks at, so where a file is cut changes no decision.
Source: spec/exclusion.md 3. Start at `Scan`, or `scan_whole` for what is in memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from durarepo.policy.contentrules import (
    CONTEXT_BYTES,
    MATCH_MAX_BYTES,
    REACH_BYTES,
    START_BYTES,
    ContentRules,
    Span,
    has_body,
    may_be_wide,
    narrowed,
)
from durarepo.policy.rules import Scope

OVERLAP_BYTES = MATCH_MAX_BYTES + 2 * REACH_BYTES
WINDOW_BYTES = 1024 * 1024
"""Smaller pieces are put together before they are looked at."""

_OWN_BYTES = MATCH_MAX_BYTES + REACH_BYTES

_BLOCK_BYTES = 16 * 1024
"""Where an engine saw something, it is asked which rules may hold in parts of this length."""

_AFTER_BYTES = MATCH_MAX_BYTES + CONTEXT_BYTES


class Engine(Protocol):
    """Tells cheaply which rules may hold; never leaves one out that does."""

    name: str

    def candidates(self, data: bytes) -> Sequence[int]:
        """Return the numbers of `ContentRules.probes` that occur in ``data``."""
        ...

    def seek(self, data: bytes, start: int) -> int | None:
        """Return an offset inside the first probe that lies at or after ``start``."""
        ...

    def configuration_candidates(self, data: bytes) -> Sequence[int]:
        """Return the numbers of `ContentRules.configuration_probes` that occur."""
        ...

    def sees_wide(self, data: bytes) -> bool:
        """Return whether `WIDE_PROBE` occurs, without which no text is wide."""
        ...


@dataclass(frozen=True, slots=True)
class Findings:
    """What a scan found: ids of rules, never a value or its place.

    ``whole`` take the file with them; ``spans`` only their value. ``hidden`` are spans in text
    of wide letters, which nothing takes out. ``bodies`` are rules of which more than a header
    stands there.
    """

    whole: frozenset[str] = frozenset()
    spans: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    bodies: frozenset[str] = frozenset()

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not (self.whole or self.spans or self.hidden)

    def first(self) -> str:
        """Return the rule to name when the file goes as a whole."""
        return min(self.whole or self.hidden or self.spans)


CLEAN = Findings()


class Scan:
    """One file, fed from its first byte to its last in pieces of any size.

    ``seen`` is where an engine saw anything, confirmed or not, as offsets of what was fed;
    ``is_wide`` says that there may be text of wide letters, which is not among that.
    """

    def __init__(self, rules: ContentRules, engine: Engine) -> None:
        """Prepare for one file."""
        self._rules = rules
        self._engine = engine
        self._pieces: list[bytes] = []
        self._pending = 0
        self._tail = b""
        self._owned = 0
        self._base = 0
        self._is_begun = False
        self._whole: set[str] = set()
        self._spans: set[str] = set()
        self._hidden: set[str] = set()
        self._bodies: set[str] = set()
        self.seen: list[tuple[int, int]] = []
        self.is_wide = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the file."""
        self._pieces.append(data)
        self._pending += len(data)
        if self._pending >= WINDOW_BYTES:
            self._look(is_last=False)

    def feed_hole(self, length: int) -> None:
        """Take a hole of zeros; nothing can match across more than the overlap of them."""
        self.feed(bytes(min(length, OVERLAP_BYTES)))

    def finish(self) -> Findings:
        """Return what was found in all of the file."""
        self._look(is_last=True)
        return self._findings()

    def _findings(self) -> Findings:
        if not (self._whole or self._spans or self._hidden):
            return CLEAN
        return Findings(
            frozenset(self._whole),
            frozenset(self._spans),
            frozenset(self._hidden),
            frozenset(self._bodies),
        )

    def look_whole(self, data: bytes, *, seen: int | None, is_wide: bool) -> Findings:
        """Return what is found in a file that is in memory; ``seen`` and ``is_wide`` say where."""
        self._look_at_start(data)
        if is_wide:
            self._look_wide_in_parts(data)
        self._confirm_all(data, start=0, stop=len(data), seen=seen)
        return self._findings()

    def _look(self, *, is_last: bool) -> None:
        if self._tail or len(self._pieces) != 1:
            window = b"".join((self._tail, *self._pieces))
        else:
            window = self._pieces[0]
        if not self._is_begun:
            self._look_at_start(window)
        stop = len(window) if is_last else max(self._owned, len(window) - _OWN_BYTES)
        if self._engine.sees_wide(window):
            self._look_wide_in_parts(window)
        seen = self._engine.seek(window, max(0, self._owned - CONTEXT_BYTES))
        self._confirm_all(window, start=self._owned, stop=stop, seen=seen)
        keep = max(0, len(window) - OVERLAP_BYTES)
        self._base += keep
        self._tail = window[keep:]
        self._owned = stop - keep
        self._pieces = []
        self._pending = 0

    def _look_at_start(self, window: bytes) -> None:
        self._is_begun = True
        rule = self._rules.at_start(window[:START_BYTES])
        if rule is not None:
            self._whole.add(rule.id)
            self._bodies.add(rule.id)

    def _confirm_all(self, window: bytes, *, start: int, stop: int, seen: int | None) -> None:
        blocks = _seen_blocks(self._engine, window, start=start, stop=stop, seen=seen)
        for at, end, candidates in blocks:
            if candidates:
                reach = self._base + max(0, at - CONTEXT_BYTES), self._base + end + _AFTER_BYTES
                self.seen.append(reach)
            for number in candidates:
                self._confirm(number, window, start=at, stop=end)

    def _confirm(self, number: int, window: bytes, *, start: int, stop: int) -> None:
        match = self._rules.first_match(number, window, start=start, stop=stop)
        if match is None:
            return
        rule = self._rules.rule(number)
        if rule.scope is Scope.SPAN:
            self._spans.add(rule.id)
            return
        self._whole.add(rule.id)
        while match is not None:
            if has_body(match, rule):
                self._bodies.add(rule.id)
                return
            match = self._rules.first_match(number, window, start=match.end(), stop=stop)

    def _look_wide_in_parts(self, window: bytes) -> None:
        for at in range(0, len(window), WINDOW_BYTES):
            self._look_wide(window[max(0, at - OVERLAP_BYTES) : at + WINDOW_BYTES])

    def _look_wide(self, window: bytes) -> None:
        if not may_be_wide(window):
            return
        self.is_wide = True
        narrow = narrowed(window)
        for number in self._engine.candidates(narrow):
            if self._rules.first_match(number, narrow, start=0, stop=len(narrow)) is not None:
                rule = self._rules.rule(number)
                (self._hidden if rule.scope is Scope.SPAN else self._whole).add(rule.id)
                if rule.scope is Scope.WHOLE:
                    self._bodies.add(rule.id)


@lru_cache(1)
def shared_rules() -> ContentRules:
    """Return the rules of the table, compiled once a process."""
    return ContentRules()


def _seen_blocks(
    engine: Engine, window: bytes, *, start: int, stop: int, seen: int | None
) -> Iterator[tuple[int, int, Sequence[int]]]:
    """Yield the parts in which matches may begin, with the rules that may hold there.

    To confirm costs fifty times what the engine does, so it is asked where it sees something
    first, and then which rules that is, for as little as a match there could span. ``seen`` is
    its first answer, sought from `CONTEXT_BYTES` before ``start``.
    """
    at = start
    while seen is not None and at < stop:
        passed = (seen - at - _AFTER_BYTES) // _BLOCK_BYTES  # blocks that end too long before
        at += max(0, passed) * _BLOCK_BYTES
        end = min(stop, at + _BLOCK_BYTES)
        if at < end:
            block = window[max(0, at - CONTEXT_BYTES) : end + _AFTER_BYTES]
            yield at, end, engine.candidates(block)
        at = end
        if seen < at - CONTEXT_BYTES:
            seen = engine.seek(window, at - CONTEXT_BYTES)


def find_spans(data: bytes, rules: ContentRules, engine: Engine) -> list[Span]:
    """Return where values stand that may be taken out, rule by rule only near its probes."""
    starts: dict[int, int] = {}
    found: list[Span] = []
    blocks = _seen_blocks(engine, data, start=0, stop=len(data), seen=engine.seek(data, 0))
    for at, stop, candidates in blocks:
        for number in filter(rules.has_spans, candidates):
            start = max(at, starts.get(number, 0))
            if start < stop:
                spans, starts[number] = rules.spans(number, data, start=start, stop=stop)
                found += spans
    return found


def scan_whole(data: bytes, rules: ContentRules, engine: Engine) -> Findings:
    """Return what is found in a file that is in memory; what most files cost is one look."""
    seen, is_wide = engine.seek(data, 0), engine.sees_wide(data)
    if seen is None and not is_wide and rules.at_start(data) is None:
        return CLEAN
    return Scan(rules, engine).look_whole(data, seen=seen, is_wide=is_wide)
