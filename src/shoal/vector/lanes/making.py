"""Build one environment from what a user hands over: a Gymnasium id, a class, or a factory."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from shoal.errors import ConfigError, LaneFault, unknown_name
from shoal.vector.lanes.faults import describe_exception
from shoal.vector.spaces import num_actions

Source = str | type[gym.Env] | Callable[..., gym.Env]


@dataclass(frozen=True)
class EnvMaker:
    """Makes fresh environments, all alike. Calling it runs the user's constructor."""

    source: Source
    kwargs: dict[str, Any] = field(default_factory=dict)
    spec: EnvSpec | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if isinstance(self.source, gym.Env):
            raise ConfigError(
                f"env is {self.source}, one environment that is already made; a batch needs one per lane. "
                "Pass its id, its class, or a function that makes it."
            )
        if not isinstance(self.source, str) and not callable(self.source):
            raise ConfigError(f"env={self.source!r} cannot make lanes. Pass a Gymnasium id, a class or a factory.")
        if isinstance(self.source, str):
            # the spec travels instead of the id, which a user's script may have registered in this process only
            spec = copy.deepcopy(find_spec(self.source))
            # our own loop keeps the order of calls and checks what lanes return, once and not per wrapper
            spec.order_enforce, spec.disable_env_checker = False, True
            object.__setattr__(self, "spec", spec)

    def __call__(self) -> gym.Env:
        if self.spec is not None:
            return gym.make(self.spec, **self.kwargs)
        assert callable(self.source)
        env = self.source(**self.kwargs)
        if not isinstance(env, gym.Env):
            raise ConfigError(f"{self.source!r} returned a {type(env).__name__}, not a gymnasium.Env.")
        return env


def find_spec(env_id: str) -> EnvSpec:
    """The registered spec of a Gymnasium id ("CartPole-v1", "my_module:MyEnv-v0"), or `UnknownName`."""
    module, _, name = env_id.rpartition(":")
    try:
        if module:
            __import__(module)
        spec = gym.spec(name)
    except ModuleNotFoundError as error:
        raise ConfigError(f"{env_id!r} names a module that cannot be imported: {error}.") from error
    except gym.error.Error as error:
        raise unknown_name("Gymnasium id", env_id, gym.registry, "gymnasium.pprint_registry()") from error
    if spec is None:
        raise unknown_name("Gymnasium id", env_id, gym.registry, "gymnasium.pprint_registry()")
    return spec


@dataclass(frozen=True)
class Traits:
    """What the lanes of a batch have in common."""

    observation_space: gym.Space
    action_space: gym.Space
    mask_source: str | None  # "method": env.action_masks(); "info": info["action_mask"]; None: no masks
    metadata: dict[str, Any]

    @property
    def mask_width(self) -> int | None:
        """A of [B, A] action masks, None if the lanes have none."""
        return None if self.mask_source is None else num_actions(self.action_space)


def probe(make: EnvMaker, lane: int = 0) -> Traits:
    """The traits of `make`'s environments, learnt from one that is made, reset and closed for the purpose.

    A lane of the batch is not used for it: a reset that the user did not ask for could change what the lane does.
    """
    env = make_lane(make, lane)
    try:
        limit = None if env.spec is None else env.spec.max_episode_steps
        metadata = {**env.metadata, **({} if limit is None else {"max_episode_steps": limit})}
        return Traits(env.observation_space, env.action_space, _mask_source(env, lane), metadata)
    finally:
        env.close()


def make_lane(make: EnvMaker, lane: int) -> gym.Env:
    """A fresh environment for `lane`; `LaneFault` with the original traceback if its constructor raises."""
    try:
        return make()
    except ConfigError:
        raise
    except Exception as error:
        raise LaneFault(describe_exception(lane, "its constructor", error), lane) from error


def check_alike(env: gym.Env, lane: int, traits: Traits) -> None:
    """`ConfigError` if the spaces of `lane` are not those of the batch."""
    for kind in ("observation_space", "action_space"):
        expected, actual = getattr(traits, kind), getattr(env, kind)
        if actual != expected:
            raise ConfigError(
                f"Lane {lane} has the {kind} {actual}, the others {expected}. "
                "All lanes of a batch need equal spaces: make the environment without options that change them."
            )


def _mask_source(env: gym.Env, lane: int) -> str | None:
    if env.has_wrapper_attr("action_masks"):
        return "method"
    space = env.action_space
    if not isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete) or (
        isinstance(space, gym.spaces.MultiDiscrete) and np.ndim(space.nvec) != 1
    ):
        return None
    try:
        _, info = env.reset()
    except Exception as error:
        raise LaneFault(describe_exception(lane, "reset()", error), lane) from error
    return "info" if isinstance(info, dict) and "action_mask" in info else None
