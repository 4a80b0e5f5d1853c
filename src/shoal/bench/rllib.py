"""Suite "rllib": is `packed_vec` faster than `vec`, and from which number of lanes on? And what do other bridges bring?

Every contender trains PPO on CartPole in a process of its own with one thread: the same lanes, steps per rollout,
epochs and minibatches. They take turns. Time is CPU time over all processes of a contender, which a busy machine
disturbs least; where that hides something, as with ParallelEnv's 64 processes, there is a ratio by the clock too.
Memory is the peak of a contender's process, and that less what it takes with a handful of lanes.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from statistics import median

from shoal.bench import rounds as interleaved
from shoal.bench.chart import line_chart
from shoal.bench.machine import machine
from shoal.bench.report import empty_table, make_console, write_document
from shoal.bench.train import Answer, Answers, Say, Worker, opened, take_turns
from shoal.bench.trainers import Contender, Work
from shoal.cluster.start import ray_address, start_local
from shoal.errors import missing_extra
from shoal.training.lab import Verb

SIZES = ((64, 64), (1_000, 32), (10_000, 8))  # lanes x steps per rollout
LARGE = (100_000, 2)
MINIBATCHES = 8
BARE = Work(8, 8, minibatches=1)
PATIENCE_S = 1800.0
TURN_S = 1.0  # what a contender's turn should take at least
OURS, REFERENCE = "shoal trainer", "vec"
MODES = (
    Contender(OURS, "shoal_loop", "torch"),
    Contender("columnar", "rllib_ppo:columnar", "ray"),
    Contender("packed_vec", "rllib_ppo:packed_vec", "ray"),
    Contender("vec, our connectors", "rllib_ppo:vec_fast", "ray"),
    Contender(REFERENCE, "rllib_ppo:vec", "ray"),
)
OTHERS = {
    "sb3 ppo": (
        Contender("sb3 on shoal", "sb3_agents:shoal", "stable_baselines3"),
        Contender("sb3 DummyVecEnv", "sb3_agents", "stable_baselines3"),
        Contender("sb3 on lanes that cost nothing", "sb3_agents:null", "stable_baselines3"),
    ),
    "torchrl collector": (
        Contender("torchrl on shoal", "torchrl_modules:shoal", "torchrl"),
        Contender("torchrl SerialEnv", "torchrl_modules:serial", "torchrl"),
        Contender("torchrl ParallelEnv", "torchrl_modules:parallel", "torchrl"),
    ),
}


@dataclass(frozen=True)
class Row(interleaved.Row):
    """One contender at one work. `ratio_to_shoal` is of the first contender's rate to this one's."""

    wall_ratio: float
    """The same by seconds of the day."""
    peak_mb: float
    own_mb: float
    """Peak memory less what the same trainer takes with a handful of lanes: libraries, Ray, compiled code."""
    sampling_s: float | None = None
    """CPU seconds of one iteration that went into sampling, and the rest; where that is told apart."""
    learning_s: float | None = None
    over_vec: float | None = None
    """How many times faster a whole iteration is than with `vec`; the same for sampling alone."""
    sampling_over_vec: float | None = None
    own_of_vec: float | None = None
    """`own_mb` as a share of that of `vec`."""


@cache
def bare_mb(contender: Contender) -> float:
    """Peak MB of a process that trains `contender` on next to nothing: what the libraries themselves take."""
    with closing(Worker(contender, BARE, threads=1)) as worker:
        worker.patience_s = PATIENCE_S
        return worker.ask(1)["peak_mb"]


def measure(work: Work, name: str, contenders: Sequence[Contender], rounds: int, say: Say) -> list[Row]:
    """Rows of all contenders, the first being the one to compare with."""
    with ExitStack() as stack:
        workers = opened(stack, (Worker(contender, work, threads=1) for contender in contenders))
        for worker in workers:
            worker.patience_s = PATIENCE_S
            if worker.ask(1)["cpu"] < 4 * TURN_S:  # compiles, allocates
                worker.iterations = max(1, round(TURN_S / worker.ask(1)["cpu"]))
        told = f"{name}, {work.num_envs:,} lanes: round"
        answers = take_turns(workers, rounds, lambda k: say(f"{told} {k + 1} of {rounds}"))
    rows = [row_of(name, worker, answers) for worker in workers]
    of_vec = rows[-1].own_mb
    return [replace(row, own_of_vec=row.own_mb / of_vec) if row.over_vec and of_vec else row for row in rows]


def row_of(name: str, worker: Worker, answers: Answers) -> Row:
    """Medians over the rounds of `answers` for one worker, and ratios taken within rounds."""
    mine, everyone = answers[worker.contender.name], list(answers.values())
    first, last = everyone[0], everyone[-1]
    rate, spread = interleaved.median_and_spread([answer["steps"] / answer["cpu"] for answer in mine])
    more: dict[str, float] = {}
    if "sampling_cpu" in mine[0]:
        more["sampling_s"] = median(answer["sampling_cpu"] for answer in mine) / worker.iterations
        more["learning_s"] = median(answer["cpu"] - answer["sampling_cpu"] for answer in mine) / worker.iterations
    if worker.contender in MODES and "sampling_cpu" in last[0]:
        more["over_vec"] = _ratio(last, mine, "cpu")
        if "sampling_cpu" in mine[0]:
            more["sampling_over_vec"] = _ratio(last, mine, "sampling_cpu")
    peak_mb = max(answer["peak_mb"] for answer in mine)
    return Row(
        "rllib", name, worker.work.num_envs, worker.contender.name, "cpu", rate, spread,
        _ratio(mine, first, "cpu"), True, _ratio(mine, first, "wall"), peak_mb,
        max(0.0, peak_mb - bare_mb(worker.contender)), **more,
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


def run(args: RllibArgs) -> int:
    """The command."""
    if importlib.util.find_spec("ray") is None:
        raise missing_extra("ray[rllib]", "ray", "`shoal bench rllib`")
    wanted = args.num_envs or [num_envs for num_envs, _ in SIZES]
    sizes = [size for size in (*SIZES, LARGE) if size[0] in wanted or (args.large and size == LARGE)]
    rows: list[Row] = []

    def add(measured: list[Row]) -> None:
        rows.extend(measured)
        print_rows(measured)
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
    console = make_console(170)
    headings = ("steps per s", "spread", "sampling s", "learning s", "peak MB", "own MB", "own of vec", "over vec",
                "sampling over vec")  # fmt: skip
    for (work, num_envs), group in groupby(rows, key=lambda row: (row.work, row.num_envs)):
        table = empty_table(work, num_envs, *headings, "first / it", "by the clock")
        for row in group:
            numbers = (row.sampling_s, row.learning_s, row.peak_mb, row.own_mb, row.own_of_vec, row.over_vec,
                       row.sampling_over_vec)  # fmt: skip
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
    write_document(path, {"rows": [asdict(row) for row in rows]})
    lines = {mode.name: [(row.num_envs, row.steps_per_s) for row in rows if row.name == mode.name] for mode in MODES}
    title = "PPO on CartPole: environment steps per CPU second, learning included"
    path.with_suffix(".svg").write_text(line_chart(lines, title, "lanes", "steps per CPU second"))


SUITE = Verb(RllibArgs, run)
