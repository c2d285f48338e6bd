"""``durarepo registry``: what the owner has signed about this stream, and what comes next.

Shows ids, never a key. Source: spec/cli.md 4, spec/format.md 8. Start at `command`.
"""

import os

import click

from durarepo.crypto import primitives
from durarepo.format.keytext import parse_signer
from durarepo.format.registry import Epoch, Role, StreamRecord
from durarepo.ingest import VerifiedRegistry
from durarepo.local.keyring import load_owner
from durarepo.operations.registry import (
    DraftRequest,
    admit_registry,
    draft_registry,
    sign_registry,
)
from durarepo.repository.admission import check_free
from durarepo.sealing import signer_id
from durarepo.store.atomic import write_once
from durarepo_cli.command import Command, Group
from durarepo_cli.context import Session, clock
from durarepo_cli.keychanges import read_given, tell_outcome
from durarepo_cli.output import path_fields, quoted, time_text


@click.group("registry", cls=Group)
def command() -> None:
    """Show who may sign and who can open, and change it as the owner."""


@command.command("show", cls=Command)
@click.pass_obj
def show(session: Session, /) -> None:
    """Show the newest registry as it stands for this stream."""
    with session.open() as repository:
        registry, record = repository.registry, repository.record
    output = session.output
    if output.is_json:
        output.result(_json(registry, record))
        return
    statement = registry.registry
    output.line(f"registry {statement.version} for stream {record.stream}")
    output.line(f"  owner        {primitives.sha256(statement.owner).hex()}")
    output.line(f"  issued       {time_text(statement.issued)}")
    expired = ", expired" if clock() >= statement.expires else ""
    output.line(f"  expires      {time_text(statement.expires)}{expired}")
    output.line(f"  compartment  {record.compartment}{_publish(record)}")
    for epoch in record.epochs:
        output.line(f"  epoch {epoch.number}, from manifest {epoch.first_sequence}")
        for line in _epoch_lines(epoch):
            output.line(f"    {line}")


@command.command("draft", cls=Command)
@click.option("--signer", metavar="FILE", help="A signer to admit, from keys new-signer.")
@click.option("--revoke", metavar="SIGNER@SEQ", help="A signer's id, and its last good manifest.")
@click.option("--out", metavar="FILE", required=True, help="Takes the draft.")
@click.pass_obj
def draft(session: Session, /, *, signer: str | None, revoke: str | None, out: str) -> None:
    """Draft the next registry for the owner to sign.

    Without a change it renews: the same registry with a fresh expiry. A draft that admits a signer
    of manifests is void once a further snapshot is made.
    """
    admitted = None
    if signer is not None:
        role, public = parse_signer(read_given(signer))
        admitted = (public, Role[role.upper()])
    request = DraftRequest(out=os.path.abspath(os.fsencode(out)), signer=admitted, revoke=revoke)
    with session.open() as repository:
        outcome = draft_registry(repository, request, clock=clock)
    if revoke is not None:
        session.output.note("what that signer made behind the named manifest will count no more")
    takes_over = admitted is not None and Role.MANIFEST in admitted[1] and revoke is None
    tell_outcome(session, outcome, is_draft_wanted=True, begins_epoch=takes_over)


@command.command("sign", cls=Command)
@click.argument("draft_file", metavar="DRAFT")
@click.option("--owner", metavar="FILE", help="The owner's key; without it only look.")
@click.pass_obj
def sign(session: Session, /, *, draft_file: str, owner: str | None) -> None:
    """Show what a draft changes, and sign it with the owner's key.

    Needs nothing but these two files; writes DRAFT.signed.
    """
    text, output = read_given(draft_file), session.output
    path = os.path.abspath(os.fsencode(draft_file)) + b".signed"
    key = None
    if owner is not None:
        key = load_owner(os.fsencode(owner))
        check_free(path, hint="it is signed already: admit that file, or move it away first")
    signed = sign_registry(text, key)
    if signed.text is not None:
        write_once(path, signed.text)
    if output.is_json:
        output.result(
            {
                "version": signed.version,
                "expires": time_text(signed.expires),
                "changes": list(signed.changes),
                **path_fields("signed", None if signed.text is None else path),
            }
        )
        return
    output.line(f"registry {signed.version} changes")
    for change in signed.changes:
        output.line(f"  {change}")
    if signed.text is None:
        output.line("nothing is signed: give the owner's key with --owner")
    else:
        output.line(f"signed: {quoted(path)}")


@command.command("admit", cls=Command)
@click.argument("file")
@click.pass_obj
def admit(session: Session, /, *, file: str) -> None:
    """Bring a registry that the owner signed into force."""
    text = read_given(file)
    with session.open() as repository:
        outcome = admit_registry(repository, text, clock=clock)
    tell_outcome(session, outcome)


def _publish(record: StreamRecord) -> str:
    return ", never published" if record.never_publish else ""


def _roles(role: Role) -> list[str]:
    return [(one.name or "").lower() for one in Role if one in role]


def _epoch_lines(epoch: Epoch) -> list[str]:
    return [
        *(
            f"signer     {signer_id(one.public).hex()}  {', '.join(_roles(one.roles))}"
            for one in epoch.signers
        ),
        *(f"recipient  {primitives.sha256(one).hex()}" for one in epoch.data_recipients),
        *(f"auditor    {primitives.sha256(one).hex()}" for one in epoch.audit_recipients),
        *(f"revoked    {one.signer.hex()} after {one.sequence}" for one in epoch.revocations),
    ]


def _json(registry: VerifiedRegistry, record: StreamRecord) -> dict[str, object]:
    statement = registry.registry
    return {
        "version": statement.version,
        "issued": time_text(statement.issued),
        "expires": time_text(statement.expires),
        "expired": clock() >= statement.expires,
        "owner": primitives.sha256(statement.owner).hex(),
        "stream": record.stream,
        "compartment": record.compartment,
        "never_publish": record.never_publish,
        "floor": record.floor,
        "retention_days": record.retention.days,
        "epochs": [_epoch_json(epoch) for epoch in record.epochs],
    }


def _epoch_json(epoch: Epoch) -> dict[str, object]:
    return {
        "number": epoch.number,
        "first_sequence": epoch.first_sequence,
        "signers": [
            {"id": signer_id(one.public).hex(), "roles": _roles(one.roles)} for one in epoch.signers
        ],
        "data_recipients": [primitives.sha256(one).hex() for one in epoch.data_recipients],
        "audit_recipients": [primitives.sha256(one).hex() for one in epoch.audit_recipients],
        "revocations": [
            {"signer": one.signer.hex(), "sequence": one.sequence} for one in epoch.revocations
        ],
    }
