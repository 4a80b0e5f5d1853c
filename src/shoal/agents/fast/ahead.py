"""PPO's learner, compiled by a second process while this one compiles the lanes.

Numba compiles one thing at a time in a process. What a run needs first is its kernel, then acting, then learning, which
takes longest; on two cores a process of its own has it ready by then. Both meet in the cache of compiled code: whoever
comes second waits for the first, and loads what it has made.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import gymnasium as gym
import numpy as np

from shoal.agents.fast.heads import LEARNER, Rows, Weights
from shoal.jit.entries import entry_module
from shoal.platform import num_cores


@contextlib.contextmanager
def learner_compiled_aside() -> Iterator[None]:
    """Meanwhile, compile PPO's learner, unless that is done or there is no core to spare."""
    if num_cores() < 2 or entry_module(*LEARNER).is_known():
        yield
        return
    command = "from shoal.agents.fast.ahead import compile_learner; compile_learner()"
    quiet = subprocess.DEVNULL  # whoever waits for the outcome says so
    process = subprocess.Popen([sys.executable, "-c", command], stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def compile_learner() -> None:
    """Learn once from two rows of nothing: compiled code knows types, not sizes."""
    from shoal.agents.fast.ppo import FastPPO
    from shoal.agents.ppo import PPO
    from shoal.agents.rollout import gae

    agent = PPO(gym.spaces.Box(-1.0, 1.0, (4,), np.float32), gym.spaces.Discrete(2))
    fast = FastPPO(agent)
    floats, count = np.zeros((2, 4), np.float32), 2
    rows = Rows(floats, np.zeros((2, 1), np.int64), np.empty((0, 0), np.float32), floats, np.empty((0, 0), np.bool_))
    fast.gradient(rows, np.arange(count), 0, count, Weights(0.2, 0.0, 0.5, np.inf, 0.5, 0.0, 1.0))
    fast.calls["moments"](rows.history, np.arange(count), 0, count)
    fast.adam.step(1e-3, 0.5)
    flags = np.zeros((2, 4), np.bool_)
    gae(floats, floats, floats, flags, flags, 0.99, 0.95)
