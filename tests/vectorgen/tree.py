"""Vectors of step 7: directories, names, paths and the content of files.

A body lists chunks in the clear; the inputs say under which root path which entry begins.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.interop import miniwriter as mini
from tests.vectorgen import keys
from tests.vectorgen.catalogue import Body, fails, passes
from tests.vectors.vectorfile import Part

_WORDS = ("data", "list", "tree", "ledger")
_ROOT = b"/home/agent"
_MTIME = [1_700_000_000, 5]
_HELLO = b"hello\n"
_SHOWN = {mini.FILE: "f", mini.DIRECTORY: "d", mini.SYMLINK: "l"}


def _content(node: mini.Node) -> bytes:
    return b"".join(bytes(run) for run in node.runs)


def _line(node: mini.Node, path: bytes) -> str:
    mode = node.fields.get(2, 0o755 if node.type == mini.DIRECTORY else 0o644)
    seconds, rest = node.fields.get(3, _MTIME)
    size, value = 0, "-"
    if node.type == mini.FILE:
        size, value = len(_content(node)), mini.sha256(_content(node)).hex()
    if node.type == mini.SYMLINK:
        mode, value = 0o777, node.fields[13].hex()
    time = seconds * 1_000_000_000 + rest
    return f"{_SHOWN[node.type]} {mode:o} {time} {size} {value} {path.hex()}\n"


def listing(roots: Mapping[bytes, mini.Node]) -> str:
    """Return the listing of what a restore of ``roots`` leaves; see spec/vectors.md."""
    lines: list[str] = []

    def walk(node: mini.Node, path: bytes) -> None:
        if node.type in _SHOWN:
            lines.append(_line(node, path))
        for name, child in sorted(node.children.items()):
            walk(child, path.rstrip(b"/") + b"/" + name)

    for path, node in sorted(roots.items()):
        walk(node, path)
    return "".join(lines)


def listing_result(roots: Mapping[bytes, mini.Node]) -> str:
    """Return the result of a vector whose restore leaves ``roots``."""
    text = listing(roots)
    return f"lines={text.count(chr(10))} listing={hashlib.sha256(text.encode()).hexdigest()}"


def _chunk_parts(chunks: mini.Chunks) -> tuple[Part, ...]:
    made = chunks.new.values()
    return tuple(
        Part(label=f"{_WORDS[kind]} {number}", data=plain)
        for number, (kind, plain) in enumerate(made, start=1)
    )


def _body(chunks: mini.Chunks, root: Any, path: bytes = _ROOT, result: str = "-") -> Body:
    inputs = {
        "naming": keys.NAMING.hex(),
        "root-path": path.hex(),
        "root": mini.encode(root).hex(),
    }
    return Body(parts=_chunk_parts(chunks), inputs=inputs, result=result)


def _tree(children: Mapping[bytes, mini.Node], path: bytes = _ROOT, **fields: Any) -> Body:
    """Return a body for a root directory of ``children``."""
    root = mini.directory(children, **fields)
    chunks = mini.Chunks(keys.NAMING)
    entry = chunks.entry(root)
    return _body(chunks, entry, path, listing_result({path: root}))


def _odd_root(plain: Callable[[mini.Chunks], Any]) -> Body:
    """Return a body whose root's tree chunk is the encoding of what ``plain`` gives."""
    chunks = mini.Chunks(keys.NAMING)
    tree = chunks.add(mini.TREE, mini.encode(plain(chunks)))
    return _body(chunks, chunks.entry(mini.directory({}, tree=tree)))


def _entry(chunks: mini.Chunks, name: bytes, node: mini.Node | None = None) -> Any:
    return chunks.entry(node or mini.file(_HELLO), name)


# --- what must be accepted


@passes("tree", "7.1")
def tree_empty() -> Body:
    """A root without anything in it."""
    return _tree({})


@passes("tree", "7.2")
def tree_file() -> Body:
    """One file of one data chunk, whose id follows from its size and hash."""
    return _tree({b"a": mini.file(_HELLO)})


@passes("tree", "7.2")
def tree_empty_file() -> Body:
    """A file without content has neither hash nor chunk."""
    return _tree({b"a": mini.file()})


@passes("tree", "7.2")
def tree_directories() -> Body:
    """Directories in directories; two of them are equal and share their chunk."""
    inner = mini.directory({b"x": mini.file(_HELLO)})
    return _tree({b"one": inner, b"two": mini.directory({b"three": inner}, mode=0o700)})


