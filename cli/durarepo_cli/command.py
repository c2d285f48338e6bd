"""The class of every command: the options of the program are accepted after its name as well.

Help goes out through the same door as results, at one width everywhere, so that it can be
compared. Source: spec/cli.md 1. Start at `Command`.
"""

from collections.abc import Callable

import click

from durarepo import __version__
from durarepo_cli.context import Session

HELP_WIDTH = 88
SETTINGS: dict[str, int] = {"terminal_width": HELP_WIDTH}


class Command(click.Command):
    """One command with its own options and those of the program."""

    def __init__(self, name: str | None, **settings: object) -> None:
        settings |= {"add_help_option": False, "context_settings": SETTINGS}
        super().__init__(name, **settings)  # type: ignore[arg-type]  # passed on as click gave them
        self.params += shared_options()


class Group(click.Group):
    """A command that is made of others, such as ``keys``."""

    command_class = Command

    def __init__(self, name: str | None = None, **settings: object) -> None:
        settings |= {
            "add_help_option": False,
            "context_settings": SETTINGS,
            "no_args_is_help": False,
            "subcommand_metavar": "COMMAND",
        }
        super().__init__(name, **settings)  # type: ignore[arg-type]  # passed on as click gave them
        self.params += shared_options()


def shared_options() -> list[click.Parameter]:
    """Return the options that are accepted before and after every command."""
    return [
        click.Option(
            ["--repo"],
            metavar="DIR",
            help="The repository; else DURAREPO_REPO, else the only one there is.",
            callback=_keep(_set_repository),
            expose_value=False,
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            help="Print JSON: one object, or one a line for lists. Errors too.",
            callback=_keep(_set_json),
            expose_value=False,
            is_eager=True,
        ),
        click.Option(
            ["-q", "--quiet"],
            is_flag=True,
            help="Only results and errors.",
            callback=_keep(_set_quiet),
            expose_value=False,
        ),
        click.Option(
            ["-v", "--verbose"],
            is_flag=True,
            help="Say more on stderr.",
            callback=_keep(_set_verbose),
            expose_value=False,
        ),
        click.Option(
            ["--progress"],
            type=click.Choice(["auto", "json"]),
            help="A bar if stderr is a terminal (auto), or JSON lines on stderr.",
            callback=_keep(_set_progress),
            expose_value=False,
        ),
        click.Option(
            ["-h", "--help"],
            is_flag=True,
            is_eager=True,
            help="Show this and end.",
            callback=_show_help,
            expose_value=False,
        ),
    ]


def version_option() -> click.Option:
    """Return the option that prints the version of the program."""
    return click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        help="Show the version and end.",
        callback=_show_version,
        expose_value=False,
    )


def _keep(
    keep: Callable[[Session, str], None],
) -> Callable[[click.Context, click.Parameter, str | bool | None], None]:
    """Return a callback that keeps a value that was given and leaves alone one that was not."""

    def callback(ctx: click.Context, _: click.Parameter, value: str | bool | None) -> None:  # noqa: FBT001 - click calls it so
        if value is not None and value is not False:
            keep(ctx.find_object(Session) or ctx.fail("no session"), str(value))

    return callback


def _set_repository(session: Session, value: str) -> None:
    session.repository_option = value


def _set_json(session: Session, _: str) -> None:
    session.output.is_json = True


def _set_quiet(session: Session, _: str) -> None:
    session.output.is_quiet = True


def _set_verbose(session: Session, _: str) -> None:
    session.output.is_verbose = True


def _set_progress(session: Session, value: str) -> None:
    session.progress_mode = value


def _show_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click calls it so
    if value:
        session = ctx.find_object(Session)
        if session is not None:
            session.output.raw(f"{ctx.get_help()}\n".encode())
        ctx.exit()


def _show_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click calls it so
    if not value:
        return
    session = ctx.find_object(Session)
    if session is not None and session.output.is_json:
        session.output.result({"version": __version__})
    elif session is not None:
        session.output.line(f"durarepo {__version__}")
    ctx.exit()
