from __future__ import annotations

import gymnasium as gym
import pytest

from shoal.errors import ConfigError, UnknownName
from shoal.vector.lanes.making import EnvMaker, find_spec, probe
from tests.vector.toys import Trap, Walk


def test_an_id_keeps_its_time_limit_and_loses_its_checks():
    env = EnvMaker("CartPole-v1", {"max_episode_steps": 7})()
    assert isinstance(env, gym.wrappers.TimeLimit)
    assert env.spec.max_episode_steps == 7
    assert env.env is env.unwrapped


def test_the_registered_spec_is_left_as_it_is():
    EnvMaker("CartPole-v1")()
    assert gym.spec("CartPole-v1").order_enforce


def test_an_id_may_name_the_module_that_registers_it():
    assert find_spec("gymnasium.envs.classic_control:CartPole-v1").id == "CartPole-v1"
    with pytest.raises(ConfigError, match="'no_such_module:CartPole-v1' names a module that cannot be imported"):
        find_spec("no_such_module:CartPole-v1")
    with pytest.raises(UnknownName, match="Did you mean"):
        find_spec("CartPole-v9")


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
