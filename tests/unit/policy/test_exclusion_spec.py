"""The table of rules: complete, unambiguous, and the one that the specification shows."""

import re
from pathlib import Path

from durarepo.policy.content_table import CONTENT_RULES
from durarepo.policy.path_table import MARK_RULES, PATH_RULES
from durarepo.policy.rules_table import ALL_RULES, find_rule, policy_version, table_text
from tests.policy.cases import read_cases

TOP = Path(__file__).resolve().parents[3]


def test_the_specification_shows_the_rules_that_run() -> None:
    """A table that people read and a table that runs must be one."""
    assert (TOP / "spec" / "exclusion.md").read_text().endswith("\n\n" + table_text())


def test_every_rule_has_one_id_and_says_why() -> None:
    """A rule that cannot be explained cannot be argued with."""
    assert len({rule.id for rule in ALL_RULES}) == len(ALL_RULES)
    for rule in ALL_RULES:
        assert re.fullmatch(r"[a-z0-9-]{3,40}", rule.id)
        assert len(rule.reason) > 10
        assert len(rule.source) > 4
        assert "|" not in rule.reason + rule.source
        assert find_rule(rule.id) is rule


def test_patterns_of_paths_are_folded_and_more_than_a_letter() -> None:
    """A pattern in capitals never fits, and one of a single letter fits everything."""
    for rule in PATH_RULES:
        for pattern in (*rule.files, *rule.folders):
            assert len(pattern.strip("*./")) > 1, (rule.id, pattern)
            assert rule.exact or pattern == pattern.lower(), (rule.id, pattern)
    assert all(mark.inside or mark.any_inside or mark.beside for mark in MARK_RULES)


def test_the_version_changes_with_the_rules() -> None:
    """A file believed unchanged under older rules must be read again under newer ones."""
    assert re.fullmatch(r"[0-9]+\.[0-9a-f]{12}", policy_version())


def test_no_pattern_quotes_the_path_of_a_case() -> None:
    """A rule written for a case knows that case and nothing else."""
    invented = {
        part
        for case in read_cases()
        for part in case.path.decode(errors="replace").lower().split("/")[:-1]
        if re.fullmatch(r"[a-z]+[0-9]+|gosvc|svc|crate|scrape|e2e|scratch|bots|enc", part)
    } - {"miniconda3"}  # a folder that an installer makes
    assert invented
    for rule in PATH_RULES:
        for pattern in (*rule.files, *rule.folders):
            assert not invented & set(pattern.split("/")), pattern


def test_sources_hold_nothing_that_the_rules_leave_out() -> None:
    """Or durarepo would leave itself out of its own backup."""
    from durarepo.policy.decide import ContentPolicy
    from durarepo.policy.rules import Decision
    from durarepo.policy.scanner import open_engine

    policy = ContentPolicy(open_engine())
    for folder in ("durarepo", "cli", "spec", "tests/policy", "tests/unit/policy"):
        for path in sorted((TOP / folder).rglob("*")):
            if path.suffix in (".py", ".md", ".sh", ".toml"):
                judged = policy.judge(bytes(path), path.read_bytes())
                assert judged.decision is Decision.INCLUDE, (path, judged.rules)


def test_every_probe_holds_where_its_pattern_holds() -> None:
    """A probe that is too narrow hides what its rule would find."""
    probed = [rule for rule in CONTENT_RULES if not rule.at_start and rule.pattern]

    assert all(rule.probe for rule in probed)
