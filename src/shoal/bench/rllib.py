"""Suite "rllib": is `packed_vec` faster than `vec`, and from which number of lanes on? And what do other bridges bring?

Every contender trains PPO on CartPole in a process of its own with one thread: the same lanes, steps per rollout,
epochs and minibatches. They take turns. Time is the CPU time of the process, which a busy machine disturbs least.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import tyro

from shoal.bench.machine import commit, machine, versions
from shoal.bench.picture import line_chart
from shoal.bench.train import Answer, Worker
from shoal.bench.trainers import Contender, Work
from shoal.cluster.start import ray_address, start_local
from shoal.errors import missing_extra

SIZES = ((64, 64), (1_000, 32), (10_000, 8))  # lanes x steps per rollout
LARGE = (100_000, 4)
MINIBATCHES = 8
PATIENCE_S = 1800.0
OURS, REFERENCE = "shoal trainer", "vec"
MODES = (
    Contender(OURS, "shoal_ppo", "torch"),
    Contender("columnar", "rllib_ppo:columnar", "ray"),
    Contender("packed_vec", "rllib_ppo:packed_vec", "ray"),
    Contender("vec, our connectors", "rllib_ppo:vec_fast", "ray"),
    Contender(REFERENCE, "rllib_ppo:vec", "ray"),
)
OTHERS = {
    "sb3 ppo": (
        Contender("sb3 on shoal", "sb3_ppo:shoal", "stable_baselines3"),
        Contender("sb3 DummyVecEnv", "sb3_ppo", "stable_baselines3"),
    ),
    "torchrl collector": (
        Contender("torchrl on shoal", "torchrl_collect:shoal", "torchrl"),
        Contender("torchrl SerialEnv", "torchrl_collect:serial", "torchrl"),
        Contender("torchrl ParallelEnv", "torchrl_collect:parallel", "torchrl"),
    ),
}
Say = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """One contender at one work. Rates are environment steps per CPU second."""

    suite: str
    work: str
    num_envs: int
    name: str
    clock: str
    steps_per_s: float
    spread: float
    ratio_to_shoal: float
    """Of the first contender's rate to this one's."""
    judged: bool
    sampling_s: float | None = None
    """CPU seconds of one iteration that went into sampling, and the rest; where that is told apart."""
    learning_s: float | None = None
    peak_mb: float | None = None
    over_vec: float | None = None
    """How many times faster a whole iteration is than with `vec`; the same for sampling alone."""
    sampling_over_vec: float | None = None


def measure(work: Work, name: str, contenders: Sequence[Contender], rounds: int, say: Say) -> list[Row]:
    """Rows of all contenders that are installed, the first being the one to compare with."""
    workers: list[Worker] = []
    clock = "wall" if any("parallel" in contender.module for contender in contenders) else "cpu"
    try:
        for contender in contenders:
            worker = Worker(contender, work, threads=1)
            worker.patience_s = PATIENCE_S
            worker.ask(1)  # compiles, allocates
            workers.append(worker)
        answers = []
        for k in range(rounds):
            answers.append([worker.ask(1) for worker in workers])
            say(f"{name}, {work.num_envs:,} lanes: round {k + 1} of {rounds}")
    finally:
        for worker in workers:
            worker.close()
    return [row_of(name, clock, worker, column) for worker, column in zip(workers, _columns(answers), strict=True)]


def _columns(answers: list[list[Answer]]) -> list[tuple[list[Answer], list[Answer], list[Answer]]]:
    """For every worker its answers, those of the first and those of the last."""
    return [([row[i] for row in answers], [row[0] for row in answers], [row[-1] for row in answers])
            for i in range(len(answers[0]))]  # fmt: skip


def row_of(name: str, clock: str, worker: Worker, column: tuple[list[Answer], list[Answer], list[Answer]]) -> Row:
    """Medians over rounds, and ratios taken within them."""
    mine, first, last = column
    rates = [answer["steps"] / answer[clock] for answer in mine]
    quartiles = quantiles(rates, n=4) if len(rates) > 1 else [rates[0]] * 3
    row = Row(
        "rllib", name, worker.work.num_envs, worker.contender.name, clock, median(rates),
        (quartiles[2] - quartiles[0]) / median(rates), _ratio(mine, first, clock), judged=True,
        peak_mb=median(answer["peak_mb"] for answer in mine),
    )  # fmt: skip
    if "sampling_cpu" not in last[0]:
        return row
    more: dict[str, Any] = {"over_vec": _ratio(last, mine, "cpu")}
    if "sampling_cpu" in mine[0]:
        more["sampling_s"] = median(answer["sampling_cpu"] for answer in mine)
        more["learning_s"] = median(answer["cpu"] - answer["sampling_cpu"] for answer in mine)
        more["sampling_over_vec"] = _ratio(last, mine, "sampling_cpu")
    return Row(**{**asdict(row), **more})


def _ratio(slow: list[Answer], fast: list[Answer], clock: str) -> float:
    return median(a[clock] / b[clock] for a, b in zip(slow, fast, strict=True))


# ---------------------------------------------------------------------- the command


@dataclass(frozen=True)
class RllibArgs:
    """Measure RLlib's PPO on Shoal's lanes by mode, and the bridges to Stable-Baselines3 and TorchRL."""

    out: Path | None = None
    """Write the rows here as JSON, and the picture beside it as SVG."""
    rounds: int = 3
    """Interleaved rounds, of which the median is reported."""
    large: bool = False
    """Also 100,000 lanes, which takes `vec` minutes and gigabytes."""
    num_envs: tuple[int, ...] = ()
    """Only these numbers of lanes."""


def run(argv: list[str]) -> int:
    """The command."""
    args = tyro.cli(RllibArgs, args=argv, prog="shoal bench rllib")
    if importlib.util.find_spec("ray") is None:
        raise missing_extra("ray[rllib]", "ray", "`shoal bench rllib`")
    sizes = [size for size in (*SIZES, LARGE) if (size[0] in args.num_envs if args.num_envs else size != LARGE)]
    if args.large and LARGE not in sizes:
        sizes.append(LARGE)
    rows: list[Row] = []
    with shared_ray():
        for num_envs, num_steps in sizes:
            work = Work(num_envs, num_steps, epochs=4, minibatches=MINIBATCHES)
            rows += measure(work, "cartpole ppo", MODES, args.rounds, print)
            write(rows, args.out)  # the larger sizes take long, and might be interrupted
    if not args.num_envs or 64 in args.num_envs:
        for name, contenders in OTHERS.items():
            if importlib.util.find_spec(contenders[0].package) is not None:
                rows += measure(Work(64, 64), name, contenders, args.rounds, print)
    print_rows(rows)
    write(rows, args.out)
    return 0


@contextmanager
def shared_ray() -> Iterator[None]:
    """One Ray for all contenders, found by its address in the environment: five would take each other's time."""
    with start_local(num_cpus=1):
        os.environ["RAY_ADDRESS"] = ray_address()
        try:
            yield
        finally:
            del os.environ["RAY_ADDRESS"]


