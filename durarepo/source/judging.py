"""Paths judged as a snapshot would judge them, one at a time and without one.

Reads and changes nothing else; what a path rule leaves out is not opened here either. A path is
judged by the names it was asked by and by its real ones, and its file by its content.
Source: spec/cli.md 4 (exclude test), spec/exclusion.md. Start at `ExclusionTest.judge`.
"""

import os
import sqlite3
import stat as stat_bits
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace

from durarepo.core.errors import SelectionError, SourceError
from durarepo.core.limits import READ_WINDOW_BYTES
from durarepo.policy.decide import MEMORY_MAX_BYTES, ContentPolicy, Judged
from durarepo.policy.rules import Decision, Rule, Stage
from durarepo.policy.rules_table import find_rule
from durarepo.policy.scanner import open_engine
from durarepo.source.pathjudge import PathJudge
from durarepo.source.sqliteclean import clean, connect_memory
from durarepo.source.sqlitestate import is_sqlite

Judge = Callable[[bytes, bytes], Judged]
"""(path, all bytes) -> what becomes of the file."""

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_MISSING = os.stat_result((stat_bits.S_IFREG, 0, 0, 1, 0, 0, 0, 0, 0, 0))
_MISSING_FOLDER = os.stat_result((stat_bits.S_IFDIR, 0, 0, 1, 0, 0, 0, 0, 0, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """What the policy says of one path; ``path`` as it may be shown."""

    path: bytes
    decision: Decision
    rule: str
    stage: Stage | None
    rules: tuple[str, ...]
    is_waivable: bool

    @property
    def rows(self) -> list[Rule]:
        """The rules that hold, as the table has them."""
        return [row for one in self.rules if (row := find_rule(one)) is not None]


class ContentTest:
    """Judges the content of files where they lie; databases by their main file alone."""

    def __init__(self, policy: ContentPolicy, judge: Judge | None = None) -> None:
        """Prepare.

        Args:
            policy: of the engine.
            judge: judges a file that is in memory; by default ``policy``.
        """
        self._policy = policy
        self._judge = judge or policy.judge

    def judge(self, path: bytes) -> Judged:
        """Judge what stands at a path; anything but a file is included, and so is nothing.

        Raises:
            SourceError: ``unreadable``.
        """
        judged = self._judged_at(path)
        if judged.decision is not Decision.INCLUDE:
            return judged
        return self._judged_attributes(path) or judged

    def _judged_at(self, path: bytes) -> Judged:
        try:
            fd = os.open(path, _OPEN)
        except FileNotFoundError:
            return Judged(decision=Decision.INCLUDE)
        except OSError as error:
            if stat_bits.S_ISREG(_lstat(path, is_last=True).st_mode):
                raise _unreadable(error) from error
            return self._judged_link(path)
        try:
            found = os.fstat(fd)
            if not stat_bits.S_ISREG(found.st_mode):
                return Judged(decision=Decision.INCLUDE)
            return self._judged_file(fd, path, found.st_size)
        except OSError as error:
            raise _unreadable(error) from error
        finally:
            os.close(fd)

    def _judged_attributes(self, path: bytes) -> Judged | None:
        """Judge names and values of attributes; one that holds a secret is taken out."""
        try:
            names = os.listxattr(path, follow_symlinks=False)
            values = [os.getxattr(path, one, follow_symlinks=False) for one in names]
        except OSError:
            return None
        for name, value in zip(names, values, strict=True):
            judged = self._policy.judge(b"attribute", b"%s\n%s" % (os.fsencode(name), value))
            if judged.decision is not Decision.INCLUDE:
                rule = judged.rule
                return Judged(
                    decision=Decision.REDACT, rule=rule, stage=Stage.STRUCTURED, rules=(rule,)
                )
        return None

    def _judged_link(self, path: bytes) -> Judged:
        """Judge the target of a link; a pipe or a device has nothing to judge."""
        try:
            target = os.readlink(path)
        except OSError:
            return Judged(decision=Decision.INCLUDE)
        if not self._policy.holds_secret(target):
            return Judged(decision=Decision.INCLUDE)
        return replace(self._policy.judge(b"target", target), decision=Decision.EXCLUDE)

    def _judged_file(self, fd: int, path: bytes, size: int) -> Judged:
        if size > MEMORY_MAX_BYTES:
            scan = self._policy.start_scan()
            for piece in _pieces(fd):
                scan.feed(piece)
            return self._policy.judge_scanned(path, scan.finish())
        return self.judge_data(path, b"".join(_pieces(fd)))

    def judge_data(self, path: bytes, data: bytes) -> Judged:
        """Judge all bytes of a file that would lie at a path."""
        if is_sqlite(data):
            return self._judged_database(data, path)
        return self._judge(path, data)

    def _judged_database(self, data: bytes, path: bytes) -> Judged:
        raw = self._policy.judge(b"database", data)
        try:
            with closing(connect_memory(data)) as connection:
                cleaned = clean(connection, os.path.basename(path), self._policy)
                if cleaned.judged.decision is Decision.EXCLUDE:
                    is_out = raw.decision is Decision.EXCLUDE
                    return raw if is_out else cleaned.judged
                if cleaned.judged.decision is Decision.INCLUDE:
                    if raw.decision is Decision.INCLUDE:
                        return cleaned.judged
                    connection.execute("VACUUM")
                again = self._policy.judge(b"database", connection.serialize())
        except sqlite3.Error:
            return raw
        if again.decision is Decision.EXCLUDE:
            return again
        if cleaned.judged.decision is Decision.REDACT:
            return cleaned.judged
        return replace(raw, decision=Decision.REDACT, stage=Stage.STRUCTURED, count=1)


class ExclusionTest:
    """Judges paths as a snapshot of one root would."""

    def __init__(self, root: bytes, *, engine: str = "") -> None:
        """Prepare.

        Args:
            root: the folder that plays the root, and the home.
            engine: of `scanner.open_engine`.

        Raises:
            SourceError: ``scanner``.
        """
        self._root = os.path.realpath(root)
        self._walked = os.path.abspath(root)
        self._policy = ContentPolicy(open_engine(engine))
        self._contents = ContentTest(self._policy)
        self._judge = PathJudge([self._root], home=self._root, contents=self._policy)

    def judge(self, path: bytes) -> Tested:
        """Judge one path, relative to the root or absolute.

        Raises:
            SelectionError: ``outside``: it does not lie in the root.
            SourceError: it cannot be read.
        """
        walked = os.path.normpath(os.path.join(self._walked, path))
        below = self._below(walked)
        rule = self._rule_on_the_way(self._root, below)
        if rule is None:
            real = os.path.realpath(os.path.join(self._root, below))
            rule = self._rule_of_real(real)
        if rule is not None:
            return self._tested(walked, by_path(rule))
        return self._tested(walked, self._contents.judge(os.path.join(self._root, below)))

    def _below(self, path: bytes) -> bytes:
        for root in (self._walked, self._root):
            prefix = root.rstrip(b"/") + b"/"
            if path.startswith(prefix):
                return path[len(prefix) :]
        raise SelectionError(
            "outside",
            "a path to test does not lie in the root",
            hint="name the root with --root, and paths below it",
        )

    def _rule_on_the_way(self, root: bytes, below: bytes) -> str | None:
        folder = root
        parts = below.split(b"/")
        for at, name in enumerate(parts):
            stat = _lstat(os.path.join(folder, name), is_last=at == len(parts) - 1)
            rule = self._judge(folder, name, stat)
            if rule is not None:
                return rule
            folder = os.path.join(folder, name)
        return None

    def _rule_of_real(self, real: bytes) -> str | None:
        prefix = self._root.rstrip(b"/") + b"/"
        if real.startswith(prefix):
            return self._rule_on_the_way(self._root, real[len(prefix) :])
        folder, _, name = real.rpartition(b"/")
        return self._judge(folder or b"/", name, _lstat(real, is_last=True))

    def _tested(self, path: bytes, judged: Judged) -> Tested:
        return tested(self._policy, path, judged)


def tested(policy: ContentPolicy, path: bytes, judged: Judged) -> Tested:
    """Return what is told of a path: a credential in it is not shown."""
    return Tested(
        path=policy.shown_path(path),
        decision=judged.decision,
        rule=judged.rule,
        stage=judged.stage,
        rules=judged.rules or ((judged.rule,) if judged.rule else ()),
        is_waivable=judged.is_waivable,
    )


def by_path(rule: str) -> Judged:
    """Return the judgement of a path rule."""
    return Judged(decision=Decision.EXCLUDE, rule=rule, stage=Stage.PATH, rules=(rule,))


def _lstat(path: bytes, *, is_last: bool) -> os.stat_result:
    try:
        return os.lstat(path)
    except OSError:
        return _MISSING if is_last else _MISSING_FOLDER


def _pieces(fd: int) -> Iterator[bytes]:
    while piece := os.read(fd, READ_WINDOW_BYTES):
        yield piece


def _unreadable(error: OSError) -> SourceError:
    return SourceError(
        "unreadable",
        f"a file to test cannot be read: {error.strerror}",
        hint="run it as the user that takes snapshots",
    )


def read_whole(path: bytes) -> bytes:
    """Return the content of a regular file; nothing is followed.

    Raises:
        SourceError: ``unreadable``.
    """
    try:
        fd = os.open(path, _OPEN)
        try:
            return b"".join(_pieces(fd))
        finally:
            os.close(fd)
    except OSError as error:
        raise _unreadable(error) from error
