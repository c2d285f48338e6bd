"""The one door to the cryptography package: functions named by purpose, not by algorithm.

Holds no policy and no layout. Randomness is drawn here and nowhere else, and no function lets
a caller choose it. What does not authenticate raises `WrongKeyError`; callers turn that into
the code of their own step. Heavy parts are imported where they are first used, so that a
command that only lists snapshots does not pay for them.
Source: spec/format.md 3. Start at `seal_bytes` and `open_bytes`.
"""

import hashlib
import hmac
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from durarepo.core.limits import KEY_BYTES, NONCE_BYTES

if TYPE_CHECKING:
    from cryptography.hazmat.primitives import hpke
    from cryptography.hazmat.primitives.asymmetric import ed25519, mldsa

_ED25519_BYTES = 32
_MLKEM_PUBLIC_BYTES = 1184
_HMAC_BLOCK_BYTES = 64
_HMAC_PADS = (0x36, 0x5C)
_FIELD_PRIME = 2**255 - 19
_CURVE_D = -121665 * pow(121666, -1, _FIELD_PRIME) % _FIELD_PRIME
_SMALL_ORDER_Y = frozenset(
    {
        0,
        1,
        _FIELD_PRIME - 1,
        2707385501144840649318225287225658788936804267575313519463743609750303402022,
        55188659117513257062467267217118295137698188065244968500265048394206261417927,
    }
)


class WrongKeyError(Exception):
    """Bytes do not authenticate under this key. Never leaves the library."""


def random_key() -> bytes:
    """Return 32 fresh random bytes."""
    import secrets  # noqa: PLC0415

    return secrets.token_bytes(KEY_BYTES)


def shuffled(items: list[bytes]) -> list[bytes]:
    """Return ``items`` in an unpredictable order."""
    import secrets  # noqa: PLC0415

    copy = list(items)
    secrets.SystemRandom().shuffle(copy)
    return copy


def sha256(data: bytes | memoryview) -> bytes:
    """Return the SHA-256 of ``data``, 32 bytes."""
    return hashlib.sha256(data).digest()


def keyed_hash(key: bytes, message: bytes) -> bytes:
    """Return HMAC-SHA-256 of ``message`` under ``key``, 32 bytes."""
    return hmac.digest(key, message, "sha256")


def keyed_hasher(key: bytes) -> Callable[[bytes], bytes]:
    """Return `keyed_hash` under one key of 32 bytes, which is hashed once for all messages.

    HMAC by its definition (RFC 2104): the module `hmac` takes three times as long to go on from
    a key that was hashed, and ids are derived for every chunk and every file.
    """
    if len(key) != KEY_BYTES:
        raise ValueError("a key is 32 bytes long")
    padded = key.ljust(_HMAC_BLOCK_BYTES, b"\0")
    inner, outer = (hashlib.sha256(bytes(one ^ pad for one in padded)) for pad in _HMAC_PADS)

    def hashed(message: bytes) -> bytes:
        one, other = inner.copy(), outer.copy()
        one.update(message)
        other.update(one.digest())
        return other.digest()

    return hashed


def same(one: bytes, other: bytes) -> bool:
    """Return whether two byte strings are equal, in constant time."""
    return hmac.compare_digest(one, other)


def derive_subkey(key: bytes, label: str) -> bytes:
    """Return the 32-byte subkey of ``key`` that ``label`` names (format 1)."""
    return keyed_hash(key, b"durarepo/1/" + label.encode() + b"\x01")


def derive_nonce(key: bytes, part: int, plaintext: bytes) -> bytes:
    """Return the nonce that belongs to ``plaintext`` in its part (format 3.3)."""
    return keyed_hash(key, b"nonce" + bytes([part]) + plaintext)[:NONCE_BYTES]


def seal_bytes(key: bytes, nonce: bytes, plaintext: bytes) -> bytes:
    """Encrypt and authenticate ``plaintext``; the result is 16 bytes longer."""
    return AESGCM(key).encrypt(nonce, plaintext, None)


def open_bytes(key: bytes, nonce: bytes, ciphertext: bytes) -> bytes:
    """Decrypt what `seal_bytes` made.

    Raises:
        WrongKeyError: the ciphertext does not authenticate.
    """
    try:
        return AESGCM(key).decrypt(nonce, ciphertext, None)
    except (InvalidTag, ValueError) as error:
        raise WrongKeyError from error


@lru_cache(maxsize=1)
def _suite() -> "hpke.Suite":
    from cryptography.hazmat.primitives import hpke  # noqa: PLC0415

    return hpke.Suite(hpke.KEM.MLKEM768_X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)


@lru_cache(maxsize=32)
def _identity_key(seed: bytes) -> "hpke.MLKEM768X25519PrivateKey":
    from cryptography.hazmat.primitives import hpke  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import mlkem, x25519  # noqa: PLC0415

    stretched = hashlib.shake_256(seed).digest(96)
    return hpke.MLKEM768X25519PrivateKey(
        mlkem.MLKEM768PrivateKey.from_seed_bytes(stretched[:64]),
        x25519.X25519PrivateKey.from_private_bytes(stretched[64:]),
    )


