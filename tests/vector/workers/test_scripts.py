"""Workers for scripts that cannot be run a second time: piped in, typed into a cell, or without a guard."""

import random
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import shoal
from tests.vector.toys import Walk

ROOT = Path(__file__).parents[3]
SCRIPT = """
import gymnasium as gym, numpy as np, shoal

class Choices(gym.spaces.Discrete):
    "A space of the script's own, which must travel both ways."

class Mine(gym.Env):
    observation_space, action_space = gym.spaces.Box(-1, 1, (2,), np.float32), Choices(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {"of": self.action_space}
    def step(self, action):
        return np.zeros(2, np.float32), SIZE, False, True, {}

SIZE = 3.0
gym.register("Mine-v0", entry_point="__main__:Mine")
for env in (Mine, "Mine-v0", lambda: Mine()):
    batch = shoal.make(env, 4, backend="workers", num_workers=2)
    _, info = batch.reset(seed=0)
    assert type(batch.single_action_space) is Choices and type(info["of"][3]) is Choices
    print(batch.step(batch.action_space.sample())[1].sum())
    batch.close()
"""


@pytest.mark.parametrize("way", ["piped", "file without a guard"])
def test_workers_do_not_run_the_script_again(tmp_path, way):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    where = {"cwd": ROOT, "capture_output": True, "text": True, "timeout": 600}
    if way == "piped":
        done = subprocess.run([sys.executable, "-"], input=SCRIPT, **where)
    else:
        done = subprocess.run([sys.executable, str(script)], **where)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["12.0"] * 3


def test_more_workers_than_lanes_are_as_many_as_lanes():
    with closing(shoal.make(Walk, 2, backend="workers", num_workers=7)) as batch:
        assert batch.num_workers == 2


class Careless(gym.Env):
    """Draws from the generators of the whole process, as many environments do."""

    observation_space, action_space = gym.spaces.Box(0, 1, (2,), np.float64), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.array([random.random(), np.random.random()]), {}

    def step(self, action):
        return np.array([random.random(), np.random.random()]), 0.0, False, False, {}


def test_generators_of_the_whole_process_differ_between_workers_and_repeat_with_the_seed():
    def drawn(seed):
        with closing(shoal.make(Careless, 3, backend="workers", num_workers=3)) as batch:
            return np.stack([batch.reset(seed=seed)[0], batch.step([0, 0, 0])[0]])

    unseeded, seeded = drawn(None), drawn(5)
    assert len(np.unique(unseeded)) == unseeded.size
    assert len(np.unique(seeded)) == seeded.size
    assert np.array_equal(drawn(5), seeded)
    assert not np.array_equal(drawn(6), seeded)
