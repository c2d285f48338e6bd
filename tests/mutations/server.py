"""Mutants of one module, each in a child that has collected the tests already.

A start of pytest, the imports and the collection take seconds, a test milliseconds. So pytest
runs once for a module; where it would begin with the tests, it forks for each mutant, puts the
changed code into the functions that are there, and runs only the tests that reach one of them,
the quickest first. What stands outside of functions cannot be put in: such a mutant is left to
a fresh start. So is what lives here, for a value may have been kept from before the change.
Start at `serve`; `changed_functions` is what is put in.
"""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Literal

import pytest

How = Literal["lives", "dies", "no end", "not here"]
Place = tuple[str, int]
"""A function: its qualified name and its first line."""
Text = Callable[[], str]

_OPTIMIZED = 1
"""The flag of code that is a function's, not that of a module or of a class."""
_LIVES, _DIES = 0, 1
_PLAIN_TIMES = 5
"""So much longer all tests may take together while it is watched what they reach."""


class OutsideError(Exception):
    """What differs stands outside of functions, or in one that nobody can find."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be tried: mutants of one file, by number, until a moment of the monotonic clock.

    ``texts`` make the whole module; the file itself stands there as `ast.unparse` writes it.
    """

    path: Path
    base: Path
    texts: Sequence[tuple[int, Text]]
    until: float
    most_seconds: float


# --- what is put in --------------------------------------------------------------------------


def changed_functions(old: CodeType, new: CodeType) -> list[tuple[CodeType, CodeType]]:
    """Return the functions, outer ones first, whose code differs between two modules.

    Raises:
        OutsideError: something differs that is no function's.
    """
    found: list[tuple[CodeType, CodeType]] = []
    _compare(old, new, found)
    return found


def _compare(old: CodeType, new: CodeType, found: list[tuple[CodeType, CodeType]]) -> bool:
    inside, instead = (
        [one for one in code.co_consts if isinstance(one, CodeType)] for code in (old, new)
    )
    own = _own(old) != _own(new) or len(inside) != len(instead)
    if own and not old.co_flags & _OPTIMIZED:
        raise OutsideError(old.co_name)
    at = len(found)
    below = [_compare(one, other, found) for one, other in zip(inside, instead, strict=False)]
    differs = own or any(below)
    if differs and old.co_flags & _OPTIMIZED:
        found.insert(at, (old, new))
    return differs


def _own(code: CodeType) -> tuple[object, ...]:
    plain = [(type(one), one) for one in code.co_consts if not isinstance(one, CodeType)]
    return (code.co_code, plain, code.co_names, code.co_varnames, code.co_freevars,
            code.co_cellvars, code.co_flags, code.co_argcount, code.co_exceptiontable)  # fmt: skip


def functions_of(path: Path) -> dict[Place, list[FunctionType]]:
    """Return every function of a file that exists, wrapped ones too."""
    found: dict[Place, list[FunctionType]] = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename == str(path):
            found.setdefault(place_of(one.__code__), []).append(one)
    return found


def place_of(code: CodeType) -> Place:
    """Return which function a code is of."""
    return code.co_qualname, code.co_firstlineno


def put_in(
    changes: Sequence[tuple[CodeType, CodeType]], functions: dict[Place, list[FunctionType]]
) -> None:
    """Give functions their changed code.

    Raises:
        OutsideError: an outermost one is not there, or takes other values from around it.
    """
    for number, (old, new) in enumerate(changes):
        known = functions.get(place_of(old), [])
        if not known and number == 0:
            raise OutsideError(old.co_qualname)
        for one in known:
            try:
                one.__code__ = new
            except ValueError as error:
                raise OutsideError(old.co_qualname) from error


