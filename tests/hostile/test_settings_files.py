"""Settings files that somebody made to stall a snapshot: what they cost grows as they do.

Every family is fed at one length and at four times that; steps of the program are counted, and
a limit of processor time, far above what is needed, ends what an expression looks at again and
again. No clock is read.
"""

import random
import resource
import sys
from collections.abc import Callable
from types import FrameType

import pytest

from durarepo.policy.decide import ContentPolicy
from durarepo.policy.documents import Document, Stated, iter_stated, parse_document
from durarepo.policy.forms import Syntax, form_of
from durarepo.policy.leaves import NAME_MOST, Leaf
from durarepo.policy.lineleaves import line_leaves
from durarepo.policy.redaction import Refusal, redact
from durarepo.policy.rules import Decision
from durarepo.policy.scanner import open_engine
from durarepo.policy.scanning import shared_rules
from durarepo.policy.tokenleaves import Tokens, token_leaves
from tests.doubles.children import run_in_child
from tests.policy.fresh import text

POLICY = ContentPolicy(open_engine())
SECRET = text(random.Random("settings"), 24).encode()  # noqa: S311 - a seed of a test
MEMBER = b'"api_key": "%s", ' % SECRET
LINE = b"password: x\n"
ELEMENT = b"<password>%s</password>" % SECRET
STATEMENT = b'password = "%s"\n' % SECRET

Family = Callable[[int], bytes]


