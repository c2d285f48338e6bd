"""Paths judged as the next snapshot of a stream would judge them, with its patterns and entries.

Reads and changes nothing but what `source/judging.py` reads.
Source: spec/cli.md 4 (exclude test, explain), spec/exclusion.md. Start at `StreamTest`.
"""

import os
import stat
from dataclasses import replace
from datetime import date

from durarepo.core.errors import SelectionError
from durarepo.local.configuration import RootConfig
from durarepo.policy.rules import Decision, Stage
from durarepo.repository.contents import first_bytes
from durarepo.repository.exclusion import Exclusion
from durarepo.repository.listing import sidecar_base
from durarepo.repository.repository import Repository
from durarepo.repository.roots import Roots
from durarepo.repository.treekeeper import RULE_SIDECAR
from durarepo.source.judging import ContentTest, PathRule, PathTest, Tested
from durarepo.source.mounts import read_mounts
from durarepo.source.sqlitestate import is_sidecar, is_sqlite
from durarepo.source.walk import border_rule


class StreamTest:
    """Judges paths as the next snapshot of a stream would: with its patterns and its entries."""

    def __init__(self, repository: Repository, *, home: bytes | None, today: date) -> None:
        """Prepare.

        Args:
            repository: names the roots, their patterns and the reviewed entries.
            home: of `SnapshotRequest`.
            today: the day in UTC, for entries that end.

        Raises:
            SourceError: ``scanner``: contents cannot be scanned.
            ConfigurationError: an entry of stream.toml cannot be accepted.
        """
        exclusion = Exclusion(repository, home=home, today=today)
        roots = Roots(repository, paths=exclusion.paths)
        contents = ContentTest(exclusion.contents, exclusion.judge)
        self._tests = [
            (
                root.path,
                PathTest(
                    root.path, paths=exclusion.paths, contents=contents, rule=_rule(roots, root)
                ),
            )
            for root in repository.configuration.roots
        ]

    def judge(self, path: bytes) -> Tested:
        """Judge an absolute path.

        Raises:
            SelectionError: ``outside``: it lies in no root of the stream.
            SourceError: it cannot be read.
        """
        for one in (path, os.path.realpath(path)):
            for root, test in self._tests:
                if _lies_in(one, root):
                    return _judged(test, one)
        raise SelectionError(
            "outside",
            "the path lies in no root of the stream",
            hint="its roots stand in stream.toml; --root DIR judges by the rules alone",
        )


def _judged(test: PathTest, path: bytes) -> Tested:
    tested = test.judge(path)
    if tested.stage is Stage.PATH or not _is_beside_database(path):
        return tested
    if test.judge(sidecar_base(path) or path).stage is Stage.PATH:
        return tested  # without the database, what lies beside it is a file like any other
    return replace(
        tested,
        above=None,
        decision=Decision.EXCLUDE,
        rule=RULE_SIDECAR,
        stage=Stage.CONTENT,
        rules=(RULE_SIDECAR,),
        is_waivable=False,
    )


def _is_beside_database(path: bytes) -> bool:
    """Return whether SQLite keeps this file for a database that lies beside it."""
    base = sidecar_base(path)
    if base is None or not is_sqlite(first_bytes(None, base)):
        return False
    try:
        found = os.lstat(path)
    except OSError:
        return False
    is_file = stat.S_ISREG(found.st_mode) and found.st_nlink <= 1
    return is_file and is_sidecar(path, first_bytes(None, path), found.st_size)


def _lies_in(path: bytes, root: bytes) -> bool:
    """Return whether a path lies below a root."""
    return path.startswith(root.rstrip(b"/") + b"/")


def _rule(roots: Roots, root: RootConfig) -> PathRule:
    rules, mounts = roots.rules(root), read_mounts()

    def found(folder: bytes, name: bytes, listed: os.stat_result) -> str | None:
        is_excluded = rules.is_excluded
        by_name = None if is_excluded is None else is_excluded(folder, name, listed)
        if by_name is not None or not listed.st_ino:  # what is not there crosses no border
            return by_name
        device, path = os.lstat(folder).st_dev, os.path.join(folder, name)
        return border_rule(path, listed, rules=rules, mounts=mounts, device=device)

    return found
