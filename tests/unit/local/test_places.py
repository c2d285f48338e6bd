"""Where things lie: the table of the specification, for users and for root."""

import os
from pathlib import Path

import pytest

from durarepo.core.errors import ConfigurationError, RepositoryStateError, StoreError
from durarepo.local.places import bases_of, find_repository, list_repositories, places_of
from tests.doubles.children import UNPRIVILEGED, run_in_child

USER = 1000


@pytest.mark.parametrize(
    ("environment", "user", "expected"),
    [
        (
            {"HOME": "/home/a"},
            USER,
            (
                b"/home/a/.local/share/durarepo/notes",
                b"/home/a/.config/durarepo/keys/notes",
                b"/home/a/.local/state/durarepo/notes",
            ),
        ),
        (
            {"XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"},
            USER,
            (b"/d/durarepo/notes", b"/c/durarepo/keys/notes", b"/s/durarepo/notes"),
        ),
        (
            {"HOME": "/home/a", "XDG_DATA_HOME": "relative", "XDG_STATE_HOME": ""},
            USER,
            (
                b"/home/a/.local/share/durarepo/notes",
                b"/home/a/.config/durarepo/keys/notes",
                b"/home/a/.local/state/durarepo/notes",
            ),
        ),
        (
            {"HOME": "/home/a", "XDG_DATA_HOME": "/d"},
            0,
            (
                b"/var/lib/durarepo/notes",
                b"/etc/durarepo/keys/notes",
                b"/var/lib/durarepo/state/notes",
            ),
        ),
        (
            {"HOME": "/home/a", "DURAREPO_KEYS": "/k", "DURAREPO_STATE": "/t/"},
            USER,
            (b"/home/a/.local/share/durarepo/notes", b"/k/notes", b"/t/notes"),
        ),
        (
            {"HOME": "/home/\udcff"},
            USER,
            (
                b"/home/\xff/.local/share/durarepo/notes",
                b"/home/\xff/.config/durarepo/keys/notes",
                b"/home/\xff/.local/state/durarepo/notes",
            ),
        ),
    ],
)
def test_places_follow_the_table(
    environment: dict[str, str], user: int, expected: tuple[bytes, bytes, bytes]
) -> None:
    """Timers, people and backups of the keys rely on these paths."""
    places = places_of("notes", bases=bases_of(environment, user_id=user))

    assert (places.repository, places.keys, places.state) == expected


def test_without_any_home_the_call_is_refused(tmp_path: Path) -> None:
    """Guessing would put keys into the current folder."""
    for environment in ({}, {"HOME": ""}, {"HOME": "relative"}, {"XDG_DATA_HOME": str(tmp_path)}):
        with pytest.raises(ConfigurationError) as caught:
            bases_of(environment, user_id=USER)
        assert caught.value.code == "config.home"


@pytest.mark.parametrize("stream", ["", "..", "a/b", "A", "-a", "a" * 64, "a\n", "é"])
def test_what_is_no_stream_id_never_becomes_a_path(stream: str) -> None:
    """`../keys` as a stream would put the repository over the keys."""
    with pytest.raises(ConfigurationError) as caught:
        places_of(stream, bases=bases_of({"HOME": "/home/a"}, user_id=USER))

    assert caught.value.code == "config.stream"
    assert caught.value.message.isprintable()


def make(folder: Path) -> bytes:
    """Make what counts as a repository."""
    folder.mkdir(parents=True)
    (folder / "stream.toml").write_bytes(b"")
    return bytes(folder)


def found(tmp_path: Path, given: bytes | None = None, **environment: str) -> bytes:
    """Return what is found with the data folder of a test."""
    environment = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), **environment}
    bases = bases_of(environment, user_id=USER)
    return find_repository(environment, bases=bases, given=given)


def test_only_repository_is_taken_and_several_have_to_be_named(tmp_path: Path) -> None:
    """Taking one of several would back up or restore the wrong stream."""
    with pytest.raises(RepositoryStateError) as absent:
        found(tmp_path)
    first = make(tmp_path / "durarepo" / "first")
    (tmp_path / "durarepo" / "state").mkdir()  # root keeps its state beside the repositories
    make(tmp_path / "durarepo" / "Not-a-stream")
    assert found(tmp_path) == first

    second = make(tmp_path / "durarepo" / "second")
    with pytest.raises(ConfigurationError) as several:
        found(tmp_path)

    assert absent.value.code == "repository.absent"
    assert several.value.code == "select.several"
    assert os.fsdecode(first) in several.value.message
    assert os.fsdecode(second) in several.value.message


def test_named_repository_wins_and_is_never_replaced_by_another(tmp_path: Path) -> None:
    """A wrong --repo must not silently become the usual one."""
    make(tmp_path / "durarepo" / "usual")
    named, variable = make(tmp_path / "named"), make(tmp_path / "variable")

    assert found(tmp_path, named) == named
    assert found(tmp_path, DURAREPO_REPO=os.fsdecode(variable)) == variable
    assert found(tmp_path, named, DURAREPO_REPO=os.fsdecode(variable)) == named
    with pytest.raises(RepositoryStateError):
        found(tmp_path, bytes(tmp_path / "gone"))
    with pytest.raises(RepositoryStateError):
        found(tmp_path, DURAREPO_REPO=str(tmp_path / "gone"))


def test_relative_name_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command may change its folder; the repository may not change with it."""
    named = make(tmp_path / "named")
    monkeypatch.chdir(tmp_path)

    assert found(tmp_path, b"named") == named
    assert found(tmp_path, DURAREPO_REPO="./named/") == named


def test_folder_that_cannot_be_listed_is_not_an_empty_one(tmp_path: Path) -> None:
    """'No repository' would make a person run init beside the real one."""
    make(tmp_path / "durarepo" / "notes")
    (tmp_path / "durarepo").chmod(0o700)

    def work() -> None:
        with pytest.raises(StoreError) as caught:
            list_repositories(bases_of({"XDG_DATA_HOME": str(tmp_path), "HOME": "/"}, user_id=USER))
        assert caught.value.code == "store.permission"

    run_in_child(work, user=UNPRIVILEGED)
