"""The labelled cases, and fresh instances of every kind, with every engine."""
# ruff: noqa: S311 - seeds and statements of a test

import dataclasses
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from durarepo.operations.exclude import judge_paths
from durarepo.policy.scanner import HYPERSCAN, RE2
from tests.policy.cases import Case, lay_out, read_cases
from tests.policy.fresh import KINDS as FIRST_KINDS
from tests.policy.fresh import Make
from tests.policy.fresh_settings import SETTINGS_KINDS
from tests.policy.fresh_work import MORE_KINDS

TOP = Path(__file__).resolve().parents[2]
ENGINES = (RE2, HYPERSCAN)
INSTANCES = 200
KINDS = FIRST_KINDS | MORE_KINDS | SETTINGS_KINDS
GATES = {"clause": 1.0, "anchor": 0.98, "judgement": 0.9}


def decide(case: Case, root: Path, engine: str) -> tuple[str, bytes]:
    """Return the decision about a case laid out in its own root, and the path as shown."""
    top = lay_out(case, root)
    (tested,) = judge_paths(os.fsencode(top), [case.path], engine=engine)
    return str(tested.decision), tested.path


@pytest.mark.parametrize("engine", ENGINES)
def test_the_labelled_cases_are_decided_as_their_strength_demands(
    engine: str, tmp_path: Path
) -> None:
    """A missed clause case is a secret in a backup, or work that is lost (AICEP 10.5.2)."""
    right: Counter[str] = Counter()
    all_of: Counter[str] = Counter()
    wrong: list[str] = []

    for case in read_cases():
        if not case.scored:
            continue
        decision, shown = decide(case, tmp_path, engine)
        all_of[case.strength] += 1
        right[case.strength] += case.accepts(decision)
        if not case.accepts(decision):
            wrong.append(f"{case.strength} {case.kind} {case.id} {decision}")
        assert not [one for one in case.secrets if one in shown]

    assert set(all_of) == set(GATES)
    for strength, least in GATES.items():
        assert right[strength] >= least * all_of[strength], wrong


@pytest.mark.parametrize("kind", KINDS)
def test_fresh_instances_are_decided_right(kind: str, tmp_path: Path) -> None:
    """Rules that only know the cases they were written for protect nobody.

    Each instance is decided by every engine, and alike: what is kept must not depend on what
    happens to be installed. No strength of a kind is let off an instance.
    """
    make: Make = KINDS[kind]
    draw = random.Random(f"fresh {kind}")
    wrong: list[tuple[bytes, str]] = []

    for number in range(INSTANCES):
        case = dataclasses.replace(make(draw), id=f"{kind}-{number}")
        decisions = {decide(case, tmp_path, engine) for engine in ENGINES}
        assert len(decisions) == 1, case.path
        ((decision, shown),) = decisions
        if not case.accepts(decision):
            wrong.append((case.path, decision))
        assert not [one for one in case.secrets if one in shown]

    assert not wrong


def test_every_labelled_kind_has_fresh_instances_both_ways() -> None:
    """A kind without instances of its own is known by its few cases alone."""
    draw = random.Random("kinds")
    made = {(case.kind, case.expect) for make in KINDS.values() for case in [make(draw)]}

    labelled = {(case.kind, case.expect) for case in read_cases() if case.scored}

    assert labelled <= made


def test_no_secret_of_a_case_is_printed_by_the_command(tmp_path: Path) -> None:
    """A report of what is left out must not be the leak (A2e)."""
    cases = [case for case in read_cases() if case.secrets]
    secrets = [secret for case in cases for secret in case.secrets]
    said = b""

    for case in cases[::20] + [case for case in cases if case.kind == "path-secret"]:
        top = lay_out(case, tmp_path)
        said += exclude("explain", "--json", "--root", str(top), case.path.decode())
        said += exclude("test", "--root", str(top), case.path.decode())

    assert said.count(b"\n") >= 2 * 8
    assert not [one for one in secrets if one in said]


def test_path_rules_never_open_what_they_leave_out(tmp_path: Path) -> None:
    """Exclusion happens before data is read (A2c): watched from outside, libraries included."""
    cases = [case for case in read_cases() if case.kind in ("cred-store", "env-file", "browser")]
    chosen = [case for case in cases if case.path != b"scrape/jar.bin"]
    tops = [lay_out(case, tmp_path) for case in chosen]
    log = tmp_path / "trace"
    # One process for all of them, so that the trace is short.
    paths = [str(top / case.path.decode()) for top, case in zip(tops, chosen, strict=True)]
    command = [
        sys.executable,
        "-m",
        "durarepo_cli.main",
        "exclude",
        "test",
        "--root",
        str(tmp_path),
    ]

    subprocess.run(
        [
            "strace",
            "-f",
            "-qq",
            "-e",
            "trace=open,openat,openat2,creat",
            "-o",
            str(log),
            *command,
            *paths,
        ],
        cwd=TOP,
        env=environment(),
        check=True,
        capture_output=True,
    )

    opened = log.read_text(errors="replace")
    assert "openat" in opened
    assert not [path for path in paths if f'"{path}"' in opened]


def exclude(*arguments: str) -> bytes:
    """Run ``durarepo exclude`` as a process of its own; return all that it said."""
    ran = subprocess.run(
        [sys.executable, "-m", "durarepo_cli.main", "exclude", *arguments],
        cwd=TOP,
        env=environment(),
        check=True,
        capture_output=True,
    )
    return ran.stdout + ran.stderr


def environment() -> dict[str, str]:
    """Return an environment in which the program of this checkout runs."""
    return {**os.environ, "PYTHONPATH": f"{TOP}:{TOP / 'cli'}"}
