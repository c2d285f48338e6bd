"""`durarepo-mirror` as a process: what good, slow, broken and hostile clients get from it."""

import base64
import hashlib
import http.client
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from durarepo.core.limits import PACK_MAX_BYTES
from durarepo.core.secret import Secret
from durarepo.mirror.access import Right, make_token
from durarepo.store.credentials import parse_credentials
from durarepo.store.tls import verifying_context
from tests.doubles.children import mount
from tests.doubles.servers import (
    Server,
    end,
    mirror_server,
    port_of,
    raw_connection,
    start_mirror,
)

DATA = hashlib.shake_256(b"an object").digest(100_000)
NAME = "5a" * 32
OTHER = "5b" * 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Status, fields in lower case, and bytes."""

    status: int
    fields: dict[str, str]
    data: bytes


def digest_field(data: bytes) -> str:
    """Return the digest of bytes as a field has it."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"


def connect(server: Server) -> http.client.HTTPSConnection:
    """Return a connection of the standard library to a server."""
    context = verifying_context(server.ca)
    return http.client.HTTPSConnection("localhost", server.port, context=context, timeout=20)


def ask(
    server: Server, method: str, path: str, *, token: Secret | None = None,
    body: bytes | None = None, fields: dict[str, str] | None = None,
) -> Answer:  # fmt: skip
    """Ask one thing on a connection of its own."""
    connection = connect(server)
    sent = dict(fields or {})
    if token is not None:
        sent["Authorization"] = token.reveal().decode()
    try:
        connection.request(method, path, body, sent)
        response = connection.getresponse()
        named = {name.lower(): value for name, value in response.getheaders()}
        return Answer(status=response.status, fields=named, data=response.read())
    finally:
        connection.close()


