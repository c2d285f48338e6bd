"""Only a human at a terminal opens the way to an expired manifest (AICEP 10.5.6, A6i, A6j)."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.conftest import fill
from tests.cli.harness import Cli, copied, in_terminal


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """A stream with one manifest; tests take a copy."""
    cli = Cli(tmp_path_factory.mktemp("source") / "home")
    root = cli.home / "agent" / "notes"
    root.mkdir()
    fill(root)
    assert cli.run("init", "--stream", "notes", "--root", str(root)).code == 0
    assert cli.run("snapshot").code == 0
    return cli


@pytest.fixture
def kept(source: Cli, tmp_path: Path) -> Cli:
    """A stream with one manifest, of this test alone."""
    return copied(source, tmp_path)


def _answer(cli: Cli) -> bytes:
    """Return the words that agree, with the day on which the manifest was issued."""
    (run,) = (cli.state() / "runs.jsonl").read_bytes().splitlines()
    issued = datetime.fromtimestamp(json.loads(run)["value"]["issued"], UTC)
    return f"notes {issued:%Y-%m-%d}".encode()


def _log(cli: Cli) -> list[dict[str, object]]:
    path = cli.state() / "audit.jsonl"
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [line for line in lines if line["kind"] == "archival-checkout"]


def test_the_right_words_at_a_terminal_restore(kept: Cli) -> None:
    """After a loss most restores are archival ones; the careful way must work."""
    out = kept.home / "out"

    ran = in_terminal(
        kept, "checkout", "--archival", "--scratch", str(out), "--json", answers=[_answer(kept)]
    )

    assert ran.code == 0, ran.err
    assert ran.json()["held"] is True
    assert (out / ".durarepo" / "held.json").exists()
    assert len(_log(kept)) == 1


def test_each_prompt_shows_the_words_before_it_asks(kept: Cli) -> None:
    """Who types them must have seen what they agree to."""
    answer = _answer(kept).decode()

    ran = in_terminal(kept, "checkout", "--archival", answers=[])

    before, asked, _ = ran.err.partition("\n> ")
    assert asked
    assert before.endswith(f'"{answer}"')
    assert "manifest 1 was issued at" in before
    assert ran.stdout == b""


@pytest.mark.parametrize(
    "answers",
    [
        [b"yes", b"y", b"notes"],
        [b"notes 1999-01-01"] * 3,
        [b"", b"", b""],
        [b"yes"],
        [],
    ],
    ids=["yes", "other-day", "empty", "end-after-one", "end-at-once"],
)
def test_wrong_words_or_their_end_restore_nothing(kept: Cli, answers: list[bytes]) -> None:
    """Three wrong answers, or none, are a no."""
    out = kept.home / "out"

    ran = in_terminal(kept, "checkout", "--archival", "--scratch", str(out), answers=answers)

    assert ran.code == 31
    assert "[policy.no-human]" in ran.err
    assert not out.exists()
    assert _log(kept) == []


@pytest.mark.parametrize("padding", [b" %b", b"%b ", b"'%b'", b"\t%b"])
def test_nearly_the_right_words_are_wrong(kept: Cli, padding: bytes) -> None:
    """The words are exact, or it is not known who typed them."""
    wrong = padding % _answer(kept)

    ran = in_terminal(kept, "checkout", "--archival", answers=[wrong] * 3)

    assert ran.code == 31


def test_the_third_try_still_counts(kept: Cli) -> None:
    """Mistyping twice is human."""
    answers = [b"nots", b"notes", _answer(kept)]

    assert in_terminal(kept, "checkout", "--archival", answers=answers).code == 0


def test_the_fourth_try_does_not_count(kept: Cli) -> None:
    """Else a program could go through all dates."""
    ran = in_terminal(kept, "checkout", "--archival", answers=[b"no"] * 3 + [_answer(kept)])

    assert ran.code == 31
    assert ran.err.count("\n> ") == 3


def test_answers_from_a_pipe_are_not_a_human(kept: Cli) -> None:
    """A program that holds the pipe could answer anything."""
    answer = _answer(kept)

    piped = in_terminal(kept, "checkout", "--archival", answers=[answer], stdin=False)
    without = kept.run("checkout", "--archival", "--json", given=answer + b"\n")

    assert piped.code == without.code == 31
    assert without.error()["code"] == "policy.no-human"
    assert _log(kept) == []


@pytest.mark.parametrize("value", ["1", "true", ""])
def test_a_machine_of_ci_has_no_human(kept: Cli, value: str) -> None:
    """There a pseudo-terminal is common and a human is not."""
    ran = in_terminal(kept, "checkout", "--archival", answers=[_answer(kept)], CI=value)

    assert ran.code == 31
    assert _log(kept) == []


@pytest.mark.parametrize(
    "flag", ["--yes", "-y", "--force", "--confirm", "--no-input", "--assume-yes"]
)
def test_no_flag_answers(kept: Cli, flag: str) -> None:
    """A flag would be in the first script within a week."""
    ran = in_terminal(kept, "checkout", "--archival", flag, answers=[_answer(kept)])

    assert ran.code == 2
