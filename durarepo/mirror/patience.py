"""How long the server waits for a client: for a request's head, and for the rest after an answer.

The only door of uvicorn's HTTP protocol. An early answer leaves the connection open, and what
the client still sends is dropped, so that it can read the status instead of a reset.
Source: spec/mirror.md 4 and 5. Start at `PatientProtocol`.
"""

from asyncio import TimerHandle, Transport

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from durarepo.core.limits import MIRROR_DRAIN_SECONDS, MIRROR_HEAD_SECONDS

HEAD_MAX_BYTES = 64 * 1024
"""A head that is longer is none of ours."""


class PatientProtocol(HttpToolsProtocol):
    """One connection, cut where its client takes too long."""

    head_seconds: float = MIRROR_HEAD_SECONDS
    drain_seconds: float = MIRROR_DRAIN_SECONDS
    _timer: TimerHandle | None = None
    _is_receiving = False
    _is_in_head = False
    _head_bytes = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override] # as uvicorn
        """Wait for the first request, but not for ever."""
        super().connection_made(transport)
        self._arm(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; a head that does not end is not waited for."""
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_MAX_BYTES:
                self._cut()

    def on_message_begin(self) -> None:
        """Wait for the head of a request."""
        self._arm(self.head_seconds)
        self._is_in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Hand the request over; the application waits for its body."""
        self._disarm()
        self._is_in_head, self._is_receiving = False, True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that the whole request is here."""
        self._is_receiving = False
        self._disarm()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Drop what is still to come of an answered request, for a while."""
        super().on_response_complete()
        if self._is_receiving:
            self._arm(self.drain_seconds)

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._timer = self.loop.call_later(seconds, self._cut)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cut(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
