"""Comparisons: over our own runs and experiments, and over what other libraries leave behind."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from shoal.cli import main
from shoal.errors import ConfigError, RunError
from shoal.experiments.compare import compare, config_differences
from shoal.experiments.compare_page import write_comparison
from shoal.experiments.sources import read_source, running_mean
from shoal.training.metrics import EVALUATED, RETURN
from tests.experiments.fake import experiment

RNG = np.random.default_rng(0)
GOOD, POOR = RNG.normal(200, 10, 12), RNG.normal(150, 10, 12)


def sources(*experiments):
    return [read_source(each.path) for each in experiments]


def test_the_better_one_is_named_with_its_interval_and_the_settings_that_differ(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    experiment(tmp_path, "a", GOOD)
    experiment(tmp_path, "b", POOR + 36, algo={"lr": 0.5})
    assert main(["compare", "a", "b", "--out", "page.html"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("a is better than b: +")
    assert "12 seeds; " in said
    assert "seeds would most likely not have shown it." in said
    page = (tmp_path / "page.html").read_text()
    assert "algo.lr" in page
    assert "probability of improvement" in page


def test_seeds_that_both_have_are_paired(tmp_path):
    luck = RNG.normal(0, 30, 12)
    both = compare(sources(experiment(tmp_path, "a", GOOD + luck), experiment(tmp_path, "b", POOR + luck)))
    assert both.metric == EVALUATED
    assert both.pairs[0].paired
    assert both.pairs[0].gap.low > 30  # the luck of a seed is in both
    assert config_differences(both.sources) == []


def test_what_cannot_be_told_apart_is_told_so(tmp_path):
    a, b = experiment(tmp_path, "a", GOOD), experiment(tmp_path, "b", GOOD[::-1].copy())
    (verdict,) = compare(sources(a, b)).verdicts
    assert verdict.startswith("a and b cannot be told apart: +")
    few = compare(sources(experiment(tmp_path, "c", [200, 201, 202]), experiment(tmp_path, "d", [1, 2, 3])))
    assert few.verdicts[0].startswith("c looks better than d: +199 [")
    assert few.verdicts[0].endswith("3 seeds; fewer than 5 seeds are a hint at best.")
    one = compare([read_source(a.run(0)), read_source(b.run(1))])
    assert "one seed says nothing about a method" in one.verdicts[0]


def test_one_evaluation_is_a_score_and_the_curve_is_that_of_training(tmp_path):
    several = [experiment(tmp_path, name, GOOD, points=20) for name in "ab"]
    for made in several:
        for seed in made.seeds:
            log = made.run(seed) / "metrics.jsonl"
            rows = [json.loads(line) for line in log.read_text().splitlines()]
            rows[9].pop("eval/mean_reward")
            log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    comparison = compare(sources(*several))
    assert comparison.metric == EVALUATED
    page = write_comparison(comparison, tmp_path / "page.html").read_text()
    assert f'"title":"{RETURN}"' in page
    assert f'"title":"{EVALUATED}"' not in page


def test_runs_of_different_length_are_compared_where_the_shorter_ends(tmp_path):
    long, short = experiment(tmp_path, "long", GOOD), experiment(tmp_path, "short", GOOD)
    for seed in short.seeds:
        log = short.run(seed) / "metrics.jsonl"
        log.write_text("".join(log.read_text().splitlines(keepends=True)[:10]))
    comparison = compare(sources(long, short), RETURN)
    assert comparison.at == 500
    assert comparison.remarks == ("long went on to 1,000 steps; it is compared at 500.",)
    assert comparison.scores[0] == pytest.approx(comparison.scores[1])


@pytest.mark.parametrize(
    ("paths", "flags", "sentence"),
    [
        (["a"], [], "A comparison needs at least two"),
        (["a", "p"], [], "a was trained on cartpole and p on pendulum. Returns of different worlds"),
        (["a", "b"], ["--metric", "rollout/ep_rew_men"], "has no metric 'rollout/ep_rew_men'. Did you mean 'rollout/"),
        (["a", "b/../a"], [], "a is named more than once, and nothing is better than itself"),
        (["a", "broken"], [], "experiment.json must list the seeds as whole numbers, not None"),
        (["a", "none"], [], "experiment.json must list the seeds as whole numbers, not []"),
        (["a", "torn"], [], "failures.json names 'one', which is not a seed"),
        (["a", "nowhere"], [], "There is no run or experiment 'nowhere'"),
        (["a", "empty"], [], "'empty' is neither a run nor an experiment"),
        (["a", "search"], [], "search is a search, whose trials have different settings. Train what it found"),
        (["a", "a/seed_0"], ["--until-sure"], "Name two folders that `shoal train --seeds` has made"),
        (["a", "b"], ["--until-sure", "--max-seeds", "3"], "max-seeds must be at least 6, not 3"),
        (["a", "b"], ["--margin", "-1"], "margin must be above 0, not -1.0"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, monkeypatch, capsys, paths, flags, sentence):
    monkeypatch.chdir(tmp_path)
    for name, world in (("a", "cartpole"), ("b", "cartpole"), ("p", "pendulum")):
        experiment(tmp_path, name, GOOD[:2], world)
    (tmp_path / "empty").mkdir()
    (experiment(tmp_path, "search", GOOD[:2]).path / "experiment.json").rename(tmp_path / "search" / "tune.json")
    (experiment(tmp_path, "broken", GOOD[:2]).path / "experiment.json").write_text('{"format": "shoal experiment 1"}')
    none = '{"format": "shoal experiment 1", "seeds": []}'
    (experiment(tmp_path, "none", GOOD[:2]).path / "experiment.json").write_text(none)
    (experiment(tmp_path, "torn", GOOD[:2]).path / "failures.json").write_text('{"one": "why"}')
    assert main(["compare", *paths, *flags]) == 2
    assert sentence in capsys.readouterr().err


# ---------------------------------------------------------------------- other libraries


def test_monitors_of_stable_baselines3(tmp_path):
    for seed in (1, 2):
        folder = tmp_path / "sb3" / f"ppo_{seed}"
        folder.mkdir(parents=True)
        for lane in (0, 1):
            lines = [f"#{json.dumps({'t_start': 0.0, 'env_id': 'CartPole-v1'})}", "r,l,t"]
            lines += [f"{10.0 * k},{5},{k + lane / 10}" for k in range(1, 4)]
            (folder / f"{lane}.monitor.csv").write_text("\n".join(lines) + "\n")
    source = read_source(tmp_path / "sb3")
    assert source.seeds == [1, 2]
    steps, values = source.curves(RETURN)[0]
    assert steps.tolist() == [5, 10, 15, 20, 25, 30]
    assert values.tolist() == [10, 10, 40 / 3, 15, 18, 20]
    one = read_source(tmp_path / "sb3" / "ppo_1" / "0.monitor.csv")
    assert one.name == "ppo_1"


HEADER = b'#{"t_start": 0.0}\n'


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", r"monitor.csv is not a monitor file of Stable-Baselines3: it is empty, where"),
        (b"step,reward\n1,2\n", r"Stable-Baselines3: it begins with 'step,reward', where a line of # and"),
        (b"\x00\xff\xfe", r"Stable-Baselines3: it begins with '\\x00"),
        (HEADER + b"reward,len,t\n1,2,3\n", r"Stable-Baselines3: it has no column r, l, but reward, len, t"),
        (HEADER + b"r,l,t\n1,2,3\n4,five,6\n", r"monitor.csv, line 4: '4,five,6' is not an episode"),
        (HEADER + b"r,l,t\n1,2,3\n4,5\n", r"monitor.csv, line 4: '4,5' is not an episode"),
        (HEADER + b"r,l,t\n", r"has no episode yet"),
    ],
)
def test_a_monitor_that_is_none_is_told_in_a_sentence(tmp_path, content, sentence):
    (tmp_path / "monitor.csv").write_bytes(content)
    with pytest.raises(RunError, match=sentence):
        read_source(tmp_path).curves(RETURN)


def test_tensorboard_files_without_a_scalar(tmp_path):
    (tmp_path / "events.out.tfevents.1").write_bytes(b"")
    with pytest.raises(RunError, match=r"has no scalar in its TensorBoard files yet"):
        read_source(tmp_path).curves(RETURN)


def test_tensorboard_files_of_others_and_of_our_own(tmp_path):
    writers = pytest.importorskip("torch.utils.tensorboard")
    for seed in (3, 4):
        with writers.SummaryWriter(str(tmp_path / "clean" / f"CartPole-v1__ppo__{seed}__1700000000")) as writer:
            for k in range(5):
                writer.add_scalar("charts/episodic_return", 10.0 * k, 100 * k)
    source = read_source(tmp_path / "clean")
    assert source.seeds == [3, 4]
    steps, values = source.curves(RETURN)[0]
    assert steps.tolist() == [0, 100, 200, 300, 400]
    assert values.tolist() == [0, 5, 10, 15, 20]
    with writers.SummaryWriter(str(tmp_path / "rllib")) as writer:  # counts iterations
        for k in range(1, 4):
            writer.add_scalar("ray/tune/env_runners/episode_return_mean", 7.0 * k, k)
            writer.add_scalar("ray/tune/num_env_steps_sampled_lifetime", 4000.0 * k, k)
    steps, values = read_source(tmp_path / "rllib").curves(RETURN)[0]
    assert steps.tolist() == [4000, 8000, 12000]
    assert values.tolist() == [7, 14, 21]
    comparison = compare([source, read_source(tmp_path / "rllib")])
    assert comparison.at == 400


def test_what_stable_baselines3_itself_writes_is_read(tmp_path):
    sb3 = pytest.importorskip("stable_baselines3.common.env_util")
    for seed in (1, 2):
        lanes = sb3.make_vec_env("CartPole-v1", n_envs=2, seed=seed, monitor_dir=str(tmp_path / "sb3" / f"ppo_{seed}"))
        lanes.reset()
        for _ in range(60):
            lanes.step(np.ones(2, int))  # the pole falls within 8 to 10 steps
        lanes.close()
    source = read_source(tmp_path / "sb3")
    assert source.seeds == [1, 2]
    steps, values = source.curves(RETURN)[1]
    assert 100 < steps[-1] <= 120
    assert 8 <= values[-1] <= 10.5


def test_what_tune_itself_writes_is_read_with_its_seed(tmp_path):
    """RLlib's results as Tune's logger flattens them; the folder's name ends with a time, which is not a seed."""
    if os.environ.get("SHOAL_PORTABLE") == "1":
        pytest.skip("Ray does not import with what every operating system has")
    from ray.tune.logger import tensorboardx as logger

    class Trial:
        """What the logger asks a trial for."""

        local_path = str(tmp_path / "rllib" / "PPO_CartPole-v1_8600c_00000_0_2026-11-18_20-56-27")
        evaluated_params: dict = {}

        def init_local_path(self):
            Path(self.local_path).mkdir(parents=True)

    trial, callback = Trial(), logger.TBXLoggerCallback()
    for k in range(1, 4):
        result = {"episode_return_mean": 7.0 * k, "num_episodes": k}
        steps = {"num_env_steps_sampled_lifetime": 4000 * k, "training_iteration": k}
        callback.log_trial_result(k, trial, {**steps, "env_runners": result, "evaluation": {"env_runners": result}})
    callback.log_trial_end(trial)
    assert read_source(tmp_path / "rllib").seeds == [None]
    (Path(trial.local_path) / "params.json").write_text('{"seed": 5, "env": "CartPole-v1"}')
    source = read_source(tmp_path / "rllib")
    assert source.seeds == [5]
    for metric in (RETURN, EVALUATED):
        steps, values = source.curves(metric)[0]
        assert steps.tolist() == [4000, 8000, 12000]
        assert values.tolist() == [7, 14, 21]


