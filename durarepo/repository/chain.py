"""The chain of a repository's manifests: where each lies, and which of them are verified.

With an identity a manifest is opened and admitted; without one (put-only) only its mark and
digest are compared with what the state knows. Trust begins at the high-water where there is
one, else at the first manifest. Source: spec/format.md 7.2 and 9, spec/ingest.md 4.
Start at `Chain.verified`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from durarepo.core.errors import (
    PUT_BACK,
    IntegrityError,
    KeyMaterialError,
    SelectionError,
    TrustError,
)
from durarepo.core.limits import MILESTONE_EVERY, SLOT_ATTEMPTS
from durarepo.core.names import Digest, ObjectName
from durarepo.core.secret import Secret
from durarepo.crypto import primitives
from durarepo.format.registry import Revocation, StreamRecord
from durarepo.ingest import (
    GENESIS,
    Anchor,
    Expected,
    HighWater,
    SignedManifest,
    VerifiedManifest,
    admit,
    check_mark,
    open_manifest,
    open_nested,
)
from durarepo.repository.repository import Repository, about_object
from durarepo.repository.sealedto import is_sealed_to_others, not_recipient

if TYPE_CHECKING:
    from durarepo.format.manifest import Nested


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A stored envelope that carries a good mark; nothing in it has been looked at."""

    sequence: int
    epoch: int
    name: ObjectName
    digest: Digest
    data: bytes


