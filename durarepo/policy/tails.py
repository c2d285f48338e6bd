"""Patterns of the tails of paths, found fast: by the last part first, then upwards.

A pattern is parts between slashes; ``*`` and ``?`` stay within a part. Most names fit no
pattern, and that is what is told most cheaply.
Source: fnmatch of the standard library. Start at `Tails.find`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import Generic, TypeVar

T = TypeVar("T")

WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Tail(Generic[T]):
    """A pattern ready to compare: its last part, the parts above from the end, what it means."""

    value: T
    order: int
    last: str
    above: tuple[re.Pattern[str], ...]

    def fits_above(self, parts: Sequence[str]) -> bool:
        """Return whether the parts of a folder's path end as the pattern wants."""
        if len(self.above) > len(parts):
            return False
        for pattern, part in zip(self.above, reversed(parts), strict=False):
            if pattern.match(part) is None:
                return False
        return True


class Tails(Generic[T]):
    """Many patterns, each with what it means."""

    def __init__(self, patterns: Iterable[tuple[str, T]]) -> None:
        """Compile ``patterns``; their order is kept."""
        self._literal: dict[str, list[Tail[T]]] = {}
        self._wild: list[tuple[re.Pattern[str], Tail[T]]] = []
        for order, (pattern, value) in enumerate(patterns):
            *above, last = pattern.split("/")
            compiled = tuple(re.compile(translate(part)) for part in reversed(above))
            tail = Tail(value, order, last, compiled)
            if WILD.search(last):
                self._wild.append((re.compile(translate(last)), tail))
            else:
                self._literal.setdefault(last, []).append(tail)
        wild = [tail.last for _, tail in self._wild]
        self._starts = tuple({start for one in wild if (start := WILD.split(one)[0])})
        self._ends = tuple({WILD.split(one)[-1] for one in wild if WILD.match(one)})

    def candidates(self, name: str) -> list[Tail[T]]:
        """Return the patterns whose last part fits ``name``."""
        found = list(self._literal.get(name, ()))
        if name.startswith(self._starts) or name.endswith(self._ends):
            found += [tail for pattern, tail in self._wild if pattern.match(name)]
        return found

    def find(self, parts: Sequence[str]) -> T | None:
        """Return what the first pattern that fits a path means, or None."""
        fitting = [one for one in self.candidates(parts[-1]) if one.fits_above(parts[:-1])]
        return min(fitting, key=lambda one: one.order).value if fitting else None
