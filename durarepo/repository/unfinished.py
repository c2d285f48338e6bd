"""What changes of keys have left open: drafts that wait for the owner, keys for a registry.

Nothing is removed: a draft may lie with the owner, and a key may still be admitted. A draft is
stale once its version, or a later one, is in force, for it can never be admitted then.
Source: spec/format.md 3.4 and 8, spec/cli.md 4 (status). Start at `drafts_here`.
"""

import os
import re
from dataclasses import dataclass

from durarepo.repository.repository import Repository
from durarepo.store.atomic import store_error

_DRAFT = re.compile(rb"registry-([0-9]{1,9})-[0-9a-f]{8}\.draft\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDraft:
    """A draft in the state folder."""

    path: bytes
    version: int
    is_stale: bool


def drafts_here(repository: Repository) -> list[OpenDraft]:
    """Return the drafts that were written into the state folder, the oldest version first.

    Raises:
        StoreError: the folder cannot be listed.
    """
    state, held = repository.places.state, repository.registry.registry.version
    found = [
        OpenDraft(path=os.path.join(state, name), version=version, is_stale=version <= held)
        for name in _listed(state)
        if (match := _DRAFT.match(name)) and (version := int(match[1]))
    ]
    return sorted(found, key=lambda one: (one.version, one.path))


def waiting_keys(repository: Repository) -> list[bytes]:
    """Return the keys that wait under a name of their own, as paths.

    Raises:
        StoreError: the folder cannot be listed.
    """
    folder = repository.places.keys
    return [os.path.join(folder, name) for name in _listed(folder) if name.endswith(b".next")]


def _listed(folder: bytes) -> list[bytes]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise store_error(error, "list", folder) from error
