"""The proof: the compiled lanes replayed against the original class, step by step, from the original's own state.

Every observation, reward, flag, info and attribute is compared, bit for bit. Where functions are reached whose last
digit depends on the machine (sine, exponentials, dot products), floats may differ by four units in the last place of
the largest number of the state, which any of them may have been added to.
"""

from __future__ import annotations

import math
import operator
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import KernelError
from shoal.port import mt, pcg
from shoal.port.lanes import PortedKernel
from shoal.port.layouts import DictL, Exported, Layout, ListL, MaybeL, ObjL, RowsL, SeqL, tidy
from shoal.port.refusal import Cannot, Outgrown, PortError
from shoal.port.watch import actions_of, unwrap
from shoal.port.writer import Source
from shoal.trees import index_tree, leaf_paths
from shoal.vector.kernel import KernelBatch

LANES = 16
STEPS = 400
BUDGET_S = 12.0
ULPS = 4
SLACK = {8: 1e-9, 4: 1e-5, 2: 1e-2}
"""How far a float of so many bytes may be off in all, relative to itself or to one, however large others are."""


@dataclass
class Proof:
    """What was compared, and the largest difference in units in the last place."""

    steps: int
    episodes: int
    ulps: float
    where: str
    """Which value differed most; empty if nothing did."""


def prove(
    make: Callable[[], gym.Env],
    kernel: type[PortedKernel],
    source: Source,
    tolerance: float = 0.0,
    steps: int | None = None,
    compiled: bool = True,
    first_seed: int = 1000,
) -> Proof:
    """Replay 16 lanes for so many steps; by default 400, or what can be done in 12 seconds.

    `PortError` for the first difference beyond what is allowed.
    """
    try:
        batch = KernelBatch(kernel, LANES, autoreset_mode=AutoresetMode.DISABLED, num_threads=1, compiled=compiled)
        batch.reset(seed=0)  # the whole once, before lanes are reset by themselves
    except KernelError as error:
        raise _stopped(f"The kernel that was made of {source.name} does not run", error) from error
    return _Replay(make, batch, source, tolerance, first_seed).run(steps)


def _stopped(what: str, error: KernelError) -> PortError:
    if re.search(r"assert \S*_len\S* <=? \d+", str(error)):
        return Outgrown(f"{what}: a list has more items than there is room for. {error} Use an array of fixed size.")
    if re.search(r"assert .*< (4\.611686018427388e\+18|9\.223372036854776e\+18|4611686018427387904)", str(error)):
        return PortError(f"{what}: a whole number grows beyond 64 bits. {error} Keep it small with %, or use a float.")
    return PortError(f"{what}: {error} Keep compiled=False.")


