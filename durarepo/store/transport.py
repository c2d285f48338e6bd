"""One exchange with an HTTPS server: a method, a path, fields and bytes, and what comes back.

The only door of urllib3. Certificates are verified before a byte of a request is sent, no
redirect is followed, no proxy or other variable is looked at, nothing is tried twice here, and
what a server sends is read only within bounds: each read of an answer, its head too, is one
step of an exchange whose time runs.
Source: spec/mirror.md 2 and 3. Start at `Transport.exchange`.
"""

import http.client
import io
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Protocol

from urllib3 import HTTPResponse, HTTPSConnectionPool, Timeout
from urllib3.connection import HTTPSConnection
from urllib3.exceptions import HTTPError, SSLError

from durarepo.core.errors import RemoteError
from durarepo.core.limits import (
    REMOTE_EXCHANGE_SECONDS,
    REMOTE_LEAST_RATE_BYTES,
    REMOTE_STALL_SECONDS,
)
from durarepo.core.secret import Secret
from durarepo.store.bodies import checked_pieces
from durarepo.store.port import Body
from durarepo.store.remoteurl import HttpsUrl

USER_AGENT = "durarepo"
_CONNECTIONS = 8
_WINDOW = 256 * 1024
_REST_MAX_BYTES = 16 * 1024
"""So much of an answer that nobody wants is read, so that its connection can be used again."""
_DAMAGED_RECORD = frozenset({"DECRYPTION_FAILED_OR_BAD_RECORD_MAC", "SSLV3_ALERT_BAD_RECORD_MAC"})


