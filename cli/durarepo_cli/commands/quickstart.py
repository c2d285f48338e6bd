"""``durarepo quickstart``: from nothing to a proven snapshot of one folder.

Source: spec/cli.md 4. Start at `command`.
"""

import os

import click

from durarepo.core.errors import ConfigurationError, IntegrityError
from durarepo.operations.quickstart import Quickstarted, quickstart
from durarepo_cli.command import Command
from durarepo_cli.context import Session, clock
from durarepo_cli.exits import Exit, exit_of, first_of
from durarepo_cli.output import counted, path_fields, quoted, size_text


@click.command("quickstart", cls=Command)
@click.argument("folder", metavar="DIR")
@click.pass_obj
def command(session: Session, /, folder: str) -> None:
    """Back up a folder, verify every byte, restore it beside, and compare.

    Makes a stream named after DIR; again on the same DIR takes a further snapshot.
    """
    if session.repository_option is not None:
        raise ConfigurationError(
            "usage",
            "quickstart chooses the repository itself",
            hint="leave --repo out, or use durarepo init, snapshot and verify",
        )
    if session.environment.get("DURAREPO_REPO"):
        session.output.note("quickstart chooses the repository itself; DURAREPO_REPO is not used")
    place = os.path.abspath(os.fsencode(folder))
    with session.progress() as progress:
        done = quickstart(place, bases=session.bases, clock=clock, progress=progress)
    _tell(session, done)


def _tell(session: Session, done: Quickstarted) -> None:
    output = session.output
    fields: dict[str, object] = {
        "stream": done.stream,
        "sequence": done.sequence,
        "files": done.files,
        "verified": done.verified,
        **path_fields("scratch", done.scratch),
        "compared": done.compared,
        "changed_meanwhile": done.moved_on,
        "omissions": done.snapshot.omissions,
    }
    if not done.verified:
        error = IntegrityError(
            "verify",
            f"what is stored of stream '{done.stream}' does not verify",
            hint="see what is wrong: durarepo verify --data",
        )
        output.code = exit_of(error)
        output.failure(error, fields)
        return
    output.code = first_of([Exit.OMISSIONS] if done.snapshot.omissions else [])
    if output.is_json:
        output.result(fields)
        return
    kept = f"{counted(done.files, 'file')}, {size_text(done.snapshot.bytes)}"
    output.line(f"{'made' if done.made else 'went on with'} stream {done.stream}")
    output.line(f"  kept      {kept}, as manifest {done.sequence}")
    output.line("  verified  every byte")
    output.line(f"  restored  {quoted(done.scratch)}")
    compared = f"{counted(done.compared, 'file')}, byte for byte"
    output.line(f"  compared  {compared}; changed meanwhile: {done.moved_on}")
    if done.snapshot.omissions:
        output.line(f"  not kept  {done.snapshot.omissions}; see: durarepo show latest --ledger")