@passes("tree", "7.2")
def tree_symlink() -> Body:
    """A symbolic link, whose target is only bytes and leads anywhere."""
    return _tree({b"link": mini.symlink(b"../../etc/\xff")})


@passes("tree", "7.2")
def tree_fifo() -> Body:
    """A FIFO."""
    return _tree({b"pipe": mini.special(mini.FIFO)})


@passes("tree", "7.2")
def tree_socket() -> Body:
    """A socket."""
    return _tree({b"socket": mini.special(mini.SOCKET)})


@passes("tree", "7.2")
def tree_character_device() -> Body:
    """A character device with its numbers."""
    return _tree({b"null": mini.special(mini.CHARACTER, device=[1, 3])})


@passes("tree", "7.2")
def tree_block_device() -> Body:
    """A block device with its numbers."""
    return _tree({b"loop": mini.special(mini.BLOCK, device=[7, 0])})


@passes("tree", "7.2")
def tree_all_fields() -> Body:
    """A file with every field that may stand with it."""
    node = mini.file(
        _HELLO, mode=0o600, user=b"agent", group=b"agents", born=[1_600_000_000, 7],
        xattrs=[[b"user.a", b"1"], [b"user.b", b""]], link=3, consistency=2, since=4,
        redactions=["token"],
    )  # fmt: skip
    return _tree({b"a": node})


@passes("tree", "7.2")
def tree_times() -> Body:
    """A nanosecond before 1970, the year 2038, and the last nanosecond of a second."""
    times = [[-1, 999_999_999], [2**31, 0], [0, 999_999_999]]
    return _tree({b"%d" % at: mini.file(_HELLO, modified=time) for at, time in enumerate(times)})


@passes("tree", "7.3")
def tree_names() -> Body:
    """Names of one and of 255 bytes, of bytes that are no text, dots, a line feed and blanks."""
    names = (b"a", b"n" * 255, b"\xff\xfe", b"...", b"..a", b" ", b"line\nfeed", b"back\\slash")
    return _tree({name: mini.file(_HELLO) for name in names})


@passes("tree", "7.4")
def tree_order() -> Body:
    """Names in order of their bytes: upper case, lower case, longer names, high bytes."""
    names = (b"B", b"a", b"a.b", b"ab", b"\xc3\xa4")
    return _tree({name: mini.file(_HELLO) for name in names})


def _node_of(
    *leaves: Sequence[bytes], first: Callable[[list[Any]], list[Any]] | None = None
) -> Body:
    """Return a body whose root is a node of these leaves; ``first`` alters its rows."""

    def plain(chunks: mini.Chunks) -> Any:
        rows = [
            [leaf[0], chunks.add(mini.TREE, mini.encode([0, [_entry(chunks, n) for n in leaf]]))]
            for leaf in leaves
        ]
        return [1, first(rows) if first else rows]

    names = [name for leaf in leaves for name in leaf]
    root = mini.directory({name: mini.file(_HELLO) for name in names})
    body = _odd_root(plain)
    return Body(parts=body.parts, inputs=body.inputs, result=listing_result({_ROOT: root}))


@passes("tree", "7.4")
def tree_node() -> Body:
    """A directory of two leaves below a node."""
    return _node_of([b"a", b"b"], [b"c", b"d"])


# --- 7.1 form


@fails("tree", "7.1", "integrity.tree-form", differs_from="tree-file", field="kind of tree")
def tree_of_kind_2() -> Body:
    """Neither a leaf (0) nor a node (1)."""
    return _odd_root(lambda chunks: [2, [_entry(chunks, b"a")]])


@fails("tree", "7.1", "integrity.tree-form", differs_from="tree-file", field="items")
def tree_of_three_items() -> Body:
    """A third item behind the entries."""
    return _odd_root(lambda chunks: [0, [_entry(chunks, b"a")], 0])


@fails("tree", "7.1", "integrity.tree-form", differs_from="tree-node", field="leaves")
def tree_node_of_one_leaf() -> Body:
    """A node has at least two leaves."""
    return _node_of([b"a", b"b"])


