"""The mirror as an ASGI application: who asks, for what, and what is answered.

Knows HTTP only as ASGI gives it; no server package is imported here. Every request ends with
one answer and one line in the access log. Nothing is deleted or overwritten: there is no code
for it. Source: spec/mirror.md 4. Start at `Mirror.__call__`.
"""

import asyncio
import hashlib
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.utils import formatdate
from functools import partial
from typing import TypeAlias, TypeVar

from durarepo.core.errors import DurarepoError, IntegrityError, StoreError
from durarepo.core.limits import MIRROR_UPLOADS, REMOTE_STALL_SECONDS
from durarepo.core.names import ObjectName
from durarepo.mirror.access import Access, Grant, Right
from durarepo.mirror.asking import (
    Ask,
    RefusedRequestError,
    fields_of,
    parse_ask,
    parse_range,
    parse_upload,
)
from durarepo.mirror.counting import AccessLog, Counters, time_text
from durarepo.mirror.receiving import ClientGoneError, Incoming, Message, Receive
from durarepo.mirror.shelves import Shelf
from durarepo.store.port import Put

T = TypeVar("T")
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Fields: TypeAlias = tuple[tuple[bytes, bytes], ...]

_READERS = 4
_WINDOW = 256 * 1024
_OCTETS = (b"content-type", b"application/octet-stream")
_TEXT = (b"content-type", b"text/plain; charset=utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A status, its fields, and bytes; of an object, from where to where they lie in it."""

    status: int
    fields: Fields = (_OCTETS,)
    data: bytes = b""
    size: int = 0
    first: int = 0
    name: ObjectName | None = None
    is_head: bool = False


@dataclass(slots=True, kw_only=True)
class _Seen:
    """What the access log says of a request once it is over."""

    scope: str = ""
    name: str = ""
    status: int = 0
    sent: int = 0


class Mirror:
    """Answers requests for the objects of its shelves."""

    def __init__(
        self,
        shelves: Mapping[str, Shelf],
        access: Access,
        *,
        log: AccessLog,
        now: Callable[[], float],
        uploads: int = MIRROR_UPLOADS,
        stall: float = REMOTE_STALL_SECONDS,
    ) -> None:
        """Prepare.

        Args:
            shelves: what lies where, by scope; every scope of ``access`` has one.
            access: who may do what.
            log: takes one line a request.
            now: seconds since 1970.
            uploads: how many bodies are received at once.
            stall: seconds without a byte after which a client is given up.
        """
        self._shelves = dict(shelves)
        self._access = access
        self._log = log
        self._now = now
        self._uploads = uploads
        self._stall = stall
        self._counters = Counters()
        self._writers = ThreadPoolExecutor(uploads, "durarepo-write")
        self._readers = ThreadPoolExecutor(_READERS, "durarepo-read")

    def close(self) -> None:
        """End the threads, and give the shelves back."""
        self._writers.shutdown()
        self._readers.shutdown()
        for shelf in self._shelves.values():
            shelf.close()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, and write its line."""
        if scope["type"] != "http":
            raise ValueError("only HTTP is spoken here")
        began, seen = self._now(), _Seen()
        method, path, query, fields = _taken_apart(scope)
        try:
            answer = await self._answer(method, path, query, fields, (receive, seen))
            await self._send(answer, send, seen)
        except (ClientGoneError, TimeoutError, DurarepoError):
            seen.status = seen.status or 499  # nobody is there to be told, or half is told
        finally:
            self._counters.note(method, seen.status)
            self._counters.bytes_out += seen.sent
            self._log(
                {
                    "time": time_text(began),
                    "peer": _peer(scope),
                    "scope": seen.scope,
                    "method": method if method.isalpha() and len(method) < 16 else "?",  # noqa: PLR2004
                    "name": seen.name,
                    "status": seen.status,
                    "bytes": seen.sent,
                    "seconds": round(max(self._now() - began, 0), 3),
                }
            )

    async def _answer(
        self,
        method: str,
        path: bytes,
        query: bytes,
        fields: Mapping[bytes, bytes],
        rest: tuple[Receive, _Seen],
    ) -> Answer:
        receive, seen = rest
        try:
            grant = self._grant(fields)
            ask = parse_ask(method, path, query, fields)
            shelf = self._admitted(ask, grant)
            seen.scope, seen.name = ask.scope, ask.name or ""
            if shelf is None:
                return Answer(status=200, fields=(_TEXT,), data=self._counters.text(self._shelves))
            if ask.name is None:
                return await self._list(ask, shelf)
            if ask.method == "PUT":
                return await self._put(ask, ask.name, shelf, receive)
            return await self._get(ask, ask.name, shelf)
        except RefusedRequestError as error:
            return Answer(status=error.status, fields=(_TEXT, *error.fields))
        except StoreError as error:
            return Answer(status=507 if error.code == "store.full" else 500, fields=(_TEXT,))

    def _grant(self, fields: Mapping[bytes, bytes]) -> Grant:
        grant = self._access.grant_of(fields.get(b"authorization", b""))
        if grant is None:
            raise RefusedRequestError(401, [(b"www-authenticate", b"Bearer")])
        return grant

    def _admitted(self, ask: Ask, grant: Grant) -> Shelf | None:
        """Return the shelf that is asked for, or None for the metrics.

        Raises:
            RefusedRequestError: 404 for what is not the token's; 403 for what it may not do.
        """
        if not ask.scope:
            if grant.right is not Right.METRICS:
                raise RefusedRequestError(404)
            return None
        if ask.scope != grant.scope:
            raise RefusedRequestError(404)
        if ask.method == "PUT" and grant.right is not Right.PUT:
            raise RefusedRequestError(403)
        return self._shelves[ask.scope]

    async def _put(self, ask: Ask, name: ObjectName, shelf: Shelf, receive: Receive) -> Answer:
        upload = parse_upload(ask.fields)
        there = shelf.store.stat(name)
        if there is not None and there != upload.size:
            raise RefusedRequestError(412)
        if self._counters.uploads >= self._uploads:
            raise RefusedRequestError(503, [(b"retry-after", b"2")])
        if not shelf.reserve(upload.size if there is None else 0):
            raise RefusedRequestError(507)
        put: Put | None = None
        self._counters.uploads += 1
        incoming = Incoming(upload, receive, stall=self._stall)
        try:
            put = await self._on(
                self._writers, lambda: shelf.store.put_new(name, incoming.pieces())
            )
        except IntegrityError:
            raise RefusedRequestError(412) from None
        finally:
            self._counters.uploads -= 1
            self._counters.bytes_in += incoming.received
            if there is None:
                shelf.settle(upload.size, is_new=put is Put.CREATED)
        received = shelf.store.received(name) or 0
        return Answer(
            status=201 if put is Put.CREATED else 200, fields=(_OCTETS, _modified(received))
        )

    async def _get(self, ask: Ask, name: ObjectName, shelf: Shelf) -> Answer:
        size, received = shelf.store.stat(name), shelf.store.received(name)
        if size is None or received is None:
            raise RefusedRequestError(404)
        fields: Fields = (_OCTETS, _modified(received), (b"accept-ranges", b"bytes"))
        if ask.wants_digest:
            digest = await self._on(self._readers, lambda: _digest_of(shelf, name, size))
            fields += ((b"repr-digest", b"sha-256=:" + b64encode(digest) + b":"),)
        if ask.method == "HEAD":
            return Answer(status=200, fields=fields, size=size, is_head=True)
        asked = parse_range(ask.fields, size)
        if asked is None:
            return Answer(status=200, fields=fields, size=size, name=name)
        first, last = asked
        fields += ((b"content-range", b"bytes %d-%d/%d" % (first, last, size)),)
        return Answer(status=206, fields=fields, first=first, size=last - first + 1, name=name)

    async def _list(self, ask: Ask, shelf: Shelf) -> Answer:
        rows = await self._on(self._readers, lambda: shelf.page(ask.after))
        lines = [f"{row.name} {row.size} {time_text(row.received)}\n" for row in rows]
        return Answer(status=200, data="".join(lines).encode("ascii"))

    async def _send(self, answer: Answer, send: Send, seen: _Seen) -> None:
        length = answer.size if answer.name is not None or answer.is_head else len(answer.data)
        fields = [*answer.fields, (b"content-length", b"%d" % length)]
        seen.status = answer.status
        await send({"type": "http.response.start", "status": answer.status, "headers": fields})
        if answer.name is not None:
            shelf, name = self._shelves[seen.scope], answer.name
            for at, size in _windows(answer.first, answer.size):
                data = await self._on(self._readers, partial(shelf.store.read, name, at, size))
                body: Message = {"type": "http.response.body", "body": data, "more_body": True}
                await asyncio.wait_for(send(body), self._stall)
                seen.sent += size
        else:
            seen.sent += len(answer.data)
        await send({"type": "http.response.body", "body": answer.data, "more_body": False})

    async def _on(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, work)


def _taken_apart(scope: Message) -> tuple[str, bytes, bytes, dict[bytes, bytes]]:
    """Return method, path, query and fields of an ASGI request."""
    method, path, query = scope.get("method"), scope.get("raw_path"), scope.get("query_string")
    headers = scope.get("headers")
    return (
        method if isinstance(method, str) else "",
        path if isinstance(path, bytes) else b"",
        query if isinstance(query, bytes) else b"",
        fields_of(headers if isinstance(headers, list) else []),
    )


def _peer(scope: Message) -> str:
    client = scope.get("client")
    return str(client[0]) if isinstance(client, tuple) and client else ""


def _modified(received: int) -> tuple[bytes, bytes]:
    return (b"last-modified", formatdate(received, usegmt=True).encode("ascii"))


def _windows(first: int, size: int) -> Iterator[tuple[int, int]]:
    for at in range(first, first + size, _WINDOW):
        yield at, min(_WINDOW, first + size - at)


def _digest_of(shelf: Shelf, name: ObjectName, size: int) -> bytes:
    """Return the SHA-256 of an object as it is on the disk now."""
    digest = hashlib.sha256()
    for at, length in _windows(0, size):
        try:
            digest.update(shelf.store.read(name, at, length))
        except DurarepoError:
            raise RefusedRequestError(500) from None
    return digest.digest()
