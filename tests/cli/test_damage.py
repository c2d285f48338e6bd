"""Damage: what fails names the object and says what to do, at the command that met it."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.harness import Cli
from tests.doubles.children import mount


@pytest.fixture
def kept(fresh: Cli) -> Cli:
    """A stream with two manifests."""
    assert fresh.run("snapshot").code == 0
    (fresh.home / "agent" / "notes" / "more").write_bytes(b"more")
    assert fresh.run("snapshot").code == 0
    return fresh


def _objects(cli: Cli, sequence: int, kind: str) -> list[Path]:
    told = cli.run("show", str(sequence), "--json").json()["objects"]
    assert isinstance(told, list)
    names = [str(one["name"]) for one in told if one["kind"] == kind]
    return [cli.repository() / "objects" / name[:2] / name for name in names]


def _unnamed(cli: Cli) -> set[Path]:
    """Return the objects that no manifest names: the registry."""
    named = {
        path
        for number in (1, 2)
        for kind in ("pack", "manifest")
        for path in _objects(cli, number, kind)
    }
    return set((cli.repository() / "objects").glob("*/*")) - named


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(data)


@pytest.mark.parametrize(("kind", "number"), [("registry", 1), ("manifest", 2)])
def test_damage_of_a_registry_or_manifest_names_it_and_its_object(
    kept: Cli, kind: str, number: int
) -> None:
    """Who is told that "sealed bytes do not open" does not know which file to bring back."""
    (damaged,) = _objects(kept, 2, kind) or _unnamed(kept)
    _flip(damaged)

    error = kept.run("ls", "2", "--json").error()

    assert str(error["code"]).startswith("integrity.")
    assert damaged.name in str(error["message"])
    assert f"{kind} {number}" in str(error["message"])
    assert "objects/" in str(error["hint"])


def test_a_checkout_that_meets_damage_says_what_can_still_be_had(kept: Cli, tmp_path: Path) -> None:
    """One damaged pack must not look like the loss of everything."""
    for pack in _objects(kept, 1, "pack"):
        _flip(pack)

    error = kept.run("checkout", "--scratch", str(tmp_path / "out"), "--json").error()

    assert str(error["code"]).startswith("integrity.")
    for way in ("objects/", "--path", "--at", "durarepo verify --packs"):
        assert way in str(error["hint"])


def test_a_full_disk_of_a_checkout_names_the_destination(kept: Cli, small_disk: Path) -> None:
    """Space freed where the source lies does not help."""
    place = small_disk / "out"

    ran = kept.run("checkout", "--scratch", str(place), "--json")

    assert (ran.code, ran.error()["code"]) == (14, "store.full")
    assert str(place) in str(ran.error()["message"])


def test_a_catalogue_without_space_is_told_as_a_full_disk(tmp_path: Path) -> None:
    """A catalogue that has no room is not one that is broken."""
    from durarepo.core.errors import StoreError
    from durarepo.local.catalog import Catalog

    folder = tmp_path / "tiny"
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=4k", "tmpfs", str(folder))
    try:
        with pytest.raises(StoreError) as caught:
            Catalog(os.fsencode(folder / "catalog.db"))
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)

    assert caught.value.code == "store.full"


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("locator.key", b"", "keys.malformed"),
        ("naming.key", b"durarepo naming key\n", "keys.malformed"),
        ("locator.key", None, "keys.missing"),
    ],
)
def test_a_key_that_is_no_key_is_named(
    fresh: Cli, name: str, content: bytes | None, code: str
) -> None:
    """Six files lie there; who is to bring one back has to know which."""
    key = fresh.keys() / name
    key.unlink()
    if content is not None:
        key.touch(mode=0o600)
        key.write_bytes(content)

    error = fresh.run("status", "--json").error()

    assert error["code"] == code
    assert str(key) in str(error["message"])
    assert error["hint"]


def test_a_wrong_key_of_the_configuration_names_the_file_and_those_there_are(fresh: Cli) -> None:
    """The file is edited by hand, by people who do not know where it lies."""
    place = fresh.repository() / "stream.toml"
    place.write_text(place.read_text() + 'exclud = ["*.tmp"]\n')

    error = fresh.run("status", "--json").error()

    assert error["code"] == "config.unknown-key"
    assert "durarepo/notes/stream.toml" in str(error["message"])
    assert "exclude, include, one_filesystem, path" in str(error["hint"])


def test_keys_that_are_there_are_not_called_leftovers_alone(fresh: Cli) -> None:
    """Moving the keys of a living stream away loses all that it keeps."""
    (fresh.repository() / "stream.toml").unlink()
    call = ("init", "--stream", "notes", "--root", "agent/notes", "--json")

    error = fresh.run(*call).error()

    assert error["code"] == "config.exists"
    assert "living stream" in str(error["hint"])


def test_no_stream_is_called_as_the_folder_of_restores(cli: Cli) -> None:
    """Its state would lie among restored folders, and they in it."""
    folder = cli.home / "agent" / "scratch"
    folder.mkdir()
    (folder / "a").write_text("a")

    made = cli.run("init", "--stream", "scratch", "--root", str(folder), "--json")
    quick = cli.run("quickstart", str(folder), "--json")

    assert (made.code, made.error()["code"]) == (2, "config.stream")
    assert quick.json()["stream"] == "scratch-2"
