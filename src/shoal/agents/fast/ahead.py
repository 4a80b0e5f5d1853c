"""PPO's learner, compiled by a second process while this one loads torch and compiles the lanes.

Numba compiles one thing at a time in a process. What a run needs first is its kernel, then acting, then learning, which
takes longest; on two cores a process of its own has it ready by then. Both meet in the cache of compiled code: whoever
comes second waits for the first, and loads what it has made.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import numba
import numpy as np

from shoal.agents.fast.adam import adam_step
from shoal.agents.fast.heads import CONTINUOUS, DISCRETE, Parts, Rows, Weights
from shoal.agents.fast.tile import Layout, Tile
from shoal.agents.rollout import gae
from shoal.jit.entries import entry_module
from shoal.platform import num_cores


@contextlib.contextmanager
def learner_compiled_aside(continuous: bool) -> Iterator[None]:
    """Meanwhile, compile PPO's learner for this kind of actions, unless that is done or there is no core to spare."""
    if num_cores() < 2 or entry_module(*_parts(continuous).learner).is_known():
        yield
        return
    command = f"from shoal.agents.fast.ahead import compile_learner; compile_learner({bool(continuous)})"
    quiet = subprocess.DEVNULL  # whoever waits for the outcome says so
    process = subprocess.Popen([sys.executable, "-c", command], stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _parts(continuous: bool) -> Parts:
    return CONTINUOUS if continuous else DISCRETE


def compile_learner(continuous: bool) -> None:
    """Compile for the types that training uses: compiled code knows these, and no sizes."""
    line, table, index = np.zeros(1, np.float32), np.zeros((1, 1), np.float32), np.zeros(1, np.int64)
    layout = tuple(Layout(1, 1, 1, 1, 1, False, np.zeros((1, 1, 4), np.int64)))
    tile, weights = tuple(Tile(*range(len(Tile._fields)))), tuple(Weights(*[1.0] * len(Weights._fields)))
    action, head = (table, line) if continuous else (np.zeros((1, 1), np.int64), index)
    rows = tuple(Rows(table, action, table, np.zeros((1, 1), np.bool_)))
    arguments = {
        "add_gradient": (line, line, layout, line, tile, rows, index, 0, 1, weights, head, head, line, np.zeros(1)),
        "pack_weights": (line, layout, line),
        "moments": (table, index, 0, 1),
    }
    signatures = {name: tuple(map(numba.typeof, given)) for name, given in arguments.items()}
    entry_module(*_parts(continuous).learner).compile(signatures)
    adam_step(line, table, line, line, 1e-3, 0.9, 0.999, 1e-5, 1, 0.5)
    flags = np.zeros((1, 1), np.bool_)
    gae(table, table, table, flags, flags, 0.99, 0.95, None)
