"""What a value looks like: drawn at random, a placeholder, a reference; and what a name says.

These are guesses with known failures, so they only ever weigh what a pattern has found or what
stands under a name that says secret. Pure; a value is looked at and never kept or shown.
Source: spec/exclusion.md 3. Start at `is_placeholder`.
"""

import math
import re
from collections import Counter
from functools import lru_cache

_DISTINCT_LEAST = 6
_SPOKEN = re.compile(
    rb"(?i)example|placeholder|redacted|withheld|dummy|changeme|change[-_]me|your[-_]|insert[-_ ]"
    rb"|replace[-_]|xxxxx|\*\*\*|\.\.\.|abcdefgh|01234567|12345678|deadbeef|<[a-z]|\$\{|\{\{|\.\.\."
)
_REFERENCE = re.compile(
    rb"(?i)\A(?:\$|%[a-z_]+%\Z|<|\{\{|\[|env[:.(]|process\.env|os\.environ|getenv|secretref"
    rb"|(?:op|vault|ref\+?[a-z]*|aws-?sm|gcp-?sm|awssm|keyring|keychain|file|exec|cmd|bw|pass"
    rb"|sops|doppler|infisical|azure-?kv|ssm)(?::|//)|enc\[|arn:|sha(?:1|256|512)[-:]|!\w|@@"
    rb"|\$ANSIBLE_VAULT|/[a-z._~]|\./|\.\./|~/|https?://[^@]*\Z|var\.|local\.|data\.|module\."
    rb"|\{cipher\}|vault\b)"
)
_BEHIND_SIGN = re.compile(rb"[$\[!/][A-Za-z0-9+]{14,80}={0,2}\Z")
_SPACED = re.compile(rb"(?:[a-z]{4} ){3}[a-z]{4}\Z")
_WORDS = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_IDENTIFIER = re.compile(rb"[A-Za-z_][A-Za-z_.\[\]()-]*\Z")
_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
_HEXADECIMAL = re.compile(rb"[0-9a-fA-F]+\Z")
_COMMON_PASSWORDS = re.compile(
    rb"(?i)pass|secret|user|admin|test|demo|sample|guest|root|hunter2|qwerty"
    rb"|letmein|token|passw0rd|p4ss|changeit|s3cr3t|mypass|credential|%[sdv]|\$|<|\{|\*\*"
)
_SHORT_COMMON_PASSWORDS = re.compile(rb"(?i)foo|bar\b|baz|pwd|key")
"""Three letters, which one in two hundred long passwords holds by chance."""

_DRAWN_BITS = 3.0
_DRAWN_BITS_STRICT = 3.5
_HEX_BITS = 2.6
_PASSWORD_BITS = 2.7
_PASSWORD_LEAST = 8
_PASSWORD_LONG = 20
ASSIGNED_LEAST = 16
_MANY_WORDS = 3
_NUMBER_MOST = 2
"""Digits of a number between words, such as that of a version."""


