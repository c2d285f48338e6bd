"""Vectors of step 3: registries."""

from typing import Any

from tests.interop import miniwriter as mini
from tests.vectorgen import keys
from tests.vectorgen.catalogue import Body, fails, passes
from tests.vectorgen.scene import NOW, SALT, Scene, registry_body

_DAY = 86400
_REGISTRY_DAYS = 400


def _epoch(scene: Scene) -> dict[int, Any]:
    epoch: dict[int, Any] = scene.record[3][0]
    return epoch


def _two_epochs() -> Scene:
    scene = Scene()
    scene.begin_epoch()
    return scene


# --- what must be accepted


@passes("registry", "3.10")
def registry_basic() -> Body:
    """One stream with one epoch, two signers, one data and one audit recipient."""
    return registry_body(Scene())


@passes("registry", "3.10")
def registry_8_stanzas() -> Body:
    """Sealed boxes of eight stanzas."""
    return registry_body(Scene(n=8))


@passes("registry", "3.1")
def registry_class_1() -> Body:
    """The same in an object of the next size class."""
    return registry_body(Scene(), size=131072)


@passes("registry", "3.10")
def registry_two_epochs() -> Body:
    """Epoch 2 begins with sequence 2 and names the last envelope of epoch 1."""
    return registry_body(_two_epochs())


@passes("registry", "3.10")
def registry_revocation() -> Body:
    """A revoked signer stays in its epoch, with the last envelope that is good."""
    scene = Scene()
    scene.revoke(1, 1)
    return registry_body(scene)


@passes("registry", "3.10")
def registry_without_audit() -> Body:
    """No audit recipient, and so no slot subkey."""
    scene = Scene()
    _epoch(scene)[5], _epoch(scene)[8] = [], None
    return registry_body(scene)


@passes("registry", "3.10")
def registry_id_of_63_characters() -> Body:
    """A stream's id as long as it may be."""
    scene = Scene()
    scene.record[0] = "n-0" * 21
    return registry_body(scene)


@passes("registry", "3.12")
def registry_issued_600_ahead() -> Body:
    """Issued as far ahead of now as it may be."""
    return registry_body(Scene(), now=str(NOW - 600))


@passes("registry", "3.13")
def registry_last_second() -> Body:
    """The last second before it expires."""
    return registry_body(Scene(), now=str(NOW + _REGISTRY_DAYS * _DAY - 1))


@passes("registry", "3.13")
def registry_expired_for_writing() -> Body:
    """Writing goes on under an expired registry."""
    return registry_body(Scene(), now=str(NOW + _REGISTRY_DAYS * _DAY), purpose="write")


# --- 3.1 to 3.5: the object


@fails("registry", "3.1", "integrity.object-size", differs_from="registry-basic", field="length")
def registry_one_byte_short() -> Body:
    """No size class has this length."""
    return registry_body(Scene(), {"object": lambda data: data[:-1]})


@fails("registry", "3.1", "integrity.object-size", differs_from="registry-class-1", field="length")
def registry_class_4() -> Body:
    """A size class, and more than a registry may have."""
    return registry_body(Scene(), {"object": bytes(2621440)})


@fails("registry", "3.2", "integrity.version", differs_from="registry-basic", field="version byte")
def registry_version_byte_2() -> Body:
    """Version 2 of the format, sealed all the same."""
    return registry_body(Scene(), {"version_byte": b"\x02"})


@fails("registry", "3.2", "integrity.version", differs_from="registry-basic", field="version byte")
def registry_version_byte_0() -> Body:
    """There was no version 0."""
    return registry_body(Scene(), {"version_byte": b"\x00"})


@fails("registry", "3.3", "integrity.commitment", differs_from="registry-basic", field="commitment")
def registry_commitment_kind() -> Body:
    """A commitment made for an envelope's key."""
    key = mini.mac(mini.subkey(keys.LOCATOR, "registry-seal"), SALT)
    return registry_body(Scene(), {"commitment": mini.commit(key, mini.NOBODY.info(2, SALT))})


@fails("registry", "3.4", "integrity.seal", differs_from="registry-basic", field="ciphertext")
def registry_ciphertext_flipped() -> Body:
    """One bit of the first byte of the ciphertext."""
    return registry_body(Scene(), {"sealed": lambda old: bytes([old[0] ^ 1]) + old[1:]})


@fails("registry", "3.5", "integrity.padding", differs_from="registry-basic", field="last byte")
def registry_padding_not_zero() -> Body:
    """The last byte of the padding is one, sealed."""
    return registry_body(Scene(), {"zeros": lambda old: old[:-1] + b"\x01"})


@fails(
    "registry", "3.5", "integrity.padding", differs_from="registry-basic", field="declared length"
)
def registry_document_too_long() -> Body:
    """The document claims one byte more than the object holds."""
    return registry_body(Scene(), {"declared": 32768 - 1 - 32 - 32 - 12 - 16 - 4 + 1})


# --- 3.6 to 3.9: the document


@fails("registry", "3.6", "integrity.document", differs_from="registry-basic", field="signature")
def registry_ed25519_63_bytes() -> Body:
    """The first signature lacks its last byte."""
    return registry_body(Scene(), {"ed25519": lambda old: old[:-1]})


