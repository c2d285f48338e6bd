"""Which parts of a content were scanned before, so that only what changed is scanned again.

What a scan says of a part depends on the part and on `OVERLAP_BYTES` before and after it. Parts
are known by their SHA-256; where one follows another as it did when all of them were scanned and
nothing was found, nothing is there now. Around every other border so many bytes are scanned that
each match near it is seen whole. A hit may then stand at the edge of what was looked at, and be
none in the whole: whoever finds one scans all again without a memory.
Source: spec/exclusion.md 6. Start at `ScanMemory.scan`.
"""

import hashlib
from collections import deque
from collections.abc import Callable

from durarepo.policy.scanning import CLEAN, OVERLAP_BYTES, Findings, Scan

PART_BYTES = 32 * 1024
_KEY_BYTES = 32


class ScanMemory:
    """Parts of one content: those of an earlier scan that found nothing, and those of this one.

    Only good for the rules that the earlier scan used; the caller sees to that.
    """

    def __init__(self, before: bytes = b"") -> None:
        """Take what `encode` gave after the earlier scan; empty if there was none."""
        self._before = before
        self._shape = b""
        self._scan: RememberedScan | None = None

    @property
    def has_skipped(self) -> bool:
        """Whether anything was not scanned because it had been before."""
        return self._scan is not None and self._scan.has_skipped

    def scan(self, start: Callable[[], Scan], *, shape: bytes = b"") -> "RememberedScan":
        """Return a scan of the content as it is now.

        Args:
            start: begins a scan of some bytes.
            shape: what else the earlier look depended on; of another one nothing is believed.
        """
        self._shape = _key(shape)
        keys = self._before[_KEY_BYTES:] if self._before[:_KEY_BYTES] == self._shape else b""
        places = range(0, len(keys), _KEY_BYTES)
        self._scan = RememberedScan(start, [keys[at : at + _KEY_BYTES] for at in places])
        return self._scan

    def encode(self) -> bytes:
        """Return what to know at the next scan, if nothing was found in this one."""
        if self._scan is None or self._scan.is_wide:
            return b""
        return self._shape + b"".join(self._scan.keys)


class RememberedScan:
    """One content, fed from its first byte to its last; ``seen`` and ``is_wide`` as of `Scan`.

    Both are of what was scanned alone.
    """

    def __init__(self, start: Callable[[], Scan], before: list[bytes]) -> None:
        """Prepare; ``before`` are the parts of the earlier scan, in order."""
        self._start = start
        self._before = before
        self._places = {key: number for number, key in enumerate(before)}
        self._nowhere = len(before)
        self._at = -1
        self._tail: deque[bytes] = deque()
        self._tail_bytes = self._fed_bytes = self._rest = 0
        self._scan: Scan | None = None
        self._scan_at = 0
        self._found: list[Findings] = []
        self.keys: list[bytes] = []
        self.seen: list[tuple[int, int]] = []
        self.is_wide = False
        self.has_skipped = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        for at in range(0, len(data), PART_BYTES):
            self._take(data[at : at + PART_BYTES])

    def feed_hole(self, length: int) -> None:
        """Take a hole of zeros, as `Scan.feed_hole` does."""
        self.feed(bytes(min(length, OVERLAP_BYTES)))

    def finish(self) -> Findings:
        """Return what was found in what was scanned."""
        if self._at != len(self._before) - 1:
            self._open()
        self._close()
        if all(one is CLEAN for one in self._found):
            return CLEAN
        return Findings(
            frozenset().union(*(one.whole for one in self._found)),
            frozenset().union(*(one.spans for one in self._found)),
            frozenset().union(*(one.hidden for one in self._found)),
            frozenset().union(*(one.bodies for one in self._found)),
        )

    def _take(self, part: bytes) -> None:
        key = _key(part)
        self.keys.append(key)
        after = self._at + 1
        if after < len(self._before) and self._before[after] == key:
            self._at = after
        else:
            self._at = self._places.get(key, self._nowhere)
            self._open()
        if self._scan is None:
            self.has_skipped = True
        else:
            self._scan.feed(part)
            self._rest -= len(part)
            if self._rest <= 0 and self._at != self._nowhere:
                self._close()
        self._keep(part)

    def _keep(self, part: bytes) -> None:
        """Hold as much of what was fed as a scan that begins behind it has to see."""
        self._fed_bytes += len(part)
        self._tail.append(part)
        self._tail_bytes += len(part)
        while self._tail_bytes - len(self._tail[0]) >= OVERLAP_BYTES:
            self._tail_bytes -= len(self._tail.popleft())

    def _open(self) -> None:
        """Scan from `OVERLAP_BYTES` before a border to as many after it."""
        self._rest = OVERLAP_BYTES
        if self._scan is None:
            self._scan = self._start()
            self._scan_at = self._fed_bytes - self._tail_bytes
            for part in self._tail:
                self._scan.feed(part)

    def _close(self) -> None:
        scan = self._scan
        if scan is None:
            return
        self._found.append(scan.finish())
        self.seen += [(start + self._scan_at, stop + self._scan_at) for start, stop in scan.seen]
        self.is_wide = self.is_wide or scan.is_wide
        self._scan = None


def _key(part: bytes) -> bytes:
    return hashlib.sha256(part).digest()
