"""Quickstart tells what differs from the source for a reason from what was not kept whole."""

import os
import time
from pathlib import Path

import pytest

from durarepo.core.progress import SilentProgress
from durarepo.local.places import Bases
from durarepo.operations.checkout import CheckedOut, checkout
from durarepo.operations.quickstart import quickstart


def test_a_damaged_database_is_an_omission_and_not_changed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Called changed, a database that may not open would be missed when it is needed."""
    root = tmp_path / "notes"
    root.mkdir()
    for name, content in (("a", b"a"), ("b", b"b"), ("bad.db", b"SQLite format 3\0" + b"x" * 9999)):
        (root / name).write_bytes(content)
    bases = Bases(
        repositories=bytes(tmp_path / "repositories"),
        keys=bytes(tmp_path / "keys"),
        state=bytes(tmp_path / "state"),
    )

    def then_write(*given: object, **named: object) -> CheckedOut:
        done = checkout(*given, **named)  # type: ignore[arg-type]  # handed on as it is
        for name in ("b", "bad.db"):
            with (root / name).open("ab") as file:
                file.write(b"more")
        return done

    monkeypatch.setattr("durarepo.operations.quickstart.checkout", then_write)
    done = quickstart(
        os.fsencode(root), bases=bases, clock=lambda: int(time.time()), progress=SilentProgress()
    )

    assert (done.compared, done.databases, done.moved_on, done.unsure) == (1, 0, 1, 1)
    assert done.snapshot.omissions == 1
    assert [os.path.basename(line.path) for line in done.snapshot.left_out] == [b"bad.db"]
