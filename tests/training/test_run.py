"""A run is a folder: what is in it, who may write it, and where it goes on."""

import json

import numpy as np
import pytest

from shoal.errors import RunError
from shoal.platform import fcntl
from shoal.training.metrics import deterministic, read_rows
from shoal.training.run import create_run, find_run, resume_run

CONFIG = {"world": "my_pkg.my_env:MyEnv", "seed": 3, "num_envs": 8, "algo": {"name": "ppo", "lr": 0.1}}


def make_run(folder):
    return create_run(folder, CONFIG, "shoal train 'a world'")


def iteration(run, step):
    means = run.episodes(step, [float(step)], [step])
    run.log(step, {**means, "train/loss": 1.0 / step})


def test_the_folder_says_what_ran_and_how(tmp_path):
    with make_run(tmp_path / "runs") as run:
        pass
    world, algo, seed, _ = run.path.name.split("__")
    assert (world, algo, seed) == ("my_pkg.my_env-MyEnv", "ppo", "3")
    assert json.loads((run.path / "config.json").read_text()) == CONFIG
    assert (run.path / "command.txt").read_text() == "shoal train 'a world'\n"
    assert json.loads((run.path / "system.json").read_text())["versions"]["numpy"] == np.__version__


def test_runs_of_the_same_second_do_not_meet(tmp_path):
    with make_run(tmp_path) as first, make_run(tmp_path) as second:
        assert first.path != second.path


@pytest.mark.skipif(fcntl is None, reason="this system has no file locks")
def test_only_one_process_writes_a_run(tmp_path):
    with make_run(tmp_path) as run:
        run.checkpoint(1, {"a": np.zeros(1)}, {})
        with pytest.raises(RunError, match="being written by another process"):
            resume_run(run.path)
    resumed, _ = resume_run(run.path)
    resumed.close()


def test_rows_carry_sb3s_names(tmp_path):
    with make_run(tmp_path) as run:
        iteration(run, 10)
        iteration(run, 20)
    last = read_rows(run.path / "metrics.jsonl")[-1]
    assert last["rollout/ep_rew_mean"] == 15.0
    assert last["rollout/ep_len_mean"] == 15.0
    assert (last["time/iterations"], last["time/total_timesteps"]) == (2, 20)
    assert last["time/fps"] > 0


def test_a_resumed_run_forgets_what_came_after_the_checkpoint(tmp_path):
    with make_run(tmp_path) as whole:
        for step in range(1, 6):
            iteration(whole, step)
    with make_run(tmp_path) as cut:
        for step in (1, 2, 3):
            iteration(cut, step)
            if step == 2:
                cut.checkpoint(step, {"a": np.arange(3)}, {"mine": 1}, score=0.5)
        cut.evaluation(3, {"mean": 1.0})
    resumed, checkpoint = resume_run(cut.path)
    with resumed:
        assert checkpoint.meta["mine"] == 1
        assert resumed.best_score == 0.5
        for step in (3, 4, 5):
            iteration(resumed, step)
    rows = [[deterministic(row) for row in read_rows(path / "metrics.jsonl")] for path in (whole.path, cut.path)]
    assert rows[0] == rows[1]
    assert read_rows(cut.path / "evaluations.jsonl") == []
    times = [row["time/time_elapsed"] for row in read_rows(cut.path / "metrics.jsonl")]
    assert times == sorted(times)


def test_best_is_the_highest_score_also_across_a_resume(tmp_path):
    with make_run(tmp_path) as run:
        run.checkpoint(1, {"a": np.zeros(1)}, {}, score=2.0)
        run.checkpoint(2, {"a": np.zeros(1)}, {}, score=1.0)
    resumed, _ = resume_run(run.path)
    with resumed:
        resumed.checkpoint(3, {"a": np.zeros(1)}, {}, score=1.5)
        assert resumed.checkpoints.load("best").step == 1
        resumed.checkpoint(4, {"a": np.zeros(1)}, {}, score=2.5)
        assert resumed.checkpoints.load("best").step == 4


def test_a_place_where_nothing_can_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"a file stands where a folder is needed. Choose another --runs-dir"):
        make_run(tmp_path / "file" / "runs")


def test_what_is_no_run_folder_is_said(tmp_path):
    with pytest.raises(RunError, match="no run folder"):
        find_run(tmp_path / "nothing")
    with pytest.raises(RunError, match=r"has no config.json and metrics.jsonl"):
        find_run(tmp_path)
    with make_run(tmp_path) as run:
        run.checkpoint(1, {"a": np.zeros(1)}, {})
    assert find_run(run.path / "checkpoints" / "step_1").resolve() == run.path.resolve()


def test_a_run_without_a_checkpoint_cannot_be_resumed(tmp_path):
    with make_run(tmp_path) as run:
        pass
    with pytest.raises(RunError, match="no checkpoint to load: the run ended before its first one"):
        resume_run(run.path)
