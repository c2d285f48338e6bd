"""Keys outside every root: each way in which a backup could read them is refused."""

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from durarepo.core.errors import KeyMaterialError
from durarepo.local.placement import check_outside
from tests.doubles.children import UNPRIVILEGED, let_others_pass, mount, run_in_child


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a folder with `root`, `keys` beside it and `keys/notes/identity.key`."""
    for folder in ("root/inner", "keys/notes", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "keys" / "notes" / "identity.key").write_bytes(b"secret")
    return tmp_path


def is_refused(keys: Path, *roots: Path) -> bool:
    """Return whether the keys folder is refused; any other error fails the test."""
    try:
        check_outside(bytes(keys), [bytes(root) for root in roots], what="the keys folder")
    except KeyMaterialError as error:
        assert error.code == "keys.placement"
        assert error.hint
        return True
    return False


def test_keys_beside_the_root_are_accepted(place: Path) -> None:
    """The refusals below are worth nothing if all is refused."""
    assert not is_refused(place / "keys" / "notes", place / "root", place / "elsewhere")
    assert not is_refused(place / "keys" / "notes")


def test_names_that_only_begin_alike_are_not_taken_for_below(place: Path) -> None:
    """`/home/a/root-keys` does not lie in `/home/a/root`."""
    (place / "root-keys").mkdir()

    assert not is_refused(place / "root-keys", place / "root")


def _same(place: Path) -> Path:
    return place / "root"


def _under(place: Path) -> Path:
    (place / "root" / "keys").mkdir()
    return place / "root" / "keys"


def _not_there_yet(place: Path) -> Path:
    return place / "root" / "not" / "there"


def _dots(place: Path) -> Path:
    return place / "elsewhere" / ".." / "root" / "inner"


def _symlink_into(place: Path) -> Path:
    (place / "link").symlink_to(place / "root" / "inner")
    return place / "link" / "keys"


def _symlink_that_dangles_into(place: Path) -> Path:
    (place / "link").symlink_to("root/not-there-yet")
    return place / "link"


def _symlink_in_the_root_that_leads_out(place: Path) -> Path:
    (place / "root" / "link").symlink_to(place / "keys")
    return place / "root" / "link" / "notes"


def _symlink_through_the_root(place: Path) -> Path:
    (place / "root" / "out").symlink_to(place / "keys")
    (place / "link").symlink_to(place / "root" / "out")
    return place / "link" / "notes"


def _file_symlinked_into(place: Path) -> Path:
    (place / "root" / "real.key").write_bytes(b"secret")
    (place / "keys" / "notes" / "naming.key").symlink_to(place / "root" / "real.key")
    return place / "keys" / "notes"


def _contains_the_root(place: Path) -> Path:
    return place


def _hard_linked(place: Path) -> Path:
    os.link(place / "keys" / "notes" / "identity.key", place / "root" / "inner" / "x")
    return place / "keys" / "notes"


def _one_file_hard_linked(place: Path) -> Path:
    return _hard_linked(place) / "identity.key"


@pytest.mark.parametrize(
    "arrange",
    [
        _same,
        _under,
        _not_there_yet,
        _dots,
        _symlink_into,
        _symlink_that_dangles_into,
        _symlink_in_the_root_that_leads_out,
        _symlink_through_the_root,
        _file_symlinked_into,
        _contains_the_root,
        _hard_linked,
        _one_file_hard_linked,
    ],
)
def test_keys_that_a_root_reaches_are_refused(place: Path, arrange: Callable[[Path], Path]) -> None:
    """A backup that holds its own keys opens itself to whoever holds it (A5a)."""
    assert is_refused(arrange(place), place / "elsewhere", place / "root")


def test_root_given_through_a_symlink_is_the_same_root(place: Path) -> None:
    """The root's spelling must not matter."""
    (place / "alias").symlink_to("root")
    (place / "root" / "keys").mkdir()

    assert is_refused(place / "root" / "keys", place / "alias")


def test_root_of_the_whole_disk_holds_the_keys(place: Path) -> None:
    """No folder is outside `/`."""
    assert is_refused(place / "keys" / "notes", Path("/"))


def test_missing_root_is_compared_by_its_text(place: Path) -> None:
    """A root on an unmounted disk would swallow the keys as soon as it is back."""
    assert is_refused(place / "gone" / "keys", place / "gone")
    assert not is_refused(place / "keys" / "notes", place / "gone")


def _root_part_over_keys(place: Path) -> None:
    mount("--bind", str(place / "root" / "inner"), str(place / "elsewhere"))


def _root_part_above_keys(place: Path) -> None:
    (place / "root" / "inner" / "deep" / "keys").mkdir(parents=True)
    mount("--bind", str(place / "root" / "inner" / "deep"), str(place / "elsewhere"))


def _keys_into_root(place: Path) -> None:
    mount("--bind", str(place / "elsewhere"), str(place / "root" / "inner"))


def _above_keys_into_root(place: Path) -> None:
    (place / "elsewhere" / "keys").mkdir()
    mount("--bind", str(place / "elsewhere"), str(place / "root" / "inner"))


def _root_elsewhere_too(place: Path) -> None:
    mount("--bind", str(place / "root"), str(place / "elsewhere"))


def _other_file_system_twice(place: Path) -> None:
    mount("-t", "tmpfs", "none", str(place / "root" / "inner"))
    (place / "root" / "inner" / "keys").mkdir()
    mount("--bind", str(place / "root" / "inner"), str(place / "elsewhere"))


