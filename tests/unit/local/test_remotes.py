"""Remotes as stream.toml names them: opened with their CA and credentials, checked, noted."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from durarepo.core.errors import ConfigurationError, KeyMaterialError, RemoteError
from durarepo.core.names import ObjectName
from durarepo.local.configuration import RemoteConfig, parse_configuration
from durarepo.local.remotes import Checked, RemoteNotes, check_apart, check_remote, open_remote
from durarepo.store.capabilities import Can, Capabilities
from durarepo.store.folder import FolderRemote
from tests.doubles.bad_server import bad_server
from tests.doubles.servers import QuickWaits, Server

NAME = ObjectName("5a" * 32)
TOP = 'stream = "notes"\ncompartment = "notes"\n'


def configured(
    folder: Path, server: Server, credentials: bytes = b"bearer a-token\n"
) -> RemoteConfig:
    """Write CA and credentials of a server, and return the table that names them."""
    (folder / "ca.pem").write_bytes(server.ca)
    (folder / "credentials").touch(mode=0o600)
    (folder / "credentials").write_bytes(credentials)
    return RemoteConfig(
        name="one",
        url=f"https://localhost:{server.port}/b/",
        ca=bytes(folder / "ca.pem"),
        credentials=bytes(folder / "credentials"),
    )


def test_a_server_is_opened_with_its_ca_and_credentials(tmp_path: Path) -> None:
    """What the operator wrote into two files is what is used, and nothing else."""
    with bad_server(tmp_path / "pki") as (server, behaviour):
        config = configured(tmp_path, server)
        with closing(open_remote(config, waits=QuickWaits())) as remote:
            remote.put_new(NAME, b"x")

    assert behaviour.objects[NAME] == b"x"
    assert {one.fields["authorization"] for one in behaviour.asked} == {"Bearer a-token"}


@pytest.mark.parametrize(("mode", "content", "code"), [
    (0o644, b"bearer a-token\n", "keys.mode"), (0o600, b"a-token\n", "keys.malformed"),
    (0o600, b"", "keys.malformed"), (None, b"", "keys.missing"),
])  # fmt: skip
def test_credentials_that_are_open_malformed_or_gone_are_refused(
    tmp_path: Path, mode: int | None, content: bytes, code: str
) -> None:
    """A token that others can read is theirs; no credentials must not mean 'without'."""
    with bad_server(tmp_path / "pki") as (server, behaviour):
        config = configured(tmp_path, server, content)
        if mode is None:
            (tmp_path / "credentials").unlink()
        else:
            (tmp_path / "credentials").chmod(mode)

        with pytest.raises(KeyMaterialError) as caught:
            open_remote(config, waits=QuickWaits())

    assert caught.value.code == code
    assert behaviour.asked == []


def test_a_ca_file_that_is_gone_does_not_mean_any_ca(tmp_path: Path) -> None:
    """The operator narrowed it to one authority; a lost file must not widen that."""
    with bad_server(tmp_path / "pki") as (server, _):
        config = configured(tmp_path, server)
        (tmp_path / "ca.pem").unlink()

        with pytest.raises(ConfigurationError) as caught:
            open_remote(config, waits=QuickWaits())

    assert caught.value.code == "config.ca"


def test_a_folder_is_opened_and_never_made(tmp_path: Path) -> None:
    """The mount point of a disk that is not there is no remote."""
    config = RemoteConfig(name="disk", url=f"file://{tmp_path}")
    with closing(open_remote(config, waits=QuickWaits())) as remote:
        assert isinstance(remote, FolderRemote)
    with pytest.raises(RemoteError) as caught:
        open_remote(RemoteConfig(name="disk", url=f"file://{tmp_path}/no"), waits=QuickWaits())

    assert caught.value.code == "remote.absent"


@pytest.mark.parametrize(("found", "reads"), [(Can.YES, 0), (Can.NO, 1), (Can.UNKNOWN, 1)])
def test_a_reported_digest_is_believed_only_where_it_was_seen_true(
    tmp_path: Path, found: Can, reads: int
) -> None:
    """Nothing is assumed: without a check, what is there is read back."""
    name = ObjectName("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881")
    with bad_server(tmp_path / "pki") as (server, behaviour):
        behaviour.objects[name] = b"x"  # its digest is the name
        known = Capabilities(reports_digest=found)
        config = configured(tmp_path, server)
        with closing(open_remote(config, waits=QuickWaits(), known=known)) as remote:
            remote.put_new(name, b"x")

    assert len([one for one in behaviour.asked if one.method == "GET"]) == reads


def test_a_check_finds_the_same_through_the_configuration(tmp_path: Path) -> None:
    """The check of a server and that of a folder, by URL."""
    with bad_server(tmp_path / "pki", "lists-nothing") as (server, _):
        found = check_remote(configured(tmp_path, server), waits=QuickWaits())
    folder = check_remote(RemoteConfig(name="disk", url=f"file://{tmp_path}"), waits=QuickWaits())

    assert found.lists is Can.NO
    assert found.create_only is Can.YES
    assert folder.no_delete is Can.NO


@pytest.mark.parametrize("place", ["own", "own/objects", "link", "link/keys", ""])
def test_a_folder_of_the_stream_is_no_remote(tmp_path: Path, place: str) -> None:
    """Probes would be written among the objects, the keys or the files, and stay there."""
    (tmp_path / "own/objects").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "own")
    own = [bytes(tmp_path / "own")]

    with pytest.raises(ConfigurationError) as caught:
        check_apart(RemoteConfig(name="disk", url=f"file://{tmp_path}/{place}"), own)
    check_apart(RemoteConfig(name="disk", url=f"file://{tmp_path}/owner"), own)

    assert caught.value.code == "config.remote-url"


@pytest.mark.parametrize("at", [-1, 10**18])
def test_a_note_of_no_time_is_as_none(tmp_path: Path, at: int) -> None:
    """It would be shown as checked at no time."""
    notes = RemoteNotes(bytes(tmp_path))
    config = RemoteConfig(name="one", url="u")
    notes.note(config, Checked(at=at, capabilities=Capabilities()))

    assert notes.of(config) is None


def test_a_note_is_believed_for_its_url_only(tmp_path: Path) -> None:
    """Who points the name at another server must not inherit what the old one did."""
    notes = RemoteNotes(bytes(tmp_path / "state"))
    config = RemoteConfig(name="one", url="https://mirror.example/a/")
    checked = Checked(at=1_800_000_000, capabilities=Capabilities(create_only=Can.YES))
    notes.note(config, checked)
    notes.note(RemoteConfig(name="two", url="file:///x"), checked)

    assert notes.of(config) == checked
    assert notes.of(RemoteConfig(name="one", url="https://mirror.example/b/")) is None
    assert notes.of(RemoteConfig(name="three", url=config.url)) is None


@pytest.mark.parametrize(
    "damage", [b"", b"[]", b"{", b'{"one": 5}', b'{"one": {"url": "u"}}', b"\xff"]
)
def test_a_damaged_note_is_as_none(tmp_path: Path, damage: bytes) -> None:
    """Nothing is known then, and more is read back."""
    notes = RemoteNotes(bytes(tmp_path))
    Path(tmp_path / "remotes.json").write_bytes(damage)
    config = RemoteConfig(name="one", url="u")

    assert notes.of(config) is None

    notes.note(config, Checked(at=5, capabilities=Capabilities()))
    assert json.loads((tmp_path / "remotes.json").read_bytes())["one"]["at"] == 5


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ('name = "a"\nurl = "http://mirror.example/"', "config.remote-url"),
        ('name = "a"\nurl = "https://u:p@mirror.example/"', "config.remote-url"),
        ('name = "A b"\nurl = "file:///x"', "config.invalid"),
        (
            'name = "a"\nurl = "file:///x"\n[[remote]]\nname = "a"\nurl = "file:///y"',
            "config.invalid",
        ),
        ('name = "a"\nurl = "file:///x"\nverify = false', "config.unknown-key"),
        ('name = "a"\nurl = "file:///x"\ninsecure = true', "config.unknown-key"),
    ],
)
def test_a_remote_that_cannot_be_is_refused_when_stream_toml_is_read(table: str, code: str) -> None:
    """A copy of stream.toml goes into every manifest: a password in it would go along (A4d)."""
    with pytest.raises(ConfigurationError) as caught:
        parse_configuration(f"{TOP}[[remote]]\n{table}\n".encode())

    assert caught.value.code == code
