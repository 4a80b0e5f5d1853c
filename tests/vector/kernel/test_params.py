"""Parameters that differ between lanes, change between steps, or are drawn for every episode."""

import numpy as np
import pytest

import shoal
from shoal.errors import ConfigError, StateError, UnknownName
from shoal.options import Range
from shoal.vector.kernel import KernelBatch
from shoal.worlds.classic.lanes.cartpole import CartPole
from tests.vector.kernel.kernels import Corridor

GRAVITY = np.array([9.8, 5.0, 20.0])
ACTION = np.array([0, 1, 1])


def rollout(batch, steps=40):
    obs, _ = batch.reset(seed=1)
    return np.array([obs, *(batch.step(ACTION[: batch.num_envs])[0] for _ in range(steps))])


@pytest.mark.parametrize("compiled", [True, False])
def test_a_lane_with_its_own_gravity_is_a_lane_of_a_batch_with_that_gravity(compiled):
    mixed = rollout(shoal.make(CartPole, 3, gravity=GRAVITY, compiled=compiled))
    for lane, gravity in enumerate(GRAVITY):
        alike = rollout(KernelBatch(CartPole(gravity=gravity), 3))
        assert np.array_equal(mixed[:, lane], alike[:, lane])


def test_tables_can_differ_too():
    bonus = np.arange(9, dtype=np.float32).reshape(3, 3)
    rewards = []
    for compiled in (True, False):
        batch = KernelBatch(Corridor(bonus=bonus), 3, compiled=compiled)
        batch.reset(seed=0)
        rewards.append(batch.step(ACTION)[1])
    assert np.array_equal(*rewards)
    assert np.allclose(rewards[0], [0, 4, 7], atol=0.1)


@pytest.mark.parametrize("compiled", [True, False])
def test_parameters_change_between_steps(compiled):
    batch = KernelBatch(CartPole, 3, compiled=compiled)
    batch.reset(seed=1)
    batch.set_params(gravity=GRAVITY, max_steps=7)
    assert np.array_equal(rollout(batch), rollout(KernelBatch(CartPole(gravity=GRAVITY, max_steps=7), 3)))
    batch.set_params(gravity=9.8, max_steps=500)
    assert np.array_equal(rollout(batch), rollout(KernelBatch(CartPole, 3)))


def test_a_range_is_drawn_for_every_episode_from_the_lane_s_own_stream():
    batches = [
        shoal.make("cartpole", n, gravity="8..12", max_steps="3..5", compiled=c) for n, c in ((3, True), (2, False))
    ]
    seen = [[], []]
    for batch, values in zip(batches, seen, strict=True):
        batch.reset(seed=2)
        for _ in range(30):
            *_, info = batch.step(ACTION[: batch.num_envs])
            values.append((batch.params["gravity"][:2].copy(), batch.params["max_steps"][:2].copy()))
            if "episode" in info:
                assert set(info["episode"]["l"][info["_episode"]]) <= {3, 4, 5}
    assert np.array_equal(seen[0], seen[1])  # compiled or not, beside however many lanes
    gravity, steps = np.array([g for g, _ in seen[0]]), np.array([s for _, s in seen[0]])
    assert len(np.unique(gravity)) > 8
    assert ((gravity >= 8) & (gravity <= 12)).all()
    assert set(steps.ravel()) == {3, 4, 5}


def test_a_range_can_be_moved_without_loading_anew():
    batch = shoal.make("cartpole", 3, gravity=Range("8..12"))
    batch.reset(seed=0)
    run = batch._run
    batch.set_params(gravity=Range("1..2"))
    assert batch._run is run
    batch.reset()
    assert ((batch.params["gravity"] >= 1) & (batch.params["gravity"] <= 2)).all()


def test_what_was_drawn_is_part_of_the_state():
    batch, other = (shoal.make("cartpole", 3, gravity="8..12") for _ in range(2))
    batch.reset(seed=0)
    other.set_state(batch.get_state())
    for _ in range(40):
        assert np.array_equal(batch.step(ACTION)[0], other.step(ACTION)[0])
    plain = shoal.make("cartpole", 3)
    plain.reset(seed=0)
    with pytest.raises(StateError, match="no 'gravity' for each of the 3 lanes"):
        other.set_state(plain.get_state())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gravity": np.ones(4)}, "gravity has 4 values for 3 lanes"),
        ({"gravity": "12..8"}, "'12..8' is not a range"),
        ({"max_steps": "2.5..4"}, "must be a whole number"),
        ({"gravity": "8..x"}, "not a range"),
    ],
)
def test_what_cannot_be_a_parameter_is_told(values, message):
    with pytest.raises(ConfigError, match=message):
        shoal.make("cartpole", 3, **values)


def test_an_unknown_parameter_is_told():
    with pytest.raises(UnknownName, match="Did you mean 'gravity'"):
        KernelBatch(CartPole, 3).set_params(gravitas=1.0)
