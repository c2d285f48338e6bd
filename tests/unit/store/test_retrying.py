"""Trying again: how often, how long, and what is not tried again."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durarepo.core.errors import RemoteError
from durarepo.store.retrying import Patience
from durarepo.store.transport import BrokenOffError
from tests.doubles.servers import QuickWaits


def failing(times: int, asked: float | None = None) -> Callable[[], int]:
    """Return an attempt that breaks off so many times, then returns how often it was called."""
    calls = []

    def attempt() -> int:
        calls.append(1)
        if len(calls) <= times:
            raise BrokenOffError("no answer", asked)
        return len(calls)

    return attempt


@pytest.mark.parametrize("times", range(6))
def test_it_is_tried_until_it_succeeds(times: int) -> None:
    """A single lost packet at night must not cost a day's copy."""
    waits = QuickWaits()

    assert Patience(waits=waits).run(failing(times), doing="x") == times + 1
    assert len(waits.waited) == times


def test_it_is_not_tried_for_ever() -> None:
    """One dead remote must not hold up the night."""
    waits = QuickWaits()

    with pytest.raises(RemoteError) as caught:
        Patience(waits=waits).run(failing(99), doing="send object")

    assert caught.value.code == "remote.unreachable"
    assert len(waits.waited) == 5


def test_the_total_time_ends_it_before_the_tries_do() -> None:
    """A server that asks for long waits decides nothing about our night."""
    waits = QuickWaits()

    with pytest.raises(RemoteError):
        Patience(waits=waits, total=100).run(failing(99, asked=40), doing="x")

    assert len(waits.waited) == 2
    assert sum(waits.waited) <= 100


@given(share=st.floats(0, 1, exclude_max=True), tries=st.integers(1, 12))
def test_waits_grow_within_their_border(share: float, tries: int) -> None:
    """Full jitter: clients that failed together do not come back together."""
    waits = QuickWaits()
    waits.share = lambda: share  # type: ignore[method-assign]  # a die that always falls so

    with pytest.raises(RemoteError):
        Patience(waits=waits, tries=tries, total=10**6).run(failing(99), doing="x")

    assert waits.waited == [min(0.5 * 2**n, 30) * share for n in range(tries - 1)]


def test_what_is_asked_for_is_waited_at_least() -> None:
    """``Retry-After`` is honoured."""
    waits = QuickWaits()
    Patience(waits=waits).run(failing(1, asked=7), doing="x")

    assert waits.waited[0] >= 7


def test_another_error_is_not_tried_again() -> None:
    """Credentials that are refused are not refused less the second time."""
    calls = []

    def attempt() -> None:
        calls.append(1)
        raise RemoteError("refused", "no")

    with pytest.raises(RemoteError) as caught:
        Patience(waits=QuickWaits()).run(attempt, doing="x")

    assert caught.value.code == "remote.refused"
    assert len(calls) == 1
