"""What every test shares: how hard Hypothesis tries, and which tools this machine lacks.

Profiles: ``dev`` by default, ``ci`` where CI is set, ``deep`` with
``--hypothesis-profile=deep``. ``ci`` is derandomized, so that a run tells about the change
and not about the day. Where a new test belongs is said in tests/README.md.
"""

import os
import resource
import shutil
import sys

import pytest
from hypothesis import HealthCheck, settings

TOOLS = ("git", "getfattr", "rsync", "setcap", "setfacl", "sqlite3", "unshare")
"""Programs that interop tests compare with; .ci/run installs them."""

_PATIENT = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile(
    "ci", max_examples=200, deadline=None, derandomize=True, suppress_health_check=_PATIENT
)
settings.register_profile("deep", max_examples=5000, deadline=None, suppress_health_check=_PATIENT)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


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
