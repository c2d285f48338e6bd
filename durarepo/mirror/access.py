"""Who may do what: tokens, of which the mirror knows only their SHA-256.

A token is 32 random bytes, so its plain digest cannot be guessed back; what is compared is the
digest of what was presented, so that the time of a comparison tells nothing about a token.
Source: spec/mirror.md 4. Start at `Access.grant_of`.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from durarepo.core.errors import ConfigurationError
from durarepo.core.secret import Secret
from durarepo.crypto.primitives import random_key

TOKENS_MAX_BYTES = 1024 * 1024
NO_SCOPE = "-"
_LINE = re.compile(
    r"(?P<scope>-|[a-z0-9][a-z0-9-]{0,62}) (?P<right>[a-z]+) (?P<sha256>[0-9a-f]{64})\Z"
)
_BEARER = re.compile(rb"[Bb]earer ([A-Za-z0-9._~+/=-]{1,4096})\Z")


class Right(Enum):
    """What a token is good for."""

    PUT = "put"
    GET = "get"
    METRICS = "metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What one token may do, and where."""

    scope: str
    right: Right


class Access:
    """The tokens of a mirror."""

    def __init__(self, grants: Mapping[str, Grant]) -> None:
        """Take what `parse_tokens` made: grants by the SHA-256 of their tokens, in hex."""
        self._grants = dict(grants)

    @property
    def scopes(self) -> list[str]:
        """The scopes that some token opens, in order."""
        return sorted({one.scope for one in self._grants.values()} - {NO_SCOPE})

    def grant_of(self, authorization: bytes) -> Grant | None:
        """Return what the value of an ``Authorization`` field may do, or None."""
        found = _BEARER.match(authorization)
        return self._grants.get(hashlib.sha256(found[1]).hexdigest()) if found else None


def parse_tokens(text: bytes) -> Access:
    """Return what a tokens file allows.

    Raises:
        ConfigurationError: ``tokens``: a line is not one; the message has its number only.
    """
    grants: dict[str, Grant] = {}
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = _LINE.match(line.strip())
        right = next((one for one in Right if found and one.value == found["right"]), None)
        if not found or right is None or found["sha256"] in grants:
            raise _refused(number)
        if (right is Right.METRICS) != (found["scope"] == NO_SCOPE):
            raise _refused(number)
        grants[found["sha256"]] = Grant(scope=found["scope"], right=right)
    return Access(grants)


def make_token(scope: str, right: Right) -> tuple[Secret, str]:
    """Return a new token, and the line of the tokens file that lets it in.

    Raises:
        ConfigurationError: ``tokens``: there can be no such scope.
    """
    token = base64.urlsafe_b64encode(random_key()).rstrip(b"=")
    line = f"{scope} {right.value} {hashlib.sha256(token).hexdigest()}"
    parse_tokens(line.encode())
    return Secret(token), line


def _refused(number: int) -> ConfigurationError:
    return ConfigurationError(
        "tokens",
        f"line {number} of the tokens is no 'SCOPE RIGHT SHA256', or a token stands twice",
        hint="rights are put, get and, with scope '-', metrics",
    )
