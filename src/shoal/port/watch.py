"""Watching an environment for some episodes: which attributes change, and what each of them looks like."""

from __future__ import annotations

import collections
import copy
import enum
import random
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from shoal.port.joining import as_map, describe, join, layout_of_const, set_layout
from shoal.port.kept_places import note_listed
from shoal.port.layouts import SMALL, ArrL, ConstL, DictL, Layout, ListL, ObjL, OpaqueL, RngL, SeqL, same
from shoal.port.refusal import Cannot, PortError
from shoal.port.seen_twice import Pair, held_twice
from shoal.port.values import attributes_of, is_helper, is_number
from shoal.port.variants import VarL

EPISODES = 24
STEPS = 4000
BUDGET_S = 2.0
_IGNORED = {"np_random", "_np_random", "_np_random_seed", "spec", "metadata", "render_mode", "reward_range"}

SEED = "is the seed, which lanes do not keep: draw from self.np_random instead"


@dataclass
class Watched:
    """An environment, its time limit, and the layout of its attributes."""

    env: gym.Env
    limit: int | None
    layout: ObjL
    initial: dict[str, Any]
    infos: list[dict[str, Any]]
    held_twice: set[Pair]
    """Attributes that held one and the same thing."""
    listed: dict[str, str]
    """Attributes that always held an item of a list, and the list's attribute."""


def unwrap(env: gym.Env) -> tuple[gym.Env, int | None]:
    """The environment behind the wrappers of its spec, and its time limit; other wrappers are refused."""
    limit: int | None = None
    while isinstance(env, gym.Wrapper):
        if isinstance(env, TimeLimit):
            limit = env._max_episode_steps if limit is None else min(limit, env._max_episode_steps)
        elif not isinstance(env, OrderEnforcing | PassiveEnvChecker):
            raise PortError(
                f"{type(env).__name__} around {type(env.unwrapped).__name__} is a wrapper that is not compiled. "
                "Put what it does into the class itself, or keep compiled=False."
            )
        env = env.env
    return env, limit


def watch(env: gym.Env) -> Watched:
    """Run episodes and look at every attribute after each reset and step."""
    base, limit = unwrap(env)
    initial = {name: apart(value) for name, value in vars(base).items()}
    layout: ObjL | None = None
    infos: list[dict[str, Any]] = []
    twice: set[Pair] = set()
    listed: dict[str, str | None] = {}
    for info in _play(env):
        layout = _seen_object(layout, base, 0)
        twice |= held_twice(base)
        note_listed(base, listed)
        if len(infos) < 64:
            infos.append(info)
    assert layout is not None
    return Watched(base, limit, layout, initial, infos, twice, {a: x for a, x in listed.items() if x})


def actions_of(space: gym.Space, rng: np.random.Generator) -> Iterator[Any]:
    """Actions without end: random ones, ones that are held, and extremes."""
    space.seed(int(rng.integers(2**31)))
    while True:
        manner, count = int(rng.integers(3)), int(rng.integers(1, 30))
        held = space.sample()
        for _ in range(count):
            if manner == 0:
                yield space.sample()
            elif manner == 2 and isinstance(space, gym.spaces.Box) and rng.random() < 0.5:
                bound = space.low if rng.random() < 0.5 else space.high
                yield np.clip(bound, -1e6, 1e6).astype(space.dtype)
            else:
                yield held


def _play(env: gym.Env) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(0)
    actions = actions_of(env.action_space, rng)
    steps, deadline = 0, time.thread_time() + BUDGET_S
    for episode in range(EPISODES):
        try:
            _, info = env.reset(seed=episode)
        except Exception as error:
            raise PortError(
                f"{type(env.unwrapped).__name__}.reset(seed={episode}) raises {type(error).__name__}: {error}."
            ) from error
        yield info
        ended = False
        while not ended and steps < STEPS * (episode + 1) / EPISODES + 50:
            try:
                _, _, terminated, truncated, info = env.step(next(actions))
            except Exception as error:
                raise PortError(
                    f"{type(env.unwrapped).__name__}.step raises {type(error).__name__}: {error}."
                ) from error
            ended = bool(terminated or truncated)
            steps += 1
            yield info
        if time.thread_time() > deadline and episode >= 3:
            return


def apart(x: Any) -> Any:
    """A copy that later steps do not change, as far as it can be had."""
    try:
        return copy.deepcopy(x)
    except Exception:  # a window, a lock, a module
        return _copied(x)


def _copied(x: Any) -> Any:
    """A copy of plain data; anything else as it is."""
    if isinstance(x, np.ndarray | set | frozenset | collections.deque):
        return x.copy()
    if isinstance(x, dict):
        return {key: _copied(item) for key, item in x.items()} if type(x) is dict else copy.copy(x)
    if isinstance(x, list):
        return [_copied(item) for item in x]
    if isinstance(x, tuple):
        return type(x)(*map(_copied, x)) if hasattr(x, "_fields") else tuple(map(_copied, x))
    return x


def _holds_helpers(x: object) -> bool:
    """Whether objects that may change are among the items of a list, tuple or dict that stays the same."""
    items = x.values() if isinstance(x, dict) else x if isinstance(x, list | tuple) else ()
    return any(is_helper(item) or _holds_helpers(item) for item in items)


def _alike(a: Any, b: Any) -> bool:
    """Whether objects, and whatever they hold, are the same in type and value."""
    if is_helper(a):
        return type(a) is type(b) and _alike(attributes_of(a), attributes_of(b))
    if isinstance(a, list | tuple) and type(a) is type(b):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, dict) and type(a) is type(b):
        return list(a) == list(b) and all(_alike(a[key], b[key]) for key in a)
    return same(a, b)


