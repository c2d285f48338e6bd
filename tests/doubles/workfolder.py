"""A work folder without a lock or a journal, for what only makes copies in it."""

from pathlib import Path


class PlainWork:
    """Gives new names in a folder and removes what it is told to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def new_file(self, suffix: str = "") -> bytes:
        """Return a name that is not taken."""
        return bytes(self._folder / f"made{len(list(self._folder.iterdir()))}{suffix}")

    def discard(self, path: bytes) -> None:
        """Remove a copy."""
        Path(path.decode()).unlink(missing_ok=True)
