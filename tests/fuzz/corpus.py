"""The corpus of each target: inputs that reach something no other of them reaches.

One text file a target, one input a line in base64; all of them together stay below 1 MB. The
files grow by `python -m tests.fuzz --keep` and are replayed by every run of the tests.
Start at `corpus_of` and `smallest_cover`.
"""

import base64
import sys
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType

from tests.hostile.target import Target, check_answer
from tests.reliability.results import TOP

FOLDER = Path(__file__).resolve().parent / "corpus"
INPUT_MAX_BYTES = 6 * 1024
"""Longer inputs are not kept: what they reach, a shorter one or a seed reaches as well."""
TARGET_MAX_BYTES = 24 * 1024
"""So much is kept of one target, in bytes of inputs."""

Arc = tuple[CodeType, int, int]
_PROGRAM = str(TOP / "durarepo")


def slug_of(name: str) -> str:
    """Return the file name of a target without its ending."""
    return "".join(char if char.isalnum() else "-" for char in name)


def corpus_path(name: str) -> Path:
    """Return where the corpus of a target lies."""
    return FOLDER / f"{slug_of(name)}.txt"


def corpus_of(name: str) -> list[bytes]:
    """Return the kept inputs of a target, none where there is no file."""
    path = corpus_path(name)
    if not path.exists():
        return []
    return [base64.b64decode(line, validate=True) for line in path.read_text("ascii").splitlines()]


def write_corpus(name: str, inputs: Iterable[bytes]) -> None:
    """Put the inputs in the place of those kept, in order of length."""
    ordered = sorted(set(inputs), key=lambda one: (len(one), one))
    FOLDER.mkdir(exist_ok=True)
    text = "".join(base64.b64encode(one).decode("ascii") + "\n" for one in ordered)
    corpus_path(name).write_text(text, "ascii")


def arcs_of(target: Target, data: bytes) -> set[Arc]:
    """Return which line follows which inside the program while a target takes ``data``."""
    found: set[Arc] = set()
    last: dict[FrameType, int] = {}

    def trace(frame: FrameType, event: str, _argument: object) -> object:
        code = frame.f_code
        if not code.co_filename.startswith(_PROGRAM):
            return None
        if event == "line":
            found.add((code, last.get(frame, 0), frame.f_lineno))
            last[frame] = frame.f_lineno
        return trace

    sys.settrace(trace)  # type: ignore[arg-type]  # the type of a trace function names itself
    try:
        check_answer(target, data, "traced")
    finally:
        sys.settrace(None)
    return found


def smallest_cover(target: Target, inputs: Iterable[bytes]) -> list[bytes]:
    """Return few and short inputs that reach what all of them, and no seed, reach."""
    reached = set().union(*(arcs_of(target, seed) for seed in target.seeds))
    kept: list[bytes] = []
    room = TARGET_MAX_BYTES
    for data in sorted(set(inputs), key=lambda one: (len(one), one)):
        if len(data) > min(INPUT_MAX_BYTES, room):
            break
        arcs = arcs_of(target, data)
        if not arcs <= reached:
            reached |= arcs
            kept.append(data)
            room -= len(data)
    return kept
