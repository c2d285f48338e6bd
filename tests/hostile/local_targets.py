"""Targets of this machine: configuration, lists of patterns, and the files of state and keys.

A reader of a file is given what is to be tried in the file's place.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from durarepo.core.names import Digest, ObjectName, Sequence, SignerId
from durarepo.format.keytext import encode_key, parse_key
from durarepo.local.audit import AuditLog
from durarepo.local.checked import CheckedPacks
from durarepo.local.configuration import RemoteConfig, parse_configuration
from durarepo.local.journal import Journal
from durarepo.local.lastrun import LastRun
from durarepo.local.lastverify import LastVerify, Outcome, PackFinding
from durarepo.local.lock import RunLock, read_holder
from durarepo.local.remotes import Checked, RemoteNotes
from durarepo.local.secretfiles import read_secret
from durarepo.local.statefiles import (
    HighWater,
    LivePin,
    LivePins,
    PinnedManifest,
    RunRecord,
    StateFiles,
)
from durarepo.local.work import WorkFolder
from durarepo.policy.allow import parse_until
from durarepo.policy.ignorefile import is_ignored, parse_ignore
from durarepo.repository.chunks import decode_owners, encode_owners
from durarepo.repository.tally import Notes, decode_notes
from durarepo.source.mounts import MountTable, parse_mountinfo
from durarepo.source.sqlitestate import is_sidecar, is_sqlite
from durarepo.store.atomic import HeldLock
from durarepo.store.capabilities import Can, Capabilities
from tests.hostile.target import LawError, Target, damage_is_value_error

_NOW = datetime.fromtimestamp(1_800_000_000, UTC)
_TOML = (
    b'stream = "notes"\ncompartment = "main"\nretention_days = 30\nbudget = "4h"\n'
    b'[human]\nname = "x"\nchannels = ["mail:x"]\n'
    b'[[root]]\npath = "/srv/notes"\nexclude = ["*.tmp"]\none_filesystem = true\n'
    b'[[component]]\nname = "db"\nkind = "sqlite"\npath = "/srv/notes/a.db"\n'
    b'[[remote]]\nname = "r"\nurl = "file:///mnt/"\n'
)
_IGNORE = b"# a comment\n*.log\n!keep.log\n/build/\na/**/b\n[a-c!]?\\ \n**/x\n"
_MOUNTS = (
    b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    b"30 22 0:25 / /mnt/a\\040b rw - tmpfs tmpfs rw,size=1k\n"
)
_FILES = ("high-water.json", "head.json", "runs.jsonl", "checked.json", "verified.json",
          "audit.jsonl", "current", "lock", "made.jsonl", "naming.key", "remotes.json",
          "failed.json")  # fmt: skip
_REMOTE = RemoteConfig(name="r", url="file:///mnt/")


def local_targets(folder: Path) -> list[Target]:
    """Return the targets; files that they read are written to ``folder``."""
    return [*_values(), *_files(folder)]


def _values() -> list[Target]:
    owners = encode_owners([1, 2, 70_000])
    notes = Notes()
    notes.links = [(5, 6)]
    return [
        Target(name="parse_configuration", parse=parse_configuration, seeds=(_TOML,),
               covers=("durarepo.local.configuration:parse_configuration",
                       "durarepo.local.configuration:parse_seconds")),
        Target(name="parse_ignore", parse=_ignore, seeds=(_IGNORE,),
               covers=("durarepo.policy.ignorefile:parse_ignore",)),
        Target(name="parse_mountinfo", parse=_mounts, seeds=(_MOUNTS,),
               covers=("durarepo.source.mounts:parse_mountinfo",)),
        Target(name="is_sqlite", parse=_sniff, seeds=(b"SQLite format 3\0" + bytes(84),),
               covers=("durarepo.source.sqlitestate:is_sqlite",)),
        Target(name="decode_notes", parse=damage_is_value_error(_notes), seeds=(notes.encode(),),
               covers=("durarepo.repository.tally:decode_notes",)),
        Target(name="decode_owners", parse=damage_is_value_error(decode_owners), seeds=(owners,),
               covers=("durarepo.repository.chunks:decode_owners",)),
        Target(name="parse_until", parse=lambda data: parse_until(data.decode("latin-1")),
               seeds=(b"2027-02-28",), covers=("durarepo.policy.allow:parse_until",)),
    ]  # fmt: skip


def _notes(data: bytes) -> Notes:
    """Decode notes; none at all may stand there in two ways, and all else is read as written."""
    notes = decode_notes(data)
    again = notes.encode()
    if decode_notes(again).encode() != again or (again and again != data):
        raise LawError("what was taken encodes to other bytes")
    return notes


def _ignore(data: bytes) -> object:
    """Parse a file of patterns and ask it of a few paths; no line may be an error or a trap."""
    file = parse_ignore(data, b"/srv/notes")
    for path in (b"/srv/notes/a.log", b"/srv/notes/a/b/c", b"/srv/notes/" + b"a" * 60):
        if is_ignored([file], path, is_folder=True) not in (True, False):
            raise LawError("no answer")
    return file


def _mounts(data: bytes) -> object:
    table = MountTable(parse_mountinfo(data))
    if not table.mount_point_of(b"/mnt/a b/c"):
        raise LawError("a path lies below no mount point")
    return table


def _sniff(data: bytes) -> object:
    first = data[:16].ljust(16, b"\0")
    return [is_sqlite(first), is_sidecar(b"a-wal", first, len(data)),
            is_sidecar(b"a-shm", first, len(data)),
            is_sidecar(b"a-journal", first, len(data))]  # fmt: skip


def _files(folder: Path) -> list[Target]:
    """Return readers of files: what they are given is put in the file's place."""
    base = bytes(folder)
    state = StateFiles(base)
    seeds = _state_files(folder)
    work = WorkFolder(base, cast("HeldLock", None))  # reading its journal needs no lock
    last = LastVerify(base)
    readers: dict[str, tuple[Callable[[], object], str]] = {
        "high-water.json": (state.high_water, "statefiles"),
        "head.json": (state.live_pins, "statefiles"),
        "runs.jsonl": (state.runs, "statefiles"),
        "checked.json": (CheckedPacks(base).times, "checked"),
        "verified.json": (lambda: (last.outcome(), last.bad_packs()), "lastverify"),
        "audit.jsonl": (AuditLog(base + b"/audit.jsonl").check, "audit"),
        "current": (Journal(base).load, "journal"),
        "lock": (lambda: _holder(folder / "lock"), "lock"),
        "made.jsonl": (work._named, "work"),
        "failed.json": (LastRun(base).failure, "lastrun"),
        "remotes.json": (lambda: RemoteNotes(base).of(_REMOTE), "remotes"),
        "naming.key": (
            lambda: parse_key("naming", read_secret(base + b"/naming.key")), "secretfiles",
        ),
    }  # fmt: skip

    def reads(name: str, read: Callable[[], object], module: str) -> Target:
        path = folder / name

        def parse(data: bytes) -> object:
            path.write_bytes(data)
            return read()

        return Target(name=name, parse=parse, seeds=(seeds[name],),
                      covers=(f"durarepo.local.{module}:",))  # fmt: skip

    return [reads(name, *readers[name]) for name in _FILES]


