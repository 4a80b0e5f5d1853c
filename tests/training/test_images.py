"""Images from lanes to a trained policy: bytes all the way, every agent, exact resuming."""

import numpy as np
import pytest

import shoal
from shoal.policy.export import export
from shoal.training.checkpoint import Checkpoints
from shoal.training.hooks import Hooks

DOT = "tests.training.pictures:Dot"
FEW = {"backend": "serial", "num_envs": 4, "quiet": True, "eval_episodes": 2, "checkpoint_every": 64}
OFF = {"num_steps": 4, "warmup": 16, "batch_size": 8, "replay_capacity": 200, "updates_per_step": 0.25, "hidden": (16,)}
AGENTS = {
    "ppo": ({"name": "ppo", "num_steps": 8}, {}),
    "gru": ({"name": "ppo", "num_steps": 8, "memory": "gru", "memory_size": 8}, {"mixed": True}),
    "dddqn": ({"name": "dddqn", **OFF, "n_step": 2}, {"stack": 3}),
    "sac": ({"name": "sac", **OFF, "random_shift": 1}, {"mixed": True, "stack": 3, "continuous": True}),
}


def train(agent, folder, steps, **settings):
    algo, env = AGENTS[agent]
    return shoal.train(DOT, algo=algo, env_kwargs=env, runs_dir=folder, total_steps=steps, **FEW, **settings)


class HalfWay:
    def reason_to_stop(self, loop):
        return "half of it is done" if loop.step >= 96 else None


@pytest.mark.parametrize("agent", AGENTS)
def test_a_resumed_run_on_images_ends_as_one_that_was_never_stopped(agent, tmp_path):
    whole = train(agent, tmp_path, 192)
    part = train(agent, tmp_path, 192, hooks=Hooks(stop_rules=[HalfWay()]))
    shoal.train(resume=part.run, quiet=True)
    one, other = (Checkpoints(run / "checkpoints").load() for run in (whole.run, part.run))
    assert one.step == other.step == 192
    for name, array in one.arrays.items():
        if not name.startswith("batch."):
            np.testing.assert_array_equal(array, other.arrays[name], err_msg=name)


@pytest.mark.parametrize("agent", ["gru", "sac"])
def test_a_policy_that_looks_at_images_is_loaded_and_exported(agent, tmp_path):
    result = train(agent, tmp_path, 64)
    policy = shoal.load(result.run)
    space = policy.observation_space
    space.seed(0)
    obs = space.sample()
    action = policy(obs)
    assert policy.action_space.contains(action)
    for to in ("torch", "numpy"):
        path, *_ = export(result.run, to)
        np.testing.assert_allclose(shoal.load(path)(obs), action, atol=1e-5)


def test_what_is_learned_from_images(tmp_path):
    result = shoal.train(
        DOT, algo={"num_steps": 32, "lr": 2e-3, "epochs": 8}, runs_dir=tmp_path, total_steps=8_192,
        **{**FEW, "num_envs": 16, "eval_episodes": 20, "checkpoint_every": 8_192},
    )  # fmt: skip
    assert result.mean_reward > 7  # of 8; chance reaches 4
