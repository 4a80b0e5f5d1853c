"""A new kernel as ordinary Python for up to a second, before the compiler sees it.

Python knows the line that it is on and the checked build (`checks.py`) looks at every index, division and store, so
mistakes are told with the author's own line, the lane, the step and the numbers. Several lanes are played: with random
actions, with actions that are held for a while (that is how walls are run into), and with the extremes of each.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import sys
import time
import types
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from shoal.errors import KernelError, nearest
from shoal.jit.rng import Rng, seed_words
from shoal.seeding import lane_keys
from shoal.trees import Tree, leaf_paths, leaves, map_tree, subscripts
from shoal.vector.kernel.build import Build
from shoal.vector.kernel.compiler import author_functions, explain
from shoal.vector.kernel.declared import declared
from shoal.vector.kernel.forms import as_out, has_parts, pack_actions
from shoal.vector.kernel.kernel import SEAT_FUNCTIONS, Kernel
from shoal.vector.kernel.kinds import SIGNATURES
from shoal.vector.kernel.reach import Reach, where
from shoal.vector.kernel.source import SourceSet
from shoal.vector.spaces import empty_batch, num_actions, own_choices

BUDGET_S = 1.0  # of this thread's own time, so that a busy machine does not make it see less
LANES = 4
STEPS = 1000  # of each lane; after EPISODES of each, fewer
EPISODES = 3
SEATED_STEPS = 20  # of each lane in which bots could be seen to look at the wrong field
_PATTERNS = (77, 88)  # what rows hold before a look that asks which entries are written


class _OutOfTime(Exception):
    """A step takes so long as Python that there is nothing to learn from waiting for it."""


def dry_run(kernel: Kernel, lanes: np.ndarray) -> list[str]:
    """Play lanes (records [n], with their settings); `KernelError` for a mistake, notes for what looks like one."""
    return _Trial(kernel, lanes).play()


class _Trial:
    def __init__(self, kernel: Kernel, lanes: np.ndarray) -> None:
        self._kernel = kernel
        self._nan = ""  # where the first one was stored
        build = Build(compiled=False, checked=True, turn=self._turn, stored=self._stored)
        self._functions = SourceSet(build, lambda function: function, kernel)
        self._call = author_functions(kernel, self._functions)
        self._first = np.resize(lanes, LANES)  # as they are before the first reset
        self._lanes = self._first.copy().view(np.recarray)
        params = kernel.param_record()
        params.flags.writeable = False
        self._p = params.view(np.recarray)[0]
        self._words = seed_words(lane_keys(0, LANES))
        self._actions = [_Actions(kernel.lane_action_space, lane) for lane in range(LANES)]
        self._mask: list[np.ndarray | None] = [None] * LANES
        self._steps, self._episodes = [0] * LANES, [0] * LANES
        self._at = 0  # the lane that is being played
        self._written: list[np.ndarray] | None = None
        self._constant = True  # whether every look wrote the same entries
        self._notes: dict[str, str] = {}
        self._note_misspelt()
        self._note_printed()
        self._deadline = time.thread_time() + BUDGET_S  # looking a large kernel through is not playing it

    def play(self) -> list[str]:
        try:
            with np.errstate(all="ignore"):
                self._play()
        except _OutOfTime:
            pass
        except KernelError:
            raise
        except Exception as error:
            moment = f"lane {self._at}, step {self._steps[self._at]} of a trial"
            raise explain(error, self._kernel, self._functions.files, moment) from error
        self._note_unwritten()
        return list(self._notes.values())

    def _turn(self) -> None:
        """At every turn of a `while` loop: an endless one is the compiled code's to tell, which is faster at it."""
        if time.thread_time() > self._deadline + BUDGET_S:
            raise _OutOfTime

    def _stored(self, value: float) -> None:
        """A NaN is often seen long after it came about: remember where it was stored first."""
        if value != value and not self._nan:
            line = sys._getframe(2)  # of the author's, which called `fit`, which called this
            text = linecache.getline(line.f_code.co_filename, line.f_lineno).strip()
            self._nan = f" The first NaN was stored by `{text}` ({line.f_code.co_filename}:{line.f_lineno})."

    def _play(self) -> None:
        for lane in range(LANES):
            self._reset(lane)
        for t in range(STEPS):
            for lane in range(LANES):
                self._step(lane)
            late = time.thread_time() > self._deadline
            if late or (t >= 100 and min(self._episodes) >= EPISODES):
                return

    def _reset(self, lane: int) -> None:
        self._at = lane
        self._call["reset"](self._lanes[lane], self._p, Rng(self._words[lane]))
        self._look(lane, ended=False)

    def _step(self, lane: int) -> None:
        self._at = lane
        action = self._actions[lane].next(self._mask[lane])
        self._steps[lane] += 1
        if has_parts(self._kernel.lane_action_space):
            one = map_tree(lambda leaf: np.asarray(leaf)[None], action)
            action = pack_actions(one, self._kernel.lane_action_space, 1)[0]
        before, words = self._lanes[lane : lane + 1].copy(), self._words[lane].copy()
        result = self._call["step"](self._lanes[lane], _as_action(action), self._p, Rng(self._words[lane]))
        if self._kernel.bots and self._steps[lane] <= SEATED_STEPS:
            self._note_seat(lane, before, words, action)
        ended = self._check_result(result)
        self._look(lane, ended)
        if ended:
            self._note_survivors(lane)
            self._episodes[lane] += 1
            self._actions[lane].new_episode()
            self._reset(lane)

    def _check_result(self, result: Any) -> bool:
        step = self._kernel.function("step")
        assert step is not None
        if not (isinstance(result, tuple) and len(result) == 3 and all(np.ndim(part) == 0 for part in result)):
            raise KernelError(
                f"{where(step)} returned {result!r}. It must return three numbers: reward, terminated, truncated."
            )
        reward, *flags = result
        wrong = isinstance(reward, bool | np.bool_) or any(not isinstance(flag, bool | np.bool_) for flag in flags)
        if wrong:
            raise KernelError(
                f"{where(step)} returned {result!r}. "
                "The order is reward, terminated, truncated: a number and two bools."
            )
        if not np.isfinite(reward):
            moment = f"lane {self._at}, step {self._steps[self._at]} of a trial"
            what = "NaN" if np.isnan(reward) else "infinite"
            cause = self._nan if np.isnan(reward) else ""
            raise KernelError(f"{where(step)} returned a reward that is {what}, in {moment}.{cause}")
        return bool(flags[0] or flags[1])

    # ------------------------------------------------------------------ looking

    def _look(self, lane: int, ended: bool) -> None:
        """What `observe`, `mask` and `inform` write, of a state in which the episode goes on or has ended."""
        kernel, s = self._kernel, self._lanes[lane]
        before = self._lanes[lane : lane + 1].copy()
        out = empty_batch(kernel.lane_observation_space)
        self._observe(s, out)
        self._check_observation(out)
        if kernel.info is not None:
            self._call["inform"](s, self._p, np.zeros(1, kernel.info).view(np.recarray)[0])
        if "mask" in self._call and not ended:
            rows = (kernel.seats,) if kernel.seats else ()
            mask = np.zeros((*rows, num_actions(kernel.seat_action_space)), np.bool_)
            self._call["mask"](s, self._p, mask)
            if kernel.seats:
                assert isinstance(kernel.lane_action_space, gym.spaces.MultiDiscrete)
                mask[self._ignored(s), 0] = True
                mask = own_choices(mask, kernel.lane_action_space)
            self._mask[lane] = mask
            self._check_mask(mask)
        if kernel.seats:
            self._check_pay(s)
        self._check_unchanged(lane, before)
        if self._constant and self._steps[lane] % 5 == 0:
            self._note_written(s)

    def _observe(self, s: Any, out: Tree) -> None:
        # a leaf of shape () is written as out[0]
        self._call["observe"](s, self._p, as_out(map_tree(lambda leaf: leaf if leaf.shape else leaf.reshape(1), out)))

    def _check_observation(self, out: Tree) -> None:
        kernel, observe = self._kernel, self._kernel.function("observe")
        assert observe is not None
        for path, leaf in leaf_paths(out):
            if leaf.dtype.kind == "f" and np.isnan(leaf).any():
                entry = ", ".join(map(str, np.argwhere(np.isnan(leaf))[0])) if leaf.shape else ""
                raise KernelError(
                    f"{where(observe)} wrote an observation that is NaN: out{subscripts(path)}[{entry}], "
                    f"in lane {self._at}, step {self._steps[self._at]} of a trial.{self._nan}"
                )
        if "space" not in self._notes and not kernel.lane_observation_space.contains(
            _as_sample(kernel.lane_observation_space, out)
        ):
            self._notes["space"] = (
                f"{where(observe)} wrote an observation outside observation_space, {kernel.lane_observation_space}: "
                f"{_outside(kernel.lane_observation_space, out)}."
            )

    def _ignored(self, s: Any) -> np.ndarray:
        """[S] seats that are not there or not on turn."""
        seats = np.arange(self._kernel.seats)
        present = np.ones(len(seats), np.bool_)
        if "present" in self._call:
            present[:] = False
            self._call["present"](s, self._p, present)
        if "turn" not in self._call:
            return ~present
        on = self._call["turn"](s, self._p)
        if not 0 <= on < len(seats) or not present[on]:
            raise KernelError(
                f"{where(self._kernel.function('turn'))} returned {on}, which is not a seat that is there "  # type: ignore[arg-type]
                f"({np.flatnonzero(present).tolist()} are), in lane {self._at}, step {self._steps[self._at]} "
                "of a trial."
            )
        return ~present | (seats != on)

    def _check_pay(self, s: Any) -> None:
        paid = np.zeros(self._kernel.seats)
        if "pay" in self._call:
            self._call["pay"](s, self._p, paid)
        if not np.isfinite(paid).all():
            raise KernelError(
                f"{where(self._kernel.function('pay'))} wrote {paid.tolist()}, which is not finite, "  # type: ignore[arg-type]
                f"in lane {self._at}, step {self._steps[self._at]} of a trial."
            )

    def _check_unchanged(self, lane: int, before: np.ndarray) -> None:
        """Looking must not change the state, not by a helper either: it happens at any time, and more than once."""
        for name in self._kernel.state.names or ():
            if not np.array_equal(
                before[name], self._lanes[name][lane : lane + 1], equal_nan=before[name].dtype.kind == "f"
            ):
                looking = " or ".join(f for f in ("observe", "mask", "inform") if f in self._call)
                raise KernelError(
                    f"{declared(type(self._kernel), 'observe')}: something changes s.{name} in {looking}, "
                    f"in lane {lane}, step {self._steps[lane]} of a trial. Only reset and step may change the state."
                )

    def _check_mask(self, mask: np.ndarray) -> None:
        space, function = self._kernel.lane_action_space, self._kernel.function("mask")
        sizes = [int(n) for n in space.nvec.flat] if isinstance(space, gym.spaces.MultiDiscrete) else [len(mask)]
        starts = [0, *itertools.accumulate(sizes)]
        for k, start in enumerate(starts[:-1]):
            if not mask[start : starts[k + 1]].any():
                part = f" of part {k}" if len(sizes) > 1 else ""
                raise KernelError(
                    f"{where(function)} allows no action{part} (out starts as all False), "  # type: ignore[arg-type]
                    f"in lane {self._at}, step {self._steps[self._at]} of a trial."
                )

    # ------------------------------------------------------------------ what looks like a mistake

    def _note_misspelt(self) -> None:
        """A function of the class with almost the name of one that a kernel may have, which nothing calls."""
        reached = {function.__name__ for function in Reach(self._kernel).functions()}
        for name in SEAT_FUNCTIONS if not self._kernel.seats else ():
            if name in vars(type(self._kernel)):
                self._notes[f"seats {name}"] = (
                    f"{declared(type(self._kernel), name)} is never called: only lanes with seats have it. "
                    "Declare seats = 2, or how many there are."
                )
        for name, member in vars(type(self._kernel)).items():
            if not isinstance(member, types.FunctionType) or name in (*SIGNATURES, *reached) or name.startswith("__"):
                continue
            meant = nearest(name, SIGNATURES)
            if meant is not None and meant not in vars(type(self._kernel)):
                self._notes[f"misspelt {name}"] = f"{where(member)} is never called. Did you mean {meant!r}?"

    def _note_printed(self) -> None:
        reach = Reach(self._kernel)
        for function in reach.functions():
            scope = reach.scope(function)
            for node in ast.walk(reach.parse(function)[0]):
                if scope.calls_builtin(node, "print"):
                    self._notes["print"] = f"{where(function, node.lineno)} prints, which only `compiled=False` shows."  # type: ignore[attr-defined]

    def _note_written(self, s: Any) -> None:
        """Which entries `observe` writes, from two looks at rows that hold different patterns before."""
        rows = []
        for pattern in _PATTERNS:
            row = map_tree(
                lambda leaf, pattern=pattern: _filled(leaf, pattern), empty_batch(self._kernel.lane_observation_space)
            )
            try:
                with self._functions.without_clearing():
                    self._observe(s, row)
            except Exception:  # it reads what it has not written, e.g. out[0] += 1: then zeros are meant
                self._constant = False
                return
            rows.append(leaves(row))
        written = [(one == two) | (one != _filled(one, _PATTERNS[0])) for one, two in zip(*rows, strict=True)]
        if self._written is not None and not all(map(np.array_equal, self._written, written)):
            self._constant = False  # what is written depends on the state: the rest is meant to be zero
        self._written = written

    def _note_unwritten(self) -> None:
        if self._written is None or not self._constant:
            return
        paths = [path for path, _ in leaf_paths(empty_batch(self._kernel.lane_observation_space))]
        for path, written in zip(paths, map(self._or_padding, self._written), strict=True):
            if not written.all():
                entry = ", ".join(map(str, np.argwhere(~written)[0])) if written.ndim else "0"
                self._notes[f"unwritten {path}"] = (
                    f"{where(self._kernel.function('observe'))} never writes "  # type: ignore[arg-type]
                    f"{int((~written).sum())} of the {written.size} entries of out{subscripts(path)}, "
                    f"the first of them [{entry}]; they are always 0."
                )

    def _or_padding(self, written: np.ndarray) -> np.ndarray:
        """The same, with all that lies beyond what a seat observes, where seats observe different things."""
        own = self._kernel.observation_space
        if isinstance(own, gym.Space) or written.ndim != 2:
            return written
        width = np.array([space.shape[0] for space in own])  # type: ignore[index]
        return written | (np.arange(written.shape[-1]) >= width[:, None])

    def _note_seat(self, lane: int, before: np.ndarray, words: np.ndarray, action: Any) -> None:
        """Whether the step just made would have been another one with others in the field `seat`."""
        before["seat"] = 1
        self._call["step"](before[0], _as_action(action), self._p, Rng(words))
        if any(
            name != "seat" and not np.array_equal(before[name][0], self._lanes[name][lane], equal_nan=True)
            for name in self._kernel.state.names or ()
        ):
            self._notes["seat"] = (
                f"{where(self._kernel.function('step'))} looks at s.seat, "  # type: ignore[arg-type]
                "which by then says who plays the next episode. Copy it in reset, and look at the copy: "
                f"playing=i8[{self._kernel.seats}]."
            )

    def _note_survivors(self, lane: int) -> None:
        """Fields that a step has changed and that `reset` leaves as they are."""
        reset = self._kernel.function("reset")
        states = []
        for before in (self._first[lane : lane + 1], self._lanes[lane : lane + 1]):
            state = np.array(before).view(np.recarray)
            self._call["reset"](state[0], self._p, Rng(self._words[lane].copy()))
            states.append(state)
        for name in self._kernel.state.names or ():
            if name not in self._kernel.survives and not np.array_equal(
                states[0][name], states[1][name], equal_nan=True
            ):
                self._notes.setdefault(
                    f"survivor {name}",
                    f"{where(reset)} leaves s.{name} as the last episode left it. Set it there, "  # type: ignore[arg-type]
                    f"or say that this is meant: survives = ({name!r},).",
                )


