"""``durarepo cat``: print the content of one file. Source: spec/cli.md 4. Start at `command`."""

import os

import click

from durarepo.core.errors import ConfigurationError
from durarepo.operations.reading import cat
from durarepo_cli.command import Command
from durarepo_cli.context import Session, clock


@click.command("cat", cls=Command)
@click.argument("sequence", metavar="SEQ")
@click.argument("path", metavar="PATH")
@click.pass_obj
def command(session: Session, /, sequence: str, path: str) -> None:
    """Print the content of one file, byte for byte.

    Nothing is printed before the whole file has been checked. SEQ and PATH as for ls.
    """
    if session.output.is_json:
        raise ConfigurationError(
            "usage",
            "cat prints the bytes of a file, which are no JSON",
            hint="leave --json out; for size and digest of the file: durarepo ls SEQ PATH --json",
        )
    with session.open() as repository:
        place, folder = os.fsencode(path), session.folder
        for piece in cat(repository, sequence, place, clock=clock, folder=folder):
            session.output.raw(piece)
