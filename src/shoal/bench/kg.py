"""`shoal bench kg`: proof search with random valid actions, by the compiled engine, the tensor engine, and in workers.

The peer is the same engine one lane at a time in Python environments on two worker processes: what a batch of lanes
that is stepped as one is worth. Then what PPO spends its time on: networks, engine, and everything else.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from unittest.mock import patch

import numpy as np

from shoal.bench.contender import Contender, Run, Work
from shoal.bench.machine import commit, machine, versions
from shoal.errors import ConfigError
from shoal.options import Flag, Values
from shoal.training.lab import Verb

if TYPE_CHECKING:
    from gymnasium import Env

    from shoal.vector.batch import Batch
    from shoal.worlds.kg.lanes.data.dataset import Dataset

WORLDS: dict[str, Values] = {
    "countries_s3": {"max_states": 20, "corruption": ["tail"]},
    "family": {"max_states": 130},
    "wn18rr": {"max_states": 262},
}
"""Data sets of the option `--data`, with the published numbers of successors."""
GENERATED = "families"
TENSOR_FACTS = 64  # per goal; the compiled engine looks at all of them
NUM_WORKERS = 2
ITERATIONS = 4  # of PPO that are measured
WORKER_LANES = 64  # of the peer, whose rate does not depend on it


@dataclass(frozen=True)
class KGArgs:
    """Measure proof search: environment steps per second with random valid actions."""

    data: Annotated[Path | None, Flag("DIR")] = None
    """A folder with the folders countries_s3, family and wn18rr; those that are absent are left out with a note."""
    num_envs: int = 512
    """Lanes stepped as one."""
    out: Path | None = None
    """Write the rows here as JSON."""
    rounds: int = 5
    """Interleaved rounds, of which the median is reported."""
    seconds: float = 0.5
    """Duration of one measurement."""
    only: str = ""
    """Measure only works whose name contains this, e.g. "family" or "workers"."""


def run(args: KGArgs) -> int:
    """The command."""
    works, notes = works_of(args.data, args.num_envs)
    works = [work for work in works if args.only in work.name]
    trained = {name: path for name, path in data_sets(args.data).items() if args.only in f"{name}, ppo"}
    if not works and not trained:
        raise ConfigError(f"No work of this suite has {args.only!r} in its name.")

    from rich.console import Console

    from shoal.bench.report import print_result
    from shoal.bench.rounds import run_works

    console = Console(width=None if Console().is_terminal else 120)
    with console.status("starting") as status:
        result = run_works(
            "kg", works, rounds=args.rounds, seconds=args.seconds, pythons={}, on_progress=lambda t: status.update(t)
        )
        training = [measure_training(name if name in WORLDS else "ppo", path) for name, path in trained.items()]
    result.notes.extend(notes)
    print_result(result, console)
    for row in training:
        console.print(describe(row), highlight=False)
    if args.out is not None:
        _write({"rows": [asdict(row) for row in result.rows], "training": training, "notes": result.notes}, args.out)
        console.print(f"rows written to {args.out}")
    return 0


def _write(document: Values, path: Path) -> None:
    document |= {"machine": machine(), "versions": versions(), "commit": commit()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def data_sets(data: Path | None) -> dict[str, str]:
    """What there is to measure here: names, and where they are."""
    paths = {name: data / name for name in WORLDS if data is not None}
    return {GENERATED: GENERATED, **{name: str(path.resolve()) for name, path in paths.items() if path.is_dir()}}


def works_of(data: Path | None, num_envs: int) -> tuple[list[Work], list[str]]:
    """What can be measured with these data, and in words what cannot."""
    works = [
        work
        for name, path in data_sets(data).items()
        for work in _works(name, {"data": path, **WORLDS.get(name, {})}, num_envs)
    ]
    absent = WORLDS.keys() - data_sets(data).keys()
    where = "no --data given" if data is None else f"no such folder in {data}"
    return works, [f"{name}: {where}" for name in sorted(absent)]


def _works(name: str, options: Values, num_envs: int) -> Iterator[Work]:
    compiled = Contender("shoal compiled", f"{__name__}:proving", options)
    # its shapes are padded to the largest bucket of facts, which takes seconds per step: it looks at fewer
    few = {"engine": "tensor", "fact_cap": TENSOR_FACTS}
    tensor = Contender(f"shoal tensor, {TENSOR_FACTS} facts", f"{__name__}:proving", {**options, **few})
    workers = Contender("shoal workers", f"{__name__}:proving_in_workers", {**options, "lanes_here": num_envs})
    yield Work(f"{name}, engines", num_envs, (compiled, tensor))
    yield Work(f"{name}, workers", num_envs, (compiled, workers), clock="wall")
    yield Work(f"{name}, one lane", 1, (compiled,))


# ---------------------------------------------------------------------- contenders


def proving(num_envs: int, **options: Any) -> Run:
    """Lanes of the world, stepped as one."""
    import shoal

    return valid_stepping(shoal.make("kg", num_envs, copy=False, **options))


def proving_in_workers(num_envs: int, lanes_here: int, **options: Any) -> Run:
    """One environment per lane, in Python, on worker processes. The rate counts as if there were `num_envs` of them."""
    import shoal

    lanes = min(WORKER_LANES, lanes_here)
    kwargs = {"env_kwargs": options, "num_workers": NUM_WORKERS, "backend": "workers"}
    step_all = valid_stepping(shoal.make(single_lane, lanes, copy=False, **kwargs))

    def run(count: int) -> int:
        """`count` steps of `num_envs` lanes are this many more of fewer lanes."""
        return step_all(count * num_envs // lanes) * lanes // num_envs

    run.close = step_all.close  # type: ignore[attr-defined]
    return run


def single_lane(**options: Any) -> Env:
    """One environment; those of a process share what is read from files."""
    from shoal.registry import make_single

    return make_single("kg", **{**options, "data": _dataset(options["data"])}, copy=False)


@cache
def _dataset(data: str) -> Dataset:
    from shoal.worlds.kg.lanes.data.dataset import load_dataset

    return load_dataset(data)


def valid_stepping(batch: Batch) -> Run:
    """A run that steps `batch` with random actions among those that its mask allows: these come first."""
    chance = np.random.default_rng(0).random((64, batch.num_envs))
    mask = batch.reset(seed=0)[1]["action_mask"]

    def run(count: int) -> int:
        nonlocal mask
        for k in range(count):
            action = (chance[k % len(chance)] * mask.sum(1)).astype(np.int64)
            mask = batch.step(action)[4]["action_mask"]
        return count

    run.close = batch.close  # type: ignore[attr-defined]
    return run


# ---------------------------------------------------------------------- training


def _timed(spent: dict[str, float], name: str, function: Callable) -> Callable:
    """`function`, whose processor time is added to `spent[name]`."""

    def call(*args: object, **kwargs: object) -> Any:
        began = time.process_time()
        try:
            return function(*args, **kwargs)
        finally:
            spent[name] += time.process_time() - began

    return call


def measure_training(preset: str, data: str) -> Values:
    """A row: environment steps per CPU-second with learning, and which share of the time is spent on what.

    `networks` are forward and backward passes; the optimiser, GAE, drawing actions, minibatches and buffers are
    `outside`.
    """
    import torch

    from shoal.agents.ppo import PPO
    from shoal.agents.rollout import Rollout
    from shoal.registry import as_world
    from shoal.training.collect import collect
    from shoal.training.loop import Clock
    from shoal.training.opening import make_agent, make_batch, make_hooks
    from shoal.training.settings import resolve_config

    torch.set_num_threads(1)  # what is measured is processor time
    world = as_world("kg")
    config = resolve_config(world, {"env": {"data": data}}, preset=preset)
    with closing(make_batch(world, config, config.num_envs)) as batch:
        agent, hooks = make_agent(world, config, batch), make_hooks(world, config, batch)
        spent: dict[str, float] = defaultdict(float)
        rollout = Rollout(batch, agent)
        batch.reset_into(rollout.step_buffers(rollout.num_steps - 1), seed=0)

        def iterate() -> None:
            collect(batch, agent, rollout, hooks, Clock())
            agent.update(rollout)

        iterate()
        assert isinstance(agent, PPO)
        agent.network.forward = _timed(spent, "networks", agent.network.forward)
        batch.step_into = _timed(spent, "engine", batch.step_into)  # type: ignore[method-assign]
        backward = _timed(spent, "networks", torch.Tensor.backward)
        with patch.object(torch.Tensor, "backward", lambda tensor: backward(tensor)):
            began = time.process_time()
            for _ in range(ITERATIONS):
                iterate()
            seconds = time.process_time() - began
    shares = {name: part / seconds for name, part in spent.items()}
    return {
        "work": f"{preset}, ppo",
        "num_envs": config.num_envs,
        "steps_per_cpu_s": ITERATIONS * config.batch_size / seconds,
        **shares,
        "outside": 1.0 - sum(shares.values()),
    }


def describe(row: Values) -> str:
    """One row in a sentence."""
    shares = ", ".join(f"{name} {row[name]:.0%}" for name in ("networks", "engine", "outside"))
    return f"{row['work']}, {row['num_envs']} lanes: {row['steps_per_cpu_s']:,.0f} steps per CPU-s; {shares}"


SUITE = Verb(KGArgs, run)
