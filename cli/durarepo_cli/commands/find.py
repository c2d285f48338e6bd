"""``durarepo find``: find files by a pattern. Source: spec/cli.md 4. Start at `command`."""

import os

import click

from durarepo.operations.reading import find
from durarepo_cli.command import Command
from durarepo_cli.context import Session, clock
from durarepo_cli.listing import tell_path


@click.command("find", cls=Command)
@click.argument("pattern", metavar="PATTERN")
@click.option("--at", metavar="SEQ", default="latest", help="Number, latest, latest~N or date.")
@click.pass_obj
def command(session: Session, /, pattern: str, at: str) -> None:
    """Find files by a pattern.

    PATTERN is a glob, with upper and lower case told apart: without a slash it fits names
    ('paper*'), else whole paths ('*/notes/*.md'), from here or below the only root if it begins
    with a name or './'. Quote it for the shell.
    """
    with session.open() as repository:
        given = os.fsencode(pattern)
        for row in find(repository, given, now=clock(), at=at, folder=session.folder):
            tell_path(session.output, row)
