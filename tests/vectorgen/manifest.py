"""Vectors of step 4 that one envelope shows: manifests against a shared registry."""

from typing import Any

from tests.interop import miniwriter as mini
from tests.vectorgen import keys
from tests.vectorgen.catalogue import Body, fails, passes
from tests.vectorgen.scene import (
    BEFORE,
    NOW,
    SALT,
    Scene,
    manifest_body,
    roots,
    use_registry,
)

_ISSUED = NOW + 2
_DAY = 86400


def _flipped(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


def _set(*path: int, value: Any) -> Any:
    """Return a change of one field of a statement, found by its keys."""

    def change(statement: dict[int, Any]) -> None:
        place = statement
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


def _name(byte: int) -> bytes:
    """Return a pack name or digest of one byte repeated."""
    return bytes([byte]) * 32


# --- what must be accepted


@passes("manifest", "4.12")
def manifest_basic() -> Body:
    """An automatic, complete manifest of one root with one file."""
    return manifest_body()


@passes("manifest", "4.12")
def manifest_manual() -> Body:
    """Type 1."""
    return manifest_body(None, _set(3, value=1))


@passes("manifest", "4.12")
def manifest_pre_shutdown() -> Body:
    """Type 2."""
    return manifest_body(None, _set(3, value=2))


@passes("manifest", "4.12")
def manifest_pre_upgrade() -> Body:
    """Type 3."""
    return manifest_body(None, _set(3, value=3))


@passes("manifest", "4.4")
def manifest_8_stanzas() -> Body:
    """Envelope and nested part with eight stanzas; a reader finds n by itself."""
    scene = Scene(n=8)
    return manifest_body(scene, registry=use_registry("registry-8-stanzas", Scene(n=8)))


@passes("manifest", "4.1")
def manifest_class_1() -> Body:
    """The same in an object of the next size class."""
    return manifest_body(size=131072)


@passes("manifest", "4.3")
def manifest_without_naming_key() -> Body:
    """A reader that holds no naming key cannot check the mark, and goes on."""
    return manifest_body(drop="naming")


@passes("manifest", "4.12")
def manifest_partial() -> Body:
    """Not complete: an entry was taken from manifest 1."""
    tree = {
        b"/home/agent": mini.directory({b"a.txt": mini.file(b"hello\n", since=1)}),
    }
    return manifest_body(None, _set(4, value=False), tree=tree)


@passes("manifest", "4.12")
def manifest_shrunk_accepted() -> Body:
    """Shrunk, and a human accepted the shrunk manifest before."""

    def change(statement: dict[int, Any]) -> None:
        statement[6], statement[7] = True, mini.sha256(BEFORE)

    return manifest_body(None, change)


@passes("manifest", "4.12")
def manifest_holds_and_state_lost() -> Body:
    """Sequences under hold, an audit log head, and a writer that lost its state."""

    def change(statement: dict[int, Any]) -> None:
        statement[8], statement[9], statement[10] = [1], _name(0x77), True

    return manifest_body(None, change)


@passes("manifest", "4.29")
def manifest_repairs() -> Body:
    """A bad pack with two replacements, and two abandoned packs."""

    def change(statement: dict[int, Any]) -> None:
        statement[12] = [[_name(1), [_name(3), _name(4)]], [_name(2), [_name(5)]]]
        statement[13] = [_name(6), _name(7)]

    return manifest_body(None, change)


@passes("manifest", "4.29")
def manifest_pins_of_all_classes() -> Body:
    """Pins of classes 0 and 7, sealed under registry versions 1 and 3."""
    pins = [[_name(1), 0, _name(0x81), 1], [_name(2), 7, _name(0x82), 3]]
    return manifest_body(None, _set(11, value=pins))


@passes("manifest", "4.31")
def manifest_two_roots() -> Body:
    """Two roots in order of their paths, one of them below the components' path."""
    tree = {
        **roots(),
        b"/.durarepo/components/dump": mini.directory({b"dump.sql": mini.file(b"select 1;\n")}),
    }
    return manifest_body(tree=tree)


@passes("manifest", "4.31")
def manifest_root_is_slash() -> Body:
    """The whole machine is one root."""
    return manifest_body(tree={b"/": mini.directory({b"a.txt": mini.file(b"hello\n")})})


@passes("manifest", "4.31")
def manifest_ledger() -> Body:
    """A ledger in place with one line of each class."""

    def nested(inner: dict[int, Any]) -> dict[int, Any]:
        lines = [[kind, b"/home/agent/x", "rule", "walk", 1] for kind in range(4)]
        return {**inner, 3: mini.encode(lines)}

    return manifest_body(nested=nested)


@passes("manifest", "4.32")
def manifest_two_components() -> Body:
    """A database beside the files; the index covers both."""

    def nested(inner: dict[int, Any]) -> dict[int, Any]:
        database = mini.component(
            "sqlite", b"sqlite:/home/agent/m.db", _name(9), consistency=3,
            counts=[["pages", 2]], facts=[["user_version", 7], ["page_size", "4096"]],
        )  # fmt: skip
        parts = [*inner[1], database]
        inner.update({1: parts, 2: mini.component_index(parts)})
        return inner

    body = manifest_body(nested=nested)
    part = mini.files_component(roots())
    database = mini.component("sqlite", b"sqlite:/home/agent/m.db", _name(9))
    index = mini.component_index([part, database]).hex()
    result = (body.result or "").rpartition("components=")[0] + f"components={index}"
    return Body(data=body.data, inputs=body.inputs, result=result, encoding=body.encoding)


@passes("manifest", "4.21")
def manifest_behind_milestone() -> Body:
    """Number 65: the envelope before it is the milestone 64."""
    return manifest_body(Scene(before={64: BEFORE}))


@passes("manifest", "4.21")
def manifest_milestone_below_anchor() -> Body:
    """Number 3 above the anchor 2: its milestone is number 1, which is not compared."""
    return manifest_body(Scene(before={1: b"another number 1", 2: BEFORE}))


@passes("manifest", "4.21")
def manifest_first() -> Body:
    """Number 1 has zero digests before it."""
    return manifest_body(Scene(before={}))


def _epoch_2() -> Scene:
    scene = Scene()
    scene.begin_epoch()
    return scene


@passes("manifest", "4.15")
def manifest_first_of_epoch_2() -> Body:
    """Epoch 2 begins with number 2, under its own signer and naming key."""
    scene = _epoch_2()
    return manifest_body(scene, registry=use_registry("registry-epoch-2", _epoch_2()))


def _other_revoked() -> Scene:
    scene = Scene()
    scene.epochs[0][3].append([keys.public_of(keys.OTHER_SIGNER), 1])
    scene.revoke(1, 1, mini.Signer(keys.OTHER_SIGNER))
    return scene


@passes("manifest", "4.17")
def manifest_other_signer_revoked() -> Body:
    """Another signer of the epoch was revoked."""
    return manifest_body(registry=use_registry("registry-other-revoked", _other_revoked()))


@passes("manifest", "4.23")
def manifest_at_high_water() -> Body:
    """The envelope of the high-water, met again."""
    body = manifest_body()
    inputs = {**body.inputs, "high-water": f"1 2 {mini.sha256(body.data).hex()}"}
    return Body(data=body.data, inputs=inputs, result=body.result, encoding=body.encoding)


@passes("manifest", "4.26")
def manifest_issued_600_ahead() -> Body:
    """Issued as far ahead of now as it may be; the registry is older."""
    return manifest_body(None, _set(2, value={0: NOW + 700, 1: NOW + 700 + _DAY}))


@passes("manifest", "4.27")
def manifest_at_clock_high_water() -> Body:
    """The clock stands where it stood before."""
    return manifest_body(clock=str(NOW + 100))


@passes("manifest", "4.28")
def manifest_last_second() -> Body:
    """The last second of its day."""
    return manifest_body(now=str(_ISSUED + _DAY - 1))


@passes("manifest", "4.28")
def manifest_archival() -> Body:
    """Expired, and read for archival: only 4.28 is left out."""
    return manifest_body(now=str(_ISSUED + 30 * _DAY), archival="yes")


# --- 4.1 to 4.7: the object


@fails("manifest", "4.1", "integrity.object-size", differs_from="manifest-basic", field="length")
def manifest_one_byte_short() -> Body:
    """No size class has this length."""
    return manifest_body(edits={"object": lambda data: data[:-1]})


@fails("manifest", "4.1", "integrity.object-size", differs_from="manifest-class-1", field="length")
def manifest_class_6() -> Body:
    """A size class, and more than an envelope may have."""
    return manifest_body(edits={"object": b"\x01" * 14680064})


@fails("manifest", "4.2", "integrity.version", differs_from="manifest-basic", field="version byte")
def manifest_version_byte_2() -> Body:
    """Version 2 of the format, marked and signed all the same."""
    return manifest_body(edits={"version_byte": b"\x02"})


@fails("manifest", "4.3", "integrity.mark", differs_from="manifest-basic", field="mark")
def manifest_mark_of_other_key() -> Body:
    """Marked under another naming key: anyone with a recipient's key could make this."""
    seen: list[bytes] = []

    def marked(data: bytes) -> bytes:
        seen.append(data)
        return data

    def mark(_: bytes) -> bytes:
        return mini.mac(mini.subkey(keys.OTHER_NAMING, "mark"), seen[0])

    return manifest_body(edits={"marked": marked, "mark": mark})


@fails("manifest", "4.3", "integrity.mark", differs_from="manifest-basic", field="one stanza")
def manifest_stanza_not_marked() -> Body:
    """A stanza was altered after the mark was made."""

    def flip(data: bytes) -> bytes:
        return data[:40] + bytes([data[40] ^ 1]) + data[41:]

    return manifest_body(edits={"object": flip})


@fails("manifest", "4.4", "integrity.stanza", differs_from="manifest-basic", field="recipients")
def manifest_sealed_to_others() -> Body:
    """No stanza is for this identity."""

    def stanzas(old: list[bytes]) -> list[bytes]:
        stranger = mini.Identity(keys.STRANGER)
        scope = Scene().scope(audit=True)
        return [mini.stanza(bytes(32), scope.info(2, SALT), stranger) for _ in old]

    return manifest_body(edits={"stanzas": stanzas})


def _resealed(info: bytes) -> Any:
    """Return edits that seal a known key under ``info`` and leave the rest right."""
    key = _name(0x66)
    return {"key": key, "stanzas": mini.stanzas(key, info, Scene().scope(audit=True))}


@fails("manifest", "4.4", "integrity.stanza", differs_from="manifest-basic", field="info: kind")
def manifest_stanzas_of_pack_kind() -> Body:
    """Stanzas bound to kind 1 are of a pack."""
    return manifest_body(edits=_resealed(Scene().scope().info(1, SALT)))


@fails("manifest", "4.4", "integrity.stanza", differs_from="manifest-basic", field="info: stream")
def manifest_stanzas_of_other_stream() -> Body:
    """Stanzas bound to another stream."""
    scope = mini.Scope(stream="diary", epoch=1, compartment="main")
    return manifest_body(edits=_resealed(scope.info(2, SALT)))


@fails("manifest", "4.5", "integrity.commitment", differs_from="manifest-basic", field="commitment")
def manifest_commitment_of_other_key() -> Body:
    """The stanza opens, and gives a key that was not committed to."""
    return manifest_body(edits={"commitment": _flipped})


@fails("manifest", "4.6", "integrity.seal", differs_from="manifest-basic", field="ciphertext")
def manifest_ciphertext_flipped() -> Body:
    """One bit of the body, under a right mark."""
    return manifest_body(edits={"sealed": _flipped})


@fails("manifest", "4.6", "integrity.seal", differs_from="manifest-basic", field="nonce")
def manifest_nonce_flipped() -> Body:
    """The stored nonce is another one than the body was sealed with."""

    def marked(data: bytes) -> bytes:
        at = 1 + 32 + 4 * 1168 + 32
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    return manifest_body(edits={"marked": marked})


@fails("manifest", "4.7", "integrity.padding", differs_from="manifest-basic", field="last byte")
def manifest_padding_not_zero() -> Body:
    """The last byte of the padding is one, sealed and marked."""
    return manifest_body(edits={"zeros": lambda old: old[:-1] + b"\x01"})


@fails(
    "manifest", "4.7", "integrity.padding", differs_from="manifest-basic", field="declared length"
)
def manifest_document_too_long() -> Body:
    """The document claims four thousand million bytes."""
    return manifest_body(edits={"declared": 0xFFFFFFFF})


# --- 4.8 to 4.11: the document


@fails("manifest", "4.8", "integrity.document", differs_from="manifest-basic", field="items")
def manifest_document_of_3() -> Body:
    """An array of three: the ML-DSA signature is missing."""
    return manifest_body(edits={"document": lambda old: old[:3]})


@fails("manifest", "4.8", "integrity.document", differs_from="manifest-basic", field="signature")
def manifest_mldsa_one_byte_short() -> Body:
    """3308 bytes are no ML-DSA-65 signature."""
    return manifest_body(edits={"mldsa": lambda old: old[:-1]})


@fails("manifest", "4.8", "integrity.document", differs_from="manifest-basic", field="statement")
def manifest_statement_as_text() -> Body:
    """The statement stands there as text."""
    return manifest_body(edits={"document": lambda old: [old[0], "statement", *old[2:]]})


@fails("manifest", "4.9", "trust.type", differs_from="manifest-basic", field="type")
def manifest_of_type_evidence() -> Body:
    """A right signature of another type must not make a manifest."""
    return manifest_body(edits={"type": "durarepo/1/evidence"})


@fails("manifest", "4.10", "trust.unknown-signer", differs_from="manifest-basic", field="signer id")
def manifest_signer_of_no_epoch() -> Body:
    """The signer id is of a key that the registry does not name."""
    return manifest_body(None, _set(0, 4, value=mini.Signer(keys.OTHER_SIGNER).id))


@fails(
    "manifest",
    "4.10",
    "trust.unknown-signer",
    differs_from="manifest-first-of-epoch-2",
    field="signer",
)
def manifest_signer_of_epoch_1() -> Body:
    """The signer of the epoch before, in epoch 2."""
    scene = _epoch_2()
    scene.signers[2] = scene.signers[1]
    return manifest_body(scene, registry=use_registry("registry-epoch-2", _epoch_2()))


@fails(
    "manifest", "4.11", "trust.signature", differs_from="manifest-basic", field="Ed25519 signature"
)
def manifest_ed25519_wrong() -> Body:
    """The ML-DSA signature alone is not enough."""
    return manifest_body(edits={"ed25519": _flipped})


@fails(
    "manifest", "4.11", "trust.signature", differs_from="manifest-basic", field="ML-DSA signature"
)
def manifest_mldsa_wrong() -> Body:
    """The Ed25519 signature alone is not enough."""
    return manifest_body(edits={"mldsa": _flipped})


@fails("manifest", "4.11", "trust.signature", differs_from="manifest-basic", field="ML-DSA context")
def manifest_mldsa_without_context() -> Body:
    """The ML-DSA signature was made with an empty context."""
    return manifest_body(edits={"context": b""})


@fails("manifest", "4.11", "trust.signature", differs_from="manifest-basic", field="signed message")
def manifest_signed_without_type() -> Body:
    """The statement was signed without the type before it."""

    def message(old: bytes) -> bytes:
        return old.partition(b"durarepo/1/manifest ")[2].partition(b" ")[2]

    return manifest_body(edits={"message": message})


# --- 4.12: the statement


def _bad_statement(change: Any) -> Body:
    return manifest_body(None, change)


@fails("manifest", "4.12", "integrity.statement", differs_from="manifest-basic", field="key 16")
def manifest_unknown_key() -> Body:
    """Key 16 does not exist."""
    return _bad_statement(_set(16, value=0))


@fails("manifest", "4.12", "integrity.statement", differs_from="manifest-basic", field="key 9")
def manifest_missing_key() -> Body:
    """The audit log head is missing."""
    return _bad_statement(lambda statement: statement.pop(9))


@fails("manifest", "4.12", "integrity.statement", differs_from="manifest-manual", field="type")
def manifest_type_4() -> Body:
    """There are four types, 0 to 3."""
    return _bad_statement(_set(3, value=4))


@fails("manifest", "4.12", "integrity.statement", differs_from="manifest-basic", field="complete")
def manifest_complete_as_number() -> Body:
    """1 is not true."""
    return _bad_statement(_set(4, value=1))


@fails(
    "manifest",
    "4.12",
    "integrity.statement",
    differs_from="manifest-holds-and-state-lost",
    field="holds",
)
def manifest_holds_descending() -> Body:
    """Sequences under hold stand in ascending order."""

    def change(statement: dict[int, Any]) -> None:
        statement[8], statement[9], statement[10] = [2, 1], _name(0x77), True

    return _bad_statement(change)


@fails("manifest", "4.12", "integrity.statement", differs_from="manifest-basic", field="previous")
def manifest_previous_of_31_bytes() -> Body:
    """A digest has 32 bytes."""
    return _bad_statement(_set(1, 1, value=bytes(31)))


# --- 4.13 to 4.19: what it is bound to


@fails("manifest", "4.13", "trust.header", differs_from="manifest-basic", field="header digest")
def manifest_of_other_header() -> Body:
    """A signed statement put behind a header of someone else's making."""
    return manifest_body(edits={"header_digest": _name(0x55)})


@fails("manifest", "4.14", "trust.stream", differs_from="manifest-basic", field="stream")
def manifest_of_other_stream() -> Body:
    """The same signer signs for another stream too."""
    return _bad_statement(_set(0, 0, value="diary"))


@fails("manifest", "4.14", "trust.stream", differs_from="manifest-basic", field="compartment")
def manifest_of_other_compartment() -> Body:
    """The compartment is another than the registry's."""
    return _bad_statement(_set(0, 2, value="public"))


@fails("manifest", "4.14", "trust.stream", differs_from="manifest-basic", field="never_publish")
def manifest_never_publish_differs() -> Body:
    """never_publish is true here and false in the registry."""
    return _bad_statement(_set(0, 3, value=True))


@fails("manifest", "4.15", "trust.epoch", differs_from="manifest-basic", field="epoch")
def manifest_of_epoch_2() -> Body:
    """The statement claims another epoch than the one it lies in."""
    return _bad_statement(_set(0, 1, value=2))


@fails("manifest", "4.15", "trust.epoch", differs_from="manifest-basic", field="registry")
def manifest_behind_its_epoch() -> Body:
    """Number 2 of epoch 1, while the registry lets epoch 2 begin with number 2."""
    return manifest_body(registry=use_registry("registry-epoch-2", _epoch_2()))


@fails("manifest", "4.16", "trust.role", differs_from="manifest-basic", field="signer")
def manifest_by_evidence_signer() -> Body:
    """A signer of the epoch that may only sign evidence."""
    scene = Scene()
    scene.signers[1] = mini.Signer(keys.EVIDENCE_SIGNER)
    return manifest_body(scene)


def _revoked_before() -> Scene:
    scene = Scene()
    scene.revoke(1, 1)
    return scene


@fails("manifest", "4.17", "fresh.revoked", differs_from="manifest-basic", field="revocation")
def manifest_behind_last_good() -> Body:
    """The signer is revoked, and number 1 was its last good envelope."""
    return manifest_body(registry=use_registry("registry-revoked", _revoked_before()))


@fails("manifest", "4.17", "fresh.revoked", differs_from="manifest-basic", field="revocation")
def manifest_not_the_last_good() -> Body:
    """Number 2 is the last good one, and it is another envelope than this."""

    def scene() -> Scene:
        made = Scene()
        made.epochs[0][9].append([made.signers[1].id, 2, _name(0x44)])
        return made

    return manifest_body(registry=use_registry("registry-revoked-other-2", scene()))


@fails(
    "manifest",
    "4.18",
    "trust.registry-version",
    differs_from="manifest-basic",
    field="registry version",
)
def manifest_of_registry_4() -> Body:
    """It was made under a registry that this reader has not got."""
    return _bad_statement(_set(1, 4, value=4))


@fails("manifest", "4.19", "trust.sequence", differs_from="manifest-basic", field="sequence")
def manifest_of_sequence_3() -> Body:
    """Number 3 in the slot of number 2."""
    return _bad_statement(_set(1, 0, value=3))


# --- 4.21 to 4.24: the chain, as far as one envelope shows it


@fails("manifest", "4.21", "trust.link", differs_from="manifest-basic", field="previous digest")
def manifest_previous_differs() -> Body:
    """It does not follow the envelope that the anchor names."""
    return _bad_statement(_set(1, 1, value=_name(0x43)))


@fails("manifest", "4.21", "trust.link", differs_from="manifest-basic", field="milestone digest")
def manifest_milestone_differs() -> Body:
    """It follows the envelope before, and another milestone."""
    return _bad_statement(_set(1, 2, value=_name(0x43)))


@fails("manifest", "4.21", "trust.link", differs_from="manifest-first", field="previous digest")
def manifest_first_with_previous() -> Body:
    """Number 1 follows something."""
    return manifest_body(Scene(before={}), _set(1, 1, value=_name(0x43)))


@fails("manifest", "4.23", "trust.fork", differs_from="manifest-at-high-water", field="high-water")
def manifest_other_at_high_water() -> Body:
    """At the high-water's number another envelope was seen before."""
    return manifest_body(high_water=f"1 2 {_name(0x42).hex()}")


@fails("manifest", "4.24", "trust.floor", differs_from="manifest-basic", field="registry's floor")
def manifest_below_floor() -> Body:
    """The owner raised the floor to number 3."""

    def scene() -> Scene:
        made = Scene()
        made.record[4] = 3
        return made

    return manifest_body(registry=use_registry("registry-floor-3", scene()))


@fails("manifest", "4.24", "trust.floor", differs_from="manifest-basic", field="floor")
def manifest_floor_above_registry() -> Body:
    """The writer claims a floor that the owner did not set."""
    return _bad_statement(_set(14, value=2))


# --- 4.25 to 4.28: times


@fails("manifest", "4.25", "trust.lifetime", differs_from="manifest-basic", field="expires")
def manifest_lives_a_second_longer() -> Body:
    """A day and a second."""
    return _bad_statement(_set(2, value={0: _ISSUED, 1: _ISSUED + _DAY + 1}))


@fails("manifest", "4.25", "trust.lifetime", differs_from="manifest-basic", field="expires")
def manifest_lives_a_second_shorter() -> Body:
    """A day less a second."""
    return _bad_statement(_set(2, value={0: _ISSUED, 1: _ISSUED + _DAY - 1}))


@fails("manifest", "4.26", "fresh.ahead", differs_from="manifest-issued-600-ahead", field="issued")
def manifest_issued_601_ahead() -> Body:
    """One second further ahead than a clock may differ."""
    return _bad_statement(_set(2, value={0: NOW + 701, 1: NOW + 701 + _DAY}))


@fails(
    "manifest", "4.27", "fresh.clock", differs_from="manifest-at-clock-high-water", field="clock"
)
def manifest_clock_behind() -> Body:
    """The clock stands one second before where it stood."""
    return manifest_body(clock=str(NOW + 101))


@fails("manifest", "4.28", "fresh.expired", differs_from="manifest-last-second", field="now")
def manifest_expired() -> Body:
    """The second in which it expires."""
    return manifest_body(now=str(_ISSUED + _DAY))


@fails("manifest", "4.28", "fresh.expired", differs_from="manifest-archival", field="archival")
def manifest_expired_a_month() -> Body:
    """What may be read for archival must not be restored otherwise."""
    return manifest_body(now=str(_ISSUED + 30 * _DAY))


# --- 4.29: pins


def _pins(*rows: Any) -> Body:
    return manifest_body(None, _set(11, value=list(rows)))


_PIN_1 = [_name(1), 0, _name(0x81), 1]
_PIN_2 = [_name(2), 7, _name(0x82), 3]


@fails(
    "manifest", "4.29", "integrity.pins", differs_from="manifest-pins-of-all-classes", field="order"
)
def manifest_pins_descending() -> Body:
    """Pins stand in order of the packs' names."""
    return _pins(_PIN_2, _PIN_1)


@fails(
    "manifest", "4.29", "integrity.pins", differs_from="manifest-pins-of-all-classes", field="class"
)
def manifest_pin_of_class_8() -> Body:
    """There are eight classes, 0 to 7."""
    return _pins(_PIN_1, [_PIN_2[0], 8, *_PIN_2[2:]])


@fails(
    "manifest",
    "4.29",
    "integrity.pins",
    differs_from="manifest-pins-of-all-classes",
    field="abandoned",
)
def manifest_pin_is_abandoned() -> Body:
    """A pack cannot be needed and given up at once."""

    def change(statement: dict[int, Any]) -> None:
        statement[11], statement[13] = [_PIN_1, _PIN_2], [_name(2)]

    return _bad_statement(change)


@fails(
    "manifest",
    "4.29",
    "integrity.pins",
    differs_from="manifest-pins-of-all-classes",
    field="registry version",
)
def manifest_pin_of_registry_4() -> Body:
    """A pack cannot be sealed under a later registry than its manifest's."""
    return _pins(_PIN_1, [*_PIN_2[:3], 4])


@fails("manifest", "4.29", "integrity.pins", differs_from="manifest-repairs", field="repairs")
def manifest_repairs_descending() -> Body:
    """Repairs stand in order of the bad packs' names."""

    def change(statement: dict[int, Any]) -> None:
        statement[12] = [[_name(2), [_name(5)]], [_name(1), [_name(3), _name(4)]]]
        statement[13] = [_name(6), _name(7)]

    return _bad_statement(change)


@fails("manifest", "4.29", "integrity.pins", differs_from="manifest-repairs", field="abandoned")
def manifest_abandoned_twice() -> Body:
    """The same pack is abandoned twice."""

    def change(statement: dict[int, Any]) -> None:
        statement[12] = [[_name(1), [_name(3), _name(4)]], [_name(2), [_name(5)]]]
        statement[13] = [_name(6), _name(6)]

    return _bad_statement(change)


# --- 4.30: the nested part's seal


def _nested(**edits: Any) -> Body:
    return manifest_body(nested_edits=edits)


@fails("manifest", "4.30", "integrity.nested", differs_from="manifest-basic", field="sequence")
def manifest_nested_of_sequence_1() -> Body:
    """A nested part that was sealed for number 1."""
    scene = Scene()
    info = scene.scope().info(3, SALT) + mini.u64(1) + mini.sha256(BEFORE)
    return _nested(info=info)


@fails("manifest", "4.30", "integrity.nested", differs_from="manifest-basic", field="previous")
def manifest_nested_of_other_chain() -> Body:
    """A nested part that was sealed behind another envelope."""
    info = Scene().scope().info(3, SALT) + mini.u64(2) + _name(0x43)
    return _nested(info=info)


@fails("manifest", "4.30", "integrity.nested", differs_from="manifest-basic", field="commitment")
def manifest_nested_commitment() -> Body:
    """The stanza opens, and gives a key that was not committed to."""
    return _nested(commitment=_flipped)


@fails("manifest", "4.30", "integrity.nested", differs_from="manifest-basic", field="ciphertext")
def manifest_nested_flipped() -> Body:
    """One bit of the ciphertext, under a right signature."""
    return _nested(sealed=_flipped)


@fails("manifest", "4.30", "integrity.nested", differs_from="manifest-basic", field="content")
def manifest_nested_not_zstd() -> Body:
    """The content is no zstd frame."""
    return _nested(compressed=b"not a frame")


@fails("manifest", "4.30", "integrity.nested", differs_from="manifest-basic", field="content")
def manifest_nested_bomb() -> Body:
    """A frame that inflates to one byte more than 8388608."""
    return _nested(compressed=mini.compress(bytes(8388609)))


# --- 4.31 and 4.32: the nested map


def _root_path(path: bytes) -> Body:
    def nested(inner: dict[int, Any]) -> dict[int, Any]:
        return {**inner, 0: [[path, inner[0][0][1]]]}

    return manifest_body(nested=nested)


@fails("manifest", "4.31", "integrity.nested-form", differs_from="manifest-basic", field="root")
def manifest_root_relative() -> Body:
    """A root path without a slash before it."""
    return _root_path(b"home/agent")


@fails("manifest", "4.31", "integrity.nested-form", differs_from="manifest-basic", field="root")
def manifest_root_climbs() -> Body:
    """A root path that climbs out of where it seems to lie."""
    return _root_path(b"/home/agent/../other")


@fails("manifest", "4.31", "integrity.nested-form", differs_from="manifest-two-roots", field="root")
def manifest_root_in_another() -> Body:
    """A root in another one, which would be restored twice; a name between them in order."""
    paths = (b"/home/agent", b"/home/agent-2", b"/home/agent/inner")
    return manifest_body(tree={path: mini.directory({}) for path in paths})


@fails("manifest", "4.31", "integrity.nested-form", differs_from="manifest-basic", field="root")
def manifest_root_too_long() -> Body:
    """A root path of 4097 bytes."""
    return _root_path((b"/" + b"x" * 255) * 15 + b"/" + b"x" * 254 + b"/x")


@fails(
    "manifest", "4.31", "integrity.nested-form", differs_from="manifest-two-roots", field="order"
)
def manifest_roots_descending() -> Body:
    """Roots stand in order of their paths."""
    tree = {
        **roots(),
        b"/.durarepo/components/dump": mini.directory({b"dump.sql": mini.file(b"select 1;\n")}),
    }
    return manifest_body(tree=tree, nested=lambda inner: {**inner, 0: inner[0][::-1]})


@fails("manifest", "4.31", "integrity.nested-form", differs_from="manifest-basic", field="key 7")
def manifest_nested_missing_key() -> Body:
    """The policy version is missing."""
    return manifest_body(
        nested=lambda inner: {key: value for key, value in inner.items() if key != 7}
    )


@fails(
    "manifest",
    "4.32",
    "integrity.component-index",
    differs_from="manifest-basic",
    field="index of components",
)
def manifest_component_index_differs() -> Body:
    """The index is not that of the components."""
    return manifest_body(nested=lambda inner: {**inner, 2: _name(0x41)})


@fails(
    "manifest",
    "4.32",
    "integrity.component-index",
    differs_from="manifest-two-components",
    field="order of components",
)
def manifest_components_swapped() -> Body:
    """The components stand in another order than the index was made in."""

    def nested(inner: dict[int, Any]) -> dict[int, Any]:
        database = mini.component(
            "sqlite", b"sqlite:/home/agent/m.db", _name(9), consistency=3,
            counts=[["pages", 2]], facts=[["user_version", 7], ["page_size", "4096"]],
        )  # fmt: skip
        index = mini.component_index([*inner[1], database])
        return {**inner, 1: [database, *inner[1]], 2: index}

    return manifest_body(nested=nested)
