"""Trained defenders as files: read, evaluated by NumPy, one per red."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.errors import ConfigError
from shoal.worlds.cage2.policies import Network, NetworkPolicy, bundled_networks, defender_of, find_policy, read_network
from shoal.worlds.cage2.policies.export import save_network
from shoal.worlds.cage2.world import make_cage2


def constant(action, inputs=52, choices=145):
    """A network that always prefers one action."""
    weight, bias = np.zeros((choices, 8), np.float32), np.zeros(choices, np.float32)
    bias[action] = 1.0
    hidden = (np.ones((8, inputs), np.float32), np.zeros(8, np.float32))
    return Network("cage2", "bline", {"scan_memory": False}, (hidden, (weight, bias)), {})


def test_a_network_survives_its_file(tmp_path):
    rng = np.random.default_rng(0)
    shapes = ((6, 52), (145, 6))
    layers = tuple(tuple(rng.integers(-8, 8, n).astype(np.float32) / 16 for n in (s, s[0])) for s in shapes)  # halves
    network = Network("debugged", "meander", {"scan_memory": True}, layers, {})
    save_network(network, tmp_path / "n.safetensors", {"command": "shoal train cage2"})
    again = read_network((tmp_path / "n.safetensors").read_bytes())
    assert (again.variant, again.red, again.env) == ("debugged", "meander", {"scan_memory": True})
    assert again.about == {"command": "shoal train cage2"}
    obs = rng.random((5, 52))
    np.testing.assert_array_equal(again.scores(obs), network.scores(obs))
    np.testing.assert_allclose(
        network.scores(obs), np.tanh(obs @ layers[0][0].T + layers[0][1]) @ layers[1][0].T + layers[1][1], atol=1e-5
    )


def test_every_lane_gets_the_network_of_its_red_and_obeys_masks():
    batch = make_cage2(3, red=["bline", "meander", "sleep"], compiled=False)
    policy = NetworkPolicy(batch, {"bline": constant(7), "meander": constant(9), "sleep": constant(7)})
    obs, _ = batch.reset(seed=0)
    assert policy(obs, {}).tolist() == [7, 9, 7]
    mask = np.ones((3, 145), bool)
    mask[:, 9] = False
    assert policy(obs, {"action_mask": mask}).tolist() == [7, 0, 7]


def test_other_observations_are_refused_in_one_sentence():
    with pytest.raises(ConfigError, match="reads 52 numbers per lane, but the lanes show 62"):
        constant(0).scores(np.zeros((2, 62)))


def test_bundled_defenders_say_how_they_were_made():
    for (variant, red), network in bundled_networks().items():
        assert network.about["command"].startswith("shoal train cage2"), (variant, red)
        assert network.about["mean return"]["as played"]["100"] < 0


def test_a_variant_without_defenders_is_named():
    with pytest.raises(ConfigError, match="debugged"):
        defender_of("bundled", "debugged")


def test_baselines_open_by_name():
    options, make_policy = find_policy("react-restore", {"red": "meander"})
    batch = make_cage2(3, red="meander", compiled=False, **options)
    policy = make_policy(batch)
    obs, info = batch.reset(seed=0)
    assert policy(obs, info).tolist() == [1, 1, 1]
