"""Roots turned into trees: each directory kept, or found unchanged and not encoded again.

It follows the walk's events. A directory whose listing is what the last complete manifest saw,
and whose packs still count, is not read at all; in a changed one only changed names are. Trees
are stored bottom up, so that a tree never names what was not given to the sink before.
Source: spec/format.md 6, spec/cli.md (unchanged, omissions). Start at `TreeKeeper.keep_root`.
"""

import os
import stat as stat_bits
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import NamedTuple

from durarepo.core.entries import Consistency, Entry, FileType
from durarepo.core.errors import RunError, SourceError, VanishedError
from durarepo.core.names import ChunkId
from durarepo.core.progress import Progress
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import LedgerLine, OmissionClass, Root
from durarepo.format.tree import (
    SetHash,
    cut_leaves,
    encode_entry,
    encode_leaf,
    encode_node,
    read_entry,
    set_value,
)
from durarepo.local.catalog import Catalog, DirRow
from durarepo.policy.rules import Stage
from durarepo.repository.chunks import ChunkSink, decode_owners, encode_owners
from durarepo.repository.contents import FileKeeper, Kept, Withheld, first_bytes
from durarepo.repository.listing import (
    NEVER_EQUAL,
    Line,
    encode_lines,
    is_reusable,
    is_unchanged,
    is_young,
    is_young_content,
    iter_lines,
    record_of,
    sidecar_base,
    stat_record,
)
from durarepo.repository.takeover import LastComplete
from durarepo.repository.tally import Notes, Tally, decode_notes
from durarepo.source.mounts import MountTable
from durarepo.source.sqlitestate import is_sidecar, is_sqlite
from durarepo.source.walk import Enter, Leave, Listed, Trouble, TroubleKind, WalkRules, walk

RULE_SIDECAR = "sqlite-sidecar"

POLICY_FACT = "policy"
"""The catalogue's fact that names the version of the policy that its directories were judged by."""

_PATH_STAGE, _READ_STAGE, _CONTENT_STAGE = "path", "read", "content"


@dataclass(frozen=True, slots=True)
class Resumed:
    """A file that a killed run had kept: record, encoded entry, owners."""

    record: bytes
    entry: bytes
    owners: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Child:
    """What became of a sub-directory; ``tree`` is None if it vanished."""

    tree: ChunkId | None
    set_hash: bytes
    is_changed: bool


class _Item(NamedTuple):
    """A line of a directory, with its entry if it has been decoded or made already."""

    line: Line
    entry: Entry | None = None
    is_kept_before: bool = False
    is_database: bool = False


@dataclass(slots=True)
class _Open:
    """A directory between its Enter and its Leave."""

    path: bytes
    stat: os.stat_result
    file_system: bytes
    row: DirRow | None
    is_same: bool
    records: dict[bytes, bytes]
    items: list[_Item] = field(default_factory=list)
    children: dict[bytes, _Child] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)
    size_bytes: int = 0
    is_believed: bool = True
    is_taken_over: bool = False
    troubled: set[bytes] = field(default_factory=set)
    spare: dict[bytes, Line] = field(default_factory=dict)


