"""Environments that never end an episode by themselves: evaluations of them end, and nobody loses a run to one."""

import os
import signal

import gymnasium as gym
import pytest

import shoal
from shoal.training.checkpoint import Checkpoints
from shoal.training.hooks import Hooks
from shoal.training.interrupt import INTERRUPTED
from shoal.training.metrics import deterministic, read_evaluations, read_rows

QUICK = {
    "num_envs": 2,
    "backend": "serial",
    "total_steps": 96,
    "eval_episodes": 3,
    "algo": {"num_steps": 16, "hidden": [8], "minibatches": 2, "epochs": 1},
    "quiet": True,
}
EVALUATION = 96 + 60
"""Steps of the process after which it evaluates: those of training, and those in which saving tries itself out."""


class Endless(gym.Env):
    """One reward a step, for ever. Signals come when the whole process has made some steps."""

    observation_space = gym.spaces.Discrete(3)
    action_space = gym.spaces.Discrete(2)
    signals: dict[int, int] = {}
    steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        Endless.steps += 1
        if Endless.steps in Endless.signals:
            os.kill(os.getpid(), Endless.signals.pop(Endless.steps))
        return int(self.np_random.integers(3)), 1.0, False, False, {}


@pytest.fixture(autouse=True)
def _from_the_beginning():
    Endless.steps, Endless.signals = 0, {}


def train(tmp_path, **changes):
    return shoal.train(**{"world": "tests.runs.test_endless:Endless", **QUICK, "runs_dir": tmp_path, **changes})


def test_an_evaluation_without_an_end_is_cut_and_says_so(tmp_path, capsys):
    result = train(tmp_path, eval_max_steps=40, quiet=False)
    assert result.evaluation["mean"] == 40
    assert result.evaluation["mean_length"] == 40
    said = " ".join(capsys.readouterr().out.split())
    assert "3 of 3 episodes of the evaluation had not ended after 40 steps" in said
    assert "--eval-max-steps" in said


def test_the_limit_of_a_gymnasium_environment_is_respected():
    from shoal.training.evaluate import MAX_STEPS, episode_limit

    gym.register("EndlessForAWhile-v0", entry_point=Endless, max_episode_steps=MAX_STEPS + 5)
    assert episode_limit(shoal.make("EndlessForAWhile-v0", 1)) == MAX_STEPS + 5
    assert episode_limit(shoal.make(Endless, 1)) == MAX_STEPS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_breaks_the_evaluation_and_the_run_goes_on_with_it_later(tmp_path, number):
    whole = train(tmp_path / "whole", eval_max_steps=40)
    Endless.steps, Endless.signals = 0, {EVALUATION: number}
    stopped = train(tmp_path / "stopped", eval_max_steps=40)
    assert stopped.reason == INTERRUPTED
    assert stopped.evaluation is None
    assert Checkpoints(stopped.run / "checkpoints").steps() == [96]
    resumed = shoal.train(resume=stopped.run, quiet=True)
    assert resumed.evaluation == whole.evaluation
    rows = [[deterministic(row) for row in read_rows(run / "metrics.jsonl")] for run in (whole.run, resumed.run)]
    assert rows[0] == rows[1]


def test_two_signals_in_the_evaluation_lose_nothing(tmp_path):
    Endless.signals = {EVALUATION: signal.SIGINT, EVALUATION + 1: signal.SIGINT}
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, eval_max_steps=40)
    (run,) = tmp_path.iterdir()
    assert Checkpoints(run / "checkpoints").steps() == [96]
    assert shoal.train(resume=run, quiet=True).evaluation["mean"] == 40


class Enough:
    """Stops after two iterations."""

    def reason_to_stop(self, loop):
        return "that is enough" if loop.iteration == 2 else None


def test_a_rule_that_stops_a_run_does_not_skip_its_evaluation(tmp_path):
    result = train(tmp_path, eval_max_steps=10, hooks=Hooks(stop_rules=(Enough(),)))
    assert result.reason == "that is enough"
    assert result.evaluation["mean"] == 10
    assert Checkpoints(result.run / "checkpoints").folder_of("best").resolve().name == "step_64"
    longer = shoal.train(resume=result.run, total_steps=128, quiet=True)
    assert [row["step"] for row in read_evaluations(longer.run)] == [64, 128]


def test_eval_takes_the_limit_too(tmp_path, capsys):
    from shoal.cli import main

    run = train(tmp_path, eval_max_steps=10).run
    capsys.readouterr()
    assert main(["eval", str(run), "--episodes", "2", "--eval-max-steps", "7"]) == 0
    said = capsys.readouterr().out
    assert "mean return 7.00" in said
    assert "had not ended after 7 steps" in said
