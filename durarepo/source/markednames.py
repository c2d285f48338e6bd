"""Names in a marked folder: what they come to, and which of the new ones a tool has made.

A cache grows every night by names that a program has made up; these come to one shape, a folder
at a time. A package manager writes down what it installs, and compilers write files of known
first bytes. Whatever else is new is somebody's, whatever its suffix.
Source: spec/exclusion.md 9; the specification of recorded installations of Python packages;
gABI, ar(5), JVM specification 4.1, PEP 3147. Start at `shape_of`.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence

_MADE_UP = re.compile(
    rb"(?<![0-9A-Za-z])(?:"
    rb"(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{12,}"  # part of a hash
    rb"|[0-9]{16,}"
    rb"|(?=[0-9A-Za-z_]*[0-9])(?=[0-9A-Za-z_]*[a-z])(?=[0-9A-Za-z_]*[A-Z])[0-9A-Za-z_]{20,}"
    rb")(?![0-9A-Za-z])"
)
_SPREAD = re.compile(rb"[0-9a-f]{1,3}\Z")
"""A folder over which hashes are spread by their first digits."""

_SUFFIX = re.compile(rb"\.[A-Za-z][0-9A-Za-z_-]{0,11}\Z")
_RECORD_MAX_BYTES = 32 << 20
_FIRST_BYTES = 8
_COMPILED = (b"\x7fELF", b"!<arch>\n", b"!<thin>\n", b"\xca\xfe\xba\xbe")
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def shape_of(name: bytes, *, is_folder: bool = False) -> bytes:
    """Return what a name comes to: itself, or `*` and its suffix where a program made it up."""
    if is_folder and _SPREAD.match(name):
        return b"*"
    if len(name) < 12 or _MADE_UP.search(name) is None:  # noqa: PLR2004  # the shortest made up
        return name
    suffix = _SUFFIX.search(name)
    return b"*" if suffix is None else b"*" + suffix[0]


def made_by_tools(folder: bytes, names: Sequence[bytes], *, packages: Iterable[bytes]) -> int:
    """Return how many of some files in a folder tools have made.

    Args:
        folder: the marked folder.
        names: paths below it.
        packages: paths below it of folders into which Python packages are installed.
    """
    recorded: set[bytes] = set()
    for place in packages:
        recorded.update(_recorded(folder, place))
    return sum(name in recorded or _is_compiled(folder, name) for name in names)


def _is_compiled(folder: bytes, name: bytes) -> bool:
    first = _read(os.path.join(folder, name), _FIRST_BYTES)
    if first.startswith(_COMPILED):
        return True
    is_bytecode = name.endswith(b".pyc") and b"__pycache__" in name.split(b"/")
    return is_bytecode and first[2:4] == b"\r\n"


def _recorded(folder: bytes, place: bytes) -> Iterator[bytes]:
    """Yield the paths that the packages installed into ``place`` list as theirs."""
    try:
        with os.scandir(os.path.join(folder, place)) as entries:
            infos = [entry.name for entry in entries if entry.name.endswith(b".dist-info")]
    except OSError:
        return
    for info in infos:
        list_path = os.path.join(place, info, b"RECORD")
        for line in _read(os.path.join(folder, list_path), _RECORD_MAX_BYTES).splitlines():
            listed = line.rsplit(b",", 2)[0].strip(b'"')
            yield os.path.normpath(os.path.join(place, listed))


def _read(path: bytes, most: int) -> bytes:
    """Return the first bytes of a regular file; of anything else none."""
    try:
        fd = os.open(path, _OPEN)
    except OSError:
        return b""
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return b""
        try:
            return file.read(most)
        except OSError:
            return b""
