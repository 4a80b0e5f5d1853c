"""Connectors on the env runners that treat all lanes at once, instead of item by item."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.connectors.connector_pipeline_v2 import ConnectorPipelineV2
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns
from ray.rllib.utils.spaces.space_utils import clip_action, unsquash_action

from shoal.bridges.rllib.categorical import draw

Tree = Any


def to_tensors(tree: Tree, device: Any) -> Tree:
    """Arrays as tensors on `device`."""
    if isinstance(tree, dict):
        return {key: to_tensors(sub, device) for key, sub in tree.items()}
    if isinstance(tree, np.ndarray) and not tree.flags.writeable:  # out of Ray's store
        tree = tree.copy()
    return torch.as_tensor(tree, device=device)


class StackedObs(ConnectorV2):
    """`vec`: the newest observation of every environment as one batch [N, ...]."""

    def __init__(self, input_observation_space: Any = None, input_action_space: Any = None, *, device: Any = None):
        super().__init__(input_observation_space, input_action_space)
        self.device = device

    def __call__(self, *, episodes: list[Any], obs: Any = None, **kwargs: Any) -> dict[str, Any]:
        if obs is None:
            obs = [episode.get_observations(-1) for episode in episodes]
        return {Columns.OBS: to_tensors(_stack(obs), self.device)}


class PackedObs(ConnectorV2):
    """`packed_vec`: the states of the one environment's newest row, which are a batch [N, ...] already."""

    def __init__(
        self,
        input_observation_space: Any = None,
        input_action_space: Any = None,
        *,
        lane_space: gym.Space,
        device: Any = None,
    ):
        self.lane_space, self.device = lane_space, device
        super().__init__(input_observation_space, input_action_space)

    def recompute_output_observation_space(self, input_observation_space: Any, input_action_space: Any) -> gym.Space:
        return self.lane_space

    def __call__(self, *, episodes: list[Any], obs: Any = None, **kwargs: Any) -> dict[str, Any]:
        row = episodes[0].get_observations(-1) if obs is None else obs[0]
        return {Columns.OBS: to_tensors(row["states"], self.device)}


class LaneActions(ConnectorV2):
    """Actions of all lanes, drawn, as arrays, and brought into their box for the environment.

    `packed` adds the leading axis of the one environment.
    """

    def __init__(
        self,
        input_observation_space: Any = None,
        input_action_space: Any = None,
        *,
        lane_space: gym.Space,
        normalize: bool,
        clip: bool,
        packed: bool,
    ):
        super().__init__(input_observation_space, input_action_space)
        self.lane_space, self.normalize, self.clip, self.packed = lane_space, normalize, clip, packed

    def __call__(
        self, *, batch: dict[str, Any], rl_module: Any, explore: bool | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        arrays = drawn_actions(rl_module, batch[Columns.ACTION_DIST_INPUTS], bool(explore))
        arrays[Columns.ACTIONS_FOR_ENV] = for_env(arrays[Columns.ACTIONS], self.lane_space, self.normalize, self.clip)
        return {key: array[None] for key, array in arrays.items()} if self.packed else arrays


class UntimedPipeline(ConnectorPipelineV2):
    """The connectors of a pipeline without RLlib's clocks around each, which take longer than the connectors."""

    @classmethod
    def of(cls, pipeline: Any) -> UntimedPipeline:
        spaces = pipeline.input_observation_space, pipeline.input_action_space
        return cls(*spaces, connectors=pipeline.connectors)

    def __call__(self, *, batch: dict[str, Any] | None = None, **kwargs: Any) -> dict[str, Any]:
        batch = {} if batch is None else batch
        for connector in self.connectors:
            batch = connector(batch=batch, **kwargs)
        return batch


def drawn_actions(module: Any, dist_inputs: torch.Tensor, explore: bool) -> dict[str, np.ndarray]:
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


def _stack(items: list[Any]) -> Tree:
    if isinstance(items[0], dict):
        return {key: _stack([item[key] for item in items]) for key in items[0]}
    return np.stack(items)
