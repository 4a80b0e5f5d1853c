"""`random` and `np.random` belong to the lane whose turn it is."""

import random
from contextlib import closing

import gymnasium as gym
import numpy as np
import pytest

import shoal
from shoal.errors import LaneFault
from shoal.vector.lanes import own_random
from shoal.vector.lanes.own_random import OwnRandom, split, turn_of


class Careless(gym.Env):
    """Draws from the generators of the whole process, as many environments do; in some steps more than in others."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float64)
    action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        return self._drawn(1), {}

    def step(self, action):
        return self._drawn(int(action)), 0.0, random.random() < 0.1, False, {}

    def _drawn(self, count):
        extra = [random.gauss(0, 1) + np.random.normal() for _ in range(count)]
        return np.array([random.random(), np.random.random(), random.randrange(10**6), sum(extra)])


def trajectory(num_envs, steps=12, seed=5, state_at=None, **options):
    """[steps + 1, num_envs, 4]; through `get_state` and `set_state` of another batch in the middle, if told."""
    actions = np.random.default_rng(0).integers(0, 3, (steps, 8))
    seen = []
    batch = shoal.make(Careless, num_envs, **options)
    try:
        seen.append(batch.reset(seed=seed)[0])
        for k in range(steps):
            if k == state_at:
                state = batch.get_state()
                batch.close()
                batch = shoal.make(Careless, num_envs, **options)
                batch.set_state(state)
            seen.append(batch.step(actions[k, :num_envs])[0])
    finally:
        batch.close()
    return np.stack(seen)


SERIAL = {"backend": "serial"}


@pytest.mark.parametrize("options", [SERIAL, *({"backend": "workers", "num_workers": n} for n in (1, 3))], ids=str)
def test_what_a_lane_draws_depends_on_its_seed_alone(options):
    alone, together = trajectory(2, **SERIAL), trajectory(4, **options)
    assert np.array_equal(together[:, :2], alone)
    assert len(np.unique(together[..., :2])) == together[..., :2].size, "lanes draw the same"
    assert not np.array_equal(trajectory(2, seed=6, **SERIAL), alone)


def test_lanes_without_a_seed_differ_between_workers():
    drawn = trajectory(3, 1, seed=None, backend="workers", num_workers=3)[..., :2]
    assert len(np.unique(drawn)) == drawn.size


def test_a_saved_lane_goes_on_drawing_where_it_was():
    assert np.array_equal(trajectory(3, state_at=5, **SERIAL), trajectory(3, **SERIAL))


def test_a_lane_is_seeded_as_the_functions_of_both_modules_seed():
    with closing(shoal.make(Careless, 1, **SERIAL)) as batch:
        first = batch.reset(seed=[2**40 + 7])[0]
    kept = random.getstate(), np.random.get_state()
    random.seed(2**40 + 7)
    np.random.seed((2**40 + 7) % 2**32)
    expected = Careless().reset()[0]
    random.setstate(kept[0])
    np.random.set_state(kept[1])
    assert np.array_equal(first[0], expected)


def test_the_process_keeps_its_own_generators():
    random.seed(1)
    np.random.seed(1)
    expected = random.random(), random.gauss(0, 1), random.gauss(0, 1), np.random.random(3).tolist()
    random.seed(1)
    np.random.seed(1)
    drawn = [random.random(), random.gauss(0, 1)]
    trajectory(3, **SERIAL)
    with closing(shoal.make(Breaking, 2, **SERIAL)) as batch:
        batch.reset(seed=0)
        with pytest.raises(LaneFault):
            batch.step([0, 0])
    assert (*drawn, random.gauss(0, 1), np.random.random(3).tolist()) == expected


class Breaking(Careless):
    def step(self, action):
        raise RuntimeError(str(random.random()))


@pytest.mark.parametrize("readable", [True, False], ids=["memory", "getstate"])
def test_turns_are_the_same_where_memory_cannot_be_read(readable, monkeypatch):
    monkeypatch.setattr(own_random, "_READABLE", readable)
    own, plain = OwnRandom(9), random.Random(9)
    for count in (1, 700, 3):
        with turn_of(own):
            drawn = [random.random() for _ in range(count)], random.gauss(0, 1)
        assert drawn == ([plain.random() for _ in range(count)], plain.gauss(0, 1))


@pytest.mark.parametrize("draws", [0, 1, 624, 625])
def test_generators_behind_other_bytes(draws):
    own = OwnRandom(3)
    with turn_of(own):
        for _ in range(draws):
            random.getrandbits(32)
            np.random.randint(2**16)
    before, copied = split(b"before" + own.saved())
    assert before == b"before"
    assert copied.saved() == own.saved()
    assert split(b"an older state") == (b"an older state", None)
