"""Searching for settings: what may be searched, and a search from beginning to end."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shoal.cli import main
from shoal.cli.tune import _gathered
from shoal.errors import ConfigError, ShoalError, UnknownName
from shoal.experiments.panel import Progress
from shoal.experiments.processes import Event
from shoal.experiments.tuning.defaults import DEFAULTS
from shoal.experiments.tuning.driver import HOPELESS, Tuner
from shoal.experiments.tuning.folder import Search, create_search, open_search, read_duration
from shoal.experiments.tuning.page import importances
from shoal.experiments.tuning.space import Parameter, nested, read_space
from shoal.registry import as_world
from shoal.training.interrupt import INTERRUPTED
from shoal.training.lab import Lab, lab_of
from shoal.training.settings import config_from, config_values, resolve_config
from tests.runs.test_train import ROOT

CARTPOLE = as_world("cartpole")
FLAGS = ["--num-envs", "8", "--total-steps", "1024", "--eval-every", "0", "--eval-episodes", "2", "--algo.hidden", "16"]
SEARCH = ["--tune", "algo.lr=1e-4..1e-2:log", "--tune", "algo.num_steps=16,32", "--tune", "algo.minibatches=2,3"]


def read(*specs, algo="ppo", given=None):
    return read_space(specs, CARTPOLE, algo, given or {})


def test_ranges_lists_and_names():
    lr, steps, hidden, lanes = read(
        "algo.lr=1e-4..1e-2:log", "algo.num-steps=16..64", "algo.hidden=[64],[64,64]", "num_envs=8,16"
    )
    assert lr == Parameter("algo.lr", 1e-4, 1e-2, log=True)
    assert steps == Parameter("algo.num_steps", 16, 64, whole=True)
    assert hidden.choices == ((64,), (64, 64))
    assert hidden.value(hidden.key((64, 64))) == (64, 64)
    assert lanes.choices == (8, 16)
    assert nested({"algo.lr": 1, "num_envs": 2}) == {"algo": {"lr": 1}, "num_envs": 2}


@pytest.mark.parametrize(
    ("specs", "sentence"),
    [
        (["algo.learning_rat=1..2"], r"No setting 'algo.learning_rat' of cartpole and ppo. Did you mean"),
        (["algo.lr=1e-2..1e-4"], "is empty: 0.01 is not below 0.0001"),
        (["algo.entropy=0..1:log"], "cannot be searched by its logarithm, because 0 is not above 0"),
        (["algo.lr=1..2:cube"], "ends with :cube; only :log"),
        (["algo.lr"], "does not say what is searched. Write low..high"),
        (["algo.lr=0.1"], "leaves nothing to choose"),
        (["algo.lr=0.1,0.1"], "names 0.1 more than once"),
        (["num_envs=0,0"], "names 0 more than once"),
        (["seed=1,2"], "seed is not searched: every promising trial is trained with several"),
        (["algo.lr=0.1,0.2", "algo.lr=1..2"], "algo.lr is searched more than once"),
        (["algo.num_steps=1.5..3"], "is not a range of numbers"),
        (["algo.activation=tanh,sin"], "Invalid value for algo.activation: 'sin'"),
        (["algo.activation=tanh..relu"], "is not a range of numbers"),
    ],
)
def test_a_space_that_makes_no_sense_is_told_in_a_sentence(specs, sentence):
    with pytest.raises((ConfigError, UnknownName), match=sentence):
        read(*specs)


def test_what_is_given_is_not_searched():
    with pytest.raises(ConfigError, match=r"algo.lr is both given and searched"):
        read("algo.lr=0.1,0.2", given={"algo": {"lr": 0.1}})
    assert "algo.lr" not in [parameter.name for parameter in read(given={"algo": {"lr": 0.1}})]


@pytest.mark.parametrize(("algo", "world"), [("ppo", "cartpole"), ("dddqn", "cartpole"), ("sac", "pendulum")])
def test_every_agent_has_a_space_whose_values_its_settings_take(algo, world):
    parameters = read_space((), as_world(world), algo, {})
    assert len(parameters) == len(DEFAULTS[algo])
    base = config_values(resolve_config(world, {"algo": algo}))
    for parameter in parameters:
        for value in parameter.choices or (parameter.low, parameter.high):
            config_from({**base, "algo": {**base["algo"], **nested({parameter.name: value})["algo"]}})


LAB = Lab(search={"ppo": ("max_steps=100,200", "algo.lr=1e-5..1e-3:log")})
WRONG = Lab(search={"ppo": ("algo.learning_rat=1,2",)})


def test_the_lab_of_a_world_names_what_is_searched_beside_the_agents_default():
    world = replace(CARTPOLE, lab=f"{__name__}:LAB")
    found = {parameter.name: parameter for parameter in read_space((), world, "ppo", {})}
    assert len(found) == len(DEFAULTS["ppo"]) + 1
    assert found["env.max_steps"].choices == (100, 200)
    assert (found["algo.lr"].low, found["algo.lr"].high) == (1e-5, 1e-3)
    assert [parameter.name for parameter in read_space(["num_envs=8,16"], world, "ppo", {})] == ["num_envs"]
    assert "env.max_steps" not in [parameter.name for parameter in read_space((), world, "dddqn", {})]
    with pytest.raises(ShoalError, match=r"search of .*:WRONG: No setting 'algo.learning_rat' of cartpole"):
        read_space((), replace(CARTPOLE, lab=f"{__name__}:WRONG"), "ppo", {})


@pytest.mark.parametrize(("world", "algo"), [("hockey", "sac"), ("hockey", "dddqn"), ("kg", "ppo")])
def test_the_preset_of_a_world_lies_in_what_its_lab_searches(world, algo):
    """So the first trial is what holds without a search."""
    base = config_values(resolve_config(world, {"algo": algo}))
    source = as_world(world)
    for parameter in read_space(lab_of(source).search[algo], source, algo, {}):
        value = base
        for part in parameter.name.split("."):
            value = value[part]
        assert parameter.holds(value), parameter.name


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("1.5h", 5400), ("20", 20)])
def test_durations(text, seconds):
    assert read_duration(text, "budget") == seconds
    with pytest.raises(ConfigError, match="budget=soon is not a duration"):
        read_duration("soon", "budget")


def test_a_search_is_only_continued_as_it_was(tmp_path):
    search = Search({"world": "cartpole", "algo": {"name": "ppo"}}, read("algo.lr=0.1,0.2"))
    path = create_search(tmp_path, search, "one")
    assert open_search(path) == search
    assert create_search(tmp_path, search, "one") == path
    other = Search(search.config, read("algo.lr=0.1,0.3"))
    with pytest.raises(ConfigError, match=r"one is a search with parameters.algo lr.choices=\[0.1, 0.2\], not"):
        create_search(tmp_path, other, "one")
    with pytest.raises(ShoalError, match=r"is not a search: it has no tune.json"):
        open_search(tmp_path)


def test_every_tune_counts():
    argv = ["w", "--tune", "a=1,2", "b=1,2", "--budget", "1m", "--tune=c=3,4"]
    assert _gathered(argv) == ["w", "--budget", "1m", "--tune", "a=1,2", "b=1,2", "c=3,4"]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--budget", "soon"], "budget=soon is not a duration"),
        (["--budget", "10s", "--run-time", "1m"], "A budget of 10 s is too small for one trial, which takes 60 s"),
        (["--trials", "0"], "trials must be at least 1, not 0"),
        (["--resume", "nowhere"], "There is no run folder 'nowhere'"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, capsys, flags, sentence):
    pytest.importorskip("optuna")
    named = [] if "--resume" in flags else ["cartpole"]
    assert main(["tune", *named, *flags, "--runs-dir", str(tmp_path)]) == 2
    assert sentence in capsys.readouterr().err


def test_a_search_in_which_everything_fails_gives_up_and_says_why(tmp_path, capsys):
    pytest.importorskip("optuna")
    flags = ["--budget", "1h", "--runs-dir", str(tmp_path), "--run-name", "t"]
    assert main(["tune", "cartpole", "--tune", "algo.gamma=1.5,2.0", *flags]) == 1
    said = capsys.readouterr().out
    assert "0 of 0 runs" not in said
    assert f"{HOPELESS} of {HOPELESS} failed, the last because: gamma must lie between 0 and 1, not" in said
    assert "within the budget" not in said


def test_a_run_that_ended_before_it_was_given_up_does_not_end_the_search(tmp_path):
    """Its process hears of it after the last iteration: it is interrupted, and has no outcome."""
    pytest.importorskip("optuna")

    class Late:
        stopping = False

        def work(self, next_job):
            job = next_job()
            yield Event(job, "began", None)
            tuner.running["trial 0"].verdict = "pruned"
            yield Event(job, "ended", {"reason": INTERRUPTED})

    config = config_values(resolve_config(CARTPOLE, {"total_steps": 1024}))
    search = Search(config, read("algo.lr=1e-4..1e-2:log"))
    tuner = Tuner(create_search(tmp_path, search, "t"), search, say=lambda sentence: None)
    tuner.run(Late(), Progress("", [], 1024, quiet=True), 1e9, 1)
    assert [trial.state.name for trial in tuner.study.trials] == ["PRUNED"]


def test_a_run_whose_process_was_killed_is_tried_once_more(tmp_path):
    pytest.importorskip("optuna")
    said = []

    class Deadly:
        stopping = False

        def work(self, next_job):
            for _ in range(2):
                job = next_job()
                assert job.name == "trial 0, seed 0"
                assert not Path(job.request["runs_dir"], job.request["run_name"]).exists()  # nothing could be resumed
                Path(job.request["runs_dir"], job.request["run_name"]).mkdir()
                yield Event(job, "began", None)
                yield Event(job, "died", "its process ended with SIGKILL")

    search = Search(config_values(resolve_config(CARTPOLE, {"total_steps": 1024})), read("algo.lr=1e-4..1e-2:log"))
    tuner = Tuner(create_search(tmp_path, search, "t"), search, said.append)
    tuner.run(Deadly(), Progress("", [], 1024, quiet=True), 1e9, 1)
    assert [trial.state.name for trial in tuner.study.trials] == ["FAIL"]
    assert said[0] == "trial 0, seed 0: its process ended with SIGKILL. It is tried once more."
    assert said[1] == "trial 0, seed 0 failed: its process ended with SIGKILL"


def test_trials_that_are_all_alike_have_no_importances_and_nothing_is_said_about_it(tmp_path, recwarn):
    optuna = pytest.importorskip("optuna")
    search = Search(config_values(resolve_config(CARTPOLE, {})), read("algo.epochs=3,5"))
    tuner = Tuner(create_search(tmp_path, search, "t"), search)
    space = {"algo.epochs": optuna.distributions.CategoricalDistribution((3, 5))}
    for epochs in (3, 5, 3, 5, 3):
        tuner.study.add_trial(optuna.create_trial(params={"algo.epochs": epochs}, distributions=space, value=1.0))
    assert importances(tuner) == {}
    tuner.study.add_trial(optuna.create_trial(params={"algo.epochs": 5}, distributions=space, value=0.0))
    assert set(importances(tuner)) == {"algo.epochs"}
    assert not [each for each in recwarn if "quantiles" in str(each.message)]


def test_a_search_from_beginning_to_end(tmp_path, capsys):
    """Stopped in the middle, it goes on; what it leaves behind trains."""
    pytest.importorskip("optuna")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = ["tune", "cartpole", *SEARCH, *FLAGS, "--runs-dir", str(tmp_path), "--run-name", "t", "--processes", "1"]
    command += ["--seeds", "2", "--trials", "4", "--budget", "1h"]
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "shoal", *command], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert next(line for line in process.stdout if line.startswith("trial "))
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert "shoal tune --resume" in rest
    assert main(["tune", "--resume", str(tmp_path / "t"), "--processes", "1"]) == 0
    said = capsys.readouterr().out
    assert "Best of 4 trials, over 2 seeds" in said
    best = json.loads((tmp_path / "t" / "best.json").read_text())
    assert best["algo"]["minibatches"] == 2  # 3 divides no batch of these sizes
    assert 1e-4 <= best["algo"]["lr"] <= 1e-2
    page = (tmp_path / "t" / "report.html").read_text()
    for text in ("what is searched", "algo.num_steps", "does not divide"):
        assert text in page
    scores = [json.loads(path.read_text()) for path in (tmp_path / "t" / "trials").glob("*/scores.json")]
    assert max(len(each) for each in scores) == 2
    assert np.isfinite([value for each in scores for value in each.values()]).all()
    assert config_values(config_from(best))["total_steps"] == 1024
