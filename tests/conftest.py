"""Shared set-up: one thread per library, so that tests on two cores do not fight; hypothesis that repeats itself."""

import os
import signal

from hypothesis import settings

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# a shell has its background jobs ignore Ctrl-C, and so would every process that a test starts and interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("shoal", deadline=None, derandomize=True)  # first examples compile, so no deadline
settings.load_profile("shoal")
