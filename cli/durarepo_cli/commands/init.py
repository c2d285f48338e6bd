"""``durarepo init``: make a new stream. Source: spec/cli.md 4. Start at `command`."""

import os
from typing import TypedDict, Unpack

import click

from durarepo.operations.init import Initialised, InitRequest, initialise
from durarepo_cli.codes import MATTERS
from durarepo_cli.command import Command
from durarepo_cli.context import Session, clock
from durarepo_cli.output import path_fields, quoted


class _Given(TypedDict):
    """What the call gives."""

    stream: str
    roots: tuple[str, ...]
    compartment: str | None
    never_publish: bool
    recipients: tuple[str, ...]
    put_only: bool
    out: str | None
    human: str | None


@click.command("init", cls=Command)
@click.option("--stream", metavar="ID", required=True, help="Name: a-z, 0-9 and '-', at most 63.")
@click.option("--root", "roots", metavar="DIR", multiple=True, help="Folder to keep; repeatable.")
@click.option("--compartment", metavar="NAME", help="Compartment; the stream's name by default.")
@click.option("--never-publish", is_flag=True, help="Nothing of it ever goes to a public place.")
@click.option(
    "--recipient",
    "recipients",
    metavar="KEY",
    multiple=True,
    help="Who else can open it: key text, or a file that holds it; repeatable.",
)
@click.option("--put-only", is_flag=True, help="This machine may write and never read.")
@click.option("--out", metavar="DIR", help="With --put-only: takes identity, owner key and card.")
@click.option("--human", metavar="CONTACT", help="Whom a failure wakes.")
@click.pass_obj
def command(session: Session, /, **given: Unpack[_Given]) -> None:
    """Make a new stream: repository, keys and escrow card.

    Tells what is still open before the stream may be called durable.
    """
    out = given["out"]
    request = InitRequest(
        stream=given["stream"],
        roots=tuple(os.path.abspath(os.fsencode(root)) for root in given["roots"]),
        places=session.new_places(given["stream"]),
        compartment=given["compartment"],
        never_publish=given["never_publish"],
        recipients=given["recipients"],
        put_only=given["put_only"],
        out=None if out is None else os.path.abspath(os.fsencode(out)),
        human=given["human"],
    )
    tell_made(session, initialise(request, now=clock()))


def tell_made(session: Session, made: Initialised) -> None:
    """Print what was made and what is still open."""
    output = session.output
    if output.is_json:
        output.result(
            {
                "stream": made.stream,
                **path_fields("repository", made.repository),
                **path_fields("keys", made.keys),
                **path_fields("card", made.card),
                "todo": list(made.todo),
            }
        )
        return
    output.line(f"made stream {made.stream}")
    output.line(f"  repository  {quoted(made.repository)}")
    output.line(f"  keys        {quoted(made.keys)}")
    output.line(f"  card        {quoted(made.card)}")
    output.line("still open:")
    for word in made.todo:
        output.line(f"  {word}: {MATTERS[word].fix if word in MATTERS else ''}")
