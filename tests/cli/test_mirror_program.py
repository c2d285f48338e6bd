"""`durarepo-mirror` as a program: tokens, the unit, and what it refuses to start with."""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import TOP

_CODE = "import sys; from durarepo_cli.mirror import main; sys.exit(main())"
GOOD = 'folder = "/f"\ncertificate = "/c"\nkey = "/k"\ntokens = "/t"\n'


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program to its end."""
    environment = {"PYTHONPATH": f"{TOP}:{TOP / 'cli'}", "PATH": os.environ["PATH"]}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", _CODE, *arguments],
        env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_a_token_comes_with_its_line_and_is_new_each_time() -> None:
    """The first line goes to the client, the second into the tokens file."""
    first, second = run("token", "--scope", "notes"), run("token", "--scope", "notes")
    given, line = first.stdout.splitlines()

    assert first.returncode == 0
    assert re.fullmatch(r"bearer [A-Za-z0-9_-]{43}", given)
    digest = hashlib.sha256(given.partition(" ")[2].encode()).hexdigest()
    assert line == f"notes put {digest}"
    assert first.stdout != second.stdout


def test_a_full_standard_output_is_told_without_a_traceback() -> None:
    """A token that nobody got must not look like one that was made."""
    environment = {"PYTHONPATH": f"{TOP}:{TOP / 'cli'}", "PATH": os.environ["PATH"]}
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", _CODE, "token", "--scope", "notes"],
            env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            timeout=60,
        )  # fmt: skip

    assert ran.returncode not in {0, 1}
    assert "[store.output]" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("scope", ["", "A", "../x", "-", "a b"])
def test_a_scope_that_cannot_be_is_refused(scope: str) -> None:
    """It becomes the name of a folder and a part of a URL."""
    ran = run("token", "--scope", scope)

    assert ran.returncode == 2
    assert "[config.tokens]" in ran.stderr


def test_the_unit_starts_the_server_with_little_more_than_its_folder() -> None:
    """What a server on the network does not need, it should not have."""
    unit = run("unit", "--config", "/etc/m.toml").stdout

    assert " serve --config /etc/m.toml\n" in unit
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet=\n"):
        assert line in unit


@pytest.mark.parametrize(
    "text",
    [
        "", "not toml", GOOD + "tls = false\n", GOOD.replace("/f", "f"), GOOD + "port = 70000\n",
        GOOD + "port = true\n", GOOD + "quota_bytes = -1\n", GOOD,
    ],
)  # fmt: skip
def test_settings_that_cannot_be_are_told_in_two_lines(tmp_path: Path, text: str) -> None:
    """An unknown key is a typing mistake, and no key switches TLS off."""
    (tmp_path / "mirror.toml").write_text(text)

    ran = run("serve", "--config", str(tmp_path / "mirror.toml"))

    assert ran.returncode == 2
    assert ran.stderr.startswith("durarepo-mirror: error: ")
    assert "[config.mirror]" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""


def test_a_file_that_is_not_there_and_a_call_that_is_wrong_are_told(tmp_path: Path) -> None:
    """Neither shows a traceback."""
    absent, wrong = run("serve", "--config", str(tmp_path / "no")), run("serve", "--nonsense")

    assert (absent.returncode, wrong.returncode) == (2, 2)
    assert "[config.mirror]" in absent.stderr
    assert "[config.usage]" in wrong.stderr


def test_a_missing_package_of_the_extra_is_told() -> None:
    """Who installed durarepo without the extra needs one line, not a traceback."""
    code = "import sys; sys.modules['uvicorn'] = None; " + _CODE.removeprefix("import sys; ")
    ran = subprocess.run(
        [sys.executable, "-c", code, "serve", "--config", "/nowhere"],
        env={"PYTHONPATH": f"{TOP}:{TOP / 'cli'}", "PATH": os.environ["PATH"]},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert ran.returncode == 2
    assert "'uvicorn'" in ran.stderr
    assert "durarepo[mirror]" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_program_says_its_version_and_help() -> None:
    """Both without loading the server."""
    assert run("--version").stdout.startswith("durarepo-mirror ")
    assert "serve" in run("-h").stdout
    assert run().returncode in {0, 2}
