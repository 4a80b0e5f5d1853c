"""TorchRL: a batch as an `EnvBase` of batch size [N].

from shoal.bridges.torchrl import ShoalEnv
Collector(ShoalEnv("cartpole", 64), policy, frames_per_batch=8192)
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode

from shoal.bridges.batches import batch_for
from shoal.errors import ConfigError, missing_extra
from shoal.trees import Tree, map_tree
from shoal.vector.spaces import num_actions

try:
    from tensordict import TensorDict, TensorDictBase
    from torchrl.data import Binary, Bounded, Categorical, Composite, MultiCategorical, TensorSpec, Unbounded
    from torchrl.envs import EnvBase
except ImportError:
    raise missing_extra("torchrl", "torchrl", "The bridge to TorchRL") from None

Fields = dict[str, Tree]
"""Tensors, or dicts of them, by the keys of a tensordict."""
FLAGS = ("done", "terminated", "truncated")


class ShoalEnv(EnvBase):
    """N lanes. Keys: `observation` (or those of a Dict space), `action`, `reward`, `terminated`, `truncated`, `done`,
    and `action_mask` where the lanes forbid actions; `action_spec` then draws from those that are allowed now.

    TorchRL resets ended lanes itself, by a mask, so the lanes run without autoreset: ("next", "observation") is the
    true successor, also where an episode ended.

    Args:
        env: a world's name, a batch with autoreset mode DISABLED, or anything else `shoal.make` takes.
        num_envs: lanes, unless the batch is already made.
        device: where tensors go; None leaves them on the CPU, unmarked, which saves TorchRL a pass over them.
        options: what `shoal.make` takes.
    """

    def __init__(self, env: object, num_envs: int | None = None, *, device: str | None = None, **options: Any) -> None:
        batch = batch_for(env, num_envs, AutoresetMode.DISABLED, options)
        super().__init__(device=device, batch_size=torch.Size([batch.num_envs]))
        self.batch = batch
        self._pending_seed: int | None = None
        lanes, space = self.batch_size, batch.single_observation_space
        self._is_dict = isinstance(space, gym.spaces.Dict)
        observation = spec_of(space) if self._is_dict else Composite(observation=spec_of(space))
        if batch.has_action_mask:
            width = num_actions(batch.single_action_space)
            observation["action_mask"] = Binary(width, shape=(width,), dtype=torch.bool)
        flag = Categorical(2, shape=(1,), dtype=torch.bool)
        self.observation_spec = observation.expand(*lanes, *observation.shape).to(self.device)
        self.action_spec = _expanded(spec_of(batch.single_action_space), lanes).to(self.device)
        self.reward_spec = _expanded(Unbounded((1,), dtype=torch.float32), lanes).to(self.device)
        flags = {name: _expanded(flag, lanes) for name in FLAGS}
        self.done_spec = Composite(flags, shape=lanes).to(self.device)

    def _set_seed(self, seed: int | None) -> None:
        self._pending_seed = seed

    def _reset(self, tensordict: TensorDictBase | None, **kwargs: object) -> TensorDictBase:
        which = None if tensordict is None else tensordict.get("_reset", None)
        fields = self._reset_lanes(None if which is None else which.reshape(-1).cpu().numpy())
        return TensorDict(fields, batch_size=self.batch_size, device=self.device)

    def _step_and_maybe_reset(self, tensordict: TensorDictBase) -> tuple[TensorDictBase, TensorDictBase]:
        """A step, and what the step after it begins with. TorchRL's own way goes over all keys four times."""
        if self._post_step_mdp_hooks is not None or tensordict.get("next", None) is not None:
            return super()._step_and_maybe_reset(tensordict)
        kept = tensordict.exclude("reward", "_reset")  # what a policy left there stays
        fields, outcome, done = self._advance(tensordict)
        tensordict.set("next", TensorDict(fields | outcome, batch_size=self.batch_size, device=self.device))
        if done.any():
            fields = self._reset_lanes(done)
        flags = torch.zeros((len(FLAGS), *self.batch_size, 1), dtype=torch.bool)
        return tensordict, kept.update(fields | dict(zip(FLAGS, flags, strict=True)))

    def maybe_reset(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Reset the lanes that ended. The rows of the other lanes come back as they are, which TorchRL cannot know."""
        done = tensordict["done"]
        if done.any():
            tensordict.update(self._reset_lanes(done.view(-1).cpu().numpy()))
            for name in FLAGS:
                tensordict.set(name, torch.zeros_like(done))
        return tensordict

    def _reset_lanes(self, mask: np.ndarray | None) -> Fields:
        options = None if mask is None or mask.all() else {"reset_mask": mask}
        obs, info = self.batch.reset(seed=self._pending_seed, options=options)
        self._pending_seed = None
        return self._fields(obs, info)

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        fields, outcome, _ = self._advance(tensordict)
        return TensorDict(fields | outcome, batch_size=self.batch_size, device=self.device)

    def _advance(self, tensordict: TensorDictBase) -> tuple[Fields, Fields, np.ndarray]:
        """Step the lanes: what they see, what came of it, and which ended [N]."""
        if "_step" in tensordict.keys():  # noqa: SIM118 — a tensordict iterates over rows, not keys
            raise ConfigError("A batch steps all of its lanes. Use rollout(..., break_when_any_done=False) instead.")
        obs, reward, terminated, truncated, info = self.batch.step(tensordict["action"].cpu().numpy())
        done = terminated | truncated
        columns = {"reward": reward, "terminated": terminated, "truncated": truncated, "done": done}
        outcome = {name: torch.from_numpy(column[:, None]) for name, column in columns.items()}
        return self._fields(obs, info), outcome, done

    def _fields(self, obs: Tree, info: dict[str, np.ndarray]) -> Fields:
        """What a policy sees, as tensors on the CPU."""
        fields = map_tree(torch.from_numpy, dict(obs) if self._is_dict else {"observation": obs})
        if self.batch.has_action_mask:
            fields["action_mask"] = torch.from_numpy(info["action_mask"])
            self.action_spec.update_mask(fields["action_mask"].to(self.action_spec.device))
        return fields

    def close(self, *, raise_if_closed: bool = True) -> None:
        self.batch.close()
        super().close(raise_if_closed=raise_if_closed)


def spec_of(space: gym.Space) -> TensorSpec:
    """TorchRL's description of a Gymnasium space; `ConfigError` where it has none."""
    if isinstance(space, gym.spaces.Dict):
        return Composite({key: spec_of(sub) for key, sub in space.spaces.items()})
    if np.any(getattr(space, "start", 0)):
        raise ConfigError(f"TorchRL counts choices from 0, {space} does not.")
    if isinstance(space, gym.spaces.Discrete):
        return Categorical(int(space.n), shape=(), dtype=_torch_type(space))
    if isinstance(space, gym.spaces.MultiDiscrete) and space.nvec.ndim == 1:
        return MultiCategorical(space.nvec.tolist(), dtype=_torch_type(space))
    if isinstance(space, gym.spaces.MultiBinary):
        return Binary(shape=torch.Size(space.shape), dtype=_torch_type(space))
    if isinstance(space, gym.spaces.Box):
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
            return Unbounded(torch.Size(space.shape), dtype=_torch_type(space))
        low, high = torch.from_numpy(space.low.copy()), torch.from_numpy(space.high.copy())
        return Bounded(low, high, torch.Size(space.shape), dtype=_torch_type(space))
    raise ConfigError(
        f"TorchRL has no counterpart of {space}. Use Box, Discrete, MultiDiscrete, MultiBinary or a Dict."
    )


def _torch_type(space: gym.Space) -> torch.dtype:
    return torch.from_numpy(np.zeros(0, space.dtype)).dtype


def _expanded(spec: TensorSpec, lanes: torch.Size) -> TensorSpec:
    return spec.expand(*lanes, *spec.shape)
