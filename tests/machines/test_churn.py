"""Many nights of churn: what is pinned stays near what lives, and every night can be restored."""

import os
from pathlib import Path

import pytest

from durarepo.core.limits import MIB, SMALL_PACKS_MAX
from durarepo.core.progress import SilentProgress
from durarepo.operations.verify import Level, VerifyRequest, verify
from tests.machines.churn import Churn
from tests.machines.stream import Seen, Stream, seen

_NIGHTS = 200 if os.environ.get("DURAREPO_TESTS_LONG") else 40


@pytest.mark.slow
@pytest.mark.parametrize("text", [False, True], ids=["incompressible", "text"])
def test_nights_of_churn_leave_a_repository_near_the_size_of_what_lives(
    tmp_path: Path, *, text: bool
) -> None:
    """It would grow for ever, and nobody would know before a restore whether it is whole."""
    stream = Stream(tmp_path)
    churn = Churn(stream, 8 * MIB, text=text)
    told: dict[int, dict[bytes, Seen]] = {}

    for number in range(1, _NIGHTS + 1):
        night = churn.night()
        if number % 10 == 1:
            told[number] = seen(bytes(stream.root))
        check_data(stream)
        assert night.small <= SMALL_PACKS_MAX
        assert night.envelope <= 128 * 1024
        assert night.head_pinned <= 2 * night.live

    later = churn.nights[_NIGHTS // 2 :]
    mean = sum(one.head_pinned / one.live for one in later) / len(later)
    assert mean <= 1.6
    oldest = min(number for number in told if number >= churn.oldest_live())
    assert seen(bytes(stream.restored_root(oldest))) == told[oldest]
    stream.check_restores()


def check_data(stream: Stream) -> None:
    """Check every chunk that a live manifest pins."""
    with stream.open() as repository:
        request = VerifyRequest(level=Level.DATA)
        told = verify(repository, request, clock=stream.clock, progress=SilentProgress())
    assert told.problems == ()
