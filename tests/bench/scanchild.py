"""The exclusion policy measured: a child that runs our program with the policy replaced.

Run by the interpreter of an installed program, as ``scanchild.py MODE ROOT``. It changes classes
of its own process, so no switch exists in what is installed. Modes: ``none``, a first snapshot
without policy; ``re2`` and ``hyperscan``, one with that engine; ``read``, ``alone-re2`` and
``alone-hyperscan``, only a walk that reads every file, without and with judging it.
The last line it prints is how many files were judged.
Start at `main`.
"""

import os
import stat
import sys
from collections.abc import Callable, Iterator

MODES = ("none", "re2", "hyperscan", "read", "alone-re2", "alone-hyperscan")
_WINDOW_BYTES = 8 << 20

judged: list[int] = [0]


def _without_policy() -> None:
    """Replace every door of the policy: nothing is looked at, all is kept."""
    from durarepo.policy import decide, scanning
    from durarepo.source import pathjudge

    class Blind:
        """A scan that looks at nothing."""

        def feed(self, data: bytes) -> None:
            """Take bytes."""

        def feed_hole(self, length: int) -> None:
            """Take a hole."""

        def finish(self) -> scanning.Findings:
            """Return that nothing was found."""
            return scanning.CLEAN

    def kept(*_: object) -> decide.Judged:
        return decide.KEPT

    _set(decide.ContentPolicy, "judge", kept)
    _set(decide.ContentPolicy, "judge_scanned", kept)
    _set(decide.ContentPolicy, "holds_secret", lambda *_: False)
    _set(decide.ContentPolicy, "start_scan", lambda *_: Blind())
    _set(pathjudge.PathJudge, "__call__", lambda *_: None)


def _with_engine(name: str) -> None:
    """Take this engine wherever none is named, and count the files that are judged."""
    from durarepo.policy import decide

    if name == "re2":
        sys.modules["hyperscan"] = None  # type: ignore[assignment]  # as if not installed
    else:
        __import__("hyperscan")
    for door in ("judge", "start_scan"):
        _set(decide.ContentPolicy, door, _counted(getattr(decide.ContentPolicy, door)))


def _counted(call: Callable[..., object]) -> Callable[..., object]:
    def counted(*given: object) -> object:
        judged[0] += 1
        return call(*given)

    return counted


def _set(owner: type, name: str, value: object) -> None:
    setattr(owner, name, value)


def _snapshot() -> int:
    from durarepo_cli.main import main as run

    return run(["snapshot", "-q"])


def _alone(root: str, *, judges: bool) -> int:
    from durarepo.policy.decide import MEMORY_MAX_BYTES, ContentPolicy
    from durarepo.policy.scanner import open_engine
    from durarepo.source.pathjudge import PathJudge

    policy = ContentPolicy(open_engine()) if judges else None
    top = os.fsencode(root)
    paths = PathJudge([top], home=None, contents=policy)
    for folder, name, facts in _entries(top):
        if judges:
            paths(folder, name, facts)
        if not stat.S_ISREG(facts.st_mode):
            continue
        path = os.path.join(folder, name)
        with open(path, "rb", buffering=0) as file:
            if policy is None:
                while file.read(_WINDOW_BYTES):
                    pass
            elif facts.st_size <= MEMORY_MAX_BYTES:
                policy.judge(path, file.read())
            else:
                scan = policy.start_scan()
                while data := file.read(_WINDOW_BYTES):
                    scan.feed(data)
                policy.judge_scanned(path, scan.finish())
    return 0


def _entries(top: bytes) -> Iterator[tuple[bytes, bytes, os.stat_result]]:
    for folder, folders, names in os.walk(top):
        for name in folders + names:
            yield folder, name, os.lstat(os.path.join(folder, name))


def main(mode: str, root: str) -> int:
    """Run one mode and return its exit code."""
    if mode == "none":
        _without_policy()
    elif mode != "read":
        _with_engine(mode.removeprefix("alone-"))
    code = _alone(root, judges=mode != "read") if mode not in MODES[:3] else _snapshot()
    sys.stdout.write(f"judged {judged[0]}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
