"""How many workers environments need that sleep or wait, e.g. for a simulator over a socket: measured on one of them.

A worker per core is right for lanes that compute. Lanes that wait leave their core idle, so there can be as many more
workers as the cores would have time for.
"""

from __future__ import annotations

import math
import time
from contextlib import closing
from typing import TYPE_CHECKING

from shoal.platform import num_cores

if TYPE_CHECKING:
    from shoal.vector.workers.batch import WorkerBatch

MEASURE_S, MAX_STEPS = 0.4, 2_000
MAX_PER_CORE = 32
"""Workers for one core: each is a process with a copy of everything."""


def measured_num_workers(lane: WorkerBatch, num_envs: int) -> int:
    """Workers for `num_envs` lanes like the one of `lane`, which is stepped for a moment and closed."""
    with closing(lane):
        lane.action_space.seed(0)
        lane.reset(seed=0)
        lane.step(lane.action_space.sample())  # what only the first step does
        before, began, steps = lane.scheduled_seconds(), time.perf_counter(), 0
        while time.perf_counter() - began < MEASURE_S and steps < MAX_STEPS:
            lane.step(lane.action_space.sample())
            steps += 1
        wall, after = time.perf_counter() - began, lane.scheduled_seconds()
    if before is None or after is None:
        return min(num_cores(), num_envs)
    computing, queueing = after[0] - before[0], after[1] - before[1]
    waiting = max(0.0, wall - computing - queueing)
    return workers_for(computing, waiting, num_envs)


def workers_for(computing: float, waiting: float, num_envs: int) -> int:
    """Workers that keep the cores busy if a lane computes and waits for this many seconds."""
    if waiting < computing:  # between two steps a worker waits for its parent too
        return min(num_cores(), num_envs)
    wanted = num_cores() * (computing + waiting) / max(computing, 1e-6)
    return max(1, min(math.ceil(wanted), MAX_PER_CORE * num_cores(), num_envs))
