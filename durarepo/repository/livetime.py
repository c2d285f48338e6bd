"""The live time of one restore: asked before ingest, before the first frame, and before the end.

It reads no clock of its own. What it refuses is never set aside here; between two questions the
clock may have moved, and the owner may have revoked a signer.
Source: spec/ingest.md 3.12, 3.13, 4.17, 4.24 to 4.28, 6.1 and 7.9. Start at `LiveTime`.
"""

from collections.abc import Callable

from durarepo.ingest import VerifiedManifest, check_registry_time, check_restorable
from durarepo.policy.freshness import check_clock
from durarepo.repository.chain import Chain
from durarepo.repository.repository import Repository, find_registry

Clock = Callable[[], int]
"""Gives the live time in whole seconds since 1970, UTC."""


class LiveTime:
    """Asks the clock again and again whether a manifest may be restored (ingest 6.1 and 7.9)."""

    def __init__(self, repository: Repository, clock: Clock) -> None:
        """Read the clock for the first time.

        Raises:
            FreshnessError: ``registry-expired``, ``ahead``, ``clock``.
        """
        self._repository = repository
        self._clock = clock
        self._manifest: VerifiedManifest | None = None
        self.chain = Chain(repository)
        self.now = clock()
        check_registry_time(repository.registry, self.now)

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

    def check(self) -> None:
        """Ask everything again that time or the owner may have changed.

        Raises:
            FreshnessError: ``expired``, ``revoked``, ``ahead``, ``registry-expired``, or
                ``clock``: it went backwards.
            TrustError: the registry or the chain does not pass any more.
        """
        now = self._clock()
        check_clock(now, self.now)
        self.now = now
        self._take_newer_registry()
        check_registry_time(self._repository.registry, now)
        if self._manifest is not None:
            self._check_restorable(self._manifest)

    def _check_restorable(self, manifest: VerifiedManifest) -> None:
        check_restorable(
            manifest, record=self._repository.record, now=self.now, clock=self.chain.high.clock
        )

    def _take_newer_registry(self) -> None:
        """Follow the chain again under a registry that came meanwhile: it may revoke a signer."""
        held = self._repository.registry
        version = held.registry.version
        newer = find_registry(self._repository.store, self._repository.keys, highest=version)
        if newer.registry.version == version:
            return
        self._repository.registry = newer
        self.chain = Chain(self._repository)
        if self._manifest is not None:
            sequence = self._manifest.statement.sequence
            self._manifest = self.chain.verified(sequence, now=self.now)
