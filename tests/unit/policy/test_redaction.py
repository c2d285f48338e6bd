"""Values taken out of settings: the rest stays, the result parses, and nothing is left."""
# ruff: noqa: S311, S105 - seeds and statements of a test

import json
import random
import resource
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durarepo.policy import documents, redaction
from durarepo.policy.decide import ContentPolicy, Judged
from durarepo.policy.forms import Profile, Syntax, form_of
from durarepo.policy.rules import Decision
from durarepo.policy.scanner import open_engine
from durarepo.policy.values import says_secret
from tests.doubles.children import run_in_child
from tests.policy.fresh import begin, text

POLICY = ContentPolicy(open_engine())
DRAW = random.Random("redaction")
SECRET = text(DRAW, 40)
TOKEN = "gh" + "p_" + text(DRAW, 36)


def redacted(path: str, data: str) -> Judged:
    """Judge, and demand that the secret went and the judgement can be repeated."""
    judged = POLICY.judge(path.encode(), data.encode())
    assert judged.decision is Decision.REDACT
    assert judged.data is not None
    assert SECRET.encode() not in judged.data
    assert TOKEN.encode() not in judged.data
    assert POLICY.judge(path.encode(), data.encode()) == judged
    assert POLICY.judge(path.encode(), judged.data).decision is Decision.INCLUDE
    return judged


def test_json_differs_only_in_the_named_leaves() -> None:
    """An agent's settings are work as well; only the login may go."""
    value = {
        "servers": {
            "x": {"env": {"X_TOKEN": SECRET, "DEBUG": "1"}, "args": ["-v", "--key", "a, b"]},
            "y": {"headers": {"Authorization": f"Bearer {SECRET}"}, "n": 1.5, "t": None},
        },
        "history": ["token is not here", 'ünïcode \\ " quotes'],
        "max_tokens": "4096",
    }
    expected = json.loads(json.dumps(value))
    expected["servers"]["x"]["env"]["X_TOKEN"] = "withheld(login-value)"
    expected["servers"]["y"]["headers"]["Authorization"] = "Bearer withheld(token-bearer)"

    judged = redacted("home/.mcp.json", json.dumps(value, indent=1))

    assert judged.data is not None
    after = json.loads(judged.data)
    assert after["history"] == value["history"]
    assert after["servers"]["x"] == expected["servers"]["x"]
    assert SECRET not in after["servers"]["y"]["headers"]["Authorization"]
    assert judged.count == 2


def test_json_with_comments_keeps_its_comments() -> None:
    """Settings for people hold comments; they are no reason to leave the file out."""
    data = f"""{{
  // channels
  channels: {{ slack: {{ botToken: '{SECRET}', }} }}, /* end */
}}
"""
    judged = redacted("openclaw.json", data)

    assert judged.data == data.replace(SECRET, "withheld(login-value)").encode()


def test_toml_parses_again() -> None:
    """A tool that cannot read its settings after a restore has lost them."""
    data = f'model = "x"\n[mcp_servers.a.env]\nA_API_KEY = "{SECRET}" # note\nN = 1\n'

    judged = redacted(".codex/config.toml", data)

    assert judged.data is not None
    assert tomllib.loads(judged.data.decode()) == {
        "model": "x",
        "mcp_servers": {"a": {"env": {"A_API_KEY": "withheld(login-value)", "N": 1}}},
    }


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (".git/config", '[remote "o"]\n\turl = https://me:{s}@git.example/r\n\tfetch = +refs/*\n'),
        (".npmrc", "a=b\n//r.example/:_authToken={s}\n"),
        ("config.yaml", "db:\n  # c\n  password: {s}  # why\n  port: 5432\n"),
        ("x.properties", "a.password={s}\nb=1\n"),
        (".m2/settings.xml", "<a><username>me</username><password>{s}</password></a>"),
        ("notes/day.md", "# Day\n\nuse {t} for it\n"),
        (".bash_history", "ls\nexport X={t}\n"),
    ],
)
def test_all_but_the_value_stays_byte_for_byte(path: str, data: str) -> None:
    """What surrounds a secret is why the file is kept."""
    whole = data.format(s=SECRET, t=TOKEN)
    secret = SECRET if "{s}" in data else TOKEN

    judged = redacted(path, whole)

    before, after = whole.encode().split(secret.encode())
    assert judged.data is not None
    assert judged.data.startswith(before)
    assert judged.data.endswith(after)
    assert judged.data[len(before) : len(judged.data) - len(after)].startswith(b"withheld(")


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("src/push.py", "T = '{t}'\n"),
        (".docker/config.json", '{{"auths": {{"r": {{"auth": "bWU6{s}"}}}}}}'),
        ("config.yaml", "password: |\n  {s}\n"),
        ("blob.bin", "\0\0{t}\0"),
        (".mcp.json", '{{"a": "{b}"}}'),
        ("notes.md", "{b}\n"),
    ],
)
def test_what_cannot_be_taken_out_with_certainty_goes_as_a_whole(path: str, data: str) -> None:
    """Half a secret taken out is a secret kept; and a key takes its file (A2b)."""
    whole = data.format(s=SECRET, t=TOKEN, b=begin("RSA PRIVATE" + " KEY"))

    assert POLICY.judge(path.encode(), whole.encode()).decision is Decision.EXCLUDE