class Chain:
    """Reads the manifests of one repository; keeps those that it has opened.

    ``forgiven`` are revocations that a human has set aside; only archival checkout has any.
    """

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._signed: dict[int, SignedManifest] = {}
        self.forgiven: frozenset[Revocation] = frozenset()
        self.high = high_water_of(repository)

    def envelope(self, sequence: int) -> Envelope | None:
        """Return the envelope of a number, or None where no slot of it is taken.

        Raises:
            IntegrityError: slots are taken, and none holds an envelope with a good mark.
            TrustError: ``fork``: two different ones do.
        """
        found: dict[Digest, Envelope] = {}
        refusal: IntegrityError | None = None
        for name, epoch in self._taken_slots(sequence):
            data = self._repository.store.read(name)
            try:
                check_mark(data, self._repository.naming_key(epoch).reveal())
            except IntegrityError as error:
                refusal = about_object(error, f"manifest {sequence}", name)
                continue
            digest = Digest(primitives.sha256(data))
            one = Envelope(sequence=sequence, epoch=epoch, name=name, digest=digest, data=data)
            found.setdefault(digest, one)
        if len(found) > 1:  # 4.23: both hold the naming key
            return self._reached(sequence, found)
        if not found and refusal is not None:
            raise refusal
        return next(iter(found.values()), None)

    def _reached(self, sequence: int, found: dict[Digest, Envelope]) -> Envelope:
        """Return which of several envelopes the registry reaches back to, from a later epoch.

        In the epoch in force nothing tells which is right, and without an identity nothing can
        be followed back: then it is a fork (format 8, ingest 4.17 and 4.23).
        """
        record, identity = self._repository.record, self._repository.keys.identity
        later = [one for one in record.epochs if one.first_sequence > sequence]
        if not later or identity is None:
            raise _forked(self._repository.stream, sequence)
        wanted = later[0].previous
        if later[0].first_sequence - 1 > sequence:
            wanted = self.signed(sequence + 1, identity).statement.previous
        if wanted not in found:
            raise _forked(self._repository.stream, sequence)
        return found[wanted]

    def _taken_slots(self, sequence: int) -> Iterator[tuple[ObjectName, int]]:
        epoch = self._repository.record.epoch_of(sequence).number
        for attempt in range(SLOT_ATTEMPTS):
            name = self._repository.manifest_slot(epoch, sequence, attempt)
            if self._repository.store.stat(name) is None:
                return
            yield name, epoch

    def has(self, sequence: int) -> bool:
        """Return whether the first slot of a number is taken."""
        epoch = self._repository.record.epoch_of(sequence).number
        slot = self._repository.manifest_slot(epoch, sequence, 0)
        return self._repository.store.stat(slot) is not None

    def head(self) -> int:
        """Return the number of the newest manifest that is there; 0 where there is none.

        Raises:
            TrustError: ``rollback`` where the one seen before is gone.
        """
        start = self.high.sequence
        if start and not self.has(start):
            raise TrustError(
                "rollback",
                f"manifest {start} of stream '{self._repository.stream}' has been seen, is gone",
                hint=PUT_BACK,
            )
        found, start = self._gallop(start), -1
        while found > start:  # looks past a gap, as far as the next milestone
            start = found
            border = start - start % MILESTONE_EVERY + MILESTONE_EVERY
            found = max(filter(self.has, range(start + 1, border + 1)), default=start)
            found = self._gallop(found)
        while start > self.high.sequence and not self._is_envelope(start):
            start -= 1  # something torn or foreign lies there; a writer passes it over (format 9)
        return start

    def _is_envelope(self, sequence: int) -> bool:
        try:
            return self.envelope(sequence) is not None
        except IntegrityError:
            return False

    def _gallop(self, start: int) -> int:
        step = 1
        while self.has(start + step):
            start, step = start + step, step * 2
        while step > 1:
            step //= 2
            if self.has(start + step):
                start += step
        return start

    def signed(self, sequence: int, identity: Secret) -> SignedManifest:
        """Return a manifest after ingest 4.1 to 4.19.

        Raises:
            IntegrityError: ``gap`` if it is not there; else the code of the step.
            KeyMaterialError: ``not-recipient``: it is not sealed to this identity.
        """
        if sequence not in self._signed:
            envelope = self.envelope(sequence)
            if envelope is None:
                raise IntegrityError(
                    "gap",
                    f"manifest {sequence} of stream '{self._repository.stream}' is missing",
                    hint=PUT_BACK,
                )
            expected = Expected(
                registry=self._repository.registry,
                stream=self._repository.stream,
                epoch=envelope.epoch,
                sequence=sequence,
            )
            naming = self._repository.naming_key(envelope.epoch).reveal()
            try:
                self._signed[sequence] = open_manifest(
                    envelope.data, identity.reveal(), expected=expected, naming_key=naming
                )
            except (IntegrityError, TrustError) as error:
                if error.code == "integrity.stanza" and is_sealed_to_others(
                    self._repository, sequence, identity
                ):
                    raise not_recipient(f"manifest {sequence}") from error
                raise about_object(error, f"manifest {sequence}", envelope.name) from error
        return self._signed[sequence]

    def opens(self, sequence: int) -> bool:
        """Return whether the identity here opens a manifest; others are sealed to others.

        Raises:
            IntegrityError, TrustError, KeyMaterialError: as `signed`, for any other reason.
        """
        try:
            self.signed(sequence, self._repository.keys.need_identity())
        except KeyMaterialError as error:
            if error.code != "keys.not-recipient":
                raise
            return False
        return True

    def verified(self, sequence: int, *, now: int) -> VerifiedManifest:
        """Return one manifest after full ingest: its chain reaches a point of trust.

        Raises:
            SelectionError: ``no-sequence``.
            KeyMaterialError: ``identity-absent``; ``not-recipient``: it is sealed to others.
            IntegrityError, TrustError, FreshnessError: the code of the step that fails.
        """
        head = self.head()
        if not 1 <= sequence <= head:
            raise no_sequence(str(sequence), head)
        return self.vouched(sequence, now=now)[sequence]

    def vouched(self, sequence: int, *, now: int) -> dict[int, VerifiedManifest]:
        """Return one manifest with all that vouch for it: up to the head, or as `part` says.

        Raises:
            KeyMaterialError, IntegrityError, TrustError, FreshnessError: as `verified`.
        """
        head = self.head()
        begin = min(sequence, self.high.sequence) if self.high.sequence else 1
        if all(map(self.opens, range(begin, head + 1))):
            return self._admitted(begin, head, now)
        return self.part(sequence, now=now)

    def part(self, sequence: int, *, now: int) -> dict[int, VerifiedManifest]:
        """Return the verified manifests around one that the identity here opens; see `span`."""
        return self._admitted(*self.span(sequence), now)

    def span(self, sequence: int) -> tuple[int, int]:
        """Return the bounds of the manifests around one that the identity here opens.

        Those beyond are sealed to others. Below, the first one is believed what it follows, as
        its signer says; above, the envelope that was seen has to be there (format 8).

        Raises:
            KeyMaterialError: ``not-recipient``: this one is sealed to others.
            TrustError: ``fork``: another envelope lies where one was seen.
        """
        self.signed(sequence, self._repository.keys.need_identity())
        first = last = sequence
        head = self.head()
        while last < head and self.opens(last + 1):
            last += 1
        while first > 1 and self.has(first - 1) and self.opens(first - 1):
            first -= 1
        seen = self.envelope(self.high.sequence) if self.high.sequence > last else None
        if seen is not None and seen.digest != self.high.digest:
            raise _forked(self._repository.stream, seen.sequence)
        return first, last

    def newest_beside(self, sequence: int, *, now: int) -> VerifiedManifest:
        """Return the newest manifest that vouches for repairs: the head, where it is opened here.

        Raises:
            IntegrityError, TrustError, FreshnessError, KeyMaterialError: as `verified`.
        """
        head = self.head()
        if self.opens(head):
            return self.verified(head, now=now)
        part = self.part(sequence, now=now)
        return part[max(part)]

    def all_verified(self, *, now: int) -> dict[int, VerifiedManifest]:
        """Return every manifest from the first one on, after full ingest."""
        head = self.head()
        return self._admitted(1, head, now) if head else {}

    def _admitted(self, begin: int, last: int, now: int) -> dict[int, VerifiedManifest]:
        identity = self._repository.keys.need_identity()
        chain = {number: self.signed(number, identity) for number in range(begin, last + 1)}
        anchor = GENESIS
        if begin > 1:
            # The high-water vouches for the head, and the links from it back to this one.
            anchor = Anchor(sequence=begin - 1, digest=chain[begin].statement.previous)
        high = self.high if self.high.sequence <= last else HighWater(clock=self.high.clock)
        record = forgiving(self._repository.record, self.forgiven)
        return admit(chain, record=record, anchor=anchor, high=high, now=now)

    def nested(self, manifest: VerifiedManifest) -> "Nested":
        """Return the nested part of a verified manifest.

        Raises:
            KeyMaterialError: ``identity-absent``.
            IntegrityError: ``nested``, ``nested-form``, ``component-index``.
        """
        identity = self._repository.keys.need_identity()
        place = self._repository.place(manifest.statement.epoch)
        return open_nested(manifest, identity.reveal(), place)


