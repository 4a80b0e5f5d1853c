"""The loop over lanes around an author's functions, written out as a module of its own.

The text depends only on the shape of a kernel (its spaces, its fields if lanes are columns, whether it has a mask or
infos). It is compiled together with the author's functions, or run as it is for `compiled=False`: one loop, two ways.

Lanes are taken in blocks, each in three passes: step all lanes, begin anew those that have ended, observe all. Nothing
rare stands in the first and last: a fault is only noted there, and looked for afterwards. Over columns, LLVM computes
several lanes at once; the lanes of a block are still in the cache when they are observed. Records are taken one by one.

Arrays, leading axis B: `state` records or one column per field, columns `words` ... `ended` (see `BOOK`), `obs_k` and
`final_k` leaves. `guard_k` is a scratch row with margins: the last lane of a chunk, and every last observation of an
episode, is observed there and copied, so that a kernel that writes outside its observation is caught instead of
spoiling memory that is not its own. (Inside a chunk the next lane repairs what its neighbour spoiled.)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import gymnasium as gym
import numpy as np

from shoal.errors import KernelError
from shoal.vector.kernel.forms import expression, leaf_spaces
from shoal.vector.kernel.seats import Seats
from shoal.vector.spaces import num_actions

BOOK = np.dtype(
    [
        ("words", np.uint64, (2,)),
        ("total", np.float64),
        ("length", np.int64),
        ("began", np.float64),
        ("ended", np.bool_),
    ],
    align=True,
)


def book_of(seats: int) -> np.dtype:
    """`BOOK` of lanes with this many seats: a return for each, and what it is due in the running step."""
    fields = [(name, BOOK[name]) for name in BOOK.names or ()]
    own = {"total": ("total", np.float64, (seats,))}
    fields = [own.get(name, (name, kind)) for name, kind in fields]  # type: ignore[misc]
    return np.dtype([*fields, ("due", np.float64, (seats,))], align=True) if seats else BOOK


def episode_of(seats: int) -> np.dtype:
    """`EPISODE` of lanes with this many seats."""
    return np.dtype([("r", np.float64, (seats,)), ("l", np.int64), ("t", np.float64)]) if seats else EPISODE


EPISODE = np.dtype([("r", np.float64), ("l", np.int64), ("t", np.float64)])

SAME_STEP, NEXT_STEP, DISABLED = 0, 1, 2
MARGIN = 64  # elements on either side of a guarded row

# A fault is returned as -(kind * FAULT_STRIDE + lane + 1).
NAN_REWARD, NAN_OBS, OUTSIDE, BAD_ACTION, NOT_RESET, BAD_TURN = 1, 2, 3, 4, 5, 6
FAULT_STRIDE = 2**40

_TEMPLATE = f"""\
@jit
def fault(kind, i):
    return -(kind * {FAULT_STRIDE} + i + 1)


@jit_apart
def look(i, STATE, PARAMS, OBS, GUARD):
    observe(LANE, P, ROW_OF_GUARD)
    odd = False
    COPY_GUARD
    return odd


@jit_apart
def spoiled(GUARD):
    CHECK_MARGINS
    return False


@jit_apart
def renew(i, now, STATE, BOOK, PARAMS, RANGES):
    rng = Rng(pair(words, i))
    DRAW
    reset(LANE, P, rng)
    CLEAR_TOTAL
    length[i] = 0
    began[i] = now
    ended[i] = False


@jit_cached
def begin(which, shown, now, STATE, BOOK, PARAMS, RANGES, OBS, GUARD, INFO, MASK):
    for i in range(len(which)):
        if which[i]:
            renew(i, now, STATE, BOOK, PARAMS, RANGES)
        if shown[i]:
            if look(i, STATE, PARAMS, OBS, GUARD):
                return fault({NAN_OBS}, i)
            TELL
    if spoiled(GUARD):
        return fault({OUTSIDE}, len(which) - 1)
    return 0


