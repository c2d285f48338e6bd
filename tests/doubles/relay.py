"""A relay before a server that cuts connections after so many bytes, in one direction.

Knows nothing of what passes. Closes all that it opened. Start at `cutting_relay`.
"""

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

_WAIT_SECONDS = 0.05


@dataclass(slots=True, kw_only=True)
class Relay:
    """What is cut: so many first connections, after so many bytes up or down; -1 for never."""

    target: int
    to_server: int = -1
    to_client: int = -1
    cuts: int = 1
    threads: list[threading.Thread] = field(default_factory=list)
    is_over: bool = False

    def run(self, listener: socket.socket) -> None:
        """Take connections until it is over."""
        while not self.is_over:
            ready, _, _ = select.select([listener], [], [], _WAIT_SECONDS)
            if ready:
                client, _ = listener.accept()
                is_cut, self.cuts = self.cuts > 0, self.cuts - 1
                thread = threading.Thread(target=self._pass_on, args=(client, is_cut))
                self.threads.append(thread)
                thread.start()

    def _pass_on(self, client: socket.socket, is_cut: bool) -> None:  # noqa: FBT001 - of a thread
        server = socket.create_connection(("127.0.0.1", self.target))
        left = {client: self.to_server if is_cut else -1, server: self.to_client if is_cut else -1}
        with client, server, contextlib.suppress(OSError):
            while not self.is_over and 0 not in left.values():
                ready, _, _ = select.select([client, server], [], [], _WAIT_SECONDS)
                for one in ready:
                    data = one.recv(4096 if left[one] < 0 else min(left[one], 4096))
                    if not data:
                        return
                    (server if one is client else client).sendall(data)
                    left[one] -= len(data) if left[one] > 0 else 0


@contextlib.contextmanager
def cutting_relay(
    target: int, *, to_server: int = -1, to_client: int = -1, cuts: int = 1
) -> Iterator[int]:
    """Relay to a port of loopback, and give the port to connect to."""
    relay = Relay(target=target, to_server=to_server, to_client=to_client, cuts=cuts)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=relay.run, args=(listener,))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            relay.is_over = True
            thread.join()
            for one in relay.threads:
                one.join()
