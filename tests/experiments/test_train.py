"""An experiment: every run is the one that its seed alone makes, whatever happens on the way."""

import json
import os
import signal
import subprocess
import sys

import pytest
from torch import nn

import shoal
from shoal.cli import main
from shoal.errors import ConfigError, RunError
from shoal.experiments.folder import open_experiment
from shoal.training.checkpoint import Checkpoints
from shoal.training.run import find_run
from tests.runs.test_train import ROOT, everything_that_repeats, small

SETTINGS = small(total_steps=8 * 16 * 500, checkpoint_every=8 * 16 * 100, eval_every=0, eval_episodes=2)
SCRIPT = """
import json, sys, shoal
settings = json.loads(sys.argv[1])
shoal.train(settings.pop("world"), **settings)
"""


def start(**settings):
    """An experiment in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-u", "-c", SCRIPT, json.dumps(settings)]
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What the runs of seeds 0 and 1 are by themselves."""
    folder = tmp_path_factory.mktemp("alone")
    runs = [shoal.train("cartpole", runs_dir=folder, quiet=True, seed=seed, **SETTINGS).run for seed in (0, 1)]
    return [(everything_that_repeats(run), json.loads((run / "config.json").read_text())) for run in runs]


def assert_same_as_alone(experiment, alone):
    for seed, (repeats, config) in enumerate(alone):
        assert everything_that_repeats(experiment.run(seed)) == repeats
        assert json.loads((experiment.run(seed) / "config.json").read_text()) == config


def test_every_run_is_the_one_that_its_seed_alone_makes(tmp_path, alone, capsys):
    result = shoal.train("cartpole", seeds=2, runs_dir=tmp_path, run_name="two", **SETTINGS)
    assert result.path == tmp_path / "two"
    assert list(result.runs) == list(result.scores) == [0, 1]
    assert result.failures == {}
    assert_same_as_alone(open_experiment(result.path), alone)
    said = capsys.readouterr().out
    assert said.count("2 of 2 runs ended") == 1
    assert "Done: 2 of 2 seeds done" in said

    # a third seed is added, the others are left as they are
    before = {seed: (run / "metrics.jsonl").read_bytes() for seed, run in result.runs.items()}
    grown = shoal.train(resume=result.path, seeds=[0, 1, 5], quiet=True)
    assert list(grown.runs) == [0, 1, 5]
    assert all((run / "metrics.jsonl").read_bytes() == before[seed] for seed, run in result.runs.items())

    # and what it is cannot be changed
    with pytest.raises(ConfigError, match=r"two was started with algo.lr=0.001, not 0.5"):
        shoal.train(resume=result.path, algo={"lr": 0.5})
    changed = {**SETTINGS, "algo": {**SETTINGS["algo"], "lr": 0.5}}
    with pytest.raises(ConfigError, match=r"two was started with algo.lr=0.001, not 0.5"):
        shoal.train("cartpole", seeds=2, runs_dir=tmp_path, run_name="two", **changed)
    with pytest.raises(RunError, match=r"is an experiment, a folder of 3 runs. Name one of them, e.g. .*seed_0"):
        find_run(result.path)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_experiment_that_was_killed_or_stopped_goes_on_as_a_whole(tmp_path, alone, number):
    with start(world="cartpole", seeds=2, runs_dir=str(tmp_path), run_name="two", **SETTINGS) as process:
        first = next(line for line in process.stdout if "seed" in line)  # a row of one of the runs
        assert "of 2 runs ended" in first
        process.send_signal(number)
        rest = process.stdout.read()
    experiment = open_experiment(tmp_path / "two")
    if number == signal.SIGINT:
        assert process.returncode == 0
        assert "Continue with: shoal train --resume" in rest
        assert any(Checkpoints(experiment.run(seed) / "checkpoints").steps() for seed in (0, 1))
    result = shoal.train(resume=experiment.path, quiet=True)
    while any("is being written by another process" in why for why in result.failures.values()):
        result = shoal.train(
            resume=experiment.path, quiet=True
        )  # a process whose parent was killed ends soon, by itself
    assert result.failures == {}
    assert_same_as_alone(experiment, alone)


def test_a_failed_seed_is_named_and_the_others_go_on(tmp_path, capsys):
    flags = ["--num-envs", "8", "--total-steps", "768", "--algo.num-steps", "16", "--algo.minibatches", "2"]
    flags += ["--algo.hidden", "16", "--runs-dir", str(tmp_path), "--run-name", "bad", "--eval-episodes", "2"]
    assert main(["train", "tests.experiments.worlds:MoodyWalk", "--seeds", "0,1,2", "--processes", "1", *flags]) == 1
    said = capsys.readouterr().out
    assert "seed 1 failed: its process ended with SIGKILL, perhaps because memory ran out" in said
    assert "2 of 3 seeds done; seed 1 failed. Try again with: shoal train --resume" in said
    assert list(open_experiment(tmp_path / "bad").failures()) == [1]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"seeds": 0}, "The number of seeds must be from 1 to 10,000, not 0"),
        ({"seeds": [1, 1]}, "Seed 1 is named more than once"),
        ({"seeds": 2, "seed": 3}, "seed=3 was given together with seeds"),
        ({"seeds": 2, "processes": 0}, "processes must be at least 1, not 0"),
        ({"processes": 2}, "processes=2 is for several seeds"),
        ({"seeds": 2, "network": nn.Identity()}, "network is an object of this process"),
    ],
)
def test_bad_settings_are_refused_before_a_folder_is_made(tmp_path, settings, sentence):
    with pytest.raises(ConfigError, match=sentence):
        shoal.train("cartpole", runs_dir=tmp_path / "runs", quiet=True, **settings)
    assert not (tmp_path / "runs").exists()


def test_a_world_that_other_processes_cannot_find_is_refused(tmp_path):
    from tests.training.worlds import EnvWalk

    class Local(EnvWalk):
        pass

    with pytest.raises(ConfigError, match=r"cannot find .*Local. Put it into a module"):
        shoal.train(Local, seeds=2, runs_dir=tmp_path)


def test_somebody_elses_experiment_does_not_have_its_code_imported(tmp_path):
    from tests.experiments.fake import experiment

    made = experiment(tmp_path, "theirs", [1.0], world="tests.experiments.worlds:MoodyWalk")
    (made.path / "config.hmac").unlink()
    with pytest.raises(RunError, match=r"names 'tests.experiments.worlds:MoodyWalk', code that would be imported"):
        shoal.train(resume=made.path, seeds=2)
    assert main(["train", "--resume", str(made.path), "--seeds", "2"]) == 2
