"""Where the repository, the keys and the state of a stream lie on this computer.

Knows paths only: it opens no file of a repository and reads no key. The environment is an
argument and gives locations, never secrets. Paths are absolute bytes.
Source: spec/cli.md, places. Start at `find_repository` and `places_of`.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from durarepo.core.errors import ConfigurationError, RepositoryStateError, SelectionError
from durarepo.core.names import is_stream_id
from durarepo.store.atomic import shown, store_error

CONFIGURATION = b"stream.toml"
HIGH_WATER = b"high-water.json"
SCRATCH = b"scratch"
"""The folder of restores, among the states; no stream is called so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bases:
    """The folders that hold one sub-folder for each stream."""

    repositories: bytes
    keys: bytes
    state: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The three folders of one stream; they need not exist yet."""

    stream: str
    repository: bytes
    keys: bytes
    state: bytes

    @property
    def objects(self) -> bytes:
        """Folder of the stored objects."""
        return os.path.join(self.repository, b"objects")

    @property
    def configuration(self) -> bytes:
        """The file ``stream.toml``."""
        return os.path.join(self.repository, CONFIGURATION)

    @property
    def catalog(self) -> bytes:
        """The rebuildable SQLite catalogue."""
        return os.path.join(self.repository, b"catalog.db")

    @property
    def journal(self) -> bytes:
        """Folder of resume points."""
        return os.path.join(self.repository, b"journal")

    @property
    def lock(self) -> bytes:
        """The lock file."""
        return os.path.join(self.repository, b"lock")

    @property
    def incoming(self) -> bytes:
        """Folder of what a fetch has not admitted yet."""
        return os.path.join(self.repository, b"incoming")

    @property
    def quarantine(self) -> bytes:
        """Folder of what was found corrupt."""
        return os.path.join(self.repository, b"quarantine")

    @property
    def work(self) -> bytes:
        """Folder of database copies and drills."""
        return os.path.join(self.state, b"work")


def bases_of(environment: Mapping[str, str], *, user_id: int) -> Bases:
    """Return the base folders for a user.

    Args:
        environment: variables by name; an empty value counts as unset.
        user_id: effective user; 0 takes the places of the system.

    Returns:
        Folders that may not exist yet.

    Raises:
        ConfigurationError: ``home``: no variable tells where the home folder is.

    Source: spec/cli.md, places; XDG Base Directory Specification.
    """
    if user_id == 0:
        repositories, keys, state = (
            b"/var/lib/durarepo",
            b"/etc/durarepo/keys",
            b"/var/lib/durarepo/state",
        )
    else:
        data = _user_folder(environment, "XDG_DATA_HOME", b".local/share")
        configuration = _user_folder(environment, "XDG_CONFIG_HOME", b".config")
        repositories = os.path.join(data, b"durarepo")
        keys = os.path.join(configuration, b"durarepo", b"keys")
        state = os.path.join(
            _user_folder(environment, "XDG_STATE_HOME", b".local/state"), b"durarepo"
        )
    return Bases(
        repositories=repositories,
        keys=_named(environment, "DURAREPO_KEYS") or keys,
        state=_named(environment, "DURAREPO_STATE") or state,
    )


def _user_folder(environment: Mapping[str, str], variable: str, below_home: bytes) -> bytes:
    value = os.fsencode(environment.get(variable, ""))
    if os.path.isabs(value):  # the specification tells to ignore relative ones
        return os.path.normpath(value)
    home = os.fsencode(environment.get("HOME", ""))
    if not os.path.isabs(home):
        raise ConfigurationError(
            "home",
            f"neither '{variable}' nor 'HOME' names an absolute folder",
            hint=f"set HOME, or set {variable}",
        )
    return os.path.join(os.path.normpath(home), below_home)


def _named(environment: Mapping[str, str], variable: str) -> bytes | None:
    value = os.fsencode(environment.get(variable, ""))
    return os.path.abspath(value) if value else None


def places_of(stream: str, *, bases: Bases, repository: bytes | None = None) -> Places:
    """Return where the three folders of ``stream`` lie.

    Args:
        stream: a stream id.
        bases: from `bases_of`.
        repository: the repository itself, where it was named; None for the usual place.

    Raises:
        ConfigurationError: ``stream``: that is no stream id.
    """
    if not is_stream_id(stream):
        raise ConfigurationError(
            "stream",
            f"{shown(os.fsencode(stream))} is not a stream id",
            hint="use lower-case letters, digits and '-', at most 63, not beginning with '-'",
        )
    name = stream.encode("ascii")
    return Places(
        stream=stream,
        repository=repository or os.path.join(bases.repositories, name),
        keys=os.path.join(bases.keys, name),
        state=os.path.join(bases.state, name),
    )


def named_repository(environment: Mapping[str, str], given: bytes | None) -> bytes | None:
    """Return the repository that the call or ``DURAREPO_REPO`` names, absolute, or None."""
    if given:
        return os.path.abspath(given)
    return _named(environment, "DURAREPO_REPO")


def is_repository(path: bytes) -> bool:
    """Return whether ``path`` is a folder with a ``stream.toml``.

    Raises:
        StoreError: it cannot be looked at.
    """
    try:
        os.stat(os.path.join(path, CONFIGURATION))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise store_error(error, "look at", path) from error
    return True


def list_repositories(bases: Bases) -> list[bytes]:
    """Return the repositories in their usual place, sorted by name.

    Raises:
        StoreError: the folder cannot be listed.
    """
    try:
        names = sorted(os.listdir(bases.repositories))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise store_error(error, "list", bases.repositories) from error
    paths = (
        os.path.join(bases.repositories, name) for name in names if is_stream_id(os.fsdecode(name))
    )
    return [path for path in paths if is_repository(path)]


def neighbours_of(places: Places) -> list[bytes]:
    """Return the folders of other streams that lie beside this one's, and its own state.

    These are the folder of all streams' keys, where this stream's keys lie in one, and the
    repositories and states beside its own. The folder of restores is none of them. A folder
    that this user may not look into is passed over: this user can make nothing in it.

    Raises:
        StoreError: what lies beside cannot be listed.
    """
    keys_base, name = os.path.split(places.keys)
    found = [keys_base] if name == places.stream.encode() else []
    found += _beside_with(places.repository, CONFIGURATION)
    states = _beside_with(places.state, HIGH_WATER)
    return found + [path for path in states if os.path.basename(path) != SCRATCH]


def _beside_with(path: bytes, name: bytes) -> list[bytes]:
    """Return the folders beside ``path``, itself among them, in which something has the name."""
    base = os.path.dirname(path)
    try:
        beside = [os.path.join(base, each) for each in sorted(os.listdir(base))]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    except OSError as error:
        raise store_error(error, "list", base) from error
    return [each for each in beside if os.path.lexists(os.path.join(each, name))]


def find_repository(
    environment: Mapping[str, str], *, bases: Bases, given: bytes | None = None
) -> bytes:
    """Return the one repository that is meant: named, from the environment, or the only one.

    Args:
        environment: variables by name.
        bases: from `bases_of`.
        given: the value of ``--repo``, or None.

    Returns:
        Its absolute path.

    Raises:
        RepositoryStateError: ``absent``: none is there.
        SelectionError: ``several``: which one is meant is not known.
        StoreError: a folder cannot be looked at.
    """
    named = named_repository(environment, given)
    if named is not None:
        if is_repository(named):
            return named
        raise RepositoryStateError(
            "absent",
            f"there is no repository in {shown(named)}",
            hint="check --repo and DURAREPO_REPO, or make one with durarepo init",
        )
    found = list_repositories(bases)
    if len(found) > 1:
        listed = ", ".join(shown(path) for path in found)
        raise SelectionError(
            "several", f"there are several repositories: {listed}", hint="name one with --repo"
        )
    if not found:
        raise RepositoryStateError(
            "absent",
            f"there is no repository in {shown(bases.repositories)}",
            hint="make one with durarepo init or durarepo quickstart, or name one with --repo",
        )
    return found[0]
