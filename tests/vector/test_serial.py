from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import ActionError, ConfigError, LaneFault, StateError, UnknownName
from shoal.vector.serial import SerialBatch
from tests.vector.toys import ACTION_SPACES, END, NAN_OBS, OBS_SPACES, RAISE, Trap, Walk, assert_identical

MODES = ["same_step", "next_step", "disabled"]


def lone_trajectory(kwargs: dict, seed: int, actions: list) -> list:
    """What one environment does by itself, reset where it ends: (obs, reward, terminated, truncated, final_obs)."""
    env = Walk(**kwargs)
    env.reset(seed=seed)
    steps = []
    for action in actions:
        obs, reward, terminated, truncated, _ = env.step(action)
        final = obs
        if terminated or truncated:
            obs, _ = env.reset()
        steps.append((obs, np.float32(reward), terminated, truncated and not terminated, final))
    return steps


@settings(max_examples=20, deadline=None)
@given(
    num_envs=st.integers(1, 4),
    seed=st.integers(0, 2**31 - 1),
    obs=st.sampled_from(sorted(OBS_SPACES)),
    action=st.sampled_from(sorted(ACTION_SPACES)),
)
def test_each_lane_does_what_the_environment_does_alone(num_envs, seed, obs, action):
    kwargs = {"obs": obs, "action": action}
    batch = SerialBatch(Walk, num_envs, env_kwargs=kwargs)
    batch.action_space.seed(seed)
    seeds = [seed + lane for lane in range(num_envs)]
    batch.reset(seed=seeds)
    actions = [batch.action_space.sample() for _ in range(12)]
    results = [batch.step(action) for action in actions]
    for lane in range(num_envs):
        alone = lone_trajectory(kwargs, seeds[lane], [_lane(a, lane) for a in actions])
        for (obs, reward, terminated, truncated, info), expected in zip(results, alone, strict=True):
            assert _same(_lane(obs, lane), expected[0])
            assert (reward[lane], terminated[lane], truncated[lane]) == expected[1:4]
            if terminated[lane] or truncated[lane]:
                assert info["_final_obs"][lane]
                assert _same(_lane(info["final_obs"], lane), expected[4])


def _lane(tree, lane):
    if isinstance(tree, dict):
        return {key: _lane(value, lane) for key, value in tree.items()}
    return tuple(_lane(value, lane) for value in tree) if isinstance(tree, tuple) else tree[lane]


def _same(a, b) -> bool:
    if isinstance(a, dict):
        return all(_same(a[key], b[key]) for key in b)
    return all(map(_same, a, b)) if isinstance(a, tuple) else np.array_equal(a, b)


def test_next_step_ignores_the_action_after_an_end_and_returns_the_reset():
    batch = SerialBatch(Trap, 2, autoreset_mode="next_step")
    batch.reset(seed=1)
    batch.step([0, 0])
    obs, _, terminated, _, info = batch.step([END, 0])
    assert obs[:, 0].tolist() == [2, 2]
    assert terminated.tolist() == [True, False]
    assert info["episode"]["r"][0] == 2.0
    assert info["episode"]["l"][0] == 2
    assert info["_episode"].tolist() == [True, False]
    assert "final_obs" not in info
    obs, reward, terminated, _, info = batch.step([END, 0])
    assert obs[:, 0].tolist() == [0, 3]
    assert reward.tolist() == [0.0, 1.0]
    assert not terminated.any()
    assert "episode" not in info
    _, _, _, _, info = batch.step([END, 0])
    assert info["episode"]["l"][0] == 1


def test_disabled_waits_for_a_masked_reset_and_leaves_the_other_lanes_alone():
    batch = SerialBatch(Trap, 3, autoreset_mode="disabled")
    first, _ = batch.reset(seed=5)
    batch.step([0, END, 0])
    with pytest.raises(StateError, match="lane 1 has ended and autoreset is disabled"):
        batch.step([0, 0, 0])
    obs, _ = batch.reset(options={"reset_mask": np.array([False, True, False])})
    assert obs[:, 0].tolist() == [1, 0, 1]
    assert obs[[0, 2], 1].tolist() == first[[0, 2], 1].tolist()
    assert batch.step([0, 0, 0])[0][:, 0].tolist() == [2, 1, 2]


