"""SIGKILL at any moment: a parent kills a child that takes a snapshot, and looks at what stands.

Unlike the recorded states these are real processes on a real file system, ended by the kernel
between any two of their instructions. Start at `killed_rounds`.
"""

import os
import random
import signal
import time
from pathlib import Path

from tests.crash.recorded import check_goes_on, verified
from tests.doubles.children import die_with_parent
from tests.machines.stream import Stream, fill

ROUNDS_AT_ONCE = 8
"""A stream is killed so often before a new one begins: what comes back stays small."""


def killed_rounds(folder: Path, chance: random.Random, count: int) -> int:
    """Kill ``count`` snapshots and check after each; return how many died before their end.

    Raises:
        AssertionError: something does not hold; the message names the round.
    """
    died = 0
    for first in range(0, count, ROUNDS_AT_ONCE):
        stream = Stream(folder / str(first))
        fill(stream.root, {f"d{n % 3}/f{n}": os.urandom(700 + 900 * n) for n in range(7)})
        whole, head = _duration(stream), 1
        for number in range(first, min(first + ROUNDS_AT_ONCE, count)):
            fill(stream.root, {f"d{number % 3}/f": os.urandom(chance.randrange(1, 40_000))})
            moment = chance.uniform(0.0, 1.1 * whole)
            try:
                died += _is_killed(stream, moment)
                head = _check(stream, head)
            except Exception as error:
                raise AssertionError(f"round {number}, {moment} s: {error!r}") from error
    return died


def _duration(stream: Stream) -> float:
    began = time.monotonic()
    stream.snapshot()
    return time.monotonic() - began


def _is_killed(stream: Stream, moment: float) -> bool:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            die_with_parent()
            stream.snapshot()
            code = 0
        finally:
            os._exit(code)
    time.sleep(moment)
    os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


def _check(stream: Stream, head: int) -> int:
    """Check what stands after a kill, and that work goes on; return the head that it comes to."""
    before = {path: path.read_bytes() for path in stream.object_files()}
    with stream.open() as repository:
        found = verified(repository)
    assert found.ok, found.problems
    assert found.head in (head, head + 1)
    check_goes_on(stream, found.head)
    assert all(
        path.read_bytes() == data
        for path, data in before.items()
        if not path.name.startswith(".tmp-")
    )
    work = Path(os.fsdecode(stream.places.work))
    assert not work.exists() or not list(work.glob("run-*"))
    return found.head + 1