@fails("registry", "3.7", "trust.type", differs_from="registry-basic", field="type")
def registry_of_type_manifest() -> Body:
    """The owner's signature, of another type, must not count here."""
    return registry_body(Scene(), {"type": "durarepo/1/manifest"})


@fails("registry", "3.7", "trust.type", differs_from="registry-basic", field="type")
def registry_of_type_2() -> Body:
    """The type of another version."""
    return registry_body(Scene(), {"type": "durarepo/2/registry"})


@fails("registry", "3.8", "trust.owner", differs_from="registry-basic", field="owner")
def registry_other_owner() -> Body:
    """A registry that is right in itself, of an owner whose digest is not held."""
    scene = Scene()
    scene.owner = mini.Signer(keys.OTHER_OWNER)
    scene.registry[2] = scene.owner.public
    digest = mini.sha256(keys.public_of(keys.OWNER)).hex()
    return registry_body(scene, owner_digest=digest)


@fails(
    "registry", "3.9", "trust.signature", differs_from="registry-basic", field="Ed25519 signature"
)
def registry_ed25519_wrong() -> Body:
    """The ML-DSA signature alone is not enough."""
    return registry_body(Scene(), {"ed25519": lambda old: bytes([old[0] ^ 1]) + old[1:]})


@fails(
    "registry", "3.9", "trust.signature", differs_from="registry-basic", field="ML-DSA signature"
)
def registry_mldsa_wrong() -> Body:
    """The Ed25519 signature alone is not enough."""
    return registry_body(Scene(), {"mldsa": lambda old: bytes([old[0] ^ 1]) + old[1:]})


# --- 3.10: the statement


def _bad_statement(change: Any) -> Body:
    scene = Scene()
    change(scene)
    return registry_body(scene)


@fails("registry", "3.10", "integrity.registry", differs_from="registry-basic", field="a key more")
def registry_unknown_key() -> Body:
    """Key 4 of the statement does not exist."""
    return _bad_statement(lambda scene: scene.registry.update({4: 0}))


@fails("registry", "3.10", "integrity.registry", differs_from="registry-basic", field="expires")
def registry_401_days() -> Body:
    """It would hold for one second more than 400 days."""
    later = NOW + _REGISTRY_DAYS * _DAY + 1
    return _bad_statement(lambda scene: scene.registry.update({1: {0: NOW, 1: later}}))


@fails("registry", "3.10", "integrity.registry", differs_from="registry-two-epochs", field="number")
def registry_epoch_gap() -> Body:
    """Epoch 3 follows epoch 1."""
    scene = _two_epochs()
    scene.record[3][1][0] = 3
    return registry_body(scene)


@fails(
    "registry",
    "3.10",
    "integrity.registry",
    differs_from="registry-id-of-63-characters",
    field="stream",
)
def registry_id_of_64_characters() -> Body:
    """A stream's id of one character too many."""
    return _bad_statement(lambda scene: scene.record.update({0: "n-0" * 21 + "s"}))


@fails(
    "registry",
    "3.10",
    "integrity.registry",
    differs_from="registry-without-audit",
    field="streams",
)
def registry_stream_twice() -> Body:
    """The same stream stands twice, so that its record would be a reader's choice."""
    scene = Scene()
    _epoch(scene)[5], _epoch(scene)[8] = [], None
    scene.registry[3].append(scene.record)
    return registry_body(scene)


@fails("registry", "3.10", "integrity.registry", differs_from="registry-basic", field="recipients")
def registry_without_data_recipient() -> Body:
    """An epoch that nobody can restore."""
    return _bad_statement(lambda scene: _epoch(scene).update({4: []}))


# --- 3.11 to 3.13


@fails("registry", "3.11", "trust.registry-version", differs_from="registry-basic", field="version")
def registry_version_not_asked_for() -> Body:
    """Version 2 lies in the slot of version 3."""
    scene = Scene()
    scene.registry[0] = 2
    return registry_body(scene, version="3", highest="3")


@fails("registry", "3.11", "trust.registry-version", differs_from="registry-basic", field="highest")
def registry_below_high_water() -> Body:
    """Version 4 was seen before: this one was rolled back."""
    return registry_body(Scene(), highest="4")


@fails("registry", "3.12", "fresh.ahead", differs_from="registry-issued-600-ahead", field="now")
def registry_issued_601_ahead() -> Body:
    """One second further ahead than a clock may differ."""
    return registry_body(Scene(), now=str(NOW - 601))


@fails(
    "registry", "3.13", "fresh.registry-expired", differs_from="registry-last-second", field="now"
)
def registry_expired() -> Body:
    """The second in which it expires."""
    return registry_body(Scene(), now=str(NOW + _REGISTRY_DAYS * _DAY))


@fails(
    "registry",
    "3.13",
    "fresh.registry-expired",
    differs_from="registry-expired-for-writing",
    field="purpose",
)
def registry_expired_for_reading() -> Body:
    """What is right for writing must not be restored from."""
    return registry_body(Scene(), now=str(NOW + _REGISTRY_DAYS * _DAY), purpose="read")
