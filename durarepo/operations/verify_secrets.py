"""Look for secrets in what is stored already, with the rules of today.

Names are judged in every manifest, as listings are read at any age. Content is decrypted only if
an unexpired manifest pins it; what only expired ones pin is counted and not looked at. Each
distinct content is read once. What is found is told by rule and path, never by value.
Databases too large for memory are scanned as bytes. Nothing is changed and nothing is noted.
Source: spec/cli.md 4 (verify), spec/exclusion.md 10. Start at `verify_secrets`.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from durarepo.core.clock import Clock
from durarepo.core.entries import ChunkList, Entry, FileType
from durarepo.core.errors import FreshnessError, IntegrityError, TrustError
from durarepo.core.names import ChunkId
from durarepo.core.progress import Progress
from durarepo.format.layout import ChunkKind
from durarepo.ingest import VerifiedManifest, check_restorable
from durarepo.policy.decide import KEPT, MEMORY_MAX_BYTES, Judged
from durarepo.policy.forms import form_of
from durarepo.policy.pathrules import is_secret, shared_path_rules
from durarepo.policy.rules import Decision, Stage
from durarepo.repository.exclusion import Exclusion
from durarepo.repository.livetime import LiveTime
from durarepo.repository.reader import ChunkReader
from durarepo.repository.repository import Repository
from durarepo.repository.trees import Event, Visit, iter_content, iter_runs, walk
from durarepo.source.judging import ContentTest
from durarepo.source.pathjudge import RULE_PATH_SECRET

Piece = tuple[int, ChunkId | None]
"""Length and chunk of one run of a content; None for a hole."""

_KEY_BYTES = 12
_MISSING = "integrity.chunk-missing"
_ATTRIBUTE = b"attribute"
_TARGET = b"target"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSecret:
    """One place at which something is stored that would be left out today.

    ``path`` is None where the path itself holds a secret; ``path_id`` then is its keyed short id.
    ``sequences`` are the manifests that list it, in ascending order.
    """

    path: bytes | None
    path_id: str | None
    rule: str
    stage: Stage
    sequences: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretsVerified:
    """What a look for secrets came to.

    ``contents`` are distinct contents that were scanned, of ``bytes`` bytes; ``unscanned`` those
    that only expired manifests pin, ``unreadable`` those (and listings) that are damaged.
    ``damage`` is the first reason of those.
    """

    head: int
    manifests: int
    contents: int
    bytes: int
    unscanned: int
    unreadable: int
    found: tuple[StoredSecret, ...]
    policy: str
    engine: str
    damage: IntegrityError | None


def verify_secrets(
    repository: Repository, *, clock: Clock, progress: Progress, engine: str = ""
) -> SecretsVerified:
    """Judge all that every manifest lists with the rules of today.

    Args:
        repository: open; its lock is not taken.
        clock: gives the live time.
        progress: told of every content.
        engine: of `scanner.open_engine`.

    Raises:
        KeyMaterialError: ``identity-absent``.
        SourceError: ``scanner``: contents cannot be scanned.
        IntegrityError, TrustError, FreshnessError: the chain of manifests does not pass.
        StoreError: the store cannot be used.
    """
    repository.keys.need_identity()
    live = LiveTime(repository, clock)
    today = datetime.fromtimestamp(live.now, UTC).date()
    exclusion = Exclusion(repository, home=None, today=today, engine=engine)
    manifests = live.chain.all_verified(now=live.now)
    look = _Look(repository, exclusion, live, progress)
    for number in sorted(manifests, reverse=True):  # the newest may be decrypted, and so come first
        look.into(manifests[number], newest=manifests[max(manifests)])
    return look.result(head=max(manifests, default=0), manifests=len(manifests))


class _Look:
    """One run over all manifests."""

    def __init__(
        self, repository: Repository, exclusion: Exclusion, live: LiveTime, progress: Progress
    ) -> None:
        self._repository = repository
        self._exclusion = exclusion
        self._policy = exclusion.contents
        self._test = ContentTest(self._policy, exclusion.judge)
        self._paths = shared_path_rules()
        self._live = live
        self._progress = progress
        self._found: dict[tuple[bytes, str, Stage], list[int]] = {}
        self._clean_folders: set[bytes] = set()
        self._verdicts: dict[bytes, Judged] = {}
        self._unscanned: set[bytes] = set()
        self._unreadable: set[bytes] = set()
        self._damage: IntegrityError | None = None
        self._bytes = 0
        self._sequence = 0
        self._marks = 0
        self._readers: list[ChunkReader] = []
        self._is_own = False

    def result(self, *, head: int, manifests: int) -> SecretsVerified:
        """Return what was found, by path and rule."""
        return SecretsVerified(
            head=head,
            manifests=manifests,
            contents=len(self._verdicts),
            bytes=self._bytes,
            unscanned=len(self._unscanned),
            unreadable=len(self._unreadable),
            found=tuple(self._told(key) for key in sorted(self._found)),
            policy=self._exclusion.version,
            engine=self._policy.engine,
            damage=self._damage,
        )

    def _told(self, key: tuple[bytes, str, Stage]) -> StoredSecret:
        path, rule, stage = key
        short = self._exclusion.short_id(path)
        return StoredSecret(
            path=path if short is None else None,
            path_id=None if short is None else short.decode("ascii"),
            rule=rule,
            stage=stage,
            sequences=tuple(sorted(self._found[key])),
        )

    # --- one manifest ---

    def into(self, manifest: VerifiedManifest, *, newest: VerifiedManifest) -> None:
        """Judge all that one manifest lists; of manifests the newest is to come first."""
        self._sequence = manifest.statement.sequence
        self._is_own = self._is_restorable(manifest)
        if self._is_own:
            self._live.hold(manifest, aside=frozenset())
            reader = ChunkReader(self._repository, manifest, permit=self._live.check, newest=newest)
            # The first one knows packs that were made anew, the last one those of before.
            self._readers = [*self._readers[:1], reader]
        listing = ChunkReader(self._repository, manifest, newest=newest)
        try:
            for root in self._live.chain.nested(manifest).roots:
                self._look_below(listing, root.path, root.entry)
        except IntegrityError as error:
            self._note_damage(b"%d" % self._sequence, error)

    def _is_restorable(self, manifest: VerifiedManifest) -> bool:
        try:
            check_restorable(
                manifest,
                record=self._repository.record,
                now=self._live.now,
                clock=self._live.chain.high.clock,
            )
        except (FreshnessError, TrustError):
            return False
        return True

    def _look_below(self, listing: ChunkReader, path: bytes, root: Entry) -> None:
        marks: list[int] = []
        for visit in walk(listing, path, root, enters=self._enters):
            if visit.event is Event.ENTER:
                marks.append(self._marks)
            if visit.event is Event.LEAVE:
                if marks.pop() == self._marks:
                    self._clean_folders.add(_folder_key(visit.path, visit.entry))
            else:
                self._look_at(listing, visit)

    def _enters(self, path: bytes, entry: Entry) -> bool:
        if entry.type is not FileType.DIRECTORY or entry.tree is None:
            return False
        if self._rule_of_name(path, is_folder=True) is not None:
            return False
        return _folder_key(path, entry) not in self._clean_folders

    def _look_at(self, listing: ChunkReader, visit: Visit) -> None:
        path, entry = visit.path, visit.entry
        is_folder = entry.type is FileType.DIRECTORY
        rule = self._rule_of_name(path, is_folder=is_folder)
        if rule is not None:
            self._note(path, rule, Stage.PATH)
            return
        if entry.target is not None and self._policy.holds_secret(entry.target):
            self._note(path, self._policy.judge(_TARGET, entry.target).rule, Stage.CONTENT)
        for name, value in entry.xattrs:
            self._look_at_attribute(listing, path, name, value)
        if entry.type is FileType.FILE and entry.sha256 is not None:
            key = _content_key(path, entry, is_reviewed=path in self._exclusion.reviewed)
            judged = self._judged(
                key, lambda: self._judge_file(path, entry, iter_runs(listing, entry))
            )
            self._note_judged(path, judged)

    def _look_at_attribute(
        self, listing: ChunkReader, path: bytes, name: bytes, value: bytes | ChunkList
    ) -> None:
        if isinstance(value, bytes):
            self._note_judged(path, self._judge_attribute(name, value))
            return
        key = _key(name, repr(value).encode())
        self._note_judged(
            path,
            self._judged(
                key,
                lambda: self._judge_attribute(
                    name, b"".join(self._pieces(iter_content(listing, value)))
                ),
            ),
        )

    def _judge_attribute(self, name: bytes, value: bytes) -> Judged:
        return self._policy.judge(_ATTRIBUTE, b"%s\n%s" % (name, value))

    # --- names ---

    def _rule_of_name(self, path: bytes, *, is_folder: bool) -> str | None:
        folder, _, name = path.rpartition(b"/")
        rule = self._paths.find(folder, name, is_folder=is_folder)
        if rule is not None and is_secret(rule):
            return rule.id
        return RULE_PATH_SECRET if self._policy.holds_secret(name) else None

    # --- content ---

    def _judged(self, key: bytes, judge: Callable[[], Judged]) -> Judged:
        """Return the verdict on a content, which is read once however often it is listed."""
        verdict = self._verdicts.get(key)
        if verdict is not None:
            return verdict
        if not self._readers:
            return self._passed_over(key)
        try:
            verdict = judge()
        except IntegrityError as error:
            if error.code == _MISSING and not self._is_own:
                return self._passed_over(key)
            self._note_damage(key, error)
            return KEPT
        self._verdicts[key] = KEPT if verdict.decision is Decision.INCLUDE else _told(verdict)
        self._progress.update(len(self._verdicts), self._bytes, None)
        return self._verdicts[key]

    def _passed_over(self, key: bytes) -> Judged:
        self._unscanned.add(key)
        return KEPT

    def _judge_file(self, path: bytes, entry: Entry, runs: Iterator[Piece]) -> Judged:
        if entry.size <= MEMORY_MAX_BYTES:
            return self._test.judge_data(path, b"".join(self._pieces(runs)))
        scan = self._policy.start_scan()
        for length, chunk in runs:
            if chunk is None:
                scan.feed_hole(length)
            else:
                scan.feed(self._read(chunk))
        return self._policy.judge_scanned(path, scan.finish())

    def _pieces(self, runs: Iterator[Piece]) -> Iterator[bytes]:
        for length, chunk in runs:
            yield bytes(length) if chunk is None else self._read(chunk)

    def _read(self, chunk: ChunkId) -> bytes:
        *others, last = self._readers
        try:
            data = last.chunk(chunk, ChunkKind.DATA)
        except IntegrityError as error:
            if self._is_own or not others or error.code != _MISSING:
                raise
            data = others[0].chunk(chunk, ChunkKind.DATA)
        self._bytes += len(data)
        return data

    # --- notes ---

    def _note_judged(self, path: bytes, judged: Judged) -> None:
        if judged.decision is not Decision.INCLUDE and judged.stage is not None:
            self._note(path, judged.rule, judged.stage)

    def _note(self, path: bytes, rule: str, stage: Stage) -> None:
        self._marks += 1
        numbers = self._found.setdefault((path, rule, stage), [])
        if self._sequence not in numbers[-1:]:
            numbers.append(self._sequence)

    def _note_damage(self, key: bytes, error: IntegrityError) -> None:
        self._unreadable.add(key)
        self._damage = self._damage or error


def _told(judged: Judged) -> Judged:
    """Return a verdict without the data that would be kept instead."""
    return Judged(decision=judged.decision, rule=judged.rule, stage=judged.stage)


def _folder_key(path: bytes, entry: Entry) -> bytes:
    return _key(path, b"" if entry.tree is None else entry.tree)


def _content_key(path: bytes, entry: Entry, *, is_reviewed: bool) -> bytes:
    """Return what a verdict depends on: the bytes, the form, and the name, which tables ask."""
    name = path if is_reviewed else path.rpartition(b"/")[2]
    form = form_of(path)
    return _key(name, entry.sha256 or b"", form.syntax.encode(), form.profile.encode())


def _key(*parts: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=_KEY_BYTES)
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.digest()
