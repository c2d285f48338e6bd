"""``durarepo diff``: compare two manifests, or one with the files as they are now.

Source: spec/cli.md 4. Start at `command`.
"""

import click

from durarepo.operations.diff import WORKING, Change, diff
from durarepo_cli.command import Command
from durarepo_cli.context import Session, clock
from durarepo_cli.output import mtime_text, path_fields, quoted

_SIGNS = {"added": "+", "removed": "-", "modified": "*"}


@click.command("diff", cls=Command)
@click.argument("sequence", metavar="SEQ")
@click.argument("other", metavar="[SEQ|working]", default=WORKING)
@click.pass_obj
def command(session: Session, /, sequence: str, other: str) -> None:
    """Compare two manifests, or one with the files as they are now.

    Prints what was added (+), removed (-) or modified (*) on the way from the first to the
    second. Without a second, or with the word working, the second is the roots as they are.
    """
    with session.open() as repository:
        for change in diff(repository, sequence, other, now=clock()):
            if session.output.is_json:
                session.output.item(_fields(change))
            else:
                session.output.line(f"{_SIGNS[change.change]} {quoted(change.path)}")


def _fields(change: Change) -> dict[str, object]:
    return {
        **path_fields("path", change.path),
        "change": change.change,
        "type": change.type,
        "size": change.size,
        "mtime": mtime_text(change.mtime_ns),
        "sha256": None if change.sha256 is None else change.sha256.hex(),
    }
