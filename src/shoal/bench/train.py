"""Suite "train": PPO on CartPole, learning included, by Shoal and by whatever peers are installed.

Every contender lives in a process of its own, warmed up, and they take turns: a slow moment of the machine hits all.
Each uses the number of threads that is best for it. Rows are by both clocks, as in every suite; wall time is what the
suite is judged by, CPU seconds are what a busy machine disturbs less.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from shoal.bench.contender import Unavailable
from shoal.bench.process import PATIENCE_S, ChildProcess
from shoal.bench.report import make_console, print_result, write_result
from shoal.bench.rounds import CLOCKS, Result, Row, Samples, rows_of
from shoal.bench.trainers import CONTENDERS, Contender, Work
from shoal.platform import num_cores
from shoal.training.lab import Verb

SIZES = ((64, 128), (1024, 32))  # lanes x steps per rollout
ROUND_SECONDS = 1.5
Say = Callable[[str], None]
Answer = dict[str, float]  # of a worker: steps, wall and CPU seconds, mean return
Answers = dict[str, list[Answer]]
Shares = dict[str, float]


class Worker(ChildProcess):
    """A contender at work in its own process."""

    def __init__(self, contender: Contender, work: Work, threads: int) -> None:
        super().__init__({"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)})
        self.contender, self.work, self.threads = contender, work, threads
        self.iterations = 1
        self._started = False

    def ask(self, iterations: int, **more: int) -> Answer:
        """Train for this many iterations; returns steps, wall and CPU seconds, and the mean return."""
        if not self._started:
            training = "shoal.bench.trainers.training:Training"
            self.start(training, module=self.contender.module, work=asdict(self.work))
            self._started = True
        return self.do("train", iterations=iterations, **more)

    def warm_up(self, rival_s: float) -> float:
        """Compile, then find how many iterations take about ROUND_SECONDS. Returns seconds per iteration.

        Threads that wait for each other on a busy machine can be a hundred times slower: `Unavailable` once this is
        clearly slower than `rival_s` per iteration.
        """
        self.ask(1)
        self.patience_s = min(PATIENCE_S, max(5.0, 3 * rival_s))
        seconds = self.ask(1)["wall"]
        self.patience_s = PATIENCE_S
        self.iterations = max(1, round(ROUND_SECONDS / seconds))
        return seconds


def installed(only: Sequence[str] | None = None, contenders: Sequence[Contender] = CONTENDERS) -> list[Contender]:
    """The contenders that can run here, Shoal first."""
    present = [c for c in contenders if importlib.util.find_spec(c.package) is not None]
    return [c for c in present if only is None or c.name in only or c.name == "shoal"]


def notes_on_absent(contenders: Sequence[Contender]) -> list[str]:
    """A line for each that cannot run here."""
    present = installed(None, contenders)
    return [f"{c.name}: {c.package} is not installed" for c in contenders if c not in present]


def measure(
    sizes: Sequence[tuple[int, int]] = SIZES, rounds: int = 5, only: Sequence[str] | None = None, say: Say = print
) -> tuple[list[Row], list[Shares]]:
    """Environment steps per second, learning included, for every size and contender; and where Shoal's time went."""
    rows: list[Row] = []
    shares: list[Shares] = []
    for num_envs, num_steps in sizes:
        work = Work(num_envs, num_steps)
        with ExitStack() as stack:
            workers = opened(stack, (best_worker(contender, work, say) for contender in installed(only)))
            answers = take_turns(workers, rounds)
        name = f"cartpole ppo {num_envs}x{num_steps}, {work.epochs} epochs, {work.minibatches} minibatches"
        rows += rows_of("train", name, num_envs, rates_of(answers), "shoal", "wall")
        shares.append(shares_of(num_envs, answers["shoal"]))
    return rows, shares


def opened(stack: ExitStack, workers: Iterable[Worker | None]) -> list[Worker]:
    """Those that there are, to be closed with the stack, even if making a later one fails."""
    return [stack.enter_context(closing(worker)) for worker in workers if worker is not None]


def take_turns(workers: Sequence[Worker], rounds: int, after_round: Callable[[int], None] = lambda k: None) -> Answers:
    """What every worker answered in every round, by the names of the contenders."""
    answers: Answers = {worker.contender.name: [] for worker in workers}
    for k in range(rounds):
        for worker in workers:
            answers[worker.contender.name].append(worker.ask(worker.iterations))
        after_round(k)
    return answers


def rates_of(answers: Answers) -> Samples:
    """Steps per second by both clocks."""
    return {
        name: [{clock: answer["steps"] / answer[clock] for clock in CLOCKS} for answer in given]
        for name, given in answers.items()
    }


def shares_of(num_envs: int, answers: list[Answer]) -> Shares:
    """Median shares of Shoal's time: in the network's arithmetic, in the environment, and the rest."""
    network = median(answer["share_network"] for answer in answers)
    environment = median(answer["share_environment"] for answer in answers)
    return {"num_envs": num_envs, "network": network, "environment": environment, "rest": 1 - network - environment}


