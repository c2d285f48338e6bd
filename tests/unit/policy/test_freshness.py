"""Expiry at the live time: each border to the second."""

import pytest

from durarepo.core.errors import FreshnessError, TrustError
from durarepo.policy import freshness

NOW = 1_800_000_000


def test_what_was_issued_600_seconds_ahead_is_taken_and_601_is_not() -> None:
    """Two clocks differ a little; a manifest from tomorrow is something else (ingest 4.26)."""
    freshness.check_issued(NOW + 600, NOW, what="manifest 1")
    with pytest.raises(FreshnessError) as caught:
        freshness.check_issued(NOW + 601, NOW, what="manifest 1")

    assert caught.value.code == "fresh.ahead"


@pytest.mark.parametrize("difference", [-1, 0, 86_399, 86_401, 2**62])
def test_a_manifest_lives_24_hours_exactly(difference: int) -> None:
    """A longer life would let an old state pass as the newest (AICEP 10.5.3.1)."""
    freshness.check_lifetime(NOW, NOW + 86_400)
    with pytest.raises(TrustError) as caught:
        freshness.check_lifetime(NOW, NOW + difference)

    assert caught.value.code == "trust.lifetime"


def test_a_clock_may_stand_still_but_not_run_back() -> None:
    """Turning a clock back must not make an expired manifest fresh (ingest 4.27)."""
    freshness.check_clock(NOW, NOW)
    with pytest.raises(FreshnessError) as caught:
        freshness.check_clock(NOW - 1, NOW)

    assert caught.value.code == "fresh.clock"


def test_a_manifest_has_expired_in_the_second_that_it_states() -> None:
    """The last good second is the one before (ingest 4.28)."""
    freshness.check_not_expired(NOW, NOW - 1, sequence=4, stream="notes")
    with pytest.raises(FreshnessError) as caught:
        freshness.check_not_expired(NOW, NOW, sequence=4, stream="notes")

    assert caught.value.code == "fresh.expired"
    assert "--at 4" in caught.value.hint


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (NOW, "2027-01-15T08:00:00Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
        (253_402_300_800, "@253402300800"),
        (2**62, "@4611686018427387904"),
        (-1, "@-1"),
    ],
)
def test_any_time_can_be_shown(seconds: int, text: str) -> None:
    """A hostile time must not break the message that tells of it."""
    assert freshness.utc_text(seconds) == text
