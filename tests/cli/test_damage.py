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
    (fresh.home / "work" / "notes" / "more").write_bytes(b"more")
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
