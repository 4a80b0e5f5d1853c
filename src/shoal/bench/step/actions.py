"""Random actions drawn beforehand, so that drawing them is not measured, and the loop that steps with them.

Only NumPy is needed: a peer's own interpreter may lack the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from shoal.bench.contender import Run

ROWS = 64


class Steppable(Protocol):
    """A batch of anybody's."""

    @property
    def step(self) -> Callable[[np.ndarray], object]: ...


def stepping(batch: Steppable, actions: list[np.ndarray]) -> Run:
    """A run that calls `batch.step` with one row of actions after the other."""
    step, rows = batch.step, len(actions)

    def run(count: int) -> int:
        for k in range(count):
            step(actions[k % rows])
        return count

    run.close = getattr(batch, "close", lambda: None)  # type: ignore[attr-defined]
    return run


def random_actions(space: Any, num_envs: int) -> list[np.ndarray]:
    """`ROWS` batches of actions [B, *action] of a single action space of anybody's."""
    rng = np.random.default_rng(0)
    rows = ROWS if num_envs <= 16384 else ROWS // 4
    if hasattr(space, "nvec"):
        return [(rng.random((num_envs, *space.nvec.shape)) * space.nvec).astype(space.dtype) for _ in range(rows)]
    if hasattr(space, "n"):
        return [rng.integers(0, int(space.n), num_envs, dtype=np.int64) for _ in range(rows)]
    low, high = np.maximum(space.low, -10), np.minimum(space.high, 10)
    shape = (num_envs, *space.shape)
    return [rng.uniform(low, high, shape).astype(space.dtype) for _ in range(rows)]
