"""Runs the real program as a process of its own, in a home of its own.

As root the places of the system are used, in a mount table of the child's own that shows a
folder of the test instead. Start at `Cli`.
"""

import contextlib
import json
import os
import pty
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, "-m", "durarepo_cli.main"]
_AS_ROOT = 'mount --bind "$0" /var/lib && exec "$@"'

Json = dict[str, object]


@dataclass(frozen=True)
class Ran:
    """How a run ended; no run that shows a traceback gets this far."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self) -> str:
        """Stdout as text."""
        return self.stdout.decode()

    @property
    def err(self) -> str:
        """Stderr as text."""
        return self.stderr.decode()

    def items(self) -> list[Json]:
        """Return stdout as JSON lines."""
        found = [json.loads(line) for line in self.stdout.splitlines()]
        assert all(isinstance(one, dict) for one in found)
        return found

    def json(self) -> Json:
        """Return stdout as the one object it has to be."""
        (only,) = self.items()
        return only

    def error(self) -> Json:
        """Return the error of a failure in JSON, after a look at its form."""
        told = self.items()[-1]
        assert told["ok"] is False
        error = told["error"]
        assert isinstance(error, dict)
        assert set(error) == {"code", "message", "hint"}
        return error


@dataclass
class Cli:
    """The program with a home of its own."""

    home: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the home and a bare environment."""
        for name in ("var", "etc", "agent"):
            (self.home / name).mkdir(parents=True, exist_ok=True)
        self.environment |= {
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{TOP}:{TOP / 'cli'}",
            "PYTHONWARNINGS": "error",
            "DURAREPO_KEYS": str(self.home / "etc" / "keys"),
            "DURAREPO_STATE": str(self.home / "var" / "state"),
        }
        if os.geteuid() != 0:
            self.environment["XDG_DATA_HOME"] = str(self.home / "var")

    def command(self, *arguments: str | bytes) -> list[str | bytes]:
        """Return the whole call."""
        whole: list[str | bytes] = [*PROGRAM, *arguments]
        if os.geteuid() != 0:
            return whole
        return ["unshare", "-m", "sh", "-c", _AS_ROOT, str(self.home / "var"), *whole]

    def run(
        self, *arguments: str | bytes, given: bytes = b"", folder: Path | None = None, **more: str
    ) -> Ran:
        """Run the program to its end; ``more`` are further variables of its environment."""
        done = subprocess.run(
            self.command(*arguments),
            env=self.environment | more,
            input=given,
            capture_output=True,
            cwd=folder or self.home,
            check=False,
            timeout=120,
        )
        return checked(Ran(done.returncode, done.stdout, done.stderr))

    def repository(self, stream: str = "notes") -> Path:
        """Return where a stream's repository lies."""
        return self.home / "var" / "durarepo" / stream

    def keys(self, stream: str = "notes") -> Path:
        """Return where a stream's keys lie."""
        return self.home / "etc" / "keys" / stream

    def state(self, stream: str = "notes") -> Path:
        """Return where a stream's state lies."""
        return self.home / "var" / "state" / stream


def copied(cli: Cli, folder: Path) -> Cli:
    """Return the same stream in a new home of its own; its root stays where it is."""
    subprocess.run(["cp", "-a", str(cli.home), str(folder / "copy")], check=True)
    return Cli(folder / "copy")


def checked(ran: Ran) -> Ran:
    """Fail if a traceback shows, or if the program called itself broken."""
    for text in (ran.stdout, ran.stderr):
        assert b"Traceback" not in text, text.decode(errors="replace")
    assert ran.code != 70, ran.stderr.decode(errors="replace")
    return ran


def in_terminal(
    cli: Cli, *arguments: str | bytes, answers: list[bytes], stdin: bool = True, **more: str
) -> Ran:
    """Run the program at a terminal and give each of ``answers`` when a prompt asks.

    Args:
        cli: the program.
        arguments: of the call.
        answers: what is typed; one more prompt after the last gets an end of file.
        stdin: whether stdin is the terminal as well, or a pipe with the answers.
        more: further variables of the environment.

    Returns:
        What came of it; ``stderr`` is what stood on the terminal.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        cli.command(*arguments),
        env=cli.environment | more,
        stdin=theirs if stdin else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=theirs,
        cwd=cli.home,
    )
    os.close(theirs)
    if process.stdin is not None:
        process.stdin.write(b"\n".join([*answers, b""]))
        process.stdin.close()
    waiting, shown, answered = list(answers), b"", 0
    with contextlib.suppress(OSError):  # the other side is gone: that is its end
        while part := os.read(ours, 65536):
            shown += part
            if stdin and shown.replace(b"\r\n", b"\n").count(b"\n> ") > answered:
                answered += 1
                os.write(ours, waiting.pop(0) + b"\n" if waiting else b"\x04")
    assert process.stdout is not None
    with process.stdout as pipe:
        stdout = pipe.read()
    code = process.wait(timeout=60)
    os.close(ours)
    return checked(Ran(code, stdout, shown.replace(b"\r\n", b"\n")))


_SHIFTED = """
import sys, time
from durarepo_cli import context
shift = int(sys.argv[1])
context.clock = lambda: int(time.time()) + shift
from durarepo_cli.main import main
sys.exit(main(sys.argv[2:]))
"""


def run_at(cli: Cli, shift_seconds: int, *arguments: str) -> Ran:
    """Run the program with a clock that is ahead by so much, or behind if it is negative."""
    call = cli.command()[: -len(PROGRAM)]
    done = subprocess.run(
        [*call, sys.executable, "-c", _SHIFTED, str(shift_seconds), *arguments],
        env=cli.environment,
        capture_output=True,
        cwd=cli.home,
        check=False,
        timeout=120,
    )
    return checked(Ran(done.returncode, done.stdout, done.stderr))
