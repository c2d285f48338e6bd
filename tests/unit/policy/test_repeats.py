"""A value taken out of one place is looked for in the rest of its file."""
# ruff: noqa: S311, S105 - seeds and statements of a test

import json
import random
import tomllib
from urllib.parse import quote

import pytest

from durarepo.policy import repeats
from durarepo.policy.decide import ContentPolicy
from durarepo.policy.repeats import RepeatsError, repeated
from durarepo.policy.rules import Decision
from durarepo.policy.scanner import open_engine
from tests.policy.fresh import text

POLICY = ContentPolicy(open_engine())
SETTINGS = {
    "a.har": '{"q": [{"name": "access_token", "value": "@S"}], "x": "https://h/@S/?k=@S"}',
    "a.json": '{"api_key": "@S", "note": "rotated from @S", "args": ["-x", "@S"]}',
    "mcp.json": '{"m": {"env": {"A_KEY": "@S"}, "args": ["-k", "@S"], "url": "https://h/?k=@S"}}',
    "package.json": '{"config": {"api_key": "@S"}, "scripts": {"x": "curl h/@S"}}',
    "a.yaml": "api_key: @S\ncmd: foo --x @S\nurl: https://h/@S/x\n",
    "a.toml": 'api_key = "@S"\n# old: @S\nurl = "https://h/@S"\n',
    "a.ini": "api_key=@S\n# was @S\nurl = https://h/@S\n",
    "a.xml": "<a><password>@S</password><url>https://h/@S</url><!-- @S --></a>",
    ".mcp.json": '{"headers": {"Authorization": "token @S"}, "note": "old @S"}',
}


@pytest.mark.parametrize("path", SETTINGS)
def test_a_value_goes_wherever_it_stands_in_its_file(path: str) -> None:
    """A file told as redacted must not hold the value in the address below it (A2a)."""
    draw = random.Random(path)

    for _ in range(50):
        secret = text(draw, draw.randint(18, 40))
        data = SETTINGS[path].replace("@S", secret)
        judged = POLICY.judge(path.encode(), data.encode())

        assert judged.decision is Decision.REDACT
        assert judged.data is not None
        assert secret.encode() not in judged.data
        assert judged.count >= 2
        assert POLICY.judge(path.encode(), judged.data).decision is Decision.INCLUDE
        if path.endswith(("json", "har")):
            json.loads(judged.data)
        if path.endswith("toml"):
            tomllib.loads(judged.data.decode())


def test_a_value_is_found_as_json_and_urls_write_it() -> None:
    """What stands under its name as it is stands in an address with escapes."""
    draw = random.Random("spelled")
    secret = f"{text(draw, 12)}/+{text(draw, 12)}="
    value = {"password": secret, "url": f"https://h/?x={quote(secret, safe='')}"}
    data = json.dumps(value).replace("/", "\\/") + "\n"
    hidden = secret.replace("/", "\\/"), quote(secret, safe="")

    judged = POLICY.judge(b"a.json", data.encode())

    assert judged.data is not None
    assert json.loads(judged.data)["password"] == "withheld(assigned)"
    assert not [one for one in hidden if one.encode() in judged.data]


def test_a_value_that_is_the_name_of_a_member_takes_its_file() -> None:
    """Only values may differ; a name cannot be taken out, and must not be kept."""
    secret = text(random.Random("name"), 30)
    data = json.dumps({"api_key": secret, "used": {secret: 1}})

    assert POLICY.judge(b"a.json", data.encode()).decision is Decision.EXCLUDE


def test_what_is_no_secret_by_itself_stays_elsewhere() -> None:
    """A short or spoken login is a word of the settings as well, and work where it is one."""
    value = {"env": {}, "password": "blueprint", "note": "the blueprint", "token": "oauth-personal"}

    judged = POLICY.judge(b".mcp.json", json.dumps(value).encode())

    assert judged.data is not None
    assert json.loads(judged.data)["note"] == "the blueprint"


@pytest.mark.parametrize("count", [3, 200])
def test_few_and_many_values_are_found_alike(count: int) -> None:
    """Many are looked for in another way than few, and none may be left for it."""
    draw = random.Random(count)
    values = {text(draw, draw.randint(16, 30)).encode(): "assigned" for _ in range(count)}
    data = b" ".join(b"x%sy" % one for one in values)

    spans = repeated(data, values)

    assert sorted(data[one.start : one.stop] for one in spans) == sorted(values)


def test_values_that_end_alike_are_not_looked_for_without_end() -> None:
    """Who writes a file chooses its values; each byte must be compared with few of them."""
    draw = random.Random("tails")
    tail = text(draw, 8)
    values = {f"{text(draw, 20)}{tail}".encode(): "assigned" for _ in range(100)}

    with pytest.raises(RepeatsError):
        repeated(b"a" * 100, values)
    assert repeats.repeated(b"a" * 100, {}) == []
