"""The door of Connect Four."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.world import BatchOptions, Command, World

if TYPE_CHECKING:
    from shoal.vector.batch import Batch


@dataclass(frozen=True)
class Connect4Options:
    """Connect Four for two."""


def make(num_envs: int, options: Connect4Options, batch: BatchOptions) -> Batch:
    """Lanes with two seats."""
    from shoal.vector.kernel import KernelBatch
    from shoal.worlds.connect4.lanes.kernel import Connect4

    return KernelBatch(Connect4(), num_envs, **batch.given())


WORLD = World(
    "connect4",
    "shoal/Connect4-v0",
    "Connect Four for two who play in turn, with bots",
    Connect4Options,
    make,
    lab="shoal.worlds.connect4.lab:LAB",
    commands={
        "best-moves": Command(
            "how often a player finds the best move in solved positions",
            "shoal.worlds.connect4.lab.best_moves:BEST_MOVES",
        )
    },
)
