"""The keys of one stream on this computer, loaded from their places after every check.

Nothing is read before the folder has been found to lie outside every root. What a put-only
machine lacks (the identity) is absent here too, and asking for it is an error of its own.
Source: spec/cli.md 3, spec/format.md 3; AICEP 10.5.5. Start at `load_keyring`.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from durarepo.core.errors import KeyMaterialError, TrustError
from durarepo.core.secret import Secret
from durarepo.crypto import primitives
from durarepo.format.keytext import parse_key
from durarepo.local.placement import check_outside
from durarepo.local.secretfiles import read_secret
from durarepo.store.atomic import shown

SIGNING, NAMING, LOCATOR = b"signing.key", b"naming.key", b"locator.key"
IDENTITY, AUDIT = b"identity.key", b"audit.key"
OWNER_PUBLIC, OWNER = b"owner.pub", b"owner.key"
RECIPIENTS = b"recipients"
_OLD_NAMING = re.compile(rb"naming-([1-9][0-9]{0,8})\.key\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyring:
    """What this computer holds of a stream's keys. Secrets are of type `Secret`."""

    folder: bytes
    signing: Secret | None
    naming: Secret
    old_naming: dict[int, Secret]
    locator: Secret
    identity: Secret | None
    owner_public: bytes

    @property
    def owner_digest(self) -> bytes:
        """SHA-256 of the owner's public bytes."""
        return primitives.sha256(self.owner_public)

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
    return Keyring(
        folder=folder,
        signing=_optional(folder, SIGNING, "signing"),
        naming=_needed(folder, NAMING, "naming"),
        old_naming=_old_naming(folder),
        locator=_needed(folder, LOCATOR, "locator"),
        identity=_optional(folder, IDENTITY, "identity"),
        owner_public=owner_public,
    )


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


def _old_naming(folder: bytes) -> dict[int, Secret]:
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise KeyMaterialError(
            "unreadable", f"cannot list the keys folder {shown(folder)}: {error.strerror}"
        ) from error
    found: dict[int, Secret] = {}
    for name in names:
        match = _OLD_NAMING.match(name)
        if match is not None:
            found[int(match[1])] = _needed(folder, name, "naming")
    return found
