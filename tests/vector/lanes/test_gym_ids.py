"""Gymnasium ids of other packages: found, imported, or the sentence that says what to install."""

import sys

import pytest

import shoal
from shoal.errors import ConfigError, UnknownName
from shoal.registry import as_world
from shoal.vector.lanes import gym_ids
from shoal.vector.lanes.gym_ids import PACKAGES, Package, find_spec


def test_an_id_may_name_the_module_that_registers_it():
    assert find_spec("gymnasium.envs.classic_control:CartPole-v1").id == "CartPole-v1"
    with pytest.raises(ConfigError, match="There is no module 'no_such_module' to load 'no_such_module:CartPole-v1'"):
        find_spec("no_such_module:CartPole-v1")
    with pytest.raises(UnknownName, match="Did you mean"):
        find_spec("CartPole-v9")


IMAGE_ONLY = {"env_wrappers": ["minigrid.wrappers:ImgObsWrapper", "FlattenObservation"]}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("MiniGrid-Empty-5x5-v0", IMAGE_ONLY),
        ("minigrid:BabyAI-GoToObj-v0", IMAGE_ONLY),
        ("highway-v0", {}),
        ("ale_py:ALE/Pong-v5", {}),
    ],
)
def test_ids_of_well_known_packages_work_by_themselves(name, options):
    batch = shoal.make(name, 1, **options)
    obs, _ = batch.reset(seed=0)
    assert obs.dtype == batch.single_observation_space.dtype
    batch.close()
    assert as_world(name).reference == name


def test_observations_without_a_shape_say_which_wrapper_helps():
    with pytest.raises(ConfigError, match=r"has no fixed shape.* --env-wrappers minigrid.wrappers:ImgObsWrapper"):
        shoal.make("MiniGrid-Empty-5x5-v0", 1)
    with pytest.raises(UnknownName, match=r"No wrapper 'FlattenObs' in gymnasium.wrappers. Did you mean 'Fl"):
        shoal.make("CartPole-v1", 1, env_wrappers=["FlattenObs"])


def test_a_well_known_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(gym_ids, "PACKAGES", (*PACKAGES, Package("Unheard-", "unheard_of", "unheard-of")))
    for name in ("Unheard-Of-v0", "unheard_of:Unheard-Of-v0"):
        with pytest.raises(
            ConfigError, match="comes from the package unheard-of, which is not installed: pip install unh"
        ):
            shoal.make(name, 1)


def test_an_unknown_id_says_how_to_name_its_package():
    with pytest.raises(UnknownName, match="--import PACKAGE, or PACKAGE:Mine-v0"):
        as_world("Mine-v0")


MODULE = """
import gymnasium as gym
gym.register("FromElsewhere-v0", entry_point="gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=9)
"""


def test_a_module_is_imported_first_and_written_down(tmp_path, monkeypatch, capsys):
    from shoal.cli import main

    (tmp_path / "registers_one.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    quick = "--num-envs 1 --algo.num-steps 4 --algo.minibatches 1 --total-steps 8 --eval-episodes 1 --run-name one"
    assert main(["train", "FromElsewhere-v0", "--import", "registers_one", *quick.split()]) == 0
    assert '"world": "registers_one:FromElsewhere-v0"' in (tmp_path / "runs" / "one" / "config.json").read_text()
    assert main(["eval", "runs/one", "--episodes", "2"]) == 0
    assert main(["train", "--import"]) == 2
    assert "--import needs the name of a module" in capsys.readouterr().err


def test_envs_shows_what_it_counts(capsys):
    from shoal.cli import main

    assert main(["envs", "mujoco"]) == 0
    said = capsys.readouterr().out
    assert "HalfCheetah-v5" in said
    assert "HalfCheetah-v4" not in said
    assert "CartPole" not in said
    assert main(["envs", "--all"]) == 0
    said = capsys.readouterr().out
    assert "hockey" in said
    assert "LunarLander-v3" in said
    assert "MiniGrid-Empty-5x5-v0" in said
    assert main(["envs", "nothing-like-that"]) == 2
