"""What a mirror tells of itself: one line a request, and counters. Neither ever holds a token.

Source: spec/mirror.md 4. Start at `Counters`.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TypeAlias

from durarepo.mirror.shelves import Shelf

AccessLog: TypeAlias = Callable[[Mapping[str, object]], None]


def time_text(seconds: float) -> str:
    """Return a time in seconds since 1970 as RFC 3339, UTC."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Counters:
    """Sums since the start of the server."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self.bytes_in = 0
        self.bytes_out = 0
        self.uploads = 0

    def note(self, method: str, status: int) -> None:
        """Count one request; a method that is not one of ours has no line of its own."""
        known = method if method in {"GET", "HEAD", "PUT"} else "other"
        self._requests[known, status] += 1

    def text(self, shelves: Mapping[str, Shelf]) -> bytes:
        """Return all of it in the text form that Prometheus reads."""
        lines = [
            f'durarepo_mirror_requests_total{{method="{method}",status="{status}"}} {count}'
            for (method, status), count in sorted(self._requests.items())
        ]
        lines += [
            f"durarepo_mirror_received_bytes_total {self.bytes_in}",
            f"durarepo_mirror_sent_bytes_total {self.bytes_out}",
            f"durarepo_mirror_uploads {self.uploads}",
        ]
        for scope, shelf in sorted(shelves.items()):
            lines += [
                f'durarepo_mirror_objects{{scope="{scope}"}} {shelf.objects}',
                f'durarepo_mirror_stored_bytes{{scope="{scope}"}} {shelf.bytes}',
            ]
        return ("\n".join(lines) + "\n").encode()
