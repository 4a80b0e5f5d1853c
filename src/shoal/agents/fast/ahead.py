"""PPO's learner, compiled by a second process while this one loads torch and compiles the lanes.

Numba compiles one thing at a time in a process. What a run needs first is its kernel, then acting, then learning, which
takes longest; on two cores a process of its own has it ready by then. Both meet in the cache of compiled code: whoever
comes second waits for the first, and loads what it has made. Which actions there will be is not known before there are
lanes: it is that of discrete ones, which most worlds have.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import numba
import numpy as np

from shoal.agents.advantage import gae
from shoal.agents.fast.heads import DISCRETE, Rows, Weights
from shoal.agents.fast.loops import adam_step
from shoal.agents.fast.tile import Layout, Tile
from shoal.jit.entries import entry_module
from shoal.platform import num_cores


@contextlib.contextmanager
def learner_compiled_aside() -> Iterator[None]:
    """Meanwhile, compile PPO's learner, unless that is done or there is no core to spare."""
    if num_cores() < 2 or entry_module(*DISCRETE.learner).is_known():
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
    """Compile for the types that training uses: compiled code knows these, and no sizes."""
    line, table, index = np.zeros(1, np.float32), np.zeros((1, 1), np.float32), np.zeros(1, np.int64)
    layout = tuple(Layout(1, 1, 1, 1, 1, False, np.zeros((1, 1, 4), np.int64)))
    tile, weights = tuple(Tile(*range(len(Tile._fields)))), tuple(Weights(*[1.0] * len(Weights._fields)))
    rows = tuple(Rows(table, np.zeros((1, 1), np.int64), table, np.zeros((1, 1), np.bool_)))
    arguments = {
        "add_gradient": (line, line, layout, line, tile, rows, index, 0, 1, weights, index, index, line, np.zeros(1)),
        "pack_weights": (line, layout, line),
        "moments": (table, index, 0, 1),
    }
    signatures = {name: tuple(map(numba.typeof, given)) for name, given in arguments.items()}
    entry_module(*DISCRETE.learner).compile(signatures)
    adam_step(line, table, line, line, 1e-3, 0.9, 0.999, 1e-5, 1, 0.5)
    flags = np.zeros((1, 1), np.bool_)
    gae(table, table, table, flags, flags, 0.99, 0.95)
