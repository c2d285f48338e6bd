"""What a request asks for, taken apart and checked: bytes of a stranger to a checked value.

Opens nothing and knows no token. Whatever is not exactly what the specification names is
refused with a status. Source: spec/mirror.md 2 and 4. Start at `parse_ask`.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from durarepo.core.limits import PACK_MAX_BYTES
from durarepo.core.names import Digest, ObjectName

METHODS = ("GET", "HEAD", "PUT")
_PATH = re.compile(rb"/([a-z0-9][a-z0-9-]{0,62})/(?:([0-9a-f]{2})/([0-9a-f]{64}))?\Z")
_AFTER = re.compile(rb"after=([0-9a-f]{64})\Z")
_LENGTH = re.compile(rb"[0-9]{1,19}\Z")
_DIGEST = re.compile(rb"(?:.*,)?\s*sha-256=:([A-Za-z0-9+/]{43}=):")
_RANGE = re.compile(rb"bytes=([0-9]{1,19})-([0-9]{0,19})\Z")
_WANTED = re.compile(rb"(?:^|,)\s*sha-256=[1-9]")
_OCTETS = b"application/octet-stream"


class RefusedRequestError(Exception):
    """A request that gets a status and nothing else."""

    def __init__(self, status: int, fields: Iterable[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(status)
        self.status = status
        self.fields = tuple(fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request: ``scope`` is empty for the metrics, ``name`` None for a listing."""

    method: str
    scope: str
    name: ObjectName | None
    after: str
    fields: Mapping[bytes, bytes]

    @property
    def wants_digest(self) -> bool:
        """Whether the digest of the object is asked for."""
        return _WANTED.search(self.fields.get(b"want-repr-digest", b"")) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """What a PUT says of its body."""

    size: int
    digest: Digest


def fields_of(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return the fields of a request by lower-case name; of one that stands twice, both."""
    fields: dict[bytes, bytes] = {}
    for name, value in headers:
        key = name.lower()
        fields[key] = fields[key] + b", " + value if key in fields else value
    return fields


def parse_ask(method: str, path: bytes, query: bytes, fields: Mapping[bytes, bytes]) -> Ask:
    """Return what is asked for.

    Raises:
        RefusedRequestError: 404 for a path that cannot be; 405 for a method that is not there.
    """
    scope, name = "", None
    if path != b"/metrics":
        found = _PATH.match(path)
        if found is None or (found[3] is not None and found[3][:2] != found[2]):
            raise RefusedRequestError(404)
        scope = found[1].decode("ascii")
        name = None if found[3] is None else ObjectName(found[3].decode("ascii"))
    allowed = METHODS if name is not None else ("GET",)
    if method not in allowed:
        raise RefusedRequestError(405, [(b"allow", ", ".join(allowed).encode())])
    after = _AFTER.match(query)
    if query and (name is not None or after is None):
        raise RefusedRequestError(404)
    return Ask(
        method=method,
        scope=scope,
        name=name,
        after=after[1].decode("ascii") if after else "",
        fields=fields,
    )


def parse_upload(fields: Mapping[bytes, bytes]) -> Upload:
    """Return what a PUT says of its body.

    Raises:
        RefusedRequestError: 411 without a length; 413 where it is too long; 415 for another
            type or an encoding; 400 without a digest.
    """
    length = fields.get(b"content-length", b"")
    if not _LENGTH.match(length) or b"transfer-encoding" in fields:
        raise RefusedRequestError(411)
    if int(length) > PACK_MAX_BYTES:
        raise RefusedRequestError(413)
    if fields.get(b"content-type", _OCTETS) != _OCTETS or b"content-encoding" in fields:
        raise RefusedRequestError(415)
    found = _DIGEST.match(fields.get(b"content-digest", b""))
    if found is None:
        raise RefusedRequestError(400)
    return Upload(size=int(length), digest=Digest(base64.b64decode(found[1])))


def parse_range(fields: Mapping[bytes, bytes], size: int) -> tuple[int, int] | None:
    """Return first and last byte of the range that is asked for, or None for all.

    What is no single range from the front is answered with all, as HTTP allows.

    Raises:
        RefusedRequestError: 416: it begins at the end or beyond.
    """
    found = _RANGE.match(fields.get(b"range", b""))
    if found is None:
        return None
    first = int(found[1])
    last = min(int(found[2]), size - 1) if found[2] else size - 1
    if found[2] and int(found[2]) < first:
        return None
    if first >= size:
        raise RefusedRequestError(416, [(b"content-range", b"bytes */%d" % size)])
    return first, last
