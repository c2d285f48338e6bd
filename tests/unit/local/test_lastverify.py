"""The note of the last verification: told to people, believed for nothing, hides no failure."""

from pathlib import Path

import pytest

from durarepo.core.names import ObjectName
from durarepo.local.lastverify import BAD_MAX, LastVerify, Outcome, PackFinding

FAILED = Outcome(level="packs", is_share=False, at=100, ok=False, problems=3)


def passed(level: str, *, is_share: bool = False) -> Outcome:
    """Return a verification that found nothing."""
    return Outcome(level=level, is_share=is_share, at=200, ok=True, problems=0)


PACK = ObjectName("ab" * 32)


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
        (FAILED, Outcome(level="data", is_share=False, at=2, ok=False, problems=0), False),
        (passed("packs"), Outcome(level="data", is_share=False, at=2, ok=False, problems=0), True),
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
        b" " * 5_000_000,
    ],
)
def test_a_damaged_note_counts_as_none(last: LastVerify, tmp_path: Path, data: bytes) -> None:
    """It may not end a snapshot, nor be taken for a good word."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "verified.json").write_bytes(data)

    assert last.outcome() is None
    last.note(passed("chain"))
    assert last.outcome() == passed("chain")


@pytest.mark.parametrize(
    ("found", "again", "is_bad"),
    [
        ("packs", None, True),
        ("packs", "packs", False),
        ("packs", "data", False),
        ("data", "packs", True),
        ("data", "data", False),
    ],
)
def test_a_bad_pack_stays_bad_until_it_was_seen_good_as_closely(
    last: LastVerify, found: str, again: str | None, *, is_bad: bool
) -> None:
    """A look that cannot see the damage must not let the next snapshot build upon it."""
    last.note(FAILED, {PACK: PackFinding(is_bad=True, level=found)})
    assert last.bad_packs() == {PACK: found}

    seen = {} if again is None else {PACK: PackFinding(is_bad=False, level=again)}
    last.note(passed("data"), seen)

    assert last.bad_packs() == ({PACK: found} if is_bad else {})


def test_no_more_bad_packs_are_noted_than_can_be_read_again(last: LastVerify) -> None:
    """A note that outgrows its limit is lost as a whole."""
    finding = PackFinding(is_bad=True, level="packs")

    last.note(FAILED, {ObjectName(f"{n:064x}"): finding for n in range(BAD_MAX + 5)})

    assert (last.outcome(), len(last.bad_packs())) == (FAILED, BAD_MAX)


@pytest.mark.parametrize("bad", ["7", '{"packs":7}', '{"packs":["..",7]}', f'{{"all":["{PACK}"]}}'])
def test_names_that_are_none_are_passed_over(last: LastVerify, tmp_path: Path, bad: str) -> None:
    """The file may hold anything; it may not end a snapshot."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "verified.json").write_text(
        '{"level":"packs","share":false,"at":100,"ok":false,"problems":3,"bad":' + bad + "}"
    )

    assert (last.outcome(), last.bad_packs()) == (FAILED, {})