def test_infos_are_dense_and_those_of_the_last_step_are_final():
    batch = SerialBatch(Walk, 3, env_kwargs={"info": True})
    _, info = batch.reset(seed=0)
    assert info["phase"].tolist() == ["born"] * 3
    assert info["deep"]["pair"].shape == (3, 2)
    ended = False
    for _ in range(12):
        _, _, terminated, truncated, info = batch.step(batch.action_space.sample())
        done = terminated | truncated
        assert info["t"].dtype == np.int64
        assert (info["t"] == 0).tolist() == done.tolist()
        assert info["speed"].dtype == np.float64
        assert info["even"].dtype == np.bool_
        if done.any():
            ended = True
            assert (info["final_info"]["t"][done] > 0).all()
            assert info["_final_info"].tolist() == done.tolist()
    assert ended


@pytest.mark.parametrize("source", ["method", "info"])
def test_action_masks_belong_to_the_observation_returned(source):
    batch = SerialBatch(Walk, 2, env_kwargs={"mask": source})
    assert batch.has_action_mask
    _, info = batch.reset(seed=0)
    for _ in range(15):
        assert info["action_mask"].tolist() == [((np.arange(4) + env.t) % 4 != 0).tolist() for env in batch.envs]
        info = batch.step([3, 2])[-1]


@pytest.mark.parametrize("mode", MODES)
def test_a_state_continues_exactly_in_another_batch(mode):
    kwargs = {"obs": "nested", "action": "dict", "info": True}
    batch = SerialBatch(Walk, 3, env_kwargs=kwargs, autoreset_mode=mode)
    batch.reset(seed=4)
    actions = [batch.action_space.sample() for _ in range(20)]
    for action in actions[:5]:
        _step(batch, action)
    state = batch.get_state()
    assert all(isinstance(value, np.ndarray) for value in state.values())
    expected = [_step(batch, action) for action in actions[5:]]
    other = SerialBatch(Walk, 3, env_kwargs=kwargs, autoreset_mode=mode)
    other.set_state(state)
    for action, result in zip(actions[5:], expected, strict=True):
        assert_identical(_step(other, action), result)


def _step(batch, action):
    result = batch.step(action)
    done = result[2] | result[3]
    if batch.metadata["autoreset_mode"].value == "Disabled" and done.any():
        return (*result, *batch.reset(options={"reset_mask": done}))
    return result


def test_step_into_writes_into_the_callers_buffers():
    batch = SerialBatch("CartPole-v1", 2)
    rollout = [batch.empty_step() for _ in range(3)]
    batch.reset_into(rollout[0], seed=1)
    for out in rollout:
        batch.step_into([0, 1], out)
    twin = SerialBatch("CartPole-v1", 2)
    twin.reset(seed=1)
    for out in rollout:
        assert twin.step([0, 1])[0].tolist() == out.obs.tolist()


def test_the_time_limit_of_an_id_is_kept_and_its_checks_are_not():
    batch = SerialBatch("Pendulum-v1", 1)
    assert not isinstance(batch.envs[0], gym.wrappers.OrderEnforcing)
    batch.reset(seed=0)
    for t in range(1, 201):
        _, _, terminated, truncated, info = batch.step(np.zeros((1, 1), np.float32))
        assert truncated[0] == (t == 200)
    assert not terminated[0]
    assert info["episode"]["l"][0] == 200


def test_an_ending_has_one_cause():
    batch = SerialBatch(lambda: gym.wrappers.TimeLimit(Trap(), 2), 2)
    batch.reset(seed=0)
    batch.step([0, 0])
    _, _, terminated, truncated, _ = batch.step([END, 0])
    assert terminated.tolist() == [True, False]
    assert truncated.tolist() == [False, True]


