"""What one run knows: its options, its environment, its clock, and how it opens a repository.

The only module of the program that reads the clock and the environment. It holds no secret.
Source: spec/cli.md 1 and 3. Start at `Session`.
"""

import os
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from durarepo.core.errors import ConfigurationError, DurarepoError, RepositoryStateError
from durarepo.core.progress import Progress
from durarepo.local.configuration import CONFIGURATION_MAX_BYTES, parse_configuration
from durarepo.local.cryptopin import check_crypto_package
from durarepo.local.places import (
    CONFIGURATION,
    Bases,
    Places,
    bases_of,
    find_repository,
    named_repository,
    places_of,
)
from durarepo.store.atomic import read_small, shown
from durarepo_cli.output import Output
from durarepo_cli.progress import shown_progress

if TYPE_CHECKING:
    from durarepo.repository.repository import Repository


def clock() -> int:
    """Return the live time, in whole seconds since 1970."""
    return int(time.time())  # noqa: TID251 - the one clock; everything else gets it as an argument


@dataclass(slots=True, kw_only=True)
class Session:
    """One run of the program."""

    output: Output
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    repository_option: str | None = None
    progress_mode: str = "auto"
    _is_crypto_checked: bool = field(default=False, init=False)

    @property
    def bases(self) -> Bases:
        """Where the folders of all streams lie."""
        return bases_of(self.environment, user_id=os.geteuid())

    @property
    def home(self) -> bytes | None:
        """The home folder of the user that runs this, by the environment or the user database."""
        home = os.fsencode(self.environment.get("HOME", "")) or os.path.expanduser(b"~")
        return os.path.normpath(home) if os.path.isabs(home) else None

    @property
    def folder(self) -> bytes | None:
        """The folder from which relative paths are meant, really; None if it is gone."""
        try:
            return os.getcwdb()
        except OSError:
            return None

    def progress(self) -> AbstractContextManager[Progress]:
        """Return a context that gives an operation someone to tell how far it has come."""
        return shown_progress(
            self.progress_mode,
            is_quiet=self.output.is_quiet,
            terminal=self.environment.get("TERM", ""),
        )

    def new_places(self, stream: str) -> Places:
        """Return where a stream is to be made: where ``--repo`` says, else the usual place."""
        named = named_repository(self.environment, self._given)
        return places_of(stream, bases=self.bases, repository=named)

    def places(self) -> Places:
        """Return the places of the repository that is meant.

        Raises:
            RepositoryStateError: there is none.
            ConfigurationError: there are several, or stream.toml cannot be accepted.
            StoreError: it cannot be looked at.
        """
        bases = self.bases
        repository = find_repository(self.environment, bases=bases, given=self._given)
        place = os.path.join(repository, CONFIGURATION)
        text = read_small(place, CONFIGURATION_MAX_BYTES)
        if text is None:
            raise RepositoryStateError(
                "absent",
                f"there is no repository in {shown(repository)}",
                hint="run it again, or name another with --repo",
            )
        stream = parse_configuration(text, place=place).stream
        return places_of(stream, bases=bases, repository=repository)

    def stream_roots(self) -> list[bytes]:
        """Return what lies in the stream by its configuration alone: all, where one is named.

        Returns:
            Folders; none where no repository is named and not exactly one can be used.
        """
        if named_repository(self.environment, self._given) is not None:
            return [b"/"]
        try:
            text = read_small(self.places().configuration, CONFIGURATION_MAX_BYTES)
            return [] if text is None else [one.path for one in parse_configuration(text).roots]
        except DurarepoError:
            return []

    def check_crypto(self) -> None:
        """Check the crypto package, which is done before it is imported, and once a run.

        Raises:
            KeyMaterialError: ``crypto-pin``.
        """
        if not self._is_crypto_checked:
            check_crypto_package()
            self._is_crypto_checked = True

    def open(self) -> "Repository":
        """Return the repository that is meant, open; the crypto package is checked before.

        Raises:
            DurarepoError: as `places` and `open_repository` say.
        """
        places = self.places()
        self.check_crypto()
        # Not before the check: this imports the package.
        from durarepo.repository.repository import open_repository  # noqa: PLC0415

        return open_repository(places)

    @property
    def _given(self) -> bytes | None:
        if self.repository_option == "":
            raise ConfigurationError(
                "usage", "--repo names no folder", hint="name the folder of the repository"
            )
        return None if self.repository_option is None else os.fsencode(self.repository_option)
