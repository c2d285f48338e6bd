"""stream.toml: what the operator configures, as checked values, and the text that init writes.

An unknown key is refused by name, so that a typing mistake never silently changes what is kept.
Roots are absolute real paths. Holds no secret: credentials are paths of files.
Source: spec/cli.md 3. Start at `parse_configuration`.
"""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, TypeVar

from durarepo.core.errors import ConfigurationError
from durarepo.core.limits import (
    PACK_MAX_BYTES,
    RETENTION_DAYS,
    STORE_MIN_OBJECT_BYTES,
    VERIFY_DAYS,
)
from durarepo.core.names import is_stream_id
from durarepo.policy.allow import parse_until
from durarepo.policy.patterns import check_pattern
from durarepo.store.atomic import shown
from durarepo.store.remoteurl import parse_remote_url

Table: TypeAlias = Mapping[str, object]
T = TypeVar("T")

CONFIGURATION_MAX_BYTES = 1024 * 1024
_BUDGET_DEFAULT = "4h"
_UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True, kw_only=True)
class RootConfig:
    """One folder to keep. ``exclude`` and ``include`` are patterns below it."""

    path: bytes
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    one_filesystem: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentConfig:
    """One declared component; ``path`` or ``dsn_file`` says where it is."""

    name: str
    kind: str
    path: bytes | None = None
    dsn_file: bytes | None = None
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteConfig:
    """One remote; ``ca`` and ``credentials`` are paths of files."""

    name: str
    url: str
    ca: bytes | None = None
    credentials: bytes | None = None
    off_box: bool = False
    publish_surface: bool = False
    bandwidth: str = ""
    max_object_bytes: int = PACK_MAX_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowConfig:
    """One reviewed exception of the content rules."""

    path: str
    content: str
    rule: str
    reason: str
    until: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanConfig:
    """Whom a failure wakes."""

    name: str
    channels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamConfig:
    """All of stream.toml. Times are seconds, sizes bytes."""

    stream: str
    compartment: str
    never_publish: bool = False
    retention_days: int = RETENTION_DAYS
    budget_seconds: int = 4 * 3600
    max_object_bytes: int = PACK_MAX_BYTES
    verify_days: int = VERIFY_DAYS
    human: HumanConfig | None = None
    roots: tuple[RootConfig, ...] = ()
    components: tuple[ComponentConfig, ...] = ()
    remotes: tuple[RemoteConfig, ...] = ()
    allows: tuple[AllowConfig, ...] = ()

    @property
    def object_limit(self) -> int:
        """The smallest per-object limit of the stream and its remotes, in bytes."""
        return min(
            self.max_object_bytes, *(one.max_object_bytes for one in self.remotes), PACK_MAX_BYTES
        )


def refused(
    reason: str, message: str, hint: str = "correct stream.toml, then run again"
) -> ConfigurationError:
    """Return the error for a configuration that cannot be accepted."""
    return ConfigurationError(reason, message, hint=hint)


def parse_seconds(text: str) -> int:
    """Return the seconds that a duration such as ``30m`` or ``4h`` says.

    Raises:
        ConfigurationError: ``duration``.
    """
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not number.isascii() or not number.isdigit() or len(number) > 6:  # noqa: PLR2004
        raise refused("duration", f"'{text[:40]}' is no duration", "write it as 45s, 30m or 4h")
    return int(number) * _UNITS[unit]


