"""Vectors over all steps: a registry, an envelope and its packs, restored into a folder."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.interop import miniwriter as mini
from tests.vectorgen import keys
from tests.vectorgen.catalogue import Body, fails, passes
from tests.vectorgen.chain import before, registry_part, shared_link, slot
from tests.vectorgen.scene import (
    NOW,
    SALT,
    Edits,
    Scene,
    manifest_inputs,
    renamed,
    seal_manifest,
    trusted,
)
from tests.vectorgen.tree import listing_result
from tests.vectors.vectorfile import Part

_ROOT = b"/home/agent"
_DAY = 86400
_HELLO = b"hello\n"


def _tree() -> dict[bytes, mini.Node]:
    """Return a root with the usual things in it."""
    return {
        _ROOT: mini.directory(
            {
                b"a.txt": mini.file(_HELLO),
                b"empty": mini.file(),
                b"link": mini.symlink(b"a.txt"),
                b"memory": mini.directory({b"m.jsonl": mini.file(b"{}\n", b"{}\n", mode=0o600)}),
                b"sparse": mini.file(b"one", 65536, b"two", depth=1),
            }
        )
    }


def _linked(tree: Mapping[bytes, mini.Node]) -> int:
    """Return how many names share an inode: those of one group that agree in all but the name."""
    pending, same = list(tree.values()), []
    while pending:
        node = pending.pop()
        pending += node.children.values()
        if 16 in node.fields:
            same.append((sorted(node.fields.items()), list(node.runs)))
    return sum(same.count(one) > 1 for one in same)


class _Making:
    """One repository of one manifest; every step may be altered."""

    def __init__(self, scene: Scene | None = None, *, registry: str = "registry-basic") -> None:
        self.scene = scene or Scene(before={})
        self.registry = registry

    def body(
        self,
        tree: Mapping[bytes, mini.Node] | None = None,
        *,
        nested: Callable[[dict[int, Any], mini.Chunks], Any] | None = None,
        change: Callable[[dict[int, Any]], Any] | None = None,
        pack_edits: Edits | None = None,
        **inputs: str,
    ) -> Body:
        """Return the body of a vector that restores ``tree``.

        Args:
            tree: roots by path; the usual ones without it.
            nested: alters the nested map, and may add chunks.
            change: alters the statement in place.
            pack_edits: parts of the pack to be replaced.
            inputs: replace the usual ones.
        """
        scene, tree = self.scene, _tree() if tree is None else tree
        chunks = scene.chunks()
        inner = scene.nested_map(tree, chunks)
        inner = nested(inner, chunks) if nested else inner
        scene.store(chunks, edits={"salt": SALT, **(pack_edits or {})})
        number = scene.head + 1
        sealed = mini.seal_nested(
            inner,
            scope=scene.scope(),
            sequence=number,
            previous=scene.digest(number - 1),
            edits={"salt": SALT},
        )
        statement = scene.statement(counts=mini.totals(tree), nested=sealed)
        if change:
            change(statement)
        envelope = seal_manifest(scene, statement)
        given = manifest_inputs(scene, "-") | renamed(inputs)
        for name in ("registry", "epoch", "naming"):
            given.pop(name, None)
        parts = [Part(label=slot(number, epoch=scene.epoch), data=envelope)]
        parts += [Part(label=name, data=data) for name, data in sorted(scene.objects.items())]
        return Body(
            parts=(registry_part(self.scene, self.registry), *parts),
            inputs=given,
            result=f"{listing_result(tree)} linked={_linked(tree)}",
            encoding="base64",
        )


def _body(tree: Mapping[bytes, mini.Node] | None = None, **rest: Any) -> Body:
    return _Making().body(tree, **rest)


@passes("repository", "7.8")
def repository_basic() -> Body:
    """Files, an empty one, a sparse one, a directory and a symbolic link."""
    return _body()


@passes("repository", "7.8")
def repository_8_stanzas() -> Body:
    """Eight stanzas in envelope, nested part and pack."""
    return _Making(Scene(n=8, before={}), registry="registry-8-stanzas").body()


@passes("repository", "7.8")
def repository_two_roots() -> Body:
    """Two roots that share a chunk."""
    other = mini.directory({b"same.txt": mini.file(_HELLO)})
    return _body({**_tree(), b"/srv/notes": other})


@passes("repository", "7.8")
def repository_hard_links() -> Body:
    """Two names of one inode, and a third of the same group that does not agree."""
    names = {b"a": 0o644, b"b": 0o644, b"c": 0o600}
    files = {name: mini.file(_HELLO, link=9, mode=mode) for name, mode in names.items()}
    return _body({_ROOT: mini.directory(files)})


@passes("repository", "7.8")
def repository_ledger_in_chunks() -> Body:
    """A ledger whose lines lie in a chunk of kind ledger."""

    def nested(inner: dict[int, Any], chunks: mini.Chunks) -> dict[int, Any]:
        plain = mini.encode([[0, b"/home/agent/cache", "cache", "walk", 3]])
        content = [0, [len(plain), chunks.add(mini.LEDGER, plain)]]
        return {**inner, 3: content}

    return _body(nested=nested)


def _moved(body: Body, *, damaged: bool) -> Body:
    """Return a body whose pack lies in its second place; with a damaged one under its name."""
    slots = mini.slot_key(keys.NAMING)
    parts: list[Part] = []
    for part in body.parts:
        if mini.sha256(part.data).hex() != part.label:
            parts.append(part)
            continue
        second = mini.pack_slot(slots, bytes.fromhex(part.label))
        parts.append(Part(label=second, data=part.data))
        if damaged:
            parts.append(Part(label=part.label, data=part.data[:-1] + b"\0"))
    return Body(parts=tuple(parts), inputs=body.inputs, result=body.result, encoding=body.encoding)


@passes("repository", "5.1")
def repository_pack_in_second_place() -> Body:
    """The pack is not under its name, and in its slot."""
    return _moved(_body(), damaged=False)


@passes("repository", "5.1")
def repository_pack_damaged_in_first_place() -> Body:
    """What lies under the pack's name is damaged; the second place counts."""
    return _moved(_body(), damaged=True)


