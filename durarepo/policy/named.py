"""What a name and what is around it say of a value: whether it is a secret, and by which rule.

Asked of leaves as they stand in a file and of texts as a parser reads them, so that both are
judged alike. Pure; a value is looked at and never kept.
Source: spec/exclusion.md 5. Start at `NamedValues.rule_of`.
"""

from dataclasses import dataclass
from functools import lru_cache

from durarepo.policy.forms import Form, Profile
from durarepo.policy.leaves import VALUE_NAMES
from durarepo.policy.values import (
    ASSIGNED_LEAST,
    is_assigned_secret,
    is_drawn,
    is_set,
    is_spaced_password,
    says_secret,
)

RULE_ASSIGNED, RULE_LOGIN, RULE_STORE = "assigned", "login-value", "login-store"
RULE_KUBERNETES = "kubernetes-secret"

_VALUE_MOST = 16 * 1024
"""So much of a value is looked at; no password or token is longer."""

_AROUND_LOGINS = frozenset(
    {b"env", b"environment", b"headers", b"http_headers", b"env_http_headers", b"secrets"}
    | {b"credentials", b"api-key", b"api_key", b"apikey", b"apikeys", b"api_keys", b"tokens"}
)
_AROUND_SECRETS = frozenset(
    {b"cookies", b"secrets", b"credentials", b"passwords", b"api-keys", b"api_keys", b"apikeys"}
)
"""What directly stands in such is one of them, under any name."""

_AUTH_NAMES = frozenset(
    {b"auth", b"_auth", b"npmauthident", b"identitytoken", b"registrytoken", b"id-token"}
)
_SECRET_PARTS = frozenset({b"data", b"stringData"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedValues:
    """What counts in one file: in settings known to hold logins more does."""

    is_login: bool
    is_kubernetes: bool

    @classmethod
    def of(cls, form: Form, *, is_kubernetes: bool) -> "NamedValues":
        """Return what counts in a file of a form."""
        is_login = form.profile in (Profile.LOGIN, Profile.STORE)
        return cls(is_login=is_login, is_kubernetes=is_kubernetes)

    @property
    def least(self) -> int:
        """The length of the shortest value that can count."""
        return 0 if self.is_login or self.is_kubernetes else ASSIGNED_LEAST

    def rule_of(self, name: bytes, above: tuple[bytes, ...], value: bytes) -> str | None:
        """Return the rule by which a value is a secret, or None.

        Args:
            name: what it stands under.
            above: the names around that, from outside.
            value: itself, without escapes.
        """
        value = value.strip()[:_VALUE_MOST]
        if self.is_kubernetes and _SECRET_PARTS.intersection(above) and is_set(value):
            return RULE_KUBERNETES
        if self.is_login and _is_login(name, above, value):
            return RULE_LOGIN
        if len(value) < ASSIGNED_LEAST:
            return None
        if says_secret(name) or _says_around(name, above[-1:]):
            return RULE_ASSIGNED if is_assigned_secret(value) else None
        return None


def _is_login(name: bytes, above: tuple[bytes, ...], value: bytes) -> bool:
    if not is_set(value):
        return False
    if says_secret(name) or name.rpartition(b":")[2].lower() in _AUTH_NAMES:
        return b" " not in value or is_drawn(value) or is_spaced_password(value)
    return _is_around_login(above) and is_assigned_secret(value)


@lru_cache(256)
def _is_around_login(above: tuple[bytes, ...]) -> bool:
    """Return whether one of the names is that of logins; asked of many values in one place."""
    return not _AROUND_LOGINS.isdisjoint(one.lower() for one in above)


def _says_around(name: bytes, directly: tuple[bytes, ...]) -> bool:
    """Return whether what directly encloses a value says that it is secret."""
    if not directly:
        return False
    around = directly[0]
    return around.lower() in _AROUND_SECRETS or (
        name.lower() in VALUE_NAMES and says_secret(around)
    )
