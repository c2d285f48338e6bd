"""Trying again: a few times, after random waits that grow, and never beyond a total time.

It knows nothing of what is tried. Only what says of itself that it may be tried again is.
Source: spec/mirror.md 3. Start at `Patience.run`.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from durarepo.core.errors import RemoteError
from durarepo.core.limits import (
    REMOTE_TOTAL_SECONDS,
    REMOTE_TRIES,
    REMOTE_WAIT_MAX_SECONDS,
    REMOTE_WAIT_SECONDS,
)
from durarepo.store.transport import BrokenOffError, Waits

T = TypeVar("T")


class SystemWaits:
    """The clock that only grows, of this machine; waiting; and dice that keep no secret."""

    def now(self) -> float:
        """Return seconds that only ever grow."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Come back after so long."""
        time.sleep(seconds)

    def share(self) -> float:
        """Return a random number, at least 0 and below 1."""
        return random.random()  # noqa: S311 - spreads waits, protects nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often something is tried, and how long all of it may take, in seconds."""

    waits: Waits
    tries: int = REMOTE_TRIES
    total: float = REMOTE_TOTAL_SECONDS
    first: float = REMOTE_WAIT_SECONDS
    most: float = REMOTE_WAIT_MAX_SECONDS

    def run(self, attempt: Callable[[], T], *, doing: str) -> T:
        """Return what ``attempt`` returns, trying again while it breaks off.

        Args:
            attempt: raises `BrokenOffError` where it may be tried again.
            doing: what the message says was not possible.

        Raises:
            RemoteError: ``unreachable``, when tries or time are used up.
        """
        until = self.waits.now() + self.total
        for number in range(self.tries):
            try:
                return attempt()
            except BrokenOffError as error:
                pause = self._pause(number, error.retry_after)
                is_last = number + 1 >= self.tries or self.waits.now() + pause > until
                if is_last:
                    raise RemoteError(
                        "unreachable",
                        f"cannot {doing}: {error.why}",
                        hint="check the network and the server, then run the command again",
                    ) from error
                self.waits.wait(pause)
        raise ValueError("at least one try is needed")

    def _pause(self, number: int, asked: float | None) -> float:
        """Return how long to wait: as asked, else a random share of a doubling border."""
        spread = min(self.first * float(2**number), self.most) * self.waits.share()
        return spread if asked is None else asked + spread
