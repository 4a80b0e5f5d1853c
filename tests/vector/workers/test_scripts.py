"""Workers for scripts that cannot be run a second time: piped in, typed into a cell, or without a guard."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

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