@settings(deadline=None, max_examples=200)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
        max_leaves=12,
    ),
    indent=st.sampled_from((None, 2)),
)
def test_any_json_around_a_secret_stays_as_it_was(value: object, indent: int | None) -> None:
    """The tokens of a file are found by offsets; a wrong one would change somebody's work."""
    whole = {"before": value, "api_key": SECRET, "after": [value]}

    judged = POLICY.judge(b"settings.json", json.dumps(whole, indent=indent).encode())

    assert judged.data is not None
    assert json.loads(judged.data) == {**whole, "api_key": "withheld(assigned)"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *((one, True) for one in ("OPENAI_API_KEY", "botToken", "spring.datasource.password")),
        *((one, True) for one in ("client_secret", "smtp-password", "accessKey", "_authToken")),
        *((one, True) for one in ("client-key-data", "apikey", "X-Api-Key", "DB_PASSWORD_1")),
        *((one, False) for one in ("tokenizer", "max_tokens", "api_key_env", "public_key")),
        *((one, False) for one in ("keyboard", "primary_key", "token_url", "password_file")),
        *((one, False) for one in ("monkey", "author", "secretary", "passenger", "next_key")),
        *((one, False) for one in ("nextPageToken", "continuation_token", "NextToken")),
    ],
)
def test_a_name_says_secret_by_its_words(name: str, said: bool) -> None:  # noqa: FBT001 - a parameter
    """A name that only contains the letters of a word says nothing."""
    assert says_secret(name.encode()) is said


@pytest.mark.parametrize(
    ("path", "syntax", "profile"),
    [
        (b"a/.mcp.json", Syntax.JSON, Profile.LOGIN),
        (b"a/.mcp.json.bak", Syntax.JSON, Profile.LOGIN),
        (b"a/.git/config", Syntax.LINES, Profile.LOGIN),
        (b"a/config", Syntax.OTHER, Profile.NONE),
        (b"a/.kube/config", Syntax.LINES, Profile.STORE),
        (b"a/b.jsonl", Syntax.TEXT, Profile.NONE),
        (b"a/.git/logs/refs/heads/main", Syntax.TEXT, Profile.NONE),
        (b"a/package-lock.json", Syntax.JSON, Profile.DATA),
        (b"a/x.py", Syntax.OTHER, Profile.NONE),
        (b"a/.bash_history", Syntax.TEXT, Profile.NONE),
        (b"a/Cargo.toml", Syntax.TOML, Profile.NONE),
    ],
)
def test_the_form_follows_the_tail_of_the_path(
    path: bytes, syntax: Syntax, profile: Profile
) -> None:
    """A form that is guessed wrong redacts what it must not touch."""
    assert (form_of(path).syntax, form_of(path).profile) == (syntax, profile)


def test_a_line_of_many_blanks_ends_no_backup() -> None:
    """Who can write one file into a root must not be able to stop its backup."""
    line = b"password: x\n" + b" " * 400_000 + b"a" * 400_000 + b"\n"

    def judge() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        assert POLICY.judge(b"settings.yaml", line).decision is Decision.INCLUDE

    run_in_child(judge)


@pytest.mark.parametrize(
    "value", ["hello_world_4_tokens_2", "claude-sonnet-model-4-5", "eu-west-1-blue-green-2"]
)
def test_words_with_numbers_between_them_are_no_secret(value: str) -> None:
    """The name of a model or a place is work, even where it stands as a token."""
    data = json.dumps({"token": value, "x": {"api_key": value}})

    assert POLICY.judge(b"a.json", data.encode()).decision is Decision.INCLUDE


def test_what_a_parser_states_and_no_reader_locates_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reader of leaves is no parser; what it misses must not be kept because of that."""
    monkeypatch.setattr(redaction, "token_leaves", lambda *_, **__: iter(()))
    files = {
        b"a.json": b'{"a": {"api_key": "%s"}}' % SECRET.encode(),
        b"a.toml": b'[a]\napi_key = "%s"\n' % SECRET.encode(),
    }

    judged = [POLICY.judge(name, data) for name, data in files.items()]

    assert [one.decision for one in judged] == [Decision.EXCLUDE] * 2
    assert {one.rule for one in judged} == {"assigned"}


def test_a_document_too_large_for_a_parser_loses_its_leaf_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An agent's history is in the file of its settings, and quotes what looks like some."""
    monkeypatch.setattr(documents, "JSON_MOST", 100)
    monkeypatch.setattr(redaction, "JSON_MOST", 100)
    value = {"history": ["x " * 60, f"set password = {SECRET[::-1]} there"], "api_key": SECRET}

    judged = redacted("settings.json", json.dumps(value))

    assert judged.data is not None
    assert json.loads(judged.data) == {**value, "api_key": "withheld(assigned)"}
