"""``durarepo held``: may a launcher start from this folder?

A restored folder is held with all below it, so the folders above count as well. Whatever
cannot be read for certain counts as held.
Source: spec/cli.md 3 and 4. Start at `command`.
"""

import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import click

from durarepo.core.errors import PolicyRefusedError, SelectionError, StoreError
from durarepo.store.atomic import read_small, shown
from durarepo_cli.command import Command
from durarepo_cli.context import Session
from durarepo_cli.exits import exit_of
from durarepo_cli.output import quoted

_MARKER_MAX_BYTES = 1024 * 1024
_OWN_FOLDER = b".durarepo"
_MARKERS = (b"held.json", b"provenance.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Why a folder is held; ``since`` and ``sequence`` as its marker says, None if unknown."""

    marker: bytes
    since: str | None
    sequence: int | None


@click.command("held", cls=Command)
@click.argument("folder", metavar="DIR")
@click.pass_obj
def command(session: Session, /, folder: str) -> None:
    """Ask whether DIR may be started from; for launchers.

    0 if DIR is free to start from, 31 if it is held, lies in a restored folder that is held, or
    cannot be read.
    """
    path = os.path.realpath(os.fsencode(folder))
    if not os.path.isdir(path):
        raise SelectionError(
            "no-folder",
            f"there is no folder {shown(path)}",
            hint="name the folder that is to be started from",
        )
    hold = find_hold(path)
    if hold is None:
        _tell_free(session, path)
        return
    error = PolicyRefusedError(
        "held",
        f"{shown(path)} is held by {shown(hold.marker)}",
        hint=f"look at it before anything starts from it; to release it: rm {_release(hold)}",
    )
    session.output.code = exit_of(error)
    session.output.failure(error, {"held": True, "since": hold.since, "sequence": hold.sequence})


def find_hold(path: bytes) -> Hold | None:
    """Return what holds a folder, itself or a folder above; None where it is free."""
    for folder in _upwards(path):
        own = os.path.join(folder, _OWN_FOLDER)
        if os.path.islink(own):
            return Hold(marker=own, since=None, sequence=None)
        for name in _MARKERS:
            marker = os.path.join(own, name)
            try:
                data = read_small(marker, _MARKER_MAX_BYTES)
            except StoreError:
                return Hold(marker=marker, since=None, sequence=None)
            if data is not None:
                return _parsed(marker, data)
    return None


def _release(hold: Hold) -> str:
    """Return what a person removes by hand, for a shell; no command does it in this version."""
    folder, name = os.path.split(hold.marker)
    names = _MARKERS if name in _MARKERS else (name,)
    there = [os.path.join(folder, one) for one in names]
    return " ".join(shlex.quote(os.fsdecode(one)) for one in there if os.path.lexists(one))


def _upwards(path: bytes) -> Iterator[bytes]:
    while True:
        yield path
        above = os.path.dirname(path)
        if above == path:
            return
        path = above


def _parsed(marker: bytes, data: bytes) -> Hold:
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        fields = {}
    since, sequence = fields.get("since"), fields.get("sequence")
    return Hold(
        marker=marker,
        since=since if isinstance(since, str) else None,
        sequence=sequence if type(sequence) is int else None,
    )


def _tell_free(session: Session, path: bytes) -> None:
    if session.output.is_json:
        session.output.result({"held": False, "since": None, "sequence": None})
    else:
        session.output.line(f"free: {quoted(path)}")
