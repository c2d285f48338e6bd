"""Files above one read: held whole where they fit, or read twice and never trusted in between.

What is cut is what was judged: a held file is cut from the very buffer that was scanned; of a
larger one each window must have, before it is handed on, the running SHA-256 that the scan saw.
Source: spec/exclusion.md 1 (rules 2 and 4) and 3. Start at `LargeFiles.take`.
"""

import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from durarepo.chunking.chunker import Cut
from durarepo.core.errors import VanishedError
from durarepo.core.limits import MIB
from durarepo.core.names import FileHash
from durarepo.policy.decide import KEPT, MEMORY_MAX_BYTES, ContentPolicy, Judged
from durarepo.policy.remembered import RememberedScan, ScanMemory
from durarepo.policy.rules import Decision, Stage
from durarepo.policy.scanning import Findings, Scan
from durarepo.repository.exclusion import Exclusion
from durarepo.repository.scanmemories import ScanMemories
from durarepo.repository.storing import Content, Storing
from durarepo.source.reading import Captured, Segment, SourceFile, capture, hashed, zeros

_SCANS = 2
"""How often a file too large for memory is scanned, if it changes before it is cut."""


class TooLargeError(Exception):
    """A file is longer than what is held in memory."""


class UnstableError(Exception):
    """The bytes of a file are not those that were scanned."""


class UnlinedError(Exception):
    """Text whose lines are longer than what is held in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """All bytes of a file in one buffer, holes as zeros, and where they lay."""

    data: bytes
    extents: tuple[tuple[int, bool], ...]

    def segments(self) -> Iterator[Segment]:
        """Yield the file as it was read, holes as such, its data in short windows."""
        at = 0
        for length, is_hole in self.extents:
            stop = at + length
            if is_hole:
                yield Segment(offset=at, length=length, data=None)
            elif length == len(self.data):
                yield Segment(offset=at, length=length, data=self.data)
            else:
                yield from _windows(self.data, at, stop)
            at = stop


def _windows(data: bytes, start: int, stop: int) -> Iterator[Segment]:
    for at in range(start, stop, MIB):
        window = data[at : min(stop, at + MIB)]
        yield Segment(offset=at, length=len(window), data=window)


def segments_of(data: bytes) -> Iterator[Segment]:
    """Yield a content that is in memory."""
    return _windows(data, 0, len(data))


def hold(segments: Iterable[Segment]) -> Held:
    """Return a file as one buffer, with no second copy of it.

    Raises:
        TooLargeError: it is longer than `MEMORY_MAX_BYTES`.
    """
    first = b""
    buffer = io.BytesIO()
    extents: list[tuple[int, bool]] = []
    size = 0
    for one in segments:
        size += one.length
        if size > MEMORY_MAX_BYTES:
            raise TooLargeError
        if one.data is not None and not extents:
            first = one.data
        else:
            if len(extents) == 1 and first:
                buffer.write(first)
                first = b""
            _write(buffer, one)
        extents.append((one.length, one.data is None))
    data = first or buffer.getvalue()
    return Held(data=data, extents=tuple(extents))


def _write(buffer: io.BytesIO, segment: Segment) -> None:
    if segment.data is not None:
        buffer.write(segment.data)
        return
    for part in zeros(segment.length):
        buffer.write(part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """What a scan found, and the running SHA-256 after each segment that it saw."""

    findings: Findings
    seen: tuple[bytes, ...]


Start = Callable[[], Scan | RememberedScan]
"""Begins the scan of one file."""


def scan_segments(segments: Iterable[Segment], start: Start) -> tuple[FileHash, Scanned]:
    """Return the SHA-256 of a file, and what was found in it."""
    digest = hashlib.sha256()
    scan = start()
    seen: list[bytes] = []
    for one in hashed(segments, digest.update):
        if one.data is not None:
            scan.feed(one.data)
        else:
            scan.feed_hole(one.length)
        seen.append(digest.digest())
    return FileHash(digest.digest()), Scanned(findings=scan.finish(), seen=tuple(seen))


def same_as_scanned(segments: Iterable[Segment], seen: tuple[bytes, ...]) -> Iterator[Segment]:
    """Yield segments, each only if all bytes up to its end are those that were scanned.

    Raises:
        UnstableError: they are not, or there are more or fewer.
    """
    digest = hashlib.sha256()
    number = 0
    for one in hashed(segments, digest.update):
        if number >= len(seen) or digest.digest() != seen[number]:
            raise UnstableError
        number += 1
        yield one
    if number != len(seen):
        raise UnstableError


@dataclass(slots=True)
class Redaction:
    """What was taken out of a text while it was read."""

    counts: tuple[tuple[str, int], ...] = ()


def redacted_segments(
    segments: Iterable[Segment], policy: ContentPolicy, done: Redaction
) -> Iterator[Segment]:
    """Yield a text without its values; ``done`` is filled when the last one is drawn.

    Raises:
        UnlinedError: a line is longer than what is held in memory.
    """
    redactor = policy.start_redaction()
    at = pending = 0
    for one in segments:
        for part in (one.data,) if one.data is not None else zeros(one.length):
            pending += len(part)
            data = redactor.feed(part)
            if data:
                pending = len(part) - part.rfind(b"\n") - 1
                yield Segment(offset=at, length=len(data), data=data)
                at += len(data)
            elif pending > MEMORY_MAX_BYTES:
                raise UnlinedError
    rest = redactor.finish()
    if rest:
        yield Segment(offset=at, length=len(rest), data=rest)
    done.counts = tuple(sorted(redactor.counts.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A large file as it was judged: what was put of it, with size and hash of that."""

    judged: Judged
    content: Content
    size: int
    sha256: FileHash

    @property
    def is_redacted(self) -> bool:
        """Whether values were taken out."""
        return self.judged.decision is Decision.REDACT


