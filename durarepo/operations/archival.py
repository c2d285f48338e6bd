"""Archival checkout: the one way to a manifest that is not good any more, and only past a human.

What may be set aside is a list: an expired manifest, an expired registry, a clock that is behind,
a revoked signer, a head below the one seen before. Signatures, digests, links, marks and the
floor never are. The human agrees to each, the audit log says so, and only then is a frame read.
What nobody has set aside is asked again, before the first frame and before the folder appears.
No other operation may import this module. Source: spec/ingest.md 3.12, 3.13, 4.17, 4.22, 4.26
to 4.28 and 8; AICEP 10.5.6. Start at `checkout_archival`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from durarepo.core.clock import Clock
from durarepo.core.errors import FreshnessError, TrustError
from durarepo.core.limits import ISSUED_AHEAD_SECONDS
from durarepo.core.progress import Progress, SilentProgress
from durarepo.core.secret import Secret
from durarepo.format.registry import StreamRecord
from durarepo.ingest import (
    GENESIS,
    Anchor,
    HighWater,
    SignedManifest,
    VerifiedManifest,
    admit,
    check_floor,
)
from durarepo.operations.checkout import Admitted, CheckedOut, CheckoutRequest, bring_back
from durarepo.policy.freshness import utc_text
from durarepo.repository.chain import Chain, forgiving, revocations_of
from durarepo.repository.livetime import (
    AGE,
    CLOCK,
    EVERY_CHECK,
    REGISTRY_EXPIRED,
    REVOKED,
    ROLLBACK,
    LiveTime,
)
from durarepo.repository.repository import Repository
from durarepo.repository.selection import find_sequence

AUDIT_KIND = "archival-checkout"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """One check that is not applied: why it fails, and the words that agree to go on."""

    check: str
    about: str
    answer: str


class Confirmation(Protocol):
    """Asks a human. Only the command line has one, and it reads from a real terminal."""

    def __call__(self, lines: Sequence[SetAside], /) -> None:
        """Return once a human has given every answer.

        Raises:
            PolicyRefusedError: ``no-human``.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    manifest: VerifiedManifest
    newest: VerifiedManifest
    aside: tuple[SetAside, ...]


def checkout_archival(
    repository: Repository,
    request: CheckoutRequest,
    confirm: Confirmation,
    *,
    clock: Clock,
    progress: Progress | None = None,
) -> CheckedOut:
    """Bring back a manifest of any age, after a human has agreed to all that is set aside.

    Args:
        repository: open.
        request: what and where to; a dry run asks as well.
        confirm: asks the human.
        clock: the live time; it may be wrong, which is then set aside too.
        progress: told of every file.

    Returns:
        As `durarepo.operations.checkout.checkout`.

    Raises:
        PolicyRefusedError: nobody agreed, or the destination is refused.
        IntegrityError, TrustError: what is never set aside.
        FreshnessError: what was not set aside has come to fail since.
        SelectionError, KeyMaterialError, StoreError, ConfigurationError: as a checkout.
    """
    live = LiveTime(repository, clock, aside=EVERY_CHECK)  # of the time a human is asked first
    now = live.now
    found = _find(repository, request.at, repository.keys.need_identity(), now)
    confirm(found.aside)
    live.hold(found.manifest, aside=frozenset(one.check for one in found.aside))
    statement = found.manifest.statement
    repository.audit.append(
        AUDIT_KIND,
        {
            "level": "warning",
            "stream": statement.stream,
            "sequence": statement.sequence,
            "manifest": found.manifest.digest.hex(),
            "set_aside": " ".join(one.check for one in found.aside),
        },
        datetime.fromtimestamp(max(now, 0), UTC),
    )
    admitted = Admitted(manifest=found.manifest, newest=found.newest, permit=live.check, now=now)
    return bring_back(repository, request, admitted, progress=progress or SilentProgress())


def _find(repository: Repository, at: str, identity: Secret, now: int) -> _Found:
    chain = Chain(repository)
    seen = chain.high
    rolled_back = _is_rolled_back(chain)
    chain.high = HighWater() if rolled_back else replace(seen, clock=0)
    sequence = find_sequence(chain, at, identity=identity)
    head = last = chain.head()
    begin = sequence if chain.high.sequence else 1
    if not all(map(chain.opens, range(begin, head + 1))):
        begin, last = chain.span(sequence)
        chain.high = chain.high if chain.high.sequence <= last else HighWater()
    signed = {number: chain.signed(number, identity) for number in range(begin, last + 1)}
    anchor = GENESIS
    if begin > 1:
        anchor = Anchor(sequence=begin - 1, digest=signed[begin].statement.previous)
    late = max(now, *(one.statement.issued for one in signed.values()))
    record = forgiving(repository.record, revocations_of(repository.record))
    admitted = admit(signed, record=record, anchor=anchor, high=chain.high, now=late)
    check_floor(admitted[sequence], repository.record)
    aside = [
        *_about_time(repository, admitted[sequence], now, clock=seen.clock, late=late),
        *_about_signers(repository.record, signed, chain.high, anchor=anchor, now=late),
    ]
    if rolled_back:
        aside.append(
            SetAside(
                check=ROLLBACK,
                about=f"manifest {seen.sequence} has been seen here, and only {head} is there",
                answer=f"{repository.stream} below {seen.sequence}",
            )
        )
    return _Found(manifest=admitted[sequence], newest=admitted[last], aside=tuple(aside))


def _is_rolled_back(chain: Chain) -> bool:
    try:
        chain.head()
    except TrustError as error:
        if error.code == "trust.rollback":
            return True
        raise
    return False


def _about_time(
    repository: Repository, manifest: VerifiedManifest, now: int, *, clock: int, late: int
) -> Iterator[SetAside]:
    statement, registry = manifest.statement, repository.registry.registry
    day = utc_text(statement.issued)[:10]
    yield SetAside(
        check=AGE,
        about=(
            f"manifest {statement.sequence} was issued at {utc_text(statement.issued)} and "
            f"expires at {utc_text(statement.expires)}; it is {utc_text(now)} now"
        ),
        answer=f"{statement.stream} {day}",
    )
    if now >= registry.expires:
        yield SetAside(
            check=REGISTRY_EXPIRED,
            about=(
                f"registry {registry.version} expired at {utc_text(registry.expires)}; "
                "who is trusted now is not known"
            ),
            answer=f"{statement.stream} registry {registry.version}",
        )
    latest = max(late - ISSUED_AHEAD_SECONDS, registry.issued - ISSUED_AHEAD_SECONDS, clock)
    if now < latest:
        yield SetAside(
            check=CLOCK,
            about=f"the clock says {utc_text(now)}, but it was {utc_text(latest)} before",
            answer=f"{statement.stream} clock",
        )


def _about_signers(
    record: StreamRecord,
    signed: Mapping[int, SignedManifest],
    high: HighWater,
    *,
    anchor: Anchor,
    now: int,
) -> Iterator[SetAside]:
    try:
        admit(signed, record=record, anchor=anchor, high=high, now=now)
    except FreshnessError as error:
        if error.code != "fresh.revoked":
            raise
        yield SetAside(check=REVOKED, about=error.message, answer=f"{record.stream} revoked signer")
