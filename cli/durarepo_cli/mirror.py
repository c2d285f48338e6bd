"""`durarepo-mirror`: the command line of the server that keeps objects for clients.

A program of its own: who runs a mirror holds no key and needs no repository. What the server
says is one JSON line a request on stdout; errors go to stderr in two lines.
Source: spec/mirror.md 7. Start at `main`.
"""

import contextlib
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import NoReturn

import click

from durarepo import __version__
from durarepo.core.errors import ConfigurationError, DurarepoError, StoreError
from durarepo.mirror.access import Right, make_token
from durarepo.mirror.settings import SETTINGS_MAX_BYTES, MirrorSettings, parse_settings
from durarepo.store.atomic import read_small, shown
from durarepo_cli.exits import exit_of
from durarepo_cli.main import TerminatedError

_UNIT = """[Unit]
Description=durarepo-mirror, keeps objects and never deletes one
After=network-online.target
Wants=network-online.target

[Service]
ExecStart={program} serve --config {config}
User=durarepo-mirror
UMask=0077
StateDirectory=durarepo-mirror
StateDirectoryMode=0700
Restart=on-failure
RestartSec=5
TimeoutStopSec=30
LimitNOFILE=4096
CapabilityBoundingSet=
NoNewPrivileges=yes
LockPersonality=yes
PrivateDevices=yes
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProtectSystem=strict
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service

[Install]
WantedBy=multi-user.target
"""


@click.group(name="durarepo-mirror", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="durarepo-mirror %(version)s")
def PROGRAM() -> None:  # noqa: N802 - a constant in all but form
    """Keep objects for durarepo: encrypted, write-once, never deleted."""


@PROGRAM.command()
@click.option("--config", required=True, metavar="FILE", help="The mirror.toml.")
def serve(config: str) -> None:
    """Answer clients until SIGTERM or SIGINT."""
    try:
        from durarepo.mirror.serving import serve as run  # noqa: PLC0415 - loads the server
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "mirror",
            f"the server needs the package '{error.name}', which is not installed",
            hint="pip install 'durarepo[mirror]'",
        ) from error
    signal.signal(signal.SIGTERM, _terminate)  # the server repeats it when it has ended
    run(_settings(config), log=_say, announce=_announce, now=time.time)  # noqa: TID251 - the cli reads the clock


@PROGRAM.command()
@click.option("--scope", required=True, metavar="NAME", help="The base that it opens, or '-'.")
@click.option("--right", type=click.Choice([one.value for one in Right]), default="put")
def token(scope: str, right: str) -> None:
    """Make a token: its secret for a credentials file, and its line for the tokens file."""
    secret, line = make_token(scope, Right(right))
    click.echo(f"bearer {secret.reveal().decode('ascii')}")
    click.echo(line)


@PROGRAM.command()
@click.option("--config", default="/etc/durarepo-mirror/mirror.toml", metavar="FILE")
def unit(config: str) -> None:
    """Print a systemd unit that runs the server with little more than its folder."""
    program = os.path.abspath(sys.argv[0])
    click.echo(_UNIT.format(program=program, config=os.path.abspath(config)), nl=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code.

    Args:
        arguments: what stands after the name of the program; None takes the call's own.
    """
    os.umask(0o077)
    gc.freeze()
    try:
        PROGRAM.main(arguments, prog_name="durarepo-mirror", standalone_mode=False)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        return _failed(ConfigurationError("usage", error.format_message(), hint="call it with -h"))
    except DurarepoError as error:
        return _failed(error)
    except OSError as error:
        return _unheard(error)
    except TerminatedError:
        pass
    except (KeyboardInterrupt, click.Abort):
        return 130
    return 0


def _settings(config: str) -> MirrorSettings:
    path = os.fsencode(os.path.abspath(config))
    data = read_small(path, SETTINGS_MAX_BYTES)
    if data is None:
        raise ConfigurationError("mirror", f"there is no file {shown(path)}")
    return parse_settings(data)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    raise TerminatedError


def _announce(address: str, port: int) -> None:
    _say({"listening": address, "port": port})


def _say(line: Mapping[str, object]) -> None:
    """Write a line; who reads it may be gone, and then clients are served all the same."""
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def _unheard(error: OSError) -> int:
    """Tell that standard output takes nothing, and leave nothing there for Python to flush."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    return _failed(
        StoreError(
            "output",
            f"standard output cannot take the result: {error.strerror}",
            hint="give it a standard output that can be written",
        )
    )


def _failed(error: DurarepoError) -> int:
    click.echo(f"durarepo-mirror: error: {error}", err=True)
    if error.hint:
        click.echo(f"durarepo-mirror: hint: {error.hint}", err=True)
    return int(exit_of(error))


if __name__ == "__main__":
    sys.exit(main())
