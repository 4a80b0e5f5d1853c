from __future__ import annotations

import gymnasium as gym
import pytest

from shoal.errors import ConfigError
from shoal.vector.lanes.making import EnvMaker, make_lane, probe
from tests.vector.toys import Trap, Walk


def test_an_id_keeps_its_time_limit_and_loses_its_checks():
    env = EnvMaker("CartPole-v1", {"max_episode_steps": 7})()
    assert isinstance(env, gym.wrappers.TimeLimit)
    assert env.spec.max_episode_steps == 7
    assert env.env is env.unwrapped


def test_the_registered_spec_is_left_as_it_is():
    EnvMaker("CartPole-v1")()
    assert gym.spec("CartPole-v1").order_enforce


class Sized(gym.Env):
    observation_space, action_space = gym.spaces.Discrete(2), gym.spaces.Discrete(2)

    def __init__(self, size=3, goal=1):
        self.size = size


def test_an_argument_that_the_environment_does_not_have_names_the_environment():
    with pytest.raises(ConfigError, match=r"Sized has no argument 'sise'. Did you mean 'size'. It takes size, goal"):
        make_lane(EnvMaker(Sized, {"sise": 4}), 0)
    with pytest.raises(ConfigError, match=r"CartPole-v1 has no argument 'length'. .*sutton_barto_reward"):
        make_lane(EnvMaker("CartPole-v1", {"length": 4}), 0)


class Game:
    """As PettingZoo's."""

    possible_agents = ("one", "two")


def test_a_game_of_several_agents_is_told_by_which_name_it_works():
    sentence = r"several agents.*pettingzoo/PACKAGE\.MODULE:env"
    with pytest.raises(ConfigError, match=sentence):
        EnvMaker(Game())
    with pytest.raises(ConfigError, match=sentence):
        make_lane(EnvMaker(Game), 0)


def test_a_package_that_is_missing_is_named():
    def needs_more():
        raise gym.error.DependencyNotInstalled("Box2D is not installed, run `pip install swig`.")

    with pytest.raises(ConfigError, match="needs a package that is not installed: Box2D is not installed"):
        make_lane(EnvMaker(needs_more), 0)


def test_probing_uses_an_environment_of_its_own_and_closes_it():
    made: list[Closing] = []

    class Closing(Trap):
        closed = False

        def close(self) -> None:
            self.closed = True

    def make() -> Closing:
        made.append(Closing())
        return made[-1]

    traits = probe(EnvMaker(make))
    assert traits.observation_space == Trap.observation_space
    assert traits.mask_source is None
    assert [env.closed for env in made] == [True]


@pytest.mark.parametrize(("mask", "width"), [("method", 4), ("info", 4), ("", None)])
def test_probing_finds_masks(mask, width):
    assert probe(EnvMaker(Walk, {"mask": mask})).mask_width == width
