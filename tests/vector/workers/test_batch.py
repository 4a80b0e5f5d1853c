from __future__ import annotations

import threading

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import ActionError, ConfigError, LaneFault, StateError, UnknownName
from shoal.vector.serial import SerialBatch
from shoal.vector.workers import WorkerBatch
from tests.vector.toys import ACTION_SPACES, OBS_SPACES, Trap, Walk, assert_identical
from tests.vector.workers.left_behind import assert_nothing_left

MODES = ["same_step", "next_step", "disabled"]


def run(batch, seed: int, num_steps: int) -> list:
    """A trajectory under random actions; DISABLED lanes are reset as they end."""
    batch.action_space.seed(seed)
    results = [batch.reset(seed=seed)]
    for _ in range(num_steps):
        results.append(batch.step(batch.action_space.sample()))
        done = results[-1][2] | results[-1][3]
        if batch.metadata["autoreset_mode"].value == "Disabled" and done.any():
            results.append(batch.reset(options={"reset_mask": done}))
    return results


@settings(max_examples=15, deadline=None)
@given(
    num_envs=st.integers(1, 5),
    num_workers=st.integers(1, 3),
    mode=st.sampled_from(MODES),
    seed=st.integers(0, 2**31 - 1),
    obs=st.sampled_from(sorted(OBS_SPACES)),
    action=st.sampled_from(sorted(ACTION_SPACES)),
    info=st.booleans(),
)
def test_workers_agree_with_serial_bit_for_bit(num_envs, num_workers, mode, seed, obs, action, info):
    options = {"env_kwargs": {"obs": obs, "action": action, "info": info}, "autoreset_mode": mode}
    expected = run(SerialBatch(Walk, num_envs, **options), seed, 15)
    with_workers = WorkerBatch(Walk, num_envs, num_workers=min(num_workers, num_envs), context="fork", **options)
    try:
        assert_identical(tuple(run(with_workers, seed, 15)), tuple(expected))
    finally:
        with_workers.close()


@pytest.mark.parametrize("context", ["forkserver", "spawn"])
def test_every_way_to_start_them_gives_the_same(context):
    batch = WorkerBatch("CartPole-v1", 3, num_workers=2, context=context)
    assert_identical(tuple(run(batch, 5, 40)), tuple(run(SerialBatch("CartPole-v1", 3), 5, 40)))
    batch.close()
    assert_nothing_left(batch)


@pytest.mark.parametrize("mask", ["method", "info"])
def test_action_masks_cross(mask):
    batch = WorkerBatch(Walk, 3, env_kwargs={"mask": mask}, num_workers=2, context="fork")
    serial = SerialBatch(Walk, 3, env_kwargs={"mask": mask})
    assert batch.has_action_mask
    results = run(batch, 1, 12)
    assert results[-1][-1]["action_mask"].shape == (3, 4)
    assert_identical(tuple(results), tuple(run(serial, 1, 12)))
    batch.close()


def test_a_factory_may_be_a_closure():
    limit = 3
    batch = WorkerBatch(lambda: Walk(info=limit == 3), 2, num_workers=1)
    assert "t" in batch.reset(seed=0)[1]
    batch.close()


def test_an_id_need_only_be_registered_in_this_process():
    gym.register("OnlyHere-v0", entry_point=lambda: Walk(), max_episode_steps=3)
    try:
        batch = WorkerBatch("OnlyHere-v0", 2, num_workers=1, context="spawn")
    finally:
        del gym.registry["OnlyHere-v0"]
    obs, _ = batch.reset(seed=0)
    assert len(obs) == 2
    batch.close()


