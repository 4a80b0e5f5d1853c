"""One environment as bytes, and back: exactly, or not at all.

An environment that has `get_state` and `set_state` is asked; any other is pickled whole. Neither is trusted: the
first snapshot of a kind of environment is replayed on a spare one, and a copy that does not repeat the original step
by step is refused.
"""

from __future__ import annotations

import pickle

import cloudpickle
import gymnasium as gym
import numpy as np

from shoal.errors import StateError
from shoal.trees import Tree
from shoal.vector.batch import Info
from shoal.vector.lanes.making import EnvMaker

_WARM_UP_STEPS, _REPLAY_STEPS = 3, 20


class Snapshots:
    """Saves environments made by `make`; `load` brings one back."""

    def __init__(self, make: EnvMaker) -> None:
        self._make = make
        self._verified = False

    def save(self, env: gym.Env, lane: int) -> bytes:
        """The state of `env`; `StateError` if it cannot be had exactly."""
        if not self._verified:
            self._verify()
            self._verified = True
        try:
            return save(env)
        except Exception as error:
            raise StateError(f"get_state() cannot save lane {lane}: {_why(error)}. {_REMEDY}") from error

    def _verify(self) -> None:
        env = twin = self._make()
        try:
            twin = self._make()
            env.action_space.seed(0)
            _, info = env.reset(seed=0)
            for _ in range(_WARM_UP_STEPS):
                *_, info = _step_or_reset(env, _sample(env, info))
            twin = load(twin, save(env))
            for count in range(_REPLAY_STEPS):
                action = _sample(env, info)
                result = _step_or_reset(env, action)
                if not _equal(result, _step_or_reset(twin, action)):
                    raise StateError(f"a copy of {env} went another way {count + 1} steps later")
                info = result[-1]
            if not _equal(env.reset(), twin.reset()):
                raise StateError(f"a copy of {env} began its next episode differently")
        except Exception as error:
            raise StateError(f"get_state() cannot save these environments: {_why(error)}. {_REMEDY}") from error
        finally:
            env.close()
            twin.close()


_REMEDY = "Give the environment get_state() and set_state(state), or keep what it remembers in picklable attributes."


def save(env: gym.Env) -> bytes:
    """`env` and its wrappers as bytes."""
    core = env.unwrapped
    if not (hasattr(core, "get_state") and hasattr(core, "set_state")):
        return _dump(env)
    layers = [{k: v for k, v in vars(layer).items() if k != "env"} for layer in _wrappers(env)]
    # the base class's generator is not the author's to remember, so it is saved beside what they return
    return _dump((core.get_state(), core.np_random.bit_generator.state, layers))


def _dump(value: object) -> bytes:
    """Equal bytes for equal values: a first pickle also tells which equal parts happen to be one object, a pickle of
    what it gives back does not."""
    return cloudpickle.dumps(pickle.loads(cloudpickle.dumps(value)))


def load(env: gym.Env, data: bytes) -> gym.Env:
    """The environment saved in `data`: `env` itself, one of the same kind, set back, or a new one in its place."""
    saved = pickle.loads(data)
    if isinstance(saved, gym.Env):
        return saved
    state, generator, layers = saved
    core = env.unwrapped
    env.reset()  # set_state may count on what the first reset prepares
    core.set_state(state)  # type: ignore[attr-defined]
    core.np_random.bit_generator.state = generator
    for layer, attributes in zip(_wrappers(env), layers, strict=True):
        vars(layer).update(attributes)
    return env


def _wrappers(env: gym.Env) -> list[gym.Wrapper]:
    layers = []
    while isinstance(env, gym.Wrapper):
        layers.append(env)
        env = env.env
    return layers


def _step_or_reset(env: gym.Env, action: Tree) -> tuple:
    result = env.step(action)
    return (result, *env.reset()) if result[2] or result[3] else result


def _sample(env: gym.Env, info: Info) -> Tree:
    """A random action, an allowed one where the environment says which are."""
    space = env.action_space
    allowed = (
        env.get_wrapper_attr("action_masks")() if env.has_wrapper_attr("action_masks") else info.get("action_mask")
    )
    if allowed is None:
        return space.sample()
    mask = np.asarray(allowed, np.int8)
    if isinstance(space, gym.spaces.MultiDiscrete):
        return space.sample(mask=tuple(np.split(mask, np.cumsum(space.nvec)[:-1])))
    return space.sample(mask=mask)


def _equal(a: Tree, b: Tree) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray) and a.dtype.kind in "fc":
        return np.array_equal(a, b, equal_nan=True)
    return bool(np.array_equal(a, b))


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, StateError) else f"{type(error).__name__}: {error}"
