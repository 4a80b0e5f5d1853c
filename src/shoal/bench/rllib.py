"""Suite "rllib": is `packed_vec` faster than `vec`, and from which number of lanes on? And what do other bridges bring?

Every contender trains PPO on CartPole in a process of its own with one thread: the same lanes, steps per rollout,
epochs and minibatches. They take turns. Time is CPU time over all processes of a contender, which a busy machine
disturbs least; where that hides something, as with ParallelEnv's 64 processes, there is a ratio by the clock too.
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

import tyro

from shoal.bench import rounds as interleaved
from shoal.bench.machine import commit, machine, versions
from shoal.bench.picture import line_chart
from shoal.bench.train import Answer, Worker
from shoal.bench.trainers import Contender, Work
from shoal.cluster.start import ray_address, start_local
from shoal.errors import missing_extra

SIZES = ((64, 64), (1_000, 32), (10_000, 8))  # lanes x steps per rollout
LARGE = (100_000, 2)
MINIBATCHES = 8
PATIENCE_S = 1800.0
TURN_S = 1.0  # what a contender's turn should take at least
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
        Contender("sb3 on lanes that cost nothing", "sb3_ppo:null", "stable_baselines3"),
    ),
    "torchrl collector": (
        Contender("torchrl on shoal", "torchrl_collect:shoal", "torchrl"),
        Contender("torchrl SerialEnv", "torchrl_collect:serial", "torchrl"),
        Contender("torchrl ParallelEnv", "torchrl_collect:parallel", "torchrl"),
    ),
}
Say = Callable[[str], None]


@dataclass(frozen=True)
class Row(interleaved.Row):
    """One contender at one work. `ratio_to_shoal` is of the first contender's rate to this one's."""

    wall_ratio: float
    """The same by seconds of the day."""
    peak_mb: float
    sampling_s: float | None = None
    """CPU seconds of one iteration that went into sampling, and the rest; where that is told apart."""
    learning_s: float | None = None
    over_vec: float | None = None
    """How many times faster a whole iteration is than with `vec`; the same for sampling alone."""
    sampling_over_vec: float | None = None


def measure(work: Work, name: str, contenders: Sequence[Contender], rounds: int, say: Say) -> list[Row]:
    """Rows of all contenders, the first being the one to compare with."""
    workers: list[Worker] = []
    answers: list[list[Answer]] = []
    try:
        for contender in contenders:
            workers.append(Worker(contender, work, threads=1))
            workers[-1].patience_s = PATIENCE_S
            if workers[-1].ask(1)["cpu"] < 4 * TURN_S:  # compiles, allocates
                workers[-1].iterations = max(1, round(TURN_S / workers[-1].ask(1)["cpu"]))
        for k in range(rounds):
            answers.append([worker.ask(worker.iterations) for worker in workers])
            say(f"{name}, {work.num_envs:,} lanes: round {k + 1} of {rounds}")
    finally:
        for worker in workers:
            worker.close()
    return [row_of(name, worker, i, answers) for i, worker in enumerate(workers)]


def row_of(name: str, worker: Worker, i: int, answers: list[list[Answer]]) -> Row:
    """Medians over the rounds of `answers` [rounds][workers] for worker `i`, and ratios taken within rounds."""
    mine, first, last = ([everyone[j] for everyone in answers] for j in (i, 0, -1))
    rates = [answer["steps"] / answer["cpu"] for answer in mine]
    quartiles = quantiles(rates, n=4) if len(rates) > 1 else [rates[0]] * 3
    spread = (quartiles[2] - quartiles[0]) / median(rates)
    more: dict[str, float] = {}
    if "sampling_cpu" in mine[0]:
        more["sampling_s"] = median(answer["sampling_cpu"] for answer in mine) / worker.iterations
        more["learning_s"] = median(answer["cpu"] - answer["sampling_cpu"] for answer in mine) / worker.iterations
    if worker.contender in MODES and "sampling_cpu" in last[0]:
        more["over_vec"] = _ratio(last, mine, "cpu")
        if "sampling_cpu" in mine[0]:
            more["sampling_over_vec"] = _ratio(last, mine, "sampling_cpu")
    return Row(
        "rllib", name, worker.work.num_envs, worker.contender.name, "cpu", median(rates), spread,
        _ratio(mine, first, "cpu"), True, _ratio(mine, first, "wall"), median(answer["peak_mb"] for answer in mine),
        **more,
    )  # fmt: skip


def _ratio(slow: list[Answer], fast: list[Answer], clock: str) -> float:
    """Median over rounds of what a step takes the one over what it takes the other."""
    return median((a[clock] / a["steps"]) / (b[clock] / b["steps"]) for a, b in zip(slow, fast, strict=True))


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

    def add(found: list[Row]) -> None:
        rows.extend(found)
        print_rows(found)
        write(rows, args.out)  # now: the larger sizes take long, and might be interrupted

    with shared_ray():
        for num_envs, num_steps in sizes:
            work = Work(num_envs, num_steps, epochs=4, minibatches=MINIBATCHES)
            add(measure(work, "cartpole ppo", MODES, args.rounds, print))
    if not args.num_envs or 64 in args.num_envs:
        for name, contenders in OTHERS.items():
            if importlib.util.find_spec(contenders[0].package) is not None:
                add(measure(Work(64, 64), name, contenders, args.rounds, print))
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

    console = Console(width=None if Console().is_terminal else 150)
    for work, num_envs in dict.fromkeys((row.work, row.num_envs) for row in rows):
        table = Table(title=f"{work}, {num_envs:,} lanes", title_justify="left", title_style="bold", box=None)
        headings = ("steps per s", "spread", "sampling s", "learning s", "peak MB", "over vec", "sampling over vec")
        for heading in ("", *headings, "first / it", "by the clock"):
            table.add_column(heading, justify="right" if heading else "left")
        for row in rows:
            if (row.work, row.num_envs) == (work, num_envs):
                numbers = (row.sampling_s, row.learning_s, row.peak_mb, row.over_vec, row.sampling_over_vec)
                cells = ("" if n is None else f"{n:,.3f}" if n < 1 else f"{n:,.2f}" if n < 100 else f"{n:,.0f}"
                         for n in numbers)  # fmt: skip
                ratios = (f"{ratio:,.2f}×" for ratio in (row.ratio_to_shoal, row.wall_ratio))
                table.add_row(row.name, f"{row.steps_per_s:,.0f}", f"{100 * row.spread:.0f} %", *cells, *ratios)
        console.print(table)
    here = machine()
    console.print(f"one thread of {here['cpu']}, load {here['load']}; rates are per CPU second of all processes",
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
