"""No key leaves its file: not by arguments, output, errors, state or memory of a child (A2e)."""

import base64
import subprocess
from pathlib import Path

import pytest

from durarepo.format.keytext import parse_key
from tests.cli.harness import Cli, Ran

_KINDS = {
    "signing.key": "signing",
    "naming.key": "naming",
    "locator.key": "locator",
    "identity.key": "identity",
    "owner.key": "owner",
}
_PART = 16


def _needles(cli: Cli) -> dict[str, bytes]:
    """Return every form in which a part of a key could show, by what it is."""
    found: dict[str, bytes] = {}
    for name, kind in _KINDS.items():
        text = (cli.keys() / name).read_bytes()
        secret = parse_key(kind, text)
        for at in range(0, len(secret) - _PART + 1, _PART):
            part = secret[at : at + _PART]
            where = f"{name}[{at}]"
            found[f"{where} raw"] = part
            found[f"{where} hex"] = part.hex().encode()
            found[f"{where} HEX"] = part.hex().upper().encode()
            found[f"{where} repr"] = repr(part)[2:-1].encode()
        for shift in range(3):
            coded = base64.b64encode(bytes(shift) + secret)[4 : 4 + 20]
            found[f"{name} base64+{shift}"] = coded
            found[f"{name} urlsafe+{shift}"] = coded.translate(bytes.maketrans(b"+/", b"-_"))
        found[f"{name} text"] = max(text.replace(b":", b" ").split(), key=len)[8:40]
    assert min(map(len, found.values())) >= _PART
    return found


def _check(needles: dict[str, bytes], place: str, data: bytes) -> None:
    shown = [what for what, needle in needles.items() if needle in data]
    assert not shown, f"{place} holds {shown}"


def _files(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


def _calls(cli: Cli) -> list[list[str]]:
    out, root = str(cli.home / "out"), str(cli.home / "agent" / "notes")
    return [
        ["snapshot"],
        ["snapshot", "--type", "auto", "--budget", "1h", "--partial"],
        ["log"],
        ["show", "latest"],
        ["show", "latest", "--ledger"],
        ["ls", "latest", "--recursive"],
        ["cat", "latest", "a.txt"],
        ["diff", "1"],
        ["find", "*"],
        ["verify", "--data"],
        ["checkout", "--scratch", out],
        ["held", out],
        ["status"],
        ["keys", "list"],
        ["registry", "show"],
        ["explain", "keys.malformed"],
        ["init", "--stream", "notes", "--root", root],
        ["checkout", "--archival"],
    ]


@pytest.mark.parametrize("options", [["-v"], ["--json", "-v"]], ids=" ".join)
def test_no_command_shows_a_key(fresh: Cli, options: list[str]) -> None:
    """Each command is run with known keys, and everything it leaves is searched for them."""
    needles = _needles(fresh)

    for call in _calls(fresh):
        ran = fresh.run(*call, *options)
        _check(needles, f"stdout of {call}", ran.stdout)
        _check(needles, f"stderr of {call}", ran.stderr)
    places = [fresh.repository(), fresh.state().parent, fresh.home / "out"]
    for path in _files(*places):
        _check(needles, str(path), path.read_bytes())


@pytest.mark.parametrize("name", [name for name in _KINDS if name != "owner.key"])
@pytest.mark.parametrize("harm", ["cut", "flip", "double", "other-kind", "binary"])
def test_an_error_about_a_key_does_not_quote_it(fresh: Cli, name: str, harm: str) -> None:
    """The easiest way for a key into a log is the message that it is malformed."""
    needles = _needles(fresh)
    path = fresh.keys() / name
    text = path.read_bytes()
    path.write_bytes(
        {
            "cut": text[:-3],
            "flip": text[:-2] + bytes((text[-2] ^ 1,)) + text[-1:],
            "double": text + text,
            "other-kind": text.replace(_KINDS[name].encode(), b"audit", 1),
            "binary": parse_key(_KINDS[name], text),
        }[harm]
    )

    for options in ([], ["--json"], ["-v"]):
        ran = fresh.run("keys", "list", *options)
        assert ran.code == 12
        for what, data in (("stdout", ran.stdout), ("stderr", ran.stderr)):
            _check(needles, f"{what} of {options}", data)


def test_a_key_given_as_a_recipient_by_mistake_is_not_quoted(fresh: Cli) -> None:
    """Somebody will pass the identity where its public half is wanted."""
    needles = _needles(fresh)
    text = (fresh.keys() / "identity.key").read_text().strip()
    other = fresh.home / "agent" / "other"
    other.mkdir()

    for value in (text, str(fresh.keys() / "identity.key")):
        ran = fresh.run("init", "--stream", "other", "--root", str(other), "--recipient", value)
        assert ran.code == 12
        _check(needles, "stderr", ran.stderr)
        _check(needles, "stdout", ran.stdout)


_WATCHED = """
import os, sys
commands = []
def note(event, arguments):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.putenv"):
        commands.append(repr(arguments))
sys.addaudithook(note)
from durarepo_cli.main import main
code = main(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    file.write("\\n".join(commands))
    for name in ("cmdline", "environ"):
        file.write(repr(open(f"/proc/self/{name}", "rb").read()))
sys.exit(code)
"""


def test_no_key_reaches_an_argument_or_the_environment(fresh: Cli, tmp_path: Path) -> None:
    """Arguments and environment of a process are open to others on the machine."""
    needles = _needles(fresh)
    note = tmp_path / "note"

    for call in _calls(fresh)[:-2]:
        done = subprocess.run(
            [*fresh.command()[:-2], "-c", _WATCHED, str(note), *call],
            env=fresh.environment,
            capture_output=True,
            check=False,
        )
        assert done.returncode in (0, 31), (call, done.stderr)
        _check(needles, f"processes of {call}", note.read_bytes())


_BROKEN = """
import sys
from durarepo.crypto import primitives
from durarepo_cli.main import main
def fail(*arguments, **more):
    raise ValueError(repr(arguments) + repr(more))
primitives.{name} = fail
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("name", ["derive_subkey", "keyed_hash", "signer_public"])
def test_a_bug_between_keys_shows_none(fresh: Cli, name: str) -> None:
    """An exception of a lower floor may well carry what it was called with."""
    needles = _needles(fresh)

    for options in ([], ["-v"], ["--json", "-v"]):
        done = subprocess.run(
            [*fresh.command()[:-2], "-c", _BROKEN.format(name=name), "keys", "list", *options],
            env=fresh.environment,
            capture_output=True,
            check=False,
        )
        ran = Ran(done.returncode, done.stdout, done.stderr)
        assert ran.code == 70
        _check(needles, "stdout", ran.stdout)
        _check(needles, "stderr", ran.stderr)


def test_the_search_finds_a_key_that_is_there(fresh: Cli) -> None:
    """A search that finds nothing anywhere proves nothing."""
    needles = _needles(fresh)
    secret = parse_key("identity", (fresh.keys() / "identity.key").read_bytes())

    for data in (secret, secret.hex().encode(), base64.b64encode(b"x" + secret), repr(secret)):
        text = data.encode() if isinstance(data, str) else data
        with pytest.raises(AssertionError):
            _check(needles, "here", b"..." + text + b"...")