def filled(unit: bytes, before: bytes = b"", after: bytes = b"") -> Family:
    """Return a maker of files that are mostly one text, again and again."""
    return lambda size: before + unit * ((size - len(before) - len(after)) // len(unit)) + after


def deeper(line: bytes) -> Family:
    """Return a maker of files in which each line stands one blank further right."""
    return lambda size: LINE + b"".join(b" " * n + line for n in range(int((2 * size) ** 0.5)))


def numbered(line: bytes) -> Family:
    """Return a maker of files of lines that differ in a number."""
    return lambda size: STATEMENT + b"".join(line % n for n in range(size // (len(line) + 3)))


FAMILIES: dict[str, tuple[str, Family]] = {
    "escaped quotes": ("a.json", filled(b'\\"a', b"{" + MEMBER + b'"x": "')),
    "escaped quotes in another quote": ("a.json", filled(b'\\"a', b"{" + MEMBER + b'"x": \'')),
    "open comments": ("a.json", filled(b"/* a ", b"{" + MEMBER)),
    "open strings in open lists": ("a.json", filled(b'{"a":["', b"{" + MEMBER)),
    "open lists": ("a.json", filled(b"[", b"{" + MEMBER)),
    "open objects in lists": ("a.json", filled(b'{"a":[', b"{" + MEMBER)),
    "pairs": ("a.json", filled(b'{"name":"token","value":"x1y2z3x1y2z3x1"},', b"[", b"1]")),
    "bare colons": ("a.json", filled(b"a:b:c:", b"{" + MEMBER)),
    "bare words": ("a.json", filled(b"a: b, ", b"{" + MEMBER)),
    "escapes": ("a.json", filled(b"\\u0061", b'{"token": "', b'"}')),
    "dashes": ("a.yaml", filled(b"- ", LINE, b"x")),
    "dashes before a block": ("a.yaml", filled(b"- ", LINE, b"k: |\n a\n")),
    "blocks in blocks": ("a.yaml", deeper(b"token: |\n")),
    "names in names": ("a.yaml", deeper(b"k:\n")),
    "blocks of blank lines": ("a.yaml", filled(b"token: |\n\n", LINE)),
    "blanks within a value": ("a.yaml", filled(b" ", LINE + b"k: a", b"b")),
    "words": ("a.yaml", filled(b'a \t "', LINE)),
    "anchors": ("a.yaml", filled(b"& ", LINE + b"k: ")),
    "tags": ("a.yaml", filled(b"!!str ", LINE + b"k: ")),
    "quotes in a flow": ("a.yaml", filled(b'"\\', LINE + b"k: {a: ")),
    "flows in flows": ("a.yaml", filled(b"{a:", LINE + b"k: ")),
    "brackets": ("a.ini", filled(b"[", LINE)),
    "quotes in a section": ("a.ini", filled(b'"a', LINE + b"[", b"]")),
    "carried lines": ("a.properties", filled(b"a\\\n", b"password=\\\n")),
    "names that say secret": ("a.ini", filled(b"password= ")),
    "words that say secret": ("a.ini", filled(b"secret")),
    "unknown escapes": (".codex/config.toml", filled(b":=\\.", b"bearer ")),
    "connection strings": ("a.ini", filled(b"server=a;password=aB3xyQ12;")),
    "options": ("a.ini", filled(b"--token ")),
    "settings in a value": ("a.json", filled(b"token=", b"{" + MEMBER + b'"x": "', b'"}')),
    "addresses": ("a.ini", filled(b"?api_key=%s&" % SECRET, LINE + b"k = ")),
    "names apart from values": ("a.json", filled(b'"token":\n', b"{" + MEMBER)),
    "values that stand twice": ("a.ini", numbered(b"token = aB3xyQ12kkPz%dqq\n# aB3xyQ12kkPz\n")),
    "long strings": ("a.toml", filled(b'"""a', STATEMENT + b"k = ")),
    "long literals": ("a.toml", filled(b"'''\"a", STATEMENT + b"k = ")),
    "dotted names": ("a.toml", filled(b"a.", STATEMENT + b"k = 1\n", b"b=1")),
    "tables in tables": ("a.toml", filled(b"a={", STATEMENT)),
    "many sections": ("a.toml", numbered(b"[a%d.b.c.d.e.f]\nx=1\n")),
    "many dotted names": ("a.toml", numbered(b"a%d.b.c.d.e.f.g.h.i=1\n")),
    "open text": ("a.xml", filled(b"<a><![CDATA[", ELEMENT)),
    "open elements": ("a.xml", filled(b"<a ", ELEMENT)),
    "attributes": ("a.xml", filled(b' a="', ELEMENT + b"<a")),
    "blanks in an element": ("a.xml", filled(b" ", ELEMENT + b"<a b", b"c>")),
    "half pairs": ("a.xml", filled(b"<key>a</key> ", ELEMENT)),
    "logins in URLs": (".npmrc", filled(b"a://b:c@")),
    "headers": (".gitconfig", filled(b"Bearer ")),
    "kinds": ("a.yaml", filled(b"\nkind", b"Secret: x\n")),
}
SMALL = 6_000
LARGE = 150_000
SECONDS = 60
"""Of processor time: many times what all of them need, and less than one of them alone takes
where each of its bytes is a new beginning."""


def steps(name: str, data: bytes) -> int:
    """Return how many functions were called, those of the interpreter included."""
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        del frame, argument
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        POLICY.judge(name.encode(), data)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("family", FAMILIES)
def test_four_times_the_file_is_four_times_the_work(family: str) -> None:
    """Who can write one file into a root must not be able to stop its backup."""
    name, make = FAMILIES[family]
    steps(name, make(SMALL))  # what is compiled once

    small, large = steps(name, make(SMALL)), steps(name, make(4 * SMALL))

    assert large <= 5 * small + 2_000


def test_no_family_is_looked_at_from_each_of_its_bytes() -> None:
    """An expression that gives up at the end of a file must not try the rest again."""

    def judge() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        for name, make in FAMILIES.values():
            judged = POLICY.judge(name.encode(), make(LARGE))
            assert judged.data is None or SECRET not in judged.data

    run_in_child(judge)


@pytest.mark.parametrize(
    "family", ["open lists", "names in names", "blocks in blocks", "flows in flows"]
)
def test_settings_that_nest_deeper_than_is_looked_into_are_left_out(family: str) -> None:
    """A level that is not looked at could hold anything."""
    name, make = FAMILIES[family]

    assert POLICY.judge(name.encode(), make(LARGE)).decision is Decision.EXCLUDE


def test_a_document_that_nests_too_deep_is_refused_as_its_text_is() -> None:
    """What a parser of another version could still read decides nothing."""
    decisions = []

    for depth in (200, 300, 900, 3000):
        data = b'{"token": "%s", "a": %s1%s}' % (SECRET, b"[" * depth, b"]" * depth)
        done = redact(data, form_of(b"a.json"), shared_rules(), open_engine(), found=frozenset())
        decisions.append(isinstance(done, Refusal))

    assert decisions == [False, True, True, True]


def test_of_a_long_name_its_end_is_handed_on() -> None:
    """A name is looked at for each value below it: their lengths must not be multiplied."""
    long = b"n" * (4 * NAME_MOST) + b"token"
    listed, tabled = b'{"%s": ["a", {"b": "c"}]}' % long, b'["%s"]\na = "c"\n' % long
    lines = b"[%s]\na = 1\n%s:\n  a: 1\n" % (long, long)
    stated: list[Stated | Leaf] = [
        *iter_stated(_parsed(listed, Syntax.JSON)),
        *iter_stated(_parsed(tabled, Syntax.TOML)),
        *token_leaves(listed, 0, len(listed), tokens=Tokens.JSON),
        *token_leaves(tabled, 0, len(tabled), tokens=Tokens.TOML),
        *line_leaves(lines),
    ]

    names = {name for one in stated for name in (one.name, *one.above) if len(name) > 1}

    assert len(stated) >= 8
    assert names == {long[-NAME_MOST:]}


def _parsed(data: bytes, syntax: Syntax) -> Document:
    document = parse_document(data, syntax)
    assert document is not None
    return document
