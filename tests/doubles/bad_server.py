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
    "date-beyond-all": "tells_time",
    "publishes-as-it-comes": "whole_or_nothing",
    "overwrites-later": "no_overwrite",
    "overwrites-behind-a-cache": "no_overwrite",
    "overwrites-and-denies-it": "no_overwrite",
    "deletes-later": "no_delete",
    "deletes-behind-a-cache": "no_delete",
    "deletes-and-denies-it": "no_delete",
}
"""What a server can do wrong, and the capability that has to be found missing."""

DOUBTS = {
    "busy-at-the-second": "create_only",
    "busy-at-an-overwrite": "no_overwrite",
    "drops-an-overwrite": "no_overwrite",
    "busy-at-a-delete": "no_delete",
    "drops-a-delete": "no_delete",
    "busy-when-slow": "whole_or_nothing",
    "drops-when-slow": "whole_or_nothing",
    "busy-at-a-lie": "checks_digest",
}
"""What a server can do that looks like a capability and shows nothing of it."""

FORBIDS = ("forbids-the-second", "conflict-at-the-second", "forbids-an-overwrite")
"""Other words for a refusal that real servers use."""

_TO_THE_SECOND = {
    "busy-at-the-second": 503, "forbids-the-second": 403, "conflict-at-the-second": 409,
}  # fmt: skip
_TO_AN_OVERWRITE = {
    "busy-at-an-overwrite": 503, "forbids-an-overwrite": 403, "conflict-at-the-second": 409,
    "overwrites-later": 200, "drops-an-overwrite": 0,
}  # fmt: skip
_TO_A_DELETE = {
    "deletes": 204, "deletes-behind-a-cache": 204, "deletes-later": 202,
    "busy-at-a-delete": 503, "drops-a-delete": 0,
}  # fmt: skip
_REPLACES = frozenset({"overwrites", "overwrites-behind-a-cache", "overwrites-and-denies-it"})
_REMOVES = frozenset({"deletes", "deletes-behind-a-cache", "deletes-and-denies-it"})
_CACHES = frozenset({
    "overwrites-behind-a-cache", "overwrites-and-denies-it",
    "deletes-behind-a-cache", "deletes-and-denies-it",
})  # fmt: skip
_SLOW_SECONDS = 0.2


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
    cached: dict[str, bytes | None] = field(default_factory=dict)
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
        date = formatdate(usegmt=True)
        if self._has("date-beyond-all"):
            date = f"Mon, 01 Jan {'9' * 20} 00:00:00 GMT"
        if not self._has("no-date"):
            self.send_header("Date", date)

    def _has(self, fault: str) -> bool:
        return fault in self.behaviour.faults

    def _has_any(self, faults: frozenset[str]) -> bool:
        return bool(faults & self.behaviour.faults)

    def _told(self, table: dict[str, int], usual: int) -> int:
        return next((table[one] for one in table if self._has(one)), usual)

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
        if status == 0:
            self.close_connection = True
            return
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
        asked = self.behaviour.asked[-1]
        data = self._received(size)
        if data is None:
            self._finish(503 if self._has("busy-when-slow") else 0)
            self.close_connection = True
            return
        asked.body = data
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
            self._finish(503 if self._has("busy-at-a-lie") else 422)
            return
        self._store(name, data, claimed)

    def _received(self, size: int) -> bytes | None:
        """Return the body, as far as it came; None where it is not waited for."""
        data, is_new = b"", self._name not in self.behaviour.objects
        if self._has_any(frozenset({"busy-when-slow", "drops-when-slow"})):
            self.connection.settimeout(_SLOW_SECONDS)
        while len(data) < size:
            try:
                piece = self.rfile.read1(size - len(data))
            except TimeoutError:
                return None
            if not piece:
                break
            data += piece
            if is_new and self._has("publishes-as-it-comes"):
                self.behaviour.objects[self._name] = data
                self.behaviour.claimed[self._name] = self.headers["Content-Digest"]
        if is_new and self._has("publishes-as-it-comes") and len(data) == size:
            del self.behaviour.objects[self._name]
        return data

    def _takes_any(self) -> bool:
        return self._has("takes-any-digest") or self._has("reports-what-was-claimed")

    def _store(self, name: str, data: bytes, claimed: str) -> None:
        behaviour = self.behaviour
        is_conditional = self.headers.get("If-None-Match") == "*"
        replaces = self._has("ignores-condition") if is_conditional else self._has_any(_REPLACES)
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
        replaces = replaces and not self._has("overwrites-and-denies-it")
        if not is_taken or replaces or self._has("says-created"):
            self._finish(201)
            return
        self._finish(self._told(_TO_THE_SECOND if is_conditional else _TO_AN_OVERWRITE, 412))

    def do_GET(self) -> None:
        if self._begin():
            return
        if re.match(r"/\w+/(?:\?|$)", self.path):
            self._list()
            return
        data = self.behaviour.objects.get(self._name)
        if self._has_any(_CACHES):
            data = self.behaviour.cached.setdefault(self._name, data)
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
        if self._has_any(_REMOVES):
            self.behaviour.objects.pop(self._name, None)
        self._finish(self._told(_TO_A_DELETE, 405))

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
