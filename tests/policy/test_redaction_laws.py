"""Laws of redaction: whatever stands around a secret, only the secret goes, and the rest parses."""
# ruff: noqa: S311, S314 - seeds of a test; XML that the test itself has written

import configparser
import json
import random
import tomllib
from collections.abc import Callable
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from hypothesis import given, settings
from hypothesis import strategies as st

from durarepo.policy.decide import ContentPolicy
from durarepo.policy.rules import Decision
from durarepo.policy.scanner import HYPERSCAN, RE2, open_engine
from tests.policy.fresh import text

POLICIES = [ContentPolicy(open_engine(name)) for name in (RE2, HYPERSCAN)]
NAMES = ("password", "db_password", "api_key", "OPENAI_API_KEY", "botToken", "client_secret")

plain_names = st.text("bcdfghjlmnpqr", min_size=1, max_size=8)
plain_values = st.one_of(
    st.text("abc XYZ.,äé€'#", max_size=30), st.integers(-999, 999), st.booleans()
)
settings_of = st.dictionaries(plain_names, plain_values, min_size=1, max_size=6)
secret_names = st.sampled_from(NAMES)
seeds = st.integers(0, 2**32)

Plain = dict[str, object]
Write = Callable[[Plain], str]
Read = Callable[[str], Plain]


def _write_toml(value: Plain) -> str:
    return "# settings\n" + "".join(f"{name} = {json.dumps(one)}\n" for name, one in value.items())


def _write_ini(value: Plain) -> str:
    rows = (f"{name} = {str(one).strip().strip('#')}\n" for name, one in value.items())
    return "[all]\n" + "".join(rows)


def _read_ini(data: str) -> Plain:
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # as its documentation says
    parser.read_string(data)
    return dict(parser["all"])


def _write_xml(value: Plain) -> str:
    rows = "".join(f"<{name}>{escape(str(one))}</{name}>" for name, one in value.items())
    return f"<?xml version='1.0'?><!-- s --><settings>{rows}</settings>"


def _read_xml(data: str) -> Plain:
    return {one.tag: one.text for one in ElementTree.fromstring(data)}


FORMS: dict[str, tuple[Write, Read]] = {
    "settings.toml": (_write_toml, tomllib.loads),
    "settings.ini": (_write_ini, _read_ini),
    "settings.json": (lambda value: json.dumps(value, indent=1), json.loads),
    "settings.xml": (_write_xml, _read_xml),
}


@settings(deadline=None, max_examples=400)
@given(
    form=st.sampled_from(sorted(FORMS)),
    before=settings_of,
    after=settings_of,
    name=secret_names,
    seed=seeds,
)
def test_only_the_named_leaf_goes_and_the_rest_parses(
    form: str, before: Plain, after: Plain, name: str, seed: int
) -> None:
    """Settings that a tool cannot read after a restore, or that lost a line, are damaged work."""
    secret = text(random.Random(seed), 36)
    write, read = FORMS[form]
    value = {**before, name: secret, **after}
    value = {key: value[key] for key in value if key != name} | {name: secret}
    data = write(value)

    judged = [policy.judge(form.encode(), data.encode()) for policy in POLICIES]

    first = judged[0]
    assert judged[1] == first
    assert first.decision is Decision.REDACT
    assert first.data is not None
    redacted = first.data.decode()
    assert secret not in redacted
    assert read(redacted) == {**read(data), name: "withheld(assigned)"}
    assert POLICIES[0].judge(form.encode(), first.data).decision is Decision.INCLUDE


@settings(deadline=None, max_examples=150)
@given(
    lines=st.lists(st.text("abc def.,:;!?()[]{}<>/#*'\"\\ äé", max_size=60), max_size=12),
    at=st.integers(0, 12),
    seed=seeds,
    name=st.sampled_from(["log.md", "run.jsonl", "a.log", ".bash_history", "x.csv"]),
)
def test_of_text_only_the_token_goes(lines: list[str], at: int, seed: int, name: str) -> None:
    """A transcript is the memory of an agent; a token in it is no reason to lose a letter more."""
    token = "gh" + "p_" + text(random.Random(seed), 36)
    lines = [*lines[:at], f"use {token} now", *lines[at:]]
    data = "\n".join(lines).encode()

    judged = [policy.judge(name.encode(), data) for policy in POLICIES]

    assert judged[0] == judged[1]
    assert judged[0].decision is Decision.REDACT
    assert judged[0].data == data.replace(token.encode(), b"withheld(token-github)")