# --- running ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Server:
    """A plugin of pytest that runs mutants in the place of the tests, and tells ``tell`` of each.

    The first thing that is told is how the tests end without any mutant.
    """

    job: Job
    tell: Callable[[int, str], None]
    reached: dict[Place, list[tuple[float, int]]] = field(default_factory=dict)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all tests once, then the mutants."""
        most = _PLAIN_TIMES * self.job.most_seconds
        told = self._forked(lambda: self._plain(session), most)
        self.tell(-1, told)
        if told != "lives":
            return True
        self.reached = _reached(self._record)
        functions = functions_of(self.job.path)
        plain = compile(self.job.path.read_text(), str(self.job.path), "exec")
        for number, text in self.job.texts:
            if time.monotonic() > self.job.until:
                break
            self.tell(number, self._tried(session, plain, text(), functions))
        return True

    def _tried(
        self,
        session: pytest.Session,
        plain: CodeType,
        text: str,
        functions: dict[Place, list[FunctionType]],
    ) -> How:
        try:
            changes = changed_functions(plain, compile(text, str(self.job.path), "exec"))
        except OutsideError:
            return "not here"
        found: dict[int, float] = {}
        for old, _ in changes:
            found |= {item: took for took, item in self.reached.get(place_of(old), [])}
        order = sorted(found, key=lambda item: found[item])

        def mutated() -> int:
            put_in(changes, functions)
            return _run(session, [session.items[item] for item in order])

        return self._forked(mutated, self.job.most_seconds)

    @property
    def _record(self) -> Path:
        return self.job.base.parent / "reached"

    def _plain(self, session: pytest.Session) -> int:
        """Run every test without a mutant, and write down which functions each of them reaches."""
        lines: list[str] = []
        following: list[pytest.Item | None] = [*session.items[1:], None]
        for number, item in enumerate(session.items):
            began = time.monotonic()
            with _calls(self.job.path) as places:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following[number])
            if session.testsfailed:
                return _DIES
            lines.append(json.dumps([number, time.monotonic() - began, sorted(places)]))
        self._record.write_text("\n".join(lines))
        return _LIVES

    def _forked(self, work: Callable[[], int], most: float) -> How:
        subprocess.run(["rm", "-rf", self.job.base], check=True)  # deeper than rmtree goes
        child = os.fork()
        if child == 0:
            code = _DIES
            try:
                os.setsid()
                code = work()
            except OutsideError:
                code = 3
            finally:
                os._exit(code)
        status = _ended(child, most)
        return {None: "no end", _LIVES: "lives", 3: "not here"}.get(status, "dies")  # type: ignore[return-value]  # they are some of them


def _ended(child: int, most: float) -> int | None:
    """Return the exit code of a child, or None after ending it."""
    until = time.monotonic() + most
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.003)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _run(session: pytest.Session, items: Sequence[pytest.Item]) -> int:
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return _DIES
    return _LIVES


@contextmanager
def _calls(path: Path) -> Iterator[set[Place]]:
    """Collect the functions of a file that are called, in any thread."""
    found: set[Place] = set()
    wanted = str(path)

    def called(frame: FrameType, _event: str, _argument: object) -> None:
        if frame.f_code.co_filename == wanted:
            found.add(place_of(frame.f_code))

    threading.settrace(called)
    sys.settrace(called)
    try:
        yield found
    finally:
        sys.settrace(None)
        threading.settrace(None)


def _reached(record: Path) -> dict[Place, list[tuple[float, int]]]:
    """Return for each function how long a test takes that reaches it, and which test that is."""
    found: dict[Place, list[tuple[float, int]]] = {}
    for line in record.read_text().splitlines():
        number, took, places = json.loads(line)
        for name, first in places:
            found.setdefault((name, first), []).append((took, number))
    return found


def serve(job: Job, start: Callable[[list[object]], object]) -> Iterator[tuple[int, str]]:
    """Yield number and end of each mutant; -1 first, for the tests without any.

    Args:
        job: what is to be tried.
        start: starts pytest in a child, with these plugins.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            start([Server(job, lambda number, how: _told(writer, number, how))])
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as pipe:
        for line in pipe:
            number, how = json.loads(line)
            yield number, how
    os.waitpid(child, 0)


def _told(writer: int, number: int, how: str) -> None:
    os.write(writer, (json.dumps([number, how]) + "\n").encode())
