"""What was made or seen here and is no more in the chain, although no revocation took it out.

Where two machines go on with one chain and one of them begins an epoch, the other's manifests
lie behind the end that the registry states: the chain is whole without them, and only who made
them can tell. Asked of the state, the registry and the mark.
Source: spec/format.md 8, spec/ingest.md 4.23. Start at `check_not_replaced`.
"""

from durarepo.core.errors import IntegrityError, TrustError
from durarepo.repository.chain import Chain, revocations_of
from durarepo.repository.repository import Repository


def replaced_here(repository: Repository) -> list[int]:
    """Return the numbers under which the ledger or the mark here knows another manifest.

    Raises:
        StoreError: the state cannot be read.
    """
    record = repository.record
    ends = {one.first_sequence - 1: one.previous for one in record.epochs[1:]}
    first = min((one.sequence for one in revocations_of(record)), default=None)
    seen = [(one.epoch, one.sequence, one.digest) for one in repository.state.iter_runs()]
    marks = repository.state.high_water()
    if marks is not None:
        seen.append((marks.epoch, marks.sequence, marks.head_digest))
    found: set[int] = set()
    for epoch, sequence, digest in seen:
        is_revoked = first is not None and first < sequence
        if record.is_cut_off(epoch, sequence):
            found.update(() if is_revoked else (sequence,))
        elif ends.get(sequence, digest) != digest:
            found.add(sequence)
    return sorted(found)


def check_not_replaced(repository: Repository) -> None:
    """Refuse to speak of a chain that another machine has gone on with.

    Raises:
        TrustError: ``fork``.
        StoreError: the state cannot be read.
    """
    replaced = replaced_here(repository) or _mark_replaced(repository)
    if replaced:
        raise TrustError(
            "fork",
            f"manifest {replaced[0]} of stream '{repository.stream}' is another one than the one "
            "that was made or seen here",
            hint="two machines may share the stream's keys; stop one of them, and see with "
            "durarepo verify which manifests lie there",
        )


def _mark_replaced(repository: Repository) -> list[int]:
    """Return the number of the mark, where somebody has gone on from another manifest than it."""
    chain = Chain(repository)
    number = chain.high.sequence
    if not number or chain.head() == number:
        return []
    try:
        envelope = chain.envelope(number)
    except IntegrityError:
        return []  # damage, which a verification tells
    return [number] if envelope is not None and envelope.digest != chain.high.digest else []
