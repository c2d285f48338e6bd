"""The keys of one stream on this computer, loaded from their places after every check.

Nothing is read before the folder has been found to lie outside every root. What a put-only
machine lacks (the identity) is absent here too, and asking for it is an error of its own.

The folder goes from epoch to epoch by writing new files and renaming, never by replacing: a new
key waits under a name that tells which registry it is for, `ID.next`, until that registry has
been admitted. At any moment between two steps `Keyring.naming_of` finds each epoch's key.
Source: spec/cli.md 3, spec/format.md 3; AICEP 10.5.5. Start at `load_keyring`.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from durarepo.core.errors import KeyMaterialError, TrustError
from durarepo.core.names import SignerId
from durarepo.core.secret import Secret
from durarepo.crypto import primitives
from durarepo.format.keytext import encode_key, parse_key
from durarepo.local.placement import check_outside
from durarepo.local.secretfiles import read_secret, write_secret_new
from durarepo.store.atomic import shown

SIGNING, NAMING, LOCATOR = b"signing.key", b"naming.key", b"locator.key"
IDENTITY, AUDIT = b"identity.key", b"audit.key"
OWNER_PUBLIC, OWNER = b"owner.pub", b"owner.key"
RECIPIENTS = b"recipients"
_OLD_NAMING = re.compile(rb"naming-([1-9][0-9]{0,8})\.key\Z")
_WAITING = re.compile(rb"(signing|naming)-([0-9a-f]{16})\.next\Z")
_ID_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyring:
    """What this computer holds of a stream's keys. Secrets are of type `Secret`.

    As loaded, ``naming`` and ``signing`` are those of the files; as `repository` gives it out,
    they are those of the epoch in force. ``waiting`` holds new keys by kind and short id.
    """

    folder: bytes
    signing: Secret | None
    naming: Secret
    old_naming: dict[int, Secret]
    locator: Secret
    identity: Secret | None
    owner_public: bytes
    waiting: dict[tuple[str, str], Secret] = field(default_factory=dict)
    has_naming_file: bool = True

    @property
    def owner_digest(self) -> bytes:
        """SHA-256 of the owner's public bytes."""
        return primitives.sha256(self.owner_public)

    @property
    def naming_epoch(self) -> int:
        """The epoch that ``naming.key`` is of: the one after the last that has its own file."""
        return max(self.old_naming, default=0) + 1

    def need_identity(self) -> Secret:
        """Return the data identity.

        Raises:
            KeyMaterialError: ``identity-absent``.
        """
        if self.identity is None:
            raise KeyMaterialError(
                "identity-absent",
                f"this computer may only write: there is no identity in {shown(self.folder)}",
                hint="run this command on the owner's computer, where identity.key is",
            )
        return self.identity

    def need_signing(self) -> Secret:
        """Return the signing key.

        Raises:
            KeyMaterialError: ``signing-absent``.
        """
        if self.signing is None:
            raise KeyMaterialError(
                "signing-absent",
                f"this computer may only read: there is no signing key in {shown(self.folder)}",
                hint="make snapshots on the working computer, where signing.key is",
            )
        return self.signing

    def naming_of(self, epoch: int, box: bytes) -> Secret | None:
        """Return the naming key of an epoch as the files have it, or None.

        Args:
            epoch: its number.
            box: the sealed naming key in the registry; it tells which waiting key it is.
        """
        waiting = self.waiting.get(("naming", naming_id(box)))
        if waiting is not None:
            return waiting
        if epoch in self.old_naming:
            return self.old_naming[epoch]
        return self.naming if self.has_naming_file and epoch == self.naming_epoch else None

    def signing_of(self, signers: Sequence[bytes]) -> Secret | None:
        """Return the key of one of the signers of manifests, given as public bytes, or None.

        A key that waits here may be admitted for evidence alone; it never becomes this one.
        """
        here = [self.signing] if self.signing is not None else []
        here += [key for (kind, _), key in self.waiting.items() if kind == "signing"]
        return next(
            (key for key in here if primitives.signer_public(key.reveal()) in signers), None
        )


