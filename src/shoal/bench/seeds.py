"""Suite "seeds": several seeds of CartPole as one experiment against as many commands in a shell loop.

Every command is a new process, as a user would start it, and all write their folders. Times are by the clock and of the
processors, of the command and all processes it started; code is compiled before the first one counts. What the training
of one run is spent on says how much seeds could share if they were learned as one batch: not the learning itself, since
each has weights of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from shoal.bench.report import make_console, titled_table, write_document
from shoal.errors import ConfigError
from shoal.training.lab import Verb
from shoal.training.metrics import PHASES, read_rows


@dataclass(frozen=True)
class SeedsArgs:
    """Measure what an experiment of several seeds takes, against a shell loop and against one run."""

    world: str = "cartpole"
    """What is trained, with its preset."""
    loop: int = 8
    """Seeds of the shell loop, and of the experiment beside it."""
    many: int = 16
    """Seeds of the larger experiment, which is held against one run."""
    total_steps: int | None = None
    """Steps of each run, in place of the preset's."""
    out: Path | None = None
    """Write the times here as JSON."""

    def __post_init__(self) -> None:
        if self.loop < 1 or self.many < 1:
            raise ConfigError("--loop and --many must be at least 1.")


@dataclass(frozen=True)
class Spent:
    """What some commands took, one after the other."""

    wall: float
    cpu: float


def spent_by(folder: str, *commands: list[str]) -> Spent:
    """Run `shoal` with these words; `ConfigError` if one fails."""
    wall, before = time.perf_counter(), os.times()
    for words in commands:
        ended = subprocess.run([sys.executable, "-m", "shoal", *words], cwd=folder, capture_output=True, text=True)
        if ended.returncode:
            raise ConfigError(f"`shoal {' '.join(words)}` failed: {ended.stderr.strip().splitlines()[-1]}")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Spent(time.perf_counter() - wall, cpu)


def phases(run: Path) -> dict[str, float]:
    """Seconds of a run by what they were spent on."""
    rows = read_rows(run / "metrics.jsonl")
    return {phase: sum(row.get(f"time/{phase}") or 0.0 for row in rows) for phase in PHASES}


def measure(args: SeedsArgs) -> tuple[dict[str, Spent], dict[str, float]]:
    """Times by what was done, and those of one run by what they were spent on."""
    steps = [] if args.total_steps is None else ["--total-steps", str(args.total_steps)]
    train = ["train", args.world, *steps]
    with tempfile.TemporaryDirectory() as folder:
        spent_by(folder, [*train, "--seed", "0"])
        times = {
            "1 run": spent_by(folder, [*train, "--seed", "0", "--run-name", "one"]),
            "1 seed as an experiment": spent_by(folder, [*train, "--seeds", "1"]),
            f"{args.loop} runs, one after the other": spent_by(
                folder, *([*train, "--seed", str(seed)] for seed in range(args.loop))
            ),
            f"{args.loop} seeds": spent_by(folder, [*train, "--seeds", str(args.loop)]),
            f"{args.many} seeds": spent_by(folder, [*train, "--seeds", str(args.many)]),
        }
        return times, phases(Path(folder) / "runs" / "one")


def run(args: SeedsArgs) -> int:
    """The command."""
    console = make_console()
    with console.status("training"):
        times, spent_on = measure(args)
    one = times["1 run"]
    table = titled_table(f"{args.world}, whole commands", ["s", "CPU-s", "of 1 run", "CPU of 1 run"])
    for name, spent in times.items():
        ratios = spent.wall / one.wall, spent.cpu / one.cpu
        table.add_row(name, f"{spent.wall:.1f}", f"{spent.cpu:.1f}", *(f"{ratio:.2f}×" for ratio in ratios))
    console.print(table)
    shown = ", ".join(f"{phase} {seconds:.2f} s" for phase, seconds in spent_on.items())
    console.print(f"Training of 1 run: {shown}.", highlight=False)
    write_document(args.out, {"times": {name: asdict(spent) for name, spent in times.items()}, "phases": spent_on})
    return 0


SUITE = Verb(SeedsArgs, run)