class LargeFiles:
    """Reads the files of one run that are more than one small chunk."""

    def __init__(self, storing: Storing, exclusion: Exclusion, memories: ScanMemories) -> None:
        """Prepare.

        Args:
            storing: puts what was judged.
            exclusion: judges.
            memories: know what of the largest was scanned before.
        """
        self._memories = memories
        self._storing = storing
        self._exclusion = exclusion
        self._judge = exclusion.judge

    def take(
        self, dirfd: int, listed: tuple[bytes, os.stat_result], path: bytes, cut: Cut
    ) -> Captured[Stored] | None:
        """Judge a file and put what stays of it.

        Args:
            dirfd: descriptor of its directory.
            listed: its name and what the listing said of it.
            path: the path under which it is judged.
            cut: how it is cut.

        Returns:
            None if it changed every time between its scan and its cut.

        Raises:
            As `capture`; RunError: ``budget``.
        """
        name, stat = listed
        if stat.st_size <= MEMORY_MAX_BYTES:
            try:
                return capture(dirfd, name, partial(self._held, path, cut))
            except TooLargeError:
                pass  # it grew since it was listed
        return self._take_scanned(dirfd, name, path, cut)

    def _held(self, path: bytes, cut: Cut, segments: Iterator[Segment]) -> tuple[FileHash, Stored]:
        """Judge a file in memory, and cut it from the buffer that was judged."""
        held = hold(self._storing.timed(segments))
        digest = FileHash(hashlib.sha256(held.data).digest())
        judged = self._judge(path, held.data)
        if judged.decision is Decision.EXCLUDE:
            return digest, nothing(judged)
        if judged.data is None:
            content = self._storing.put(cut, self._storing.timed(held.segments()))
            return digest, Stored(
                judged=judged, content=content, size=len(held.data), sha256=digest
            )
        stored = Stored(
            judged=judged,
            content=self._storing.put(cut, self._storing.timed(segments_of(judged.data))),
            size=len(judged.data),
            sha256=FileHash(hashlib.sha256(judged.data).digest()),
        )
        return digest, stored

    def _take_scanned(
        self, dirfd: int, name: bytes, path: bytes, cut: Cut
    ) -> Captured[Stored] | None:
        """Scan a file that memory does not hold, then cut the same bytes; None if it changes."""
        for _ in range(_SCANS):
            scanned, memory = self._scanned(dirfd, name, path)
            judged = self._exclusion.contents.judge_scanned(path, scanned.result.findings)
            if judged.decision is Decision.EXCLUDE:
                return _with_result(scanned, nothing(judged))
            try:
                stored = self._take_again(dirfd, name, cut, scanned=scanned, judged=judged)
            except (UnstableError, VanishedError):
                continue
            except UnlinedError:
                stored = nothing(replace(judged, decision=Decision.EXCLUDE, stage=Stage.CONTENT))
            if stored.judged is KEPT and path.startswith(b"/"):
                self._memories.keep(path, memory, {})
            return _with_result(scanned, stored)
        return None

    def _scanned(
        self, dirfd: int, name: bytes, path: bytes
    ) -> tuple[Captured[Scanned], ScanMemory]:
        """Scan a file; what is found with the help of a memory is looked for in all of it.

        The first scan of a file is only noted, not remembered: most such files never change.
        """
        known, policy = self._memories.find(path), self._exclusion.contents
        if known.is_noted:
            start = partial(known.scanned.scan, policy.start_scan)
            scanned = capture(dirfd, name, partial(self._scan, start))
            if scanned.result.findings.is_clean or not known.scanned.has_skipped:
                return scanned, known.scanned
        return capture(dirfd, name, partial(self._scan, policy.start_scan)), ScanMemory()

    def _scan(self, start: Start, segments: Iterator[Segment]) -> tuple[FileHash, Scanned]:
        return scan_segments(self._storing.timed(segments), start)

    def _take_again(
        self,
        dirfd: int,
        name: bytes,
        cut: Cut,
        *,
        scanned: Captured[Scanned],
        judged: Judged,
    ) -> Stored:
        policy, seen = self._exclusion.contents, scanned.result.seen
        with SourceFile(dirfd, name) as file:
            if judged.decision is Decision.INCLUDE:
                segments = same_as_scanned(self._storing.timed(file.segments(scanned.size)), seen)
                content = self._storing.put(cut, segments)
                return Stored(
                    judged=judged, content=content, size=scanned.size, sha256=scanned.sha256
                )
            done = Redaction()
            same = same_as_scanned(self._storing.timed(file.segments(scanned.size)), seen)
            redacted = redacted_segments(same, policy, done)
            _, after = scan_segments(redacted, policy.start_scan)
            if not after.findings.is_clean:
                return nothing(policy.judged_whole(after.findings))
            same = same_as_scanned(self._storing.timed(file.segments(scanned.size)), seen)
            sizes: list[int] = []
            again = same_as_scanned(redacted_segments(same, policy, Redaction()), after.seen)
            digest, content = self._storing.consume(cut, _measured(again, sizes))
        rules = tuple(rule for rule, _ in done.counts)
        judged = replace(judged, rules=rules, counts=done.counts)
        return Stored(judged=judged, content=content, size=sum(sizes), sha256=digest)


def _measured(segments: Iterable[Segment], sizes: list[int]) -> Iterator[Segment]:
    for one in segments:
        sizes.append(one.length)
        yield one


def _with_result(captured: Captured[Scanned], stored: Stored) -> Captured[Stored]:
    return Captured(
        stat=captured.stat,
        size=captured.size,
        consistency=captured.consistency,
        sha256=captured.sha256,
        result=stored,
    )


def nothing(judged: Judged) -> Stored:
    """Return a file that is left out: nothing was put, and no hash of it is kept."""
    content = Content(runs=[], owners=set())
    return Stored(judged=judged, content=content, size=0, sha256=FileHash(b""))
