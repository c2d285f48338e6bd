"""``durarepo verify --secrets``: what old snapshots hold is told by place, never by value."""
# ruff: noqa: S311 - a seed of a test

import random
import subprocess
import sys

import pytest

from tests.cli.harness import PROGRAM, Cli
from tests.cli.schema import check
from tests.policy.fresh import text

TOKEN = "gh" + "p_" + text(random.Random("stored for the command line"), 36)
BEFORE = """
from durarepo_cli.main import main
from tests.unit.operations.test_verify_secrets import without_rules
with without_rules():
    main()
"""


@pytest.fixture
def kept(fresh: Cli) -> Cli:
    """A stream whose first snapshot was taken by a program without rules."""
    notes = fresh.home / "agent" / "notes"
    (notes / "login.md").write_text(f"it is {TOKEN}\n")
    (notes / f"{TOKEN}.md").write_text("harmless\n")
    (notes / ".netrc").write_text("machine x\n")
    command = fresh.command("snapshot")
    at = len(command) - len(PROGRAM) - 1
    call = [*command[:at], sys.executable, "-c", BEFORE, "snapshot"]
    environment = fresh.environment | {"PYTHONWARNINGS": "default"}
    subprocess.run(call, env=environment, check=True, capture_output=True, cwd=fresh.home)
    return fresh


def test_what_is_stored_is_told_and_ends_with_31(kept: Cli) -> None:
    """A script that looks for leaks must see one by the exit code."""
    told, text_told = kept.run("verify", "--secrets", "--json"), kept.run("verify", "--secrets")

    assert (told.code, text_told.code) == (31, 31)
    check("verify-secrets", told.json())
    assert told.error()["code"] == "policy.secrets-stored"
    secrets = told.json()["secrets"]
    assert isinstance(secrets, list)
    rules = {one["rule"]: one for one in secrets}
    assert set(rules) == {"token-github", "path-secret", "store-login"}
    assert rules["path-secret"]["path"] is None
    assert rules["store-login"]["path"].endswith("/agent/notes/.netrc")
    assert all(one["sequences"] == [1] for one in secrets)
    for ran in (told, text_told):
        assert TOKEN.encode() not in ran.stdout + ran.stderr
    assert "issuer" in text_told.out


def test_a_clean_stream_ends_with_0(fresh: Cli) -> None:
    """A check that always fails is switched off."""
    assert fresh.run("snapshot").code == 0

    told = fresh.run("verify", "--secrets", "--json")

    assert told.code == 0
    check("verify-secrets", told.json())
    assert (told.json()["ok"], told.json()["secrets"], told.json()["manifests"]) == (True, [], 1)
    assert fresh.run("verify", "--secrets").out.startswith("no secrets found: head 1\n")


def test_it_is_no_level_of_verify(fresh: Cli) -> None:
    """Two questions in one call would have two answers in one exit code."""
    assert fresh.run("verify", "--secrets", "--data").code == 2


def test_without_an_identity_it_ends_with_12(fresh: Cli) -> None:
    """A computer that cannot read must not say that all is clean."""
    (fresh.keys() / "identity.key").rename(fresh.home / "identity.key")

    told = fresh.run("verify", "--secrets", "--json")

    assert told.code == 12
    assert told.error()["code"] == "keys.identity-absent"
