"""How an operation tells how far it has come; nothing here shows or times anything.

Source: spec/cli.md, progress. Start at `Progress`.
"""

from typing import Protocol


class Progress(Protocol):
    """Whoever wants to know how far an operation has come."""

    def update(self, done_files: int, done_bytes: int, total: int | None) -> None:
        """Take note of what is done so far.

        Called as often as the operation likes, from one thread; must be cheap and never raise.

        Args:
            done_files: files that are finished.
            done_bytes: bytes that are finished, in the unit of ``total``.
            total: bytes there will be in the end, or None where that is not known.
        """


class SilentProgress:
    """Nobody wants to know."""

    def update(self, done_files: int, done_bytes: int, total: int | None) -> None:
        """Do nothing; see `Progress`."""
