"""What is put around lanes keeps the contract, on every backend."""

from contextlib import closing
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import FrameStackObservation, GrayscaleObservation, TimeLimit

import shoal
from shoal.errors import ConfigError
from shoal.testing import check_batch
from shoal.testing.findings import BROKEN
from shoal.vector.serial import SerialBatch
from tests.training.pictures import Dot

CARTPOLE = {"frame_stack": 3, "action_repeat": 2, "time_limit": 9, "clip_reward": 1.5, "sticky_actions": 0.25}
DOT = {"env_kwargs": {}, "backend": "serial", "frame_stack": 2, "time_limit": 5, "resize": 4, "time_aware": True}


@pytest.mark.parametrize(("env", "options"), [("cartpole", CARTPOLE), (Dot, DOT)], ids=["kernel", "environments"])
def test_every_promise_is_kept(env, options):
    make = partial(shoal.make, env, **options)
    findings = [finding for finding in check_batch(make, max_examples=4) if finding.severity == BROKEN]
    assert findings == []


class Drawing(Dot):
    """Draws itself."""

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, render_mode=None):
        super().__init__()
        self.render_mode = render_mode

    def render(self):
        return np.full((4, 6, 3), self.t, np.uint8)


def test_what_draws_itself_does_so_with_something_around_it():
    batch = shoal.make(Drawing, 2, backend="serial", frame_stack=2, env_kwargs={"render_mode": "rgb_array"})
    batch.reset(seed=0)
    batch.step([0, 1])
    pictures = batch.render()
    assert [picture.shape for picture in pictures] == [(4, 6, 3)] * 2
    assert pictures[1].max() == 1
    batch.close()


class Colours(gym.Env):
    """Random pictures; the reward counts steps, and episodes end after seven or ten."""

    observation_space = gym.spaces.Box(0, 255, (12, 16, 3), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.length = 0, 7 + 3 * int(self.np_random.integers(2))
        return self._look(), {}

    def step(self, action):
        self.t += 1
        return self._look(), float(self.t), self.t == self.length, False, {}

    def _look(self):
        return self.np_random.integers(0, 256, (12, 16, 3), np.uint8)


def gymnasium_way():
    return FrameStackObservation(TimeLimit(GrayscaleObservation(Colours()), 8), 3)


def test_it_shows_what_gymnasiums_wrappers_show():
    ours = shoal.make(Colours, 3, backend="serial", grey=True, time_limit=8, frame_stack=3)
    theirs = SerialBatch(gymnasium_way, 3)
    with closing(ours), closing(theirs):
        one, other = ours.reset(seed=[1, 2, 3])[0], theirs.reset(seed=[1, 2, 3])[0]
        rng = np.random.default_rng(0)
        for _ in range(40):
            np.testing.assert_allclose(one.astype(int), other.astype(int), atol=1)  # of rounding grey
            action = rng.integers(0, 2, 3)
            one, *mine, info = ours.step(action)
            other, *their, known = theirs.step(action)
            for a, b in zip(mine, their, strict=True):
                np.testing.assert_array_equal(a, b)
            if "final_obs" in info:
                done = info["_final_obs"]
                final = info["final_obs"][done].astype(int), known["final_obs"][done].astype(int)
                np.testing.assert_allclose(*final, atol=1)


def test_kept_actions_stop_where_the_episode_does():
    batch = shoal.make(Colours, 4, backend="serial", action_repeat=3)
    with closing(batch):
        batch.reset(seed=0)
        returns = []
        for _ in range(30):
            *_, info = batch.step(np.zeros(4, np.int64))
            if "episode" in info:
                returns += info["episode"]["r"][info["_episode"]].tolist()
                assert set(info["episode"]["l"][info["_episode"]]) <= {3, 4}
    assert set(returns) == {28.0, 55.0}  # 1 + ... + 7, and to 10: no reward is lost or paid twice


def test_resizing_takes_means():
    batch = shoal.make(Colours, 1, backend="serial", grey=True, resize=4)
    plain = shoal.make(Colours, 1, backend="serial", grey=True)
    with closing(batch), closing(plain):
        small, large = batch.reset(seed=[3])[0], plain.reset(seed=[3])[0]
    means = large.reshape(1, 4, 3, 4, 4).mean((2, 4))
    np.testing.assert_allclose(small, means, atol=1.5)


def test_training_takes_them_by_name(tmp_path):
    settings = {"num_envs": 4, "total_steps": 128, "algo": {"num_steps": 16}, "eval_episodes": 2, "quiet": True}
    result = shoal.train("cartpole", frame_stack=2, time_limit=20, runs_dir=tmp_path, **settings)
    assert max(result.evaluation["returns"]) <= 20
    assert shoal.load(result.run).observation_space.shape == (2, 4)


def test_atari_is_short_for_what_agents_are_shown():
    with closing(shoal.make(Colours, 2, backend="serial", atari=True)) as batch:
        assert batch.single_observation_space == gym.spaces.Box(0, 255, (4, 84, 84), np.uint8)
        batch.reset(seed=0)
        assert (batch.step(np.zeros(2, np.int64))[1] == 1).all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"time_aware": True}, "Set time_limit too"),
        ({"grey": True}, "is for colour images"),
        ({"frame_stack": 0}, "frame_stack must be at least 1, not 0"),
        ({"sticky_actions": 1.5}, "between 0 and 1, not 1.5"),
    ],
)
def test_what_cannot_be_gets_a_sentence(options, sentence):
    with pytest.raises(ConfigError, match=sentence):
        shoal.make("cartpole", 2, **options)
