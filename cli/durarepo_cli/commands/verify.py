"""``durarepo verify``: is what is stored still what was signed? Source: spec/cli.md 4.

Start at `command`.
"""

from typing import TypedDict, Unpack

import click

from durarepo.core.errors import (
    ConfigurationError,
    DurarepoError,
    IntegrityError,
    KeyMaterialError,
    TrustError,
)
from durarepo.operations.verify import Level, Verified, VerifyRequest, verify
from durarepo.repository.problems import Problem, ProblemKind
from durarepo_cli.command import Command
from durarepo_cli.context import Session, clock
from durarepo_cli.exits import Exit, exit_of, exit_of_problems
from durarepo_cli.output import paths_fields, quoted, ranges, size_text

_WHOLE = 100.0
_SHOWN_MAX = 20


class _Given(TypedDict):
    """What the call gives."""

    chain: bool
    packs: bool
    data: float | None
    secrets: bool


@click.command("verify", cls=Command)
@click.option("--chain", is_flag=True, help="Only the manifests.")
@click.option("--packs", is_flag=True, help="And every pack that they need; the default.")
@click.option(
    "--data",
    metavar="[PERCENT]",
    is_flag=False,
    flag_value=str(_WHOLE),
    type=float,
    help="And every file; or a share, what was checked longest ago.",
)
@click.option(
    "--secrets", is_flag=True, help="Instead, look for secrets in all snapshots with today's rules."
)
@click.pass_obj
def command(session: Session, /, **given: Unpack[_Given]) -> None:
    """Check that what is stored is what was signed.

    Changes nothing. Ends with 20 if bytes are wrong, with 21 if something is not to be trusted.
    """
    request = _request(given)
    if given["secrets"]:
        _look_for_secrets(session)
        return
    with session.open() as repository, session.progress() as progress:
        verified = verify(repository, request, clock=clock, progress=progress)
    _tell(session, verified, percent=request.percent)


def _look_for_secrets(session: Session) -> None:
    # The rules of the policy; no other check asks them.
    from durarepo.operations.verify_secrets import verify_secrets  # noqa: PLC0415
    from durarepo_cli.secrets_found import tell_secrets  # noqa: PLC0415

    with session.open() as repository, session.progress() as progress:
        found = verify_secrets(repository, clock=clock, progress=progress)
    tell_secrets(session.output, found)


def _request(given: _Given) -> VerifyRequest:
    share = given["data"]
    if sum((given["chain"], given["packs"], share is not None, given["secrets"])) > 1:
        raise ConfigurationError(
            "usage",
            "--chain, --packs, --data and --secrets exclude each other",
            hint="name the highest level; it includes those before",
        )
    if share is not None and not 0 < share <= _WHOLE:  # false for what is no number as well
        raise ConfigurationError(
            "usage",
            "the share of --data is not above 0 and at most 100",
            hint="name a percentage, for example --data=10",
        )
    if share is not None:
        return VerifyRequest(level=Level.DATA, percent=None if share == _WHOLE else share)
    return VerifyRequest(level=Level.CHAIN if given["chain"] else Level.PACKS)


def _tell(session: Session, verified: Verified, *, percent: float | None) -> None:
    output, error = session.output, _error_of(verified)
    if error is not None:
        kinds = [problem.kind for problem in verified.problems]
        output.code = exit_of_problems(kinds) or exit_of(error)
    output.tell(_fields(verified), _lines(verified, percent), error)


def _error_of(verified: Verified) -> DurarepoError | None:
    problems = verified.problems
    if _is_only_expired(verified):
        return TrustError(
            "verify",
            "everything stored is whole; what only expired manifests pin may not be decrypted"
            " without a human, and was compared with its digests alone",
            hint="take a new snapshot with durarepo snapshot, then verify again",
        )
    if problems:
        message = f"objects that are not as they were signed: {len(problems)}"
        message += "; the newest manifest is whole" if verified.newest_whole else ""
        hint = "change nothing; bring the named objects back from a copy, then verify again"
        if exit_of_problems(problem.kind for problem in problems) == Exit.INTEGRITY:
            return IntegrityError("verify", message, hint=hint)
        return TrustError("verify", message, hint=hint)
    if not verified.ok:
        return KeyMaterialError(
            "identity-absent",
            f"level {verified.level} could not be checked in full without an identity that opens"
            " the newest manifest",
            hint="run this command where the identity.key of a recipient of now is",
        )
    return None


def _is_only_expired(verified: Verified) -> bool:
    problems = verified.problems
    return bool(problems) and all(one.kind is ProblemKind.EXPIRED for one in problems)


def _fields(verified: Verified) -> dict[str, object]:
    return {
        "level": verified.level.value,
        "head": verified.head or None,
        "manifests": verified.manifests,
        "packs": verified.packs,
        "frames": verified.frames,
        "bytes": verified.bytes,
        "problems": [_problem(problem) for problem in verified.problems],
        "expired": verified.expired,
        "chain": verified.chain,
        "unknown": verified.unknown,
        "newest_whole": verified.newest_whole,
    }


def _problem(problem: Problem) -> dict[str, object]:
    return {
        "object": problem.object,
        "kind": problem.kind.value,
        **paths_fields("affects", problem.affects),
        "manifests": list(problem.manifests),
    }


def _lines(verified: Verified, percent: float | None) -> list[str]:
    head = f"head {verified.head}" if verified.head else "nothing kept yet"
    share = "" if percent is None else f", {percent:g} %"
    lines = [
        f"{_verdict(verified)}: level {verified.level}{share}, {head}",
        f"  manifests  {verified.manifests}{_chain_note(verified)}",
        f"  packs      {verified.packs}, {size_text(verified.bytes)} read",
    ]
    if verified.expired:
        lines.append("  the newest manifest has expired; make a new snapshot")
    for problem in verified.problems:
        lines.append(f"  {problem.kind.value}: {problem.object}")
        affects = problem.affects or ()
        lines += [f"    affects {quoted(path)}" for path in affects[:_SHOWN_MAX]]
        if len(affects) > _SHOWN_MAX:
            lines.append(f"    and {len(affects) - _SHOWN_MAX} more")
        lines += _concerned(problem, verified)
    return lines


def _verdict(verified: Verified) -> str:
    if _is_only_expired(verified):
        return "whole, but expired and so not verified in full"
    return "verified" if verified.ok else "not verified"


def _concerned(problem: Problem, verified: Verified) -> list[str]:
    numbers = problem.manifests
    if not numbers:
        return []
    word = "manifest" if len(numbers) == 1 else "manifests"
    note = ", the newest" if numbers[-1] >= verified.head else ""
    note = "; the newest is whole" if verified.newest_whole else note
    return [f"    concerns {word} {ranges(numbers)}{note}"]


_CHAIN_NOTES = {
    "local": ", compared with what this computer knows",
    "part": " opened; older ones are sealed to others",
}


def _chain_note(verified: Verified) -> str:
    return _CHAIN_NOTES.get(verified.chain, "")
