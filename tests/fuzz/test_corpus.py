"""What the fuzzer ever kept is tried again in every run, and no parser is without a target.

The fuzzer itself is not needed here: these tests replay its corpora.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.corpus import (
    FOLDER,
    INPUT_MAX_BYTES,
    TARGET_MAX_BYTES,
    arcs_of,
    corpus_of,
    corpus_path,
    slug_of,
    smallest_cover,
    write_corpus,
)
from tests.hostile.target import Target, check_answer
from tests.hostile.targets import NAMES, targets
from tests.reliability.results import TOP

ALL_MAX_BYTES = 1_000_000
PARSERS = re.compile(r"(parse|decode|open|peek|unpad|unarmour|read|is_sqlite|check_mark)(_|$)")
"""What functions are called that take foreign bytes apart."""
FLOORS = (
    "durarepo/format/*.py",
    "durarepo/ingest.py",
    "durarepo/sealing.py",
    "durarepo/local/configuration.py",
    "durarepo/policy/ignorefile.py",
    "durarepo/policy/allow.py",
    "durarepo/source/mounts.py",
    "durarepo/source/sqlitestate.py",
    "durarepo/repository/rebuild.py",
    "durarepo/repository/tally.py",
    "durarepo/repository/chunks.py",
)
READS = {"read_small", "read_up_to", "iter_lines", "read_secret"}
"""Who calls one of these in local/ reads a file that may be damaged."""
ELSEWHERE = {
    "durarepo.source.mounts:read_mounts": "opens what parse_mountinfo takes apart",
    "durarepo.local.secretfiles:": "reads the bytes of a key file and nothing in them",
    "durarepo.local.keyring:": "reads key files with read_secret and parse_key",
}
"""What needs no target of its own, and why."""


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Target]:
    """Give all targets by name."""
    folder = tmp_path_factory.mktemp("targets")
    return {one.name: one for one in targets(folder)}


@pytest.mark.parametrize("name", NAMES)
def test_what_was_kept_breaks_nothing(every: dict[str, Target], name: str) -> None:
    """An input that once broke a parser, or came near it, must not do so again."""
    inputs = corpus_of(name)

    answers = [
        check_answer(every[name], data, f"line {number} of {corpus_path(name).name}")
        for number, data in enumerate(inputs, start=1)
    ]
    assert len(answers) == len(inputs)


def test_every_corpus_belongs_to_a_target_and_all_are_small() -> None:
    """A corpus that nobody replays is dead weight in every clone."""
    files = {path.name for path in FOLDER.iterdir()}
    sizes = {name: sum(map(len, corpus_of(name))) for name in NAMES}

    assert files <= {corpus_path(name).name for name in NAMES}
    assert len({slug_of(name) for name in NAMES}) == len(NAMES)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < ALL_MAX_BYTES
    assert max(sizes.values()) <= 2 * TARGET_MAX_BYTES
    assert sum(1 for size in sizes.values() if size) > len(NAMES) // 2


def test_every_parser_has_a_target(every: dict[str, Target]) -> None:
    """A new parser that nobody fuzzes is the one that breaks."""
    covered = {name for target in every.values() for name in target.covers}
    parsers = {name for pattern in FLOORS for path in TOP.glob(pattern) for name in _parsers(path)}
    readers = {f"{_module(path)}:" for path in TOP.glob("durarepo/local/*.py") if _reads(path)}

    assert len(parsers) > 30
    assert len(readers) > 5
    assert (parsers | readers) - covered - set(ELSEWHERE) == set()


def test_every_target_covers_something_that_exists(every: dict[str, Target]) -> None:
    """A renamed function would leave its target behind, about nothing."""
    there = {f"{_module(path)}:" for path in TOP.glob("durarepo/**/*.py")}
    there |= {name for path in TOP.glob("durarepo/**/*.py") for name in _functions(path)}

    for target in every.values():
        assert target.covers, target.name
        assert set(target.covers) <= there, target.name
    assert set(ELSEWHERE) <= there


def _module(path: Path) -> str:
    return ".".join(path.relative_to(TOP).with_suffix("").parts)


def _functions(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            yield f"{_module(path)}:{node.name}"


def _parsers(path: Path) -> Iterator[str]:
    return (name for name in _functions(path) if PARSERS.match(name.partition(":")[2]))


def _reads(path: Path) -> bool:
    names = (
        node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)
    )
    return not READS.isdisjoint(names)


# --- keeping a corpus -----------------------------------------------------------------------


def test_a_cover_keeps_short_inputs_that_reach_something_new(every: dict[str, Target]) -> None:
    """A corpus that keeps everything grows for ever; one that keeps too little forgets."""
    target = every["decode"]
    short, long, same = b"\x1b", b"\x1b\x00", b"\x81\x81\x1b"
    far = bytes(INPUT_MAX_BYTES + 1)

    kept = smallest_cover(target, [long, short, same, far, target.seeds[0]])

    assert short in kept
    assert long not in kept
    assert far not in kept
    assert target.seeds[0] not in kept
    assert arcs_of(target, short) != arcs_of(target, target.seeds[0])


def test_a_corpus_is_read_as_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An input that is changed on the way to its file shows nothing any more."""
    monkeypatch.setattr("tests.fuzz.corpus.FOLDER", tmp_path / "corpus")
    inputs = [b"\n", b"", bytes(300), b"\xff\x00"]

    write_corpus("parse_key signing", [*inputs, b""])

    assert corpus_of("parse_key signing") == [b"", b"\n", b"\xff\x00", bytes(300)]
    assert corpus_of("decode") == []
