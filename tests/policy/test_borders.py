"""Where a token begins and ends: what stands before and behind it, in texts and binary formats."""
# ruff: noqa: S311 - seeds of a test

import pickle
import random
import resource
import string
from collections.abc import Callable, Iterator

import pytest

from durarepo.policy.decide import ContentPolicy
from durarepo.policy.rules import Decision
from durarepo.policy.scanner import open_engine
from durarepo.policy.scanning import find_spans, scan_whole, shared_rules
from tests.doubles.children import run_in_child
from tests.policy.fresh import text

ENGINES = ("re2", "hyperscan")
DRAW = random.Random("borders")
MADE: dict[str, Callable[[], str]] = {
    "anthropic": lambda: "sk-" + "ant-api03-" + text(DRAW, 93) + "AA",
    "sk": lambda: "sk-" + text(DRAW, 48),
    "github": lambda: "gh" + "p_" + text(DRAW, 36),
    "npm": lambda: "np" + "m_" + text(DRAW, 36),
    "google": lambda: "AI" + "za" + text(DRAW, 35),
    "slack": lambda: "xo" + "xb-" + "".join(DRAW.choices("123456789", k=12)) + "-" + text(DRAW, 24),
    "telegram": lambda: "".join(DRAW.choices("123456789", k=10)) + ":A" + text(DRAW, 34),
    "huggingface": lambda: "h" + "f_" + text(DRAW, 34),
}
ESCAPES = (
    *(b"\x1b[K", b"\x1b[0K", b"\x1b[1G", b"\x1b(B", b"\x1b[?2004h", b"\x1b[38;2;255;100;50m"),
    *(b"\\u001b[K", b"\\x1b[0K", b"\\033[01;31m\\033[K", b"=3D", b"%3D", b"%253D", b"\\x1f"),
    *(b"\\b", b"\\f", b"\\n", b"\\r\\n", b"\\t", b"\\u003d"),
)
BINARY: dict[str, Callable[[bytes], bytes]] = {
    "msgpack": lambda one: b"\x81\xa1k\xd9" + bytes([len(one)]) + one + b"\xa1n\x01",
    "cbor": lambda one: b"\xa2ak\x78" + bytes([len(one)]) + one + b"aB\x01",
    "protobuf": lambda one: b"\x0a" + bytes([len(one)]) + one + b"B\x07nothing",
    "pickle": lambda one: pickle.dumps({"key": one.decode(), "next": "B"}),
    "der": lambda one: b"\x30\x7f\x0c" + bytes([len(one)]) + one + b"A",
}


@pytest.fixture(params=ENGINES)
def policy(request: pytest.FixtureRequest) -> ContentPolicy:
    """Give the policy with one engine."""
    return ContentPolicy(open_engine(str(request.param)))


@pytest.mark.parametrize("kind", MADE)
def test_a_token_behind_an_escape_is_found(policy: ContentPolicy, kind: str) -> None:
    """An escape ends in a letter or a digit and is no part of the word behind it."""
    for escape in ESCAPES:
        data = b"text " + escape + MADE[kind]().encode() + b" end"

        assert policy.judge(b"/x/a.log", data).decision is Decision.REDACT, escape


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("form", BINARY)
def test_a_token_between_lengths_and_tags_is_found(
    policy: ContentPolicy, kind: str, form: str
) -> None:
    """Binary formats say a length before a text and go on right behind it; both may be letters."""
    for _ in range(10):
        data = BINARY[form](MADE[kind]().encode())

        assert policy.judge(b"/x/state.bin", data).decision is Decision.EXCLUDE


def test_a_token_of_a_bot_is_found_in_its_address(policy: ContentPolicy) -> None:
    """Logs of clients hold the address of each call."""
    data = b"GET https://api.telegram.org/bot" + MADE["telegram"]().encode() + b"/getMe"

    assert policy.judge(b"/x/a.log", data).decision is Decision.REDACT


@pytest.mark.parametrize("kind", ["anthropic", "github", "npm", "slack"])
@pytest.mark.parametrize("before", [b"backup_", b"token", b"user"])
def test_a_prefix_that_no_word_ends_with_is_found_in_a_word(
    policy: ContentPolicy, kind: str, before: bytes
) -> None:
    """Names are put together with what they name, and columns of a page follow each other."""
    data = before + MADE[kind]().encode()

    assert policy.judge(b"/x/a.log", data).decision is Decision.REDACT
    assert policy.holds_secret(data)


@pytest.mark.parametrize(
    "words",
    [
        b"risk-service-level-agreement-for-customers-in-europe-and-elsewhere today",
        b"task-proj-implement-the-thing-that-we-talked-about-yesterday",
        b"disk-" + string.ascii_lowercase.encode() * 2,
        b"cachekey_" + b"0123456789abcdef" * 4,
        b"monkey-" + b"0123456789abcdef" * 2,
        b"0=sk-" + b"too-short",
    ],
)
def test_words_that_end_as_tokens_begin_are_kept(policy: ContentPolicy, words: bytes) -> None:
    """Slugs and keys of caches are work."""
    for data in (words, b" " + words + b"\n", b"d" * 97 + words):
        assert policy.judge(b"/x/a.md", data).decision is Decision.INCLUDE


HOSTILE = (
    *(b"tLS0tLUJFR0lOI", b"UFJJVkFURSBLRVktLS0tL-----", b"LS0tLS1CRUdJTi", b"EAA", b"A", b"eyJ"),
    *(b"eyJ-", b"eyJabcdefghij", b"eyJabcdefghijkl-----", b"ops_eyJ", b"ops_eyJ-", b"AKIA"),
    *(b"Cookie: a=b; ", b"<RSAKeyValue><D>", b'"kdfparams"', b"Basic aaaaaaaaaaaa", b"sk-"),
    *(b"sig=aaaaaaaaaa", b"ABSK+", b'"d":"AAAAAAAAAAAAAAAAAAAAAAAA', b"untrusted comment: a\n"),
    *(b"://a:b@", b"1/0000000000000", b".eyJabcdefghij", b"AAAA%", b"Bearer a.b-c_d~e+f/g"),
)
SECONDS = 10


def _hostile() -> Iterator[bytes]:
    for unit in HOSTILE:
        yield (unit * (120_000 // len(unit) + 1))[:120_000]


def test_no_text_makes_a_look_at_it_long() -> None:
    """What is repeated must not be looked at from each of its places to its end."""

    def look() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        engine = open_engine("re2")
        found = [scan_whole(data, shared_rules(), engine).is_clean for data in _hostile()]
        spans = [find_spans(data, shared_rules(), engine) for data in _hostile()]
        assert len(found) == len(spans) == len(HOSTILE)
        assert 0 < found.count(False) < len(found)

    run_in_child(look)
