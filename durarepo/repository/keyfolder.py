"""The keys folder follows the registry: waiting keys get their names once they are in force.

Each step writes a new file or renames one, so that nothing is ever lost, and between any two of
them the keys are found all the same (`durarepo.local.keyring`). Only who holds the lock does it.
Source: spec/format.md 3.4, spec/cli.md 3. Start at `settle_keys`.
"""

import os

from durarepo.core.errors import KeyMaterialError
from durarepo.crypto import primitives
from durarepo.format.keytext import encode_key, parse_key
from durarepo.local import keyring
from durarepo.local.keyring import Keyring, load_keyring, naming_id, signing_short_id, waiting_path
from durarepo.local.secretfiles import read_secret, rename_secret, write_secret_new
from durarepo.repository.repository import Repository, keys_in_force
from durarepo.sealing import signer_id
from durarepo.store.atomic import replace_small


def settle_keys(repository: Repository) -> None:
    """Bring the files of the keys folder to the epoch in force; the caller holds the lock.

    Raises:
        KeyMaterialError: the folder is refused, or a name that is needed is taken.
        StoreError: a step cannot be done; the next call goes on from there.
    """
    files = repository.keys
    if not files.waiting and files.has_naming_file and _is_current(repository, files):
        return
    files = load_keyring(files.folder, roots=repository.root_paths)
    _settle_naming(repository, files)
    _settle_signing(repository, files)
    files = load_keyring(files.folder, roots=repository.root_paths)
    repository.keys = keys_in_force(files, repository.record)


def _is_current(repository: Repository, files: Keyring) -> bool:
    path = os.path.join(files.folder, b"naming-%d.key" % (repository.record.current.number - 1))
    return repository.record.current.number == 1 or os.path.lexists(path)


def _settle_naming(repository: Repository, files: Keyring) -> None:
    current, folder = repository.record.current, files.folder
    if files.has_naming_file and files.naming_epoch >= current.number:
        return
    if files.has_naming_file:
        rename_secret(os.path.join(folder, keyring.NAMING), b"naming-%d.key" % files.naming_epoch)
    for epoch in range(1, current.number):
        name = os.path.join(folder, b"naming-%d.key" % epoch)
        if not os.path.lexists(name):
            _write_naming(name, repository.naming_key(epoch).reveal())
    waiting = waiting_path(folder, "naming", naming_id(current.naming_key))
    if os.path.lexists(waiting):
        rename_secret(waiting, keyring.NAMING)
    else:
        _write_naming(os.path.join(folder, keyring.NAMING), repository.keys.naming.reveal())


def _write_naming(path: bytes, key: bytes) -> None:
    write_secret_new(path, encode_key("naming", key).encode() + b"\n")


def _settle_signing(repository: Repository, files: Keyring) -> None:
    signers = repository.record.current.manifest_signers
    held = None if files.signing is None else primitives.signer_public(files.signing.reveal())
    chosen = files.signing_of(signers)
    if chosen is None or held in signers:
        return
    if held is not None:
        old = signing_short_id(signer_id(held))
        rename_secret(os.path.join(files.folder, keyring.SIGNING), f"signing-{old}.key".encode())
    new = signing_short_id(signer_id(primitives.signer_public(chosen.reveal())))
    rename_secret(waiting_path(files.folder, "signing", new), keyring.SIGNING)


def settle_recipients(repository: Repository) -> None:
    """Write the file ``recipients`` as the registry has them; labels that are known stay.

    Raises:
        StoreError: it cannot be replaced.
    """
    epoch, path = repository.record.current, os.path.join(repository.keys.folder, b"recipients")
    labels = _labels(path)
    text = recipients_text(epoch.data_recipients, epoch.audit_recipients, labels)
    if not os.path.lexists(path) or read_secret(path) != text:
        replace_small(path, text)


def recipients_text(
    data: tuple[bytes, ...], audit: tuple[bytes, ...], labels: dict[bytes, str]
) -> bytes:
    """Return the file ``recipients``: a line each, kind, label and key line (format 3.2)."""
    lines: list[str] = []
    taken = set(labels.values())
    for kind, keys in (("data", data), ("audit", audit)):
        for key in keys:
            number = 1
            while key not in labels and f"other-{number}" in taken:
                number += 1
            label = labels.get(key, f"other-{number}")
            taken.add(label)
            lines.append(f"{kind} {label} {encode_key('recipient', key)}")
    return "\n".join((*lines, "")).encode()


def _labels(path: bytes) -> dict[bytes, str]:
    found: dict[bytes, str] = {}
    try:
        lines = read_secret(path).splitlines()
    except KeyMaterialError:
        return found
    for line in lines:
        parts = line.split(b" ", 2)
        try:
            found[parse_key("recipient", parts[-1])] = parts[1].decode()
        except (KeyMaterialError, IndexError, UnicodeDecodeError):
            continue  # a line of another form; the registry alone counts
    return found