@pytest.mark.parametrize(
    ("name", "seed"),
    [("CartPole-v1__ppo__3__1700000000", 3), ("PPO_seed2_1", 2), ("PPO_2", 2), ("seed-7", 7), ("run_20-56-27", None)],
)
def test_seeds_are_known_from_the_names_of_folders(tmp_path, name, seed):
    (tmp_path / name).mkdir()
    (tmp_path / name / "monitor.csv").write_text("")
    assert read_source(tmp_path / name).seeds == [seed]


def test_the_reader_agrees_with_our_writer(tmp_path):
    from shoal.experiments.events import read_events
    from shoal.training.metrics import scalars_event, version_event

    records = [version_event(0.0), scalars_event(5, 1.0, {"a": 1.5, "b": -2.0}), scalars_event(300, 2.0, {"a": 2.5})]
    (tmp_path / "events.out.tfevents.1.x").write_bytes(b"".join(records)[:-3])  # the last one is being written
    assert {tag: (x.tolist(), y.tolist()) for tag, (x, y) in read_events(tmp_path).items()} == {
        "a": ([5], [1.5]),
        "b": ([5], [-2.0]),
    }
    (tmp_path / "events.out.tfevents.1.x").write_bytes(b"something else altogether")
    with pytest.raises(RunError, match="is not an event file"):
        read_events(tmp_path)


