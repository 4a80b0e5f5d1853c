from __future__ import annotations

from dataclasses import replace

import pytest

from shoal.errors import ConfigError
from shoal.training.config import TrainConfig
from shoal.training.num_envs import FIRST, Probe, bytes_per_lane, measure, measured_num_envs
from shoal.training.settings import resolve_config
from shoal.training.train import train

SMALL = {"num_steps": 8, "epochs": 1, "minibatches": 1, "compiled": False}


def config(**settings) -> TrainConfig:
    return resolve_config("cartpole", {"total_steps": 20_000, "algo": SMALL, **settings})


def test_a_probe_counts_steps_and_memory():
    probe = measure("cartpole", config(num_envs=32))
    assert probe.num_envs == 32
    assert probe.steps_per_s > 1000
    assert probe.peak_bytes > 2**20


def test_more_lanes_are_taken_while_they_are_faster(monkeypatch):
    rate = {16: 100.0, 32: 190.0, 64: 220.0, 128: 225.0}
    monkeypatch.setattr(
        "shoal.training.num_envs.measure", lambda world, c, network: Probe(c.num_envs, rate[c.num_envs], 0)
    )
    said: list[str] = []
    assert measured_num_envs("cartpole", config(), say=said.append) == 64, "128 lanes are only 2 % faster"
    assert [line.split(" ")[0] for line in said] == ["16", "32", "64", "128"]


def test_a_run_has_at_least_ten_iterations():
    assert measured_num_envs("cartpole", config(total_steps=3000)) in (16, 32), "ten iterations of 37 lanes"


def test_memory_limits_the_lanes(monkeypatch):
    probes = iter(Probe(n, 2.0 * n, 2**30 + n * 2**20) for n in (16, 32, 64, 128))  # a MiB per lane
    monkeypatch.setattr("shoal.training.num_envs.measure", lambda *args: next(probes))
    said: list[str] = []
    assert measured_num_envs("cartpole", config(), say=said.append, free_bytes=200 * 2**20) == 64
    assert "128 MiB" in said[-1]


def test_bytes_per_lane_leave_out_what_every_run_takes():
    assert bytes_per_lane([Probe(16, 1.0, 5000)]) == 0
    assert bytes_per_lane([Probe(16, 1.0, 5000), Probe(32, 1.0, 5160)]) == 10


def test_minibatches_that_no_number_suits_are_refused():
    with pytest.raises(ConfigError, match="minibatches=7"):
        measured_num_envs("cartpole", replace(config(num_envs=7), algo=replace(config().algo, minibatches=7)))


def test_a_run_with_auto_writes_down_what_it_found(tmp_path):
    result = train("cartpole", num_envs="auto", total_steps=2000, algo=SMALL, runs_dir=tmp_path, quiet=True)
    assert f'"num_envs": {FIRST}' in (result.run / "config.json").read_text(), "2000 steps are ten iterations of 16"
