"""What a verification finds wrong: which object, in which way, and who suffers from it.

Findings are collected, never raised: one damaged object hides no other. The kinds are the words
that scripts read. Source: spec/cli.md 4 (verify), spec/ingest.md. Start at `Problem`.
"""

from collections.abc import Iterable, Mapping
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
    ``manifests`` are the numbers of those that it concerns, ascending: the one whose envelope
    the object is or should be, or those that pin the pack, as far as is known.
    """

    object: ObjectName
    kind: ProblemKind
    affects: tuple[bytes, ...] | None
    manifests: tuple[int, ...] = ()


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
        self._manifests: dict[ObjectName, set[int]] = {}

    def add(
        self,
        name: ObjectName,
        kind: ProblemKind,
        affects: Iterable[bytes] | None = None,
        *,
        manifest: int | None = None,
    ) -> None:
        """Note a problem, or further paths and a manifest that it affects.

        Args:
            name: the object.
            kind: in which way it is wrong.
            affects: the paths; None where they are not known.
            manifest: number of a manifest that it concerns; a verified manifest's own envelope
                needs none.
        """
        held = self._found.setdefault((name, kind), None)
        if affects is not None:
            self._found[name, kind] = (held or set()) | set(affects)
        if manifest is not None:
            self._manifests.setdefault(name, set()).add(manifest)

    def harming(self, path: bytes) -> list[tuple[ObjectName, ProblemKind]]:
        """Return what affects a path or something below it."""
        below = path.rstrip(b"/") + b"/"
        return [
            key
            for key, paths in self._found.items()
            if any(one == path or one.startswith(below) for one in paths or ())
        ]

    def problems(self, envelopes: Mapping[int, ObjectName]) -> tuple[Problem, ...]:
        """Return all of them in the order in which they came up.

        Args:
            envelopes: the names of the manifests' envelopes, by number.
        """
        concerned = {name: {number} for number, name in envelopes.items()}
        for name, numbers in self._manifests.items():
            concerned[name] = numbers | concerned.get(name, set())
        return tuple(
            Problem(
                object=name,
                kind=kind,
                affects=None if paths is None else _topmost(paths),
                manifests=tuple(sorted(concerned.get(name, ()))),
            )
            for (name, kind), paths in self._found.items()
        )


def is_whole(newest: int, problems: Iterable[Problem], *, was_checked: bool) -> bool | None:
    """Return whether no problem concerns the newest manifest; None where that is not known.

    Args:
        newest: its number, 0 if there is none.
        problems: all that were found.
        was_checked: whether all of it was looked at, should nothing say otherwise.
    """
    kinds = {one.kind for one in problems if one.manifests and one.manifests[-1] >= newest}
    if kinds - {ProblemKind.EXPIRED}:
        return False
    return True if was_checked and newest and not kinds else None


def _topmost(paths: set[bytes]) -> tuple[bytes, ...]:
    """Return the paths in order, without those that lie below another one."""
    kept: list[bytes] = []
    for path in sorted(paths, key=lambda one: one.split(b"/")):
        if not kept or not path.startswith(kept[-1].rstrip(b"/") + b"/"):
            kept.append(path)
    return tuple(kept)
