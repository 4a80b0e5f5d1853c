"""The benchmark of workflow-conditioned training says what it measured."""

from shoal.bench.workflow import describe, draw_convergence, measure_compliance, measure_training
from shoal.cli import main


def test_shoal_and_plain_torch_take_turns():
    ours, plain = measure_training(rounds=2, updates=4, workflow="balanced")
    assert (ours["name"], plain["name"]) == ("shoal", "plain torch")
    assert ours["num_envs"] == 25
    assert ours["ratio_to_shoal"] == 1.0
    assert plain["ratio_to_shoal"] > 0
    assert "100,000 episodes in" in describe(ours)


def test_a_trial_is_described(monkeypatch):
    monkeypatch.setattr("shoal.bench.workflow.COMPLIANCE", 0.05)  # reached at once: this is about the row
    row = measure_compliance("balanced")
    assert row["reached"]
    assert row["cpu_seconds"] > 0
    assert "followed after" in describe(row)


def test_convergence_is_drawn_until_training_stops(monkeypatch):
    monkeypatch.setattr("shoal.bench.workflow.LIMITS", {"max_episodes": 50})
    svg = draw_convergence("balanced", seeds=[0])
    assert svg.count("<circle") == 2 + 2  # two updates of 25 episodes, and both ends of the threshold
    assert "seed 0" in svg


def test_nothing_to_measure_is_refused(capsys):
    assert main(["bench", "workflow", "--rounds", "0"]) == 2
    assert "measures nothing" in capsys.readouterr().err


def test_the_suite_is_listed(capsys):
    assert main(["bench", "--help"]) == 0
    assert "shoal bench workflow" in capsys.readouterr().out
