"""``remote list`` and ``remote check``, as a process, against a folder and servers."""

from pathlib import Path

import pytest

from tests.cli.harness import Cli
from tests.cli.schema import check
from tests.doubles.bad_server import bad_server
from tests.doubles.servers import Server


def name_remote(cli: Cli, name: str, url: str, **more: str) -> None:
    """Add a table to stream.toml."""
    lines = [
        f'name = "{name}"',
        f'url = "{url}"',
        *(f'{key} = "{one}"' for key, one in more.items()),
    ]
    with (cli.repository() / "stream.toml").open("a") as file:
        file.write("\n[[remote]]\n" + "\n".join(lines) + "\n")


def name_server(cli: Cli, name: str, server: Server, token: bytes = b"bearer a-token\n") -> None:
    """Add a table for a server, with its CA and credentials."""
    folder = cli.home / "etc"
    (folder / "ca.pem").write_bytes(server.ca)
    (folder / "credentials").touch(mode=0o600)
    (folder / "credentials").write_bytes(token)
    url = f"https://localhost:{server.port}/b/"
    name_remote(cli, name, url, ca=f"{folder}/ca.pem", credentials=f"{folder}/credentials")


def test_a_check_tells_what_a_server_does_and_is_remembered(fresh: Cli, tmp_path: Path) -> None:
    """What was found decides later how much is read back; it has to be seen and kept."""
    with bad_server(tmp_path / "pki", "overwrites", "lists-nothing") as (server, behaviour):
        name_server(fresh, "one", server)
        before = fresh.run("remote", "list", "--json").json()
        ran = fresh.run("remote", "check", "one", "--json")
        said = fresh.run("remote", "check", "one")
    after = fresh.run("remote", "list", "--json").json()

    check("remote", before)
    check("remote", ran.json())
    check("remote", after)
    assert (before["checked"], before["capabilities"]) == (None, None)
    found = ran.json()["capabilities"]
    assert isinstance(found, dict)
    assert [name for name, word in found.items() if word == "no"] == ["no_overwrite", "lists"]
    assert after["capabilities"] == found
    assert "no-overwrite  no: " in said.out
    assert {one.fields["authorization"] for one in behaviour.asked} == {"Bearer a-token"}
    assert not [path for path in fresh.state().rglob("*") if _holds(path, b"a-token")]
    assert "a-token" not in ran.out + said.out + said.err


def _holds(path: Path, data: bytes) -> bool:
    return path.is_file() and data in path.read_bytes()


def test_nothing_of_the_stream_is_sent_by_a_check(fresh: Cli, tmp_path: Path) -> None:
    """A check is made before anybody decides to trust the server."""
    assert fresh.run("snapshot").code == 0
    own = {path.name for path in (fresh.repository() / "objects").rglob("?" * 64)}
    with bad_server(tmp_path / "pki") as (server, behaviour):
        name_server(fresh, "one", server)
        assert fresh.run("remote", "check", "one").code == 0

    assert own.isdisjoint(one.path.rpartition("/")[2] for one in behaviour.asked)
    bodies = [one.body for one in behaviour.asked]
    assert not [body for body in bodies if b"content" in body or b"notes" in body]


def test_a_folder_is_checked_too(fresh: Cli) -> None:
    """A disk is a remote like any other, and protects nothing."""
    disk = fresh.home / "disk"
    disk.mkdir()
    name_remote(fresh, "disk", f"file://{disk}")

    found = fresh.run("remote", "check", "disk", "--json").json()["capabilities"]

    assert isinstance(found, dict)
    assert (found["create_only"], found["no_delete"]) == ("yes", "no")


@pytest.mark.parametrize(
    ("case", "exit_code", "code"),
    [
        ("unknown", 2, "select.no-remote"), ("http", 2, "config.remote-url"),
        ("not-mounted", 30, "remote.absent"), ("other-ca", 30, "remote.tls"),
        ("open-credentials", 12, "keys.mode"), ("no-ca-file", 2, "config.ca"),
    ],
)  # fmt: skip
def test_a_remote_that_cannot_be_used_is_told_apart(
    fresh: Cli, tmp_path: Path, case: str, exit_code: int, code: str
) -> None:
    """Each calls for something else: a typing mistake, a mount, a certificate, a mode."""
    with bad_server(tmp_path / "pki") as (server, behaviour):
        if case == "http":
            name_remote(fresh, "one", f"http://localhost:{server.port}/b/")
        elif case == "not-mounted":
            name_remote(fresh, "one", f"file://{fresh.home}/disk")
        elif case != "unknown":
            name_server(fresh, "one", server)
        if case == "open-credentials":
            (fresh.home / "etc/credentials").chmod(0o640)
        if case == "no-ca-file":
            (fresh.home / "etc/ca.pem").unlink()
        if case == "other-ca":
            with bad_server(tmp_path / "other") as (other, _):
                (fresh.home / "etc/ca.pem").write_bytes(other.ca)
        ran = fresh.run("remote", "check", "one", "--json")

    assert (ran.code, ran.error()["code"]) == (exit_code, code)
    assert behaviour.asked == []


def test_a_failed_check_leaves_what_was_known(fresh: Cli, tmp_path: Path) -> None:
    """A server that is down for an hour has not lost its capabilities."""
    with bad_server(tmp_path / "pki") as (server, _):
        name_server(fresh, "one", server)
        assert fresh.run("remote", "check", "one").code == 0
        known = fresh.run("remote", "list", "--json").json()
        (fresh.home / "etc/credentials").write_bytes(b"nonsense")
        assert fresh.run("remote", "check", "one").code == 12

    assert fresh.run("remote", "list", "--json").json() == known


def test_a_stream_without_a_remote_says_that_there_is_no_copy(fresh: Cli) -> None:
    """An empty answer would look like an answer."""
    ran = fresh.run("remote", "list")

    assert ran.code == 0
    assert "no second copy" in ran.out
    assert fresh.run("remote", "list", "--json").stdout == b""
