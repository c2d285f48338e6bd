"""Pure calculations whose outcome is kept, for runs that ask the same a thousand times.

All that is remembered lies on the pure floors, where the outcome is decided by the arguments
alone: opening a stanza, checking signatures, and the ingest of a whole registry or envelope. The
key is every argument, bytes by their value; other bytes are another question and are calculated.
Start at `remembered`.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar
from unittest.mock import patch

from durarepo import ingest
from durarepo.crypto import primitives
from durarepo.repository import chain, chaincheck, openpack, repository, slots

T = TypeVar("T")

_SMALL, _LARGE = 10_000, 300
"""So many outcomes are kept: of a function of short arguments, and of one of whole objects."""
_CALLERS = (ingest, chain, chaincheck, openpack, repository, slots)


@contextmanager
def remembered() -> Iterator[None]:
    """Remember what opening a stanza, checking signatures and ingest come to."""
    with ExitStack() as stack:
        for name in ("open_stanza", "verify_both", "is_weak_signer"):
            most = _LARGE if name == "verify_both" else _SMALL
            known = remembering(getattr(primitives, name), most=most)
            stack.enter_context(patch.object(primitives, name, known))
        for name in ("open_registry", "open_manifest"):
            known = remembering(getattr(ingest, name), most=_LARGE)
            for module in _CALLERS:
                if hasattr(module, name):
                    stack.enter_context(patch.object(module, name, known))
        yield


def remembering(function: Callable[..., T], *, most: int) -> Callable[..., T]:
    """Return a function that calculates nothing twice.

    A refusal by a wrong key is kept and raised again; any other error is calculated anew.

    Args:
        function: decided by its arguments alone.
        most: so many outcomes are kept, then all are forgotten.
    """
    held: dict[Hashable, tuple[T | None, primitives.WrongKeyError | None, object]] = {}

    def asked(*given: object, **named: object) -> T:
        question = (*map(_key, given), *((name, _key(one)) for name, one in named.items()))
        found = held.get(question)
        if found is None:
            if len(held) >= most:
                held.clear()
            try:
                found = function(*given, **named), None, (given, named)
            except primitives.WrongKeyError as error:
                found = None, error, (given, named)
            held[question] = found
        value, refusal, _ = found
        if refusal is not None:
            raise type(refusal)(*refusal.args)
        return value  # type: ignore[return-value]  # None only beside an error

    return asked


def _key(argument: object) -> Hashable:
    """Return what stands for an argument; a registry is the very same one, and kept alive."""
    if isinstance(argument, ingest.Expected):
        place = argument.stream, argument.epoch, argument.sequence
        return id(argument.registry), *place
    if argument is None or isinstance(argument, bytes | str | int | tuple):
        return argument
    raise TypeError(f"a {type(argument).__name__} has no key here")
