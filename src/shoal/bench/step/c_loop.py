"""The hand-written C loop behind `cartpole.c`: built here with gcc, called through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from shoal.bench.contender import Unavailable
from shoal.vector.kernel.rng import seed_words
from shoal.vector.seeding import lane_keys

LANE = np.dtype([("x", "f8"), ("speed", "f8"), ("angle", "f8"), ("spin", "f8"), ("t", "i4")], align=True)
BOOK = np.dtype([("words", "u8", (2,)), ("total", "f8"), ("length", "i8"), ("began", "f8")], align=True)


class _Batch(ctypes.Structure):
    _fields_ = [("num_envs", ctypes.c_int64)] + [
        (name, ctypes.c_void_p)
        for name in ("lanes", "books", "obs", "reward", "terminated", "truncated", "final_obs", "episode")
    ]


class CartPoleInC:
    """A batch of CartPole lanes; `reset`, then `step(action)` fills `arrays`."""

    def __init__(self, num_envs: int, seed: int = 0) -> None:
        self.arrays: dict[str, Any] = {
            "lanes": np.zeros(num_envs, LANE),
            "books": np.zeros(num_envs, BOOK),
            "obs": np.zeros((num_envs, 4), np.float32),
            "reward": np.zeros(num_envs, np.float32),
            "terminated": np.zeros(num_envs, np.bool_),
            "truncated": np.zeros(num_envs, np.bool_),
            "final_obs": np.zeros((num_envs, 4), np.float32),
            "episode": np.zeros((num_envs, 3)),
        }
        self.arrays["books"]["words"] = seed_words(lane_keys(seed, num_envs))
        library = _build()
        self._batch = _Batch(num_envs, *(array.ctypes.data for array in self.arrays.values()))
        self._pointer = ctypes.byref(self._batch)
        self._step = library.step
        self._step.argtypes = (ctypes.POINTER(_Batch), ctypes.c_void_p, ctypes.c_double)
        self._step.restype = ctypes.c_int64
        library.reset.argtypes = (ctypes.POINTER(_Batch), ctypes.c_double)
        library.reset(self._pointer, time.perf_counter())

    def step(self, action: np.ndarray) -> None:
        """One step of all lanes with [B] int64 actions."""
        ended = self._step(self._pointer, action.ctypes.data, time.perf_counter())
        if ended < 0:
            raise ValueError(f"The action of lane {-ended - 1} is neither 0 nor 1.")


def _build() -> ctypes.CDLL:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise Unavailable("no C compiler here")
    source = Path(__file__).with_name("cartpole.c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "cartpole.so"
        flags = ["-O3", "-march=native", "-std=gnu11", "-shared", "-fPIC"]
        subprocess.run([compiler, *flags, str(source), "-o", str(library), "-lm"], check=True)
        return ctypes.CDLL(str(library))  # stays mapped when the folder is gone