def high_water_of(repository: Repository) -> HighWater:
    """Return what was seen here, as far as the owner lets it count.

    Where a later epoch begins at or before the sequence seen, that is what lies before it: its
    digest stands in the registry (format 8).
    """
    marks, record = repository.state.high_water(), repository.record
    if marks is None:
        return HighWater()
    if record.is_cut_off(marks.epoch, marks.sequence):
        later = next(
            one
            for one in record.epochs
            if one.number > marks.epoch and one.first_sequence <= marks.sequence
        )
        return HighWater(
            sequence=later.first_sequence - 1, digest=later.previous, clock=marks.clock_seconds
        )
    return HighWater(sequence=marks.sequence, digest=marks.head_digest, clock=marks.clock_seconds)


def revocations_of(record: StreamRecord) -> frozenset[Revocation]:
    """Return every revocation that a stream's record holds."""
    return frozenset(one for epoch in record.epochs for one in epoch.revocations)


def forgiving(record: StreamRecord, forgiven: frozenset[Revocation]) -> StreamRecord:
    """Return the record without the revocations that a human has set aside."""
    epochs = tuple(
        replace(epoch, revocations=tuple(one for one in epoch.revocations if one not in forgiven))
        for epoch in record.epochs
    )
    return replace(record, epochs=epochs)


def _forked(stream: str, sequence: int) -> TrustError:
    return TrustError(
        "fork",
        f"there are two different manifests {sequence} of stream '{stream}'",
        hint="two machines may share the stream's keys; stop one of them",
    )


def no_sequence(wanted: str, head: int) -> SelectionError:
    """Return the error for a manifest that does not exist."""
    there = f"there are numbers 1 to {head}" if head else "there is none yet"
    return SelectionError(
        "no-sequence",
        f"there is no manifest '{wanted[:40]}'; {there}",
        hint="list them with: durarepo log" if head else "make the first: durarepo snapshot",
    )