class BrokenOffError(Exception):
    """An exchange came to no end: it may be tried again.

    Attributes:
        why: a few words for a message.
        retry_after: seconds that the server asked for, or None.
    """

    def __init__(self, why: str, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.retry_after = retry_after


class Waits(Protocol):
    """The time as a remote needs it: how late it is, waiting, and a share of a wait."""

    def now(self) -> float:
        """Return seconds that only ever grow."""
        ...

    def wait(self, seconds: float) -> None:
        """Come back after so long."""
        ...

    def share(self) -> float:
        """Return a random number, at least 0 and below 1."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How slow a server may be, in seconds and bytes a second."""

    stall: float = REMOTE_STALL_SECONDS
    exchange: float = REMOTE_EXCHANGE_SECONDS
    least_rate: int = REMOTE_LEAST_RATE_BYTES


class _Exchange:
    """One exchange as it runs: how long it may take, and the socket that it uses."""

    def __init__(self, waits: Waits, pace: Pace) -> None:
        self._waits = waits
        self._pace = pace
        self._began = waits.now()
        self._moved = 0
        self.socket: socket.socket | None = None

    def moved(self, count: int) -> None:
        """Give time for so many bytes of a body; those of a head earn none."""
        self._moved += count

    def check_time(self) -> None:
        """Refuse to go on when the time is over.

        Raises:
            BrokenOffError: it is.
        """
        spent = self._waits.now() - self._began
        if spent > self._pace.exchange + self._moved / self._pace.least_rate:
            raise BrokenOffError("it was too slow")

    def is_unanswered(self) -> bool:
        """Return whether the server still listens and has said nothing; ends the exchange."""
        if self.socket is None:
            return False
        try:
            self.socket.settimeout(0)
            self.socket.recv(1)
        except ssl.SSLWantReadError:
            return True
        except OSError:
            return False
        return False


_RUNNING: ContextVar[_Exchange] = ContextVar("exchange")
"""The exchange for which a connection is asked, on this thread."""


class _WatchedReads(io.RawIOBase):
    """What comes from a socket, as long as the exchange may take."""

    def __init__(self, raw: io.RawIOBase, exchange: _Exchange) -> None:
        super().__init__()
        self._raw = raw
        self._exchange = exchange

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override] # as it is called
        """Read once, if there is time left."""
        self._exchange.check_time()
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Give the socket back."""
        self._raw.close()
        super().close()


class _WatchedResponse(http.client.HTTPResponse):
    """An answer whose head is not waited for without end, however slowly it drips."""

    def __init__(
        self,
        sock: socket.socket,
        debuglevel: int = 0,
        method: str | None = None,
        url: str | None = None,
    ) -> None:
        super().__init__(sock, debuglevel, method, url)
        raw = self.fp.detach()
        self.fp = io.BufferedReader(_WatchedReads(raw, _RUNNING.get()))


class _Connection(HTTPSConnection):
    """A connection whose answers are watched."""

    response_class = _WatchedResponse

    def putrequest(
        self,
        method: str,
        url: str,
        skip_host: bool = False,  # noqa: FBT001, FBT002 - as http.client has it
        skip_accept_encoding: bool = False,  # noqa: FBT001, FBT002 - as above
    ) -> None:
        """Begin a request, on a socket that the exchange then knows."""
        super().putrequest(method, url, skip_host, skip_accept_encoding)
        _RUNNING.get().socket = self.sock


class _Pool(HTTPSConnectionPool):
    ConnectionCls = _Connection


class Reply:
    """What a server answered: a status, its fields in lower case, and bytes to be read."""

    def __init__(self, response: HTTPResponse, exchange: _Exchange) -> None:
        self.status = response.status
        self.fields: Mapping[str, str] = {
            name.lower(): value for name, value in response.headers.items()
        }
        self._response = response
        self._exchange = exchange

    @property
    def length(self) -> int | None:
        """The size in bytes that the answer declares, or None where it declares none."""
        text = self.fields.get("content-length", "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None  # noqa: PLR2004

    def iter_pieces(self, limit: int) -> Iterator[bytes]:
        """Yield the bytes of the answer, at most ``limit`` of them and one more piece.

        Raises:
            BrokenOffError: they end before the declared length, stall, or come too slowly.
        """
        got = 0
        while got <= limit:
            self._exchange.check_time()
            try:
                piece = self._response.read1(_WINDOW)
            except (HTTPError, OSError) as error:
                raise BrokenOffError("the answer broke off") from error
            if not piece:
                return
            got += len(piece)
            self._exchange.moved(len(piece))
            yield piece

    def read(self, limit: int) -> bytes:
        """Return the bytes of the answer; more than ``limit`` where it is longer than that."""
        return b"".join(self.iter_pieces(limit))

    def release(self) -> None:
        """Let the connection be used again, or close it where too much would come."""
        rest = _REST_MAX_BYTES + 1
        with suppress(BrokenOffError):
            rest = sum(map(len, self.iter_pieces(_REST_MAX_BYTES)))
        if rest > _REST_MAX_BYTES:
            self._response.close()
        self._response.release_conn()  # a closed one too: its place is what the next waits for


class Transport:
    """Exchanges with one server, over a few connections that stay open."""

    def __init__(
        self,
        base: HttpsUrl,
        *,
        context: ssl.SSLContext,
        waits: Waits,
        authorization: Secret | None = None,
        pace: Pace | None = None,
    ) -> None:
        """Prepare; nothing is opened yet.

        Args:
            base: where the objects lie.
            context: verifies certificate and host name, as `verifying_context` makes it.
            waits: the time.
            authorization: the value of the field of that name.
            pace: how slow the server may be.

        Raises:
            ValueError: the context does not verify.
        """
        if context.verify_mode is not ssl.CERT_REQUIRED or not context.check_hostname:
            raise ValueError("a remote is never spoken to without verification")
        self.base = base
        self._authorization = authorization
        self._waits = waits
        self._pace = pace or Pace()
        self._pool = _Pool(
            base.host.strip("[]"),
            base.port,
            ssl_context=context,
            maxsize=_CONNECTIONS,
            block=True,
            timeout=Timeout(connect=self._pace.stall, read=self._pace.stall),
        )

    def close(self) -> None:
        """Close the connections; closing twice is fine."""
        self._pool.close()

    @contextmanager
    def exchange(
        self,
        method: str,
        path: str,
        *,
        fields: Mapping[str, str] | None = None,
        body: Body | None = None,
    ) -> Iterator[Reply]:
        """Send one request and give its answer, for as long as the context is open.

        Args:
            method: in capitals.
            path: below the base, without leading slash; with a query if there is one.
            fields: what is sent beside the fixed fields.
            body: sent with its length.

        Raises:
            BrokenOffError: there was no whole answer in time.
            RemoteError: ``tls``: the server is not the one that was meant.
        """
        running = _Exchange(self._waits, self._pace)
        response = self._request(method, path, self._fields(fields, body), body, running)
        reply = Reply(response, running)
        try:
            yield reply
        finally:
            reply.release()

    def leave_off(self, path: str, *, fields: Mapping[str, str], body: Body, pause: float) -> bool:
        """Begin a PUT, wait, and go away before its end.

        Args:
            path: below the base.
            fields: what is sent beside the fixed fields.
            body: as it is announced, with the pieces that come before the end; all but the last
                of them are sent.
            pause: seconds between the last byte and going away.

        Returns:
            Whether the server was then still waiting for the rest: it had neither answered nor
            gone away.

        Raises:
            RemoteError: ``tls``.
        """
        running = _Exchange(self._waits, self._pace)
        was_waiting = False

        def pieces() -> Iterator[bytes]:
            nonlocal was_waiting
            yield from body.pieces()
            self._waits.wait(pause)
            was_waiting = running.is_unanswered()
            raise BrokenOffError("broken off on purpose")

        begun = replace(body, pieces=pieces)
        with suppress(BrokenOffError):
            self._request("PUT", path, self._fields(fields, begun), begun, running).close()
        return was_waiting

    def _fields(self, given: Mapping[str, str] | None, body: Body | None) -> dict[str, str]:
        fields = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **(given or {})}
        if self._authorization is not None:
            fields["Authorization"] = self._authorization.reveal().decode("ascii")
        if body is not None:
            fields["Content-Length"] = str(body.size)
        return fields

    def _request(
        self,
        method: str,
        path: str,
        fields: dict[str, str],
        body: Body | None,
        running: _Exchange,
    ) -> HTTPResponse:
        token = _RUNNING.set(running)
        try:
            response = self._pool.urlopen(
                method,
                self.base.path + path,
                body=None if body is None else _timed(body, running),
                headers=fields,
                retries=False,
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
        except SSLError as error:
            raise self._refusal(error) from error
        except HTTPError as error:
            raise BrokenOffError(_why(error)) from error
        finally:
            _RUNNING.reset(token)
        if not isinstance(response, HTTPResponse):
            raise BrokenOffError("it answered in another protocol")
        return response

    def _refusal(self, error: SSLError) -> RemoteError | BrokenOffError:
        cause = error.args[0] if error.args else None
        if isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError | ssl.SSLSyscallError):
            return BrokenOffError("the connection ended early")
        if getattr(cause, "reason", None) in _DAMAGED_RECORD:
            return BrokenOffError("bytes were damaged on their way")
        why = getattr(cause, "verify_message", None) or getattr(cause, "reason", None) or "TLS"
        return RemoteError(
            "tls",
            f"'{self.base.host}' is not accepted: {why}",
            hint="check its certificate, the host name in the URL and the CA file; "
            "nothing was sent to it",
        )


def _timed(body: Body, running: _Exchange) -> Iterator[bytes]:
    for piece in checked_pieces(body):
        running.check_time()
        yield piece
        running.moved(len(piece))


def _why(error: HTTPError) -> str:
    words = {
        "NameResolutionError": "its name is not known",
        "NewConnectionError": "nothing answers there",
        "ConnectTimeoutError": "nothing answers there in time",
        "ReadTimeoutError": "it does not answer in time",
    }
    return words.get(type(error).__name__, "the connection broke")


def retry_after(reply: Reply) -> float | None:
    """Return the seconds that an answer asks to wait, or None; a date counts from its `Date`."""
    text = reply.fields.get("retry-after", "").strip()
    if text.isascii() and text.isdigit() and len(text) < 9:  # noqa: PLR2004
        return float(text)
    try:
        until = parsedate_to_datetime(text)
        since = parsedate_to_datetime(reply.fields.get("date", ""))
        return max((until - since).total_seconds(), 0.0)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
