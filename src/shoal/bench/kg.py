"""`shoal bench kg`: proof search with random valid actions, by the compiled engine, the tensor engine, and in workers.

The peer is the same engine one lane at a time in Python environments on two worker processes: what a batch of lanes
that is stepped as one is worth.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from shoal.bench.contender import Contender, Run, Work
from shoal.bench.kg_training import describe, measure_training
from shoal.bench.machine import commit, machine, versions
from shoal.errors import ConfigError

WORLDS: dict[str, dict[str, Any]] = {
    "countries_s3": {"max_states": 20, "corruption": ["tail"]},
    "family": {"max_states": 130},
    "wn18rr": {"max_states": 262},
}
"""Data sets of the option `--data`, with the published numbers of successors."""
GENERATED = "families"
TENSOR_FACTS = 64  # per goal; the compiled engine looks at all of them
NUM_WORKERS = 2
WORKER_LANES = 64  # of the peer, whose rate does not depend on it


@dataclass(frozen=True)
class KGArgs:
    """Measure proof search: environment steps per second with random valid actions."""

    data: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
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


def run(argv: list[str]) -> int:
    """The command."""
    args = tyro.cli(KGArgs, args=argv, prog="shoal bench kg")
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


def _write(document: dict[str, Any], path: Path) -> None:
    document |= {"machine": machine(), "versions": versions(), "commit": commit()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def data_sets(data: Path | None) -> dict[str, str]:
    """What there is to measure here: names, and where they are."""
    found = {name: data / name for name in WORLDS if data is not None}
    return {GENERATED: GENERATED, **{name: str(path.resolve()) for name, path in found.items() if path.is_dir()}}


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


def _works(name: str, options: dict[str, Any], num_envs: int) -> Iterator[Work]:
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


def single_lane(**options: Any) -> Any:
    """One environment; those of a process share what is read from files."""
    from shoal.vector.single import SingleLane

    data = options.pop("data")
    return SingleLane("kg", data=_dataset(data), copy=False, **options)


@cache
def _dataset(data: str) -> Any:
    from shoal.worlds.kg.dataset import load_dataset

    return load_dataset(data)


def valid_stepping(batch: Any) -> Run:
    """A run that steps `batch` with random actions among those that its mask allows: these come first."""
    chance = np.random.default_rng(0).random((64, batch.num_envs))
    mask = batch.reset(seed=0)[1]["action_mask"]
    last = [mask]

    def run(count: int) -> int:
        for k in range(count):
            action = (chance[k % len(chance)] * last[0].sum(1)).astype(np.int64)
            last[0] = batch.step(action)[4]["action_mask"]
        return count

    run.close = batch.close  # type: ignore[attr-defined]
    return run
