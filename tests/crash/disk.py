"""What may stand on a disk after the power fails: a model of a POSIX file system, fed with calls.

It promises a program no more than POSIX does. What was written to a file and not followed by a
sync of that file may be missing, torn at any byte, kept in some of its sectors, or be zeros; a
name that was made, renamed or removed and not followed by a sync of its folder may be there or
not; and each of these independently of the order in which they were done.
After a kill without a loss of power all that was done stands, the last write perhaps in part.
Start at `Disk`: `record` takes the calls, `crashed` gives one of the states at an event.
"""

import os
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.trace import Call

Picture = dict[bytes, bytes | None]
"""What stands below a folder: the bytes of each file by its path, None for a folder."""

KILL, LOST, TORN = "kill", "lost", "torn"
MODES = (KILL, LOST, TORN)
"""All that was done stands; nothing that was not synced does; chance decides for each change."""

_SECTOR = 512


@dataclass(slots=True)
class _Change:
    """One change: bytes or the length of a file, or names of folders; ``synced`` is when."""

    event: int
    subject: int
    offset: int = 0
    data: bytes = b""
    size: int | None = None
    gone: tuple[tuple[int, bytes], ...] = ()
    made: tuple[tuple[int, bytes, int], ...] = ()
    synced: int | None = None


@dataclass(slots=True)
class _Open:
    """An open file: which it is, and where the next write goes."""

    subject: int
    offset: int = 0
    appends: bool = False