class TreeKeeper:
    """Keeps the roots of one run, one after the other."""

    def __init__(
        self,
        keeper: FileKeeper,
        sink: ChunkSink,
        *,
        catalog: Catalog,
        tally: Tally,
        started_ns: int,
        progress: Progress,
    ) -> None:
        """Prepare.

        Args:
            keeper: keeps the files; what another version of its policy saw is not believed.
            sink: where trees go.
            catalog: what the last complete manifest held; rows of this run are put there.
            tally: what is counted.
            started_ns: when the run began, in nanoseconds since 1970.
            progress: told of files and bytes.
        """
        self._keeper = keeper
        self._sink = sink
        self._catalog = catalog
        self._exclusion = keeper.exclusion
        self._is_same_policy = catalog.fact(POLICY_FACT) == self._exclusion.version.encode()
        self._reviewed_folders = {os.path.dirname(path) for path in self._exclusion.reviewed}
        self._tally = tally
        self._started_ns = started_ns
        self._progress = progress
        self._stack: list[_Open] = []
        self._root: _Child | None = None
        self._live_pins: dict[bytes, bool] = {}
        self._visited: list[tuple[bytes, int]] = []
        self.resumed: Mapping[bytes, Resumed] = {}
        self.on_file: Callable[[bytes, Line], None] | None = None
        self.is_spent: Callable[[], bool] = lambda: False
        self.last_complete: LastComplete | None = None

    def keep_root(self, path: bytes, *, rules: WalkRules, mounts: MountTable) -> tuple[Root, bytes]:
        """Return the root as it was kept, and its set hash.

        Raises:
            SourceError: the root is missing, unreadable or no directory.
            StoreError: something could not be stored.
            RunError: ``budget``: the time is spent, and the run is not to be partial.
        """
        described: Kept | Withheld | None = None
        with closing(walk(path, rules=rules, mounts=mounts)) as events:
            for event in events:
                if isinstance(event, Enter):
                    if not self._stack:
                        described = self._keeper.describe(
                            event.fd, b".", event.stat, file_system=event.file_system
                        )
                    self._enter(event)
                elif isinstance(event, Leave):
                    self._leave(event)
                else:
                    self._note_trouble(event)
        if not isinstance(described, Kept) or self._root is None:
            raise _root_unreadable(path)
        self._note_moved_in(rules)
        root = self._empty_child() if self._root.tree is None else self._root
        self._note_omission(path, described)
        self._tally.lines += self._redactions(path, described)
        self._tally.owners.update(described.owners)
        entry = described.entry._replace(name=b"", link_group=None, tree=root.tree)
        return Root(path=path, entry=entry), root.set_hash

    # --- entering ---

    def _enter(self, event: Enter) -> None:
        records = {name: stat_record(found) for name, found in event.names}
        row = self._catalog.find_dir(event.path)
        live = row is not None and self._is_live(row.pins)
        same = row is not None and live and row.record == record_of(list(records.items()))
        same = same and self._is_same_policy and event.path not in self._reviewed_folders
        opened = _Open(
            path=event.path,
            stat=event.stat,
            file_system=event.file_system,
            row=row,
            is_same=same,
            records=records,
        )
        self._stack.append(opened)
        self._visited.append((event.path, event.stat.st_mtime_ns))
        for name, rule in event.excluded:
            self._tally.add_line(
                OmissionClass.EXCLUSION, _joined(event.path, name), rule, _PATH_STAGE
            )
        if self.is_spent():
            self._take_over(event, opened)
        elif not same:
            self._take_names(event, opened)

    def _is_live(self, pins: bytes) -> bool:
        if pins not in self._live_pins:
            self._live_pins[pins] = self._sink.are_live(decode_owners(pins))
        return self._live_pins[pins]

    def _take_names(self, event: Enter, opened: _Open) -> None:
        records = opened.records
        known = {} if opened.row is None else {line.name: line for line in iter_lines(opened.row)}
        for name in known.keys() - records.keys():
            self._catalog.forget_dir(_joined(event.path, name))
        withheld = self._withheld_before(opened)
        databases: set[bytes] = set()
        for listed in event.names:
            name, found = listed
            if sidecar_base(name) in databases and self._is_sidecar(event, listed):
                young = is_young_content(found, self._started_ns)
                opened.items.append(_Item(Line(name, NEVER_EQUAL if young else records[name])))
                self._note_sidecar(opened, name)
                continue
            has_sidecar = self._has_sidecar(name, records)
            item = self._reused(opened, name, known, records)
            if item is None and is_unchanged(name, records[name], known, records):
                sample_fd = event.fd if has_sidecar else None
                item = self._still_withheld(opened, known[name], withheld, sample_fd=sample_fd)
            if item is None:
                item = self._item_of(event, opened, listed, known.get(name))
            if item is None:
                continue
            if has_sidecar and _is_database(item):
                databases.add(name)
            opened.items.append(item)

    @staticmethod
    def _is_sidecar(event: Enter, listed: Listed) -> bool:
        """Return whether what lies beside a database is its sidecar, and not work of that name."""
        name, found = listed
        if not stat_bits.S_ISREG(found.st_mode) or found.st_nlink > 1:
            return False
        return is_sidecar(name, first_bytes(event.fd, name), found.st_size)

    def _believed(self, found: os.stat_result, record: bytes) -> bytes:
        return NEVER_EQUAL if is_young(found, self._started_ns) else record

    def _note_sidecar(self, opened: _Open, name: bytes) -> None:
        opened.notes.lines.append(
            self._tally.line(
                OmissionClass.EXCLUSION, _joined(opened.path, name), RULE_SIDECAR, _CONTENT_STAGE
            )
        )

    @staticmethod
    def _has_sidecar(name: bytes, records: Mapping[bytes, bytes]) -> bool:
        return (
            name + b"-wal" in records or name + b"-shm" in records or name + b"-journal" in records
        )

    def _withheld_before(self, opened: _Open) -> dict[bytes, LedgerLine]:
        """Return the lines of what the same policy left out of this directory for its content."""
        if opened.row is None or not opened.row.notes or not self._is_same_policy:
            return {}
        return {
            line.path: line
            for line in decode_notes(opened.row.notes).lines
            if line.kind is OmissionClass.EXCLUSION and line.rule != RULE_SIDECAR
        }

    def _still_withheld(
        self,
        opened: _Open,
        before: Line,
        withheld: Mapping[bytes, LedgerLine],
        *,
        sample_fd: int | None,
    ) -> _Item | None:
        """Return the line of an unchanged file that was left out, so that it is not read again.

        Its first bytes alone are, in the directory ``sample_fd``, if what lies beside it may be
        its sidecars.
        """
        path = _joined(opened.path, before.name)
        if before.entry or path not in withheld or path in self._exclusion.reviewed:
            return None
        opened.notes.lines.append(withheld[path])
        is_database = sample_fd is not None and is_sqlite(first_bytes(sample_fd, before.name))
        return _Item(before, is_database=is_database)

    def _reused(
        self,
        opened: _Open,
        name: bytes,
        known: Mapping[bytes, Line],
        records: Mapping[bytes, bytes],
    ) -> _Item | None:
        if self._is_same_policy and is_reusable(name, records[name], known, records):
            line = known[name]
            if self._sink.are_live(line.owners):
                return _Item(line)
            if self._sink.are_there(line.owners):  # rewritten, if it can be read again
                opened.spare[name] = line
        resumed = self.resumed.get(_joined(opened.path, name))
        if resumed is not None and resumed.record == self._exclusion.mark(records[name]):
            return _Item(Line(name, records[name], resumed.entry, resumed.owners))
        return None

    def _item_of(
        self, event: Enter, opened: _Open, listed: Listed, before: Line | None
    ) -> _Item | None:
        """Return what is read of a name; once the time is spent, what was kept of it before."""
        if not self.is_spent():
            try:
                return self._taken(event, opened, listed)
            except RunError:  # spent within a large file
                if not self.is_spent():
                    raise
        self._tally.reached_all = False
        event.skip.add(listed[0])
        if before is None or not before.entry or self.last_complete is None:
            return None  # what the catalogue knows may be of a chain that the owner has cut off
        return self._item_kept_before(opened, before)

    def _taken(self, event: Enter, opened: _Open, listed: Listed) -> _Item | None:
        name, found = listed
        path = _joined(event.path, name)
        try:
            if stat_bits.S_ISREG(found.st_mode):
                kept = self._keeper.keep(event.fd, listed, path=path, file_system=event.file_system)
            else:
                kept = self._keeper.describe(event.fd, name, found, file_system=event.file_system)
        except VanishedError:
            self._tally.vanished += 1
            event.skip.add(name)
            return None
        except SourceError as error:
            self._tally.add_line(OmissionClass.OMISSION, path, error.code, _READ_STAGE)
            return _Item(opened.spare[name]) if name in opened.spare else None
        if isinstance(kept, Withheld) and not kept.is_omission:
            record = self._believed(found, opened.records[name]) if kept.quiet else NEVER_EQUAL
            opened.notes.lines.append(
                self._tally.line(OmissionClass.EXCLUSION, path, kept.rule, kept.stage)
            )
            return _Item(Line(name, record), is_database=kept.is_database)
        self._note_omission(path, kept)
        if kept.omission and name in opened.spare:
            return _Item(opened.spare[name])
        if isinstance(kept, Withheld):
            return _Item(Line(name, NEVER_EQUAL), is_database=kept.is_database)
        return self._noted(opened, listed, path, kept)

    def _noted(self, opened: _Open, listed: Listed, path: bytes, kept: Kept) -> _Item:
        """Return the line of what was kept, after noting what else is to be told of it."""
        name, found = listed
        if kept.database is not None:
            opened.notes.databases.append(kept.database)
        if kept.redacted:
            opened.notes.lines += self._redactions(path, kept)
        record = self._believed(found, opened.records[name]) if kept.quiet else NEVER_EQUAL
        line = Line(name, record, encode_entry(kept.entry), kept.owners)
        if self.on_file is not None and _is_resumable(kept, record):
            self.on_file(path, Line(name, self._exclusion.mark(record), line.entry, line.owners))
        return _Item(line, kept.entry)

    def _redactions(self, path: bytes, kept: Kept) -> list[LedgerLine]:
        return [
            self._tally.line(OmissionClass.REDACTION, path, rule, Stage.STRUCTURED, count=count)
            for rule, count in kept.redacted
        ]

    def _note_omission(self, path: bytes, kept: Kept | Withheld) -> None:
        if kept.omission:
            self._tally.add_line(OmissionClass.OMISSION, path, kept.omission, _READ_STAGE)

    def _take_over(self, event: Enter, opened: _Open) -> None:
        """Take all of a directory that is not reached any more from the last complete manifest."""
        self._tally.reached_all = False
        event.skip.update(name for name, found in event.names if stat_bits.S_ISDIR(found.st_mode))
        opened.is_same, opened.is_taken_over = False, True
        if opened.row is None or self.last_complete is None:
            return
        left_out = {name for name, _ in event.excluded}
        for line in iter_lines(opened.row):
            if line.entry and line.name not in left_out:
                opened.items.append(self._item_kept_before(opened, line))

    def _item_kept_before(self, opened: _Open, before: Line) -> _Item:
        if self.last_complete is None:
            raise ValueError("what was kept before stands in a complete manifest")
        line, entry = self.last_complete.take_line(before)
        if entry.type is FileType.DIRECTORY:
            path = _joined(opened.path, line.name)
            set_hash = self.last_complete.take_folder(path, entry, file_system=opened.file_system)
            child = self._empty_child() if set_hash is None else None
            if child is not None and child.tree != entry.tree:
                raise RunError("budget", "the time budget is spent, and a folder is not known")
            opened.children[line.name] = child or _Child(
                entry.tree, set_hash or b"", is_changed=True
            )
        return _Item(line, entry, is_kept_before=True)

    # --- leaving ---

    def _note_trouble(self, event: Trouble) -> None:
        path, opened = event.path, self._stack[-1]
        if path == opened.path and len(self._stack) == 1:
            raise _root_unreadable(path) from event.error
        if event.kind is TroubleKind.VANISHED:
            self._tally.vanished += 1
        else:
            self._tally.add_line(OmissionClass.OMISSION, path, f"source.{event.kind}", _READ_STAGE)
        if path == opened.path:
            opened.is_believed = False
            return
        name = path[len(_joined(opened.path, b"")) :]
        if name not in opened.records:
            return  # never was among the names, so nothing stands for it
        self._catalog.forget_dir(path)
        opened.troubled.add(name)
        if event.kind is TroubleKind.VANISHED:
            opened.children[name] = _Child(None, b"", is_changed=True)
        else:
            opened.children[name] = self._empty_child()

    def _empty_child(self) -> _Child:
        """Return what stands for a directory that could not be read: one without entries."""
        chunk, owner = self._sink.put(ChunkKind.TREE, encode_leaf([]))
        self._tally.owners.add(owner)
        self._tally.dirs += 1
        return _Child(chunk, SetHash().digest(), is_changed=True)

    def _leave(self, event: Leave) -> None:
        opened = self._stack.pop()
        self._tally.dirs += 1
        row = opened.row
        changed = any(child.is_changed for child in opened.children.values())
        if opened.is_taken_over and row is None:
            self._tally.dirs -= 1
            child = _Child(None, b"", is_changed=True)
        elif opened.is_same and not changed and row is not None:
            child = self._leave_unchanged(opened, row)
        else:
            child = self._leave_changed(opened)
        self._progress.update(self._tally.files, self._tally.bytes, None)
        if self._stack:
            name = event.path[len(_joined(self._stack[-1].path, b"")) :]
            self._stack[-1].children[name] = child
        else:
            self._root = child

    def _note_moved_in(self, rules: WalkRules) -> None:
        """Note what was moved, while the walk ran, to where it had been already.

        What is new since the run began belongs to the next one. What is older was there all the
        time, and this snapshot may hold it nowhere; its change time tells that it was moved.
        """
        for path, mtime_ns in self._visited:
            try:
                if os.lstat(path).st_mtime_ns == mtime_ns:
                    continue
                with os.scandir(path) as entries:
                    found = [(os.fsencode(e.name), e.stat(follow_symlinks=False)) for e in entries]
            except OSError:
                continue  # it is gone by now
            for name, now in found:
                was_moved = now.st_mtime_ns < self._started_ns <= now.st_ctime_ns
                excluded = rules.is_excluded and rules.is_excluded(path, name, now)
                if was_moved and not excluded:
                    moved = _joined(path, name)
                    self._tally.add_line(OmissionClass.OMISSION, moved, "moved-in", _READ_STAGE)
        self._visited.clear()

    def _leave_unchanged(self, opened: _Open, row: DirRow) -> _Child:
        self._tally.files += row.files
        self._tally.bytes += row.size_bytes
        self._tally.add_notes(decode_notes(row.notes), opened.file_system)
        self._tally.owners.update(decode_owners(row.pins))
        return _Child(row.tree, row.set_hash, is_changed=False)

    def _leave_changed(self, opened: _Open) -> _Child:
        if opened.is_same and opened.row is not None:
            opened.items = [_Item(line) for line in iter_lines(opened.row)]
        if opened.row is not None:
            self._repeat_notes(opened, decode_notes(opened.row.notes))
        lines: list[Line] = []
        entries: list[Entry] = []
        hashed = SetHash()
        files = 0
        for item in opened.items:
            line, entry = self._settled(item, opened)
            lines.append(line)
            if entry is None:
                continue
            entries.append(entry)
            hashed.add(entry, self._value_of(entry, opened))
            files += entry.type is not FileType.DIRECTORY
            self._count_bytes(opened, entry)
        names = [entry.name for entry in entries]
        encoded = [line.entry for line in lines if line.entry]
        tree, own = self._store_tree(names, encoded)
        self._tally.files += files
        self._tally.bytes += opened.size_bytes
        self._tally.add_notes(opened.notes, opened.file_system)
        row = self._put_row(opened, lines, tree=(tree, own), hashed=hashed.digest(), files=files)
        is_changed = opened.row is None or row.tree != opened.row.tree or not opened.is_believed
        return _Child(tree, row.set_hash, is_changed=is_changed)

    def _repeat_notes(self, opened: _Open, before: Notes) -> None:
        """Keep what the notes said of names whose lines are taken over as they were."""
        items = [one for one in opened.items if one.entry is None or one.is_kept_before]
        reused = {item.line.name for item in items}
        prefix = len(_joined(opened.path, b""))
        for one in before.databases:
            if one.name[len(b"sqlite:") + prefix :] in reused:
                opened.notes.databases.append(one)
        if opened.is_same or opened.is_taken_over:
            opened.notes.lines += before.lines
            return
        opened.notes.lines += [
            line
            for line in before.lines
            if line.kind is OmissionClass.REDACTION and line.path[prefix:] in reused
        ]

    def _settled(self, item: _Item, opened: _Open) -> tuple[Line, Entry | None]:
        line, entry = item.line, item.entry
        if not line.entry:
            return line, None
        if entry is None:
            entry = read_entry(line.entry)
        if entry.type is not FileType.DIRECTORY:
            return line, entry
        child = opened.children.get(entry.name)
        if child is None or child.tree is None:
            return Line(line.name, NEVER_EQUAL), None
        record = NEVER_EQUAL if entry.name in opened.troubled else line.record
        if entry.tree != child.tree or record != line.record:
            entry = entry._replace(tree=child.tree)
            line = Line(line.name, record, encode_entry(entry), line.owners)
        return line, entry

    def _value_of(self, entry: Entry, opened: _Open) -> bytes:
        if entry.type is FileType.DIRECTORY:
            return opened.children[entry.name].set_hash
        return set_value(entry)

    def _count_bytes(self, opened: _Open, entry: Entry) -> None:
        if entry.link_group is None:
            opened.size_bytes += entry.size
        else:
            opened.notes.links.append((entry.link_group, entry.size))

    def _store_tree(self, names: list[bytes], encoded: list[bytes]) -> tuple[ChunkId, set[int]]:
        leaves: list[tuple[bytes, ChunkId]] = []
        own: set[int] = set()
        for first, plaintext in cut_leaves(names, encoded):
            chunk, owner = self._sink.put(ChunkKind.TREE, plaintext)
            leaves.append((first, chunk))
            own.add(owner)
        if len(leaves) == 1:
            return leaves[0][1], own
        chunk, owner = self._sink.put(ChunkKind.TREE, encode_node(leaves))
        return chunk, own | {owner}

    def _put_row(
        self,
        opened: _Open,
        lines: list[Line],
        *,
        tree: tuple[ChunkId, set[int]],
        hashed: bytes,
        files: int,
    ) -> DirRow:
        if not opened.is_believed:
            lines = [line._replace(record=NEVER_EQUAL) for line in lines]
        record, entries, owners = encode_lines(lines)
        needed = set(tree[1])
        for line in lines:
            needed.update(line.owners)
        self._tally.owners.update(needed)
        row = DirRow(
            path=opened.path,
            tree=tree[0],
            set_hash=hashed,
            record=record,
            entries=entries,
            owners=owners,
            pins=encode_owners(needed),
            own=encode_owners(tree[1]),
            files=files,
            size_bytes=opened.size_bytes,
            notes=opened.notes.encode(),
        )
        self._catalog.put_dirs([row])
        return row


def _joined(folder: bytes, name: bytes) -> bytes:
    return folder + name if folder == b"/" else b"%s/%s" % (folder, name)


def _root_unreadable(path: bytes) -> SourceError:
    return SourceError(
        "root-unreadable",
        f"root {os.fsdecode(path)!r} cannot be read",
        hint="give the user that runs durarepo the right to read it",
    )


def _is_resumable(kept: Kept, record: bytes) -> bool:
    """Return whether the record alone tells a later run that the file is unchanged.

    It does not for a database: what was committed to its log does not show in its main file; and
    how much was taken out of a file does not show in its entry.
    """
    is_file = kept.entry.type is FileType.FILE
    return is_file and record != NEVER_EQUAL and kept.database is None and not kept.redacted


def _is_database(item: _Item) -> bool:
    if not item.line.entry:
        return item.is_database
    entry = item.entry if item.entry is not None else read_entry(item.line.entry)
    return entry.consistency is Consistency.SQLITE_BACKUP