def naming_id(box: bytes) -> str:
    """Return the short id of a naming key from its sealed box in the registry."""
    return primitives.sha256(box).hex()[:_ID_DIGITS]


def signing_short_id(signer: SignerId) -> str:
    """Return the short id of a signing key from its signer id."""
    return signer.hex()[:_ID_DIGITS]


def waiting_path(folder: bytes, kind: str, short_id: str) -> bytes:
    """Return where a key waits for its registry."""
    return os.path.join(folder, f"{kind}-{short_id}.next".encode())


def write_waiting(folder: bytes, kind: str, short_id: str, key: bytes) -> None:
    """Write a new key down before anything names it.

    Raises:
        KeyMaterialError: the folder is not this user's alone.
        StoreError: it cannot be written.
    """
    write_secret_new(waiting_path(folder, kind, short_id), encode_key(kind, key).encode() + b"\n")


def check_key_folder(folder: bytes, roots: Sequence[bytes]) -> None:
    """Refuse a keys folder that a root could reach, before anything in it is read.

    Raises:
        KeyMaterialError: ``placement`` and others of `check_outside`.
    """
    check_outside(folder, roots, what="the keys folder")


def load_keyring(folder: bytes, *, roots: Sequence[bytes]) -> Keyring:
    """Return the keys in ``folder`` after the checks of place, owner, mode and form.

    Raises:
        KeyMaterialError: the reason of the first check that fails.
        TrustError: ``weak-key``: the owner's public key.
    """
    check_key_folder(folder, roots)
    owner_public = _needed(folder, OWNER_PUBLIC, "owner-public").reveal()
    if primitives.is_weak_signer(owner_public):  # ingest 2.2
        raise TrustError("weak-key", f"owner's public key in {shown(folder)} is weak")
    names = _names(folder)
    old, waiting = _old_naming(folder, names), _waiting(folder, names)
    naming = _optional(folder, NAMING, "naming")
    if naming is None and not (old or waiting):
        naming = _needed(folder, NAMING, "naming")  # tells that it is missing
    return Keyring(
        folder=folder,
        signing=_optional(folder, SIGNING, "signing"),
        naming=Secret(b"") if naming is None else naming,
        old_naming=old,
        locator=_needed(folder, LOCATOR, "locator"),
        identity=_optional(folder, IDENTITY, "identity"),
        owner_public=owner_public,
        waiting=waiting,
        has_naming_file=naming is not None,
    )


def load_owner(path: bytes) -> Secret:
    """Return the owner's key from a file of its own.

    Raises:
        KeyMaterialError: it is missing or refused.
    """
    return _needed(*os.path.split(os.path.abspath(path)), "owner")


def _needed(folder: bytes, name: bytes, kind: str) -> Secret:
    path = os.path.join(folder, name)
    text = read_secret(path)
    try:
        return Secret(parse_key(kind, text))
    except KeyMaterialError as error:
        raise KeyMaterialError(
            error.code.partition(".")[2], f"{shown(path)}: {error.message}", hint=error.hint
        ) from None


def _optional(folder: bytes, name: bytes, kind: str) -> Secret | None:
    try:
        return _needed(folder, name, kind)
    except KeyMaterialError as error:
        if error.code == "keys.missing":
            return None
        raise


def _names(folder: bytes) -> list[bytes]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise KeyMaterialError(
            "unreadable", f"cannot list the keys folder {shown(folder)}: {error.strerror}"
        ) from error


def _old_naming(folder: bytes, names: Sequence[bytes]) -> dict[int, Secret]:
    matches = [match for match in map(_OLD_NAMING.match, names) if match is not None]
    return {int(match[1]): _needed(folder, match[0], "naming") for match in matches}


def _waiting(folder: bytes, names: Sequence[bytes]) -> dict[tuple[str, str], Secret]:
    found: dict[tuple[str, str], Secret] = {}
    for match in map(_WAITING.match, names):
        if match is not None:
            kind = match[1].decode()
            found[kind, match[2].decode()] = _needed(folder, match[0], kind)
    return found
