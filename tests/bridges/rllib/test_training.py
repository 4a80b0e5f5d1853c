"""RLlib's PPO on Shoal's lanes, with Ray running: all modes, evaluation, checkpoints, several runners and learners."""

import gymnasium as gym
import numpy as np
import pytest
import ray
from ray.rllib.algorithms.ppo import PPO

from shoal.bridges.rllib import ppo_config
from tests.bridges.test_docs import BLOCKS

SMALL = {"num_envs": 8, "train_batch_size": 256, "minibatch_size": 64, "num_epochs": 2, "seed": 3}
LOSSES = ("policy_loss", "vf_loss", "entropy", "mean_kl_loss")


pytestmark = pytest.mark.usefixtures("local_ray")


def build(mode, world="cartpole", **changes):
    return ppo_config(world, mode=mode, **{**SMALL, **changes}).build_algo()


def losses(result):
    learned = result["learners"]["default_policy"]
    return [float(learned[name]) for name in LOSSES]


def test_packed_and_columnar_are_the_same_training_bit_for_bit():
    told = {}
    for mode in ("packed_vec", "columnar"):
        algo = build(mode)
        told[mode] = [algo.train() for _ in range(3)]
        assert not algo.env_runner._ongoing_episodes_for_metrics  # or every fragment would be kept for ever
        algo.stop()
    for packed, columnar in zip(*told.values(), strict=True):
        assert losses(packed) == losses(columnar)
        for name in ("episode_return_mean", "episode_len_mean", "num_episodes_lifetime"):
            assert packed["env_runners"][name] == columnar["env_runners"][name]
    last = told["packed_vec"][-1]
    assert last["env_runners"]["num_env_steps_sampled_lifetime"] == 3 * 256
    assert last["learners"]["default_policy"]["num_module_steps_trained"] == 2 * 256
    assert last["env_runners"]["episode_len_min"] >= 1


@pytest.mark.parametrize("fast", [True, False])
def test_vec_counts_and_learns_as_the_others_do(fast):
    algo = build("vec", fast_connectors=fast)
    result = [algo.train() for _ in range(2)][-1]
    algo.stop()
    assert 512 <= result["env_runners"]["num_env_steps_sampled_lifetime"] < 512 + 2 * 8
    assert np.isfinite(losses(result)).all()
    assert result["env_runners"]["episode_return_mean"] > 1


class Forbidding(gym.Env):
    """Counts to ten by ones and twos; twos are forbidden on even numbers, and taking one is the end of the test."""

    observation_space, action_space = gym.spaces.Discrete(12), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.number = 0
        return self.number, {}

    def action_masks(self):
        return np.array([True, self.number % 2 == 1])

    def step(self, action):
        assert self.action_masks()[action]
        self.number += 1 + int(action)
        return self.number, float(action), self.number >= 10, False, {}


@pytest.mark.parametrize("mode", ["vec", "packed_vec", "columnar"])
def test_masks_are_obeyed(mode):
    config = ppo_config(Forbidding, mode=mode, options={"backend": "serial"}, **SMALL)
    algo = config.fault_tolerance(restart_failed_sub_environments=False).build_algo()
    result = algo.train()
    algo.stop()
    assert np.isfinite(losses(result)).all()
    assert result["env_runners"]["episode_return_mean"] > 0


def test_continuous_actions_and_evaluation():
    algo = build("columnar", world="pendulum", evaluate_every=1, evaluation_episodes=2, options={"max_steps": 20})
    result = algo.train()
    algo.stop()
    assert np.isfinite(losses(result)).all()
    assert result["evaluation"]["env_runners"]["num_episodes"] >= 2
    assert result["evaluation"]["env_runners"]["episode_return_mean"] < 0


def test_a_checkpoint_goes_on_in_any_mode_and_number_of_lanes(tmp_path):
    algo = build("packed_vec")
    algo.train()
    path = algo.save_to_path(str(tmp_path / "saved"))
    weights = algo.get_weights()["default_policy"]
    again = PPO.from_checkpoint(path)
    for name, array in again.get_weights()["default_policy"].items():
        assert np.array_equal(array, weights[name])
    assert again.train()["env_runners"]["num_env_steps_sampled_lifetime"] == 2 * 256
    other = build("columnar", num_envs=16)
    other.restore_from_path(path)
    for name, array in other.get_weights()["default_policy"].items():
        assert np.array_equal(array, weights[name])
    other.train()
    for each in (algo, again, other):
        each.stop()


def test_the_block_of_the_page_runs(capsys):
    (block,) = (block for block in BLOCKS if "rllib" in block)
    exec(compile(block, "bridges.md", "exec"), {"__name__": "__main__"})
    assert float(capsys.readouterr().out) > 1


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["columnar", "packed_vec"])
def test_a_killed_env_runner_comes_back(mode):
    algo = build(mode, num_env_runners=2)
    algo.train()
    victim = algo.env_runner_group._worker_manager.actors()[1]
    ray.kill(victim, no_restart=False)
    restarts = 0
    while not restarts:
        result = algo.train()
        restarts = result["fault_tolerance"]["num_remote_worker_restarts"]
    assert restarts == 1
    assert algo.env_runner_group.num_healthy_remote_workers() == 2
    assert np.isfinite(losses(result)).all()
    algo.stop()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["packed_vec", "columnar"])
def test_two_learners_train_every_row(mode):
    algo = build(mode, num_learners=2, minibatch_size=32)
    result = algo.train()
    algo.stop()
    assert result["learners"]["default_policy"]["num_module_steps_trained"] == 2 * 256


@pytest.mark.slow
def test_cartpole_is_learned_equally_well_per_step_from_five_seeds():
    """Steps until the mean return is 400, by mode."""
    reached = {mode: [steps_to(400.0, mode, seed) for seed in range(5)] for mode in ("vec", "packed_vec", "columnar")}
    print(reached)
    assert reached["packed_vec"] == reached["columnar"]
    medians = [np.median(steps) for steps in reached.values()]
    assert max(medians) <= 1.4 * min(medians)
    for steps in reached.values():
        assert sum(needed <= 130_000 for needed in steps) >= 4


def steps_to(goal, mode, seed):
    algo = ppo_config(
        "cartpole", mode=mode, num_envs=64, train_batch_size=4096, minibatch_size=512, num_epochs=6, seed=seed,
        model={"vf_share_layers": False}, lr=1e-3, gamma=0.99, lambda_=0.95, clip_param=0.2, vf_clip_param=1e9,
        vf_loss_coeff=0.5, grad_clip=0.5, use_kl_loss=False,
    ).build_algo()  # fmt: skip
    iterations = (n for n in range(1, 41) if algo.train()["env_runners"]["episode_return_mean"] >= goal)
    steps = 4096 * next(iterations, 41)
    algo.stop()
    return steps
