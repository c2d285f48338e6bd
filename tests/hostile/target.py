"""What a target is: a parser by name, with good inputs and the laws that hold for every input.

A parser answers with a value or with a `DurarepoError`, and what it takes encodes to the very
bytes that it took. `check_answer` holds any input to that; everything else is a failure.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from durarepo.core.errors import DurarepoError, IntegrityError

Parse = Callable[[bytes], object]
T = TypeVar("T")


class LawError(Exception):
    """A parser took something that it should have refused, or gave back something else."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A parser by name. ``is_encoded`` says that its input is the format's encoding.

    ``rounds`` are the tries of a usual run: fewer where each costs a key exchange. ``covers``
    names the functions of the program that it is about, as ``module:function``.
    """

    name: str
    parse: Parse
    seeds: tuple[bytes, ...]
    is_encoded: bool = False
    rounds: int = 400
    covers: tuple[str, ...] = ()


def both_ways(parse: Callable[[bytes], T], encode: Callable[[T], bytes]) -> Parse:
    """Return ``parse`` with the law that what it takes encodes to the same bytes."""

    def there_and_back(data: bytes) -> object:
        value = parse(data)
        if encode(value) != data:
            raise LawError("what was taken encodes to other bytes")
        return value

    return there_and_back


def damage_is_value_error(parse: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """Return a parser of what only this program writes, whose `ValueError` says damage too."""

    def refuse(data: bytes) -> T:
        try:
            return parse(data)
        except ValueError as error:
            raise IntegrityError("damaged", str(error)) from error

    return refuse


def check_answer(target: Target, data: bytes, told: str) -> bool:
    """Return whether a parser takes ``data``; anything but a refusal of ours is a failure.

    Raises:
        AssertionError: an exception of another kind; the input is in the message.
    """
    try:
        target.parse(data)
    except DurarepoError:
        return False
    except BaseException as error:
        shown = data if len(data) < 5000 else data[:5000] + b"..."
        raise AssertionError(f"{target.name}, {told}: {error!r} for {shown.hex()}") from error
    return True
