"""The remotes of a stream: which there are, and what each really does. Sends no object of it.

Source: spec/cli.md 4 (remote list, check), spec/mirror.md 6. Start at `check_one`.
"""

from dataclasses import dataclass

from durarepo.core.errors import SelectionError
from durarepo.local.configuration import RemoteConfig
from durarepo.local.remotes import Checked, RemoteNotes, check_apart, check_remote
from durarepo.repository.repository import Repository
from durarepo.store.transport import Waits


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteStanding:
    """A remote as stream.toml describes it, and what the last check of it found, if any."""

    config: RemoteConfig
    checked: Checked | None


def list_remotes(repository: Repository) -> list[RemoteStanding]:
    """Return the remotes in the order of stream.toml. Opens none of them."""
    notes = RemoteNotes(repository.places.state)
    return [
        RemoteStanding(config=config, checked=notes.of(config))
        for config in repository.configuration.remotes
    ]


def check_one(repository: Repository, name: str, *, waits: Waits, now: int) -> RemoteStanding:
    """Try what a remote does, and note it.

    Args:
        repository: open; nothing of it is read or sent.
        name: of the remote, as stream.toml has it.
        waits: the time as it passes.
        now: seconds since 1970, to be noted.

    Raises:
        SelectionError: ``no-remote``.
        ConfigurationError: ``remote-url``, ``ca``.
        KeyMaterialError: the credentials file is refused.
        RemoteError: it cannot be used at all; what was known of it stays.
        StoreError: what was found cannot be noted.
    """
    config = next((one for one in repository.configuration.remotes if one.name == name), None)
    if config is None:
        known = ", ".join(one.name for one in repository.configuration.remotes)
        raise SelectionError(
            "no-remote",
            f"there is no remote {name[:80]!a}",
            hint=f"known are: {known}" if known else "add a [[remote]] table to stream.toml",
        )
    places, roots = repository.places, repository.configuration.roots
    own = [places.repository, places.keys, places.state, *(root.path for root in roots)]
    check_apart(config, own)
    checked = Checked(at=now, capabilities=check_remote(config, waits=waits))
    RemoteNotes(repository.places.state).note(config, checked)
    return RemoteStanding(config=config, checked=checked)
