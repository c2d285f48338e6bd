"""A new stream: all of it made, or refused before anything was."""

import os
import stat
from pathlib import Path

import pytest

from durarepo.core.errors import ConfigurationError, DurarepoError, KeyMaterialError, SourceError
from durarepo.crypto import primitives
from durarepo.format.keytext import encode_key, parse_key
from durarepo.local.places import Places, bases_of, places_of
from durarepo.operations.init import Initialised, InitRequest, initialise
from durarepo.repository.repository import open_repository

NOW = 1_800_000_000


def _places(folder: Path) -> Places:
    return places_of("notes", bases=bases_of({"HOME": str(folder / "home")}, user_id=1))


def _init(folder: Path, **given: object) -> Initialised:
    root = folder / "root"
    root.mkdir(exist_ok=True)
    wanted = {"stream": "notes", "roots": (bytes(root),), "places": _places(folder)} | given
    return initialise(InitRequest(**wanted), now=NOW)  # type: ignore[arg-type]  # any field


def _made(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_new_stream_opens_and_says_what_is_still_open(tmp_path: Path) -> None:
    """The first command must leave something that works, and name what it cannot do itself."""
    done = _init(tmp_path)

    with open_repository(_places(tmp_path)) as repository:
        assert repository.stream == "notes"
        assert repository.record.compartment == "notes"
        assert repository.registry.registry.version == 1
        assert repository.root_paths == [bytes(tmp_path / "root")]
    assert done.todo == ("human", "remote", "escrow", "timer", "identity-on-this-machine")
    assert os.path.isfile(done.card)


def test_every_key_file_is_for_this_user_alone(tmp_path: Path) -> None:
    """A key that others can read is no key."""
    done = _init(tmp_path)

    folder = Path(os.fsdecode(done.keys))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(list(folder.iterdir())) == 9
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_a_put_only_machine_keeps_nothing_that_opens_a_backup(tmp_path: Path) -> None:
    """Who takes over that machine must not be able to read what it backed up."""
    out = tmp_path / "away"
    done = _init(tmp_path, put_only=True, out=bytes(out))

    assert {path.name for path in out.iterdir()} == {
        "identity.key",
        "owner.key",
        "notes.card",
        "notes.keys",
    }
    here = {path.name for path in Path(os.fsdecode(done.keys)).iterdir()}
    assert here == {"signing.key", "naming.key", "locator.key", "owner.pub", "recipients"}
    assert done.todo == ("human", "remote", "escrow", "timer")
    identity = parse_key("identity", (out / "identity.key").read_bytes())
    for path in (tmp_path / "home").rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert identity not in data
            assert identity.hex().encode() not in data


def test_again_for_the_same_stream_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    """A second init that made new keys would make the first one's backups unreadable."""
    _init(tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in _made(tmp_path)}

    with pytest.raises(ConfigurationError) as caught:
        _init(tmp_path)

    assert caught.value.code == "config.exists"
    assert {name: (tmp_path / name).read_bytes() for name in _made(tmp_path)} == before


@pytest.mark.parametrize(
    ("given", "error", "code"),
    [
        ({"stream": "Notes"}, ConfigurationError, "config.stream"),
        ({"compartment": "a b"}, ConfigurationError, "config.stream"),
        ({"roots": ()}, ConfigurationError, "config.no-root"),
        ({"roots": (b"/nowhere/at/all",)}, SourceError, "source.root-missing"),
        ({"roots": (b"/etc/passwd",)}, SourceError, "source.root-not-directory"),
        ({"put_only": True}, ConfigurationError, "config.put-only"),
        ({"out": b"/tmp"}, ConfigurationError, "config.put-only"),
        ({"recipients": ("no key",)}, KeyMaterialError, "keys.malformed"),
    ],
)
def test_what_is_refused_leaves_nothing(
    tmp_path: Path, given: dict[str, object], error: type[DurarepoError], code: str
) -> None:
    """Half a stream stands in the way of the next try."""
    with pytest.raises(error) as caught:
        _init(tmp_path, **given)

    assert caught.value.code == code
    assert _made(tmp_path) == []


def test_a_root_that_holds_the_keys_is_refused(tmp_path: Path) -> None:
    """Keys that are backed up under themselves are lost together with what they open."""
    places = _places(tmp_path)
    os.makedirs(os.path.dirname(places.keys))
    with pytest.raises(KeyMaterialError) as caught:
        _init(tmp_path, roots=(bytes(tmp_path / "home"),))

    assert caught.value.code == "keys.placement"
    assert _made(tmp_path) == []


@pytest.mark.parametrize("put_only", [False, True])
def test_a_folder_that_others_may_write_is_refused_before_anything_is_made(
    tmp_path: Path,
    put_only: bool,  # noqa: FBT001  # given by name
) -> None:
    """Otherwise the next try, after a chmod, would be told that the stream exists."""
    loose = tmp_path / ("away" if put_only else "home")
    loose.mkdir()
    loose.chmod(0o777)  # what is refused
    more = {"put_only": True, "out": bytes(loose)} if put_only else {}

    with pytest.raises(KeyMaterialError) as caught:
        _init(tmp_path, **more)
    assert caught.value.code == "keys.folder-mode"
    assert _made(tmp_path) == []
    loose.chmod(0o700)

    assert _init(tmp_path, **more).stream == "notes"


def test_a_card_that_is_there_already_is_not_touched(tmp_path: Path) -> None:
    """It may be the only way to another stream's backups."""
    out = tmp_path / "away"
    out.mkdir(mode=0o700)
    (out / "notes.card").write_bytes(b"another card")

    with pytest.raises(ConfigurationError) as caught:
        _init(tmp_path, put_only=True, out=bytes(out))

    assert caught.value.code == "config.exists"
    assert _made(tmp_path) == ["away/notes.card"]
    assert (out / "notes.card").read_bytes() == b"another card"


def test_more_recipients_are_registered_up_to_the_stanzas(tmp_path: Path) -> None:
    """Every recipient must have a stanza in each pack; a fifth would have none."""
    keys = [encode_key("recipient", primitives.recipient_of(os.urandom(32))) for _ in range(3)]
    with pytest.raises(ConfigurationError):
        _init(tmp_path, recipients=tuple(keys))
    assert _made(tmp_path) == []

    _init(tmp_path, recipients=tuple(keys[:2]))

    with open_repository(_places(tmp_path)) as repository:
        assert len(repository.record.current.data_recipients) == 4
