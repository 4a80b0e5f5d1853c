"""Suite "memory": GRU and LSTM over whole sequences, forwards and back, against torch's own layers.

Ours zero the state where an episode ended, which torch's cannot; so they are measured without ends and with some.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shoal.bench.report import make_console, print_result, write_result
from shoal.bench.rounds import CLOCKS, Result, Row, Samples, rows_of
from shoal.errors import ConfigError
from shoal.platform import keep_freed_memory
from shoal.training.lab import Verb

NUM_STEPS, SIZE = 128, 128
CELLS = {"gru": ("GRUCell", "GRU"), "lstm": ("LSTMCell", "LSTM")}
ENDS = {
    "shoal": 0,
    "shoal, an end in every 16th step": NUM_STEPS // 16,
    "shoal, an end in every 2nd step": NUM_STEPS // 2,
}


def passes(memory: str, lanes: int) -> dict[str, Callable[[], None]]:
    """A pass forwards and back of each contender over the same features [T, lanes, SIZE]."""
    import torch
    from torch import nn

    from shoal.agents.unrolled import unroll

    cell, layer = (getattr(nn, name)(SIZE, SIZE) for name in CELLS[memory])
    features = torch.randn(NUM_STEPS, lanes, SIZE, requires_grad=True)
    state = torch.zeros(lanes, SIZE * (2 if memory == "lstm" else 1))

    def ours(ends: int) -> Callable[[], None]:
        done = torch.zeros(NUM_STEPS, lanes, dtype=torch.bool)
        if ends:
            steps = torch.arange(ends) * NUM_STEPS // ends
            done[steps, steps % lanes] = True
        return lambda: unroll(cell, features, state, done).sum().backward()

    return {
        **{name: ours(ends) for name, ends in ENDS.items()},
        f"nn.{CELLS[memory][1]}": lambda: _plain(layer, features),
    }


def _plain(layer: Callable, features: object) -> None:
    layer(features)[0].sum().backward()


def measure(memory: str, lanes: int, rounds: int) -> list[Row]:
    """Rows of one kind of memory, by both clocks."""
    contenders = passes(memory, lanes)
    samples: Samples = {name: [] for name in contenders}
    for k in range(rounds + 1):
        for name, run_once in contenders.items():
            began = time.process_time(), time.perf_counter()
            run_once()
            spent = dict(zip(CLOCKS, (time.process_time() - began[0], time.perf_counter() - began[1]), strict=True))
            if k:  # the first round warms up
                samples[name].append({clock: NUM_STEPS * lanes / spent[clock] for clock in CLOCKS})
    return rows_of("memory", f"{memory} of {SIZE}, {NUM_STEPS} steps", lanes, samples, "shoal", "cpu")


@dataclass(frozen=True)
class MemoryArgs:
    """Measure one pass of GRU and LSTM over a rollout, forwards and back, against torch's layers, one thread."""

    out: Path | None = None
    """Write the rows here as JSON."""
    lanes: tuple[int, ...] = (16, 64)
    """Sequences side by side."""
    rounds: int = 15
    """Interleaved rounds, of which the median is reported."""

    def __post_init__(self) -> None:
        if self.rounds < 1 or min(self.lanes, default=0) < 1:
            raise ConfigError("--rounds and --lanes must be at least 1.")


def run(args: MemoryArgs) -> int:
    """The command."""
    import torch

    torch.set_num_threads(1)
    keep_freed_memory()  # as every training does
    rows = [row for memory in CELLS for lanes in args.lanes for row in measure(memory, lanes, args.rounds)]
    result = Result(rows, [], {})
    print_result(result, make_console())
    write_result(result, args.out)
    return 0


SUITE = Verb(MemoryArgs, run)
