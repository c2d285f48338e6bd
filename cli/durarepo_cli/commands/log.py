"""``durarepo log``: list what was kept, newest first. Source: spec/cli.md 4. Start at `command`."""

import click

from durarepo.operations.log import LogLine, log
from durarepo_cli.command import Command
from durarepo_cli.context import Session, clock
from durarepo_cli.output import counted, size_text, time_text


@click.command("log", cls=Command)
@click.option("--type", "type_", metavar="T", help="Only manual, pre-shutdown, pre-upgrade, auto.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="At most so many.")
@click.pass_obj
def command(session: Session, /, type_: str | None, limit: int | None) -> None:
    """List what was kept, newest first.

    Manifests are listed at any age; an expired one is marked.
    """
    now, output, is_empty = clock(), session.output, True
    with session.open() as repository:
        for line in log(repository, now=now, type_=type_, limit=limit):
            is_empty = False
            if output.is_json:
                output.item(_fields(line))
            else:
                output.line(_text(line, now))
    if is_empty and type_ is not None:
        output.note("there is no manifest of this type; list all with: durarepo log")
    elif is_empty:
        output.note("nothing is kept yet; make the first manifest with: durarepo snapshot")


def _fields(line: LogLine) -> dict[str, object]:
    verified = line.verified
    return {
        "sequence": line.sequence,
        "epoch": line.epoch,
        "issued": time_text(line.issued),
        "expires": time_text(line.expires),
        "type": line.type,
        "files": line.files,
        "dirs": line.dirs,
        "bytes": line.bytes,
        "signer": line.signer,
        "complete": line.complete,
        "omissions": line.omissions,
        "sealed": line.is_sealed,
        "verified": None
        if verified is None
        else {"level": verified[0], "at": time_text(verified[1])},
    }


def _text(line: LogLine, now: int) -> str:
    issued = time_text(line.issued) or "-"
    files = "-" if line.files is None else str(line.files)
    noun = "file " if line.files == 1 else "files"
    size = "-" if line.bytes is None else size_text(line.bytes)
    marks = []
    if line.complete is False:
        marks.append("partial")
    if line.omissions:
        marks.append(counted(line.omissions, "omission"))
    if line.is_sealed:
        marks.append("sealed to others")
    if line.expires is not None and now >= line.expires:
        marks.append("expired")
    whole = (
        f"{line.sequence:>6}  {issued:<20}  {line.type or '-':<12}  {files:>9} {noun}  {size:>10}"
    )
    return "  ".join((whole, ", ".join(marks))).rstrip()
