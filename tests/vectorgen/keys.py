"""Fixed keys of the vectors, and their public halves. They protect nothing.

Each secret is one byte repeated, so that a reader of a vector recognises whose it is.
"""

from functools import lru_cache
from hashlib import sha256, shake_256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA65PrivateKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

OWNER = bytes([0x01]) * 64
OTHER_OWNER = bytes([0x02]) * 64
SIGNER = bytes([0x11]) * 64
NEXT_SIGNER = bytes([0x12]) * 64
OTHER_SIGNER = bytes([0x13]) * 64
EVIDENCE_SIGNER = bytes([0x14]) * 64
DATA = bytes([0x21]) * 32
SECOND_DATA = bytes([0x22]) * 32
AUDIT = bytes([0x23]) * 32
STRANGER = bytes([0x24]) * 32
ESCROW = bytes([0x25]) * 32
NAMING = bytes([0x31]) * 32
NEXT_NAMING = bytes([0x32]) * 32
OTHER_NAMING = bytes([0x33]) * 32
LOCATOR = bytes([0x4A]) * 32
PASSPHRASE = "correct horse battery staple"  # noqa: S105 - of a vector, protects nothing
OTHER_PASSPHRASE = PASSPHRASE + "s"


@lru_cache(maxsize=16)
def public_of(secret: bytes) -> bytes:
    """Return the 1984 public bytes of a signing secret (format 3.1)."""
    classic = Ed25519PrivateKey.from_private_bytes(secret[:32]).public_key()
    lattice = MLDSA65PrivateKey.from_seed_bytes(secret[32:]).public_key()
    return classic.public_bytes_raw() + lattice.public_bytes_raw()


@lru_cache(maxsize=16)
def recipient_of(seed: bytes) -> bytes:
    """Return the 1216 public bytes of an identity's seed (format 3.1)."""
    wide = shake_256(seed).digest(96)
    lattice = MLKEM768PrivateKey.from_seed_bytes(wide[:64]).public_key()
    classic = X25519PrivateKey.from_private_bytes(wide[64:]).public_key()
    return lattice.public_bytes_raw() + classic.public_bytes_raw()


def key_line(kind: str, key: bytes, *, version: str = "1", check: bytes | None = None) -> str:
    """Return the key line of a key file (format 3.2), its end of line included."""
    head = f"durarepo-{kind}-{version} "
    right = sha256(f"durarepo-{kind}-1 ".encode() + key).digest()[:4]
    return f"{head}{key.hex()} {(right if check is None else check).hex()}\n"
