"""Stable-Baselines3: a batch as a `VecEnv`, for its agents and sb3-contrib's, unchanged.

from stable_baselines3 import PPO
from shoal.bridges.sb3 import vec_env
PPO("MlpPolicy", vec_env("cartpole", num_envs=64)).learn(100_000)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.bridges.batches import batch_for, check_autoreset
from shoal.errors import ConfigError, missing_extra
from shoal.trees import Tree, copy_tree, index_tree
from shoal.vector.batch import Batch

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices
except ImportError:
    raise missing_extra("stable-baselines3", "sb3", "The bridge to Stable-Baselines3") from None

Infos = list[dict[str, Any]]
ACTION_MASKS = "action_masks"
"""What sb3-contrib's agents ask a lane for."""


def vec_env(
    env: object,
    num_envs: int | None = None,
    *,
    seed: int | None = None,
    info_keywords: Sequence[str] = (),
    **options: Any,
) -> ShoalVecEnv:
    """A `VecEnv` of a world's name, a batch, or anything else `shoal.make` takes; `options` go to `shoal.make`."""
    lanes = ShoalVecEnv(batch_for(env, num_envs, AutoresetMode.SAME_STEP, options), info_keywords)
    if seed is not None:
        lanes.seed(seed)
    return lanes


class ShoalVecEnv(VecEnv):
    """A batch as Stable-Baselines3 sees it.

    An ended lane's info has `terminal_observation`, `TimeLimit.truncated` and `episode` {r, l, t}, as if each lane were
    wrapped in `Monitor`; the other infos are empty, since a dict per lane and step costs more than the lane itself.

    Args:
        batch: lanes with autoreset mode SAME_STEP.
        info_keywords: infos of the batch to hand on to every lane's dict, as `Monitor` calls them.
    """

    def __init__(self, batch: Batch, info_keywords: Sequence[str] = ()) -> None:
        check_autoreset(batch, AutoresetMode.SAME_STEP)
        check_spaces(batch)
        self.batch, self.info_keywords = batch, tuple(info_keywords)
        self._step = batch.empty_step()
        self._action: np.ndarray | None = None
        self._seed: int | None = None
        space = batch.single_action_space
        self._bounds = (space.low, space.high) if isinstance(space, gym.spaces.Box) else None
        super().__init__(batch.num_envs, batch.single_observation_space, space)

    # ------------------------------------------------------------------ episodes

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """The seed of the next `reset`; lane i draws from (seed, i), so neighbouring seeds share nothing."""
        self._seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
        return [self._seed] * self.num_envs

    def reset(self) -> Tree:
        options = self._options[0]
        if any(other != options for other in self._options):
            raise ConfigError("set_options() got different options per lane; a batch takes one dict for all of them.")
        info = self.batch.reset_into(self._step, seed=self._seed, options=options or None)
        self._seed = None
        self._reset_options()
        self.reset_infos = self._lane_infos(info, {}, np.zeros(self.num_envs, np.bool_))
        return copy_tree(self._step.obs)

    def step_async(self, actions: np.ndarray) -> None:
        # rescaling from [-1, 1] can round beyond the bounds, which the lanes would refuse
        self._action = actions if self._bounds is None else np.clip(actions, *self._bounds)

    def step_wait(self) -> tuple[Tree, np.ndarray, np.ndarray, Infos]:
        step = self._step
        info = self.batch.step_into(self._action, step)
        done = step.terminated | step.truncated
        infos = self._lane_infos(info, info.get("final_info", {}), done)
        for lane in np.flatnonzero(done):
            infos[lane]["episode"] = {key: info["episode"][key][lane].item() for key in "rlt"}
            infos[lane]["terminal_observation"] = copy_tree(index_tree(step.final_obs, lane))
            infos[lane]["TimeLimit.truncated"] = bool(step.truncated[lane] and not step.terminated[lane])
        return copy_tree(step.obs), step.reward.copy(), done, infos

    def _lane_infos(self, info: dict[str, Any], final_info: dict[str, Any], done: np.ndarray) -> Infos:
        """One dict per lane with the infos asked for; an ended lane has those of its last step, not of its first."""
        infos: Infos = [{} for _ in range(self.num_envs)]
        for key in self.info_keywords:
            if key not in info:
                raise ConfigError(f"The lanes have no info {key!r}; they have {sorted(info)}.")
            column = np.where(done, final_info[key], info[key]) if key in final_info else info[key]
            for lane, value in enumerate(column.tolist()):
                infos[lane][key] = value
        return infos

    def close(self) -> None:
        self.batch.close()

    # ------------------------------------------------------------------ what is asked of single lanes

    def action_masks(self) -> np.ndarray:
        """[B, A] bool, True = allowed, for the observations just returned."""
        assert self._step.action_mask is not None
        return self._step.action_mask.copy()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The batch's attribute, once per lane."""
        if attr_name == "render_mode":
            value = None
        elif attr_name == ACTION_MASKS and self.batch.has_action_mask:
            value = self.action_masks
        else:
            value = getattr(self.batch, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: object, indices: VecEnvIndices = None) -> None:
        """Set the batch's attribute; lanes share it, so all of them must be meant."""
        if len(list(self._get_indices(indices))) != self.num_envs:
            raise ConfigError(f"{attr_name} belongs to the batch, not to single lanes: set it without indices.")
        setattr(self.batch, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: object, indices: VecEnvIndices = None, **method_kwargs: object
    ) -> list[np.ndarray]:
        """Only `action_masks` is a lane's own method; call others on `batch`, for all lanes at once."""
        if method_name != ACTION_MASKS or not self.batch.has_action_mask:
            raise AttributeError(f"Lanes have no method {method_name!r} of their own. Call it on vec_env.batch.")
        masks = self.action_masks()
        return [masks[lane] for lane in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: VecEnvIndices = None) -> list[bool]:
        """True for `Monitor`, whose `episode` the infos have; nothing else wraps a lane."""
        return [wrapper_class is Monitor] * len(list(self._get_indices(indices)))


def check_spaces(batch: Batch) -> None:
    """`ConfigError` for spaces that Stable-Baselines3 does not take."""
    obs, action = batch.single_observation_space, batch.single_action_space
    parts = list(obs.spaces.values()) if isinstance(obs, gym.spaces.Dict) else [obs]
    kinds = (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)
    if not all(isinstance(part, kinds) for part in parts):
        raise ConfigError(f"Stable-Baselines3 cannot handle observations of {obs}: only flat spaces or a Dict of them.")
    if not isinstance(action, kinds) or np.any(getattr(action, "start", 0)):
        raise ConfigError(f"Stable-Baselines3 cannot handle actions of {action}: flat spaces, counted from 0.")
