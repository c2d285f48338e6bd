"""Vectors of step 2.3: the card and the keys file."""

import base64
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from tests.interop import miniwriter as mini
from tests.vectorgen import keys
from tests.vectorgen.catalogue import Body, fails, passes
from tests.vectorgen.scene import SALT

_DIGESTS = [bytes([byte]) * 32 for byte in (0x61, 0x62)]


def notation(value: Any) -> str:
    """Return a value in diagnostic notation (RFC 8949, 8), as results of vectors are written."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, bytes):
        return f"h'{value.hex()}'"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {notation(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(notation, value)) + "]"
    return str(value)


def _map() -> dict[int, Any]:
    return {
        0: mini.sha256(keys.public_of(keys.OWNER)),
        1: keys.ESCROW,
        2: keys.LOCATOR,
        3: 3,
        4: [["notes", [1, 64, _DIGESTS[0]], [70, _DIGESTS[1]]]],
        5: [["box", "https://backup.example/notes", None]],
    }


def _text(first: str, content: bytes) -> bytes:
    lines = base64.b64encode(content).decode("ascii")
    rows = [lines[at : at + 64] for at in range(0, len(lines), 64)]
    return "\n".join((first, *rows, "")).encode("ascii")


def _card(content: bytes, *, form: int = 0, first: str = "durarepo-card-1", **inputs: str) -> Body:
    return Body(data=_text(first, bytes([form]) + content), inputs=inputs, result=notation(_map()))


def _sealed(
    change: Callable[[bytes], bytes] | None = None, *, passphrase: str = keys.PASSPHRASE
) -> bytes:
    """Return the content of a card of form 1; ``change`` alters its commitment."""
    key = Argon2id(salt=SALT, length=32, iterations=3, lanes=4, memory_cost=256 * 1024).derive(
        passphrase.encode()
    )
    plain = mini.encode(_map())
    number = mini.nonce(key, 7, plain)
    commitment = mini.commit(key, mini.NOBODY.info(8, SALT))
    if change:
        commitment = change(commitment)
    return SALT + commitment + number + mini.gcm(key, number, plain)


@passes("card", "2.3")
def card_plain() -> Body:
    """A card of form 0."""
    return _card(mini.encode(_map()))


@passes("card", "2.3")
def card_with_passphrase() -> Body:
    """A card of form 1, with its passphrase."""
    return _card(_sealed(), form=1, passphrase=keys.PASSPHRASE)


@fails("card", "2.3", "keys.card", differs_from="card-plain", field="first line")
def card_of_version_2() -> Body:
    """The first line names a version that does not exist."""
    return _card(mini.encode(_map()), first="durarepo-card-2")


@fails("card", "2.3", "keys.card", differs_from="card-plain", field="form")
def card_of_form_2() -> Body:
    """There are two forms, 0 and 1."""
    return _card(mini.encode(_map()), form=2)


@fails("card", "2.3", "keys.card", differs_from="card-plain", field="a character")
def card_mistyped() -> Body:
    """A character that is none of base64's."""
    body = _card(mini.encode(_map()))
    return Body(data=body.data[:40] + b"!" + body.data[41:])


@fails("card", "2.3", "keys.card", differs_from="card-with-passphrase", field="passphrase")
def card_with_wrong_passphrase() -> Body:
    """The card was sealed under another passphrase."""
    return _card(_sealed(passphrase=keys.OTHER_PASSPHRASE), form=1, passphrase=keys.PASSPHRASE)


@fails("card", "2.3", "keys.card", differs_from="card-with-passphrase", field="commitment")
def card_commitment_differs() -> Body:
    """The passphrase's key is not the one that was committed to."""
    sealed = _sealed(lambda old: bytes([old[0] ^ 1]) + old[1:])
    return _card(sealed, form=1, passphrase=keys.PASSPHRASE)


def _keys_file(first: str = "durarepo-keys-1", *, to: bytes = keys.ESCROW) -> Body:
    content = {0: keys.SIGNER, 1: [[1, keys.NAMING], [2, keys.NEXT_NAMING]]}
    scope = mini.Scope(epoch=0, recipients=(mini.Identity(to),))
    box = mini.sealed_box(mini.encode(content), kind=7, scope=scope, edits={"salt": SALT})
    head = b"\x05notes\x04main"
    return Body(
        data=_text(first, head + box),
        inputs={"identity": keys.ESCROW.hex()},
        result=notation(content),
    )


@passes("keysfile", "2.3")
def keys_file() -> Body:
    """A keys file with the naming keys of two epochs."""
    return _keys_file()


@fails("keysfile", "2.3", "keys.card", differs_from="keys-file", field="first line")
def keys_file_of_card() -> Body:
    """The first line of a card."""
    return _keys_file("durarepo-card-1")
