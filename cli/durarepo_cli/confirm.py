"""The only place that asks a human, and the proof that one was asked.

It reads from a terminal and nowhere else: no flag, no environment variable, no pipe and no
argument of the library answers. Each question prints the answer it expects, in quotes, so
that whoever answers has read what they agree to.
Source: spec/cli.md 1; AICEP 10.5.6. Start at `ask`.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol

from durarepo.core.errors import PolicyRefusedError
from durarepo_cli.output import printable

_TRIES = 3


class Question(Protocol):
    """One thing that is set aside or replaced, and the exact words that agree to it."""

    @property
    def about(self) -> str:
        """What would not be checked, or be replaced."""

    @property
    def answer(self) -> str:
        """The words that have to be typed."""


def ask(questions: Sequence[Question], environment: Mapping[str, str]) -> None:
    """Return once a human has agreed to every one of ``questions``.

    Args:
        questions: asked in order, each with a prompt of its own.
        environment: variables by name; a machine that sets ``CI`` has no human.

    Raises:
        PolicyRefusedError: ``no-human``: there is no terminal, three answers were wrong, or
            the input ended.
    """
    check_terminal(environment)
    wrong = 0
    for question in questions:
        while not _is_agreed(question):
            wrong += 1
            if wrong == _TRIES:
                raise _refused(f"{_TRIES} answers were not the expected one")


def check_terminal(environment: Mapping[str, str]) -> None:
    """Refuse where no human can be asked.

    Raises:
        PolicyRefusedError: ``no-human``.
    """
    if "CI" in environment:
        raise _refused("CI is set, so nobody is there to answer")
    for stream in (sys.stdin, sys.stderr):
        if stream is None or not _is_terminal(stream.fileno()):
            raise _refused("stdin and stderr are not both terminals")


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except (OSError, ValueError):
        return False


def _is_agreed(question: Question) -> bool:
    sys.stderr.write(f"{printable(question.about)}\n")
    sys.stderr.write(f'to go on, type "{printable(question.answer)}"\n> ')
    sys.stderr.flush()
    try:
        line = sys.stdin.buffer.readline()
    except OSError:
        line = b""
    if not line.endswith(b"\n"):
        sys.stderr.write("\n")
        raise _refused("the input ended before an answer")
    return line[:-1] == question.answer.encode()


def _refused(why: str) -> PolicyRefusedError:
    return PolicyRefusedError(
        "no-human",
        f"this needs a human at a terminal: {why}",
        hint="run the command yourself in a terminal and type the answers it prints",
    )
