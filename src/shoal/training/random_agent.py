"""Chance as an agent, to look at a world before anything has been trained."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch

from shoal.agents.agent import Act
from shoal.vector.batch import Batch


class RandomAgent:
    """Acts by chance, evenly among the actions that the mask allows. It does not learn."""

    def __init__(self, batch: Batch, seed: int) -> None:
        self._num_envs = batch.num_envs
        self._space = copy.deepcopy(batch.single_action_space)
        self._space.seed(seed)

    def act_batch(self, obs: Any, deterministic: bool = False, action_mask: Any = None, state: Any = None) -> Act:
        """Actions [B, ...], whatever the observations."""
        masks = [None] * self._num_envs if action_mask is None else [self._mask(row) for row in np.asarray(action_mask)]
        action = torch.as_tensor(np.stack([self._space.sample(mask) for mask in masks]))
        unknown = torch.full((self._num_envs,), torch.nan)
        return Act(action, unknown, unknown, None, action)

    def _mask(self, row: np.ndarray) -> Any:
        """One lane's mask [A] as the space samples with it: MultiDiscrete wants a part for each of its choices."""
        row = row.astype(np.int8)
        nvec = getattr(self._space, "nvec", None)
        return row if nvec is None else tuple(np.split(row, np.cumsum(nvec.reshape(-1))[:-1]))
