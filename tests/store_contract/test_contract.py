"""One suite for every store of objects: whatever passes it may hold a repository.

A new store gets one line in `_opened`; it may not change a test.
"""

import contextlib
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from durarepo.core.errors import IntegrityError
from durarepo.core.limits import PACK_MAX_BYTES
from durarepo.core.names import ObjectName
from durarepo.store.folder import FolderRemote
from durarepo.store.https import HttpsRemote
from durarepo.store.localdir import LocalDir
from durarepo.store.port import ObjectStore, Put
from tests.doubles.memory_store import MemoryStore
from tests.doubles.servers import Server

KINDS = ("localdir", "memory", "folder", "mirror", "mirror-digest", "nginx")


class Plain:
    """A server without a listing, with a look at its disk in the place of one."""

    def __init__(self, remote: HttpsRemote, folder: Path) -> None:
        self._remote, self._folder = remote, folder

    def put_new(self, name: ObjectName, data: bytes | Iterable[bytes]) -> Put:
        return self._remote.put_new(name, data)

    def read(self, name: ObjectName, offset: int = 0, length: int | None = None) -> bytes:
        return self._remote.read(name, offset, length)

    def stat(self, name: ObjectName) -> int | None:
        return self._remote.stat(name)

    def iter_names(self) -> Iterator[ObjectName]:
        self._folder.mkdir(exist_ok=True)
        with LocalDir(bytes(self._folder)) as there:
            yield from there.iter_names()


@contextlib.contextmanager
def _opened(kind: str, folder: Path, server: Server | None) -> Iterator[ObjectStore]:
    if kind == "memory":
        yield MemoryStore()
    elif kind == "folder":
        with contextlib.closing(FolderRemote(bytes(folder))) as remote:
            yield remote
    elif server is None:
        with LocalDir(bytes(folder / "objects"), create=True) as store:
            yield store
    else:
        scope = server.next_scope()
        opened = server.remote(scope, trusts_digest=kind == "mirror-digest")
        with contextlib.closing(opened) as remote:
            yield Plain(remote, server.objects(scope)) if kind == "nginx" else remote


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectStore]:
    """Give an empty store of each kind."""
    kind = request.param.partition("-")[0]
    server = request.getfixturevalue(kind) if kind in {"mirror", "nginx"} else None
    with _opened(request.param, tmp_path, server) as opened:
        yield opened


def name_of(data: bytes) -> ObjectName:
    """Return the name that a pack of these bytes has."""
    return ObjectName(hashlib.sha256(data).hexdigest())


def slot(digit: str) -> ObjectName:
    """A name that says nothing about the bytes, as manifests have."""
    return ObjectName(digit * 64)


def as_given(data: bytes, shape: str) -> bytes | Iterator[bytes]:
    """The same bytes whole, in odd pieces, or with empty pieces between."""
    if shape == "whole":
        return data
    step = 7 if len(data) < 1000 else 65_537
    pieces = [data[n : n + step] for n in range(0, len(data), step)]
    return iter(pieces) if shape == "pieces" else iter([b"", *pieces, b""])


@pytest.mark.parametrize("size", [0, 1, 4096, 1_048_577])
@pytest.mark.parametrize("shape", ["whole", "pieces", "with-empty-pieces"])
def test_object_reads_back_as_it_was_put(store: ObjectStore, size: int, shape: str) -> None:
    """A store that changes one byte loses everything that depends on it."""
    data = (b"0123456789abcdef" * (size // 16 + 1))[:size]

    put = store.put_new(name_of(data), as_given(data, shape))

    assert put is Put.CREATED
    assert store.read(name_of(data)) == data
    assert store.stat(name_of(data)) == size


@pytest.mark.parametrize("shape", ["whole", "pieces", "with-empty-pieces"])
def test_putting_the_same_again_says_so_and_changes_nothing(store: ObjectStore, shape: str) -> None:
    """A resumed run puts what it put before; that must be neither an error nor a new object."""
    store.put_new(slot("a"), b"the same bytes")

    put = store.put_new(slot("a"), as_given(b"the same bytes", shape))

    assert put is Put.ALREADY_THERE
    assert list(store.iter_names()) == [slot("a")]


@pytest.mark.parametrize("other", [b"", b"first byteX", b"first bytes and more", b"first"], ids=len)
@pytest.mark.parametrize("shape", ["whole", "pieces"])
def test_other_bytes_under_a_taken_name_are_refused_and_the_first_stay(
    store: ObjectStore, other: bytes, shape: str
) -> None:
    """An overwrite would destroy a backup; a silent 'fine' would lose the new one (A4f)."""
    store.put_new(slot("b"), b"first bytes")

    with pytest.raises(IntegrityError) as caught:
        store.put_new(slot("b"), as_given(other, shape))

    assert caught.value.code == "integrity.object-differs"
    assert store.read(slot("b")) == b"first bytes"


@pytest.mark.parametrize("fails_after", [0, 1, 3])
def test_nothing_is_stored_when_the_data_break_off(store: ObjectStore, fails_after: int) -> None:
    """Half an object under its name would later be taken for the whole one (A4a)."""

    def breaking() -> Iterator[bytes]:
        for _ in range(fails_after):
            yield b"x" * 100
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError):
        store.put_new(slot("c"), breaking())

    assert store.stat(slot("c")) is None
    assert list(store.iter_names()) == []
    assert store.put_new(slot("c"), b"whole") is Put.CREATED


def test_break_off_of_a_second_put_leaves_the_first(store: ObjectStore) -> None:
    """A resumed put that breaks must not harm what an earlier one stored."""
    store.put_new(slot("c"), b"kept")

    def breaking() -> Iterator[bytes]:
        yield b"ke"
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError):
        store.put_new(slot("c"), breaking())

    assert store.read(slot("c")) == b"kept"