class Base:
    """One base of a server, with its token."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.scope = server.next_scope()
        self.token = server.tokens[self.scope]

    def path(self, name: str) -> str:
        """Return the path of an object."""
        return f"/{self.scope}/{name[:2]}/{name}"

    def ask(self, method: str, name: str, **more: str) -> Answer:
        """Ask for an object, with fields given by name."""
        fields = {key.replace("_", "-"): value for key, value in more.items()}
        return ask(self.server, method, self.path(name), token=self.token, fields=fields)

    def put(
        self,
        name: str,
        data: bytes,
        claimed: bytes | None = None,
        fields: dict[str, str] | None = None,
    ) -> Answer:
        """Put an object, with the digest of other bytes if they are given."""
        claim = {"Content-Digest": digest_field(data if claimed is None else claimed)}
        path, sent = self.path(name), {**claim, **(fields or {})}
        return ask(self.server, "PUT", path, token=self.token, body=data, fields=sent)

    def file(self, name: str) -> Path:
        """Return the file of an object."""
        return self.server.objects(self.scope) / name[:2] / name


@pytest.fixture
def base(mirror: Server) -> Base:
    """Give an empty base of the mirror."""
    return Base(mirror)


# --- what is answered ---


def test_the_same_again_is_200_and_other_bytes_are_412(base: Base) -> None:
    """Write-once: a retry is fine, everything else changes nothing."""
    assert base.put(NAME, DATA).status == 201
    assert base.put(NAME, DATA).status == 200
    assert base.put(NAME, DATA[::-1]).status == 412
    assert base.put(NAME, DATA[:-1]).status == 412
    assert base.put(NAME, b"").status == 412

    assert base.file(NAME).read_bytes() == DATA


def test_no_condition_and_no_field_lets_anything_be_replaced(base: Base) -> None:
    """A thief of a token can add, and do no harm to what is there."""
    base.put(NAME, DATA)

    for more in ({"If-Match": "*"}, {"If-None-Match": '"x"'}, {"X-HTTP-Method-Override": "DELETE"}):
        assert base.put(NAME, DATA[::-1], fields=more).status == 412
    for method in ("DELETE", "PATCH", "POST", "MOVE", "COPY", "MKCOL", "PROPPATCH"):
        moved = base.ask(method, NAME, Destination=base.path(OTHER), Overwrite="T")
        assert moved.status == 405

    assert base.file(NAME).read_bytes() == DATA
    assert not base.file(OTHER).exists()


@pytest.mark.parametrize("claimed", [b"", DATA[:-1], DATA[::-1]])
def test_bytes_that_do_not_fit_their_digest_are_not_kept(base: Base, claimed: bytes) -> None:
    """A flip on the way, or a file that changed while it was sent."""
    assert base.put(NAME, DATA, claimed).status == 422
    assert base.ask("HEAD", NAME).status == 404
    assert base.put(NAME, DATA).status == 201


def test_size_digest_and_receipt_are_told(base: Base) -> None:
    """What the client looks at, and what retention counts from."""
    before = int(time.time())
    base.put(NAME, DATA)

    plain = base.ask("HEAD", NAME)
    wanted = base.ask("HEAD", NAME, Want_Repr_Digest="sha-256=1")

    assert plain.fields["content-length"] == str(len(DATA))
    assert "repr-digest" not in plain.fields
    assert wanted.fields["repr-digest"] == digest_field(DATA)
    received = http.client.email.utils.parsedate_to_datetime(plain.fields["last-modified"])  # type: ignore[attr-defined] # the standard library's own import
    assert before <= received.timestamp() <= time.time() + 1


def test_the_digest_is_that_of_the_disk_and_not_of_the_past(base: Base) -> None:
    """A digest that was noted on arrival would hide a disk that rots."""
    base.put(NAME, DATA)
    with base.file(NAME).open("r+b") as file:
        file.write(b"rot")

    told = base.ask("HEAD", NAME, Want_Repr_Digest="sha-256=1").fields["repr-digest"]

    assert told == digest_field(b"rot" + DATA[3:])


@pytest.mark.parametrize(
    ("wanted", "status", "expected"),
    [
        ("bytes=0-9", 206, DATA[:10]), ("bytes=99990-", 206, DATA[-10:]),
        ("bytes=5-5", 206, DATA[5:6]), ("bytes=0-999999", 206, DATA), ("bytes=100000-", 416, b""),
        ("bytes=-5", 200, DATA), ("nonsense", 200, DATA),
    ],
)  # fmt: skip
def test_ranges_are_answered_exactly(base: Base, wanted: str, status: int, expected: bytes) -> None:
    """Frames are read by range, straight from the mirror."""
    base.put(NAME, DATA)

    answer = base.ask("GET", NAME, Range=wanted)

    assert (answer.status, answer.data) == (status, expected)


def test_what_is_asked_without_length_or_digest_is_refused(base: Base) -> None:
    """The mirror keeps nothing that it could not check."""
    path = base.path(NAME)
    for fields, status in (
        ({}, 400),
        ({"Content-Digest": digest_field(DATA), "Content-Type": "text/plain"}, 415),
        ({"Content-Digest": digest_field(DATA), "Content-Encoding": "gzip"}, 415),
    ):
        answer = ask(base.server, "PUT", path, token=base.token, body=DATA, fields=fields)
        assert answer.status == status
    assert base.ask("HEAD", NAME).status == 404


# --- who may ---


def test_without_its_token_a_base_tells_nothing(base: Base) -> None:
    """Neither an object nor whether there is one, nor which bases there are."""
    base.put(NAME, DATA)
    stranger = Secret(b"Bearer " + b"x" * 43)
    other = base.server.tokens[base.server.next_scope()]
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        for path in (
            base.path(NAME),
            base.path(OTHER),
            f"/{base.scope}/",
            "/none/",
            "/metrics",
            "/",
        ):
            assert ask(base.server, method, path).status == 401
            assert ask(base.server, method, path, token=stranger).status == 401
            assert ask(base.server, method, path, token=other).status in {404, 405}


def test_a_reader_cannot_write_and_only_metrics_see_metrics(tmp_path: Path) -> None:
    """The dead-man's host needs to look, not to write."""
    reader, reader_line = make_token("notes", Right.GET)
    counter, counter_line = make_token("-", Right.METRICS)
    lines = f"{reader_line}\n{counter_line}\n"
    with mirror_server(tmp_path, scopes=["notes"], extra_lines=lines) as server:
        base = Base(server)
        base.put(NAME, DATA)
        reading = parse_credentials(b"bearer " + reader.reveal())
        counting = parse_credentials(b"bearer " + counter.reveal())
        path = base.path(NAME)

        assert ask(server, "GET", path, token=reading).data == DATA
        assert ask(server, "GET", "/notes/", token=reading).data.startswith(NAME.encode())
        assert ask(server, "PUT", base.path(OTHER), token=reading, body=b"x").status == 403
        assert ask(server, "GET", path, token=counting).status == 404
        assert ask(server, "GET", "/metrics", token=reading).status == 404
        metrics = ask(server, "GET", "/metrics", token=counting).data.decode()

    assert 'durarepo_mirror_objects{scope="notes"} 1' in metrics
    assert f'durarepo_mirror_stored_bytes{{scope="notes"}} {len(DATA)}' in metrics
    assert 'requests_total{method="PUT",status="201"} 1' in metrics


