"""A call on a file fails: the run ends well, or says clearly that it did not, and what failed.

A gate tries a share of all calls and errors by a seed that it prints; each kind of call and each
error is in it. `python -m tests.faults.long` tries every one of them.
"""

import os
import random
import sys
from pathlib import Path

import pytest

from tests.faults.injector import KINDS
from tests.faults.outcomes import VERBS, Bench
from tests.faults.stopped import Stopped

SHARES = {"snapshot": 46, "verify": 24, "checkout": 34}
STOPS = 5


@pytest.fixture
def chance() -> random.Random:
    """Choose what is tried; the seed is printed so that a failure can be had again."""
    seed = int(os.environ.get("DURAREPO_FAULT_SEED") or int.from_bytes(os.urandom(4)))
    sys.stdout.write(f"DURAREPO_FAULT_SEED={seed}\n")
    return random.Random(seed)  # noqa: S311  # no secret: which faults are tried


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_a_failing_call_ends_in_success_or_in_an_error_of_the_right_family(
    tmp_path: Path, chance: random.Random, verb: str
) -> None:
    """A false ok, or a disk that is full blamed on the files, sends the user the wrong way."""
    bench = Bench(tmp_path.resolve())
    tried = list(bench.share(verb, chance, SHARES[verb]))

    for fault in tried:
        bench.check(verb, fault)

    assert len({fault.kind for fault in tried}) >= 8


def test_every_way_to_a_file_is_among_what_can_fail(tmp_path: Path) -> None:
    """A kind of call that a run makes and that is never tried would prove nothing."""
    bench = Bench(tmp_path.resolve())

    kinds = {fault.kind for verb in VERBS for fault in bench.faults(verb)}

    assert set(KINDS) - kinds <= {"truncate", "mode"}  # made only after a failure, or in C
    assert len(bench.faults("snapshot")) > 1000


@pytest.mark.slow
def test_a_failing_read_of_a_source_is_never_a_failure_of_the_store(tmp_path: Path) -> None:
    """A bad sector under a file is no reason to distrust the backup of all others (X2)."""
    bench = Bench(tmp_path.resolve())
    root = bytes(bench.stream.root)

    codes = {
        outcome.code
        for fault in bench.faults("snapshot", region="root")
        if fault.kind == "read" and fault.error > 0
        for outcome in (bench.run("snapshot", fault),)
        if outcome.hit is not None and outcome.hit.startswith(root + b"/")
    }

    assert codes <= {0, 1}  # 0 where another try gave all of it
    assert 1 in codes


@pytest.mark.slow
def test_an_object_that_cannot_be_read_is_never_verified(tmp_path: Path) -> None:
    """A read that failed says that a disk is dying, also where the next one went well."""
    bench = Bench(tmp_path.resolve())

    codes = {
        outcome.code
        for fault in bench.faults("verify", region="objects")
        if fault.kind == "read" and fault.error > 0
        for outcome in (bench.run("verify", fault),)
        if outcome.hit is not None and bench.region(outcome.hit) == "objects"
    }

    assert codes <= {14, 20}
    assert codes


@pytest.mark.slow
def test_a_failing_sync_is_always_a_failure_of_the_store(tmp_path: Path) -> None:
    """Who goes on after a failed fsync reports what may not be on the disk."""
    bench = Bench(tmp_path.resolve())
    errors = KINDS["fsync"][1]

    codes = {
        bench.run("snapshot", fault).code
        for fault in bench.faults("snapshot")
        if fault.kind == "fsync" and fault.error == errors[fault.number % len(errors)]
    }

    assert codes == {14}


@pytest.mark.slow
def test_a_system_call_that_fails_below_python_ends_no_worse(
    tmp_path: Path, chance: random.Random
) -> None:
    """SQLite and the interpreter open and write files that no module of ours does."""
    stopped = Stopped(Bench(tmp_path.resolve()))

    for stop in stopped.share(chance, STOPS):
        stopped.check(stop)

    assert len(stopped.stops) > 500
