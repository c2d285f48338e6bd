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

    PATTERN is a glob on the whole absolute path, with upper and lower case told apart; quote it
    for the shell: durarepo find '*/notes/*.md'.
    """
    with session.open() as repository:
        for row in find(repository, os.fsencode(pattern), now=clock(), at=at):
            tell_path(session.output, row)
