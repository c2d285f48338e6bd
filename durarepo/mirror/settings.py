"""mirror.toml: where a mirror keeps objects, where it listens, and with what certificate.

An unknown key is refused by name. Source: spec/mirror.md 7. Start at `parse_settings`.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

from durarepo.core.errors import ConfigurationError

SETTINGS_MAX_BYTES = 64 * 1024
_KEYS = {"folder", "address", "port", "certificate", "key", "tokens", "quota_bytes"}
_PATHS = ("folder", "certificate", "key", "tokens")
_PORT_MAX = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSettings:
    """All of mirror.toml; paths are absolute, ``port`` 0 takes a free one."""

    folder: bytes
    certificate: bytes
    key: bytes
    tokens: bytes
    address: str = "127.0.0.1"
    port: int = 8443
    quota_bytes: int = 0


def parse_settings(data: bytes) -> MirrorSettings:
    """Return what a mirror.toml says.

    Raises:
        ConfigurationError: ``mirror``: it is no TOML, or a key is missing, unknown or wrong.
    """
    try:
        table: Mapping[str, object] = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        raise _refused("is no TOML document in UTF-8") from None
    if unknown := sorted(set(table) - _KEYS):
        raise _refused(f"has an unknown key '{unknown[0]}'")
    paths = {key: _path(table, key) for key in _PATHS}
    address = table.get("address", "127.0.0.1")
    if not isinstance(address, str):
        raise _refused("has an 'address' that is no text")
    return MirrorSettings(
        **paths,
        address=address,
        port=_number(table, "port", 8443, most=_PORT_MAX),
        quota_bytes=_number(table, "quota_bytes", 0, most=1 << 60),
    )


def _path(table: Mapping[str, object], key: str) -> bytes:
    value = table.get(key)
    if not isinstance(value, str) or not os.path.isabs(value) or "\0" in value:
        raise _refused(f"needs '{key}', an absolute path")
    return os.fsencode(value)


def _number(table: Mapping[str, object], key: str, default: int, *, most: int) -> int:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise _refused(f"has a '{key}' that is no number from 0 to {most}")
    return value


def _refused(why: str) -> ConfigurationError:
    return ConfigurationError(
        "mirror",
        f"mirror.toml {why}",
        hint=f"correct it; known keys: {', '.join(sorted(_KEYS))}",
    )