@lru_cache(maxsize=32)
def _recipient_key(public: bytes) -> "hpke.MLKEM768X25519PublicKey":
    from cryptography.hazmat.primitives import hpke  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import mlkem, x25519  # noqa: PLC0415

    return hpke.MLKEM768X25519PublicKey(
        mlkem.MLKEM768PublicKey.from_public_bytes(public[:_MLKEM_PUBLIC_BYTES]),
        x25519.X25519PublicKey.from_public_bytes(public[_MLKEM_PUBLIC_BYTES:]),
    )


def recipient_of(seed: bytes) -> bytes:
    """Return the 1216 public bytes of the identity with this 32-byte seed."""
    from cryptography.hazmat.primitives.asymmetric import mlkem, x25519  # noqa: PLC0415

    stretched = hashlib.shake_256(seed).digest(96)
    return (
        mlkem.MLKEM768PrivateKey.from_seed_bytes(stretched[:64]).public_key().public_bytes_raw()
        + x25519.X25519PrivateKey.from_private_bytes(stretched[64:]).public_key().public_bytes_raw()
    )


def seal_stanza(recipient: bytes, key: bytes, info: bytes) -> bytes:
    """Seal a 32-byte key to one recipient; 1168 bytes.

    Raises:
        WrongKeyError: the recipient's bytes are no public key that can be sealed to.
    """
    try:
        return _suite().encrypt(key, _recipient_key(recipient), info=info)
    except ValueError as error:
        raise WrongKeyError from error


def open_stanza(seed: bytes, stanza: bytes, info: bytes) -> bytes:
    """Open a stanza with an identity.

    Raises:
        WrongKeyError: it was not sealed to this identity, or was altered.
    """
    try:
        return _suite().decrypt(stanza, _identity_key(seed), info=info)
    except (InvalidTag, ValueError) as error:
        raise WrongKeyError from error


@lru_cache(maxsize=8)
def _signing_pair(
    secret: bytes,
) -> "tuple[ed25519.Ed25519PrivateKey, mldsa.MLDSA65PrivateKey]":
    from cryptography.hazmat.primitives.asymmetric import ed25519, mldsa  # noqa: PLC0415

    return (
        ed25519.Ed25519PrivateKey.from_private_bytes(secret[:_ED25519_BYTES]),
        mldsa.MLDSA65PrivateKey.from_seed_bytes(secret[_ED25519_BYTES:]),
    )


def signer_public(secret: bytes) -> bytes:
    """Return the 1984 public bytes that belong to a 64-byte signing secret."""
    classic, lattice = _signing_pair(secret)
    return classic.public_key().public_bytes_raw() + lattice.public_key().public_bytes_raw()


def sign_both(secret: bytes, message: bytes, context: bytes) -> tuple[bytes, bytes]:
    """Return the Ed25519 and the ML-DSA-65 signature of ``message``."""
    classic, lattice = _signing_pair(secret)
    return classic.sign(message), lattice.sign(message, context)


def verify_both(public: bytes, message: bytes, context: bytes, pair: tuple[bytes, bytes]) -> bool:
    """Return whether both signatures of ``pair`` are good."""
    from cryptography.hazmat.primitives.asymmetric import ed25519, mldsa  # noqa: PLC0415

    try:
        ed25519.Ed25519PublicKey.from_public_bytes(public[:_ED25519_BYTES]).verify(pair[0], message)
        mldsa.MLDSA65PublicKey.from_public_bytes(public[_ED25519_BYTES:]).verify(
            pair[1], message, context
        )
    except (InvalidSignature, ValueError):
        return False
    return True


def is_weak_signer(public: bytes) -> bool:
    """Return whether the Ed25519 half is no canonical point, or of small order (format 3.1).

    The list is the y-coordinates of the eight points of small order, after RFC 8032 5.1.
    """
    y = int.from_bytes(public[:_ED25519_BYTES], "little") & ((1 << 255) - 1)
    if y >= _FIELD_PRIME or y in _SMALL_ORDER_Y:
        return True
    # On the curve, x**2 = (y**2 - 1) / (d * y**2 + 1) is a square (Euler's criterion).
    square = (y * y - 1) * pow(_CURVE_D * y * y + 1, -1, _FIELD_PRIME) % _FIELD_PRIME
    return pow(square, (_FIELD_PRIME - 1) // 2, _FIELD_PRIME) != 1


def stretch_passphrase(passphrase: bytes, salt: bytes) -> bytes:
    """Return the 32-byte key that a passphrase gives (format 10): Argon2id, 256 MiB."""
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id  # noqa: PLC0415

    return Argon2id(salt=salt, length=32, iterations=3, lanes=4, memory_cost=256 * 1024).derive(
        passphrase
    )
