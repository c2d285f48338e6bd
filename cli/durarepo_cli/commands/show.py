"""``durarepo show``: all that one manifest says of itself. Source: spec/cli.md 4.

Start at `command`.
"""

import click

from durarepo.format.manifest import LedgerLine
from durarepo.operations.show import Shown, iter_ledger, show
from durarepo_cli.command import Command
from durarepo_cli.context import Session, clock
from durarepo_cli.output import counted, path_fields, paths_fields, quoted, size_text, time_text


@click.command("show", cls=Command)
@click.argument("sequence", metavar="SEQ")
@click.option("--ledger", is_flag=True, help="List what was left out, and why.")
@click.pass_obj
def command(session: Session, /, sequence: str, *, ledger: bool) -> None:
    """Show one manifest.

    SEQ is a number, latest, latest~N, or a UTC date or instant.
    """
    with session.open() as repository:
        if ledger:
            for line in iter_ledger(repository, sequence, now=clock()):
                _tell_ledger(session, line)
            return
        shown = show(repository, sequence, now=clock())
    if session.output.is_json:
        session.output.result(_fields(shown))
        return
    for text in _lines(shown):
        session.output.line(text)


def _tell_ledger(session: Session, line: LedgerLine) -> None:
    kind = line.kind.name.lower()
    if session.output.is_json:
        session.output.item(
            {
                **path_fields("path", line.path),
                "kind": kind,
                "rule": line.rule,
                "stage": line.stage,
                "count": line.count,
            }
        )
    else:
        session.output.line(f"{kind:<9}  {line.rule} ({line.stage})  {quoted(line.path)}")


def _fields(shown: Shown) -> dict[str, object]:
    totals = shown.totals
    return {
        "sequence": shown.sequence,
        "epoch": shown.epoch,
        "manifest": shown.manifest,
        "issued": time_text(shown.issued),
        "expires": time_text(shown.expires),
        "expired": shown.expired,
        "type": shown.type,
        "complete": shown.complete,
        "signer": shown.signer,
        "registry_version": shown.registry_version,
        "files": totals.files,
        "dirs": totals.dirs,
        "bytes": totals.bytes,
        "omissions": totals.omissions,
        "excluded": totals.excluded,
        "redacted": totals.redacted,
        "shrunk": shown.shrunk,
        "state_lost": shown.state_lost,
        "holds": list(shown.holds),
        **paths_fields("roots", shown.roots),
        "components": [
            {
                "kind": one.kind,
                **path_fields("name", one.name),
                "integrity": one.integrity,
                "counts": dict(one.counts),
                "facts": dict(one.facts),
            }
            for one in shown.components
        ],
        "host": dict(shown.host),
        "policy": shown.policy,
        "objects": [
            {"name": one.name, "kind": one.kind, "size": one.size} for one in shown.objects
        ],
    }


def _lines(shown: Shown) -> list[str]:
    totals = shown.totals
    kept = f"{counted(totals.files, 'file')}, {counted(totals.dirs, 'folder')}"
    state = "complete" if shown.complete else "partial"
    packs = [one for one in shown.objects if one.kind == "pack"]
    return [
        f"manifest {shown.sequence}, {shown.type}, {state}",
        f"  digest    {shown.manifest}",
        f"  issued    {time_text(shown.issued)}",
        f"  expires   {time_text(shown.expires)}{', expired' if shown.expired else ''}",
        f"  signer    {shown.signer}",
        f"  kept      {kept}, {size_text(totals.bytes)}",
        f"  left out  {counted(totals.omissions, 'omission')}, {totals.excluded} excluded,"
        f" {counted(totals.redacted, 'value')} redacted",
        f"  needs     {counted(len(packs), 'pack')}, {size_text(sum(one.size for one in packs))}",
        *(f"  root      {quoted(root)}" for root in shown.roots),
        *(f"  part      {one.kind}: {quoted(one.name)}" for one in shown.components),
    ]
