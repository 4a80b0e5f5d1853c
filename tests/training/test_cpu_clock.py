"""Processors in use: measured for this process and for the workers that step its lanes."""

import time
from contextlib import closing

import numpy as np

from shoal.training.loop import CpuClock
from shoal.vector.serial import SerialBatch
from shoal.vector.workers import WorkerBatch
from tests.training.worlds import EnvWalk


class Busy(EnvWalk):
    """Uses a twentieth of a second of its processor in every step."""

    def step(self, action):
        until = time.process_time() + 0.05
        while time.process_time() < until:
            pass
        return super().step(action)


def test_work_of_this_process_counts():
    with closing(SerialBatch(EnvWalk, 1)) as batch:
        clock = CpuClock(batch)
        until = time.process_time() + 0.02
        while time.process_time() < until:
            pass
        assert clock.cores() > 0
        assert batch.cpu_seconds_elsewhere() == 0


def test_work_of_the_workers_counts():
    with closing(WorkerBatch(Busy, 2, num_workers=2)) as batch:
        batch.reset(seed=0)
        before = batch.cpu_seconds_elsewhere()
        batch.step(np.zeros(2, np.int64))
        assert batch.cpu_seconds_elsewhere() - before > 0.07  # a clock tick of each is lost at most
