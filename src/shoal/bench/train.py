"""Suite "train": PPO on CartPole, learning included, by Shoal and by whatever peers are installed.

Every contender lives in a process of its own, warmed up, and they take turns: a slow moment of the machine hits all.
Each uses the number of threads that is best for it. Rows are by both clocks, as in every suite; wall time is what the
suite is judged by, CPU seconds are what a busy machine disturbs less.
"""

from __future__ import annotations

import importlib.util
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import tyro

from shoal.bench.rounds import Result, Row
from shoal.bench.trainers import CONTENDERS, Contender, Work

SIZES = ((64, 128), (1024, 32))  # lanes x steps per rollout
ROUND_SECONDS = 1.5
GIVE_UP_S = 120.0
ENDING_S = 20.0
Say = Callable[[str], None]
Answer = dict[str, float]  # of a worker: steps, wall and CPU seconds, mean return
Shares = dict[str, float]


class Worker:
    """A contender at work in its own process."""

    def __init__(self, contender: Contender, work: Work, threads: int) -> None:
        self.contender, self.work, self.threads = contender, work, threads
        command = [sys.executable, "-m", "shoal.bench.trainers.worker", contender.module, json.dumps(asdict(work))]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self.iterations = 1
        self.patience_s = GIVE_UP_S

    def ask(self, iterations: int, **more: int) -> Answer:
        """Train for so many iterations; returns steps, wall and CPU seconds, and the mean return."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"iterations": iterations, **more}) + "\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], self.patience_s)[0]:
            self.process.kill()
            raise TimeoutError
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.contender.name} ended with exit code {self.process.wait()}")
        return json.loads(answer)

    def warm_up(self, rival_s: float) -> float:
        """Compile, then find how many iterations take about ROUND_SECONDS. Returns seconds per iteration.

        Threads that wait for each other on a busy machine can be a hundred times slower: `TimeoutError` once this is
        clearly slower than `rival_s` per iteration.
        """
        self.ask(1)
        self.patience_s = min(GIVE_UP_S, max(5.0, 3 * rival_s))
        seconds = self.ask(1)["wall"]
        self.patience_s = GIVE_UP_S
        self.iterations = max(1, round(ROUND_SECONDS / seconds))
        return seconds

    def close(self) -> None:
        """Let it end; what does not end is ended."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def installed(only: Sequence[str] | None = None) -> list[Contender]:
    """The contenders that can run here, Shoal first."""
    present = [c for c in CONTENDERS if importlib.util.find_spec(c.package) is not None]
    return [c for c in present if only is None or c.name in only or c.name == "shoal"]


def measure(
    sizes: Sequence[tuple[int, int]] = SIZES, rounds: int = 5, only: Sequence[str] | None = None, say: Say = print
) -> tuple[list[Row], list[Shares]]:
    """Environment steps per second, learning included, for every size and contender; and where Shoal's time went."""
    rows: list[Row] = []
    shares: list[Shares] = []
    for num_envs, num_steps in sizes:
        work = Work(num_envs, num_steps)
        workers: list[Worker] = []
        try:
            for contender in installed(only):
                worker = best_worker(contender, work, say)
                if worker is not None:
                    workers.append(worker)
            answers = [[worker.ask(worker.iterations) for worker in workers] for _ in range(rounds)]
        finally:
            for worker in workers:
                worker.close()
        name = f"cartpole ppo {num_envs}x{num_steps}, {work.epochs} epochs, {work.minibatches} minibatches"
        rows += rows_of(name, workers, answers)
        shares.append(shares_of(num_envs, [everyone[0] for everyone in answers]))
    return rows, shares


def rows_of(name: str, workers: list[Worker], answers: list[list[Answer]], suite: str = "train") -> list[Row]:
    """Rows by both clocks of `answers` [rounds][workers], in which Shoal is the first worker."""
    rows = []
    for i, worker in enumerate(workers):
        for clock in ("cpu", "wall"):
            rates = [everyone[i]["steps"] / everyone[i][clock] for everyone in answers]
            ours = [everyone[0]["steps"] / everyone[0][clock] for everyone in answers]
            quartiles = quantiles(rates, n=4) if len(rates) > 1 else [rates[0]] * 3
            spread = (quartiles[2] - quartiles[0]) / median(rates)
            ratio = median(a / b for a, b in zip(ours, rates, strict=True))
            row = Row(
                suite, name, worker.work.num_envs, worker.contender.name, clock, median(rates), spread, ratio,
                judged=clock == "wall",
            )  # fmt: skip
            rows.append(row)
    return rows


def shares_of(num_envs: int, answers: list[Answer]) -> Shares:
    """Median shares of Shoal's time: in the network's arithmetic, in the environment, and the rest."""
    network = median(answer["share_network"] for answer in answers)
    environment = median(answer["share_environment"] for answer in answers)
    return {"num_envs": num_envs, "network": network, "environment": environment, "rest": 1 - network - environment}


def best_worker(contender: Contender, work: Work, say: Say) -> Worker | None:
    """The contender, warmed up, on the number of threads with which it is fastest; None, with a word, if it fails."""
    counts = sorted({1, os.cpu_count() or 1}) if contender.counts_threads else [os.cpu_count() or 1]
    tried: list[tuple[float, Worker]] = []
    for threads in counts:
        worker = Worker(contender, work, threads)
        try:
            tried.append((worker.warm_up(min((seconds for seconds, _ in tried), default=GIVE_UP_S)), worker))
        except (RuntimeError, TimeoutError) as error:
            worker.close()
            if not tried:
                say(f"left out: {error or f'{contender.name} took more than {GIVE_UP_S:.0f} s'}")
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


def measure_solving(seeds: int = 5, only: Sequence[str] | None = None, say: Say = print) -> list[dict[str, Any]]:
    """Seconds of training, after compiling, until the last 100 episodes have a mean return of 475; medians."""
    contenders = [c for c in installed(only) if c.name in BEST]
    workers = [w for c in contenders if (w := best_worker(c, BEST[c.name], say)) is not None]
    try:
        runs = [[solve(worker, seed) for worker in workers] for seed in range(FIRST_SEED, FIRST_SEED + seeds)]
    finally:
        for worker in workers:
            worker.close()
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
    deadline, more = time.monotonic() + GIVE_UP_S, {"seed": seed}
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


def run(argv: list[str]) -> int:
    """The command."""
    from rich.console import Console

    from shoal.bench.report import print_result, write_result

    args = tyro.cli(TrainArgs, args=argv, prog="shoal bench train")
    only = args.only or None
    missing = [f"{c.name}: {c.package} is not installed" for c in CONTENDERS if c not in installed()]
    rows, shares = measure(rounds=args.rounds, only=only)
    result = Result(rows, missing, {})
    console = Console(width=None if Console().is_terminal else 120)
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
    if args.out is not None:
        write_result(result, args.out)
        document = json.loads(args.out.read_text())
        args.out.write_text(json.dumps({**document, "shares": shares, "solving": solving}, indent=1) + "\n")
    return 0
