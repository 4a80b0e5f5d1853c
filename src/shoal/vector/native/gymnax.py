"""Environments of gymnax, `vmap`ped over lanes: JAX computes the transition, Shoal keeps the lanes.

Their state is plain arrays, so they are saved and resumed exactly. gymnax does not tell a time limit from an end of the
task; here an episode that is as long as `max_steps_in_episode` is truncated.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from shoal.errors import ConfigError, missing_extra, unknown_name
from shoal.trees import Tree
from shoal.vector.batch import Array
from shoal.vector.batched import Batched


class GymnaxBatch(Batched):
    """`num_envs` lanes of the gymnax environment `name`; `params` replace fields of its parameters."""

    def __init__(self, name: str, num_envs: int, params: dict[str, object] | None = None, **options: Any) -> None:
        self._jax, made = _imported("jax"), _compiled(name, tuple(sorted((params or {}).items())))
        self._params, self._reset, self._step = made.params, made.reset, made.step
        super().__init__(num_envs, made.observation_space, made.action_space, **options)
        obs, state = self._reset(np.zeros((num_envs, 2), np.uint32))
        leaves, self._form = self._jax.tree.flatten((obs, state))
        self.state = {str(i): np.array(leaf) for i, leaf in enumerate(leaves)}

    def begin(self, lanes: Array) -> None:
        keys = np.zeros((self.num_envs, 2), np.uint32)
        keys[lanes] = self.rng.bits(lanes, 2) >> np.uint64(32)
        self._keep(self._reset(keys), lanes)

    def transition(self, action: Array) -> tuple[Array, Array, Array]:
        keys = (self.rng.bits(None, 2) >> np.uint64(32)).astype(np.uint32)
        _, state = self._jax.tree.unflatten(self._form, list(self.state.values()))
        obs, state, reward, done, _ = self._step(keys, state, action)
        self._keep((obs, state), slice(None))
        done, limit = np.asarray(done), getattr(self._params, "max_steps_in_episode", None)
        late = np.zeros_like(done) if limit is None else np.asarray(state.time) >= limit
        return np.asarray(reward), done & ~late, done & late

    def observe(self) -> Tree:
        obs, _ = self._jax.tree.unflatten(self._form, list(self.state.values()))
        return obs

    def _keep(self, values: Any, lanes: Array) -> None:
        for target, leaf in zip(self.state.values(), self._jax.tree.leaves(values), strict=True):
            target[lanes] = np.asarray(leaf)[lanes]


class _Compiled(NamedTuple):
    """An environment over lanes: keys [B, 2], states and actions [B, ...]."""

    params: Any
    observation_space: gym.Space
    action_space: gym.Space
    reset: Callable[..., Any]
    step: Callable[..., Any]


@cache  # JAX compiles a function once for as many batches as use it
def _compiled(name: str, changes: tuple[tuple[str, object], ...]) -> _Compiled:
    gymnax, jax = _imported("gymnax"), _imported("jax")
    if name not in gymnax.registered_envs:
        raise unknown_name("gymnax environment", name, gymnax.registered_envs, "`gymnax.registered_envs`")
    env, params = gymnax.make(name)
    try:
        params = params.replace(**dict(changes))
    except TypeError as error:
        raise ConfigError(f"The parameters of gymnax's {name} cannot be changed like this: {error}.") from error
    spaces = _gym_space(env.observation_space(params)), _gym_space(env.action_space(params))
    reset = jax.jit(jax.vmap(lambda key: env.reset_env(key, params)))
    step = jax.jit(jax.vmap(lambda key, state, action: env.step_env(key, state, action, params)))
    return _Compiled(params, *spaces, reset, step)


def _gym_space(space: Any) -> gym.Space:
    """The Gymnasium space like one of gymnax."""
    kind = type(space).__name__
    if kind == "Discrete":
        return gym.spaces.Discrete(int(space.n))
    if kind == "Box":
        dtype = np.dtype(space.dtype).type
        low, high = (np.broadcast_to(np.asarray(bound, dtype), space.shape) for bound in (space.low, space.high))
        return gym.spaces.Box(low, high, tuple(space.shape), dtype)
    if kind == "Dict":
        return gym.spaces.Dict({key: _gym_space(sub) for key, sub in space.spaces.items()})
    raise ConfigError(f"gymnax's space {space} has no counterpart in Gymnasium.")


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise missing_extra(name, "peers", "gymnax's environments") from None
