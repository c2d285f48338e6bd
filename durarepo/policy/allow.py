"""Reviewed exceptions: that one content at one path is a header in documentation, and no key.

An entry holds for exactly one content, known by a keyed hash, for at most 90 days. It can only
settle that what a rule saw is no key; a key with a body, a credential and everything that a
path rule leaves out stay out, since no entry waives what must not be kept.
Source: spec/exclusion.md 8. Start at `is_allowed`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

from durarepo.core.errors import ConfigurationError

if TYPE_CHECKING:
    from durarepo.policy.decide import Judged  # every command reads entries; few judge

ALLOW_DAYS_MAX = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow:
    """One entry. ``content`` is the keyed hash in lower-case hexadecimal; ``until`` is its end."""

    path: bytes
    content: str
    rule: str
    reason: str
    until: date


def parse_until(text: str) -> date:
    """Return the last day of an entry.

    Raises:
        ConfigurationError: ``allow``: no date of the form YYYY-MM-DD.
    """
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            "allow", "'until' of an [[allow]] entry is no date", hint="write it as YYYY-MM-DD"
        ) from None


def check_until(until: date, today: date) -> None:
    """Refuse an entry that would hold for longer than 90 days.

    Raises:
        ConfigurationError: ``allow``.
    """
    if until > today + timedelta(days=ALLOW_DAYS_MAX):
        raise ConfigurationError(
            "allow",
            f"an [[allow]] entry ends on {until.isoformat()}, more than {ALLOW_DAYS_MAX} days off",
            hint="review it again after that time instead",
        )


def is_allowed(
    allows: Iterable[Allow], judged: "Judged", *, path: bytes, content: str, today: date
) -> bool:
    """Return whether an entry that has not ended settles that a file may stay.

    Args:
        allows: the entries.
        judged: what the policy says of the file.
        path: its absolute path.
        content: the keyed hash of its bytes.
        today: the day in UTC.
    """
    if not judged.is_waivable:
        return False
    return any(
        one.path == path
        and one.content == content
        and one.rule in judged.rules
        and today <= one.until <= today + timedelta(days=ALLOW_DAYS_MAX)
        for one in allows
    )
