"""The live time of one restore: asked before ingest, before the first frame, and before the end.

It reads no clock of its own. Between two questions the clock may have moved, and the owner may
have revoked a signer. Which checks are set aside it is told, by archival checkout alone.
Source: spec/ingest.md 3.12, 3.13, 4.17, 4.24 to 4.28, 6.1, 7.9 and 8. Start at `LiveTime`.
"""

from dataclasses import replace

from durarepo.core.clock import Clock
from durarepo.format.registry import Revocation
from durarepo.ingest import HighWater, VerifiedManifest, check_registry_time, check_restorable
from durarepo.policy.freshness import check_clock
from durarepo.repository.chain import Chain, revocations_of
from durarepo.repository.repository import Repository, find_registry

AGE, REGISTRY_EXPIRED, CLOCK = "age", "registry-expired", "clock"
REVOKED, ROLLBACK = "revoked", "rollback"
EVERY_CHECK = frozenset({AGE, REGISTRY_EXPIRED, CLOCK, REVOKED, ROLLBACK})
"""The checks that a human may set aside by name; all others always hold (ingest 8)."""

_ANY_TIME = 1 << 63


class LiveTime:
    """Asks the clock again and again whether a manifest may be restored (ingest 6.1 and 7.9)."""

    def __init__(
        self, repository: Repository, clock: Clock, *, aside: frozenset[str] = frozenset()
    ) -> None:
        """Read the clock for the first time.

        Args:
            repository: open.
            clock: the live time.
            aside: names of the checks that are not applied.

        Raises:
            FreshnessError: ``registry-expired``, ``ahead``, ``clock``.
        """
        self._repository = repository
        self._clock = clock
        self._aside = aside
        self._forgiven: frozenset[Revocation] = frozenset()
        self._manifest: VerifiedManifest | None = None
        self.chain = Chain(repository)
        self.now = clock()
        self._check_registry()

    def admit(self, sequence: int) -> VerifiedManifest:
        """Return a manifest after full ingest, restorable at this moment.

        Raises:
            IntegrityError, TrustError, FreshnessError: the code of the step that fails.
            KeyMaterialError: ``identity-absent``.
        """
        manifest = self.chain.verified(sequence, now=self.now)
        self._check_restorable(manifest)
        self._manifest = manifest
        return manifest

    def hold(self, manifest: VerifiedManifest, *, aside: frozenset[str]) -> None:
        """Take a manifest that a human admitted, and from now on apply all other checks.

        Args:
            manifest: after an ingest that left out no more than ``aside``.
            aside: names of what the human set aside. Of revocations these are the ones that
                the registry holds now: what arrives later has been shown to nobody.
        """
        self._aside = aside
        self._forgiven = frozenset()
        if REVOKED in aside:
            self._forgiven = revocations_of(self._repository.record)
        self._manifest = manifest

    def check(self) -> None:
        """Ask everything again that time or the owner may have changed.

        Raises:
            FreshnessError: ``expired``, ``revoked``, ``ahead``, ``registry-expired``, or
                ``clock``: it went backwards.
            TrustError: the registry or the chain does not pass any more.
        """
        now = self._clock()
        if CLOCK not in self._aside:
            check_clock(now, self.now)
        self.now = now
        self._take_newer_registry()
        self._check_registry()
        if self._manifest is not None:
            self._check_restorable(self._manifest)

    def _check_registry(self) -> None:
        held, now = self._repository.registry, self.now
        if CLOCK in self._aside:
            now = max(now, held.registry.issued)
        if REGISTRY_EXPIRED in self._aside:
            now = min(now, held.registry.expires - 1)
        check_registry_time(held, now)

    def _check_restorable(self, manifest: VerifiedManifest) -> None:
        now, clock = self.now, self.chain.high.clock
        if CLOCK in self._aside:
            now, clock = max(now, manifest.statement.issued), 0
        if AGE in self._aside:
            check_clock(now, clock)
            now, clock = min(now, manifest.statement.expires - 1), 0
        check_restorable(manifest, record=self._repository.record, now=now, clock=clock)

    def _take_newer_registry(self) -> None:
        """Follow the chain again under a registry that came meanwhile: it may revoke a signer."""
        held = self._repository.registry
        version = held.registry.version
        newer = find_registry(self._repository.store, self._repository.keys, highest=version)
        if newer.registry.version == version:
            return
        self._repository.take_registry(newer)
        self.chain = self._chain_again()
        if self._manifest is not None:
            sequence = self._manifest.statement.sequence
            now = _ANY_TIME if CLOCK in self._aside else self.now
            self._manifest = self.chain.verified(sequence, now=now)

    def _chain_again(self) -> Chain:
        chain = Chain(self._repository)
        chain.forgiven = self._forgiven
        if ROLLBACK in self._aside:
            chain.high = HighWater(clock=chain.high.clock)
        if CLOCK in self._aside:
            chain.high = replace(chain.high, clock=0)
        return chain
