"""Environments that are given as objects: they train, and what will not be possible is said at the start."""

from functools import partial

import gymnasium as gym
import pytest

import shoal
from shoal.errors import ConfigError
from tests.training.worlds import EnvWalk

QUICK = {
    "num_envs": 2,
    "backend": "serial",
    "total_steps": 32,
    "eval_episodes": 2,
    "algo": {"num_steps": 8, "hidden": [8], "minibatches": 2, "epochs": 1},
}


class Adjustable(EnvWalk):
    """A walk whose argument must not be forgotten."""

    def __init__(self, size=1):
        self.size = size


class Maker:
    """A factory without a name of its own."""

    def __call__(self):
        return EnvWalk()


def inner_class():
    class Inner(EnvWalk):
        pass

    return Inner


OBJECTS = {
    "partial": partial(Adjustable, size=3),
    "partial with an id": partial(gym.make, "CartPole-v1"),
    "lambda": lambda: EnvWalk(),
    "callable": Maker(),
    "inner class": inner_class(),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_objects_without_a_name_train_and_say_that_they_have_none(kind, tmp_path, capsys):
    from shoal.cli import main

    result = shoal.train(OBJECTS[kind], runs_dir=tmp_path, **QUICK)
    assert "has no name to import" in " ".join(capsys.readouterr().out.split())
    assert main(["eval", str(result.run)]) == 2  # and is not evaluated as something else
    assert "which has no name to import. Pass it again" in capsys.readouterr().err
    again = shoal.train(OBJECTS[kind], resume=result.run, total_steps=64, quiet=True)
    assert again.total_steps == 64


def test_a_class_of_a_module_needs_no_word(tmp_path, capsys):
    from shoal.cli import main

    result = shoal.train(Adjustable, runs_dir=tmp_path, **QUICK)
    assert "no name to import" not in capsys.readouterr().out
    assert main(["eval", str(result.run), "--episodes", "2"]) == 0


def test_a_batch_that_is_made_is_refused_in_a_sentence():
    with pytest.raises(ConfigError, match="is a batch that is already made, and a run makes its own"):
        shoal.train(shoal.make("cartpole", 2), total_steps=10)


def test_a_vector_environment_that_is_made_is_refused_in_a_sentence():
    with pytest.raises(ConfigError, match=r"cannot make lanes. Pass a Gymnasium id, a class or a factory"):
        shoal.train(gym.vector.SyncVectorEnv([EnvWalk]), total_steps=10)


def test_several_seeds_need_a_name():
    with pytest.raises(ConfigError, match="processes of their own, which cannot find"):
        shoal.train(partial(Adjustable, size=3), seeds=2, **QUICK)
