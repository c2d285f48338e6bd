"""Five thousand secrets of every kind in one home, and none of them anywhere after a run.

The real program is run, each call under strace; then the store, decrypted and not, the state,
what was printed, arguments, environments and opened names are searched for each of them.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import hyperscan
import pytest

from durarepo.format.layout import ChunkKind
from durarepo.operations.exclude import judge_paths
from durarepo.repository.chain import Chain
from durarepo.repository.openpack import PackOpener
from tests.machines.plaintext import stored_plaintext
from tests.machines.stream import Stream
from tests.policy.canaries import Planted, plant

TOP = Path(__file__).resolve().parents[2]
LEAST = 5000
_CORE = 20
_OPENED = re.compile(rb'\b(?:execve|open|openat|openat2)\(.*?"')
_NO_FILE = (b"O_DIRECTORY", b"O_PATH")


@dataclass
class Runs:
    """What the runs of the program said, what they called, and how they ended."""

    stream: Stream
    planted: Planted
    said: list[bytes] = field(default_factory=list)
    shown: list[bytes] = field(default_factory=list)
    traces: list[bytes] = field(default_factory=list)
    codes: dict[str, int] = field(default_factory=dict)

    def run(self, *call: str, is_asked_for_names: bool = False, limit: int = 0) -> int:
        """Run the program to its end; ``limit`` bounds the size of what it may write."""
        log = self.stream.base / f"trace-{len(self.traces)}"
        strace = ["strace", "-f", "-qq", "-v", "-s", "8192", "--seccomp-bpf", "-o", str(log)]
        strace += ["-e", "trace=execve,execveat,open,openat,openat2,creat"]
        bound = ["prlimit", f"--fsize={limit}"] if limit else []
        places = self.stream.places
        done = subprocess.run(
            [*strace, *bound, sys.executable, "-m", "durarepo_cli.main", *call],
            env={
                "HOME": str(self.stream.base),
                "PATH": os.environ["PATH"],
                "PYTHONPATH": f"{TOP}:{TOP / 'cli'}",
                "DURAREPO_REPO": os.fsdecode(places.repository),
                "DURAREPO_KEYS": os.fsdecode(os.path.dirname(places.keys)),
                "DURAREPO_STATE": os.fsdecode(os.path.dirname(places.state)),
            },
            capture_output=True,
            check=False,
        )
        (self.shown if is_asked_for_names else self.said).append(done.stdout + done.stderr)
        self.traces.append(log.read_bytes())
        log.unlink()
        self.codes[" ".join(call)] = done.returncode
        return done.returncode


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Every command on a tree full of secrets, failing ones among them."""
    base = tmp_path_factory.mktemp("canaries")
    stream = Stream(base)
    done = Runs(stream, plant(stream.root, "five thousand"))
    done.run("snapshot", limit=200_000)  # the store is full
    done.run("snapshot", "-v")
    _touch_all(stream.root)
    done.run("snapshot", "--json")
    for call in (
        ("status",),
        ("log", "--json"),
        ("show", "latest"),
        ("ls", "latest", "--recursive"),
        ("find", "*"),
        ("diff", "1", "2"),
        ("diff", "2", "working"),
        ("verify", "--data"),
        ("verify", "--secrets", "--json"),
    ):
        done.run(*call)
    # Who restores is told what has to be set up anew, with its place.
    done.run("checkout", "--scratch", str(base / "scratch"), is_asked_for_names=True)
    done.run("show", "latest", "--ledger", "--json", is_asked_for_names=True)
    done.run("snapshot", "--dry-run", "--json", is_asked_for_names=True)
    stream.root.rename(base / "away")
    done.run("snapshot", "-v")
    (base / "away").rename(stream.root)
    yield done
    shutil.rmtree(base)


def _touch_all(root: Path) -> None:
    """Make every file look changed, so that a second run judges each of them anew."""
    for folder, _, files in os.walk(root):
        for name in files:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.utime(path, ns=(10**18, 10**18))


