"""Run a piece of a test in a child: as another user, or with mounts of its own.

Whatever the child raises comes back as a failure of the test with its traceback.
"""

import ctypes
import os
import signal
import subprocess
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

UNPRIVILEGED = 65534
_NEW_MOUNTS = 0x00020000
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def run_in_child(
    work: Callable[[], object], *, user: int | None = None, own_mounts: bool = False
) -> None:
    """Run ``work`` in a forked child and fail with its traceback if it raises.

    Args:
        work: holds its own assertions.
        user: the user and group the child becomes for good.
        own_mounts: give the child a mount table of its own, gone with it.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        code = 1
        try:
            if own_mounts:
                _leave_mounts()
            if user is not None:
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
            work()
            code = 0
        except BaseException:  # noqa: BLE001  # all of it goes to the parent
            os.write(writer, traceback.format_exc().encode()[-60_000:])
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader, "rb") as pipe:
        said = pipe.read().decode()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0, f"the child ended with {code}\n{said}"


def mount(*arguments: str) -> None:
    """Attach a file system; the arguments are those of the tool."""
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def die_with_parent() -> None:
    """Let the kernel kill this child when the test process ends, also after a failure."""
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)


def let_others_pass(folder: Path) -> None:
    """Let an unprivileged child reach ``folder``: pytest closes its temporary folders."""
    for each in (folder, *folder.parents):
        if each == Path(tempfile.gettempdir()):
            return
        each.chmod(each.stat().st_mode | 0o011)


def _leave_mounts() -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    mount("--make-rprivate", "/")
