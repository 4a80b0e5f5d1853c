"""Build one environment from what a user hands over: a Gymnasium id, a class, or a factory."""

from __future__ import annotations

import contextlib
import copy
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec, load_env_creator

from shoal.errors import ConfigError, LaneFault, ShoalError, nearest, unknown_name
from shoal.vector.lanes.faults import CRASHES, describe_exception
from shoal.vector.lanes.gym_ids import find_spec, import_module
from shoal.vector.lanes.own_random import OwnRandom, turn_of
from shoal.vector.spaces import num_actions

Source = str | type[gym.Env] | Callable[..., gym.Env]


@dataclass(frozen=True)
class EnvMaker:
    """Makes fresh environments, all alike. Calling it runs the user's constructor."""

    source: Source
    kwargs: dict[str, Any] = field(default_factory=dict)
    wrappers: tuple[str, ...] = ()
    """Put around each of them, the first one innermost: "module:Wrapper", or the name of one of Gymnasium's."""
    spec: EnvSpec | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if isinstance(self.source, gym.Env):
            raise ConfigError(
                f"env is {self.source}, one environment that is already made; a batch needs one per lane. "
                "Pass its id, its class, or a function that makes it."
            )
        _refuse_game(self.source)
        if not isinstance(self.source, str) and not callable(self.source):
            raise ConfigError(f"env={self.source!r} cannot make lanes. Pass a Gymnasium id, a class or a factory.")
        if isinstance(self.source, str):
            # the spec travels instead of the id, which a user's script may have registered in this process only
            spec = copy.deepcopy(find_spec(self.source))
            # our own loop keeps the order of calls and checks what lanes return, once and not per wrapper
            spec.order_enforce, spec.disable_env_checker = False, True
            if isinstance(spec.entry_point, str) and spec.entry_point.startswith("__main__:"):
                creator: Any = load_env_creator(spec.entry_point)
                spec.entry_point = creator  # itself, since a worker has another main module
            object.__setattr__(self, "spec", spec)

    @property
    def name(self) -> str:
        """What the environments are called in messages."""
        return self.source if isinstance(self.source, str) else getattr(self.source, "__qualname__", repr(self.source))

    def explain_arguments(self, error: BaseException) -> None:
        """`ConfigError` if `error` is what Python says about arguments that the constructor lacks or does not have."""
        missing = re.match(r".*__init__\(\) missing \d+ required [\w-]+ arguments?: (.*)", str(error))
        if isinstance(error, TypeError) and missing is not None:
            raise ConfigError(
                f"{self.name} needs {missing[1]}. Pass it as an argument of the environment: --env-kwargs "
                "'{\"NAME\": VALUE}', or env_kwargs={...} in Python."
            ) from error
        unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if not isinstance(error, TypeError) or unknown is None or unknown[1] not in self.kwargs:
            return
        creator: Any = self.source if self.spec is None else self.spec.entry_point
        creator = load_env_creator(creator) if isinstance(creator, str) else creator
        known = [name for name in inspect.signature(creator).parameters if name != "self"]
        meant = nearest(unknown[1], known)
        hint = f" Did you mean {meant!r}?" if meant else ""
        takes = f"It takes {', '.join(known)}." if known else "It takes none."
        raise ConfigError(f"{self.name} has no argument {unknown[1]!r}.{hint} {takes}") from error

    def __call__(self) -> gym.Env:
        if self.spec is not None:
            env = gym.make(self.spec, **self.kwargs)
        else:
            assert callable(self.source)
            env = self.source(**self.kwargs)
        for wrapper in self.wrappers:
            env = find_wrapper(wrapper)(env)
        _refuse_game(env)
        if not isinstance(env, gym.Env):
            raise ConfigError(f"{self.source!r} returned a {type(env).__name__}, not a gymnasium.Env.")
        return env


def _refuse_game(env: object) -> None:
    """`ConfigError` if `env` is one of PettingZoo's, which have several agents."""
    if not isinstance(env, type) and hasattr(env, "possible_agents"):
        raise ConfigError(
            f"{env} is a game of PettingZoo's, with several agents. Name the function that makes it, and its agents "
            "become seats: pettingzoo/PACKAGE.MODULE:env, e.g. pettingzoo/pettingzoo.classic.connect_four_v3:env."
        )


def find_wrapper(name: str) -> Callable[[gym.Env], gym.Env]:
    """A wrapper by its import path "module:Wrapper", or by its name in `gymnasium.wrappers`."""
    module, _, attribute = name.rpartition(":")
    place = import_module(module, name) if module else gym.wrappers
    wrapper = getattr(place, attribute, None)
    if not callable(wrapper):
        known = [each for each in dir(place) if not each.startswith("_")]
        raise unknown_name("wrapper", attribute, known, f"`dir({place.__name__})`", f"in {place.__name__}")
    return wrapper


@dataclass(frozen=True)
class Traits:
    """What the lanes of a batch have in common."""

    observation_space: gym.Space
    action_space: gym.Space
    mask_source: str | None  # "method": env.action_masks(); "info": info["action_mask"]; None: no masks
    metadata: dict[str, Any]
    render_mode: str | None = None

    @property
    def mask_width(self) -> int | None:
        """A of [B, A] action masks, None if the lanes have none."""
        return None if self.mask_source is None else num_actions(self.action_space)


def probe(make: EnvMaker, lane: int = 0) -> Traits:
    """The traits of `make`'s environments, learnt from one that is made, reset and closed for the purpose.

    A lane of the batch is not used for it: a reset that the user did not ask for could change what the lane does.
    """
    env = make_lane(make, lane)
    for kind in ("observation_space", "action_space"):
        if not isinstance(getattr(env, kind, None), gym.Space):
            raise ConfigError(
                f"{make.name} has no {kind}. Set it to a gymnasium.spaces.Space, in its class or __init__."
            )
    try:
        limit = None if env.spec is None else env.spec.max_episode_steps
        metadata = {**env.metadata, **({} if limit is None else {"max_episode_steps": limit})}
        return Traits(env.observation_space, env.action_space, _mask_source(env, lane), metadata, env.render_mode)
    finally:
        close_quietly(env)


def close_quietly(env: gym.Env) -> None:
    """Close `env`; errors in doing so are of no further interest."""
    with contextlib.suppress(Exception):
        env.close()


def make_lane(make: EnvMaker, lane: int) -> gym.Env:
    """A fresh environment for `lane`; `LaneFault` with the original traceback if its constructor raises."""
    try:
        return make()
    except ShoalError:
        raise
    except gym.error.DependencyNotInstalled as error:
        reason = str(error).strip().rstrip(".")
        raise ConfigError(f"{make.name} needs a package that is not installed: {reason}.") from error
    except CRASHES as error:
        make.explain_arguments(error)
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
        with turn_of(OwnRandom(0)):  # whatever it draws must not change what the process draws next
            _, info = env.reset()
    except CRASHES as error:
        raise LaneFault(describe_exception(lane, "reset()", error), lane) from error
    return "info" if isinstance(info, dict) and "action_mask" in info else None
