"""A run whose episodes all come out the same is told so, with what to try; any other is not."""

import json

import gymnasium as gym
import numpy as np
import pytest

import shoal
from shoal.report.standstill import standstill
from shoal.vector.kernel import Kernel, i32, record


class Walled(Kernel):
    """Every step costs 1, and nothing that is done makes a difference."""

    observation_space = gym.spaces.Box(0, 5, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    state = record(t=i32)
    params = {"max_steps": 5}

    def reset(s, p, rng):
        s.t = 0

    def step(s, action, p, rng):
        s.t += 1
        return -1.0, False, s.t >= p.max_steps

    def observe(s, p, out):
        out[0] = s.t


def a_run(folder, returns, algo="ppo"):
    folder.mkdir()
    rows = "".join(f"{value:.6f},200,{i / 7:.6f}\n" for i, value in enumerate(returns))
    (folder / "monitor.csv").write_text(f'#{{"t_start": 1.5, "env_id": "windy"}}\nr,l,t\n{rows}')
    (folder / "config.json").write_text(json.dumps({"algo": {"name": algo}}))
    return folder


@pytest.mark.parametrize("episodes", [25, 99, 5_000])
def test_it_is_told_from_the_first_and_the_last_episodes(tmp_path, episodes):
    returns = [-200.0] * episodes
    returns[3] = -180.0  # met once, by chance, and never again
    sentence = standstill(a_run(tmp_path / "stuck", returns))
    known = min(100, episodes)
    assert f"{known - 1} of the first {known} episodes" in sentence
    assert f"of the last {known} returned -200 after 200 steps" in sentence
    assert "--algo.entropy" in sentence
    assert "--algo.explore" in standstill(a_run(tmp_path / "dddqn", returns, "dddqn"))


def test_who_learns_or_has_played_little_is_told_nothing(tmp_path):
    learns = [-200.0] * 300 + [-15.0] * 100
    differs = np.random.default_rng(0).normal(size=300)
    assert standstill(a_run(tmp_path / "learns", learns)) is None
    assert standstill(a_run(tmp_path / "differs", differs)) is None
    assert standstill(a_run(tmp_path / "solved", [*differs, *[500.0] * 200])) is None
    assert standstill(a_run(tmp_path / "little", [-200.0] * 19)) is None
    (tmp_path / "empty").mkdir()
    assert standstill(tmp_path / "empty") is None


def test_a_run_says_so_on_its_way_and_in_its_report(tmp_path, capsys):
    settings = {"num_envs": 8, "total_steps": 512, "compiled": False, "algo": {"num_steps": 16, "epochs": 1}}
    result = shoal.train(Walled, runs_dir=tmp_path, **settings)
    assert capsys.readouterr().out.count("Nothing is being learned") == 2
    assert "returned -5 after 5 steps, whatever the agent did" in (result.run / "report.html").read_text()
