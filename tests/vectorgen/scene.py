"""A stream with fixed keys, from which registries, envelopes and packs of vectors are made.

`Scene` is the independent writer with keys of `keys.py` in place of derived ones. What several
vectors need unchanged is a shared file, made once: see `shared`.
Start at `manifest_body` and `registry_body`, which most generators call.
"""

import base64
from collections.abc import Callable, Mapping
from typing import Any

from tests.interop import miniwriter as mini
from tests.vectorgen import keys
from tests.vectorgen.catalogue import Body
from tests.vectors.vectorfile import FOLDER, SHARED

NOW = 1_800_000_000
SALT = bytes([0x5A]) * 32
BEFORE = b"the envelope before"
"""Stands for envelope 1 where only its digest matters."""

_SECRETS = {
    "owner": keys.OWNER,
    "locator": keys.LOCATOR,
    "data": keys.DATA,
    "audit": keys.AUDIT,
    "signer-1": keys.SIGNER,
    "signer-2": keys.NEXT_SIGNER,
    "naming-1": keys.NAMING,
    "naming-2": keys.NEXT_NAMING,
}

Edits = Mapping[str, Any]


class Scene(mini.Repository):
    """The stream `notes` of compartment `main`, registry version 3, before its second manifest."""

    def __init__(self, *, n: int = 4, before: Mapping[int, bytes] | None = None) -> None:
        super().__init__(n=n, issued=NOW)
        self.objects.clear()
        self.epochs[0][3] = [
            [keys.public_of(keys.SIGNER), 3],
            [keys.public_of(keys.EVIDENCE_SIGNER), 2],
        ]
        self.envelopes.update({1: BEFORE} if before is None else before)
        self.registry[0] = 3

    def secret(self, label: str, length: int) -> bytes:
        """Return the fixed secret of this label."""
        secret = _SECRETS[label]
        if len(secret) != length:
            raise ValueError(label)
        return secret

    def begin_epoch(self, *, naming: bytes | None = None) -> dict[int, Any]:
        """Add an epoch; epochs behind the first have no audit recipient, to fit class 0."""
        epoch = super().begin_epoch(naming=naming)
        if epoch[0] > 1:
            epoch[5], epoch[8] = [], None
        return epoch

    @property
    def record(self) -> dict[int, Any]:
        """The stream's map in the registry's statement."""
        record: dict[int, Any] = self.registry[3][0]
        return record

    def seal(self, edits: Edits | None = None, *, size: int | None = None) -> bytes:
        """Return the registry as an object."""
        return mini.seal_registry(
            self.registry,
            owner=self.owner,
            locator=self.locator,
            size=size,
            edits={"salt": SALT, **(edits or {})},
        )


def shared(name: str, make: Callable[[], bytes]) -> bytes:
    """Return the bytes of the shared file ``name``; made and written if it is missing."""
    path = FOLDER / SHARED / f"{name}.txt"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        text = base64.b64encode(make()).decode("ascii")
        lines = [text[at : at + 96] for at in range(0, len(text), 96)]
        path.write_text("\n".join(lines) + "\n", "ascii")
    return base64.b64decode(path.read_text("ascii"))


def trusted(scene: Scene) -> dict[str, str]:
    """Return the inputs by which a registry is found and trusted."""
    return {
        "now": str(NOW + 100),
        "locator": scene.locator.hex(),
        "owner-digest": scene.owner_digest.hex(),
        "version": str(scene.registry[0]),
        "highest": str(scene.registry[0]),
    }


def registry_result(scene: Scene) -> str:
    """Return what a right reader says of the registry's statement."""
    statement = scene.registry
    head = f"version={statement[0]} issued={statement[1][0]} expires={statement[1][1]}"
    streams = [
        f"{one[0]}={one[1]}/{len(one[3])}/{one[4]}/{one[3][-1][6]}/{len(one[3][-1][3])}"
        for one in statement[3]
    ]
    return " ".join([head, *streams])


def registry_body(
    scene: Scene, edits: Edits | None = None, *, size: int | None = None, **inputs: str
) -> Body:
    """Return a registry vector's body; ``inputs`` replace the usual ones."""
    return Body(
        data=scene.seal(edits, size=size),
        inputs={**trusted(scene), **renamed(inputs)},
        result=registry_result(scene),
        encoding="base64",
    )


def renamed(inputs: Mapping[str, str]) -> dict[str, str]:
    """Turn argument names into header keys."""
    return {name.replace("_", "-"): value for name, value in inputs.items()}


