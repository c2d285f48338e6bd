"""``durarepo snapshot``: keep the state of the roots now. Source: spec/cli.md 4.

Start at `command`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypedDict, Unpack

import click

from durarepo.core.errors import DurarepoError, RunError
from durarepo.format.manifest import OmissionClass, SnapshotType
from durarepo.local.configuration import parse_seconds
from durarepo.local.lastrun import LastRun
from durarepo.local.lastverify import LastVerify
from durarepo.operations.snapshot import SnapshotRequest, SnapshotResult, snapshot
from durarepo.repository.repository import Repository
from durarepo.source.marked import MarkedFolder
from durarepo_cli.command import Command
from durarepo_cli.context import Session, clock
from durarepo_cli.exits import SNAPSHOT_EXITS, exit_of, first_of
from durarepo_cli.output import counted, path_fields, quoted, size_text, time_text

_TYPES = {one.word: one for one in SnapshotType}
_SHOWN_MAX = 20
_NAMED_MAX = 3


class _Given(TypedDict):
    """What the call gives."""

    type: str
    budget: str | None
    partial: bool
    dry_run: bool


@click.command("snapshot", cls=Command)
@click.option(
    "--type",
    type=click.Choice(list(_TYPES)),
    default=SnapshotType.MANUAL.word,
    show_default=True,
    help="Why it is made; auto makes none if today's is there.",
)
@click.option("--budget", metavar="TIME", help="Stop after 45s, 30m or 4h; the next run resumes.")
@click.option("--partial", is_flag=True, help="Keep what the budget allowed, marked as partial.")
@click.option("--dry-run", is_flag=True, help="List what would become of each name; keep nothing.")
@click.pass_obj
def command(session: Session, /, **given: Unpack[_Given]) -> None:
    """Keep the state of the roots now.

    Ends with 1 if something that should have been kept was not, and lists it.
    """
    if given["dry_run"]:
        _dry_run(session)
        return
    budget = given["budget"]
    request = SnapshotRequest(
        type=_TYPES[given["type"]],
        budget_seconds=None if budget is None else parse_seconds(budget),
        partial=given["partial"],
        home=session.home,
    )
    with session.open() as repository, session.progress() as progress, _noted(repository):
        result = snapshot(repository, request, clock=clock, progress=progress)
        if result.status != "budget":
            LastRun(repository.places.state).note_success()
        last = LastVerify(repository.places.state).outcome()
        standing = (repository.state.runs() or [])[-1:]
    tell(session, result, standing=standing[0].sequence if standing else None)
    if last is not None and last.problems:
        session.output.note(f"the last verify failed, at {time_text(last.at)}; run durarepo verify")


@contextmanager
def _noted(repository: Repository) -> Iterator[None]:
    """Note for status how the run fails; one that never began or was ended has not failed."""
    try:
        yield
    except Exception as error:
        code = error.code if isinstance(error, DurarepoError) else "bug.unexpected"
        if code not in _NO_RUN:
            LastRun(repository.places.state).note_failure(code, at=clock())
        raise


_NO_RUN = frozenset({"run.locked", "run.interrupted", "run.terminated"})


def _dry_run(session: Session) -> None:
    from durarepo.operations.dryrun import judge_roots  # noqa: PLC0415 - as below
    from durarepo_cli.commands.exclude import show_tested  # noqa: PLC0415 - no snapshot needs it

    with session.open() as repository:
        for tested in judge_roots(repository, home=session.home, clock=clock):
            show_tested(session, tested)


def tell(session: Session, result: SnapshotResult, *, standing: int | None = None) -> None:
    """Print what was done, and end with the code it has.

    Args:
        session: of this run.
        result: what was done.
        standing: number of the newest manifest that stands, for a run that made none.
    """
    output, error = session.output, _error_of(result)
    codes = [SNAPSHOT_EXITS[result.status]]
    if error is not None:
        codes.append(exit_of(error))
    output.code = first_of(codes)
    for line in (*newly_left_lines(result), *marked_lines(result)):
        output.note(line)
    output.tell(fields_of(result), _lines(result, standing), error)


def _error_of(result: SnapshotResult) -> DurarepoError | None:
    if result.distrust is not None:
        return result.distrust
    if result.status == "budget":
        return RunError(
            "budget",
            "the time budget is spent; a resume point was saved",
            hint="run the command again to go on from there",
        )
    return None


def fields_of(result: SnapshotResult) -> dict[str, object]:
    """Return a result as the fields of its message."""
    return {
        "status": result.status,
        "sequence": result.sequence,
        "manifest": result.manifest,
        "files": result.files,
        "dirs": result.dirs,
        "bytes": result.bytes,
        "new_chunks": result.new_chunks,
        "new_bytes": result.new_bytes,
        "stored_bytes": result.stored_bytes,
        "packs": result.packs,
        "omissions": result.omissions,
        "excluded": result.excluded,
        "redacted": result.redacted,
        "vanished": result.vanished,
        "marked": [
            {
                **path_fields("path", one.path),
                "rule": one.rule,
                "files": one.files,
                "bytes": one.bytes,
                "works": one.works,
                "grown": one.grown,
                "is_new": one.is_new,
                "is_doubled": one.is_doubled,
            }
            for one in result.marked
        ],
        "newly_left": [
            {**path_fields("path", one.path), "rule": one.rule} for one in result.newly_left
        ],
        "seconds": round(result.seconds, 3),
    }


def _lines(result: SnapshotResult, standing: int | None) -> list[str]:
    if result.status == "noop":
        return [f"no manifest was made: manifest {standing} of today stands"]
    if result.sequence is None and not (result.files or result.dirs or result.packs):
        return ["no manifest was made: the time was over before anything was read"]
    if result.sequence is None:
        lines = ["no manifest was made; reached, and kept for the next run:"]
    else:
        lines = [f"manifest {result.sequence}: {result.status}"]
    lines += [
        f"  kept      {counted(result.files, 'file')}, {counted(result.dirs, 'folder')},"
        f" {size_text(result.bytes)}",
        f"  new       {size_text(result.new_bytes)}, stored as {size_text(result.stored_bytes)}"
        f" in {counted(result.packs, 'pack')}",
        f"  left out  {counted(result.omissions, 'omission')}, {result.excluded} excluded,"
        f" {counted(result.redacted, 'value')} redacted, {result.vanished} vanished",
    ]
    return [*lines, *omission_lines(result)]


def newly_left_lines(result: SnapshotResult) -> list[str]:
    """Return a warning for what left the backup for its content, the first few by name."""
    left = result.newly_left
    lines = [
        f"left out for its content: {quoted(one.path)} ({one.rule})" for one in left[:_NAMED_MAX]
    ]
    if len(left) > _NAMED_MAX:
        lines.append(f"and {len(left) - _NAMED_MAX} more that were not left out before")
    if lines:
        lines.append(
            "everything that is left out: durarepo show latest --ledger;"
            " what to do: durarepo exclude explain PATH"
        )
    return lines


def marked_lines(result: SnapshotResult) -> list[str]:
    """Return a warning for each folder that a mark left out and somebody should look at."""
    lines = [
        f"left out by a mark: {quoted(one.path)} ({one.rule}), {counted(one.files, 'file')},"
        f" {size_text(one.bytes)}{_why_told(one)}"
        for one in sorted(result.marked, key=lambda one: -one.works - one.grown)[:_SHOWN_MAX]
    ]
    if len(result.marked) > _SHOWN_MAX:
        lines.append(f"and {len(result.marked) - _SHOWN_MAX} more folders left out by a mark")
    if lines:
        lines.append(
            "to keep what is in there, remove the mark or move the work out of the folder;"
            " why it is left out: durarepo exclude explain PATH"
        )
    return lines


def _why_told(folder: MarkedFolder) -> str:
    reasons = [f"{folder.works} look like work"] if folder.works else []
    if folder.grown:
        reasons.append(f"{folder.grown} of names that it did not hold before")
    if folder.is_doubled:
        reasons.append("twice as large as when last told of")
    return "".join(f"; {reason}" for reason in reasons)


def omission_lines(result: SnapshotResult) -> list[str]:
    """Return a line for each omission of a snapshot, as many as one wants to read."""
    omitted = [one for one in result.left_out if one.kind is OmissionClass.OMISSION]
    lines = [f"  not kept: {quoted(one.path)} ({one.rule})" for one in omitted[:_SHOWN_MAX]]
    if result.omissions > _SHOWN_MAX:
        lines.append(f"  and {result.omissions - _SHOWN_MAX} more")
    return lines
