"""What leaves the program: results on stdout, all else on stderr, as text or as JSON.

Nothing that comes from outside (a path, a name, a message that holds one) reaches a stream
with a control character, an escape, a line break or a character that turns the direction of
text. A reader that closes its pipe ends the output without a word; a stream that cannot take
a result is an error.
Source: spec/cli.md 1. Start at `Output`.
"""

import base64
import errno
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import BinaryIO, TextIO

from durarepo.core.errors import DurarepoError, StoreError
from durarepo_cli.exits import Exit

Json = Mapping[str, object]

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", '"': '\\"'}
_YEAR_9999 = 253_402_300_799


class PipeClosedError(Exception):
    """Who read the results has gone; there is nobody left to tell."""


def printable(text: str) -> str:
    """Return ``text`` with everything escaped that is not plainly visible on one line.

    Covers control characters, line breaks of every kind, format characters (among them those
    that turn the direction of text) and bytes that are not UTF-8.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escape(one) for one in text)


def _escape(one: str) -> str:
    if one in _ESCAPES:
        return _ESCAPES[one]
    number = ord(one)
    if 0xDC80 <= number <= 0xDCFF:  # noqa: PLR2004 - a byte that is not UTF-8, PEP 383
        return f"\\x{number - 0xDC00:02x}"
    if number < 0x80:  # noqa: PLR2004 - a byte in UTF-8 as well
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"  # noqa: PLR2004


def quoted(path: bytes) -> str:
    """Return a path as text: bare if it is harmless, else in double quotes with escapes."""
    text = os.fsdecode(path)
    harmless = text.isprintable() and "\\" not in text and '"' not in text
    if harmless and text and text == text.strip():
        return text
    inside = "".join(
        _escape(one) if one in _ESCAPES or not one.isprintable() else one for one in text
    )
    return f'"{inside}"'


def path_fields(name: str, path: bytes | None) -> dict[str, object]:
    """Return a path as fields of a message: ``name``, and ``name_b64`` if it is not UTF-8."""
    if path is None:
        return {name: None}
    try:
        return {name: path.decode()}
    except UnicodeDecodeError:
        whole = base64.b64encode(path).decode("ascii")
        return {name: path.decode(errors="replace"), f"{name}_b64": whole}


def paths_fields(name: str, paths: tuple[bytes, ...] | None) -> dict[str, object]:
    """Return several paths as a list, and beside it in base64 if one of them is not UTF-8."""
    if paths is None:
        return {name: None}
    found: dict[str, object] = {name: [path.decode(errors="replace") for path in paths]}
    if any(f"{name}_b64" in path_fields(name, path) for path in paths):
        found[f"{name}_b64"] = [base64.b64encode(path).decode("ascii") for path in paths]
    return found


def time_text(seconds: int | None) -> str | None:
    """Return seconds since 1970 as RFC 3339 UTC with Z; None for what is unknown."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return None


def mtime_text(nanoseconds: int) -> str | None:
    """Return nanoseconds since 1970 as RFC 3339 UTC with nine digits of a second and Z."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    whole = time_text(seconds)
    return None if whole is None else f"{whole[:-1]}.{rest:09d}Z"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which forms its plural with an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def size_text(size: int) -> str:
    """Return a number of bytes for people: at most four digits and a unit."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:  # noqa: PLR2004 - the next unit
            return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text, with those that follow each other in short."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    steps = (" to " if run[-1] - run[0] > 1 else ", " for run in runs)
    return ", ".join(step.join(map(str, run)) for step, run in zip(steps, runs, strict=True))


