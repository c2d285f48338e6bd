"""Addresses of remotes, taken apart and checked before anything is opened.

Source: spec/mirror.md 1. Start at `parse_remote_url`.
"""

import re
from dataclasses import dataclass

from durarepo.core.errors import ConfigurationError

URL_MAX_LENGTH = 2048
_HTTPS_PORT = 443
_PORT_MAX = 65_535
_HTTPS = re.compile(
    r"https://(?P<host>[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<path>(?:/[A-Za-z0-9._~-]+)*/?)\Z"
)
_FOLDER = re.compile(r"file://(?P<path>/[^\x00-\x1f\x7f?#%]+)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpsUrl:
    """A base on an HTTPS server; ``path`` begins and ends with a slash."""

    host: str
    port: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderUrl:
    """A base that is a folder."""

    path: bytes


def parse_remote_url(text: str) -> HttpsUrl | FolderUrl:
    """Return what an address says.

    Raises:
        ConfigurationError: ``remote-url``: another scheme, ``http://`` above all; a user,
            password, query or fragment; a path with ``..`` or with an escape. The message
            does not repeat the address: it may hold a password.

    Source: spec/mirror.md 1.
    """
    if len(text) > URL_MAX_LENGTH:
        raise _refused("is too long")
    if text.startswith("http://"):
        raise _refused("begins with http://, which anybody on the way can read and change")
    if "@" in text.partition("://")[2].partition("/")[0] and text.startswith("http"):
        raise _refused("holds a user, password or token; these belong in a credentials file")
    if {"..", "."} & set(text.split("/")):
        raise _refused("has '.' or '..' in its path")
    if found := _HTTPS.match(text):
        port = int(found["port"] or _HTTPS_PORT)
        if not 0 < port <= _PORT_MAX:
            raise _refused("has a port that is none")
        return HttpsUrl(host=found["host"], port=port, path=f"{found['path'].rstrip('/')}/")
    if found := _FOLDER.match(text):
        return FolderUrl(path=found["path"].rstrip("/").encode())
    raise _refused("is neither https://HOST/PATH/ nor file:///DIR")


def _refused(why: str) -> ConfigurationError:
    return ConfigurationError(
        "remote-url",
        f"the URL of a remote {why}",
        hint="write https://HOST/PATH/ or file:///DIR, without user, query or fragment",
    )
