"""`shoal bench workflow`: PPO that follows a workflow of cage2, with the settings of the original system.

How long 100,000 episodes take (learning included), against the same training in plain torch, interleaved; how long it
takes until one workflow is followed; and a picture of how the original's settings converge.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from shoal.bench.machine import commit, machine, versions
from shoal.errors import ConfigError
from shoal.options import Values
from shoal.training.lab import Verb

if TYPE_CHECKING:
    from shoal.training.loop import Loop

EPISODES, LENGTH = 100_000, 100
COMPLIANCE = 0.90
CHART_SEEDS, LIMITS = (0, 1, 2), {"stop_compliance": 0.95}


@dataclass(frozen=True)
class WorkflowArgs:
    """Measure workflow-conditioned training on cage2."""

    rounds: int = 5
    """Interleaved rounds, of which the median is reported."""
    updates: int = 40
    """Updates of 25 lanes x 100 steps in one round; plain torch makes a quarter of them."""
    workflow: str = "critical_first"
    """The workflow that is learned."""
    out: Path | None = None
    """Write the rows here as JSON."""
    chart: Path | None = None
    """Draw here, as SVG, how the preset `original` converges on three seeds."""


def run(args: WorkflowArgs) -> int:
    """The command."""
    if args.rounds < 1 or args.updates < 4:
        raise ConfigError(f"--rounds {args.rounds} --updates {args.updates} measures nothing. Use at least 1 and 4.")
    rows = [*measure_training(args.rounds, args.updates, args.workflow), measure_compliance(args.workflow)]
    for row in rows:
        print(describe(row))
    if args.out is not None:
        document = {"rows": rows, "machine": machine(), "versions": versions(), "commit": commit()}
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(document, indent=1) + "\n")
    if args.chart is not None:
        args.chart.write_text(draw_convergence(args.workflow, CHART_SEEDS))
    return 0


def describe(row: Values) -> str:
    """One row in a sentence."""
    if row["name"] == "shoal search trial":
        reached = "followed" if row["reached"] else "not followed"
        return (
            f"{row['work']}: {reached} after {row['episodes']:,} episodes, "
            f"{row['cpu_seconds']:.1f} CPU-s, {row['seconds']:.1f} s"
        )
    minutes = EPISODES * LENGTH / row["steps_per_s"] / 60
    return (
        f"{row['name']:<12} {row['steps_per_cpu_s']:>9,.0f} steps per CPU-s  {row['steps_per_s']:>9,.0f} steps per s: "
        f"{EPISODES:,} episodes in {minutes:.1f} minutes  (Shoal / it {row['ratio_to_shoal']:.2f}×)"
    )


class Turns:
    """One training that goes on whenever it is its turn."""

    def __init__(self, workflow: str, fast: bool) -> None:
        from shoal.training.hooks import Hooks

        settings = {"total_steps": 2**60, "checkpoint_every": 2**60, "algo": {"fast": fast}}
        self._left = 0
        self._loop = original_loop(workflow, settings, Rows())
        self._loop.hooks = Hooks(stop_rules=(self,))
        self.steps_per_update, self.num_envs = self._loop.config.batch_size, self._loop.config.num_envs

    def reason_to_stop(self, loop: Loop) -> str | None:
        """As a stop rule of the loop: pause after the updates of this turn."""
        self._left -= 1
        return "paused" if self._left < 0 else None

    def take(self, updates: int) -> tuple[float, float]:
        """Make this many updates; returns (wall, CPU) seconds."""
        if self._loop.iteration:
            self._loop.restore(*self._loop.snapshot())  # what a resumed run does: `train` goes on where it was
        self._left = updates
        wall, cpu = time.perf_counter(), time.process_time()
        self._loop.train()
        return time.perf_counter() - wall, time.process_time() - cpu


class Rows:
    """A run that remembers its metrics and writes nothing."""

    def __init__(self) -> None:
        self.rows: list[Mapping[str, float | str]] = []

    def log(self, step: int, metrics: Mapping[str, float | str]) -> None:
        self.rows.append(metrics)

    def episodes(self, *args: object) -> None: ...
    def checkpoint(self, *args: object) -> None: ...
    def say(self, sentence: str) -> None: ...


def original_loop(workflow: str, settings: Values, run: Rows) -> Loop:
    """A training on cage2 with the preset `original`."""
    from shoal.registry import as_world
    from shoal.training.loop import Loop
    from shoal.training.opening import make_agent, make_batch, make_hooks
    from shoal.training.settings import resolve_config

    world = as_world("cage2")
    config = resolve_config(world, {**settings, "env": {"workflow": workflow}}, preset="original")
    batch = make_batch(world, config, config.num_envs)
    return Loop(batch, make_agent(world, config, batch), config, run, make_hooks(world, config, batch))


def draw_convergence(workflow: str, seeds: Sequence[int]) -> str:
    """The SVG of compliance over episodes, each seed until it stops by itself."""
    from shoal.bench.chart import line_chart

    lines: dict[str, list[tuple[float, float]]] = {}
    for seed in seeds:
        run = Rows()
        loop = original_loop(workflow, {"seed": seed, "extra": LIMITS}, run)
        loop.train()
        loop.batch.close()
        lines[f"seed {seed}"] = [
            ((k + 1) * loop.batch.num_envs, float(row["rollout/compliance"])) for k, row in enumerate(run.rows)
        ]
    longest = max(points[-1][0] for points in lines.values())
    lines["stops at 0.95"] = [(0, 0.95), (longest, 0.95)]
    title = f"Following {workflow} with the original's settings"
    return line_chart(lines, title, "episodes, 25 per update", "compliance by action order", linear=True)


def measure_training(rounds: int, updates: int, workflow: str) -> list[Values]:
    """Rows of Shoal and of plain torch: environment steps per second, learning included."""
    contenders = {"shoal": (Turns(workflow, True), updates), "plain torch": (Turns(workflow, False), updates // 4)}
    for turns, _ in contenders.values():
        turns.take(2)  # compile and settle
    taken = [{name: turns.take(count) for name, (turns, count) in contenders.items()} for _ in range(rounds)]
    rows = []
    for name, (turns, count) in contenders.items():
        steps = count * turns.steps_per_update
        wall, cpu = ([steps / times[name][k] for times in taken] for k in (0, 1))
        ratios = [updates / times["shoal"][1] / (count / times[name][1]) for times in taken]
        rows.append(
            {
                "suite": "workflow",
                "work": f"cage2 ppo following {workflow}, original settings",
                "num_envs": turns.num_envs,
                "name": name,
                "steps_per_s": median(wall),
                "spread": (max(wall) - min(wall)) / median(wall),
                "ratio_to_shoal": median(ratios),
                "steps_per_cpu_s": median(cpu),
            }
        )
    return rows


def measure_compliance(workflow: str) -> Values:
    """A row: how long the preset `fast` takes to follow a workflow in 90 % of its fixes, by the true state."""
    from shoal.worlds.cage2.lab.search.config import SearchConfig
    from shoal.worlds.cage2.lab.search.trial import Curve, run_trial
    from shoal.worlds.cage2.lanes.workflow import as_workflow

    config = SearchConfig(num_envs=50, compliance_threshold=COMPLIANCE, eval_episodes=100)
    cpu = time.process_time()
    outcome = run_trial(config, [as_workflow(workflow)], None, 0, Curve()).outcomes[0]
    return {
        "suite": "workflow",
        "work": f"cage2 {workflow} to {COMPLIANCE:.0%} compliance",
        "num_envs": config.num_envs,
        "name": "shoal search trial",
        "reached": outcome.reached,
        "episodes": outcome.episodes,
        "seconds": outcome.seconds,
        "cpu_seconds": time.process_time() - cpu,
    }


SUITE = Verb(WorkflowArgs, run)