@pytest.mark.parametrize(
    ("arrange", "keys"),
    [
        (_root_part_over_keys, "elsewhere"),
        (_root_part_above_keys, "elsewhere/keys"),
        (_root_part_above_keys, "elsewhere/not-there-yet"),
        (_keys_into_root, "elsewhere"),
        (_keys_into_root, "elsewhere/not-there-yet"),
        (_above_keys_into_root, "elsewhere/keys"),
        (_root_elsewhere_too, "elsewhere"),
        (_root_elsewhere_too, "elsewhere/inner"),
        (_other_file_system_twice, "elsewhere/keys"),
    ],
)
def test_keys_that_a_mount_shows_in_a_root_are_refused(
    place: Path, arrange: Callable[[Path], object], keys: str
) -> None:
    """A bind mount makes one folder lie in two places; no path shows it (A5a)."""
    assert not is_refused(place / "elsewhere", place / "root")

    def work() -> None:
        arrange(place)
        assert is_refused(place / keys, place / "root")

    run_in_child(work, own_mounts=True)


def test_mounts_that_show_nothing_of_the_keys_are_accepted(place: Path) -> None:
    """Containers mount much; only what shows the keys counts."""

    def work() -> None:
        mount("-t", "tmpfs", "none", str(place / "root" / "inner"))
        mount("--bind", str(place / "root" / "inner"), str(place / "elsewhere"))
        assert not is_refused(place / "keys" / "notes", place / "root")
        (place / "own").mkdir()
        mount("-t", "tmpfs", "none", str(place / "own"))
        assert not is_refused(place / "own", place / "root")
        assert not is_refused(place / "own" / "keys", place / "root")

    run_in_child(work, own_mounts=True)


def test_nothing_is_opened_for_reading_before_the_refusal(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check comes before the key is read, so it must not read one itself (A5a)."""
    opened: list[bytes] = []
    real_open = os.open

    def spy(path: bytes, flags: int, *rest: int, **named: int) -> int:
        opened.append(path)
        assert flags & os.O_PATH
        return real_open(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", spy)
    check_outside(bytes(place / "keys" / "notes"), [bytes(place / "root")], what="the keys folder")

    assert opened
    assert not any(path.endswith(b".key") and b"/proc" in path for path in opened)


def test_commands_of_the_hint_mend_it(place: Path) -> None:
    """A hint that does not work costs more than none (keys refused: two ready commands)."""
    keys = place / "root" / "it's here" / "notes"
    keys.mkdir(parents=True)
    with pytest.raises(KeyMaterialError) as caught:
        check_outside(bytes(keys), [bytes(place / "root")], what="the keys folder")
    commands = caught.value.hint.replace("/etc/durarepo/keys", shlex.quote(str(place / "safe")))

    said = subprocess.run(
        ["sh", "-ec", commands + '; printf %s "$DURAREPO_KEYS"'],
        check=True,
        capture_output=True,
        text=True,
    )

    assert not keys.exists()
    assert not is_refused(Path(said.stdout) / "notes", place / "root")


def test_hint_never_moves_the_root_itself(place: Path) -> None:
    """Moving a keys folder that holds the root would move what is to be backed up."""
    with pytest.raises(KeyMaterialError) as caught:
        check_outside(bytes(place), [bytes(place / "root")], what="the keys folder")

    assert "mv " not in caught.value.hint
    assert "DURAREPO_KEYS=" in caught.value.hint


def test_hint_moves_no_keys_that_are_not_there_yet(place: Path) -> None:
    """Before init there is nothing to move; `mv` would fail and the hint with it."""
    keys = place / "root" / "keys" / "notes"
    with pytest.raises(KeyMaterialError) as caught:
        check_outside(bytes(keys), [bytes(place / "root")], what="the keys folder")

    assert "mv " not in caught.value.hint
    assert "DURAREPO_KEYS=" in caught.value.hint


def test_hint_names_only_a_folder_that_its_user_can_make(place: Path) -> None:
    """Nobody but root makes a folder in /home, where a home folder is what is kept."""
    home = place / "home" / "ana"
    home.mkdir(parents=True)
    os.chown(home, UNPRIVILEGED, UNPRIVILEGED)
    let_others_pass(home)

    def work() -> None:
        with pytest.raises(KeyMaterialError) as caught:
            check_outside(bytes(home / "keys"), [bytes(home)], what="the keys folder")
        assert "mkdir" not in caught.value.hint
        assert "DURAREPO_KEYS=" in caught.value.hint

    run_in_child(work, user=UNPRIVILEGED)


def test_hint_of_the_caller_comes_first(place: Path) -> None:
    """DURAREPO_KEYS does not move the folder of --out."""
    with pytest.raises(KeyMaterialError) as caught:
        check_outside(bytes(place / "root" / "x"), [bytes(place / "root")], what="it", hint="so")

    assert caught.value.hint == "so"


def test_unprivileged_user_gets_an_answer_too(place: Path) -> None:
    """Folders that this user cannot list must not turn the check off."""
    let_others_pass(place / "keys")
    (place / "root" / "keys").mkdir()
    (place / "root").chmod(0o711)

    def work() -> None:
        assert is_refused(place / "root" / "keys", place / "root")
        with pytest.raises(KeyMaterialError) as caught:
            check_outside(bytes(place / "closed" / "keys"), [bytes(place / "root")], what="keys")
        assert caught.value.code == "keys.placement-unknown"

    (place / "closed" / "keys").mkdir(parents=True)
    (place / "closed").chmod(0o700)
    run_in_child(work, user=UNPRIVILEGED)
