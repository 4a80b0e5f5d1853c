"""One environment as bytes, and back: exactly, or not at all.

An environment that has `get_state` and `set_state` is asked; of one around MuJoCo or the Arcade Learning Environment
the attributes are saved, and what the simulator holds; the episode of one that can only be made anew (`EzPickle`, as
Box2D's) is played again; any other is pickled whole. None of these is trusted: the first snapshot of a kind of
environment is replayed on a spare one, and a copy that does not repeat the original step by step is refused.
"""

from __future__ import annotations

import enum
import pickle

import cloudpickle
import gymnasium as gym
import numpy as np
from gymnasium.utils import EzPickle

from shoal.errors import StateError
from shoal.trees import Tree
from shoal.vector.batch import Info
from shoal.vector.lanes.engines import has_engine, load_parts, save_parts
from shoal.vector.lanes.episode_log import EpisodeLog, play_again
from shoal.vector.lanes.faults import CRASHES
from shoal.vector.lanes.making import EnvMaker, close_quietly
from shoal.vector.lanes.own_random import OwnRandom, turn_of

_WARM_UP_STEPS, _REPLAY_STEPS = 3, 20


class Way(enum.Enum):
    """How the environments of a batch are saved."""

    OWN = "get_state and set_state of its author"
    PARTS = "attributes, and what a simulator holds"
    REPLAY = "the beginning of the episode and its actions"
    PICKLE = "the whole environment"


def way_for(env: gym.Env) -> Way:
    """The way that suits `env`; whether it is exact must be tried."""
    core = env.unwrapped
    if hasattr(core, "get_state") and hasattr(core, "set_state"):
        return Way.OWN
    if has_engine(env):
        return Way.PARTS
    # an EzPickle is made anew from its constructor's arguments: whatever happened since is not in it
    return Way.REPLAY if isinstance(core, EzPickle) else Way.PICKLE


class Snapshots:
    """Saves the environments of some lanes, made by `make`, and brings them back."""

    def __init__(self, make: EnvMaker) -> None:
        self._make = make
        self._verified = False
        self.logs: list[EpisodeLog] | None = None
        """The episodes of the lanes as far as they went, where they are saved so."""

    def watch(self, row: int, env: gym.Env) -> None:
        """An environment takes its place in `row`, before its first reset."""
        if way_for(env) is Way.REPLAY:
            self.logs = self.logs or []
            self.logs[row:] = [EpisodeLog(), *self.logs[row + 1 :]]

    def save(self, env: gym.Env, row: int, lane: int) -> bytes:
        """The state of `env` in `row`; `StateError` if it cannot be had exactly."""
        if not self._verified:
            self._verify()
            self._verified = True
        try:
            return save(env, None if self.logs is None else self.logs[row])
        except CRASHES as error:
            raise StateError(f"get_state() cannot save lane {lane}: {_why(error)}. {_REMEDY}") from error

    def load(self, env: gym.Env, data: bytes) -> tuple[gym.Env, EpisodeLog | None]:
        """The environment saved in `data`: `env`, set back, or another in its place; and its log, if it has one."""
        saved = pickle.loads(data)
        if isinstance(saved, gym.Env):
            return saved, None
        if isinstance(saved, dict) and Way.REPLAY.name in saved:
            fresh = self._make()
            return fresh, play_again(fresh, saved[Way.REPLAY.name])
        state, generator, layers = saved
        core = env.unwrapped
        env.reset()  # set_state may count on what the first reset prepares
        if isinstance(state, dict) and Way.PARTS.name in state:
            load_parts(env, state[Way.PARTS.name])
        else:
            core.set_state(state)  # type: ignore[attr-defined]
        core.np_random.bit_generator.state = generator
        for layer, attributes in zip(_wrappers(env), layers, strict=True):
            vars(layer).update(attributes)
        return env, None

    def _verify(self) -> None:
        env = twin = self._make()
        try:
            twin = self._make()
            player = _Player(env)
            env.action_space.seed(0)
            player.reset(seed=0)
            for _ in range(2):  # the second time in an episode that no seed began
                for _ in range(_WARM_UP_STEPS):
                    player.step(_sample(env, player.info))
                player.reset()
            for _ in range(_WARM_UP_STEPS):
                player.step(_sample(env, player.info))
            twin, _ = self.load(twin, save(env, player.log))
            copied = _Player(twin)
            copied.own = player.own.twin()
            for count in range(_REPLAY_STEPS):
                action = _sample(env, player.info)
                if not _equal(player.step(action), copied.step(action)):
                    raise StateError(f"a copy of {env} went another way {count + 1} steps later")
            if not _equal(player.reset(), copied.reset()):
                raise StateError(f"a copy of {env} began its next episode differently")
        except CRASHES as error:
            raise StateError(f"get_state() cannot save these environments: {_why(error)}. {_REMEDY}") from error
        finally:
            close_quietly(env)
            close_quietly(twin)


class _Player:
    """Plays one environment as lanes are played, with the log of its episode."""

    def __init__(self, env: gym.Env) -> None:
        self.env, self.log, self.info = env, EpisodeLog(), Info()
        self.own = OwnRandom(0)

    def reset(self, seed: int | None = None) -> tuple:
        self.log.begin(self.env, seed, None)
        with turn_of(self.own):
            obs, self.info = self.env.reset(seed=seed)
        return obs, self.info

    def step(self, action: Tree) -> tuple:
        """A step, and the reset that follows if the episode is over."""
        self.log.add(action)
        with turn_of(self.own):
            result = self.env.step(action)
        self.info = result[-1]
        return (result, *self.reset()) if result[2] or result[3] else result


_REMEDY = "Give the environment get_state() and set_state(state), or keep what it remembers in picklable attributes."


def save(env: gym.Env, log: EpisodeLog | None) -> bytes:
    """`env` and its wrappers as bytes; `log` is that of its episode."""
    core, way = env.unwrapped, way_for(env)
    if way is Way.PICKLE:
        return _dump(env)
    if way is Way.REPLAY:
        assert log is not None
        return _dump({way.name: log.saved()})
    layers = [{k: v for k, v in vars(layer).items() if k != "env"} for layer in _wrappers(env)]
    state = core.get_state() if way is Way.OWN else {way.name: save_parts(env)}  # type: ignore[attr-defined]
    # the base class's generator is not the author's to remember, so it is saved beside what they return
    return _dump((state, core.np_random.bit_generator.state, layers))


def _dump(value: object) -> bytes:
    """Equal bytes for equal values: a first pickle also tells which equal parts happen to be one object, a pickle of
    what it gives back does not."""
    return cloudpickle.dumps(pickle.loads(cloudpickle.dumps(value)))


def _wrappers(env: gym.Env) -> list[gym.Wrapper]:
    layers = []
    while isinstance(env, gym.Wrapper):
        layers.append(env)
        env = env.env
    return layers


def _sample(env: gym.Env, info: Info) -> Tree:
    """A random action, an allowed one where the environment says which are."""
    space = env.action_space
    allowed = (
        env.get_wrapper_attr("action_masks")()
        if env.has_wrapper_attr("action_masks")
        else (info or {}).get("action_mask")
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


def _why(error: BaseException) -> str:
    return str(error) if isinstance(error, StateError) else f"{type(error).__name__}: {error}"
