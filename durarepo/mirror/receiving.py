"""The body of a PUT on its way from the network to the disk, a window at a time.

The network is waited for on the thread of the event loop, the disk on a thread of its own, and
the one asks the other for the next window: so memory is bounded, and a slow client holds up
nobody. Length and digest are compared before the object gets its name.
Source: spec/mirror.md 4. Start at `Incoming.pieces`.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import TypeAlias

from durarepo.core.limits import (
    MIRROR_BODY_STALL_SECONDS,
    REMOTE_EXCHANGE_SECONDS,
    REMOTE_LEAST_RATE_BYTES,
)
from durarepo.mirror.asking import RefusedRequestError, Upload

Message: TypeAlias = MutableMapping[str, object]
Receive: TypeAlias = Callable[[], Awaitable[Message]]

WINDOW = 512 * 1024


class ClientGoneError(Exception):
    """The client went away before its body was whole."""


class Incoming:
    """A body that is being received."""

    def __init__(
        self, upload: Upload, receive: Receive, *, stall: float = MIRROR_BODY_STALL_SECONDS
    ) -> None:
        """Prepare, on the thread of the event loop.

        Args:
            upload: what the request says of the body.
            receive: gives the next message of the request.
            stall: seconds without a byte after which the client is given up.
        """
        self._upload = upload
        self._receive = receive
        self._stall = stall
        self._loop = asyncio.get_running_loop()
        allowed = REMOTE_EXCHANGE_SECONDS + upload.size / REMOTE_LEAST_RATE_BYTES
        self._until = self._loop.time() + allowed
        self._is_done = False
        self.received = 0

    def pieces(self) -> Iterator[bytes]:
        """Yield the body in windows; called on the thread that writes.

        Raises:
            ClientGoneError: it ended before it was whole.
            RefusedRequestError: 408, it came too slowly; 422, it is not what was said of it.
        """
        digest = hashlib.sha256()
        while not self._is_done:
            piece = asyncio.run_coroutine_threadsafe(self._window(), self._loop).result()
            if not isinstance(piece, bytes):
                raise piece
            digest.update(piece)
            if piece:
                yield piece
        if self.received != self._upload.size or digest.digest() != self._upload.digest:
            raise RefusedRequestError(422)

    async def _window(self) -> bytes | ClientGoneError | RefusedRequestError:
        """Return the next window, or why there is none; raises nothing into the event loop."""
        parts = bytearray()
        while len(parts) < WINDOW and not self._is_done:
            patience = min(self._stall, self._until - self._loop.time())
            try:
                message = await asyncio.wait_for(self._receive(), max(patience, 0))
            except TimeoutError:
                return RefusedRequestError(408)
            if message["type"] != "http.request":
                return ClientGoneError()
            body = message.get("body", b"")
            parts += body if isinstance(body, bytes) else b""
            self._is_done = not message.get("more_body", False)
        self.received += len(parts)
        if self.received > self._upload.size:
            return RefusedRequestError(422)
        return bytes(parts)
