"""The door of spread."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from shoal.options import Count, Number
from shoal.world import BatchOptions, World

if TYPE_CHECKING:
    from shoal.vector.batch import Batch


@dataclass(frozen=True)
class SpreadOptions:
    """Three particles share out three landmarks."""

    local_ratio: Number = 0.5
    """Weight of what a particle pays for its own collisions; the rest is what all pay for landmarks far away."""
    max_steps: Count = 25
    """Steps after which an episode is truncated."""


def make(num_envs: int, options: SpreadOptions, batch: BatchOptions) -> Batch:
    """Lanes with three seats."""
    from shoal.vector.kernel import KernelBatch
    from shoal.worlds.spread.lanes.kernel import Spread

    return KernelBatch(Spread(**asdict(options)), num_envs, **batch.given())


WORLD = World(
    "spread",
    "shoal/Spread-v0",
    "three particles share out three landmarks",
    SpreadOptions,
    make,
    lab="shoal.worlds.spread.lab:LAB",
)
