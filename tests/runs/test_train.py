"""`shoal.train` as a whole: a run killed at any moment goes on as if nothing had happened."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import shoal
from shoal.errors import ConfigError, LaneFault, RunError, UnknownName
from shoal.training.checkpoint import ARRAYS, Checkpoints
from shoal.training.metrics import deterministic, read_rows

ROOT = Path(__file__).parents[2]
SMALL = {
    "num_envs": 8,
    "total_steps": 8 * 16 * 24,
    "checkpoint_every": 600,
    "eval_every": 1500,
    "eval_episodes": 4,
    "algo": {"num_steps": 16, "minibatches": 2, "epochs": 2, "hidden": [16], "normalise_obs": True, "lr": 1e-3},
}
KINDS = {
    "kernel": ("cartpole", {}),
    "batched": ("tests.training.worlds:ArrayWalk", {}),
    "serial": ("tests.training.worlds:EnvWalk", {"backend": "serial"}),
    "workers": ("tests.training.worlds:EnvWalk", {"backend": "workers", "num_workers": 2}),
}


def small(**changes):
    return {**SMALL, **changes, "algo": {**SMALL["algo"], **changes.get("algo", {})}}


def everything_that_repeats(run):
    """What must not depend on how often a run was interrupted."""
    with open(run / "monitor.csv") as file:
        file.readline()
        episodes = [(row["r"], row["l"]) for row in csv.DictReader(file)]
    rows = [deterministic(row) for row in read_rows(run / "metrics.jsonl")]
    weights = {name: array.tobytes() for name, array in Checkpoints(run / "checkpoints").load().arrays.items()}
    return {
        "rows": rows,
        "episodes": episodes,
        "evaluations": read_rows(run / "evaluations.jsonl"),
        "weights": {name: value for name, value in weights.items() if "time" not in name and "clock" not in name},
    }


class DieLater:
    """Callback: kills the process `calls` function calls after the `iterations`-th iteration.

    Counted in calls, the moment is anywhere in an iteration and does not depend on how fast the machine is.
    """

    def __init__(self, iterations, calls):
        self.iterations, self.calls = iterations, calls

    def after_iteration(self, loop):
        if loop.iteration == self.iterations:
            sys.setprofile(self.count)

    def count(self, frame, event, argument):
        self.calls -= event == "call"
        if self.calls < 0:
            os.kill(os.getpid(), signal.SIGKILL)


SCRIPT = """
import json, sys, shoal
from shoal.training.hooks import Hooks
from tests.runs.test_train import DieLater

