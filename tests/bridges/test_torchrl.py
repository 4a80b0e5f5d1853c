"""TorchRL's checks, collectors and losses on Shoal's lanes."""

from functools import partial

import numpy as np
import pytest
import torch
from torchrl.envs import ActionMask, EnvBase, TransformedEnv
from torchrl.envs.utils import check_env_specs

import shoal
from shoal.bridges.torchrl import ShoalEnv
from shoal.errors import ActionError, ConfigError
from tests.vector.toys import Walk


@pytest.mark.parametrize("world", ["cartpole", "pendulum", "hockey", "kg", "cage2", "dvrp"])
def test_torchrl_accepts_the_specs(world):
    check_env_specs(ShoalEnv(world, 3), seed=0, break_when_any_done="both")


def test_rollouts_hold_true_successors_and_causes():
    env, batch = ShoalEnv("cartpole", 5), shoal.make("cartpole", 5)
    env.set_seed(7)
    data = env.rollout(60, break_when_any_done=False)  # [5, 60]
    obs, _ = batch.reset(seed=7)
    ends = 0
    for t in range(60):
        row = data[:, t]
        assert np.array_equal(row["observation"].numpy(), obs)
        obs, reward, terminated, truncated, info = batch.step(row["action"].numpy())
        done = terminated | truncated
        successor = np.where(done[:, None], info["final_obs"], obs) if done.any() else obs
        assert np.array_equal(row["next", "observation"].numpy(), successor)
        assert np.array_equal(row["next", "terminated"][:, 0].numpy(), terminated)
        assert np.array_equal(row["next", "truncated"][:, 0].numpy(), truncated)
        assert np.array_equal(row["next", "reward"][:, 0].numpy(), reward)
        ends += done.sum()
    assert ends > 0


def test_the_short_way_from_step_to_step_leads_where_torchrls_own_does():
    env, other = ShoalEnv("cartpole", 4), ShoalEnv("cartpole", 4)
    rows = []
    for each in (env, other):
        each.set_seed(1)
        rows.append(each.reset().set("note", torch.arange(4)))  # as a policy would leave something there
    ends = 0
    for t in range(40):
        action = torch.full((4,), t % 2)
        steps = [
            way(row.set("action", action))
            for way, row in zip(
                (env.step_and_maybe_reset, partial(EnvBase._step_and_maybe_reset, other)), rows, strict=True
            )
        ]
        for ours, theirs in zip(*steps, strict=True):
            assert set(ours.keys(True, True)) == set(theirs.keys(True, True))
            assert (ours == theirs).all()
        rows = [upcoming for _, upcoming in steps]
        ends += steps[0][0]["next", "done"].sum()
    assert ends > 0


def test_dict_observations_and_masks():
    check_env_specs(ShoalEnv(partial(Walk, obs="dict"), 3, backend="serial"), seed=0)
    masked = ShoalEnv(partial(Walk, mask="info"), 3, backend="serial")
    data = TransformedEnv(masked, ActionMask()).rollout(50, break_when_any_done=False)
    assert data["action_mask"].gather(-1, data["action"].unsqueeze(-1)).all()
    assert not data["action_mask"].all()


@pytest.mark.parametrize(
    ("world", "options"), [("kg", {}), ("cage2", {"mask": "useful"}), (partial(Walk, mask="info"), {})]
)
def test_a_plain_rollout_draws_by_the_mask(world, options):
    env = ShoalEnv(world, 4, **({"backend": "serial"} if callable(world) else options))
    env.set_seed(0)
    data = env.rollout(40, break_when_any_done=False)
    assert data["action_mask"].gather(-1, data["action"].unsqueeze(-1)).all()
    assert not data["action_mask"].all()
    env.reset()
    assert env.action_spec.is_in(env.rand_action()["action"])  # without being told where the lanes are


def test_a_forbidden_action_of_kg_is_refused():
    env = ShoalEnv("kg", 4)
    start = env.reset()
    with pytest.raises(
        ActionError, match=r"lane 2 is forbidden: 63\. Its action_mask allows 0 to \d+; no lane has moved"
    ):
        env.step(start.set("action", torch.tensor([0, 0, 63, 0])))


def test_a_seed_repeats():
    env = ShoalEnv("cartpole", 4)
    env.set_seed(3)
    first = env.reset()["observation"]
    env.set_seed(3)
    assert torch.equal(env.reset()["observation"], first)


def test_bad_input_is_named():
    with pytest.raises(ConfigError, match="DISABLED"):
        ShoalEnv(shoal.make("cartpole", 2))
    with pytest.raises(ConfigError, match="counts choices from 0"):
        ShoalEnv(partial(Walk, obs="discrete"), 2, backend="serial")
