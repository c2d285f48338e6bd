"""Keys, cards and keys files as text. Values here are secrets: nothing is shown or logged.

Source: spec/format.md 3.2 and 10, spec/ingest.md 2. Start at `encode_key` and `parse_key`.
"""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass

from durarepo.core.errors import ConfigurationError, IntegrityError, KeyMaterialError
from durarepo.core.limits import KEY_BYTES, RECIPIENT_BYTES, SIGNER_PUBLIC_BYTES
from durarepo.core.names import Digest, is_stream_id
from durarepo.format.canonical import Value, decode, encode
from durarepo.format.fields import U32_MAX, Fields

KEY_LENGTHS = {
    "signing": 64,
    "signer": SIGNER_PUBLIC_BYTES,
    "owner": 64,
    "owner-public": SIGNER_PUBLIC_BYTES,
    "identity": KEY_BYTES,
    "recipient": RECIPIENT_BYTES,
    "naming": KEY_BYTES,
    "locator": KEY_BYTES,
}
_KEY_LINE = re.compile(rb"durarepo-([a-z-]+)-1 ((?:[0-9a-f]{2})+) ([0-9a-f]{8})\Z")
_CARD_LINE = b"durarepo-card-1"
_KEYS_LINE = b"durarepo-keys-1"
_DRAFT_LINE = b"durarepo-draft-1"
_REGISTRY_LINE = b"durarepo-registry-1"
SIGNER_ROLES = ("manifest", "evidence")
_LINE_CHARACTERS = 64


def _check_digits(kind: str, raw: bytes) -> bytes:
    return hashlib.sha256(f"durarepo-{kind}-1 ".encode() + raw).digest()[:4]


def encode_key(kind: str, raw: bytes) -> str:
    """Return the key line of a key, without a line feed."""
    return f"durarepo-{kind}-1 {raw.hex()} {_check_digits(kind, raw).hex()}"


def parse_key(kind: str, text: bytes) -> bytes:
    """Return the raw bytes of the one key of ``kind`` in a key file.

    Raises:
        KeyMaterialError: ``malformed``; the message never quotes the text.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(b"#")]
    match = _KEY_LINE.match(lines[0]) if len(lines) == 1 else None
    if match is None or match[1].decode() != kind:
        raise _malformed(kind)
    raw = bytes.fromhex(match[2].decode())
    if len(raw) != KEY_LENGTHS[kind] or _check_digits(kind, raw).hex() != match[3].decode():
        raise _malformed(kind)
    return raw


def _malformed(kind: str) -> KeyMaterialError:
    return KeyMaterialError(
        "malformed",
        f"key text is not one whole {kind} key",
        hint="copy the file again from where it was made; a key line is never edited",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CardStream:
    """A stream on the card: newest milestone (epoch, sequence, digest), head (sequence, digest)."""

    stream: str
    anchor: tuple[int, int, Digest]
    head: tuple[int, Digest]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Card:
    """What opens everything on the worst day. Has no repr: two of its fields are secrets."""

    owner_digest: bytes
    identity: bytes
    locator: bytes
    registry_version: int
    streams: tuple[CardStream, ...]
    remotes: tuple[tuple[str, str, bytes | None], ...]


def encode_card(card: Card) -> bytes:
    """Return the card's map."""
    return encode(
        {
            0: card.owner_digest,
            1: card.identity,
            2: card.locator,
            3: card.registry_version,
            4: [[one.stream, list(one.anchor), list(one.head)] for one in card.streams],
            5: [list(remote) for remote in card.remotes],
        }
    )


def parse_card(data: bytes) -> Card:
    """Return the card that ``data`` holds.

    Raises:
        KeyMaterialError: ``card-form``; the message never quotes what stands there.
    """
    try:
        return _parse_card(data)
    except IntegrityError:
        raise KeyMaterialError(
            "card-form",
            "content of the card has another form",
            hint="use another copy of the card, or a newer durarepo",
        ) from None


def _parse_card(data: bytes) -> Card:
    fields = Fields(decode(data), reason="card-form", what="card", required=range(6))
    return Card(
        owner_digest=fields.blob(0, 32),
        identity=fields.blob(1, KEY_BYTES),
        locator=fields.blob(2, KEY_BYTES),
        registry_version=fields.uint(3),
        streams=tuple(_parse_card_stream(fields, item) for item in fields.items(4)),
        remotes=tuple(_parse_card_remote(fields, item) for item in fields.items(5)),
    )