def test_neither_log_nor_answer_holds_a_token_or_a_path(tmp_path: Path) -> None:
    """A log is read by many, and kept for long."""
    with mirror_server(tmp_path, scopes=["notes"]) as server:
        base = Base(server)
        base.put(NAME, DATA)
        base.ask("GET", OTHER)
        answers = [
            ask(server, "GET", "/notes/?after=secret-in-a-query", token=base.token),
            ask(server, "GET", "/secret-in-a-path", token=base.token),
            ask(server, "GET", "/", token=Secret(b"Bearer secret-token")),
        ]
    log = (tmp_path / "log").read_text()
    lines = [json.loads(line) for line in log.splitlines()]

    assert lines[0].keys() == {"listening", "port"}
    assert {"time", "peer", "scope", "method", "name", "status", "bytes", "seconds"} == set(
        lines[1]
    )
    assert [line["status"] for line in lines[1:]] == [201, 404, 404, 404, 401]
    everything = log + (tmp_path / "errors").read_text() + "".join(map(str, answers))
    assert "secret" not in everything
    assert base.token.reveal().decode().partition(" ")[2] not in everything
    assert str(tmp_path) not in log


# --- how much ---


def test_a_quota_is_kept_and_not_eaten_by_failures(tmp_path: Path) -> None:
    """A full disk is everybody's; and a failed upload must give back what was kept free."""
    with mirror_server(tmp_path, scopes=["a", "b"], quota_bytes=250_000) as server:
        base, neighbour = Base(server), Base(server)
        for _ in range(5):
            assert base.put(NAME, DATA, b"wrong").status == 422

        assert base.put(NAME, DATA).status == 201
        assert base.put(OTHER, DATA).status == 201
        assert base.put("5c" * 32, DATA).status == 507
        assert base.put(NAME, DATA).status == 200
        assert base.put("5d" * 32, b"x" * 50_000).status == 201
        assert neighbour.put(NAME, DATA).status == 201


def test_what_lies_there_counts_after_a_restart(tmp_path: Path) -> None:
    """A quota that is forgotten by a restart is none."""
    with mirror_server(tmp_path, scopes=["a"], quota_bytes=150_000) as server:
        base = Base(server)
        base.put(NAME, DATA)
        assert server.process is not None
        end(server.process)
        again = start_mirror(tmp_path)
        try:
            server.port = port_of(tmp_path, again)

            assert base.ask("GET", NAME).data == DATA
            assert base.put(OTHER, DATA).status == 507
        finally:
            end(again)


def test_a_second_server_on_the_same_folder_does_not_start(tmp_path: Path) -> None:
    """Two servers would count the same objects, each for itself."""
    with mirror_server(tmp_path, scopes=["a"]):
        second = start_mirror(tmp_path)

        assert second.wait(30) == 11
    assert "run.locked" in (tmp_path / "errors").read_text()


@pytest.mark.parametrize("early", ["too-long", "no-token", "taken", "no-digest"])
def test_an_early_refusal_is_read_as_a_status(base: Base, early: str) -> None:
    """A client that sees a reset instead of a status tries again, and again."""
    base.put(NAME, DATA)
    size = 20 * 1024 * 1024 if early != "too-long" else PACK_MAX_BYTES + 1
    body = bytes(size)
    fields = {} if early == "no-digest" else {"Content-Digest": digest_field(body)}
    token = None if early == "no-token" else base.token
    name = NAME if early == "taken" else OTHER

    answer = ask(base.server, "PUT", base.path(name), token=token, body=body, fields=fields)

    expected = {"too-long": 413, "no-token": 401, "taken": 412, "no-digest": 400}
    assert answer.status == expected[early]


