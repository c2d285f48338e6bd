"""``durarepo explain``: the page of one error code. Source: spec/errors.md. Start at `command`."""

from difflib import get_close_matches

import click

from durarepo.core.errors import SelectionError
from durarepo_cli.codes import MATTERS, PAGES, exit_of_code
from durarepo_cli.command import Command
from durarepo_cli.context import Session


@click.command("explain", cls=Command)
@click.argument("code", metavar="CODE")
@click.pass_obj
def command(session: Session, /, code: str) -> None:
    """Explain an error code such as trust.rollback.

    CODE is what stands in brackets behind an error, or a word of what is still open.
    """
    wanted = code.strip("[]").lower()
    page = PAGES.get(wanted) or MATTERS.get(wanted)
    if page is None:
        close = get_close_matches(wanted, [*PAGES, *MATTERS], n=3)
        raise SelectionError(
            "no-code",
            f"there is no error code '{wanted[:60]}'",
            hint=f"perhaps: {', '.join(close)}" if close else "all of them: spec/errors.md",
        )
    output, number = session.output, int(exit_of_code(wanted)) if wanted in PAGES else 0
    if output.is_json:
        output.result(
            {
                "code": wanted,
                "exit": number,
                "meaning": page.meaning,
                "cause": page.cause,
                "fix": page.fix,
            }
        )
        return
    output.line(f"{wanted}, exit code {number}" if wanted in PAGES else f"{wanted}, still open")
    output.line(f"  means  {page.meaning}")
    output.line(f"  cause  {page.cause}")
    output.line(f"  do     {page.fix}")
