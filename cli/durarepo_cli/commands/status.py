"""``durarepo status``: one screen about the stream, from what this computer knows.

Nothing is opened and nothing is checked here: that is for ``verify``. What is not known is
null, never a good guess. Source: spec/cli.md 4. Start at `command`.
"""

import os
from dataclasses import dataclass

import click

from durarepo.core.limits import REGISTRY_WARN_SECONDS
from durarepo.local import keyring
from durarepo.local.lastrun import FailedRun, LastRun
from durarepo.local.lastverify import LastVerify, Outcome
from durarepo.local.statefiles import RunRecord
from durarepo.policy.scanner import usual_engine
from durarepo.repository.cardage import is_card_current
from durarepo.repository.chain import Chain
from durarepo.repository.replaced import check_not_replaced
from durarepo.repository.repository import Repository
from durarepo.repository.rewriting import recipients_share
from durarepo.repository.unfinished import OpenDraft, drafts_here, waiting_keys
from durarepo_cli.command import Command
from durarepo_cli.context import Session, clock
from durarepo_cli.output import counted, path_fields, quoted, size_text, time_text

_OVERDUE_SECONDS = 26 * 3600  # spec/cli.md 5, AICEP 10.5.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What is known of a stream; times are seconds since 1970, None where unknown or never."""

    stream: str
    repository: bytes
    head: int
    newest: RunRecord | None
    last_complete: RunRecord | None
    overdue: bool | None
    last_failure: FailedRun | None
    omissions_since: int | None
    last_verify: Outcome | None
    registry_expires: int
    registry_version: int
    recipients: int
    recipients_share: float | None
    drafts: tuple[OpenDraft, ...]
    waiting_keys: tuple[bytes, ...]
    put_only: bool
    engine: str | None
    remotes: tuple[str, ...]
    todo: tuple[str, ...]


@click.command("status", cls=Command)
@click.pass_obj
def command(session: Session, /) -> None:
    """Show how the stream is, on one screen.

    Says when it was last kept, whether that is too long ago, how the last run failed, and what
    is still open (durarepo explain WORD). A draft that was written with --out is not known here.
    """
    now = clock()
    with session.open() as repository:
        status = status_of(repository, now=now)
    if session.output.is_json:
        session.output.result(_json(status))
        return
    for name, value in _lines(status, now):
        session.output.line(f"{name:<13} {value}")


def status_of(repository: Repository, *, now: int) -> Status:
    """Return what this computer knows of the stream.

    Raises:
        TrustError: ``rollback``: the newest manifest that was seen is gone; ``fork``: what was
            made here is no more in the chain.
        StoreError: the state cannot be read.
    """
    check_not_replaced(repository)
    runs = list(repository.iter_counted_runs())
    complete = [run for run in runs if run.complete]
    last = complete[-1] if complete else None
    head = Chain(repository).head()
    return Status(
        stream=repository.stream,
        repository=repository.places.repository,
        head=head,
        newest=runs[-1] if runs else None,
        last_complete=last,
        overdue=_is_overdue(last, head=head, is_known=bool(runs), now=now),
        last_failure=_failure_since(repository, runs),
        omissions_since=_omissions_since(complete),
        last_verify=LastVerify(repository.places.state).outcome(),
        registry_expires=repository.registry.registry.expires,
        registry_version=repository.registry.registry.version,
        recipients=len(repository.record.current.data_recipients),
        recipients_share=recipients_share(repository),
        drafts=tuple(drafts_here(repository)),
        waiting_keys=tuple(waiting_keys(repository)),
        put_only=repository.keys.identity is None,
        engine=usual_engine(),
        remotes=tuple(remote.name for remote in repository.configuration.remotes),
        todo=_todo(repository, now),
    )


def _is_overdue(last: RunRecord | None, *, head: int, is_known: bool, now: int) -> bool | None:
    """Return whether the last success is too long ago; None where another computer made it."""
    if last is not None:
        return now - last.issued > _OVERDUE_SECONDS
    return None if head and not is_known else True


def _failure_since(repository: Repository, runs: list[RunRecord]) -> FailedRun | None:
    failure = LastRun(repository.places.state).failure()
    if failure is None or (runs and failure.at < runs[-1].issued):
        return None
    return failure


def _omissions_since(runs: list[RunRecord]) -> int | None:
    since: int | None = None
    for run in reversed(runs):
        if not run.omissions:
            break
        since = run.issued
    return since


def _todo(repository: Repository, now: int) -> tuple[str, ...]:
    config, folder = repository.configuration, repository.places.keys
    stream = config.stream.encode()
    away = (keyring.OWNER, stream + b".card", stream + b".keys")
    open_matters = {
        "human": config.human is None,
        "remote": not any(remote.off_box for remote in config.remotes),
        "escrow": any(os.path.lexists(os.path.join(folder, name)) for name in away),
        "card": not is_card_current(repository),
        "registry": repository.registry.registry.expires - now < REGISTRY_WARN_SECONDS,
        "identity-on-this-machine": repository.keys.identity is not None,
    }
    return tuple(word for word, is_open in open_matters.items() if is_open)


