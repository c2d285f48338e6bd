"""Vectors of step 4 that need several envelopes in their slots.

Envelopes 1 to 3 of one chain are shared files; a vector replaces or leaves out what it is about.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tests.interop import miniwriter as mini
from tests.vectorgen import keys
from tests.vectorgen.catalogue import Body, fails, passes
from tests.vectorgen.scene import (
    Scene,
    manifest_statement,
    renamed,
    seal_manifest,
    shared,
    trusted,
)
from tests.vectors.vectorfile import Part


def _envelope(scene: Scene, change: Callable[[dict[int, Any]], Any] | None = None) -> bytes:
    statement = manifest_statement(scene)
    if change:
        change(statement)
    return seal_manifest(scene, statement)


def link(number: int) -> bytes:
    """Return envelope 1, 2 or 3 of the shared chain."""
    before = {at: link(at) for at in range(1, number)}
    return shared(f"chain-{number}", lambda: _envelope(Scene(before=before)))


def before(number: int) -> Scene:
    """Return the scene in which the next manifest is ``number`` of the shared chain."""
    return Scene(before={at: link(at) for at in range(1, number)})


def epoch_2(*, revoked: int | None = None) -> Scene:
    """Return the scene in which epoch 2 begins with number 3.

    Args:
        revoked: last good sequence of epoch 1's signer, if it was revoked.
    """
    scene = before(3)
    scene.begin_epoch()
    if revoked is not None:
        scene.revoke(1, revoked)
    return scene


def first_of_epoch_2() -> bytes:
    """Return envelope 3 of the chain that goes on in epoch 2."""
    return shared("chain-3-epoch-2", lambda: _envelope(epoch_2()))


def slot(number: int, *, epoch: int = 1, attempt: int = 0) -> str:
    """Return the name of an envelope."""
    naming = keys.NAMING if epoch == 1 else keys.NEXT_NAMING
    return mini.manifest_slot(mini.slot_key(naming), epoch, number, attempt)


def registry_part(scene: Scene, name: str) -> Part:
    """Return the shared registry ``name`` in its slot."""
    version = scene.registry[0]
    return Part(
        label=mini.registry_slot(scene.locator, version),
        data=shared(name, scene.seal),
        shared=name,
    )


def shared_link(number: int, *, attempt: int = 0) -> Part:
    """Return an envelope of the shared chain in its slot."""
    return Part(label=slot(number, attempt=attempt), data=link(number), shared=f"chain-{number}")


def _body(
    parts: Mapping[str, bytes] | None = None,
    *links: Part,
    scene: Scene | None = None,
    registry: str = "registry-basic",
    **inputs: str,
) -> Body:
    scene = scene or Scene()
    given = {**trusted(scene), "stream": "notes", "sequence": "latest"}
    given |= {"identity": keys.DATA.hex(), **renamed(inputs)}
    own = tuple(Part(label=name, data=data) for name, data in (parts or {}).items())
    return Body(
        parts=(registry_part(scene, registry), *links, *own), inputs=given, encoding="base64"
    )


def _found(body: Body, number: int, envelope: bytes) -> Body:
    result = f"sequence={number} digest={mini.sha256(envelope).hex()}"
    return Body(parts=body.parts, inputs=body.inputs, result=result, encoding=body.encoding)


_LINKS = tuple(shared_link(number) for number in (1, 2, 3))


@passes("chain", "4.21")
def chain_of_three() -> Body:
    """The latest of three envelopes, without any anchor."""
    return _found(_body(None, *_LINKS), 3, link(3))


@passes("chain", "4.21")
def chain_older_one() -> Body:
    """Number 2, while number 3 is there."""
    return _found(_body(None, *_LINKS[1:], *_LINKS[:1], sequence="2"), 2, link(2))


@passes("chain", "4.21")
def chain_from_anchor() -> Body:
    """What lies below the anchor is not needed: envelope 1 is not there."""
    anchor = f"1 2 {mini.sha256(link(2)).hex()}"
    return _found(_body(None, *_LINKS[1:], anchor=anchor), 3, link(3))


@passes("chain", "4.19")
def chain_second_attempt() -> Body:
    """Something else lies in the slot of number 3; the envelope is in the second attempt."""
    junk = {slot(3): b"\x01" * 32768}
    return _found(_body(junk, *_LINKS[:2], shared_link(3, attempt=1)), 3, link(3))


@passes("chain", "4.20")
def chain_with_torn_head() -> Body:
    """The slot of number 3 holds no good mark: the write was torn, and number 2 is the head."""
    torn = {slot(3): link(3)[:20000] + bytes(len(link(3)) - 20000)}
    return _found(_body(torn, *_LINKS[:2]), 2, link(2))


@passes("chain", "4.23")
def chain_at_high_water() -> Body:
    """The head is the high-water."""
    high = f"1 3 {mini.sha256(link(3)).hex()}"
    return _found(_body(None, *_LINKS[::-1], high_water=high), 3, link(3))


@passes("chain", "4.22")
def chain_beyond_high_water() -> Body:
    """The head is newer than the high-water, and follows from it."""
    high = f"1 2 {mini.sha256(link(2)).hex()}"
    parts = (_LINKS[0], _LINKS[2], _LINKS[1])
    return _found(_body(None, *parts, high_water=high), 3, link(3))


def _two_epochs(
    registry: str, scene: Scene, order: tuple[int, int, int] = (0, 1, 2), **inputs: str
) -> Body:
    """Return a chain over two epochs; ``order`` is that of the envelopes in the body."""
    last = Part(label=slot(3, epoch=2), data=first_of_epoch_2(), shared="chain-3-epoch-2")
    links = (*_LINKS[:2], last)
    ordered = [links[at] for at in order]
    return _body(None, *ordered, scene=scene, registry=registry, **inputs)


@passes("chain", "4.15")
def chain_over_two_epochs() -> Body:
    """Number 3 begins epoch 2 and follows number 2 of epoch 1."""
    return _found(_two_epochs("registry-epoch-2-at-3", epoch_2()), 3, first_of_epoch_2())


@passes("chain", "4.17")
def chain_revoked_signer_before() -> Body:
    """The signer of epoch 1 is revoked behind number 2: the chain up to there holds."""
    body = _two_epochs("registry-revoked-at-2", epoch_2(revoked=2))
    return _found(body, 3, first_of_epoch_2())


@passes("chain", "4.17")
def chain_good_history_of_revoked() -> Body:
    """Number 1 of the revoked signer is still restored: number 2 reaches back to it."""
    scene = epoch_2(revoked=2)
    body = _two_epochs("registry-revoked-at-2", scene, (1, 0, 2), sequence="1")
    return _found(body, 1, link(1))


@passes("chain", "4.17")
def chain_last_good_of_revoked() -> Body:
    """Number 2 is the very envelope that the revocation names."""
    scene = epoch_2(revoked=2)
    body = _two_epochs("registry-revoked-at-2", scene, (2, 1, 0), sequence="2")
    return _found(body, 2, link(2))


@fails("chain", "4.17", "fresh.revoked", differs_from="chain-of-three", field="revocation")
def chain_behind_revocation() -> Body:
    """The signer is revoked behind number 2, and number 3 is asked for."""
    scene = before(3)
    scene.revoke(1, 2)
    return _body(None, *_LINKS, scene=scene, registry="registry-revoked-behind-2", sequence="3")


@fails("chain", "4.17", "fresh.revoked", differs_from="chain-over-two-epochs", field="revocation")
def chain_revoked_in_another_epoch() -> Body:
    """The signer of epoch 2 stands as revoked in epoch 1, where it never signed."""

    def scene() -> Scene:
        made = epoch_2()
        made.revoke(1, 2, made.signers[2])
        return made

    return _two_epochs("registry-revoked-elsewhere", scene(), (2, 0, 1), sequence="3")


@passes("chain", "4.24")
def chain_above_the_floor() -> Body:
    """The floor is number 3: what lies below is followed, and not restored."""
    scene = before(3)
    scene.record[4] = 3
    body = _body(None, *_LINKS, scene=scene, registry="registry-floor-3-of-3", sequence="3")
    return _found(body, 3, link(3))


@fails("chain", "4.20", "integrity.gap", differs_from="chain-of-three", field="envelope 2")
def chain_with_a_gap() -> Body:
    """Number 2 is missing: nothing shows that number 3 follows from number 1."""
    return _body(None, _LINKS[0], _LINKS[2])


@fails("chain", "4.3", "integrity.mark", differs_from="chain-with-torn-head", field="high-water")
def chain_torn_where_it_was_seen() -> Body:
    """The same, and number 3 has been seen before: it was damaged since."""
    torn = {slot(3): link(3)[:20000] + bytes(len(link(3)) - 20000)}
    high = f"1 3 {mini.sha256(link(3)).hex()}"
    return _body(torn, *_LINKS[1::-1], high_water=high)


@fails("chain", "4.3", "integrity.mark", differs_from="chain-of-three", field="envelope 2")
def chain_damaged_below_its_head() -> Body:
    """Number 2 is damaged and number 3 is there: nothing may be restored past the damage."""
    torn = {slot(2): link(2)[:20000] + bytes(len(link(2)) - 20000)}
    return _body(torn, _LINKS[2], _LINKS[0])


@fails("chain", "4.20", "integrity.gap", differs_from="chain-from-anchor", field="anchor")
def chain_with_a_gap_above_anchor() -> Body:
    """The anchor is number 1, and number 2 is missing."""
    return _body(None, _LINKS[2], anchor=f"1 1 {mini.sha256(link(1)).hex()}")


@fails("chain", "4.21", "trust.link", differs_from="chain-of-three", field="envelope 2")
def chain_cut_in_the_middle() -> Body:
    """Number 3 follows another number 2 than the one that is there."""
    other = _envelope(before(2), lambda statement: statement.update({3: 1}))
    return _body({slot(2): other}, _LINKS[0], _LINKS[2])


@fails("chain", "4.21", "trust.link", differs_from="chain-from-anchor", field="anchor")
def chain_past_anchor() -> Body:
    """The chain does not reach the envelope that the card names."""
    anchor = f"1 2 {'44' * 32}"
    return _body(None, _LINKS[2], _LINKS[1], anchor=anchor)


@fails("chain", "4.21", "trust.link", differs_from="chain-over-two-epochs", field="epoch 2")
def chain_epoch_follows_another() -> Body:
    """Number 3 follows number 2; the registry says that epoch 2 follows another envelope."""

    def scene() -> Scene:
        made = epoch_2()
        made.epochs[1][2] = bytes([0x47]) * 32
        return made

    return _two_epochs("registry-epoch-2-elsewhere", scene(), (1, 2, 0), sequence="3")


@fails("chain", "4.22", "trust.rollback", differs_from="chain-at-high-water", field="high-water")
def chain_rolled_back() -> Body:
    """Number 4 was seen before, and 3 is the latest there is."""
    high = f"1 4 {'45' * 32}"
    return _body(None, _LINKS[1], _LINKS[0], _LINKS[2], high_water=high)


@fails("chain", "4.22", "trust.rollback", differs_from="chain-of-three", field="envelope 3")
def chain_without_its_head() -> Body:
    """The head that was seen before is gone."""
    high = f"1 3 {mini.sha256(link(3)).hex()}"
    return _body(None, *_LINKS[:2], high_water=high)


@fails("chain", "4.23", "trust.fork", differs_from="chain-at-high-water", field="high-water")
def chain_other_head_seen() -> Body:
    """At number 3 another envelope was seen before."""
    high = f"1 3 {'46' * 32}"
    return _body(None, _LINKS[2], _LINKS[0], _LINKS[1], high_water=high)


@fails("chain", "4.23", "trust.fork", differs_from="chain-of-three", field="a second envelope 3")
def chain_forked() -> Body:
    """Two envelopes of number 3, both signed, both following number 2."""
    other = _envelope(before(3), lambda statement: statement.update({3: 1}))
    return _body({slot(3, attempt=1): other}, *_LINKS)
