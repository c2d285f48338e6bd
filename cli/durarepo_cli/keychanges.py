"""How a change of keys is told: admitted at once, or drafted for the owner to sign elsewhere.

Shows ids and files, never a key. Source: spec/cli.md 4. Start at `tell_outcome`.
"""

import os
import shlex

from durarepo.core.errors import ConfigurationError, KeyMaterialError
from durarepo.repository.admission import Outcome
from durarepo.store.atomic import read_small, shown
from durarepo_cli.context import Session
from durarepo_cli.exits import exit_of
from durarepo_cli.output import path_fields, quoted, time_text

_FILE_MAX_BYTES = 4 << 20

COPY_KEYS = "wherever a copy of the keys folder lies, make it anew: a reader needs every naming key"
NO_SNAPSHOT = "let no snapshot run before this is admitted: one makes the draft void"


def tell_outcome(
    session: Session,
    outcome: Outcome,
    *,
    is_draft_wanted: bool = False,
    begins_epoch: bool = False,
) -> None:
    """Print what came of a change.

    Args:
        session: of this run.
        outcome: what was done.
        is_draft_wanted: whether a draft is all that was asked for; else one is unfinished work,
            and the run ends with ``keys.owner-absent``.
        begins_epoch: whether a draft of it is void once a further manifest is made.
    """
    output = session.output
    error = None
    if outcome.draft is not None and not is_draft_wanted:
        error = _unfinished(outcome.draft)
        output.code = exit_of(error)
    output.tell(_fields(outcome), _lines(outcome), error)
    if outcome.draft is None:
        output.note(COPY_KEYS)
    elif begins_epoch:
        output.note(NO_SNAPSHOT)


def _unfinished(draft: bytes) -> KeyMaterialError:
    name = shlex.quote(os.fsdecode(draft))
    return KeyMaterialError(
        "owner-absent",
        "draft is made, and nothing has changed yet: the owner's key is not on this computer",
        hint=f"sign {name} where the owner's key is: durarepo registry sign {name} --owner "
        "owner.key; then here: durarepo registry admit FILE",
    )


def _lines(outcome: Outcome) -> list[str]:
    done = "is in force" if outcome.draft is None else "is drafted"
    lines = [f"registry {outcome.version}, epoch {outcome.epoch}, {done}"]
    lines += [f"  {change}" for change in outcome.changes]
    if outcome.draft is not None:
        lines.append(f"  draft  {quoted(outcome.draft)}")
    return lines


def _fields(outcome: Outcome) -> dict[str, object]:
    return {
        "version": outcome.version,
        "epoch": outcome.epoch,
        "expires": time_text(outcome.expires),
        "changes": list(outcome.changes),
        **path_fields("draft", outcome.draft),
    }


def out_path(given: str | None) -> bytes | None:
    """Return the file of ``--out``, absolute; None where it was not given."""
    return None if given is None else os.path.abspath(os.fsencode(given))


def read_given(path: str) -> bytes:
    """Return what is in a file that the call names.

    Raises:
        ConfigurationError: ``usage``: there is none.
        StoreError: it cannot be read.
    """
    whole = os.path.abspath(os.fsencode(path))
    data = read_small(whole, _FILE_MAX_BYTES)
    if data is None:
        raise ConfigurationError(
            "usage", f"there is no file {shown(whole)}", hint="name the file that was brought here"
        )
    return data
