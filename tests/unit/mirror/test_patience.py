"""Clients that take too long are cut off, and those that are refused early can read why.

A real server in this process, without TLS and with short limits.
"""

import asyncio
import base64
import contextlib
import hashlib
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import uvicorn

from durarepo.mirror.access import Right, make_token, parse_tokens
from durarepo.mirror.app import Mirror
from durarepo.mirror.patience import HEAD_MAX_BYTES, PatientProtocol
from durarepo.mirror.shelves import Shelf, open_shelves

NAME = "5a" * 32
PATH = f"/a/5a/{NAME}"
_SECONDS = 0.3


class HastyProtocol(PatientProtocol):
    """The same with limits that a test can wait for."""

    head_seconds = _SECONDS
    drain_seconds = _SECONDS


class Running:
    """A mirror with one scope; ``lines`` are those of its access log."""

    def __init__(self, folder: Path) -> None:
        secret, line = make_token("a", Right.PUT)
        self.token = secret.reveal().decode()
        self.shelves: dict[str, Shelf] = open_shelves(bytes(folder), ["a"], quota_bytes=0)
        self.lines: list[Mapping[str, object]] = []
        self.mirror = Mirror(
            self.shelves, parse_tokens(line.encode()), log=self.lines.append, now=time.time,
            stall=_SECONDS,
        )  # fmt: skip
        self.listener = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(
            self.mirror, http=HastyProtocol, loop="asyncio", ws="none", lifespan="off",
            log_config=None, access_log=False, timeout_keep_alive=30,
        )  # fmt: skip
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        asyncio.run(self.server._serve([self.listener]))

    def connect(self) -> socket.socket:
        """Return a connection that waits ten seconds at most."""
        return socket.create_connection(self.listener.getsockname(), 10)

    def head(self, method: str, *fields: str) -> bytes:
        """Return the head of a request with the token."""
        first = [f"{method} {PATH} HTTP/1.1", "Host: x", f"Authorization: Bearer {self.token}"]
        return "\r\n".join([*first, *fields, "", ""]).encode()

    def put_head(self, data: bytes, size: int | None = None) -> bytes:
        """Return the head of a PUT."""
        digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
        length = len(data) if size is None else size
        return self.head("PUT", f"Content-Length: {length}", f"Content-Digest: sha-256=:{digest}:")

    def close(self) -> None:
        """End the server and give all back."""
        self.server.should_exit = True
        self.thread.join()
        self.listener.close()
        self.mirror.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A mirror that runs."""
    server = Running(tmp_path)
    try:
        yield server
    finally:
        server.close()


def until_closed(connection: socket.socket) -> bytes:
    """Return what comes until the server closes; fail if it does not."""
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while data := connection.recv(65_536):
            got += data
    return got


@pytest.mark.parametrize("sent", [b"", b"GET ", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_a_head_that_does_not_come_is_not_waited_for(running: Running, sent: bytes) -> None:
    """A thousand idle connections would keep all others out."""
    with running.connect() as connection:
        connection.sendall(sent)

        assert until_closed(connection) == b""


def test_a_head_that_dribbles_is_cut_off(running: Running) -> None:
    """One byte now and then must not keep a connection for ever."""
    with running.connect() as connection, contextlib.suppress(OSError):
        connection.sendall(b"GET / HTTP/1.1\r\nX: ")
        for _ in range(200):
            connection.sendall(b"a")
            time.sleep(0.02)

        assert until_closed(connection) == b""


def test_a_head_without_end_is_cut_off(running: Running) -> None:
    """Memory for a stranger's field is bounded before there is a token."""
    sent = 0
    with running.connect() as connection, contextlib.suppress(OSError):
        connection.sendall(b"GET / HTTP/1.1\r\nX: ")
        while sent < 100 * HEAD_MAX_BYTES:
            connection.sendall(bytes(65_536).replace(b"\0", b"a"))
            sent += 65_536

    assert sent < 100 * HEAD_MAX_BYTES


@pytest.mark.parametrize("sent", [0, 1000])
def test_a_body_that_stalls_is_answered_and_not_kept(running: Running, sent: int) -> None:
    """A client that fell asleep gives its place back, and is told (408)."""
    data = bytes(100_000)
    with running.connect() as connection:
        connection.sendall(running.put_head(data) + data[:sent])

        assert until_closed(connection).startswith(b"HTTP/1.1 408")
    assert running.shelves["a"].objects == 0
    assert running.shelves["a"].reserve(1)


def test_what_follows_an_early_answer_is_dropped_and_not_for_ever(running: Running) -> None:
    """The status can be read although the body was not; then the connection is cut."""
    with running.connect() as connection:
        connection.sendall(running.head("PUT", "Content-Length: 10000000"))
        connection.sendall(bytes(1_000_000))

        assert until_closed(connection).startswith(b"HTTP/1.1 400")


def test_a_client_that_does_not_read_is_given_up(running: Running) -> None:
    """Its thread, its window and its place are needed by others."""
    data = bytes(30_000_000)
    with running.connect() as connection:
        connection.sendall(running.put_head(data) + data)
        assert connection.recv(100).startswith(b"HTTP/1.1 201")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(running.head("GET"))
        for _ in range(100):
            if len(running.lines) == 2:
                break
            time.sleep(0.1)

    assert [line["status"] for line in running.lines] == [201, 200]
    assert running.lines[1]["bytes"] != len(data)


def test_a_client_that_is_only_slow_is_served(running: Running) -> None:
    """A thin line is no attack: bytes that keep coming are waited for."""
    data = bytes(50_000)
    with running.connect() as connection:
        connection.sendall(running.put_head(data))
        for start in range(0, len(data), 2500):
            connection.sendall(data[start : start + 2500])
            time.sleep(_SECONDS / 10)

        assert connection.recv(100).startswith(b"HTTP/1.1 201")


def test_one_connection_serves_many_requests(running: Running) -> None:
    """The limits must not cut a client that does everything right."""
    data = bytes(1000)
    with running.connect() as connection:
        for _ in range(3):
            connection.sendall(running.put_head(data) + data)
            assert connection.recv(4096)[:12] in {b"HTTP/1.1 201", b"HTTP/1.1 200"}
            time.sleep(_SECONDS * 1.5)
