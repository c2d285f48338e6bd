"""A server over TLS that does as a store should, but for the faults it is told to have.

Each fault was seen in a real product, or is what a hostile one would do. Start at `bad_server`.
"""

import base64
import contextlib
import hashlib
import json
import re
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.doubles.pki import Authority, Issued
from tests.doubles.servers import Server

FAULTS = {
    "ignores-condition": "create_only",
    "says-created": "create_only",
    "overwrites": "no_overwrite",
    "deletes": "no_delete",
    "publishes-torn": "whole_or_nothing",
    "takes-any-digest": "checks_digest",
    "reports-what-was-claimed": "reports_digest",
    "reports-the-name": "reports_digest",
    "reports-nothing": "reports_digest",
    "reports-the-newest": "reports_digest",
    "two-winners": "one_winner",
    "ignores-range": "range",
    "shifts-range": "range",
    "lists-nothing": "lists",
    "lists-html": "lists",
    "no-date": "tells_time",
}
"""What a server can do wrong, and the capability that has to be found missing."""


@dataclass(slots=True)
class Asked:
    """One request as it came in."""

    method: str
    path: str
    fields: dict[str, str]
    body: bytes = b""


@dataclass(slots=True)
class Behaviour:
    """What a server does, and what it has seen; statuses in ``answers`` come before all else."""

    faults: frozenset[str] = frozenset()
    objects: dict[str, bytes] = field(default_factory=dict)
    claimed: dict[str, str] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    newest: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)


def _digest(data: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    behaviour: Behaviour

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def send_response(self, code: int, message: str | None = None) -> None:
        self.send_response_only(code, message)
        if "no-date" not in self.behaviour.faults:
            self.send_header("Date", formatdate(usegmt=True))

    def _has(self, fault: str) -> bool:
        return fault in self.behaviour.faults

    def _begin(self) -> bool:
        """Note the request, and return whether it was answered with what was told before."""
        fields = {name.lower(): value for name, value in self.headers.items()}
        self.behaviour.asked.append(Asked(self.command, self.path, fields))
        if not self.behaviour.answers:
            return False
        status, more = self.behaviour.answers.pop(0)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._finish(status, more)
        return True

    def _finish(
        self, status: int, fields: dict[str, str] | None = None, data: bytes = b"", size: int = -1
    ) -> None:
        self.send_response(status)
        for name, value in (fields or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data) if size < 0 else size))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    @property
    def _name(self) -> str:
        return self.path.rpartition("/")[2]

    def do_PUT(self) -> None:
        if self._begin():
            return
        size = int(self.headers["Content-Length"])
        data = self.rfile.read(size)
        self.behaviour.asked[-1].body = data
        behaviour, name = self.behaviour, self._name
        claimed = self.headers.get("Content-Digest", "")
        behaviour.newest = claimed
        if len(data) < size:
            if self._has("publishes-torn"):
                behaviour.objects.setdefault(name, data)
                behaviour.claimed.setdefault(name, claimed)
            self.close_connection = True
            return
        if claimed != _digest(data) and not self._takes_any():
            self._finish(422)
            return
        self._store(name, data, claimed)

    def _takes_any(self) -> bool:
        return self._has("takes-any-digest") or self._has("reports-what-was-claimed")

    def _store(self, name: str, data: bytes, claimed: str) -> None:
        behaviour = self.behaviour
        is_conditional = self.headers.get("If-None-Match") == "*"
        replaces = self._has("ignores-condition") if is_conditional else self._has("overwrites")
        if self._has("two-winners"):
            is_taken = name in behaviour.objects
            time.sleep(0.3)
            if not is_taken:
                behaviour.objects[name] = data
            self._finish(412 if is_taken else 201)
            return
        with behaviour.lock:
            is_taken = name in behaviour.objects
            if not is_taken or replaces:
                behaviour.objects[name] = data
                behaviour.claimed[name] = claimed
        is_told_created = not is_taken or replaces or self._has("says-created")
        self._finish(201 if is_told_created else 412)

    def do_GET(self) -> None:
        if self._begin():
            return
        if re.match(r"/\w+/(?:\?|$)", self.path):
            self._list()
            return
        data = self.behaviour.objects.get(self._name)
        if data is None:
            self._finish(404)
            return
        found = re.match(r"bytes=(\d+)-(\d+)$", self.headers.get("Range", ""))
        if found and not self._has("ignores-range"):
            first, last = int(found[1]), min(int(found[2]), len(data) - 1)
            shift = int(self._has("shifts-range"))
            part = data[first + shift : last + shift + 1]
            self._finish(206, {"Content-Range": f"bytes {first}-{last}/{len(data)}"}, part)
            return
        self._finish(200, {"Content-Type": "application/octet-stream"}, data)

    def do_HEAD(self) -> None:
        if self._begin():
            return
        data = self.behaviour.objects.get(self._name)
        if data is None:
            self._finish(404)
            return
        fields = {} if self._has("reports-nothing") else {"Repr-Digest": self._reported(data)}
        self._finish(200, fields, b"", len(data))

    def _reported(self, data: bytes) -> str:
        if self._has("reports-what-was-claimed"):
            return self.behaviour.claimed[self._name]
        if self._has("reports-the-name"):
            return f"sha-256=:{base64.b64encode(bytes.fromhex(self._name)).decode()}:"
        return self.behaviour.newest if self._has("reports-the-newest") else _digest(data)

    def do_DELETE(self) -> None:
        if self._begin():
            return
        if self._has("deletes"):
            self.behaviour.objects.pop(self._name, None)
        self._finish(204 if self._has("deletes") else 405)

    def _list(self) -> None:
        after = self.path.partition("?after=")[2]
        names = sorted(name for name in self.behaviour.objects if name > after)[:1000]
        lines = [
            f"{name} {len(self.behaviour.objects[name])} 2026-01-01T00:00:00Z" for name in names
        ]
        if self._has("lists-html"):
            lines = ["<html>", "<body>", json.dumps(names)]
        status = 403 if self._has("lists-nothing") else 200
        self._finish(status, {}, "".join(f"{line}\n" for line in lines).encode())


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that goes away is what some tests are about."""


@contextlib.contextmanager
def bad_server(
    folder: Path, *faults: str, issued: Issued | None = None, authority: Authority | None = None
) -> Iterator[tuple[Server, Behaviour]]:
    """Serve over TLS, with the faults, until the context ends."""
    authority = authority or Authority()
    issued = issued or authority.issue(folder)
    behaviour = Behaviour(frozenset(faults))
    handler = type("Handler", (_Handler,), {"behaviour": behaviour})
    server = _Quiet(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.certificate, issued.key)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield (
            Server(port=server.server_port, ca=authority.pem, folder=folder, scopes=["b"]),
            behaviour,
        )
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
