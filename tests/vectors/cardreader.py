"""Text files of keys, read from the specification alone (format 3.2 and 10), beside reader.

It shares no code with durarepo. Start at `read_key`, `read_card` and `read_keys_file`.
"""

import base64
import binascii
import hmac
import re
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from tests.interop import minireader

reader: Any = minireader  # it annotates nothing
_KEY_BYTES = {
    "signing": 64,
    "signer": 1984,
    "owner": 64,
    "owner-public": 1984,
    "identity": 32,
    "recipient": 1216,
    "naming": 32,
    "locator": 32,
}
_CARD = {0: 32, 1: 32, 2: 32, 3: int, 4: list, 5: list}
_KEYS = {0: 64, 1: list}


class CardError(Exception):
    """What is read is no card, no keys file, or not opened by what is held."""


def read_key(text: str, kind: str) -> bytes:
    """Return the bytes of the one key line in ``text`` (ingest 2).

    Raises:
        Refused: the code of the step that fails.
    """
    lines = "".join(line for line in text.splitlines(keepends=True) if line[:1] != "#")
    found = re.fullmatch(rf"(durarepo-{kind}-1 )((?:[0-9a-f]{{2}})+) ([0-9a-f]{{8}})\n", lines)
    if found is None:
        raise minireader.Refused("keys.malformed")
    key = bytes.fromhex(found[2])
    check = sha256(found[1].encode() + key).digest()[:4]
    if len(key) != _KEY_BYTES[kind] or check.hex() != found[3]:
        raise minireader.Refused("keys.malformed")
    if kind in {"signer", "owner-public"}:
        reader._point(key)
    return key


def _content(text: bytes, first: bytes) -> bytes:
    head, _, rest = text.partition(b"\n")
    lines = rest.split(b"\n")
    if head != first or lines.pop() != b"" or any(len(line) != 64 for line in lines[:-1]):
        raise CardError
    try:
        return base64.b64decode(b"".join(lines), validate=True)
    except binascii.Error as error:
        raise CardError from error


def _info(kind: int, stream: bytes, compartment: bytes, salt: bytes) -> bytes:
    head = b"durarepo/1" + bytes([kind, len(stream)]) + stream + bytes(4)
    return head + bytes([len(compartment)]) + compartment + salt


def _open(key: bytes, info: bytes, sealed: bytes) -> bytes:
    """Compare the commitment, then decrypt: commitment 32, nonce 12, ciphertext."""
    if not hmac.compare_digest(hmac.digest(key, b"commit" + info, "sha256"), sealed[:32]):
        raise CardError
    try:
        return AESGCM(key).decrypt(sealed[32:44], sealed[44:], None)
    except (InvalidTag, ValueError) as error:
        raise CardError from error


def _map(plain: bytes, shape: dict[int, Any]) -> Any:
    value = reader.decode(plain)
    if not reader._fits(value, shape):
        raise CardError
    return value


def read_card(text: bytes, passphrase: str | None) -> Any:
    """Return the map of a card.

    Raises:
        CardError: another form, or a passphrase that does not open it.
    """
    content = _content(text, b"durarepo-card-1")
    form, rest = content[:1], content[1:]
    if form == b"\x01" and passphrase is not None and len(rest) > 32:
        stretch = Argon2id(salt=rest[:32], length=32, iterations=3, lanes=4, memory_cost=1 << 18)
        key = stretch.derive(passphrase.encode())
        rest = _open(key, _info(8, b"", b"", rest[:32]), rest[32:])
    elif form != b"\x00":
        raise CardError
    return _map(rest, _CARD)


def read_keys_file(text: bytes, identity: bytes) -> Any:
    """Return the map of a keys file, opened with the escrow identity.

    Raises:
        CardError: another form, or it was sealed to someone else.
    """
    content = _content(text, b"durarepo-keys-1")
    stream, rest = content[1 : 1 + content[0]], content[1 + content[0] :]
    compartment, box = rest[1 : 1 + rest[0]], rest[1 + rest[0] :]
    held = reader.Held(
        stream=stream.decode(),
        registry={3: [{0: stream.decode(), 1: compartment.decode()}]},
        identities=[identity],
    )
    try:
        return _map(held.unbox(box, 7, 0), _KEYS)
    except minireader.Refused as refused:
        raise CardError from refused
