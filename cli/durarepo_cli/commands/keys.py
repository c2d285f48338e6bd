"""``durarepo keys``: which keys are here, and by which public ids they are known.

Shows ids and places, never a key. Source: spec/cli.md 3 and 4. Start at `command`.
"""

import os
from dataclasses import dataclass

import click

from durarepo.crypto import primitives
from durarepo.local import keyring
from durarepo.repository.repository import Repository
from durarepo.sealing import signer_id
from durarepo_cli.command import Command, Group
from durarepo_cli.context import Session
from durarepo_cli.output import path_fields, quoted

_AWAY = frozenset({"owner", "card", "keys-file"})
"""What belongs on no working computer once it is set up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """One key file; ``id`` is what is public about it, None where nothing is or it is absent."""

    kind: str
    path: bytes
    present: bool
    id: str | None
    belongs_elsewhere: bool


@click.group("keys", cls=Group)
def command() -> None:
    """Show which keys are here."""


@command.command("list", cls=Command)
@click.pass_obj
def list_keys(session: Session, /) -> None:
    """List the key files of the stream: what is here, and its public id.

    Never prints a key.
    """
    with session.open() as repository:
        rows = key_rows(repository)
        stream, folder = repository.stream, repository.places.keys
        put_only = repository.keys.identity is None
    output = session.output
    if output.is_json:
        output.result(
            {
                "stream": stream,
                **path_fields("folder", folder),
                "put_only": put_only,
                "keys": [_json(row) for row in rows],
            }
        )
        return
    output.line(f"keys of stream {stream} in {quoted(folder)}")
    for row in rows:
        output.line(f"  {row.kind:<12}  {_state(row):<22}  {row.id or '-'}")
    if put_only:
        output.line("this computer may write and never read: there is no identity here")


def key_rows(repository: Repository) -> list[KeyRow]:
    """Return every kind of key file, present or not."""
    keys, folder = repository.keys, repository.places.keys
    ids = {
        "signing": None if keys.signing is None else _signer(keys.signing.reveal()),
        "identity": None if keys.identity is None else _recipient(keys.identity.reveal()),
        "owner-public": keys.owner_digest.hex(),
    }
    stream = repository.stream.encode()
    names = [
        ("signing", keyring.SIGNING),
        ("naming", keyring.NAMING),
        *((f"naming-{number}", b"naming-%d.key" % number) for number in sorted(keys.old_naming)),
        ("locator", keyring.LOCATOR),
        ("identity", keyring.IDENTITY),
        ("audit", keyring.AUDIT),
        ("owner-public", keyring.OWNER_PUBLIC),
        ("owner", keyring.OWNER),
        ("card", stream + b".card"),
        ("keys-file", stream + b".keys"),
    ]
    return [
        KeyRow(
            kind=kind,
            path=os.path.join(folder, name),
            present=os.path.lexists(os.path.join(folder, name)),
            id=ids.get(kind),
            belongs_elsewhere=kind in _AWAY,
        )
        for kind, name in names
    ]


def _signer(signing: bytes) -> str:
    return signer_id(primitives.signer_public(signing)).hex()


def _recipient(identity: bytes) -> str:
    return primitives.sha256(primitives.recipient_of(identity)).hex()


def _state(row: KeyRow) -> str:
    if not row.present:
        return "not here"
    return "here, belongs elsewhere" if row.belongs_elsewhere else "here"


def _json(row: KeyRow) -> dict[str, object]:
    return {
        "kind": row.kind,
        **path_fields("path", row.path),
        "present": row.present,
        "id": row.id,
        "belongs_elsewhere": row.belongs_elsewhere,
    }
