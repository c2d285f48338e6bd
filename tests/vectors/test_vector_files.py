"""The vectors themselves: enough of them, each well-formed, one field away from a passing one."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.vectorgen import GENERATORS
from tests.vectors.adapter import SUCCESS
from tests.vectors.test_vectors import ADAPTERS, KNOWN_DEFECTS, check_answer
from tests.vectors.vectorfile import (
    DESCRIPTION,
    FOLDER,
    INPUTS,
    SHARED,
    Vector,
    VectorFileError,
    encode_vector,
    iter_vector_paths,
    load_vectors,
    parse_vector,
)

SPEC = FOLDER.parents[1] / "spec"
VECTORS = load_vectors()
NEGATIVE = {name: one for name, one in VECTORS.items() if one.expect != SUCCESS}
_ROW = re.compile(r"^\| ([1-9]\.[0-9]+) \| .* \| ([^|]+) \|$", re.MULTILINE)
_SAME_INPUTS = ("tree", "path", "content")
_MOST_BYTES = 12_500_000


def steps_of_ingest() -> dict[str, set[str]]:
    """Return the codes of each step in spec/ingest.md; none for a step that repeats others."""
    text = (SPEC / "ingest.md").read_text("utf-8")
    return {step: set(re.findall(r"`([a-z.-]+)`", codes)) for step, codes in _ROW.findall(text)}


def test_there_are_vectors_enough() -> None:
    """Fewer would leave checks of ingest without a witness."""
    assert len(VECTORS) >= 165
    assert len(NEGATIVE) >= 100


def test_no_failure_has_more_than_six_vectors() -> None:
    """Many vectors of one failure would only make the number look better."""
    most = Counter(vector.expect for vector in NEGATIVE.values()).most_common(1)

    assert most[0][1] <= 6


def test_every_code_of_ingest_has_a_vector() -> None:
    """A code without a vector is a check that may be missing unnoticed."""
    named = set().union(*steps_of_ingest().values())

    assert len(named) >= 60
    assert named - {vector.expect for vector in NEGATIVE.values()} == set()


def test_every_vector_names_a_step_that_exists_and_has_its_code() -> None:
    """A vector of a step that is not there would show nothing about the specification."""
    steps = steps_of_ingest()
    repeated = {"fresh.ahead", "fresh.clock", "fresh.expired", "fresh.revoked"}
    wrong = [
        (name, vector.spec, vector.expect)
        for name, vector in VECTORS.items()
        if vector.spec not in steps
        or vector.expect not in {SUCCESS, *(steps[vector.spec] or repeated)}
    ]

    assert wrong == []


def is_twin(vector: Vector, twin: Vector) -> bool:
    """Return whether ``twin`` passes and can be what ``vector`` differs from."""
    same_kind = twin.kind == vector.kind or {twin.kind, vector.kind} <= set(_SAME_INPUTS)
    differs = (twin.inputs, twin.parts) != (vector.inputs, vector.parts)
    return twin.expect == SUCCESS and same_kind and differs


def test_every_failure_is_near_a_vector_that_passes() -> None:
    """Without its passing twin a failure could come from anything."""
    alone = [
        name
        for name, vector in NEGATIVE.items()
        if not is_twin(vector, VECTORS[str(vector.differs_from)])
    ]

    assert alone == []


def test_no_two_vectors_have_the_same_body() -> None:
    """The same bytes twice would count one case as two."""
    bodies = Counter(
        tuple((part.label, part.data) for part in vector.parts) for vector in VECTORS.values()
    )

    assert [count for count in bodies.values() if count > 1] == []


def test_every_vector_has_a_generator_that_describes_it_so() -> None:
    """A file without a generator could never be made again after a change of the format."""
    described = {
        name: (one.kind, one.expect, one.spec, one.comment, one.differs_from, one.field)
        for name, one in GENERATORS.items()
    }

    assert described == {
        name: (one.kind, one.expect, one.spec, one.comment, one.differs_from, one.field)
        for name, one in VECTORS.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(VECTORS))
def test_a_vector_that_is_made_again_gives_the_same_verdict(name: str, tmp_path: Path) -> None:
    """A generator that has drifted from its file would write something else next time."""
    made = GENERATORS[name].build()

    assert parse_vector(name, encode_vector(made)) == made
    known = [one for one in ADAPTERS if one.covers(made) and (one.name, name) not in KNOWN_DEFECTS]
    check_answer(known[0], made, tmp_path)


def test_every_vector_file_is_written_in_the_one_way() -> None:
    """A file edited by hand would differ from what its generator writes."""
    other = [
        path.name
        for path in iter_vector_paths()
        if encode_vector(parse_vector(path.stem, path.read_text("ascii")))
        != path.read_text("ascii")
    ]

    assert other == []


def test_every_shared_file_is_used_and_all_are_small() -> None:
    """Files that nobody reads, or too many bytes, would burden every clone."""
    texts = "".join(path.read_text("ascii") for path in iter_vector_paths())
    files = [path for path in FOLDER.rglob("*") if path.is_file()]

    assert {path.stem for path in (FOLDER / SHARED).iterdir()} == set(
        re.findall(r"@([a-z0-9-]+)$", texts, re.MULTILINE)
    )
    assert sum(path.stat().st_size for path in files) < _MOST_BYTES


def test_the_page_about_vectors_names_every_key_and_kind() -> None:
    """Someone who writes another reader has only that page."""
    page = (SPEC / "vectors.md").read_text("utf-8")
    inputs = {key for must, may in INPUTS.values() for key in (*must, *may)}
    named = set(re.findall(r"`([a-z-]+)`", page))

    assert {*DESCRIPTION, *inputs, *INPUTS} - named == set()
    assert len(page.splitlines()) <= 80


# --- the strict reader of vector files

_GOOD = """expect: success
spec: 1.1
kind: cbor
comment: Words.
result: h'010203'
encoding: hex

