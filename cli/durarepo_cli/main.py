"""The entry point: sets the process up, runs one command, and lets no traceback out.

Keeps itself small, because whatever goes wrong before `main` is in charge is Python's to tell.
Source: spec/cli.md 2. Start at `main`.
"""

import gc
import os
import resource
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

_PRIVATE = 0o077
_YOUNG_MAX = 100_000
"""So many objects are made before Python looks for cycles; nearly none of ours has one."""


class TerminatedError(BaseException):
    """The process was told to end."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code.

    Args:
        arguments: what stands after the name of the program; None takes the call's own.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    code = 70
    try:
        _prepare()
        code = _run(given)
    except KeyboardInterrupt:
        code = _ended(given, "interrupted", 130)
    except TerminatedError:
        code = _ended(given, "terminated", 143)
    except Exception as error:  # noqa: BLE001 - not even imports that fail show a traceback
        _say(f"durarepo: error: unexpected {type(error).__name__}; this is a bug in durarepo")
    finally:
        _finish()
    return code


def _run(arguments: list[str]) -> int:
    # Imported here: from now on an interruption is answered.
    from durarepo_cli.context import Session  # noqa: PLC0415
    from durarepo_cli.output import Output  # noqa: PLC0415
    from durarepo_cli.program import run  # noqa: PLC0415

    output = Output(is_json=_wants_json(arguments))
    return int(run(arguments, Session(output=output)))


def _ended(arguments: list[str], word: str, code: int) -> int:
    """Tell that the run was ended from outside."""
    _ignore_signals()
    from durarepo.core.errors import RunError  # noqa: PLC0415
    from durarepo_cli.output import Output  # noqa: PLC0415

    output = Output(is_json=_wants_json(arguments))
    output.failure(
        RunError(
            word,
            f"the run was {word}",
            hint="nothing half done is visible; run the command again",
        )
    )
    return code


def _wants_json(arguments: list[str]) -> bool:
    """Return whether even an error of the call itself is to be JSON."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return "--json" in arguments[:end]


def _prepare() -> None:
    """Make the process safe: streams, rights of new files, no core dump, signals, last words."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # A closed one would be given to the next file that is opened, a stored one perhaps.
            os.open(os.devnull, os.O_RDWR)
    gc.set_threshold(_YOUNG_MAX)
    os.umask(_PRIVATE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _terminate)
    threading.excepthook = _tell_thread
    sys.unraisablehook = _tell_unraisable


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    _ignore_signals()
    raise TerminatedError


def _ignore_signals() -> None:
    """Let the run clean up undisturbed; who cannot wait has SIGKILL, which is safe as well."""
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)


def _tell_thread(told: threading.ExceptHookArgs) -> None:
    _say(f"durarepo: error: a thread ended with {told.exc_type.__name__}")


def _tell_unraisable(told: "sys.UnraisableHookArgs") -> None:
    if not issubclass(told.exc_type, OSError):
        _say(f"durarepo: error: {told.exc_type.__name__} while cleaning up")


def _say(line: str) -> None:
    try:
        os.write(2, f"{line}\n".encode())
    except OSError:
        return


def _finish() -> None:
    """Leave nothing for Python to flush, and so to complain about, at its end."""
    _ignore_signals()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            _point_to_null(stream.fileno())


def _point_to_null(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


if __name__ == "__main__":
    sys.exit(main())
