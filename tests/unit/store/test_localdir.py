"""A folder as a store: what foreign, swapped or closed things in it may not do."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from durarepo.core.errors import IntegrityError, StoreError
from durarepo.core.limits import PACK_MAX_BYTES
from durarepo.core.names import ObjectName
from durarepo.store.localdir import LocalDir
from durarepo.store.port import Put
from tests.doubles.children import mount, run_in_child

NAME = ObjectName("ab" + "0" * 62)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalDir]:
    """Give an empty store."""
    with LocalDir(bytes(tmp_path / "objects"), create=True) as opened:
        yield opened


def test_pack_is_named_by_the_digest_of_its_bytes(store: LocalDir, tmp_path: Path) -> None:
    """Anybody must be able to check a pack with sha256sum (format 5)."""
    name = store.put_pack(iter([b"one", b"", b"two"]))

    assert name == hashlib.sha256(b"onetwo").hexdigest()
    assert (tmp_path / "objects" / name[:2] / name).read_bytes() == b"onetwo"
    assert store.put_pack([b"onetwo"]) == name


def test_pack_under_a_name_with_other_bytes_is_an_alarm(store: LocalDir, tmp_path: Path) -> None:
    """A damaged pack must not be counted as the stored one."""
    name = store.put_pack([b"onetwo"])
    path = tmp_path / "objects" / name[:2] / name
    path.write_bytes(b"onetwX")

    with pytest.raises(IntegrityError) as caught:
        store.put_pack([b"onetwo"])

    assert caught.value.code == "integrity.object-differs"
    assert path.read_bytes() == b"onetwX"


def test_objects_and_folders_are_private(store: LocalDir, tmp_path: Path) -> None:
    """Sizes and times of objects are nobody's business."""
    store.put_new(NAME, b"data")

    found = [tmp_path / "objects" / "ab" / NAME, tmp_path / "objects" / "ab"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in found] == [0o600, 0o700]


def test_store_that_is_not_there_is_absent_and_not_made(tmp_path: Path) -> None:
    """An unmounted disk must not become an empty repository."""
    with pytest.raises(StoreError) as caught:
        LocalDir(bytes(tmp_path / "objects"))

    assert caught.value.code == "store.absent"
    assert not (tmp_path / "objects").exists()


def test_symlink_for_the_two_digit_folder_is_not_followed(store: LocalDir, tmp_path: Path) -> None:
    """It would take objects out of the repository, or foreign files for objects."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / NAME).write_bytes(b"foreign")
    (tmp_path / "objects" / "ab").symlink_to(elsewhere)

    for call in (store.read, store.stat, lambda name: store.put_new(name, b"data")):
        with pytest.raises(StoreError):
            call(NAME)

    assert [each.name for each in elsewhere.iterdir()] == [NAME]


def test_symlink_or_special_file_for_an_object_is_no_object(
    store: LocalDir, tmp_path: Path
) -> None:
    """A FIFO would hang a verify for ever; a symlink would read any file of the disk."""
    folder = tmp_path / "objects" / "ab"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (folder / NAME).symlink_to(tmp_path / "secret")
    fifo = ObjectName("ab" + "1" * 62)
    os.mkfifo(folder / fifo)

    for name in (NAME, fifo):
        assert store.stat(name) is None
        with pytest.raises(StoreError):
            store.read(name)
        with pytest.raises(StoreError):
            store.put_new(name, b"data")

    assert list(store.iter_names()) == []
    assert (tmp_path / "secret").read_bytes() == b"secret"


def test_foreign_names_are_passed_over_and_left(store: LocalDir, tmp_path: Path) -> None:
    """A store is often a shared folder; what is not an object is not ours."""
    store.put_new(NAME, b"data")
    for path in ("README", "zz/x", "ab/notes", "cd/" + NAME, "ab/.tmp-notes"):
        (tmp_path / "objects" / path).parent.mkdir(exist_ok=True)
        (tmp_path / "objects" / path).write_bytes(b"foreign")
    (tmp_path / "objects" / "ef").mkdir()
    (tmp_path / "objects" / os.fsdecode(b"\xff\xfe")).write_bytes(b"")

    assert list(store.iter_names()) == [NAME]
    assert list(store.iter_leftovers()) == []


def test_leftovers_are_found_beside_objects_and_above(store: LocalDir, tmp_path: Path) -> None:
    """A pack is unfinished in the top folder, since its name is not known yet."""
    store.put_new(NAME, b"data")
    left = [tmp_path / "objects" / (".tmp-" + "aa" * 16)]
    left.append(tmp_path / "objects" / "ab" / (".tmp-" + "bb" * 16))
    for path in left:
        path.write_bytes(b"half")

    assert list(store.iter_leftovers()) == [bytes(path) for path in left]
    assert list(store.iter_names()) == [NAME]


def test_object_longer_than_any_may_be_is_not_read(store: LocalDir, tmp_path: Path) -> None:
    """A sparse file of a terabyte must not be loaded (law 8)."""
    store.put_new(NAME, b"data")
    path = tmp_path / "objects" / "ab" / NAME
    os.truncate(path, PACK_MAX_BYTES + 1)

    with pytest.raises(IntegrityError) as caught:
        store.read(NAME)

    assert caught.value.code == "integrity.object-size"
    os.truncate(path, PACK_MAX_BYTES)
    assert len(store.read(NAME)) == PACK_MAX_BYTES


def test_full_disk_leaves_no_trace_of_the_object(tmp_path: Path) -> None:
    """A full disk must cost nothing that is stored, and must not be made worse by debris."""

    def work() -> None:
        mount("-t", "tmpfs", "-o", "size=1m", "none", str(tmp_path))
        with LocalDir(bytes(tmp_path / "objects"), create=True) as store:
            kept = store.put_pack([b"kept"])
            for call in (
                lambda: store.put_new(NAME, iter([b"x" * 600_000] * 3)),
                lambda: store.put_pack([b"x" * 600_000] * 3),
            ):
                with pytest.raises(StoreError) as caught:
                    call()
                assert caught.value.code == "store.full"
            assert list(store.iter_names()) == [kept]
            assert list(store.iter_leftovers()) == []
            assert store.put_new(NAME, b"x" * 600_000) is Put.CREATED

    run_in_child(work, own_mounts=True)


def test_two_writers_of_one_name_cannot_both_win(tmp_path: Path) -> None:
    """Whoever comes second must learn it, whatever the moment (A4g)."""
    for number in range(30):
        folder = bytes(tmp_path / str(number))
        go_reader, go_writer = os.pipe()
        children = []
        for word in (b"one" * 1000, b"two" * 1000):
            child = os.fork()
            if child == 0:
                with LocalDir(folder, create=True) as store:
                    os.close(go_writer)
                    os.read(go_reader, 1)
                    try:
                        store.put_new(NAME, [word])
                    except IntegrityError:
                        os._exit(7)
                os._exit(0)
            children.append(child)
        os.close(go_reader)
        os.close(go_writer)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        with LocalDir(folder) as store:
            assert sorted(codes) == [0, 7]
            assert store.read(NAME) == (b"one", b"two")[codes.index(0)] * 1000
