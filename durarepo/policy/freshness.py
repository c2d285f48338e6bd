"""Expiry at the live time: every question takes `now`, none reads a clock.

Expiry only ever makes durarepo refuse (law 7). Source: spec/ingest.md 3.12, 3.13, 4.25 to 4.28.
Start at `check_not_expired`.
"""

from datetime import UTC, datetime

from durarepo.core.errors import FreshnessError, TrustError
from durarepo.core.limits import ISSUED_AHEAD_SECONDS, MANIFEST_TTL_SECONDS

_YEAR_9999 = 253_402_300_799


def utc_text(seconds: int) -> str:
    """Return seconds since 1970 as RFC 3339 UTC text; years beyond 9999 as a number."""
    if not 0 <= seconds <= _YEAR_9999:
        return f"@{seconds}"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def check_issued(issued: int, now: int, *, what: str) -> None:
    """Refuse what claims to come from the future (ingest 3.12, 4.26).

    Raises:
        FreshnessError: ``ahead``.
    """
    if issued > now + ISSUED_AHEAD_SECONDS:
        raise FreshnessError(
            "ahead",
            f"{what} was issued at {utc_text(issued)}, after the live time {utc_text(now)}",
            hint="set this machine's clock; reading goes on once it is right",
        )


def check_lifetime(issued: int, expires: int) -> None:
    """Refuse a manifest that does not live exactly 24 hours (ingest 4.25, AICEP 10.5.3.1).

    Raises:
        TrustError: ``lifetime``.
    """
    if expires != issued + MANIFEST_TTL_SECONDS:
        raise TrustError("lifetime", "manifest does not expire 24 hours after it was issued")


def check_clock(now: int, high_water: int) -> None:
    """Refuse a clock that is behind its high-water (ingest 4.27).

    Raises:
        FreshnessError: ``clock``.
    """
    if now < high_water:
        raise FreshnessError(
            "clock",
            f"clock says {utc_text(now)}, but {utc_text(high_water)} has been before",
            hint="set this machine's clock, then run the command again",
        )


def check_not_expired(expires: int, now: int, *, sequence: int, stream: str) -> None:
    """Refuse to restore an expired manifest (ingest 4.28).

    Raises:
        FreshnessError: ``expired``.
    """
    if now >= expires:
        raise FreshnessError(
            "expired",
            f"manifest {sequence} of stream '{stream}' expired at {utc_text(expires)}",
            hint=f"a person restores it with: durarepo checkout --archival --at {sequence}",
        )
