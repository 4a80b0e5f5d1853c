"""What lanes really show: every format acts on recorded observations as the agent does."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

import shoal
from shoal.policy.export import export
from shoal.training.opening import open_agent, open_run
from shoal.trees import map_tree
from shoal.vector.spaces import flat_rows
from tests.policy.carried import assert_same, compiled, reader_of

SHORT = {"num_envs": 8, "total_steps": 64, "eval_episodes": 1, "quiet": True}
PPO = {"num_steps": 8, "minibatches": 1, "normalise_obs": True}
REPLAY = {"name": "sac", "warmup": 32, "batch_size": 8, "replay_capacity": 1_000}


def record(run, count):
    """`count` observations and masks of the lanes in which the policy acts, now and then at random."""
    policy, player = shoal.load(run), open_run(run, 50)
    shown, masks = [], []
    with closing(player.batch) as batch:
        obs, info = batch.reset(seed=1)
        for _ in range(count // 50):
            shown.append(map_tree(np.copy, obs))
            mask = info.get("action_mask")
            masks.append(None if mask is None else mask.copy())
            obs, _, _, _, info = batch.step(policy(obs, False, mask))
    together = map_tree(lambda *leaves: np.concatenate(leaves), *shown)
    return together, None if masks[0] is None else np.concatenate(masks)


def compare(run, formats, count):
    """Assert that files of these formats act as the agent of the run."""
    agent, policy = open_agent(run).agent, shoal.load(run)
    obs, mask = record(run, count)
    expected = agent.act_batch(obs, True, mask).action.numpy()
    rows = flat_rows(policy.observation_space, obs)
    for to in formats:
        path, *beside = export(run, to)
        if to == "c":
            given = compiled(path, expected)(rows, mask, np.zeros((count, 1), np.float32))
        else:
            given = shoal.load(path)(obs, action_mask=mask)
        assert_same([expected], [given])
        if beside:
            assert_same([expected], [reader_of(*beside).act(rows, mask).reshape(expected.shape)])


def test_a_board_of_minatar(tmp_path):
    run = shoal.train("minatar-breakout", runs_dir=tmp_path, algo=PPO, **SHORT).run
    compare(run, ["c", "numpy"], 10_000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "algo"),
    [
        ("cartpole", PPO),
        ("pendulum", REPLAY),
        ("acrobot", {**REPLAY, "name": "dddqn"}),
        ("minatar-space-invaders", {**REPLAY, "name": "dddqn"}),
        ("cage2", PPO),
        ("hockey", REPLAY),
        ("spread", PPO),
        ("connect4", PPO),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_every_world_with_a_standard_network(world, algo, tmp_path):
    run = shoal.train(world, runs_dir=tmp_path, algo=algo, **SHORT).run
    compare(run, ["onnx", "torch", "c", "numpy"], 10_000)