def _holder(path: Path) -> object:
    with path.open("rb") as file:
        return read_holder(file.fileno())


def _state_files(folder: Path) -> dict[str, bytes]:
    base, name, digest = bytes(folder), ObjectName("ab" * 32), Digest(bytes(32))
    state = StateFiles(base)
    state.raise_high_water(
        HighWater(epoch=1, sequence=Sequence(1), head_digest=digest, registry_version=1,
                  clock_seconds=0)
    )  # fmt: skip
    pins = (LivePin(pack=name, size_bytes=32768, index_digest=digest, registry_version=1),)
    pinned = PinnedManifest(epoch=1, sequence=Sequence(1), name=name, digest=digest, pins=pins)
    state.replace_live_pins(LivePins(head=pinned, complete=None))
    run = RunRecord(
        epoch=1, sequence=Sequence(1), name=name, digest=digest, issued=1, expires=2, type="auto",
        files=1, dirs=1, bytes=1, signer=SignerId(bytes(32)), complete=True, omissions=0,
        pinned_packs=1,
    )  # fmt: skip
    state.append_run(run)
    CheckedPacks(base).note([name], 5, pinned={name})
    outcome = Outcome(level="packs", is_share=False, at=5, ok=False, problems=1)
    LastVerify(base).note(outcome, {name: PackFinding(is_bad=True, level="packs")})
    AuditLog(base + b"/audit.jsonl").append("made", {"count": 1}, _NOW)
    with Journal(base) as journal:
        journal.begin(b"header")
        journal.append(b"a record")
        journal.append(b"another")
    with RunLock(base + b"/lock", now=_NOW):
        held = (folder / "lock").read_bytes()
    (folder / "made.jsonl").write_bytes(
        b'{"made":"/tmp/x","boot":"b","device":1,"inode":2}\n{"gone":"/tmp/x"}\n'
    )
    LastRun(base).note_failure("store.full", at=5)
    RemoteNotes(base).note(_REMOTE, Checked(at=5, capabilities=Capabilities(range=Can.YES)))
    key = folder / "naming.key"
    key.write_text(encode_key("naming", bytes(32)))
    key.chmod(0o600)
    folder.chmod(0o700)
    return {name: (folder / name).read_bytes() for name in _FILES} | {"lock": held}
