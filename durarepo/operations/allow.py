"""Add to what a stream leaves out, or settle that one file is documentation and no key.

Writes stream.toml and nothing else; what it held before stays as it was, line by line.
Source: spec/cli.md 4 (exclude add, allow), spec/exclusion.md 8. Start at `allow`.
"""

import os
from datetime import date, timedelta

from durarepo.core.errors import PolicyRefusedError, SelectionError
from durarepo.local.configuration import compose_allow, parse_configuration, with_exclusion
from durarepo.local.places import CONFIGURATION
from durarepo.policy.allow import ALLOW_DAYS_MAX
from durarepo.policy.rules import Decision, Stage
from durarepo.repository.exclusion import content_hash
from durarepo.repository.repository import Repository
from durarepo.repository.streamtest import StreamTest
from durarepo.source.judging import Tested, read_whole
from durarepo.store.atomic import replace_small


def add_exclusion(repository: Repository, pattern: str, *, root: bytes | None) -> bool:
    """Add a pattern to ``exclude`` of a root in stream.toml.

    Returns:
        Whether it was added; False where it stands there already.

    Raises:
        ConfigurationError: the root is not named there, or the pattern cannot be added.
        StoreError: it cannot be written.
    """
    text = with_exclusion(repository.configuration_text, pattern, root=root)
    if text == repository.configuration_text:
        return False
    _replace(repository, text)
    return True


def allow(
    repository: Repository, path: bytes, *, reason: str, today: date, home: bytes | None = None
) -> Tested:
    """Add a reviewed entry of 90 days for the content that a path has now.

    Args:
        repository: whose stream.toml gets it.
        path: of the file.
        reason: why it is no key.
        today: the day in UTC.
        home: of `SnapshotRequest`.

    Raises:
        PolicyRefusedError: ``not-waivable``: what stands there is more than a header.
            ``not-needed``: a snapshot keeps it as it is. ``not-content``: it is left out by
            its name or a mark.
        SelectionError: ``outside``: the path lies in no root. ``not-there``: nothing is there.
        SourceError: it cannot be read.
        StoreError: stream.toml cannot be written.
    """
    real = os.path.realpath(path)
    if not os.path.lexists(real):
        raise SelectionError(
            "not-there", "there is no file at that path", hint="check its spelling"
        )
    tested = StreamTest(repository, home=home, today=today).judge(real)
    if not tested.is_waivable:
        raise _not_waivable(tested)
    content = content_hash(repository.keys.naming.reveal(), read_whole(real))
    entry = compose_allow(
        path=os.fsdecode(real),
        content=content,
        rule=tested.rule,
        reason=reason,
        until=(today + timedelta(days=ALLOW_DAYS_MAX)).isoformat(),
    )
    _replace(repository, repository.configuration_text.rstrip() + b"\n\n" + entry)
    return tested


def _not_waivable(tested: Tested) -> PolicyRefusedError:
    if tested.decision is Decision.INCLUDE:
        return PolicyRefusedError(
            "not-needed",
            "the policy keeps that file as it is, so there is nothing to allow",
            hint="see durarepo exclude explain, and 'exclude' of the root in stream.toml",
        )
    if tested.stage is Stage.PATH:
        return PolicyRefusedError(
            "not-content",
            f"the file is left out by its name or a mark ({tested.rule}), not for its content",
            hint="an entry keeps contents only; give it another name, or remove the mark",
        )
    return PolicyRefusedError(
        "not-waivable",
        "what stands there is no header alone, so no entry can keep it",
        hint="see durarepo exclude explain; take the secret out of the file instead",
    )


def _replace(repository: Repository, text: bytes) -> None:
    parse_configuration(text)
    replace_small(os.path.join(repository.places.repository, CONFIGURATION), text)