def _lines(status: Status, now: int) -> list[tuple[str, str]]:
    newest = status.newest
    lines = [
        ("stream", status.stream),
        ("repository", quoted(status.repository)),
        ("head", str(status.head) if status.head else "none yet"),
        ("last success", _success_text(status)),
    ]
    if status.last_failure is not None:
        failed = status.last_failure
        lines.append(
            (
                "last failure",
                f"{time_text(failed.at)}, {failed.code}: durarepo explain {failed.code}",
            )
        )
    if newest is not None:
        lines.append(("newest", f"{counted(newest.files, 'file')}, {size_text(newest.bytes)}"))
        lines.append(("restore", _restorable(newest.expires, now)))
    if status.omissions_since is not None and status.last_complete is not None:
        last, since = status.last_complete, time_text(status.omissions_since)
        ledger = f"durarepo show {last.sequence} --ledger"
        lines.append(("omissions", f"{last.omissions}, since {since}: {ledger}"))
    lines.append(("last verify", _verify_text(status.last_verify)))
    lines += _about_keys(status, now)
    lines.append(("scanner", status.engine or "none: no snapshot can be taken"))
    lines.append(("remotes", ", ".join(status.remotes) or "none: there is no second copy"))
    lines.append(("still open", ", ".join(status.todo) or "nothing"))
    return lines


def _about_keys(status: Status, now: int) -> list[tuple[str, str]]:
    expires = time_text(status.registry_expires)
    word = "expired" if now >= status.registry_expires else "expires"
    share = "how much is sealed to them is not known here"
    if status.recipients_share is not None:
        share = f"{int(status.recipients_share * 100)}% of what is kept is sealed to them"
    if not status.head:
        share = "nothing is kept yet"
    lines = [
        ("registry", f"{status.registry_version}, {word} {expires}"),
        ("recipients", f"{status.recipients}; {share}"),
    ]
    for one in status.drafts:
        said = "stale, may be removed" if one.is_stale else "waits for the owner"
        lines.append(("draft", f"{quoted(one.path)}: {said}"))
    lines += [("waiting key", f"{quoted(path)}: in no registry") for path in status.waiting_keys]
    if status.waiting_keys:
        lines.append(("", "admit the draft each was made for; of one given up, move the key away"))
    return lines


def _restorable(expires: int, now: int) -> str:
    if now < expires:
        return f"until {time_text(expires)}; then with --archival, at a terminal"
    return f"with --archival, at a terminal: it expired {time_text(expires)}"


def _success_text(status: Status) -> str:
    if status.overdue is None:
        return "unknown: what is here was made on another computer, or the state was lost"
    last = status.last_complete
    when = None if last is None else time_text(last.issued)
    return f"{when or 'never'}{', overdue' if status.overdue else ''}"


def _verify_text(last: Outcome | None) -> str:
    if last is None:
        return "never"
    level = f"part of level {last.level}" if last.is_share else f"level {last.level}"
    word = "ok" if last.ok else "not done in full"
    if last.problems:
        word = f"failed, {counted(last.problems, 'problem')}"
    return f"{time_text(last.at)}, {level}: {word}"


def _verify_fields(last: Outcome | None) -> dict[str, object] | None:
    if last is None:
        return None
    return {
        "level": last.level,
        "at": time_text(last.at),
        "ok": last.ok,
        "problems": last.problems,
    }


def _failure_fields(failed: FailedRun | None) -> dict[str, object] | None:
    return None if failed is None else {"at": time_text(failed.at), "code": failed.code}


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


def _json(status: Status) -> dict[str, object]:
    newest = status.newest
    return {
        "stream": status.stream,
        **path_fields("repository", status.repository),
        "head": status.head or None,
        "overdue": status.overdue,
        "last_success": time_text(
            None if status.last_complete is None else status.last_complete.issued
        ),
        "last_failure": _failure_fields(status.last_failure),
        "last_drill": None,
        "last_verify": _verify_fields(status.last_verify),
        "files": None if newest is None else newest.files,
        "bytes": None if newest is None else newest.bytes,
        "omissions": None if newest is None else newest.omissions,
        "omissions_since": time_text(status.omissions_since),
        "registry_expires": time_text(status.registry_expires),
        "registry_version": status.registry_version,
        "recipients": status.recipients,
        "recipients_share": _rounded(status.recipients_share),
        "drafts": [
            {**path_fields("path", one.path), "version": one.version, "stale": one.is_stale}
            for one in status.drafts
        ],
        "waiting_keys": [path_fields("path", path) for path in status.waiting_keys],
        "put_only": status.put_only,
        "engine": status.engine,
        "remotes": [{"name": name} for name in status.remotes],
        "uncovered": None,
        "todo": list(status.todo),
    }
