from __future__ import annotations

import subprocess
import sys

import pytest

import shoal
from shoal.errors import ConfigError, UnknownName
from shoal.registry import as_world, load
from shoal.training.lab import Verb, lab_of
from shoal.training.settings import config_from, resolve_config
from shoal.worlds.kg.lanes.data.dataset import load_dataset
from shoal.worlds.kg.world import WORLD, KGOptions


def test_listing_the_world_and_its_verbs_imports_nothing_heavy():
    heavy = "{'numpy', 'numba', 'torch', 'gymnasium'}"
    code = f"import sys, shoal.worlds.kg.world as w; w.KGOptions(); print({heavy} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_values_of_files_and_richer_ones_of_python_are_both_taken():
    config = config_from({"world": "kg", "env": {"corruption": ["tail"], "depth_weights": {"2": 1}}})
    assert config.env == KGOptions(corruption=("tail",), depth_weights={2: 1.0})
    data = load_dataset("families:3")
    batch = shoal.make("kg", 2, data=data, engine="tensor", fact_cap=4, num_threads=1)
    assert batch.data is data
    batch.close()


def test_the_device_of_the_engine_had_another_name_once():
    assert config_from({"world": "kg", "env": {"device": "meta"}}).env.engine_device == "meta"


@pytest.mark.parametrize("name", ["ppo", "countries_s3", "family", "wn18rr"])
def test_presets_are_configurations(name):
    config = resolve_config(WORLD, {}, preset=name)
    assert config.env.state_encoder == "role"
    assert config.num_envs == 256


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cut": "last"}, "Invalid value for cut"),
        ({"embedding_size": 0}, "embedding_size must be at least 1"),
        ({"max_depth": 0}, "max_depth must be at least 1"),
        ({"engine": "fast"}, "Invalid value for engine"),
        ({"split": "tests"}, "Did you mean 'test'"),
        ({"data": "families:x"}, "whole number"),
        ({"compiled": False}, "do not take compiled"),
    ],
)
def test_bad_options_are_refused_at_the_door(options, message):
    with pytest.raises(ConfigError, match=message):
        shoal.make("kg", 1, **options)
    with pytest.raises(UnknownName, match="max_depth"):
        shoal.make("kg", 1, max_deph=3)


def test_every_command_is_a_verb():
    assert list(WORLD.commands) == ["prove", "mine-rules", "train-kge"]
    assert all(isinstance(load(command.verb), Verb) for command in WORLD.commands.values())
    assert [headline.label for headline in lab_of(as_world("kg")).headlines] == ["proved", "proved, false"]