@passes("repository", "4.29")
def repository_repaired() -> Body:
    """A pinned pack is bad, and its replacement is pinned as well: the chunks are taken from it."""
    scene = Scene(before={})
    making = _Making(scene)
    first: list[bytes] = []

    def nested(inner: dict[int, Any], chunks: mini.Chunks) -> dict[int, Any]:
        pack = scene.store(chunks, edits={"salt": bytes([0x5B]) * 32})
        first.append(b"" if pack is None else pack.name)
        return inner

    def change(statement: dict[int, Any]) -> None:
        good = next(name for name in scene.pins if name != first[0])
        statement[12] = [[first[0], [good]]]
        scene.objects[first[0].hex()] = b"\x01" * 32768

    return making.body(nested=nested, change=change)


def _over_epochs(*, without_first: bool = False) -> Body:
    """Return a body whose second manifest lies in epoch 2 and pins the pack of epoch 1."""
    scene, tree = Scene(before={}), _tree()
    chunks = scene.chunks()
    inner = scene.nested_map(tree, chunks)
    scene.store(chunks, edits={"salt": SALT})
    first = [Part(label=mini.registry_slot(scene.locator, 3), data=scene.seal())]
    envelopes: list[Part] = []
    for number in (1, 2):
        if number == 2:
            scene.begin_epoch(naming=keys.NAMING)
            scene.registry[0] = 4
        sealed = mini.seal_nested(
            inner, scope=scene.scope(), sequence=number, previous=scene.digest(number - 1)
        )
        statement = scene.statement(counts=mini.totals(tree), nested=sealed)
        envelope = seal_manifest(scene, statement)
        scene.put_envelope(envelope, sequence=number)
        name = mini.manifest_slot(mini.slot_key(keys.NAMING), scene.epoch, number, 0)
        envelopes.append(Part(label=name, data=envelope))
    packs = [Part(label=name.hex(), data=scene.objects[name.hex()]) for name in scene.pins]
    newest = Part(label=mini.registry_slot(scene.locator, 4), data=scene.seal())
    given = {**trusted(scene), "stream": "notes", "sequence": "2", "identity": keys.DATA.hex()}
    return Body(
        parts=(*([] if without_first else first), newest, *envelopes, *packs),
        inputs=given,
        result=f"{listing_result(tree)} linked=0",
        encoding="base64",
    )


@passes("repository", "5.3")
def repository_pack_of_epoch_before() -> Body:
    """Epoch 2 keeps the naming key; the pack is sealed for epoch 1, as its pin's registry says."""
    return _over_epochs()


@passes("repository", "7.8")
def repository_partial() -> Body:
    """A partial manifest: one entry was taken from number 1."""
    tree = _tree()
    tree[_ROOT].children[b"a.txt"].fields[18] = 1
    making = _Making(before(2))
    body = making.body(tree, change=lambda statement: statement.update({4: False}))
    inputs = {key: value for key, value in body.inputs.items() if key != "anchor"}
    return replace(body, parts=(*body.parts, shared_link(1)), inputs=inputs)


@passes("repository", "7.8")
def repository_database() -> Body:
    """A database component, whose integrity is the hash of the captured file."""
    database = b"SQLite format 3\x00" + bytes(4080)
    tree = {_ROOT: mini.directory({b"m.db": mini.file(database, consistency=3)})}

    def nested(inner: dict[int, Any], _: mini.Chunks) -> dict[int, Any]:
        part = mini.component("sqlite", b"sqlite:/home/agent/m.db", mini.sha256(database))
        parts = [*inner[1], part]
        return {**inner, 1: parts, 2: mini.component_index(parts)}

    return _body(tree, nested=nested)


