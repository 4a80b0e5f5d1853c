"""Random actions drawn beforehand, so that drawing them is not measured."""

from __future__ import annotations

from typing import Any

import numpy as np

ROWS = 64


def random_actions(space: Any, num_envs: int) -> list[np.ndarray]:
    """`ROWS` batches of actions [B, *action] of a single action space (only NumPy is needed: peers bring their own
    Gymnasium)."""
    rng = np.random.default_rng(0)
    rows = ROWS if num_envs <= 16384 else ROWS // 4
    if hasattr(space, "nvec"):
        return [(rng.random((num_envs, *space.nvec.shape)) * space.nvec).astype(space.dtype) for _ in range(rows)]
    if hasattr(space, "n"):
        return [rng.integers(0, int(space.n), num_envs, dtype=np.int64) for _ in range(rows)]
    low, high = np.maximum(space.low, -10), np.minimum(space.high, 10)
    shape = (num_envs, *space.shape)
    return [rng.uniform(low, high, shape).astype(space.dtype) for _ in range(rows)]
