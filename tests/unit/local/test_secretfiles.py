"""Key files: each way in which another user could read or swap one is refused by its reason."""

import os
import secrets
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from durarepo.core.errors import KeyMaterialError, StoreError
from durarepo.local.secretfiles import SECRET_MAX_BYTES, read_secret, write_secret_new
from tests.doubles.children import UNPRIVILEGED, let_others_pass, mount, run_in_child

STRANGER = 12345


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """Give a good key file in a good folder."""
    path = tmp_path / "keys" / "notes" / "identity.key"
    write_secret_new(bytes(path), secrets.token_bytes(32))
    return path


def reason(path: Path) -> str:
    """Return why the key file is refused, after checking that the message shows no content."""
    content = b""
    if path.is_file():
        content = path.read_bytes()
    with pytest.raises(KeyMaterialError) as caught:
        read_secret(bytes(path))
    text = str(caught.value) + caught.value.hint
    assert not content or (content.hex() not in text and repr(content) not in text)
    return caught.value.code.removeprefix("keys.")


def acl(*rule: str) -> None:
    """Call the tool that people use to grant rights."""
    subprocess.run(["setfacl", *rule], check=True)


def test_good_key_file_is_read_whole(key: Path) -> None:
    """The refusals below are worth nothing if all is refused."""
    assert read_secret(bytes(key)) == key.read_bytes()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700


def _swap_for_link(key: Path) -> None:
    key.rename(key.with_name("real"))
    key.symlink_to("real")


def _swap_for_fifo(key: Path) -> None:
    key.unlink()
    os.mkfifo(key, 0o600)


def _swap_for_folder(key: Path) -> None:
    key.unlink()
    key.mkdir(mode=0o700)


REFUSALS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "mode-0644": ("mode", lambda key: key.chmod(0o644)),
    "mode-0640": ("mode", lambda key: key.chmod(0o640)),
    "mode-0620": ("mode", lambda key: key.chmod(0o620)),
    "mode-0601": ("mode", lambda key: key.chmod(0o601)),
    "mode-0604": ("mode", lambda key: key.chmod(0o604)),
    "stranger's": ("owner", lambda key: os.chown(key, STRANGER, STRANGER)),
    "acl-user": ("acl", lambda key: acl("-m", f"u:{STRANGER}:r", str(key))),
    "acl-group": ("acl", lambda key: acl("-m", f"g:{STRANGER}:r", str(key))),
    "acl-masked": ("acl", lambda key: acl("-m", f"u:{STRANGER}:r,m::-", str(key))),
    "acl-mask-only": ("acl", lambda key: acl("-m", "m::r", str(key))),
    "hard-link": ("linked", lambda key: os.link(key, key.parent.parent / "second")),
    "symlink": ("linked", _swap_for_link),
    "fifo": ("linked", _swap_for_fifo),
    "folder": ("linked", _swap_for_folder),
    "missing": ("missing", lambda key: key.unlink()),
    "missing-folder": ("missing", lambda key: key.parent.rename(key.parent.parent / "other")),
    "too-long": ("size", lambda key: key.write_bytes(b"x" * (SECRET_MAX_BYTES + 1))),
    "folder-0770": ("folder-mode", lambda key: key.parent.chmod(0o770)),
    "folder-0702": ("folder-mode", lambda key: key.parent.chmod(0o702)),
    "folder-sticky": ("folder-mode", lambda key: key.parent.chmod(0o1777)),
    "folder-stranger's": ("folder-mode", lambda key: os.chown(key.parent, STRANGER, STRANGER)),
    "folder-acl": ("acl", lambda key: acl("-m", f"u:{STRANGER}:rwx", str(key.parent))),
    "above-0777": ("folder-mode", lambda key: key.parent.parent.chmod(0o777)),
    "above-0775": ("folder-mode", lambda key: key.parent.parent.chmod(0o775)),
    "above-stranger's": ("folder-mode", lambda key: os.chown(key.parent.parent, STRANGER, -1)),
    "above-acl": ("acl", lambda key: acl("-m", f"g:{STRANGER}:rwx", str(key.parent.parent))),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_key_file_that_others_can_reach_is_refused_by_its_reason(key: Path, case: str) -> None:
    """A key that another user reads or swaps protects nothing (A5b)."""
    expected, spoil = REFUSALS[case]

    spoil(key)

    assert reason(key) == expected