@passes("repository", "4.28")
def repository_archival() -> Body:
    """Expired a month ago, and restored for archival."""
    return _body(now=str(NOW + 30 * _DAY), archival="yes")


@passes("repository", "6.1")
def repository_last_second() -> Body:
    """The manifest is in its last second from beginning to end."""
    last = str(NOW + 1 + _DAY - 1)
    return _body(now=last, now_frames=last, now_end=last)


@fails(
    "repository",
    "3.11",
    "trust.registry-version",
    differs_from="repository-pack-of-epoch-before",
    field="registry 3",
)
def repository_registry_of_pin_missing() -> Body:
    """The registry under which the pack was sealed is not there."""
    return _over_epochs(without_first=True)


@fails("repository", "7.1", "integrity.tree-form", differs_from="repository-basic", field="tree")
def repository_tree_is_data() -> Body:
    """What the root names as its tree is a data chunk."""

    def nested(inner: dict[int, Any], chunks: mini.Chunks) -> dict[int, Any]:
        inner[0][0][1][12] = chunks.add(mini.DATA, mini.encode([0, []]))
        return inner

    return _body(nested=nested)


@fails("repository", "6.1", "fresh.expired", differs_from="repository-last-second", field="now")
def repository_expires_before_frames() -> Body:
    """It expires between the manifest and the first frame."""
    last = NOW + 1 + _DAY - 1
    return _body(now=str(last), now_frames=str(last + 1), now_end=str(last + 1))


@fails("repository", "7.9", "fresh.expired", differs_from="repository-last-second", field="now")
def repository_expires_before_the_end() -> Body:
    """It expires while it is restored: nothing may be shown."""
    last = NOW + 1 + _DAY - 1
    return _body(now=str(last), now_frames=str(last), now_end=str(last + 1))


@fails("repository", "7.9", "fresh.clock", differs_from="repository-last-second", field="now")
def repository_clock_runs_back() -> Body:
    """The clock is set back below its high-water while the restore runs."""
    last = NOW + 1 + _DAY - 1
    return _body(now=str(last), now_frames=str(last), now_end=str(last - 10), clock=str(last - 5))


@fails("repository", "5.1", "integrity.pack-missing", differs_from="repository-basic", field="pack")
def repository_without_its_pack() -> Body:
    """The pinned pack is not there."""
    body = _body()
    return replace(body, parts=body.parts[:2])


@fails(
    "repository", "6.4", "integrity.frame-digest", differs_from="repository-basic", field="a frame"
)
def repository_with_altered_frame() -> Body:
    """One bit of the first frame, which holds a file's content."""
    body = _body()
    part = body.parts[2]
    at = 65 + 4 * 1168
    data = part.data[:at] + bytes([part.data[at] ^ 1]) + part.data[at + 1 :]
    return replace(body, parts=(*body.parts[:2], replace(part, data=data)))


@fails("repository", "7.8", "integrity.component", differs_from="repository-basic", field="hash")
def repository_component_differs() -> Body:
    """The component of kind files has the hash of other files."""

    def nested(inner: dict[int, Any], _: mini.Chunks) -> dict[int, Any]:
        parts = [mini.component("files", b"files", bytes([0x40]) * 32)]
        return {**inner, 1: parts, 2: mini.component_index(parts)}

    return _body(nested=nested)


@fails("repository", "7.8", "integrity.component", differs_from="repository-database", field="hash")
def repository_database_differs() -> Body:
    """The database component has the hash of another database."""
    database = b"SQLite format 3\x00" + bytes(4080)
    tree = {_ROOT: mini.directory({b"m.db": mini.file(database, consistency=3)})}

    def nested(inner: dict[int, Any], _: mini.Chunks) -> dict[int, Any]:
        part = mini.component("sqlite", b"sqlite:/home/agent/m.db", bytes([0x40]) * 32)
        parts = [*inner[1], part]
        return {**inner, 1: parts, 2: mini.component_index(parts)}

    return _body(tree, nested=nested)


@fails(
    "repository", "7.8", "integrity.component", differs_from="repository-basic", field="set hash"
)
def repository_file_added() -> Body:
    """The tree holds a file more than the component's hash covers."""

    def nested(inner: dict[int, Any], chunks: mini.Chunks) -> dict[int, Any]:
        tree = _tree()
        tree[_ROOT].children[b"added"] = mini.file(_HELLO)
        return {**inner, 0: [[path, chunks.entry(node)] for path, node in tree.items()]}

    return _body(nested=nested)
