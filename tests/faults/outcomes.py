"""Runs of the operations under a fault, and what their outcome may be.

A fault below the roots is a source error, or an omission that names what was left out; one in
repository or state is a store error; one in the keys folder concerns the keys. Whatever was said,
what was committed verifies, and the next run without a fault makes everything good.
Start at `Bench`.
"""

import json
import os
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from durarepo.core.errors import DurarepoError
from durarepo.operations.checkout import CheckoutRequest, checkout
from durarepo_cli.exits import SNAPSHOT_EXITS, Exit, exit_of
from tests.crash.disk import Picture, lay_out, pictured
from tests.crash.recorded import check_comes_back, check_goes_on, marked, verified
from tests.faults.injector import KINDS, SHORT, Fault, Injector
from tests.machines.stream import Stream, fill, later, omissions, seen

VERBS = ("snapshot", "verify", "checkout")
SHORT_READ = "short"
"""In the place of a kind of call: it did a part of its work, which is no failure."""

_UNHEALTHY = int(Exit.INTEGRITY)
_MAY_END = {
    "root": {Exit.OMISSIONS, Exit.SOURCE},
    "keys": {Exit.KEYS},
    "way": {Exit.KEYS, Exit.SOURCE, Exit.STORE},
    "objects": {Exit.STORE},
    "store": {Exit.STORE},
    "target": {Exit.STORE},
}
"""By what a fault is on: how a run may end that does not end well."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run under a fault said: exit code, error, omitted paths; and where the fault was.

    ``paths`` are those that the calls of each kind were about, in order.
    """

    code: int
    error: str
    left_out: tuple[bytes, ...]
    hit: bytes | None
    paths: dict[str, list[bytes]]


