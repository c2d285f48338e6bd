"""``durarepo quickstart``: from nothing to a proven snapshot of one folder.

Source: spec/cli.md 4. Start at `command`.
"""

import os
import shlex
from collections.abc import Iterator

import click

from durarepo.core.errors import ConfigurationError, IntegrityError
from durarepo.local.places import places_of
from durarepo.operations.quickstart import Quickstarted, quickstart
from durarepo.repository.repository import open_repository
from durarepo_cli.codes import MATTERS
from durarepo_cli.command import Command
from durarepo_cli.commands.snapshot import marked_lines, newly_left_lines, omission_lines
from durarepo_cli.commands.status import status_of
from durarepo_cli.context import Session, clock
from durarepo_cli.exits import Exit, exit_of, first_of
from durarepo_cli.output import counted, path_fields, quoted, size_text


@click.command("quickstart", cls=Command)
@click.argument("folder", metavar="DIR")
@click.pass_obj
def command(session: Session, /, folder: str) -> None:
    """Back up a folder, verify every byte, restore it beside, and compare.

    Makes a stream named after DIR; again on the same DIR takes a further snapshot.
    Ends with 1 if something that should have been kept was not, and lists it.
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
        done = quickstart(
            place, bases=session.bases, home=session.home, clock=clock, progress=progress
        )
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
        "databases": done.databases,
        "redacted": done.redacted,
        "changed_meanwhile": done.moved_on,
        "omissions": done.snapshot.omissions,
        "excluded": done.snapshot.excluded,
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
    for line in _lines(done):
        output.line(line)
    for line in _outlook(session, done):
        output.line(line)


def _lines(done: Quickstarted) -> Iterator[str]:
    kept = f"{counted(done.files, 'file')}, {size_text(done.snapshot.bytes)}"
    yield f"{'made' if done.made else 'went on with'} stream {done.stream}"
    yield f"  kept      {kept}, as manifest {done.sequence}"
    yield "  verified  every byte"
    yield f"  restored  {quoted(done.scratch)}; delete it when you have seen it"
    yield f"  compared  {counted(done.compared, 'file')}, byte for byte"
    explained = done.compared + done.databases + done.redacted + done.moved_on + done.unsure
    others = done.files - explained
    if done.databases:
        yield f"  databases {done.databases}: kept as of one moment, so their bytes differ"
    if done.redacted:
        files = counted(done.redacted, "file")
        values = counted(done.snapshot.redacted, "value")
        yield f"  redacted  {files}: kept without the secrets in them ({values})"
    if done.moved_on:
        yield f"  differ    {done.moved_on}: changed meanwhile"
    if others > 0:
        yield f"  besides   {others}: links and special files, which have no bytes to compare"
    if done.snapshot.omissions:
        yield f"  left out  {counted(done.snapshot.omissions, 'omission')}"
        yield from omission_lines(done.snapshot)
    if done.snapshot.excluded:
        yield f"  excluded  {done.snapshot.excluded}, by name, mark or content"
        yield "    all of them: durarepo show latest --ledger"
    yield from newly_left_lines(done.snapshot)
    yield from marked_lines(done.snapshot)


def _outlook(session: Session, done: Quickstarted) -> Iterator[str]:
    """Yield where things lie, what is still open, and how it goes on."""
    places = places_of(done.stream, bases=session.bases)
    with open_repository(places) as repository:
        todo = status_of(repository, now=clock()).todo
    card = os.path.join(places.keys, done.stream.encode() + b".card")
    repository_word = shlex.quote(os.fsdecode(places.repository))
    yield f"  repository  {quoted(places.repository)}"
    yield f"  keys        {quoted(places.keys)}"
    if os.path.lexists(card):
        yield f"  card        {quoted(card)}"
    yield "all of this is on this machine: copy repository and keys to two other places"
    yield "still open:"
    for word in (*todo, "timer"):
        yield f"  {word}: {MATTERS[word].fix}"
    yield "next time:"
    yield f"  durarepo snapshot --repo {repository_word}"
    yield f"  durarepo checkout --repo {repository_word} --scratch NEW-FOLDER"
    yield "  24 hours after a snapshot, with --archival and by a person at a terminal"
