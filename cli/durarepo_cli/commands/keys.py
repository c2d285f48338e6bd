"""``durarepo keys``: which keys are here, and how they are replaced by others.

Shows ids and places, never a key. Source: spec/cli.md 3 and 4. Start at `command`.
"""

import os
from dataclasses import dataclass

import click

from durarepo.crypto import primitives
from durarepo.format.registry import Role
from durarepo.local import keyring
from durarepo.operations.recipients import add_recipient, retire_recipient
from durarepo.operations.rotation import new_signer, rotate_naming, rotate_signing
from durarepo.repository.recipientkey import recipient_text
from durarepo.repository.repository import Repository
from durarepo.sealing import signer_id
from durarepo_cli.command import Command, Group
from durarepo_cli.context import Session, clock
from durarepo_cli.keychanges import out_path, tell_outcome
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
    """Show which keys are here, and replace them."""


@command.command("list", cls=Command)
@click.pass_obj
def list_keys(session: Session, /) -> None:
    """List the key files of the stream: what is here, and its public id.

    Never prints a secret; the recipient's key that it prints seals, and opens nothing.
    """
    with session.open() as repository:
        rows = key_rows(repository)
        stream, folder = repository.stream, repository.places.keys
        identity = repository.keys.identity
    put_only = identity is None
    own = None if identity is None else primitives.recipient_of(identity.reveal())
    text = None if own is None else recipient_text(own)
    output = session.output
    if output.is_json:
        output.result(
            {
                "stream": stream,
                **path_fields("folder", folder),
                "put_only": put_only,
                "recipient": text,
                "keys": [_json(row) for row in rows],
            }
        )
        return
    output.line(f"keys of stream {stream} in {quoted(folder)}")
    for row in rows:
        output.line(f"  {row.kind:<12}  {_state(row):<22}  {row.id or '-'}")
    if text is not None:
        output.line("recipient of the identity here, for durarepo keys add-recipient elsewhere:")
        output.line(f"  {text}")
    if put_only:
        output.line("this computer may write and never read: there is no identity here")


_OUT = click.option(
    "--out", metavar="FILE", help="Only write a draft there, for the owner to sign elsewhere."
)


@command.command("rotate-signing", cls=Command)
@_OUT
@click.pass_obj
def rotate_signing_key(session: Session, /, *, out: str | None) -> None:
    """Begin an epoch with a new signing key.

    What is stored stays as it is; nothing is uploaded again. A draft of it is void once a further
    snapshot is made.
    """
    with session.open() as repository:
        outcome = rotate_signing(repository, clock=clock, out=out_path(out))
    tell_outcome(session, outcome, is_draft_wanted=out is not None, begins_epoch=True)


@command.command("rotate-naming", cls=Command)
@_OUT
@click.pass_obj
def rotate_naming_key(session: Session, /, *, out: str | None) -> None:
    """Begin an epoch with a new naming key.

    The next snapshot reads, seals and stores everything once more. A draft of it is void once a
    further snapshot is made.
    """
    with session.open() as repository:
        outcome = rotate_naming(repository, clock=clock, out=out_path(out))
        has_allows = bool(repository.configuration.allows)
    session.output.note(UPLOADS_ALL)
    if has_allows:
        session.output.note(ALLOWS_LAPSE)
    tell_outcome(session, outcome, is_draft_wanted=out is not None, begins_epoch=True)


UPLOADS_ALL = "under the new naming key everything is read and stored once more: one full upload"
ALLOWS_LAPSE = (
    "what stream.toml allows is known by the naming key: run durarepo exclude allow again for each"
)


@command.command("add-recipient", cls=Command)
@click.argument("key")
@_OUT
@click.pass_obj
def add(session: Session, /, *, key: str, out: str | None) -> None:
    """Let KEY open what is kept from now on.

    KEY is what durarepo keys list prints where the other identity is, in quotes; or a line of a
    file 'recipients'; or a file with either. Older packs follow, run by run.
    """
    with session.open() as repository:
        outcome = add_recipient(repository, key, clock=clock, out=out_path(out))
    tell_outcome(session, outcome, is_draft_wanted=out is not None)


@command.command("retire-recipient", cls=Command)
@click.argument("key")
@_OUT
@click.pass_obj
def retire(session: Session, /, *, key: str, out: str | None) -> None:
    """Seal nothing more to KEY: key text, a file with it, or its id.

    Eight digits of the id are enough. At least two recipients have to remain.
    """
    with session.open() as repository:
        outcome = retire_recipient(repository, key, clock=clock, out=out_path(out))
    tell_outcome(session, outcome, is_draft_wanted=out is not None)


@command.command("new-signer", cls=Command)
@click.option(
    "--role", type=click.Choice(["manifest", "evidence"]), required=True, help="What it signs."
)
@click.option("--out", metavar="FILE", required=True, help="Takes the public key.")
@click.pass_obj
def make_signer(session: Session, /, *, role: str, out: str) -> None:
    """Make a signer's key on this computer; it counts once the owner admits it."""
    path = os.path.abspath(os.fsencode(out))
    with session.open() as repository:
        public = new_signer(repository, Role[role.upper()], out=path, clock=clock)
    found = signer_id(public).hex()
    if session.output.is_json:
        session.output.result({"id": found, "role": role, **path_fields("file", path)})
        return
    session.output.line(f"signer {found}, for {role}")
    session.output.line(f"  public key  {quoted(path)}")
    session.output.line("  it counts once a registry admits it: durarepo registry draft --signer")


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
        *_more_rows(folder),
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


def _more_rows(folder: bytes) -> list[tuple[str, bytes]]:
    """Return the keys of earlier epochs, and those that wait for a registry, by their files."""
    return [
        (os.fsdecode(name.removesuffix(b".key").replace(b".next", b"-waiting")), name)
        for name in sorted(os.listdir(folder))
        if name.startswith((b"naming-", b"signing-")) and name.endswith((b".key", b".next"))
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
