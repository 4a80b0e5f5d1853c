"""The suite "defaults": tasks that can be played, a file that can be gone on with, and scores that mean something."""

import pkgutil
from dataclasses import asdict

import numpy as np
import pytest

import shoal
from shoal.bench.defaults.suite import CONTENDERS, DefaultsArgs, read, run, settings_of
from shoal.bench.defaults.tasks import KERNELS, TASKS
from shoal.bench.defaults.verdict import Outcome, gap, normalised, overall
from shoal.errors import ConfigError, UnknownName

OURS = [name for name, task in TASKS.items() if task.world.startswith(KERNELS)]


def test_half_of_the_tasks_judge_what_the_others_chose():
    assert len(TASKS) >= 20
    assert all(task.steps <= 100_000 for task in TASKS.values())
    for kind in ("continuous", "memory"):
        assert {task.held_out for task in TASKS.values() if getattr(task, kind)} == {False, True}


@pytest.mark.parametrize("name", OURS)
def test_every_task_is_played_to_its_end_by_chance(name):
    task = TASKS[name]
    batch = shoal.make(task.world, 2, compiled=False, checked=True, **task.options)
    batch.single_action_space.seed(0)
    obs, info = batch.reset(seed=0)
    ended = np.zeros(2, bool)
    for _ in range(1_000):
        masks = info.get("action_mask", [None, None])
        masks = [None if mask is None else mask.astype(np.int8) for mask in masks]
        actions = np.stack([batch.single_action_space.sample(mask) for mask in masks])
        obs, reward, terminated, truncated, info = batch.step(actions)
        assert all(batch.single_observation_space.contains(row) for row in obs)
        assert np.isfinite(reward).all()
        ended |= terminated | truncated
        if ended.all():
            break
    assert ended.all()


def outcomes(name, task, scores):
    return [Outcome("ppo", task, name, seed, score, 0, 0.0) for seed, score in enumerate(scores)]


def test_scores_lie_between_chance_and_the_best_and_a_gap_is_seen():
    runs = [
        *outcomes("chance", "cartpole", [20.0]),
        *outcomes("good", "cartpole", [500.0, 480.0, 490.0]),
        *outcomes("bad", "cartpole", [30.0, 10.0, 40.0]),
        *outcomes("good", "lake", [1.0, 1.0, 1.0]),  # without chance nothing is known of it
    ]
    scores = normalised(runs)
    assert set(scores["good"]) == {"cartpole"}
    assert scores["good"]["cartpole"].max() == 1.0
    assert overall(scores["bad"], ["cartpole"]) == pytest.approx((10 / 480 + 20 / 480) / 3)
    better = gap(scores["good"], scores["bad"], ["cartpole"])
    assert 0.9 < better.low <= better.value <= better.high
    assert gap(scores["good"], scores["good"], ["cartpole"]).low < 0


@pytest.mark.parametrize("name", CONTENDERS)
def test_every_contender_can_be_made(name):
    pytest.importorskip(CONTENDERS[name].package)
    made = pkgutil.resolve_name(CONTENDERS[name].entry)(task=asdict(TASKS["cartpole"]), seed=0, algo="ppo", settings={})
    assert made.task == TASKS["cartpole"]


def test_runs_are_written_down_once(tmp_path, capsys):
    args = DefaultsArgs(tmp_path / "runs.jsonl", tasks=("cartpole",), only=("chance",), seeds=1)
    assert run(args) == 0
    (first,) = read(args.out)
    assert 15 < first.score < 30
    assert run(args) == 0
    assert read(args.out) == [first]
    assert "cartpole" in capsys.readouterr().out


def test_bad_input_is_refused(tmp_path):
    with pytest.raises(UnknownName, match="Did you mean 'cliff'"):
        DefaultsArgs(tasks=("clif",))
    with pytest.raises(UnknownName, match="Did you mean 'sb3'"):
        DefaultsArgs(only=("sb33",))
    with pytest.raises(UnknownName, match="Did you mean 'lr'"):
        settings_of(("lrr=1",), "ppo")
    assert settings_of(("lr=1e-3", "num_envs=16"), "ppo") == {"lr": 1e-3, "num_envs": 16}
    (tmp_path / "other.jsonl").write_text("{}\n")
    with pytest.raises(ConfigError, match=r"other\.jsonl is not a file of this suite"):
        read(tmp_path / "other.jsonl")
