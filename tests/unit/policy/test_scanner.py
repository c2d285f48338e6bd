"""The engines: missing, damaged or partial ones end the run; nothing is kept unscanned."""
# ruff: noqa: S311 - seeds and statements of a test

import random
import sys

import pytest

from durarepo.core.errors import SourceError
from durarepo.policy import scanner
from durarepo.policy.allow import Allow, check_until, is_allowed, parse_until
from durarepo.policy.contentrules import ContentRules, may_be_wide
from durarepo.policy.decide import ContentPolicy
from durarepo.policy.scanning import shared_rules
from tests.policy.fresh import base64_lines, begin

LABEL = "RSA PRIVATE" + " KEY"


@pytest.fixture
def no_cache() -> object:
    """Engines are compiled once a process; these tests want them anew."""
    scanner.open_engine.cache_clear()
    yield None
    scanner.open_engine.cache_clear()


@pytest.mark.usefixtures("no_cache")
def test_without_any_engine_the_run_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Going on unscanned would store every secret there is."""
    monkeypatch.setitem(sys.modules, "re2", None)
    monkeypatch.setitem(sys.modules, "hyperscan", None)

    with pytest.raises(SourceError) as caught:
        scanner.open_engine()

    assert caught.value.code == "source.scanner"


@pytest.mark.usefixtures("no_cache")
def test_without_hyperscan_re2_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    """The faster engine is optional."""
    monkeypatch.setitem(sys.modules, "hyperscan", None)

    assert scanner.open_engine().name == scanner.RE2
    with pytest.raises(SourceError):
        scanner.open_engine(scanner.HYPERSCAN)


@pytest.mark.usefixtures("no_cache")
def test_hyperscan_takes_over_within_a_run_and_sees_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A change of engines in the middle of a run must change no decision."""
    monkeypatch.setattr(scanner, "_MUCH_BYTES", 4 * len(HEADER_ONLY))
    engine = scanner.open_engine()
    names, seen = [], []

    for _ in range(5):
        assert engine.seek(HEADER_ONLY, 0) is not None
        seen.append(list(engine.candidates(HEADER_ONLY)))
        names.append(engine.name)

    assert (names[0], names[-1]) == (scanner.RE2, scanner.HYPERSCAN)
    assert seen[0]
    assert all(one == seen[0] for one in seen)


@pytest.mark.usefixtures("no_cache")
def test_a_run_goes_on_with_re2_where_hyperscan_cannot_take_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An optional engine that is broken must neither end a run nor leave it unscanned."""
    monkeypatch.setattr(scanner, "_MUCH_BYTES", 4 * len(HEADER_ONLY))
    engine = scanner.open_engine()
    monkeypatch.setitem(sys.modules, "hyperscan", None)

    seen = [engine.seek(HEADER_ONLY, 0) for _ in range(6)]

    assert engine.name == scanner.RE2
    assert None not in seen
    assert engine.candidates(HEADER_ONLY)


@pytest.mark.parametrize("name", [scanner.RE2, scanner.HYPERSCAN])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("around", [b"", b"\0", b"\0\0\0\0\0", b"abc", b"\xff"])
def test_no_wide_text_is_passed_over(name: str, encoding: str, around: bytes) -> None:
    """What tells cheaply that no text is wide must never say so of text that is."""
    text = "~ azAZ09{}" * 2
    wide = [around + text[:length].encode(encoding) + around for length in range(len(text))]

    held = [one for one in wide if may_be_wide(one)]

    assert held
    assert all(scanner.open_engine(name).sees_wide(one) for one in held)
    assert not scanner.open_engine(name).sees_wide(around + text.encode() + around)


@pytest.mark.parametrize("name", [scanner.RE2, scanner.HYPERSCAN])
@pytest.mark.parametrize("before", [0, 1, 4095, 300_000, 3_000_000])
def test_a_probe_is_sought_wherever_it_stands(name: str, before: int) -> None:
    """Parts in which an engine sees nothing are passed over, so it must see all of them."""
    engine = scanner.open_engine(name)
    data = b"." * before + HEADER_ONLY + b"." * 5000
    first = engine.seek(data, 0)

    assert first is not None
    assert before <= first < before + len(HEADER_ONLY)
    assert engine.seek(data, first + len(HEADER_ONLY)) is None


@pytest.mark.parametrize("name", [scanner.RE2, scanner.HYPERSCAN])
@pytest.mark.parametrize("count", [1, 31, 32, 33, 200])
def test_the_last_of_many_probes_is_among_the_candidates(name: str, count: int) -> None:
    """How many probes are looked at one by one is a question of speed and of nothing else."""
    engine = scanner.open_engine(name)
    many = b" [sk]-abcdefgh sk-abcdefgh1234567890 " * count

    found = set(engine.candidates(many + HEADER_ONLY))

    assert set(engine.candidates(HEADER_ONLY)) <= found
    assert set(engine.candidates(many)) <= found


@pytest.mark.usefixtures("no_cache")
@pytest.mark.parametrize("name", [scanner.RE2, scanner.HYPERSCAN])
@pytest.mark.parametrize("damage", ["(", "never-seen"])
def test_a_damaged_table_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, name: str, damage: str
) -> None:
    """A table of which a rule is lost must not look like a clean file."""
    probes = [damage.encode(), *shared_rules().probes[1:]]
    monkeypatch.setattr(ContentRules, "probes", property(lambda _: probes))

    with pytest.raises(SourceError) as caught:
        scanner.open_engine(name)

    assert caught.value.code == "source.scanner"


POLICY = ContentPolicy(scanner.open_engine())
HEADER_ONLY = f"the first line is {begin(LABEL)} as you see\n".encode()
TODAY = parse_until("2026-06-01")
ENTRY = Allow(
    path=b"/a/tls.md", content="ab", rule="key-pem", reason="guide", until=parse_until("2026-07-01")
)


def test_an_entry_keeps_exactly_the_documentation_it_was_made_for() -> None:
    """A changed content, another path or another day is another decision."""
    judged = POLICY.judge(b"/a/tls.md", HEADER_ONLY)
    late = parse_until("2026-07-02")

    assert judged.is_waivable
    assert is_allowed([ENTRY], judged, path=b"/a/tls.md", content="ab", today=TODAY)
    assert not is_allowed([ENTRY], judged, path=b"/a/tls.md", content="ac", today=TODAY)
    assert not is_allowed([ENTRY], judged, path=b"/a/tls2.md", content="ab", today=TODAY)
    assert not is_allowed([ENTRY], judged, path=b"/a/tls.md", content="ab", today=late)


def test_no_entry_keeps_a_key_with_a_body() -> None:
    """An entry cannot waive what must not be kept; it settles that it is no key."""
    body = "\n".join(base64_lines(random.Random(1), 200))
    newlines = ("\n", "\\n", "\r\n", "\n> ", " ")
    for newline in newlines:
        key = newline.join([begin(LABEL), *body.split("\n")]).encode()

        judged = POLICY.judge(b"/a/tls.md", HEADER_ONLY + key)

        assert not judged.is_waivable, newline
        assert not is_allowed([ENTRY], judged, path=b"/a/tls.md", content="ab", today=TODAY)


def test_an_entry_for_longer_than_ninety_days_is_refused() -> None:
    """An exception that nobody looks at again becomes a hole."""
    check_until(parse_until("2026-08-30"), TODAY)
    with pytest.raises(Exception, match="90 days"):
        check_until(parse_until("2026-08-31"), TODAY)
    with pytest.raises(Exception, match="no date"):
        parse_until("soon")
