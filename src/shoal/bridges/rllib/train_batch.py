"""Connectors on the learners: what the runners sent becomes PPO's train batch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.evaluation.postprocessing import Postprocessing

from shoal.bridges.rllib.connectors import Device, TrainColumns, to_tensors
from shoal.bridges.rllib.targets import (
    Rows,
    Trajectory,
    Values,
    episode_rows,
    join,
    lane_rows,
    read_packed,
    standardise,
)
from shoal.trees import Tree, index_tree, leaves

Experience = Sequence[SingleAgentEpisode] | Sequence[Trajectory]
VALUE_ROWS = 2**14  # rows of one value pass: its activations then fit into the cache, and cost no memory to speak of


class TrainBatch(ConnectorV2):
    """Base of the learner connectors: rows with targets -> tensors under PPO's names, in the order of the rows."""

    def __init__(self, gamma: float, lambda_: float, same_step: bool = False, keep_skipped: bool = False) -> None:
        super().__init__()
        self.gamma, self.lambda_, self.same_step, self.keep_skipped = gamma, lambda_, same_step, keep_skipped

    @abstractmethod
    def rows(self, episodes: Experience, values: Values) -> Rows:
        """All rows of `episodes`, with targets that follow from `values`."""

    def __call__(  # type: ignore[override]  # the rest of what RLlib passes is not needed
        self, *, rl_module: MultiRLModule, episodes: Experience, **kwargs: object
    ) -> dict[str, TrainColumns]:
        # with several learners the module comes wrapped for the exchange of gradients, which has no value function
        module = rl_module[DEFAULT_MODULE_ID].unwrapped()
        assert isinstance(module, DefaultPPOTorchRLModule)
        device = next(module.parameters()).device
        rows = self.rows(episodes, lambda obs: value_pass(module, obs, device))
        columns = {
            Columns.OBS: rows.obs,
            Columns.ACTIONS: rows.action,
            Columns.ACTION_LOGP: rows.log_prob,
            Columns.ACTION_DIST_INPUTS: rows.dist_inputs,
            Postprocessing.ADVANTAGES: standardise(rows.advantage, rows.skip),
            Postprocessing.VALUE_TARGETS: rows.target,
        }
        if rows.skip is not None:
            columns[Columns.LOSS_MASK] = ~rows.skip
        return {DEFAULT_MODULE_ID: to_tensors(columns, device)}


class LanesToBatch(TrainBatch):
    """`packed_vec` and `columnar`: packed episodes or trajectories."""

    def rows(self, episodes: Experience, values: Values) -> Rows:
        trajectories = (e if isinstance(e, Trajectory) else read_packed(e, self.same_step) for e in episodes)
        parts = [lane_rows(trajectory, values, self.gamma, self.lambda_) for trajectory in trajectories]
        return join(parts, self.keep_skipped)


class EpisodesToBatch(TrainBatch):
    """`vec`: RLlib's own episodes."""

    def rows(self, episodes: Experience, values: Values) -> Rows:
        return episode_rows(episodes, values, self.gamma, self.lambda_)  # type: ignore[arg-type]


@torch.no_grad()
def value_pass(module: DefaultPPOTorchRLModule, obs: Tree, device: Device) -> np.ndarray:
    """Values [R] of observations [R, ...]."""
    parts = []
    for start in range(0, len(leaves(obs)[0]), VALUE_ROWS):
        part = to_tensors(index_tree(obs, slice(start, start + VALUE_ROWS)), device)
        value: Any = module.compute_values({Columns.OBS: part})
        parts.append(value.float().cpu().numpy())
    return np.concatenate(parts) if len(parts) > 1 else parts[0]
