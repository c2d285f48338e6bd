"""The program: the table of commands, and the one place where errors become exit codes.

A command's module is imported when the command is called and not before; one that works with
keys only after the crypto package has been checked. Source: spec/cli.md 2 and 4.
Start at `run`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

import click

from durarepo.core.errors import ConfigurationError, DurarepoError
from durarepo.local.cryptopin import check_crypto_package
from durarepo_cli.command import Group, version_option
from durarepo_cli.context import Session
from durarepo_cli.exits import Exit, exit_of, first_of
from durarepo_cli.output import PipeClosedError


class BugError(DurarepoError):
    """The program did what it never should."""

    family = "bug"


@dataclass(frozen=True, slots=True)
class Row:
    """One command of the table: its module below ``commands``, and one line of help."""

    module: str
    help: str
    uses_keys: bool = True


COMMANDS = {
    "init": Row("init", "Make a new stream: repository, keys and escrow card."),
    "quickstart": Row("quickstart", "Back up a folder, verify it and restore it beside, in one."),
    "snapshot": Row("snapshot", "Keep the state of the roots now."),
    "log": Row("log", "List what was kept, newest first."),
    "show": Row("show", "Show one manifest."),
    "ls": Row("ls", "List the files of a manifest."),
    "cat": Row("cat", "Print the content of one file."),
    "diff": Row("diff", "Compare two manifests, or one with the files as they are now."),
    "find": Row("find", "Find files by a pattern."),
    "verify": Row("verify", "Check that what is stored is what was signed."),
    "checkout": Row("checkout", "Restore into a new folder, held."),
    "exclude": Row("exclude", "Ask what is left out, and add to it.", uses_keys=False),
    "held": Row("held", "Ask whether a folder may be started from.", uses_keys=False),
    "status": Row("status", "Show how the stream is, on one screen."),
    "keys": Row("keys", "Show which keys are here, and replace them."),
    "registry": Row("registry", "Show who may sign and who can open, and change it."),
    "remote": Row("remote", "Show the remotes, and try what they do."),
    "explain": Row("explain", "Explain an error code.", uses_keys=False),
}
"""Every command, in the order of a stream's life."""


_ALIKE = {
    "restore": "checkout",
    "backup": "snapshot",
    "save": "snapshot",
    "commit": "snapshot",
    "list": "ls",
    "history": "log",
    "check": "verify",
}
"""What people call commands elsewhere, and the command that does it here."""


class Program(Group):
    """The group of all commands; knows their names without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported now; None for an unknown name."""
        row = COMMANDS.get(cmd_name)
        if row is None:
            return None
        if row.uses_keys:
            session = ctx.find_object(Session)
            check_crypto_package() if session is None else session.check_crypto()
        command = import_module(f"durarepo_cli.commands.{row.module}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"module of '{cmd_name}' holds no command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called; one that does not exist is told with a near one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches  # noqa: PLC0415 - for wrong calls alone

            near = _ALIKE.get(args[0]) or next(iter(get_close_matches(args[0], COMMANDS)), None)
            if near is None:
                raise
            said = error.format_message().rstrip(".")
            raise click.UsageError(f"{said}; perhaps '{near}'", ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table for the help, from the table alone."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.help) for name, row in COMMANDS.items()])


PROGRAM = Program(
    "durarepo",
    help="Durable, verifiable backup of the working state of AI agents.",
    epilog="Environment: DURAREPO_REPO, the repository; DURAREPO_KEYS and DURAREPO_STATE, the "
    "folders of all streams' keys and state. "
    "Exit codes and JSON: spec/cli.md. About one error: durarepo explain CODE.",
)
PROGRAM.params.insert(-1, version_option())


def run(arguments: Sequence[str], session: Session) -> Exit:
    """Run one command, tell what came of it, and return its exit code.

    Args:
        arguments: what stands after the name of the program.
        session: of this run; its output takes results and errors.
    """
    output = session.output
    try:
        _call(arguments, session)
        output.flush()
    except PipeClosedError:
        pass  # whoever read the results has seen enough; the code is what the work came to
    except DurarepoError as error:
        output.failure(error)
        output.code = first_of((output.code, exit_of(error))) or exit_of(error)
    except Exception as error:  # noqa: BLE001 - the last door: no traceback leaves the program
        output.code = Exit.BUG
        output.failure(_bug(error))
        for place in _places(error):
            output.detail(place)
    return output.code


def _call(arguments: Sequence[str], session: Session) -> None:
    try:
        with PROGRAM.make_context("durarepo", list(arguments), obj=session) as context:
            PROGRAM.invoke(context)
    except click.exceptions.Exit:
        return
    except click.UsageError as error:
        raise _usage_error(error) from error


def _usage_error(error: click.UsageError) -> ConfigurationError:
    said = " ".join(error.format_message().split()).rstrip(".")
    path = "durarepo" if error.ctx is None else error.ctx.command_path
    return ConfigurationError(
        "usage", said[:1].lower() + said[1:], hint=f"see how it is called: {path} --help"
    )


def _bug(error: Exception) -> BugError:
    """Return what may be told of an exception: its class; a message could hold a secret."""
    return BugError(
        "unexpected",
        f"unexpected {type(error).__name__}; this is a bug in durarepo",
        hint="run it again with -v and report the places it names",
    )


def _places(error: Exception) -> list[str]:
    """Return where an exception came through: files and lines, no values."""
    import traceback  # noqa: PLC0415 - no run that goes well needs it

    frames = traceback.extract_tb(error.__traceback__, limit=-8)
    return [f"at {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