class _Replay:
    def __init__(
        self, make: Callable[[], gym.Env], batch: KernelBatch, source: Source, tolerance: float, first_seed: int
    ) -> None:
        self._source, self._tolerance, self._first_seed = source, tolerance, first_seed
        self._ulps = ULPS if source.inexact else 0
        self._envs = [make() for _ in range(LANES)]
        self._twins = [make(), make()]
        self._bases = [unwrap(env)[0] for env in self._envs]
        self._layout: ObjL = source.layout
        self._guards = guards_of(source.layout, "")
        self._batch = batch
        self._actions = [
            actions_of(env.action_space, np.random.default_rng(first_seed + k)) for k, env in enumerate(self._envs)
        ]
        self._lengths = np.zeros(LANES, np.int64)
        self._proof = Proof(0, 0, 0.0, "")
        self._before: list[Exported] = [{} for _ in range(LANES)]

    def run(self, steps: int | None) -> Proof:
        seeds = [self._first_seed + k for k in range(LANES)]
        with np.errstate(all="ignore"):
            self._same_twice(seeds[0])
            self._reset(np.ones(LANES, np.bool_), seeds, seeded=True)
            deadline = time.thread_time() + BUDGET_S if steps is None else math.inf
            for t in range(STEPS if steps is None else steps):
                ended = self._step(t)
                if ended.any():
                    seeds = [seed + 1000 for seed in seeds]
                    self._reset(ended, seeds, seeded=self._source.renewed or t % 2 == 0)
                if time.thread_time() > deadline and t >= 50:
                    break
        self._batch.close()
        return self._proof

    def _same_twice(self, seed: int) -> None:
        """An environment whose episodes are not repeated by their seed cannot be compared with anything."""
        rows = []
        for env in self._twins:
            actions = actions_of(env.action_space, np.random.default_rng(7))
            out = [env.reset(seed=seed)[0]]
            for _ in range(60):
                obs, reward, terminated, truncated, _ = env.step(next(actions))
                out += [obs, reward, terminated, truncated]
                if terminated or truncated:
                    break
            rows.append(out)
        if repr(rows[0]) != repr(rows[1]):
            raise PortError(
                f"{self._source.name} gives different episodes for the same seed and actions: nothing can be compared. "
                "Draw every random number from self.np_random, and keep no state outside the environment."
            )

    # ------------------------------------------------------------------ moving both

    def _reset(self, which: np.ndarray, seeds: list[int], seeded: bool) -> None:
        if self._proof.episodes:  # before its first reset an environment may have attributes of any type
            self._copy_state()
        lanes = np.flatnonzero(which).tolist()
        results = {}
        for lane in lanes:
            results[lane] = self._envs[lane].reset(seed=seeds[lane] if seeded else None)
        given: list[int | None] = [seeds[k] if seeded and which[k] else None for k in range(LANES)]
        try:
            obs, info = self._batch.reset(seed=given if seeded else None, options={"reset_mask": which})
        except KernelError as error:
            place = f"The compiled reset of {self._source.name} stops where the original does not"
            raise _stopped(place, error) from error
        for lane in lanes:
            own_obs, own_info = results[lane]
            self._lengths[lane] = 0
            self._compare(lane, "reset", obs, own_obs, info, own_info)
        self._proof.episodes += len(lanes)

    def _step(self, t: int) -> np.ndarray:
        self._copy_state()
        actions = [next(a) for a in self._actions]
        results = [env.step(action) for env, action in zip(self._envs, actions, strict=True)]
        try:
            obs, reward, terminated, truncated, info = self._batch.step(_stacked(actions, self._batch.action_space))
        except KernelError as error:
            place = f"The compiled step of {self._source.name} stops where the original does not"
            raise _stopped(place, error) from error
        for lane, (own_obs, own_reward, own_terminated, own_truncated, own_info) in enumerate(results):
            self._lengths[lane] += 1
            ended = bool(own_terminated), bool(own_truncated) and not bool(own_terminated)
            self._equal(lane, "terminated", np.asarray(terminated[lane]), np.asarray(ended[0]))
            self._equal(lane, "truncated", np.asarray(truncated[lane]), np.asarray(ended[1]))
            noise = self._noise(lane)
            self._equal(lane, "reward", np.asarray(reward[lane]), np.asarray(np.float32(own_reward)), noise)
            self._compare(lane, "step", obs, own_obs, info, own_info)
        self._proof.steps += LANES
        return np.array([bool(r[2] or r[3]) for r in results])

    def _copy_state(self) -> None:
        """Put the originals' own state into the lanes."""
        columns: dict[str, list[Any]] = {}
        self._before = [self._state_of(base) for base in self._bases]
        for own in self._before:
            for name, value in own.items():
                columns.setdefault(name, []).append(value)
        state = self._batch.lane_state
        for name, values in columns.items():
            if len(values) == LANES:
                state[name][...] = np.asarray(values).reshape(state[name].shape)
            else:  # None in some lanes
                for lane, own in enumerate(self._before):
                    if name in own:
                        state[name][lane] = own[name]
        if "elapsed_steps" in (self._batch.kernel.state.names or ()):
            state["elapsed_steps"][...] = self._lengths
        if "started" in (self._batch.kernel.state.names or ()):
            state["started"][...] = True

    def _state_of(self, base: gym.Env) -> Exported:
        found: Exported = {}
        for name, item in self._layout.attributes.items():
            if not hasattr(base, name):
                continue
            try:
                found |= ObjL({name: item}, base).export(base, "")
            except Cannot as cannot:
                raise PortError(f"{self._source.name}.{name} {cannot.reason}. {cannot.instead}") from None
        for stream, path in self._source.streams.items():
            generator = operator.attrgetter(path)(base)
            found |= pcg.words_of(generator) if stream == "pcg" else mt.words_of(generator)
        return found

    # ------------------------------------------------------------------ comparing

    def _compare(self, lane: int, moment: str, obs: Any, own_obs: Any, info: Any, own_info: dict[str, Any]) -> None:
        self._moment = moment
        noise = self._noise(lane)
        shown = dict(leaf_paths(index_tree(obs, lane)))
        original = dict(leaf_paths(_as_tree(own_obs, self._source.space)))
        for path, leaf in shown.items():
            own = np.asarray(original[path])
            own = own.astype(leaf.dtype).reshape(np.shape(leaf))
            self._equal(lane, f"observation{path or ''}", np.asarray(leaf), own, noise)
        final = info.get("final_info") if moment == "step" and "final_info" in info else None
        for key in self._source.infos:
            if key in own_info:
                values = final[key] if final is not None and key in final and self._ended(info, lane) else info.get(key)
                if values is not None:
                    leaf = np.asarray(values[lane])
                    own = _stored(np.asarray(own_info[key]), leaf.dtype)
                    self._equal(lane, f"info[{key!r}]", leaf, own, noise)
        state, own_state = self._batch.lane_state, self._state_of(self._bases[lane])
        for name, value in own_state.items():
            column = np.asarray(state[name][lane])
            theirs = _stored(np.asarray(value), column.dtype)
            ours = _within(self._guards.get(name, []), column, theirs, own_state)
            self._equal(lane, self._told(name), ours, theirs, noise)

    def _noise(self, lane: int) -> float:
        """Last digits of the largest number of a state before or after: whatever comes of it may be off by that."""
        if not self._ulps:
            return 0.0
        states = [self._before[lane], self._state_of(self._bases[lane])]
        columns = [np.asarray(value) for state in states for value in state.values()]
        floats = [np.abs(c[np.isfinite(c)]).max(initial=0.0).astype(c.dtype) for c in columns if c.dtype.kind == "f"]
        return self._ulps * float(max(map(np.spacing, floats), default=0.0))

    def _ended(self, info: Any, lane: int) -> bool:
        mask = info.get("_final_info")
        return bool(mask[lane]) if mask is not None else False

    def _told(self, column: str) -> str:
        return "the random generator" if column in pcg.FIELDS or column in mt.FIELDS else f"self.{column}"

    def _equal(self, lane: int, what: str, ours: np.ndarray, theirs: np.ndarray, noise: float = 0.0) -> None:
        if ours.dtype.kind != "f":
            different = ours != theirs
            if not different.any():
                return
            units = np.inf
        else:
            same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
            if same.all():
                return
            apart = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
            size = np.maximum(1.0, np.abs(theirs.astype(np.float64)))
            lost = np.minimum(noise, SLACK[ours.dtype.itemsize] * size)
            different = ~same & ~(apart <= np.maximum(self._tolerance * size, lost))
            spacing = np.maximum(np.spacing(np.maximum(np.abs(ours), np.abs(theirs))), lost / ULPS)
            distance = np.where(same, 0.0, apart / spacing)
            units = float(np.max(distance))
            if units > self._proof.ulps:
                self._proof.ulps, self._proof.where = units, what
            if units <= self._ulps or not different.any():
                return
        at = tuple(np.argwhere(np.atleast_1d(different))[0]) if np.ndim(different) else ()
        ours_one, theirs_one = (np.atleast_1d(a)[at] if at else a for a in (ours, theirs))
        spot = list(map(int, at)) if np.ndim(ours) else ""
        raise PortError(
            f"{self._source.name} compiled differs from the original: after step {int(self._lengths[lane])} of an "
            f"episode {what}{spot} is {ours_one!r} compiled and {theirs_one!r} in the original, {units:.3g} units in "
            f"the last place apart ({self._place(what)}).{self._suspects()} Pass tolerance= if such a difference is "
            "acceptable, or use compiled=False."
        )

    def _suspects(self) -> str:
        """Functions behind which digits are lost, and how to lose fewer."""
        narrow = [name for name in self._source.inexact if name.endswith("of float32")]
        if not narrow:
            return ""
        return f" NumPy rounds {', '.join(narrow)} otherwise: compute it in float64, x.astype(np.float64)."

    def _place(self, what: str) -> str:
        import inspect

        function = getattr(type(self._bases[0]), self._moment if hasattr(self, "_moment") else "step")
        return f"{inspect.getsourcefile(function)}:{function.__code__.co_firstlineno}"


