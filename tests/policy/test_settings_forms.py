"""Secrets in every form of settings: the value goes, or the file does, and nothing else."""
# ruff: noqa: S311 - seeds of a test

import json
import random
import tomllib

import pytest

from durarepo.policy.decide import ContentPolicy
from durarepo.policy.rules import Decision
from durarepo.policy.scanner import HYPERSCAN, RE2, open_engine
from tests.policy.fresh import text
from tests.policy.fresh_settings import FORMS, NAMES, SettingsForm

POLICIES = [ContentPolicy(open_engine(name)) for name in (RE2, HYPERSCAN)]
INSTANCES = 200


@pytest.mark.parametrize("form", FORMS, ids=lambda one: f"{one.path} {one.body}")
def test_in_every_form_the_secret_goes_and_all_else_stays(form: SettingsForm) -> None:
    """A reader that knows the usual forms alone keeps what stands in the others (A2a)."""
    draw = random.Random(f"{form.path} {form.body}")

    for number in range(INSTANCES):
        secret, name = text(draw, draw.randint(24, 40)), draw.choice(NAMES)
        data = form.filled(name, secret).encode()
        judged = POLICIES[number % 2].judge(form.path.encode(), data)

        if not form.is_taken:
            assert judged.decision is Decision.EXCLUDE, data
            continue
        assert judged.decision is Decision.REDACT, data
        assert judged.data is not None
        before, after = data.split(secret.encode())
        assert judged.data.startswith(before.rstrip(b"\r\n"))
        assert judged.data.endswith(after.lstrip(b"\r\n"))
        assert len(judged.data) <= len(before) + len(b"withheld(kubernetes-secret)") + len(after)
        assert POLICIES[0].judge(form.path.encode(), judged.data).decision is Decision.INCLUDE


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_settings_in_wide_letters_go_as_a_whole(coding: str) -> None:
    """A value in them is not taken out with certainty, and one byte in two says nothing."""
    draw = random.Random(coding)
    kept: list[str] = []

    for form in FORMS:
        body = form.filled(draw.choice(NAMES), text(draw, 30)).lstrip("\ufeff")
        for policy in POLICIES:
            judged = policy.judge(form.path.encode(), body.encode(coding))
            kept += [body] if judged.decision is not Decision.EXCLUDE else []

    assert not kept


@pytest.mark.parametrize("form", [one for one in FORMS if one.path.endswith(("toml", "json"))])
def test_a_program_reads_what_is_left(form: SettingsForm) -> None:
    """Settings that do not parse after a restore are lost; those that did not, still do not."""
    secret = text(random.Random(1), 30)
    data = form.filled("password", secret).encode()
    judged = POLICIES[0].judge(form.path.encode(), data)
    load = tomllib.loads if form.path.endswith("toml") else json.loads

    def reads(text_of: bytes) -> bool:
        try:
            load(text_of.decode("utf-8-sig"))
        except ValueError:
            return False
        return True

    assert judged.data is not None
    assert reads(judged.data) == reads(data)


def test_a_value_is_looked_for_in_the_document_and_not_in_its_text_alone() -> None:
    """What the reader of leaves cannot locate must not be kept because of that."""
    secret = text(random.Random(2), 30)
    data = b'{"token": {"deep": 1}, "x": [[{"name": "a", "value": "%s"}]], "' % secret.encode()
    inner = data + b'a": {"name": "password", "more": [1], "value": "%s"}}' % secret.encode()[::-1]

    judged = POLICIES[0].judge(b"a.json", inner)

    assert judged.decision is Decision.REDACT
    assert judged.data is not None
    assert secret.encode()[::-1] not in judged.data
    assert secret.encode() in judged.data
