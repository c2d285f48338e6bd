"""The remotes of a stream as this computer uses them: opened from stream.toml, and what they do.

What a check found is noted in the state folder with the URL and the time. It is believed only
for that URL; a note that is lost or damaged means that nothing is known, so that more is read
back. Source: spec/mirror.md 2 and 6, spec/cli.md 3. Start at `open_remote`.
"""

import json
import os
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass

from durarepo.core.errors import ConfigurationError, KeyMaterialError, StoreError
from durarepo.local.configuration import RemoteConfig
from durarepo.local.secretfiles import read_secret
from durarepo.store.atomic import make_folder, read_small, replace_small, shown
from durarepo.store.capabilities import Can, Capabilities, check_folder
from durarepo.store.credentials import parse_credentials
from durarepo.store.folder import FolderRemote
from durarepo.store.https import HttpsRemote
from durarepo.store.remoteurl import FolderUrl, parse_remote_url
from durarepo.store.retrying import Patience
from durarepo.store.servercheck import check_server
from durarepo.store.tls import CA_MAX_BYTES, verifying_context
from durarepo.store.transport import Transport, Waits

_NOTES_MAX_BYTES = 1024 * 1024
_LAST_SECOND = 253_402_300_799
"""The end of the year 9999: no note has a later time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a check found of a remote, and when, in seconds since 1970."""

    at: int
    capabilities: Capabilities


def open_remote(
    config: RemoteConfig, *, waits: Waits, known: Capabilities | None = None
) -> FolderRemote | HttpsRemote:
    """Return a remote as stream.toml describes it; of a server, nothing is opened yet.

    Args:
        config: its table.
        waits: the time.
        known: what a check of this very URL found.

    Raises:
        ConfigurationError: ``remote-url``, ``ca``.
        KeyMaterialError: the credentials file can be read by others, or is malformed.
        RemoteError: ``absent``, ``folder``: the folder cannot be used.
    """
    url = parse_remote_url(config.url)
    if isinstance(url, FolderUrl):
        return FolderRemote(url.path)
    transport = Transport(
        url,
        context=verifying_context(None if config.ca is None else _read_ca(config.ca)),
        waits=waits,
        authorization=None
        if config.credentials is None
        else parse_credentials(_read_credentials(config.credentials)),
    )
    return HttpsRemote(
        transport,
        patience=Patience(waits=waits),
        trusts_digest=known is not None and known.reports_digest is Can.YES,
    )


def check_apart(config: RemoteConfig, own: Iterable[bytes]) -> None:
    """Refuse a folder as a remote that lies in, is or contains a folder of this stream.

    Args:
        config: its table; a server passes.
        own: repository, keys, state and roots; they need not exist.

    Raises:
        ConfigurationError: ``remote-url``.
    """
    url = parse_remote_url(config.url)
    if not isinstance(url, FolderUrl):
        return
    place = os.path.join(os.path.realpath(url.path), b"")
    for path in own:
        other = os.path.join(os.path.realpath(path), b"")
        if place.startswith(other) or other.startswith(place):
            raise ConfigurationError(
                "remote-url",
                f"the folder of the remote lies in, is or contains {shown(path)}",
                hint="name a folder apart from the roots, the repository, its state and its keys",
            )


def check_remote(config: RemoteConfig, *, waits: Waits) -> Capabilities:
    """Try what a remote does; see `check_server` and `check_folder`.

    Raises:
        ConfigurationError: as `open_remote`.
        KeyMaterialError: as `open_remote`.
        RemoteError: it cannot be used at all.
    """
    with closing(open_remote(config, waits=waits)) as remote:
        if isinstance(remote, FolderRemote):
            return check_folder(remote)
        return check_server(remote.transport, Patience(waits=waits))


class RemoteNotes:
    """The file of one ``STATE/STREAM`` folder that holds what checks found."""

    def __init__(self, folder: bytes) -> None:
        self._folder = folder
        self.path = os.path.join(folder, b"remotes.json")

    def of(self, config: RemoteConfig) -> Checked | None:
        """Return what was found of a remote at its present URL, or None where nothing is known."""
        match self._read().get(config.name):
            case {"url": config.url, "at": int() as at, "found": dict() as found} if (
                0 <= at <= _LAST_SECOND
            ):
                return Checked(at=at, capabilities=Capabilities.of_record(_texts(found)))
            case _:
                return None

    def note(self, config: RemoteConfig, checked: Checked) -> None:
        """Write down what was found, in the place of what was known of that remote.

        Raises:
            StoreError: it cannot be written; what was held stays.
        """
        held = self._read()
        found = checked.capabilities.record()
        held[config.name] = {"url": config.url, "at": checked.at, "found": found}
        make_folder(self._folder)
        replace_small(self.path, json.dumps(held, separators=(",", ":")).encode())

    def _read(self) -> dict[str, object]:
        try:
            value = json.loads(read_small(self.path, _NOTES_MAX_BYTES) or b"null")
        except (StoreError, ValueError, RecursionError):
            return {}
        return dict(value) if isinstance(value, dict) else {}


def _texts(record: dict[object, object]) -> dict[str, str]:
    return {str(name): word for name, word in record.items() if isinstance(word, str)}


def _read_credentials(path: bytes) -> bytes:
    try:
        return read_secret(path)
    except KeyMaterialError as error:
        if error.code in {"keys.mode", "keys.acl"}:
            error.hint = "let nobody else read the file; if others could, have a new token made"
        elif error.code == "keys.missing":
            error.hint = "put the credentials file of the remote there, or correct 'credentials'"
        raise


def _read_ca(path: bytes) -> bytes:
    data = read_small(path, CA_MAX_BYTES)
    if data is None:
        raise ConfigurationError(
            "ca", f"there is no CA file {shown(path)}", hint="correct 'ca' of the remote"
        )
    return data