@dataclass(slots=True)
class Disk:
    """The folder ``top`` as a recorded program changed it, event by event."""

    top: bytes
    before: Picture
    events: int = 0
    _contents: list[bytes | None] = field(default_factory=list)
    _names: dict[int, dict[bytes, int]] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)
    _changes: list[_Change] = field(default_factory=list)
    _pending: dict[int, list[_Change]] = field(default_factory=dict)
    _open: dict[int, _Open] = field(default_factory=dict)
    _start: dict[int, dict[bytes, int]] = field(default_factory=dict)
    _above: dict[int, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take over what stood there before; it counts as durable."""
        self._new(None)
        for path in sorted(self.before):
            folder, name = self._place(path)
            self._names[folder][name] = self._new(self.before[path])
        self._start = {folder: dict(names) for folder, names in self._names.items()}

    def record(self, calls: list[Call]) -> None:
        """Follow the calls of one program, in order.

        Raises:
            NotImplementedError: one that this model does not know changed a file of it.
        """
        for call in calls:
            _FOLLOWED.get(call.name, Disk._unknown)(self, call)

    def after(self) -> Picture:
        """Return what stands there when all of it was done and the power stayed."""
        return self.crashed(self.events, KILL, random.Random(0))  # noqa: S311  # no secret

    def crashed(self, event: int, mode: str, chance: random.Random) -> Picture:
        """Return one state in which the disk may be found after a crash at ``event``.

        Args:
            event: 0 for before anything, `events` for after all of it.
            mode: one of `MODES`.
            chance: decides about each change that is not durable.
        """
        contents = [None if data is None else bytearray(data) for data in self._contents]
        names = {folder: dict(found) for folder, found in self._start.items()}
        kept = chance.choice((0.1, 0.5, 0.9))
        for change in self._changes:
            if change.event > event:
                break
            durable = change.synced is not None and change.synced <= event
            is_last = mode == KILL and change.event == event and event < self.events
            if durable or (mode == KILL and not is_last):
                _apply(change, contents, names)
            elif is_last or (mode == TORN and chance.random() < kept):
                _apply_torn(change, contents, names, chance)
        return _pictured(contents, names)

    # --- following calls ---

    def _closed(self, call: Call) -> None:
        self._forget(int(call.arguments[0]))

    def _moved(self, call: Call) -> None:
        at = self._open.get(int(call.arguments[0]))
        if at is not None:
            at.offset = call.result

    def _wrote(self, call: Call) -> None:
        at = self._open.get(int(call.arguments[0]))
        if at is None:
            return
        if at.appends:
            at.offset = self._sizes[at.subject]
        self._written(at.subject, at.offset, b"".join(call.strings)[: call.result])
        at.offset += call.result

    def _wrote_at(self, call: Call) -> None:
        at = self._open.get(int(call.arguments[0]))
        if at is not None:
            data = call.strings[0][: call.result]
            self._written(at.subject, int(call.arguments[3]), data)

    def _resized(self, call: Call) -> None:
        at = self._open.get(int(call.arguments[0]))
        if at is not None:
            size = int(call.arguments[1])
            self._change(_Change(self._next(), at.subject, size=size))
            self._sizes[at.subject] = size

    def _synced(self, call: Call) -> None:
        at = self._open.get(int(call.arguments[0]))
        if at is not None:
            event = self._next()
            for change in self._pending.pop(at.subject, ()):
                change.synced = event

    def _unknown(self, call: Call) -> None:
        """Refuse what this model does not follow where it touches what is recorded."""
        touched = any(self._inside(b"", path) for path in call.strings if path.startswith(b"/"))
        given = [int(text) for text in call.arguments if text.isdigit()]
        if touched or any(descriptor in self._open for descriptor in given):
            raise NotImplementedError(call.name)

    def _opened(self, call: Call) -> None:
        beside = call.arguments[0] if call.name == "openat" else "AT_FDCWD"
        flags = call.arguments[2 if call.name == "openat" else 1]
        found = self._inside(beside.encode(), call.strings[0])
        self._forget(call.result)
        if found is None:
            self._note_above(beside.encode(), call)
            return
        folder, name = found
        subject = self._names.get(folder, {}).get(name) if name else folder
        if "O_TMPFILE" in flags:
            subject = self._new(b"")
        elif subject is None:
            subject = self._new(b"")
            self._rename_entries(made=((folder, name, subject),))
        elif "O_TRUNC" in flags and self._sizes.get(subject):
            self._change(_Change(self._next(), subject, size=0))
            self._sizes[subject] = 0
        self._open[call.result] = _Open(subject, appends="O_APPEND" in flags)

    def _duplicated(self, call: Call) -> None:
        old, new = int(call.arguments[0]), call.result
        self._forget(new)
        if old in self._open:
            self._open[new] = self._open[old]
        if old in self._above:
            self._above[new] = self._above[old]

    def _forget(self, descriptor: int) -> None:
        self._open.pop(descriptor, None)
        self._above.pop(descriptor, None)

    def _note_above(self, beside: bytes, call: Call) -> None:
        """Remember a folder on the way to the top, from which a program walks on."""
        path = self._absolute(beside, call.strings[0])
        if (self.top + b"/").startswith(path.rstrip(b"/") + b"/"):
            self._above[call.result] = path

    def _absolute(self, beside: bytes, path: bytes) -> bytes:
        above = self._above.get(int(beside)) if beside.isdigit() else None
        if path.startswith(b"/") or above is None:
            return path
        return above if path == b"." else above.rstrip(b"/") + b"/" + path

    def _made_folder(self, call: Call) -> None:
        beside = call.arguments[0] if call.name == "mkdirat" else "AT_FDCWD"
        found = self._inside(beside.encode(), call.strings[0])
        if found is not None:
            self._rename_entries(made=((*found, self._new(None)),))

    def _removed(self, call: Call) -> None:
        beside = call.arguments[0] if call.name == "unlinkat" else "AT_FDCWD"
        found = self._inside(beside.encode(), call.strings[0])
        if found is not None:
            self._rename_entries(gone=(found,))

    def _controlled(self, call: Call) -> None:
        if "F_DUPFD" in call.arguments[1]:
            self._duplicated(call)

    def _linked(self, call: Call) -> None:
        source, target = self._both(call)
        if target is not None:
            subject = self._subject(source, call.strings[0])
            self._rename_entries(made=((*target, subject),))

    def _renamed(self, call: Call) -> None:
        source, target = self._both(call)
        if (source is None) != (target is None):
            raise NotImplementedError("a rename into or out of what is recorded")
        if source is not None and target is not None:
            subject = self._names[source[0]][source[1]]
            self._rename_entries(gone=(source,), made=((*target, subject),))

    def _both(self, call: Call) -> tuple[tuple[int, bytes] | None, tuple[int, bytes] | None]:
        first, second = ("AT_FDCWD", "AT_FDCWD")
        if call.name not in ("link", "rename"):
            first, second = call.arguments[0], call.arguments[2]
        old = self._inside(first.encode(), call.strings[0])
        return old, self._inside(second.encode(), call.strings[1])

    def _subject(self, source: tuple[int, bytes] | None, path: bytes) -> int:
        if source is not None:
            return self._names[source[0]][source[1]]
        return self._open[int(path.removeprefix(b"/proc/self/fd/"))].subject

    def _inside(self, beside: bytes, path: bytes) -> tuple[int, bytes] | None:
        """Return folder and name of a path, or None where it is not below the top."""
        path = self._absolute(beside, path)
        if path.startswith(b"/"):
            if path != self.top and not path.startswith(self.top + b"/"):
                return None
            rest = path[len(self.top) + 1 :].rstrip(b"/")
            return self._place(rest) if rest else (0, b"")
        at = self._open.get(int(beside)) if beside.isdigit() else None
        if at is None or at.subject not in self._names:
            return None
        if path == b".":
            return at.subject, b""
        if b"/" in path or path == b"..":
            raise NotImplementedError(f"a relative path of two steps: {path!r}")
        return at.subject, path

    def _place(self, path: bytes) -> tuple[int, bytes]:
        *above, name = path.split(b"/")
        folder = 0
        for part in above:
            folder = self._names[folder].get(part, -1)
            if folder not in self._names:
                return -1, name  # nothing can be made there
        return folder, name

    # --- changing ---

    def _new(self, content: bytes | None) -> int:
        self._contents.append(content)
        subject = len(self._contents) - 1
        if content is None:
            self._names[subject] = {}
        else:
            self._sizes[subject] = len(content)
        return subject

    def _next(self) -> int:
        self.events += 1
        return self.events

    def _written(self, subject: int, offset: int, data: bytes) -> None:
        self._change(_Change(self._next(), subject, offset=offset, data=data))
        self._sizes[subject] = max(self._sizes[subject], offset + len(data))

    def _rename_entries(
        self,
        *,
        gone: tuple[tuple[int, bytes], ...] = (),
        made: tuple[tuple[int, bytes, int], ...] = (),
    ) -> None:
        for folder, name in gone:
            self._names[folder].pop(name, None)
        for folder, name, subject in made:
            self._names[folder][name] = subject
        folder = made[0][0] if made else gone[0][0]
        self._change(_Change(self._next(), folder, gone=gone, made=made))

    def _change(self, change: _Change) -> None:
        self._changes.append(change)
        self._pending.setdefault(change.subject, []).append(change)


_FOLLOWED = {
    **dict.fromkeys(("open", "openat", "creat"), Disk._opened),
    **dict.fromkeys(("dup", "dup2", "dup3"), Disk._duplicated),
    **dict.fromkeys(("mkdir", "mkdirat"), Disk._made_folder),
    **dict.fromkeys(("unlink", "unlinkat", "rmdir"), Disk._removed),
    **dict.fromkeys(("link", "linkat"), Disk._linked),
    **dict.fromkeys(("rename", "renameat", "renameat2"), Disk._renamed),
    **dict.fromkeys(("write", "writev"), Disk._wrote),
    **dict.fromkeys(("fsync", "fdatasync"), Disk._synced),
    "close": Disk._closed,
    "fcntl": Disk._controlled,
    "lseek": Disk._moved,
    "pwrite64": Disk._wrote_at,
    "ftruncate": Disk._resized,
}

Contents = list[bytearray | None]
Names = dict[int, dict[bytes, int]]


def _apply(change: _Change, contents: Contents, names: Names) -> None:
    for folder, name in change.gone:
        names.setdefault(folder, {}).pop(name, None)
    for folder, name, subject in change.made:
        names.setdefault(folder, {})[name] = subject
    content = contents[change.subject]
    if content is None:
        return
    if change.size is not None:
        _resize(content, change.size)
    elif change.data:
        _resize(content, max(len(content), change.offset + len(change.data)))
        content[change.offset : change.offset + len(change.data)] = change.data


def _apply_torn(change: _Change, contents: Contents, names: Names, chance: random.Random) -> None:
    """Apply a change in part: all of it, a beginning, some sectors, or its length alone."""
    content = contents[change.subject]
    how = chance.randrange(4)
    if content is None or not change.data or how == 0:
        _apply(change, contents, names)
        return
    end = change.offset + len(change.data)
    if how == 1:  # torn at a byte
        length = chance.randrange(len(change.data) + 1)
        end = change.offset + length
        _resize(content, max(len(content), end))
        content[change.offset : end] = change.data[:length]
        return
    _resize(content, max(len(content), end))
    if how == 2:  # some sectors
        for at in range(0, len(change.data), _SECTOR):
            if chance.random() < 0.5:
                piece = change.data[at : at + _SECTOR]
                content[change.offset + at : change.offset + at + len(piece)] = piece
    elif chance.random() < 0.5:  # zeros in all its length
        content[change.offset : end] = bytes(len(change.data))


def _resize(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


def _pictured(contents: Contents, names: Names) -> Picture:
    """Return what can be reached from the top."""
    found: Picture = {}
    waiting = [(b"", 0)]
    while waiting:
        above, folder = waiting.pop()
        for name, subject in names.get(folder, {}).items():
            content = contents[subject]
            path = above + name
            if content is None:
                found[path] = None
                waiting.append((path + b"/", subject))
            else:
                found[path] = bytes(content)
    return found


def pictured(top: Path) -> Picture:
    """Return what stands below a folder; links and special files are not expected there."""
    found: Picture = {}
    for above, folders, files in os.walk(bytes(top)):
        inside = (above[len(bytes(top)) + 1 :] + b"/").removeprefix(b"/")
        found |= dict.fromkeys((inside + name for name in folders), None)
        for name in files:
            with open(os.path.join(above, name), "rb") as file:
                found[inside + name] = file.read()
    return found


def lay_out(top: Path, picture: Picture) -> None:
    """Let exactly ``picture`` stand below a folder, for its owner alone."""
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir(parents=True, mode=0o700)
    for path in sorted(picture):
        content = picture[path]
        target = os.path.join(bytes(top), path)
        if content is None:
            os.mkdir(target, 0o700)
            continue
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(content)
