"""One child process measured whole: CPU seconds of it and its children, and peak memory.

The numbers are the kernel's own (wait4), not samples. A child's peak memory is at least that of
this process when it was started, so this process stays small; `FLOOR` says what it was.
Source: getrusage(2), wait4(2). Start at `run_measured`.
"""

import os
import platform
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_TAIL_BYTES = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one call took. ``rss_kib`` is the peak of the largest single process of its tree."""

    cpu: float
    wall: float
    rss_kib: int
    code: int
    load: float
    tail: str
    output: bytes


def run_measured(
    command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path
) -> Measured:
    """Run one command to its end and measure it.

    Args:
        command: the program and its arguments.
        environment: all of the child's environment.
        folder: where it runs.
        log: a file that takes what it prints.
    """
    os.sync()
    load = os.getloadavg()[0]
    with log.open("w+b") as out:
        began = time.monotonic()
        child = subprocess.Popen(
            command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        output = out.read()
    return Measured(
        cpu=round(usage.ru_utime + usage.ru_stime, 4),
        wall=round(wall, 4),
        rss_kib=usage.ru_maxrss,
        code=child.returncode,
        load=round(load, 2),
        tail=output[-_TAIL_BYTES:].decode("utf-8", "replace") if child.returncode else "",
        output=output,
    )


def floor_kib() -> int:
    """Return the peak memory of this process, below which no child can be measured."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def machine() -> dict[str, str]:
    """Return what of this machine belongs at the head of a table."""
    processor = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            processor = line.split(":", 1)[1].strip()
            break
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": f"{os.cpu_count()} cores, {processor}",
        "memory": f"{pages / (1 << 30):.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
    }


def stored_bytes(folder: Path) -> int:
    """Return the sum of the sizes of all files of a repository."""
    total = 0
    for place, _, names in os.walk(folder):
        total += sum(os.lstat(os.path.join(place, name)).st_size for name in names)
    return total