class _Actions:
    """The actions of one lane: 0 random, 1 held for a while, 2 extremes, 3 one for each episode."""

    def __init__(self, space: gym.Space, lane: int) -> None:
        self._space, self._lane = space, lane
        self._rng = np.random.default_rng(lane)
        space.seed(lane)
        self._extremes = itertools.cycle(_extremes(space))
        self._left, self._held = 0, space.sample()

    def next(self, mask: np.ndarray | None) -> Any:
        """The next action, which the mask allows."""
        if mask is not None:
            return self._allowed(mask)
        if self._lane == 2:
            return next(self._extremes)
        if self._lane == 0 or self._left <= 0:
            self._held = self._space.sample()
            self._left = int(self._rng.integers(1, 30)) if self._lane == 1 else 10**9
        self._left -= 1
        return self._held

    def new_episode(self) -> None:
        self._left = 0

    def _allowed(self, mask: np.ndarray) -> Any:
        space = self._space
        if isinstance(space, gym.spaces.Discrete):
            return space.dtype.type(space.start + self._rng.choice(np.flatnonzero(mask)))  # type: ignore[union-attr]
        assert isinstance(space, gym.spaces.MultiDiscrete)
        parts = np.split(mask, np.cumsum(space.nvec)[:-1])
        drawn = [self._rng.choice(np.flatnonzero(part)) for part in parts]
        return np.array(drawn, space.dtype).reshape(space.nvec.shape) + space.start


