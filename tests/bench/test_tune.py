"""The suite "tune": how an order is judged, and a search of each kind from beginning to end."""

import json

import numpy as np
import pytest

from shoal.bench.tune import PENDULUM, TuneArgs, agreement, run, work_of
from shoal.errors import ConfigError, UnknownName


def test_an_order_agrees_with_the_truth_or_does_not():
    scores = [np.full(4, float(score)) for score in (5, 4, 3, 2, 1)]
    assert agreement(scores) == pytest.approx(1.0)
    assert agreement(scores[::-1]) == pytest.approx(-1.0)
    assert agreement([scores[0], scores[2], scores[1], *scores[3:]]) == pytest.approx(0.8)
    assert np.isnan(agreement([scores[0]] * 5))


def test_the_tasks_are_pendulum_and_those_of_the_suite():
    assert work_of(PENDULUM) == ("pendulum", {"algo": "sac"})
    world, settings = work_of("recall")
    assert world.endswith(":Recall")
    assert settings["algo"] == {"name": "ppo", "memory": "gru"}
    with pytest.raises(UnknownName, match="Did you mean 'lander'"):
        TuneArgs(task="landr")
    with pytest.raises(ConfigError, match="--seeds at least 2"):
        TuneArgs(seeds=1)


@pytest.mark.slow
def test_both_search_and_what_is_there_is_not_trained_again(tmp_path, capsys):
    pytest.importorskip("optuna")
    args = TuneArgs(task="catch", minutes=0.2, seeds=2, folder=tmp_path, out=tmp_path / "scores.json")
    assert run(args) == 0
    first = json.loads(args.out.read_text())
    assert {"no search", "by hand", "rank 1"} <= set(first["scores"])
    assert run(args) == 0
    assert json.loads(args.out.read_text())["scores"] == first["scores"]
    assert "in its order: " in capsys.readouterr().out
