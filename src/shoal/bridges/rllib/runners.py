"""Env runners of `packed_vec` and `columnar`. `vec` has RLlib's own, see `faults`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.metrics import RLMODULE_INFERENCE_TIMER

from shoal.bridges.rllib.connectors import UntimedPipeline, drawn_actions, for_env, to_tensors
from shoal.bridges.rllib.faults import PatientEnvRunner
from shoal.bridges.rllib.lanes import Lanes
from shoal.bridges.rllib.targets import Trajectory
from shoal.errors import ConfigError
from shoal.trees import Tree, assign_tree, index_tree
from shoal.vector.spaces import empty_batch


class LaneEnvRunner(PatientEnvRunner):
    """What both share: lanes that count their own episodes."""

    env: Any
    module: Any

    def make_module(self) -> None:
        super().make_module()
        if self.module is not None:
            self.module.eval()  # once: it is never trained here

    @property
    def lanes(self) -> Lanes:
        return self.env.unwrapped.lanes

    def sample(  # type: ignore[override]
        self, *, num_episodes: int | None = None, **kwargs: Any
    ) -> list[SingleAgentEpisode] | list[Trajectory]:
        if num_episodes is not None:
            raise ConfigError(
                "In this mode lanes are sampled in steps, not episodes. Evaluate with mode='vec', as ppo_config does."
            )
        return super().sample(**kwargs)

    def _count(self, num_steps: int) -> None:
        """Steps and episodes of the lanes, in RLlib's usual metrics."""
        episodes = self.lanes.pop_episodes()
        super()._increase_sampled_metrics(num_steps, len(episodes.returns))
        # older episodes than this would be pushed out of the metrics' window at once
        window = math.ceil(self.config.metrics_num_episodes_for_smoothing / (self.config.num_env_runners or 1))
        for ret, length, seconds in zip(*(column[-window:] for column in episodes), strict=True):
            self._log_episode_metrics(length, ret, seconds)


class PackedEnvRunner(LaneEnvRunner):
    """RLlib's loop over the one packed environment."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._env_to_module = UntimedPipeline.of(self._env_to_module)  # type: ignore[arg-type]
        self._module_to_env = UntimedPipeline.of(self._module_to_env)  # type: ignore[arg-type]

    def _sample(self, **kwargs: Any) -> list[SingleAgentEpisode]:
        samples = super()._sample(**kwargs)
        # RLlib keeps the chunks of unfinished episodes for its metrics, and this one never finishes
        self._ongoing_episodes_for_metrics.clear()
        return samples

    def _increase_sampled_metrics(self, num_steps: int, num_episodes_completed: int) -> None:
        self._count(num_steps * self.lanes.num_envs)


class ColumnarEnvRunner(LaneEnvRunner):
    """A loop of our own: one forward pass and one step per row, into arrays; no episodes, no connectors."""

    _obs: Tree = None  # [N, ...] what the next sample begins with
    _ended: np.ndarray | None = None  # [N] NEXT_STEP: lanes whose next step is a reset

    def _sample(  # type: ignore[override]
        self,
        *,
        num_timesteps: int | None = None,
        explore: bool,
        random_actions: bool = False,
        force_reset: bool = False,
        **kwargs: object,
    ) -> list[Trajectory]:
        assert num_timesteps is not None
        num_steps = max(1, num_timesteps // self.num_envs)
        while True:
            try:
                if force_reset or self._needs_initial_reset:
                    self._reset_lanes()
                trajectory = self._roll(num_steps, explore, random_actions)
                break
            except Exception:  # whatever a lane did, as RLlib's own runner has it
                if not self.config.restart_failed_sub_environments:
                    raise
                self.make_env()
        self._count(len(trajectory))
        return [trajectory]

    def _reset_lanes(self) -> None:
        self._obs = index_tree(self.lanes.reset(self._seed if self._needs_initial_reset else None), slice(None))
        self._ended = np.zeros(self.num_envs, np.bool_)
        self._needs_initial_reset = False

    @torch.no_grad()
    def _roll(self, num_steps: int, explore: bool, random_actions: bool) -> Trajectory:
        lanes, N = self.lanes, self.num_envs
        obs = empty_batch(lanes.observation_space, num_steps + 1, N)
        assign_tree(obs, 0, self._obs)
        reward = np.empty((num_steps, N), np.float32)
        terminated, truncated, skip = np.empty((3, num_steps, N), np.bool_)
        columns: dict[str, np.ndarray] = {}
        cuts = []
        for t in range(num_steps):
            action, drawn = self._act(index_tree(obs, t), explore, random_actions)
            for key, array in drawn.items():
                if t == 0:
                    columns[key] = np.empty((num_steps, *array.shape), array.dtype)
                columns[key][t] = array
            moved = lanes.step(action)
            assign_tree(obs, t + 1, moved.obs)
            reward[t], terminated[t], truncated[t] = moved.reward, moved.terminated, moved.truncated
            skip[t] = self._ended
            if moved.cut is None:
                self._ended = terminated[t] | truncated[t]
            elif len(moved.cut.lanes):
                cuts.append((t, moved.cut))
        self._obs = index_tree(obs, num_steps)
        names = (Columns.ACTIONS, Columns.ACTION_LOGP, Columns.ACTION_DIST_INPUTS)
        action, log_prob, dist_inputs = (columns.get(name, np.zeros((num_steps, N), np.float32)) for name in names)
        skipped = None if lanes.same_step else skip
        return Trajectory(obs, action, log_prob, dist_inputs, reward, terminated, truncated, skipped, cuts)

    def _act(self, obs: Tree, explore: bool, random_actions: bool) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Actions for the lanes, and what was drawn with them."""
        space, config = self.lanes.action_space, self.config
        if random_actions:
            action = self.env.action_space.sample()
            return action, {Columns.ACTIONS: action}
        with self.metrics.log_time(RLMODULE_INFERENCE_TIMER):
            batch = {Columns.OBS: to_tensors(obs, self._device)}
            output = self.module.forward_exploration(batch) if explore else self.module.forward_inference(batch)
        arrays = drawn_actions(self.module, output[Columns.ACTION_DIST_INPUTS], explore)
        return for_env(arrays[Columns.ACTIONS], space, config.normalize_actions, config.clip_actions), arrays
