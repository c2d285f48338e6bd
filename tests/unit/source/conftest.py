"""Shared by the tests of the source floor: running a check as a user without rights."""

import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

NOBODY = 65534


@pytest.fixture
def open_tree() -> Iterator[Path]:
    """Give a folder that also an unprivileged user can reach."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)  # noqa: S103  # the other user has to get in
        yield Path(folder)


def check_as_nobody(check: Callable[[], None]) -> None:
    """Run ``check`` in a child without rights; fail here if it fails there."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            check()
            status = 0
        except BaseException:  # noqa: BLE001  # whatever it is, the parent reports it
            os.write(write_end, traceback.format_exc()[-4000:].encode())
        finally:
            sys.stdout.flush()
            os._exit(status)
    os.close(write_end)
    with open(read_end) as report:
        text = report.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, text


@pytest.fixture(name="check_as_nobody")
def check_as_nobody_fixture() -> Callable[[Callable[[], None]], None]:
    """Give `check_as_nobody`."""
    return check_as_nobody
