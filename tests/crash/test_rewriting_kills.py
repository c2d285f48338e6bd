"""A rewriting run killed anywhere: the next one finishes it, and no manifest loses a byte."""

import os
from pathlib import Path

import pytest

from tests.crash.test_snapshot_kills import check_recovers, killed
from tests.machines.stream import Stream, fill

_STEP = 1 if os.environ.get("DURAREPO_TESTS_LONG") else 13


def _dying(folder: Path) -> Stream:
    stream = Stream(folder)
    path = Path(os.fsdecode(stream.places.configuration))
    path.write_text("max_object_bytes = 1048576\n" + path.read_text())
    fill(stream.root, {f"d{n % 3}/f{n:02}": os.urandom(100_000) for n in range(45)})
    stream.snapshot()
    for n in range(6, 45):
        (stream.root / f"d{n % 3}/f{n:02}").unlink()
    stream.snapshot()
    return stream


@pytest.mark.slow
def test_a_rewriting_killed_at_any_event_is_finished_by_the_next_run(tmp_path: Path) -> None:
    """Old packs may go unpinned only once what lived in them stands in new ones (A4a)."""
    event, deaths = 1, 0
    while True:
        stream = _dying(tmp_path / str(event))
        known = {path.name for path in stream.object_files()}
        if not killed(stream, event):
            break
        deaths += 1
        check_recovers(stream, known)
        statements = stream.statements()
        old = {pin.name for pin in statements[1].pins}
        assert not old & {pin.name for pin in statements[max(statements)].pins}
        event += _STEP
    assert deaths >= 3