def test_a_fault_names_the_lane_keeps_the_cause_and_asks_for_a_reset():
    batch = SerialBatch(Trap, 3)
    batch.reset(seed=0)
    with pytest.raises(LaneFault, match=r"Lane 2 raised ZeroDivisionError in step.*the cart left the rails") as caught:
        batch.step([0, 0, RAISE])
    assert caught.value.lane == 2
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(StateError, match="before reset"):
        batch.step([0, 0, 0])
    batch.reset(seed=0)
    with pytest.raises(LaneFault, match=r"Lane 0 returned from .* the observation is NaN in 2 of 2 numbers"):
        batch.step([NAN_OBS, 0, 0])


class TestBadInput:
    def test_num_envs(self):
        with pytest.raises(ConfigError, match="num_envs must be at least 1, not 0"):
            SerialBatch("CartPole-v1", 0)

    @pytest.mark.parametrize("name", ["CartPole-v1", "cartpole"])
    def test_more_lanes_than_fit_into_memory(self, name):
        with pytest.raises(ConfigError, match=r"num_envs=10,000,000,000 lanes need at least 298.0 GiB, but [\d.]+ GiB"):
            shoal.make(name, 10_000_000_000)

    def test_unknown_id(self):
        with pytest.raises(UnknownName, match="Did you mean 'CartPole-v1'"):
            SerialBatch("CartPoel-v1", 2)
        with pytest.raises(UnknownName, match="LunarLander-v3"):
            SerialBatch("LunarLander-v77", 2)

    def test_an_environment_instead_of_a_way_to_make_one(self):
        with pytest.raises(ConfigError, match="already made"):
            SerialBatch(Trap(), 2)
        with pytest.raises(ConfigError, match=r"returned a int, not a gymnasium.Env"):
            SerialBatch(lambda: 7, 2)
        with pytest.raises(ConfigError, match="cannot make lanes"):
            SerialBatch(3.5, 2)

    def test_constructor_that_raises(self):
        with pytest.raises(LaneFault, match="Lane 0 raised KeyError in its constructor"):
            SerialBatch(Walk, 2, env_kwargs={"obs": "no such space"})

    def test_spaces_that_differ(self):
        sizes = iter(["box", "box", "image", "box"])
        with pytest.raises(ConfigError, match=r"Lane 1 has the observation_space Box\(0, 255, \(4, 5, 2\)"):
            SerialBatch(lambda: Walk(next(sizes)), 3)

    def test_actions(self):
        batch = SerialBatch(Walk, 2, env_kwargs={"action": "box"})
        with pytest.raises(StateError, match="before reset"):
            batch.step(np.zeros((2, 2)))
        batch.reset(seed=0)
        state = batch.get_state()
        for action, message in [
            (np.zeros((3, 2)), "3 actions of shape .* for 2 environments"),
            (np.full((2, 2), 2.5), r"lane 0 is outside the action space: \[2.5, 2.5\]"),
            (np.array([[0, 0], [0, np.nan]]), "lane 1 is NaN"),
        ]:
            with pytest.raises(ActionError, match=message):
                batch.step(action)
        assert_identical(batch.get_state(), state)

    def test_trees_of_actions(self):
        batch = SerialBatch(Walk, 2, env_kwargs={"action": "dict"})
        batch.reset(seed=0)
        with pytest.raises(ActionError, match=r"keys \['move', 'push'\]"):
            batch.step({"move": [0, 0]})
        with pytest.raises(ActionError, match="lane 1 is outside the action space: 3"):
            batch.step({"move": [0, 3], "push": np.zeros((2, 1))})
        binary = SerialBatch(Walk, 2, env_kwargs={"action": "multibinary"})
        binary.reset(seed=0)
        with pytest.raises(ActionError, match="lane 0 is outside"):
            binary.step([[0, 2, 0], [0, 0, 0]])

    def test_after_close(self):
        batch = SerialBatch(Trap, 1)
        batch.reset()
        batch.close()
        with pytest.raises(StateError, match="after close"):
            batch.step([0])

    def test_state_of_another_size(self):
        batch, other = SerialBatch(Walk, 2), SerialBatch(Walk, 3)
        batch.reset()
        with pytest.raises(StateError, match="state of 2 lanes; this batch has 3"):
            other.set_state(batch.get_state())
