"""RLlib's standard PPO network on lanes, and where they forbid actions."""

from __future__ import annotations

import gymnasium as gym
from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
from ray.rllib.core.columns import Columns
from ray.rllib.utils.torch_utils import FLOAT_MIN
from ray.rllib.utils.typing import TensorType
from torch import Tensor

from shoal.bridges.rllib.connectors import TrainColumns
from shoal.bridges.rllib.lanes import ACTION_MASK, OBSERVATIONS


class LanePPOModule(DefaultPPOTorchRLModule):
    """RLlib's network, which stays in the mode it is in: RLlib asks for one around every forward pass."""

    def train(self, mode: bool = True) -> LanePPOModule:
        return super().train(mode) if mode != self.training else self


class MaskedPPOModule(LanePPOModule):
    """Sees `observations`; logits of actions that `action_mask` forbids become as small as a number can be."""

    def __init__(self, *, observation_space: gym.spaces.Dict, **kwargs: object) -> None:
        super().__init__(observation_space=observation_space[OBSERVATIONS], **kwargs)
        self.observation_space = observation_space

    def _forward(self, batch: TrainColumns, **kwargs: object) -> TrainColumns:
        return _masked(super()._forward(_seen(batch), **kwargs), batch)

    def _forward_train(self, batch: TrainColumns, **kwargs: object) -> TrainColumns:
        return _masked(super()._forward_train(_seen(batch), **kwargs), batch)

    def compute_values(self, batch: TrainColumns, embeddings: Tensor | None = None) -> TensorType:
        return super().compute_values(_seen(batch), embeddings)


def _seen(batch: TrainColumns) -> TrainColumns:
    return {**batch, Columns.OBS: batch[Columns.OBS][OBSERVATIONS]}


def _masked(output: TrainColumns, batch: TrainColumns) -> TrainColumns:
    allowed = batch[Columns.OBS][ACTION_MASK]
    logits = output[Columns.ACTION_DIST_INPUTS]
    return {**output, Columns.ACTION_DIST_INPUTS: logits.masked_fill(allowed < 0.5, FLOAT_MIN)}
