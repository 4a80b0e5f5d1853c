"""Suite "train": PPO on CartPole, learning included, by Shoal and by whatever peers are installed.

Every contender lives in a process of its own, warmed up, and they take turns: a slow moment of the machine hits all.
Each uses the number of threads that is best for it. `ratio_to_shoal` is the median over rounds of its speed divided by
Shoal's in the same round; CPU seconds, which a busy machine disturbs less, are given beside wall time.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from shoal.bench.trainers import CONTENDERS, Contender, Work

SIZES = ((64, 128), (1024, 32))  # lanes x steps per rollout
ROUND_SECONDS = 1.5
Say = Callable[[str], None]
Row = dict[str, Any]


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

    def ask(self, iterations: int, **more: int) -> dict[str, float]:
        """Train for so many iterations; returns steps, wall and CPU seconds, and the mean return."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"iterations": iterations, **more}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.contender.name} ended with exit code {self.process.wait()}")
        return json.loads(answer)

    def warm_up(self) -> float:
        """Compile and settle; afterwards `iterations` take about ROUND_SECONDS. Returns steps per second."""
        self.ask(1)
        began = self.ask(1)
        self.iterations = max(1, round(ROUND_SECONDS / began["wall"]))
        answer = self.ask(self.iterations)
        return answer["steps"] / answer["wall"]

    def close(self) -> None:
        """Let it end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def installed(only: Sequence[str] | None = None) -> list[Contender]:
    """The contenders that can run here, Shoal first."""
    present = [c for c in CONTENDERS if importlib.util.find_spec(c.package) is not None]
    return [c for c in present if only is None or c.name in only or c.name == "shoal"]


def measure(
    sizes: Sequence[tuple[int, int]] = SIZES, rounds: int = 5, only: Sequence[str] | None = None, say: Say = print
) -> list[Row]:
    """Rows of the suite: environment steps per second, learning included, for every size and contender."""
    rows = []
    for num_envs, num_steps in sizes:
        workers = []
        try:
            for contender in installed(only):
                worker = best_worker(contender, Work(num_envs, num_steps), say)
                if worker is not None:
                    workers.append(worker)
            answers = [[worker.ask(worker.iterations) for worker in workers] for _ in range(rounds)]
        finally:
            for worker in workers:
                worker.close()
        rows += [_row(worker, [answer[i] for answer in answers], answers) for i, worker in enumerate(workers)]
    return rows


def best_worker(contender: Contender, work: Work, say: Say) -> Worker | None:
    """The contender, warmed up, on the number of threads with which it is fastest; None, with a word, if it fails."""
    counts = sorted({1, os.cpu_count() or 1}) if contender.counts_threads else [os.cpu_count() or 1]
    best: tuple[float, Worker] | None = None
    for threads in counts:
        worker = Worker(contender, work, threads)
        try:
            speed = worker.warm_up()
        except RuntimeError as error:
            say(f"left out: {error}")
            continue
        if best is None or speed > best[0]:
            best, worker = (speed, worker), best[1] if best else None  # type: ignore[assignment]
        if worker is not None:
            worker.close()
    if best is not None:
        say(f"{contender.name}, {work.num_envs} lanes: {best[0]:,.0f} steps/s with {best[1].threads} thread(s)")
    return None if best is None else best[1]


def _row(worker: Worker, mine: list[dict[str, float]], answers: list[list[dict[str, float]]]) -> Row:
    work = worker.work
    speeds = [answer["steps"] / answer["wall"] for answer in mine]
    cpu_speeds = [answer["steps"] / answer["cpu"] for answer in mine]
    shoal = [everyone[0] for everyone in answers]
    row = {
        "suite": "train",
        "work": f"cartpole ppo {work.num_envs}x{work.num_steps}, {work.epochs} epochs of {work.minibatches} minibatches",
        "num_envs": work.num_envs,
        "name": worker.contender.name,
        "steps_per_s": median(speeds),
        "spread": (max(speeds) - min(speeds)) / median(speeds),
        "ratio_to_shoal": median(v * s["wall"] / s["steps"] for v, s in zip(speeds, shoal, strict=True)),
        "threads": worker.threads,
        "steps_per_cpu_s": median(cpu_speeds),
        "cpu_ratio_to_shoal": median(v * s["cpu"] / s["steps"] for v, s in zip(cpu_speeds, shoal, strict=True)),
    }
    shares = {key: median(answer[key] for answer in mine) for key in mine[0] if key.startswith("share_")}
    if shares:
        shares["share_rest"] = 1.0 - sum(shares.values())
    return {**row, **shares}


# ---------------------------------------------------------------------- time to solve

THRESHOLD = 475.0
GIVE_UP_S = 120.0
# each at the best settings found for it; the seed is set per run
BEST = {
    "shoal": Work(64, 32, epochs=4, minibatches=8, lr=2.5e-3, gamma=0.98, gae_lambda=0.8, entropy=0.0),
    "purejaxrl style": Work(64, 32, epochs=4, minibatches=8, lr=2.5e-3, gamma=0.98, gae_lambda=0.8, entropy=0.0),
    "sb3": Work(8, 32, epochs=20, minibatches=1, lr=1e-3, gamma=0.98, gae_lambda=0.8, entropy=0.0),
}


def measure_solving(seeds: int = 5, only: Sequence[str] | None = None, say: Say = print) -> list[Row]:
    """Rows: seconds of training, after compiling, to a mean return of 475; the median over seeds."""
    contenders = [c for c in installed(only) if c.name in BEST]
    workers = [w for c in contenders if (w := best_worker(c, BEST[c.name], say)) is not None]
    try:
        times = [[seconds_to_solve(worker, seed) for worker in workers] for seed in range(1, seeds + 1)]
    finally:
        for worker in workers:
            worker.close()
    fastest = median(each[0]["wall"] for each in times)
    rows = []
    for i, worker in enumerate(workers):
        walls = [each[i]["wall"] for each in times]
        rows.append(
            {
                "suite": "train",
                "work": f"cartpole ppo to a mean return of {THRESHOLD:.0f}",
                "num_envs": worker.work.num_envs,
                "name": worker.contender.name,
                "seconds": median(walls),
                "cpu_seconds": median(each[i]["cpu"] for each in times),
                "steps_per_s": median(each[i]["steps"] / each[i]["wall"] for each in times),
                "spread": (max(walls) - min(walls)) / median(walls),
                "ratio_to_shoal": fastest / median(walls),
                "solved": sum(each[i]["return"] >= THRESHOLD for each in times),
            }
        )
    return rows


def seconds_to_solve(worker: Worker, seed: int) -> dict[str, float]:
    """Train from `seed` until the mean return reaches the threshold; sums of steps, wall and CPU seconds."""
    total = {"steps": 0.0, "wall": 0.0, "cpu": 0.0, "return": 0.0}
    deadline, more = time.monotonic() + GIVE_UP_S, {"seed": seed}
    while total["return"] < THRESHOLD and time.monotonic() < deadline:
        answer, more = worker.ask(4, **more), {}
        for key in ("steps", "wall", "cpu"):
            total[key] += answer[key]
        total["return"] = answer["return"]
    return total
