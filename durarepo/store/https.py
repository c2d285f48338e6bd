"""An HTTPS server as a remote: objects are created there, looked at and read, never changed.

Nothing is believed of a server but what was seen: an object counts as there once its size, and
where it matters its bytes, are the right ones. What the answers mean stands in a table of the
specification. One object is in memory at most where it is read, one window where it is sent.
Source: spec/mirror.md 2 and 3. Start at `HttpsRemote.send`.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from durarepo.core.errors import IntegrityError, RemoteError
from durarepo.core.limits import MIRROR_PAGE_NAMES, PACK_MAX_BYTES
from durarepo.core.names import Digest, ObjectName, is_object_name
from durarepo.store.bodies import body_of_bytes
from durarepo.store.port import Body, Put
from durarepo.store.retrying import Patience
from durarepo.store.transport import BrokenOffError, Reply, Transport, retry_after

T = TypeVar("T")

OK, PARTIAL, MISSING, TAKEN, BEYOND = 200, 206, 404, 412, 416
STORED = frozenset({200, 201, 204})
_REFUSED = frozenset({401, 403})
_FULL = frozenset({413, 507})
_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_RANGE = re.compile(r"bytes ([0-9]{1,10})-([0-9]{1,10})/([0-9]{1,10})\Z")
_REPORTED = re.compile(r"(?:^|,)\s*sha-256=:([A-Za-z0-9+/]{43}=):")
_LINE = re.compile(rb"([0-9a-f]{64}) [0-9]{1,10} [0-9TZ:.+-]{1,40}\Z")
_LINE_MAX_BYTES = 128
WANT_DIGEST = {"Want-Repr-Digest": "sha-256=1"}
_SEND_FIELDS = {"Content-Type": "application/octet-stream"}


def path_of(name: ObjectName) -> str:
    """Return where an object lies below the base.

    Raises:
        ValueError: that is no object name.
    """
    if not is_object_name(name):
        raise ValueError("not an object name")
    return f"{name[:2]}/{name}"


def send_fields(digest: Digest, *, is_conditional: bool = True) -> dict[str, str]:
    """Return the fields that a PUT has beside the fixed ones."""
    fields = {
        **_SEND_FIELDS,
        "Content-Digest": f"sha-256=:{base64.b64encode(digest).decode('ascii')}:",
    }
    return {**fields, "If-None-Match": "*"} if is_conditional else fields


def reported_digest(reply: Reply) -> Digest | None:
    """Return the SHA-256 that a server says the object has, or None where it says nothing."""
    found = _REPORTED.search(reply.fields.get("repr-digest", ""))
    return Digest(base64.b64decode(found[1])) if found else None


class HttpsRemote:
    """A `Remote` behind HTTPS; use as a context manager, or `close` it."""

    def __init__(
        self, transport: Transport, *, patience: Patience, trusts_digest: bool = False
    ) -> None:
        """Prepare; nothing is opened yet.

        Args:
            transport: speaks to the server.
            patience: how often and how long it is tried.
            trusts_digest: the capability check found that the server reports true digests.
        """
        self.transport = transport
        self._patience = patience
        self._trusts_digest = trusts_digest

    def close(self) -> None:
        """Close the connections; closing twice is fine."""
        self.transport.close()

    # --- putting ---

    def put_new(self, name: ObjectName, data: bytes | Iterable[bytes]) -> Put:
        """Store ``data`` under ``name``, held in memory; see `ObjectStore.put_new`."""
        path_of(name)
        return self.send(name, body_of_bytes(data))

    def send(self, name: ObjectName, body: Body) -> Put:
        """Store ``body`` under ``name`` and look at it there; see `Remote.send`."""
        path = path_of(name)
        if body.size > PACK_MAX_BYTES:
            raise ValueError(f"an object is at most {PACK_MAX_BYTES} bytes")

        def attempt() -> bool:
            """Return whether this very try created the object."""
            return self._stat(path) is None and self._create(path, body)

        if self._patience.run(attempt, doing=f"send object {name}"):
            is_read_back = not body.is_named(name)
            self._check_there(name, body, is_read_back=is_read_back)
            return Put.CREATED
        self._check_there(name, body, is_read_back=True)
        return Put.ALREADY_THERE

    def _create(self, path: str, body: Body) -> bool:
        """Return True where the server says that it stored the body, False where it was taken."""
        with self.transport.exchange(
            "PUT", path, fields=send_fields(body.digest), body=body
        ) as reply:
            if reply.status in STORED:
                return True
            if reply.status == TAKEN:
                return False
            raise self._refusal(reply)

    def _check_there(self, name: ObjectName, body: Body, *, is_read_back: bool) -> None:
        """Refuse what is there if it is not the body.

        Raises:
            IntegrityError: ``object-differs``.
            RemoteError: it cannot be looked at, or is not there after all.
        """
        path = path_of(name)
        size, digest = self._tried(lambda: self._look(path), f"look at object {name}")
        if size is None:
            raise RemoteError(
                "answer",
                f"object {name} was sent and is not there",
                hint="look at the log of the server",
            )
        is_trusted = self._trusts_digest and digest is not None and body.is_named(name)
        if size == body.size and is_read_back and not is_trusted:
            digest = self._tried(lambda: self._read_digest(path, size), f"read object {name} back")
        elif not self._trusts_digest:
            digest = body.digest
        if size != body.size or (digest is not None and digest != body.digest):
            raise IntegrityError(
                "object-differs",
                f"object {name} is there with other bytes ({size}, offered {body.size})",
                hint="look at the object on the server; what is there was left as it is",
            )

    def _look(self, path: str) -> tuple[int | None, Digest | None]:
        fields = WANT_DIGEST if self._trusts_digest else None
        with self.transport.exchange("HEAD", path, fields=fields) as reply:
            if reply.status == MISSING:
                return None, None
            if reply.status != OK or reply.length is None:
                raise self._refusal(reply)
            return reply.length, reported_digest(reply)

    def _read_digest(self, path: str, size: int) -> Digest:
        with self.transport.exchange("GET", path) as reply:
            if reply.status != OK:
                raise self._refusal(reply)
            read = hashlib.sha256()
            for piece in reply.iter_pieces(size):
                read.update(piece)
            return Digest(read.digest())

    # --- reading ---

    def stat(self, name: ObjectName) -> int | None:
        """Return the size of the object in bytes, or None where there is none."""
        path = path_of(name)
        return self._tried(lambda: self._stat(path), f"look at object {name}")

    def _stat(self, path: str) -> int | None:
        with self.transport.exchange("HEAD", path) as reply:
            if reply.status == MISSING:
                return None
            if reply.status != OK or reply.length is None:
                raise self._refusal(reply)
            return reply.length

    def read(self, name: ObjectName, offset: int = 0, length: int | None = None) -> bytes:
        """Return exactly the bytes asked for; see `ObjectStore.read`."""
        path = path_of(name)
        if offset < 0 or (length is not None and length < 0):
            raise ValueError("offset and length are not negative")
        if length is None and offset == 0:
            return self._tried(lambda: self._read_whole(name, path), f"read object {name}")
        if not length:
            size = self.stat(name)
            if size is None:
                raise _missing(name)
            _check_range(name, size, offset, length)
            length = size - offset if length is None else 0
            if length == 0:
                return b""
        asked = length
        return self._tried(
            lambda: self._read_range(name, path, offset, asked), f"read object {name}"
        )

    def _read_whole(self, name: ObjectName, path: str) -> bytes:
        with self.transport.exchange("GET", path) as reply:
            if reply.status == MISSING:
                raise _missing(name)
            if reply.status != OK:
                raise self._refusal(reply)
            if (reply.length or 0) > PACK_MAX_BYTES:
                raise _too_long(name)
            data = reply.read(PACK_MAX_BYTES)
        if len(data) > PACK_MAX_BYTES:
            raise _too_long(name)
        return data

    def _read_range(self, name: ObjectName, path: str, offset: int, length: int) -> bytes:
        last = offset + length - 1
        fields = {"Range": f"bytes={offset}-{last}"}
        with self.transport.exchange("GET", path, fields=fields) as reply:
            if reply.status == MISSING:
                raise _missing(name)
            if reply.status == BEYOND:
                raise _short(name, offset, length)
            if reply.status == OK:  # the server knows no ranges
                data = reply.read(PACK_MAX_BYTES)
                _check_range(name, len(data), offset, length)
                return data[offset : last + 1]
            found = _RANGE.match(reply.fields.get("content-range", ""))
            if reply.status != PARTIAL or not found or int(found[1]) != offset:
                raise self._refusal(reply)
            _check_range(name, int(found[3]), offset, length)
            data = reply.read(length)
        if len(data) != length or int(found[2]) != last:
            raise _odd(f"the remote answered a range of object {name} with another one")
        return data

    def iter_names(self) -> Iterator[ObjectName]:
        """Yield each object's name once, in ascending order, where the server lists them.

        Raises:
            RemoteError: ``no-listing``: it does not.
        """
        last = ""
        while True:
            names = self.page(last)
            if not names:
                return
            for name in names:
                if name <= last:
                    raise _odd("the remote listed names out of order")
                yield name
                last = name

    def page(self, after: str) -> list[ObjectName]:
        """Return the next names after one, or the first for an empty text; none at the end.

        Raises:
            RemoteError: ``no-listing``.
        """
        query = f"?after={after}" if after else ""
        return self._tried(partial(self._page, query), "list the remote")

    def _page(self, query: str) -> list[ObjectName]:
        limit = MIRROR_PAGE_NAMES * _LINE_MAX_BYTES
        with self.transport.exchange("GET", query) as reply:
            if reply.status in _AGAIN or reply.status == 401:  # noqa: PLR2004
                raise self._refusal(reply)
            lines = reply.read(limit).splitlines() if reply.status == OK else None
        if lines is None or len(lines) > MIRROR_PAGE_NAMES:
            raise _no_listing()
        names = [found[1] for line in lines if (found := _LINE.match(line))]
        if len(names) != len(lines):
            raise _no_listing()
        return [ObjectName(name.decode("ascii")) for name in names]

    # --- answers ---

    def _tried(self, attempt: Callable[[], T], doing: str) -> T:
        return self._patience.run(attempt, doing=doing)

    def _refusal(self, reply: Reply) -> RemoteError | BrokenOffError:
        return refusal_of(reply, self.transport.base.host)


def refusal_of(reply: Reply, host: str) -> RemoteError | BrokenOffError:
    """Return what an answer means that gave nothing."""
    if reply.status in _AGAIN:
        return BrokenOffError(f"it answered {reply.status}", retry_after(reply))
    if reply.status in _REFUSED:
        return RemoteError(
            "refused",
            f"'{host}' refused the credentials ({reply.status})",
            hint="check the credentials file of the remote, and what they allow",
        )
    if reply.status in _FULL:
        return RemoteError(
            "full",
            f"'{host}' takes no more ({reply.status})",
            hint="raise its quota or its limit for one object, or free space there",
        )
    return _odd(f"'{host}' answered {reply.status}")


def _odd(what: str) -> RemoteError:
    return RemoteError(
        "answer",
        what,
        hint="check the URL, and what the specification asks of a server",
    )


def _no_listing() -> RemoteError:
    return RemoteError(
        "no-listing",
        "the remote does not list its objects",
        hint="use a remote that does, such as durarepo's own server",
    )


def _missing(name: ObjectName) -> IntegrityError:
    return IntegrityError(
        "object-missing", f"object {name} is not there", hint="look for it on another remote"
    )


def _too_long(name: ObjectName) -> IntegrityError:
    return IntegrityError(
        "object-size",
        f"object {name} is longer than {PACK_MAX_BYTES} bytes",
        hint="look for it on another remote",
    )


def _short(name: ObjectName, offset: int, length: int | None) -> IntegrityError:
    return IntegrityError(
        "object-short",
        f"object {name} ends before {length} bytes from {offset}",
        hint="look for it on another remote",
    )


def _check_range(name: ObjectName, size: int, offset: int, length: int | None) -> None:
    if size > PACK_MAX_BYTES:
        raise _too_long(name)
    if offset + (length or 0) > size:
        raise _short(name, offset, length)
