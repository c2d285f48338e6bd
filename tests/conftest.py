"""What every test shares: how hard Hypothesis tries, and what this machine lacks.

Profiles: ``dev`` by default, ``ci`` where CI is set, ``deep`` with
``--hypothesis-profile=deep``. ``ci`` is derandomized, so that a run tells about the change
and not about the day.
"""

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

TOOLS = ("git", "getfattr", "nginx", "rsync", "setcap", "setfacl", "sqlite3", "strace", "unshare")
"""Programs that interop tests compare with; .ci/run installs them."""

_PATIENT = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile(
    "ci", max_examples=200, deadline=None, derandomize=True, suppress_health_check=_PATIENT
)
settings.register_profile("deep", max_examples=5000, deadline=None, suppress_health_check=_PATIENT)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_configure() -> None:
    """Give children signals that end them, also where the suite runs in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_report_header() -> str:
    """Name the missing tools where a reader of a log looks first."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"missing tools: {' '.join(missing) or 'none'}"


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Let pytest remove the trees of deep-folder tests: it recurses, a descriptor a level."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip what only root may set up, and say so, where the tests do not run as root.

    Many tests need other owners, devices, mounts or a second user. CI runs them all.
    """
    report = yield
    if report.failed and os.geteuid() != 0 and call.excinfo and _needs_root(call.excinfo.value):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, "Skipped: needs root")
    return report


def _needs_root(error: BaseException) -> bool:
    """Tell what the system forbids to all but root (EPERM) from all other failures."""
    if isinstance(error, subprocess.CalledProcessError):
        return error.cmd[0] in {"chown", "mknod", "mount", "setcap", "unshare"}
    if isinstance(error, AssertionError):
        return "PermissionError: [Errno 1]" in str(error)  # raised in a child
    return isinstance(error, PermissionError) and error.errno == errno.EPERM
