"""The reasons for which a snapshot is made, as numbers of the format and as words.

On its own, since lists of manifests need it and nothing else of the format.
Source: spec/format.md 7.2. Start at `SnapshotType`.
"""

from enum import IntEnum

from durarepo.core.errors import ConfigurationError


class SnapshotType(IntEnum):
    """Why a snapshot was made."""

    AUTO = 0
    MANUAL = 1
    PRE_SHUTDOWN = 2
    PRE_UPGRADE = 3

    @property
    def word(self) -> str:
        """The type as people and scripts write it."""
        return self.name.lower().replace("_", "-")

    @classmethod
    def of(cls, word: str) -> "SnapshotType":
        """Return the type that ``word`` names.

        Raises:
            ConfigurationError: ``config.type`` for an unknown word.
        """
        for member in cls:
            if member.word == word:
                return member
        raise ConfigurationError(
            "type",
            f"unknown snapshot type '{word[:40]}'",
            hint="use auto, manual, pre-shutdown or pre-upgrade",
        )
