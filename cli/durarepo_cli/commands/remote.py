"""``durarepo remote``: which remotes stream.toml names, and what each of them really does.

Shows no credentials and no path of their file. Source: spec/cli.md 4. Start at `command`.
"""

from typing import TYPE_CHECKING

import click

from durarepo_cli.command import Command, Group
from durarepo_cli.context import Session, clock
from durarepo_cli.output import printable, time_text

if TYPE_CHECKING:
    from durarepo.operations.remote import RemoteStanding

_LACKING = {
    "create_only": "two writers can both believe that they have won",
    "no_overwrite": "who steals the credentials can destroy what is there",
    "no_delete": "who steals the credentials can delete what is there",
    "whole_or_nothing": "half an object can appear under its name",
    "checks_digest": "bytes that change on their way are taken",
    "reports_digest": "objects have to be read back to be known",
    "one_winner": "two writers can both believe that they have won",
    "range": "a file cannot be read without the whole pack",
    "lists": "unknown objects cannot be looked for",
    "tells_time": "it cannot confirm the clock",
    "lock": "the store itself locks nothing",
}
"""What it means that a remote does not do something."""


@click.group("remote", cls=Group)
def command() -> None:
    """Show the remotes, and try what they do."""


@command.command("list", cls=Command)
@click.pass_obj
def list_(session: Session, /) -> None:
    """List the remotes that stream.toml names. Opens none of them."""
    with session.open() as repository:
        # Opening has checked the crypto package, which this imports.
        from durarepo.operations.remote import list_remotes  # noqa: PLC0415

        standings = list_remotes(repository)
    for one in standings:
        if session.output.is_json:
            session.output.item(_fields(one))
            continue
        at = "never checked" if one.checked is None else f"checked {time_text(one.checked.at)}"
        session.output.line(f"{one.config.name}  {printable(one.config.url)}  {at}")
    if not standings and not session.output.is_json:
        session.output.line("stream.toml names no remote: there is no second copy")


@command.command("check", cls=Command)
@click.argument("name", metavar="NAME")
@click.pass_obj
def check(session: Session, /, name: str) -> None:
    """Try what the remote NAME does, and note it.

    Writes a few objects of random bytes there, which stay, and tries to overwrite and to delete
    one of them. Nothing of the stream is sent.
    """
    with session.open() as repository:
        from durarepo.operations.remote import check_one  # noqa: PLC0415 - as above
        from durarepo.store.retrying import SystemWaits  # noqa: PLC0415 - as above

        standing = check_one(repository, name, waits=SystemWaits(), now=clock())
    if session.output.is_json:
        session.output.result(_fields(standing))
    elif standing.checked is not None:
        for capability, found in standing.checked.capabilities.record().items():
            lacking = f": {_LACKING[capability]}" if found == "no" else ""
            session.output.line(f"{capability.replace('_', '-')}  {found}{lacking}")


def _fields(one: "RemoteStanding") -> dict[str, object]:
    checked = one.checked
    return {
        "name": one.config.name,
        "url": one.config.url,
        "off_box": one.config.off_box,
        "publish_surface": one.config.publish_surface,
        "checked": None if checked is None else time_text(checked.at),
        "capabilities": None if checked is None else checked.capabilities.record(),
    }
