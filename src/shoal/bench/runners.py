"""Suite "runners": what a rollout costs the runners and the learner, and the throughput that follows for K runners.

Measured are CPU seconds, on a Ray of this machine: of the runners per step; of the learner to receive fragments (per
fragment and per megabyte) and to learn (per step). The model puts them together for runners with a core each; how they
reach the learner over a network is in it as bytes per second. The rates of this machine, of which the fit knows
nothing, are then held against what the model says for as many cores as there are here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from shoal.bench.machine import machine
from shoal.bench.report import write_document
from shoal.training.lab import Verb

if TYPE_CHECKING:
    from shoal.training.config import TrainConfig

SIZES = ((1, 16, 0), (1, 64, 0), (2, 16, 0), (2, 64, 0))  # runners x steps per rollout, staleness
HELD_OUT = ((3, 64, 0), (4, 64, 0), (1, 64, 1), (2, 64, 1))
PREDICTED = (1, 2, 4, 8, 16, 32, 64, 128)
Size = tuple[int, int, int]


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
    ahead: bool = False
    """Whether the runners collected while the learner worked (--staleness 1)."""


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

    def iteration_s(self, runners: int, steps: int, ahead: bool = False, cores: int | None = None) -> float:
        """Collect, receive, learn: one after the other, or collecting ahead while the learner works (--staleness 1).

        With `cores` they all share one machine of this many; otherwise every runner and the learner has its own.
        """
        megabytes = steps * self.bytes_per_step / 2**20
        collect = steps * self.runner_s / min(runners, cores or runners)
        move = 0.0 if cores else megabytes / self.link_mb_s
        work = runners * self.fragment_s + megabytes * self.megabyte_s + steps * self.learn_s
        if not ahead:
            return collect + move + work
        return max(collect + move, work, (steps * self.runner_s + work) / cores if cores else 0.0)

    def steps_per_s(self, runners: int, steps: int, ahead: bool = False, cores: int | None = None) -> float:
        return steps / self.iteration_s(runners, steps, ahead, cores)

    def enough(self, steps: int) -> int:
        """The number of runners beyond which one that collects ahead of the learner has to wait for it."""
        return next(
            k for k in range(1, 10_000) if self.steps_per_s(k + 1, steps, True) <= self.steps_per_s(k, steps, True)
        )


def fit(samples: Sequence[Sample]) -> Model:
    """Least squares on the samples."""
    column = {name: np.array([getattr(sample, name) for sample in samples], float) for name in vars(samples[0])}
    steps, causes = column["steps"], np.stack([column["runners"], column["megabytes"]], axis=1)
    fragment, megabyte = np.maximum(np.linalg.lstsq(causes, column["receive_s"], rcond=None)[0], 0.0)
    return Model(
        runner_s=_slope(steps, column["runner_s"]),
        fragment_s=float(fragment),
        megabyte_s=float(megabyte),
        learn_s=_slope(steps, column["learn_s"]),
        bytes_per_step=_slope(steps, column["megabytes"] * 2**20),
    )


def _slope(causes: np.ndarray, effects: np.ndarray) -> float:
    """Of the line through the origin."""
    return float(causes @ effects / (causes @ causes))


def measure(world: str, num_envs: int, iterations: int, sizes: Sequence[Size], env: dict[str, str]) -> list[Sample]:
    """Samples of every size, without the first rollouts of each, which compile and load."""
    from shoal.cluster.start import start_local
    from shoal.registry import as_world
    from shoal.training.settings import resolve_config

    samples = []
    with start_local(num_cpus=max(runners for runners, *_ in sizes) + 1):
        for runners, num_steps, staleness in sizes:
            fleet = {"num_envs": num_envs, "runners": runners, "staleness": staleness}
            config = resolve_config(as_world(world), {**fleet, "env": env, "algo": {"num_steps": num_steps}})
            samples += _iterate(replace(config, seed=1), iterations)
            print(f"{runners} runner(s), {num_steps} steps per rollout, staleness {staleness}: measured", flush=True)
    return samples


def _iterate(config: TrainConfig, iterations: int) -> list[Sample]:
    import ray

    from shoal.agents.rollout import Rollout
    from shoal.cluster.fleet import COLUMNS, Fleet
    from shoal.registry import as_world
    from shoal.training.hooks import Hooks
    from shoal.training.loop import Clock
    from shoal.training.opening import make_agent
    from shoal.trees import leaves

    world = as_world(config.world)
    with closing(Fleet(ray, world, config)) as fleet:
        agent = make_agent(world, config, fleet)
        rollout = Rollout(fleet, agent)
        fleet.reset_into(rollout.step_buffers(rollout.num_steps - 1), seed=config.seed)
        moved = (rollout.obs, *(getattr(rollout, name) for name in COLUMNS))
        megabytes = sum(leaf.nbytes for leaf in leaves(moved)) / 2**20
        samples = []
        warming = 1 + config.staleness
        for _ in range(warming + iterations):
            wall, cpu = time.perf_counter(), time.process_time()
            fleet.collect(fleet, agent, rollout, Hooks(), Clock())
            received = time.process_time()
            agent.update(rollout)
            learned = time.process_time()
            spent = received - cpu, learned - received, time.perf_counter() - wall
            ahead = config.staleness > 0
            samples.append(Sample(config.runners, config.batch_size, megabytes, sum(fleet.cpu_s), *spent, ahead))
        return samples[warming:]


# ---------------------------------------------------------------------- the command


@dataclass(frozen=True)
class RunnersArgs:
    """Fit what training on Ray costs, and predict the throughput of more runners."""

    world: str = "cartpole"
    """What is trained, by PPO with the world's preset."""
    num_envs: int = 960
    """Environments of all runners together, a multiple of 12: they are shared by 1, 2, 3 and 4 runners."""
    backend: str | None = None
    """How a runner steps its lanes, e.g. serial for environments of Gymnasium."""
    iterations: int = 8
    """Rollouts of every size."""
    out: Path | None = None
    """Write samples, model and predictions here as JSON."""