def _seen_object(layout: ObjL | None, x: object, depth: int, path: str = "") -> ObjL:
    old = layout.attributes if layout is not None else {}
    found: dict[str, Layout] = {}
    for name, value in attributes_of(x).items():
        if isinstance(value, np.random.Generator | np.random.RandomState):
            own = "np_random" if path + name in ("np_random", "_np_random") else path + name
            found[name] = RngL(own, isinstance(value, np.random.RandomState))
            continue
        if name in _IGNORED:
            found[name] = OpaqueL(SEED) if name == "_np_random_seed" else ConstL(value)
            continue
        found[name] = _seen(old.get(name), value, depth, f"{path}{name}.")
    found = {**old, **found}
    return ObjL(found, layout.example if layout is not None else x)


def _seen(old: Layout | None, x: object, depth: int, path: str) -> Layout:
    """What is known of an attribute after one more look; `path` is where it is, with a dot behind."""
    if is_helper(x):
        if depth > 6:
            return OpaqueL("is nested too deeply or refers back to itself")
        if old is None or (isinstance(old, ObjL) and type(old.example) is type(x)):
            return _seen_object(old, x, depth + 1, path)
    if old is None:
        return ConstL(x, apart(x)) if _holds_helpers(x) else ConstL(_copied(x))
    if isinstance(old, ConstL) and old.at_first is not None:
        if old.value is x and _alike(old.at_first, x):
            return old
        old = layout_from(old.at_first)
    if isinstance(old, ConstL) and same(old.value, x):
        return old
    if isinstance(old, OpaqueL):
        return old
    before = layout_from(old.value) if isinstance(old, ConstL) else old
    now = layout_from(x)
    return joined_layouts(before, now)


def joined_layouts(before: Layout, now: Layout) -> Layout:
    """One layout for both; where there is none, a choice of them."""
    if isinstance(before, VarL):
        for option in before.options:
            try:
                if join(option, now) == option:
                    return before
            except Cannot:
                continue
        widened = _widened(before.options, now)
        return VarL(widened) if widened is not None else _more(before.options, now)
    kinds = {type(before).__name__, type(now).__name__}
    if kinds == {"ArrL", "SeqL"}:
        return _more((before,), now)
    try:
        return join(before, now)
    except Cannot:
        return _more((before,), now)


def _widened(options: tuple[Layout, ...], now: Layout) -> tuple[Layout, ...] | None:
    for k, option in enumerate(options):
        if type(option) is type(now):
            try:
                return (*options[:k], join(option, now), *options[k + 1 :])
            except Cannot:
                continue
    return None


def _more(options: tuple[Layout, ...], now: Layout) -> Layout:
    if all(isinstance(option, DictL) for option in (*options, now)):
        return OpaqueL(
            "is a dict whose keys change, and whose values are not of one kind (use an array with one place per key)"
        )
    if len(options) >= 3:
        return OpaqueL(f"changes its type or shape ({', '.join(map(describe, options))})")
    try:
        VarL((*options, now)).columns("x")
    except Cannot:
        return OpaqueL("changes its type and shape")
    return VarL((*options, now))


def layout_from(x: object) -> Layout:
    """The layout of a value that exists."""
    if x is None or isinstance(x, str | bytes | enum.Enum):
        return ConstL(x)
    if is_number(x):
        return layout_of_const(x)
    if isinstance(x, np.ndarray):
        if x.dtype.kind not in "biuf":
            return OpaqueL(f"is an array of {x.dtype}")
        return ArrL(x.shape, x.dtype, x.size > SMALL) if x.size else OpaqueL("is an empty array")
    if isinstance(x, tuple):
        return SeqL(tuple(layout_from(item) for item in x), False, type(x) if hasattr(x, "_fields") else None)
    if isinstance(x, collections.deque) and x.maxlen is not None:
        listed = join(ListL(None, 1), _list_layout(list(x)))
        return replace(listed, cap=x.maxlen, fixed=False, drops=True) if isinstance(listed, ListL) else listed
    if isinstance(x, list | collections.deque):
        return _list_layout(list(x))
    if isinstance(x, set | frozenset):
        return set_layout(x, layout_from)
    if isinstance(x, collections.defaultdict | collections.Counter):
        missing = x.default_factory if isinstance(x, collections.defaultdict) else collections.Counter
        return replace(as_map(DictL(tuple((key, layout_from(item)) for key, item in x.items()))), missing=missing)
    if isinstance(x, dict):
        return DictL(tuple((key, layout_from(item)) for key, item in x.items()))
    if isinstance(x, np.random.Generator | np.random.RandomState):
        return RngL("", isinstance(x, np.random.RandomState))
    if is_helper(x):
        return ObjL({name: layout_from(value) for name, value in attributes_of(x).items()}, x)
    if isinstance(x, types.FunctionType | types.MethodType | type | gym.Space):
        return ConstL(x)
    if isinstance(x, random.Random):
        return OpaqueL("is a random.Random, whose numbers are not NumPy's; use self.np_random")
    return OpaqueL(f"is a {type(x).__module__}.{type(x).__name__}")


def _list_layout(items: list[object]) -> Layout:
    layouts = [layout_from(item) for item in items]
    if any(isinstance(layout, ObjL | DictL) for layout in layouts) or len(items) > SMALL:
        item = layouts[0]
        try:
            for other in layouts[1:]:
                item = join(item, other)
        except Cannot as cannot:
            if len(items) <= SMALL and all(isinstance(layout, ObjL) for layout in layouts):  # of several classes
                return SeqL(tuple(layouts), True)
            return OpaqueL(f"is a list whose items differ: one {cannot.reason}")
        return ListL(item, len(items), fixed=True)
    return SeqL(tuple(layouts), True)
