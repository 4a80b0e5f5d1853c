"""Agents learn: every world's preset, a task that needs memory and one that needs masks, from five seeds each.

`make test-slow` runs these and shows the table.
"""

import time
from contextlib import closing
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

import shoal
from shoal.training.acting import Actor
from shoal.training.evaluate import evaluate
from shoal.training.hooks import Hooks

SEEDS = range(5)
EPISODES = 512
"""Enough that the mean of Pendulum, whose return hangs on where it starts, is known to about 4."""
RECALL = {
    "num_envs": 256,
    "total_steps": 300_000,
    "algo": {"num_steps": 18, "minibatches": 2, "lr": 3e-3, "lr_final": 0.0, "entropy": 0.01, "hidden": [32]},
}
DOORS = {
    "num_envs": 64,
    "total_steps": 200_000,
    "algo": {"num_steps": 20, "minibatches": 8, "lr": 1e-3, "lr_final": 0.0, "gamma": 0.0},
}


@dataclass(frozen=True)
class Task:
    """What is to be learned; without settings, by the world's preset."""

    world: str
    threshold: float
    settings: dict[str, Any] = field(default_factory=dict)


TASKS = {
    "cartpole": Task("cartpole", 475),
    "acrobot": Task("acrobot", -100),
    "pendulum": Task("pendulum", -200),
    "mountaincar": Task("mountaincar", -110),
    "mountaincar-continuous": Task("mountaincar-continuous", 90),
    "recall": Task(
        "tests.training.puzzles:Recall",
        0.95,
        {**RECALL, "algo": {**RECALL["algo"], "memory": "gru", "memory_size": 32}},
    ),
    "cartpole by dddqn": Task("cartpole", 475, {"algo": "dddqn"}),
    "pendulum by sac": Task("pendulum", -200, {"algo": "sac"}),
    "doors": Task("tests.training.puzzles:Doors", 7.2, DOORS),  # 7.5 is perfect, 5 any open door
}


class Violations:
    """Recorder that counts the steps in which an agent took what its mask forbids."""

    def __init__(self):
        self.count = self.steps = 0

    def after_step(self, t, rollout, info):
        if rollout.action_mask is not None:
            allowed = rollout.action_mask[t][range(rollout.num_envs), rollout.action[t]]
            self.count += int((~allowed).sum())
            self.steps += len(allowed)


def mean_return(agent, world):
    """Of `EPISODES` episodes on the same unseen starts for every agent."""
    with closing(shoal.make(world, 256)) as batch:
        return float(evaluate(batch, Actor(agent, batch), EPISODES, seed=0).returns.mean())


@pytest.fixture(scope="module")
def table():
    """Rows are added by the tests and shown when all have run."""
    table = Table(title=f"Learned from {len(SEEDS)} seeds: mean return of {EPISODES} episodes")
    for column in ("world", "threshold", *(f"seed {seed}" for seed in SEEDS), "steps", "seconds", "CPU seconds"):
        table.add_column(column, justify="left" if column == "world" else "right", no_wrap=True)
    yield table
    Console(width=140).print("\n", table, "Seconds are of one seed's whole run (median), with evaluations and report.")


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_it_learns_from_every_seed(tmp_path, table, name):
    task, violations = TASKS[name], Violations()
    returns, seconds, cpu_seconds = [], [], []
    for seed in SEEDS:
        started, cpu_started = time.perf_counter(), time.process_time()
        hooks = Hooks(recorders=(violations,))
        result = shoal.train(task.world, runs_dir=tmp_path, quiet=True, hooks=hooks, seed=seed, **task.settings)
        seconds.append(time.perf_counter() - started)
        cpu_seconds.append(time.process_time() - cpu_started)
        returns.append(mean_return(result.agent, task.world))
    figures = [f"{task.threshold:g}", *(f"{value:.2f}" for value in returns)]
    steps = f"{result.metrics['time/total_timesteps']:,.0f}"
    table.add_row(name, *figures, steps, f"{median(seconds):.1f}", f"{median(cpu_seconds):.1f}")
    assert min(returns) >= task.threshold
    assert violations.count == 0
    assert (violations.steps > 0) == (name == "doors")


@pytest.mark.slow
def test_without_memory_recall_stays_at_chance(tmp_path):
    for seed in SEEDS:
        result = shoal.train(TASKS["recall"].world, runs_dir=tmp_path, quiet=True, seed=seed, **RECALL)
        assert 0.15 < mean_return(result.agent, TASKS["recall"].world) < 0.35  # chance is 1/4


@pytest.mark.slow
def test_without_its_mask_the_doors_agent_walks_into_closed_doors(tmp_path):
    agent = shoal.train(TASKS["doors"].world, runs_dir=tmp_path, quiet=True, **DOORS).agent
    with closing(shoal.make(TASKS["doors"].world, 256)) as batch:
        obs, info = batch.reset(seed=0)
        blind = agent.act_batch(obs, deterministic=True).action
        seeing = agent.act_batch(obs, deterministic=True, action_mask=info["action_mask"]).action
    lanes = range(256)
    assert info["action_mask"][lanes, seeing].all()
    assert info["action_mask"][lanes, blind].mean() < 0.5


def test_cartpole_is_solved_in_seconds(tmp_path):
    result = shoal.train("cartpole", runs_dir=tmp_path, quiet=True, total_steps=80_000, eval_every=0)
    assert mean_return(result.agent, "cartpole") >= 475