@fails("tree", "7.1", "integrity.tree-form", differs_from="tree-node", field="a leaf")
def tree_node_in_node() -> Body:
    """A node whose second leaf is a node again."""

    def plain(chunks: mini.Chunks) -> Any:
        leaves = [
            [name, chunks.add(mini.TREE, mini.encode([0, [_entry(chunks, name)]]))]
            for name in (b"b", b"c")
        ]
        first = chunks.add(mini.TREE, mini.encode([0, [_entry(chunks, b"a")]]))
        inner = chunks.add(mini.TREE, mini.encode([1, leaves]))
        return [1, [[b"a", first], [b"b", inner]]]

    return _odd_root(plain)


# --- 7.2 entries


def _one(node: mini.Node, name: bytes = b"a") -> Body:
    return _odd_root(lambda chunks: [0, [_entry(chunks, name, node)]])


@fails("tree", "7.2", "integrity.entry", differs_from="tree-file", field="key 20")
def tree_entry_unknown_key() -> Body:
    """Key 20 does not exist."""
    node = mini.file(_HELLO)
    node.fields[20] = 0
    return _one(node)


@fails("tree", "7.2", "integrity.entry", differs_from="tree-file", field="mode")
def tree_entry_mode_4096() -> Body:
    """A mode beyond permission and set-id bits."""
    return _one(mini.file(_HELLO, mode=4096))


@fails("tree", "7.2", "integrity.entry", differs_from="tree-file", field="modified")
def tree_entry_nanoseconds() -> Body:
    """A thousand million nanoseconds are a second."""
    return _one(mini.file(_HELLO, modified=[0, 1_000_000_000]))


@fails("tree", "7.2", "integrity.entry", differs_from="tree-file", field="size")
def tree_file_of_2_to_the_53() -> Body:
    """One byte more than a file may have: a hole, so that nothing else is wrong."""
    node = mini.file(size=2**53, sha256=bytes(32), content=[0, [2**53 - 1, None]])
    return _one(node)


@fails("tree", "7.2", "integrity.entry", differs_from="tree-file", field="SHA-256")
def tree_file_without_hash() -> Body:
    """Content that nothing vouches for."""
    return _one(mini.file(_HELLO, sha256=mini.DROP))


@fails("tree", "7.2", "integrity.entry", differs_from="tree-symlink", field="target")
def tree_symlink_with_nul() -> Body:
    """A target that ends early for one reader and late for another."""
    return _one(mini.symlink(b"../../etc/\x00"), b"link")


# --- 7.3 names


@fails("tree", "7.3", "integrity.name", differs_from="tree-names", field="a name")
def tree_name_empty() -> Body:
    """A name without a byte."""
    return _one(mini.file(_HELLO), b"")


@fails("tree", "7.3", "integrity.name", differs_from="tree-names", field="a name")
def tree_name_dot() -> Body:
    """The directory itself."""
    return _one(mini.file(_HELLO), b".")


@fails("tree", "7.3", "integrity.name", differs_from="tree-names", field="a name")
def tree_name_dot_dot() -> Body:
    """The directory above."""
    return _one(mini.file(_HELLO), b"..")


@fails("tree", "7.3", "integrity.name", differs_from="tree-names", field="a name")
def tree_name_with_slash() -> Body:
    """A path instead of a name."""
    return _one(mini.file(_HELLO), b"../x")


@fails("tree", "7.3", "integrity.name", differs_from="tree-names", field="a name")
def tree_name_with_nul() -> Body:
    """A name that ends early for the system."""
    return _one(mini.file(_HELLO), b"a\x00b")


@fails("tree", "7.3", "integrity.name", differs_from="tree-names", field="a name")
def tree_name_of_256_bytes() -> Body:
    """One byte too long."""
    return _one(mini.file(_HELLO), b"n" * 256)


# --- 7.4 order


@fails("tree", "7.4", "integrity.tree-order", differs_from="tree-order", field="order")
def tree_names_descending() -> Body:
    """Two names in the wrong order."""
    return _odd_root(lambda chunks: [0, [_entry(chunks, b"b"), _entry(chunks, b"a")]])


@fails("tree", "7.4", "integrity.tree-order", differs_from="tree-order", field="a name")
def tree_name_twice() -> Body:
    """The same name twice: a file and a symbolic link, to write through it."""
    link = mini.symlink(b"/etc")
    return _odd_root(lambda chunks: [0, [_entry(chunks, b"a", link), _entry(chunks, b"a")]])


