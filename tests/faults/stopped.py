"""The n-th system call of a real process fails, below Python and below SQLite: by strace.

The program is `tests.faults.operate`, in a process of its own. Slow, about a second each, but
nothing can pass it by: it reaches what C code opens, reads and writes, and a real EINTR.
Start at `Stopped`.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.cli.harness import TOP
from tests.crash.disk import lay_out
from tests.faults.outcomes import Bench, Outcome

CALLS = {
    "openat": ("EIO", "EACCES", "ENOSPC", "EINTR"),
    "read": ("EIO", "EINTR"),
    "pread64": ("EIO", "EINTR"),
    "write": ("EIO", "ENOSPC", "EDQUOT", "EINTR"),
    "pwrite64": ("EIO", "ENOSPC", "EDQUOT"),
    "fsync": ("EIO", "ENOSPC"),
    "fdatasync": ("EIO", "ENOSPC"),
    "renameat": ("EIO", "EACCES"),
    "linkat": ("EIO", "ENOSPC"),
    "mkdirat": ("EIO", "ENOSPC"),
    "mkdir": ("EIO", "ENOSPC"),
    "unlink": ("EIO", "EACCES"),
    "ftruncate": ("EIO", "EINTR"),
    "newfstatat": ("EIO", "EACCES"),
}
"""By system call: the errors that are tried."""

_LINE = re.compile(r"(?:\d+ +)?(\w+)\((.*)", re.DOTALL)
_FOLDER = re.compile(r"<(/[^>]*)>")
_NAME = re.compile(r'"([^"]*)"')
_BESIDE = re.compile(r'(?:^|at\()\d+<[^>]*>, "')
"""A name beside an open folder; the bytes of a write are no name."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The ``number``-th call of ``call`` in the whole process ends with ``error``."""

    call: str
    number: int
    error: str

    def __str__(self) -> str:
        """Name it for a person."""
        return f"{self.call} {self.number}: {self.error}"


class Stopped:
    """Snapshots of a bench's stream in processes whose system calls fail."""

    def __init__(self, bench: Bench) -> None:
        """Record once which calls a run makes, and which of them are on what is of the stream."""
        self.bench = bench
        self._log = bench.stream.base / "stopped.log"
        self._run(["-e", "trace=" + ",".join("?" + name for name in CALLS)])
        self.stops = self._found()

    def share(self, chance: random.Random, count: int) -> list[Stop]:
        """Return ``count`` of what can be tried, by chance."""
        return chance.sample(self.stops, min(count, len(self.stops)))

    def check(self, stop: Stop) -> None:
        """Let one call fail and check what the run said and left; see `Bench.judge`."""
        inject = f"inject={stop.call}:error={stop.error}:when={stop.number}"
        done = self._run(["-e", f"trace={stop.call}", "-e", inject])
        hit = self._hit()
        assert done.stdout, f"{stop}: the process was lost: {done.stderr[-2000:]!r}"
        told = json.loads(done.stdout)
        left_out = tuple(os.fsencode(path) for path in told["left_out"])
        outcome = Outcome(told["code"], told["error"], left_out, hit, {})
        self.bench.judge("snapshot", str(stop), outcome)

    def _run(self, options: list[str]) -> subprocess.CompletedProcess[bytes]:
        bench = self.bench
        lay_out(bench.home, bench.before)
        shutil.rmtree(bench.target, ignore_errors=True)
        program = [sys.executable, "-m", "tests.faults.operate", str(bench.stream.base)]
        return subprocess.run(
            ["strace", "-f", "-qq", "-y", "-e", "signal=none", *options, "-o", self._log, *program],
            env=os.environ
            | {
                "PYTHONPATH": f"{TOP}:{TOP / 'cli'}",
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONHASHSEED": "0",
            },
            cwd=TOP,
            capture_output=True,
            check=False,
            timeout=120,
        )

    def _found(self) -> list[Stop]:
        counts: dict[str, int] = {}
        stops = []
        for line in self._log.read_text(errors="surrogateescape").splitlines():
            found = _LINE.match(line)
            if found is None or found[1] not in CALLS:
                continue
            call = found[1]
            counts[call] = counts.get(call, 0) + 1
            if self._path_of(line) is not None:
                stops += [Stop(call, counts[call], error) for error in CALLS[call]]
        return stops

    def _hit(self) -> bytes | None:
        for line in self._log.read_text(errors="surrogateescape").splitlines():
            if "(INJECTED)" in line:
                return self._path_of(line)
        return None

    def _path_of(self, text: str) -> bytes | None:
        """Return the path of the stream that a logged call is about; None if it is about none."""
        arguments = text.partition(") = ")[0]
        folder = _FOLDER.search(arguments)
        name = _NAME.search(arguments)
        path = None if folder is None else folder[1]
        if name is not None and (name[1].startswith("/") or folder is None):
            path = name[1]
        elif name is not None and folder is not None and _BESIDE.search(arguments):
            path = f"{folder[1]}/{name[1]}"
        base = Path(os.fsdecode(bytes(self.bench.stream.base)))
        if path is None or not path.startswith((str(base / "notes"), str(base / "root"))):
            return None
        return os.fsencode(path.removesuffix(" (deleted)"))