class _Table:
    """One TOML table whose keys are all known."""

    def __init__(self, value: object, where: str, known: set[str]) -> None:
        if not isinstance(value, dict):
            raise refused("invalid", f"'{where}' in stream.toml is no table")
        for key in value:
            if key not in known:
                raise refused(
                    "unknown-key",
                    f"stream.toml has an unknown key '{where}{key}'",
                    f"correct or remove it; known here: {', '.join(sorted(known))}",
                )
        self._value: Table = value
        self._where = where

    def text(self, key: str, default: str | None = None) -> str:
        value = self._value.get(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, "text")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._value.get(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def count(self, key: str, default: int, *, least: int, most: int) -> int:
        value = self._value.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self._wrong(key, f"a number from {least} to {most}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._value.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self._wrong(key, "a list of texts")
        return tuple(value)

    def path(self, key: str) -> bytes | None:
        if key not in self._value:
            return None
        path = os.fsencode(self.text(key))
        if not os.path.isabs(path) or b"\0" in path:
            raise self._wrong(key, "an absolute path")
        return path

    def tables(self, key: str, parse: Callable[[object], T]) -> tuple[T, ...]:
        value = self._value.get(key, [])
        if not isinstance(value, list):
            raise self._wrong(key, "a list of tables")
        return tuple(parse(one) for one in value)

    def _wrong(self, key: str, expected: str) -> ConfigurationError:
        return refused("invalid", f"'{self._where}{key}' in stream.toml is not {expected}")


_TOP = {
    *("stream", "compartment", "never_publish", "retention_days", "budget", "max_object_bytes"),
    *("verify_days", "human", "root", "component", "remote", "allow"),
}


def parse_configuration(data: bytes, *, place: bytes = b"") -> StreamConfig:
    """Return the configuration that a stream.toml holds.

    Args:
        data: what the file holds.
        place: its path, for messages.

    Raises:
        ConfigurationError: ``invalid``, ``unknown-key``, ``duration``, ``roots-nested``,
            ``remote-url``.
    """
    try:
        return _parse(data)
    except ConfigurationError as error:
        if not place:
            raise
        reason = error.code.partition(".")[2]
        raise refused(reason, f"{shown(place)}: {error.message}", error.hint) from None


def _parse(data: bytes) -> StreamConfig:
    try:
        value = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        raise refused("invalid", "stream.toml is no TOML document in UTF-8") from None
    top = _Table(value, "", _TOP)
    stream, compartment = top.text("stream"), top.text("compartment")
    if not (is_stream_id(stream) and is_stream_id(compartment)):
        raise refused("invalid", "'stream' or 'compartment' in stream.toml is no stream id")
    config = StreamConfig(
        stream=stream,
        compartment=compartment,
        never_publish=top.flag("never_publish", default=False),
        retention_days=top.count("retention_days", RETENTION_DAYS, least=1, most=36_500),
        budget_seconds=parse_seconds(top.text("budget", _BUDGET_DEFAULT)),
        max_object_bytes=_object_bytes(top),
        verify_days=top.count("verify_days", VERIFY_DAYS, least=1, most=366),
        human=_parse_human(value["human"]) if "human" in value else None,
        roots=top.tables("root", _parse_root),
        components=top.tables("component", _parse_component),
        remotes=top.tables("remote", _parse_remote),
        allows=top.tables("allow", _parse_allow),
    )
    check_roots([root.path for root in config.roots])
    names = [one.name for one in config.remotes]
    if len(set(names)) != len(names):
        raise refused("invalid", "two remotes in stream.toml have one name")
    return config


def check_roots(paths: list[bytes]) -> None:
    """Refuse roots of which one lies in another.

    Raises:
        ConfigurationError: ``roots-nested``.
    """
    ordered = sorted(path.rstrip(b"/") + b"/" for path in paths)
    for one, two in pairwise(ordered):
        if two.startswith(one):
            raise refused(
                "roots-nested",
                f"root {os.fsdecode(two)!r} lies in root {os.fsdecode(one)!r}",
                "name the outer folder only",
            )


def _object_bytes(table: _Table) -> int:
    return table.count(
        "max_object_bytes", PACK_MAX_BYTES, least=STORE_MIN_OBJECT_BYTES, most=1 << 50
    )


def _parse_human(value: object) -> HumanConfig:
    table = _Table(value, "human.", {"name", "channels"})
    return HumanConfig(name=table.text("name"), channels=table.texts("channels"))


def _parse_root(value: object) -> RootConfig:
    table = _Table(value, "root.", {"path", "exclude", "include", "one_filesystem"})
    path = table.path("path")
    if path is None or os.path.normpath(path) != path:
        raise refused("invalid", "a root in stream.toml has no 'path' in normal form")
    exclude, include = table.texts("exclude"), table.texts("include")
    for pattern in (*exclude, *include):
        check_pattern(path, pattern)
    return RootConfig(
        path=path,
        exclude=exclude,
        include=include,
        one_filesystem=table.flag("one_filesystem", default=False),
    )


def _parse_component(value: object) -> ComponentConfig:
    table = _Table(value, "component.", {"name", "kind", "path", "dsn_file", "required"})
    return ComponentConfig(
        name=table.text("name"),
        kind=table.text("kind"),
        path=table.path("path"),
        dsn_file=table.path("dsn_file"),
        required=table.flag("required", default=True),
    )


def _parse_remote(value: object) -> RemoteConfig:
    known = {"name", "url", "ca", "credentials", "off_box", "publish_surface", "bandwidth"}
    table = _Table(value, "remote.", known | {"max_object_bytes"})
    name = table.text("name")
    if not is_stream_id(name):
        raise refused("invalid", f"{name[:80]!a} in stream.toml is no name of a remote")
    parse_remote_url(table.text("url"))
    return RemoteConfig(
        name=name,
        url=table.text("url"),
        ca=table.path("ca"),
        credentials=table.path("credentials"),
        off_box=table.flag("off_box", default=False),
        publish_surface=table.flag("publish_surface", default=False),
        bandwidth=table.text("bandwidth", ""),
        max_object_bytes=_object_bytes(table),
    )


def _parse_allow(value: object) -> AllowConfig:
    table = _Table(value, "allow.", {"path", "content", "rule", "reason", "until"})
    parse_until(table.text("until"))
    return AllowConfig(
        path=table.text("path"),
        content=table.text("content"),
        rule=table.text("rule"),
        reason=table.text("reason"),
        until=table.text("until"),
    )


def real_root(path: bytes) -> bytes:
    """Return the absolute real path of a folder that is to become a root.

    Raises:
        ConfigurationError: ``root-name`` where TOML cannot hold the path.
    """
    real = os.path.realpath(path)
    try:
        real.decode()
    except UnicodeDecodeError:
        raise refused(
            "root-name",
            f"root {os.fsdecode(real)!r} is not UTF-8, which stream.toml cannot hold",
            "name a folder above it as the root",
        ) from None
    return real


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'


def compose_configuration(config: StreamConfig) -> bytes:
    """Return the text of a new stream.toml with what init knows; the rest has its defaults."""
    lines = [
        "# What this stream keeps. Every key and its meaning: spec/cli.md, section 3.",
        f"stream = {_quoted(config.stream)}",
        f"compartment = {_quoted(config.compartment)}",
        f"never_publish = {str(config.never_publish).lower()}",
        f"retention_days = {config.retention_days}",
    ]
    if config.human is not None:
        channels = ", ".join(_quoted(one) for one in config.human.channels)
        lines += ["", "[human]", f"name = {_quoted(config.human.name)}", f"channels = [{channels}]"]
    for root in config.roots:
        lines += ["", "[[root]]", f"path = {_quoted(root.path.decode())}"]
    return ("\n".join(lines) + "\n").encode()


# --- additions to a text that people edit ---


def compose_allow(*, path: str, content: str, rule: str, reason: str, until: str) -> bytes:
    """Return the text of one ``[[allow]]`` table."""
    rows = {"path": path, "content": content, "rule": rule, "reason": reason, "until": until}
    lines = ["[[allow]]", *(f"{key} = {_quoted(value)}" for key, value in rows.items())]
    return ("\n".join(lines) + "\n").encode()


def with_exclusion(text: bytes, pattern: str, *, root: bytes | None) -> bytes:
    """Return the text of a stream.toml with one more pattern in ``exclude`` of a root.

    All other lines stay as they are, comments included.

    Args:
        text: of a stream.toml that is accepted.
        pattern: what to leave out.
        root: path of the root; None where there is only one.

    Raises:
        ConfigurationError: ``invalid``: no such root, or several and none named.
    """
    config = parse_configuration(text)
    chosen = [at for at, one in enumerate(config.roots) if root is None or one.path == root]
    if len(chosen) != 1:
        raise refused(
            "invalid",
            "stream.toml does not say which root is meant",
            "name one of its roots with --root",
        )
    patterns = (*config.roots[chosen[0]].exclude, pattern)
    check_pattern(config.roots[chosen[0]].path, pattern)
    if pattern in patterns[:-1]:
        return text
    row = f"exclude = [{', '.join(_quoted(one) for one in patterns)}]"
    lines = _without_exclude(text.decode().splitlines(), chosen[0], row)
    result = ("\n".join(lines) + "\n").encode()
    if parse_configuration(result).roots[chosen[0]].exclude != patterns:
        raise refused(
            "invalid",
            "'exclude' of that root is written in a way that cannot be added to",
            "write the pattern into stream.toml yourself",
        )
    return result


def _without_exclude(lines: list[str], number: int, row: str) -> list[str]:
    """Return the lines with ``row`` instead of ``exclude`` in the root table of this number."""
    kept: list[str] = []
    root, is_list = -1, False
    for line in lines:
        stripped = line.strip()
        if is_list:
            is_list = not stripped.endswith("]")
            continue
        if stripped.startswith("[") and not is_list:
            root += stripped.replace(" ", "").startswith("[[root]]")
            is_here = root == number and stripped.replace(" ", "").startswith("[[root]]")
            kept += [line, row] if is_here else [line]
        elif root == number and stripped.partition("=")[0].strip() == "exclude":
            is_list = not stripped.partition("#")[0].rstrip().endswith("]")
        else:
            kept.append(line)
    return kept