def run(args: RunnersArgs) -> int:
    """The command."""
    from shoal.cluster.start import import_ray

    import_ray("`shoal bench runners`")
    env = {} if args.backend is None else {"backend": args.backend}
    samples = measure(args.world, args.num_envs, args.iterations, SIZES + HELD_OUT, env)
    model, steps = fit([sample for sample in samples if not sample.ahead and sample.runners <= 2]), args.num_envs * 64
    print(f"a step: {1e6 * model.runner_s:.2f} µs of a runner, {1e6 * model.learn_s:.2f} µs of learning, "
          f"{model.bytes_per_step:.0f} bytes")  # fmt: skip
    print(f"receiving: {1e3 * model.fragment_s:.2f} ms per fragment, {1e3 * model.megabyte_s:.2f} ms per megabyte")
    held = compare(model, samples)
    print("on this machine, whose cores the runners and the learner share:")
    for row in held:
        share = row["measured"] / row["predicted"]
        print(f"{row['runners']:>5} runners, staleness {row['staleness']}  predicted {row['predicted']:>10,.0f} "
              f"steps/s  measured {row['measured']:>10,.0f}  ({share:.2f} of it)")  # fmt: skip
    rates = {k: (model.steps_per_s(k, steps), model.steps_per_s(k, steps, True)) for k in PREDICTED}
    rows = [{"runners": k, "steps_per_s": rate, "steps_per_s_ahead": ahead} for k, (rate, ahead) in rates.items()]
    print(f"predicted for rollouts of {steps:,} steps and a core per runner:")
    for row in rows:
        print(f"{row['runners']:>5} runners  {row['steps_per_s']:>12,.0f} steps/s  "
              f"{row['steps_per_s_ahead']:>12,.0f} steps/s with --staleness 1")  # fmt: skip
    print(f"more than {model.enough(steps)} runners only wait for the learner")
    measured = {"samples": [asdict(sample) for sample in samples], "model": asdict(model)}
    write_document(args.out, {**measured, "predicted": rows, "held_against": held})
    return 0


def compare(model: Model, samples: Sequence[Sample]) -> list[dict[str, float]]:
    """Steps per second of the largest rollouts: what the model says for the cores of this machine, and what it was."""
    steps, cores = max(sample.steps for sample in samples), int(machine()["cores"])
    rows = []
    for runners, ahead in dict.fromkeys((sample.runners, sample.ahead) for sample in samples):
        walls = [s.wall_s for s in samples if (s.runners, s.ahead, s.steps) == (runners, ahead, steps)]
        predicted = model.steps_per_s(runners, steps, ahead, cores)
        measured = steps / median(walls)
        rows.append({"runners": runners, "staleness": int(ahead), "predicted": predicted, "measured": measured})
    return rows


SUITE = Verb(RunnersArgs, run)
