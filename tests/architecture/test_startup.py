"""Starting the command line loads nothing that only some commands need."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from tests.architecture.sources import TOP

HEAVY = (
    "asyncio", "cryptography.x509", "dulwich", "importlib.metadata", "numpy", "pygit2",
    "sqlite_utils", "ssl", "urllib3", "uvicorn",
)  # fmt: skip


def loaded_by(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter holds after ``statement``."""
    environment = {**os.environ, "PYTHONPATH": f"{TOP}:{TOP / 'cli'}"}
    code = f"{statement}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    return set(json.loads(done.stdout))


def test_importing_the_command_line_loads_nothing_heavy() -> None:
    """A hundred milliseconds at each start are felt by everyone who types a command."""
    if importlib.util.find_spec("durarepo_cli.main") is None:
        pytest.skip("durarepo_cli.main is not written yet")

    heavy = loaded_by("import durarepo_cli.main") - loaded_by("pass")

    assert heavy.isdisjoint(HEAVY)


def test_a_heavy_package_would_be_seen() -> None:
    """The comparison must not be blind to what it looks for."""
    heavy = loaded_by("import sqlite_utils") - loaded_by("pass")

    assert not heavy.isdisjoint(HEAVY)