# --- broken, slow and hostile clients ---


def _head(base: Base, name: str, size: int, *, data: bytes = DATA) -> bytes:
    lines = [
        f"PUT {base.path(name)} HTTP/1.1", "Host: localhost", f"Content-Length: {size}",
        f"Authorization: {base.token.reveal().decode()}", f"Content-Digest: {digest_field(data)}",
    ]  # fmt: skip
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize("sent", [0, 1, 50_000, 99_999])
def test_a_client_that_goes_away_leaves_nothing(base: Base, sent: int) -> None:
    """Torn objects under their names are what this server is there to prevent."""
    with raw_connection(base.server) as connection:
        connection.sendall(_head(base, NAME, len(DATA)) + DATA[:sent])
        assert base.ask("HEAD", NAME).status == 404

    assert base.ask("HEAD", NAME).status == 404
    assert base.put(NAME, DATA).status == 201
    assert os.listdir(base.server.objects(base.scope)) == [NAME[:2]]


def test_an_object_appears_only_when_it_is_whole(base: Base) -> None:
    """Who looks while it is being received must not see a part of it."""
    with raw_connection(base.server) as connection:
        connection.sendall(_head(base, NAME, len(DATA)))
        for start in range(0, 90_000, 10_000):
            connection.sendall(DATA[start : start + 10_000])
            assert base.ask("HEAD", NAME).status == 404
        connection.sendall(DATA[90_000:])
        assert connection.recv(100).startswith(b"HTTP/1.1 201")

    assert base.ask("GET", NAME).data == DATA


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 300_000,
        b"\x16\x03\x01garbage\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PUT / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        b"PUT / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\n\r\n",
    ],
    ids=["endless-head", "garbage", "version", "two-lengths", "length-and-chunks", "nul"],
)
def test_a_request_that_is_none_ends_its_connection_only(base: Base, head: bytes) -> None:
    """A scanner that finds the port must not end the backups of others."""
    with raw_connection(base.server) as connection:
        try:
            connection.sendall(head)
            answer = connection.recv(4096)
        except OSError:
            answer = b""

    assert answer == b"" or answer.split(b" ")[1] in {b"400", b"401", b"431"}
    assert base.put(NAME, DATA).status == 201


def test_slow_clients_hold_up_nobody(base: Base) -> None:
    """Thirty clients that dribble; one more that is served at once."""
    slow = [raw_connection(base.server) for _ in range(30)]
    try:
        for number, connection in enumerate(slow):
            name = hashlib.sha256(b"%d" % number).hexdigest()
            connection.sendall(_head(base, name, len(DATA)) + DATA[:10])

        assert base.put(NAME, DATA).status == 201
        assert base.ask("GET", NAME).data == DATA
    finally:
        for connection in slow:
            connection.close()


def test_more_uploads_than_there_is_room_for_are_asked_to_come_again(base: Base) -> None:
    """The thirty-third is told when to come, instead of making all of them slow."""
    slow = [raw_connection(base.server) for _ in range(32)]
    try:
        for number, connection in enumerate(slow):
            name = hashlib.sha256(b"%d" % number).hexdigest()
            connection.sendall(_head(base, name, len(DATA)) + DATA[:10])
        time.sleep(0.5)  # until all of them have begun

        answer = base.put(NAME, DATA)

        assert answer.status == 503
        assert int(answer.fields["retry-after"]) > 0
        assert base.ask("HEAD", NAME).status == 404
    finally:
        for connection in slow:
            connection.close()


def memory_of(server: Server) -> int:
    """Return the greatest resident size of a server so far, in bytes."""
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _all_at_once(work: Callable[[int], int], count: int) -> list[int]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


