"""The policy as one run asks it: of names before they are opened, of bytes before they are kept.

Binds the rules to a stream: its roots, its reviewed entries, and the key under which a path that
holds a secret is told. Holds no value and no place of a value.
Source: spec/exclusion.md. Start at `Exclusion`.
"""

import hashlib
from datetime import date

from durarepo.crypto import primitives
from durarepo.policy.allow import Allow, check_until, is_allowed, parse_until
from durarepo.policy.decide import ContentPolicy, Judged
from durarepo.policy.rules import Decision
from durarepo.policy.rules_table import policy_version
from durarepo.policy.scanner import open_engine
from durarepo.repository.repository import Repository
from durarepo.source.pathjudge import PathJudge

_SHORT_ID_BYTES = 8


class Exclusion:
    """What is left out of the snapshots of one stream."""

    def __init__(
        self, repository: Repository, *, home: bytes | None, today: date, engine: str = ""
    ) -> None:
        """Prepare.

        Args:
            repository: names the roots and the reviewed entries, and holds the naming key.
            home: the home folder of the user whose state is kept; None where it is not known.
            today: the day in UTC, for entries that end.
            engine: of `scanner.open_engine`.

        Raises:
            SourceError: ``scanner``: contents cannot be scanned.
            ConfigurationError: ``allow``: an entry ends too far off.
        """
        self.contents = ContentPolicy(open_engine(engine))
        self.paths = PathJudge(
            [root.path for root in repository.configuration.roots],
            home=home,
            contents=self.contents,
        )
        self.version = policy_version()
        self._mark_key = hashlib.sha256(self.version.encode()).digest()
        self._naming = repository.keys.naming
        self._today = today
        self._allows = [
            Allow(
                path=one.path.encode("utf-8", "surrogateescape"),
                content=one.content,
                rule=one.rule,
                reason=one.reason,
                until=parse_until(one.until),
            )
            for one in repository.configuration.allows
        ]
        for one in self._allows:
            check_until(one.until, today)
        self.reviewed = frozenset(one.path for one in self._allows)
        """Paths of which an entry speaks: never believed unchanged."""

    def judge(self, path: bytes, data: bytes) -> Judged:
        """Judge a file that is in memory; a reviewed entry can keep a header in documentation.

        Returns:
            What `ContentPolicy.judge` says. What an entry keeps is included and has its rules.
        """
        judged = self.contents.judge(path, data)
        if judged.is_waivable and path in self.reviewed:
            content = content_hash(self._naming.reveal(), data)
            if is_allowed(self._allows, judged, path=path, content=content, today=self._today):
                return Judged(decision=Decision.INCLUDE, rule=judged.rule, rules=judged.rules)
        return judged

    def short_id(self, path: bytes) -> bytes | None:
        """Return the keyed short id to tell of a path that holds a secret; None for others."""
        if not self.contents.holds_secret(path):
            return None
        key = primitives.derive_subkey(self._naming.reveal(), "path")
        return primitives.keyed_hash(key, path)[:_SHORT_ID_BYTES].hex().encode("ascii")

    def mark(self, record: bytes) -> bytes:
        """Return the record of a file as this version of the policy notes it for a later run.

        Another version, whose rules could say something else of the file, has another.
        """
        return hashlib.blake2b(record, key=self._mark_key, digest_size=len(record)).digest()


def content_hash(naming: bytes, data: bytes) -> str:
    """Return the keyed hash by which an ``[[allow]]`` entry knows a content.

    Args:
        naming: the naming key.
        data: all of the content.
    """
    return primitives.keyed_hash(primitives.derive_subkey(naming, "allow"), data).hex()
