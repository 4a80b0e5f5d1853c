"""Connectors on the env runners that treat all lanes at once, instead of item by item."""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.connectors.connector_pipeline_v2 import ConnectorPipelineV2
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModule
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.spaces.space_utils import clip_action, unsquash_action

from shoal.bridges.rllib.categorical import draw
from shoal.trees import Tree, map_tree

Device = torch.device | str | None
TrainColumns = dict[str, Tree]
"""Under RLlib's names: tensors, or arrays, with one row per sample."""


def to_tensors(tree: Tree, device: Device) -> Tree:
    """Arrays as tensors on `device`."""

    def convert(leaf: np.ndarray | torch.Tensor) -> torch.Tensor:
        if isinstance(leaf, np.ndarray) and not leaf.flags.writeable:  # out of Ray's store
            leaf = leaf.copy()
        return torch.as_tensor(leaf, device=device)

    return map_tree(convert, tree)


class LaneObs(ConnectorV2):
    """The newest observations of all lanes as one batch [N, ...].

    `vec` has them from N environments. `packed_vec` has them as the states in the one environment's row, in
    `lane_space` each.
    """

    def __init__(self, device: Device, lane_space: gym.Space | None) -> None:
        self.device, self.lane_space = device, lane_space
        super().__init__()

    def recompute_output_observation_space(self, input_space: gym.Space, action_space: gym.Space) -> gym.Space:
        return input_space if self.lane_space is None else self.lane_space

    def __call__(  # type: ignore[override]  # the rest of what RLlib passes is not needed
        self, *, episodes: list[SingleAgentEpisode], obs: Sequence[Tree] | None = None, **kwargs: object
    ) -> TrainColumns:
        rows = [episode.get_observations(-1) for episode in episodes] if obs is None else obs
        states = _stack(rows) if self.lane_space is None else rows[0]["states"]
        return {Columns.OBS: to_tensors(states, self.device)}


class LaneActions(ConnectorV2):
    """Actions of all lanes, drawn, as arrays, and brought into their box for the environment.

    `packed` adds the leading axis of the one environment.
    """

    def __init__(self, lane_space: gym.Space, normalize: bool, clip: bool, packed: bool) -> None:
        super().__init__()
        self.lane_space, self.normalize, self.clip, self.packed = lane_space, normalize, clip, packed

    def __call__(
        self, *, batch: TrainColumns, rl_module: RLModule, explore: bool | None = None, **kwargs: object
    ) -> TrainColumns:
        arrays = drawn_actions(rl_module, batch[Columns.ACTION_DIST_INPUTS], bool(explore))
        arrays[Columns.ACTIONS_FOR_ENV] = for_env(arrays[Columns.ACTIONS], self.lane_space, self.normalize, self.clip)
        return {key: array[None] for key, array in arrays.items()} if self.packed else arrays


class UntimedPipeline(ConnectorPipelineV2):
    """The connectors of a pipeline without RLlib's clocks around each, which take longer than the connectors."""

    @classmethod
    def of(cls, pipeline: ConnectorPipelineV2) -> UntimedPipeline:
        spaces = pipeline.input_observation_space, pipeline.input_action_space
        return cls(*spaces, connectors=pipeline.connectors)

    def __call__(self, *, batch: TrainColumns | None = None, **kwargs: object) -> TrainColumns:
        batch = {} if batch is None else batch
        for connector in self.connectors:
            batch = connector(batch=batch, **kwargs)  # type: ignore[arg-type]
        return batch


def drawn_actions(module: RLModule, dist_inputs: torch.Tensor, explore: bool) -> dict[str, np.ndarray]:
    """What an episode keeps of a decision: the network's output [N, A], actions drawn from it [N, ...], and their
    log-probabilities [N]."""
    kind = module.get_exploration_action_dist_cls() if explore else module.get_inference_action_dist_cls()
    action, log_prob = draw(kind, dist_inputs, explore)
    drawn = {Columns.ACTIONS: action, Columns.ACTION_LOGP: log_prob, Columns.ACTION_DIST_INPUTS: dist_inputs}
    return {key: tensor.cpu().numpy() for key, tensor in drawn.items()}


def for_env(action: np.ndarray, space: gym.Space, normalize: bool, clip: bool) -> np.ndarray:
    """Actions [N, ...] as `NormalizeAndClipActions` would send them to lanes with the action space `space`."""
    if not isinstance(space, gym.spaces.Box):
        return action
    if normalize:
        return unsquash_action(action, space)
    return clip_action(action, space) if clip else action


def _stack(items: Sequence[Tree]) -> Tree:
    if isinstance(items[0], dict):
        return {key: _stack([item[key] for item in items]) for key in items[0]}
    return np.stack(items)
