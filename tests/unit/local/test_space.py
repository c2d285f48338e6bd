"""Room is asked for before anything is read, on the file system that will be written."""

from pathlib import Path

import pytest

from durarepo.core.errors import StoreError
from durarepo.local.space import check_space, free_space
from tests.doubles.children import mount, run_in_child


def test_too_little_room_is_told_before_the_work(tmp_path: Path) -> None:
    """Hours of reading that end in a full disk are hours lost (X6)."""

    def work() -> None:
        mount("-t", "tmpfs", "-o", "size=1m,nr_inodes=20", "none", str(tmp_path))
        there = bytes(tmp_path / "not" / "made" / "yet")

        free, inodes = free_space(there)
        assert 0 < free <= 1 << 20
        assert inodes is not None
        assert 0 < inodes < 20
        check_space(there, free, needed_files=inodes, what="the copy")
        for needed_bytes, needed_files in ((free + 1, 0), (0, inodes + 1)):
            with pytest.raises(StoreError) as caught:
                check_space(there, needed_bytes, needed_files=needed_files, what="the copy")
            assert caught.value.code == "store.space"
            assert caught.value.hint

    run_in_child(work, own_mounts=True)


def test_full_temporary_folder_of_the_system_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is staged there, so a small one must not stop a backup (X6)."""

    def work() -> None:
        (tmp_path / "tmp").mkdir()
        mount("-t", "tmpfs", "-o", "size=4k", "none", str(tmp_path / "tmp"))
        (tmp_path / "tmp" / "fill").write_bytes(b"x" * 4096)
        monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
        check_space(bytes(tmp_path / "state"), 1 << 20, what="the copy")

    run_in_child(work, own_mounts=True)
