"""Typed access to decoded values: each getter returns the promised type or refuses.

A `Fields` is one decoded map whose keys have been compared with what the format allows; its
getters bound numbers and lengths. All refusals carry the reason of the table they belong to.
Source: spec/format.md 6.1, last paragraph. Start at `Fields`.
"""

from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

from durarepo.core.errors import IntegrityError
from durarepo.format.canonical import Value

U32_MAX = (1 << 32) - 1
U64_MAX = (1 << 64) - 1

Keys: TypeAlias = range | tuple[int, ...]
"""Keys of a map's fields."""


@lru_cache(maxsize=64)
def _sets(required: Keys, optional: Keys) -> tuple[frozenset[int], frozenset[int]]:
    return frozenset(required), frozenset((*required, *optional))


class Fields:
    """One map of the format, with the reason that a refusal of it carries."""

    __slots__ = ("_map", "_reason", "_what")

    def __init__(
        self,
        value: Value,
        *,
        reason: str,
        what: str,
        required: Keys,
        optional: Keys = (),
    ) -> None:
        """Compare the keys of ``value`` with those that have to and those that may be there.

        Raises:
            IntegrityError: ``reason``: it is no map, lacks a field or has an unknown one.
        """
        self._reason = reason
        self._what = what
        if not isinstance(value, dict):
            raise self.refused("is not a map")
        needed, known = _sets(required, optional)
        if not needed <= value.keys() <= known:
            raise self.refused("has a missing or an unknown field")
        self._map = value

    def refused(self, why: str) -> IntegrityError:
        """Return the error for this map; ``why`` continues 'the WHAT …'."""
        return IntegrityError(self._reason, f"{self._what} {why}")

    def has(self, key: int) -> bool:
        """Return whether an optional field is there."""
        return key in self._map

    def uint(self, key: int, most: int = U64_MAX, least: int = 0) -> int:
        """Return an unsigned integer between ``least`` and ``most``."""
        return self.number(self._map[key], most, least)

    def number(self, value: Value, most: int = U64_MAX, least: int = 0) -> int:
        """Return ``value`` if it is an integer between ``least`` and ``most``."""
        if type(value) is not int or not least <= value <= most:
            raise self.refused("has a number outside its bounds")
        return value

    def flag(self, key: int) -> bool:
        """Return a boolean."""
        value = self._map[key]
        if not isinstance(value, bool):
            raise self.refused("has something else where a boolean belongs")
        return value

    def blob(self, key: int, length: int | None = None, *, most: int | None = None) -> bytes:
        """Return bytes, of exactly ``length`` or of 1 to ``most``."""
        return self.octets(self._map[key], length, most=most)

    def octets(self, value: Value, length: int | None = None, *, most: int | None = None) -> bytes:
        """Return ``value`` if it is bytes, of exactly ``length`` or of 1 to ``most``."""
        if not isinstance(value, bytes) or (length is not None and len(value) != length):
            raise self.refused("has a byte string of another length or none")
        if most is not None and not 1 <= len(value) <= most:
            raise self.refused("has a byte string outside its bounds")
        return value

    def text(self, key: int) -> str:
        """Return text."""
        return self.words(self._map[key])

    def words(self, value: Value) -> str:
        """Return ``value`` if it is text."""
        if not isinstance(value, str):
            raise self.refused("has something else where text belongs")
        return value

    def maybe_blob(self, key: int, length: int | None = None) -> bytes | None:
        """Return bytes, or None where null stands."""
        return None if self._map[key] is None else self.blob(key, length)

    def items(self, key: int, most: int | None = None) -> list[Value]:
        """Return an array of at most ``most`` items."""
        return self.array(self._map[key], most=most)

    def array(
        self, value: Value, length: int | None = None, *, most: int | None = None
    ) -> list[Value]:
        """Return ``value`` if it is an array, of ``length`` or of at most ``most`` items."""
        if not isinstance(value, list) or (length is not None and len(value) != length):
            raise self.refused("has something else where an array belongs")
        if most is not None and len(value) > most:
            raise self.refused("has an array that is too long")
        return value

    def raw(self, key: int) -> Value:
        """Return a field as it was decoded; the caller checks it."""
        return self._map[key]

    def ascending(self, items: list[bytes]) -> list[bytes]:
        """Return ``items`` if each is greater than the one before."""
        if any(one >= two for one, two in pairwise(items)):
            raise self.refused("has items out of order")
        return items
