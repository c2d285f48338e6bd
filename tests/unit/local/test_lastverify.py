"""The note of the last verification: told to people, believed for nothing, hides no failure."""

from pathlib import Path

import pytest

from durarepo.local.lastverify import LastVerify, Outcome

FAILED = Outcome(level="packs", is_share=False, at=100, ok=False, problems=3)


def passed(level: str, *, is_share: bool = False) -> Outcome:
    """Return a verification that found nothing."""
    return Outcome(level=level, is_share=is_share, at=200, ok=True, problems=0)


@pytest.fixture
def last(tmp_path: Path) -> LastVerify:
    """Give the note of a stream that was never verified."""
    return LastVerify(bytes(tmp_path / "state"))


def test_what_was_noted_is_told_again(last: LastVerify) -> None:
    """Nobody was there when it failed."""
    assert last.outcome() is None

    last.note(FAILED)

    assert last.outcome() == FAILED


@pytest.mark.parametrize(
    ("held", "later", "is_replaced"),
    [
        (FAILED, passed("chain"), False),
        (FAILED, passed("packs"), True),
        (FAILED, passed("data", is_share=True), True),
        (Outcome(level="data", is_share=False, at=1, ok=False, problems=1), passed("packs"), False),
        (
            Outcome(level="data", is_share=False, at=1, ok=False, problems=1),
            passed("data", is_share=True),
            False,
        ),
        (passed("data"), FAILED, True),
        (passed("data"), passed("chain"), True),
    ],
)
def test_a_failure_stays_until_a_run_that_can_see_it_has_passed(
    last: LastVerify, held: Outcome, later: Outcome, *, is_replaced: bool
) -> None:
    """A quick look at the chain must not make damaged data look whole."""
    last.note(held)
    last.note(later)

    assert last.outcome() == (later if is_replaced else held)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'{"level":"all","share":false,"at":1,"ok":true,"problems":0}',
        b'{"level":"data","share":false,"at":1,"ok":1,"problems":0}',
        b'{"level":"data","share":false,"at":1,"ok":true,"problems":-1}',
        b"[" * 4000,
        b" " * 5000,
    ],
)
def test_a_damaged_note_counts_as_none(last: LastVerify, tmp_path: Path, data: bytes) -> None:
    """It may not end a snapshot, nor be taken for a good word."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "verified.json").write_bytes(data)

    assert last.outcome() is None
    last.note(passed("chain"))
    assert last.outcome() == passed("chain")
