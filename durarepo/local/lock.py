"""One run at a time: an OS lock that dies with its process, and a record of who held it.

The OS lock alone decides; nobody waits and no age ever makes a lock stale. The record tells
whom to blame, and whether the last holder died: then the next one takes over and says so.
The file is never removed or replaced, so two contenders always meet at the same one.
Source: spec/cli.md, the lock; AICEP 10.5.8. Start at `RunLock`.
"""

import errno
import fcntl
import json
import os
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal, Self

from durarepo.core.errors import RunError, StoreError
from durarepo.store.atomic import read_up_to, shown, store_error

_RECORD_BYTES = 512
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds or held the lock: a process of one boot, told apart from its successors."""

    boot: str
    pid: int
    started: int
    since: str

    def is_alive(self) -> bool:
        """Return whether exactly this process still runs, as far as can be seen from here."""
        return self.boot == boot_id() and self.started == process_start(self.pid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """That the last holder died without giving the lock back; for the audit log.

    ``holder`` is None where its record cannot be read. ``why`` is ``other-boot``,
    ``dead-process``, ``reused-pid``, ``not-given-back`` (by this very process) or
    ``torn-record``.
    """

    holder: Holder | None
    why: str


def boot_id() -> str:
    """Return the id of this boot, or an empty string where the system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def process_start(pid: int) -> int | None:
    """Return when ``pid`` began, in clock ticks since boot; None where there is none.

    Source: proc(5), /proc/PID/stat, field 22.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[19])


Record = Holder | Literal["free", "torn"]


class RunLock:
    """The lock of one repository, held from entering the context until leaving it."""

    def __init__(self, path: bytes, *, now: datetime) -> None:
        """Prepare; nothing is touched before the context is entered.

        Args:
            path: the lock file in the repository; created where it is missing.
            now: the time to record, UTC.
        """
        self._path = path
        self._now = now
        self._descriptor = -1
        self._owner = 0
        self.takeover: Takeover | None = None

    @property
    def is_held(self) -> bool:
        """Whether this very process holds the lock; a forked child does not."""
        return self._descriptor >= 0 and self._owner == os.getpid()

    def __enter__(self) -> Self:
        """Take the lock at once or not at all.

        Raises:
            RunError: ``locked``: a live run holds it.
            StoreError: the file cannot be used, or the file system has no locks.
        """
        if self.is_held:
            raise ValueError("the lock is held already")
        descriptor = self._open_locked()
        try:
            found = read_holder(descriptor)
            if isinstance(found, Holder) and found.is_alive() and found.pid != os.getpid():
                raise self._locked(found)
            self.takeover = _takeover_of(found)
            _write_record(descriptor, self._own_record())
        except OSError as error:
            os.close(descriptor)
            raise store_error(error, "write the lock", self._path) from error
        except RunError:
            os.close(descriptor)
            raise
        self._descriptor, self._owner = descriptor, os.getpid()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the lock back; in a forked child only its own descriptor is closed."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        try:
            if self._owner == os.getpid():
                _write_record(descriptor, b"{}")
        except OSError as failure:
            if error is None:
                raise store_error(failure, "give back the lock", self._path) from failure
        finally:
            os.close(descriptor)

    def _open_locked(self) -> int:
        """Return a locked descriptor of the file that stands at the path now."""
        for _ in range(_TRIES):
            try:
                descriptor = os.open(self._path, _FLAGS, 0o600)
            except OSError as error:
                raise store_error(error, "open the lock", self._path) from error
            if self._lock(descriptor):
                return descriptor
            os.close(descriptor)
        raise StoreError("io", f"the lock file {shown(self._path)} is replaced again and again")

    def _lock(self, descriptor: int) -> bool:
        """Lock the file; return False where it is no longer the one at the path."""
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise StoreError("io", f"the lock {shown(self._path)} is not a regular file")
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return os.path.samestat(os.fstat(descriptor), os.lstat(self._path))
        except BlockingIOError as error:
            holder = self._seen_holder(descriptor)
            os.close(descriptor)
            raise self._locked(holder) from error
        except FileNotFoundError:
            return False
        except OSError as error:
            os.close(descriptor)
            raise store_error(error, "lock", self._path) from error

    @staticmethod
    def _seen_holder(descriptor: int) -> Holder | None:
        """Return who holds the lock as far as the record tells."""
        try:
            found = read_holder(descriptor)
        except OSError:
            return None
        return found if isinstance(found, Holder) else None

    def _locked(self, holder: Holder | None) -> RunError:
        who = "another run holds the lock"
        if holder is not None:
            who = f"process {holder.pid} holds the lock since {holder.since}"
            if not holder.is_alive():
                who += " through a child, or from another container"
        return RunError(
            "locked", f"{who} {shown(self._path)}", hint="run the command again when it is done"
        )

    def _own_record(self) -> bytes:
        pid = os.getpid()
        since = self._now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        record = {"boot": boot_id(), "pid": pid, "started": process_start(pid) or 0}
        return json.dumps({**record, "since": since}).encode("ascii")


def _write_record(descriptor: int, record: bytes) -> None:
    """Write the record in one piece of constant length, durable on return."""
    if os.pwrite(descriptor, record.ljust(_RECORD_BYTES - 1) + b"\n", 0) != _RECORD_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(descriptor)


def read_holder(descriptor: int) -> Record:
    """Return the holder on record, or that the lock is free or its record torn."""
    raw = read_up_to(descriptor, _RECORD_BYTES, 0)
    if not raw:
        return "free"
    try:
        record = json.loads(raw)
        if record == {}:
            return "free"
        return Holder(
            boot=str(record["boot"]),
            pid=int(record["pid"]),
            started=int(record["started"]),
            since=_printable(record["since"]),
        )
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return "torn"


def _printable(value: object) -> str:
    text = str(value)[:32]
    return text if text.isprintable() else "an unknown time"


def _takeover_of(found: Record) -> Takeover | None:
    if found == "free":
        return None
    if found == "torn":
        return Takeover(holder=None, why="torn-record")
    return Takeover(holder=found, why=_why_dead(found))


def _why_dead(holder: Holder) -> str:
    if holder.boot != boot_id():
        return "other-boot"
    started = process_start(holder.pid)
    if started is None:
        return "dead-process"
    return "not-given-back" if started == holder.started else "reused-pid"
