"""The decision about a file's content: it stays, it stays without values, or it is left out.

The order is that of the clause: a private key takes the file with it, whatever else is there;
then values are taken out where the form is certain; what still holds one is left out.
Source: spec/exclusion.md 1 and 5. Start at `ContentPolicy.judge`.
"""

from dataclasses import dataclass

from durarepo.policy.forms import Form, Syntax, form_of
from durarepo.policy.redaction import LineRedactor, Redacted, Refusal, redact
from durarepo.policy.rules import Decision, Stage
from durarepo.policy.scanning import CLEAN, Engine, Findings, Scan, scan_whole, shared_rules

MEMORY_MAX_BYTES = 64 * 1024 * 1024
"""Larger files are not held in memory; of those only text is redacted."""

NAME_LEAST_BYTES = 20
"""No credential of known form is shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What becomes of a file, by which rule and at which stage.

    ``rules`` are all rules that hold. ``data`` is what to keep instead when values are taken
    out, ``count`` how many, and ``counts`` how many by each rule, where that is known.
    ``is_waivable`` says that a reviewed entry could keep the file: what stands there is a
    header without a key, as in documentation.
    """

    decision: Decision
    rule: str = ""
    stage: Stage | None = None
    rules: tuple[str, ...] = ()
    data: bytes | None = None
    count: int = 0
    counts: tuple[tuple[str, int], ...] = ()
    is_waivable: bool = False


KEPT = Judged(decision=Decision.INCLUDE)


class ContentPolicy:
    """Judges contents with one engine."""

    def __init__(self, engine: Engine) -> None:
        """Take an engine of `scanner.open_engine`."""
        self._rules = shared_rules()
        self._engine = engine

    @property
    def engine(self) -> str:
        """The name of the engine, for ``status``."""
        return self._engine.name

    def judge(self, path: bytes, data: bytes) -> Judged:
        """Judge a file that is in memory.

        Args:
            path: its path; the last parts say its form.
            data: all of it, at most `MEMORY_MAX_BYTES`.
        """
        findings = scan_whole(data, self._rules, self._engine)
        if findings.whole or findings.hidden:
            return self.judged_whole(findings)
        form = form_of(path)
        if findings is CLEAN and not form.is_configuration:
            return KEPT
        return self._redacted(findings, data, form)

    def holds_secret(self, name: bytes) -> bool:
        """Return whether a name or a path itself holds a credential or a key."""
        return (
            len(name) >= NAME_LEAST_BYTES
            and not scan_whole(name, self._rules, self._engine).is_clean
        )

    def shown_path(self, path: bytes) -> bytes:
        """Return a path as it may be shown: a credential in it is replaced by its marker."""
        redactor = self.start_redaction()
        shown = redactor.feed(path) + redactor.finish()
        return shown if not self.holds_secret(shown) else b"(withheld)"

    def start_scan(self) -> Scan:
        """Return a scan for a file that is too large for memory, or read once anyway."""
        return Scan(self._rules, self._engine)

    def first_sight(self, data: bytes, start: int) -> int | None:
        """Return an offset from ``start`` on at which a value of known form may stand."""
        return self._engine.seek(data, start)

    def start_redaction(self) -> LineRedactor:
        """Return a redactor for text that is too large for memory."""
        return LineRedactor(self._rules, self._engine)

    def judge_scanned(self, path: bytes, findings: Findings) -> Judged:
        """Judge a large file by what its scan found.

        Returns:
            For text with values of known form `Decision.REDACT` without ``data``: the caller
            reads it once more through `start_redaction`, and scans what comes out.
        """
        if findings.is_clean:
            return KEPT
        if findings.whole or findings.hidden or form_of(path).syntax is not Syntax.TEXT:
            return self.judged_whole(findings)
        return Judged(
            decision=Decision.REDACT,
            rule=findings.first(),
            stage=Stage.STRUCTURED,
            rules=tuple(sorted(findings.spans)),
        )

    @staticmethod
    def judged_whole(findings: Findings) -> Judged:
        """Return that a file is left out, by the first of the rules that hold."""
        found = findings.whole | findings.hidden | findings.spans
        return Judged(
            decision=Decision.EXCLUDE,
            rule=findings.first(),
            stage=Stage.CONTENT,
            rules=tuple(sorted(found)),
            is_waivable=bool(findings.whole)
            and not (findings.bodies or findings.hidden)
            and not findings.spans,
        )

    def _redacted(self, findings: Findings, data: bytes, form: Form) -> Judged:
        done = redact(data, form, self._rules, self._engine, found=findings.spans)
        if done is None:
            return KEPT if findings is CLEAN else self.judged_whole(findings)
        if isinstance(done, Refusal):
            stage = Stage.CONTENT if form.syntax is Syntax.OTHER else Stage.STRUCTURED
            return Judged(
                decision=Decision.EXCLUDE, rule=done.rule, stage=stage, rules=(done.rule,)
            )
        return self._rescanned(done)

    def _rescanned(self, done: Redacted) -> Judged:
        again = scan_whole(done.data, self._rules, self._engine)
        if not again.is_clean:
            return self.judged_whole(again)
        return Judged(
            decision=Decision.REDACT,
            rule=done.rules[0],
            stage=Stage.STRUCTURED,
            rules=done.rules,
            data=done.data,
            count=sum(number for _, number in done.counts),
            counts=done.counts,
        )