def test_running_means_are_of_fewer_at_the_beginning():
    assert running_mean(np.arange(5.0), 3).tolist() == [0, 0.5, 1, 2, 3]


# ---------------------------------------------------------------------- until sure


def test_seeds_are_added_until_one_is_better(tmp_path, monkeypatch, capsys):
    """The training is left out: a seed's score is known beforehand."""
    from shoal.experiments import train, until_sure

    monkeypatch.chdir(tmp_path)
    experiment(tmp_path, "a", GOOD[:3])
    experiment(tmp_path, "b", POOR[:3])

    def carry_on(grown, keeping):
        scores = {"a": GOOD, "b": POOR}[grown.path.name]
        other = experiment(tmp_path / "made", grown.path.name + str(len(grown.seeds)), scores[: len(grown.seeds)])
        for seed in grown.seeds:
            if not grown.run(seed).exists():
                other.run(seed).rename(grown.run(seed))
        return train.ExperimentResult(grown.path, {}, {}, {}, "done")

    monkeypatch.setattr(until_sure, "carry_on", carry_on)
    assert main(["compare", "a", "b", "--until-sure", "--max-seeds", "12", "--out", "page.html"]) == 0
    said = capsys.readouterr().out
    assert "6 seeds each: a is better than b" in said
    assert "a is better than b, after 6 seeds each (p = " in said
    with pytest.raises(ConfigError, match="two experiments"):
        until_sure.until_sure(["a"], None, None, None, print)