def _extremes(space: gym.Space) -> Iterator[Any]:
    """The lowest and the highest action, as far as they are finite."""
    if isinstance(space, gym.spaces.Dict):
        yield from (dict(zip(space, pair, strict=True)) for pair in zip(*map(_extremes, space.values()), strict=False))
    elif isinstance(space, gym.spaces.Tuple):
        yield from zip(*map(_extremes, space.spaces), strict=False)
    elif isinstance(space, gym.spaces.Box):
        yield from (np.clip(bound, -1e6, 1e6).astype(space.dtype) for bound in (space.low, space.high))
    elif isinstance(space, gym.spaces.Discrete):
        yield from np.array([int(space.start), int(space.start) + int(space.n) - 1], space.dtype)
    elif isinstance(space, gym.spaces.MultiDiscrete):
        yield from (np.asarray(space.start, space.dtype), (space.start + space.nvec - 1).astype(space.dtype))
    else:
        yield from (space.sample(), space.sample())


def _as_action(action: Any) -> Any:
    """What `step` is given: rows that cannot be written to."""
    if not isinstance(action, np.ndarray) or not action.shape:
        return action[()]
    row = action.copy()
    row.flags.writeable = False
    return row


def _filled(leaf: np.ndarray, pattern: int) -> np.ndarray:
    return np.full_like(leaf, pattern == _PATTERNS[0] if leaf.dtype == np.bool_ else pattern)


def _as_sample(space: gym.Space, out: Tree) -> Any:
    if isinstance(space, gym.spaces.Dict):
        return {key: _as_sample(sub, out[key]) for key, sub in space.items()}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(_as_sample(sub, part) for sub, part in zip(space.spaces, out, strict=True))
    return out[()] if isinstance(space, gym.spaces.Discrete) else out


def _outside(space: gym.Space, out: Tree) -> str:
    """The first number that lies outside, in a few words."""
    parts: dict[Any, gym.Space] = {}
    if isinstance(space, gym.spaces.Dict | gym.spaces.Tuple):
        parts = dict(space.items() if isinstance(space, gym.spaces.Dict) else enumerate(space.spaces))
    for key, sub in parts.items():
        if not sub.contains(_as_sample(sub, out[key])):
            return f"[{key!r}]{_outside(sub, out[key])}"
    if isinstance(space, gym.spaces.Box):
        bad = np.argwhere(~((out >= space.low) & (out <= space.high)))
        entry = tuple(bad[0])
        return f"[{', '.join(map(str, entry))}] is {out[entry]}"
    return f" is {out.tolist()}"