ACCEPTED: dict[str, Callable[[Path], object]] = {
    "mode-0400": lambda key: key.chmod(0o400),
    "mode-0700": lambda key: key.chmod(0o700),
    "folder-0750": lambda key: key.parent.chmod(0o750),
    "folder-acl-read": lambda key: acl("-m", f"u:{STRANGER}:rx", str(key.parent)),
    "above-sticky-like-tmp": lambda key: key.parent.parent.chmod(0o1777),
    "longest": lambda key: key.write_bytes(b"x" * SECRET_MAX_BYTES),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_lets_nobody_in_is_accepted(key: Path, case: str) -> None:
    """Refusing what is safe teaches people to work around the check."""
    ACCEPTED[case](key)

    assert read_secret(bytes(key)) == key.read_bytes()


def test_symlink_of_this_user_on_the_way_is_followed(key: Path, tmp_path: Path) -> None:
    """Some systems have their homes behind a symlink of root."""
    (tmp_path / "way").symlink_to("keys")
    (tmp_path / "absolute").symlink_to(tmp_path / "keys" / ".." / "way")

    assert read_secret(bytes(tmp_path / "way" / "notes" / key.name)) == key.read_bytes()
    assert read_secret(bytes(tmp_path / "absolute" / "notes" / key.name)) == key.read_bytes()


def test_symlink_of_a_stranger_on_the_way_is_refused(key: Path, tmp_path: Path) -> None:
    """In a sticky folder a stranger may not swap our names, but may own the one we follow."""
    (tmp_path / "sticky").mkdir()
    (tmp_path / "sticky").chmod(0o1777)
    link = tmp_path / "sticky" / "way"
    link.symlink_to(tmp_path / "keys")
    assert read_secret(bytes(link / "notes" / key.name)) == key.read_bytes()

    os.lchown(link, STRANGER, STRANGER)

    assert reason(link / "notes" / key.name) == "linked"


def test_ring_of_symlinks_ends(tmp_path: Path) -> None:
    """A loop must not hang the start of every command."""
    (tmp_path / "ring").symlink_to("ring")

    assert reason(tmp_path / "ring" / "identity.key") == "linked"


def test_unprivileged_user_reads_own_keys_and_is_told_of_others(key: Path, tmp_path: Path) -> None:
    """The usual user is not root: own keys work, root's keys are unreadable and nothing else."""
    let_others_pass(key.parent)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    os.chown(home, UNPRIVILEGED, UNPRIVILEGED)

    def work() -> None:
        own = home / "keys" / "notes" / "identity.key"
        write_secret_new(bytes(own), b"own")
        assert read_secret(bytes(own)) == b"own"
        with pytest.raises(KeyMaterialError) as caught:
            read_secret(bytes(key))
        assert caught.value.code == "keys.unreadable"
        with pytest.raises(KeyMaterialError) as caught:
            read_secret(b"/etc/passwd")
        assert caught.value.code == "keys.mode"

    run_in_child(work, user=UNPRIVILEGED)


def test_written_key_is_never_written_over(key: Path) -> None:
    """An overwritten identity makes every backup unreadable."""
    before = key.read_bytes()

    with pytest.raises(KeyMaterialError) as caught:
        write_secret_new(bytes(key), b"new")

    assert caught.value.code == "keys.exists"
    assert key.read_bytes() == before
    assert [each.name for each in key.parent.iterdir()] == [key.name]


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda folder: folder.chmod(0o750), "folder-mode"),
        (lambda folder: folder.chmod(0o777), "folder-mode"),
        (lambda folder: acl("-d", "-m", f"u:{STRANGER}:r", str(folder)), "acl"),
    ],
    ids=["open-to-the-group", "open-to-all", "inherited-acl"],
)
def test_key_is_not_written_into_an_open_folder(
    tmp_path: Path, spoil: Callable[[Path], object], expected: str
) -> None:
    """A key file that could not be read back must not be made."""
    folder = tmp_path / "keys"
    folder.mkdir(mode=0o700)
    spoil(folder)

    with pytest.raises(KeyMaterialError) as caught:
        write_secret_new(bytes(folder / "identity.key"), b"new")

    assert caught.value.code == f"keys.{expected}"
    assert list(folder.iterdir()) == []


def test_full_disk_leaves_no_half_key(tmp_path: Path) -> None:
    """Half a key under its name would be taken for the key."""

    def work() -> None:
        mount("-t", "tmpfs", "-o", "size=16k,mode=0700", "none", str(tmp_path))
        with pytest.raises(StoreError) as caught:
            write_secret_new(bytes(tmp_path / "identity.key"), b"x" * SECRET_MAX_BYTES)
        assert caught.value.code == "store.full"
        assert list(tmp_path.iterdir()) == []

    run_in_child(work, own_mounts=True)