settings = json.loads(sys.argv[1])
dies = settings.pop("dies")
shoal.train(settings.pop("world"), hooks=dies and Hooks(callbacks=(DieLater(*dies),)), **settings)
"""


@contextmanager
def start(runs_dir, world, dies=None, **settings):
    """A run in a process of its own, which tells on its stdout what it says."""
    values = json.dumps({"world": world, "runs_dir": str(runs_dir), "dies": dies, **settings})
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    command, environment = [sys.executable, "-u", "-c", SCRIPT, values], {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(condition, process):
    """Until `condition()` is true, which it returns; the process must not end before."""
    while not (value := condition()):
        assert process.poll() is None, f"the process ended with {process.poll()}"
        time.sleep(0.002)
    return value


def run_with_rows(runs_dir, count):
    """The run in `runs_dir`, once it has a checkpoint and `count` rows of metrics."""
    for run in runs_dir.glob("*__*"):
        log = run / "metrics.jsonl"
        if Checkpoints(run / "checkpoints").steps() and log.exists() and log.read_bytes().count(b"\n") >= count:
            return run
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_killed_at_a_random_moment_ends_like_one_that_was_not(tmp_path, kind):
    world, env = KINDS[kind]
    whole = shoal.train(world, runs_dir=tmp_path / "whole", quiet=True, **small(env=env))
    rng = random.Random(kind)  # the same moment every time, another one for each kind
    moment = rng.randint(6, 16), rng.randint(0, 1000)
    with start(tmp_path / "killed", world, dies=moment, quiet=True, **small(env=env)) as process:
        assert process.wait() == -signal.SIGKILL
    (killed,) = (tmp_path / "killed").iterdir()
    assert Checkpoints(killed / "checkpoints").steps()[-1] < small()["total_steps"]
    resumed = shoal.train(resume=killed, quiet=True)
    assert resumed.run == killed
    ours, theirs = everything_that_repeats(killed), everything_that_repeats(whole.run)
    assert ours["rows"] == theirs["rows"]
    assert ours["evaluations"] == theirs["evaluations"]
    assert ours["episodes"] == theirs["episodes"]
    assert [name for name, value in theirs["weights"].items() if ours["weights"][name] != value] == []


def test_the_folder_is_complete_and_its_config_repeats_the_run(tmp_path):
    first = shoal.train("cartpole", runs_dir=tmp_path, quiet=True, **small(total_steps=2000))
    names = {path.name for path in first.run.iterdir()}
    wanted = {"config.json", "command.txt", "system.json", "metrics.jsonl", "monitor.csv", "checkpoints", "report.html"}
    assert wanted <= names
    assert list(first.run.glob("events.out.tfevents.*"))
    assert first.metrics["eval/mean_reward"] > 0
    assert first.agent.act_batch(np.zeros((3, 4), np.float32), deterministic=True).action.shape == (3,)
    again = shoal.train(first.run / "config.json", runs_dir=tmp_path, quiet=True)
    assert everything_that_repeats(again.run) == everything_that_repeats(first.run)


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["/usr/bin/shoal", "train", "cartpole", "--config", "a b.json"], "shoal train cartpole --config 'a b.json'\n"),
        (["/lib/shoal/__main__.py", "train", "cartpole"], "shoal train cartpole\n"),
        (["script.py"], "shoal.train('cartpole', ...)\n"),
    ],
)
def test_the_command_is_kept_as_it_is_typed(tmp_path, monkeypatch, argv, text):
    monkeypatch.setattr(sys, "argv", argv)
    run = shoal.train("cartpole", runs_dir=tmp_path, quiet=True, **small(total_steps=128, eval_episodes=1)).run
    assert (run / "command.txt").read_text() == text


def test_tensorboard_shows_sb3s_tags(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = shoal.train("cartpole", runs_dir=tmp_path, quiet=True, **small(total_steps=1000)).run
    events = EventAccumulator(str(run))
    events.Reload()
    tags = set(events.Tags()["scalars"])
    assert {
        "rollout/ep_rew_mean",
        "rollout/ep_len_mean",
        "time/fps",
        "time/total_timesteps",
        "eval/mean_reward",
    } <= tags
    assert {"train/loss", "train/value_loss", "train/policy_gradient_loss", "train/approx_kl"} <= tags


def test_sb3_reads_the_monitor(tmp_path):
    results = pytest.importorskip("stable_baselines3.common.monitor").load_results
    run = shoal.train("cartpole", runs_dir=tmp_path, quiet=True, **small(total_steps=2048)).run
    frame = results(str(run))
    rows = read_rows(run / "metrics.jsonl")
    assert len(frame) == rows[-1]["rollout/episodes"]
    assert frame["r"].tail(100).mean() == pytest.approx(rows[-1]["rollout/ep_rew_mean"], rel=1e-5)
    assert (frame["r"] == frame["l"]).all()  # CartPole pays one for every step
    assert frame["t"].is_monotonic_increasing


def test_environments_that_cannot_be_saved_say_so_and_still_resume(tmp_path, capsys):
    settings = small(total_steps=1024, env={"backend": "serial"}, checkpoint_every=512, eval_every=0)
    run = shoal.train("tests.training.worlds:SocketWalk", runs_dir=tmp_path, **settings).run
    said = capsys.readouterr().out
    assert "Resuming this run begins new episodes, because its environments cannot be saved" in said
    resumed = shoal.train(resume=run, total_steps=2048, quiet=True)
    assert resumed.metrics["step"] == 2048


def test_a_class_trains_as_well_as_its_name(tmp_path):
    from tests.training.worlds import EnvWalk

    result = shoal.train(EnvWalk, runs_dir=tmp_path, quiet=True, **small(total_steps=256, env={"backend": "serial"}))
    config = json.loads((result.run / "config.json").read_text())
    assert config["world"] == "tests.training.worlds:EnvWalk"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"num_envs": 4}, "num_envs=8, not 4"),
        ({"algo": {"lr": 0.5}}, "algo.lr=0.001, not 0.5"),
        ({"seed": 1}, "seed=0, not 1"),
    ],
)
def test_a_resumed_run_with_another_config_names_the_field(tmp_path, change, field):
    run = shoal.train("cartpole", runs_dir=tmp_path, quiet=True, **small(total_steps=256)).run
    with pytest.raises(ConfigError, match=field):
        shoal.train(resume=run, quiet=True, **change)
    with pytest.raises(ConfigError, match=r"already reached 256 of its 256 steps.*--total-steps 512"):
        shoal.train(resume=run, quiet=True)


def test_a_damaged_checkpoint_stops_the_resume_and_costs_nothing(tmp_path):
    run = shoal.train("cartpole", runs_dir=tmp_path, quiet=True, **small(total_steps=4096, checkpoint_every=1024)).run
    newest = run / "checkpoints" / "step_4096" / ARRAYS
    newest.write_bytes(newest.read_bytes()[:-100])
    before = (run / "metrics.jsonl").read_bytes()
    with pytest.raises(RunError, match=r"step_4096 is damaged.*Delete that folder to go on from step_\d+"):
        shoal.train(resume=run, total_steps=8192, quiet=True)
    assert (run / "metrics.jsonl").read_bytes() == before


def test_a_nan_stops_the_run_and_keeps_the_last_checkpoint(tmp_path):
    settings = small(checkpoint_every=128, total_steps=128 * 20)
    with pytest.raises(LaneFault, match=r"reward that is NaN in lane 0.*step 7 of the rollout.*began at step 256 of"):
        shoal.train("tests.training.worlds:PoisonedWalk", runs_dir=tmp_path, quiet=True, **settings)
    (run,) = tmp_path.iterdir()
    saved = Checkpoints(run / "checkpoints").load()
    assert saved.step == 256
    assert all(np.isfinite(array).all() for array in saved.arrays.values() if array.dtype.kind == "f")


def test_bad_settings_are_refused_before_a_folder_is_made(tmp_path):
    cases = [
        ({"num_env": 3}, UnknownName, "Did you mean 'num_envs'"),
        ({"algo": {"learning_rat": 1}}, UnknownName, "No option 'algo.learning_rat' of cartpole"),
        ({"algo": "pppo"}, UnknownName, "Did you mean 'ppo'"),
        ({"num_envs": "many"}, ConfigError, "Invalid value for num_envs: 'many' is not a whole number"),
        ({"device": "quantum"}, ConfigError, "device='quantum' is not available here"),
        ({"track": "paper"}, ConfigError, "track='paper' is unknown"),
        ({"num_envs": 0}, ConfigError, "num_envs must be at least 1, not 0"),
    ]
    for settings, error, message in cases:
        with pytest.raises(error, match=message):
            shoal.train("cartpole", runs_dir=tmp_path / "runs", quiet=True, **settings)
    with pytest.raises(UnknownName, match="Did you mean 'cartpole'"):
        shoal.train("cartpool", runs_dir=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_ctrl_c_saves_after_the_iteration(tmp_path):
    with start(tmp_path, "cartpole", quiet=True, **small(total_steps=1_000_000_000)) as process:
        run = wait_until(lambda: run_with_rows(tmp_path, 8), process)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
    rows = read_rows(run / "metrics.jsonl")
    assert Checkpoints(run / "checkpoints").load().step == rows[-1]["step"]
    resumed = shoal.train(resume=run, total_steps=rows[-1]["step"] + 500, quiet=True)
    assert resumed.metrics["step"] > rows[-1]["step"]


def test_ctrl_c_twice_stops_in_the_middle_of_an_iteration(tmp_path):
    held = tmp_path / "held"
    settings = small(checkpoint_every=128, env={"held": str(held)})
    with start(tmp_path / "runs", "tests.training.worlds:EndlessWalk", **settings) as process:
        wait_until(held.exists, process)  # in the second iteration, which only the second Ctrl-C can end
        process.send_signal(signal.SIGINT)
        assert any("Ctrl-C again stops at once" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        assert process.wait() == -signal.SIGINT
    run = run_with_rows(tmp_path / "runs", 1)
    assert len(read_rows(run / "metrics.jsonl")) == 1
    assert Checkpoints(run / "checkpoints").load().step == 128


def test_tables_of_a_kernel_are_written_down_and_read_again(tmp_path):
    world = "tests.training.worlds:Tables"
    settings = small(num_envs=2, total_steps=64, eval_every=0, compiled=False)
    given = np.array([[0.5, 0.1], [0.7, 0.1]], np.float32)
    first = shoal.train(world, runs_dir=tmp_path, prices=given, **settings)
    saved = json.loads((first.run / "config.json").read_text())["env"]
    assert np.array_equal(np.float32(saved["prices"]), given)
    assert saved["open"] == [True, False]
    shoal.train(resume=first.run, total_steps=128)
    again = shoal.train(str(first.run / "config.json"), runs_dir=tmp_path, run_name="again", total_steps=128)
    both = everything_that_repeats(first.run), everything_that_repeats(again.run)
    assert both[0]["weights"] == both[1]["weights"]
    assert again.evaluation["max"] == np.float32(0.7)
