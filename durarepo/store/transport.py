"""One exchange with an HTTPS server: a method, a path, fields and bytes, and what comes back.

The only door of urllib3. Certificates are verified before a byte of a request is sent, no
redirect is followed, no proxy or other variable is looked at, nothing is tried twice here, and
what a server sends is read only within bounds.
Source: spec/mirror.md 2 and 3. Start at `Transport.exchange`.
"""

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Protocol

from urllib3 import HTTPResponse, HTTPSConnectionPool, Timeout
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


class Reply:
    """What a server answered: a status, its fields in lower case, and bytes to be read."""

    def __init__(self, response: HTTPResponse, check_time: Callable[[int], None]) -> None:
        self.status = response.status
        self.fields: Mapping[str, str] = {
            name.lower(): value for name, value in response.headers.items()
        }
        self._response = response
        self._check_time = check_time

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
            self._check_time(got)
            try:
                piece = self._response.read1(_WINDOW)
            except (HTTPError, OSError) as error:
                raise BrokenOffError("the answer broke off") from error
            if not piece:
                return
            got += len(piece)
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
        self._pool = HTTPSConnectionPool(
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
        began = self._waits.now()

        def check_time(moved: int) -> None:
            spent = self._waits.now() - began
            if spent > self._pace.exchange + moved / self._pace.least_rate:
                raise BrokenOffError("it was too slow")

        response = self._request(method, path, self._fields(fields, body), body, check_time)
        reply = Reply(response, check_time)
        try:
            yield reply
        finally:
            reply.release()

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
        check_time: Callable[[int], None],
    ) -> HTTPResponse:
        try:
            response = self._pool.urlopen(
                method,
                self.base.path + path,
                body=None if body is None else _timed(body, check_time),
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


def _timed(body: Body, check_time: Callable[[int], None]) -> Iterator[bytes]:
    sent = 0
    for piece in checked_pieces(body):
        check_time(sent)
        yield piece
        sent += len(piece)


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
