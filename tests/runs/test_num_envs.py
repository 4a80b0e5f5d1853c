from __future__ import annotations

import json
from contextlib import closing
from typing import ClassVar

import pytest
import torch

from shoal.cli import main
from shoal.errors import ConfigError
from shoal.platform import resource
from shoal.registry import OURS, as_world
from shoal.runs.contender import Contender
from shoal.runs.num_envs import FIRST, LAST, candidates, measured_num_envs
from shoal.runs.train import train
from shoal.training.config import TrainConfig
from shoal.training.settings import resolve_config

CARTPOLE = as_world("cartpole")
SMALL = {"num_steps": 8, "epochs": 1, "minibatches": 1, "fast": False}


def config(**settings) -> TrainConfig:
    return resolve_config("cartpole", {"total_steps": 50_000, "algo": SMALL, **settings})


def configs(**settings):
    return lambda num_envs: config(num_envs=num_envs, **settings)


class Timed:
    """A contender of known speed, some of whose iterations are disturbed."""

    disturbed: ClassVar[set[tuple[int, int]]] = set()
    """(lanes, iteration) of those that take ten times as long."""
    rate: ClassVar[dict[int, float]] = {}
    bytes_each = 0
    turns: ClassVar[list[int]] = []

    def __init__(self, world, config, network):
        self.num_envs, self.done = config.num_envs, 0
        self.best = 0.0
        self.peak_bytes = 2**30 + self.bytes_each * (2 * config.num_envs - 32)  # those before it are still there

    def run(self):
        slow = 10 if (self.num_envs, self.done) in self.disturbed else 1
        self.best, self.done = max(self.best, self.rate[self.num_envs] / slow), self.done + 1
        self.turns.append(self.num_envs)

    @property
    def steps_per_s(self):
        return self.best

    def close(self):
        pass


@pytest.fixture
def timed(monkeypatch):
    kind = type("Timed", (Timed,), {"turns": [], "rate": {16: 100.0, 32: 190.0, 64: 220.0, 128: 225.0, 256: 226.0}})
    monkeypatch.setattr("shoal.runs.contender.Contender", kind)
    return kind


def test_more_lanes_are_taken_while_they_are_faster(timed):
    said: list[str] = []
    assert measured_num_envs(CARTPOLE, configs(), say=said.append) == 64, "128 lanes are only 2 % faster"
    assert [line.split(" ")[0] for line in said] == ["16", "32", "64", "128", "256"]


@pytest.mark.parametrize("lanes", [16, 32, 64, 128])
@pytest.mark.parametrize("turns", [(0,), (0, 1)])
def test_a_busy_moment_changes_nothing(timed, lanes, turns):
    timed.disturbed = {(lanes, turn) for turn in turns}
    assert measured_num_envs(CARTPOLE, configs()) == 64


def test_everybody_takes_turns(timed):
    timed.rate = dict.fromkeys((16, 32, 64), 100.0)
    assert measured_num_envs(CARTPOLE, configs()) == 16, "more lanes are not faster"
    rounds = timed.turns[-6:]
    assert sorted(rounds[:3]) == sorted(rounds[3:]) == [16, 32, 64]


def test_it_goes_on_until_the_choice_is_steady(timed):
    """64 lanes look bad for five rounds; once they do not, still more join after all."""
    timed.rate = {16: 100.0, 32: 100.0, 64: 150.0, 128: 200.0, 256: 200.0, 512: 200.0}
    timed.disturbed = {(64, turn) for turn in range(5)}
    assert measured_num_envs(CARTPOLE, configs()) == 128


def test_a_choice_that_is_not_steady_is_told(timed, monkeypatch):
    monkeypatch.setattr("shoal.runs.num_envs.BUDGET_S", 0.0)
    said: list[str] = []
    assert measured_num_envs(CARTPOLE, configs(), say=said.append) == 16
    assert said[-1].startswith("The choice was not steady after 0 s, with 1 number of lanes measured")


def test_a_run_has_at_least_ten_iterations():
    assert measured_num_envs(CARTPOLE, configs(total_steps=3000)) in (16, 32), "ten iterations of 37 lanes"


def test_memory_limits_the_lanes(timed):
    timed.rate, timed.bytes_each = {n: 2.0 * n for n in (16, 32, 64, 128)}, 2**20  # a MiB per lane
    said: list[str] = []
    assert measured_num_envs(CARTPOLE, configs(), say=said.append, free_bytes=200 * 2**20) == 64
    assert "128 MiB" in said[-1]


