"""Connectors on the env runners that treat all lanes at once, instead of item by item."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns
from ray.rllib.utils.spaces.space_utils import clip_action, unsquash_action

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
    """After `GetActions`: arrays of all lanes, and actions for the environment brought into their box.

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

    def __call__(self, *, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        arrays = {key: tensor.cpu().numpy() for key, tensor in batch.items()}
        arrays[Columns.ACTIONS_FOR_ENV] = for_env(arrays[Columns.ACTIONS], self.lane_space, self.normalize, self.clip)
        return {key: array[None] for key, array in arrays.items()} if self.packed else arrays


def for_env(action: np.ndarray, space: gym.Space, normalize: bool, clip: bool) -> np.ndarray:
    """Actions [N, ...] as `NormalizeAndClipActions` would send them to lanes with the action space `space`."""
    if normalize:
        return unsquash_action(action, space)
    return clip_action(action, space) if clip else action


def _stack(items: list[Any]) -> Tree:
    if isinstance(items[0], dict):
        return {key: _stack([item[key] for item in items]) for key in items[0]}
    return np.stack(items)
