"""Trained defenders as files: read, evaluated by NumPy, one per red."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

from shoal import make
from shoal.agents.frozen import FrozenPolicy
from shoal.errors import ConfigError, UnknownName
from shoal.training.opening import open_policy, open_run
from shoal.worlds.cage2.lab import LAB
from shoal.worlds.cage2.lab.policies import NetworkPolicy, bundled_networks
from shoal.worlds.cage2.world import WORLD, Cage2Options


def constant(action, inputs=52, choices=145):
    """A network that always prefers one action."""
    bias = np.zeros(choices, np.float32)
    bias[action] = 1.0
    layers = [(np.ones((inputs, 8)), np.zeros(8)), (np.zeros((8, choices)), bias)]
    return FrozenPolicy(layers, "choice", activation="tanh", about={"env": {"scan_memory": False}})


def test_every_lane_gets_the_network_of_its_red_and_obeys_masks():
    batch = make("cage2", 3, red=["bline", "meander", "sleep"], compiled=False)
    policy = NetworkPolicy(batch, {"bline": constant(7), "meander": constant(9), "sleep": constant(7)})
    obs, _ = batch.reset(seed=0)
    assert policy(obs, {}).tolist() == [7, 9, 7]
    mask = np.ones((3, 145), bool)
    mask[:, 9] = False
    assert policy(obs, {"action_mask": mask}).tolist() == [7, 0, 7]


def test_other_lanes_are_refused_in_one_sentence():
    batch = make("cage2", 2, compiled=False)
    with pytest.raises(ConfigError, match=r"62 numbers .* have 52 and 145. Make .* with scan_memory=False"):
        NetworkPolicy(batch, {"bline": constant(0, inputs=62)})


def test_bundled_defenders_say_how_they_were_made():
    networks = bundled_networks()
    assert set(networks) == {(variant, red) for variant in ("cage2", "cage2-2022") for red in ("bline", "meander")}
    for (variant, red), network in networks.items():
        assert network.about["command"].startswith("shoal train cage2"), (variant, red)
        assert network.about["mean return"]["as played"]["100"] < 0
        NetworkPolicy(
            make("cage2", 1, variant=variant, red=red, compiled=False, **network.about["env"]), {red: network}
        )


def test_a_variant_without_defenders_is_named():
    with pytest.raises(ConfigError, match="debugged"):
        open_policy(WORLD, 1, "bundled", env={"variant": "debugged"}).act_in(None)


def test_policies_open_by_name():
    with closing(open_policy(WORLD, 3, "react-restore", env={"red": "meander"}, compiled=False)) as player:
        policy = player.act_in(player.batch)
        assert policy(*player.batch.reset(seed=0)).tolist() == [1, 1, 1]
    listed = LAB.policies(Cage2Options())
    assert {"bundled", "sleep", "react-restore", "greedy-balanced"} <= set(listed)
    assert "user > op_host" in listed["greedy:user op_host op_server enterprise defender"].about
    with pytest.raises(UnknownName, match="react-remove"):
        open_policy(WORLD, 1, "react-removal")


def test_bundled_defenders_get_the_lanes_that_they_need():
    with closing(open_policy(WORLD, 2, "bundled", env={"red": "bline,meander"}, compiled=False)) as player:
        assert player.options.host_memory
        policy = player.act_in(player.batch)
        assert policy(*player.batch.reset(seed=0)).shape == (2,)


def test_a_run_is_stored_with_its_scores(tmp_path, capsys, monkeypatch):
    from shoal.cli import main

    monkeypatch.setattr("shoal.worlds.cage2.lab.policies.store.EPISODES", 4)
    words = "--preset plain --num-envs 4 --total-steps 800 --eval-episodes 4 --red meander --length 20"
    words += " --algo.minibatches 2"
    assert main(["train", "cage2", *words.split(), "--runs-dir", str(tmp_path / "runs")]) == 0
    (run,) = (tmp_path / "runs").iterdir()
    file = tmp_path / "cage2_meander.safetensors"
    assert main(["cage2", "store", str(run), str(file), "--command", "shoal train cage2"]) == 0
    network = FrozenPolicy.load(file)
    assert network.about["env"] == {"length": 20}
    assert (network.about["variant"], network.about["red"], network.about["step"]) == ("cage2", "meander", 800)
    assert network.about["command"] == "shoal train cage2"
    assert set(network.about["mean return"]["after evidence only"]) == {"30", "50", "100"}
    with closing(open_run(run, 5, "best", compiled=False)) as player:
        obs, info = player.batch.reset(seed=0)
        actor, stored = player.act_in(player.batch), NetworkPolicy(player.batch, {"meander": network})
        same = []
        for _ in range(20):
            action = actor(obs, info).numpy()
            same.append(stored(obs, info) == action)
            obs, *_, info = player.batch.step(action)
    assert np.mean(same) > 0.9  # half the digits