def guards_of(layout: Layout, name: str) -> dict[str, list[str]]:
    """For every column those that say how much of it means something: lengths of lists, and whether it is None."""
    if isinstance(layout, RowsL):
        return guards_of(layout.rows, name)
    if isinstance(layout, ObjL):
        stem = f"{name}_" if name else ""
        parts = [guards_of(item, stem + tidy(a)) for a, item in layout.attributes.items()]
    elif isinstance(layout, SeqL | DictL):
        items = layout.items if isinstance(layout, SeqL) else [item for _, item in layout.items]
        parts = [guards_of(item, f"{name}_{k}") for k, item in enumerate(items)]
    elif isinstance(layout, MaybeL):
        parts = [{f"{name}_none": []}, {c: [f"{name}_none", *g] for c, g in guards_of(layout.inner, name).items()}]
    elif isinstance(layout, ListL) and layout.item is not None:
        own = [] if layout.fixed else [f"{name}_len"]
        inner = guards_of(layout.item, layout.base(name))
        parts = [{length: [] for length in own}, {c: [*own, *g] for c, g in inner.items()}]
    else:
        return {column: [] for column in layout.columns(name, (1,))}
    return {column: guards for part in parts for column, guards in part.items()}


def _within(guards: list[str], column: np.ndarray, theirs: np.ndarray, state: Exported) -> np.ndarray:
    """A column without what means nothing: what lies beyond a list's end or is None."""
    for key in guards:
        if key not in state:
            continue
        guard = np.asarray(state[key])
        if key.endswith("_none"):
            column = np.where(_as_deep(guard, column.ndim), theirs, column)
        else:
            inside = np.arange(column.shape[guard.ndim]) < guard[..., None]
            column = np.where(_as_deep(inside, column.ndim), column, theirs)
    return column


def _as_deep(mask: np.ndarray, ndim: int) -> np.ndarray:
    return mask.reshape(mask.shape + (1,) * (ndim - mask.ndim))


def _stored(own: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A value of the original as a column holds it; itself if the column cannot."""
    stored = own.astype(dtype)
    return stored if np.array_equal(stored, own, equal_nan=dtype.kind == own.dtype.kind == "f") else own


def _as_tree(obs: Any, space: gym.Space) -> Any:
    if isinstance(space, gym.spaces.Dict):
        return {key: _as_tree(obs[key], sub) for key, sub in space.items()}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(_as_tree(part, sub) for part, sub in zip(obs, space.spaces, strict=True))
    return np.asarray(obs)


def _stacked(actions: list[Any], space: gym.Space) -> Any:
    if isinstance(space, gym.spaces.Dict):
        return {key: _stacked([a[key] for a in actions], sub) for key, sub in space.items()}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(_stacked([a[k] for a in actions], sub) for k, sub in enumerate(space.spaces))
    return np.asarray(actions, space.dtype).reshape(space.shape)
