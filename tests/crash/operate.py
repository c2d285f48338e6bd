"""One operation on a prepared stream in a process of its own: `python -m tests.crash.operate`.

The arguments are the folder of the stream and ``init`` or ``snapshot``. The exit code is the one
of the command line. Start at `main`.
"""

import sys
from pathlib import Path

from durarepo_cli.exits import SNAPSHOT_EXITS
from tests.machines.stream import Stream


def main(arguments: list[str]) -> int:
    """Do what the arguments say and return the exit code."""
    folder, verb = arguments
    stream = Stream(Path(folder))  # makes the stream where there is none
    if verb == "init":
        return 0
    return int(SNAPSHOT_EXITS[stream.snapshot().status])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
