"""Names of copies: what programs and people put beside a file is judged as the file."""
# ruff: noqa: S311 - seeds of a test

import json
import random

import pytest

from durarepo.policy.decide import ContentPolicy
from durarepo.policy.names import undecorated
from durarepo.policy.rules import Decision
from durarepo.policy.scanner import open_engine
from tests.policy.fresh import HEX, text

POLICY = ContentPolicy(open_engine())
COPIES = (
    *("@.tmp.12345", "@.4f3a9c", "@.@H", "@.corrupted.1764500000000", "@.corrupt", "@.broken"),
    *("@.bak-20260101", "@.bak_2", "@.backup.1764500000000", "@.tmp-8f2", "@.tmp.@H", "@.old3"),
    *("@.98765432", "@.2026-01-01T10-11-12.bak", "@~", ".#@", "#@#", "@.orig", "@ copy"),
)
INNER = (
    *("#.backup@", "#-copy@", "#.bak@", "#_old@", "#.orig@", "# (1)@", "# copy@", "# copy 2@"),
    *("#-backup-20260101@", "#.prev@", "#_backup_2@"),
)


def copy_of(form: str, name: str, draw: random.Random) -> str:
    """Return the name of a copy; ``#`` is the stem of the name where one stands first."""
    stem, _, suffix = name.rpartition(".")
    shown = form.replace("@H", "4" + text(draw, 10, HEX) + "a1")
    if form in INNER:
        return shown.replace("#", stem, 1).replace("@", f".{suffix}")
    return shown.replace("@", name)


@pytest.mark.parametrize("form", [*COPIES, *INNER])
def test_a_copy_is_judged_as_what_it_is_a_copy_of(form: str) -> None:
    """A program keeps the settings of yesterday under a name that no rule has (A2a)."""
    draw = random.Random(form)

    for name in (".mcp.json", "mcp.json", ".claude.json", "claude_desktop_config.json"):
        secret = text(draw, 30)
        data = json.dumps({"servers": {"a": {"env": {"X": secret}}}}).encode()
        copied = copy_of(form, name, draw)
        judged = POLICY.judge(f"home/{copied}".encode(), data)

        assert name in undecorated(copied.lower()), copied
        assert judged.decision is Decision.REDACT, copied
        assert judged.data is not None
        assert secret.encode() not in judged.data


@pytest.mark.parametrize(
    "name",
    [
        *("id_rsa.sha256", "cookies.sqlite3", "threshold.json", "notes.md", "a.c", "x.dead"),
        *("copy.json", ".old.json", "backup.py", "photocopy.json", "gold.json", "rev.cafe"),
        *("v1.2b", "a.base64", "scaffold.toml", "key.asc", "a.decade", "b.facade"),
    ],
)
def test_a_name_of_its_own_is_no_copy(name: str) -> None:
    """What only ends like a copy is work under its own name."""
    assert undecorated(name) == (name,)
