"""Suite "runners": what a rollout costs the runners and the learner, and the throughput that follows for K runners.

Measured are CPU seconds, on a Ray of this machine: of the runners per step; of the learner to receive fragments (per
fragment and per megabyte) and to learn (per step). The model puts them together for runners with a core each; how they
reach the learner over a network is in it as bytes per second.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import tyro

from shoal.bench.machine import commit, machine, versions

SIZES = ((1, 16), (1, 64), (2, 16), (2, 64))  # runners x steps per rollout
PREDICTED = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Sample:
    """One rollout and update: CPU seconds, and how large it was."""

    runners: int
    steps: int
    megabytes: float
    runner_s: float
    receive_s: float
    learn_s: float
    wall_s: float


@dataclass(frozen=True)
class Model:
    """Seconds of one iteration with K runners: what a step costs where."""

    runner_s: float
    """Of a runner per environment step."""
    fragment_s: float
    """Of the learner per fragment it receives, however large."""
    megabyte_s: float
    """Of the learner per megabyte it receives."""
    learn_s: float
    """Of the learner per environment step."""
    bytes_per_step: float
    link_mb_s: float = 1000.0
    """What the network into the learner's machine carries."""

    def iteration_s(self, runners: int, steps: int, ahead: bool = False) -> float:
        """Collect, receive, learn: one after the other, or collecting ahead while the learner works (--staleness 1)."""
        megabytes = steps * self.bytes_per_step / 2**20
        collect = steps * self.runner_s / runners
        move = megabytes / self.link_mb_s
        work = runners * self.fragment_s + megabytes * self.megabyte_s + steps * self.learn_s
        return max(collect + move, work) if ahead else collect + move + work

    def steps_per_s(self, runners: int, steps: int, ahead: bool = False) -> float:
        return steps / self.iteration_s(runners, steps, ahead)

    def enough(self, steps: int) -> int:
        """The number of runners beyond which one that collects ahead of the learner has to wait for it."""
        return next(
            k for k in range(1, 10_000) if self.steps_per_s(k + 1, steps, True) <= self.steps_per_s(k, steps, True)
        )


def fit(samples: Sequence[Sample]) -> Model:
    """Least squares on the samples."""
    steps = np.array([sample.steps for sample in samples], float)
    megabytes = np.array([sample.megabytes for sample in samples])
    causes = np.stack([np.array([sample.runners for sample in samples], float), megabytes], axis=1)
    received = np.array([sample.receive_s for sample in samples])
    fragment, megabyte = np.maximum(np.linalg.lstsq(causes, received, rcond=None)[0], 0.0)
    return Model(
        runner_s=_slope(steps, [sample.runner_s for sample in samples]),
        fragment_s=float(fragment),
        megabyte_s=float(megabyte),
        learn_s=_slope(steps, [sample.learn_s for sample in samples]),
        bytes_per_step=_slope(steps, megabytes * 2**20),
    )


def _slope(causes: np.ndarray, effects: Any) -> float:
    """Of the line through the origin."""
    return float(causes @ np.asarray(effects) / (causes @ causes))


def measure(world: str, num_envs: int, iterations: int, sizes: Sequence[tuple[int, int]] = SIZES) -> list[Sample]:
    """Samples of every size, without the first rollout of each, which compiles and loads."""
    from shoal.cluster.start import start_local
    from shoal.training.settings import resolve_config

    samples = []
    with start_local(num_cpus=max(runners for runners, _ in sizes) + 1) as _:
        for runners, num_steps in sizes:
            config = resolve_config(world, {"num_envs": num_envs, "runners": runners, "algo": {"num_steps": num_steps}})
            found = _iterate(replace(config, seed=1), iterations)
            samples += found
            rate = median(sample.steps / sample.wall_s for sample in found)
            print(f"{runners} runner(s), {num_steps} steps per rollout: {rate:,.0f} steps/s on this machine")
    return samples


def _iterate(config: Any, iterations: int) -> list[Sample]:
    import ray

    from shoal.cluster.fleet import Fleet
    from shoal.training.clock import Clock
    from shoal.training.hooks import Hooks
    from shoal.training.loop import named_leaves
    from shoal.training.opening import make_agent
    from shoal.training.rollout import Rollout

    fleet = Fleet(ray, config.world, config)
    try:
        agent = make_agent(config, fleet)
        rollout = Rollout(fleet, agent)
        fleet.reset_into(rollout.step_buffers(rollout.num_steps - 1), seed=config.seed)
        columns = (
            rollout.action,
            rollout.log_prob,
            rollout.value,
            rollout.reward,
            rollout.terminated,
            rollout.truncated,
        )
        size = sum(leaf.nbytes for _, leaf in named_leaves(rollout.obs)) + sum(column.nbytes for column in columns)
        samples = []
        for _ in range(iterations + 1):
            wall, cpu = time.perf_counter(), time.process_time()
            fleet.collect(fleet, agent, rollout, Hooks(), Clock())
            received = time.process_time()
            agent.update(rollout)
            learned = time.process_time()
            spent = received - cpu, learned - received, time.perf_counter() - wall
            samples.append(Sample(config.runners, config.batch_size, size / 2**20, sum(fleet.cpu_s), *spent))
        return samples[1:]
    finally:
        fleet.close()


# ---------------------------------------------------------------------- the command


@dataclass(frozen=True)
class RunnersArgs:
    """Fit what training on Ray costs, and predict the throughput of more runners."""

    world: str = "cartpole"
    """What is trained, by PPO with the world's preset."""
    num_envs: int = 1024
    """Environments of all runners together."""
    iterations: int = 8
    """Rollouts of every size."""
    out: Path | None = None
    """Write samples, model and predictions here as JSON."""


def run(argv: list[str]) -> int:
    """The command."""
    args = tyro.cli(RunnersArgs, args=argv, prog="shoal bench runners")
    from shoal.cluster.start import import_ray

    import_ray("`shoal bench runners`")
    samples = measure(args.world, args.num_envs, args.iterations)
    model, steps = fit(samples), args.num_envs * SIZES[-1][1]
    print(f"a step: {1e6 * model.runner_s:.2f} µs of a runner, {1e6 * model.learn_s:.2f} µs of learning, "
          f"{model.bytes_per_step:.0f} bytes")  # fmt: skip
    print(f"receiving: {1e3 * model.fragment_s:.2f} ms per fragment, {1e3 * model.megabyte_s:.2f} ms per megabyte")
    rows = [
        {
            "runners": k,
            "steps_per_s": model.steps_per_s(k, steps),
            "steps_per_s_ahead": model.steps_per_s(k, steps, True),
        }
        for k in PREDICTED
    ]
    print(f"predicted for rollouts of {steps:,} steps and a core per runner:")
    for row in rows:
        print(f"{row['runners']:>5} runners  {row['steps_per_s']:>12,.0f} steps/s  "
              f"{row['steps_per_s_ahead']:>12,.0f} steps/s with --staleness 1")  # fmt: skip
    print(f"more than {model.enough(steps)} runners only wait for the learner")
    if args.out is not None:
        document = {"samples": [asdict(sample) for sample in samples], "model": asdict(model), "predicted": rows}
        about = {"machine": machine(), "versions": versions(), "commit": commit()}
        args.out.write_text(json.dumps({**document, **about}, indent=1) + "\n")
    return 0
