"""What the last verification came to, so that status and snapshot can still tell it.

It is told to people and believed for nothing else, so a file that is damaged or lost counts as
"nothing was verified yet". A failure stays until a verification that looks at least as closely
has passed. Times are seconds since 1970. Source: spec/cli.md 4 (status). Start at `LastVerify`.
"""

import json
import os
from dataclasses import dataclass

from durarepo.core.errors import StoreError
from durarepo.store.atomic import make_folder, read_small, replace_small

LEVELS = ("chain", "packs", "data")
_MAX_BYTES = 4096


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


class LastVerify:
    """The file of one ``STATE/STREAM`` folder."""

    def __init__(self, folder: bytes) -> None:
        self._folder = folder
        self.path = os.path.join(folder, b"verified.json")

    def outcome(self) -> Outcome | None:
        """Return what was noted, or None where nothing is known or the file cannot be read."""
        try:
            value = json.loads(read_small(self.path, _MAX_BYTES) or b"null")
        except (StoreError, ValueError, RecursionError):
            return None
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

    def note(self, outcome: Outcome) -> None:
        """Note what a verification came to; one that passes hides no failure that it cannot see.

        Raises:
            StoreError: it cannot be written; what was held stays.
        """
        held = self.outcome()
        if outcome.ok and held is not None and not held.ok and outcome.depth < held.depth:
            return
        value = {
            "level": outcome.level,
            "share": outcome.is_share,
            "at": outcome.at,
            "ok": outcome.ok,
            "problems": outcome.problems,
        }
        make_folder(self._folder)
        replace_small(self.path, json.dumps(value, separators=(",", ":")).encode("ascii"))
