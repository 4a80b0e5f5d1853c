"""Lanes and networks of the torch script: CartPole, ALE's and EnvPool's Atari games, gymnax's MinAtar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from torch import Tensor, nn

from shoal.bench.minatar import GAMES
from shoal.bench.trainers import Work

if TYPE_CHECKING:
    from jax import Array as Key

ROOT_2 = 2**0.5
Array = np.ndarray
Info = dict[str, object]
Stepped = tuple[Array, Array, Array, Array, Info]
"""Observations, rewards, terminated, truncated, info."""


class Lanes(Protocol):
    """What a script needs of a vector environment that begins new episodes in the same step."""

    def reset(self, *, seed: int) -> tuple[Array, Info]: ...
    def step(self, actions: Array) -> Stepped: ...


class Setting(NamedTuple):
    """What is trained."""

    envs: Lanes
    network: nn.Module
    """Observations [N, *shape] to logits [N, A] and values [N]."""
    shape: tuple[int, ...]


def layer(inputs: int, outputs: int, gain: float = ROOT_2) -> nn.Linear:
    """Orthogonal weights, no bias at first."""
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def convolution(inputs: int, outputs: int, side: int, stride: int = 1) -> nn.Conv2d:
    """Orthogonal weights, no bias at first."""
    layer = nn.Conv2d(inputs, outputs, side, stride)
    nn.init.orthogonal_(layer.weight, ROOT_2)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer


def network(inputs: int, outputs: int, gain: float) -> nn.Sequential:
    """2 x 64 tanh units."""
    return nn.Sequential(layer(inputs, 64), nn.Tanh(), layer(64, 64), nn.Tanh(), layer(64, outputs, gain))


class Separate(nn.Module):
    """An actor and a critic of 2 x 64 tanh units."""

    def __init__(self, inputs: int, actions: int) -> None:
        super().__init__()
        self.actor, self.critic = network(inputs, actions, 0.01), network(inputs, 1, 1.0)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        return self.actor(obs), self.critic(obs).flatten()


class Shared(nn.Module):
    """Convolutions, and both outputs on top of them."""

    def __init__(self, features: nn.Sequential, size: int, actions: int, scale: float, channels_last: bool) -> None:
        super().__init__()
        self.features, self.scale, self.channels_last = features, scale, channels_last
        self.actor, self.critic = layer(size, actions, 0.01), layer(size, 1, 1.0)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        pixels = obs.permute(0, 3, 1, 2) if self.channels_last else obs / self.scale
        hidden = self.features(pixels)
        return self.actor(hidden), self.critic(hidden).flatten()


def nature(actions: int) -> Shared:
    """Mnih et al. 2015, for four frames of 84 x 84."""
    parts = (
        *(convolution(4, 32, 8, 4), nn.ReLU(), convolution(32, 64, 4, 2), nn.ReLU(), convolution(64, 64, 3), nn.ReLU()),
        *(nn.Flatten(), layer(64 * 7 * 7, 512), nn.ReLU()),
    )
    return Shared(nn.Sequential(*parts), 512, actions, 255.0, False)


def board(channels: int, actions: int) -> Shared:
    """Young & Tian 2019: one convolution over 10 x 10 cells."""
    parts = (convolution(channels, 16, 3), nn.ReLU(), nn.Flatten(), layer(16 * 8 * 8, 128), nn.ReLU())
    return Shared(nn.Sequential(*parts), 128, actions, 1.0, True)


def setting(work: Work, variant: str) -> Setting:
    """CartPole, or `work.world` as `variant` has it: "ale", "envpool" or "gymnax"."""
    if variant == "gymnax":
        lanes = GymnaxLanes(f"{GAMES[work.world.removeprefix('minatar-')]}-MinAtar", work.num_envs)
        return Setting(lanes, board(lanes.shape[-1], lanes.num_actions), lanes.shape)
    if variant:
        envs: Any = EnvPool(work) if variant == "envpool" else _ale(work)
        return Setting(envs, nature(int(envs.single_action_space.n)), (4, 84, 84))
    cartpole: Any = gym.make_vec("CartPole-v1", work.num_envs, vectorization_mode="vector_entry_point")
    return Setting(cartpole, Separate(4, 2), (4,))


def _ale(work: Work) -> gym.vector.VectorEnv:
    import ale_py

    gym.register_envs(ale_py)
    same_step: Any = {"autoreset_mode": AutoresetMode.SAME_STEP}
    return gym.make_vec(work.world, work.num_envs, vectorization_mode="vector_entry_point", **same_step)


class EnvPool:
    """EnvPool's game, which is given its seed when it is made."""

    def __init__(self, work: Work) -> None:
        import envpool

        options: Any = {"env_type": "gymnasium", "num_envs": work.num_envs, "seed": work.seed, "reward_clip": True}
        self._pool = envpool.make(work.world.removeprefix("ALE/"), **options)
        self.single_action_space = self._pool.action_space

    def reset(self, *, seed: int) -> tuple[Array, Info]:
        return self._pool.reset()

    def step(self, actions: Array) -> Stepped:
        return self._pool.step(actions)


class GymnaxLanes:
    """A game of gymnax, `vmap`ped over lanes and compiled; it begins new episodes by itself."""

    def __init__(self, name: str, num_envs: int) -> None:
        import gymnax
        import jax

        self._jax = jax
        env, params = gymnax.make(name)
        self.shape = tuple(env.observation_space(params).shape)
        self.num_actions = int(env.action_space(params).n)
        self._num_envs = num_envs
        self._begin = jax.jit(jax.vmap(lambda key: env.reset(key, params)))
        self._go = jax.jit(jax.vmap(lambda key, state, action: env.step(key, state, action, params)))

    def reset(self, *, seed: int) -> tuple[Array, Info]:
        obs, self._state = self._begin(self._keys(self._jax.random.key(seed)))
        return np.asarray(obs), {}

    def step(self, actions: Array) -> Stepped:
        obs, self._state, reward, terminated, truncated, _ = self._go(self._keys(self._key), self._state, actions)
        return np.asarray(obs), np.asarray(reward), np.asarray(terminated), np.asarray(truncated), {}

    def _keys(self, key: Key) -> Key:
        self._key, drawn = self._jax.random.split(key)
        return self._jax.random.split(drawn, self._num_envs)
