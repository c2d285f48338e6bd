"""What path rules say of a name in its folder. Pure text in, a rule out; nothing is opened.

A rule that could hold is found by the last part alone, once for each name; only then are the
parts above it compared, from the end. Parts are compared whole, so `docs/netrc-howto.md` has
nothing to do with `.netrc`.
Source: spec/exclusion.md 2. Start at `PathRules.find`.
"""

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from functools import lru_cache

from durarepo.policy.names import folded, text_of, undecorated
from durarepo.policy.path_table import MARK_RULES, PATH_RULES
from durarepo.policy.rules import REBUILDABLE, MarkRule, PathRule, Rule
from durarepo.policy.tails import WILD, Tail, Tails

_NAMES_CACHED = 65_536


class PathRules:
    """The path rules, compiled once."""

    def __init__(
        self, rules: Sequence[PathRule] = PATH_RULES, marks: Sequence[MarkRule] = MARK_RULES
    ) -> None:
        """Compile.

        Args:
            rules: decide by names alone.
            marks: decide by what lies in or beside a folder.
        """
        self.rules = tuple(rules)
        self._order = {rule.id: at for at, rule in enumerate(self.rules)}
        self._unless = {rule.id: _either(rule.unless) for rule in self.rules}
        self._tables = {
            (folders, exact): Tails(
                (pattern, rule)
                for rule in self.rules
                if rule.exact is exact
                for pattern in (rule.folders if folders else rule.files)
            )
            for folders in (False, True)
            for exact in (False, True)
        }
        self._marks = [(_either([folded(n) for n in mark.names]), mark) for mark in marks]
        self._candidates = lru_cache(_NAMES_CACHED)(self._find_candidates)

    def find(self, folder: bytes, name: bytes, *, is_folder: bool) -> PathRule | None:
        """Return the first rule that leaves ``name`` in ``folder`` out, or None.

        Args:
            folder: the folder's path, as far up as it is known.
            name: the last part.
            is_folder: whether it is a directory.
        """
        candidates = self._candidates(name, is_folder)
        if not candidates:
            return None
        written = text_of(folder).split("/")
        parts: list[str] | None = None
        for tail in candidates:
            if not tail.above:
                return tail.value
            if tail.value.exact:
                above = written
            else:
                above = parts = parts or [folded(part) for part in written]
            if tail.fits_above(above):
                return tail.value
        return None

    def find_above(self, path: bytes, *, below: bytes, is_folder: bool) -> PathRule | None:
        """Return the first rule that leaves out a path or a folder between ``below`` and it."""
        rest = path[len(below) :].strip(b"/").split(b"/")
        folder = below.rstrip(b"/")
        for at, name in enumerate(rest):
            last = at == len(rest) - 1
            rule = self.find(folder, name, is_folder=is_folder or not last)
            if rule is not None:
                return rule
            folder += b"/" + name
        return None

    def marks_for(self, name: bytes) -> list[MarkRule]:
        """Return the rules that may leave out a folder of this name for what is in it."""
        text = folded(text_of(name))
        return [mark for names, mark in self._marks if names is not None and names.match(text)]

    def well_known(self) -> list[tuple[PathRule, str]]:
        """Return the secret stores that have one fixed place below a home folder.

        These are the patterns of rules for secrets that begin with a dot and hold no wildcard.
        """
        return [
            (rule, pattern)
            for rule in self.rules
            if rule.word not in REBUILDABLE
            for pattern in (*rule.files, *rule.folders)
            if pattern.startswith(".") and not WILD.search(pattern)
        ]

    def _find_candidates(self, name: bytes, is_folder: bool) -> tuple[Tail[PathRule], ...]:  # noqa: FBT001 - a cache key
        text = text_of(name)
        low = folded(text)
        found = self._fitting(
            (low,) if is_folder else undecorated(low), is_folder=is_folder, exact=False
        )
        found += self._fitting((text,), is_folder=is_folder, exact=True)
        return tuple(sorted(found, key=lambda tail: self._order[tail.value.id]))

    def _fitting(
        self,
        names: Iterable[str],
        *,
        is_folder: bool,
        exact: bool,
    ) -> list[Tail[PathRule]]:
        found: list[Tail[PathRule]] = []
        for name in names:
            for tail in self._tables[is_folder, exact].candidates(name):
                unless = self._unless[tail.value.id]
                if unless is None or not unless.match(name):
                    found.append(tail)
        return found


@lru_cache(1)
def shared_path_rules() -> PathRules:
    """Return the rules of the table, compiled once a process."""
    return PathRules()


def is_secret(rule: Rule) -> bool:
    """Return whether a rule is for secrets, not for what can be made again."""
    return rule.word not in REBUILDABLE


def _either(patterns: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(translate, patterns))) if patterns else None
