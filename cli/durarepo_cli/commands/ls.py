"""``durarepo ls``: list the files of a manifest. Source: spec/cli.md 4. Start at `command`."""

import os

import click

from durarepo.operations.reading import ls
from durarepo_cli.command import Command
from durarepo_cli.context import Session, clock
from durarepo_cli.listing import tell_path


@click.command("ls", cls=Command)
@click.argument("sequence", metavar="SEQ")
@click.argument("path", metavar="[PATH]", required=False)
@click.option("--recursive", is_flag=True, help="Go into every folder.")
@click.pass_obj
def command(session: Session, /, sequence: str, path: str | None, *, recursive: bool) -> None:
    """List the files of a manifest: those of folder PATH, or the roots.

    SEQ is a number, latest, latest~N, or a UTC date or instant. PATH is an absolute path as it
    was kept; a relative one is looked for in the current folder, if that lies in a root, and
    below the only root.
    """
    place = None if path is None else os.fsencode(path)
    with session.open() as repository:
        rows = ls(
            repository,
            sequence,
            place,
            now=clock(),
            recursive=recursive,
            folder=session.folder,
        )
        for row in rows:
            tell_path(session.output, row)
