"""Shared set-up: one thread per library, so that tests on two cores do not fight; hypothesis that repeats itself."""

import os
import signal
import tempfile

from hypothesis import settings

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# the key that runs are signed with is the tests' own, not that of whoever runs them
_configurations = tempfile.TemporaryDirectory(prefix="shoal-config-")
os.environ["XDG_CONFIG_HOME"] = _configurations.name

# a shell has its background jobs ignore Ctrl-C, and `nohup` a closed terminal;
# so would every process that a test starts and interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

settings.register_profile("shoal", deadline=None, derandomize=True)  # first examples compile, so no deadline
settings.load_profile("shoal")


# ---------------------------------------------------------------------- in CI nothing is skipped in silence

MAY_BE_SKIPPED = (
    "mounting a small file system is not permitted here",
    "only Linux has memory without a name",
    "this system has no file locks",
    "this system cannot limit the size of files",
    "Ray does not import with what every operating system has",
)
"""Reasons that lie in the machine and not in what was installed."""
_skipped: dict[str, str] = {}


def pytest_runtest_logreport(report):
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI") == "true":
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        if not any(allowed in reason for allowed in MAY_BE_SKIPPED):
            _skipped[report.nodeid] = reason


def pytest_sessionfinish(session, exitstatus):
    if _skipped and exitstatus == 0:
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter):
    for test, reason in _skipped.items():
        terminalreporter.write_line(f"SKIPPED WITHOUT A GOOD REASON {test}: {reason}")
