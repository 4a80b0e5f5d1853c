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


STEPS = {"total_steps": 10_000, "num_envs": 8}


def a_run(folder, returns, algo="ppo", **settings):
    folder.mkdir()
    rows = "".join(f"{value:.6f},200,{i / 7:.6f}\n" for i, value in enumerate(returns))
    (folder / "monitor.csv").write_text(f'#{{"t_start": 1.5, "env_id": "windy"}}\nr,l,t\n{rows}')
    (folder / "config.json").write_text(json.dumps({**STEPS, "algo": {"name": algo}, **settings}))
    return folder


@pytest.mark.parametrize("episodes", [25, 99, 5_000])
def test_it_is_told_from_the_first_and_the_last_episodes(tmp_path, episodes):
    returns = [-200.0] * episodes
    returns[3] = -180.0  # met once, by chance, and never again
    sentence = standstill(a_run(tmp_path / "stuck", returns), 2_500)
    known = min(100, episodes)
    assert f"{known - 1} of the first {known} episodes" in sentence
    assert f"of the last {known} returned -200 after 200 steps" in sentence
    assert "--algo.entropy" in sentence
    assert "--algo.explore" in standstill(a_run(tmp_path / "dddqn", returns, "dddqn"), 2_500)


def test_a_damaged_line_is_no_episode(tmp_path):
    run = a_run(tmp_path / "stuck", [-200.0] * 60)
    lines = (run / "monitor.csv").read_bytes().split(b"\n")
    lines[5:9] = [b"-200,\x80\x04c,1", b"nan,200,1", b"-200,0,1", b"-200"]
    (run / "monitor.csv").write_bytes(b"\n".join(lines))
    assert "56 of the first 56 episodes" in standstill(run, 2_500)


def test_who_learns_or_has_played_little_is_told_nothing(tmp_path):
    learns = [-200.0] * 300 + [-15.0] * 100
    differs = np.random.default_rng(0).normal(size=300)
    for step in (2_500, 10_000):
        assert standstill(a_run(tmp_path / f"learns {step}", learns), step) is None
        assert standstill(a_run(tmp_path / f"solved {step}", [*differs, *[500.0] * 200]), step) is None
        assert standstill(a_run(tmp_path / f"little {step}", [-200.0] * 19), step) is None
    assert standstill(a_run(tmp_path / "differs", differs), 2_500) is None  # it may still learn
    (tmp_path / "empty").mkdir()
    assert standstill(tmp_path / "empty", 10_000) is None


def test_whose_last_episodes_are_no_better_than_its_first_is_told_so_at_the_end(tmp_path):
    luck = np.random.default_rng(0).normal(size=300)
    sentence = standstill(a_run(tmp_path / "luck", luck), 10_000)
    assert f"the last 50 episodes returned {luck[-50:].mean():.3g} on average" in sentence
    assert f"the first 50 returned {luck[:50].mean():.3g}" in sentence
    assert "observations show" in sentence
    assert standstill(a_run(tmp_path / "better", [*luck, *(luck + 1.0)]), 10_000) is None
    few = np.arange(66.0)  # whose first and last hundred are the same
    assert standstill(a_run(tmp_path / "few", few), 10_000) is None
    worse = standstill(a_run(tmp_path / "worse", [*luck, *(luck - 1.0)]), 10_000)
    assert "worse" in worse
    for name, given in {"init": "runs/other", "phases": [{"steps": 1}], "extra": {"opponent": "self"}}.items():
        assert standstill(a_run(tmp_path / name, luck, **{name: given}), 10_000) is None  # what is met may change


def test_whose_likeliest_actions_do_worse_than_drawn_ones_is_told_so(tmp_path):
    learned = np.random.default_rng(0).normal(size=300) + np.linspace(0, 10, 300)
    run = a_run(tmp_path / "circles", learned)
    evaluation = {"step": 10_000, "mean": 1.0, "low": 0.5, "high": 1.5, "episodes": 20}
    (run / "evaluations.jsonl").write_text(json.dumps(evaluation) + "\n")
    sentence = standstill(run, 10_000)
    assert "evaluation, 1 [0.5, 1.5]" in sentence
    assert "--no-deterministic" in sentence
    assert standstill(run, 5_000) is None
    (run / "evaluations.jsonl").write_text(json.dumps({**evaluation, "mean": 8.0, "high": 8.5}) + "\n")
    assert standstill(run, 10_000) is None


def test_a_run_in_which_no_episode_ends_is_told_so(tmp_path):
    sentence = standstill(a_run(tmp_path / "endless", []), 4_000)
    assert "No episode has ended in the 500 steps that each lane has made" in sentence
    assert standstill(a_run(tmp_path / "brief", []), 80) is None


def test_a_run_says_so_on_its_way_and_in_its_report(tmp_path, capsys):
    settings = {"num_envs": 8, "total_steps": 512, "compiled": False, "algo": {"num_steps": 16, "epochs": 1}}
    result = shoal.train(Walled, runs_dir=tmp_path, **settings)
    assert capsys.readouterr().out.count("Nothing is being learned") == 2
    assert "returned -5 after 5 steps, whatever the agent did" in (result.run / "report.html").read_text()