def best_worker(contender: Contender, work: Work, say: Say) -> Worker | None:
    """The contender, warmed up, on the number of threads with which it is fastest; None, with a word, if it fails."""
    counts = sorted({1, num_cores()}) if contender.counts_threads else [num_cores()]
    tried: list[tuple[float, Worker]] = []
    for threads in counts:
        worker = Worker(contender, work, threads)
        try:
            tried.append((worker.warm_up(min((seconds for seconds, _ in tried), default=PATIENCE_S)), worker))
        except Unavailable as reason:
            worker.close()
            if not tried:
                say(f"left out: {contender.name}: {reason}")
    if not tried:
        return None
    (seconds, best), *others = sorted(tried, key=lambda trial: trial[0])
    for _, other in others:
        other.close()
    say(f"{contender.name}, {work.num_envs} lanes: {work.batch_size / seconds:,.0f} steps/s, {best.threads} thread(s)")
    return best


# ---------------------------------------------------------------------- time to solve

THRESHOLD = 475.0
# The best of the same grid for Shoal and the JAX script, chosen on seeds 1 to 5; for SB3, its zoo's settings
# without their schedules. Runs here use other seeds.
FIRST_SEED = 101
BEST = {
    "shoal": Work(64, 64, epochs=4, minibatches=8, lr=3e-3, gamma=0.99, gae_lambda=0.9, entropy=0.0),
    "purejaxrl style": Work(32, 64, epochs=4, minibatches=8, lr=2e-3, gamma=0.98, gae_lambda=0.9, entropy=0.0),
    "sb3": Work(8, 32, epochs=20, minibatches=1, lr=1e-3, gamma=0.98, gae_lambda=0.8, entropy=0.0),
}


def measure_solving(seeds: int = 5, only: Sequence[str] | None = None, say: Say = print) -> list[dict[str, object]]:
    """Seconds of training, after compiling, until the last 100 episodes have a mean return of 475; medians."""
    with ExitStack() as stack:
        workers = opened(stack, (best_worker(c, BEST[c.name], say) for c in installed(only) if c.name in BEST))
        runs = [[solve(worker, seed) for worker in workers] for seed in range(FIRST_SEED, FIRST_SEED + seeds)]
    return [
        {
            "work": f"cartpole ppo to a mean return of {THRESHOLD:.0f}",
            "name": worker.contender.name,
            "num_envs": worker.work.num_envs,
            "seconds": median(each[i]["wall"] for each in runs),
            "cpu_seconds": median(each[i]["cpu"] for each in runs),
            "steps": median(each[i]["steps"] for each in runs),
            "solved": sum(each[i]["return"] >= THRESHOLD for each in runs),
            "seeds": seeds,
        }
        for i, worker in enumerate(workers)
    ]


def solve(worker: Worker, seed: int) -> Answer:
    """Train from `seed` until the mean return reaches the threshold; sums of steps, wall and CPU seconds."""
    total = {"steps": 0.0, "wall": 0.0, "cpu": 0.0, "return": 0.0}
    deadline, more = time.monotonic() + PATIENCE_S, {"seed": seed}
    while total["return"] < THRESHOLD and time.monotonic() < deadline:
        answer, more = worker.ask(4, **more), {}
        for key in ("steps", "wall", "cpu"):
            total[key] += answer[key]
        total["return"] = answer["return"]
    return total


# ---------------------------------------------------------------------- the command


@dataclass(frozen=True)
class TrainArgs:
    """Measure PPO on CartPole, learning included: Shoal and every peer installed, interleaved in one run."""

    out: Path | None = None
    """Write the rows here as JSON."""
    rounds: int = 5
    """Interleaved rounds, of which the median is reported."""
    only: tuple[str, ...] = ()
    """Measure Shoal and these only, e.g. "sb3" "bare sgemm"."""
    seeds: int = 5
    """Seeds of the time to a mean return of 475; 0 leaves that out."""


def run(args: TrainArgs) -> int:
    """The command."""
    only = args.only or None
    rows, shares = measure(rounds=args.rounds, only=only)
    result = Result(rows, notes_on_absent(CONTENDERS), {})
    console = make_console()
    print_result(result, console)
    for share in shares:
        parts = ", ".join(f"{part} {100 * share[part]:.0f} %" for part in ("network", "environment", "rest"))
        console.print(f"Shoal's time at {share['num_envs']:,} lanes: {parts}", highlight=False)
    solving = measure_solving(args.seeds, only) if args.seeds else []
    for row in solving:
        console.print(
            f"{row['work']}: {row['name']} {row['seconds']:.2f} s ({row['cpu_seconds']:.2f} CPU-s), "
            f"{row['solved']} of {row['seeds']} seeds",
            highlight=False,
        )
    write_result(result, args.out, shares=shares, solving=solving)
    return 0


SUITE = Verb(TrainArgs, run)
