"""What a verification finds wrong: which object, in which way, and which files suffer from it.

Findings are collected, never raised: one damaged object hides no other. The kinds are the words
that scripts read. Source: spec/cli.md 4 (verify), spec/ingest.md. Start at `Problem`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from durarepo.core.errors import IntegrityError, TrustError
from durarepo.core.names import ObjectName


class ProblemKind(StrEnum):
    """In which way something is wrong. The first four are of the bytes, the rest of trust."""

    MISSING = "missing"
    SHORT = "short"
    CORRUPT = "corrupt"
    GAP = "gap"
    UNSIGNED = "unsigned"
    UNKNOWN_SIGNER = "unknown-signer"
    FORK = "fork"
    ROLLBACK = "rollback"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One finding.

    ``affects`` are the source paths that cannot be restored because of it, a folder's for all
    below it, ascending; None where nobody here can read the listings.
    """

    object: ObjectName
    kind: ProblemKind
    affects: tuple[bytes, ...] | None


_KINDS = {
    "integrity.gap": ProblemKind.GAP,
    "integrity.pack-missing": ProblemKind.MISSING,
    "integrity.object-missing": ProblemKind.MISSING,
    "integrity.object-short": ProblemKind.SHORT,
    "trust.signature": ProblemKind.UNSIGNED,
    "trust.weak-key": ProblemKind.UNSIGNED,
    "trust.header": ProblemKind.UNSIGNED,
    "trust.type": ProblemKind.UNSIGNED,
    "trust.unknown-signer": ProblemKind.UNKNOWN_SIGNER,
    "trust.owner": ProblemKind.UNKNOWN_SIGNER,
    "trust.role": ProblemKind.UNKNOWN_SIGNER,
    "fresh.revoked": ProblemKind.UNKNOWN_SIGNER,
    "trust.rollback": ProblemKind.ROLLBACK,
    "trust.registry-version": ProblemKind.ROLLBACK,
    "trust.floor": ProblemKind.ROLLBACK,
    "trust.lifetime": ProblemKind.EXPIRED,
}


def kind_of(error: IntegrityError | TrustError) -> ProblemKind:
    """Return the kind of problem that a refusal is."""
    other = ProblemKind.FORK if isinstance(error, TrustError) else ProblemKind.CORRUPT
    return _KINDS.get(error.code, other)


class Findings:
    """Problems as they come up: each object and kind once, with all that it affects."""

    def __init__(self) -> None:
        self._found: dict[tuple[ObjectName, ProblemKind], set[bytes] | None] = {}

    def add(
        self, name: ObjectName, kind: ProblemKind, affects: Iterable[bytes] | None = None
    ) -> None:
        """Note a problem, or further paths that it affects; None where that is not known."""
        held = self._found.setdefault((name, kind), None)
        if affects is not None:
            self._found[name, kind] = (held or set()) | set(affects)

    def harming(self, path: bytes) -> list[tuple[ObjectName, ProblemKind]]:
        """Return what affects a path or something below it."""
        below = path.rstrip(b"/") + b"/"
        return [
            key
            for key, paths in self._found.items()
            if any(one == path or one.startswith(below) for one in paths or ())
        ]

    def problems(self) -> tuple[Problem, ...]:
        """Return all of them in the order in which they came up."""
        return tuple(
            Problem(object=name, kind=kind, affects=None if paths is None else _topmost(paths))
            for (name, kind), paths in self._found.items()
        )


def _topmost(paths: set[bytes]) -> tuple[bytes, ...]:
    """Return the paths in order, without those that lie below another one."""
    kept: list[bytes] = []
    for path in sorted(paths, key=lambda one: one.split(b"/")):
        if not kept or not path.startswith(kept[-1].rstrip(b"/") + b"/"):
            kept.append(path)
    return tuple(kept)
