"""Let the n-th call of one kind fail, below the program: every module calls `os` by its name.

Only calls on what lies below the given folders count, so that the interpreter's own are not
touched. It is used in a child that ends soon; nothing is put back. What SQLite and other C code
call is not seen here; `stopped.py` lets the kernel's tracer do it. Start at `Injector`.
"""

import builtins
import errno
import fcntl
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

SHORT = 0
"""In the place of an error: the call does only a part of what was asked."""

_FULL = (errno.ENOSPC, errno.EDQUOT)

KINDS: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "open": (("open",), (errno.EIO, errno.EACCES, *_FULL, errno.EMFILE)),
    "read": (("read", "pread", "readv", "preadv"), (errno.EIO, SHORT)),
    "write": (("write", "pwrite", "writev"), (errno.EIO, *_FULL, SHORT)),
    "fsync": (("fsync", "fdatasync"), (errno.EIO, *_FULL)),
    "rename": (("rename", "replace"), (errno.EIO, errno.EACCES, *_FULL)),
    "link": (("link",), (errno.EIO, errno.EACCES, *_FULL)),
    "mkdir": (("mkdir",), (errno.EIO, errno.EACCES, *_FULL)),
    "stat": (("stat", "lstat", "fstat"), (errno.EIO, errno.EACCES)),
    "list": (("listdir", "scandir"), (errno.EIO, errno.EACCES)),
    "unlink": (("unlink", "remove", "rmdir"), (errno.EIO, errno.EACCES)),
    "truncate": (("ftruncate", "truncate"), (errno.EIO, errno.ENOSPC)),
    "xattr": (("getxattr", "listxattr"), (errno.EIO, errno.EACCES)),
    "link-read": (("readlink",), (errno.EIO, errno.EACCES)),
    "mode": (("chmod", "fchmod", "chown", "fchown", "utime"), (errno.EIO,)),
    "space": (("statvfs", "fstatvfs"), (errno.EIO,)),
    "lock": (("flock",), (errno.EIO, errno.ENOLCK)),
}
"""By kind of call: the functions, and what each may fail with."""

AnyCall = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Fault:
    """The ``number``-th call of ``kind``, from 1, ends with ``error``."""

    kind: str
    number: int
    error: int

    def __str__(self) -> str:
        """Name it for a person, as a test's message needs it."""
        name = "a part" if self.error == SHORT else errno.errorcode[self.error]
        return f"{self.kind} {self.number}: {name}"


class Injector:
    """Counts the calls below some folders, and lets one of them fail."""

    def __init__(self, folders: list[bytes], fault: Fault | None = None) -> None:
        """Prepare; nothing is changed before `install`.

        Args:
            folders: absolute, without links; calls on what lies below them count.
            fault: the call that fails; None to count only.
        """
        self._folders = [folder.rstrip(b"/") for folder in folders]
        self._fault = fault
        self._readlink = os.readlink
        self.counts: Counter[str] = Counter()
        self.paths: dict[str, list[bytes]] = {}
        self.hit: bytes | None = None

    def install(self) -> None:
        """Take the place of the functions, for the rest of this process."""
        for kind, (names, _) in KINDS.items():
            for name in names:
                owner = fcntl if name == "flock" else os
                setattr(owner, name, self._watched(kind, getattr(owner, name)))
        setattr(builtins, "open", self._watched("open", builtins.open))  # noqa: B010  # its type

    def _watched(self, kind: str, real: AnyCall) -> AnyCall:
        def call(*given: object, **named: object) -> object:
            path = self._path_of(given, named)
            if path is None or not self._is_below(path):
                return real(*given, **named)
            self.counts[kind] += 1
            self.paths.setdefault(kind, []).append(path)
            fault = self._fault
            if fault is None or fault.kind != kind or self.counts[kind] != fault.number:
                return real(*given, **named)
            self.hit = path
            if fault.error == SHORT:
                return _in_part(real, given, named)
            raise OSError(fault.error, os.strerror(fault.error))

        return call

    def _is_below(self, path: bytes) -> bool:
        return any(path == one or path.startswith(one + b"/") for one in self._folders)

    def _path_of(self, given: tuple[object, ...], named: dict[str, object]) -> bytes | None:
        """Return the absolute path that a call is about, if that can be told."""
        subject = given[0] if given else named.get("path", b".")
        if isinstance(subject, int):
            return self._of_descriptor(subject)
        if not isinstance(subject, str | bytes | os.PathLike):
            return None
        path = os.fsencode(subject)
        if path.startswith(b"/proc/self/fd/"):
            number, _, rest = path[14:].partition(b"/")
            folder = self._of_descriptor(int(number))
            return folder if folder is None or rest in (b"", b".") else folder + b"/" + rest
        beside = named.get("dir_fd", named.get("src_dir_fd"))
        if path.startswith(b"/") or not isinstance(beside, int):
            return path
        folder = self._of_descriptor(beside)
        return None if folder is None else folder + b"/" + path

    def _of_descriptor(self, descriptor: int) -> bytes | None:
        try:
            return self._readlink(b"/proc/self/fd/%d" % descriptor)
        except OSError:
            return None


def _in_part(real: AnyCall, given: tuple[object, ...], named: dict[str, object]) -> object:
    """Do about half of a read or a write, at least a byte of it."""
    first, second, *rest = given
    if isinstance(second, int):
        return real(first, max(second // 2, 1), *rest, **named)
    if isinstance(second, bytes | bytearray | memoryview):
        return real(first, memoryview(second)[: max(len(second) // 2, 1)], *rest, **named)
    return real(*given, **named)
