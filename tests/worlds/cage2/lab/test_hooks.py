"""What workflow-conditioned training writes down, and when it ends."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from shoal import make
from shoal.errors import ConfigError
from shoal.options import as_values
from shoal.training.config import TrainConfig
from shoal.training.hooks import Hooks
from shoal.worlds.cage2.lab.hooks import UserCost, WorkflowMonitor, make_hooks
from shoal.worlds.cage2.lab.options import Cage2Training, StopRules
from shoal.worlds.cage2.lanes.names import MONITOR
from shoal.worlds.cage2.lanes.workflow import WORKFLOWS as ALL_WORKFLOWS
from shoal.worlds.cage2.world import Cage2Options

LANES = 4
WORKFLOWS = np.array([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]] * 2)
LOOP = SimpleNamespace()


def end_episodes(monitor, compliance, lanes=slice(None), fixes=5.0):
    """Let episodes end in `lanes`, with these rates of compliance [B]."""
    ended = np.zeros(LANES, bool)
    ended[lanes] = True
    values = {"env_return": np.full(LANES, -20.0), "alignment": 30 * np.asarray(compliance, float)}
    final = {**values, "compliance": np.asarray(compliance, float), "fixes": np.full(LANES, fixes)}
    monitor.after_step(0, SimpleNamespace(num_envs=LANES), {"final_info": final, "_final_info": ended})


def test_quantities_are_logged_apart():
    monitor = WorkflowMonitor(WORKFLOWS, StopRules())
    monitor.after_step(0, SimpleNamespace(num_envs=LANES), {})
    assert monitor.after_iteration(LOOP) == {}
    end_episodes(monitor, [0.2, 0.4, 0.6, 0.8])
    means = monitor.after_iteration(LOOP)
    assert means == pytest.approx(
        {"rollout/env_return": -20, "rollout/alignment": 15, "rollout/compliance": 0.5, "rollout/fixes": 5}
    )
    assert monitor.after_iteration(LOOP) == {}  # nothing is counted twice


def test_the_threshold_holds_for_every_workflow():
    monitor = WorkflowMonitor(WORKFLOWS, StopRules(stop_compliance=0.9))
    end_episodes(monitor, [1.0, 0.8, 1.0, 0.9])  # the second workflow has 0.85 on average
    assert monitor.reason_to_stop(LOOP) is None
    end_episodes(monitor, [1.0, 0.9, 1.0, 0.9])
    assert "0.900 reached 0.9 after 8 episodes" in monitor.reason_to_stop(LOOP)


@pytest.mark.parametrize(
    ("rules", "lanes", "fixes"),
    [
        (StopRules(0.9, min_episodes=2), slice(None), 5),  # too few episodes in every lane
        (StopRules(0.9, min_fixes=21), slice(None), 5),  # too few fixes
        (StopRules(0.9), [0, 1], 50),  # two lanes are in their first episode
    ],
)
def test_compliance_is_not_believed_too_early(rules, lanes, fixes):
    monitor = WorkflowMonitor(WORKFLOWS, rules)
    end_episodes(monitor, np.ones(LANES), lanes, fixes)
    assert monitor.reason_to_stop(LOOP) is None


def test_a_plateau_and_a_cap_end_the_run():
    monitor = WorkflowMonitor(WORKFLOWS, StopRules(patience=2, max_episodes=100))
    for rate in (0.3, 0.305, 0.308):
        end_episodes(monitor, np.full(LANES, rate))
        monitor.after_iteration(LOOP)
    assert "not risen above 0.300 for 2 updates" in monitor.reason_to_stop(LOOP)
    monitor = WorkflowMonitor(WORKFLOWS, StopRules(max_episodes=8))
    end_episodes(monitor, np.ones(LANES))
    assert monitor.reason_to_stop(LOOP) is None
    end_episodes(monitor, np.ones(LANES))
    assert "all 8 episodes done" in monitor.reason_to_stop(LOOP)


def test_it_goes_on_where_it_was_saved():
    rules = StopRules(stop_compliance=0.9, patience=3, min_episodes=3)
    first, second = WorkflowMonitor(WORKFLOWS, rules), WorkflowMonitor(WORKFLOWS, rules)
    for rate in (0.5, 0.95):
        end_episodes(first, np.full(LANES, rate))
        first.after_iteration(LOOP)
    second.load_state_dict(first.state_dict())
    for monitor in (first, second):
        end_episodes(monitor, np.full(LANES, 0.93))
        monitor.after_iteration(LOOP)
    assert first.reason_to_stop(LOOP) == second.reason_to_stop(LOOP) is not None


def hooks_for(**extra):
    workflow = extra.pop("workflow", None)
    config = TrainConfig("cage2", env=Cage2Options(workflow=workflow), extra=Cage2Training(**extra))
    return make_hooks(config)


def test_hooks_are_those_that_the_options_ask_for():
    assert hooks_for() == Hooks()
    (cost,) = hooks_for(user_cost=0.5).recorders
    assert cost.start == 0.5
    hooks = hooks_for(workflow=[7, 3], patience=5)
    assert hooks.recorders == hooks.callbacks == hooks.stop_rules
    assert hooks.recorders[0].compliance_by_workflow().keys() == {ALL_WORKFLOWS[7], ALL_WORKFLOWS[3]}


def test_rules_need_a_workflow_and_sensible_numbers():
    with pytest.raises(ConfigError, match="--workflow"):
        hooks_for(stop_compliance=0.9)
    with pytest.raises(ConfigError, match="above 0 and at most 1"):
        Cage2Training(stop_compliance=1.5)
    with pytest.raises(ConfigError, match="at least 1"):
        Cage2Training(patience=0)
    with pytest.raises(ConfigError, match="true cost"):
        Cage2Training(user_cost=0.05)


def test_user_hosts_cost_more_at_first_and_the_truth_from_half_time_on():
    batch = make("cage2", 8, red="bline", length=20, compiled=False)
    cost = UserCost(0.6)
    loop = SimpleNamespace(step=0, config=SimpleNamespace(total_steps=80))
    cost.begin(loop)
    batch.reset(seed=0)
    charged = []
    for t in range(20):
        loop.step = 2 * t
        *_, reward, _, _, info = batch.step(np.full(8, MONITOR))
        rollout = SimpleNamespace(reward=reward[None].copy())
        cost.after_step(0, rollout, info)
        owned = info["final_info"]["owned"] if t == 19 else info["owned"]
        users = sum(owned >> h & 1 for h in range(9, 13))
        np.testing.assert_allclose(reward - rollout.reward[0], max(0, 1 - t / 20) * 0.5 * users, atol=1e-6)
        charged.append(users.sum())
    assert charged[-1] == 8
    loop.step = 40
    assert cost.surcharge() == 0


def test_training_from_the_command_line_follows_a_workflow(tmp_path):
    from shoal.cli import main

    words = "--preset original --total-steps 15000 --eval-episodes 4 --max-episodes 50 --workflow balanced"
    assert main(["train", "cage2", *words.split(), "--runs-dir", str(tmp_path)]) == 0
    (run,) = tmp_path.iterdir()
    config = json.loads((run / "config.json").read_text())
    env = Cage2Options(workflow="balanced", alignment_weight=30.0, compliance="action-order")  # of this preset alone
    assert config["env"] == as_values(env)
    assert config["extra"] == as_values(Cage2Training(stop_compliance=0.95, min_episodes=10, max_episodes=50))
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["step"] == 5000  # 50 episodes of 100 steps
    last = rows[-1]
    assert last["rollout/ep_rew_mean"] <= 0
    assert 0 <= last["rollout/compliance"] <= 1
    assert last["rollout/alignment"] == pytest.approx(30 * last["rollout/compliance"], rel=1e-3)
