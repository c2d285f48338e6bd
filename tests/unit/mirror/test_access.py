"""Who may do what at a mirror, and that the mirror knows no token."""

import hashlib

import pytest

from durarepo.core.errors import ConfigurationError
from durarepo.mirror.access import Access, Grant, Right, make_token, parse_tokens


def test_a_token_opens_what_its_line_says() -> None:
    """The two lines that are printed belong together."""
    secret, line = make_token("notes", Right.GET)
    access = parse_tokens(f"# of the laptop\n\n{line}\n".encode())

    granted = access.grant_of(b"Bearer " + secret.reveal())

    assert granted == Grant(scope="notes", right=Right.GET)
    assert access.scopes == ["notes"]


def test_the_line_of_a_token_does_not_hold_the_token() -> None:
    """Who reads the file of a mirror must not be able to write to it."""
    secret, line = make_token("notes", Right.PUT)

    assert len(secret) >= 43
    assert secret.reveal().decode() not in line
    assert line.endswith(hashlib.sha256(secret.reveal()).hexdigest())
    assert make_token("notes", Right.PUT)[1] != line


@pytest.mark.parametrize(
    "presented",
    [b"", b"Bearer", b"Bearer ", b"Bearer x", b"Basic eDp5", b"Bearer {} ", b"{}", b"Bearer {}\n"],
)
def test_anything_but_the_token_opens_nothing(presented: bytes) -> None:
    """Neither a prefix nor another scheme, nor the token with something beside it."""
    secret, line = make_token("notes", Right.PUT)

    access = parse_tokens(line.encode())

    assert access.grant_of(presented.replace(b"{}", secret.reveal())) is None


def test_the_digest_of_a_token_is_no_token() -> None:
    """What stands in the file must not open anything."""
    _, line = make_token("notes", Right.PUT)

    assert parse_tokens(line.encode()).grant_of(b"Bearer " + line.split()[2].encode()) is None


@pytest.mark.parametrize(
    "line",
    [
        "notes put", f"notes put {'a' * 63}", f"notes put {'A' * 64}", f"notes own {'a' * 64}",
        f"No put {'a' * 64}", f"../x put {'a' * 64}", f"notes metrics {'a' * 64}",
        f"- put {'a' * 64}", f"notes put {'a' * 64}\nother get {'a' * 64}", "\xff",
    ],
)  # fmt: skip
def test_a_line_that_is_none_is_refused_without_being_repeated(line: str) -> None:
    """A typing mistake must not open a base to somebody, or close it in silence."""
    with pytest.raises(ConfigurationError) as caught:
        parse_tokens(line.encode("latin-1"))

    assert caught.value.code == "config.tokens"
    assert "aaa" not in str(caught.value)


def test_no_tokens_open_nothing() -> None:
    """An empty file is a mirror that nobody uses, not one that everybody does."""
    assert Access({}).grant_of(b"Bearer x") is None
    assert parse_tokens(b"").scopes == []
