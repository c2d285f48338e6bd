"""``durarepo registry``: what the owner has signed about this stream.

Shows ids, never a key. Source: spec/cli.md 4, spec/format.md 8. Start at `command`.
"""

import click

from durarepo.crypto import primitives
from durarepo.format.registry import Epoch, Role, StreamRecord
from durarepo.ingest import VerifiedRegistry
from durarepo.sealing import signer_id
from durarepo_cli.command import Command, Group
from durarepo_cli.context import Session, clock
from durarepo_cli.output import time_text


@click.group("registry", cls=Group)
def command() -> None:
    """Show who may sign, and who can open."""


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
