"""``durarepo exclude``: ask what the policy leaves out, and add to it.

Shows rules and places, never a value; a path that holds one is shown without it.
Source: spec/cli.md 4, spec/exclusion.md. Start at `command`.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import click

from durarepo_cli.command import Command, Group
from durarepo_cli.context import Session, clock
from durarepo_cli.output import path_fields, quoted

if TYPE_CHECKING:
    from durarepo.source.judging import Tested


_OWN_RULES = {
    "operator": "a pattern in 'exclude' of the root in stream.toml",
    "durarepoignore": "a pattern in a .durarepoignore on the way to it",
    "own-state": "the repository, the state or the keys of this stream",
    "other-filesystem": "another disk, and 'one_filesystem' holds for the root",
    "sqlite-sidecar": "what the database beside it keeps of its work; the database is kept with it",
    "pseudo-filesystem": "made by the kernel, not stored anywhere",
}
"""What stands behind the rules that are in no table."""

_SIDECAR = "sqlite-sidecar"


@click.group("exclude", cls=Group)
def command() -> None:
    """Ask what is left out of snapshots, and add to it."""


@command.command("test", cls=Command)
@click.option("--root", metavar="DIR", help="The folder that plays the root and the home.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.pass_obj
def test(session: Session, /, root: str | None, paths: tuple[str, ...]) -> None:
    """Say of each PATH what would become of it.

    A path in a root of the stream is judged as the next snapshot would; any other, and below
    --root, by the rules alone, without repository and keys. Ends with 0 whatever the decision;
    a path that is not there is judged by its name.
    """
    for tested in _tested(session, root, paths):
        show_tested(session, tested)


def show_tested(session: Session, tested: "Tested") -> None:
    """Print what would become of one path."""
    if session.output.is_json:
        session.output.item({**_fields(tested), "rules": list(tested.rules)})
        return
    said = f"{tested.decision}: {quoted(tested.path)}"
    rules = tested.rules if tested.decision == "redact" else (tested.rule,)
    by = ", ".join(part for part in (*rules, str(tested.stage or "")) if part)
    session.output.line(f"{said} ({by})" if by else said)


@command.command("explain", cls=Command)
@click.option("--root", metavar="DIR", help="The folder that plays the root and the home.")
@click.argument("path", metavar="PATH")
@click.pass_obj
def explain(session: Session, /, root: str | None, path: str) -> None:
    """Say why PATH is left out, redacted or kept."""
    (tested,) = _tested(session, root, (path,))
    rows = [
        {"rule": row.id, "clause": str(row.word), "reason": row.reason, "source": row.source}
        for row in tested.rows
    ]
    if session.output.is_json:
        above = {} if tested.above is None else path_fields("above", tested.above)
        fields = {**_fields(tested), **({"above": None} | above)}
        session.output.result({**fields, "waivable": tested.is_waivable, "rules": rows})
        return
    session.output.line(f"{tested.decision}: {quoted(tested.path)}")
    if tested.above is not None:
        session.output.line(f"  by what holds for {quoted(tested.above)}")
    if tested.rule in _OWN_RULES:
        session.output.line(f"  {tested.rule}: {_OWN_RULES[tested.rule]}")
    if tested.rule and tested.stage is None:
        session.output.line("  kept all the same: an [[allow]] entry of stream.toml")
    for row in rows:
        session.output.line(f"  {row['rule']}: {row['reason']} ({row['clause']})")
    for line in _next_steps(session, tested, os.fsencode(path), root):
        session.output.line(f"  {line}")


def _next_steps(session: Session, tested: "Tested", path: bytes, root: str | None) -> Iterator[str]:
    """Yield what the decision is worth, and what a person can do about it."""
    if tested.is_waivable:
        yield "a header without a key: durarepo exclude allow can keep it"
    elif tested.decision == "redact":
        yield "kept without the values; a restore has to set them up anew"
    elif tested.stage == "content" and tested.rule != _SIDECAR:
        yield "to keep it, take the secret out of it, and change it at its issuer if it is real"
    elif tested.stage == "path" and tested.rule in {"operator", "durarepoignore"}:
        yield "to keep it, take that pattern away"
    if root is not None:
        return
    place, roots = os.path.abspath(path), session.stream_roots()
    if roots and _root_of(roots, place) is not None:
        yield "it lies in no root of the stream: no snapshot looks at it; this is by the rules"
    elif not os.path.lexists(place):
        yield "it is not there: it was judged by its name"


@command.command("add", cls=Command)
@click.option("--root", metavar="DIR", help="The root that is meant, where there are several.")
@click.argument("pattern", metavar="PATTERN")
@click.pass_obj
def add(session: Session, /, root: str | None, pattern: str) -> None:
    """Leave out what PATTERN names, from the next snapshot on.

    A name ('*.log') fits in any folder; a path ('build/out', './notes', or the whole path) fits
    from the root down. '**' is any run of folders.
    """
    chosen = None if root is None else os.path.realpath(os.fsencode(root))
    with session.open() as repository:
        # Opening has checked the crypto package, which this imports.
        from durarepo.operations.allow import add_exclusion  # noqa: PLC0415

        is_new = add_exclusion(repository, pattern, root=chosen)
    if session.output.is_json:
        session.output.result({"added": pattern})
    elif not is_new:
        session.output.line("that pattern is there already; nothing was changed")
    else:
        session.output.line("added; the next snapshot leaves it out")


@command.command("allow", cls=Command)
@click.option("--reason", metavar="TEXT", required=True, help="Why it is no key.")
@click.argument("path", metavar="PATH")
@click.pass_obj
def allow(session: Session, /, reason: str, path: str) -> None:
    """Keep PATH with the content it has now, for 90 days: a header in documentation.

    Refused (31) where more than the header of a key stands there.
    """
    today = datetime.fromtimestamp(clock(), UTC).date()
    with session.open() as repository:
        from durarepo.operations.allow import allow as add_entry  # noqa: PLC0415 - as above

        tested = add_entry(
            repository, os.fsencode(path), reason=reason, today=today, home=session.home
        )
    if session.output.is_json:
        session.output.result({**path_fields("path", tested.path), "rule": tested.rule})
    else:
        session.output.line(f"allowed for 90 days: {quoted(tested.path)} ({tested.rule})")


def _tested(session: Session, root: str | None, paths: tuple[str, ...]) -> "Iterator[Tested]":
    """Judge paths as the stream in which they lie would; others, and below --root, by the rules."""
    given = [os.fsencode(path) for path in paths]
    if root is not None:
        yield from _by_rules(os.fsencode(root), given)
        return
    roots = session.stream_roots()
    for folder, group in groupby(map(os.path.abspath, given), key=partial(_root_of, roots)):
        wanted = list(group)
        yield from _by_stream(session, wanted) if folder is None else _by_rules(folder, wanted)


def _root_of(roots: Sequence[bytes], path: bytes) -> bytes | None:
    """Return None for a path of the stream, else the folder that plays the root.

    That is the working folder, or the home folder, or the folder of a path outside of both.
    """
    for one in (path, os.path.realpath(path)):
        if any(one.startswith(root.rstrip(b"/") + b"/") for root in roots):
            return None
    for folder in (os.getcwdb(), os.path.expanduser(b"~")):
        if path.startswith(folder.rstrip(b"/") + b"/"):
            return folder
    return os.path.dirname(path)


def _by_rules(folder: bytes, paths: Iterable[bytes]) -> "Iterator[Tested]":
    from durarepo.operations.exclude import judge_paths  # noqa: PLC0415 - compiles all rules

    return judge_paths(folder, paths)


def _by_stream(session: Session, paths: Iterable[bytes]) -> "Iterator[Tested]":
    today = datetime.fromtimestamp(clock(), UTC).date()
    with session.open() as repository:
        # Opening has checked the crypto package, which this imports.
        from durarepo.repository.streamtest import StreamTest  # noqa: PLC0415

        yield from map(StreamTest(repository, home=session.home, today=today).judge, paths)


def _fields(tested: "Tested") -> dict[str, object]:
    return {
        **path_fields("path", tested.path),
        "decision": str(tested.decision),
        "rule": tested.rule or None,
        "stage": None if tested.stage is None else str(tested.stage),
    }
