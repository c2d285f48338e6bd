"""A snapshot that only says what it would do: each name of the roots, its decision and its rule.

Takes no lock, reads no key, and changes nothing; content is judged where it lies, a database by
its main file. Source: spec/cli.md 4 (snapshot), spec/exclusion.md. Start at `judge_roots`.
"""

import stat
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

from durarepo.core.clock import Clock
from durarepo.core.errors import SourceError
from durarepo.policy.decide import Judged
from durarepo.policy.rules import Decision, Stage
from durarepo.repository.contents import first_bytes
from durarepo.repository.exclusion import Exclusion
from durarepo.repository.listing import sidecar_base
from durarepo.repository.repository import Repository
from durarepo.repository.roots import Roots
from durarepo.repository.treekeeper import RULE_SIDECAR
from durarepo.source.judging import ContentTest, Tested, by_path, tested
from durarepo.source.mounts import read_mounts
from durarepo.source.sqlitestate import is_sidecar, is_sqlite
from durarepo.source.walk import Enter, Listed, walk

_SIDECAR = Judged(
    decision=Decision.EXCLUDE, rule=RULE_SIDECAR, stage=Stage.CONTENT, rules=(RULE_SIDECAR,)
)


def judge_roots(repository: Repository, *, home: bytes | None, clock: Clock) -> Iterator[Tested]:
    """Yield what a snapshot would do with each name but folders that are kept as they are.

    Args:
        repository: names the roots.
        home: of `SnapshotRequest`.
        clock: gives the live time.

    Raises:
        SourceError: a root is missing or unreadable, or contents cannot be scanned.
        ConfigurationError: an entry of stream.toml cannot be accepted.
    """
    today = datetime.fromtimestamp(clock(), UTC).date()
    exclusion = Exclusion(repository, home=home, today=today)
    roots = Roots(repository, paths=exclusion.paths)
    contents = ContentTest(exclusion.contents, exclusion.judge)
    mounts = read_mounts()
    for root in repository.configuration.roots:
        with closing(walk(root.path, rules=roots.rules(root), mounts=mounts)) as events:
            for event in events:
                if isinstance(event, Enter):
                    for path, judged in _judged(event, contents):
                        yield tested(exclusion.contents, path, judged)


def _judged(event: Enter, contents: ContentTest) -> Iterator[tuple[bytes, Judged]]:
    prefix = event.path.rstrip(b"/") + b"/"
    folder = _content(contents, event.path)
    if folder.decision is not Decision.INCLUDE:
        yield event.path, folder  # an attribute of it
    for name, rule in event.excluded:
        yield prefix + name, by_path(rule)
    databases: set[bytes] = set()
    for listed in event.names:
        name, found = listed
        if stat.S_ISDIR(found.st_mode):
            continue
        if sidecar_base(name) in databases and _is_sidecar(event, listed):
            yield prefix + name, _SIDECAR
            continue
        yield prefix + name, _content(contents, prefix + name)
        if stat.S_ISREG(found.st_mode) and is_sqlite(first_bytes(event.fd, name)):
            databases.add(name)


def _is_sidecar(event: Enter, listed: Listed) -> bool:
    name, found = listed
    is_file = stat.S_ISREG(found.st_mode) and found.st_nlink <= 1
    return is_file and is_sidecar(name, first_bytes(event.fd, name), found.st_size)


def _content(contents: ContentTest, path: bytes) -> Judged:
    try:
        return contents.judge(path)
    except SourceError as error:
        return Judged(decision=Decision.EXCLUDE, rule=error.code, rules=(error.code,))
