"""What the program prints, word for word: fixtures/golden/cli holds it, a person reads changes.

What differs from run to run is replaced by a word: digests, times, places, versions. To write
the files anew: DURAREPO_WRITE_GOLDEN=1 sh tests/run tests/cli/test_golden.py
"""

import os
import re
from pathlib import Path

import pytest

from durarepo_cli.program import COMMANDS
from tests.cli.conftest import fill
from tests.cli.harness import TOP, Cli

FOLDER = TOP / "fixtures" / "golden" / "cli"
_MTIME = 1_000_000_000

INNER = [
    *("exclude test", "exclude explain", "exclude add", "exclude allow"),
    *("keys list", "keys rotate-signing", "keys rotate-naming", "keys add-recipient"),
    *("keys retire-recipient", "keys new-signer"),
    *("registry show", "registry draft", "registry sign", "registry admit"),
    *("remote list", "remote check"),
]
"""Commands within groups."""

SESSION = {
    "log": ["log"],
    "show": ["show", "1"],
    "ls": ["ls", "1", "--recursive"],
    "ls-part": ["ls", "1", "deep"],
    "cat": ["cat", "1", "a.txt"],
    "diff": ["diff", "1", "2"],
    "find": ["find", "*.txt"],
    "verify": ["verify", "--data"],
    "checkout-dry": ["checkout", "--dry-run"],
    "status": ["status"],
    "keys-list": ["keys", "list"],
    "registry-show": ["registry", "show"],
    "exclude-test": ["exclude", "test", "--root", "agent/notes", "a.txt", ".ssh/id_ed25519"],
    "exclude-explain": ["exclude", "explain", "--root", "agent/notes", ".ssh/id_ed25519"],
    "explain": ["explain", "trust.rollback"],
    "wrong-sequence": ["show", "99"],
    "wrong-path": ["ls", "1", "nowhere"],
    "wrong-option": ["log", "--newest"],
    "wrong-command": ["restore"],
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """A stream with two manifests and everything that it said on the way."""
    cli = Cli(tmp_path_factory.mktemp("golden") / "home")
    root = cli.home / "agent" / "notes"
    root.mkdir()
    fill(root)
    _set_times(root)
    said = [cli.run("init", "--stream", "notes", "--root", str(root), "--human", "me@example.org")]
    said.append(cli.run("snapshot"))
    (root / "new.txt").write_text("new")
    (root / "a.txt").write_text("changed")
    _set_times(root)
    said.append(cli.run("snapshot"))
    assert cli.run("verify", "--data").code == 0  # status tells of it
    for name, ran in zip(("init", "snapshot", "snapshot-again"), said, strict=True):
        (cli.home / f"{name}.said").write_bytes(ran.stdout + ran.stderr)
    return cli


def _set_times(root: Path) -> None:
    for path in (*root.rglob("*"), root):
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (_MTIME, _MTIME))


@pytest.mark.parametrize("name", ["init", "snapshot", "snapshot-again"])
def test_what_a_command_that_writes_says_is_as_it_was(told: Cli, name: str) -> None:
    """Words that change without need cost every reader a second look."""
    _compare(name, _plain((told.home / f"{name}.said").read_text(), told))


@pytest.mark.parametrize("name", SESSION)
@pytest.mark.parametrize("form", ["text", "json"])
def test_what_a_command_says_is_as_it_was(told: Cli, name: str, form: str) -> None:
    """Scripts read the JSON and people the text; neither may change by accident."""
    if (name, form) == ("cat", "json"):
        form = "json-refused"
    options = ["--json"] if form.startswith("json") else []

    ran = told.run(*SESSION[name], *options)

    whole = f"exit {ran.code}\n--- stdout\n{ran.out}--- stderr\n{ran.err}"
    _compare(f"{name}.{form}", _plain(whole, told))


@pytest.mark.parametrize("name", ["durarepo", *COMMANDS, *INNER])
def test_help_is_as_it_was(cli: Cli, name: str) -> None:
    """Options are a promise; a change of one has to be seen."""
    call = [] if name == "durarepo" else name.split()

    _compare(f"help-{name.replace(' ', '-')}", cli.run(*call, "--help").out)


def test_every_golden_file_belongs_to_a_test() -> None:
    """A file that nothing compares says nothing."""
    names = {"init", "snapshot", "snapshot-again"}
    names |= {f"{name}.{form}" for name in SESSION for form in ("text", "json")}
    names |= {
        f"help-{name}"
        for name in ("durarepo", *COMMANDS, *(one.replace(" ", "-") for one in INNER))
    }
    names = names - {"cat.json"} | {"cat.json-refused"}

    assert {path.stem for path in FOLDER.iterdir()} == names


def _plain(text: str, cli: Cli) -> str:
    """Replace what no two runs have alike."""
    text = text.replace("/var/lib/durarepo", str(cli.home / "var" / "durarepo"))
    text = text.replace(str(cli.home), "/HOME")
    text = re.sub(r"(new {7})[^,]+, stored as [0-9.]+ [KM]?i?B", r"\1SIZE, stored as SIZE", text)
    text = re.sub(r'("policy": )"[^"]*"', r'\1"WORD"', text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "HEX", text)
    text = re.sub(r"(durarepo-recipient-1) [0-9a-f]+ [0-9a-f]{8}", r"\1 HEX CHECK", text)
    text = re.sub(r"\b20(?!01-09-09)[0-9-]{8}T[0-9:]{8}(\.[0-9]{9})?Z", "TIME", text)
    text = re.sub(r'("engine": "|scanner {7})(hyperscan|re2)', r"\1ENGINE", text)
    text = re.sub(r'("host": )\{[^}]*\}', r"\1{}", text)
    text = re.sub(r'"(uid|gid)": [0-9]+', r'"\1": ID', text)
    return re.sub(r'("L|"path_b64": ")[A-Za-z0-9+/=]+"', r'\1BASE64"', text)


def _compare(name: str, text: str) -> None:
    path = FOLDER / f"{name}.txt"
    if os.environ.get("DURAREPO_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()