def bits(value: bytes) -> float:
    """Return the entropy of the bytes of ``value``, in bits a byte."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values()) if size else 0.0


def is_placeholder(value: bytes) -> bool:
    """Return whether a value only holds the place of one: masked, spoken or nearly one letter."""
    return len(set(value)) < _DISTINCT_LEAST or _SPOKEN.search(value) is not None


def is_reference(value: bytes) -> bool:
    """Return whether a value names where the secret is, or has been sealed, and is none itself."""
    return _REFERENCE.match(value) is not None and not _is_drawn_behind(value)


def _is_drawn_behind(value: bytes) -> bool:
    """Return whether a value only begins like a reference, and is letters and digits at random.

    The name of a variable, a tag or a folder is of one case, or of words.
    """
    if _BEHIND_SIGN.match(value) is None:
        return False
    mixed = any(one.islower() for one in map(chr, value)), any(map(str.isupper, map(chr, value)))
    digits = sum(map(str.isdigit, map(chr, value)))
    return all(mixed) and digits > 1 and is_drawn(value, strict=True)


def is_drawn(value: bytes, *, strict: bool = False) -> bool:
    """Return whether a value looks as if it had been drawn: letters, digits, high entropy."""
    if is_placeholder(value) or not _has_digit(value) or not _has_letter(value):
        return False
    if _HEXADECIMAL.match(value):
        return bits(value) >= _HEX_BITS
    return bits(value) >= (_DRAWN_BITS_STRICT if strict else _DRAWN_BITS)


def is_password(value: bytes) -> bool:
    """Return whether a value looks like a real password, not like the word for one."""
    if len(value) < _PASSWORD_LEAST or is_placeholder(value) or _COMMON_PASSWORDS.search(value):
        return False
    if len(value) < _PASSWORD_LONG and _SHORT_COMMON_PASSWORDS.search(value):
        return False
    mixed = _has_digit(value) and _has_letter(value)
    return mixed and bits(value) >= _PASSWORD_BITS


def is_assigned_secret(value: bytes) -> bool:
    """Return whether a value under a name that says secret is one, in a configuration file."""
    if len(value) < ASSIGNED_LEAST or is_reference(value) or _UUID.match(value):
        return False
    return is_drawn(value, strict=not _HEXADECIMAL.match(value)) and not _is_spoken(value)


def is_set(value: bytes) -> bool:
    """Return whether a value under a name that says secret, in a file known to hold them, is set.

    Weaker than `is_assigned_secret`: short passwords count, references and placeholders do not.
    """
    text = value.strip()
    if len(text) < _DISTINCT_LEAST or is_reference(text) or is_placeholder(text):
        return False
    return text.lower() not in _SETTINGS


def is_spaced_password(value: bytes) -> bool:
    """Return whether a value is a password that a mail provider draws: four times four letters."""
    return _SPACED.match(value) is not None


def is_telling(value: bytes) -> bool:
    """Return whether a value that was secret in one place is nothing else in another."""
    if len(value) < _PASSWORD_LEAST or is_placeholder(value) or _is_spoken(value):
        return False
    return is_drawn(value) or (len(value) >= _PASSWORD_LONG and b" " not in value)


_SETTINGS = frozenset(
    {b"disabled", b"enabled", b"default", b"keychain", b"keyring", b"prompt", b"password"}
    | {b"secret", b"required", b"optional", b"private", b"public", b"bearer", b"oauth2", b"apikey"}
)


def _has_digit(value: bytes) -> bool:
    return any(0x30 <= one <= 0x39 for one in value)  # noqa: PLR2004 - ASCII digits


def _has_letter(value: bytes) -> bool:
    return any(0x41 <= one & 0xDF <= 0x5A for one in value)  # noqa: PLR2004 - ASCII letters


def _is_spoken(value: bytes) -> bool:
    """Return whether a value is words with separators, such as an identifier or a file name."""
    if _IDENTIFIER.match(value):
        return True
    words = [one for one in re.split(rb"[-_./: ]", value) if one]
    spoken = sum(one.isalpha() and (one.islower() or one.istitle()) for one in words)
    numbers = sum(one.isdigit() and len(one) <= _NUMBER_MOST for one in words)
    if len(words) < _MANY_WORDS:
        return False
    is_mixed = spoken >= _MANY_WORDS and spoken + numbers == len(words)
    return bool(spoken >= len(words) - 1 or is_mixed)


# --- names ---

_SECRET_WORDS = frozenset(
    {"password", "passwd", "passphrase", "passcode", "pwd", "secret", "secrets", "token"}
    | {"apikey", "apitoken", "authtoken", "accesstoken", "credential", "credentials", "pass"}
    | {"authorization", "authtoken", "identitytoken", "accesskey", "secretkey", "privatekey"}
    | {
        "cookie",
        "cookies",
        "bearer",
        "passwords",
        "tokens",
        "clientsecret",
        "pat",
        "cleartextpassword",
        "requirepass",
        "pgpassword",
        "sshpass",
        "masterauth",
    }
)
_KEY_BEFORE = frozenset(
    {"api", "access", "secret", "private", "encryption", "signing", "auth", "master", "service"}
    | {"storage", "account", "client", "session", "app", "application", "deploy", "license"}
    | {"shared", "server", "jwt", "hmac", "webhook", "bot", "openai", "anthropic", "admin", "role"}
)
_NOT_SECRET_LAST = frozenset(
    {"env", "name", "file", "path", "url", "uri", "type", "count", "limit", "limits", "ttl", "size"}
    | {"expires", "expiry", "expiration", "header", "field", "ref", "id", "ids", "policy", "length"}
    | {"max", "min", "budget", "usage", "used", "var", "variable", "command", "cmd", "helper"}
    | {"store", "provider", "endpoint", "format", "prefix", "at", "in", "regex", "pattern", "hash"}
    | {"method", "mode", "enabled", "required", "rotation", "manager", "alg", "algorithm", "param"}
    | {"version", "arn", "source", "location", "dir", "directory", "label", "hint", "prompt"}
    | {"description", "title", "placeholder", "issuer", "audience", "scope", "scopes", "class"}
    | {"script", "fingerprint", "thumbprint", "digest", "checksum", "public", "domain", "jar"}
)
_PUBLIC_WORDS = frozenset({"public", "pub", "csrf", "xsrf", "nonce", "primary", "foreign", "sort"})

_PAGES = frozenset({"page", "next", "continuation", "cursor", "pagination", "paging"})
"""A token of these says where the next page of a list begins."""


def says_secret(name: bytes) -> bool:
    """Return whether a name, split into its words, says that its value is secret.

    ``OPENAI_API_KEY``, ``botToken`` and ``spring.datasource.password`` do; ``tokenizer``,
    ``max_tokens``, ``api_key_env`` and ``public_key`` do not.
    """
    return _tail_says_secret(name[-80:])


@lru_cache(4096)
def _tail_says_secret(tail: bytes) -> bool:
    words = [one.decode("ascii", "replace").lower() for one in _WORDS.findall(tail)]
    while words and words[-1].isdigit():
        words.pop()
    if not words or words[-1] in _NOT_SECRET_LAST or _PUBLIC_WORDS.intersection(words):
        return False
    last = words[-1]
    if last == "tokens" or (last == "token" and _PAGES.intersection(words[-2:-1])):
        return False
    if last in ("key", "keys"):
        return len(words) > 1 and words[-2] in _KEY_BEFORE
    if last in _SECRET_WORDS:
        return True
    return last in ("auth", "data", "value", "ident", "base64", "b64", "plain") and any(
        one in _SECRET_WORDS or one in ("key", "npm") for one in words[:-1]
    )