@fails("tree", "7.4", "integrity.tree-order", differs_from="tree-node", field="second leaf")
def tree_name_in_two_leaves() -> Body:
    """The second leaf begins with the name that the first one ends with."""
    return _node_of([b"a", b"b"], [b"b", b"d"])


@fails("tree", "7.4", "integrity.tree-order", differs_from="tree-node", field="a first name")
def tree_node_first_name_differs() -> Body:
    """The node names another first name than its leaf has."""
    return _node_of([b"a", b"b"], [b"c", b"d"], first=lambda rows: [rows[0], [b"bb", rows[1][1]]])


@fails("tree", "7.4", "integrity.tree-order", differs_from="tree-node", field="order of leaves")
def tree_leaves_swapped() -> Body:
    """The leaves stand in the wrong order."""
    return _node_of([b"c", b"d"], [b"a", b"b"])


# --- 7.5 paths


def _deep(names: Sequence[bytes]) -> Body:
    """Return a body whose root holds a chain of directories of these names."""
    chunks = mini.Chunks(keys.NAMING)
    inner = mini.directory({})
    tree = chunks.tree([])
    for name in reversed(names):
        inner = mini.directory({name: inner})
        tree = chunks.tree([chunks.entry(mini.Node(mini.DIRECTORY, {12: tree}), name)])
    root = chunks.entry(mini.Node(mini.DIRECTORY, {12: tree}))
    lines = [_line(mini.directory({}), _ROOT)]
    path = _ROOT
    for name in names:
        path += b"/" + name
        lines.append(_line(mini.directory({}), path))
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    return _body(chunks, root, result=f"lines={len(lines)} listing={digest}")


@passes("path", "7.5")
def path_of_255_byte_names() -> Body:
    """Twelve names of 255 bytes below each other."""
    return _deep([b"n" * 255] * 12)


@passes("path", "7.5")
def path_300_deep() -> Body:
    """Three hundred directories in each other."""
    return _deep([b"d"] * 300)


@fails("path", "7.5", "integrity.path", differs_from="path-of-255-byte-names", field="length")
def path_of_4352_bytes() -> Body:
    """Seventeen names of 255 bytes below each other."""
    return _deep([b"n" * 255] * 17)


@fails("path", "7.5", "integrity.path", differs_from="path-300-deep", field="depth")
def path_2100_deep() -> Body:
    """Two thousand one hundred directories in each other."""
    return _deep([b"d"] * 2100)


# --- 7.6 and 7.7 content


def _file(node: mini.Node) -> Body:
    return _tree({b"a": node})


@passes("content", "7.6")
def content_two_chunks() -> Body:
    """Two data chunks."""
    return _file(mini.file(b"one", b"two"))


@passes("content", "7.6")
def content_holes() -> Body:
    """A hole at the beginning, one in the middle and one at the end."""
    return _file(mini.file(4096, b"one", 70000, b"two", 1))


@passes("content", "7.6")
def content_only_hole() -> Body:
    """A file that is one hole."""
    return _file(mini.file(1048576))


@passes("content", "7.6")
def content_depth_1() -> Body:
    """Lists of depth 1."""
    return _file(mini.file(b"one", 5, b"two", depth=1))


@passes("content", "7.6")
def content_depth_2() -> Body:
    """Lists of depth 2."""
    return _file(mini.file(b"one", b"two", b"three", 5, b"four", depth=2))


@passes("content", "7.6")
def content_depth_3() -> Body:
    """Lists of depth 3, the deepest."""
    parts = [b"part %d" % number for number in range(9)]
    return _file(mini.file(*parts, depth=3))


@passes("content", "7.6")
def content_same_chunk_twice() -> Body:
    """The same chunk at two places."""
    return _file(mini.file(b"one", b"two", b"one"))


@passes("content", "7.6")
def content_long_attribute() -> Body:
    """An extended attribute of 5000 bytes lies in a chunk."""

    def plain(chunks: mini.Chunks) -> Any:
        value = b"v" * 5000
        content = [0, [len(value), chunks.add(mini.DATA, value)]]
        node = mini.file(_HELLO, xattrs=[[b"user.long", content]])
        return [0, [_entry(chunks, b"a", node)]]

    body = _odd_root(plain)
    root = mini.directory({b"a": mini.file(_HELLO)})
    return Body(parts=body.parts, inputs=body.inputs, result=listing_result({_ROOT: root}))