@jit_cached
def check(ended, action, low, high, mode, lo, hi):
    good = True
    for i in range(lo, hi):
        CHECK_ACTION
    if not good:
        for i in range(lo, hi):
            good = True
            CHECK_ACTION
            if not good:
                return fault({BAD_ACTION}, i)
    if mode == {DISABLED}:
        for i in range(lo, hi):
            if ended[i]:
                return fault({NOT_RESET}, i)
    return 0


@jit_disjoint
def run(action, now, checked, lo, hi, GUARD, STATE, BOOK, PARAMS, RANGES, low, high, mode, episode, done,
        INFO, FINAL_INFO, OBS, reward, terminated, truncated, FINAL, MASK):
    if not checked:
        code = check(ended, action, low, high, mode, lo, hi)
        if code != 0:
            return code
    count = 0
    for first in range(lo, hi, BLOCK):
        last = END_OF_BLOCK
        at = first
        odd = False
        while at < last:
            stop = last
            if mode == {NEXT_STEP}:  # the step after the end begins the new episode
                stop = at
                while stop < last and not ended[stop]:
                    stop += 1
            for i in range(at, stop):
                r, ends, cut = step(LANE, ACTION, P, Rng(pair(words, i)))
                odd |= r != r
                k = unsigned(i)  # such an index is not looked at for being below zero
                COUNT
                length[k] += 1
                PAY
                terminated[k] = ends
                truncated[k] = cut and not ends
                done[k] = ends or cut
            if stop < last:
                renew(stop, now, STATE, BOOK, PARAMS, RANGES)
                PAY_NOTHING
                terminated[stop] = False
                truncated[stop] = False
                done[stop] = False
            at = stop + 1
        if odd:
            for i in range(first, last):
                if ODD_REWARD:
                    return fault({NAN_REWARD}, i)
        for base in range(first, last, 64):
            over = ended_among(done, base, last)
            while over != 0:  # a bit per lane: most have not ended, and are not asked one by one
                i = base + lowest_bit(over)
                over = without_lowest(over)
                count += 1
                RETURN
                episode[i].l = length[i]
                episode[i].t = now - began[i]
                if mode == {SAME_STEP}:
                    if look(i, STATE, PARAMS, FINAL, GUARD):
                        return fault({NAN_OBS}, i)
                    TELL_FINAL
                    renew(i, now, STATE, BOOK, PARAMS, RANGES)
                else:
                    ended[i] = True
        stop = min(last, hi - 1)
        for i in range(first, stop):
            observe(LANE, P, ROW_OF_OBS)
        if last == hi:
            look(stop, STATE, PARAMS, OBS, GUARD)
        CHECK_NAN
        TELL_BLOCK
    if spoiled(GUARD):
        return fault({OUTSIDE}, hi - 1)
    return count
"""


@dataclass(frozen=True)
class Params:
    """How the driver finds a kernel's parameters."""

    columns: tuple[str, ...] = ()
    """Names of all of them, if each is an array of its own; otherwise they are records."""
    per_lane: bool = False
    """Whether there is a record for each lane."""
    drawn: tuple[tuple[str, bool], ...] = ()
    """Names of those that are drawn when an episode begins, and whether they are whole numbers."""

    def draw_lines(self) -> list[str]:
        """Code that draws them for lane i."""
        lines = []
        for k, (name, is_whole) in enumerate(self.drawn):
            target = f"p_{name}[i]" if self.columns else f"params[{name!r}][i]"
            low, high = f"ranges[{k}, 0]", f"ranges[{k}, 1]"
            whole = f"int({low}) + rng.integers(int({high}) - int({low}) + 1)"
            lines.append(f"{target} = {whole if is_whole else f'rng.uniform({low}, {high})'}")
        return lines


@dataclass(frozen=True)
class Shape:
    """What the driver's text depends on."""

    observation_space: gym.Space
    action_space: gym.Space
    columns: tuple[str, ...]
    """Names of the fields, if lanes are columns."""
    block: int
    """Lanes per block."""
    has_mask: bool
    has_info: bool
    params: Params
    seats: Seats | None = None


