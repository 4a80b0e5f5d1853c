"""All seats of a lane in one pair of hands: what one controller for everybody sees, does and earns."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from shoal.errors import ConfigError
from shoal.options import Values
from shoal.seeding import Seeds
from shoal.vector.batch import Array, Batch, Info, State, Step
from shoal.vector.spaces import within


class JointBatch(Batch):
    """Lanes with seats as lanes without: observations and actions of all seats side by side, rewards averaged.

    In `final_info` are the `returns` [B, S] of the seats.
    """

    def __init__(self, lanes: Batch) -> None:
        """`lanes`: a batch whose lanes have seats."""
        if not lanes.num_seats:
            raise ConfigError("These lanes have no seats that could be controlled together. Train them as they are.")
        self.lanes = lanes
        how: Values = {"autoreset_mode": lanes.autoreset_mode, "copy": lanes.copy, "metadata": lanes.metadata}
        spaces = lanes.single_observation_space, lanes.single_action_space
        super().__init__(lanes.num_envs, *spaces, has_action_mask=lanes.has_action_mask, **how)
        self.state_is_data = lanes.state_is_data
        self._paid = np.zeros((lanes.num_envs, lanes.num_seats), np.float32)
        self._mask = lanes.empty_step().action_mask
        if isinstance(lanes.single_action_space, gym.spaces.MultiDiscrete) and self._mask is not None:
            self._choices = np.arange(self._mask.shape[-1]) < lanes.single_action_space.nvec[:, None]  # [S, A]

    @property
    def lane_state(self) -> Any:
        """The records of the lanes, [B]."""
        return self.lanes.lane_state  # type: ignore[attr-defined]

    def _reset_lanes(self, out: Step, seed: Seeds, mask: np.ndarray | None, options: dict[str, object]) -> Info:
        return self._told(self.lanes.reset_into(self._inner(out), seed=seed, options=options), out)

    def _step_lanes(self, action: Array, out: Step) -> Info:
        action = action.numpy() if hasattr(action, "numpy") else np.asarray(action)
        info = self.lanes.step_into(within(action, self.lanes.single_action_space), self._inner(out))
        out.reward[:] = self._paid.mean(1)
        return self._told(info, out)

    def _inner(self, out: Step) -> Step:
        return Step(out.obs, self._paid, out.terminated, out.truncated, out.final_obs, self._mask)

    def _told(self, info: Info, out: Step) -> Info:
        told = info
        if out.action_mask is not None and self._mask is not None:
            out.action_mask[:] = self._mask[:, self._choices]
            told = {**info, "action_mask": out.action_mask}
        if "episode" not in info:
            return told
        returns = info["episode"]["r"]
        told = {**told, "episode": {**info["episode"], "r": returns.mean(1)}}
        if "final_info" in info:
            told["final_info"] = {**info["final_info"], "returns": returns.copy()}
        return told

    def _get_state(self) -> State:
        mask = {} if self._mask is None else {"joint_mask": self._mask.copy()}
        return {**self.lanes.get_state(), **mask}

    def _set_state(self, state: State) -> None:
        self.lanes.set_state({name: array for name, array in state.items() if name != "joint_mask"})
        if self._mask is not None:
            self._mask[:] = state["joint_mask"]

    def close_extras(self, **kwargs: object) -> None:
        self.lanes.close()