def test_minibatches_and_runners_are_suited():
    algo = {**SMALL, "minibatches": 7}
    assert next(candidates(configs(algo=algo))).num_envs == 21
    assert next(candidates(configs(runners=3))).num_envs == 18
    with pytest.raises(ConfigError, match=r"No number of lanes from 16 to 31 suits this run.*minibatches=37"):
        next(candidates(configs(algo={**SMALL, "minibatches": 37})))


@pytest.mark.parametrize("algo", ["ppo", "sac", "dddqn"])
def test_a_contender_makes_whole_iterations_after_the_warm_up(algo):
    off_policy = {"hidden": [8], "replay_capacity": 10_000}
    settings = {"name": algo, **(SMALL if algo == "ppo" else off_policy)}
    with closing(Contender(CARTPOLE, config(num_envs=32, algo=settings))) as contender:
        before = contender.agent.state_dict()
        contender.run()
        after = contender.agent.state_dict()
    assert contender.steps_per_s > 0
    assert resource is None or contender.peak_bytes > 2**20
    assert any(not torch.equal(before[name], after[name]) for name in before if "weight" in name), "it learned"
    if algo != "ppo":
        assert contender.steps <= 512


def test_dvrp_counts_its_episodes_with_the_lanes_that_are_taken(tmp_path, monkeypatch, capsys):
    """The same from the command line and from Python: rollouts, minibatches and steps follow the lanes."""
    monkeypatch.setattr(
        "shoal.runs.contender.Contender", type("Timed", (Timed,), {"rate": {16: 100.0, 32: 90, 64: 80}})
    )
    flags = ["--num-envs", "auto", "--episodes", "32", "--customers", "6", "--eval-episodes", "2"]
    assert main(["train", "dvrp", *flags, "--runs-dir", str(tmp_path / "cli")]) == 0
    assert "Training with 16 lanes." in capsys.readouterr().out
    options = {"num_envs": "auto", "episodes": 32, "customers": 6, "eval_episodes": 2}
    train("dvrp", **options, runs_dir=tmp_path / "python", quiet=True)
    ours, theirs = (json.loads(next(tmp_path.glob(f"{way}/*/config.json")).read_text()) for way in ("cli", "python"))
    assert ours == theirs
    assert (ours["num_envs"], ours["total_steps"], ours["algo"]["num_steps"]) == (16, 32 * 6, 6)


class Planned(Exception):
    """Everything is known, and lanes would be made."""


@pytest.mark.parametrize("world", OURS)
def test_every_world_takes_it_from_the_command_line(world, timed, monkeypatch, capsys):
    timed.rate = dict.fromkeys(range(LAST), 100.0)

    def stop(plan, *_):
        raise Planned(plan.config.num_envs)

    monkeypatch.setattr("shoal.runs.carry_out.carry_out", stop)
    with pytest.raises(Planned) as planned:
        main(["train", world, "--num-envs", "auto"])
    (lanes,) = planned.value.args
    assert FIRST <= lanes < 2 * FIRST
    assert capsys.readouterr().out.endswith(f"Training with {lanes} lanes.\n")


def test_a_file_may_leave_it_to_measuring(tmp_path, timed):
    file = tmp_path / "settings.json"
    settings = {"world": "cartpole", "num_envs": "auto", "total_steps": 20_000, "algo": {"name": "ppo", **SMALL}}
    file.write_text(json.dumps({**settings, "eval_episodes": 2}))
    result = train(file, runs_dir=tmp_path, quiet=True)
    assert json.loads((result.run / "config.json").read_text())["num_envs"] == 64


def test_a_run_with_auto_writes_down_what_it_found(tmp_path):
    result = train("cartpole", num_envs="auto", total_steps=2000, algo=SMALL, runs_dir=tmp_path, quiet=True)
    assert f'"num_envs": {FIRST}' in (result.run / "config.json").read_text(), "2000 steps are ten iterations of 16"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"num_envs": 10_000_000_000},
            r"num_envs=10,000,000,000 lanes with algo.num_steps=\d+ need about [\d,.]+ GiB, but ",
        ),
        ({"algo": {"name": "dddqn", "replay_capacity": 10**12}}, r"algo.replay_capacity=1,000,000,000,000 need about"),
    ],
)
def test_what_cannot_fit_is_refused_before_anything_is_allocated(settings, sentence, tmp_path):
    with pytest.raises(ConfigError, match=sentence):
        train("cartpole", runs_dir=tmp_path, quiet=True, **settings)
    assert not list(tmp_path.iterdir())
