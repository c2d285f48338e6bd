"""The audit log: it grows, survives a kill, and a changed line shows."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from durarepo.core.errors import IntegrityError
from durarepo.core.names import ZERO_DIGEST
from durarepo.local.audit import AuditLog

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the path of a log of five lines."""
    log = AuditLog(bytes(tmp_path / "audit"))
    for number in range(5):
        log.append("snapshot", {"sequence": number, "complete": True, "why": None}, NOW)
    return tmp_path / "audit"


def test_head_is_what_the_last_append_returned(path: Path) -> None:
    """The head goes into signed manifests; two ways to it must agree."""
    log = AuditLog(bytes(path))

    head = log.append("push", {"remote": "a\nb\x1b"}, NOW)

    assert log.head() == log.check() == head
    assert path.read_bytes().count(b"\n") == 6


def test_empty_log_has_the_head_of_zeros(tmp_path: Path) -> None:
    """A first manifest has an audit head too."""
    log = AuditLog(bytes(tmp_path / "audit"))

    assert log.head() == log.check() == ZERO_DIGEST
    assert not (tmp_path / "audit").exists()


def test_any_change_before_the_last_line_breaks_the_chain(path: Path) -> None:
    """An edited history must not pass (hash chain)."""
    lines = path.read_bytes().splitlines(keepends=True)
    spoiled = {
        "edited": [lines[0], lines[1].replace(b"snapshot", b"snapshoT"), *lines[2:]],
        "dropped": [*lines[:2], *lines[3:]],
        "first dropped": lines[1:],
        "swapped": [lines[0], lines[2], lines[1], *lines[3:]],
        "doubled": [lines[0], *lines],
        "no json": [b"{\n", *lines],
        "no object": [b"[]\n", *lines],
        "deep": [b"[" * 100_000 + b"\n", *lines],
        "empty line": [*lines[:2], b"\n", *lines[2:]],
    }

    for what, changed in spoiled.items():
        path.write_bytes(b"".join(changed))
        with pytest.raises(IntegrityError) as caught:
            AuditLog(bytes(path)).check()
        assert caught.value.code == "integrity.audit-chain", what


def test_cut_end_shows_against_the_head_that_was_signed(path: Path) -> None:
    """A shorter log is a valid chain; only its head tells."""
    log = AuditLog(bytes(path))
    signed = log.head()

    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))

    assert log.check() != signed


def test_torn_tail_is_no_damage_and_the_next_line_follows(path: Path) -> None:
    """A kill in an append must not make the history look forged."""
    log = AuditLog(bytes(path))
    head = log.head()
    with path.open("ab") as stream:
        stream.write(b'{"before":"')

    assert log.check() == head
    log.append("takeover", {}, NOW)

    assert log.check() == log.head()
    assert path.read_bytes().count(b"\n") == 6


def test_line_that_is_too_long_is_refused_and_nothing_changes(path: Path) -> None:
    """A log that cannot be read back helps nobody."""
    before = path.read_bytes()

    with pytest.raises(ValueError, match="bytes"):
        AuditLog(bytes(path)).append("note", {"text": "x" * 20_000}, NOW)

    assert path.read_bytes() == before


def test_appends_of_two_processes_make_one_chain(path: Path) -> None:
    """A dead-man check takes no lock and writes here as well."""
    children = []
    for number in range(3):
        child = os.fork()
        if child == 0:
            for count in range(30):
                AuditLog(bytes(path)).append("deadman", {"n": number, "count": count}, NOW)
            os._exit(0)
        children.append(child)
    codes = [os.waitpid(child, 0)[1] for child in children]

    assert codes == [0, 0, 0]
    assert AuditLog(bytes(path)).check() == AuditLog(bytes(path)).head()
    assert path.read_bytes().count(b"\n") == 95