def _found(texts: list[bytes], places: Iterable[bytes]) -> set[bytes]:
    """Return which of ``texts`` occur in ``places``, as they are, in hexadecimal or base64."""
    forms = [form for one in texts for form in _forms(one)]
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=forms,
        ids=list(range(len(forms))),
        elements=len(forms),
        flags=hyperscan.HS_FLAG_SINGLEMATCH,
        literal=True,
    )
    hits: set[int] = set()
    for place in places:
        database.scan(place, match_event_handler=lambda number, *_: hits.add(number))
    each = len(forms) // len(texts)
    return {texts[number // each] for number in hits}


def _forms(one: bytes) -> list[bytes]:
    """Return five forms of the end of a secret; its beginning may be a prefix of many."""
    core = one[-_CORE:]
    shifted = [base64.b64encode(bytes(shift) + core) for shift in range(3)]
    cut = [coded[4 * (shift > 0) : -4] for shift, coded in enumerate(shifted)]
    return [core, core.hex().encode(), *cut]


def _objects(stream: Stream) -> Iterator[bytes]:
    return (path.read_bytes() for path in stream.object_files())


def _written(stream: Stream) -> Iterator[bytes]:
    """Yield every file beside root and objects: state, catalogue, journal, work, scratch."""
    for path in (stream.base / stream.name, stream.base / "scratch"):
        for one in path.rglob("*"):
            yield bytes(one.relative_to(stream.base))
            if one.is_symlink():
                yield os.readlink(bytes(one))
            elif one.is_file():
                yield one.read_bytes()
                yield from (os.getxattr(one, name) for name in os.listxattr(one))


def _without_ledgers(stream: Stream) -> Iterator[bytes]:
    """Yield the plaintext of all that is pinned but ledgers."""
    with stream.open() as repository:
        chain = Chain(repository)
        manifests = chain.all_verified(now=stream.clock())
        opener, identity = PackOpener(repository), repository.keys.need_identity()
        for manifest in manifests.values():
            yield repr(replace(chain.nested(manifest), ledger=b"")).encode()
            yield repr(manifest.statement).encode()
        for pin in {pin for one in manifests.values() for pin in one.statement.pins}:
            pack = opener.open(pin)
            for number, kind in enumerate(pack.index.kinds):
                if kind != ChunkKind.LEDGER:
                    ordinal = pack.frame_of(number)
                    yield pack.cut_checked(pack.read_frame(ordinal, identity), ordinal, number)


def test_every_run_ended_as_it_should(runs: Runs) -> None:
    """A run that failed early would have had nothing to leak."""
    codes = runs.codes

    assert len(runs.planted.values) >= LEAST
    assert codes.pop("snapshot -v") == 13  # the second one: its root was away
    assert codes.pop("snapshot") == 14
    assert set(codes.values()) <= {0, 1}, codes
    assert runs.stream.statements().keys() == {1, 2}


def test_no_secret_is_stored_written_or_said(runs: Runs) -> None:
    """AICEP 10.5.2: not in the store, not decrypted, not in state, logs, status or output."""
    stream, values = runs.stream, runs.planted.values
    plain = stored_plaintext(stream)

    assert _found(runs.planted.kept, [plain]) == set(runs.planted.kept)
    assert not _found(values, [plain])
    assert not _found(values, _objects(stream))
    assert not _found(values, _written(stream))
    assert not _found(values, runs.said + runs.shown)


def test_no_secret_is_in_an_argument_or_an_environment(runs: Runs) -> None:
    """What stands there, every user of the machine can read (A2e)."""
    calls = [line for trace in runs.traces for line in trace.splitlines() if b"execve" in line]

    assert len(calls) >= len(runs.traces)
    assert all(b"HOME=" in line for line in calls if b" = 0" in line)
    assert not _found(runs.planted.values + runs.planted.names, calls)


def test_names_that_were_left_out_stand_in_the_sealed_ledger_alone(runs: Runs) -> None:
    """Where a key lies says who to attack (decision 13)."""
    stream, names = runs.stream, runs.planted.names
    listed = {one for one in names if one.startswith(b"w")}  # the others lie in a folder listed

    assert len(listed) > 100
    assert listed <= _found(names, [stored_plaintext(stream)])
    assert not _found(names, _without_ledgers(stream))
    assert not _found(names, _objects(stream))
    assert not _found(names, _written(stream))
    assert not _found(names, runs.said)


def test_nothing_that_a_path_rule_leaves_out_is_opened(runs: Runs) -> None:
    """Exclusion happens before data is read (A2c), by libraries as well."""
    planted, root = runs.planted, bytes(runs.planted.root)
    unopened = {name.encode() for name in planted.unopened - planted.judged}
    opened: set[bytes] = set()

    for trace in runs.traces:
        for line in trace.splitlines():
            path = line.partition(b'"')[2].partition(b'"')[0]
            is_file = _OPENED.search(line) and not any(flag in line for flag in _NO_FILE)
            if is_file and (path.startswith(root) or not path.startswith(b"/")):
                opened.add(path.rpartition(b"/")[2])

    assert len(unopened) > 500
    assert len(opened & {name.encode() for name in planted.judged}) > 300
    assert not opened & unopened


Told = tuple[str, str | None, str | None]
"""Decision, rule and stage."""


def test_a_dry_run_and_a_test_of_each_path_say_what_the_snapshot_did(runs: Runs) -> None:
    """Advice that differs from the run is worse than none: decision, rule and stage alike."""
    ledger, dry = ([json.loads(line) for line in one.splitlines()] for one in runs.shown[-2:])
    did = _of_snapshot(runs, ledger)
    said = {one["path"]: (one["decision"], one["rule"], one["stage"]) for one in dry}
    paths = [path for path in sorted(did) if path in said]
    tested = judge_paths(bytes(runs.planted.root), map(os.fsencode, paths))
    judged = dict(zip(paths, tested, strict=True))

    assert len(paths) > 3000
    # Of a path that holds a secret the ledger has a short id, and the dry run a marker.
    assert not [path for path in did.keys() ^ said.keys() if "withheld" not in path]
    assert not {path: (did[path], said[path]) for path in paths if said[path] not in did[path]}
    assert not {
        path: (did[path], one.rule)
        for path, one in judged.items()
        if (str(one.decision), one.rule or None, one.stage and str(one.stage)) not in did[path]
    }


def _of_snapshot(runs: Runs, ledger: list[dict[str, str]]) -> dict[str, set[Told]]:
    """Return what became of each path; a redacted file can have several rules."""
    words = {"exclusion": "exclude", "redaction": "redact"}
    did: dict[str, set[Told]] = {}
    for line in ledger:
        if line["path"].startswith("/"):
            told = (words[line["kind"]], line["rule"], line["stage"])
            did.setdefault(line["path"], set()).add(told)
    for path, entry in runs.stream.entries(2).items():
        if entry.tree is None:
            did.setdefault(os.fsdecode(path), {("include", None, None)})
    return did
