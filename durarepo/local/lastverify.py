"""What the last verification came to, so that status and snapshot can still tell it.

It is told to people, and no snapshot builds upon a pack that it names as bad; it is believed for
nothing else, so a file that is damaged or lost counts as "nothing was verified yet". A failure
stays until a verification that looks at least as closely has passed, and a bad pack until it was
seen good as closely. Times are seconds since 1970.
Source: spec/cli.md 4 (status), spec/format.md 12 (law 3). Start at `LastVerify`.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from durarepo.core.errors import StoreError
from durarepo.core.names import ObjectName
from durarepo.store.atomic import make_folder, read_small, replace_small

LEVELS = ("chain", "packs", "data")
BAD_MAX = 65_536
"""So many bad packs are named at most, those found last before others."""

_NAME_DIGITS = 64
_HEX = frozenset("0123456789abcdef")
_MAX_BYTES = 4096 + BAD_MAX * (_NAME_DIGITS + len('"",'))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a verification came to: one of `LEVELS`, when, and how many problems it found.

    ``is_share`` says that only a share of the data was looked at. ``ok`` may be False without
    a problem: then not all of the level could be looked at.
    """

    level: str
    is_share: bool
    at: int
    ok: bool
    problems: int

    @property
    def depth(self) -> int:
        """How closely it looked; a share of the data is sure to find no more than packs do."""
        return LEVELS.index("packs" if self.is_share else self.level)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackFinding:
    """What a verification says of one pack: whether it is bad, and the level that it looked at."""

    is_bad: bool
    level: str


class LastVerify:
    """The file of one ``STATE/STREAM`` folder."""

    def __init__(self, folder: bytes) -> None:
        self._folder = folder
        self.path = os.path.join(folder, b"verified.json")

    def outcome(self) -> Outcome | None:
        """Return what was noted, or None where nothing is known or the file cannot be read."""
        return self._read()[0]

    def bad_packs(self) -> dict[ObjectName, str]:
        """Return the packs that were found bad and not good since, each with the level."""
        return self._read()[1]

    def _read(self) -> tuple[Outcome | None, dict[ObjectName, str]]:
        try:
            value = json.loads(read_small(self.path, _MAX_BYTES) or b"null")
        except (StoreError, ValueError, RecursionError):
            return None, {}
        outcome = _parse_outcome(value)
        return (None, {}) if outcome is None else (outcome, _parse_bad(value))

    def note(self, outcome: Outcome, packs: Mapping[ObjectName, PackFinding] | None = None) -> None:
        """Note what a verification came to; one that passes hides no failure that it cannot see.

        Args:
            outcome: of all of it.
            packs: what it says of each pack that it looked at.

        Raises:
            StoreError: it cannot be written; what was held stays.
        """
        held, bad = self._read()
        told = outcome
        if held is not None and _is_hidden(held, by=outcome):
            told = held
        value = {
            "level": told.level,
            "share": told.is_share,
            "at": told.at,
            "ok": told.ok,
            "problems": told.problems,
            "bad": _bad_by_level(_still_bad(bad, packs or {})),
        }
        make_folder(self._folder)
        replace_small(self.path, json.dumps(value, separators=(",", ":")).encode("ascii"))


def _is_hidden(held: Outcome, *, by: Outcome) -> bool:
    """Return whether a failure would be hidden by a run that cannot know that it is mended."""
    if by.ok:
        return not held.ok and by.depth < held.depth
    return bool(held.problems) and not by.problems


def _still_bad(
    held: Mapping[ObjectName, str], packs: Mapping[ObjectName, PackFinding]
) -> dict[ObjectName, str]:
    """Return what is bad after a verification: what it found, and what it did not see good."""
    bad = {name: one.level for name, one in packs.items() if one.is_bad}
    for name, level in held.items():
        found = packs.get(name)
        if found is None or LEVELS.index(found.level) < LEVELS.index(level):
            bad[name] = level
    return dict(list(bad.items())[:BAD_MAX])


def _bad_by_level(bad: Mapping[ObjectName, str]) -> dict[str, list[ObjectName]]:
    by_level: dict[str, list[ObjectName]] = {}
    for name, level in bad.items():
        by_level.setdefault(level, []).append(name)
    return by_level


def _parse_outcome(value: object) -> Outcome | None:
    match value:
        case {
            "level": str() as level,
            "share": bool() as is_share,
            "at": int() as at,
            "ok": bool() as ok,
            "problems": int() as problems,
        } if level in LEVELS and problems >= 0:
            return Outcome(level=level, is_share=is_share, at=at, ok=ok, problems=problems)
        case _:
            return None


def _parse_bad(value: object) -> dict[ObjectName, str]:
    """Return the bad packs of a note; what has another form is passed over."""
    match value:
        case {"bad": dict() as by_level}:
            return {
                ObjectName(name): level
                for level, names in by_level.items()
                if level in LEVELS and isinstance(names, list)
                for name in names
                if isinstance(name, str) and len(name) == _NAME_DIGITS and _HEX.issuperset(name)
            }
        case _:
            return {}