class Bench:
    """A stream with one snapshot and changed files, brought back to that before each run."""

    def __init__(self, base: Path) -> None:
        """Make the stream below a new folder, its path without links."""
        self.stream = stream = Stream(base)
        fill(stream.root, {f"d{n % 2}/f{n}": os.urandom(300 + 700 * n) for n in range(4)})
        os.symlink("f0", stream.root / "d0" / "link")
        with closing(sqlite3.connect(stream.root / "a.db", isolation_level=None)) as connection:
            connection.execute("CREATE TABLE t (x)")
            connection.execute("INSERT INTO t VALUES (1)")
        stream.snapshot()
        kept = seen(bytes(stream.root))
        self.kept = {path: kept[path] for path in kept if path and b".db" not in path}
        with closing(sqlite3.connect(stream.root / "a.db", isolation_level=None)) as connection:
            connection.execute("INSERT INTO t VALUES (2)")
        fill(stream.root, {"d0/f0": b"changed", "new/file": os.urandom(2000)})
        with stream.open() as repository:
            verified(repository)
        self.home = base / "notes"
        self.before = pictured(self.home)
        self.root_before = seen(bytes(stream.root))
        self.target = base / "target"

    # --- running ---

    def run(self, verb: str, fault: Fault | None) -> Outcome:
        """Do one operation in a child, with a fault, on the stream as it was in the beginning."""
        lay_out(self.home, self.before)
        shutil.rmtree(self.target, ignore_errors=True)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            try:
                os.write(writer, json.dumps(self._told(verb, fault)).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with open(reader, "rb") as pipe:
            said = pipe.read()
        os.waitpid(child, 0)
        assert said, f"{verb}: the child was lost"
        told = json.loads(said)
        left_out = tuple(os.fsencode(path) for path in told["left_out"])
        hit = None if told["hit"] is None else os.fsencode(told["hit"])
        paths = {kind: [os.fsencode(one) for one in found] for kind, found in told["paths"].items()}
        return Outcome(told["code"], told["error"], left_out, hit, paths)

    def _told(self, verb: str, fault: Fault | None) -> dict[str, object]:
        watched = [bytes(self.home), bytes(self.stream.root), bytes(self.target)]
        injector = Injector(watched, fault)
        injector.install()
        left_out: list[bytes] = []
        code, error = int(Exit.DONE), ""
        try:
            code, left_out = self._operate(verb)
        except DurarepoError as failure:
            code, error = int(exit_of(failure)), f"{failure.code}: {failure.message}"
        except BaseException as failure:  # noqa: BLE001  # that is what is looked for
            code, error = int(Exit.BUG), repr(failure)
        return {
            "code": code,
            "error": error,
            "left_out": [os.fsdecode(path) for path in left_out],
            "hit": None if injector.hit is None else os.fsdecode(injector.hit),
            "paths": {
                kind: [os.fsdecode(one) for one in found] for kind, found in injector.paths.items()
            },
        }

    def _operate(self, verb: str) -> tuple[int, list[bytes]]:
        if verb == "snapshot":
            result = self.stream.snapshot()
            return int(SNAPSHOT_EXITS[result.status]), [line.path for line in omissions(result)]
        if verb == "verify":
            with self.stream.open() as repository:
                return (int(Exit.DONE) if verified(repository).ok else _UNHEALTHY), []
        with self.stream.open() as repository:
            request = CheckoutRequest(destination=bytes(self.target))
            checkout(repository, request, clock=later)
        return int(Exit.DONE), []

    # --- what may be tried ---

    def faults(self, verb: str, *, region: str = "") -> list[Fault]:
        """Return every fault that a run of ``verb`` can meet, or those on what is of a region."""
        clean = self.run(verb, None)
        assert clean.code == 0, clean
        return [
            Fault(kind, number, error)
            for kind, paths in sorted(clean.paths.items())
            for number, path in enumerate(paths, start=1)
            if region in ("", self.region(path))
            for error in KINDS[kind][1]
        ]

    def share(self, verb: str, chance: random.Random, count: int) -> Iterator[Fault]:
        """Yield some faults: each kind and error is in it before one comes again."""
        faults = self.faults(verb)
        chance.shuffle(faults)
        turns: Counter[tuple[str, int]] = Counter()
        ordered: list[tuple[int, Fault]] = []
        for fault in faults:
            turns[fault.kind, fault.error] += 1
            ordered.append((turns[fault.kind, fault.error], fault))
        ordered.sort(key=itemgetter(0))
        yield from [fault for _, fault in ordered[:count]]

    # --- judging ---

    def check(self, verb: str, fault: Fault) -> None:
        """Run ``verb`` under a fault and check what it said and what it left; see `judge`."""
        kind = SHORT_READ if fault.error == SHORT else fault.kind
        self.judge(verb, str(fault), self.run(verb, fault), kind=kind)

    def judge(self, verb: str, fault: str, outcome: Outcome, *, kind: str = "") -> None:
        """Check what a run under a fault said and what it left.

        Raises:
            AssertionError: something does not hold; the message names run and fault.
        """
        try:
            assert outcome.code in self.allowed(verb, outcome.hit, kind)
            if verb == "snapshot":
                self._check_snapshot(outcome)
            elif verb == "verify":
                self._check_verify()
            else:
                self._check_checkout(outcome)
            assert seen(bytes(self.stream.root)) == self.root_before
        except Exception as error:
            text = f"{verb}, {fault}: {outcome.code} {outcome.error} {outcome.left_out}"
            raise AssertionError(f"{text} at {outcome.hit!r}: {error!r}") from error

    def region(self, path: bytes) -> str:
        """Return what a path belongs to: root, target, keys, objects, store, or the way there."""
        places, path = self.stream.places, path.rstrip(b"/")
        if (places.keys + b"/").startswith(path + b"/") or path == bytes(self.stream.root):
            return "way"
        for name, folder in (
            ("root", bytes(self.stream.root)),
            ("keys", places.keys),
            ("objects", places.objects),
            ("target", bytes(self.target)),
        ):
            if path == folder or path.startswith(folder + b"/"):
                return name
        return "store"

    def allowed(self, verb: str, hit: bytes | None, kind: str) -> set[int]:
        """Return the exit codes that a run may have after a fault at ``hit``."""
        if hit is not None and hit.endswith(b"lock"):  # its record is written in one piece
            return {Exit.DONE, Exit.STORE}
        if hit is None or kind == SHORT_READ:
            return {Exit.DONE}
        region = self.region(hit)
        if region == "objects" and verb == "verify" and kind in ("open", "read", "stat"):
            return {Exit.STORE, Exit.INTEGRITY}
        if region == "way" and hit == bytes(self.stream.root):
            return {Exit.DONE, *_MAY_END["root"], Exit.KEYS}  # it is compared with their place
        return {Exit.DONE, *_MAY_END[region]}

    def _check_snapshot(self, outcome: Outcome) -> None:
        if outcome.code == Exit.OMISSIONS:
            assert outcome.hit is not None
            assert any(_concerns(path, outcome.hit) for path in outcome.left_out)
            assert self.region(outcome.hit) in ("root", "way")
        with self.stream.open() as repository:
            found, marks = verified(repository), marked(repository)
            if outcome.code == Exit.DONE:
                check_comes_back(self.stream, repository)
        assert found.ok, found.problems
        made = outcome.code in (Exit.DONE, Exit.OMISSIONS)
        assert found.head in ((2,) if made else (1, 2))
        if found.head == 2 and not made:
            assert "stands" in outcome.error
        if made:
            assert marks == found.head
        objects = self._objects()
        check_goes_on(self.stream, found.head)
        assert objects.items() <= self._objects().items()

    def _check_verify(self) -> None:
        assert self._objects().items() == self._objects(self.before).items()
        with self.stream.open() as repository:
            assert verified(repository).ok

    def _check_checkout(self, outcome: Outcome) -> None:
        if os.path.lexists(self.target):  # whole and held, also where it could not be noted
            told = seen(os.path.join(bytes(self.target), bytes(self.stream.root).lstrip(b"/")))
            assert {path: told[path] for path in self.kept} == self.kept
            assert (self.target / ".durarepo" / "held.json").exists()
        else:
            assert outcome.code != Exit.DONE
        assert self._objects().items() == self._objects(self.before).items()
        shutil.rmtree(self.target, ignore_errors=True)
        self._operate("checkout")

    def _objects(self, picture: Picture | None = None) -> Picture:
        found = pictured(self.home) if picture is None else picture
        return {
            path: data
            for path, data in found.items()
            if b"/objects/" in path and data is not None and b"/.tmp-" not in path
        }


def _concerns(told: bytes, hit: bytes) -> bool:
    """Return whether an omission of ``told`` accounts for a fault at ``hit``."""
    below = told.rstrip(b"/") + b"/"
    sidecar = hit in (told + b"-wal", told + b"-journal", told + b"-shm")
    return told == hit or sidecar or hit.startswith(below) or os.path.dirname(told) == hit
