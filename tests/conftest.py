"""Shared set-up: one thread per library, so that tests on two cores do not fight."""

import os

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from hypothesis import settings

settings.register_profile("shoal", deadline=None, derandomize=True)  # first examples compile; CI must repeat itself
settings.load_profile("shoal")
