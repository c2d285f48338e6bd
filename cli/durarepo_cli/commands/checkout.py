"""``durarepo checkout``: restore into a new folder, which is held.

The only place that has a way to ask the human whom an archival checkout needs.
Source: spec/cli.md 3 and 4. Start at `command`.
"""

import os
from collections.abc import Sequence
from typing import TypedDict, Unpack

import click

from durarepo.core.entries import Entry
from durarepo.format.manifest import OmissionClass
from durarepo.operations.archival import SetAside, checkout_archival
from durarepo.operations.checkout import CheckedOut, CheckoutRequest, checkout
from durarepo_cli.command import Command
from durarepo_cli.confirm import ask, check_terminal
from durarepo_cli.context import Session, clock
from durarepo_cli.output import counted, path_fields, quoted, size_text

_USUAL_PLACE = "\0"
_SHOWN_MAX = 20
_PRIVILEGES = {"setuid", "setgid", "sticky", "capabilities"}
_LOSSES = {
    "owner": "the owner of an entry",
    "mode": "the rights of an entry",
    "times": "the time of an entry",
    "setuid": "the setuid bit of a file",
    "setgid": "the setgid bit of an entry",
    "sticky": "the sticky bit of an entry",
    "capabilities": "the capabilities of a file",
    "acl": "an access list",
    "xattr": "an extended attribute",
    "device": "a device",
    "hard-link": "a hard link, a file of its own instead",
    "excluded": "a file or folder that holds secrets, which no snapshot keeps",
    "redacted": "values taken out of a file",
}


class _Given(TypedDict):
    """What the call gives."""

    scratch: str
    at: str
    path: tuple[str, ...]
    component: tuple[str, ...]
    archival: bool
    keep_privileges: bool
    dry_run: bool


@click.command("checkout", cls=Command)
@click.option(
    "--scratch",
    metavar="[DIR]",
    is_flag=False,
    flag_value=_USUAL_PLACE,
    default=_USUAL_PLACE,
    help="The new folder; by default one in the state folder. It must not exist yet.",
)
@click.option("--at", metavar="SEQ", default="latest", help="Number, latest, latest~N or date.")
@click.option(
    "--path", metavar="PATH", multiple=True, help="Only this path, as for ls; repeatable."
)
@click.option("--component", metavar="NAME", multiple=True, help="Only this component; repeatable.")
@click.option("--archival", is_flag=True, help="Restore an expired manifest; asks a human.")
@click.option("--keep-privileges", is_flag=True, help="Keep setuid, setgid and capabilities.")
@click.option("--dry-run", is_flag=True, help="List what would be restored; write nothing.")
@click.pass_obj
def command(session: Session, /, **given: Unpack[_Given]) -> None:
    """Restore into a new folder, held.

    The folder appears whole or not at all. Nothing may be started from it before a human has
    released it.
    """
    scratch = given["scratch"]
    request = CheckoutRequest(
        at=given["at"],
        destination=None if scratch == _USUAL_PLACE else os.path.abspath(os.fsencode(scratch)),
        paths=tuple(os.fsencode(path) for path in given["path"]),
        components=tuple(os.fsencode(name) for name in given["component"]),
        folder=session.folder,
        privileges=given["keep_privileges"],
        dry_run=given["dry_run"],
    )
    done = _archival(session, request) if given["archival"] else _plain(session, request)
    _tell(session, done, is_dry=request.dry_run, keeps_privileges=request.privileges)


def _plain(session: Session, request: CheckoutRequest) -> CheckedOut:
    def list_path(path: bytes, entry: Entry) -> None:
        del entry
        if not session.output.is_json:
            session.output.line(quoted(path))

    with session.open() as repository, session.progress() as progress:
        return checkout(repository, request, clock=clock, progress=progress, listed=list_path)


def _archival(session: Session, request: CheckoutRequest) -> CheckedOut:
    check_terminal(session.environment)

    def confirm(lines: Sequence[SetAside], /) -> None:
        ask(lines, session.environment)

    with session.open() as repository, session.progress() as progress:
        return checkout_archival(repository, request, confirm, clock=clock, progress=progress)


def _tell(session: Session, done: CheckedOut, *, is_dry: bool, keeps_privileges: bool) -> None:
    output = session.output
    if output.is_json:
        output.result(
            {
                "sequence": done.sequence,
                **path_fields("destination", done.destination),
                "files": done.files,
                "bytes": done.bytes,
                "held": done.held,
                "epoch": done.epoch,
                "requires_restart": done.requires_restart,
                "not_restored": dict(done.not_restored),
                "reprovision": [
                    {
                        **path_fields("path", line.path),
                        "rule": line.rule,
                        "is_redacted": line.kind is OmissionClass.REDACTION,
                    }
                    for line in done.reprovision
                ],
            }
        )
        return
    what = f"{counted(done.files, 'file')}, {size_text(done.bytes)}, of manifest {done.sequence}"
    if is_dry:
        output.line(f"would restore {what} into {quoted(done.destination)}")
        _tell_secrets(session, done)
        return
    output.line(f"restored {what} into {quoted(done.destination)}")
    for name, count in done.not_restored.items():
        output.note(f"not restored: {_LOSSES.get(name, name)}, {counted(count, 'time')}")
    if not keeps_privileges and _PRIVILEGES & done.not_restored.keys():
        output.note("rights beyond the usual come back with --keep-privileges, as root")
    _tell_secrets(session, done)
    output.line("it is held: nothing may be started from it before a human has released it")


def _tell_secrets(session: Session, done: CheckedOut) -> None:
    """Say which secrets have to be set up anew; no snapshot ever held them."""
    if not done.reprovision:
        return
    session.output.note("to be set up anew, since no snapshot holds secrets:")
    for line in done.reprovision[:_SHOWN_MAX]:
        what = "values in" if line.kind is OmissionClass.REDACTION else "all of"
        session.output.note(f"  {what} {quoted(line.path)} ({line.rule})")
    if len(done.reprovision) > _SHOWN_MAX:
        more = len(done.reprovision) - _SHOWN_MAX
        session.output.note(f"  and {more} more: durarepo show {done.sequence} --ledger")
