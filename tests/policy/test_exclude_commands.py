"""``durarepo exclude add`` and ``allow`` on a real stream: what they write and refuse."""
# ruff: noqa: S311 - a seed of a test

import random
from pathlib import Path

import pytest

from durarepo.local.configuration import parse_configuration
from tests.cli.harness import Cli
from tests.policy.fresh import base64_lines, begin

LABEL = "RSA PRIVATE" + " KEY"


@pytest.fixture
def stream(tmp_path: Path) -> tuple[Cli, Path]:
    """A stream of one root with documentation and a key in it."""
    cli = Cli(tmp_path / "home")
    root = tmp_path / "root"
    root.mkdir()
    (root / "guide.md").write_text(f"it begins with {begin(LABEL)} and ends likewise\n")
    body = base64_lines(random.Random(2), 300)
    (root / "notes.md").write_text("\n".join([begin(LABEL), *body]))
    assert cli.run("init", "--stream", "notes", "--root", str(root)).code == 0
    return cli, root


def configuration(cli: Cli) -> Path:
    """Return the stream.toml of the only stream."""
    return next(iter(cli.home.rglob("stream.toml")))


def test_an_added_pattern_stands_beside_all_that_was_there(stream: tuple[Cli, Path]) -> None:
    """People write comments into stream.toml; a program must not lose them."""
    cli, _ = stream
    file = configuration(cli)
    file.write_text("# mine\n" + file.read_text() + "# end\n")

    assert cli.run("exclude", "add", "*.tmp").code == 0
    assert cli.run("exclude", "add", "draft/**").code == 0

    text = file.read_text()
    assert text.startswith("# mine\n")
    assert text.endswith("# end\n")
    assert parse_configuration(text.encode()).roots[0].exclude == ("*.tmp", "draft/**")


def test_documentation_can_be_allowed_and_a_key_cannot(stream: tuple[Cli, Path]) -> None:
    """An entry settles that a header is documentation; it waives no key (31)."""
    cli, root = stream

    allowed = cli.run("exclude", "allow", str(root / "guide.md"), "--reason", "a guide")
    refused = cli.run("exclude", "allow", str(root / "notes.md"), "--reason", "no", "--json")

    assert allowed.code == 0
    assert refused.code == 31
    assert refused.error()["code"] == "policy.not-waivable"
    (entry,) = parse_configuration(configuration(cli).read_bytes()).allows
    assert (entry.path, entry.rule) == (str(root / "guide.md"), "key-pem")
    assert len(entry.content) == 64


def test_a_pattern_that_never_fits_is_refused_and_none_is_added_twice(
    stream: tuple[Cli, Path],
) -> None:
    """'added' for a pattern that leaves nothing out would be a promise that is not kept."""
    cli, root = stream
    assert cli.run("exclude", "add", str(root / "a2")).code == 0
    before = configuration(cli).read_bytes()

    for wrong in ("", "[", "/elsewhere/a2", "../a2"):
        refused = cli.run("exclude", "add", wrong, "--json")
        assert (refused.code, refused.error()["code"]) == (2, "config.invalid"), wrong
    assert cli.run("exclude", "add", str(root / "a2")).code == 0

    assert configuration(cli).read_bytes() == before


def test_what_cannot_be_allowed_is_told_apart(stream: tuple[Cli, Path]) -> None:
    """One refusal for all of them sent people looking for a secret that was not there."""
    cli, root = stream
    (root / "plain.md").write_text("words")
    (root / "id_rsa").write_text("words")
    found = {}
    for name in ("missing.md", "plain.md", "id_rsa"):
        answer = cli.run("exclude", "allow", str(root / name), "--reason", "no", "--json")
        found[name] = (answer.code, answer.error()["code"])

    assert found == {
        "missing.md": (2, "select.not-there"),
        "plain.md": (31, "policy.not-needed"),
        "id_rsa": (31, "policy.not-content"),
    }
