"""Which system calls a program made on files, as the kernel's tracer tells them.

The recording stands below the program: what Python, SQLite or any library writes is in it, with
all bytes, and no line of the program knows of it. Only calls that change what is on a disk, or
that tell which file a descriptor is, are recorded. Source: strace(1). Start at `traced`.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.cli.harness import TOP

CALLS = (
    *("open", "openat", "creat", "close", "dup", "dup2", "dup3", "fcntl", "lseek"),
    *("write", "pwrite64", "writev", "pwritev", "ftruncate", "truncate", "fallocate"),
    *("fsync", "fdatasync", "link", "linkat", "rename", "renameat", "renameat2"),
    *("mkdir", "mkdirat", "unlink", "unlinkat", "rmdir", "symlink", "symlinkat"),
    *("copy_file_range", "sendfile", "splice", "pwritev2"),
)
_LINE = re.compile(r"(?:(\d+) +)?(.*)\Z", re.DOTALL)
_UNFINISHED = " <unfinished ...>"
_RESUMED = re.compile(r"<\.\.\. (\w+) resumed>(.*)\Z", re.DOTALL)
_CALL = re.compile(r"(\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+|\?)(?: .*)?\Z", re.DOTALL)
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')


@dataclass(frozen=True, slots=True)
class Call:
    """One call that succeeded: its name, its arguments as told, its strings, its result."""

    name: str
    arguments: tuple[str, ...]
    strings: tuple[bytes, ...]
    result: int


def traced(command: list[str], log: Path, *, timeout: float = 120.0) -> list[Call]:
    """Run ``command`` to a good end and return what it did to files, in order of completion.

    Raises:
        subprocess.CalledProcessError: it failed, or strace could not trace it.
    """
    names = ",".join("?" + name for name in CALLS)
    prefix = ["strace", "-f", "-qq", "-xx", "-s", str(16 << 20), "-e", "signal=none"]
    subprocess.run(
        [*prefix, "-e", f"trace={names}", "-o", str(log), *command],
        check=True,
        env=os.environ | {"PYTHONPATH": f"{TOP}:{TOP / 'cli'}", "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=TOP,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )
    with open(log, encoding="ascii") as file:
        return list(parsed(file))


def parsed(lines: Iterator[str]) -> Iterator[Call]:
    """Yield each successful call of a log, put together where another thread came between."""
    begun: dict[str, str] = {}
    for line in lines:
        thread, text = (part or "" for part in _matched(_LINE, line.rstrip("\n")).groups())
        if text.endswith(_UNFINISHED):
            begun[thread] = text.removesuffix(_UNFINISHED)
            continue
        resumed = _RESUMED.match(text)
        if resumed is not None:
            text = begun.pop(thread) + resumed[2]
        if text.startswith(("+++", "---")):
            continue
        call = _parsed(text)
        if call is not None:
            yield call


def _parsed(text: str) -> Call | None:
    name, arguments, result = _matched(_CALL, text).groups()
    if result == "?" or int(result, 0) < 0:
        return None
    strings = []
    for found in _STRING.finditer(arguments):
        if found[2]:
            raise ValueError(f"the log cuts the bytes of a call of {name} short")
        strings.append(bytes.fromhex(found[1].replace("\\x", "")))
    bare = _STRING.sub('""', arguments)
    return Call(name, tuple(bare.split(", ")), tuple(strings), int(result, 0))


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.match(text)
    if found is None:
        raise ValueError(f"a line of the log is of an unknown form: {text[:200]}")
    return found
