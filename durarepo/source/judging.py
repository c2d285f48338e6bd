"""Paths judged as a snapshot would judge them, one at a time and without one.

Reads and changes nothing else; what a path rule leaves out is not opened here either. A path is
judged by the names it was asked by and by its real ones, and its file by its content.
Source: spec/cli.md 4 (exclude test), spec/exclusion.md. Start at `PathTest.judge`.
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
from durarepo.source.sqlitestate import is_sqlite, is_whole

PathRule = Callable[[bytes, bytes, os.stat_result], str | None]
"""(folder, name, what the listing says) -> the rule that leaves it out."""

Judge = Callable[[bytes, bytes], Judged]
"""(path, all bytes) -> what becomes of the file."""

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_MISSING = os.stat_result((stat_bits.S_IFREG, 0, 0, 1, 0, 0, 0, 0, 0, 0))
_MISSING_FOLDER = os.stat_result((stat_bits.S_IFDIR, 0, 0, 1, 0, 0, 0, 0, 0, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """What the policy says of one path; ``path`` as it may be shown.

    ``above`` is what the rule leaves out where that is not the path itself: a folder above it,
    or what a link leads to.
    """

    path: bytes
    above: bytes | None = None
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
        self.policy = policy
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
        if stat_bits.S_ISDIR(_lstat(path, is_last=True).st_mode):
            return Judged(decision=Decision.INCLUDE)
        try:
            fd = os.open(path, _OPEN)
        except (FileNotFoundError, NotADirectoryError):
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
            judged = self.policy.judge(b"attribute", b"%s\n%s" % (os.fsencode(name), value))
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
        if not self.policy.holds_secret(target):
            return Judged(decision=Decision.INCLUDE)
        return replace(self.policy.judge(b"target", target), decision=Decision.EXCLUDE)

    def _judged_file(self, fd: int, path: bytes, size: int) -> Judged:
        if size > MEMORY_MAX_BYTES:
            scan = self.policy.start_scan()
            for piece in _pieces(fd):
                scan.feed(piece)
            return self.policy.judge_scanned(path, scan.finish())
        return self.judge_data(path, b"".join(_pieces(fd)))

    def judge_data(self, path: bytes, data: bytes) -> Judged:
        """Judge all bytes of a file that would lie at a path."""
        if is_sqlite(data):
            return self._judged_database(data, path)
        return self._judge(path, data)

    def _judged_database(self, data: bytes, path: bytes) -> Judged:
        """Judge a database; one that is damaged is kept as the bytes it is, and judged so."""
        raw = self.policy.judge(b"database", data)
        try:
            with closing(connect_memory(data)) as connection:
                if is_whole(connection, len(data)):
                    return self._judged_whole(connection, path, raw)
        except sqlite3.Error:
            pass
        return raw

    def _judged_whole(self, connection: sqlite3.Connection, path: bytes, raw: Judged) -> Judged:
        cleaned = clean(connection, os.path.basename(path), self.policy)
        if cleaned.judged.decision is Decision.EXCLUDE:
            return raw if raw.decision is Decision.EXCLUDE else cleaned.judged
        if cleaned.judged.decision is Decision.INCLUDE:
            if raw.decision is Decision.INCLUDE:
                return cleaned.judged
            connection.execute("VACUUM")
        again = self.policy.judge(b"database", connection.serialize())
        if again.decision is Decision.EXCLUDE:
            return again
        if cleaned.judged.decision is Decision.REDACT:
            return cleaned.judged
        return replace(raw, decision=Decision.REDACT, stage=Stage.STRUCTURED, count=1)


class PathTest:
    """Judges paths as a snapshot of one root would."""

    def __init__(
        self, root: bytes, *, paths: PathJudge, contents: ContentTest, rule: PathRule | None = None
    ) -> None:
        """Prepare.

        Args:
            root: the folder that plays the root.
            paths: the path rules.
            contents: judges what no path rule leaves out.
            rule: what leaves out a name in the root; by default ``paths`` alone.
        """
        self._root = os.path.realpath(root)
        self._walked = os.path.abspath(root)
        self._paths = paths
        self._rule = rule or paths
        self._contents = contents

    def judge(self, path: bytes) -> Tested:
        """Judge one path, relative to the root or absolute.

        Raises:
            SelectionError: ``outside``: it does not lie in the root.
            SourceError: it cannot be read.
        """
        walked = os.path.normpath(os.path.join(self._walked, path))
        below = self._below(walked)
        found = self._on_the_way(below) or self._at_real(os.path.join(self._root, below))
        policy = self._contents.policy
        if found is None:
            return tested(policy, walked, self._contents.judge(os.path.join(self._root, below)))
        rule, at = found
        above = None if at == os.path.join(self._root, below) else at
        return tested(policy, walked, by_path(rule), above=above)

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

    def _on_the_way(self, below: bytes) -> tuple[str, bytes] | None:
        """Return the first rule from the root down to a path, and what it leaves out."""
        folder = self._root
        parts = below.split(b"/")
        for at, name in enumerate(parts):
            path = os.path.join(folder, name)
            rule = self._rule(folder, name, _lstat(path, is_last=at == len(parts) - 1))
            if rule is not None:
                return rule, path
            folder = path
        return None

    def _at_real(self, path: bytes) -> tuple[str, bytes] | None:
        real, prefix = os.path.realpath(path), self._root.rstrip(b"/") + b"/"
        if real == path:
            return None
        if real.startswith(prefix):
            return self._on_the_way(real[len(prefix) :])
        folder, _, name = real.rpartition(b"/")
        rule = self._paths(folder or b"/", name, _lstat(real, is_last=True))
        return None if rule is None else (rule, real)


def bare_test(root: bytes, *, engine: str = "") -> PathTest:
    """Return a test by the rules alone, of a root that is the home as well.

    Raises:
        SourceError: ``scanner``.
    """
    policy = ContentPolicy(open_engine(engine))
    real = os.path.realpath(root)
    paths = PathJudge([real], home=real, contents=policy)
    return PathTest(root, paths=paths, contents=ContentTest(policy))


def tested(
    policy: ContentPolicy, path: bytes, judged: Judged, *, above: bytes | None = None
) -> Tested:
    """Return what is told of a path, and of a folder above it: a credential in it is not shown."""
    return Tested(
        path=policy.shown_path(path),
        above=None if above is None else policy.shown_path(above),
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