def driver_source(shape: Shape) -> str:
    """Text of a module with `begin`, `check` and `run`; its globals `reset`, `step`, ... are put in by the caller."""
    parts = leaf_spaces(shape.observation_space)
    state = [f"s_{name}" for name in shape.columns] or ["state"]
    tells = shape.has_info or (shape.seats is not None and shape.seats.tells)
    lists = {
        "STATE": state,
        "BOOK": list(book_of(0 if shape.seats is None else shape.seats.count).names or ()),
        "PARAMS": [f"p_{name}" for name in shape.params.columns] or ["params"],
        "RANGES": ["ranges"] if shape.params.drawn else [],
        "OBS": [f"obs_{k}" for k in range(len(parts))],
        "FINAL": [f"final_{k}" for k in range(len(parts))],
        "GUARD": [f"guard_{k}" for k in range(len(parts))],
        "INFO": ["info"] if tells else [],
        "FINAL_INFO": ["final_info"] if tells else [],
        "MASK": ["action_mask"] if shape.has_mask or (shape.seats is not None and shape.seats.choices) else [],
    }
    tell_mask = []
    if shape.has_mask and shape.seats is None:
        clear = [f"for j in range({num_actions(shape.action_space)}):", "    action_mask[i, j] = False"]
        tell_mask = [*clear, "mask(LANE, P, action_mask[i])"]
    tell_info = ["inform(LANE, P, info[i])"] if shape.has_info else []
    tell = [*tell_info, *tell_mask]
    tell_final = ["inform(LANE, P, final_info[i])"] if shape.has_info else []
    if shape.seats is not None:
        tell += [*shape.seats.tell_lines("info", f"fault({BAD_TURN}, i)"), *shape.seats.mask_lines(shape.has_mask)]
        tell_final += shape.seats.present_lines("final_info")
    blocks = {
        "COPY_GUARD": [line for k, part in enumerate(parts) for line in _copy_guard(k, part)],
        "CHECK_MARGINS": [line for k, part in enumerate(parts) for line in _check_margins(k, part)],
        "CHECK_NAN": [line for k, part in enumerate(parts) for line in _check_nan(k, part)],
        "CHECK_ACTION": _check_action(shape.action_space),
        "DRAW": shape.params.draw_lines(),
        "TELL": tell,
        "TELL_BLOCK": ["for i in range(first, last):", *("    " + line for line in tell)] if tell else [],
        "TELL_FINAL": tell_final,
        "CLEAR_TOTAL": ["total[i] = 0.0"],
        "COUNT": ["total[k] += r"],
        "PAY": ["reward[k] = r"],
        "PAY_NOTHING": ["reward[stop] = 0.0"],
        "RETURN": ["episode[i].r = total[i]"],
    }
    if shape.seats is not None:
        blocks |= shape.seats.reward_blocks()
    seen = shape.observation_space
    words = {
        "ROW_OF_OBS": expression(seen, (f"row_{k}(obs_{k}, i)" for k in range(len(parts)))),
        "ROW_OF_GUARD": expression(seen, (f"row_{k}(guard_{k}[{MARGIN}:], 0)" for k in range(len(parts)))),
        "ACTION": "row_action(action, i)" if shape.action_space.shape else "action[unsigned(i)]",
        "ODD_REWARD": "reward[i] != reward[i]" if shape.seats is None else shape.seats.odd_reward(),
        "P": _params_of_lane(shape.params),
        "LANE": f"lane(i, {', '.join(state)})" if shape.columns else "state[unsigned(i)]",
        "BLOCK": str(shape.block),
        "END_OF_BLOCK": "first + 1" if shape.block == 1 else f"min(first + {shape.block}, hi)",
    }
    text = []
    for line in _TEMPLATE.splitlines():
        word = line.strip()
        indent = line[: len(line) - len(word)]
        text += [indent + filled for filled in blocks[word]] if word in blocks else [_fill_lists(line, lists)]
    upper = re.compile(rf"\b(?:{'|'.join(words)})\b")
    return upper.sub(lambda match: words[match[0]], "\n".join(text)) + "\n"


