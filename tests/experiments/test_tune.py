"""Searching for settings: what may be searched, and a search from beginning to end."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from shoal.cli import main
from shoal.cli.tune import _gathered
from shoal.errors import ConfigError, ShoalError, UnknownName
from shoal.experiments.tuning.defaults import DEFAULTS
from shoal.experiments.tuning.folder import Search, create_search, open_search, read_duration
from shoal.experiments.tuning.space import Parameter, nested, read_space
from shoal.registry import as_world
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
        (["algo.lr=0.1,0.1"], "leaves nothing to choose, or names a value twice"),
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
