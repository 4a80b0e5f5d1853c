"""A run's policy by itself: it acts as its agent does, remembers, obeys masks, and refuses what it cannot read."""

from __future__ import annotations

import json
from contextlib import closing

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

import shoal
from shoal.cli import main
from shoal.errors import ConfigError, RunError
from shoal.training.opening import open_agent, open_run
from shoal.vector.space_values import space_from, space_value
from tests.policy.agents import NESTED


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    settings = {"num_envs": 4, "total_steps": 256, "algo": {"num_steps": 32, "normalise_obs": True}}
    return shoal.train("cartpole", runs_dir=folder, quiet=True, eval_episodes=2, **settings).run


def test_it_acts_as_the_agent_for_one_observation_or_a_batch(run):
    policy, agent = shoal.load(run), open_agent(run).agent
    obs = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    expected = agent.act_batch(obs, deterministic=True).action.numpy()
    actions = policy(obs)
    np.testing.assert_array_equal(actions, expected)
    assert policy(obs[3]) == expected[3]
    assert np.shape(policy(obs[3])) == ()
    assert policy(obs[3].tolist()) == expected[3]
    assert set(policy(np.repeat(obs[:1], 500, 0), deterministic=False)) == {0, 1}
    mask = np.zeros((200, 2), bool)
    mask[:, 1] = True
    assert (policy(obs, action_mask=mask) == 1).all()
    assert policy(obs[0], action_mask=mask[0], deterministic=False) == 1


def test_checkpoints_can_be_named_and_files_carried_away(run, tmp_path, capsys):
    assert repr(shoal.load(run / "latest")).startswith("<Policy cartpole ppo, step 256: ")
    assert main(["export", str(run), "--to", "numpy", "--out", str(tmp_path / "pole.safetensors")]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "pole.safetensors"), str(tmp_path / "pole.py")]
    obs = np.random.default_rng(0).normal(size=(50, 4))
    np.testing.assert_array_equal(shoal.load(tmp_path / "pole.safetensors")(obs), shoal.load(run)(obs))
    assert main(["export", str(run), "--to", "c"]) == 0
    assert (run / "policy.h").exists()
    assert main(["export", str(run), "--to", "cobol"]) == 2
    assert "No format 'cobol'" in capsys.readouterr().err


def test_what_it_cannot_read_is_refused_in_a_sentence(run, tmp_path):
    policy = shoal.load(run)
    for obs in (np.zeros(3), np.zeros((2, 5)), np.zeros((2, 2, 4)), 0.0, np.zeros((4, 1))):
        with pytest.raises(ConfigError, match=r"one of shape \[4\], or a batch \[N, 4\]"):
            policy(obs)
    with pytest.raises(ConfigError, match="is of type <U1, but this policy reads float32"):
        policy(["a", "b", "c", "d"])
    with pytest.raises(ConfigError, match="has rows of different lengths"):
        policy([[0.0, 1.0, 2.0, 3.0], [0.0]])
    with pytest.raises(ConfigError, match=r"action_mask must be \[2\] of booleans, not \[3\]"):
        policy(np.zeros(4), action_mask=np.ones(3, bool))
    with pytest.raises(ConfigError, match=r"action_mask forbids every choice in row 1. Allow at least one."):
        policy(np.zeros((2, 4)), action_mask=np.array([[True, False], [False, False]]))
    assert policy(np.zeros((0, 4))).shape == (0,)
    with pytest.raises(RunError, match="There is no run folder"):
        shoal.load(tmp_path / "nowhere")
    with pytest.raises(RunError, match="There is no file"):
        shoal.load(tmp_path / "nowhere.onnx")


def test_a_policy_with_memory_remembers_until_it_is_reset(tmp_path):
    settings = {"num_envs": 2, "total_steps": 64, "algo": {"num_steps": 8, "memory": "gru", "minibatches": 1}}
    run = shoal.train("pendulum", runs_dir=tmp_path, quiet=True, eval_episodes=1, **settings).run
    policy, agent = shoal.load(run), open_agent(run).agent
    obs = np.random.default_rng(0).normal(size=(6, 3, 3)).astype(np.float32)
    state = None
    for row in obs:
        act = agent.act_batch(row, True, None, state)
        state = act.state
        np.testing.assert_allclose(policy(row), act.action.numpy(), atol=1e-6)
    with pytest.raises(ConfigError, match=r"remembers 3 episodes, but got 1 observations. Call reset\(\)"):
        policy(obs[0, 0])
    policy.reset(np.array([False, True, False]))
    state[1] = 0
    np.testing.assert_allclose(policy(obs[0]), agent.act_batch(obs[0], True, None, state).action.numpy(), atol=1e-6)
    policy.reset()
    policy(obs[0, 0])


def test_worlds_with_networks_of_their_own(tmp_path):
    settings = {"num_envs": 4, "total_steps": 16, "eval_episodes": 1, "algo": {"num_steps": 4, "minibatches": 1}}
    run = shoal.train("dvrp", customers=4, oracle="insertion", runs_dir=tmp_path, quiet=True, **settings).run
    policy, player = shoal.load(run), open_run(run, 3)
    with closing(player.batch) as batch:
        obs, info = batch.reset(seed=0)
        actions = policy(obs, action_mask=info.get("action_mask"))
        np.testing.assert_array_equal(actions, player.act_in(batch)(obs, info))
        batch.step(actions)


SPACES = [
    NESTED,
    Box(-np.inf, np.inf, (3,), np.float32),
    Box(np.array([0.5, -np.inf]), np.array([np.inf, 2.0]), dtype=np.float64),
    Box(0, 255, (4, 4, 3), np.uint8),
    Box(-(2**63), 2**63 - 1, (1,), np.int64),
    Discrete(3, start=-1),
    MultiDiscrete([[2, 3], [4, 5]], start=[[0, 1], [2, 3]]),
    MultiBinary(5),
    MultiBinary([2, 3]),
    Tuple([Discrete(2), Dict({"x": Discrete(3)})]),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_spaces_can_be_written_down(space):
    text = json.dumps(space_value(space), allow_nan=False)
    assert space_from(json.loads(text), "here") == space


def test_a_space_that_cannot_be_read_is_told():
    for value in ({}, {"kind": "box"}, {"kind": "sphere"}, {"kind": "discrete", "n": "x", "start": 0}, 3, None):
        with pytest.raises(ConfigError, match="here describes a space that cannot be read"):
            space_from(value, "here")
