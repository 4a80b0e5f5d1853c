"""Array code behind the contract, in NumPy and in torch."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import ActionError, LaneFault, StateError
from shoal.vector.batched import Batched


class Walks(Batched):
    """Walk left or right from a random place; over at 4 steps from the middle, cut after 6."""

    def __init__(self, num_envs, spoil=None, **options):
        super().__init__(
            num_envs,
            gym.spaces.Box(-10, 10, (2,), np.float32),
            gym.spaces.Discrete(2),
            has_action_mask=True,
            **options,
        )
        self.state = {"pos": np.zeros(num_envs), "t": np.zeros(num_envs, np.int64)}
        self.spoil = spoil

    def begin(self, lanes):
        self.state["pos"][lanes] = self.rng.uniform(lanes, low=-1, high=1)
        self.state["t"][lanes] = 0

    def transition(self, action):
        self.state["pos"] += 2 * action - 1 + 0.1 * self.rng.normal()
        self.state["t"] += 1
        reward = -abs(self.state["pos"])
        if self.spoil is not None:
            reward[self.spoil] = np.nan
        return reward, abs(self.state["pos"]) > 4, self.state["t"] >= 6

    def observe(self):
        return np.stack([self.state["pos"], self.state["t"]], axis=1)

    def action_mask(self):
        return np.stack([self.state["pos"] > -9, self.state["pos"] < 9], axis=1)

    def inform(self):
        return {"steps": self.state["t"].copy()}


def actions(seed, num_steps, num_envs):
    """[T, B], lane i's column depends on (seed, i) alone."""
    return np.stack([np.random.default_rng([seed, i]).integers(0, 2, num_steps) for i in range(num_envs)], axis=1)


@given(seed=st.integers(0, 2**40), few=st.integers(1, 4), more=st.integers(0, 4))
@settings(max_examples=30)
def test_a_lane_does_not_know_its_neighbours(seed, few, more):
    small, large = Walks(few), Walks(few + more)
    a, _ = small.reset(seed=seed)
    b, _ = large.reset(seed=seed)
    assert np.array_equal(a, b[:few])
    for action in actions(seed, 20, few + more):
        one, other = small.step(action[:few]), large.step(action)
        for x, y in zip(one[:4], other[:4], strict=True):
            assert np.array_equal(x, y[:few])


def test_same_step_keeps_the_true_successor():
    batch, mirror = Walks(5), Walks(5, autoreset_mode="disabled")
    batch.reset(seed=1)
    mirror.reset(seed=1)
    for action in actions(1, 6, 5):
        obs, reward, terminated, truncated, info = batch.step(action)
        last, reward_2, terminated_2, truncated_2, info_2 = mirror.step(action)
        done = terminated | truncated
        assert np.array_equal(reward, reward_2)
        assert np.array_equal(done, terminated_2 | truncated_2)
        assert not (terminated & truncated).any()
        assert np.array_equal(obs[~done], last[~done])
        if done.any():
            assert np.array_equal(info["final_obs"][done], last[done])
            assert np.array_equal(info["final_info"]["steps"][done], info["episode"]["l"][done])
            assert np.array_equal(info["episode"]["r"][done], info_2["episode"]["r"][done])
            begun, _ = mirror.reset(options={"reset_mask": done})
            assert np.array_equal(begun[done], obs[done])


def test_next_step_gives_the_same_episodes_as_same_step():
    batch = Walks(3, autoreset_mode="next_step")
    batch.reset(seed=2)
    waiting = np.zeros(3, bool)
    for action in actions(2, 40, 3):
        obs, reward, terminated, truncated, info = batch.step(action)
        assert (reward[waiting] == 0).all()
        assert not (terminated | truncated)[waiting].any()
        assert (obs[waiting, 1] == 0).all()
        assert "final_obs" not in info
        waiting = terminated | truncated


def test_state_is_a_value():
    batch, fresh = Walks(4), Walks(4)
    batch.reset(seed=3)
    plan = actions(3, 30, 4)
    for action in plan[:15]:
        batch.step(action)
    fresh.set_state(batch.get_state())
    for action in plan[15:]:
        for x, y in zip(batch.step(action)[:4], fresh.step(action)[:4], strict=True):
            assert np.array_equal(x, y)
    with pytest.raises(StateError, match="does not fit Walks"):
        Walks(5).set_state(batch.get_state())


def test_bad_input_and_nan_name_the_lane():
    batch = Walks(3)
    batch.reset(seed=0)
    before = batch.get_state()
    with pytest.raises(ActionError, match="lane 2"):
        batch.step(np.array([0, 1, 2]))
    assert all(np.array_equal(before[key], value) for key, value in batch.get_state().items())
    spoiled = Walks(3, spoil=1)
    spoiled.reset(seed=0)
    with pytest.raises(LaneFault, match="reward that is NaN in lane 1"):
        spoiled.step(np.zeros(3, np.int64))


def test_mask_and_infos_follow_the_observation():
    batch = Walks(2)
    _, info = batch.reset(seed=0)
    assert info["action_mask"].shape == (2, 2)
    *_, info = batch.step(np.array([0, 1]))
    assert info["steps"].tolist() == [1, 1]


class TorchWalks(Batched):
    """The same in torch: tensors in, tensors out."""

    def __init__(self, num_envs, **options):
        import torch

        super().__init__(
            num_envs, gym.spaces.Box(-50, 50, (1,), np.float32), gym.spaces.Discrete(2), device="cpu", **options
        )
        self.state = {"pos": torch.zeros(num_envs)}

    def begin(self, lanes):
        self.state["pos"][lanes] = 0.0

    def transition(self, action):
        self.state["pos"] += 2.0 * action - 1.0
        over = self.state["pos"].abs() >= 3
        return -self.state["pos"].abs(), over, over & False

    def observe(self):
        return self.state["pos"][:, None]


def test_torch_batches_return_tensors():
    import torch

    batch = TorchWalks(4)
    batch.reset(seed=0)
    for _ in range(3):
        obs, _, terminated, _, info = batch.step(torch.tensor([0, 0, 1, 1]))
    assert isinstance(obs, torch.Tensor)
    assert terminated.all()
    assert info["final_obs"][:, 0].tolist() == [-3, -3, 3, 3]
    assert obs[:, 0].tolist() == [0, 0, 0, 0]
    fresh = TorchWalks(4)
    fresh.set_state(batch.get_state())
    assert torch.equal(fresh.state["pos"], batch.state["pos"])