def _parse_card_stream(fields: Fields, item: Value) -> CardStream:
    name, anchor, head = fields.array(item, 3)
    epoch, sequence, digest = fields.array(anchor, 3)
    head_sequence, head_digest = fields.array(head, 2)
    if not is_stream_id(fields.words(name)):
        raise fields.refused("has a stream id of another form")
    return CardStream(
        stream=fields.words(name),
        anchor=(
            fields.number(epoch, U32_MAX),
            fields.number(sequence),
            Digest(fields.octets(digest, 32)),
        ),
        head=(fields.number(head_sequence), Digest(fields.octets(head_digest, 32))),
    )


def _parse_card_remote(fields: Fields, item: Value) -> tuple[str, str, bytes | None]:
    name, url, authority = fields.array(item, 3)
    return (
        fields.words(name),
        fields.words(url),
        None if authority is None else fields.octets(authority),
    )


def armour(*, card: bool, content: bytes) -> bytes:
    """Return the text of a card, or of a keys file, around its content."""
    return _armour(_CARD_LINE if card else _KEYS_LINE, content)


def _armour(first: bytes, content: bytes) -> bytes:
    text = base64.b64encode(content)
    lines = [text[at : at + _LINE_CHARACTERS] for at in range(0, len(text), _LINE_CHARACTERS)]
    return b"\n".join((first, *lines, b""))


def _unarmour(text: bytes, first: bytes) -> bytes | None:
    """Return what `_armour` wrote; None for anything else."""
    head, _, rest = text.partition(b"\n")
    try:
        content = base64.b64decode(rest.replace(b"\n", b""), validate=True)
    except (binascii.Error, ValueError):
        return None
    return content if head == first and _armour(first, content) == text else None


def unarmour(text: bytes, *, card: bool) -> bytes:
    """Return the content of a card's, or a keys file's, text.

    Raises:
        KeyMaterialError: ``card``.
    """
    content = _unarmour(text, _CARD_LINE if card else _KEYS_LINE)
    if content is None:
        raise KeyMaterialError(
            "card",
            f"this is no whole {'card' if card else 'keys file'}",
            hint="use the file exactly as it was written, every line of it",
        )
    return content


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryDraft:
    """What an owner is asked to sign: the new statement, and the document of the one before."""

    statement: bytes
    before: bytes


def encode_draft(draft: RegistryDraft) -> bytes:
    """Return the text of a draft."""
    return _armour(_DRAFT_LINE, encode([draft.statement, draft.before]))


def parse_draft(text: bytes) -> RegistryDraft:
    """Return the draft that a file's text holds.

    Raises:
        ConfigurationError: ``draft``.
    """
    content = _unarmour(text, _DRAFT_LINE)
    try:
        value = None if content is None else decode(content)
    except IntegrityError:
        value = None
    match value:
        case [bytes() as statement, bytes() as before]:
            return RegistryDraft(statement=statement, before=before)
        case _:
            raise _no_draft("draft")


def encode_signed(document: bytes) -> bytes:
    """Return the text of a registry that the owner has signed, on its way to be admitted."""
    return _armour(_REGISTRY_LINE, document)


def parse_signed(text: bytes) -> bytes:
    """Return the document of a signed registry's text; its signatures are not checked.

    Raises:
        ConfigurationError: ``draft``.
    """
    content = _unarmour(text, _REGISTRY_LINE)
    if content is None:
        raise _no_draft("signed registry")
    return content


def _no_draft(what: str) -> ConfigurationError:
    return ConfigurationError(
        "draft",
        f"this file is no whole {what}",
        hint="durarepo registry draft makes one; registry sign turns it into a signed registry",
    )


def encode_signer(role: str, public: bytes) -> bytes:
    """Return the text of a signer's public key: the role it asks for, and the key line."""
    return f"{role} {encode_key('signer', public)}\n".encode()


def parse_signer(text: bytes) -> tuple[str, bytes]:
    """Return (role, public bytes) of a signer's text.

    Raises:
        KeyMaterialError: ``malformed``.
    """
    word, _, line = text.partition(b" ")
    role = word.decode("ascii", "replace")
    if role not in SIGNER_ROLES:
        raise _malformed("signer")
    return role, parse_key("signer", line)


def encode_keys_file(signing: bytes, naming: list[tuple[int, bytes]]) -> bytes:
    """Return the map inside a keys file's sealed box."""
    return encode({0: signing, 1: [[epoch, key] for epoch, key in naming]})