def _fill_lists(line: str, lists: dict[str, list[str]]) -> str:
    """Put lists of argument names in place of their upper-case words; an empty list takes its comma with it."""
    for name, names in lists.items():
        line = re.sub(rf"\b{name}\b(, ?)?", lambda match: ", ".join(names) + (match[1] or "") if names else "", line)  # noqa: B023
    return line.replace(", )", ")")


def _params_of_lane(params: Params) -> str:
    if params.columns:
        return f"lane_params(i, {', '.join(f'p_{name}' for name in params.columns)})"
    return "params[i]" if params.per_lane else "params[0]"


def size_of(space: gym.Space) -> int:
    """Numbers in one lane's row of a space."""
    return int(np.prod(space.shape or (1,)))


def _sentinel(space: gym.Space) -> int:
    return 1 if space.dtype == np.bool_ else 85


def _copy_guard(k: int, space: gym.Space) -> list[str]:
    lines = [f"target_{k} = flat_{k}(obs_{k}, i)", f"for j in range({size_of(space)}):"]
    lines.append(f"    target_{k}[j] = guard_{k}[{MARGIN} + j]")
    return [*lines, f"    odd |= target_{k}[j] != target_{k}[j]"] if _can_be_nan(space) else lines


def _check_margins(k: int, space: gym.Space) -> list[str]:
    return [
        f"for j in range({MARGIN}):",
        f"    if guard_{k}[j] != {_sentinel(space)} or guard_{k}[{MARGIN + size_of(space)} + j] != {_sentinel(space)}:",
        "        return True",
    ]


def _check_nan(k: int, space: gym.Space) -> list[str]:
    if not _can_be_nan(space):
        return []
    return [
        f"flat = flatten(obs_{k})",
        f"for j in range(first * {size_of(space)}, last * {size_of(space)}):",
        "    odd |= flat[unsigned(j)] != flat[unsigned(j)]",
        "if odd:",
        f"    for j in range(first * {size_of(space)}, last * {size_of(space)}):",
        "        if flat[j] != flat[j]:",
        f"            return fault({NAN_OBS}, j // {size_of(space)})",
    ]


def _can_be_nan(space: gym.Space) -> bool:
    return np.dtype(space.dtype).kind == "f"


def _check_action(space: gym.Space) -> list[str]:
    """Refuse what lies outside [low, high]; the comparison is written so that NaN fails it."""
    if not space.shape:
        return ["good &= (action[unsigned(i)] >= low[0]) & (action[unsigned(i)] <= high[0])"]
    return [
        "row = flat_action(action, i)",
        f"for j in range({size_of(space)}):",
        "    good &= (row[j] >= low[j]) & (row[j] <= high[j])",
    ]


def guard_rows(space: gym.Space) -> tuple[np.ndarray, ...]:
    """Scratch rows for `look`, one per observation leaf, margins filled with the sentinel."""
    return tuple(np.full(2 * MARGIN + size_of(part), _sentinel(part), part.dtype) for part in leaf_spaces(space))


def action_bounds(space: gym.Space) -> tuple[np.ndarray, np.ndarray]:
    """Flat lowest and highest action, in the type of the actions."""
    if isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete):
        sizes = space.n if isinstance(space, gym.spaces.Discrete) else space.nvec
        low = np.asarray(space.start, space.dtype).ravel()
        return low, low + np.asarray(sizes, space.dtype).ravel() - np.ones(1, space.dtype)
    if isinstance(space, gym.spaces.MultiBinary):
        return np.zeros(size_of(space), space.dtype), np.ones(size_of(space), space.dtype)
    if isinstance(space, gym.spaces.Box):
        return space.low.ravel().copy(), space.high.ravel().copy()
    raise KernelError(f"A kernel takes Box, Discrete, MultiDiscrete or MultiBinary actions, not {space}.")
