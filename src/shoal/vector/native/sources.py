"""Where native batches come from: a class or factory, a Gymnasium id with a vector entry point, EnvPool.

What is made is a `gymnasium.vector.VectorEnv` that somebody else wrote; `NativeBatch` translates it.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import gymnasium as gym
from gymnasium.vector import AutoresetMode, VectorEnv

from shoal.errors import ConfigError, missing_extra
from shoal.options import Values


class Source(Protocol):
    """Something that makes vector environments."""

    @property
    def name(self) -> str: ...

    @property
    def seeded_when_made(self) -> bool:
        """Whether seeds are given to `make` instead of to `reset`."""

    def make(self, num_envs: int, mode: AutoresetMode, seeds: list[int] | None) -> VectorEnv:
        """A vector environment, in `mode` if it can be had in it."""


@dataclass(frozen=True)
class Factory:
    """`make(num_envs, **kwargs) -> VectorEnv`: a class or a function."""

    create: Callable[..., VectorEnv]
    kwargs: Values = field(default_factory=dict)
    seeded_when_made = False

    @property
    def name(self) -> str:
        return getattr(self.create, "__name__", type(self.create).__name__)

    def make(self, num_envs: int, mode: AutoresetMode, seeds: list[int] | None) -> VectorEnv:
        return _in_mode(self.create, num_envs, mode, self.create, self.kwargs)


@dataclass(frozen=True)
class EntryPoint:
    """The vector entry point of a Gymnasium id."""

    name: str
    kwargs: Values = field(default_factory=dict)
    seeded_when_made = False

    def make(self, num_envs: int, mode: AutoresetMode, seeds: list[int] | None) -> VectorEnv:
        entry = gym.spec(self.name).vector_entry_point
        if entry is None:
            raise ConfigError(f"{self.name} has no vector entry point. Use --backend workers or serial.")
        create = gym.envs.registration.load_env_creator(entry) if isinstance(entry, str) else entry

        def make_vec(count: int, **kwargs: object) -> VectorEnv:
            return gym.make_vec(self.name, count, vectorization_mode="vector_entry_point", **kwargs)  # type: ignore[arg-type]

        return _in_mode(make_vec, num_envs, mode, create, self.kwargs)


@dataclass(frozen=True)
class EnvPool:
    """An environment of EnvPool."""

    name: str
    kwargs: Values = field(default_factory=dict)
    seeded_when_made = True

    def make(self, num_envs: int, mode: AutoresetMode, seeds: list[int] | None) -> VectorEnv:
        try:
            envpool: Any = importlib.import_module("envpool")
        except ImportError:
            raise missing_extra("envpool", "peers", "EnvPool's environments") from None
        if self.name not in envpool.list_all_envs():
            raise ConfigError(f"EnvPool has no {self.name}. `envpool.list_all_envs()` lists what it has.")
        seed = {} if seeds is None else {"seed": seeds}
        return envpool.make(self.name, env_type="gymnasium", num_envs=num_envs, **seed, **self.kwargs)


def _in_mode(
    make: Callable[..., VectorEnv], num_envs: int, mode: AutoresetMode, create: object, kwargs: Values
) -> VectorEnv:
    """In `mode` if `create` takes one and knows this one, otherwise as it is by default."""
    if not _takes(create, "autoreset_mode"):
        return make(num_envs, **kwargs)
    try:
        return make(num_envs, autoreset_mode=mode, **kwargs)
    except (ValueError, AssertionError):  # not every environment has every mode
        if mode is not AutoresetMode.DISABLED:
            raise
        return make(num_envs, autoreset_mode=AutoresetMode.NEXT_STEP, **kwargs)


def _takes(create: object, name: str) -> bool:
    try:
        return name in inspect.signature(create).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