43
010203
"""


def _parse(text: str) -> Vector:
    return parse_vector("some-name", text, lambda _: b"shared")


def test_a_body_is_all_its_lines_and_repeats() -> None:
    """Lines lost or repeated wrongly would test other bytes than those that were made."""
    assert _parse(_GOOD).body == bytes.fromhex("43010203")
    assert _parse(_GOOD.replace("43\n", "repeat: 3 ab0c\n")).body == b"\xab\x0c" * 3 + b"\1\2\3"
    assert _parse(_GOOD.replace("43\n", "[a] @one\n[b]\n")).labelled == {
        "a": b"shared",
        "b": b"\1\2\3",
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("comment: Words.", "comment: Words.\nnaming-key: 00"),
        ("comment: Words.", "comment: Words.\nnow: 5"),
        ("comment: Words.", "comment: Words.\ncomment: More."),
        ("comment: Words.\n", ""),
        ("kind: cbor", "kind: cobr"),
        ("kind: cbor", "kind: key"),
        ("expect: success", "expect: failure"),
        ("expect: success", "expect: integrity.cbor-form"),
        ("result: h'010203'\n", ""),
        ("result: h'010203'", "result: h'010203'\nfield: x"),
        ("spec: 1.1", "spec: 1"),
        ("encoding: hex", "encoding: gzip"),
        ("encoding: hex", "encoding:hex"),
        ("\n\n", "\n"),
        ("43\n", "4\n"),
        ("43\n", "4G\n"),
        ("43\n", "repeat: 0 00\n"),
        ("43\n", "[a]\n00\n[a]\n"),
        ("43\n", "43\n[a]\n"),
        ("43\n", "[a] @one\n"),
        ("010203\n", "010203"),
    ],
)
def test_a_file_that_breaks_a_rule_is_an_error(old: str, new: str) -> None:
    """A misspelt input that is passed over would turn a vector off without a word."""
    assert old in _GOOD

    with pytest.raises(VectorFileError):
        _parse(_GOOD.replace(old, new, 1))
