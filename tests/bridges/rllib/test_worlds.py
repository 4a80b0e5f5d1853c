"""Every world under RLlib's PPO in every mode."""

import numpy as np
import pytest

from shoal.bridges.rllib import ppo_config
from shoal.bridges.rllib.envs import KINDS
from shoal.registry import OURS

pytestmark = pytest.mark.usefixtures("local_ray")

SOON = {"kg": {"max_depth": 2}, "cartpole": {"max_steps": 5}}
"""Options with which episodes are truncated within a few steps."""
SEATED = ("connect4", "spread")
"""Worlds for several, whose lanes a library for one refuses."""
ALIKE = tuple(f"minatar-{game}" for game in ("breakout", "asterix", "freeway", "space-invaders"))
"""Worlds of which one of the same folder is tried in their place."""


@pytest.mark.parametrize("mode", KINDS)
@pytest.mark.parametrize("world", [name for name in OURS if name not in SEATED + ALIKE])
def test_every_world_trains_in_every_mode(world, mode):
    config = ppo_config(
        world,
        mode=mode,
        num_envs=2,
        train_batch_size=24,
        minibatch_size=12,
        num_epochs=1,
        seed=3,
        options=SOON.get(world, {}),
    )
    algo = config.fault_tolerance(restart_failed_sub_environments=False).build_algo()
    result = algo.train()
    algo.stop()
    assert 24 <= result["env_runners"]["num_env_steps_sampled_lifetime"] <= 26
    learned = result["learners"]["default_policy"]
    assert np.isfinite([float(learned[name]) for name in ("policy_loss", "vf_loss", "entropy")]).all()
