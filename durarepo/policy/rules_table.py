"""All rules in one list: what ``exclude explain`` and spec/exclusion.md show of each.

The version names the whole policy: every snapshot says with which it was made, and another
version makes the next run look again at what it would have believed unchanged.
Source: spec/exclusion.md. Start at `ALL_RULES`.
"""

import hashlib
from functools import lru_cache

from durarepo.policy.content_table import CONTENT_RULES
from durarepo.policy.database_table import DATABASE_RULES
from durarepo.policy.path_table import MARK_RULES, PATH_RULES
from durarepo.policy.redaction import STRUCTURED_RULES
from durarepo.policy.rules import Rule, Stage, Word

NAME_RULES = (
    Rule(
        id="path-secret",
        word=Word.TOKENS,
        reason="a name that itself holds a credential of known form",
        source="the rules for content, asked of the name",
    ),
)

STAGES: tuple[tuple[Stage, tuple[Rule, ...]], ...] = (
    (Stage.PATH, (*PATH_RULES, *MARK_RULES, *NAME_RULES)),
    (Stage.CONTENT, CONTENT_RULES),
    (Stage.STRUCTURED, (*STRUCTURED_RULES, *DATABASE_RULES)),
)

ALL_RULES = tuple(rule for _, rules in STAGES for rule in rules)

REVISION = 2
"""Raised when the meaning of the rules changes and their text does not."""


@lru_cache(1)
def policy_version() -> str:
    """Return the version of the policy: its revision and a short hash of every rule."""
    digest = hashlib.sha256(repr((REVISION, ALL_RULES)).encode())
    return f"{REVISION}.{digest.hexdigest()[:12]}"


@lru_cache(256)
def find_rule(name: str) -> Rule | None:
    """Return the rule of an id; None for ids that are not of the table."""
    return next((rule for rule in ALL_RULES if rule.id == name), None)


def table_text() -> str:
    """Return the table for readers, in Markdown, as it stands in spec/exclusion.md."""
    lines = ["| stage | rule | clause | reason | source |", "|---|---|---|---|---|"]
    lines += [
        f"| {stage} | `{rule.id}` | {rule.word} | {rule.reason} | {rule.source} |"
        for stage, rules in STAGES
        for rule in rules
    ]
    return "\n".join(lines) + "\n"