class Output:
    """The two streams of one run, and the exit code it has come to so far.

    ``code`` stands before a result is printed, so that it holds even if nobody reads on.
    """

    def __init__(self, *, is_json: bool = False, is_quiet: bool = False) -> None:
        """Prepare; nothing is written."""
        self.is_json = is_json
        self.is_quiet = is_quiet
        self.is_verbose = False
        self.code = Exit.DONE

    # --- results ---

    def line(self, text: str) -> None:
        """Print one line of text for people; names in it are `quoted` by the caller.

        Raises:
            StoreError, PipeClosedError: as for `raw`.
        """
        self.raw(_encoded(printable(text), sys.stdout))

    def item(self, fields: Json) -> None:
        """Print one line of a list as JSON.

        Raises:
            StoreError, PipeClosedError: as for `raw`.
        """
        self.raw(json.dumps(fields).encode("ascii") + b"\n")

    def result(self, fields: Json) -> None:
        """Print the one result as JSON, with ``ok`` first unless ``fields`` decide it.

        Raises:
            StoreError, PipeClosedError: as for `raw`.
        """
        self.item({"ok": True, **fields})

    def tell(self, fields: Json, lines: Iterable[str], error: DurarepoError | None = None) -> None:
        """Print what was done, for whom it is, and why it is not all that was asked for.

        Args:
            fields: of the message; an error has them beside it.
            lines: the same for people.
            error: what the run ends with; None where it is done. The exit code is not set.

        Raises:
            StoreError, PipeClosedError: as for `raw`.
        """
        if self.is_json and error is None:
            self.result(fields)
            return
        if not self.is_json:
            for line in lines:
                self.line(line)
            self.flush()
        if error is not None:
            self.failure(error, fields)

    def raw(self, data: bytes) -> None:
        """Write bytes to stdout as they are.

        Raises:
            StoreError: ``output``: stdout cannot take them.
            PipeClosedError: the reader has gone.
        """
        try:
            _binary(sys.stdout).write(data)
        except OSError as error:
            raise _output_error(error) from error

    def flush(self) -> None:
        """Give all results to the system.

        Raises:
            StoreError, PipeClosedError: as for `raw`.
        """
        if sys.stdout is None:
            return
        try:
            sys.stdout.flush()
        except OSError as error:
            raise _output_error(error) from error

    # --- everything else ---

    def note(self, text: str) -> None:
        """Tell something beside the result; silent with ``-q``."""
        if self.is_quiet:
            return
        if self.is_json:
            _tell(json.dumps({"note": text}))
        else:
            _tell(f"durarepo: {printable(text)}")

    def detail(self, text: str) -> None:
        """Tell something that only ``-v`` asks for."""
        if self.is_verbose:
            self.note(text)

    def failure(self, error: DurarepoError, extra: Json | None = None) -> None:
        """Tell an error with its code and hint.

        Args:
            error: what ended the run, or what is wrong with its result.
            extra: fields of the result that go with it in JSON.
        """
        if self.is_json and self._has_told_json(error, extra):
            return
        _tell(f"durarepo: error: {printable(error.message)} [{error.code}]")
        if error.hint:
            _tell(f"durarepo: hint: {printable(error.hint)}")

    def _has_told_json(self, error: DurarepoError, extra: Json | None) -> bool:
        told = {"code": error.code, "message": error.message, "hint": error.hint}
        try:
            self.result({"ok": False, **(extra or {}), "error": told})
            self.flush()
        except StoreError:
            return False
        except PipeClosedError:
            return True
        return True


def _binary(stream: TextIO | None) -> BinaryIO:
    if stream is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return stream.buffer


def _encoded(line: str, stream: TextIO | None) -> bytes:
    encoding = "utf-8" if stream is None else stream.encoding
    return f"{line}\n".encode(encoding, "backslashreplace")


def _output_error(error: OSError) -> StoreError | PipeClosedError:
    if error.errno == errno.EPIPE:
        return PipeClosedError()
    return StoreError(
        "output",
        f"standard output cannot take the result: {error.strerror}",
        hint="what the command does is done; give it a standard output that can be written",
    )


def _tell(line: str) -> None:
    """Write one line to stderr; if nobody can hear it, there is nobody left to tell."""
    try:
        stream = _binary(sys.stderr)
        stream.write(_encoded(line, sys.stderr))
        stream.flush()
    except OSError:
        return
