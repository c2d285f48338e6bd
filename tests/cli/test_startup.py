"""What a command costs before it does anything."""

import subprocess
import sys

import pytest

from durarepo_cli.program import COMMANDS
from tests.cli.harness import TOP, Cli

HEAVY = {
    *("asyncio", "concurrent.futures", "dulwich", "importlib.metadata", "multiprocessing"),
    *("numpy", "pygit2", "sqlite_utils", "ssl", "unittest", "urllib.request", "email", "http"),
    *("cryptography.x509", "tempfile", "difflib", "traceback"),
}
NOT_FOR_LOG = {
    "ctypes",
    *("durarepo.chunking.chunker", "durarepo.format.manifest", "durarepo.format.tree"),
    "durarepo.local.work",
    *("durarepo.repository.reader", "durarepo.repository.scratch", "durarepo.repository.writer"),
    *("durarepo.source.walk", "durarepo.source.reading", "pyfastcdc"),
}
_LIST = (
    "import sys, atexit\n"
    "atexit.register(lambda: sys.stderr.write('\\n'.join(sys.modules)))\n"
    "from durarepo_cli.main import main\n"
    "sys.exit(main(sys.argv[1:]))\n"
)


def _modules(cli: Cli, *arguments: str) -> set[str]:
    command = cli.command()[:-2]
    done = subprocess.run(
        [*command, "-c", _LIST, *arguments],
        env=cli.environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.decode().split("\n"))


@pytest.mark.parametrize(
    "call", [["log"], ["status"], ["ls", "latest"], ["keys", "list"]], ids=" ".join
)
def test_a_quick_command_imports_nothing_heavy(fresh: Cli, call: list[str]) -> None:
    """Commands that are typed all day must be there at once."""
    assert fresh.run("snapshot").code == 0

    found = _modules(fresh, *call)

    assert found & HEAVY == set()
    assert "durarepo.operations.snapshot" not in found
    if call == ["log"]:
        assert found & NOT_FOR_LOG == set()


def test_the_crypto_package_is_checked_once_a_run(fresh: Cli) -> None:
    """It is the dearest step of a command that only lists."""
    program = (
        "import sys, atexit\n"
        "from durarepo.local import cryptopin\n"
        "check, calls = cryptopin.check_crypto_package, []\n"
        "cryptopin.check_crypto_package = lambda: calls.append(check())\n"
        "atexit.register(lambda: sys.stderr.write(repr(calls)))\n"
        "from durarepo_cli.main import main\n"
        "sys.exit(main(['log']))\n"
    )
    command = fresh.command()[:-2]

    done = subprocess.run(
        [*command, "-c", program], env=fresh.environment, capture_output=True, check=False
    )

    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == b"[None]"


def test_help_imports_no_command(cli: Cli) -> None:
    """The table knows the names; help works even where a command is broken."""
    found = _modules(cli, "--help")

    assert {name for name in found if name.startswith("durarepo_cli.commands.")} == set()
    assert "cryptography" not in found


@pytest.mark.parametrize("name", [name for name, row in COMMANDS.items() if not row.uses_keys])
def test_a_command_without_keys_imports_no_crypto(cli: Cli, name: str) -> None:
    """It must answer even if the package is broken."""
    arguments = {
        "exclude": ["test", str(cli.home)],
        "explain": ["trust.rollback"],
        "held": [str(cli.home)],
    }

    assert "cryptography" not in _modules(cli, name, *arguments[name])


@pytest.mark.parametrize("name", [name for name, row in COMMANDS.items() if row.uses_keys])
def test_the_crypto_package_is_checked_before_it_is_imported(name: str) -> None:
    """A package that is not the pinned one must not run, not even to be refused (A5d)."""
    program = (
        "import sys\n"
        "from durarepo.local import cryptopin\n"
        "from durarepo.core.errors import KeyMaterialError\n"
        "def refuse():\n"
        "    assert not [one for one in sys.modules if one.startswith('cryptography')]\n"
        "    raise KeyMaterialError('crypto-pin', 'refused')\n"
        "cryptopin.check_crypto_package = refuse\n"
        "from durarepo_cli.main import main\n"
        "sys.exit(main([sys.argv[1]]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, name],
        env={"PYTHONPATH": f"{TOP}:{TOP / 'cli'}", "HOME": "/nowhere"},
        capture_output=True,
        check=False,
    )

    assert done.returncode == 12
    assert b"[keys.crypto-pin]" in done.stderr


def test_the_program_needs_no_home_for_help() -> None:
    """A service may have none."""
    done = subprocess.run(
        [sys.executable, "-m", "durarepo_cli.main", "--help"],
        env={"PYTHONPATH": f"{TOP}:{TOP / 'cli'}"},
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")
