"""Every exit code, and which of them an error or a result has.

The only place that knows numbers; a test compares it with spec/cli.md, section 2.
Source: spec/cli.md 2. Start at `exit_of`.
"""

from collections.abc import Iterable
from enum import IntEnum

from durarepo.core.errors import DurarepoError


class Exit(IntEnum):
    """What the caller learns without reading a line."""

    DONE = 0
    OMISSIONS = 1
    USAGE = 2
    REPOSITORY = 10
    LOCKED = 11
    KEYS = 12
    SOURCE = 13
    STORE = 14
    INTEGRITY = 20
    TRUST = 21
    FRESHNESS = 22
    REMOTE = 30
    REFUSED = 31
    UNHEALTHY = 40
    BUDGET = 50
    BUG = 70
    INTERRUPTED = 130
    TERMINATED = 143


FAMILY_EXITS = {
    "config": Exit.USAGE,
    "select": Exit.USAGE,
    "repository": Exit.REPOSITORY,
    "keys": Exit.KEYS,
    "source": Exit.SOURCE,
    "store": Exit.STORE,
    "integrity": Exit.INTEGRITY,
    "trust": Exit.TRUST,
    "fresh": Exit.FRESHNESS,
    "remote": Exit.REMOTE,
    "policy": Exit.REFUSED,
}
"""Exit code by code family."""

CODE_EXITS = {
    "run.locked": Exit.LOCKED,
    "run.budget": Exit.BUDGET,
    "run.interrupted": Exit.INTERRUPTED,
    "run.terminated": Exit.TERMINATED,
    "bug.unexpected": Exit.BUG,
}
"""Exit code by full code, where the family does not settle it."""

SNAPSHOT_EXITS = {
    "ok": Exit.DONE,
    "noop": Exit.DONE,
    "omissions": Exit.OMISSIONS,
    "budget": Exit.BUDGET,
}
"""Exit code by the status of a snapshot."""

DAMAGE = frozenset({"missing", "short", "corrupt", "gap"})
"""Kinds of problem that say that bytes are wrong; every other kind is a matter of trust."""

_PRECEDENCE = (
    *(Exit.USAGE, Exit.REPOSITORY, Exit.LOCKED),
    *(Exit.TRUST, Exit.INTEGRITY, Exit.FRESHNESS, Exit.KEYS, Exit.STORE, Exit.SOURCE),
    *(Exit.REMOTE, Exit.REFUSED, Exit.BUDGET, Exit.OMISSIONS),
)


def exit_of(error: DurarepoError) -> Exit:
    """Return the exit code of an error; one of an unknown family is a bug."""
    if error.code in CODE_EXITS:
        return CODE_EXITS[error.code]
    return FAMILY_EXITS.get(error.code.partition(".")[0], Exit.BUG)


def exit_of_problems(kinds: Iterable[str]) -> Exit:
    """Return the exit code of a verification that found problems of these kinds."""
    return first_of(Exit.INTEGRITY if kind in DAMAGE else Exit.TRUST for kind in kinds)


def first_of(codes: Iterable[Exit]) -> Exit:
    """Return the code that wins when several apply; `Exit.DONE` when none does."""
    found = set(codes)
    return next((code for code in _PRECEDENCE if code in found), Exit.DONE)
