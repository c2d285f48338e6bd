"""Progress on stderr: a line that is drawn over on a terminal, JSON lines for machines, or none.

Never on stdout, never in the way of a message: whoever writes to stderr clears the line first.
Source: spec/cli.md 1. Start at `shown_progress`.
"""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from durarepo.core.progress import Progress, SilentProgress
from durarepo_cli.output import counted, size_text

_REDRAW_SECONDS = 0.1
_REPORT_SECONDS = 1.0
_CLEAR = "\r\x1b[K"


class _Paced:
    """Passes on what is told, at most once in an interval, and the last of it at the end."""

    def __init__(self, interval_seconds: float) -> None:
        self._interval = interval_seconds
        self._next = 0.0
        self._last: tuple[int, int, int | None] | None = None

    def update(self, done_files: int, done_bytes: int, total: int | None) -> None:
        """Take note; see `durarepo.core.progress.Progress`."""
        self._last = (done_files, done_bytes, total)
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._interval
            self._show(done_files, done_bytes, total)

    def finish(self) -> None:
        """End the display."""

    def _show(self, files: int, done: int, total: int | None) -> None:
        raise NotImplementedError


class Bar(_Paced):
    """One line on a terminal, gone at the end."""

    def __init__(self) -> None:
        super().__init__(_REDRAW_SECONDS)

    def finish(self) -> None:
        """Clear the line."""
        if self._last is not None:
            _write(_CLEAR)

    def _show(self, files: int, done: int, total: int | None) -> None:
        share = f" {min(100, 100 * done // total)} %" if total else ""
        _write(f"{_CLEAR}{counted(files, 'file')}, {size_text(done)}{share}")


class Report(_Paced):
    """JSON lines: one a second at most, and one at the end."""

    def __init__(self) -> None:
        super().__init__(_REPORT_SECONDS)

    def finish(self) -> None:
        """Tell the last state."""
        if self._last is not None:
            self._show(*self._last)

    def _show(self, files: int, done: int, total: int | None) -> None:
        state = {"files": files, "bytes": done, "total": total}
        _write(json.dumps({"progress": state}) + "\n")


@contextmanager
def shown_progress(mode: str, *, is_quiet: bool, terminal: str) -> Iterator[Progress]:
    """Give an operation someone to tell, for as long as the context lasts.

    Args:
        mode: ``auto`` or ``json``.
        is_quiet: whether a bar is unwanted.
        terminal: the value of ``TERM``; a ``dumb`` one cannot draw over a line.
    """
    shown: Bar | Report | None = None
    if mode == "json":
        shown = Report()
    elif not is_quiet and terminal != "dumb" and sys.stderr is not None and sys.stderr.isatty():
        shown = Bar()
    try:
        yield shown or SilentProgress()
    finally:
        if shown is not None:
            shown.finish()


def _write(text: str) -> None:
    """Write to stderr; a display that nobody can see ends no run."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, AttributeError):
        return