def test_step_into_writes_into_the_callers_buffers():
    batch, twin = WorkerBatch("CartPole-v1", 2, context="fork"), SerialBatch("CartPole-v1", 2)
    rollout = [batch.empty_step() for _ in range(3)]
    batch.reset_into(rollout[0], seed=1)
    twin.reset(seed=1)
    for out in rollout:
        batch.step_into([0, 1], out)
        assert twin.step([0, 1])[0].tolist() == out.obs.tolist()
    batch.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_state_continues_exactly_in_a_serial_batch_and_back(mode):
    options = {"env_kwargs": {"obs": "dict", "action": "tuple"}, "autoreset_mode": mode}
    batch, serial = WorkerBatch(Walk, 3, num_workers=2, context="fork", **options), SerialBatch(Walk, 3, **options)
    run(batch, 4, 7)
    state = batch.get_state()
    serial.set_state(state)
    assert_identical(serial.get_state(), state)
    actions = [batch.action_space.sample() for _ in range(3)]
    batch.set_state(state)
    for action in actions:
        result = serial.step(action)
        assert_identical(batch.step(action), result)
        if mode == "disabled" and (result[2] | result[3]).any():
            break
    batch.close()


def test_what_cannot_be_saved_leaves_the_batch_running():
    batch = WorkerBatch("BipedalWalker-v3", 2, num_workers=2)
    batch.reset(seed=0)
    with pytest.raises(StateError, match="cannot save these environments"):
        batch.get_state()
    batch.step(batch.action_space.sample())
    batch.close()


class Locked(Walk):
    lock = None

    def __init__(self, lock=None) -> None:
        super().__init__()
        self.lock = lock


def differing():
    """A factory whose third environment has other spaces."""
    made = iter(["box", "box", "image", "image", "image"])
    return lambda: Walk(next(made))


def refuse_to_reset():
    env = Trap()
    env.doomed = True
    return env


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_envs": 0}, ConfigError, "num_envs must be at least 1, not 0"),
        ({"num_workers": 0}, ConfigError, "num_workers=0 is not valid. Pass an int from 1 on"),
        ({"num_workers": -2}, ConfigError, "num_workers=-2"),
        ({"context": "thread"}, ConfigError, "context='thread' is unknown"),
        ({"on_fault": "ignore"}, ConfigError, "on_fault='ignore' is unknown"),
        ({"step_timeout": 0}, ConfigError, "step_timeout must be above 0 seconds, not 0"),
        ({"env": "CartPoel-v1"}, UnknownName, "Did you mean 'CartPole-v1'"),
        ({"env": Trap()}, ConfigError, "already made"),
        ({"env": lambda: 7}, ConfigError, "returned a int, not a gymnasium.Env"),
        ({"env_kwargs": {"obs": "nothing"}}, LaneFault, "(?s)Lane 0 raised KeyError in its constructor.*toys.py"),
        ({"env": refuse_to_reset}, LaneFault, "(?s)Lane 0 raised OSError in reset.*the level file is gone"),
        ({"env": differing()}, ConfigError, "Lane 1 has the observation_space .* the others"),
        (
            {"env": Locked, "env_kwargs": {"lock": threading.Lock()}, "context": "spawn"},
            ConfigError,
            "cannot be sent to the workers.*cannot pickle.*or use context='fork'",
        ),
    ],
)
def test_what_cannot_be_made_is_said_in_a_sentence_and_leaves_nothing(arguments, error, message):
    options = {"env": Walk, "num_envs": 4, "num_workers": 1, "context": "fork", **arguments}
    with pytest.raises(error, match=message):
        WorkerBatch(**options)
    assert_nothing_left()


def test_wrong_moments_and_wrong_actions_move_nothing():
    batch = WorkerBatch(Walk, 2, num_workers=2, env_kwargs={"action": "box"}, context="fork")
    with pytest.raises(StateError, match="before reset"):
        batch.step(np.zeros((2, 2)))
    with pytest.raises(StateError, match="before reset"):
        batch.send(np.zeros((1, 2)), [0])
    batch.reset(seed=0)
    state = batch.get_state()
    for action, message in [
        (np.zeros((3, 2)), "3 actions of shape .* for 2 environments"),
        (np.full((2, 2), 2.5), "lane 0 is outside the action space"),
        (np.array([[0, 0], [0, np.nan]]), "lane 1 is NaN"),
    ]:
        with pytest.raises(ActionError, match=message):
            batch.step(action)
    assert_identical(batch.get_state(), state)
    batch.close()
    with pytest.raises(StateError, match="after close"):
        batch.step(np.zeros((2, 2)))
    assert_nothing_left(batch)
