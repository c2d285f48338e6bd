"""The import contracts of pyproject.toml hold, and each of them bites."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import TOP

PLANTED = {
    "durarepo/utils.py": '"""A stray module."""\n',
    "durarepo/core/uphill.py": "from durarepo.store import port\n",
    "durarepo/format/sideways.py": "from durarepo.crypto import primitives\n",
    "durarepo/source/sideways.py": "from durarepo.local import lock\n",
    "durarepo/operations/__init__.py": "",
    "durarepo/operations/snapshot.py": "from durarepo.operations import verify\n",
    "durarepo/operations/verify.py": "",
    "durarepo/operations/archival.py": "from durarepo.operations import checkout\n",
    "durarepo/operations/checkout.py": "",
    "durarepo/operations/nightly.py": "from durarepo.operations import archival, verify\n",
    "durarepo/store/talkative.py": "import click\n",
    "durarepo/policy/wall_clock.py": "import time\nimport os.path\n",
    "durarepo/brand_new_floor.py": "import socket\n",
    "durarepo/crypto/dice.py": "import secrets\n",
    "durarepo/chunking/second_door.py": "import zstandard\nimport pyfastcdc\n",
    "durarepo/crypto/second_door.py": "from cryptography.hazmat.primitives import hashes\n",
    "durarepo/local/second_door.py": "import sqlite_utils\n",
    "durarepo/source/second_door.py": "import dulwich\nimport pygit2\n",
}
"""Modules that break a contract, with the few that must be there for them to do so."""

BREACHES = [
    r"durarepo\.utils",
    r"durarepo\.core\.uphill -> durarepo\.store\.port",
    r"durarepo\.format\.sideways -> durarepo\.crypto\.primitives",
    r"durarepo\.source\.sideways -> durarepo\.local\.lock",
    r"durarepo\.operations\.snapshot -> durarepo\.operations\.verify",
    r"durarepo\.operations\.nightly -> durarepo\.operations\.archival",
    r"durarepo\.store\.talkative -> click",
    r"durarepo\.policy\.wall_clock -> time",
    r"durarepo\.policy\.wall_clock -> os",
    r"durarepo\.brand_new_floor -> socket",
    r"durarepo\.crypto\.dice -> secrets",
    r"durarepo\.chunking\.second_door -> zstandard",
    r"durarepo\.chunking\.second_door -> pyfastcdc",
    r"durarepo\.crypto\.second_door -> cryptography",
    r"durarepo\.local\.second_door -> sqlite_utils",
    r"durarepo\.source\.second_door -> dulwich",
    r"durarepo\.source\.second_door -> pygit2",
]
"""What the report has to say about them."""


def check_contracts(top: Path) -> subprocess.CompletedProcess[str]:
    """Run the import contracts of a checkout in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": f"{top}:{top / 'cli'}", "COLUMNS": "200"}
    run = "from importlinter.cli import lint_imports_command as c; c()"
    command = [sys.executable, "-c", run, "--no-cache"]
    return subprocess.run(
        command, cwd=top, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the contracts say about a copy of the tree with every breach planted in it."""
    top = tmp_path_factory.mktemp("planted")
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(TOP / "durarepo", top / "durarepo", ignore=skip)
    shutil.copytree(TOP / "cli", top / "cli", ignore=skip)
    shutil.copy(TOP / "pyproject.toml", top)
    for path, text in PLANTED.items():
        (top / path).parent.mkdir(exist_ok=True)
        (top / path).write_text(text)
    report = check_contracts(top)
    assert report.returncode == 1, report.stdout + report.stderr
    return report.stdout


def test_the_contracts_hold() -> None:
    """Floors that leak upward are how a small program becomes a large one."""
    report = check_contracts(TOP)

    assert report.returncode == 0, report.stdout + report.stderr


@pytest.mark.parametrize("breach", BREACHES)
def test_a_planted_breach_is_reported(breach: str, broken: str) -> None:
    """A contract that nothing can break protects nothing."""
    assert re.search(breach + r"\b", broken), broken


def test_what_is_allowed_is_not_reported(broken: str) -> None:
    """An archival checkout is a checkout, and the nightly is made of other operations."""
    assert not re.search(r"operations\.archival -> durarepo\.operations\.checkout", broken)
    assert not re.search(r"operations\.nightly -> durarepo\.operations\.verify", broken)