def _listed(content: Callable[[mini.Chunks], Any], whole: bytes) -> Body:
    """Return a body with one file of ``whole`` whose content is what ``content`` gives."""

    def plain(chunks: mini.Chunks) -> Any:
        node = mini.file(size=len(whole), sha256=mini.sha256(whole), content=content(chunks))
        return [0, [_entry(chunks, b"a", node)]]

    return _odd_root(plain)


def _data(chunks: mini.Chunks, plain: bytes) -> bytes:
    return chunks.add(mini.DATA, plain)


@fails("content", "7.6", "integrity.content", differs_from="content-two-chunks", field="a length")
def content_sum_differs() -> Body:
    """The lengths add up to one byte more than the size."""
    return _listed(
        lambda chunks: [0, [3, _data(chunks, b"one"), 4, _data(chunks, b"twoo")]], b"onetwo"
    )


@fails("content", "7.6", "integrity.content", differs_from="content-holes", field="a hole")
def content_two_holes_in_a_row() -> Body:
    """Two holes in a row have one encoding too many."""
    return _listed(
        lambda chunks: [0, [4096, None, 4096, None, 3, _data(chunks, b"one")]],
        bytes(8192) + b"one",
    )


@fails("content", "7.6", "integrity.content", differs_from="content-depth-3", field="depth")
def content_depth_4() -> Body:
    """One depth more than there may be."""

    def content(chunks: mini.Chunks) -> Any:
        inner = chunks.content([b"one", b"two"], 3)
        listed = chunks.add(mini.LIST, mini.encode(inner))
        return [4, [6, listed]]

    return _listed(content, b"onetwo")


@fails(
    "content", "7.6", "integrity.content", differs_from="content-depth-2", field="a list's depth"
)
def content_list_of_same_depth() -> Body:
    """A content of depth 2 names a list of depth 0."""

    def content(chunks: mini.Chunks) -> Any:
        inner = chunks.content([b"one", b"two"], 0)
        return [2, [6, chunks.add(mini.LIST, mini.encode(inner))]]

    return _listed(content, b"onetwo")


@fails("content", "7.6", "integrity.content", differs_from="content-depth-1", field="a length")
def content_list_sum_differs() -> Body:
    """A list holds a byte less than the content says."""

    def content(chunks: mini.Chunks) -> Any:
        inner = chunks.content([b"one", b"two"], 0)
        last = [4, _data(chunks, b"last")]
        listed = chunks.add(mini.LIST, mini.encode(inner))
        return [1, [7, listed, 4, chunks.add(mini.LIST, mini.encode([0, last]))]]

    return _listed(content, b"onetwo?last")


@fails("content", "7.6", "integrity.content", differs_from="content-two-chunks", field="a length")
def content_chunk_longer_than_run() -> Body:
    """A chunk is longer than its run, and the next one shorter."""
    return _listed(
        lambda chunks: [0, [2, _data(chunks, b"one"), 4, _data(chunks, b"two")]], b"onetwo"
    )


@fails("content", "7.7", "integrity.file-hash", differs_from="content-two-chunks", field="SHA-256")
def content_hash_differs() -> Body:
    """Right chunks in another order than the file's hash was made in."""
    return _listed(
        lambda chunks: [0, [3, _data(chunks, b"two"), 3, _data(chunks, b"one")]], b"onetwo"
    )


@fails("content", "7.7", "integrity.file-hash", differs_from="content-holes", field="SHA-256")
def content_hash_without_hole() -> Body:
    """The hash was made of other bytes than zeros where the hole is."""
    return _listed(
        lambda chunks: [0, [4096, None, 3, _data(chunks, b"one")]], b"\x01" * 4096 + b"one"
    )


@fails("content", "6.2", "integrity.chunk-missing", differs_from="tree-file", field="SHA-256")
def content_single_chunk_hash_differs() -> Body:
    """Without content the chunk's id follows from the hash, and no such chunk is there."""
    return _one(mini.file(_HELLO, sha256=mini.sha256(b"hullo\n")))


@fails("content", "6.2", "integrity.chunk-missing", differs_from="content-two-chunks", field="id")
def content_chunk_of_other_key() -> Body:
    """A chunk id that was made under another naming key."""
    other = mini.chunk_id(keys.OTHER_NAMING, mini.DATA, b"two")
    return _listed(lambda chunks: [0, [3, _data(chunks, b"one"), 3, other]], b"onetwo")