@pytest.mark.slow
def test_thirty_two_clients_with_the_largest_objects_need_little_memory(tmp_path: Path) -> None:
    """32 times 32 MiB at once: all are stored, and the server stays below 256 MiB."""
    body = bytes(PACK_MAX_BYTES)
    with mirror_server(tmp_path, scopes=["a"]) as server:
        base = Base(server)

        def work(number: int) -> int:
            return base.put(f"{number:064x}", body).status

        statuses = _all_at_once(work, 32)

        assert statuses == [201] * 32
        assert memory_of(server) < 256 * 1024 * 1024


@pytest.mark.slow
@pytest.mark.parametrize("after_seconds", [0.3, 0.6, 1.0])
def test_nothing_that_was_answered_is_lost_by_a_kill(tmp_path: Path, after_seconds: float) -> None:
    """201 means durable; and whatever has a name is whole."""
    bodies = {
        hashlib.sha256(b"%d" % number).hexdigest(): hashlib.shake_256(b"%d" % number).digest(
            200_000
        )
        for number in range(200)
    }
    answered: set[str] = set()
    with mirror_server(tmp_path, scopes=["a"]) as server:
        base = Base(server)

        def work(names: list[str]) -> None:
            for name in names:
                try:
                    if base.put(name, bodies[name]).status == 201:
                        answered.add(name)
                except (OSError, http.client.HTTPException):
                    return

        names = list(bodies)
        threads = [threading.Thread(target=work, args=(names[one::8],)) for one in range(8)]
        for thread in threads:
            thread.start()
        time.sleep(after_seconds)
        assert server.process is not None
        server.process.kill()
        server.process.wait()
        for thread in threads:
            thread.join()
        there = {path.name: path.read_bytes() for path in (tmp_path / "objects/a").rglob("?" * 64)}

        assert answered <= set(there)
        assert all(there[name] == bodies[name] for name in there)
        again = start_mirror(tmp_path)
        try:
            server.port = port_of(tmp_path, again)
            assert {base.put(name, bodies[name]).status for name in names} <= {200, 201}
        finally:
            end(again)


def test_told_to_end_it_finishes_what_has_begun_and_gives_the_lock_back(tmp_path: Path) -> None:
    """An update of the machine must neither tear an upload nor look like a crash."""
    with mirror_server(tmp_path, scopes=["a"]) as server:
        base = Base(server)
        assert server.process is not None
        with raw_connection(server) as connection:
            connection.sendall(_head(base, NAME, len(DATA)) + DATA[:1000])
            assert base.ask("HEAD", NAME).status == 404
            server.process.terminate()
            time.sleep(0.2)
            connection.sendall(DATA[1000:])
            assert connection.recv(100).startswith(b"HTTP/1.1 201")

        assert server.process.wait(30) == 0
    assert base.file(NAME).read_bytes() == DATA
    assert (tmp_path / "objects" / ".lock").read_bytes().strip() == b"{}"


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """Whoever has the key of the server can stand between it and its clients."""
    with mirror_server(tmp_path, scopes=["a"]) as server:
        assert server.process is not None
        end(server.process)
        (tmp_path / "pki/server.key").chmod(0o644)
        again = start_mirror(tmp_path)

        assert again.wait(30) == 12
    assert "keys.mode" in (tmp_path / "errors").read_text()


def test_plain_http_is_not_spoken(mirror: Server) -> None:
    """A token in the clear is a token of everybody."""
    with socket.create_connection(("127.0.0.1", mirror.port), 20) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            answer = plain.recv(4096)
        except ConnectionResetError:
            answer = b""

    assert b"HTTP/1.1 2" not in answer
    assert b"HTTP/1.1 4" not in answer


def test_a_full_disk_is_told_and_survived(tmp_path: Path) -> None:
    """507, nothing half there, and what still fits is taken."""
    disk = tmp_path / "objects"
    disk.mkdir()
    mount("-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(disk))
    try:
        with mirror_server(tmp_path, scopes=["a"]) as server:
            base = Base(server)

            assert base.put(NAME, bytes(2_000_000)).status == 507
            assert base.ask("HEAD", NAME).status == 404
            assert base.put(NAME, DATA).status == 201
            assert base.ask("GET", NAME).data == DATA
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
