"""A secret that cannot be shown by accident: repr, str, format, pickle and copy all refuse.

Holds bytes and nothing else; knows no place and no algorithm. It does not wipe memory: Python
gives no such promise, so the rule is that the value is taken out only where it is used.
Source: spec/format.md 12, law 9 (AICEP 10.5.2). Start at `Secret.reveal`.
"""

from hmac import compare_digest
from typing import NoReturn

_REDACTED = "Secret(redacted)"


class Secret:
    """Secret bytes; equal in constant time to another `Secret` of the same bytes.

    Raises:
        TypeError: the value is no bytes, or something tries to pickle, copy or hash the secret.
    """

    __slots__ = ("__value",)

    def __init__(self, value: bytes) -> None:
        if not isinstance(value, bytes):
            raise TypeError("a secret is made of bytes")
        self.__value = value

    def reveal(self) -> bytes:
        """Return the secret bytes, for the one call that needs them."""
        return self.__value

    def __len__(self) -> int:
        return len(self.__value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return compare_digest(self.__value, other.reveal())

    __hash__ = None  # type: ignore[assignment]  # a hash would be kept where the secret is not

    def __repr__(self) -> str:
        return _REDACTED

    def __str__(self) -> str:
        return _REDACTED

    def __format__(self, spec: str) -> str:
        return _REDACTED

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret is not copied or written out")
