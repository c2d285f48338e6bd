"""Draws texts that fit a pattern: a canary for every rule, also for those that come later.

Only what the patterns of the content rules use is known; anything else raises.
Start at `draw_match`.
"""

import random
from collections.abc import Callable, Iterable
from re import _parser  # type: ignore[attr-defined]  # the parser of the library itself

Draw = random.Random

_MORE = 4
_PRINTABLE = range(33, 127)
_CATEGORIES = {
    "CATEGORY_DIGIT": b"0123456789",
    "CATEGORY_SPACE": b" \t\n",
    "CATEGORY_WORD": b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_",
    "CATEGORY_NOT_SPACE": bytes(_PRINTABLE),
}
_NOTHING = ("ASSERT", "ASSERT_NOT", "AT")


def draw_match(draw: Draw, pattern: str) -> bytes:
    """Return drawn bytes that fit ``pattern``, what it asks for around them left out."""
    return bytes(_of_sequence(draw, _parser.parse(pattern)))


def _of_sequence(draw: Draw, sequence: Iterable[tuple[object, object]]) -> list[int]:
    return [
        one
        for code, value in sequence
        if str(code) not in _NOTHING
        for one in _MAKERS[str(code)](draw, value)
    ]


def _of_branch(draw: Draw, value: object) -> list[int]:
    assert isinstance(value, tuple)
    return _of_sequence(draw, draw.choice(value[1]))


def _of_group(draw: Draw, value: object) -> list[int]:
    assert isinstance(value, tuple)
    return _of_sequence(draw, value[-1])


def _of_repeat(draw: Draw, value: object) -> list[int]:
    assert isinstance(value, tuple)
    least, most, what = value
    count = draw.randint(least, min(most, least + _MORE) if least else min(most, 1))
    return [one for _ in range(count) for one in _of_sequence(draw, what)]


def _of_set(draw: Draw, value: object) -> list[int]:
    assert isinstance(value, list)
    chosen: set[int] = set()
    for code, what in value:
        if str(code) == "LITERAL":
            chosen.add(what)
        elif str(code) == "RANGE":
            chosen.update(range(what[0], what[1] + 1))
        elif str(code) == "CATEGORY":
            chosen.update(_CATEGORIES[str(what)])
    if str(value[0][0]) == "NEGATE":
        chosen = set(_PRINTABLE) - chosen
    return [draw.choice(sorted(chosen & set(_PRINTABLE)) or sorted(chosen))]


def _of_literal(draw: Draw, value: object) -> list[int]:
    del draw
    assert isinstance(value, int)
    return [value]


def _of_any(draw: Draw, value: object) -> list[int]:
    return [draw.choice([one for one in _PRINTABLE if one != value])]


_MAKERS: dict[str, Callable[[Draw, object], list[int]]] = {
    "LITERAL": _of_literal,
    "NOT_LITERAL": _of_any,
    "ANY": _of_any,
    "IN": _of_set,
    "BRANCH": _of_branch,
    "SUBPATTERN": _of_group,
    "MAX_REPEAT": _of_repeat,
    "MIN_REPEAT": _of_repeat,
}
