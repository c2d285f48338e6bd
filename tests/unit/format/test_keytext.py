"""Keys, cards and keys files as people copy them: every slip is noticed, no secret is shown."""

import pytest

from durarepo.core.errors import KeyMaterialError
from durarepo.core.names import ZERO_DIGEST
from durarepo.crypto import primitives
from durarepo.format.canonical import Value, decode, encode
from durarepo.format.keytext import (
    Card,
    CardStream,
    armour,
    encode_card,
    encode_key,
    encode_keys_file,
    encode_signer,
    parse_card,
    parse_key,
    parse_signer,
    unarmour,
)

RAW = primitives.random_key()
LINE = encode_key("naming", RAW).encode()


def swapped(line: bytes, at: int) -> bytes:
    """Return a line with another digit at ``at``."""
    return line[:at] + (b"1" if line[at : at + 1] == b"0" else b"0") + line[at + 1 :]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"# only a comment\n",
        LINE + b"\n" + LINE,
        LINE.upper(),
        LINE[:-1],
        LINE + b"0",
        LINE[:-9],
        b" " + LINE,
        LINE + b" ",
        LINE.replace(b"-1 ", b"-2 "),
        LINE.replace(b"naming", b"locator"),
        encode_key("locator", RAW).encode(),
        encode_key("naming", RAW[:-1]).encode(),
        encode_key("naming", RAW + b"x").encode(),
        swapped(LINE, 20),
        swapped(LINE, len(LINE) - 1),
        b"\xff\xfe" + LINE,
        b"durarepo-naming-1  " + LINE[-8:],
        b"durarepo-naming-1 " + b"00" * 4_000_000 + b" 0000000",
    ],
)
def test_a_key_line_that_is_not_whole_is_refused_and_not_quoted(text: bytes) -> None:
    """A mistyped key must be found when it is typed (ingest 2.1), and stay out of messages."""
    with pytest.raises(KeyMaterialError) as caught:
        parse_key("naming", text)

    assert caught.value.code == "keys.malformed"
    for shown in (caught.value.message, caught.value.hint, repr(caught.value)):
        assert RAW.hex()[:16] not in shown


def test_a_signer_has_a_role_that_is_known() -> None:
    """A role that nobody knows would be shown to the owner, who signs what is shown."""
    public = bytes(range(248)) * 8
    text = encode_signer("evidence", public)

    assert parse_signer(text) == ("evidence", public)
    with pytest.raises(KeyMaterialError):
        parse_signer(text.replace(b"evidence", b"everything"))


def test_every_digit_of_a_key_is_checked() -> None:
    """One wrong digit anywhere gives another key, which opens nothing."""
    begin = LINE.index(b" ") + 1
    for at in [*range(begin, begin + 64), *range(len(LINE) - 8, len(LINE))]:
        with pytest.raises(KeyMaterialError):
            parse_key("naming", swapped(LINE, at))


def test_comments_and_empty_lines_around_a_key_do_not_matter() -> None:
    """A key file says in words what it is."""
    assert parse_key("naming", b"# naming key\n\n" + LINE + b"\n# keep it\n") == RAW


CARD = Card(
    owner_digest=b"o" * 32,
    identity=primitives.random_key(),
    locator=primitives.random_key(),
    registry_version=3,
    streams=(CardStream(stream="notes", anchor=(1, 1, ZERO_DIGEST), head=(5, ZERO_DIGEST)),),
    remotes=(("home", "https://h/", None), ("work", "https://w/", b"ca")),
)


def test_a_card_shows_none_of_its_secrets() -> None:
    """A card in a traceback or a log would be the key to everything (law 9)."""
    for shown in (repr(CARD), str(CARD), f"{CARD}"):
        assert CARD.identity.hex() not in shown
        assert repr(CARD.identity)[2:-1] not in shown


def _card(changes: dict[int, Value]) -> bytes:
    value = decode(encode_card(CARD))
    if not isinstance(value, dict):
        raise TypeError("a card is a map")
    return encode({**value, **changes})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        encode([]),
        encode(None),
        _card({6: 0}),
        _card({0: bytes(31)}),
        _card({1: bytes(33)}),
        _card({2: None}),
        _card({3: True}),
        _card({3: -1}),
        _card({4: [["notes", [1, 1], [5, bytes(32)]]]}),
        _card({4: [["notes", [1, 1, bytes(32)], [5, bytes(31)]]]}),
        _card({4: [["notes", 7, [5, bytes(32)]]]}),
        _card({4: [["notes", [2**32, 1, bytes(32)], [5, bytes(32)]]]}),
        _card({4: [["Notes", [1, 1, bytes(32)], [5, bytes(32)]]]}),
        _card({4: [[b"notes", [1, 1, bytes(32)], [5, bytes(32)]]]}),
        _card({4: [{}]}),
        _card({5: [["home", "https://h/"]]}),
        _card({5: [["home", b"https://h/", None]]}),
        _card({5: [["home", "https://h/", "ca"]]}),
    ],
)
def test_a_card_of_another_form_is_a_matter_of_keys(data: bytes) -> None:
    """It is the card that has to be replaced, not an object in a store (spec/errors.md)."""
    with pytest.raises(KeyMaterialError) as caught:
        parse_card(data)

    assert caught.value.code == "keys.card-form"


@pytest.mark.parametrize("what", ["card", "keys"])
def test_the_text_of_a_card_or_keys_file_is_taken_whole_or_not_at_all(what: str) -> None:
    """Every byte counts: a second way to write it would be a way to hide something in it."""
    card = what == "card"
    content = primitives.random_key() * 3
    text = armour(card=card, content=content)

    assert unarmour(text, card=card) == content
    for bad in (
        b"",
        text[:-1],
        text + b"\n",
        text.replace(b"\n", b"\r\n"),
        text.replace(b"-1\n", b"-2\n"),
        text[: len(text) // 2],
        text.replace(b"\n", b"\n\n", 1),
        text[:-1] + b"AAAA\n",
        b"\xff" + text,
    ):
        with pytest.raises(KeyMaterialError) as caught:
            unarmour(bad, card=card)
        assert caught.value.code == "keys.card"
    with pytest.raises(KeyMaterialError):
        unarmour(text, card=not card)


def test_a_keys_file_holds_the_signing_key_and_each_naming_key() -> None:
    """With the card alone a stream could be read, and not be written to (format 10)."""
    data = encode_keys_file(b"s" * 64, [(1, b"n" * 32), (2, b"m" * 32)])

    assert decode(data) == {0: b"s" * 64, 1: [[1, b"n" * 32], [2, b"m" * 32]]}
