"""Vectors of steps 2.1 and 2.2: key files, and Ed25519 keys that must not be trusted."""

from hashlib import sha256

from tests.vectorgen import keys
from tests.vectorgen.catalogue import Body, fails, passes

_PRIME = 2**255 - 19


def _file(text: str, kind: str, key: bytes = b"") -> Body:
    return Body(
        data=text.encode("ascii"), inputs={"key-kind": kind}, result=sha256(key).hexdigest()
    )


def _good(kind: str, key: bytes, comment: str = "") -> Body:
    return _file(comment + keys.key_line(kind, key), kind, key)


def _with_point(y: int, sign: int = 0) -> Body:
    """Return a signer's key file whose Ed25519 half is this encoding of a point."""
    point = (y | sign << 255).to_bytes(32, "little")
    return _good("signer", point + keys.public_of(keys.SIGNER)[32:])


@passes("key", "2.1")
def key_signing() -> Body:
    """A signing secret of 64 bytes."""
    return _good("signing", keys.SIGNER)


@passes("key", "2.1")
def key_owner() -> Body:
    """An owner's secret of 64 bytes."""
    return _good("owner", keys.OWNER)


@passes("key", "2.1")
def key_signer() -> Body:
    """A signer's public key of 1984 bytes."""
    return _good("signer", keys.public_of(keys.SIGNER))


@passes("key", "2.1")
def key_owner_public() -> Body:
    """An owner's public key of 1984 bytes."""
    return _good("owner-public", keys.public_of(keys.OWNER))


@passes("key", "2.1")
def key_identity() -> Body:
    """An identity's seed of 32 bytes."""
    return _good("identity", keys.DATA)


@passes("key", "2.1")
def key_recipient() -> Body:
    """A recipient of 1216 bytes, which shows how a seed is stretched."""
    return _good("recipient", keys.recipient_of(keys.DATA))


@passes("key", "2.1")
def key_naming() -> Body:
    """A naming key, below two lines of comment."""
    return _good("naming", keys.NAMING, "# naming key of notes, epoch 1\n# keep it secret\n")


@passes("key", "2.1")
def key_locator() -> Body:
    """A locator key of 32 bytes."""
    return _good("locator", keys.LOCATOR)


@fails("key", "2.1", "keys.malformed", differs_from="key-locator", field="case of a digit")
def key_upper_case() -> Body:
    """Upper-case digits are no second spelling."""
    line = keys.key_line("locator", keys.LOCATOR)
    return _file(line.replace("4a", "4A", 1), "locator")


@fails("key", "2.1", "keys.malformed", differs_from="key-locator", field="check digits")
def key_wrong_check() -> Body:
    """One digit of the key was mistyped."""
    line = keys.key_line("locator", keys.LOCATOR)
    return _file(line.replace("4a", "4b", 1), "locator")


@fails("key", "2.1", "keys.malformed", differs_from="key-locator", field="length")
def key_one_byte_short() -> Body:
    """31 bytes with a check that fits them."""
    return _file(keys.key_line("locator", keys.LOCATOR[:31]), "locator")


@fails("key", "2.1", "keys.malformed", differs_from="key-identity", field="kind")
def key_other_kind() -> Body:
    """A naming key where an identity is looked for: same length, another use."""
    return _file(keys.key_line("naming", keys.DATA), "identity")


@fails("key", "2.1", "keys.malformed", differs_from="key-naming", field="number of key lines")
def key_two_lines() -> Body:
    """Two key lines: which one counts is nobody's to choose."""
    line = keys.key_line("naming", keys.NAMING)
    return _file(line + line, "naming")


@fails("key", "2.1", "keys.malformed", differs_from="key-locator", field="version")
def key_version_2() -> Body:
    """A version that does not exist."""
    return _file(keys.key_line("locator", keys.LOCATOR, version="2"), "locator")


@fails("key", "2.2", "trust.weak-key", differs_from="key-signer", field="Ed25519 public key")
def key_point_of_order_1() -> Body:
    """The neutral point: a signature under it verifies for every message."""
    return _with_point(1)


@fails("key", "2.2", "trust.weak-key", differs_from="key-signer", field="Ed25519 public key")
def key_point_of_order_2() -> Body:
    """The point (0, -1)."""
    return _with_point(_PRIME - 1)


@fails("key", "2.2", "trust.weak-key", differs_from="key-signer", field="Ed25519 public key")
def key_point_of_order_4() -> Body:
    """The point with y = 0."""
    return _with_point(0, 1)


@fails("key", "2.2", "trust.weak-key", differs_from="key-signer", field="Ed25519 public key")
def key_point_of_order_8() -> Body:
    """One of the four points of order eight."""
    y = 2707385501144840649318225287225658788936804267575313519463743609750303402022
    return _with_point(y)


@fails("key", "2.2", "trust.weak-key", differs_from="key-signer", field="Ed25519 public key")
def key_point_not_reduced() -> Body:
    """The point with y = 3 in a second spelling, y = p + 3."""
    return _with_point(_PRIME + 3)


@fails("key", "2.2", "trust.weak-key", differs_from="key-signer", field="Ed25519 public key")
def key_not_a_point() -> Body:
    """No point of the curve has y = 2."""
    return _with_point(2)
