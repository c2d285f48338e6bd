"""The door to the cryptography package: known answers, refusals, and what is never chosen."""

import hashlib
import hmac
from typing import NamedTuple

import pytest

from durarepo.crypto import primitives
from durarepo.crypto.primitives import WrongKeyError
from tests.properties.actors import identities, signers

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P


class Point(NamedTuple):
    """A point of Curve25519 in Edwards form, affine."""

    x: int
    y: int


NEUTRAL = Point(0, 1)


def add(one: Point, two: Point) -> Point:
    """Return the sum of two points (RFC 8032 5.1.4, affine)."""
    product = D * one.x * two.x * one.y * two.y
    x = (one.x * two.y + two.x * one.y) * pow(1 + product, -1, P)
    y = (one.y * two.y + one.x * two.x) * pow(1 - product, -1, P)
    return Point(x % P, y % P)


def points_of(y: int) -> list[Point]:
    """Return the points of the curve with this y, none where there is none."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    root = pow(square, (P + 3) // 8, P)
    if root * root % P != square:
        root = root * pow(2, (P - 1) // 4, P) % P
    if root * root % P != square:
        return []
    return sorted({Point(root, y), Point(-root % P, y)})


def order(point: Point) -> int:
    """Return the order of a point if it is at most 8, else 0."""
    here, count = point, 1
    while here != NEUTRAL and count <= 8:
        here, count = add(here, point), count + 1
    return count if here == NEUTRAL else 0


def public(y: int, sign: int = 0) -> bytes:
    """Return signer bytes whose Ed25519 half encodes a y and a sign."""
    return (y | sign << 255).to_bytes(32, "little") + bytes(1952)


def test_exactly_the_points_of_small_order_are_weak() -> None:
    """Such a key lets anybody sign (format 3.1); the list is compared with the curve itself."""
    weak = set(primitives._SMALL_ORDER_Y)
    found = [point for y in sorted(weak) for point in points_of(y)]

    assert len(found) == 8
    assert sorted(order(point) for point in found) == [1, 2, 4, 4, 8, 8, 8, 8]
    for y in weak:
        assert primitives.is_weak_signer(public(y))
        assert primitives.is_weak_signer(public(y, 1))


@pytest.mark.parametrize("y", [P, P + 1, 2**255 - 1, P + 3])
def test_a_y_that_is_not_reduced_is_weak(y: int) -> None:
    """Two encodings of one key are two signer ids for one signer (format 3.1)."""
    assert primitives.is_weak_signer(public(y))


def test_a_y_is_weak_where_the_curve_has_no_point() -> None:
    """What is no point is no key, whatever a library makes of it (format 3.1)."""
    for y in range(2, 60):
        assert primitives.is_weak_signer(public(y)) == (not points_of(y))


def test_a_fresh_signer_is_not_weak() -> None:
    """A check that refuses good keys locks an owner out."""
    assert not any(primitives.is_weak_signer(pair.public) for pair in signers())


def test_both_signatures_have_to_be_good() -> None:
    """One broken scheme must not be enough to forge (law 10)."""
    one, two = signers()[:2]
    message, context = b"message", b"durarepo/1/manifest"
    classic, lattice = primitives.sign_both(one.secret, message, context)
    foreign = primitives.sign_both(two.secret, message, context)

    def good(public: bytes, text: bytes, about: bytes, pair: tuple[bytes, bytes]) -> bool:
        return primitives.verify_both(public, text, about, pair)

    assert good(one.public, message, context, (classic, lattice))
    for pair in (
        (classic, foreign[1]),
        (foreign[0], lattice),
        foreign,
        (bytes(64), lattice),
        (classic, bytes(3309)),
        (classic[:-1], lattice),
        (classic, lattice[:-1]),
        (b"", b""),
    ):
        assert not good(one.public, message, context, pair)
    assert not good(one.public, message + b"x", context, (classic, lattice))
    assert not good(one.public, message, b"durarepo/1/registry", (classic, lattice))
    assert not good(two.public, message, context, (classic, lattice))
    assert not good(one.public[:32] + two.public[32:], message, context, (classic, lattice))
    assert not good(two.public[:32] + one.public[32:], message, context, (classic, lattice))


@pytest.mark.parametrize("size", [0, 31, 32, 1983, 1985])
def test_a_public_key_of_another_length_verifies_nothing(size: int) -> None:
    """A refusal, not an exception of the package."""
    assert not primitives.verify_both(b"\x05" * size, b"", b"", (bytes(64), bytes(3309)))


def test_a_stanza_opens_for_its_recipient_in_its_place_only() -> None:
    """Another identity, another place or one flipped bit gives nothing."""
    one, two = identities()[:2]
    key = primitives.random_key()
    stanza = primitives.seal_stanza(one.public, key, b"place")

    assert len(stanza) == 1168
    assert primitives.open_stanza(one.secret, stanza, b"place") == key
    for seed, sealed, info in (
        (two.secret, stanza, b"place"),
        (one.secret, stanza, b"other"),
        (one.secret, bytes((stanza[0] ^ 1,)) + stanza[1:], b"place"),
        (one.secret, stanza[:-1] + bytes((stanza[-1] ^ 1,)), b"place"),
        (one.secret, stanza[:1088] + bytes(32) + stanza[1120:], b"place"),
        (one.secret, bytes(1168), b"place"),
        (one.secret, b"\xff" * 1168, b"place"),
        (one.secret, stanza[:-1], b"place"),
        (one.secret, stanza + b"x", b"place"),
        (one.secret, b"", b"place"),
    ):
        with pytest.raises(WrongKeyError):
            primitives.open_stanza(seed, sealed, info)


@pytest.mark.parametrize(
    "recipient",
    [
        bytes(1216),
        b"\xff" * 1216,
        identities()[0].public[:1184] + bytes(32),
        b"\xff" * 1184 + identities()[0].public[1184:],
    ],
)
def test_what_is_no_recipient_is_not_sealed_to(recipient: bytes) -> None:
    """A registry may hold anything of the right length; a snapshot must not fall over it."""
    with pytest.raises(WrongKeyError):
        primitives.seal_stanza(recipient, primitives.random_key(), b"place")


def test_an_identity_is_stretched_as_the_specification_says() -> None:
    """Another implementation comes from the seed to the same recipient (format 3.1)."""
    from cryptography.hazmat.primitives.asymmetric import mlkem, x25519

    seed = primitives.random_key()
    wide = hashlib.shake_256(seed).digest(96)
    lattice = mlkem.MLKEM768PrivateKey.from_seed_bytes(wide[:64]).public_key()
    classic = x25519.X25519PrivateKey.from_private_bytes(wide[64:]).public_key()

    assert primitives.recipient_of(seed) == (
        lattice.public_bytes_raw() + classic.public_bytes_raw()
    )


@pytest.mark.parametrize(
    ("key", "nonce", "data"),
    [
        (bytes(32), bytes(12), b""),
        (bytes(32), bytes(12), bytes(15)),
        (bytes(32), bytes(12), bytes(16)),
        (bytes(32), b"", bytes(40)),
        (bytes(31), bytes(12), bytes(40)),
    ],
)
def test_what_does_not_authenticate_is_a_wrong_key(key: bytes, nonce: bytes, data: bytes) -> None:
    """Cut or empty input of a store must not end in an exception of the package."""
    with pytest.raises(WrongKeyError):
        primitives.open_bytes(key, nonce, data)


def test_sealed_bytes_open_and_are_16_longer() -> None:
    """Sizes of objects are calculated from it."""
    key = primitives.random_key()
    sealed = primitives.seal_bytes(key, bytes(12), b"text")

    assert len(sealed) == 20
    assert primitives.open_bytes(key, bytes(12), sealed) == b"text"


def test_subkeys_and_nonces_are_as_the_specification_says() -> None:
    """A reader of another make derives them from the page alone (format 1 and 3.3)."""
    key = primitives.random_key()

    def mac(message: bytes) -> bytes:
        return hmac.digest(key, message, "sha256")

    assert primitives.derive_subkey(key, "slot") == mac(b"durarepo/1/slot\x01")
    assert primitives.derive_nonce(key, 4, b"text") == mac(b"nonce\x04text")[:12]
    assert primitives.keyed_hash(key, b"m") == mac(b"m")
    hashed = primitives.keyed_hasher(key)
    assert [hashed(text) for text in (b"m", b"", b"m")] == [mac(text) for text in (b"m", b"", b"m")]
    assert primitives.sha256(b"m") == hashlib.sha256(b"m").digest()
    assert primitives.same(b"a", b"a")
    assert not primitives.same(b"a", b"b")


def test_keys_are_drawn_and_orders_are_shuffled() -> None:
    """A key drawn twice would be no key; an order kept would tell whose stanza is whose."""
    assert len({primitives.random_key() for _ in range(100)}) == 100
    items = [bytes((n,)) for n in range(8)]
    orders = {tuple(primitives.shuffled(items)) for _ in range(50)}
    assert len(orders) > 10
    assert all(sorted(order) == items for order in orders)


def test_a_passphrase_is_stretched_with_the_parameters_of_the_specification() -> None:
    """A card must open with any Argon2id (format 10): 3 passes, 4 lanes, 256 MiB."""
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

    salt = primitives.random_key()
    other = Argon2id(salt=salt, length=32, iterations=3, lanes=4, memory_cost=2**18)

    assert primitives.stretch_passphrase(b"words", salt) == other.derive(b"words")
