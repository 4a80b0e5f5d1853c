"""The hand-written loops in C, built here with gcc and called through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import gymnasium as gym
import numpy as np

from shoal.bench.contender import Unavailable
from shoal.jit.rng import seed_words
from shoal.seeding import lane_keys
from shoal.vector.kernel import Kernel

LANE = np.dtype([("x", "f8"), ("speed", "f8"), ("angle", "f8"), ("spin", "f8"), ("t", "i4")], align=True)
BOOK = np.dtype([("words", "u8", (2,)), ("total", "f8"), ("length", "i8"), ("began", "f8")], align=True)
FLAGS = {
    "cartpole.c": ("-O3", "-march=native"),
    "cartpole_columns.c": ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math"),
    "snake.c": ("-O3", "-march=native"),
    "twenty48.c": ("-O3", "-march=native"),
}


class LoopInC:
    """A batch of lanes of a C file; begun when made, then `step(action)` fills `arrays`."""

    def __init__(self, file: str, arrays: dict[str, np.ndarray], words: np.ndarray, seed: int) -> None:
        """`arrays` by name, [B, ...] each, are those of the file's struct Batch; `words` are its lanes' streams."""
        self.arrays = arrays
        words[:] = seed_words(lane_keys(seed, len(words)))
        library = build(file)
        # the struct Batch of the C file: a number, then addresses
        self._batch = np.array([len(words), *(array.ctypes.data for array in arrays.values())], np.int64)
        self._step = library.step
        self._step.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double)
        self._step.restype = ctypes.c_int64
        self._address = self._batch.ctypes.data
        library.reset.argtypes = (ctypes.c_void_p, ctypes.c_double)
        library.reset(self._address, time.perf_counter())

    def step(self, action: np.ndarray) -> None:
        """One step of all lanes with [B] int64 actions."""
        ended = self._step(self._address, action.ctypes.data, time.perf_counter())
        if ended < 0:
            raise ValueError(f"The action of lane {-ended - 1} does not exist.")


def cartpole_in_c(num_envs: int, seed: int = 0, columns: bool = False) -> LoopInC:
    """CartPole lanes, as records or as columns."""
    lanes: dict[str, np.ndarray] = {"lanes": np.zeros(num_envs, LANE), "books": np.zeros(num_envs, BOOK)}
    if columns:
        lanes = {name: np.zeros(num_envs, kind[name]) for kind in (LANE, BOOK) for name in kind.names or ()}
    words = lanes["words"] if columns else lanes["books"]["words"]
    file = "cartpole_columns.c" if columns else "cartpole.c"
    return LoopInC(file, lanes | _outputs(num_envs, (4,), np.float32), words, seed)


def board_in_c(kernel: type[Kernel], num_envs: int, seed: int = 0) -> LoopInC:
    """Lanes of one of the boards in boards.py, as records of the kernel's own layout."""
    lanes = {"lanes": np.zeros(num_envs, kernel.state), "books": np.zeros(num_envs, BOOK)}
    space = kernel.observation_space
    assert isinstance(space, gym.Space)
    outputs = _outputs(num_envs, space.shape or (), np.uint8) | {"action_mask": np.zeros((num_envs, 4), np.bool_)}
    return LoopInC(f"{kernel.__name__.lower()}.c", lanes | outputs, lanes["books"]["words"], seed)


def _outputs(num_envs: int, shape: tuple[int, ...], dtype: type[np.generic]) -> dict[str, np.ndarray]:
    return {
        "obs": np.zeros((num_envs, *shape), dtype),
        "reward": np.zeros(num_envs, np.float32),
        "terminated": np.zeros(num_envs, np.bool_),
        "truncated": np.zeros(num_envs, np.bool_),
        "final_obs": np.zeros((num_envs, *shape), dtype),
        "episode": np.zeros((num_envs, 3)),
    }


def build(name: str) -> ctypes.CDLL:
    """The C file `name` of this folder as a library."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise Unavailable("no C compiler here")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "loop.so"
        command = [compiler, *FLAGS[name], "-std=gnu11", "-shared", "-fPIC", str(Path(__file__).with_name(name))]
        subprocess.run([*command, "-o", str(library), "-lm"], check=True)
        return ctypes.CDLL(str(library))  # stays mapped when the folder is gone
