"""A snapshot in a process of its own, its outcome as JSON: `python -m tests.faults.operate`.

The argument is the folder of the stream. Start at `main`.
"""

import json
import os
import sys
from pathlib import Path

from durarepo.core.errors import DurarepoError
from durarepo.core.progress import SilentProgress
from durarepo.local.places import bases_of, places_of
from durarepo.operations.snapshot import SnapshotRequest, SnapshotResult, snapshot
from durarepo.repository.repository import open_repository
from durarepo_cli.exits import SNAPSHOT_EXITS, Exit, exit_of
from tests.machines.stream import later, omissions


def main(arguments: list[str]) -> int:
    """Take the snapshot and tell how it ended, as the command line would."""
    left_out: list[str] = []
    error = ""
    try:
        result = _snapshot(Path(arguments[0]))
        code = int(SNAPSHOT_EXITS[result.status])
        left_out = [os.fsdecode(line.path) for line in omissions(result)]
    except DurarepoError as failure:
        code, error = int(exit_of(failure)), f"{failure.code}: {failure.message}"
    except Exception as failure:  # noqa: BLE001  # that is what is looked for
        code, error = int(Exit.BUG), repr(failure)
    sys.stdout.write(json.dumps({"code": code, "error": error, "left_out": left_out}))
    return 0


def _snapshot(base: Path) -> SnapshotResult:
    home = {"HOME": str(base / "notes" / "home")}
    with open_repository(places_of("notes", bases=bases_of(home, user_id=1))) as repository:
        return snapshot(repository, SnapshotRequest(), clock=later, progress=SilentProgress())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