def print_rows(rows: Sequence[Row]) -> None:
    """A table per work and size."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if Console().is_terminal else 130)
    for work, num_envs in dict.fromkeys((row.work, row.num_envs) for row in rows):
        table = Table(title=f"{work}, {num_envs:,} lanes", title_justify="left", title_style="bold", box=None)
        headings = ("steps per s", "spread", "sampling s", "learning s", "peak MB", "over vec", "sampling over vec")
        for heading in ("", *headings, "first / it"):
            table.add_column(heading, justify="right" if heading else "left")
        for row in rows:
            if (row.work, row.num_envs) == (work, num_envs):
                numbers = (row.sampling_s, row.learning_s, row.peak_mb, row.over_vec, row.sampling_over_vec)
                cells = ("" if n is None else f"{n:,.2f}" if n < 100 else f"{n:,.0f}" for n in numbers)
                spread = f"{100 * row.spread:.0f} %"
                table.add_row(row.name, f"{row.steps_per_s:,.0f}", spread, *cells, f"{row.ratio_to_shoal:,.2f}×")
        console.print(table)
    here = machine()
    console.print(f"one thread of {here['cpu']}, load {here['load']}; per CPU second, ParallelEnv's table per second",
                  style="dim", highlight=False)  # fmt: skip


def write(rows: Sequence[Row], path: Path | None) -> None:
    """The rows as JSON, and samples per second over lanes as a picture; nothing without a path."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"rows": [asdict(row) for row in rows], "machine": machine(), "versions": versions(), "commit": commit()}
    path.write_text(json.dumps(document, indent=1) + "\n")
    lines = {mode.name: [(row.num_envs, row.steps_per_s) for row in rows if row.name == mode.name] for mode in MODES}
    title = "PPO on CartPole: environment steps per CPU second, learning included"
    path.with_suffix(".svg").write_text(line_chart(lines, title, "lanes", "steps per CPU second"))
