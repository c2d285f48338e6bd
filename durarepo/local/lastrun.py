"""Which error ended the last snapshot on this computer, so that status can tell of it.

It is told to people and believed for nothing else, so a file that is damaged or lost counts as
"nothing is known", and a disk that cannot take it hides no error. Only a code is noted, never a
message. Times are seconds since 1970.
Source: spec/cli.md 4 (status). Start at `LastRun`.
"""

import json
import os
import re
from dataclasses import dataclass

from durarepo.core.errors import StoreError
from durarepo.store.atomic import make_folder, read_small, replace_small

_MAX_BYTES = 4096
_CODE = re.compile(r"[a-z]+\.[a-z0-9-]+\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRun:
    """A run that made no manifest: when it ended, and the code of the error."""

    at: int
    code: str


class LastRun:
    """The file of one ``STATE/STREAM`` folder."""

    def __init__(self, folder: bytes) -> None:
        self._folder = folder
        self.path = os.path.join(folder, b"failed.json")

    def failure(self) -> FailedRun | None:
        """Return how the last run failed; None where it did not, or nothing is known."""
        try:
            value = json.loads(read_small(self.path, _MAX_BYTES) or b"null")
        except (StoreError, ValueError, RecursionError):
            return None
        match value:
            case {"at": int() as at, "code": str() as code} if _CODE.match(code):
                return FailedRun(at=at, code=code)
            case _:
                return None

    def note_failure(self, code: str, *, at: int) -> None:
        """Note that a run failed, if the disk takes it."""
        self._replace({"at": at, "code": code})

    def note_success(self) -> None:
        """Note that a run made what it should; writes only where a failure is noted."""
        if self.failure() is not None:
            self._replace(None)

    def _replace(self, value: dict[str, int | str] | None) -> None:
        try:
            make_folder(self._folder)
            replace_small(self.path, json.dumps(value, separators=(",", ":")).encode("ascii"))
        except StoreError:
            return  # the error itself is told by the run