def use_registry(name: str, scene: Scene) -> str:
    """Return a reference to the shared registry ``name``, made from ``scene`` if missing."""
    shared(name, scene.seal)
    return f"@{name}"


# --- manifests


def roots() -> dict[bytes, mini.Node]:
    """Return the small tree that most manifests hold."""
    return {b"/home/agent": mini.directory({b"a.txt": mini.file(b"hello\n")})}


def manifest_statement(
    scene: Scene,
    *,
    nested: Callable[[dict[int, Any]], Any] | None = None,
    nested_edits: Edits | None = None,
    tree: Mapping[bytes, mini.Node] | None = None,
) -> dict[int, Any]:
    """Return the statement of the scene's next manifest.

    Args:
        scene: where it lies; its pack is stored and pinned.
        nested: changes the nested map before it is encoded.
        nested_edits: parts of the nested part to be replaced.
        tree: roots; the usual ones without it.
    """
    chunks = scene.chunks()
    tree = tree or roots()
    inner = scene.nested_map(tree, chunks)
    scene.store(chunks)
    number = scene.head + 1
    sealed = mini.seal_nested(
        nested(inner) if nested else inner,
        scope=scene.scope(),
        sequence=number,
        previous=scene.digest(number - 1),
        edits={"salt": SALT, **(nested_edits or {})},
    )
    return scene.statement(counts=mini.totals(tree), nested=sealed)


def seal_manifest(
    scene: Scene,
    statement: dict[int, Any],
    edits: Edits | None = None,
    *,
    size: int | None = None,
) -> bytes:
    """Return the envelope of a statement, signed by the present epoch's signer."""
    return mini.seal_envelope(
        statement,
        signer=scene.signers[scene.epoch],
        naming=scene.naming[scene.epoch],
        scope=scene.scope(audit=True),
        size=size,
        edits={"salt": SALT, **(edits or {})},
    )


def manifest_inputs(scene: Scene, registry: str) -> dict[str, str]:
    """Return the inputs of the scene's next manifest."""
    number, last = scene.head + 1, scene.head
    anchor = f"{scene.epoch_of.get(last, 1)} {last} {scene.digest(last).hex()}"
    return {
        **trusted(scene),
        "registry": registry,
        "stream": scene.stream,
        "epoch": str(scene.epoch),
        "sequence": str(number),
        "identity": keys.DATA.hex(),
        "naming": scene.naming[scene.epoch].hex(),
        **({"anchor": anchor} if last else {}),
    }


def manifest_result(envelope: bytes, statement: Mapping[int, Any], components: bytes) -> str:
    """Return what a right reader says of a manifest."""
    totals = statement[5]
    return (
        f"sequence={statement[1][0]} digest={mini.sha256(envelope).hex()}"
        f" signer={statement[0][4].hex()} type={statement[3]}"
        f" complete={str(statement[4]).lower()} files={totals[0]} bytes={totals[2]}"
        f" pins={len(statement[11])} components={components.hex()}"
    )


def manifest_body(
    scene: Scene | None = None,
    change: Callable[[dict[int, Any]], Any] | None = None,
    *,
    edits: Edits | None = None,
    nested: Callable[[dict[int, Any]], Any] | None = None,
    nested_edits: Edits | None = None,
    **rest: Any,
) -> Body:
    """Return a manifest vector's body.

    Args:
        scene: where the manifest lies; the usual stream without it.
        change: alters the statement in place before it is signed.
        edits: parts of the envelope to be replaced.
        nested: changes the nested map.
        nested_edits: parts of the nested part to be replaced.
        rest: ``registry`` reference, ``size``, ``tree``, ``drop`` (an input left out), and
            inputs by name.
    """
    registry = rest.pop("registry", None) or use_registry("registry-basic", Scene())
    size, tree, drop = (rest.pop(name, None) for name in ("size", "tree", "drop"))
    scene = scene or Scene()
    seen: list[bytes] = []

    def look(inner: dict[int, Any]) -> Any:
        seen.append(inner[2])
        return nested(inner) if nested else inner

    statement = manifest_statement(scene, nested=look, nested_edits=nested_edits, tree=tree)
    if change:
        change(statement)
    envelope = seal_manifest(scene, statement, edits, size=size)
    inputs = {**manifest_inputs(scene, registry), **renamed(rest)}
    if drop:
        del inputs[drop]
    return Body(
        data=envelope,
        inputs=inputs,
        result=manifest_result(envelope, statement, seen[0]),
        encoding="base64",
    )
