"""What a value looks like: a secret that begins like a reference, and a reference that does not."""
# ruff: noqa: S311 - seeds of a test

import json
import random
import string

import pytest

from durarepo.policy.decide import ContentPolicy
from durarepo.policy.rules import Decision
from durarepo.policy.scanner import open_engine
from durarepo.policy.values import is_reference
from tests.policy.fresh import text

POLICY = ContentPolicy(open_engine())
INSTANCES = 60
REFERENCES = (
    *("$API_TOKEN_2024", "$HOME/x1/y2", "${TOKEN}", "$api_key_24", "%TOKEN%", "<your token>"),
    *("/run/secrets/token_2024", "/Users/me/Keys2/Token24", "/var/lib/App2/x24", "!Ref Token"),
    *("!vault", "[not set]", "[see README 24]", "$2b$12$abcdefghijklmnopqrstuv", "{{ token }}"),
    *("$argon2id$v=19$m=65536", "<TokenOf2024/>", "$DatabasePassword", "!SecretValue"),
    *("$MyServiceToken", "/Applications/Token2", "op://vault/x/y", "env:TOKEN"),
)


@pytest.mark.parametrize("sign", ["$", "[", "!", "/"])
def test_a_drawn_value_that_begins_like_a_reference_goes(sign: str) -> None:
    """What begins with a sign is a login all the same, where two digits say it is drawn (A2a)."""
    draw = random.Random(sign)
    kept: list[str] = []

    for _ in range(INSTANCES):
        secret = sign + text(draw, draw.randint(24, 40)) + "7Q2"
        for path in (b"config.json", b".mcp.json"):
            judged = POLICY.judge(path, json.dumps({"password": secret}).encode())
            kept += [secret] if judged.data is None else []

    assert not kept


@pytest.mark.parametrize("value", REFERENCES)
def test_a_reference_stays(value: str) -> None:
    """A setting that says where the login is must still say so after a restore."""
    assert is_reference(value.encode()) or len(value) < 16
    judged = POLICY.judge(b".mcp.json", json.dumps({"password": value}).encode())
    assert judged.decision is Decision.INCLUDE


LETTERS = string.ascii_letters
OF_LOGINS = {
    "twelve signs": (12, LETTERS + string.digits + "!@%^*_-+"),
    "letters alone": (20, LETTERS),
    "sixteen small letters": (16, string.ascii_lowercase),
    "hexadecimal": (32, "0123456789abcdef"),
}


@pytest.mark.parametrize("kind", OF_LOGINS)
def test_in_settings_known_to_hold_logins_short_values_count(kind: str) -> None:
    """There a name says enough; what a person or a provider chose is a login too."""
    draw = random.Random(kind)
    size, letters = OF_LOGINS[kind]

    for _ in range(INSTANCES):
        secret = "k" + "".join(draw.choice(letters) for _ in range(size - 1))
        data = json.dumps({"smtp": {"password": secret}}).encode()
        judged = POLICY.judge(b".claude.json", data)
        assert judged.decision is Decision.REDACT, secret


def test_a_password_that_a_provider_shows_in_groups_goes() -> None:
    """A mail provider draws four times four letters, and people copy the blanks."""
    draw = random.Random("groups")
    secret = " ".join("".join(draw.sample(string.ascii_lowercase, 4)) for _ in range(4))
    data = json.dumps({"password": secret, "note": "four word text here"}).encode()

    judged = POLICY.judge(b".mcp.json", data)

    assert judged.data is not None
    assert json.loads(judged.data) == {
        "password": "withheld(login-value)",
        "note": "four word text here",
    }