def test_object_longer_than_any_may_be_is_refused(store: ObjectStore) -> None:
    """A reader refuses it later; storing it would be storing what nobody can restore (law 8)."""
    window = b"\0" * (1 << 20)
    count = PACK_MAX_BYTES // len(window)

    with pytest.raises(ValueError, match="object"):
        store.put_new(slot("d"), (window for _ in range(count + 1)))

    assert store.stat(slot("d")) is None


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (0, None, b"0123456789"),
        (0, 0, b""),
        (0, 10, b"0123456789"),
        (3, 4, b"3456"),
        (9, 1, b"9"),
        (9, None, b"9"),
        (10, 0, b""),
        (10, None, b""),
    ],
)
def test_read_returns_exactly_the_range(
    store: ObjectStore, offset: int, length: int | None, expected: bytes
) -> None:
    """Frames are read by range; a byte too many or too few fails every digest."""
    store.put_new(slot("e"), b"0123456789")

    assert store.read(slot("e"), offset, length) == expected


@pytest.mark.parametrize(("offset", "length"), [(0, 11), (10, 1), (5, 6), (11, 0), (11, None)])
def test_range_beyond_the_end_is_short_and_not_cut(
    store: ObjectStore, offset: int, length: int | None
) -> None:
    """Handing out fewer bytes than asked for would make a truncated object look readable."""
    store.put_new(slot("e"), b"0123456789")

    with pytest.raises(IntegrityError) as caught:
        store.read(slot("e"), offset, length)

    assert caught.value.code == "integrity.object-short"


@pytest.mark.parametrize(("offset", "length"), [(-1, None), (0, -1)])
def test_negative_ranges_are_the_callers_mistake(
    store: ObjectStore, offset: int, length: int | None
) -> None:
    """A negative offset must not count from the end."""
    store.put_new(slot("e"), b"0123456789")

    with pytest.raises(ValueError, match="negative"):
        store.read(slot("e"), offset, length)


def test_missing_object_is_missing_and_not_a_store_error(store: ObjectStore) -> None:
    """Verify counts missing objects (20); a store that cannot be used is another thing (14)."""
    assert store.stat(slot("f")) is None

    with pytest.raises(IntegrityError) as caught:
        store.read(slot("f"))

    assert caught.value.code == "integrity.object-missing"


@pytest.mark.parametrize(
    "bad",
    ["", "ab", "A" * 64, "g" * 64, "a" * 63, "a" * 65, "../" + "a" * 61, "a" * 64 + "\n"],
)
@pytest.mark.parametrize("call", ["put_new", "read", "stat"])
def test_what_is_no_object_name_never_reaches_the_store(
    store: ObjectStore, bad: str, call: str
) -> None:
    """A name from a hostile manifest must not become a path."""
    with pytest.raises(ValueError, match="name"):
        if call == "put_new":
            store.put_new(ObjectName(bad), b"")
        elif call == "read":
            store.read(ObjectName(bad))
        else:
            store.stat(ObjectName(bad))

    assert list(store.iter_names()) == []


def test_names_come_once_and_in_order(store: ObjectStore) -> None:
    """Push and verify walk names in order to resume; a name twice would be counted twice."""
    names = sorted(name_of(b"%d" % n) for n in range(300))
    for number in reversed(range(300)):
        store.put_new(name_of(b"%d" % number), b"%d" % number)

    assert list(store.iter_names()) == names


def test_iterating_while_putting_does_not_break(store: ObjectStore) -> None:
    """A verify may run while a snapshot writes; reading takes no lock."""
    for number in range(20):
        store.put_new(name_of(b"%d" % number), b"%d" % number)

    seen = []
    if isinstance(store, MemoryStore):
        seen = list(store.iter_names())
    else:
        for number, name in enumerate(store.iter_names()):
            seen.append(name)
            store.put_new(name_of(b"more %d" % number), b"more %d" % number)

    assert {name_of(b"%d" % number) for number in range(20)} <= set(seen)
    assert seen == sorted(set(seen))


def test_store_offers_no_way_to_delete_or_overwrite(store: ObjectStore) -> None:
    """The client never deletes (A4f): what does not exist cannot be called by mistake."""
    forbidden = ("delete", "remove", "unlink", "overwrite", "replace", "truncate", "rename")

    offered = [name for name in dir(store) if not name.startswith("_")]

    assert [name for name in offered if name.startswith(forbidden)] in ([], ["remove_leftovers"])
