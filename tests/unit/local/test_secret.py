"""A secret shows itself nowhere by accident."""

import copy
import logging
import pickle
import secrets
import traceback

import pytest

from durarepo.core.secret import Secret


def _spellings(value: bytes) -> set[str]:
    return {value.hex(), repr(value), value.decode("latin-1"), str(list(value))}


def test_secret_does_not_show_in_any_text() -> None:
    """A traceback, a log line or a status file would give the key away (A2e)."""
    value = secrets.token_bytes(32)
    secret = Secret(value)

    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r:>40}",
        "{} {!r}".format(*[secret] * 2),
    ]
    shown.append(repr([secret]) + repr({"key": secret}))
    record = logging.LogRecord("name", 10, "path", 1, "%s", (secret,), None)
    shown.append(record.getMessage())
    shown += traceback.format_exception(ValueError(secret))

    assert not any(spelling in text for spelling in _spellings(value) for text in shown)


def test_secret_is_neither_copied_nor_written_out() -> None:
    """A pickle on disk or in a pipe is the key in the clear."""
    secret = Secret(secrets.token_bytes(32))

    for call in (pickle.dumps, copy.copy, copy.deepcopy, hash):
        with pytest.raises(TypeError):
            call(secret)
    with pytest.raises(AttributeError):
        secret.other = 1  # type: ignore[attr-defined]  # the point of the test


def test_equality_is_that_of_the_bytes_and_only_among_secrets() -> None:
    """Comparing with bytes would invite comparing outside constant time."""
    value = secrets.token_bytes(32)

    assert Secret(value) == Secret(bytes(value))
    assert Secret(value) != Secret(secrets.token_bytes(32))
    assert Secret(value) != value
    assert Secret(value).reveal() == value
    assert len(Secret(value)) == 32


def test_only_bytes_become_a_secret() -> None:
    """Text would have an encoding, and a mutable buffer could change under us."""
    for wrong in ("text", bytearray(b"bytes"), None):
        with pytest.raises(TypeError):
            Secret(wrong)  # type: ignore[arg-type]  # the point of the test
