"""The suite "strangers", whole but tiny."""

import json

import pytest

from shoal.bench.strangers.ours import settings_of
from shoal.bench.strangers.suite import StrangersArgs, run
from shoal.bench.strangers.tasks import TASKS
from shoal.bench.strangers.workers import apart, lockstep_limit, together
from shoal.errors import ConfigError, UnknownName
from shoal.training.settings import resolve_config


def test_minibatches_divide_what_is_collected():
    for task in TASKS.values():
        assert task.algo == "sac" or task.num_envs * task.num_steps % task.minibatch == 0


@pytest.mark.parametrize(
    ("env", "preset"), [("LunarLander-v3", "zoo-lunarlander"), ("BipedalWalker-v3", "zoo-bipedalwalker")]
)
def test_what_is_compared_is_what_a_user_gets_by_the_name_of_a_preset(env, preset):
    config = resolve_config(env, {}, preset=preset)
    task = TASKS[f"{env} ppo"]
    assert (config.num_envs, config.total_steps) == (task.num_envs, task.total_steps)
    assert config.algo == settings_of(task)


@pytest.mark.parametrize("name", ["Hopper-v5 ppo", pytest.param("Hopper-v5 sac", marks=pytest.mark.slow)])
def test_both_train_the_same_steps_in_turns_and_are_evaluated(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("shoal.bench.strangers.trials.TURNS", 1)
    out = tmp_path / "rows.json"
    share = 2_048 / TASKS[name].total_steps
    args = StrangersArgs(out, tasks=(name,), seeds=1, share=share, episodes=1, rounds=0)
    assert run(args) == 0
    document = json.loads(out.read_text())
    assert {row["name"] for row in document["rows"]} == {"shoal", "sb3"}
    assert {outcome["name"]: outcome["steps"] for outcome in document["outcomes"]} == {"shoal": 2_048, "sb3": 2_048}
    assert "Hopper-v5" in capsys.readouterr().out

    monkeypatch.setattr("shoal.bench.strangers.suite.try_seed", lambda *_: pytest.fail("trained again"))
    assert run(args) == 0  # the file has it already
    assert json.loads(out.read_text())["outcomes"] == document["outcomes"]


def test_who_waits_after_every_step_makes_less():
    assert 0.5 <= lockstep_limit(4, 20) < 1


def test_processes_apart_step_all_lanes():
    for run_ in (apart(3), together(3, backend="serial")):
        assert run_(2) == 2
        run_.close()


def test_an_unknown_task_is_refused():
    with pytest.raises(UnknownName, match="Did you mean 'Hopper-v5 sac'"):
        run(StrangersArgs(tasks=("hopper sac",), rounds=0))


def test_another_file_is_not_taken_for_one_to_go_on_with(tmp_path):
    other = tmp_path / "other.json"
    other.write_text("[1, 2]")
    with pytest.raises(ConfigError, match="not a file of `shoal bench strangers`"):
        run(StrangersArgs(other, tasks=("Hopper-v5 sac",), rounds=0))
    assert other.read_text() == "[1, 2]"
